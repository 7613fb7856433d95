"""Measures the tokens of excerpts, and the answers in them: `python -m bench.excerpts DIR... [--limit N] [--json FILE]`

DIR contains a set as `bench.sets` reads it, or sets that count as one; each haystack is stored as by `bench.ours`. Each
question is asked of `conversation_search` as its tool does by default: ten hits, each with its neighbours, concise.

* tokens a hit (o200k): of the text of the answer, and of the words of its excerpts alone.
* `whole`: the questions whose answer has all its words in the excerpts; `share`: the mean share of its words. Words are
  compared as terms of the index. Answers are written in other words than the turns, so only differences count.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from tqdm import tqdm

from bench.ours import Clock, record
from bench.sets import Haystack, read_sets
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.token_counts import token_counter
from mcp_memory.language.when.annotate import with_dates
from mcp_memory.language.words import index_terms, query_terms
from mcp_memory.service.memory import open_memory
from mcp_memory.service.render import render

HITS = 10


@dataclass(slots=True)
class Tally:
    hits: int = 0
    tokens: int = 0
    words: int = 0
    shares: list[float] = field(default_factory=list[float])
    """Of each question with an answer: the share of its words in the excerpts."""

    def summed_up(self) -> dict[str, Any]:
        return {
            "hits": self.hits,
            "tokens_a_hit": round(self.tokens / max(1, self.hits), 1),
            "words_tokens_a_hit": round(self.words / max(1, self.hits), 1),
            "answers": len(self.shares),
            "whole": sum(share == 1 for share in self.shares),
            "share": round(100 * fmean(self.shares), 1) if self.shares else None,
        }


async def ask(haystack: Haystack, tally: Tally) -> None:
    """Ask the questions of a haystack, and add their figures."""
    count = token_counter("o200k_base").count
    clock = Clock(haystack)
    with TemporaryDirectory() as home:
        async with open_memory(Settings(home=Path(home)), now=clock) as memory:
            await record(memory, haystack)
            for question in haystack.questions:
                clock.moment = question.asked_at or clock.after
                shown = await memory.conversation_excerpts(question.text, neighbours=1, limit=HITS)
                turns = [turn for passage in shown.passages for turn in passage.turns]
                words = "\n".join(with_dates(turn.content, turn.said_at) for turn in turns)
                tally.hits += sum(turn.found is not None for turn in turns)
                tally.tokens += await anyio.to_thread.run_sync(count, render(shown))
                tally.words += await anyio.to_thread.run_sync(count, words)
                answer = set(query_terms(question.answer or "")) if question.evidence_turns else set[str]()
                if answer:
                    tally.shares.append(len(answer & set(index_terms(words))) / len(answer))


async def measure(haystacks: Sequence[Haystack]) -> dict[str, Any]:
    tally = Tally()
    for haystack in tqdm(haystacks, unit="haystack", leave=False):
        await ask(haystack, tally)
    return tally.summed_up()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.excerpts", description="Tokens of excerpts, and the answers in them.")
    parser.add_argument("sets", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N haystacks of each DIR")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args(arguments)
    found: list[dict[str, Any]] = []
    for folder in options.sets:
        try:
            haystacks = [haystack for data in read_sets(folder) for haystack in data.haystacks]
            found.append({"set": folder.resolve().name, **anyio.run(measure, haystacks[: options.limit])})
        except McpMemoryError as error:
            sys.exit(f"bench.excerpts: {error}")
        row = found[-1]
        print(
            f"{row['set']:<16}{row['tokens_a_hit']:.1f} tokens a hit, {row['words_tokens_a_hit']:.1f} of them words; "
            f"{row['whole']} of {row['answers']} answers whole, {row['share']} % of their words"
        )
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
