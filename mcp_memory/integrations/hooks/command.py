"""The process that a client runs at an event: asks the hook daemon, or answers itself, and never fails.

It sends one question and waits for one answer, within a time limit. A start or a prompt that gets none is answered
here, from the store and by words alone (`own_answers`); a prompt does not even wait for a daemon to start. Where the
memory is on a server, a prompt without a daemon asks it once (`server_answers`). Events that
only capture are acknowledged once noted, and processed by the daemon later; without a daemon, the hook leaves a note
(which conversation, which log, none of its words) for the next one. If there is no answer at all, nothing is printed
and the user's work continues. How it ended is recorded (`core.hook_outcomes`).

Standard library only, unless it has to answer itself: `mcp-memory hook` loads click and this.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Mapping
from io import BufferedRWPair
from pathlib import Path
from typing import Literal, NamedTuple

from mcp_memory.core.config_file import PREFIX, read_config
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.hook_outcomes import By, record
from mcp_memory.integrations.clients.description import Kind, hooks_described, kind_of
from mcp_memory.integrations.hooks.daemon_client import (
    POLL_S,
    CannotStart,
    connect,
    note_failed_start,
    start,
    start_in_background,
)
from mcp_memory.integrations.hooks.daemon_files import (
    ACKNOWLEDGED,
    MAX_HEAD,
    PROTOCOL,
    DaemonFiles,
    PendingLog,
    daemon_files,
    make_folders,
)

_LIMIT_S = 1.0
"""Seconds that a hook waits for the daemon."""
_LIMITS_S: Mapping[Kind | None, float] = {"start": 3.0, "prompt": 1.2, "tool": 8.0}
"""The same at events whose answers go to the model. After a prompt there is time for the hook to answer itself."""
_STARTING_S = 3.0
"""The same at a prompt for a new daemon, if the hook cannot answer itself: the memory is in PostgreSQL."""
_ANSWERED = frozenset[Kind | None]({"start", "prompt"})
_FLUSHING = frozenset[Kind | None]({"end", "compacting"})
_CAPTURING = frozenset[Kind | None]({"stop", "end", "compacting", "compacted"})


class _NoAnswer(Exception):
    """The daemon does not run or did not answer; the message is the cause, for people."""


class Reply(NamedTuple):
    """What the client gets, and how it came about."""

    content: bytes
    by: By
    cause: str = ""
    """Why the daemon did not answer; empty if it did."""
    starts_daemon: bool = False
    """Whether a daemon is to be started for the next hook."""


def run(event: str, client: str, home: Path | None, space: str | None) -> None:
    """Read an event's input from standard input and print the answer. Never raises, prints nothing else."""
    try:
        began = time.monotonic()
        payload = sys.stdin.buffer.read()
        files = daemon_files(home, space)
        if files is None:
            return
        reply = answer(files, event, client, payload)
        sys.stdout.buffer.write(reply.content)
        sys.stdout.buffer.flush()
        took = time.monotonic() - began
        if reply.starts_daemon:
            start_in_background(files)
        kind = kind_of(client, event)
        if kind in _ANSWERED or (kind == "tool" and reply.by == "nothing"):
            record(files.home, str(kind), reply.by, seconds=took, cause=reply.cause)
    except Exception:  # noqa: BLE001 the user's work must continue
        return


def answer(files: DaemonFiles, event: str, client: str, payload: bytes) -> Reply:
    """Ask the daemon, starting it if needed, and return its answer, or else that of this process.

    Without an answer, an event that only captures leaves a note for the next daemon.
    """
    kind = kind_of(client, event)
    began = time.monotonic()
    limit = _LIMITS_S.get(kind, _LIMIT_S)
    question = json.dumps({"event": event, "client": client}).encode() + b"\n" + payload
    starts_daemon = False
    try:
        content = _ask(files, question, began + limit)
        if content is None and kind == "prompt" and _place(files) != "database":
            starts_daemon = True
            raise _NoAnswer("the daemon did not run")
        if content is None:
            starting = _STARTING_S if kind == "prompt" else limit
            content = _start_and_ask(files, question, began + starting)
        return Reply(content, "daemon")
    except _NoAnswer as error:
        cause = str(error)
    place = _place(files) if kind in _ANSWERED else ""
    if place == "server" and starts_daemon:
        gc.disable()  # this process ends soon
        try:
            from mcp_memory.integrations.hooks.server_answers import server_answer

            return Reply(server_answer(files, client, event, payload, began + limit), "server", cause, starts_daemon)
        except Exception as error:  # noqa: BLE001 the user's work must continue
            cause = f"{cause}, and {getattr(error, 'cause', f'asking the server failed ({type(error).__name__})')}"
    if place == "file":
        gc.disable()
        try:
            from mcp_memory.integrations.hooks.own_answers import own_answer

            return Reply(own_answer(files, client, event, payload), "words", cause, starts_daemon)
        except Exception as error:  # noqa: BLE001 the user's work must continue
            cause = f"{cause}, and reading the store failed ({type(error).__name__})"
    if kind in _CAPTURING:
        _leave_note(files, client, payload, flushed=kind in _FLUSHING)
    return Reply(b"", "nothing", cause, starts_daemon)


