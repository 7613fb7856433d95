"""Many clients at once: `python -m bench.load [--clients 50] [--minutes 10] [--rate R] [--home DIR] [--json FILE]`

One `serve --transport http` gets `rate` calls per second in total from real SDK clients in a few processes
(`load_clients`), at a steady pace, however long the answers take. A row per minute has calls, errors, milliseconds from
the moment a call was due, and the server's resident memory, open files, threads and write-ahead log. The floor is the
bare SDK server at the same rate for one minute. The exit code tells whether there were errors.

A new home is first filled with turns (`--before`): in an empty one, each search takes longer than the last, since there
is more to find, which would look like a server that slows down.

`python -m bench.load --network-ms 1` prints round trips, CPU, log and throughput of a memory in PostgreSQL instead
(`bench.round_trips`), `--turns 1000000 --home DIR` measures a home of that size (`bench.big_home`), and
`--store postgresql` a memory of so many turns in 1,000 spaces in PostgreSQL (`bench.shared_store`).

Clients, server and other programs share the machine: compare the figures with their floor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep, time
from typing import Any

import anyio

from bench.corpus import batches, session_of
from bench.servers import memory_of
from bench.stats import percentile
from mcp_memory.core.config import Settings
from mcp_memory.service.memory import open_memory

_BEFORE_TURNS = 5_000
_STORED_TURNS = 300_000
_TURNS_OF_A_STATEMENT = 20
_START_SECONDS = 60.0
_FLOOR_SECONDS = 60.0
_LISTENS = (" listens on ", "Uvicorn running on ")


@dataclass(frozen=True, slots=True)
class _Call:
    due: float
    tool: str
    ms: float
    wrong: str | None


# --- processes --------------------------------------------------------------------------------------


@contextmanager
def running_server(command: Sequence[str], env: dict[str, str], log: Path, path: str) -> Generator[tuple[str, int]]:
    """Start a server; yield its address and process id. Raises unless it ends by itself when it is asked to."""
    with log.open("w", encoding="utf-8") as told:
        process = subprocess.Popen(command, env=env, stderr=told, stdout=told)
    try:
        end = time() + _START_SECONDS
        while not any(mark in log.read_text(encoding="utf-8") for mark in _LISTENS):
            if process.poll() is not None or time() > end:
                raise RuntimeError(f"the server does not start: {log.read_text(encoding='utf-8')[-1_000:]}")
            sleep(0.05)
        said = log.read_text(encoding="utf-8")
        mark = next(mark for mark in _LISTENS if mark in said)
        address = said.partition(mark)[2].split()[0]
        yield (address if address.endswith(path) else address + path), process.pid
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ask(
    url: str, *, clients: int, rate: float, processes: int, seconds: float, tool: str | None, calls: list[_Call]
) -> None:
    """Run the clients, and collect their calls as they are made. All connect before the first call."""
    shares = [clients // processes + (place < clients % processes) for place in range(processes)]
    with ExitStack() as stack:
        running: list[subprocess.Popen[str]] = []
        for place, share in enumerate(shares):
            command = [sys.executable, "-m", "bench.load_clients", url, "--clients", str(share)]
            command += ["--first", str(sum(shares[:place])), "--period", str(clients / rate)]
            command += ["--seconds", str(seconds), *(("--tool", tool) if tool else ())]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            running.append(stack.enter_context(process))
        if not all(_read(process) == "ready" for process in running):
            raise RuntimeError("the clients do not start")
        for process in running:
            assert process.stdin is not None
            process.stdin.write(f"{time() + 1}\n")
            process.stdin.flush()
        threads = [threading.Thread(target=_gather, args=(process, calls)) for process in running]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _read(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    return json.loads(line) if line else None


def _gather(process: subprocess.Popen[str], calls: list[_Call]) -> None:
    assert process.stdout is not None
    calls.extend(_Call(*json.loads(line)) for line in process.stdout)
    if process.wait():
        calls.append(_Call(time(), "client", 0.0, f"a process of clients ended with {process.returncode}"))


async def _live(home: Path, turns: int) -> None:
    """Fill a home with turns, and with a statement for every twentieth of them."""
    async with open_memory(Settings(home=home)) as memory:
        for number, batch in enumerate(batches(turns)):
            await memory.record_turns(batch, session=session_of(number))
            for turn in batch[::_TURNS_OF_A_STATEMENT]:
                await memory.remember(turn.content[-200:], kind="episodic", typed=True)


# --- a run ------------------------------------------------------------------------------------------


def loaded(
    *,
    home: Path,
    clients: int,
    minutes: float,
    rate: float,
    processes: int,
    before: int = 0,
    floor_seconds: float = _FLOOR_SECONDS,
) -> dict[str, Any]:
    """Put the load on both servers; return a row per minute for ours, and the floor."""
    if before and not home.exists():
        anyio.run(_live, home, before)
    env = {name: value for name, value in os.environ.items() if not name.startswith("MCP_MEMORY_")}
    given: dict[str, Any] = {"clients": clients, "rate": rate, "processes": processes}
    with TemporaryDirectory(prefix="load-") as folder, ExitStack() as stack:
        bare = [sys.executable, "-P", str(Path(__file__).with_name("bare_server.py")), "0"]
        floor: list[_Call] = []
        if floor_seconds:
            with running_server(bare, env, Path(folder, "bare.log"), "/mcp") as (url, _):
                seconds = min(floor_seconds, minutes * 60)
                _ask(url, seconds=seconds, tool="conversation_search", calls=floor, **given)
        log = Path(folder, "ours.log")
        ours = [sys.executable, "-m", "mcp_memory", "serve", "--transport", "http", "--port", "0", "--no-token"]
        url, pid = stack.enter_context(running_server(ours, env | {"MCP_MEMORY_HOME": str(home)}, log, "/mcp"))
        calls: list[_Call] = []
        samples: list[dict[str, Any]] = []
        stop = threading.Event()
        watching = threading.Thread(target=_watch, args=(pid, home, samples, stop))
        watching.start()
        try:
            _ask(url, seconds=minutes * 60, tool=None, calls=calls, **given)
        finally:
            stop.set()
            watching.join()
        stack.close()
        rows = [*_rows(calls, samples)]
        return {
            **given,
            "minutes": rows,
            "floor": _figures(floor),
            "all": _figures(calls),
            "tools": {tool: _figures([call for call in calls if call.tool == tool]) for tool in _tools(calls)},
            "errors": Counter(call.wrong for call in calls if call.wrong).most_common(10),
            "log": [line for line in log.read_text(encoding="utf-8").splitlines() if "listens on" not in line][:20],
        }


def _watch(pid: int, home: Path, samples: list[dict[str, Any]], stop: threading.Event) -> None:
    """Record the server's resources every five seconds."""
    while not stop.wait(5):
        memory, wal = memory_of(pid), home / "memory.db-wal"
        proc = Path(f"/proc/{pid}")
        samples.append(
            {
                "at": time(),
                "resident_mb": memory.get("VmRSS", 0.0),
                "files": len([*(proc / "fd").iterdir()]) if proc.exists() else 0,
                "threads": len([*(proc / "task").iterdir()]) if proc.exists() else 0,
                "wal_mb": round(wal.stat().st_size / 2**20, 1) if wal.exists() else 0.0,
            }
        )


