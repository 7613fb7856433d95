"""Round trips, CPU and log of a memory in PostgreSQL: `python -m bench.load --network-ms 1 [--turns N] [--json FILE]`

Starts a PostgreSQL server with a synchronous standby, default durability, and fills a space with N turns. Then, each
with its floor from the same run:

* statements, transactions and round trips of each verb, BEGIN and COMMIT included, as they reach PostgreSQL;
* the time of a search and a recall without and with added latency: a proxy passes on everything that the memory or
  PostgreSQL sends half of `--network-ms` later, so a round trip takes that much longer; the floor is `SELECT 1`;
* CPU per recall over HTTP of `serve` and of all processes of PostgreSQL; the floor is the bare SDK server;
* record_turns over HTTP, two turns a call, by eight clients that send the next call when the last is answered, right
  after a checkpoint and again: calls per second, times, and bytes of write-ahead log per turn, with those of upkeep in
  the background. Floors: a bare INSERT and COMMIT on eight connections, and the bare SDK server.

Clients, servers and other programs share the machine: compare the figures with their floors. CPU is read from /proc.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep, time
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import psycopg

from bench.corpus import batches, queries, session_of
from bench.load import running_server
from bench.stats import percentile, timings_ms
from mcp_memory.core.config import Settings
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from tests.postgres.statements import Wire, wire_to
from tests.postgres_server import PostgresServer, running

_SERVER = {"shared_buffers": "512MB", "max_wal_size": "4GB"}
_SPACE = "team"
_QUERIES = 40
_CLIENTS = 8
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

Figures = dict[str, Any]


def measured(network_ms: float, *, turns: int, seconds: float = 10.0, asked: int = _QUERIES) -> Figures:
    """Return the figures, of `asked` calls of each kind, and of `seconds` of load."""
    with TemporaryDirectory(prefix="bench-") as folder, running(_SERVER) as server:
        server.make_template()
        url = server.create_memory()
        with server.standby():
            anyio.run(_fill, url, Path(folder), turns)
            return {
                "turns": turns,
                "network_ms": network_ms,
                "verbs": anyio.run(_count, server, url, Path(folder)),
                "times": {
                    "0": anyio.run(_times, url, Path(folder), asked),
                    f"{network_ms:g}": _times_through_proxy(server, url, Path(folder), asked, network_ms),
                },
                **_over_http(server, url, Path(folder), seconds, asked),
            }


async def _fill(url: str, home: Path, turns: int) -> None:
    async with open_memory(Settings(home=home, store=url, space=_SPACE)) as memory:
        for number, batch in enumerate(batches(turns)):
            await memory.record_turns(batch, session=session_of(number))
            await memory.remember(batch[0].content[-200:], kind="episodic", typed=True)
        await memory.conversation_search("what is embedded by now")


# --- statements and times ---------------------------------------------------------------------------


def _calls(memory: Memory, questions: Sequence[str]) -> dict[str, Callable[[], Awaitable[object]]]:
    asked = cycle(questions)
    said = (turn for batch in batches(5_000, seed=4) for turn in batch)

    def new_turns() -> list[NewTurn]:
        return [next(said), next(said)]

    return {
        "conversation_search": lambda: memory.conversation_search(next(asked)),
        "recall": lambda: memory.recall(next(asked)),
        "record_turns": lambda: memory.record_turns(new_turns(), session="bench"),
        "remember": lambda: memory.remember(next(said).content[:120], kind="episodic", typed=True),
    }


async def _count(server: PostgresServer, url: str, home: Path) -> Figures:
    """Return the statements, transactions and round trips of each verb, after statements were prepared."""
    found: Figures = {}
    with wire_to(server.port) as wire:
        async with open_memory(Settings(home=home, store=wire.url(url), space=_SPACE)) as memory:
            for verb, call in _calls(memory, [query.text for query in queries(20, turns=1_000)]).items():
                for _ in range(6):
                    await call()
                await anyio.to_thread.run_sync(wire.settle)
                with wire.recording() as sent:
                    await call()
                found[verb] = {
                    "statements": sent.statements + 2 * sent.transactions,
                    "transactions": sent.transactions,
                    "round_trips": sent.round_trips,
                }
    return found


async def _times(url: str, home: Path, asked: int) -> Figures:
    """Return milliseconds of searches and recalls, and of `SELECT 1`."""
    questions = [query.text for query in queries(asked, turns=1_000, seed=5)]
    async with open_memory(Settings(home=home, store=url, space=_SPACE)) as memory:
        calls = _calls(memory, questions)
        found: Figures = {}
        for verb in ("conversation_search", "recall"):
            for _ in range(6):
                await calls[verb]()
            found[verb] = timings_ms([await _seconds(calls[verb]) for _ in range(asked)])
    with psycopg.connect(url, autocommit=True) as con:
        took: list[float] = []
        for _ in range(asked):
            start = perf_counter()
            con.execute("SELECT 1").fetchone()
            took.append(perf_counter() - start)
    return {**found, "SELECT 1": timings_ms(took)}


async def _seconds(call: Callable[[], Awaitable[object]]) -> float:
    start = perf_counter()
    await call()
    return perf_counter() - start


def _times_through_proxy(server: PostgresServer, url: str, home: Path, asked: int, network_ms: float) -> Figures:
    """Run `_times` through a proxy in a process of its own, which takes no time from the memory's threads."""
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_run_proxy, args=(server.port, network_ms / 2_000, theirs))
    process.start()
    try:
        wire = Wire(server.port, port=ours.recv())
        return anyio.run(_times, wire.url(url), home, asked)
    finally:
        ours.send("end")
        process.join()


