"""Updates of resources: clients of both protocol generations are notified, whichever process made the change.

While the Memory is open and clients listen, a watcher asks the store for changes: every half second, right after a
write of ours, and when the store hears of one of another server (`Store.on_change`). Each space has a separate feed, so
listeners learn nothing about other spaces. Clients of 2026-07-28 listen through `subscriptions/listen`, which the SDK
serves from the bus that `Updates` is. For the handshake era MCPServer serves no subscriptions: there the connections
are kept and notified, with private names of the SDK (`_lowlevel_server`, `ServerSession._connection`) that tests pin.
Updates are advice: nothing is replayed, and a client that stopped reading misses some.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

import anyio
import mcp.types as wire
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions
from mcp.server.mcpserver import MCPServer
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp.shared.exceptions import MCPError

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.server.authorization import current

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory


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
        from mcp_memory.store.values import RECALLS  # late: `initialize` waits for what stands above

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
        failure = ""
        async with anyio.create_task_group() as telling:
            task_status.started()
            while True:
                with anyio.move_on_after(_POLL_SECONDS):
                    await self._bell.wait()
                self._bell = anyio.Event()
                try:
                    await self._look(memory, telling)
                    failure = ""
                except McpMemoryError as error:  # a full disk, a lock: the next look may do better
                    if str(error) != failure:  # it looks twice a second
                        logger.warning("cannot tell what changed: %s", error)
                    failure = str(error)

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
