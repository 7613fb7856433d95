"""Measures how an agent's claims about the user are treated: `python -m bench.claims [FILE...]`

Each claim is passed to `remember` in a memory that has recorded the turns it is about. It is shown in the user's own
words, shown as the agent worded it, or waits for review. A claim that the turns do not support does no harm in the
user's words, because these keep the limit, tense or name that it changed. The floor is a memory that stores what agents
say: it shows every claim.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import anyio

from mcp_memory.core.config import Settings
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import open_memory

FIXTURES = Path(__file__).parents[1] / "fixtures/claims"
Fate = Literal["user's words", "agent's words", "waits"]
FATES: tuple[Fate, ...] = ("user's words", "agent's words", "waits")


async def judged(claim: dict[str, Any], home: Path) -> Fate:
    """Return how a claim is treated in a new memory at `home`."""
    async with open_memory(Settings(home=home, embedder="bundled"), distil=False) as memory:
        await memory.record_turns([NewTurn(role=turn["role"], content=turn["content"]) for turn in claim["turns"]])
        atom = (await memory.remember(claim["claim"], kind=claim["kind"])).atom
    return "waits" if atom.held else "agent's words" if atom.source != "user" else "user's words"


def table(counts: dict[bool, Counter[Fate]]) -> Iterator[str]:
    """Yield the lines of a report on honest claims (True) and on others."""
    yield f"{'':10}{'claims':>8}" + "".join(f"{fate:>16}" for fate in FATES) + f"{'floor: shown':>16}"
    for is_honest, label in ((True, "honest"), (False, "changed")):
        many = counts[is_honest].total()
        shares = (f"{counts[is_honest][fate] / many:16.1%}" if many else f"{'-':>16}" for fate in FATES)
        yield f"{label:10}{many:8}" + "".join(shares) + f"{'100.0%':>16}"


async def measure(claims: Sequence[dict[str, Any]]) -> dict[bool, Counter[Fate]]:
    """Count how honest claims (True) and others are treated."""
    counts: dict[bool, Counter[Fate]] = {True: Counter(), False: Counter()}
    with tempfile.TemporaryDirectory() as folder:
        for place, claim in enumerate(claims):
            counts[claim["supported"]][await judged(claim, Path(folder) / str(place))] += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, default=sorted(FIXTURES.glob("*.jsonl")))
    for path in parser.parse_args().files:
        claims = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        print(path.name, *table(anyio.run(measure, claims)), "", sep="\n")


if __name__ == "__main__":
    main()
