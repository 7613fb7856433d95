"""Measures how reliably replaced turns are marked: `python -m bench.marks [FILE...] [--show]`

A file has one JSON object per line: `older` and `newer`, two turns of a user, their `language`, the `cosine` of the
bundled model, and `kind`: `changed` if the newer replaces a value of the older; `near` (the same topic, or the same
form of sentence about two things) and `unrelated` if not. Without files, `fixtures/changes/*.jsonl` are read.

Two measurements: each pair alone (`changes.replaces`); and all turns of a file in one language as one memory, the older
turns first, one per day, each compared with each other one as recall and the searches do (`search.changed`). There, 60
turns are 1,770 pairs, of which 10 are changes. Precision is of the marks, recall of the changes. `--show` lists the
errors.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.stats import share, shown
from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.changes import replaces
from mcp_memory.longterm.search.changed import pairs_of_one_topic, replaced_by
from mcp_memory.models.embed.bundled import BundledEmbedder
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Vectors

PAIRS = Path(__file__).parent.parent / "fixtures/changes"
_SPACE, _START = "bench", datetime(2026, 1, 1, 9, tzinfo=UTC)


class Change(NamedTuple):
    language: str
    older: str
    newer: str
    is_change: bool
    cosine: float


class Mark(NamedTuple):
    """A pair that is marked, or should be."""

    language: str
    older: str
    newer: str
    is_marked: bool
    is_change: bool


def read(path: Path) -> list[Change]:
    """Return the pairs of a file. Raises KeyError or ValueError for an invalid line."""
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [
        Change(row["language"], row["older"], row["newer"], row["kind"] == "changed", row["cosine"]) for row in rows
    ]


def marked_by_cosine(changes: Sequence[Change]) -> list[Mark]:
    """Judge each pair by its texts and its cosine."""
    return [
        Mark(one.language, one.older, one.newer, replaces(one.newer, one.older, cosine=one.cosine), one.is_change)
        for one in changes
    ]


def marked_in_memory(changes: Sequence[Change]) -> Iterator[Mark]:
    """Record all turns in one memory and compare all; yield the changes and the other marks."""
    texts = [*(one.older for one in changes), *(one.newer for one in changes)]
    expected = {(one.older, one.newer): one.language for one in changes if one.is_change}
    embedder = BundledEmbedder()
    with TemporaryDirectory(prefix="bench-") as folder, closing(open_store(Path(folder) / "home")) as store:
        for day, text in enumerate(texts):
            moment = _START + timedelta(days=day)
            vectors = Vectors(identity=embedder.identity, data=embedder.embed([text]))
            turn = NewTurn(role="user", content=text, said_at=moment)
            store.write(_SPACE, turn_rows.append, f"s{day}", turn_rows.prepare([turn]), now=moment, vectors=vectors)
        turns = {
            turn.id: turn
            for turn in store.read(_SPACE, turn_rows.by_ids, [f"t{number + 1}" for number in range(len(texts))])
        }
        newer = replaced_by(store, _SPACE, pairs_of_one_topic(store, _SPACE, turns.values()))
    marks = {(turns[old].content, new.content) for old, new in newer.items()}
    for pair in dict.fromkeys([*expected, *marks]):
        yield Mark(changes[0].language, *pair, pair in marks, pair in expected)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.marks", description="How often turns are marked as replaced rightly.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args(arguments)
    files = [read(path) for path in given.files or sorted(PAIRS.glob("*.jsonl"))]
    changes = [one for file in files for one in file]
    languages = list(dict.fromkeys(one.language for one in changes))
    # One memory for several files would have marks between the stories that happen to be about one thing.
    memories = [[one for one in file if one.language == language] for language in languages for file in files]
    within = [mark for memory in memories if memory for mark in marked_in_memory(memory)]
    for name, marks in (("each pair alone", marked_by_cosine(changes)), ("in one memory", within)):
        print(f"{name:<24} {'precision, %':<24} recall, %")
        for language in ["all", *languages]:
            some = [mark for mark in marks if language in ("all", mark.language)]
            precision = share([mark.is_change for mark in some if mark.is_marked])
            recall = share([mark.is_marked for mark in some if mark.is_change])
            print(f"  {language:<22} {shown(precision):<24} {shown(recall)}")
        for mark in marks if given.show else ():
            if mark.is_marked != mark.is_change:
                print(f"  {'wrong' if mark.is_marked else 'missed'}: {mark.older} / {mark.newer}")


if __name__ == "__main__":
    main()
