"""Imported turns are recognised, with or without readable times, and wherever their file is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integrations.importers.conftest import contents, import_into, jsonl, rows, turn

File = Callable[..., Path]
START = datetime(2026, 5, 7, 8, 0, tzinfo=UTC)
AT = START.isoformat()


@pytest.mark.parametrize("key", ["createdAt", "ts", "time", "date", "create_time"])
@pytest.mark.parametrize("value", [AT, START.timestamp(), int(START.timestamp() * 1000)])
def test_a_time_is_read_under_the_names_that_programs_use(key: str, value: Any, file: File, tmp_path: Path) -> None:
    import_into(tmp_path / "home", file(jsonl([turn("hi", **{key: value})])))
    assert [row[4] for row in rows(tmp_path / "home")["trip"]] == [START]


def _history(words: list[str], *, dated: bool, ids: bool) -> bytes:
    return jsonl(
        [
            turn(
                text,
                **({"said_at": (START + timedelta(minutes=n)).isoformat()} if dated else {}),
                **({"id": f"m{n}"} if ids else {}),
            )
            for n, text in enumerate(words)
        ]
    )


@given(
    words=st.lists(st.sampled_from(["The kiln is hot.", "The tide is low.", "Call Ines."]), min_size=1, max_size=6),
    orders=st.sampled_from([(True, False), (False, True)]),
    ids=st.booleans(),
)
@settings(max_examples=8, deadline=None)
def test_a_history_is_stored_once_whether_its_times_were_read_or_not(
    words: list[str], orders: tuple[bool, bool], ids: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("again")
    path = folder / "history.jsonl"
    path.write_bytes(_history(words, dated=orders[0], ids=ids))
    import_into(folder / "home", path)
    path.write_bytes(_history(words, dated=orders[1], ids=ids))
    done = import_into(folder / "home", path)
    assert contents(folder / "home") == {"trip": words}
    assert (done.stored, done.duplicates) == (0, len(words))


def test_words_repeated_later_in_another_file_are_kept(file: File, tmp_path: Path) -> None:
    home, later = tmp_path / "home", (START + timedelta(days=1)).isoformat()
    import_into(home, file(jsonl([turn("Yes.", said_at=AT)]), "may.jsonl"))
    for _ in range(2):
        import_into(home, file(jsonl([turn("Yes.", said_at=later)]), "june.jsonl"), again=True)
    import_into(home, file(jsonl([turn("Yes.", said_at=AT), turn("Yes.", said_at=later)]), "all.jsonl"))
    assert contents(home) == {"trip": ["Yes.", "Yes."]}


def _in(folder: Path, *words: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "history.jsonl"
    path.write_bytes(jsonl([turn(text, session=None) for text in words]))
    return path


def test_files_of_the_same_name_in_different_folders_are_separate_sessions(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder, words in (("hive", "Bees swarm."), ("loom", "Warp the loom."), ("hive", "Bees swarm.")):
        import_into(home, _in(tmp_path / folder, words), again=True)
    sessions = contents(home)
    assert sorted(sessions.values()) == [["Bees swarm."], ["Warp the loom."]]
    assert sessions["history"] == ["Bees swarm."]
    [other] = sessions.keys() - {"history"}
    assert other.startswith("loom-history-")
    import_into(home, _in(tmp_path / "loom", "Warp the loom.", "Weave."))
    assert contents(home)[other] == ["Warp the loom.", "Weave."]


def test_a_moved_file_with_new_turns_continues_its_session(tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = _in(tmp_path / "desk", "Bees swarm.")
    import_into(home, path)
    path.unlink()
    import_into(home, _in(tmp_path / "shelf", "Bees swarm.", "They left."))
    assert contents(home) == {"history": ["Bees swarm.", "They left."]}


def test_gemini_activities_that_are_exported_as_json_and_as_html_are_stored_once(tmp_path: Path) -> None:
    fixtures, home = Path(__file__).parents[3] / "fixtures" / "imports", tmp_path / "home"
    [json_file] = (fixtures / "gemini-takeout").rglob("MyActivity.json")
    [html_file] = (fixtures / "gemini-takeout-html").rglob("MyActivity.html")
    import_into(home, json_file)
    before = contents(home)
    done = import_into(home, html_file)
    assert (done.stored, done.duplicates) == (0, 4)
    assert contents(home) == before


def test_turns_of_an_earlier_version_are_recognised(
    tmp_path: Path, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcp_memory.integrations.importers import placement

    new = placement._content_ids  # pyright: ignore[reportPrivateUsage]

    def old(session: Any, turn_without_id: Any) -> tuple[str, tuple[str, ...]]:
        return new(session, turn_without_id)[1][0], ()

    home, words = tmp_path / "home", ["Yes.", "Yes.", "No."]
    path = file(_history(words, dated=True, ids=False))
    with monkeypatch.context() as patch:
        patch.setattr(placement, "_content_ids", old)
        import_into(home, path)
    again = import_into(home, path, again=True)
    assert (again.stored, again.duplicates) == (0, 3)
    assert Counter(contents(home)["trip"]) == {"Yes.": 2, "No.": 1}
