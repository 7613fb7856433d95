"""Records the statements that a program sends to PostgreSQL, by reading the protocol in a proxy, and adds latency.

    with wire_to(server.port) as wire:
        with open_memory(wire.url(url)) as memory:
            wire.settle()
            with wire.recording() as sent:
                memory.record_turns(…)
    assert (sent.statements, sent.transactions) == (6, 1)

A transaction is counted by its BEGIN, or by its only statement; BEGIN, COMMIT and ROLLBACK are no statements.
Statements of all connections are recorded, also those of background threads, so a test calls `settle` first.
"""

from __future__ import annotations

import queue
import socket
import struct
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_QUIET_S = 1.0  # longer than background threads pause between two steps
_SETTLING_S = 30.0
_BOUNDS = {"BEGIN", "COMMIT", "ROLLBACK"}
_SPECIAL = {80877102, 80877103, 80877104}  # requests for a cancellation, TLS and GSSAPI, before the start message


@dataclass(slots=True)
class Sent:
    """The statements that were sent in a period. `round_trips` counts the times that an answer was awaited."""

    texts: list[str] = field(default_factory=list[str])
    transactions: int = 0
    round_trips: int = 0

    @property
    def statements(self) -> int:
        return len(self.texts)


@dataclass(slots=True)
class Wire:
    """Passes bytes between clients of `port` and the server at `server_port`.

    `delay` is how many seconds later each side receives what the other has sent: a round trip takes twice as long.
    """

    server_port: int
    delay: float = 0.0
    port: int = 0
    _sent: Sent | None = None
    _last: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def url(self, url: str) -> str:
        """Return the URL of a database on the server as one through this proxy."""
        return url.replace(f":{self.server_port}/", f":{self.port}/")

    @contextmanager
    def recording(self) -> Generator[Sent]:
        """Record what is sent during the block."""
        with self._lock:
            self._sent = sent = Sent()
        try:
            yield sent
        finally:
            with self._lock:
                self._sent = None

    def settle(self) -> None:
        """Wait until nothing has been sent for a second: background threads have done their work."""
        latest = time.monotonic() + _SETTLING_S
        while (quiet := time.monotonic() - self._last) < _QUIET_S:
            if time.monotonic() > latest:
                raise TimeoutError("statements are sent all the time")
            time.sleep(_QUIET_S - quiet)

    def note(self, text: str, *, alone: bool) -> None:
        first = text.split(None, 1)[0].upper() if text.strip() else ""
        with self._lock:
            self._last = time.monotonic()
            if self._sent is None:
                return
            if first in _BOUNDS:
                self._sent.transactions += first == "BEGIN"
            elif first:
                self._sent.texts.append(text)
                self._sent.transactions += alone

    def note_sync(self) -> None:
        with self._lock:
            if self._sent is not None:
                self._sent.round_trips += 1

    def connect(self, client: socket.socket) -> None:
        """Pass on what a client and the server send, until one of them closes the connection."""
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self.server_port)) as server:
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answers = threading.Thread(target=self._pass_on, args=(server, client, None), daemon=True)
            answers.start()
            self._pass_on(client, server, _Messages(self).read)
            answers.join()

    def _pass_on(self, source: socket.socket, target: socket.socket, read: Callable[[bytes], None] | None) -> None:
        late: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        sender = threading.Thread(target=_send_late, args=(late, target), daemon=True)
        if self.delay:
            sender.start()
        with suppress(OSError):
            while data := source.recv(65_536):
                if read is not None:
                    read(data)
                if self.delay:
                    late.put((time.monotonic() + self.delay, data))
                else:
                    target.sendall(data)
        if self.delay:
            late.put((0.0, b""))
            sender.join()
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)


def _send_late(late: queue.SimpleQueue[tuple[float, bytes]], target: socket.socket) -> None:
    with suppress(OSError):
        while (item := late.get())[1]:
            time.sleep(max(0.0, item[0] - time.monotonic()))
            target.sendall(item[1])


class _Messages:
    """Reads the messages of one client: its statements, by simple and by prepared queries."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._data = b""
        self._is_started = False
        self._prepared: dict[bytes, str] = {}
        self._bound: dict[bytes, str] = {}
        self._in_transaction = False

    def read(self, data: bytes) -> None:
        self._data += data
        while message := self._next():
            kind, body = message
            if kind == b"Q":
                self._execute(body[:-1].decode(errors="replace"))
                self._wire.note_sync()
            elif kind == b"P":
                name, text, _ = body.split(b"\0", 2)
                self._prepared[name] = text.decode(errors="replace")
            elif kind == b"B":
                portal, name, _ = body.split(b"\0", 2)
                self._bound[portal] = self._prepared.get(name, "")
            elif kind == b"E":
                self._execute(self._bound.get(body.split(b"\0", 1)[0], ""))
            elif kind == b"S":
                self._wire.note_sync()

    def _next(self) -> tuple[bytes, bytes] | None:
        """Return the kind and the body of the next message once it is complete; the first ones have no kind."""
        at = int(self._is_started)
        if len(self._data) < at + 4:
            return None
        (size,) = struct.unpack_from(">I", self._data, at)
        if len(self._data) < at + size:
            return None
        kind, body = self._data[:at], self._data[at + 4 : at + size]
        self._data = self._data[at + size :]
        if not self._is_started:
            self._is_started = struct.unpack_from(">I", body)[0] not in _SPECIAL
        return kind or b"start", body

    def _execute(self, text: str) -> None:
        first = text.split(None, 1)[0].upper() if text.strip() else ""
        self._wire.note(text, alone=not self._in_transaction)
        if first in _BOUNDS:
            self._in_transaction = first == "BEGIN"


@contextmanager
def wire_to(server_port: int, *, delay: float = 0.0) -> Generator[Wire]:
    """Run a proxy; it accepts connections until the end of the block."""
    wire = Wire(server_port, delay)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wire.port = listener.getsockname()[1]

        def listen() -> None:
            with suppress(OSError):  # closed
                while True:
                    threading.Thread(target=wire.connect, args=(listener.accept()[0],), daemon=True).start()

        threading.Thread(target=listen, daemon=True).start()
        try:
            yield wire
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
