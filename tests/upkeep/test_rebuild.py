"""What needs no model comes back from the files alone, and the comparison tells when it does not."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.reader import Reader
from mcp_memory.errors import InvalidInput, NotFound
from mcp_memory.memory import Memory, open_memory
from mcp_memory.store.sqlite import open_store
from mcp_memory.testing import FixedClock, HashEmbedder
from mcp_memory.types import NewTurn
from mcp_memory.upkeep.rebuild import rebuild

Lived = Callable[[Path], Path]
NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)

# --- the law ----------------------------------------------------------------------------------------
# Whatever was done with a home, its database made anew of its files says the same.

SESSIONS, THINGS = ("trip", "work"), ("cello", "ferry", "harbour", "orchard")
session, thing = st.sampled_from(SESSIONS), st.sampled_from(THINGS)
choice = st.integers(0, 5)
STEPS = st.one_of(
    st.tuples(st.just("say"), session, thing, choice),
    st.tuples(st.just("remember"), session, thing, choice),
    st.tuples(st.just("fact"), session, thing, choice),
    st.tuples(st.just("replace"), session, thing, choice),
    st.tuples(st.just("offload"), session, thing, choice),
    st.tuples(st.just("fold"), session, thing, choice),
    st.tuples(st.just("forget"), session, thing, choice),
    st.tuples(st.just("undo"), session, thing, choice),
    st.tuples(st.just("distil"), session, thing, choice),
    st.tuples(st.just("purge"), session, thing, choice),
)
Step = tuple[str, str, str, int]


async def do(memory: Memory, step: Step, clock: FixedClock) -> None:
    verb, name, about, number = step
    clock.advance(minutes=7 - 2 * number)  # clocks go back, too
    match verb:
        case "say":
            said = clock() - timedelta(days=number) if number % 2 else None
            text = f"I played the {about} on day {number}. The r-{number} was there.\u2028 Ja."
            turns = [NewTurn(role="user", content=text, said_at=said, client_id=f"c{number}" if number > 2 else None)]
            await memory.record_turns([*turns, NewTurn(role="assistant", content="ok", name="Ana")], session=name)
        case "remember":
            kind = ("persona", "episodic", "instruction")[number % 3]
            await memory.remember(f"The {about} matters, number {number}", kind=kind, session=name)
        case "fact":
            await memory.remember(
                f"The user lives at the {about}", entity="user", relation="lives at", value=about, session=name
            )
        case "replace":
            atoms = await memory.atoms()
            old = [atom.id for atom in atoms[number : number + 2]]
            await memory.remember(f"Instead the {about} counts", supersedes=old, entity="Ana", session=name)
        case "offload":
            result = f"{about} {number}\n" * (20 + number)
            await memory.offload_tool_result(
                "shell",
                result,
                session=name,
                task=f"Mend the {about}" if number % 2 else None,
                tool_call_id=f"k{number}",
            )
        case "fold":
            rows = await memory.canvases()
            row = rows[number % len(rows)] if rows else None
            action = ("fold", "unfold", "complete", "switch", "show")[number % 5]
            if row:
                nodes = [f"{row.number:03}-N1", f"{row.number:03}-N2"] if number > 3 else []
                await memory.fold_canvas(task=f"{row.number:03}", action=action, nodes=nodes, session=name)
        case "forget":
            turns = await memory.session_turns(name)
            refs = [record.ref for record in await memory.records()]
            ids = [*(turn.id for turn in turns), *(atom.id for atom in await memory.atoms()), *refs]
            if ids:
                await memory.forget([ids[number * 7 % len(ids)]], reason=about)
        case "undo":
            held = [one for one in await memory.tombstones() if not one.undone and not one.purged]
            if held:
                await memory.forget(undo=held[number % len(held)].id)
        case "purge":
            held = [one.id for one in await memory.tombstones() if not one.undone and not one.purged]
            if held and number == 5:
                await memory.purge(held[:1])
        case _:
            await memory.flush(name)
            await memory.consolidate()


async def history(home: Path, steps: Sequence[Step]) -> None:
    clock = FixedClock(NOW - timedelta(days=1))
    embedder = HashEmbedder()
    async with (
        open_memory(home=home, now=clock, embedder=embedder, llm=Reader(), distil=False) as memory,
        open_memory(home=home, space="other", now=clock, embedder=embedder, distil=False) as other,
    ):
        for place, step in enumerate(steps):
            with suppress(NotFound, InvalidInput):
                await do(other if place % 4 == 3 else memory, step, clock)


@settings(max_examples=12)
@given(st.lists(STEPS, min_size=4, max_size=24))
def test_whatever_was_done_the_files_say_what_the_database_says(steps: Sequence[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        anyio.run(history, home, steps)
        before = dump(home)
        done = rebuild(home, now=NOW)
        assert done.notes == []
        assert [one for one in done.compared if not one.is_equal] == []
        assert done.is_swapped
        assert dump(home) == before
        store = open_store(home)
        assert store.problems() == []
        store.close()


def dump(home: Path) -> dict[str, list[object]]:
    """Every row of every table, but for how far the background has come and what is numbered anew."""
    con = sqlite3.connect(home / "memory.db")
    try:
        names = [
            name
            for (name,) in con.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name NOT"
                " GLOB '*_terms_*' AND name NOT GLOB '*_vec_*' ORDER BY name"
            )
        ]
        rows: dict[str, list[object]] = {}
        for name in names:
            if name in ("migration", "chunk", "sqlite_sequence", "term_range", "lease", "file"):
                continue
            columns = [column for _, column, *_ in con.execute(f"PRAGMA table_info({name})")]
            wanted = [column for column in columns if (name, column) not in (("ref", "indexed"), ("tombstone", "took"))]
            found = con.execute(f"SELECT {', '.join(wanted)} FROM {name}").fetchall()
            rows[name] = sorted(found, key=repr)
        return rows
    finally:
        con.close()
