"""Server processes for a hunt: one over HTTP, and one that receives raw lines."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from time import sleep
from typing import IO, Any

import anyio
import anyio.to_thread
import httpx2
import mcp.types as wire
from anyio.abc import Process

_START_SECONDS = 60.0


@asynccontextmanager
async def http_server(command: Sequence[str], env: Mapping[str, str], log: IO[str], path: Path) -> AsyncGenerator[str]:
    """Start a server and yield its address; `path` is its log. Raises RuntimeError if it does not end cleanly."""
    process = await anyio.open_process(
        [*command, "--transport", "http", "--port", "0", "--no-token"], env=env, stderr=log, stdout=log
    )
    try:
        with anyio.fail_after(_START_SECONDS):
            said = await anyio.to_thread.run_sync(_said_by, path, abandon_on_cancel=True)
        yield said.partition(" listens on ")[2].split()[0]
        process.terminate()
        with anyio.move_on_after(15) as late:
            await process.wait()
        if late.cancelled_caught or process.returncode:
            raise RuntimeError(f"the HTTP server ended with {process.returncode}")
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


def _said_by(log: Path) -> str:
    """Wait until a server listens; return its log."""
    while " listens on " not in (said := log.read_text(encoding="utf-8")):
        sleep(0.05)
    return said


async def posted(client: httpx2.AsyncClient, url: str, line: str) -> str | None:
    """Send a line as a request; return the problem of the answer, if any."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    async with client.stream("POST", url, content=line.encode("utf-8", "replace"), headers=headers) as answer:
        if answer.status_code >= 500:
            return f"a raw request is answered with {answer.status_code}: {(await answer.aread())[:200]!r}"
    return None


class Lines:
    """A server that receives raw lines. After each it must answer a ping with complete messages."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._numbers = count(1)
        self._rest = b""
        self._turn = anyio.Lock()

    @classmethod
    @asynccontextmanager
    async def opened(cls, command: Sequence[str], env: Mapping[str, str], log: IO[str]) -> AsyncGenerator[Lines]:
        process = await anyio.open_process(list(command), env=env, stderr=log)
        made = cls(process)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}
        try:
            await made._send(json.dumps({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello}))
            await made._until("hello")
            yield made
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                await process.aclose()

    async def answered(self, line: str) -> str | None:
        async with self._turn:
            id = f"alive-{next(self._numbers)}"
            await self._send(line.replace("\n", " "))
            await self._send(json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}))
            return await self._until(id)

    async def end(self) -> list[str]:
        """Close the server's input; return the problems of its exit."""
        assert self._process.stdin is not None
        await self._process.stdin.aclose()
        with anyio.move_on_after(15):
            code = await self._process.wait()
            return [] if code == 0 else [f"the server of raw lines ended with {code}"]
        return ["the server of raw lines does not end when its client is gone"]

    async def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send(line.encode("utf-8", "surrogatepass") + b"\n")

    async def _until(self, id: str) -> str | None:
        assert self._process.stdout is not None
        while True:
            while b"\n" not in self._rest:
                self._rest += await self._process.stdout.receive()
            line, _, self._rest = self._rest.partition(b"\n")
            message: Any = json.loads(line)
            if message.get("id") == id:
                return None
            if message.get("error", {}).get("code") == wire.INTERNAL_ERROR or "Internal error" in str(message):
                return f"a raw line: internal error: {str(message)[:300]}"
