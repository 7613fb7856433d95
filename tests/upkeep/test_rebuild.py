"""A database made of the files alone has all that needs no model; one that is whole gets what it lacks."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import anyio
import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.reader import Reader
from mcp_memory.core.errors import InvalidInput, McpMemoryError, NotFound, Refused
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.portable.reading import open_export as parcel
from mcp_memory.service.upkeep.rebuild import rebuild
from mcp_memory.store.sql import copies, home_rows, turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.sqlite.transaction import SqliteTransaction
from mcp_memory.testing import FixedClock, HashEmbedder
from tests.in_memory import in_memory
from tests.upkeep.conftest import NOW, Lived

# --- the law ----------------------------------------------------------------------------------------
# Whatever was done with a home, a database made of its files alone makes the same files.

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
def test_whatever_was_done_a_database_made_of_the_files_makes_the_same_files(steps: Sequence[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        anyio.run(history, home, steps)
        done = rebuild(home, now=NOW)
        assert (done.notes, done.added, done.is_swapped) == ([], {}, False)
        before = made_of_rows(home)
        for path in home.glob("memory.db*"):
            path.unlink()
        done = rebuild(home, now=NOW)
        assert (done.notes, done.is_swapped) == ([], True)
        # Scenes are a model's work, which only the database has.
        assert made_of_rows(home) == {path: text for path, text in before.items() if path[1][:7] != "scenes/"}
        with closing(open_store(home)) as store:
            assert store.problems() == []


def made_of_rows(home: Path) -> dict[tuple[str, str], bytes]:
    """Return the copies that the rows of a home make, by (space, path)."""
    with closing(open_store(home)) as store:
        return {
            (space, path): b"".join(copies.content(tx, path) or ())
            for space in store.read_home(home_rows.spaces)
            for tx in [SqliteTransaction(apsw.Connection(str(home / "memory.db")), home, space)]
            for path in copies.paths(tx)
        }


def dump(home: Path) -> dict[str, list[object]]:
    """Return the rows of the tables whose rows are in files."""
    con = sqlite3.connect(home / "memory.db")
    try:
        rows = {
            name: con.execute(f"SELECT * FROM {name}").fetchall()
            for name in ("turn", "atom", "fact", "record", "canvas", "canvas_version", "session")
        }
        return {name: sorted(found, key=repr) for name, found in rows.items()}
    finally:
        con.close()


# --- examples ---------------------------------------------------------------------------------------


def change(home: Path, sql: str) -> None:
    con = apsw.Connection(str(home / "memory.db"))
    con.execute(sql)
    con.close()


def test_a_database_that_has_all_that_its_files_have_is_left_as_it_is(home: Path, lived: Lived) -> None:
    lived(home)
    before = (home / "memory.db").read_bytes()
    for check in (True, False):
        done = rebuild(home, check=check, now=NOW)
        assert (done.is_well, done.is_swapped, done.added, done.notes, done.lost) == (True, False, {}, [], [])
    assert (home / "memory.db").read_bytes() == before
    assert sorted(path.name for path in home.iterdir() if path.name.startswith(".")) == []


def test_a_row_that_was_changed_stays_as_the_database_has_it(home: Path, lived: Lived) -> None:
    lived(home)
    change(home, "UPDATE atom SET priority = 3 WHERE space = 1 AND id = 1")
    before = dump(home)
    assert not rebuild(home, now=NOW).is_swapped
    assert dump(home) == before


def test_rows_that_a_database_lost_are_added_and_the_old_one_is_kept(home: Path, lived: Lived) -> None:
    lived(home)
    before = dump(home)
    change(home, "DELETE FROM record WHERE space = 1 AND id = 2")
    lacking = dump(home)
    checked = rebuild(home, check=True, now=NOW)
    assert (checked.added, checked.is_swapped, checked.is_well) == ({"records": 1}, False, False)
    assert dump(home) == lacking
    done = rebuild(home, now=NOW)
    assert (done.added, done.is_swapped, done.is_well) == ({"records": 1}, True, True)
    assert dump(home) == before
    assert done.aside == home / "backups/aside-20260302T080000Z-rebuild"
    assert done.aside is not None
    assert dump(done.aside) == lacking


def test_a_line_whose_words_do_not_match_their_hash_is_named_and_not_read(home: Path, lived: Lived) -> None:
    journal = lived(home) / "spaces/default/conversations/2026-03-01.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"Noted", b"Never"))
    for path in home.glob("memory.db*"):
        path.unlink()
    done = rebuild(home, now=NOW)
    assert done.notes == ["default: t2 of the turns in the files is invalid."]
    with closing(open_store(home)) as store:
        assert store.read("default", turn_rows.by_ids, ["t2"]) == []
        assert [turn.id for turn in store.read("default", turn_rows.by_ids, ["t1"])] == ["t1"]


def test_what_was_purged_stays_so(home: Path, lived: Lived) -> None:
    lived(home)

    async def erase(memory: Memory) -> None:
        await memory.forget([(await memory.session_turns("work"))[0].id])
        await memory.purge([one.id for one in await memory.tombstones() if not one.undone])

    in_memory(home, erase)
    before = made_of_rows(home)
    for path in home.glob("memory.db*"):
        path.unlink()
    assert rebuild(home, now=NOW).notes == []
    assert made_of_rows(home) == before


def test_made_of_the_files_alone_it_is_the_same_memory_and_knows_the_forgotten_again(home: Path, lived: Lived) -> None:
    lived(home)
    said = NewTurn(role="user", content="My locker at the harbour opens with 4711.", said_at=NOW - timedelta(days=9))

    async def erase(memory: Memory) -> None:
        stored = await memory.record_turns([said], session="talk")
        await memory.forget(stored.stored)
        await memory.export(home.parent / "own.zip")
        await memory.purge([one.id for one in await memory.tombstones() if not one.undone])

    in_memory(home, erase)
    for file in home.glob("memory.db*"):
        file.unlink()
    rebuild(home, now=NOW)

    async def again(memory: Memory) -> tuple[int, int]:
        come = await memory.record_turns([said], session="from a log")
        brought = await memory.take_in(own, "default")
        return come.forgotten, brought.stored

    with parcel(home.parent / "own.zip", "own.zip") as own:
        assert in_memory(home, again) == (1, 0)


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
        ("offload-trip.jsonl", '{"record": 33}'),
        ("offload-trip.jsonl", '{"record": 33, "session": "trip", "node_id": 5}'),
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
    assert [note.startswith("work: ") for note in done.notes] == [True]
    assert done.added == {}


def test_a_folder_without_files_is_told_so(home: Path) -> None:
    with pytest.raises(NotFound, match="has no files to make a database of"):
        rebuild(home, now=NOW)
    with pytest.raises(McpMemoryError):
        rebuild(home / "nowhere", now=NOW)
