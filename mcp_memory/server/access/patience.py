"""Connections that send nothing, or the head of a request a byte at a time, or take nothing of an answer, are closed.

(uvicorn waits for ever, and all that a stream has still to say waits with it, in memory.)
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["HEAD_SECONDS", "patient"]

HEAD_SECONDS = 20.0
_TAKING_SECONDS = 60.0


def patient(seconds: float = HEAD_SECONDS, taking: float = _TAKING_SECONDS) -> type[H11Protocol]:
    """Return uvicorn's HTTP protocol, with so much patience for the head of each request.

    `taking`: and for a client that is being answered and takes nothing; one that takes little at a time is served.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _full: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._mind()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._mind()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            self._emptied()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._emptied()
            self._full = self.loop.call_later(taking, self._look, self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            self._emptied()
            super().resume_writing()

        def _look(self, before: int) -> None:
            left = self.transport.get_write_buffer_size()
            if left < before:
                self._full = self.loop.call_later(taking, self._look, left)
            else:
                self.transport.abort()  # what `close` would first send is what is not taken

        def _emptied(self) -> None:
            if self._full is not None:
                self._full.cancel()
                self._full = None

        def _mind(self) -> None:
            cycle: Any = self.cycle  # None before the first request
            if cycle is not None and not cycle.response_complete:
                self._forget()
            elif self._timer is None:
                self._timer = self.loop.call_later(seconds, self.transport.close)

        def _forget(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Patient
