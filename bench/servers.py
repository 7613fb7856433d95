"""Measures the server as clients see it: the time to answer `initialize`, and its memory after 100 searches.

The floor is `bench/bare_server.py`, started by the same interpreter in the same run. The two are started alternately,
so that other work on the machine affects both. Memory is read from /proc, so on Linux only.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Timer
from time import perf_counter
from typing import Any

import anyio
import anyio.to_thread
from tqdm import tqdm

from bench.stats import timings_ms
from mcp_memory.core.process_registry import all_processes

HEAVY = ("litellm", "model2vec", "tokenizers", "safetensors", "numpy", "tiktoken", "apsw", "simsimd", "mermaidx")
"""Modules that must not be loaded before `initialize` is answered, and modules that may be but are reported."""

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
_INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
_TOO_LONG_S = 60.0
_SETTLING_S = 3.0
_IMPORTED = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """How to start a server: `command` as clients do, `script` as an argument of Python."""

    command: Sequence[str]
    script: Sequence[str]
    env: Mapping[str, str]


def ours(home: Path) -> Server:
    """Return the installed server, on a home and with no other setting."""
    installed = Path(sys.executable).with_name("mcp-memory")
    return Server(
        command=[str(installed), "serve"] if installed.exists() else [sys.executable, "-m", "mcp_memory", "serve"],
        script=["-m", "mcp_memory", "serve"],
        env=_environment() | {"MCP_MEMORY_HOME": str(home)},
    )


def bare() -> Server:
    script = ["-P", str(Path(__file__).with_name("bare_server.py"))]  # or files beside it would hide the library's
    return Server(command=[sys.executable, *script], script=script, env=_environment())


def _environment() -> dict[str, str]:
    """Return our environment without settings of the memory, and with compiled modules, as in an installed package.

    Without them, both servers take twice as long to start.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("MCP_MEMORY_")}
    own.pop("PYTHONDONTWRITEBYTECODE", None)
    return own


# --- start-up ---------------------------------------------------------------------------------------


def start_up(*, pairs: int) -> dict[str, Any]:
    """Time both servers alternately, on empty homes: from spawn to the answers of `initialize` and `tools/list`.

    Ours is timed for the first client, which waits for the daemon to start, and for a `next` client beside it. `ratio`
    is the median of the ratios within pairs for the first, `heavy` the modules of HEAVY that were loaded by
    `initialize`, and `extra_import_ms` the imports that the bare server does not have, by package, longest first.
    """
    with TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        imported, floor = (_imports(server) for server in (ours(Path(folder) / "first"), bare()))  # and warms the files
        timed: list[tuple[tuple[float, float], tuple[float, float], tuple[float, float]]] = []
        for number in tqdm(range(pairs), desc="start", unit="pair", leave=False):
            own = ours(Path(folder) / f"{number}")
            with _started(own) as (first, _), _started(own) as (following, _), _started(bare()) as (plain, _):
                timed.append((first, following, plain))
    return {
        "pairs": pairs,
        "ours_ms": _ms([first for (first, _), _, _ in timed]),
        "next_ms": _ms([following for _, (following, _), _ in timed]),
        "bare_ms": _ms([plain for _, _, (plain, _) in timed]),
        "ratio": round(median(first / plain for (first, _), _, (plain, _) in timed), 3),
        "tools_list_ms": _ms([first for (_, first), _, _ in timed]),
        "bare_tools_list_ms": _ms([plain for _, _, (_, plain) in timed]),
        "heavy": [name for name in HEAVY if name in imported],
        "modules": {"ours": len(imported), "bare": len(floor)},
        "extra_import_ms": _by_package({name: us for name, us in imported.items() if name not in floor}),
    }


@contextmanager
def _started(server: Server) -> Generator[tuple[tuple[float, float], subprocess.Popen[bytes]]]:
    """Start a server that runs until the block ends.

    Yields the seconds from spawn to the answer of `initialize`, and from there to that of `tools/list`.
    """
    start = perf_counter()
    with subprocess.Popen(
        server.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(server.env)
    ) as process:
        try:
            initialized, listed = _answered(process, [_INITIALIZE], [_INITIALIZED, _LIST])
            yield (initialized - start, listed - initialized), process
        finally:
            process.kill()


