"""Resources: pages that a client can show, attach or watch without calling a tool.

Two fixed pages and a status, the most recent canvases, and templates for everything that has an id. Texts come from
Memory unchanged; a raw result that is not UTF-8 is a blob.

`Updates` notifies clients of both protocol generations of changes, whichever process made them. While the Memory is
open and clients listen, a watcher asks the store for changes: every half second, right after a write of ours, and when
the store hears of one of another server (`Store.on_change`). Each space has a separate feed, so listeners learn nothing
about other spaces. Clients of 2026-07-28 listen through `subscriptions/listen`, which the SDK serves from the bus that
`Updates` is. For the handshake era MCPServer serves no subscriptions: there the connections are kept and notified, with
private names of the SDK (`_lowlevel_server`, `ServerSession._connection`) that tests pin. Updates are advice: nothing
is replayed, and a client that stopped reading misses some.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote
from weakref import WeakKeyDictionary

import anyio
import mcp.types as wire
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import MCPServer
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp.shared.exceptions import MCPError
from pydantic_core import to_json, to_jsonable_python

from mcp_memory.core.errors import InvalidInput, McpMemoryError, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import CanvasRow, Ref, Scene, Turn
from mcp_memory.server.authorization import current, part_of_status
from mcp_memory.service.render import DATA_NOTE, held, minute
from mcp_memory.service.render import quote as quote_lines
from mcp_memory.store.values import RECALLS
from mcp_memory.suspicion import defused

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


logger = logging.getLogger(__name__)

LISTED_CANVASES = 20
_POLL_SECONDS = 0.5
_MOST_FEEDS = 1_000  # before those that nobody listens to are dropped
_MOST_WATCHED = 1_000  # addresses by a connection
_LONGEST = 500  # characters of an address: a name has 120 bytes at most
_SEND_SECONDS = 2.0  # a client that does not read must not hold up the others

_Context = ServerRequestContext[Any, Any]


def uris_of(topic: str) -> list[str]:
    """Return the addresses at which a changed topic (`persona`, `canvas:003`, `atom:a57` …) can be watched."""
    kind, _, name = topic.partition(":")
    match kind:
        case "persona":
            return ["memory://persona"]
        case "canvas":
            numbers = dict.fromkeys([name, name.lstrip("0")])
            return [*(f"memory://canvas/{number}" for number in numbers), "memory://canvas/active"]
        case "work":
            return ["memory://status"]
        case "session" | "atom" | "ref" | "scene":
            return [f"memory://{kind}/{quote(name, safe='')}"]
        case _:
            return []


@dataclass
class _Feed:
    """Listeners of a space, and the last change they were notified of."""

    listeners: dict[object, Callable[[ServerEvent], None]] = field(
        default_factory=dict[object, Callable[[ServerEvent], None]]
    )
    connections: WeakKeyDictionary[Connection, set[str]] = field(
        default_factory=WeakKeyDictionary[Connection, "set[str]"]
    )
    after: int | None = None
    """The last change that they know of; None until the first look, for what changed earlier is not for them."""
    listed: list[int] = field(default_factory=list[int])
    is_being_told: bool = False

    @property
    def is_heard(self) -> bool:
        return bool(self.listeners or self.connections)

    async def catch_up(self, memory: Memory) -> None:
        self.after = await memory.last_change()
        self.listed = await _listed(memory)

    async def publish(self, event: ServerEvent) -> None:
        for listener in list(self.listeners.values()):
            listener(event)
        async with anyio.create_task_group() as sending:
            for connection, uris in list(self.connections.items()):
                match event:
                    case ResourceUpdated(uri=uri) if uri in uris:
                        sending.start_soon(_send, partial(connection.send_resource_updated, uri))
                    case ResourcesListChanged():
                        sending.start_soon(_send, connection.send_resource_list_changed)
                    case _:
                        pass

    async def publish_changes(self, memory: Memory, after: int, now: int) -> None:
        changes = [change for change in await memory.changes(after) if change.topic != RECALLS]
        self.after = now
        if not changes:
            return
        uris = [uri for change in changes for uri in uris_of(change.topic)]
        for uri in dict.fromkeys([*uris, "memory://status"]):
            await self.publish(ResourceUpdated(uri=uri))
        if any(change.topic.startswith("canvas:") for change in changes):
            listed = await _listed(memory)
            if listed != self.listed:
                self.listed = listed
                await self.publish(ResourcesListChanged())


class Updates:
    """The bus (an SDK `SubscriptionBus`), the watcher that feeds it, and the clients of the handshake era."""

    def __init__(self, space: str) -> None:
        """`space` is whose feed those listen to that come through no door, which would say theirs."""
        self._space = space
        self._feeds: dict[str, _Feed] = {}
        self._bell = anyio.Event()

    # --- the bus ------------------------------------------------------------------------------------

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Call `listener` with each event of its space until the function that is returned is called."""
        feed, token = self._feed(), object()
        feed.listeners[token] = listener

        def leave() -> None:
            feed.listeners.pop(token, None)

        return leave

    async def publish(self, event: ServerEvent) -> None:
        """Hand the event to everybody who listens to the space of the request at work, or to the first one."""
        await self._feed().publish(event)

    def _feed(self) -> _Feed:
        return self._feeds.setdefault(current().space or self._space, _Feed())

    # --- the watcher --------------------------------------------------------------------------------

    async def watch(self, memory: Memory, *, task_status: TaskStatus[None]) -> None:
        """Publish what changes, from now on and until cancelled."""
        for space, feed in [*self._feeds.items()]:
            await feed.catch_up(memory.in_space(space))
        loop = asyncio.get_running_loop()
        await memory.on_change(partial(_call_soon, loop, self.written))
        async with anyio.create_task_group() as telling:
            task_status.started()
            while True:
                with anyio.move_on_after(_POLL_SECONDS):
                    await self._bell.wait()
                self._bell = anyio.Event()
                with _warned():
                    await self._look(memory, telling)

    async def _look(self, memory: Memory, telling: TaskGroup) -> None:
        """Start to notify each space with listeners, unless it is still being notified: no space waits for another's
        clients.
        """
        heard = {space: feed for space, feed in self._feeds.items() if feed.is_heard}
        if len(self._feeds) > _MOST_FEEDS:
            self._feeds = heard
        if not heard:
            return
        now = await memory.last_changes([*heard])
        for space, feed in heard.items():
            if feed.after != now[space] and not feed.is_being_told:
                feed.is_being_told = True
                telling.start_soon(_tell, feed, memory.in_space(space), now[space])

    def written(self) -> None:
        """Say that this process has written, so that the watcher looks now."""
        self._bell.set()

    async def begin_to_listen(self, memory: Memory) -> None:
        """To be called before a client is promised updates of this space: what changed earlier is not for it."""
        feed = self._feed()
        if not feed.is_heard or feed.after is None:
            await feed.catch_up(memory)

    # --- the handshake era --------------------------------------------------------------------------

    def attach(self, server: MCPServer[Any]) -> None:
        """Serve and announce subscriptions and list changes to clients of the handshake era."""
        low = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
        low.add_notification_handler("notifications/initialized", wire.NotificationParams, self._on_initialized)
        low.add_request_handler("resources/subscribe", wire.SubscribeRequestParams, self._on_subscribe)
        low.add_request_handler("resources/unsubscribe", wire.UnsubscribeRequestParams, self._on_unsubscribe)
        options = low.create_initialization_options

        def announcing(
            notification_options: NotificationOptions | None = None,
            experimental_capabilities: dict[str, dict[str, Any]] | None = None,
            extensions: dict[str, dict[str, Any]] | None = None,
        ) -> InitializationOptions:
            announced = notification_options or NotificationOptions(resources_changed=True)
            return options(announced, experimental_capabilities, extensions)

        low.create_initialization_options = announcing

    def _uris(self, context: _Context) -> set[str]:
        connection = context.session._connection  # pyright: ignore[reportPrivateUsage]
        connections = self._feed().connections
        if connection not in connections:
            connections[connection] = set()
            connection.exit_stack.callback(connections.pop, connection, None)
        return connections[connection]

    async def _on_initialized(self, context: _Context, _params: wire.NotificationParams) -> None:
        self._uris(context)

    async def _on_subscribe(self, context: _Context, params: wire.SubscribeRequestParams) -> wire.EmptyResult:
        uris = self._uris(context)
        if len(params.uri) > _LONGEST:
            raise MCPError(wire.INVALID_PARAMS, "No resource has an address as long as that.")
        if params.uri not in uris and len(uris) >= _MOST_WATCHED:
            raise MCPError(
                wire.INVALID_PARAMS, f"You watch {len(uris)} resources already. Unsubscribe from one of them first."
            )
        uris.add(params.uri)
        return wire.EmptyResult()

    async def _on_unsubscribe(self, context: _Context, params: wire.UnsubscribeRequestParams) -> wire.EmptyResult:
        self._uris(context).discard(params.uri)
        return wire.EmptyResult()


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Call something in a loop from another thread, unless the loop has ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


async def _tell(feed: _Feed, memory: Memory, now: int) -> None:
    with _warned():
        try:
            if feed.after is None:
                await feed.catch_up(memory)
            else:
                await feed.publish_changes(memory, feed.after, now)
        finally:
            feed.is_being_told = False


@contextmanager
def _warned() -> Generator[None]:
    try:
        yield
    except McpMemoryError as error:  # a full disk, a lock: the next look may do better
        logger.warning("cannot tell what changed: %s", error)


async def _listed(memory: Memory) -> list[int]:
    return sorted(canvas.number for canvas in await memory.canvases(limit=LISTED_CANVASES))


async def _send(notify: Callable[[], Awaitable[None]]) -> None:
    with anyio.move_on_after(_SEND_SECONDS):
        await notify()
