"""A client of a real server over stdio: blocking, one call at a time; it ends with its server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from bench.servers import ours
from bench.torture.deeds import Declined


class Gone(Exception):
    """The server died before it answered."""


class Server:
    """A running `mcp-memory serve` on a home. `log` receives its standard error."""

    def __init__(self, home: Path, log: Path) -> None:
        command = ours(home)
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                list(command.command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=dict(command.env),
            )
        self._number = 0

    def greet(self) -> None:
        client = {"name": "torture", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool, like `deeds.Call`. Raises Declined, or Gone."""
        answer = self._ask("tools/call", {"name": tool, "arguments": arguments})
        if answer.get("isError"):
            raise Declined(f"{tool}: {answer['content'][0]['text']}")
        return answer["structuredContent"]

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if not line.endswith(b"\n"):
                break
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._number and "method" not in answer:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
        raise Gone

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Gone from None

    def close(self) -> None:
        """Kill the server if it runs, and close its pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was never sent cannot be flushed
                    pass
