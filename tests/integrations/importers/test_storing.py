"""A history in a memory: whole or not at all, each turn once, and nothing that was done is done again."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.importers.history import source_of
from mcp_memory.integrations.importers.report import FileReport
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.values import Imported
from tests.in_memory import in_memory
from tests.integrations.importers.conftest import NOW, Killed, contents, import_into, jsonl, rows, turn

File = Callable[..., Path]
DAY = datetime(2023, 5, 8, tzinfo=UTC)


def talk(count: int, *, dated: bool = True) -> list[dict[str, object]]:
    """Return turns of three sessions, alternating, some with the same words."""
    return [
        turn(
            f"Thing {i // 2}" if i % 5 else "ok",
            session=f"s{i % 3}",
            role="assistant" if i % 2 else "user",
            **({"said_at": (DAY + timedelta(minutes=i)).isoformat()} if dated else {}),
        )
        for i in range(count)
    ]


def recorded_imports(home: Path) -> list[Imported]:
    return in_memory(home, lambda memory: memory.imported())


# --- stored once ------------------------------------------------------------------------------------


def test_turns_are_stored_with_their_session_role_name_and_time(home: Path, file: File) -> None:
    path = file(jsonl([turn("Hi", name="Maya", timestamp=1700000000), turn("Hello", role="ai", session="b")]))
    assert import_into(home, path) == FileReport(
        file=str(path),
        state="stored",
        turns=2,
        sessions=2,
        first=datetime.fromtimestamp(1700000000, UTC),
        last=datetime.fromtimestamp(1700000000, UTC),
        stored=2,
        notes=[
            "1 turn has no time: each got that of the turn before plus 100 ms, or that of the file, "
            f"{datetime.fromtimestamp(1_700_000_000).astimezone():%Y-%m-%d %H:%M}."
        ],
    )
    kept = rows(home)
    assert {session: [(role, text, name) for role, text, name, _, _ in turns] for session, turns in kept.items()} == {
        "trip": [("user", "Hi", "Maya")],
        "b": [("assistant", "Hello", None)],
    }
    assert [turns[0][4] for turns in kept.values()] == [
        datetime.fromtimestamp(1_699_999_999.9, UTC).replace(microsecond=900_000),
        datetime.fromtimestamp(1_700_000_000, UTC),
    ]


@pytest.mark.parametrize("dated", [True, False])
def test_the_same_again_stores_nothing_whatever_file_it_is_in(dated: bool, home: Path, file: File) -> None:
    values = talk(30, dated=dated)
    assert import_into(home, file(jsonl(values))).stored == 30
    before = rows(home)
    packed = file(gzip.compress(jsonl(values)), "other.jsonl.gz", modified=1_600_000_000)
    array = file(json.dumps(values, indent=1).encode(), "third.json", modified=1_650_000_000)
    for path in (packed, array):
        again = import_into(home, path)
        assert (again.state, again.stored, again.duplicates) == ("stored", 0, 30)
    assert rows(home) == before


@pytest.mark.parametrize("dated", [True, False])
def test_only_the_new_turns_of_a_file_that_has_grown_are_stored(dated: bool, home: Path, file: File) -> None:
    values = talk(30, dated=dated)
    import_into(home, file(jsonl(values[:20]) + b'{"role": "user", "con'))
    grown = import_into(home, file(jsonl(values), modified=1_700_009_999))
    assert (grown.stored, grown.duplicates) == (10, 20)
    assert contents(home) == {f"s{n}": [value["content"] for value in values[n::3]] for n in range(3)}


@pytest.mark.slow
@settings(max_examples=10)  # each opens some memories
@given(lives=st.lists(st.integers(0, 6), min_size=1, max_size=2), dated=st.booleans())
def test_a_killed_import_continues_and_stores_the_same_rows_as_an_import_without_a_kill(
    lives: list[int], dated: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("killed")
    path = folder / "history.jsonl"
    path.write_bytes(jsonl(talk(20, dated=dated)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mcp_memory.integrations.importers.history.BATCH", 7)
        for life in lives:
            try:
                import_into(folder / "killed", path, lives=life)
            except Killed:
                assert recorded_imports(folder / "killed") == []
            else:  # the earlier lives had left little to do
                break
        import_into(folder / "killed", path)
        import_into(folder / "whole", path)
    assert rows(folder / "killed") == rows(folder / "whole")


def test_turns_that_a_server_stored_under_the_same_ids_are_not_stored_again(home: Path, file: File) -> None:
    async def live(memory: Memory) -> None:
        recorded = NewTurn(role="user", content="Hi", said_at=DAY, client_id="m1")
        await memory.record_turns([recorded], session="trip")

    in_memory(home, live)
    again = import_into(home, file(jsonl([turn("Hi", id="m1", said_at=DAY.isoformat())])))
    assert (again.stored, again.duplicates) == (0, 1)


def test_a_turn_with_an_unreadable_time_is_stored_and_the_time_is_counted(home: Path, file: File) -> None:
    turns = [turn("first", said_at="2026-05-07T08:00:00Z"), turn("second", said_at="9999-12-31T23:59:59-14:00")]
    done = import_into(home, file(jsonl([{"session": "s", "created_at": "soon", "turns": turns}])))
    assert (done.state, done.stored, done.bad) == ("stored", 2, 0)
    assert any(note.startswith("2 times cannot be read: ") for note in done.notes)
    assert done.first == done.last == datetime(2026, 5, 7, 8, 0, tzinfo=UTC)


def test_forgotten_turns_are_not_stored_again(home: Path, file: File) -> None:
    path = file(jsonl(talk(4)))
    import_into(home, path)

    async def forget() -> None:
        async with open_memory(home=home, embedder="none") as memory:
            await memory.forget(["t2"])

    anyio.run(forget)
    left = rows(home)
    assert import_into(home, path, again=True).stored == 0
    assert rows(home) == left


# --- whole or not at all ----------------------------------------------------------------------------


def test_nothing_of_a_file_with_a_wrong_line_is_stored(home: Path, file: File) -> None:
    path = file(jsonl(talk(600)) + b'{"role": "user"}\nnonsense\n' + jsonl(talk(3)))
    refused = import_into(home, path)
    assert (refused.state, refused.stored, refused.bad, refused.wrong) == (
        "refused",
        0,
        2,
        [
            "line 601: has no content. A turn is {role, content}.",
            "line 602: is not JSON (Expecting value at character 1). Repair or remove it.",
        ],
    )
    assert (rows(home), recorded_imports(home)) == ({}, [])


def test_with_skip_bad_the_valid_turns_are_stored_and_problems_are_counted_and_listed(home: Path, file: File) -> None:
    path = file(jsonl([turn("a"), {"turns": [turn("b"), {"role": "x"}, turn("c")]}, *[3] * 30]))
    done = import_into(home, path, skip_bad=True)
    assert (done.state, done.stored, done.bad, len(done.wrong), done.wrong[0]) == (
        "stored",
        3,
        31,
        2,
        "line 2, turns[1]: role is 'x', and has to be user, assistant, system or tool.",
    )
    assert contents(home) == {"trip": ["a", "b", "c"]}
    assert len(recorded_imports(home)) == 1


def test_a_file_that_is_rewritten_between_the_two_passes_is_not_stored_as_something_else(
    home: Path, file: File
) -> None:
    path = file(jsonl(talk(4)))

    def rewrite(doing: str, done: int, of: int) -> None:
        if (doing, done) == ("checking", of):
            path.write_bytes(b"x" * of)

    with pytest.raises(InvalidInput, match=r"changed while it was read\. Import it again\."):
        import_into(home, path, progress=rewrite)
    assert (rows(home), recorded_imports(home)) == ({}, [])


# --- imported files are not read again --------------------------------------------------------------


def test_an_unchanged_file_is_skipped_and_not_even_read(home: Path, file: File) -> None:
    path = file(jsonl(talk(4)))
    import_into(home, path)
    path.write_bytes(b"\0" * path.stat().st_size)  # no program writes files so; shows that the file is not read
    os.utime(path, (1_700_000_000, 1_700_000_000))
    again = import_into(home, path)
    assert again == FileReport(
        file=str(path),
        state="known",
        turns=4,
        notes=["It was imported on 2026-11-20 and has not changed; --again reads it once more."],
    )


def test_a_file_that_was_touched_copied_or_imported_just_after_it_was_written_is_known_by_its_hash(
    home: Path, file: File
) -> None:
    path = file(jsonl(talk(4)), modified=int(NOW.timestamp()))
    import_into(home, path)
    assert import_into(home, path).state == "known"
    path.write_bytes(jsonl(talk(3)) + b" " * (path.stat().st_size - len(jsonl(talk(3)))))
    os.utime(path, (int(NOW.timestamp()), int(NOW.timestamp())))
    assert import_into(home, path).state == "stored"
    copy = file(jsonl(talk(4)), "copy.jsonl", modified=1_500_000_000)
    assert import_into(home, copy).state == "known"
    assert (str(copy), 1_500_000_000_000) in {(imported.path, imported.modified) for imported in recorded_imports(home)}


# --- records and reports ----------------------------------------------------------------------------


def test_skipped_messages_and_parts_are_reported(home: Path, file: File) -> None:
    said_at = DAY.isoformat()
    values = [
        turn("a", said_at=said_at, model="x"),
        turn("", said_at=said_at),
        turn(["b", {"type": "image"}], session="a:b", said_at=said_at),  # type: ignore[arg-type]
        turn('<mcp-memory-recall part="stable">\nx\n</mcp-memory-recall>', said_at=said_at),
    ]
    data = jsonl(values) + json.dumps(turn("c\ud83d", said_at=said_at)).encode() + b"\n" + b'{"role"'
    done = import_into(home, file(data))
    assert (done.turns, done.stored, done.emptied) == (4, 3, 1)
    assert done.notes == [
        "1 session has a name that cannot be part of a file name: 'a:b' is kept as 'a-b-6783a3'.",
        "1 turn has no text and is left out.",
        "1 content part is not text and is left out.",
        "1 text has an invalid character, which is kept as U+FFFD.",
        "Unknown fields, not kept: model.",
        "line 6: is incomplete, and will be read when the file has grown.",
    ]


@pytest.mark.parametrize(
    ("name", "session"), [("standup.jsonl", "standup"), ("notes.2024.json.gz", "notes.2024"), (".jsonl", ".jsonl")]
)
def test_turns_without_a_session_get_a_session_named_like_the_file(
    name: str, session: str, home: Path, file: File
) -> None:
    data = jsonl([turn("a", session=None)])
    import_into(home, file(gzip.compress(data) if name.endswith("gz") else data, name))
    assert [kept.removesuffix(kept[-7:]) if session == ".jsonl" else kept for kept in contents(home)] == [
        "jsonl" if session == ".jsonl" else session
    ]


def test_a_session_that_is_asked_for_is_for_turns_that_name_none(home: Path, file: File) -> None:
    import_into(home, file(jsonl([turn("a", session=None), turn("b")])), session="asked")
    assert contents(home) == {"asked": ["a"], "trip": ["b"]}


@pytest.mark.parametrize("missing", [True, False])
def test_a_path_that_is_not_a_file_is_refused_with_its_name(missing: bool, tmp_path: Path) -> None:
    path = tmp_path / "gone" if missing else tmp_path
    with pytest.raises(InvalidInput, match="gone cannot be read: No such file" if missing else "is not a file. Name"):
        source_of(path)


def test_turns_without_a_time_after_the_last_moment_there_is_keep_that(home: Path, file: File) -> None:
    path = file(jsonl([turn("One", said_at="9999-12-31T23:59:59.999+00:00"), turn("Two"), turn("Three")]))
    assert import_into(home, path).stored == 3
