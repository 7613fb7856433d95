"""A wrapped server that is a command: its lines, and how it ends.

It runs in a process group of its own, so that a signal reaches the whole of it (a launcher such as `npx` has
children) and Ctrl-C reaches it once, through us. Its stderr is ours. Ending follows the specification: its input
is closed, then it is asked to stop, then it is killed, each after a while; all of it within the time that
clients give the proxy itself.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import anyio
import anyio.to_thread

from mcp_memory.core.errors import NotFound, Refused
from mcp_memory.core.text import one_line
from mcp_memory.integrations.proxy.lines import Piece, Splitter

__all__ = ["Process"]

LEAVING_SECONDS = 2.0
STOPPING_SECONDS = 1.5
_CHUNK = 262_144
_LOOK_SECONDS = 1.0
_OURS = ("MCP_MEMORY_TOKEN", "MCP_MEMORY_LLM_API_KEY", "MCP_MEMORY_EMBEDDER_API_KEY")
"""What of the environment is the memory's alone, and no business of a server of somebody else's."""


class Process:
    """A running server. Made by `start`."""

    def __init__(self, process: asyncio.subprocess.Process, name: str) -> None:
        self.name = name
        self._process = process
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, command: Sequence[str]) -> Process:
        """Start the command. Raises NotFound where there is no such program, Refused where it cannot run."""
        program = await anyio.to_thread.run_sync(shutil.which, command[0])
        if program is None:
            raise NotFound(f"There is no program {one_line(command[0], 100)!r} on PATH. Name it by its full path.")
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *command[1:],
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_CHUNK,
                env={name: value for name, value in os.environ.items() if name not in _OURS},
                start_new_session=sys.platform != "win32",
            )
        except (OSError, ValueError) as error:
            raise Refused(f"{one_line(program, 100)} cannot be run: {error}.") from None
        return cls(process, one_line(" ".join(command), 80))

    async def lines(self) -> AsyncIterator[bytes | Piece]:
        """Yield what the server says, line by line, until it has ended or closed its output.

        The end of its output may never come: a grandchild that lives on holds the pipe open.
        """
        assert self._process.stdout is not None
        splitter = Splitter()
        while True:
            chunk: bytes | None = None
            with anyio.move_on_after(_LOOK_SECONDS):
                chunk = await self._process.stdout.read(_CHUNK)
            if chunk == b"" or (chunk is None and self._process.returncode is not None):
                break
            for line in splitter.feed(chunk or b""):
                yield line
        if rest := splitter.rest():
            yield rest

    async def send(self, line: bytes) -> None:
        """Send a line with its end, or a piece of one. Nothing happens where the server has gone."""
        assert self._process.stdin is not None
        with suppress(OSError, RuntimeError):
            self._process.stdin.write(line)
            await self._process.stdin.drain()

    def signal(self, signum: int) -> None:
        """Pass a signal on, and see to it that the server ends."""
        self._tell(signum)
        self.leave()

    def leave(self) -> None:
        """Let the server know that there is no more to come, and begin to wait for its end."""
        assert self._process.stdin is not None
        with suppress(OSError, RuntimeError):
            self._process.stdin.close()
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())

    async def ended(self) -> int:
        """End the server where it still runs, and return its exit code as a shell gives it."""
        self.leave()
        assert self._ending is not None
        await self._ending
        code = self._process.returncode
        if code is None:
            return 1
        return code if code >= 0 else 128 - code

    async def _end(self) -> None:
        if await self._gone(LEAVING_SECONDS):
            return
        self._tell(signal.SIGTERM)
        if await self._gone(STOPPING_SECONDS):
            return
        self._tell(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        await self._gone(STOPPING_SECONDS)

    async def _gone(self, seconds: float) -> bool:
        """Wait for the end. Not by `wait`, which also waits for a grandchild that has inherited the pipes."""
        with anyio.move_on_after(seconds):
            while self._process.returncode is None:  # noqa: ASYNC110 asyncio sets it and tells nobody
                await anyio.sleep(0.01)
        return self._process.returncode is not None

    def _tell(self, signum: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.terminate()
            else:
                os.killpg(self._process.pid, signum)
