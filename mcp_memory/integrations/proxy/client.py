"""The proxy's own standard input and output: where its client is.

The wire is a private duplicate of file descriptor 1, which itself then leads to stderr: nothing that is printed
in this process can end up between two messages.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator

import anyio
import anyio.to_thread

__all__ = ["Client"]

_CHUNK = 65_536


class Client:
    """Bytes from standard input, and messages to standard output, each whole."""

    def __init__(self) -> None:
        self._output = os.dup(1)
        os.dup2(2, 1)
        self._writing = anyio.Lock()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield what arrives on standard input, until it ends."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        room = threading.Semaphore(1)

        def read() -> None:
            data = b"-"
            while data:
                try:
                    data = os.read(0, _CHUNK)
                except OSError:
                    data = b""
                room.acquire()
                try:
                    loop.call_soon_threadsafe(queue.put_nowait, data)
                except RuntimeError:  # the loop is closed: nobody wants more
                    return

        # A thread that reads cannot be woken; as a daemon it keeps nobody from leaving.
        threading.Thread(target=read, name="standard input", daemon=True).start()
        while data := await queue.get():
            room.release()
            yield data

    async def send(self, line: bytes) -> None:
        """Write a message with its line break. Raises OSError when the client has gone."""
        async with self._writing:
            await anyio.to_thread.run_sync(self._write, line)

    async def hold(self) -> None:
        """Keep all others from writing until `release`, because a message is sent in pieces."""
        await self._writing.acquire()

    async def send_piece(self, data: bytes) -> None:
        await anyio.to_thread.run_sync(self._write, data)

    def release(self) -> None:
        self._writing.release()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._output, view) :]
