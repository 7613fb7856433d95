"""A team's memory on this machine: PostgreSQL with a synchronous standby, servers, a load balancer, and their clients.

Everything is real: PostgreSQL from `tests.postgres_server`, a TCP proxy before the primary that can fail, `mcp-memory
serve --transport http` in processes, HAProxy with the shipped configuration if it is installed (else
`tests.server.balancer`), and clients of the MCP SDK over HTTP.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from bench.load import running_server
from tests.postgres.proxy import Proxy, proxied
from tests.postgres_server import PostgresServer, running
from tests.server.balancer import balanced

DATABASE, USER, OWNER = "memory", "memory", "owner"
SPACES = ["default", "writer-0", "writer-1"]
PATIENCE = 45.0
"""Seconds after which a client gives up."""

CONFIGURATION = Path(__file__).parent.parent / "deploy" / "haproxy.cfg"
_FAKED = "/usr/lib/{}-linux-gnu/faketime/libfaketimeMT.so.1"


class Unanswered(Exception):
    """A call that failed; the message is what the client read."""


@dataclass(frozen=True, slots=True)
class Call:
    """A turn that a client sent; `error` is what it read instead of an acknowledgement."""

    space: str
    text: str
    began: float
    seconds: float
    error: str | None
    duplicate: bool = False
    """Whether the turn was stored before."""


@dataclass(slots=True)
class Calls:
    """The calls of clients that write until they are stopped. A turn that was not acknowledged is sent again."""

    made: list[Call] = field(default_factory=list[Call])
    stopped: bool = False

    @property
    def acknowledged(self) -> list[str]:
        return [call.text for call in self.made if call.error is None]

    @property
    def spaces(self) -> list[str]:
        return SPACES[1:]

    def wait(self, since: float, *, acknowledged: bool = False) -> None:
        """Wait until every client has an answer (or an acknowledgement) to a call that it began after `since`.

        Raises TimeoutError.
        """
        until = time.monotonic() + 2 * PATIENCE
        while {call.space for call in self.made if call.began >= since and not (acknowledged and call.error)} != {
            *self.spaces
        }:
            if time.monotonic() > until:
                what = "acknowledgement" if acknowledged else "answer"
                raise TimeoutError(f"no {what} within {2 * PATIENCE:.0f} s; the last answer: {self.made[-1].error}")
            time.sleep(0.02)


@dataclass(slots=True)
class Fleet:
    """A running team's memory. `url` is the address of the balancer, `addresses` those of the servers."""

    primary: PostgresServer
    standby: PostgresServer | None
    proxy: Proxy
    folder: Path
    portal: BlockingPortal
    stack: ExitStack
    addresses: list[str] = field(default_factory=list[str])
    logs: list[Path] = field(default_factory=list[Path])
    url: str = ""
    token: str = ""

    @property
    def store(self) -> str:
        """The database as the servers reach it: through the proxy, or the standby if that was promoted."""
        hosts = [f"127.0.0.1:{self.proxy.port}", *([f"127.0.0.1:{self.standby.port}"] if self.standby else [])]
        return f"postgresql://{USER}@{','.join(hosts)}/{DATABASE}"

    @property
    def environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("MCP_MEMORY_")}
        return own | {
            "MCP_MEMORY_HOME": str(self.folder / "home"),
            "MCP_MEMORY_STORE": self.store,
            "MCP_MEMORY_EMBEDDER": "none",
            "MCP_MEMORY_READ_SENTENCES": "false",
            "MCP_MEMORY_RATE_LIMIT": "0",
        }

    def serve(self, **environment: str) -> str:
        """Start a server with these variables too; return its address, such as `http://127.0.0.1:1234`."""
        log = self.folder / f"server-{len(self.logs)}.log"
        command = [sys.executable, "-m", "mcp_memory", "serve", "--transport", "http", "--port", "0"]
        url, _ = self.stack.enter_context(running_server(command, self.environment | environment, log, "/mcp"))
        self.logs.append(log)
        self.addresses.append(url.removesuffix("/mcp"))
        return self.addresses[-1]

    def balance(self) -> None:
        """Put a load balancer before the servers."""
        if has_haproxy():
            self.url = self.stack.enter_context(haproxy(self.addresses, self.folder))
        else:
            balancer = self.stack.enter_context(self.portal.wrap_async_context_manager(balanced(*self.addresses)))
            self.url = balancer.url.removesuffix("/mcp")

    def call(self, tool: str, arguments: dict[str, Any], *, space: str = "default", url: str = "") -> str:
        """Make a call as a new client; return the text of the answer. Raises Unanswered."""
        return self.portal.call(call_once, (url or self.url, self.token, space), tool, arguments)

    @contextmanager
    def writing(self, name: str) -> Generator[Calls]:
        """Let two clients record turns, each into a separate space, until the end of the block."""
        calls = Calls()
        ended = [
            self.portal.start_task_soon(_write, (self.url, self.token, space), f"{name}, {space}", calls)
            for space in calls.spaces
        ]
        try:
            yield calls
        finally:
            calls.stopped = True
            for writer in ended:
                writer.result()

    def cli(self, *arguments: str, seconds: float = 60, **environment: str) -> tuple[int, str]:
        """Run a command of `mcp-memory` with the settings of a server; return its exit code and what it printed.

        The exit code is -1 if it does not end within `seconds`.
        """
        command = [sys.executable, "-m", "mcp_memory", *arguments]
        try:
            done = subprocess.run(
                command,
                env=self.environment | environment,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return -1, f"no answer within {seconds:.0f} s"
        return done.returncode, done.stdout + done.stderr

    def ready(self, server: int = 0) -> tuple[str, float]:
        """Ask a server whether it is ready; return its answer and the seconds that it took."""
        began = time.monotonic()
        try:
            answer = httpx2.get(f"{self.addresses[server]}/readyz", timeout=PATIENCE)
        except httpx2.TimeoutException:
            return "no answer", time.monotonic() - began
        return f"{answer.status_code} {answer.text}".strip(), time.monotonic() - began

    def logged(self) -> list[str]:
        """Return the messages of all servers so far, without time and level, each once."""
        lines = [line for log in self.logs for line in log.read_text(encoding="utf-8").splitlines()]
        told = [line for line in lines if "listens on" not in line]
        return [*dict.fromkeys(re.sub(r"^\S+[ T]\S+ +(?=[A-Z]+)", "", line) for line in told)]


@contextmanager
def fleet(*, servers: int = 2, standby: bool = True, balancer: bool = True) -> Generator[Fleet]:
    """Start a team's memory with fsync on; everything ends and is deleted with the block."""
    with ExitStack() as stack:
        primary = stack.enter_context(running({}))
        primary.make_template()
        made = Fleet(
            primary=primary,
            standby=stack.enter_context(primary.standby()) if standby else None,
            proxy=stack.enter_context(proxied(primary.port)),
            folder=Path(stack.enter_context(TemporaryDirectory(prefix="fleet-"))),
            portal=stack.enter_context(start_blocking_portal()),
            stack=stack.enter_context(ExitStack()),
        )
        spaces = [word for space in SPACES for word in ("--space", space)]
        _, made.token = made.cli("token", "create", "--name", "fleet", *spaces)
        made.token = made.token.split()[0]
        for _ in range(servers):
            made.serve()
        if balancer and servers:
            made.balance()
        yield made


# --- clients ----------------------------------------------------------------------------------------


Target = tuple[str, str, str]
"""Address, token and space of a call."""


async def _write(target: Target, name: str, calls: Calls) -> None:
    count = 0
    while not calls.stopped:
        text, began, error, answer = f"{name}, {count}", time.monotonic(), None, ""
        try:
            answer = await call_once(target, "record_turns", {"turns": [{"role": "user", "content": text}]})
            count += 1
        except Unanswered as failed:
            error = str(failed)
        seconds = time.monotonic() - began
        calls.made.append(Call(target[2], text, began, seconds, error, duplicate="stored before" in answer))
        if error:
            await anyio.sleep(0.2)


async def call_once(target: Target, tool: str, arguments: dict[str, Any]) -> str:
    url, token, space = target
    headers = {"Authorization": f"Bearer {token}", "Mcp-Memory-Space": space}
    try:
        with anyio.fail_after(PATIENCE):
            async with (
                httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
                Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
            ):
                answer = await client.call_tool(tool, arguments)
    except TimeoutError:
        raise Unanswered(f"no answer within {PATIENCE:.0f} s") from None
    except Exception as error:  # noqa: BLE001 - whatever breaks the connection is what the client learns
        raise Unanswered(f"{type(_inner(error)).__name__}: {_inner(error)}") from None
    text = " ".join(part.text for part in answer.content if isinstance(part, TextContent))
    if answer.is_error:
        raise Unanswered(text)
    return text


def _inner(error: BaseException) -> BaseException:
    inner: Sequence[BaseException] = getattr(error, "exceptions", ())
    return _inner(inner[0]) if inner else error


# --- programs of the system -------------------------------------------------------------------------


def has_haproxy() -> bool:
    return shutil.which("haproxy") is not None


@contextmanager
def haproxy(
    servers: Sequence[str],
    folder: Path,
    configuration: Path = CONFIGURATION,
    places: Mapping[str, str] | None = None,
    *,
    scheme: str = "http",
) -> Generator[str]:
    """Run HAProxy with a shipped configuration before servers of this machine, and yield its address.

    `servers` take the places of those in the configuration, in order; `places` are the paths of other files.
    """
    port = _free_port()
    here = folder / "haproxy.cfg"
    here.write_text(configured(port, servers, configuration, places), encoding="utf-8")
    with (folder / "haproxy.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(["haproxy", "-db", "-f", here], stdout=log, stderr=log)
    try:
        until, url = time.monotonic() + 20, f"{scheme}://127.0.0.1:{port}"
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((folder / "haproxy.log").read_text(encoding="utf-8")[-1_000:])
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()


def configured(
    port: int,
    servers: Sequence[str],
    configuration: Path = CONFIGURATION,
    places: Mapping[str, str] | None = None,
) -> str:
    """Return a shipped configuration that listens on `port` of loopback, with these servers instead of its own."""
    text = configuration.read_text(encoding="utf-8").replace("bind :8765", f"bind 127.0.0.1:{port}")
    for path, here in (places or {}).items():
        text = text.replace(path, here)
    left = [server.removeprefix("http://") for server in servers]
    known: dict[str, str] = {}
    lines: list[str] = []
    for line in text.splitlines():
        named = re.fullmatch(r"(\s+server (\w+)) \w+:8765(.*)", line)
        if named is None:
            lines.append(line)
            continue
        if named[2] not in known and left:
            known[named[2]] = left.pop(0)
        if named[2] in known:
            lines.append(f"{named[1]} {known[named[2]]}{named[3]}")
    return "\n".join(lines) + "\n"


def _answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/readyz", timeout=5, verify=False).status_code == 200
    except httpx2.HTTPError:
        return False


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def clock_ahead(days: int) -> dict[str, str] | None:
    """Return variables that set a process's clock so many days ahead, by libfaketime; None if it is not installed."""
    library = Path(_FAKED.format(os.uname().machine))
    if not library.exists():
        return None
    return {"LD_PRELOAD": str(library), "FAKETIME": f"+{days}d", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
