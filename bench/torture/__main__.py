"""Kills processes on one home at random: `python -m bench.torture [--kills N] [--json FILE] [--home DIR]`

Eight processes capture, remember, offload, fold and distil concurrently, six through the public API with a scripted
model in the background, two as clients of a real server over stdio. Each is sent SIGKILL at a random moment, also while
it opens the home, migrates its schema or indexes in the background, and is started again; it continues with the
operation that was not acknowledged. One kill in ten hits a home that three processes open at once. At the end:

* every acknowledged turn, statement, result, task and fact exists exactly once, under the acknowledged id;
* results return their bytes, whose hash is stored outside of the home;
* every canvas is valid for our parser and (a sample) for the real Mermaid, and equals its row, file and history;
* journals and records equal their rows, line for line;
* every turn for the model was read exactly once; `verify` and `doctor` report nothing.

Exit code 1 if any of that fails. `--home` keeps the home; a seed repeats the operations, and the kills as far as the
machine allows.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from tqdm import tqdm

from bench.torture.births import AT_ONCE, birth
from bench.torture.by_api import Clock, work
from bench.torture.ledger import Ledger
from bench.torture.proof import prove
from bench.torture.seats import Plan, kill_all

_BIRTHS = 10  # one kill in so many is at a birth


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.torture", description="Kills at random, and what is lost by them.")
    parser.add_argument("--kills", type=int, default=500, metavar="N", help="[default: %(default)s]")
    parser.add_argument("--seed", default="1", help="[default: %(default)s]")
    parser.add_argument("--home", type=Path, metavar="DIR", help="make the home there, and keep it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    asked = parser.parse_args(arguments)
    if asked.kills < 1:
        parser.error("--kills has to be 1 or more")
    if asked.home and (asked.home / "memory.db").exists():
        parser.error(f"{asked.home} holds a memory already; name a folder that is not there yet")
    with TemporaryDirectory(prefix="torture-") as made:
        folder = Path(made)
        found = torture(asked.home or folder / "home", folder, kills=asked.kills, seed=asked.seed)
    print("\n".join(_table(found)))
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.exit(0 if found["well"] else 1)


def torture(home: Path, folder: Path, *, kills: int, seed: str) -> dict[str, Any]:
    """Kill and check; return all figures. The ledgers are written to `folder`."""
    _load()
    started = time.monotonic()
    births = kills // _BIRTHS // AT_ONCE
    rng = random.Random(seed)
    failed = [problem for number in range(births) for problem in birth(folder / f"birth{number}", rng)]
    plan = Plan(home=home, folder=folder, kills=kills - births * AT_ONCE, seed=seed, clock=Clock(time.time()))
    with tqdm(total=plan.kills, unit="kill", leave=False) as bar:
        failed += kill_all(plan, told=partial(_shown, bar))
    killed_s = time.monotonic() - started
    proof = prove(plan)
    return {
        "kills": kills,
        "at_births": births * AT_ONCE,
        "seed": seed,
        "seconds": round(killed_s, 1),
        "proof_seconds": round(time.monotonic() - started - killed_s, 1),
        "acknowledged": proof.acknowledged,
        "lost": proof.lost,
        "doubled": proof.doubled,
        "checked": proof.checked,
        "failed": failed,
        "problems": proof.problems,
        "well": not (failed or proof.lost or proof.doubled or proof.problems),
    }


def _shown(bar: Any, killed: int) -> None:
    bar.update(killed - bar.n)


def _load() -> None:
    """Run operations of every kind, so that forked processes have all modules loaded and start by opening the home."""
    with TemporaryDirectory(prefix="torture-") as made:
        book = Ledger(Path(made, "ledger"))
        anyio.run(work, Path(made, "home"), book, "warm", "seat", Clock(time.time()), 12)
        book.close()


def _table(found: dict[str, Any]) -> list[str]:
    kinds = list(found["acknowledged"])
    lines = [
        f"{found['kills']} kills in {found['seconds']:.0f} s, {found['at_births']} of them while a home was made or "
        f"its schema brought up (seed {found['seed']}); proven in {found['proof_seconds']:.0f} s",
        f"{'':<14}{'acknowledged':>14}{'lost':>8}{'doubled':>9}",
    ]
    for kind in kinds:
        lost, doubled = (sum(line.startswith(kind) for line in found[what]) for what in ("lost", "doubled"))
        lines.append(f"{kind:<14}{found['acknowledged'][kind]:>14,}{lost:>8}{doubled:>9}")
    lines.append("looked at: " + ", ".join(f"{count:,} {what}" for what, count in found["checked"].items()))
    for what in ("failed", "lost", "doubled", "problems"):
        lines += [f"{what}: {line}" for line in found[what][:20]]
        if len(found[what]) > 20:
            lines.append(f"{what}: … and {len(found[what]) - 20} more")
    return [*lines, "nothing is wrong" if found["well"] else "something is wrong"]


if __name__ == "__main__":
    main()
