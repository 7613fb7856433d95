"""Each folder of `fixtures/imports` is imported as its `expected.json` says, counted by hand, and once."""

from __future__ import annotations

import atexit
import json
import shutil
import sqlite3
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.cli.import_files import sources
from mcp_memory.integrations.importers import parts
from mcp_memory.integrations.importers.format import AnyRecord
from mcp_memory.integrations.importers.format_table import whole_file_format
from mcp_memory.integrations.importers.history import ImportOptions, import_file, records, source_of, survey
from mcp_memory.integrations.importers.reader import ImportSource
from mcp_memory.integrations.importers.records import (
    ImportedResult,
    ImportedStatement,
    ImportedTurn,
    ImportProblem,
)
from mcp_memory.integrations.importers.report import FileReport
from mcp_memory.service.memory import Memory
from tests.in_memory import in_memory
from tests.integrations.importers.conftest import NOW, silent

FOLDER = Path(__file__).parents[3] / "fixtures" / "imports"
FIXTURES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())

CATEGORIES: Mapping[str, str] = {
    "branches": parts.BRANCHES,
    "thoughts": parts.THOUGHTS,
    "calls": parts.CALLS,
    "hidden": parts.HIDDEN,
    "results": parts.RESULTS,
    "injected": parts.INJECTED,
    "attached": parts.ATTACHED,
    "commands": parts.COMMANDS,
    "summaries": parts.SUMMARIES,
    "sub_agents": parts.SUB_AGENTS,
}
"""Short names of categories in `expected.json`; others are written out. `parts` are content parts that are not text."""


@cache
def folder_of(fixture: str) -> Path:
    """Return the folder of a fixture, in a copy in which each `<name>.sql` is the database `<name>`, if it has any."""
    scripts = list((FOLDER / fixture).rglob("*.sql"))
    if not scripts:
        return FOLDER / fixture
    copy = Path(tempfile.mkdtemp(prefix="mcp-memory-fixture-")) / fixture
    atexit.register(shutil.rmtree, copy.parent)
    shutil.copytree(FOLDER / fixture, copy)
    for script in copy.rglob("*.sql"):
        with closing(sqlite3.connect(script.with_suffix(""))) as database:
            database.executescript(script.read_text(encoding="utf-8"))
    return copy


def files(fixture: str) -> list[ImportSource]:
    with sources([folder_of(fixture)], "auto") as found:
        assert all(isinstance(source, ImportSource) for source in found), found
        return [source for source in found if isinstance(source, ImportSource)]


def _is_packable(source: ImportSource) -> bool:
    form = whole_file_format(source.path)
    return form is None or form.load is None


def read(fixture: str) -> tuple[list[AnyRecord], Counter[str]]:
    """Return the records of a fixture, and the counts of skipped messages and parts."""
    return _read(files(fixture))


def _read(found: list[ImportSource]) -> tuple[list[AnyRecord], Counter[str]]:
    told: list[AnyRecord] = []
    left: Counter[str] = Counter()
    for source in found:
        contents = survey(source, ImportOptions(), on_read=lambda _: None)
        skipped = type(contents.skipped)()
        told += records(source, ImportOptions(), contents.layout, skipped=skipped, on_read=lambda _: None)
        left += skipped.left_out
        left["parts"] += skipped.parts
    return told, +left