def _rows(calls: Sequence[_Call], samples: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row per minute; of the server's resources, the maximum in it."""
    if not calls:
        return
    first = min(call.due for call in calls)
    by_minute: dict[int, list[_Call]] = {}
    for call in calls:
        by_minute.setdefault(int((call.due - first) // 60), []).append(call)
    for minute, made in sorted(by_minute.items()):
        held = [one for one in samples if minute == int((one["at"] - first) // 60)]
        names = ("resident_mb", "files", "threads", "wal_mb")
        yield {**_figures(made), **{name: max((one[name] for one in held), default=0) for name in names}}


def _figures(calls: Sequence[_Call]) -> dict[str, Any]:
    took = [call.ms for call in calls] or [0.0]
    return {
        "calls": len(calls),
        "errors": sum(call.wrong is not None for call in calls),
        **{f"p{share}_ms": round(percentile(took, share), 1) for share in (50, 95, 99)},
    }


def _tools(calls: Sequence[_Call]) -> list[str]:
    return sorted({call.tool for call in calls})


# --- for people -------------------------------------------------------------------------------------


def table(found: dict[str, Any]) -> Iterator[str]:
    """Yield the figures as lines of text."""
    pace = f"{found['clients']} clients in {found['processes']} processes, {found['rate']:g} calls a second"
    yield pace
    took, held = f"{'p50 ms':>9}{'p95':>9}{'p99':>9}", f"{'MB':>8}{'files':>7}{'threads':>9}{'WAL MB':>8}"
    yield f"{'minute':<22}{'calls':>7}{'errors':>8}{took}{held}"
    for number, row in enumerate(found["minutes"], start=1):
        held = f"{row['resident_mb']:>8.0f}{row['files']:>7}{row['threads']:>9}{row['wal_mb']:>8}"
        yield _row(str(number), row) + held
    yield _row("all", found["all"])
    yield _row("bare SDK server", found["floor"])
    for tool, row in found["tools"].items():
        yield _row(f"  {tool}", row)
    rows = found["minutes"][1:]
    if len(rows) > 1:
        moved = rows[-1]["resident_mb"] - rows[0]["resident_mb"]
        yield f"memory from minute 2 to minute {len(rows) + 1}: {moved:+.1f} MB"
    for wrong, times in found["errors"]:
        yield f"{times} ×: {wrong}"
    yield from found["log"]


def _row(what: str, row: dict[str, Any]) -> str:
    took = f"{row['p50_ms']:>9}{row['p95_ms']:>9}{row['p99_ms']:>9}"
    return f"{what:<22}{row['calls']:>7,}{row['errors']:>8}{took}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="bench.load", description="Many clients at once over HTTP.")
    parser.add_argument("--clients", type=int, default=50, help="[default: %(default)s]")
    parser.add_argument("--minutes", type=float, default=10, help="[default: %(default)s]")
    parser.add_argument("--rate", type=float, default=10, help="calls a second, of all [default: %(default)s]")
    parser.add_argument("--processes", type=int, default=3, help="that the clients run in [default: %(default)s]")
    parser.add_argument("--before", type=int, default=_BEFORE_TURNS, help="turns it begins with [default: %(default)s]")
    parser.add_argument("--home", type=Path, metavar="DIR", help="of the server, or the big one; else thrown away")
    parser.add_argument("--turns", type=int, metavar="N", help="measure a home of so many turns instead")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument(
        "--store", metavar="URL", help="measure PostgreSQL: `postgresql` starts one, else an empty database"
    )
    parser.add_argument(
        "--largest", type=int, metavar="N", help="turns of its largest space [default: a third, at most 100,000]"
    )
    parser.add_argument(
        "--network-ms", type=float, metavar="MS", help="measure round trips to PostgreSQL, with so much added to each"
    )
    options = parser.parse_args(arguments)
    if options.network_ms is not None:
        from bench import round_trips

        found = round_trips.measured(options.network_ms, turns=options.turns or _BEFORE_TURNS)
        lines, wrong = round_trips.lines(found), False
    elif options.store:
        from bench import shared_store

        url = None if options.store == "postgresql" else options.store
        turns = options.turns or _STORED_TURNS
        found = shared_store.measured(url, options.home, turns, largest=options.largest)
        lines, wrong = shared_store.lines(found), False
    elif options.turns:
        from bench import big_home

        found, lines, wrong = big_home.measured(options.home, options.turns)
    else:
        with TemporaryDirectory(prefix="load-home-") as folder:
            found = loaded(
                home=options.home or Path(folder, "home"),
                clients=options.clients,
                minutes=options.minutes,
                rate=options.rate,
                processes=min(options.processes, options.clients),
                before=options.before,
            )
        lines, wrong = table(found), found["all"]["errors"] or not found["all"]["calls"]
    print("\n".join(lines))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
