"""Zip archives of exports: their records, and the errors about archives that are refused."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.importers import archive
from tests.integrations.importers.conftest import contents, import_into, read_records, survey_path

File = Callable[..., Path]
EXPORTS = Path(__file__).parents[3] / "fixtures" / "exports"
CHATGPT, CLAUDE = ((EXPORTS / name).read_bytes() for name in ("chatgpt.json", "claude-ai.json"))


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as packed:
        for name, content in members:
            packed.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return data.getvalue()


def talk(id: str, *texts: str) -> bytes:
    messages = [{"uuid": f"{id}-{text}", "sender": "human", "text": text} for text in texts]
    return json.dumps([{"uuid": id, "chat_messages": messages}]).encode()


def patched(data: bytes, *, flag: int = 0, method: int = 8, size: int | None = None) -> bytes:
    """The archive with other flags, method and size of its first member in both of its headers."""
    changed = bytearray(data)
    for at, flags in ((changed.find(b"PK\3\4"), 6), (changed.find(b"PK\1\2"), 8)):
        struct.pack_into("<HH", changed, at + flags, flag, method)
    if size is not None:
        struct.pack_into("<I", changed, changed.find(b"PK\1\2") + 24, size)
    return bytes(changed)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("name", ["conversations.json", "data-2026-01-01/conversations.json", "Conversations.JSON"])
def test_an_export_reads_the_same_packed_and_unpacked(name: str, method: int, file: File) -> None:
    for data in (CHATGPT, CLAUDE):
        packed = survey_path(
            file(zipped(("user.json", b"{}"), (name, data), ("chat.html", b"<html>"), method=method), "e.zip")
        )
        plain = survey_path(file(data, "conversations.json"))
        assert (packed.turns, packed.sessions) == (plain.turns, plain.sessions)
        assert packed.skipped.left_out == plain.skipped.left_out
        assert [name for name, _ in packed.skipped.unread.values()] == ["user.json", "chat.html"]
        assert (packed.layout, packed.bad) == ("archive", 0)


def test_the_parts_of_a_split_export_are_read_in_their_order(file: File) -> None:
    members = [(f"conversations-{nth}.json", talk(f"c{nth}", str(nth))) for nth in (10, 9, 100, 1)]
    records = read_records(file(zipped(*members, ("shared_conversations.json", b"[{}]")), "export.zip"))
    assert [(record.content, record.where) for record in records] == [
        (str(nth), f"conversations-{nth}.json, line 1, [0].chat_messages[0]") for nth in (1, 9, 10, 100)
    ]
    assert [record.conversation for record in records] == [1, 2, 3, 4]


def test_a_folder_of_conversations_is_read_where_no_file_has_them_all(file: File) -> None:
    folder = [("x/conversations/b.json", talk("b", "two")), ("x/conversations/a.json", talk("a", "one"))]
    assert [record.content for record in read_records(file(zipped(*folder), "x.zip"))] == ["one", "two"]
    whole = ("x/conversations.json", talk("c", "three"))
    assert [record.content for record in read_records(file(zipped(*folder, whole), "x.zip"))] == ["three"]


def test_an_archive_from_windows_may_have_its_slashes_the_other_way(file: File) -> None:
    data = zipped(("export/conversations.json", CLAUDE)).replace(b"export/", b"export\\")
    assert survey_path(file(data, "export.zip")).turns == 8


def test_files_that_macos_adds_to_an_archive_are_not_read(file: File) -> None:
    added = ("__MACOSX/._conversations.json", b"\0\5\x16\7"), ("._conversations.json", b"\0")
    assert survey_path(file(zipped(("conversations.json", CLAUDE), *added), "export.zip")).turns == 8


@pytest.mark.parametrize("name", ["/etc/conversations.json", "../conversations.json", "C:\\x\\conversations.json"])
def test_a_name_that_leads_out_of_the_archive_is_passed_over_and_named(name: str, file: File, tmp_path: Path) -> None:
    data = zipped(("conversations.json", CLAUDE), (name, CHATGPT))
    path = file(data, "export.zip")
    survey = survey_path(path)
    assert (survey.turns, survey.sessions) == (8, 2)
    assert survey.skipped.unread == {"names that lead out of the archive": (name, 1)}
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InvalidInput, match="leads out of the archive"):
        survey_path(file(zipped((name, CHATGPT)), "export.zip"))


GOOD = zipped(("conversations.json", CLAUDE))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (GOOD[: len(GOOD) // 2], "is damaged or truncated"),
        (GOOD[:-8], "is damaged or truncated"),
        (GOOD[:100] + b"\xff" + GOOD[101:], "is damaged or truncated"),
        (patched(GOOD, size=100), "is damaged or truncated"),
        (patched(GOOD, flag=1), "is encrypted. Unpack it with its password"),
        (patched(GOOD, method=9), "uses an unsupported compression method"),
        (zipped(("conversations.json", CLAUDE), method=zipfile.ZIP_LZMA), "uses an unsupported compression method"),
        (patched(GOOD, method=77), "uses an unsupported compression method"),
        (zipped(), "contains no file that can be read. It is empty."),
        (zipped(("inner/export.zip", GOOD)), "contains other archives (inner/export.zip): extract and import those"),
        (zipped(("conversations.json", b"")), None),
        (zipped(("conversations.json", b"[]")), None),
        (zipped(("conversations.json", b"hello")), "export.zip, conversations.json, line 1: expected an array"),
        (zipped(("conversations.json", CLAUDE[:-3])), "conversations.json, line"),
        (zipped(("conversations.json", CLAUDE.decode().encode("utf-16"))), "is not UTF-8"),
        (zipped(("conversations.json", b"[" * 10**5)), "a value is nested too deep or has too many digits"),
        (zipped(("conversations.json", b"[" + b" " * (65 * 2**20))), "would unpack to 65 MiB from 0.1"),
    ],
)
def test_an_archive_that_cannot_be_taken_is_refused_in_a_sentence(data: bytes, message: str | None, file: File) -> None:
    path = file(data, "export.zip")
    if message is None:
        assert (survey_path(path).turns, survey_path(path).bad) == (0, 0)
        return
    with pytest.raises(InvalidInput, match=r"export.zip") as refused:
        survey_path(path)
    assert message in str(refused.value)


def test_two_members_of_the_same_name_are_refused(file: File) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zipped(("a/conversations.json", CLAUDE), ("a/conversations.json", CHATGPT))
    with pytest.raises(InvalidInput, match=r"contains two files named a/conversations\.json"):
        survey_path(file(data, "export.zip"))


@given(st.integers(0, len(GOOD) - 1), st.binary(min_size=1, max_size=4), st.booleans())
def test_whatever_is_wrong_with_an_archive_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, other: bytes, cut: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "wrong.zip"
    path.write_bytes(GOOD[:at] if cut else GOOD[:at] + other + GOOD[at + len(other) :])
    with suppress(InvalidInput):
        assert survey_path(path).turns in (0, 8)


def test_a_format_that_is_asked_for_holds_for_every_value(file: File) -> None:
    path = file(GOOD, "export.zip")
    assert survey_path(path, format="claude-ai").turns == 8
    assert survey_path(path, format="chatgpt").bad == 3
    with pytest.raises(InvalidInput, match=r"is a zip archive\. Leave --format out"):
        survey_path(path, format="jsonl")


@pytest.mark.slow
def test_very_many_problems_end_the_reading_and_nothing_is_stored(file: File, tmp_path: Path) -> None:
    path = file(zipped(("conversations.json", b"[0" + b",0" * 200_000 + b"]")), "export.zip")
    done = import_into(tmp_path / "home", path)
    assert (done.state, done.stored, done.bad) == ("refused", 0, 10_000)
    assert survey_path(path, skip_bad=True).bad == 200_001


def test_an_archive_is_stored_as_its_unpacked_file_is_and_not_twice(file: File, tmp_path: Path) -> None:
    home = tmp_path / "home"
    packed = import_into(home, file(zipped(("conversations.json", CHATGPT), ("conversations-1.json", CLAUDE)), "e.zip"))
    assert (packed.state, packed.stored, packed.duplicates) == (
        "stored",
        18,
        0,
    )  # the attachments of three messages are stored with them
    before = contents(home)
    plain = import_into(home, file(CHATGPT, "conversations.json"))
    assert (plain.stored, plain.duplicates) == (0, 8)
    assert import_into(home, file(zipped(("x/conversations.json", CLAUDE)), "f.zip")).duplicates == 10
    assert contents(home) == before


def test_progress_goes_up_to_the_size_of_the_archive(file: File, tmp_path: Path) -> None:
    path = file(zipped(*((f"conversations-{nth}.json", CLAUDE) for nth in range(30))), "export.zip")
    seen_at: list[tuple[str, int, int]] = []
    import_into(tmp_path / "home", path, progress=lambda *step: seen_at.append(step))
    size = path.stat().st_size
    for doing in ("checking", "storing"):
        done = [at for what, at, of in seen_at if what == doing and of == size]
        assert done == sorted(done)
        assert done[-1] <= size


def test_the_files_of_an_unpacked_export_are_found_in_its_folder(tmp_path: Path) -> None:
    for name in ("conversations-10.json", "conversations-9.json", "user.json", "conversations/a.json", "my.json"):
        path = tmp_path / "export" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CLAUDE)
    parts = [tmp_path / "export" / f"conversations-{nth}.json" for nth in (9, 10)]
    assert archive.unpacked_conversations(tmp_path) == archive.unpacked_conversations(tmp_path / "export") == parts
    for part in parts:
        part.unlink()
    assert archive.unpacked_conversations(tmp_path) == [tmp_path / "export/conversations/a.json"]
    assert archive.unpacked_conversations(tmp_path / "export" / "conversations") == []


def test_a_file_is_known_for_an_archive_by_its_first_bytes() -> None:
    assert [archive.is_archive(data) for data in (GOOD, zipped(), b"", b"PK", CLAUDE)] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_memories_and_projects_beside_the_conversations_are_read_too(tmp_path: Path) -> None:
    folder = EXPORTS.parent / "imports" / "claude-ai-legacy"
    path = tmp_path / "export.zip"
    path.write_bytes(
        zipped(
            *((name, (folder / name).read_bytes()) for name in ("conversations.json", "memories.json", "projects.json"))
        )
    )
    done = import_into(tmp_path / "home", path)
    assert (done.state, done.statements, done.stored_statements) == ("stored", 6, 6)
    assert [len(talk) for session, talk in contents(tmp_path / "home").items() if "project" in session] == [1]


def test_each_zip_of_a_split_export_is_read_alone(tmp_path: Path) -> None:
    split = EXPORTS.parent / "imports" / "claude-ai-split"
    counts = {}
    for folder in sorted(path for path in split.iterdir() if path.is_dir()):
        members = [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in folder.rglob("*.json")]
        path = tmp_path / f"{folder.name}.zip"
        path.write_bytes(zipped(*members))
        counts[folder.name] = survey_path(path).turns + survey_path(path).statements
    assert {name for name, count in counts.items() if not count} == {"light_metadata-000"}
    with pytest.raises(InvalidInput, match=r"of no known format\. It contains users\.json \(JSON with the fields"):
        import_into(tmp_path / "home", tmp_path / "light_metadata-000.zip")


def test_unread_members_are_named_once_for_each_kind(file: File, tmp_path: Path) -> None:
    media = [(f"media/{nth}.png", b"\x89PNG") for nth in range(3)]
    others = [("a.db", b"SQLite format 3\0"), ("b.zip", GOOD), ("users/1.json", b"[{}]"), ("odd.json", b'[{"a": 1}, {')]
    path = file(zipped(("conversations.json", CLAUDE), *media, *others, ("notes.md", b"- [a] b")), "export.zip")
    done = import_into(tmp_path / "home", path)
    assert done.stored == 10
    assert (
        "Not read, because they are of no known format or not safe: media/0.png (.png, and 2 more), "
        "a.db (.db, to be unpacked first), b.zip (.zip, to be unpacked first), "
        "users/1.json (JSON objects without fields), odd.json (JSON with the fields a, incomplete or damaged), notes.md (Markdown)."
    ) in done.notes


def test_turns_in_an_archive_have_the_session_of_their_file(file: File) -> None:
    path = file(
        zipped(
            ("a/x.jsonl", b'{"role": "user", "content": "one"}\n'), ("y.json", b'[{"role": "user", "content": "two"}]')
        ),
        "chats.zip",
    )
    assert [(record.session, record.content) for record in read_records(path)] == [
        ("chats-a-x", "one"),
        ("chats-y", "two"),
    ]
    assert {record.session for record in read_records(path, session="trip")} == {"trip"}
    talks = b'{"messages": [{"role": "user", "content": "one"}]}\n{"messages": [{"role": "user", "content": "two"}]}\n'
    path = file(zipped(("x.jsonl", talks), ("y.jsonl", talks)), "talks.zip")
    assert [record.session for record in read_records(path)] == ["talks-x", "talks-x-2", "talks-y", "talks-y-2"]
