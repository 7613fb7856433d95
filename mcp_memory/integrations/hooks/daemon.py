"""The hook daemon: keeps the memory open, so that a hook's answer takes milliseconds instead of a second.

Each home and settings key has one daemon, with a file lock that the system releases however the daemon ends. A hook
starts it. It ends shortly after its last conversation, after a quarter of an hour without a question,
when its endpoint file is gone or replaced, or on SIGTERM. Logs to be read are noted on disk until they are read, so the
next daemon finishes the work. It never calls a model to extract: that is a server's job.
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
from mcp_memory.integrations.hooks.answers import Conversations, HookAnswer, HookEvent, parse_event
from mcp_memory.integrations.hooks.daemon_files import (
    ACKNOWLEDGED,
    PROTOCOL,
    DaemonEndpoint,
    DaemonFiles,
    endpoint_files,
    equal,
    is_older,
    pending_logs,
    proof,
)
from mcp_memory.integrations.hooks.transcripts import wait_at_most
from mcp_memory.service.memory import Memory, open_memory

logger = logging.getLogger(__name__)

_RETRY_S = 60.0


class DaemonMemory:
    """The memory behind the hooks, opened on first use. After a failure, opening is not tried again for a while."""

    def __init__(self, files: DaemonFiles, stack: AsyncExitStack) -> None:
        self._files = files
        self._home = OpenedFolder(files.home)
        self._stack = stack
        stack.callback(self._home.close)
        self._opening: asyncio.Task[Memory] | None = None
        self._rests_until = 0.0

    async def memory(self) -> Memory:
        """Open the memory if needed, and return it. Raises the errors of opening, then StoreUnavailable for a while.

        Raises HomeGone if the home that this process was started for is gone: pending logs would be read into a new
        home.
        """
        if not self._home.is_current():
            raise HomeGone(self._files.home)
        if self._opening is None:
            if asyncio.get_running_loop().time() < self._rests_until:
                raise StoreUnavailable("The store could not be opened a moment ago; it is tried again in a minute.")
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> Memory:
        try:
            settings = await anyio.to_thread.run_sync(
                lambda: load_settings(home=self._files.home, space=self._files.space)
            )
            return await self._stack.enter_async_context(open_memory(settings, distil=False, what="hooks"))
        except BaseException:
            self._opening = None
            self._rests_until = asyncio.get_running_loop().time() + _RETRY_S
            raise


IDLE_S = 900.0
_AFTER_THE_LAST_S = 1.5
"""`/clear` ends a conversation and starts another within this time."""
_LOOKING_S = 0.5
_LOCKING_S = 5.0
_FINISHING_S = 30.0
_PROVING_S = 2.0
_WAITING_S: Mapping[Kind, float] = {"start": 2.8, "prompt": 2.8, "tool": 0.9}
"""Seconds until an answer is late: a little less than the hook waits."""
_NOTING_S = 0.2
"""The same for other hooks, which wait only until the pending log is noted."""
_MAX_QUESTION = 2**28
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LOG_BYTES = 200_000


def main(arguments: list[str]) -> int:
    """Run the daemon for these arguments (home, space or "", settings key), and return the exit code."""
    home, space, key = arguments
    files = DaemonFiles(Path(home), space or None, key)
    if not files.waiting.is_dir():  # the hook created it; the home was deleted since
        return 0
    lock = _acquire_lock(files)
    if lock is None:
        return 0
    set_up(handler=_log_handler(files.log))
    with lock:
        try:
            asyncio.run(serve(files))
        except Exception:
            logger.exception("the hooks stopped, by a fault of this program")
            return 1
    return 0


def _log_handler(log: Path) -> logging.Handler:
    """Return the handler of the log; a null handler if a pipe or device is in its place, which `health` reports."""
    if log.exists() and not (log.is_file() or log.is_dir()):
        return logging.NullHandler()
    return _PrivateLog(log, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")


class _PrivateLog(logging.handlers.RotatingFileHandler):
    def _open(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(open_private(Path(self.baseFilename), "ab"), encoding=self.encoding)


def _acquire_lock(files: DaemonFiles) -> IO[bytes] | None:
    """Lock the lock file and return it; None if another process keeps the lock."""
    file = io.FileIO(files.lock, "ab", opener=opener)
    until = time.monotonic() + _LOCKING_S
    while not _try_lock(file):
        # The holder may be about to end: then its endpoint file is gone, and the next hook waits for us.
        if DaemonEndpoint.read(files.file) is not None or time.monotonic() > until:
            file.close()
            return None
        time.sleep(0.05)
    return file


def _try_lock(file: IO[bytes]) -> bool:
    try:
        return try_lock(file.fileno(), shared=False)
    except OSError:  # a file system without locks
        return False


async def serve(files: DaemonFiles) -> None:
    """Answer hooks until there is nothing more to do."""
    async with AsyncExitStack() as stack:
        daemon = HookDaemon(files, DaemonMemory(files, stack))
        await daemon.run()


class HookDaemon:
    """Answers hooks on a loopback port, and ends when it is no longer needed."""

    def __init__(self, files: DaemonFiles, store: DaemonMemory) -> None:
        self._files = files
        self._token = secrets.token_hex(16)
        self._ending = asyncio.Event()
        self._heard = time.monotonic()
        self._overdue = set[asyncio.Task[HookAnswer]]()
        self._conversations = Conversations(store.memory, files)

    async def run(self) -> None:
        following = asyncio.create_task(self._conversations.following.run())
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._end_on_signals()  # first: a reader of the endpoint file may end us at once
        try:
            self._publish_endpoint(server.sockets[0].getsockname()[1])
            await self._conversations.resume_reading(pending_logs(self._files))
            while not self._should_end():
                await wait_at_most(self._ending.wait(), _LOOKING_S)
        finally:
            server.close()
            self._remove_endpoint()
            self._conversations.following.finish()
            await asyncio.wait({following, *self._overdue, *self._conversations.background}, timeout=_FINISHING_S)

    def _publish_endpoint(self, port: int) -> None:
        """Write the endpoint file and end daemons of older versions (only older, or two could end each other)."""
        for file in endpoint_files(self._files.home):
            endpoint = DaemonEndpoint.read(file)
            if endpoint is not None and is_older(endpoint.version, __version__):
                remove_own(file)
        DaemonEndpoint(os.getpid(), port, self._token, __version__).write(self._files.file)

    def _end_on_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                asyncio.get_running_loop().add_signal_handler(number, self._ending.set)
            except NotImplementedError:  # Windows: the process just ends; pending logs are noted on disk
                pass

    def _remove_endpoint(self) -> None:
        if self._owns_endpoint():
            remove_own(self._files.file)

    def _owns_endpoint(self) -> bool:
        endpoint = DaemonEndpoint.read(self._files.file)
        return endpoint is not None and endpoint.token == self._token

    def _should_end(self) -> bool:
        silent = time.monotonic() - self._heard
        alone = self._conversations.all_ended and silent > _AFTER_THE_LAST_S
        return self._ending.is_set() or alone or silent > IDLE_S or not self._owns_endpoint()

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
            pass  # the hook was killed, or it is another program
        finally:
            writer.close()

    async def _is_proven(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        protocol, _, nonce = (await reader.readline()).strip().partition(b" ")
        if protocol != PROTOCOL:
            return False
        ours = os.urandom(16).hex().encode()
        writer.write(proof(self._token, "resident", nonce) + b" " + ours + b"\n")
        return equal((await reader.readline()).strip(), proof(self._token, "hook", ours))

    async def _answer(self, question: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._heard = time.monotonic()
        event = await anyio.to_thread.run_sync(_parse_question, question)
        answer = HookAnswer() if event is None else await self._answer_in_time(event)
        reply = json.dumps(answer.json).encode() if answer.json else b""
        writer.write(b"%d\n" % len(reply) + reply)
        await writer.drain()
        if event is not None and answer.shown_text:
            async with asyncio.timeout(_PROVING_S):
                if await reader.readexactly(len(ACKNOWLEDGED)) == ACKNOWLEDGED:
                    self._conversations.note_delivered(event, answer)

    async def _answer_in_time(self, event: HookEvent) -> HookAnswer:
        """Return the answer if it is ready while its hook waits, else an empty answer; the work then continues.

        While earlier work is late, tool outputs are not processed at all.
        """
        if event.kind == "tool" and self._overdue:
            return HookAnswer()  # the store is too slow now
        task = asyncio.create_task(self._conversations.answer(event))
        await asyncio.wait({task}, timeout=_WAITING_S.get(event.kind, _NOTING_S))
        if not task.done():
            self._overdue.add(task)
            task.add_done_callback(partial(self._on_late_answer, event))
            return HookAnswer()
        return self._result_of(event, task)

    def _on_late_answer(self, event: HookEvent, task: asyncio.Task[HookAnswer]) -> None:
        self._overdue.discard(task)
        self._result_of(event, task)

    def _result_of(self, event: HookEvent, task: asyncio.Task[HookAnswer]) -> HookAnswer:
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


def _parse_question(question: bytes) -> HookEvent | None:
    head, _, payload = question.partition(b"\n")
    header = json.loads(head)
    try:
        value = json.loads(payload)
        if _SURROGATE.search(payload):  # programs that count in UTF-16 split characters; halves cannot be stored
            value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
        return parse_event(header["client"], header["event"], value)
    except (ValueError, RecursionError) as error:
        logger.warning("%s: the input of the hook is no JSON: %s", SafeText(header["event"]), error)
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
