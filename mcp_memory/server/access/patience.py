"""Connections that send nothing, or the head of a request a byte at a time, are closed. (uvicorn waits for ever.)"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["HEAD_SECONDS", "patient"]

HEAD_SECONDS = 20.0


def patient(seconds: float = HEAD_SECONDS) -> type[H11Protocol]:
    """Return uvicorn's HTTP protocol, with so much patience for the head of each request."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._mind()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._mind()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

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
