"""A real server in another process, with tokens for laptops, behind a TCP proxy that can be slow, cut or gone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

from mcp_memory.core.rights import Right
from mcp_memory.service.memory import Memory
from tests.in_memory import in_memory
from tests.postgres.proxy import Proxy, proxied

T = TypeVar("T")
_ADDRESS = re.compile(r"listens on http://127\.0\.0\.1:(\d+)/mcp")


@dataclass
class TeamServer:
    """A server on `home`, which clients reach at `url`, through `proxy`."""

    home: Path
    process: subprocess.Popen[str]
    proxy: Proxy

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.proxy.port}/mcp"

    def token(self, name: str, *spaces: str, right: Right = "write") -> str:
        """Make a token and return what a client shows."""
        chosen = spaces or ("default",)
        return self.ask(lambda memory: memory.create_token(name, spaces=chosen, right=right))[1]

    def ask(self, question: Callable[[Memory], Awaitable[T]]) -> T:
        """Ask the memory of the server, beside the server."""
        return in_memory(self.home, question)

    def turns(self, session: str = "claude-code-3f2a9c1e") -> list[str]:
        return [turn.content for turn in self.ask(lambda memory: memory.session_turns(session))]

    def end(self, signum: signal.Signals = signal.SIGKILL) -> None:
        """End the server by a signal."""
        self.process.send_signal(signum)
        with self.process:  # closes its pipe
            self.process.wait()


def start(home: Path, port: int = 0, *, embedder: str = "none") -> tuple[subprocess.Popen[str], int]:
    """Start a server and return it with its port."""
    command = [sys.executable, "-m", "mcp_memory", "--home", str(home), "serve", "--transport", "http"]
    process = subprocess.Popen(
        [*command, "--port", str(port)],
        env={**os.environ, "MCP_MEMORY_EMBEDDER": embedder, "MCP_MEMORY_READ_SENTENCES": "false"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    found = _ADDRESS.search(line)
    assert found is not None, line
    return process, int(found[1])


@contextmanager
def team_server(home: Path, *, embedder: str = "none") -> Generator[TeamServer]:
    in_memory(home, lambda memory: memory.create_token("first"))  # so that the server makes none of its own
    process, port = start(home, embedder=embedder)
    with proxied(port) as proxy:
        server = TeamServer(home, process, proxy)
        try:
            yield server
        finally:
            server.end(signal.SIGTERM)


def on_laptop(home: Path, url: str, token: str, question: Callable[[Memory], Awaitable[T]], **settings: Any) -> T:
    """Ask the memory of a server from a laptop."""
    return in_memory(home, question, server=url, server_token=token, **settings)


@contextmanager
def answering(*answers: tuple[int, bytes, dict[str, str]]) -> Generator[str]:
    """Run a server that gives these answers (status, body, headers), the last one again and again; yield its address."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body, headers = left.pop(0) if len(left) > 1 else left[0]
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 so it is called there
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_address[1]}/mcp"
        http.shutdown()
