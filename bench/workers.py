"""Measures workers that are killed: `python -m bench.workers [--minutes M] [--kill-every S] [--json FILE]`

Starts PostgreSQL (`tests.postgres_server`, fsync on) and three server processes that distil one database, with clocks
an hour apart and a scripted model each. Turns are written to 40 spaces all the time. Every S seconds, one of the
servers is sent SIGKILL and started again, and all claims expire, those of the other servers too, so that two may work
on one space.

Counted after writing has ended and no turn waits: committed jobs, turns that more than one job has read, and turns that
none has. Exit code 1 if there are any of the last two.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from mcp_memory.core.types import NewTurn
from mcp_memory.store.postgres.access import enter_as_owner
from mcp_memory.store.postgres.store import PostgresStore, open_store
from mcp_memory.store.sql import job_rows, turn_rows
from tests.leases import pass_time
from tests.postgres_server import running

_SPACES = [f"tenant-{number}" for number in range(40)]
_MINUTES_FAST = ("0", "60", "-60")
_TURNS = 6  # of a write
_EVERY_S = 0.1
_LEASE = timedelta(hours=1)
_LAST_S = 1_800.0

_DONE = """
    SELECT s.name, (part ->> 'start')::int, (part ->> 'stop')::int
    FROM work w JOIN space s ON s.id = w.space, json_array_elements(w.basis::json -> 'parts') part
    WHERE w.stage = 'extract' AND w.state = 'done' ORDER BY 1, 2
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.workers", description="What workers that are killed do twice.")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long it writes [default: 60]")
    parser.add_argument("--kill-every", type=float, default=12.0, metavar="S", help="in seconds [default: 12]")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    asked = parser.parse_args(arguments)
    with running({}) as server, TemporaryDirectory(prefix="bench-workers-") as home:
        server.make_template()
        found = _measured(server.create_memory(), Path(home), 60 * asked.minutes, asked.kill_every)
    print(
        f"{found['turns']:,} turns in {len(_SPACES)} spaces, {found['kills']} kills: {found['jobs']:,} jobs committed,"
        f" {found['again']} turns read again, {found['never']} never read"
    )
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    sys.exit(1 if found["again"] or found["never"] else 0)


def _measured(url: str, home: Path, seconds: float, kill_every: float) -> dict[str, Any]:
    written = dict.fromkeys(_SPACES, 0)
    drawn = random.Random(0)
    kills = 0
    with closing(open_store(url)) as store:
        servers = [_started(url, home / str(place), fast) for place, fast in enumerate(_MINUTES_FAST)]
        try:
            until, next_kill = time.monotonic() + seconds, time.monotonic() + kill_every
            while time.monotonic() < until:
                _write(store, space := drawn.choice(_SPACES), written[space])
                written[space] += _TURNS
                time.sleep(_EVERY_S)
                if time.monotonic() > next_kill:
                    place = kills % len(servers)
                    _kill(servers[place])
                    servers[place] = _started(url, home / str(place), _MINUTES_FAST[place])
                    pass_time(store, _LEASE)
                    kills, next_kill = kills + 1, time.monotonic() + kill_every
            _wait(store)
        finally:
            for one in servers:
                _kill(one)
    with psycopg.connect(url) as con:
        enter_as_owner(con)
        done = con.execute(_DONE).fetchall()
    again = never = 0
    for space, count in written.items():
        read = [place for name, start, stop in done if name == space for place in range(start, stop)]
        again += len(read) - len(set(read))
        never += len(set(range(count)) - set(read))
    return {"turns": sum(written.values()), "kills": kills, "jobs": len(done), "again": again, "never": never}


def _write(store: PostgresStore, space: str, first: int) -> None:
    """Write turns to a space that was then left alone, so that they are due at once."""
    turns = [
        NewTurn(role="user", content=f"I have seen {number} whales with {space}.")
        for number in range(first, first + _TURNS)
    ]
    store.write(space, turn_rows.append, "s", turn_rows.prepare(turns), now=datetime.now(UTC) - timedelta(days=2))
    store.write(space, job_rows.flush, "s")


def _wait(store: PostgresStore) -> None:
    """Wait until all turns are read. Raises TimeoutError."""
    until = time.monotonic() + _LAST_S
    for place in itertools.count():
        if not any(store.read(space, job_rows.backlog) for space in _SPACES):
            return
        if time.monotonic() > until:
            raise TimeoutError(f"after {_LAST_S:.0f} s there are still turns that nobody has read")
        if place % 40 == 0:
            pass_time(store, _LEASE)  # the claims of the last that were killed
        time.sleep(0.5)


def _started(url: str, home: Path, fast: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.postgres.worker", url, str(home), fast]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


if __name__ == "__main__":
    main()
