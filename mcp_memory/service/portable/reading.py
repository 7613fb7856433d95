"""Reads and checks an export. Every member has to match the manifest before any row is returned.

Nothing is unpacked to disk, so no path can escape. Encrypted, truncated, duplicate or undeclared members, and archives
that would unpack to far more than text does, are refused before any row is stored.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError

from mcp_memory.core.errors import Damaged, InvalidInput
from mcp_memory.core.regular_files import open_regular
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.core.types import NewTurn
from mcp_memory.service.packed_files import TORN, Member, is_archive, measured
from mcp_memory.service.portable.form import FORMAT, KINDS, MANIFEST, VERSION, data_name, row_of
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.files import read_ref_file
from mcp_memory.store.row_types import (
    AtomRow,
    CanvasHistory,
    FeedbackRow,
    QuoteRow,
    RecordRow,
    RefRow,
    ReviewRow,
    Row,
    SceneRow,
    SessionRow,
    StageRow,
    TurnRow,
)
from mcp_memory.store.values import FeedbackVerdict

R = TypeVar("R", bound=Row)

_LONGEST = 64 * 2**20
_MANIFEST = 256 * 2**20
_RATIO, _SMALL = 200, 64 * 2**20
_ROWS = re.compile(r"spaces/[^/]+/data/[a-z]+\.jsonl")
_STRAY = ("__MACOSX/", ".DS_Store")
_LEAST_ID = 1


@dataclass(frozen=True, slots=True)
class _ExportManifest:
    format: Literal["mcp-memory export"]
    version: int
    home: str
    spaces: dict[str, dict[str, int]]
    members: dict[str, Member]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """An open export whose members match its manifest. `spaces` has the numbers of its rows by space and kind."""

    name: str
    home: str
    spaces: Mapping[str, Mapping[str, int]]
    _packed: zipfile.ZipFile

    def rows(self, space: str, kind: type[R]) -> Iterator[R]:
        """Yield the rows of a kind, in order. Raises InvalidInput at an invalid line, which it names."""
        name = data_name(space, next(word for word, row_type in KINDS.items() if row_type is kind))
        for number, line in enumerate(_lines(self._packed, name, self.name), start=1):
            try:
                row = row_of(kind, line)
                _check(row)
            except InvalidInput as wrong:
                raise InvalidInput(f"{self.name}, {name}, line {number} {wrong}. Nothing was stored.") from None
            yield row  # pyright: ignore[reportReturnType]

    def bytes_of(self, space: str, ref: RefRow) -> bytes:
        """Return the bytes of a result. Raises InvalidInput if its file is missing or does not match its row."""
        name = f"spaces/{space}/{ref.file}"
        try:
            fields, data = read_ref_file(self._packed.read(name))
        except (KeyError, Damaged) as error:
            why = "is not there" if isinstance(error, KeyError) else str(error)
            raise InvalidInput(f"{self.name}, {one_line(name, 80)}: {why}. Nothing was stored.") from None
        if fields["sha256"] != ref.sha256:
            raise InvalidInput(f"{self.name}, {one_line(name, 80)} has other bytes than {ref.id}.")
        return data


def is_parcel(path: Path) -> bool:
    """Return whether a file is an export, by its manifest, or by the names of its rows if the manifest is lost."""
    return is_archive(path, _has_rows)


def _has_rows(packed: zipfile.ZipFile) -> bool:
    names = packed.namelist()
    return any(_ROWS.fullmatch(name) for name in names) or (
        MANIFEST in names and FORMAT.encode() in packed.open(MANIFEST).read(200)
    )


@contextmanager
def open_export(path: Path, name: str | None = None) -> Generator[Parcel]:
    """Open an export after checking all of it. Raises InvalidInput with the reason if it cannot be imported.

    `name` is the name of the file in errors, by default that of `path`.
    """
    shown = name or path.name
    with _refuse_unreadable(shown), open_regular(path) as file, zipfile.ZipFile(file) as packed:
        manifest = _manifest(packed, shown)
        _check_names(packed, manifest, shown, size=path.stat().st_size)
        for member, declared in manifest.members.items():
            if measured(packed, member, most=declared.bytes) != declared:
                raise InvalidInput(
                    f"{shown} is damaged, or was edited: {one_line(member, 80)} is not what its manifest says. "
                    "Nothing was stored; export it again."
                )
        parcel = Parcel(name=shown, home=manifest.home, spaces=manifest.spaces, _packed=packed)
        for space in manifest.spaces:
            _check_rows(parcel, space)
        yield parcel


@contextmanager
def _refuse_unreadable(name: str) -> Generator[None]:
    try:
        yield
    except TORN:
        raise InvalidInput(f"{name} is damaged or cut off: it cannot be unpacked. Fetch it again.") from None
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror or error}.") from None


def _manifest(packed: zipfile.ZipFile, name: str) -> _ExportManifest:
    try:
        info = packed.getinfo(MANIFEST)
    except KeyError:
        raise InvalidInput(
            f"{name} has no {MANIFEST}: part of it is missing. Nothing was stored; export it again."
        ) from None
    if info.file_size > _MANIFEST:
        raise InvalidInput(f"{name} has a manifest of {info.file_size // 2**20} MiB, which no memory has.")
    try:
        content: Any = json.loads(packed.read(MANIFEST))
        manifest = TypeAdapter(_ExportManifest).validate_python(content)
    except (ValueError, RecursionError, ValidationError):
        raise InvalidInput(f"The manifest of {name} cannot be read, so nothing was stored. Export it again.") from None
    if manifest.version > VERSION:
        raise InvalidInput(
            f"{name} was exported by a newer mcp-memory (format {manifest.version}; this program reads {VERSION}). "
            "Nothing was stored. Upgrade this program in the way that you installed it."
        )
    if not manifest.home.isalnum():
        raise InvalidInput(f"The manifest of {name} names no home.")
    for space in manifest.spaces:
        safe_name(space, what="space")
    return manifest


def _check_names(packed: zipfile.ZipFile, manifest: _ExportManifest, name: str, *, size: int) -> None:
    infos = [
        info
        for info in packed.infolist()
        if not info.filename.endswith("/") and not any(bad in info.filename for bad in _STRAY)
    ]
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        twice = next(info for info in names if names.count(info) > 1)
        raise InvalidInput(f"{name} has two files named {one_line(twice, 80)}. Nothing was stored; export it again.")
    strange = sorted(set(names) ^ {*manifest.members, MANIFEST})
    if strange:
        what = "lacks" if strange[0] in manifest.members else "holds"
        also = "" if what == "lacks" else ", which its manifest does not name"
        raise InvalidInput(f"{name} {what} {one_line(strange[0], 80)}{also}. Nothing was stored; export it again.")
    if any(info.flag_bits & 0x1 for info in infos):
        raise InvalidInput(f"{name} is encrypted. Unpack it with its password and pack it again without.")
    unpacked, small = sum(info.file_size for info in infos), min(sum(info.compress_size for info in infos), size)
    if unpacked > max(_SMALL, _RATIO * small):
        raise InvalidInput(
            f"{name} would unpack to {unpacked / 2**20:,.0f} MiB from {small / 2**20:,.1f}, which no memory does."
        )


def _lines(packed: zipfile.ZipFile, member: str, name: str) -> Iterator[bytes]:
    try:
        stream: IO[bytes] = packed.open(member)
    except KeyError:
        return
    with stream:
        while line := stream.readline(_LONGEST + 1):
            if len(line) > _LONGEST:
                raise InvalidInput(f"{name}, {member} has a line of more than {_LONGEST // 2**20} MiB.")
            yield line


# --- rows -------------------------------------------------------------------------------------------


def _check(row: Row) -> None:
    """Raise InvalidInput for a row that no store can keep."""
    match row:
        case TurnRow():
            safe_name(row.session, what="session")
            turn = NewTurn(
                role=row.role, content=row.content, name=row.name, said_at=row.said_at, guessed=not row.dated
            )
            if evidence_hash(turn).hex() != row.sha256:
                raise InvalidInput("does not match its sha256: its words were changed")
        case AtomRow():
            if not row.evidence or not row.text.strip():
                raise InvalidInput("has no evidence, or no text")
        case ReviewRow():
            try:
                reasons: Any = json.loads(row.reasons)
            except (ValueError, RecursionError):
                reasons = None
            if not isinstance(reasons, list) or not all(isinstance(version, str) for version in reasons):  # pyright: ignore[reportUnknownVariableType]
                raise InvalidInput("has reasons that are not a list of texts")
        case FeedbackRow():
            if row.verdict not in get_args(FeedbackVerdict):
                raise InvalidInput("has a verdict that nobody can give")
        case CanvasHistory():
            safe_name(row.session, what="session")
            safe_name(row.label, what="label of a canvas")
            if not _LEAST_ID <= row.number < 10**6:
                raise InvalidInput("has a number that no canvas has")
            numbers = [version.version for version in row.versions]
            if numbers != sorted({*numbers}) or any(number < 1 for number in numbers):
                raise InvalidInput("has versions that are not in order")
            for version in row.versions:
                safe_name(version.session, what="session")
                safe_name(version.label, what="label of a canvas")
        case RecordRow():
            safe_name(row.session, what="session")
        case SessionRow():
            safe_name(row.name, what="session")
        case SceneRow():
            safe_name(row.slug, what="name of a scene")
        case StageRow() if row.stage not in get_args(Literal["scenes", "persona", "read"]):
            raise InvalidInput("names a stage that has no place among atoms or turns")
        case _:
            return


def _check_rows(parcel: Parcel, space: str) -> None:
    """Read every row of a space once, and check that each quote of an atom is at its span of the turn.

    Raises InvalidInput for the first row that is wrong.
    """
    quoted: dict[str, list[tuple[str, QuoteRow]]] = {}
    for atom in parcel.rows(space, AtomRow):
        for words in atom.evidence:
            quoted.setdefault(words.turn, []).append((atom.id, words))
    for turn in parcel.rows(space, TurnRow):
        for atom, words in quoted.pop(turn.id, ()):
            if not 0 <= words.start < words.end or turn.content[words.start : words.end] != words.quote:
                raise InvalidInput(f"{parcel.name}: {atom} of {space} quotes words of {turn.id} that it does not say.")
    if quoted:
        turn, ((atom, _), *_) = next(iter(quoted.items()))
        raise InvalidInput(f"{parcel.name}: {atom} of {space} is based on {one_line(turn, 20)}, which is not in it.")
    for ref in parcel.rows(space, RefRow):
        parcel.bytes_of(space, ref)
    for kind in set(KINDS.values()) - {AtomRow, TurnRow, RefRow}:
        for _ in parcel.rows(space, kind):
            pass
