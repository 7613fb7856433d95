"""Updates of resources, to clients of both protocol generations, whoever made the change.

One mechanism: while the Memory is open and somebody listens, a watcher asks the store what changed, every
half second and right after a write of our own; so a change made by another process arrives the same way.
Clients of 2026-07-28 listen through `subscriptions/listen`, which the SDK serves from the bus that `Updates`
is. For the handshake era MCPServer serves no subscriptions: there the connections themselves are kept and
told. That takes private names of the SDK (`_lowlevel_server`, `ServerSession._connection`); tests pin them.

Updates are advice: nothing is replayed, and a client that stopped reading misses some.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

import anyio
import mcp.types as wire
from anyio.abc import TaskStatus
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions
from mcp.server.mcpserver import MCPServer
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent

from mcp_memory.errors import McpMemoryError

if TYPE_CHECKING:
    from mcp_memory.memory import Memory

__all__ = ["LISTED_CANVASES", "Updates", "uris_of"]

logger = logging.getLogger(__name__)

LISTED_CANVASES = 20
_POLL_SECONDS = 0.5
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


class Updates:
    """The bus (an SDK `SubscriptionBus`), the watcher that feeds it, and the clients of the handshake era."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[ServerEvent], None]] = {}
        self._connections: WeakKeyDictionary[Connection, set[str]] = WeakKeyDictionary()
        self._after = 0
        self._listed: list[int] = []
        self._bell = anyio.Event()

    @property
    def _heard(self) -> bool:
        return bool(self._listeners or self._connections)

    # --- the bus ------------------------------------------------------------------------------------

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Call `listener` with each event until the function that is returned is called."""
        token = object()
        self._listeners[token] = listener

        def leave() -> None:
            self._listeners.pop(token, None)

        return leave

    async def publish(self, event: ServerEvent) -> None:
        """Hand the event to every listener, and to the connections of the handshake era that want it."""
        for listener in list(self._listeners.values()):
            listener(event)
        async with anyio.create_task_group() as sending:
            for connection, uris in list(self._connections.items()):
                match event:
                    case ResourceUpdated(uri=uri) if uri in uris:
                        sending.start_soon(_send, partial(connection.send_resource_updated, uri))
                    case ResourcesListChanged():
                        sending.start_soon(_send, connection.send_resource_list_changed)
                    case _:
                        pass

    # --- the watcher --------------------------------------------------------------------------------

    async def watch(self, memory: Memory, *, task_status: TaskStatus[None]) -> None:
        """Publish what changes, from now on and until cancelled."""
        await self._catch_up(memory)
        task_status.started()
        while True:
            with anyio.move_on_after(_POLL_SECONDS):
                await self._bell.wait()
            self._bell = anyio.Event()
            if self._heard:
                try:
                    await self._publish_changes(memory)
                except McpMemoryError as error:  # a full disk, a lock: the next look may do better
                    logger.warning("cannot tell what changed: %s", error)

    def written(self) -> None:
        """Say that this process has written, so that the watcher looks now."""
        self._bell.set()

    async def begin_to_listen(self, memory: Memory) -> None:
        """To be called before a client is promised updates: what changed earlier is not for it."""
        if not self._heard:
            await self._catch_up(memory)

    async def _catch_up(self, memory: Memory) -> None:
        self._after = await memory.last_change()
        self._listed = await _listed(memory)

    async def _publish_changes(self, memory: Memory) -> None:
        now = await memory.last_change()
        if now == self._after:
            return
        changes = await memory.changes(self._after)
        self._after = now
        uris = [uri for change in changes for uri in uris_of(change.topic)]
        for uri in dict.fromkeys([*uris, "memory://status"]):
            await self.publish(ResourceUpdated(uri=uri))
        if any(change.topic.startswith("canvas:") for change in changes):
            listed = await _listed(memory)
            if listed != self._listed:
                self._listed = listed
                await self.publish(ResourcesListChanged())

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
        if connection not in self._connections:
            self._connections[connection] = set()
            connection.exit_stack.callback(self._connections.pop, connection, None)
        return self._connections[connection]

    async def _on_initialized(self, context: _Context, _params: wire.NotificationParams) -> None:
        self._uris(context)

    async def _on_subscribe(self, context: _Context, params: wire.SubscribeRequestParams) -> wire.EmptyResult:
        self._uris(context).add(params.uri)
        return wire.EmptyResult()

    async def _on_unsubscribe(self, context: _Context, params: wire.UnsubscribeRequestParams) -> wire.EmptyResult:
        self._uris(context).discard(params.uri)
        return wire.EmptyResult()


async def _listed(memory: Memory) -> list[int]:
    return sorted(canvas.number for canvas in await memory.canvases(limit=LISTED_CANVASES))


async def _send(notify: Callable[[], Awaitable[None]]) -> None:
    with anyio.move_on_after(_SEND_SECONDS):
        await notify()
