"""Measures word search in many languages: `python -m bench.languages [--misses]`

`fixtures/languages/<code>.json` contains a few turns of everyday talk, and questions with other forms of their words:
inflected, compounded, with particles and prefixes, without accents or spaces; two more files contain identifiers and
emoji. All turns are stored together, so that each question competes with every other language, and are searched by
words alone. There are two floors over the same turns: FTS5 with `unicode61`, SQLite's default, and with `trigram`, its
tokenizer for any language (a question is an OR of its words, or of its runs of three characters).

Figures: the share of questions whose turn is first, and among the first three.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import apsw

from mcp_memory.core.config import Settings
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import open_memory

FOLDER = Path(__file__).parent.parent / "fixtures" / "languages"
TOP = 3
_DEPTH = 50

Search = Callable[[str], Sequence[int]]
"""Takes a question; returns the places of turns, counted over all languages, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question; `turn` is the place of its answer among the turns of its language."""

    asks: str
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    code: str
    name: str
    turns: tuple[str, ...]
    questions: tuple[Question, ...]


def languages(folder: Path = FOLDER) -> list[Language]:
    """Return the fixtures, by code."""
    read = [(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json"))]
    return [
        Language(
            code=code,
            name=held["language"],
            turns=tuple(held["turns"]),
            questions=tuple(Question(**question) for question in held["questions"]),
        )
        for code, held in read
    ]


def ranks(fixtures: Sequence[Language], search: Search) -> dict[str, list[int | None]]:
    """Return the rank (from 1) of each question's turn, by language; None if it was not found."""
    start = 0
    found: dict[str, list[int | None]] = {}
    for language in fixtures:
        places = [list(search(question.asks)) for question in language.questions]
        found[language.code] = [
            order.index(start + question.turn) + 1 if start + question.turn in order else None
            for order, question in zip(places, language.questions, strict=True)
        ]
        start += len(language.turns)
    return found


async def ours(fixtures: Sequence[Language], home: Path) -> dict[str, list[int | None]]:
    """Ask `Memory.conversation_search` without a model; each turn is a separate session."""
    turns = [turn for language in fixtures for turn in language.turns]
    async with open_memory(Settings(home=home, embedder="none")) as memory:
        for place, turn in enumerate(turns):
            await memory.record_turns([NewTurn(role="user", content=turn)], session=str(place))
        found: dict[str, list[int]] = {}
        for question in (question.asks for language in fixtures for question in language.questions):
            hits = (await memory.conversation_search(question, limit=_DEPTH)).hits
            found[question] = [int(hit.turn.session) for hit in hits]
    return ranks(fixtures, found.__getitem__)


def fts5(fixtures: Sequence[Language], tokenizer: str) -> dict[str, list[int | None]]:
    """Ask one FTS5 table with a tokenizer of SQLite."""
    con = apsw.Connection(":memory:")
    con.execute(f"CREATE VIRTUAL TABLE said USING fts5(text, tokenize = '{tokenizer}')")
    con.executemany("INSERT INTO said (text) VALUES (?)", [(turn,) for one in fixtures for turn in one.turns])

    def search(question: str) -> list[int]:
        runs: list[str] = re.findall(r"\w+", question)
        if tokenizer == "trigram":
            runs = [question[at : at + 3] for at in range(len(question) - 2)]
        query = " OR ".join('"' + run.replace('"', '""') + '"' for run in runs)
        sql = "SELECT rowid FROM said WHERE said MATCH ? ORDER BY bm25(said), rowid LIMIT ?"
        return [int(row) - 1 for (row,) in con.execute(sql, (query, _DEPTH))] if query else []

    found = ranks(fixtures, search)
    con.close()
    return found


def share(found: Sequence[int | None], top: int) -> float:
    return 100 * sum(rank is not None and rank <= top for rank in found) / len(found)


def table(fixtures: Sequence[Language], systems: Mapping[str, Mapping[str, Sequence[int | None]]]) -> list[str]:
    """Return the shares as lines of text: first / first three for each system."""
    lines = [f"{'':<34}{'n':>4}" + "".join(f"{name:>18}" for name in systems)]
    for language in fixtures:
        cells = [found[language.code] for found in systems.values()]
        lines.append(_row(language.name, cells))
    everything = [[rank for one in found.values() for rank in one] for found in systems.values()]
    return [*lines, _row("all", everything)]


def _row(name: str, cells: Sequence[Sequence[int | None]]) -> str:
    shares = (f"{share(found, 1):.0f} / {share(found, TOP):.0f}" for found in cells)
    return f"{name:<34}{len(cells[0]):>4}" + "".join(f"{cell:>18}" for cell in shares)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.languages", description="Words found again in many languages.")
    parser.add_argument("--misses", action="store_true", help="also list the questions whose turn is not first")
    options = parser.parse_args()
    fixtures = languages()
    with TemporaryDirectory(prefix="bench-") as folder:
        found = anyio.run(ours, fixtures, Path(folder))
    systems = {"ours": found, "unicode61": fts5(fixtures, "unicode61"), "trigram": fts5(fixtures, "trigram")}
    print("\n".join(table(fixtures, systems)))
    for language in fixtures if options.misses else ():
        for question, rank in zip(language.questions, found[language.code], strict=True):
            if rank != 1:
                print(f"{language.code} rank {rank}: {question.asks}  →  {language.turns[question.turn]}")


if __name__ == "__main__":
    main()
