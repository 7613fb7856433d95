"""An event store in memory: what a streamable HTTP server needs to resume a stream that was cut.

The suites' reconnection scenario asks for one. It is here and not in the package: the revision of 2026-07-28
dropped resumption, and a memory server has no answer that is worth resuming for.
"""

from __future__ import annotations

from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.types import JSONRPCMessage


class MemoryEventStore(EventStore):
    """Keeps every event; ids are positions."""

    def __init__(self) -> None:
        self._events: list[tuple[StreamId, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        self._events.append((stream_id, message))
        return str(len(self._events) - 1)

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        last = int(last_event_id)
        stream, _ = self._events[last]
        for position, (owner, message) in enumerate(self._events[last + 1 :], start=last + 1):
            if owner == stream and message is not None:
                await send_callback(EventMessage(message, str(position)))
        return stream
