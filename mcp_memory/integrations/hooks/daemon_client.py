"""Connects to the daemon of a home and starts it: for hooks, and for the servers of stdio clients (`daemon.bridge`).

Standard library only, because every hook waits for these imports.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_memory.core.private_files import touch
from mcp_memory.core.regular_files import remove_own
from mcp_memory.integrations.hooks.daemon_files import (
    DaemonEndpoint,
    DaemonFiles,
    daemon_files,
    endpoint_files,
    equal,
    make_folders,
    proof,
)

if TYPE_CHECKING:
    from subprocess import Popen

POLL_S = 0.02
_PROVING_S = 0.3
_PROOF_BYTES = 200
_RETRY_S = 60.0
_MODULE = "mcp_memory.daemon.process"


class CannotStart(Exception):
    """The daemon did not start; the message is the cause, for people."""


def connect(files: DaemonFiles, protocol: bytes) -> socket.socket | None:
    """Return a connection to the daemon, both sides proven; None if no daemon answers.

    `protocol` is the first word that is sent: what the connection is for.
    """
    endpoint = DaemonEndpoint.read(files.file)
    if endpoint is None:
        return None
    wire = None
    try:
        wire = socket.create_connection(("127.0.0.1", endpoint.port), timeout=_PROVING_S)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # otherwise each answer takes 40 ms longer
        if _is_proven(wire, protocol, endpoint.token):
            return wire
    except (OSError, ValueError):
        pass
    if wire is not None:
        wire.close()
    return None


def _is_proven(wire: socket.socket, protocol: bytes, token: str) -> bool:
    """Exchange proofs of the token; return whether the daemon's proof is right."""
    nonce = os.urandom(16).hex().encode()
    wire.sendall(protocol + b" " + nonce + b"\n")
    theirs, _, their_nonce = _read_line(wire, time.monotonic() + _PROVING_S).strip().partition(b" ")
    if not equal(theirs, proof(token, "resident", nonce)):
        return False
    wire.sendall(proof(token, "hook", their_nonce) + b"\n")
    return True


def _read_line(wire: socket.socket, deadline: float) -> bytes:
    """Read a line, or part of it by the deadline: a strange program may send a byte now and then for hours."""
    line = b""
    while len(line) < _PROOF_BYTES and not line.endswith(b"\n"):
        wire.settimeout(max(deadline - time.monotonic(), POLL_S / 100))
        more = wire.recv(_PROOF_BYTES - len(line))
        if not more:
            break
        line += more
    return line


# --- starting and ending ----------------------------------------------------------------------------


def start(files: DaemonFiles, *, silent: float = 0.0) -> Popen[bytes]:
    """Start a detached daemon, which outlives this process, its terminal and its client.

    `silent` is for how many seconds it is taken to have had no hook: infinite if it is not started for hooks, so that
    it ends with its last client. Raises CannotStart if the home cannot be written to, or if a daemon failed to start
    just now.
    """
    import subprocess

    folder = next(above for above in (files.folder, *files.folder.parents) if above.exists())
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise CannotStart("the home cannot be written to")
    if _failed_lately(files):
        raise CannotStart("the daemon failed to start a moment ago, see hooks.log")
    try:
        make_folders(files)  # here and not in the daemon, which may start after the home was deleted
    except OSError:
        raise CannotStart("the home cannot be written to") from None
    detached = 0x00000208 if os.name == "nt" else 0  # DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP
    return subprocess.Popen(
        [sys.executable, "-P", "-m", _MODULE, str(files.home), files.space or "", files.key, f"{silent:.0f}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,  # not the user's project, which may have a .env and be deleted
        creationflags=detached,
        start_new_session=os.name != "nt",
    )


def note_failed_start(files: DaemonFiles) -> None:
    """Note that a daemon failed to start, so that not every hook waits for another try."""
    if files.folder.is_dir():
        touch(files.failed)


def _failed_lately(files: DaemonFiles) -> bool:
    try:
        return 0 <= time.time() - files.failed.stat().st_mtime < _RETRY_S  # negative if the clock was set back
    except OSError:
        return False


def start_in_background(files: DaemonFiles) -> None:
    """Start a daemon for later hooks, unless one runs, is starting or has failed just now. Never raises."""
    from mcp_memory.core.process_registry import try_lock

    try:
        if files.lock.exists():
            with files.lock.open("ab") as lock:
                if not try_lock(lock.fileno(), shared=False):
                    return
        start(files)
    except (OSError, CannotStart):
        return


def start_and_wait(home: Path, seconds: float) -> None:
    """Start the daemon of a home unless it runs, and wait until it answers hooks, at most so many seconds."""
    files = daemon_files(home, None)
    if files is None:
        return
    start_in_background(files)
    deadline = time.monotonic() + seconds
    while DaemonEndpoint.read(files.file) is None and time.monotonic() < deadline:
        time.sleep(POLL_S)


def end_daemons(home: Path) -> None:
    """Make all daemons of a home end, which takes them a moment; the next hook starts one again."""
    for file in endpoint_files(home):
        with suppress(OSError):
            remove_own(file)
