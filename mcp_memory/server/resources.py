"""Resources: pages that a client can show, attach or watch without calling a tool.

Two fixed pages and a status, the most recent canvases, and templates for everything that has an id. Texts come from
Memory unchanged; a raw result that is not UTF-8 is a blob. `updates` tells clients what changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote

import mcp.types as wire
from mcp.server.lowlevel.helper_types import ReadResourceContents
from pydantic_core import to_json, to_jsonable_python

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import CanvasRow, Ref, Scene, Turn
from mcp_memory.server.authorization import current, part_of_status
from mcp_memory.server.updates import LISTED_CANVASES
from mcp_memory.service.render import DATA_NOTE, held, minute
from mcp_memory.service.render import quote as quote_lines
from mcp_memory.suspicion.flags import defused

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory

MARKDOWN, MERMAID, JSON = "text/markdown", "text/vnd.mermaid", "application/json"
_PAGE = 100  # turns of a session at a time


def _page(uri: str, name: str, title: str, description: str | None, mime_type: str) -> wire.Resource:
    return wire.Resource(uri=f"memory://{uri}", name=name, title=title, description=description, mime_type=mime_type)


def _template(uri: str, title: str, description: str, mime_type: str | None = None) -> wire.ResourceTemplate:
    return wire.ResourceTemplate(
        uri_template=f"memory://{uri}",
        name=uri.partition("/")[0],
        title=title,
        description=description,
        mime_type=mime_type,
    )


_ACTIVE = "The Mermaid flowchart of the task in hand, old steps folded"
_SESSION = f"The turns of a session, verbatim, {_PAGE} at a time; ?start=N goes on from a position"
_ATOM = "What is held true, with its dates, its evidence and the outputs it rests on"

FIXED = (
    _page("persona", "persona.md", "Persona", "The page about the user, with the list of scenes", MARKDOWN),
    _page("canvas/active", "active.mmd", "Active canvas", _ACTIVE, MERMAID),
    _page("status", "status.json", "Status", "What is stored, indexed, saved and waiting", JSON),
)
TEMPLATES = (
    _template("scene/{slug}", "Scene", "The page of one theme of the user's life or work", MARKDOWN),
    _template("canvas/{number}", "Canvas", "A task's Mermaid flowchart, by its number", MERMAID),
    _template("session/{session}", "Conversation", _SESSION, MARKDOWN),
    _template("atom/{id}", "Statement", _ATOM, JSON),
    _template("ref/{id}", "Raw tool result", "An offloaded result, byte for byte"),
)


async def list_resources(memory: Memory) -> list[wire.Resource]:
    """Return the fixed resources, the scenes, then the canvases worked on last, by number."""
    scenes = await memory.scenes()
    canvases = await memory.canvases(limit=LISTED_CANVASES)
    return [
        *FIXED,
        *(_scene_entry(scene) for scene in sorted(scenes, key=lambda scene: scene.slug)),
        *(_canvas_entry(canvas) for canvas in sorted(canvases, key=lambda canvas: canvas.number)),
    ]


def _scene_entry(scene: Scene) -> wire.Resource:
    title, summary = one_line(scene.title, 80), one_line(scene.summary, 200)
    return _page(f"scene/{quote(scene.slug, safe='')}", f"{scene.slug}.md", title, summary, MARKDOWN)


def _canvas_entry(canvas: CanvasRow) -> wire.Resource:
    title = f"Canvas {canvas.number:03}: {one_line(canvas.label, 80)}"
    return _page(f"canvas/{canvas.number:03}", f"{canvas.number:03}-{canvas.label}.mmd", title, None, MERMAID)


async def read_resource(memory: Memory, uri: str) -> ReadResourceContents:
    """Return the contents at a `memory://` address. Raises NotFound, InvalidInput, Damaged."""
    address, _, query = uri.removeprefix("memory://").partition("?")
    kind, _, name = address.partition("/")
    match kind, unquote(name):
        case "persona", "":
            return ReadResourceContents(defused((await memory.read_persona()).text) or _NO_PERSONA, MARKDOWN)
        case "status", "":
            shown = part_of_status(await memory.status(), current())
            return ReadResourceContents(to_json(shown, indent=2).decode(), JSON)
        case "canvas", "active":
            return ReadResourceContents(await _active_canvas(memory), MERMAID)
        case "canvas", number if _NUMBER.fullmatch(number):
            return ReadResourceContents((await memory.canvas(int(number))).text, MERMAID)
        case "scene", slug if slug:
            return ReadResourceContents(defused(await memory.scene_page(slug)), MARKDOWN)
        case "session", session if session:
            return ReadResourceContents(await _session_page(memory, session, query), MARKDOWN)
        case "atom", atom if atom:
            return ReadResourceContents(await _atom(memory, atom), JSON)
        case "ref", ref if ref:
            return _raw(*await memory.ref(ref))
        case _:
            known = ", ".join([*(fixed.uri for fixed in FIXED), *(template.uri_template for template in TEMPLATES)])
            raise NotFound(f"There is no resource {one_line(uri, 120)!r}. Addresses: {known}.")


_NUMBER = re.compile(r"[0-9]{1,9}")
_NO_PERSONA = "No persona yet. It grows from what is told with the tool `remember`.\n"
_NO_CANVAS = "%% No task is active: offload_tool_result starts a canvas, fold_canvas with action=switch opens one.\n"


async def _active_canvas(memory: Memory) -> str:
    """Return the canvas as it stands in a context, within the usual budget; by its number it is read whole."""
    if await memory.active_canvas() is None:
        return _NO_CANVAS
    view = await memory.fold_canvas()
    return f"%% {view.text}\n" if view.folded else view.text


async def _atom(memory: Memory, id: str) -> str:
    """Return an atom as JSON, with its tool results under `cites`."""
    found = to_jsonable_python(await memory.atom(id))
    return to_json({**found, "cites": await memory.cites(id)}, indent=2).decode()


async def _session_page(memory: Memory, session: str, query: str) -> str:
    start = parse_qs(query).get("start", ["0"])[-1]
    if not _NUMBER.fullmatch(start):
        raise InvalidInput(f"start must be a position in the session such as 100, not {one_line(start, 40)!r}.")
    turns = await memory.session_turns(session, start=int(start), limit=_PAGE + 1)
    if not turns:
        raise NotFound(f"Session {one_line(session, 80)!r} has no turn at position {start} or later.")
    why = await memory.why_held([turn.id for turn in turns[:_PAGE]])
    shown = (_turn(turn, why.get(turn.id, ())) for turn in turns[:_PAGE])
    page = "\n\n".join([f"# Session {session}", DATA_NOTE, *shown])
    if len(turns) > _PAGE:
        page += f"\n\nMore: memory://session/{quote(session, safe='')}?start={turns[_PAGE].position}"
    return page + "\n"


def _turn(turn: Turn, why: Sequence[str]) -> str:
    name = f" ({one_line(turn.name, 40)})" if turn.name else ""
    return f"## {turn.id} · {turn.role}{name} · {minute(turn.said_at)}{held(why)}\n\n{quote_lines(turn.content)}"


def _raw(ref: Ref, data: bytes) -> ReadResourceContents:
    try:
        return ReadResourceContents(data.decode(), ref.content_type)
    except UnicodeDecodeError:
        return ReadResourceContents(data, "application/octet-stream")
