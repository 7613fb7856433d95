"""What is no whole export, or was made to harm, is refused in a sentence, and nothing of it is stored."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput, McpMemoryError
from mcp_memory.service.portable.form import KINDS, line_of, row_of
from mcp_memory.service.portable.reading import is_parcel, open_export
from tests.portable.homes import export, lived_in, repacked

Change = Callable[[dict[str, bytes]], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")

    async def make() -> Path:
        async with lived_in(folder / "home") as held:
            return await export(held, folder / "whole.zip")

    return anyio.run(make)


def refused(file: Path) -> str:
    with pytest.raises(InvalidInput) as raised, open_export(file):
        pass
    return str(raised.value)


def line(kind: str, change: Callable[[dict[str, Any]], Any], nth: int = 0) -> Change:
    """Change a row, and the manifest with it: somebody meant it."""

    def apply(members: dict[str, bytes]) -> None:
        name = f"spaces/default/data/{kind}.jsonl"
        lines = members[name].splitlines(keepends=True)
        row = json.loads(lines[nth])
        changed = change(row)
        lines[nth] = (json.dumps(row if changed is None else changed)).encode() + b"\n"
        members[name] = b"".join(lines)

    return apply


def test_a_whole_one_is_known_and_opens(whole: Path) -> None:
    assert is_parcel(whole)
    with open_export(whole) as parcel:
        assert parcel.spaces["default"]["atoms"] == 4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (line("turns", lambda row: row.update(content="other")), "turns.jsonl, line 1 does not match its sha256"),
        (line("turns", lambda row: row.update(role="king")), "turns.jsonl, line 1 has role wrong"),
        (line("turns", lambda row: row.update(session="../up")), "path separator"),
        (line("turns", lambda row: row.update(said_at="2026-05-07T10:00:00")), "without its zone in said_at"),
        (line("turns", lambda row: row.update(name="\ud800")), "half a character in name"),
        (line("turns", lambda row: []), "not a JSON object"),
        (line("atoms", lambda row: row.update(priority=10**30)), "too large"),
        (line("atoms", lambda row: row["evidence"][0].update(end=3)), "quotes words of t"),
        (line("atoms", lambda row: row["evidence"][0].update(turn="t99")), "is based on t99, which is not in it"),
        (line("atoms", lambda row: row.update(evidence=[])), "has no evidence"),
        (line("scenes", lambda row: row.update(slug="../../persona")), "path separator"),
        (line("canvases", lambda row: row.update(label="a/b")), "path separator"),
        (line("refs", lambda row: row.update(file="refs/none.md")), "is not there"),
        (line("refs", lambda row: row.update(sha256="0" * 64)), "has other bytes"),
    ],
)
def test_a_row_that_cannot_be_is_named_by_its_line(whole: Path, tmp_path: Path, change: Change, says: str) -> None:
    told = refused(repacked(whole, tmp_path / "bad.zip", change))
    assert says in told
    assert "\n" not in told


def test_a_byte_that_changed_is_told_by_its_file(whole: Path, tmp_path: Path) -> None:
    def change(members: dict[str, bytes]) -> None:
        members["spaces/default/persona.md"] += b"!"

    told = refused(repacked(whole, tmp_path / "bad.zip", change, manifest=False))
    assert "spaces/default/persona.md is not what its manifest says" in told


def test_feedback_that_nobody_can_give_is_refused(whole: Path, tmp_path: Path) -> None:
    change = line("feedback", lambda row: row | {"verdict": "magnificent"})
    assert "has a verdict that nobody can give" in refused(repacked(whole, tmp_path / "odd.zip", change))


def test_what_the_manifest_does_not_name_or_what_lacks_is_told(whole: Path, tmp_path: Path) -> None:
    def add(members: dict[str, bytes]) -> None:
        members["x"] = b""

    def drop(members: dict[str, bytes]) -> None:
        del members["README.md"]

    more = repacked(whole, tmp_path / "more.zip", add, manifest=False)
    less = repacked(whole, tmp_path / "less.zip", drop, manifest=False)
    assert "holds x, which its manifest does not name" in refused(more)
    assert "lacks README.md" in refused(less)


@pytest.mark.parametrize("manifest", [None, b"[]", b"\xff"])
def test_one_whose_manifest_is_lost_is_told_and_not_taken_for_nothing(
    whole: Path, tmp_path: Path, manifest: bytes | None
) -> None:
    broken = tmp_path / "broken.zip"
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(broken, "w") as new:
        for name in old.namelist():
            if name != "manifest.json":
                new.writestr(name, old.read(name))
        if manifest is not None:
            new.writestr("manifest.json", manifest)
    assert is_parcel(broken)
    with pytest.raises(InvalidInput, match=r"[Ee]xport it again"), open_export(broken):
        pass


def test_a_newer_form_is_left_alone(whole: Path, tmp_path: Path) -> None:
    def newer(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        members["manifest.json"] = json.dumps(manifest | {"version": 9}).encode()

    assert "newer mcp-memory (format 9" in refused(repacked(whole, tmp_path / "new.zip", newer, manifest=False))


def test_a_bomb_is_refused_before_it_is_unpacked(whole: Path, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as new:
        manifest = json.loads(old.read("manifest.json"))
        for name in manifest["members"]:
            new.writestr(name, old.read(name))
        with new.open(zipfile.ZipInfo("zeros"), "w") as out:
            pass
        info = zipfile.ZipInfo("spaces/default/refs/big")
        info.compress_type = zipfile.ZIP_DEFLATED
        with new.open(info, "w") as out:
            for _ in range(70):
                out.write(bytes(2**20))
        manifest["members"] |= {one: {"bytes": 0, "sha256": ""} for one in ("zeros", "spaces/default/refs/big")}
        new.writestr("manifest.json", json.dumps(manifest))
    assert "would unpack to 70 MiB" in refused(bomb)


def test_other_files_are_no_export(tmp_path: Path) -> None:
    for name, data in {"a.zip": b"", "b.zip": b"PK\x03\x04junk", "c.json": b"{}"}.items():
        (tmp_path / name).write_bytes(data)
        assert not is_parcel(tmp_path / name)
    assert not is_parcel(tmp_path / "none.zip")


@given(st.data())
def test_a_file_with_any_damage_is_taken_whole_or_refused_in_a_sentence(whole: Path, data: st.DataObject) -> None:
    held = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(held) - 1))
        held[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(1, len(held)))
    file = whole.with_name("damaged.zip")
    file.write_bytes(held[:cut] if data.draw(st.booleans()) else held)
    is_parcel(file)
    said = ""
    try:
        with open_export(file):
            pass
    except McpMemoryError as error:
        said = str(error)
    assert "\n" not in said


@given(
    st.sampled_from(sorted(KINDS)),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
)
def test_no_line_of_json_does_more_than_be_refused(kind: str, value: Any) -> None:
    try:
        row = row_of(KINDS[kind], json.dumps(value).encode())
    except InvalidInput:
        return
    assert row_of(KINDS[kind], line_of(row)) == row


def test_every_row_of_a_memory_comes_back_from_its_line(whole: Path) -> None:
    with open_export(whole) as parcel:
        for kind in KINDS.values():
            for row in parcel.rows("default", kind):
                assert row_of(kind, line_of(row)) == row


def test_names_in_the_directory_that_are_odd_do_no_harm(whole: Path, tmp_path: Path) -> None:
    data = whole.read_bytes().replace(b"README.md", b"../../x.m")
    file = tmp_path / "odd.zip"
    file.write_bytes(data)
    assert "manifest" in refused(file) or "damaged" in refused(file)
    assert struct.pack("<I", 0x04034B50) in data


def test_a_file_that_ends_within_its_manifest_is_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "cut.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("manifest.json", b'{"format": "mcp-memory"}' + bytes(range(256)) * 40)
    data = bytearray(path.read_bytes())
    central = data.find(b"PK\x01\x02")
    data[60:central] = b""  # most of the member is gone; the directory at the end still names it
    at = data.find(b"PK\x05\x06")
    data[at + 16 : at + 20] = (60).to_bytes(4, "little")
    path.write_bytes(data)
    assert not is_parcel(path)
