"""A client of one MCP server over stdio, in JSON-RPC lines: unlike an SDK's, it can kill the server at any moment.

Requests are answered one at a time. Requests of the server (roots, sampling) are refused, and its standard error goes
to the file `stderr.log` of its home.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any, Self, cast

_PROTOCOL = "2025-06-18"  # the newest that all peers speak
_SECONDS = 120.0


class Refused(Exception):
    """The server answered with an error, ended, or took longer than two minutes."""


def processes_of(home: Path) -> list[int]:
    """Return the processes that have `home` as their HOME: those of its servers, detached ones among them."""
    variable = b"HOME=" + os.fsencode(home)
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # another user's, or ended
            if variable in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


class Wire:
    """A running server. Leaving the `with` block kills all servers of its home."""

    def __init__(self, command: Sequence[str], *, home: Path, env: Mapping[str, str], seconds: float = _SECONDS):
        self.home, self.seconds, self._sent = home, seconds, 0
        home.mkdir(parents=True, exist_ok=True)
        with (home / "stderr.log").open("ab") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=home,
                env=dict(env),
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def initialize(self) -> dict[str, Any]:
        asked = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        answer = self.request("initialize", asked)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def tools(self) -> list[dict[str, Any]]:
        return self.request("tools/list", {})["tools"]

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a tool. Raises Refused if it is an error."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise Refused(f"{tool}: {text_of(result)[:300]}")
        return result

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._sent += 1
        number = self._sent
        alarm = Timer(self.seconds, self.kill)
        alarm.start()
        try:
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            while True:
                answer = self._read(method)
                if "method" in answer and "id" in answer:  # the server asks something of us
                    refusal = {"code": -32601, "message": "This client does nothing but ask."}
                    self._send({"jsonrpc": "2.0", "id": answer["id"], "error": refusal})
                elif answer.get("id") == number:
                    break
        except OSError as error:
            raise Refused(f"{method}: {error}") from error
        finally:
            alarm.cancel()
        if "error" in answer:
            raise Refused(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    def kill(self) -> None:
        """Kill the server and all other processes of its home with SIGKILL, and wait for their end."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        while others := processes_of(self.home):
            for pid in others:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def _read(self, method: str) -> dict[str, Any]:
        """Return the next message; other output of the server is ignored."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            with suppress(ValueError):
                read = json.loads(line)
                if isinstance(read, dict):
                    return cast("dict[str, Any]", read)
        raise Refused(f"{method}: the server ended, see {self.home / 'stderr.log'}")


def text_of(result: Mapping[str, Any]) -> str:
    """Return the text of a result as a model reads it: its text parts, or its structured content if it has none."""
    text = "\n".join(str(part["text"]) for part in result.get("content", ()) if part.get("type") == "text")
    return text or json.dumps(result.get("structuredContent", {}), ensure_ascii=False)
