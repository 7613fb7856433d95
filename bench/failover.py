"""Kills and failovers of PostgreSQL under load: `python -m bench.failover [--kills N] [--failovers M] [--json FILE]`

Starts real servers (`tests.postgres_server`) with fsync on. Four threads capture turns, each into a separate space,
through a store that stays open. N times, the server is sent SIGKILL and started again; M times, the primary is sent
SIGKILL, and its synchronous standby is promoted, gets a standby of its own, and is the next one killed. A write that is
refused, or whose result is unknown, is repeated under the same id.

Counted at the end: acknowledged turns, those of them that are missing or stored twice, and the seconds from each kill
to the next acknowledged write, including the start or promotion by `pg_ctl`. Exit code 1 if a turn is missing or stored
twice.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from threading import Event
from typing import Any

from tqdm import tqdm

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.store.postgres.store import PostgresStore, open_store
from mcp_memory.store.sql import turn_rows
from tests.postgres_server import PostgresServer, running

_WRITERS = 4
_DATABASE = "memory"


@dataclass(slots=True)
class _Told:
    """The acknowledgements that the writers received."""

    acknowledged: list[str] = field(default_factory=list[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    newest: float = 0.0
    """Start of the latest write that was acknowledged."""

    def wait(self, since: float) -> float:
        """Wait until a write that began after `since` is acknowledged; return the seconds."""
        while self.newest < since:
            time.sleep(0.001)
        return time.monotonic() - since


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.failover", description="What kills and failovers of PostgreSQL lose.")
    parser.add_argument("--kills", type=int, default=50, metavar="N", help="[default: %(default)s]")
    parser.add_argument("--failovers", type=int, default=5, metavar="M", help="[default: %(default)s]")
    parser.add_argument("--seed", default="1", help="of the moments of the kills [default: %(default)s]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    asked = parser.parse_args(arguments)
    found = measure(kills=asked.kills, failovers=asked.failovers, seed=asked.seed)
    print("\n".join(_table(found)))
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if any(part["lost"] or part["doubled"] for part in found.values()) else 0)


def measure(*, kills: int, failovers: int, seed: str) -> dict[str, dict[str, Any]]:
    rng = random.Random(seed)
    found: dict[str, dict[str, Any]] = {}
    with ExitStack() as servers, tqdm(total=kills + failovers, unit="kill", leave=False) as bar:
        primary = servers.enter_context(running({}))
        primary.make_template()
        told = _Told()
        outages: list[float] = []
        with _writing(primary.url(_DATABASE, "memory"), "killed", told):
            for _ in range(kills):
                outages.append(_outage(told, rng, primary, primary.start))
                bar.update()
        found["kills"] = _figures(told, outages, primary, "killed")
        told = _Told()
        outages = []
        for number in range(failovers):
            standby = servers.enter_context(primary.standby())
            first = primary.url(_DATABASE, "memory").removesuffix(f"/{_DATABASE}")
            hosts = f"{first},127.0.0.1:{standby.port}/{_DATABASE}"
            with _writing(hosts, f"failover {number}", told):
                outages.append(_outage(told, rng, primary, standby.promote))
                bar.update()
            shutil.rmtree(primary.folder / "data")
            primary = standby
        found["failovers"] = _figures(told, outages, primary, "failover")
    return found


def _outage(told: _Told, rng: random.Random, server: PostgresServer, recover: Callable[[], None]) -> float:
    """Kill a server at a random moment; return the seconds until a write succeeds again."""
    told.wait(time.monotonic())
    time.sleep(rng.uniform(0, 0.5))
    killed = time.monotonic()
    server.kill()
    recover()
    return told.wait(killed)


@contextmanager
def _writing(url: str, session: str, told: _Told) -> Generator[None]:
    enough = Event()
    with closing(open_store(url)) as store, ThreadPoolExecutor(_WRITERS) as threads:
        writers = [threads.submit(_write, store, f"space {at}", session, told, enough) for at in range(_WRITERS)]
        try:
            yield
        finally:
            enough.set()
        for writer in writers:
            writer.result()


def _write(store: PostgresStore, space: str, session: str, told: _Told, enough: Event) -> None:
    count = 0
    while not enough.is_set():
        text = f"{session}, {space}, {count}"
        began = time.monotonic()
        try:
            turn = NewTurn(role="user", content=text, client_id=text)
            store.write(space, turn_rows.append, session, turn_rows.prepare([turn]), now=datetime.now(UTC))
        except StoreUnavailable as error:
            told.refused["unknown" if "may or may not" in str(error) else "refused"] += 1
            continue
        told.acknowledged.append(text)
        told.newest = max(told.newest, began)
        count += 1


def _figures(told: _Told, outages: list[float], server: PostgresServer, session: str) -> dict[str, Any]:
    found = stored(server.url(_DATABASE, "memory"), [f"space {at}" for at in range(_WRITERS)], session)
    return {
        "kills": len(outages),
        "acknowledged": len(told.acknowledged),
        "lost": sum(text not in found for text in told.acknowledged),
        "doubled": sum(count > 1 for count in found.values()),
        "refused": told.refused["refused"],
        "unknown": told.refused["unknown"],
        "again_s": [round(outage, 2) for outage in outages],
    }


def stored(url: str, spaces: Sequence[str], session: str = "") -> Counter[str]:
    """Count the turns with each text in the sessions of these spaces whose names begin with `session`."""
    found = Counter[str]()
    with closing(open_store(url)) as store:
        for space in spaces:
            for name in (info.session for info in store.read(space, turn_rows.sessions, prefix=session)):
                start = 0
                while turns := store.read(space, turn_rows.session_turns, name, start=start, limit=1000):
                    found.update(turn.content for turn in turns)
                    start += len(turns)
    return found


def _table(found: dict[str, dict[str, Any]]) -> list[str]:
    columns = ("kills", "acknowledged", "lost", "doubled", "refused", "unknown")
    lines = [f"{'':<12}" + "".join(f"{name:>14}" for name in columns) + f"{'again after':>22}"]
    for name, part in found.items():
        times = part["again_s"]
        again = f"{median(times):.2f} s, at most {max(times):.2f}" if times else ""
        lines.append(f"{name:<12}" + "".join(f"{part[column]:>14,}" for column in columns) + f"{again:>22}")
    return lines


if __name__ == "__main__":
    main()
