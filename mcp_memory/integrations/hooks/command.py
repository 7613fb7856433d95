"""The process that a client runs at an event: asks the hook daemon, or starts it, and never fails.

It sends one question and waits for one answer, within a time limit; after that it prints nothing and the user's work
continues. Events that only capture are acknowledged once noted, and processed by the daemon later. If no daemon is
ready in time, the hook leaves a note (which conversation, which log, none of its words) for the next daemon. It makes
no decisions, and passes its input on unread.

Standard library only: `mcp-memory hook` loads click and this.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from io import BufferedRWPair
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_memory.core.private_files import touch
from mcp_memory.integrations.clients.description import Kind, hooks_described
from mcp_memory.integrations.hooks import kind_of
from mcp_memory.integrations.hooks.daemon_files import (
    ACKNOWLEDGED,
    PROTOCOL,
    DaemonEndpoint,
    DaemonFiles,
    PendingLog,
    daemon_files,
    equal,
    make_folders,
    proof,
)

if TYPE_CHECKING:
    from subprocess import Popen

_LIMIT_S = 1.0
_STARTING_S = 3.0
"""How long a hook waits for a new daemon if its answer goes to the model."""
_PROVING_S = 0.3
_PROOF_BYTES = 200
_POLL_S = 0.02
_RETRY_S = 60.0
_ANSWERED = frozenset[Kind | None]({"start", "prompt"})
_FLUSHING = frozenset[Kind | None]({"end", "compacting"})
_CAPTURING = frozenset[Kind | None]({"stop", "end", "compacting", "compacted"})


class _DaemonTimeout(Exception):
    """The daemon is running but has not answered in time."""


def run(event: str, client: str, home: Path | None, space: str | None) -> None:
    """Read an event's input from standard input and print the daemon's answer. Never raises, prints nothing else."""
    try:
        sys.stdout.buffer.write(answer(event, client, sys.stdin.buffer.read(), home=home, space=space))
        sys.stdout.buffer.flush()
    except Exception:  # noqa: BLE001 the user's work must continue
        return


def answer(event: str, client: str, payload: bytes, *, home: Path | None = None, space: str | None = None) -> bytes:
    """Ask the daemon, starting it if needed, and return its answer; empty without an answer in time.

    Without an answer, an event that only captures leaves a note for the next daemon.
    """
    files = daemon_files(home, space)
    if files is None:
        return b""
    kind = kind_of(client, event)
    began = time.monotonic()
    question = json.dumps({"event": event, "client": client}).encode() + b"\n" + payload
    try:
        reply = _ask(files, question, began + _LIMIT_S)
        if reply is None:
            reply = _start_and_ask(files, question, began + (_STARTING_S if kind in _ANSWERED else _LIMIT_S))
    except _DaemonTimeout:
        reply = None
    if reply is None and kind in _CAPTURING:
        _leave_note(files, client, payload, flushed=kind in _FLUSHING)
    return reply or b""


def _leave_note(files: DaemonFiles, client: str, payload: bytes, *, flushed: bool) -> None:
    hooks, values = hooks_described(client), json.loads(payload)
    conversation, log = hooks.conversation(values) if hooks else ("", None)
    if hooks and log is not None:
        make_folders(files)
        folder = hooks.folder(values)
        PendingLog(log=str(log), client=client, conversation=conversation, flushed=flushed, folder=folder).save(files)


# --- asking -----------------------------------------------------------------------------------------


def _ask(files: DaemonFiles, question: bytes, deadline: float) -> bytes | None:
    """Ask the daemon and return its answer; None without a daemon. Raises _DaemonTimeout without a timely answer."""
    endpoint = DaemonEndpoint.read(files.file)
    if endpoint is None:
        return None
    try:
        with socket.create_connection(("127.0.0.1", endpoint.port), timeout=_PROVING_S) as wire:
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # otherwise each answer takes 40 ms longer
            if not _is_proven(wire, endpoint.token):
                return None
            wire.settimeout(max(deadline - time.monotonic(), _POLL_S))
            return _exchange(wire.makefile("rwb"), question)
    except (OSError, ValueError):
        return None


def _is_proven(wire: socket.socket, token: str) -> bool:
    """Exchange proofs of the token; return whether the daemon's proof is right."""
    nonce = os.urandom(16).hex().encode()
    wire.sendall(PROTOCOL + b" " + nonce + b"\n")
    theirs, _, their_nonce = _read_line(wire, time.monotonic() + _PROVING_S).strip().partition(b" ")
    if not equal(theirs, proof(token, "resident", nonce)):
        return False
    wire.sendall(proof(token, "hook", their_nonce) + b"\n")
    return True


def _read_line(wire: socket.socket, deadline: float) -> bytes:
    """Read a line, or part of it by the deadline: a strange program may send a byte now and then for hours."""
    line = b""
    while len(line) < _PROOF_BYTES and not line.endswith(b"\n"):
        wire.settimeout(max(deadline - time.monotonic(), _POLL_S / 100))
        more = wire.recv(_PROOF_BYTES - len(line))
        if not more:
            break
        line += more
    return line


def _exchange(stream: BufferedRWPair, question: bytes) -> bytes:
    """Send the question, return the answer and acknowledge it, so that the daemon knows that it arrived in time."""
    try:
        stream.write(b"%d\n" % len(question))
        stream.write(question)
        stream.flush()
        length = int(stream.readline(20))
        reply = stream.read(length)
    except TimeoutError:
        raise _DaemonTimeout from None
    if len(reply) < length:
        raise OSError("the daemon closed the connection")
    stream.write(ACKNOWLEDGED)
    stream.flush()
    return reply


# --- starting ---------------------------------------------------------------------------------------


def _start_and_ask(files: DaemonFiles, question: bytes, deadline: float) -> bytes | None:
    """Start a daemon, ask it and return its answer; None if it does not start in time. Raises as `_ask` does."""
    folder = next(above for above in (files.folder, *files.folder.parents) if above.exists())
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)) or _failed_lately(files):
        return None
    try:
        make_folders(files)  # here and not in the daemon, which may start after the home was deleted
    except OSError:
        return None
    process = _start(files, folder)
    while time.monotonic() < deadline and not process.poll():  # exit code 0: another daemon was first, and will answer
        time.sleep(_POLL_S)
        reply = _ask(files, question, deadline)
        if reply is not None:
            return reply
    if files.folder.is_dir():
        touch(files.failed)
    return None


def _failed_lately(files: DaemonFiles) -> bool:
    """Return whether a daemon failed to start just now: not every hook should wait for another try."""
    try:
        return 0 <= time.time() - files.failed.stat().st_mtime < _RETRY_S  # negative if the clock was set back
    except OSError:
        return False


def _start(files: DaemonFiles, folder: Path) -> Popen[bytes]:
    """Start a detached daemon, which outlives this hook, its terminal and its client."""
    import subprocess

    detached = 0x00000208 if os.name == "nt" else 0  # DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP
    return subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-m",
            "mcp_memory.integrations.hooks.daemon",
            str(files.home),
            files.space or "",
            files.key,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,  # not the user's project, which may have a .env and be deleted
        creationflags=detached,
        start_new_session=os.name != "nt",
    )
