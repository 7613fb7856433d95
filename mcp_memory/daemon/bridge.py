"""`mcp-memory serve` on stdio: connects a client with the daemon, and starts the daemon if it does not run.

The daemon is the MCP server of all clients with the same settings, so each client adds a small process instead of
another copy of the models and caches. If the daemon ends (an update, a crash), the bridge connects to the next one and
repeats the client's handshake, its subscriptions and its pending requests. The store recognises turns that it has. If
no daemon can be started or reached, the bridge starts a server for this client alone.

Standard library only, to keep this process small.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import FrameType
from typing import IO, Any, Protocol, cast

from mcp_memory.core.client_exit import exit_watch
from mcp_memory.integrations.hooks.daemon_client import POLL_S, CannotStart, connect, start
from mcp_memory.integrations.hooks.daemon_files import CLIENT_PROTOCOL, SHARED, DaemonFiles

_STARTING_S = 8.0
_AGAIN_S = 1.0
_ENDING_S = 10.0
_LOOKING_S = 2.0
_TRIES = 4
"""Daemons that may end in succession without an answer; then the client gets its own server."""
_WAITING_LINES = 64
_STATE = ("initialize", "notifications/initialized", "logging/setLevel")


class Server(Protocol):
    """A server of the client: the daemon, or a process of its own."""

    @property
    def lines(self) -> IO[bytes]:
        """Lines with its messages, until it ends."""
        ...

    def send(self, line: bytes) -> None:
        """Send a line. Raises OSError if it has ended."""
        ...

    def finish(self) -> None:
        """Say that the client sends no more."""
        ...

    def wait(self) -> int | None:
        """After its last line, return the exit code for the client; None if another server can be asked."""
        ...


class DaemonServer:
    def __init__(self, wire: socket.socket, session: str) -> None:
        self._wire = wire
        wire.settimeout(None)
        self.lines = cast("IO[bytes]", wire.makefile("rb"))
        self.send(session.encode() + b"\n")

    def send(self, line: bytes) -> None:
        self._wire.sendall(line)

    def finish(self) -> None:
        with suppress(OSError):
            self._wire.shutdown(socket.SHUT_WR)

    def wait(self) -> None:
        self.lines.close()
        self._wire.close()


class OwnServer:
    def __init__(self, command: Sequence[str], session: str) -> None:
        self._process = subprocess.Popen(
            [*command, "--session", session],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, SHARED: "false"},
        )
        self._input, self.lines = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)

    def send(self, line: bytes) -> None:
        self._input.write(line)
        self._input.flush()

    def finish(self) -> None:
        with suppress(OSError):
            self._input.close()

    def wait(self) -> int:
        return self._process.wait()


class Bridge:
    """Passes lines between a client and its server. One thread reads each; the caller of `run` sends and connects."""

    def __init__(
        self, files: DaemonFiles, *, own_server: Sequence[str], incoming: IO[bytes], outgoing: IO[bytes]
    ) -> None:
        """`own_server` is the command of a server of the client's own."""
        self._files = files
        self._own_server = own_server
        self._incoming, self._outgoing = incoming, outgoing
        self._session = f"{datetime.now().astimezone():%Y-%m-%d}-{os.urandom(4).hex()}"
        self._events = queue.Queue[bytes | Server | None](_WAITING_LINES)
        """A line of the client; a server that has ended; None at the end of the client."""
        self._server: Server | None = None
        self._state: dict[str, bytes] = {}
        """The lines that tell a server what its predecessor knew, by method, or by the address of a subscription."""
        self._pending: dict[str, bytes] = {}
        """Requests without an answer, by id."""
        self._unsent: list[bytes] = []
        """Other lines for the next server."""
        self._ended = 0
        """Daemons that ended in succession without an answer to a request."""

    def run(self) -> int:
        """Pass lines on until the client or its own server has ended; return the exit code."""
        threading.Thread(target=self._read_client, name="client", daemon=True).start()
        has_exited = exit_watch(self._outgoing.fileno())
        while True:
            try:
                event = self._events.get(timeout=_LOOKING_S)
            except queue.Empty:
                if has_exited():
                    return 0
                continue
            if event is None:
                return self._finish()
            if isinstance(event, bytes):
                self._take(event)
            elif (code := event.wait()) is not None:
                return code
            else:
                self._server = None
                self._ended += 1 if self._pending else 0
                self._ask_next()

    def _read_client(self) -> None:
        for line in self._incoming:
            if line.strip():
                self._events.put(line)
        self._events.put(None)

    def _finish(self) -> int:
        """Wait until the server has answered the pending requests and ended; return the exit code."""
        server, deadline = self._server, time.monotonic() + _ENDING_S
        if server is not None:
            server.finish()
            while (left := deadline - time.monotonic()) > 0:
                with suppress(queue.Empty):
                    if self._events.get(timeout=left) is server:
                        return server.wait() or 0
        return 0

    # --- to the server ------------------------------------------------------------------------------

    def _take(self, line: bytes) -> None:
        """Send a line of the client to its server, or to the next one if there is none."""
        is_kept = self._keep(line)
        if self._server is not None:
            with suppress(OSError):  # it has ended, which its reader reports
                self._server.send(line)
                return
        if not is_kept:
            self._unsent.append(line)
        if self._server is None:
            self._ask_next()

    def _keep(self, line: bytes) -> bool:
        """Keep a line that the next server must have too; return whether it is one."""
        message = _parse(line)
        method, params = message.get("method"), _object(message.get("params"))
        is_request = isinstance(method, str) and "id" in message
        if is_request:
            self._pending[_key(message)] = line
        if method in _STATE:
            self._state[method] = line
        elif method == "resources/subscribe":
            self._state[str(params.get("uri"))] = line
        elif method == "resources/unsubscribe":
            self._state.pop(str(params.get("uri")), None)
        elif method == "notifications/cancelled":
            self._pending.pop(_key({"id": params.get("requestId")}), None)
        return is_request or method in _STATE

    def _ask_next(self) -> None:
        """Connect to the next server if it is needed, and send it all that it must know."""
        while self._pending or self._unsent or self._state.keys() - {*_STATE}:
            server = self._next_server()
            try:
                self._introduce(server)
                repeated = {*self._state.values()}
                for line in (*self._pending.values(), *self._unsent):
                    if line not in repeated:
                        server.send(line)
            except OSError:
                self._ended += 1
                if server.wait() is None:
                    continue
            self._unsent.clear()
            self._server = server
            threading.Thread(target=self._read_server, args=[server], name="server", daemon=True).start()
            return

    def _next_server(self) -> Server:
        """Return the daemon, which is started if needed, or else a server of the client's own."""
        while self._ended < _TRIES:
            try:
                return DaemonServer(_connect(self._files), self._session)
            except OSError:
                self._ended += 1
            except CannotStart:
                break
        return OwnServer(self._own_server, self._session)

    def _introduce(self, server: Server) -> None:
        """Repeat the handshake and the subscriptions. Answers that the client has had are dropped.

        Raises OSError if the server ends meanwhile.
        """
        for line in [*self._state.values()]:
            message = _parse(line)
            server.send(line)
            is_answered = "id" not in message
            while not is_answered:
                line = server.lines.readline()
                if not line:
                    raise OSError("the server ended")
                reply = _parse(line)
                is_answered = _is_answer(reply) and _key(reply) == _key(message)
                if not is_answered or _key(message) in self._pending:
                    self._pass_on(line)

    # --- to the client ------------------------------------------------------------------------------

    def _read_server(self, server: Server) -> None:
        with suppress(OSError, ValueError):
            for line in server.lines:
                self._pass_on(line)
        self._events.put(server)

    def _pass_on(self, line: bytes) -> None:
        message = _parse(line)
        if _is_answer(message):
            self._pending.pop(_key(message), None)
            self._ended = 0
        try:
            self._outgoing.write(line)
            self._outgoing.flush()
        except OSError:
            self._events.put(None)  # the client has gone
            raise


