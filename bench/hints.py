"""Measures whether `remember` offers to replace the right statements: `python -m bench.hints [--fitted]`

`fixtures/hints` has pairs of statements about a user. Each pair is remembered in a separate space, the older statement
first. *Offered* are older statements that the answer puts into `supersedes`, *asked* those that it asks about, each
with

    precision   share of the pairs with such a statement in which it is contradicted or updated
    recall      share of the contradicted or updated statements that are offered or asked about

In the row "in one memory", all older statements of a language are in one space before each newer one: statements of
other pairs that are offered or asked about count as wrong. Spanish, French and Portuguese are held out; `--fitted`
measures the languages that the model was fitted to.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import anyio

from mcp_memory.core.types import Remembered
from mcp_memory.service.memory import Memory, open_memory

PAIRS = Path(__file__).parent.parent / "fixtures/hints"
FITTED = ("en", "de", "zh", "more_en", "more_de", "more_zh")
HELD_OUT = ("es", "fr", "pt")


class Pair(NamedTuple):
    language: str
    older: str
    newer: str
    replaces: bool


class Count(NamedTuple):
    """Numbers of statements that were offered or asked about rightly and wrongly, and of those that should be."""

    right: int
    wrong: int
    wanted: int

    def line(self, name: str) -> str:
        shown = self.right + self.wrong
        precision = f"{self.right / shown:6.1%}" if shown else "     –"
        return f"{name:32} precision {precision} of {shown:3}, recall {self.right / self.wanted:6.1%} of {self.wanted}"


def read_pairs(name: str) -> list[Pair]:
    """Return the pairs of a file, such as `es`."""
    lines = (line.split("\t") for line in (PAIRS / f"{name}.tsv").read_text(encoding="utf-8").splitlines())
    return [Pair(name[-2:], older, newer, label == "replaces") for label, older, newer in lines]


class _Shown(NamedTuple):
    wanted: str | None
    """Id of the older statement if it should be replaced, else None."""
    offered: set[str]
    asked: set[str]


def _shown(older: str, pair: Pair, answer: Remembered) -> _Shown:
    return _Shown(older if pair.replaces else None, set(answer.contradicting), set(answer.unsure))


async def _alone(memory: Memory, pairs: Sequence[Pair]) -> list[_Shown]:
    shown: list[_Shown] = []
    for place, pair in enumerate(pairs):
        space = memory.in_space(f"{pair.language}{place}")
        older = (await space.remember(pair.older, typed=True)).atom.id
        shown.append(_shown(older, pair, await space.remember(pair.newer, typed=True)))
    return shown


async def _together(memory: Memory, pairs: Sequence[Pair]) -> list[_Shown]:
    """Remember each newer statement in a memory with all older ones, then forget it."""
    space, shown, ids = memory.in_space(f"all {pairs[0].language}"), list[_Shown](), dict[str, str]()
    for older in dict.fromkeys(pair.older for pair in pairs):
        ids[older] = (await space.remember(older, typed=True)).atom.id
    for pair in pairs:
        answer = await space.remember(pair.newer, typed=True)
        shown.append(_shown(ids[pair.older], pair, answer))
        if not answer.duplicate:
            await space.forget([answer.atom.id])
    return shown


def _count(shown: Sequence[_Shown], *, asked: bool) -> Count:
    pairs = [(one.wanted, one.offered | one.asked if asked else one.offered) for one in shown]
    right = sum(wanted in found for wanted, found in pairs)
    return Count(right, sum(len(found) for _, found in pairs) - right, sum(wanted is not None for wanted, _ in pairs))


async def measured(names: Sequence[str]) -> dict[str, Count]:
    """Return the counts for some files of pairs, by row of the table."""
    alone, together = list[_Shown](), list[_Shown]()
    with TemporaryDirectory() as home:
        async with open_memory(home=home, llm="none") as memory:
            for name in names:
                pairs = read_pairs(name)
                alone += await _alone(memory, pairs)
                together += await _together(memory, pairs)
    return {
        "offered": _count(alone, asked=False),
        "offered or asked": _count(alone, asked=True),
        "in one memory, offered": _count(together, asked=False),
        "in one memory, offered or asked": _count(together, asked=True),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.hints", description="Which statements remember offers.")
    parser.add_argument("--fitted", action="store_true", help="the languages that the model was fitted to")
    given = parser.parse_args()
    for name, count in anyio.run(measured, FITTED[:3] if given.fitted else HELD_OUT).items():
        print(count.line(name))


if __name__ == "__main__":
    main()
