"""Resources: pages that a client can show, attach or watch without calling a tool.

There are two fixed pages and a status, the scenes, the most recent canvases, and templates for everything with an id.
Texts are as Memory returns them, but the persona and scenes are defused, and turns quoted. A raw result that is not
UTF-8 is a blob. `updates` notifies clients of changes.

A read returns at most MOST characters. Longer content is read in pages: a page gives the address of the next page, in
its last line (sessions) or in a second content, so that the first contents of all pages joined are the whole.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, parse_qsl, quote, unquote

import mcp.types as wire
from mcp.server.lowlevel.helper_types import ReadResourceContents
from pydantic_core import to_json, to_jsonable_python

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import CanvasRow, Ref, Scene, Turn
from mcp_memory.server.authorization import current_grant, visible_status
from mcp_memory.server.updates import LISTED_CANVASES
from mcp_memory.service.render import DATA_NOTE, minute, quarantine_mark
from mcp_memory.service.render import quote as quote_lines
from mcp_memory.suspicion.flags import defuse

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory

MARKDOWN, MERMAID, JSON = "text/markdown", "text/vnd.mermaid", "application/json"
MOST = 50_000
"""Characters of one read: of its text, or of its blob in Base64."""

_TURNS = 100  # turns of a session that are read at a time
_BATCH = 10  # turns that are read from the store at once
_MAX_TEXT = MOST - 500  # bytes, with room for the line that names the next page
_MAX_BLOB = _MAX_TEXT // 4 * 3
_AT_LEAST = 1_000  # characters of a turn, below which it begins on the next page


def _resource(uri: str, name: str, title: str, description: str | None, mime_type: str) -> wire.Resource:
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
_IN_PAGES = f"{MOST:,} characters at a time; a longer one names the address of its next page"
_SESSION = f"The turns of a session, verbatim, {_IN_PAGES}; ?start=N begins at a position"
_ATOM = "What is held true, with its dates, its evidence and the outputs it rests on"

FIXED = (
    _resource("persona", "persona.md", "Persona", "The page about the user, with the list of scenes", MARKDOWN),
    _resource("canvas/active", "active.mmd", "Active canvas", _ACTIVE, MERMAID),
    _resource("status", "status.json", "Status", "What is stored, indexed, saved and waiting", JSON),
)
TEMPLATES = (
    _template("scene/{slug}", "Scene", "The page of one theme of the user's life or work", MARKDOWN),
    _template("canvas/{number}", "Canvas", f"A task's Mermaid flowchart, by its number, {_IN_PAGES}", MERMAID),
    _template("session/{session}", "Conversation", _SESSION, MARKDOWN),
    _template("atom/{id}", "Statement", _ATOM, JSON),
    _template("ref/{id}", "Raw tool result", f"An offloaded result, byte for byte, {_IN_PAGES}"),
)


async def list_resources(memory: Memory) -> list[wire.Resource]:
    """Return the fixed resources, the scenes, then the most recent canvases, by number."""
    scenes = await memory.scenes()
    canvases = await memory.canvases(limit=LISTED_CANVASES)
    return [
        *FIXED,
        *(_scene_entry(scene) for scene in sorted(scenes, key=lambda scene: scene.slug)),
        *(_canvas_entry(canvas) for canvas in sorted(canvases, key=lambda canvas: canvas.number)),
    ]


def _scene_entry(scene: Scene) -> wire.Resource:
    title, summary = one_line(scene.title, 80), one_line(scene.summary, 200)
    return _resource(f"scene/{quote(scene.slug, safe='')}", f"{scene.slug}.md", title, summary, MARKDOWN)


def _canvas_entry(canvas: CanvasRow) -> wire.Resource:
    title = f"Canvas {canvas.number:03}: {one_line(canvas.label, 80)}"
    return _resource(f"canvas/{canvas.number:03}", f"{canvas.number:03}-{canvas.label}.mmd", title, None, MERMAID)


async def read_resource(memory: Memory, uri: str) -> list[ReadResourceContents]:
    """Return a page of a `memory://` address, and the address of the next page if there is one.

    Raises NotFound for an unknown address, InvalidInput for a wrong parameter, Damaged for a damaged file.
    """
    address, _, query = uri.removeprefix("memory://").partition("?")
    kind, _, name = address.partition("/")
    _check_parameters(query, ("start", "from") if kind == "session" else ("from",))
    if kind == "session" and name:
        return [ReadResourceContents(await _session_page(memory, unquote(name), query), MARKDOWN)]
    content = await _read_whole(memory, uri, kind, unquote(name))
    return _cut_page(content, f"memory://{address}", _position(query, "from"))


_KINDS = {"persona", "status", "canvas", "scene", "session", "atom", "ref"}


def kind_of(uri: str) -> tuple[str, str]:
    """Return the kind of an address, `unknown` if there is none such, and the rest of its path."""
    kind, _, name = uri.removeprefix("memory://").partition("?")[0].partition("/")
    return (kind if kind in _KINDS else "unknown"), unquote(name)


async def _read_whole(memory: Memory, uri: str, kind: str, name: str) -> ReadResourceContents:
    match kind, name:
        case "persona", "":
            return ReadResourceContents(defuse((await memory.read_persona()).text) or _NO_PERSONA, MARKDOWN)
        case "status", "":
            shown = visible_status(await memory.status(), current_grant())
            return ReadResourceContents(to_json(shown, indent=2).decode(), JSON)
        case "canvas", "active":
            return ReadResourceContents(await _active_canvas(memory), MERMAID)
        case "canvas", number if _NUMBER.fullmatch(number):
            return ReadResourceContents((await memory.canvas(int(number))).text, MERMAID)
        case "scene", slug if slug:
            return ReadResourceContents(defuse(await memory.scene_page(slug)), MARKDOWN)
        case "atom", atom if atom:
            return ReadResourceContents(await _atom_json(memory, atom), JSON)
        case "ref", ref if ref:
            return _raw_content(*await memory.ref(ref))
        case _:
            addresses = ", ".join([*(fixed.uri for fixed in FIXED), *(template.uri_template for template in TEMPLATES)])
            raise NotFound(f"There is no resource {one_line(uri, 120)!r}. Addresses: {addresses}.")


_NUMBER = re.compile(r"[0-9]{1,9}")
_NO_PERSONA = "No persona yet. It grows from what is told with the tool `remember`.\n"
_NO_CANVAS = "%% No task is active: offload_tool_result starts a canvas, fold_canvas with action=switch opens one.\n"


async def _active_canvas(memory: Memory) -> str:
    """Return the active canvas, folded to the usual budget, or a comment that no task is active."""
    if await memory.active_canvas() is None:
        return _NO_CANVAS
    view = await memory.fold_canvas()
    return f"%% {view.text}\n" if view.folded else view.text


async def _atom_json(memory: Memory, id: str) -> str:
    """Return an atom as JSON, with its tool results under `cites`."""
    atom = to_jsonable_python(await memory.atom(id))
    return to_json({**atom, "cites": await memory.cites(id)}, indent=2).decode()


async def _session_page(memory: Memory, session: str, query: str) -> str:
    start, skipped = _position(query, "start"), _position(query, "from")
    address = f"memory://session/{quote(session, safe='')}"
    parts = [f"# Session {session}", DATA_NOTE]
    room = _MAX_TEXT - sum(map(len, parts))
    position: int | None = None
    async for turn, why in _turns_from(memory, session, start):
        heading = _heading(turn, why, is_continued=skipped > 0)
        left = turn.content[skipped:]
        fitting = _fitting_length(left, room - len(heading))
        if position is not None and (turn.position >= start + _TURNS or _begins_next_page(left, fitting)):
            return _with_next("\n\n".join(parts), f"{address}?start={turn.position}")
        parts.append(f"{heading}\n\n{quote_lines(left[:fitting])}")
        if fitting < len(left):
            return _with_next("\n\n".join(parts), f"{address}?start={turn.position}&from={skipped + fitting}")
        room -= len(parts[-1]) + 2
        position, skipped = turn.position, 0
    if position is None:
        raise NotFound(f"Session {one_line(session, 80)!r} has no turn at position {start} or later.")
    return "\n\n".join(parts) + "\n"


async def _turns_from(memory: Memory, session: str, start: int) -> AsyncGenerator[tuple[Turn, Sequence[str]]]:
    """Yield the turns of a session from a position, each with the reasons for its quarantine."""
    while turns := await memory.session_turns(session, start=start, limit=_BATCH):
        why = await memory.why_held([turn.id for turn in turns])
        for turn in turns:
            yield turn, why.get(turn.id, ())
        start = turns[-1].position + 1


def _begins_next_page(text: str, fitting: int) -> bool:
    """Return whether a turn should begin on the next page: it does not fit on this page, or only a small part does."""
    return fitting < len(text) and (len(text) <= _MAX_TEXT // 2 or fitting < _AT_LEAST)


def _fitting_length(text: str, room: int) -> int:
    """Return how many characters of a text fit, quoted, into `room`: whole lines, or a part of a single line."""
    end = min(len(text), max(1, room))
    while end > 1 and (size := len(quote_lines(text[:end]))) > room:
        end = max(1, min(end - 1, end * room // size))
    if end < len(text) and (line := text.rfind("\n", end // 2, end)) >= 0:
        return line + 1
    return end


def _with_next(page: str, address: str) -> str:
    return f"{page}\n\nMore: {address}\n"


def _heading(turn: Turn, why: Sequence[str], *, is_continued: bool) -> str:
    name = f" ({one_line(turn.name, 40)})" if turn.name else ""
    continued = ", continued" if is_continued else ""
    return f"## {turn.id} · {turn.role}{name}{continued} · {minute(turn.said_at)}{quarantine_mark(why)}"


def _check_parameters(query: str, allowed: Sequence[str]) -> None:
    """Raise InvalidInput for a parameter that this kind of address does not have, or that is given twice."""
    names = [name for name, _ in parse_qsl(query, keep_blank_values=True)]
    if query and not names:
        names = [query]
    for name in names:
        if name not in allowed:
            raise InvalidInput(
                f"There is no parameter {one_line(name, 40)!r}. This address takes {' and '.join(allowed)}."
            )
        if names.count(name) > 1:
            raise InvalidInput(f"The parameter {name} is given twice. Give it once.")


def _position(query: str, name: str) -> int:
    value = parse_qs(query, keep_blank_values=True).get(name, ["0"])[-1]
    if not _NUMBER.fullmatch(value):
        example = "a position in the session such as 100" if name == "start" else "a number such as 50000"
        raise InvalidInput(f"{name} must be {example}, not {one_line(value, 40)!r}.")
    return int(value)


def _cut_page(whole: ReadResourceContents, address: str, start: int) -> list[ReadResourceContents]:
    """Return the page that begins at byte `start`, and a note with the address of the next page, if any.

    Raises NotFound if `start` is past the end.
    """
    is_text = isinstance(whole.content, str)
    data = whole.content.encode("utf-8", "surrogatepass") if isinstance(whole.content, str) else whole.content
    if start and start >= len(data):
        raise NotFound(f"{one_line(address, 120)} has {len(data):,} bytes, and none from {start:,} on.")
    end = start + (_MAX_TEXT if is_text else _MAX_BLOB)
    if end >= len(data):
        if not start:
            return [whole]
        end = len(data)
    while is_text and end < len(data) and data[end] & 0xC0 == 0x80:  # in the middle of a character
        end -= 1
    part = data[start:end]
    while is_text and part and part[0] & 0xC0 == 0x80:  # `start` splits a character
        part = part[1:]
    content = part.decode("utf-8", "surrogatepass") if is_text else part
    page = [ReadResourceContents(content, whole.mime_type)]
    if end < len(data):
        more = f"More: {address}?from={end} (this page has bytes {start:,} to {end:,} of {len(data):,})"
        page.append(ReadResourceContents(more, "text/plain"))
    return page


def _raw_content(ref: Ref, data: bytes) -> ReadResourceContents:
    try:
        return ReadResourceContents(data.decode(), ref.content_type)
    except UnicodeDecodeError:
        return ReadResourceContents(data, "application/octet-stream")
