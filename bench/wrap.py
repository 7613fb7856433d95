"""Measures `mcp-memory wrap`: start-up, a call, a large result, memory; each compared with the server without it.

    python -m bench.wrap [--calls N] [--json OUT]

The wrapped server is minimal (a loop over lines, no SDK), so that the proxy is measured. Calls are made alternately
without and through it, so that other work on the machine affects both. Memory is read from /proc, on Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from bench.servers import memory_of
from bench.stats import timings_ms

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        size = asked.get("params", {}).get("arguments", {}).get("bytes", 20)
        text = "".join(f"{n} GET /item/{n} 200 in {n % 97} ms\\n" for n in range(size // 30 + 1))[:size]
        result = {"content": [{"type": "text", "text": text}], "serverInfo": {"name": "bench"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
LARGE = (20_000, 1_000_000, 10_000_000)


class Peer:
    """A server, direct or wrapped, with its client."""

    def __init__(self, command: Sequence[str], home: Path) -> None:
        self._asked = 0
        self.started = perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "MCP_MEMORY_HOME": str(home)},
        )

    def call(self, size: int) -> tuple[float, int]:
        """Return the seconds of a call, and the bytes of its answer line."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._asked += 1
        params = {"name": "read", "arguments": {"bytes": size, "n": self._asked}}
        message = {"jsonrpc": "2.0", "id": self._asked, "method": "tools/call", "params": params}
        start = perf_counter()
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if b'"result"' not in line:
            raise RuntimeError(f"{self.process.args!r} did not answer")
        return perf_counter() - start, len(line)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


def measure(calls: int) -> dict[str, Any]:
    """Return the figures, times in milliseconds, memory in megabytes."""
    direct = [sys.executable, "-c", SERVER]
    installed = Path(sys.executable).with_name("mcp-memory")
    wrapped = [str(installed), "wrap", "--", *direct]
    with TemporaryDirectory(prefix="bench-wrap-") as folder:
        home = Path(folder)
        starts = [(_start(direct, home), _start(wrapped, home)) for _ in range(9)]
        alone, through = Peer(direct, home), Peer(wrapped, home)
        for peer in (alone, through):
            peer.call(20)
        small = [(alone.call(1_000)[0], through.call(1_000)[0]) for _ in range(calls)]
        before = memory_of(through.process.pid)
        large: dict[str, Any] = {}
        for size in LARGE:
            times = [(alone.call(size)[0], *through.call(size)) for _ in range(5)]
            large[f"{size:,}"] = {
                "direct_ms": _ms([time for time, _, _ in times]),
                "first_ms": round(1_000 * times[0][1], 1),
                "wrapped_ms": _ms([time for _, time, _ in times[1:]]),
                "answer_bytes": times[-1][2],
            }
        after = memory_of(through.process.pid)
        for peer in (alone, through):
            peer.end()
    return {
        "start_ms": {"direct": _ms([a for a, _ in starts]), "wrapped": _ms([b for _, b in starts])},
        "small_call_ms": {
            "direct": timings_ms([a for a, _ in small]),
            "wrapped": timings_ms([b for _, b in small]),
            "median_added": round(1_000 * median(b - a for a, b in small), 3),
        },
        "large_call": large,
        "resident_mb": {
            "before_a_large_result": before.get("VmRSS"),
            "after": after.get("VmRSS"),
            "peak": after.get("VmHWM"),
        },
    }


def _start(command: Sequence[str], home: Path) -> float:
    peer = Peer(command, home)
    peer.call(20)
    taken = perf_counter() - peer.started
    peer.end()
    return taken


def _ms(seconds: Sequence[float]) -> float:
    return round(1_000 * median(seconds), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    figures = measure(given.calls)
    print(json.dumps(figures, indent=1))
    if given.json:
        given.json.write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
