"""A small load balancer: each request goes to the next server, but for those of a session that a server has opened."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle

import anyio
from anyio.abc import SocketStream

_SESSION = re.compile(rb"\r\nmcp-session-id: *(\S+)", re.IGNORECASE)
_OVER = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass(slots=True)
class Balancer:
    """Takes one request of each connection. `served` counts the requests of each server, by its port."""

    ports: Sequence[int]
    port: int = 0
    served: Counter[int] = field(default_factory=Counter[int])
    _sessions: dict[bytes, int] = field(default_factory=dict[bytes, int])
    _turns: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self._turns = cycle(self.ports)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def take(self, client: SocketStream) -> None:
        with suppress(*_OVER):
            async with client:
                request = await _head(client)
                port = self._chosen(request)
                self.served[port] += 1
                async with await anyio.connect_tcp("127.0.0.1", port) as server, anyio.create_task_group() as tasks:
                    await server.send(request)
                    tasks.start_soon(_pass, client, server, tasks.cancel_scope)
                    answer = await _head(server)
                    if (opened := _SESSION.search(answer)) is not None:
                        self._sessions[opened[1]] = port
                    await client.send(answer)
                    await _pass(server, client, tasks.cancel_scope)

    def _chosen(self, request: bytes) -> int:
        session = _SESSION.search(request)
        known = session and self._sessions.get(session[1])
        return known or next(self._turns)


async def _head(stream: SocketStream) -> bytes:
    """Return what comes up to the end of a head, with what follows in the same packet."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    return data


async def _pass(source: SocketStream, to: SocketStream, over: anyio.CancelScope) -> None:
    """Pass everything on; the connection is over when one end closes."""
    with suppress(*_OVER):
        async for data in source:
            await to.send(data)
    over.cancel()


@asynccontextmanager
async def balanced(*servers: str) -> AsyncGenerator[Balancer]:
    """Yield a balancer in front of servers on loopback, given by their addresses."""
    balancer = Balancer([int(server.rpartition(":")[2]) for server in servers])
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        balancer.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.start_soon(listener.serve, balancer.take)
        yield balancer
        tasks.cancel_scope.cancel()
