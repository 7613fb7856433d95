"""Measures a home of many turns: `python -m bench.load --turns 1000000 --home DIR`

DIR is filled as by `bench.latency --home`, unless it already is. Everything is measured from outside: the server from
its start to the answer of its first search, searches and capture through the verbs, and the commands `status`,
`doctor`, `verify`, `backup`, each from spawn to exit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import anyio

from bench import servers, vectors
from bench.bed import Bed, filled
from bench.corpus import batches, queries
from bench.stats import timings_ms
from mcp_memory.core.config import Settings
from mcp_memory.service.memory import open_memory

_QUERIES, _WARM = 120, 8
_CAPTURED = 5_000
_SHOWN = 400


def measured(folder: Path | None, turns: int) -> tuple[dict[str, Any], list[str], bool]:
    """Return the figures, lines of text, and whether a command failed. Without a folder, a temporary home is used."""
    with TemporaryDirectory(prefix="big-home-") as other:
        bed = Bed(folder=folder or Path(other), turns=turns)
        found = anyio.run(_measured, bed)
    return found, [*_lines(found)], any(one["code"] for one in found["commands"].values())


async def _measured(bed: Bed) -> dict[str, Any]:
    await filled(bed)
    opened = await _opened(bed.home)
    settled = await anyio.to_thread.run_sync(vectors.settle, bed.home)
    asked = [query.text for query in queries(_QUERIES, turns=bed.turns)]
    return {
        "turns": bed.turns,
        "opened_s": opened,
        "settled_s": round(settled, 1),
        "server": await servers.weigh(servers.ours(bed.home), asked[:40]),
        **await _searched_and_captured(bed, asked),
        "commands": await anyio.to_thread.run_sync(partial(_commands, bed.home)),
        "disk_mb": round(sum(path.stat().st_size for path in bed.home.rglob("*") if path.is_file()) / 2**20),
    }


async def _opened(home: Path) -> float:
    """Open a home once, which migrates an older schema; return the seconds."""
    start = perf_counter()
    async with open_memory(Settings(home=home)) as memory:
        await memory.sessions(limit=1)
    return round(perf_counter() - start, 2)


async def _searched_and_captured(bed: Bed, asked: Sequence[str]) -> dict[str, Any]:
    searches: dict[str, list[float]] = {"conversation_search": [], "memory_search": [], "recall": []}
    captured = 0.0
    async with open_memory(Settings(home=bed.home)) as memory:
        verbs: dict[str, Any] = {name: getattr(memory, name) for name in searches}
        for query in queries(_WARM, turns=bed.turns, seed=0):
            await memory.conversation_search(query.text)
        for query in asked:
            for name, verb in verbs.items():
                start = perf_counter()
                await verb(query)
                searches[name].append(perf_counter() - start)
        for number, turns in enumerate(batches(_CAPTURED)):
            start = perf_counter()
            await memory.record_turns(turns, session=f"more-{os.getpid()}-{number // 4}")
            captured += perf_counter() - start
    return {
        "searches": {name: timings_ms(seconds) for name, seconds in searches.items()},
        "capture_turns_per_s": round(_CAPTURED / captured),
    }


def _commands(home: Path) -> dict[str, dict[str, Any]]:
    with TemporaryDirectory(prefix="big-backup-", dir=home.parent) as folder:
        return {
            " ".join(command): _timed([*command, *more], home)
            for command, more in (
                (["status"], []),
                (["doctor"], []),
                (["verify"], []),
                (["backup"], ["--to", folder]),
            )
        }


def _timed(command: Sequence[str], home: Path) -> dict[str, Any]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MCP_MEMORY_")}
    start = perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "mcp_memory", *command, "--home", str(home)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        said, _ = process.communicate()
        seconds = perf_counter() - start
    return {
        "seconds": round(seconds, 1),
        "code": process.returncode,
        "said": said[-_SHOWN:] if process.returncode else "",
    }


def _lines(found: dict[str, Any]) -> Iterator[str]:
    server = found["server"]
    yield f"{found['turns']:,} turns, {found['disk_mb']:,} MB on disk"
    yield _line("opened", found["opened_s"], f"s   left to the background: {found['settled_s']} s")
    yield _line("server, first answer", server["first_ms"] / 1_000, f"s   then {server['round_trip_ms']['p50']} ms")
    yield _line("server resident", server["resident_mb"] or 0, "MB")
    for name, took in found["searches"].items():
        yield _line(name, took["p50"], f"ms  p95 {took['p95']:.1f}")
    yield _line("capture", found["capture_turns_per_s"], "turns/s")
    for name, ran in found["commands"].items():
        yield _line(f"mcp-memory {name}", ran["seconds"], f"s   exit code {ran['code']}" if ran["code"] else "s")
        yield from ran["said"].splitlines()


def _line(what: str, figure: float, unit: str) -> str:
    return f"{what:<24}{figure:>10,.1f} {unit}"
