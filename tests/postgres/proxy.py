"""A TCP proxy between clients and a server on loopback, which fails when it is told to."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

_PROCESS = re.compile(rb"(K\0\0\0\x0c).{4}", re.DOTALL)  # of the message BackendKeyData
_SYNC = b"S\0\0\0\x04"  # the message for which the server sends its answers


@dataclass(slots=True)
class _Trap:
    """What happens, once, when a client sends `text`.

    `then` runs before that is passed on, when the server has it without the Sync behind it, when it was answered, or
    when the client has the answer too.
    """

    text: bytes
    then: Callable[[], object]
    when: Literal["before", "unsynced", "answered", "delivered"]
    skip: int = 0


@dataclass(slots=True, eq=False)
class _Link:
    client: socket.socket
    server: socket.socket
    sprung: _Trap | None = None  # the trap whose answer is not passed on
    held: bool = False  # a message is held back, and `then` of its trap runs

    def cut(self) -> None:
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@dataclass(slots=True)
class Proxy:
    """Passes bytes to the server at `server_port` from those who connect to `port`."""

    server_port: int
    port: int = 0
    delay: float = 0.0
    """Seconds for which an answer is held back."""
    pooling: bool = False
    """Whether clients are told another process number than the server's, as a pooler does."""
    connections: int = 0
    """How many were made so far."""
    _links: list[_Link] = field(default_factory=list[_Link])
    _traps: list[_Trap] = field(default_factory=list[_Trap])
    _listener: socket.socket | None = None

    @property
    def is_open(self) -> bool:
        """Whether it accepts connections."""
        return self._listener is not None

    def url(self, url: str) -> str:
        """Return the URL of a database on the server as one through this proxy."""
        return url.replace(f":{self.server_port}/", f":{self.port}/")

    def cut(self) -> None:
        """Cut all connections there are."""
        for link in self._links:
            link.cut()

    def cut_before(self, text: bytes, then: Callable[[], object] = lambda: None, *, skip: int = 0) -> None:
        """Cut the connection of the next client that sends `text`, after `skip` of them: the server never gets it."""
        self._traps.append(_Trap(text, then, "before", skip))

    def cut_after(self, text: bytes, then: Callable[[], object] = lambda: None, *, skip: int = 0) -> None:
        """Cut it when the server has answered: the client never gets the answer. `then` runs before the cut."""
        self._traps.append(_Trap(text, then, "answered", skip))

    def fail_after(self, text: bytes, *, skip: int = 0) -> None:
        """Refuse and cut all connections when a client that sends `text` has its answer."""

        def fail() -> None:
            self.refuse()
            self.cut()

        self._traps.append(_Trap(text, fail, "delivered", skip))

    def forget_traps(self) -> None:
        """Remove the traps that nobody has sprung."""
        self._traps.clear()

    def hold_sync_after(self, text: bytes, then: Callable[[], object]) -> None:
        """Pass on `text` without the Sync behind it, and run `then`; the client gets what the server sends meanwhile."""
        self._traps.append(_Trap(text, then, "unsynced"))

    def accept(self) -> None:
        """Take connections, at the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, args=(self._listener,), daemon=True).start()

    def refuse(self) -> None:
        """Refuse new connections; those there are stay."""
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None

    def _listen(self, listener: socket.socket) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = listener.accept()
                self.connections += 1
                try:
                    server = socket.create_connection(("127.0.0.1", self.server_port))
                except OSError:
                    client.close()
                    continue
                link = _Link(client, server)
                self._links.append(link)
                threading.Thread(target=self._pass_on, args=(link,), daemon=True).start()

    def _pass_on(self, link: _Link) -> None:
        answers = threading.Thread(target=self._to_client, args=(link,), daemon=True)
        answers.start()
        with link.client, link.server:
            with suppress(OSError):
                self._to_server(link)
            link.cut()
            answers.join()

    def _to_server(self, link: _Link) -> None:
        while data := link.client.recv(65536):
            trap = self._trap(data)
            match trap and trap.when:
                case "before":
                    link.held = True
                    trap.then()
                    break
                case "unsynced":
                    while _SYNC not in data:
                        data += link.client.recv(65536)
                    first, sync, rest = data.rpartition(_SYNC)
                    link.server.sendall(first)
                    trap.then()
                    data = sync + rest
                case "answered" | "delivered":
                    link.sprung = trap  # what is sent in a pipeline is answered later
                case None:
                    pass
            link.server.sendall(data)

    def _to_client(self, link: _Link) -> None:
        with suppress(OSError):
            while data := link.server.recv(65536):
                time.sleep(self.delay)
                if self.pooling:
                    data = _PROCESS.sub(lambda found: found[1] + b"\0\0\0\7", data)
                if link.sprung is not None:
                    if link.sprung.when == "delivered":
                        link.client.sendall(data)
                    link.sprung.then()
                    break
                link.client.sendall(data)
        if not link.held:  # else the client learns nothing before `then` returns
            link.cut()

    def _trap(self, data: bytes) -> _Trap | None:
        for trap in [trap for trap in self._traps if trap.text in data]:
            if trap.skip == 0:
                self._traps.remove(trap)
                return trap
            trap.skip -= 1
        return None


@contextmanager
def proxied(server_port: int) -> Generator[Proxy]:
    """Run a proxy; it ends with the block, and cuts what is left."""
    proxy = Proxy(server_port)
    proxy.accept()
    try:
        yield proxy
    finally:
        proxy.refuse()
        proxy.cut()
