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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Timer
from time import perf_counter
from typing import Any

import anyio
from tqdm import tqdm

from bench.stats import timings_ms

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

    `ratio` is the median of the ratios within pairs, `heavy` the modules of HEAVY that were loaded by `initialize`,
    and `extra_import_ms` the imports that the bare server does not have, by package, longest first.
    """
    with TemporaryDirectory(prefix="bench-") as folder:
        both = ours(Path(folder)), bare()
        imported, floor = (_imports(server) for server in both)  # first: it also brings the files into memory
        timed = [
            tuple(_seconds_to_answers(server) for server in both)
            for _ in tqdm(range(pairs), desc="start", unit="pair", leave=False)
        ]
    return {
        "pairs": pairs,
        "ours_ms": _ms([own for (own, _), _ in timed]),
        "bare_ms": _ms([bare for _, (bare, _) in timed]),
        "ratio": round(median(own / bare for (own, _), (bare, _) in timed), 3),
        "tools_list_ms": _ms([own for (_, own), _ in timed]),
        "bare_tools_list_ms": _ms([bare for _, (_, bare) in timed]),
        "heavy": [name for name in HEAVY if name in imported],
        "modules": {"ours": len(imported), "bare": len(floor)},
        "extra_import_ms": _by_package({name: us for name, us in imported.items() if name not in floor}),
    }


def _seconds_to_answers(server: Server) -> tuple[float, float]:
    """Return the seconds from spawn to the answer of `initialize`, and from there to that of `tools/list`."""
    start = perf_counter()
    with subprocess.Popen(
        server.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(server.env)
    ) as process:
        initialized, listed = _answered(process, [_INITIALIZE], [_INITIALIZED, _LIST])
    return initialized - start, listed - initialized


def _imports(server: Server) -> dict[str, int]:
    """Return the microseconds that each module took to import, of those loaded when `initialize` is answered."""
    with TemporaryFile("w+", encoding="utf-8") as log:
        command = [sys.executable, "-X", "importtime", *server.script]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=dict(server.env)
        ) as process:
            _answered(process, [_INITIALIZE])
        log.seek(0)
        return {module: int(us) for us, module in _IMPORTED.findall(log.read())}


def _answered(process: subprocess.Popen[bytes], *sendings: Sequence[Mapping[str, Any]]) -> list[float]:
    """Send groups of messages, each after the answer to the one before; return the times of the answers.

    The server is killed immediately after the last answer, before it does anything else.
    """
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
        process.kill()
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


async def weigh(server: Server, questions: Sequence[str]) -> dict[str, Any]:
    """Ask the questions through a real client; return the server's resident megabytes, and its round trips.

    The first question is sent once the server has opened its store, which it does by itself after `tools/list`.
    """
    from mcp import Client, StdioServerParameters

    import_module("jsonschema.validators")  # the client imports it with the first answer

    there_before = _children()
    parameters = StdioServerParameters(command=server.command[0], args=list(server.command[1:]), env=dict(server.env))
    round_trips: list[float] = []
    async with Client(parameters) as client:
        await client.list_tools()
        await anyio.sleep(_SETTLING_S)
        at_rest = [memory_of(pid) for pid in _children() - there_before]
        for question in tqdm(questions, desc="server", unit="search", leave=False):
            start = perf_counter()
            answer = await client.call_tool("conversation_search", {"query": question})
            round_trips.append(perf_counter() - start)
            if answer.is_error:
                raise RuntimeError(f"the server refused {question!r}: {answer.content}")
        memory = [memory_of(pid) for pid in _children() - there_before]
    return {
        "resident_at_rest_mb": at_rest[0]["VmRSS"] if at_rest else None,
        "resident_mb": memory[0]["VmRSS"] if memory else None,
        "peak_mb": memory[0]["VmHWM"] if memory else None,
        "files_mb": memory[0]["RssFile"] if memory else None,
        "first_ms": round(1_000 * round_trips[0], 1),
        "round_trip_ms": timings_ms(round_trips[1:]),
    }


def _children() -> set[int]:
    """Return the child processes of this one; none if there is no /proc."""
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # ended since it was listed
            continue
        if int(fields[1]) == os.getpid():
            found.add(int(stat.parent.name))
    return found


def memory_of(pid: int) -> dict[str, float]:
    """Return the values of /proc for a process, in megabytes, such as `VmRSS`; none if there is no process."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return {}
    kilobytes = dict(re.findall(r"^(Vm\w+|Rss\w+):\s+(\d+) kB$", status, re.MULTILINE))
    return {name: round(int(value) / 1_024, 1) for name, value in kilobytes.items()}
