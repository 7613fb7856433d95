"""Sessions and notes of agents that no fixture has: groups, deleted sessions, encrypted files, odd Markdown."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.cli.import_files import sources
from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.importers.format_table import files_of_formats, table
from mcp_memory.integrations.importers.formats.openclaw import COMPRESSED
from mcp_memory.integrations.importers.history import ImportOptions, source_of, survey
from mcp_memory.integrations.importers.markdown_notes import Passage, front_matter, markdown_passages
from mcp_memory.integrations.importers.reader import ImportSource
from mcp_memory.integrations.importers.records import ImportedTurn, SkippedParts, SourceValue

SENDER = 'Sender (untrusted metadata):\n```json\n{\n  "name": "Ines"\n}\n```\n\n'


def write_openclaw(folder: Path, *texts: str, key: str = "agent:main:main", name: str = "s1.jsonl") -> Path:
    lines: list[dict[str, Any]] = [{"type": "session", "id": "s1", "timestamp": "2026-02-20T07:00:00Z"}]
    for nth, text in enumerate(texts, start=1):
        message = {"role": "user", "content": text}
        lines.append({"type": "message", "id": f"o{nth}", "parentId": f"o{nth - 1}", "message": message})
    path = folder / name
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (folder / "sessions.json").write_text(json.dumps({key: {"sessionId": "s1"}}), encoding="utf-8")
    return path


def turns_of(path: Path, format: str) -> tuple[list[ImportedTurn], SkippedParts]:  # noqa: A002
    form, skipped = table()[format], SkippedParts()
    assert form.load is not None
    values = [value for value in form.load(path) if isinstance(value, SourceValue)]
    records = [record for value in values for record in form.records(value, skipped)]
    return [record for record in records if isinstance(record, ImportedTurn)], skipped


def test_a_message_of_a_group_has_the_name_of_who_wrote_it(tmp_path: Path) -> None:
    path = write_openclaw(tmp_path, f"{SENDER}is the hive dry?", key="agent:main:whatsapp:group:1")
    turns, _ = turns_of(path, "openclaw")
    assert [(turn.name, turn.content) for turn in turns] == [("Ines", "is the hive dry?")]


def test_a_session_that_a_job_began_is_counted_and_not_imported(tmp_path: Path) -> None:
    turns, skipped = turns_of(write_openclaw(tmp_path, "Water the fig.", key="cron:fig"), "openclaw")
    assert (turns, dict(skipped.left_out)) == ([], {"messages of sub-agents": 1})


def test_a_session_that_was_deleted_is_not_found_in_a_folder(tmp_path: Path) -> None:
    kept = write_openclaw(tmp_path, "hello")
    write_openclaw(tmp_path, "secret", name="s1.jsonl.deleted.2026-02-21")
    assert list(files_of_formats(tmp_path)) == [kept]


@pytest.mark.parametrize("data", [b"\x00\x01" * 40, bytes(range(128, 256)), b"\n\x10plain"])
def test_the_error_about_an_encrypted_conversation_names_the_transcripts_that_can_be_imported(
    data: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "55555555.pb"
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match=r"encrypt their conversations.*transcript_full\.jsonl"):
        survey(source_of(path), ImportOptions(), on_read=lambda _: None)


def test_a_bullet_includes_its_headings_its_introduction_and_its_nested_lines() -> None:
    text = (
        "# Hive\n\n## Rules\nBefore\nwork:\n* Wear gloves.\n  - leather\n\n  Thick ones.\n* Smoke first.\n\n"
        "~~~\n# no heading\n~~~\n\n---\n\nAsk:\n\n### Deep ##\nEnd.\n"
    )
    assert list(markdown_passages(text)) == [
        Passage(line=6, text="Wear gloves.\n- leather\nThick ones.", headings=("Rules",), intro="Before\nwork:"),
        Passage(line=10, text="Smoke first.", headings=("Rules",), intro="Before\nwork:"),
        Passage(line=12, text="~~~\n# no heading\n~~~", headings=("Rules",)),
        Passage(line=18, text="Ask:", headings=("Rules",)),
        Passage(line=21, text="End.", headings=("Rules", "Deep")),
    ]


def test_inner_fields_of_front_matter_are_read() -> None:
    text = "---\nname: hive\nmetadata:\n  type: user\n---\nText.\n"
    assert front_matter(text) == ({"name": "hive", "type": "user"}, "Text.\n", 6)


def test_a_folder_of_notes_of_another_memory_is_read_whole_although_it_has_instructions(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Keep answers short.\n", encoding="utf-8")
    with sources([tmp_path], "auto") as logs:
        assert [source.path.name for source in logs if isinstance(source, ImportSource)] == ["AGENTS.md"]
    (tmp_path / "hive.md").write_text("---\ntitle: Hive\n---\n- [weight] 31 kg\n", encoding="utf-8")
    with sources([tmp_path], "auto") as logs:
        assert [source.path for source in logs if isinstance(source, ImportSource)] == [tmp_path]


def test_a_line_that_openclaw_compressed_hides_nothing_before_it(tmp_path: Path) -> None:
    path = tmp_path / "openclaw-agent.sqlite"
    said = [("user", "Where is the key?"), ("toolResult", None), ("assistant", "Under the mat.")]
    with sqlite3.connect(path) as database:
        columns = "session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB, navigation_json TEXT"
        database.execute(f"CREATE TABLE transcript_events ({columns})")
        for number, (role, content) in enumerate(said):
            line = {"type": "message", "id": f"m{number}", "parentId": f"m{number - 1}" if number else None}
            whole = json.dumps({**line, "message": {"role": role, "content": content}})
            known = json.dumps({"navigation": {**line, "message": {"role": role}}})
            stored = (whole, None, None) if content else (None, b"no zstd", known)
            database.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?)", ("s1", number, *stored))
    turns, skipped = turns_of(path, "openclaw-db")
    assert [turn.content for turn in turns] == ["Where is the key?", "Under the mat."]
    assert skipped.left_out == {COMPRESSED: 1}
