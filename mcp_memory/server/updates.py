"""Resource updates: notifies clients of both protocol generations, whichever process made the change.

While the Memory is open and clients listen, a watcher asks the store for changes: every half second, after each write
of this process, and when the store reports a change by another server (`Store.on_change`). Each space has a separate
feed, so listeners learn nothing about other spaces. Clients of 2026-07-28 listen through `subscriptions/listen`, which
the SDK serves from the bus that `Updates` implements. For older clients MCPServer serves no subscriptions: their
connections are kept and notified through private names of the SDK (`_lowlevel_server`, `ServerSession._connection`)
that tests pin. Updates are hints: nothing is replayed, and a client that stopped reading misses some of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
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
from mcp_memory.server.authorization import current_grant

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory


logger = logging.getLogger(__name__)

LISTED_CANVASES = 20
_POLL_SECONDS = 0.5
_MAX_FEEDS = 1_000  # above this, feeds without listeners are dropped
_MAX_WATCHED = 1_000  # addresses by a connection
_MAX_URI_CHARS = 500  # characters of an address: a name has 120 bytes at most
_SEND_SECONDS = 2.0  # a client that does not read must not delay the others

_Context = ServerRequestContext[Any, Any]


def uris_of(topic: str) -> list[str]:
    """Return the URIs of the resources that a change of a topic (`persona`, `canvas:003`, `atom:a57` …) affects."""
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
    """The listeners of a space, of both protocol generations, and the last change of which they were notified."""

    listeners: dict[object, Callable[[ServerEvent], None]] = field(
        default_factory=dict[object, Callable[[ServerEvent], None]]
    )
    connections: WeakKeyDictionary[Connection, set[str]] = field(
        default_factory=WeakKeyDictionary[Connection, "set[str]"]
    )
    after: int | None = None
    """The last change they were notified of; None until the first check, since earlier changes are not sent."""
    listed: list[int] = field(default_factory=list[int])
    is_notifying: bool = False

    @property
    def has_listeners(self) -> bool:
        return bool(self.listeners or self.connections)

    async def catch_up(self, memory: Memory) -> None:
        self.after = await memory.last_change()
        self.listed = await _recent_canvases(memory)

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
        changes = await memory.changes(after)
        self.after = now
        if not changes:
            return
        uris = [uri for change in changes for uri in uris_of(change.topic)]
        for uri in dict.fromkeys([*uris, "memory://status"]):
            await self.publish(ResourceUpdated(uri=uri))
        if any(change.topic.startswith("canvas:") for change in changes):
            listed = await _recent_canvases(memory)
            if listed != self.listed:
                self.listed = listed
                await self.publish(ResourcesListChanged())


class Updates:
    """The bus (an SDK `SubscriptionBus`), the watcher that feeds it, and the subscriptions of older clients."""

    def __init__(self, space: str) -> None:
        """`space` is the space of requests whose grant names no space."""
        self._space = space
        self._feeds: dict[str, _Feed] = {}
        self._bell = anyio.Event()

    # --- the bus ------------------------------------------------------------------------------------

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Call `listener` with each event of the current space, until the returned function is called."""
        feed, token = self._feed(), object()
        feed.listeners[token] = listener

        def leave() -> None:
            feed.listeners.pop(token, None)

        return leave

    async def publish(self, event: ServerEvent) -> None:
        """Send the event to all listeners of the current request's space."""
        await self._feed().publish(event)

    def _feed(self) -> _Feed:
        return self._feeds.setdefault(current_grant().space or self._space, _Feed())

    # --- the watcher --------------------------------------------------------------------------------

    async def watch(self, memory: Memory, *, task_status: TaskStatus[None]) -> None:
        """Publish changes from now on, until cancelled."""
        for space, feed in [*self._feeds.items()]:
            await feed.catch_up(memory.in_space(space))
        loop = asyncio.get_running_loop()
        await memory.on_change(partial(_call_soon, loop, self.notice_write))
        failure = ""
        async with anyio.create_task_group() as notifications:
            task_status.started()
            while True:
                with anyio.move_on_after(_POLL_SECONDS):
                    await self._bell.wait()
                self._bell = anyio.Event()
                try:
                    await self._check_for_changes(memory, notifications)
                    failure = ""
                except McpMemoryError as error:  # a full disk, a lock: the next check may succeed
                    if str(error) != failure:  # it checks twice a second
                        logger.warning("cannot read what changed: %s", error)
                    failure = str(error)

    async def _check_for_changes(self, memory: Memory, notifications: TaskGroup) -> None:
        """Notify the listeners of each changed space, in separate tasks: no space waits for clients of another.

        If there are too many feeds, feeds without listeners are dropped first.
        """
        active_feeds = {space: feed for space, feed in self._feeds.items() if feed.has_listeners}
        if len(self._feeds) > _MAX_FEEDS:
            self._feeds = active_feeds
        if not active_feeds:
            return
        now = await memory.last_changes([*active_feeds])
        for space, feed in active_feeds.items():
            if feed.after != now[space] and not feed.is_notifying:
                feed.is_notifying = True
                notifications.start_soon(_notify_feed, feed, memory.in_space(space), now[space])

    def notice_write(self) -> None:
        """Wake the watcher after a write of this process."""
        self._bell.set()

    async def start_listening(self, memory: Memory) -> None:
        """Prepare updates of the current space for a new listener. Call it first: earlier changes are not sent."""
        feed = self._feed()
        if not feed.has_listeners or feed.after is None:
            await feed.catch_up(memory)

    # --- older clients (handshake era) --------------------------------------------------------------------------

    def attach(self, server: MCPServer[Any]) -> None:
        """Serve and announce subscriptions and list changes to older clients."""
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
        if len(params.uri) > _MAX_URI_CHARS:
            raise MCPError(wire.INVALID_PARAMS, "This address is longer than that of any resource.")
        if params.uri not in uris and len(uris) >= _MAX_WATCHED:
            raise MCPError(
                wire.INVALID_PARAMS, f"You watch {len(uris)} resources already. Unsubscribe from one of them first."
            )
        uris.add(params.uri)
        return wire.EmptyResult()

    async def _on_unsubscribe(self, context: _Context, params: wire.UnsubscribeRequestParams) -> wire.EmptyResult:
        self._uris(context).discard(params.uri)
        return wire.EmptyResult()


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Call a function in an event loop from another thread; do nothing if the loop has ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


async def _notify_feed(feed: _Feed, memory: Memory, now: int) -> None:
    try:
        if feed.after is None:
            await feed.catch_up(memory)
        else:
            await feed.publish_changes(memory, feed.after, now)
    except McpMemoryError as error:  # a full disk, a lock: the next check may succeed
        logger.warning("cannot read what changed: %s", error)
    finally:
        feed.is_notifying = False


async def _recent_canvases(memory: Memory) -> list[int]:
    return sorted(canvas.number for canvas in await memory.canvases(limit=LISTED_CANVASES))


async def _send(notify: Callable[[], Awaitable[None]]) -> None:
    with anyio.move_on_after(_SEND_SECONDS):
        await notify()
