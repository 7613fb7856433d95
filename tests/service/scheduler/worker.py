"""A process that works on a home until nothing is due: `python -m tests.service.scheduler.worker HOME`. It is there to be killed."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path

from mcp_memory.store.sqlite.store import open_store
from mcp_memory.testing import FixedClock
from tests.leases import pass_time
from tests.service.scheduler.rounds import working


def main() -> None:
    home = Path(sys.argv[1])
    store = open_store(home)
    clock = FixedClock()
    clock.moment += timedelta(hours=3, seconds=time.time() % 3600)
    with working(store, clock, home) as step:
        print("working", file=sys.stderr, flush=True)
        for _ in range(200):
            if not step():
                clock.advance(minutes=5)
                pass_time(store, timedelta(minutes=5))  # leases of the dead run out


if __name__ == "__main__":
    main()
