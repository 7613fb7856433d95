"""Starts a process for each seat, kills it at a random moment and starts the next, until enough have died.

One in four is killed while it starts and opens the home; the others after their first answer and a random delay: some
milliseconds, up to half a second, or longer.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio

from bench.torture.by_api import Clock, live
from bench.torture.by_stdio import Gone, Server
from bench.torture.deeds import do_next
from bench.torture.ledger import Ledger
from mcp_memory.store.sqlite.store import open_store
from tests.leases import pass_time

_EARLY = 0.25
_TICK = 0.5
_FORK = multiprocessing.get_context("fork")  # what is loaded once need not be loaded at each start


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`seats` processes, of which `servers` use a real server; ledgers and logs are written to `folder`."""

    home: Path
    folder: Path
    kills: int
    seed: str
    seats: int = 8
    servers: int = 2
    clock: Clock

    def ledger(self, seat: str) -> Path:
        return self.folder / f"{seat}.ledger"

    def log(self, seat: str) -> Path:
        return self.folder / f"{seat}.log"


def kill_all(plan: Plan, *, told: Callable[[int], None] = lambda kills: None) -> list[str]:
    """Kill until the number is reached; return processes that ended or failed by themselves. `told` gets the count."""
    killed, over = _FORK.Value("i", 0), _FORK.Event()
    names = [f"seat{number}" for number in range(plan.seats)]
    seats = [
        _FORK.Process(target=_serving if number < plan.servers else _working, args=(plan, name, killed, over))
        for number, name in enumerate(names)
    ]
    for seat in seats:
        seat.start()
    while not over.wait(_TICK):
        told(killed.value)
        with closing(open_store(plan.home)) as store:
            pass_time(store, timedelta(seconds=_TICK * plan.clock.speed))
        if not all(seat.is_alive() for seat in seats):
            over.set()
    for seat in seats:
        seat.join()
    return [
        *(f"{name} ended by itself: {seat.exitcode}" for name, seat in zip(names, seats, strict=True) if seat.exitcode),
        *(line for name in names for line in _complaints(plan.log(name))),
    ]


def forked(work: Callable[[], None], log: Path) -> int:
    """Run `work` in a child process and return its id; its errors go to the log."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), sys.stderr.fileno())
        work()
    except BaseException:  # noqa: BLE001  a child that raised must not go on as its parent
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _count(killed: Any, over: Any, plan: Plan) -> None:
    with killed.get_lock():
        killed.value += 1
        if killed.value >= plan.kills:
            over.set()


def _working(plan: Plan, seat: str, killed: Any, over: Any) -> None:
    rng = random.Random(f"{plan.seed}/{seat}")
    while not over.is_set():
        pid = forked(
            lambda: live(plan.home, plan.ledger(seat), seed=plan.seed, seat=seat, now=plan.clock), plan.log(seat)
        )
        if rng.random() < _EARLY:
            over.wait(rng.uniform(0, 0.3))
        else:
            _until_it_works(plan.ledger(seat), over)
            over.wait(_life(rng))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            time.sleep(0.2)  # its complaint is in the log
        _count(killed, over, plan)


def _serving(plan: Plan, seat: str, killed: Any, over: Any) -> None:
    rng = random.Random(f"{plan.seed}/{seat}")
    while not over.is_set():
        server = Server(plan.home, plan.log(seat))
        early = rng.random() < _EARLY
        killer = threading.Timer(rng.uniform(0, 2) if early else 60.0, server.process.kill)
        killer.start()
        try:
            server.greet()
            ledger = Ledger(plan.ledger(seat))
            if not early:
                anyio.run(do_next, server.call, ledger, plan.seed, seat)
                killer.cancel()
                killer = threading.Timer(_life(rng), server.process.kill)
                killer.start()
            while not over.is_set():
                anyio.run(do_next, server.call, ledger, plan.seed, seat)
        except Gone:
            _count(killed, over, plan)
        finally:
            killer.cancel()
            server.close()


def _life(rng: random.Random) -> float:
    return rng.choice([rng.uniform(0, 0.05), rng.uniform(0, 0.5), min(rng.expovariate(0.5), 6.0)])


def _until_it_works(ledger: Path, over: Any) -> None:
    """Wait until an operation is acknowledged, for some seconds at most: a hanging process is killed too."""
    before = _answers(ledger)
    for _ in range(500):
        if _answers(ledger) > before or over.wait(0.02):
            return


def _answers(ledger: Path) -> int:
    return ledger.read_bytes().count(b'"done"') if ledger.exists() else 0


def _complaints(log: Path) -> list[str]:
    """Return the last line of each error in a log."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return [f"{log.stem}: {line}" for line in text.splitlines() if line and not line[0].isspace() and "Error" in line]