def _run_proxy(port: int, delay: float, parent: Connection) -> None:
    with wire_to(port, delay=delay) as wire:
        parent.send(wire.port)
        parent.recv()


# --- over HTTP --------------------------------------------------------------------------------------


class _Client:
    """An MCP client on one connection: of the older protocol, and with no more work than a load needs."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._con = http.client.HTTPConnection(place.hostname or "", place.port or 80, timeout=120)
        self._path = place.path
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self._post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked})
        self._headers["MCP-Protocol-Version"] = "2025-11-25"
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, arguments: Figures) -> None:
        """Call a tool. Raises RuntimeError if it fails."""
        params = {"name": tool, "arguments": arguments}
        answer = self._post({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
        if b'"result"' not in answer or b'"isError":true' in answer:
            raise RuntimeError(f"{tool}: {answer[:300]!r}")

    def close(self) -> None:
        self._con.close()

    def _post(self, message: Figures) -> bytes:
        self._con.request("POST", self._path, json.dumps(message), self._headers)
        response = self._con.getresponse()
        answer = response.read()
        if session := response.headers.get("Mcp-Session-Id"):
            self._headers["Mcp-Session-Id"] = session
        return answer


@contextmanager
def _client(url: str) -> Generator[_Client]:
    client = _Client(url)
    try:
        yield client
    finally:
        client.close()


def _over_http(server: PostgresServer, url: str, home: Path, seconds: float, asked: int) -> Figures:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MCP_MEMORY_")}
    bare = [sys.executable, "-P", str(Path(__file__).with_name("bare_server.py")), "0"]
    ours = [sys.executable, "-m", "mcp_memory", "serve", "--transport", "http", "--port", "0", "--no-token"]
    settings = {"MCP_MEMORY_HOME": str(home), "MCP_MEMORY_STORE": url, "MCP_MEMORY_SPACE": _SPACE}
    postmaster = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    questions = [query.text for query in queries(asked, turns=1_000, seed=6)]
    with running_server(bare, env, home / "bare.log", "/mcp") as (address, pid), _client(address) as client:
        floor_cpu = _cpu_per_call([pid], partial(client.call, "conversation_search"), questions)
        floor_load = _load(address, "conversation_search", seconds)
    with running_server(ours, env | settings, home / "ours.log", "/mcp") as (address, pid), _client(address) as client:
        recall = partial(client.call, "recall")
        for question in questions[:10]:
            recall({"query": question})
        cpu = _cpu_per_call([pid, postmaster], recall, questions)
        load = {when: _load_with_log(server, address, seconds, when) for when in ("after a checkpoint", "later")}
    return {
        "cpu_ms": {"serve": cpu[0], "postgresql": cpu[1], "bare SDK server": floor_cpu[0]},
        "record_turns": {
            **load,
            "bare INSERT and COMMIT": _bare_inserts(url, seconds),
            "bare SDK server": floor_load,
        },
    }


def _cpu_per_call(pids: Sequence[int], call: Callable[[Figures], object], questions: Sequence[str]) -> list[float]:
    """Return milliseconds of CPU per call, for each of these processes with its children."""
    before = [_cpu_seconds(pid) for pid in pids]
    for question in questions:
        call({"query": question})
    after = [_cpu_seconds(pid) for pid in pids]
    return [round(1_000 * (then - first) / len(questions), 1) for first, then in zip(before, after, strict=True)]


def _cpu_seconds(pid: int) -> float:
    """Return the CPU of a process and of its children, running and ended."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if stat.parent.name == str(pid):
            total += sum(map(int, fields[11:15]))  # with ended children
        elif fields[1] == str(pid):
            total += sum(map(int, fields[11:13]))
    return total / _TICKS


