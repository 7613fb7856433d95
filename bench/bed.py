"""Builds the home that latency is measured on: `turns` invented turns, and the same turns in a bare FTS5 table.

The folder also contains the floors of a search: `floor.db`, one FTS5 table in WAL mode with the durability of the
store, and `vectors.npy`, the embeddings as one float32 matrix. `filled.json`, written last, has the cost of filling
them, so that a folder can be used again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import apsw
import numpy as np
from tqdm import tqdm

from bench.corpus import BATCH, batches, session_of
from bench.floors import spaced
from bench.ours import until_indexed
from bench.stats import timings_ms
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn
from mcp_memory.models.embed.factory import make_embedder
from mcp_memory.service.memory import open_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Bed:
    """A folder, and the number of turns that it has or will have."""

    folder: Path
    turns: int

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def floor(self) -> Path:
        return self.folder / "floor.db"

    @property
    def vectors(self) -> Path:
        return self.folder / "vectors.npy"

    def batches(self, doing: str) -> Iterator[tuple[str, list[NewTurn]]]:
        """Yield (session, turns) and show a progress bar."""
        with tqdm(total=self.turns, desc=doing, unit="turn", leave=False, mininterval=0.5) as bar:
            for number, turns in enumerate(batches(self.turns)):
                yield session_of(number), turns
                bar.update(len(turns))


async def filled(bed: Bed) -> dict[str, Any]:
    """Fill the folder unless it is filled already; return the cost (`capture`).

    Raises InvalidInput for a folder with a different number of turns, or one that was not filled completely.
    """
    done = bed.folder / "filled.json"
    if done.exists():
        kept = json.loads(done.read_text(encoding="utf-8"))
        if kept["turns"] != bed.turns:
            raise InvalidInput(f"{bed.folder} holds {kept['turns']:,} turns, not {bed.turns:,}: name another folder.")
        return kept["capture"]
    if bed.home.exists():
        raise InvalidInput(f"{bed.folder} was left half filled: remove it, or name another folder.")
    bed.folder.mkdir(parents=True, exist_ok=True)
    capture = await _capture(bed) | _fill_floor(bed) | _fill_vectors(bed)
    done.write_text(json.dumps({"turns": bed.turns, "capture": capture}, indent=1), encoding="utf-8")
    return capture


async def _capture(bed: Bed) -> dict[str, Any]:
    """Record the turns with `record_turns`, which returns when they are stored; then search and embed them."""
    seconds: list[float] = []
    text = 0
    async with open_memory(Settings(home=bed.home)) as memory:
        await memory.conversation_search("warm")  # the model is loaded
        for session, turns in bed.batches("capture"):
            start = perf_counter()
            await memory.record_turns(turns, session=session)
            seconds.append(perf_counter() - start)
            text += sum(len(turn.content.encode()) for turn in turns)
        start = perf_counter()
        await memory.conversation_search("warm")  # all words are indexed
        searched = sum(seconds) + perf_counter() - start
        await until_indexed(memory)
        embedded = sum(seconds) + perf_counter() - start
    last = seconds[-max(1, len(seconds) // 10) :]
    return {
        "turns_per_s": round(bed.turns / sum(seconds)),
        "last_tenth_turns_per_s": round(min(bed.turns, BATCH * len(last)) / sum(last)),
        "searched_turns_per_s": round(bed.turns / searched),
        "embedded_turns_per_s": round(bed.turns / embedded),
        "batch_ms": timings_ms(seconds),
        "text_bytes": text,
    }


def _fill_floor(bed: Bed) -> dict[str, Any]:
    con = apsw.Connection(str(bed.floor))
    con.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL").fetchall()
    con.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize = 'porter unicode61')")
    seconds = 0.0
    for _, turns in bed.batches("floor"):
        start = perf_counter()
        con.execute("BEGIN IMMEDIATE")
        con.executemany("INSERT INTO said (text) VALUES (?)", [(spaced(turn.content),) for turn in turns])
        con.execute("COMMIT")
        seconds += perf_counter() - start
    con.close()
    return {"floor_turns_per_s": round(bed.turns / seconds)}


def _fill_vectors(bed: Bed) -> dict[str, Any]:
    embedder = make_embedder(Settings())
    assert embedder is not None
    vectors = np.lib.format.open_memmap(bed.vectors, "w+", np.float32, (bed.turns, embedder.dimensions))
    seconds, place = 0.0, 0
    for _, turns in bed.batches("vectors"):
        start = perf_counter()
        found = embedder.embed([turn.content for turn in turns])
        seconds += perf_counter() - start
        vectors[place : place + len(turns)] = found
        place += len(turns)
    vectors.flush()
    return {"embedding_turns_per_s": round(bed.turns / seconds)}