def _connect(files: DaemonFiles) -> socket.socket:
    """Return a connection to the daemon, started if needed. Raises CannotStart, and OSError if it cannot be started."""
    process, began = None, time.monotonic()
    started = began
    while (now := time.monotonic()) < began + _STARTING_S:
        wire = connect(files, CLIENT_PROTOCOL)
        if wire is not None:
            return wire
        code = process.poll() if process else None
        if code:
            raise CannotStart("the daemon failed to start, see hooks.log")
        # Exit code 0: another daemon was first. It will answer, unless it is about to end.
        if process is None or (code == 0 and now > started + _AGAIN_S):
            process, started = start(files, silent=float("inf")), now
        time.sleep(POLL_S)
    raise CannotStart(f"the daemon did not start within {_STARTING_S:.0f} s")


def _parse(line: bytes) -> Mapping[str, Any]:
    """Return a message; an empty one for a line that is none, which the server reports."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return _object(message)


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _is_answer(message: Mapping[str, Any]) -> bool:
    return "method" not in message and message.get("id") is not None


def _key(message: Mapping[str, Any]) -> str:
    return json.dumps(message.get("id"))


def run(files: DaemonFiles, own_server: Sequence[str]) -> int:
    """Serve the client on standard input and output; return the exit code.

    `own_server` is the command of a server that is started if no daemon answers.
    """
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed by mistake is no message

    def end(_signum: int, _frame: FrameType | None) -> None:
        os._exit(0)

    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if number := getattr(signal, name, None):
            signal.signal(number, end)
    return Bridge(files, own_server=own_server, incoming=incoming, outgoing=outgoing).run()