def when(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def expected(fixture: str) -> list[dict[str, Any]]:
    return json.loads((FOLDER / fixture / "expected.json").read_text(encoding="utf-8"))


def each(fixture: str, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the entries of a list of every session in `expected.json`, with the session."""
    for session in expected(fixture):
        for entry in session.get(key, []):
            yield session.get("session") or "", entry


@pytest.mark.parametrize("fixture", FIXTURES)
def test_turns_have_the_expected_role_words_time_and_id(fixture: str) -> None:
    told, _ = read(fixture)
    assert [str(one) for one in told if isinstance(one, ImportProblem)] == []
    turns = [one for one in told if isinstance(one, ImportedTurn) and one.name not in ("title", "canvas", "project")]
    shown = [(one.session or "", one.role, one.content, one.said_at) for one in turns if one.content]
    wanted = [(session, one["role"], one["content"], when(one["said_at"])) for session, one in each(fixture, "turns")]
    assert sorted(shown, key=str) == sorted(wanted, key=str)
    for session in {session for session, *_ in wanted}:
        assert [one for one in shown if one[0] == session] == [one for one in wanted if one[0] == session]
    ids = {(session, one["id"]) for session, one in each(fixture, "turns") if one.get("id")}
    assert ids <= {(one.session or "", one.id) for one in turns}
    titles = {(one.session, one.content) for one in told if isinstance(one, ImportedTurn) and one.name == "title"}
    assert titles == {(session["session"], session["title"]) for session in expected(fixture) if session.get("title")}


@pytest.mark.parametrize("fixture", FIXTURES)
def test_results_documents_and_statements_are_as_expected(fixture: str) -> None:
    told, _ = read(fixture)
    results = [one for one in told if isinstance(one, ImportedResult)]
    for _, one in each(fixture, "results"):
        assert (one["tool"], one["text"]) in {(result.tool, result.text) for result in results}
    written = [one.text for one in results] + [one.content for one in told if isinstance(one, ImportedTurn)]
    for _, one in each(fixture, "documents"):
        assert any(text.endswith(one["content"]) for text in written), one
    said = [one.words or one.text for one in told if isinstance(one, ImportedStatement)]
    assert sorted(said) == sorted(one["text"] for _, one in each(fixture, "statements"))


@pytest.mark.parametrize("fixture", FIXTURES)
def test_skipped_messages_and_parts_are_counted_by_category(fixture: str) -> None:
    _, left = read(fixture)
    wanted: Counter[str] = Counter()
    for session in expected(fixture):
        for name, count in session.get("left_out", {}).items():
            if not name.startswith("_"):
                wanted[CATEGORIES.get(name, name)] += count
    assert left == wanted


BESIDE = {"aider"}
"""Fixtures of files with some of their content in other files."""
IN_ZIPS = [name for name in FIXTURES if name not in BESIDE and all(map(_is_packable, files(name)))]


@pytest.mark.parametrize("fixture", IN_ZIPS)
def test_a_zip_of_the_files_yields_the_same_records(fixture: str, tmp_path: Path) -> None:
    folder = folder_of(fixture)
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as packed:
        for path in folder.rglob("*"):
            if path.is_file() and path.name != "expected.json":
                packed.write(path, path.relative_to(folder))
    plain, left = read(fixture)
    zipped, left_of_zip = _read([source_of(tmp_path / "export.zip")])
    assert Counter(map(_comparable, zipped)) == Counter(map(_comparable, plain))
    assert left_of_zip == left


def _comparable(one: AnyRecord) -> object:
    """Return the parts of a record that do not depend on its place."""
    if isinstance(one, ImportProblem):
        return one.what
    own = one.session if isinstance(one, ImportedTurn | ImportedResult) else None
    session = None if own is None or own.startswith("export-") else own
    return repr(
        replace(
            one, where="", **({} if isinstance(one, ImportedStatement) else {"session": session, "conversation": 0})
        )
    )


@pytest.mark.parametrize("fixture", FIXTURES)
def test_a_second_import_stores_nothing_twice(fixture: str, tmp_path: Path) -> None:
    found = files(fixture)

    async def visit(memory: Memory) -> list[FileReport]:
        asked = ImportOptions(again=True)
        return [await import_file(memory, source, asked, now=NOW, progress=silent) for source in (*found, *found)]

    reports = in_memory(tmp_path / "home", visit)
    first, second = reports[: len(reports) // 2], reports[len(reports) // 2 :]
    assert sum(one.stored + one.stored_statements for one in first) > 0
    assert sum(one.stored + one.stored_statements + one.kept for one in second) == 0