def _imports(server: Server) -> dict[str, int]:
    """Return the microseconds that each module took to import, of those loaded when `initialize` is answered."""
    with TemporaryFile("w+", encoding="utf-8") as log:
        command = [sys.executable, "-X", "importtime", *server.script]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=dict(server.env)
        ) as process:
            _answered(process, [_INITIALIZE])
            process.kill()
        log.seek(0)
        return {module: int(us) for us, module in _IMPORTED.findall(log.read())}


def _answered(process: subprocess.Popen[bytes], *sendings: Sequence[Mapping[str, Any]]) -> list[float]:
    """Send groups of messages, each after the answer to the one before; return the times of the answers."""
    assert process.stdin is not None
    assert process.stdout is not None
    alarm = Timer(_TOO_LONG_S, process.kill)
    alarm.start()
    moments: list[float] = []
    try:
        for messages in sendings:
            process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
            process.stdin.flush()
            answer = process.stdout.readline()
            moments.append(perf_counter())
            if b'"result"' not in answer:
                raise RuntimeError(f"{process.args!r} did not answer {messages[-1]['method']} but {answer[:200]!r}")
    finally:
        alarm.cancel()
    return moments


def _by_package(modules: Mapping[str, int], most: int = 8) -> dict[str, float]:
    packages: dict[str, int] = {}
    for name, us in modules.items():
        package = name.partition(".")[0]
        packages[package] = packages.get(package, 0) + us
    return {name: round(us / 1_000, 1) for name, us in sorted(packages.items(), key=lambda item: -item[1])[:most]}


def _ms(seconds: Sequence[float]) -> float:
    return round(1_000 * median(seconds), 1)


# --- weight -----------------------------------------------------------------------------------------


async def weigh(server: Server, questions: Sequence[str], *, clients: int = 1) -> dict[str, Any]:
    """Ask the questions through real clients in turn; return the resident megabytes, and the round trips.

    The megabytes are those of all processes that serve the clients, our daemon among them. The first question is sent
    once the server has opened its store, which it does by itself after `tools/list`.
    """
    from mcp import Client, StdioServerParameters

    import_module("jsonschema.validators")  # the client imports it with the first answer

    home = Path(server.env.get("MCP_MEMORY_HOME", ""))
    # An earlier daemon is about to end.
    while home != Path() and await anyio.to_thread.run_sync(all_processes, home):  # noqa: ASYNC110 no event exists
        await anyio.sleep(0.1)
    there_before = _descendants()
    parameters = StdioServerParameters(command=server.command[0], args=list(server.command[1:]), env=dict(server.env))
    round_trips: list[float] = []
    async with AsyncExitStack() as stack:
        connected = [await stack.enter_async_context(Client(parameters)) for _ in range(clients)]
        for client in connected:
            await client.list_tools()
        await anyio.sleep(_SETTLING_S)
        at_rest = _sum(map(memory_of, _descendants() - there_before))
        for number, question in enumerate(tqdm(questions, desc="server", unit="search", leave=False)):
            start = perf_counter()
            answer = await connected[number % clients].call_tool("conversation_search", {"query": question})
            round_trips.append(perf_counter() - start)
            if answer.is_error:
                raise RuntimeError(f"the server refused {question!r}: {answer.content}")
        memory = _sum(map(memory_of, _descendants() - there_before))
    return {
        "resident_at_rest_mb": at_rest.get("VmRSS"),
        "resident_mb": memory.get("VmRSS"),
        "peak_mb": memory.get("VmHWM"),
        "files_mb": memory.get("RssFile"),
        "first_ms": round(1_000 * round_trips[0], 1),
        "round_trip_ms": timings_ms(round_trips[1:]),
    }


def _sum(figures: Iterable[Mapping[str, float]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in figures:
        total.update(each)  # pyright: ignore[reportArgumentType] a Counter adds floats too
    return total


def _descendants() -> set[int]:
    """Return the processes that this one started, and those that they started; none if there is no /proc."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # ended since it was listed
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, waiting = set[int](), [os.getpid()]
    while waiting:
        started = children.get(waiting.pop(), [])
        found.update(started)
        waiting += started
    return found


def memory_of(pid: int) -> dict[str, float]:
    """Return the values of /proc for a process, in megabytes, such as `VmRSS`; none if there is no process."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return {}
    kilobytes = dict(re.findall(r"^(Vm\w+|Rss\w+):\s+(\d+) kB$", status, re.MULTILINE))
    return {name: round(int(value) / 1_024, 1) for name, value in kilobytes.items()}