def _load_with_log(server: PostgresServer, address: str, seconds: float, when: str) -> Figures:
    """Run the load, and count the write-ahead log until the background has embedded its turns."""
    position = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
    with psycopg.connect(server.url(), autocommit=True) as con:
        if when == "after a checkpoint":
            con.execute("CHECKPOINT")
        before = con.execute(position).fetchone()
        found = _load(address, "record_turns", seconds)
        with _client(address) as client:
            client.call("conversation_search", {"query": "what is embedded by now"})
        after = con.execute(position).fetchone()
    assert before is not None
    assert after is not None
    return {**found, "log_kb_per_turn": round(float(after[0] - before[0]) / 1_000 / max(1, 2 * found["calls"]), 2)}


def _load(address: str, tool: str, seconds: float) -> Figures:
    """Let clients, in two processes, each call a tool again and again; return calls per second and their times."""
    begin = time() + 3
    half = _CLIENTS // 2
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        parts = [processes.submit(_run_clients, address, tool, half, place, begin, seconds) for place in range(2)]
        return _rates([one for part in parts for one in part.result()], seconds)


def _rates(took: Sequence[float], seconds: float) -> Figures:
    times = {**timings_ms(took), "p99": round(1_000 * percentile(took, 99), 1)} if took else {}
    return {"calls": len(took), "calls_per_s": round(len(took) / seconds), **times}


def _run_clients(address: str, tool: str, clients: int, process: int, begin: float, seconds: float) -> list[float]:
    texts = [turn.content for batch in batches(5_000, seed=7 + process) for turn in batch]

    def run(number: int) -> list[float]:
        with _client(address) as client:
            said = iter(range(10**9))

            def arguments() -> Figures:
                if tool != "record_turns":
                    return {"query": texts[next(said) % len(texts)]}
                turns = [
                    {"role": role, "content": f"{texts[(number * 500 + next(said)) % len(texts)]} {begin}"}
                    for role in ("user", "assistant")
                ]
                return {"turns": turns, "session": f"load {process} {number}"}

            return _repeat(lambda: client.call(tool, arguments()), begin, seconds)

    with ThreadPoolExecutor(clients) as threads:
        return [one for took in threads.map(run, range(clients)) for one in took]


def _bare_inserts(url: str, seconds: float) -> Figures:
    """Return the rates of eight connections that each insert a row and commit."""

    def insert(con: psycopg.Connection[Any]) -> None:
        con.execute("INSERT INTO commit_mark (token) VALUES (%s)", (secrets.randbits(63),))

    begin = time()
    with ExitStack() as stack, ThreadPoolExecutor(_CLIENTS) as threads:
        opened = [stack.enter_context(psycopg.connect(url, autocommit=True)) for _ in range(_CLIENTS)]
        took = threads.map(_repeat, [partial(insert, con) for con in opened], [begin] * _CLIENTS, [seconds] * _CLIENTS)
        return _rates([one for part in took for one in part], seconds)


def _repeat(call: Callable[[], object], begin: float, seconds: float) -> list[float]:
    """Call again and again, from `begin` on, in seconds since 1970; return the seconds of each call."""
    sleep(max(0.0, begin - time()))
    took: list[float] = []
    until = perf_counter() + seconds
    while (start := perf_counter()) < until:
        call()
        took.append(perf_counter() - start)
    return took


# --- for people -------------------------------------------------------------------------------------


def lines(found: Figures) -> Iterator[str]:
    """Yield the figures as lines of text."""
    yield f"{found['turns']:,} turns in one space; a synchronous standby; {_CLIENTS} clients"
    yield f"{'':<28}{'statements':>11}{'transactions':>13}{'round trips':>12}"
    for verb, count in found["verbs"].items():
        yield f"{verb:<28}{count['statements']:>11}{count['transactions']:>13}{count['round_trips']:>12}"
    for network, times in found["times"].items():
        yield f"with {network} ms added to a round trip, p50 / p95 ms"
        for what, took in times.items():
            yield f"  {what:<26}{took['p50']:>11} / {took['p95']}"
    cpu = found["cpu_ms"]
    yield f"CPU of a recall, ms: {', '.join(f'{what} {ms}' for what, ms in cpu.items())}"
    yield f"{'record_turns over HTTP':<28}{'calls/s':>9}{'p50 ms':>9}{'p95':>9}{'p99':>9}{'log kB/turn':>13}"
    for what, rates in found["record_turns"].items():
        times = f"{rates['p50']:>9}{rates['p95']:>9}{rates['p99']:>9}"
        yield f"  {what:<26}{rates['calls_per_s']:>9}{times}{rates.get('log_kb_per_turn', ''):>13}"
