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
    with sources([folder_of(fixture)], "auto") as sources_of_fixture:
        assert all(isinstance(source, ImportSource) for source in sources_of_fixture), sources_of_fixture
        return [source for source in sources_of_fixture if isinstance(source, ImportSource)]


def _is_packable(source: ImportSource) -> bool:
    form = whole_file_format(source.path)
    return form is None or form.load is None


def read(fixture: str) -> tuple[list[AnyRecord], Counter[str]]:
    """Return the records of a fixture, and the counts of skipped messages and parts."""
    return _read(files(fixture))


def _read(sources_of_fixture: list[ImportSource]) -> tuple[list[AnyRecord], Counter[str]]:
    all_records: list[AnyRecord] = []
    left: Counter[str] = Counter()
    for source in sources_of_fixture:
        contents = survey(source, ImportOptions(), on_read=lambda _: None)
        skipped = type(contents.skipped)()
        all_records += records(source, ImportOptions(), contents.layout, skipped=skipped, on_read=lambda _: None)
        left += skipped.left_out
        left["parts"] += skipped.parts
    return all_records, +left


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
    all_records, _ = read(fixture)
    assert [str(record) for record in all_records if isinstance(record, ImportProblem)] == []
    turns = [
        record
        for record in all_records
        if isinstance(record, ImportedTurn) and record.name not in ("title", "canvas", "project")
    ]
    shown = [(record.session or "", record.role, record.content, record.said_at) for record in turns if record.content]
    expected_turns = [
        (session, entry["role"], entry["content"], when(entry["said_at"])) for session, entry in each(fixture, "turns")
    ]
    assert sorted(shown, key=str) == sorted(expected_turns, key=str)
    for session in {session for session, *_ in expected_turns}:
        assert [row for row in shown if row[0] == session] == [row for row in expected_turns if row[0] == session]
    ids = {(session, entry["id"]) for session, entry in each(fixture, "turns") if entry.get("id")}
    assert ids <= {(record.session or "", record.id) for record in turns}
    titles = {
        (record.session, record.content)
        for record in all_records
        if isinstance(record, ImportedTurn) and record.name == "title"
    }
    assert titles == {(session["session"], session["title"]) for session in expected(fixture) if session.get("title")}


@pytest.mark.parametrize("fixture", FIXTURES)
def test_results_documents_and_statements_are_as_expected(fixture: str) -> None:
    all_records, _ = read(fixture)
    results = [record for record in all_records if isinstance(record, ImportedResult)]
    for _, entry in each(fixture, "results"):
        assert (entry["tool"], entry["text"]) in {(result.tool, result.text) for result in results}
    written = [record.text for record in results] + [
        record.content for record in all_records if isinstance(record, ImportedTurn)
    ]
    for _, entry in each(fixture, "documents"):
        assert any(text.endswith(entry["content"]) for text in written), entry
    statements = [record.words or record.text for record in all_records if isinstance(record, ImportedStatement)]
    assert sorted(statements) == sorted(entry["text"] for _, entry in each(fixture, "statements"))


@pytest.mark.parametrize("fixture", FIXTURES)
def test_skipped_messages_and_parts_are_counted_by_category(fixture: str) -> None:
    _, left = read(fixture)
    expected_counts: Counter[str] = Counter()
    for session in expected(fixture):
        for name, count in session.get("left_out", {}).items():
            if not name.startswith("_"):
                expected_counts[CATEGORIES.get(name, name)] += count
    assert left == expected_counts


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


def _comparable(record: AnyRecord) -> object:
    """Return the parts of a record that do not depend on its place."""
    if isinstance(record, ImportProblem):
        return record.what
    own = record.session if isinstance(record, ImportedTurn | ImportedResult) else None
    session = None if own is None or own.startswith("export-") else own
    return repr(
        replace(
            record,
            where="",
            **({} if isinstance(record, ImportedStatement) else {"session": session, "conversation": 0}),
        )
    )


@pytest.mark.parametrize("fixture", FIXTURES)
def test_a_second_import_stores_nothing_twice(fixture: str, tmp_path: Path) -> None:
    sources_of_fixture = files(fixture)

    async def visit(memory: Memory) -> list[FileReport]:
        options = ImportOptions(again=True)
        return [
            await import_file(memory, source, options, now=NOW, progress=silent)
            for source in (*sources_of_fixture, *sources_of_fixture)
        ]

    reports = in_memory(tmp_path / "home", visit)
    first, second = reports[: len(reports) // 2], reports[len(reports) // 2 :]
    assert sum(report.stored + report.stored_statements for report in first) > 0
    assert sum(report.stored + report.stored_statements + report.kept for report in second) == 0