def _place(files: DaemonFiles) -> Literal["file", "server", "database"]:
    """Return where the memory is, by the settings; a file of the home also if `config.toml` cannot be read."""
    try:
        config = read_config(files.home)
    except InvalidInput:
        config = {}
    if os.environ.get(f"{PREFIX}SERVER") or config.get("server"):
        return "server"
    return "database" if os.environ.get(f"{PREFIX}STORE") or config.get("store") else "file"


def _leave_note(files: DaemonFiles, client: str, payload: bytes, *, flushed: bool) -> None:
    hooks, values = hooks_described(client), json.loads(payload)
    conversation, log = hooks.conversation(values) if hooks else ("", None)
    if hooks and log is not None:
        make_folders(files)
        folder = hooks.folder(values)
        PendingLog(log=str(log), client=client, conversation=conversation, flushed=flushed, folder=folder).save(files)


# --- asking -----------------------------------------------------------------------------------------


def _ask(files: DaemonFiles, question: bytes, deadline: float) -> bytes | None:
    """Ask the daemon and return its answer; None without a daemon. Raises _NoAnswer if it is late or failed."""
    wire = connect(files, PROTOCOL)
    if wire is None:
        return None
    try:
        with wire:
            wire.settimeout(max(deadline - time.monotonic(), POLL_S))
            return _exchange(wire.makefile("rwb"), question)
    except (OSError, ValueError):
        return None


def _exchange(stream: BufferedRWPair, question: bytes) -> bytes:
    """Send the question, return the answer and acknowledge it, so that the daemon knows that it arrived in time."""
    began = time.monotonic()
    try:
        stream.write(b"%d\n" % len(question))
        stream.write(question)
        stream.flush()
        head, _, cause = stream.readline(MAX_HEAD).decode("utf-8", "replace").strip().partition(" ")
        length = int(head)
        if length < 0:
            raise _NoAnswer(cause)
        reply = stream.read(length)
    except TimeoutError:
        waited = time.monotonic() - began
        if waited < POLL_S * 2:  # it had just started
            raise _NoAnswer("the daemon started, with no time left to answer") from None
        raise _NoAnswer(f"the daemon did not answer within {waited:.1f} s") from None
    if len(reply) < length:
        raise OSError("the daemon closed the connection")
    stream.write(ACKNOWLEDGED)
    stream.flush()
    return reply


# --- starting ---------------------------------------------------------------------------------------


def _start_and_ask(files: DaemonFiles, question: bytes, deadline: float) -> bytes:
    """Start a daemon, ask it and return its answer. Raises _NoAnswer if it does not start or answer in time."""
    began = time.monotonic()
    try:
        process = start(files)
    except CannotStart as error:
        raise _NoAnswer(str(error)) from None
    while time.monotonic() < deadline and not process.poll():  # exit code 0: another daemon was first, and will answer
        time.sleep(POLL_S)
        reply = _ask(files, question, deadline)
        if reply is not None:
            return reply
    if process.poll():
        note_failed_start(files)
        raise _NoAnswer("the daemon failed to start, see hooks.log")
    raise _NoAnswer(f"the daemon did not start within {time.monotonic() - began:.1f} s")


def start_if_used(home: Path | None, space: str | None) -> None:
    """Start the daemon in the background if hooks with these settings were answered before.

    Does nothing if the memory is in PostgreSQL. A server that is not shared calls this as it starts, because clients
    start their servers before the first prompt.
    """
    files = daemon_files(home, space)
    if files is not None and files.lock.exists() and _place(files) != "database":
        start_in_background(files)
