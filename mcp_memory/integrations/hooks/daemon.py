"""The hook daemon: keeps the memory open, so that a hook's answer takes milliseconds instead of a second.

One per home and settings key: it holds a lock as long as it lives, which the system releases however it ends. A hook
starts it. It ends shortly after its last conversation, after a quarter of an hour of silence, when its endpoint file is
gone or another's, or on SIGTERM. Logs to be read are noted until they are, so the next daemon finishes the work. It
never asks a model: that is a server's job.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import logging.handlers
import os
import re
import secrets
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import IO

import anyio.to_thread

from mcp_memory import __version__
from mcp_memory.core.config import load_settings
from mcp_memory.core.errors import HomeGone, McpMemoryError, StoreUnavailable
from mcp_memory.core.logs import SafeText, set_up
from mcp_memory.core.private_files import open_private, opener
from mcp_memory.core.process_registry import try_lock
from mcp_memory.core.regular_files import OpenedFolder, remove_own
from mcp_memory.integrations.hooks import Kind
from mcp_memory.integrations.hooks.conversations import Conversations, HookAnswer, HookEvent, read
from mcp_memory.integrations.hooks.endpoint import (
    ACKNOWLEDGED,
    PROTOCOL,
    DaemonEndpoint,
    DaemonFiles,
    endpoint_files,
    is_older,
    make_folders,
    pending_logs,
    proof,
    same,
)
from mcp_memory.integrations.hooks.transcripts import within
from mcp_memory.service.memory import Memory, open_memory

logger = logging.getLogger(__name__)

_REST_S = 60.0


class DaemonMemory:
    """The memory behind the hooks: opened when first needed, and not retried for a while if that fails."""

    def __init__(self, place: DaemonFiles, stack: AsyncExitStack) -> None:
        self._place = place
        self._home = OpenedFolder(place.home)
        self._stack = stack
        stack.callback(self._home.close)
        self._opening: asyncio.Task[Memory] | None = None
        self._rests_until = 0.0

    async def memory(self) -> Memory:
        """Return the open memory. Raises what opening it raised, and StoreUnavailable for a while after that.

        Raises HomeGone if the home that this process was started for is gone: logs that wait would be read into a new
        one.
        """
        if not self._home.is_current():
            raise HomeGone(self._place.home)
        if self._opening is None:
            if asyncio.get_running_loop().time() < self._rests_until:
                raise StoreUnavailable("The store could not be opened a moment ago; it is tried again in a minute.")
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> Memory:
        try:
            settings = await anyio.to_thread.run_sync(
                lambda: load_settings(home=self._place.home, space=self._place.space)
            )
            return await self._stack.enter_async_context(open_memory(settings, distil=False, what="hooks"))
        except BaseException:
            self._opening = None
            self._rests_until = asyncio.get_running_loop().time() + _REST_S
            raise


SILENT_S = 900.0
_AFTER_THE_LAST_S = 1.5
"""`/clear` ends a conversation and begins one within this time."""
_LOOKING_S = 0.5
_LOCKING_S = 5.0
_FINISHING_S = 30.0
_PROVING_S = 2.0
_WAITING_S: Mapping[Kind, float] = {"start": 2.8, "prompt": 2.8, "tool": 0.9}
"""A little less than their hooks wait."""
_NOTING_S = 0.2
"""The hooks of all other events only wait until it is noted what is to be read."""
_MAX_QUESTION = 2**28
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LOG_BYTES = 200_000


def main(arguments: list[str]) -> int:
    """Serve the place that the arguments name until there is nothing more to do: home, space (or empty), key."""
    home, space, key = arguments
    place = DaemonFiles(Path(home), space or None, key)
    make_folders(place)
    lock = _locked(place)
    if lock is None:
        return 0
    set_up(handler=_handler_of(place.log))
    with lock:
        try:
            asyncio.run(serve(place))
        except Exception:
            logger.exception("the hooks stopped, by a fault of this program")
            return 1
    return 0


def _handler_of(log: Path) -> logging.Handler:
    """Return the log's handler; none for a pipe or device in its place, which `health` reports."""
    if log.exists() and not (log.is_file() or log.is_dir()):
        return logging.NullHandler()
    return _PrivateLog(log, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")


class _PrivateLog(logging.handlers.RotatingFileHandler):
    def _open(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(open_private(Path(self.baseFilename), "ab"), encoding=self.encoding)


def _locked(place: DaemonFiles) -> IO[bytes] | None:
    """Return the lock of a place, held; None where another process serves it."""
    file = io.FileIO(place.lock, "ab", opener=opener)
    until = time.monotonic() + _LOCKING_S
    while not _try_lock(file):
        # The holder may be about to end: then its file is gone, and the next hook waits for us.
        if DaemonEndpoint.read(place.file) is not None or time.monotonic() > until:
            file.close()
            return None
        time.sleep(0.05)
    return file


def _try_lock(file: IO[bytes]) -> bool:
    try:
        return try_lock(file.fileno(), shared=False)
    except OSError:  # a file system without locks
        return False


async def serve(place: DaemonFiles) -> None:
    """Answer hooks until there is nothing more to do."""
    async with AsyncExitStack() as stack:
        resident = HookDaemon(place, DaemonMemory(place, stack))
        await resident.run()


class HookDaemon:
    """A listener on loopback, and the conditions for its end."""

    def __init__(self, place: DaemonFiles, store: DaemonMemory) -> None:
        self._place = place
        self._token = secrets.token_hex(16)
        self._ending = asyncio.Event()
        self._heard = time.monotonic()
        self._overdue = set[asyncio.Task[HookAnswer]]()
        self._conversations = Conversations(store.memory, place)

    async def run(self) -> None:
        following = asyncio.create_task(self._conversations.following.run())
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._end_on_signals()  # first: who finds the file may end us at once
        try:
            self._appear(server.sockets[0].getsockname()[1])
            await self._conversations.take_up(pending_logs(self._place))
            while not self._is_over():
                await within(self._ending.wait(), _LOOKING_S)
        finally:
            server.close()
            self._disappear()
            self._conversations.following.finish()
            await asyncio.wait({following, *self._overdue}, timeout=_FINISHING_S)

    def _appear(self, port: int) -> None:
        """Say where we are, and have those of older versions end: two that ended each other would never be there."""
        for file in endpoint_files(self._place.home):
            there = DaemonEndpoint.read(file)
            if there is not None and is_older(there.version, __version__):
                remove_own(file)
        DaemonEndpoint(os.getpid(), port, self._token, __version__).write(self._place.file)

    def _end_on_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                asyncio.get_running_loop().add_signal_handler(number, self._ending.set)
            except NotImplementedError:  # Windows: the process just ends, and what it had to do is found again
                pass

    def _disappear(self) -> None:
        if self._is_ours():
            remove_own(self._place.file)

    def _is_ours(self) -> bool:
        there = DaemonEndpoint.read(self._place.file)
        return there is not None and there.token == self._token

    def _is_over(self) -> bool:
        silent = time.monotonic() - self._heard
        alone = self._conversations.are_over and silent > _AFTER_THE_LAST_S
        return self._ending.is_set() or alone or silent > SILENT_S or not self._is_ours()

    # --- one hook -----------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PROVING_S):
                proven = await self._is_proven(reader, writer)
            if proven:
                length = int(await reader.readline())
                if length <= _MAX_QUESTION:
                    await self._answer(await reader.readexactly(length), reader, writer)
        except (OSError, ValueError, EOFError, TimeoutError):
            pass  # a hook that was killed, or a stranger
        finally:
            writer.close()

    async def _is_proven(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        protocol, _, nonce = (await reader.readline()).strip().partition(b" ")
        if protocol != PROTOCOL:
            return False
        ours = os.urandom(16).hex().encode()
        writer.write(proof(self._token, "resident", nonce) + b" " + ours + b"\n")
        return same((await reader.readline()).strip(), proof(self._token, "hook", ours))

    async def _answer(self, question: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._heard = time.monotonic()
        event = await anyio.to_thread.run_sync(_event_of, question)
        answer = HookAnswer() if event is None else await self._in_time(event)
        told = json.dumps(answer.json).encode() if answer.json else b""
        writer.write(b"%d\n" % len(told) + told)
        await writer.drain()
        if event is not None and answer.told:
            async with asyncio.timeout(_PROVING_S):
                if await reader.readexactly(len(ACKNOWLEDGED)) == ACKNOWLEDGED:
                    self._conversations.was_answered(event, answer)

    async def _in_time(self, event: HookEvent) -> HookAnswer:
        """Return the answer if it is ready while its hook waits. The work is finished in any case."""
        if event.kind == "tool" and self._overdue:
            return HookAnswer()  # writing takes too long just now
        task = asyncio.create_task(self._conversations.answer(event))
        await asyncio.wait({task}, timeout=_WAITING_S.get(event.kind, _NOTING_S))
        if not task.done():
            self._overdue.add(task)
            task.add_done_callback(partial(self._finished, event))
            return HookAnswer()
        return self._result(event, task)

    def _finished(self, event: HookEvent, task: asyncio.Task[HookAnswer]) -> None:
        self._overdue.discard(task)
        self._result(event, task)

    def _result(self, event: HookEvent, task: asyncio.Task[HookAnswer]) -> HookAnswer:
        if task.cancelled():
            return HookAnswer()
        match task.exception():
            case None:
                return task.result()
            case McpMemoryError() as error:
                logger.warning("%s: %s", SafeText(event.name), error)
            case error:
                logger.error("%s failed, by a fault of this program", SafeText(event.name), exc_info=error)
        return HookAnswer()


def _event_of(question: bytes) -> HookEvent | None:
    head, _, given = question.partition(b"\n")
    asked = json.loads(head)
    try:
        value = json.loads(given)
        if _SURROGATE.search(given):  # programs that count in UTF-16 cut characters in halves, which cannot be stored
            value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
        return read(asked["client"], asked["event"], value)
    except (ValueError, RecursionError) as error:
        logger.warning("%s: the input of the hook is no JSON: %s", SafeText(asked["event"]), error)
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
