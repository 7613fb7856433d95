"""JSON-RPC messages as lines: our standard input and output, and a wrapped server that is a command.

A line too long to hold is passed on in parts as they arrive: memory is bounded whatever the other side sends. Our
output is a private duplicate of file descriptor 1, which itself is redirected to stderr: nothing printed in this
process can end up between two messages.

The server runs in its own process group, so that a signal reaches all of it (a launcher such as `npx` has children) and
Ctrl-C reaches it once, through us. Its stderr is ours. It is ended as the specification says: its input is closed, then
it is asked to stop, then killed, within the time that clients give the proxy.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import Any, cast

import anyio
import anyio.to_thread

from mcp_memory.core.errors import NotFound, Refused
from mcp_memory.core.message_ids import id_of_unparsed
from mcp_memory.core.text import one_line

MAX_LINE = 256 * 2**20
"""Maximum bytes of a message. A result of 100 MB fits, with its line breaks and quotes escaped."""

CONNECTION_CLOSED = -32000
PARSE_ERROR = -32700
INVALID_REQUEST = -32600

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LinePart:
    """A part of a line that is too long to hold. The `last` part of a line includes the line break."""

    data: bytes
    last: bool


class Splitter:
    """Splits chunks of bytes into lines without line breaks, in time linear in the bytes, whatever the chunks."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max = max_line
        self._chunks: list[bytes] = []
        self._size = 0
        self._passing = False

    def feed(self, chunk: bytes) -> Iterator[bytes | LinePart]:
        """Yield each line that is now complete, and the parts of a line that is too long."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if self._passing:
                self._passing = False
                yield LinePart(end + b"\n", last=True)
            else:
                self._chunks.append(end)
                line = b"".join(self._chunks)
                self._clear()
                yield line
        if self._passing:
            if rest:
                yield LinePart(rest, last=False)
        elif rest:
            self._chunks.append(rest)
            self._size += len(rest)
            if self._size > self._max:
                self._passing = True
                start = b"".join(self._chunks)
                self._clear()
                yield LinePart(start, last=False)

    def rest(self) -> bytes:
        """Remove the bytes after the last line break, and return them."""
        rest = b"".join(self._chunks)
        self._clear()
        return rest

    def _clear(self) -> None:
        self._chunks.clear()
        self._size = 0


class NotAMessage(ValueError):
    """The line is not JSON, or not an object or batch."""


class UnreadableLine(ValueError):
    """The line may be JSON, but is nested too deep or has too long numbers for this reader."""


def parse(line: bytes) -> Message | list[Any]:
    """Return the message or batch of a line.

    Raises NotAMessage if the line is neither, UnreadableLine if this reader cannot tell.
    """
    try:
        value: Any = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise NotAMessage(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise UnreadableLine(str(error)) from None
    if not isinstance(value, dict | list):
        raise NotAMessage("no object")
    return cast("Message | list[Any]", value)


def to_line(message: Message) -> bytes:
    """Serialize a message. Raises ValueError for a number that JSON cannot represent, RecursionError for deep nesting.

    A lone surrogate is written as an escape, as it came.
    """
    try:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def has_id(message: Message) -> bool:
    """Return whether a message has an id that an answer can contain: a text or a number that JSON can represent."""
    id = message.get("id")
    return isinstance(id, str | int) or (isinstance(id, float) and isfinite(id))


def key_of(id: object) -> str:
    """Return the key of an id; 1 and "1" differ."""
    return json.dumps(id)


def success(id: object, result: Message) -> bytes:
    return to_line({"jsonrpc": "2.0", "id": id, "result": result})


def failure(id: object, text: str, code: int = CONNECTION_CLOSED) -> bytes:
    return to_line({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})


def id_in(broken: bytes) -> str | None:
    """Return the key of the id of a message that cannot be parsed, None if no id is found."""
    id = id_of_unparsed(broken)
    return None if id is None else key_of(id)


_CHUNK = 65_536


class StdioClient:
    """The proxy's client: bytes from standard input, and messages to standard output, each written whole."""

    def __init__(self) -> None:
        self._output = os.dup(1)
        os.dup2(2, 1)
        self._writing = anyio.Lock()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield bytes from standard input until it ends."""
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
                except RuntimeError:  # the loop is closed
                    return

        # A reading thread cannot be woken; as a daemon thread it does not block the exit.
        threading.Thread(target=read, name="standard input", daemon=True).start()
        while data := await queue.get():
            room.release()
            yield data

    async def send(self, line: bytes) -> None:
        """Write a message with its line break. Raises OSError if the client has gone."""
        async with self._writing:
            await anyio.to_thread.run_sync(self._write, line)

    async def hold(self) -> None:
        """Block other writers until `release`, while a message is sent in pieces."""
        await self._writing.acquire()

    async def send_piece(self, data: bytes) -> None:
        await anyio.to_thread.run_sync(self._write, data)

    def release(self) -> None:
        self._writing.release()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._output, view) :]


LEAVING_SECONDS = 2.0
STOPPING_SECONDS = 1.5
_SERVER_CHUNK = 262_144
_LOOK_SECONDS = 1.0
_OURS = ("MCP_MEMORY_TOKEN", "MCP_MEMORY_LLM_API_KEY", "MCP_MEMORY_EMBEDDER_API_KEY")
"""Secrets of this memory, which are not passed on to the wrapped server."""


class ServerProcess:
    """The process of a wrapped server. Made by `start`."""

    def __init__(self, process: asyncio.subprocess.Process, name: str) -> None:
        self.name = name
        self._process = process
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, command: Sequence[str]) -> ServerProcess:
        """Start the command. Raises NotFound if there is no such program, Refused if it cannot run."""
        program = await anyio.to_thread.run_sync(shutil.which, command[0])
        if program is None:
            raise NotFound(f"There is no program {one_line(command[0], 100)!r} on PATH. Name it by its full path.")
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *command[1:],
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_SERVER_CHUNK,
                env={name: value for name, value in os.environ.items() if name not in _OURS},
                start_new_session=sys.platform != "win32",
            )
        except (OSError, ValueError) as error:
            raise Refused(f"{one_line(program, 100)} cannot be run: {error}.") from None
        return cls(process, one_line(" ".join(command), 80))

    async def lines(self) -> AsyncIterator[bytes | LinePart]:
        """Yield the server's output line by line, until it has ended or closed its output.

        The end of its output may never come: a grandchild that lives on keeps the pipe open.
        """
        assert self._process.stdout is not None
        splitter = Splitter()
        while True:
            chunk: bytes | None = None
            with anyio.move_on_after(_LOOK_SECONDS):
                chunk = await self._process.stdout.read(_SERVER_CHUNK)
            if chunk == b"" or (chunk is None and self._process.returncode is not None):
                break
            for line in splitter.feed(chunk or b""):
                yield line
        if rest := splitter.rest():
            yield rest

    async def send(self, line: bytes) -> None:
        """Send a line with its end, or a part of a line. Does nothing if the server has gone."""
        assert self._process.stdin is not None
        with suppress(OSError, RuntimeError):
            self._process.stdin.write(line)
            await self._process.stdin.drain()

    def signal(self, signum: int) -> None:
        """Forward a signal, and make sure that the server ends."""
        self._send_signal(signum)
        self.close_input()

    def close_input(self) -> None:
        """Close the server's input, and begin to end the server."""
        assert self._process.stdin is not None
        with suppress(OSError, RuntimeError):
            self._process.stdin.close()
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())

    async def wait(self) -> int:
        """End the server if it still runs, and return its exit code as a shell does."""
        self.close_input()
        assert self._ending is not None
        await self._ending
        code = self._process.returncode
        if code is None:
            return 1
        return code if code >= 0 else 128 - code

    async def _end(self) -> None:
        if await self._wait_for_exit(LEAVING_SECONDS):
            return
        self._send_signal(signal.SIGTERM)
        if await self._wait_for_exit(STOPPING_SECONDS):
            return
        self._send_signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        await self._wait_for_exit(STOPPING_SECONDS)

    async def _wait_for_exit(self, seconds: float) -> bool:
        """Wait for the exit, without `wait`, which also waits for a grandchild that has inherited the pipes."""
        with anyio.move_on_after(seconds):
            while self._process.returncode is None:  # noqa: ASYNC110 asyncio has no event for it
                await anyio.sleep(0.01)
        return self._process.returncode is not None

    def _send_signal(self, signum: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.terminate()
            else:
                os.killpg(self._process.pid, signum)
