"""What needs no model comes back from the files alone, and the comparison tells when it does not."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.reader import Reader
from mcp_memory.core.errors import InvalidInput, McpMemoryError, NotFound, Refused
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.portable.reading import opened as parcel
from mcp_memory.service.upkeep.rebuild import Rebuilt, rebuild
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.testing import FixedClock, HashEmbedder

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
    st.tuples(st.just("uncorrect"), session, thing, choice),
    st.tuples(st.just("undo"), session, thing, choice),
    st.tuples(st.just("distil"), session, thing, choice),
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
            await memory.remember(f"The {about} matters, number {number}", kind=kind, session=name, typed=True)
        case "fact":
            await memory.remember(
                f"The user lives at the {about}",
                entity="user",
                relation="lives at",
                value=about,
                session=name,
                typed=True,
            )
        case "replace":
            atoms = await memory.atoms()
            old = [atom.id for atom in atoms[number : number + 2]]
            await memory.remember(f"Instead the {about} counts", supersedes=old, session=name, typed=True)
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
        case "uncorrect":
            for atom in (await memory.atoms())[::-1]:
                with suppress(InvalidInput):
                    await memory.undo_correction(atom.id)
                    break
        case "undo":
            held = [one for one in await memory.tombstones() if not one.undone and not one.purged]
            if held:
                await memory.forget(undo=held[number % len(held)].id)
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
            with suppress(NotFound, InvalidInput, Refused):
                await do(other if place % 4 == 3 else memory, step, clock)


@pytest.mark.slow
@settings(max_examples=8)
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
            if name in ("migration", "chunk", "number", "term_range", "lease", "file"):
                continue
            columns = [column for _, column, *_ in con.execute(f"PRAGMA table_info({name})")]
            wanted = [column for column in columns if (name, column) not in (("ref", "indexed"), ("tombstone", "took"))]
            found = con.execute(f"SELECT {', '.join(wanted)} FROM {name}").fetchall()
            rows[name] = sorted(found, key=repr)
        return rows
    finally:
        con.close()


# --- examples ---------------------------------------------------------------------------------------


def differences(done: Rebuilt) -> dict[str, tuple[int, int, int]]:
    return {
        one.what: (one.differing, one.only_in_files, one.only_in_database) for one in done.compared if not one.is_equal
    }


def change(home: Path, sql: str) -> None:
    con = apsw.Connection(str(home / "memory.db"))
    con.execute(sql)
    con.close()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_the_old_database_is_kept_and_searches_answer_the_same(home: Path, lived: Lived) -> None:
    lived(home)

    async def ask() -> list[object]:
        async with open_memory(home=home, embedder="none") as memory:
            turns = await memory.conversation_search("the build in Porto")
            atoms = await memory.memory_search("where the user lives")
            return [turns.hits, atoms.atoms, atoms.facts]

    answers = anyio.run(ask)
    before = dump(home)
    done = rebuild(home, now=NOW)
    assert (done.is_equal, done.notes, done.damage, done.lost) == (True, [], [], [])
    assert anyio.run(ask) == answers
    aside = home / "backups/aside-20260302T080000Z-rebuild"
    assert done.aside == aside
    assert dump(aside) == before


def test_a_check_changes_nothing(home: Path, lived: Lived) -> None:
    lived(home)
    change(home, "UPDATE atom SET text = 'The user lives in Rome' WHERE space = 1 AND id = 1")
    before = (home / "memory.db").read_bytes()
    done = rebuild(home, check=True, now=NOW)
    assert (done.is_swapped, differences(done)) == (False, {"statements that were told": (1, 0, 0)})
    assert (home / "memory.db").read_bytes() == before
    assert sorted(path.name for path in home.iterdir() if path.name.startswith(".")) == []


def test_where_rows_differ_nothing_is_swapped_in_until_the_files_word_is_accepted(home: Path, lived: Lived) -> None:
    lived(home)
    before = dump(home)
    change(home, "UPDATE atom SET text = 'The user lives in Rome', priority = 3 WHERE space = 1 AND id = 1")
    done = rebuild(home, now=NOW)
    assert (done.is_swapped, done.differing) == (False, 1)
    assert done.compared[1].examples == ("a1",)
    done = rebuild(home, accept=True, now=NOW)
    assert done.is_swapped
    assert dump(home) == before


def test_rows_that_a_database_lost_come_back_and_lines_that_the_files_lost_too(home: Path, lived: Lived) -> None:
    lived(home)
    before = dump(home)
    journal = home / "spaces/default/conversations/2026-03-01.jsonl"
    whole = journal.read_bytes()
    first, second, *rest = whole.splitlines(keepends=True)
    journal.write_bytes(first + second.replace(b"Noted", b"Never") + b"".join(rest[1:]))
    change(home, "DELETE FROM record WHERE space = 1 AND id = 2; DELETE FROM session WHERE id = -1")
    done = rebuild(home, now=NOW)
    assert done.is_swapped
    assert done.notes == [
        "default: t2 in the journal is not what its hash says.",
        f"default: conversations/2026-03-01.jsonl is torn: {len(journal_of(done).read_bytes())} of {len(whole)} bytes.",
    ]
    told = {"turns": (0, 0, 2), "statements that were told": (0, 0, 1), "records": (0, 1, 0)}
    assert differences(done).items() >= told.items()
    assert dump(home) == before
    assert journal.read_bytes() == whole


def journal_of(done: Rebuilt) -> Path:
    assert done.aside is not None
    return done.aside / "spaces/default/conversations/2026-03-01.jsonl"


def test_what_was_purged_stays_so(home: Path, lived: Lived) -> None:
    lived(home)

    async def erase() -> None:
        async with open_memory(home=home, embedder="none") as memory:
            await memory.forget([(await memory.session_turns("work"))[0].id])
            await memory.purge([one.id for one in await memory.tombstones() if not one.undone])

    anyio.run(erase)
    before = dump(home)
    done = rebuild(home, now=NOW)
    assert (done.is_equal, done.notes) == (True, [])
    assert dump(home) == before


def test_made_of_the_files_alone_it_is_the_same_memory_and_knows_the_forgotten_again(home: Path, lived: Lived) -> None:
    lived(home)
    said = NewTurn(role="user", content="My locker at the harbour opens with 4711.", said_at=NOW - timedelta(days=9))

    async def erase() -> None:
        async with open_memory(home=home, embedder="none") as memory:
            stored = await memory.record_turns([said], session="talk")
            await memory.forget(stored.stored)
            await memory.export(home.parent / "own.zip")
            await memory.purge([one.id for one in await memory.tombstones() if not one.undone])

    anyio.run(erase)
    for file in home.glob("memory.db*"):
        file.unlink()
    rebuild(home, now=NOW)

    async def again() -> tuple[int, int]:
        async with open_memory(home=home, embedder="none") as memory:
            come = await memory.record_turns([said], session="from a log")
            brought = await memory.take_in(own, "default")
            return come.forgotten, brought.stored

    with parcel(home.parent / "own.zip", "own.zip") as own:
        assert anyio.run(again) == (1, 0)


def put_first(home: Path, name: str, line: str) -> None:
    """Have a line file of the space begin with a line, as if it had been committed."""
    path = home / "spaces" / "work" / name
    path.write_bytes(line.encode() + b"\n" + path.read_bytes())
    with closing(sqlite3.connect(home / "memory.db")) as con, con:
        con.execute(
            "UPDATE file SET bytes = bytes + ? WHERE path = ? AND space = (SELECT id FROM space WHERE name = 'work')",
            (len(line.encode()) + 1, name),
        )


UNSOUND = {
    **{"tombstone": "x9", "at": "2026-03-01T09:00:00.000+00:00", "reason": "", "how": "ids", "ids": []},
    **{"undone_at": None, "purged_at": None, "digests": []},
}
WRONG = ({"at": 1}, {"tombstone": f"x{10**30}"}, {"reason": None}, {"ids": ["", 5]}, {"digests": ["zz"]})


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("tombstones.jsonl", '{"tombstone": "x9"}'),
        ("tombstones.jsonl", '{"tombstone": 5}'),
        *(("tombstones.jsonl", json.dumps({**UNSOUND, **wrong})) for wrong in WRONG),
        ("canvases.jsonl", '{"canvas": 7}'),
        ("canvases.jsonl", '{"canvas": [], "of": "trip", "label": 1, "updated": 0, "version": 0}'),
        ("canvases.jsonl", '{"session": 1}'),
        ("canvases.jsonl", "[" * 90_000),
        ("offload-trip.jsonl", '{"record": 3}'),
        ("offload-trip.jsonl", '{"record": 3, "session": "trip", "node_id": 5}'),
        ("offload-trip.jsonl", "null"),
        ("conversations/2026-03-01.jsonl", '{"turn": 5}'),
        ("conversations/2026-03-01.jsonl", "{}"),
    ],
)
def test_a_line_that_does_not_say_what_it_should_is_named_and_the_others_count(
    home: Path, lived: Lived, name: str, line: str
) -> None:
    put_first(lived(home), name, line)
    done = rebuild(home, check=True, now=NOW)
    assert [note.partition(f" of {name} ")[0] for note in done.notes] == ["work: line 1"]
    assert not done.differing


def test_a_folder_without_files_is_told_so(home: Path) -> None:
    with pytest.raises(NotFound, match="has no files to make a database of"):
        rebuild(home, now=NOW)
    with pytest.raises(McpMemoryError):
        rebuild(home / "nowhere", now=NOW)
