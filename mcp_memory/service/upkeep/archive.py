"""The format of a backup: a zip archive with the files of a home under their names, and `manifest.json`.

The manifest names the home, the time and the contents, with the SHA-256 of each member. Reading trusts nothing: names
have to match the manifest and stay within a home, no member may be larger than declared, and a wrong hash means damage.
So `open_backup` refuses zip bombs and paths that lead out of the home.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import stat
import zipfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter

from mcp_memory.core.errors import Damaged, InvalidInput, McpMemoryError
from mcp_memory.core.regular_files import open_regular
from mcp_memory.core.text import with_zone
from mcp_memory.service.packed_files import TORN, Member, is_archive, measured

FORMAT = 1
DATABASE = "memory.db"
_MANIFEST = "manifest.json"
_MANIFEST_BYTES = 256 * 2**20
_NAME = re.compile(r"memory\.db|spaces/[^/\\:\0]+(?:/[^/\\:\0]+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """The contents of a backup.

    `counts` are numbers of rows by kind; `lacking` has a sentence for each missing file.
    """

    format: int
    home: str
    """The id of the memory, hexadecimal; a restored home keeps it."""
    at: str
    version: str
    schema: str
    spaces: tuple[str, ...]
    counts: dict[str, int]
    lacking: tuple[str, ...]
    members: dict[str, Member]

    @property
    def made_at(self) -> datetime:
        return datetime.fromisoformat(self.at)


class Writer:
    """Writes the members of a backup one by one, the manifest last."""

    def __init__(self, file: IO[bytes], at: datetime) -> None:
        # The fastest level: most bytes are vectors and text, and a backup runs during other work.
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self._time = (min(max(at.year, 1980), 2107), at.month, at.day, at.hour, at.minute, at.second)
        self.members: dict[str, Member] = {}

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        digest, length = hashlib.sha256(), 0
        with self._zip.open(self._info(name), "w", force_zip64=True) as member:
            for piece in pieces:
                digest.update(piece)
                length += len(piece)
                member.write(piece)
        self.members[name] = Member(bytes=length, sha256=digest.hexdigest())

    def close(self, manifest: BackupManifest) -> None:
        with self._zip.open(self._info(_MANIFEST), "w") as member:
            member.write(json.dumps(asdict(manifest), ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace"))
        self._zip.close()

    def _info(self, name: str) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(name, self._time)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (stat.S_IFREG | 0o600) << 16
        info._compresslevel = 1  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
        return info


def is_backup(path: Path) -> bool:
    """Return whether a file is a backup, by the names in it alone."""
    return is_archive(path, lambda packed: {_MANIFEST, DATABASE} <= set(packed.namelist()))


@contextmanager
def open_backup(path: Path) -> Generator[tuple[BackupManifest, zipfile.ZipFile]]:
    """Open a backup for reading. Raises InvalidInput if the file is not a backup, Damaged if it is a damaged backup."""
    with _add_path_to_errors(path), _file(path) as file:
        if not zipfile.is_zipfile(file):
            raise InvalidInput(
                f"{path} is not a backup: it is not a zip archive, or truncated. Name a backup of `backup --list`."
            )
        with zipfile.ZipFile(file) as packed:
            yield _check_manifest(path, packed), packed


def _file(path: Path) -> IO[bytes]:
    try:
        return open_regular(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        why = error.strerror or error
        raise InvalidInput(f"{path} cannot be read: {why}. Name a backup of `backup --list`.") from None


def unpack(packed: zipfile.ZipFile, name: str, member: Member, to: IO[bytes] | None) -> None:
    """Read a whole member, into `to` if given. Raises Damaged unless it matches the manifest."""
    try:
        unpacked = measured(packed, name, most=member.bytes, to=to)
    except TORN:
        raise Damaged(f"{name} in it cannot be unpacked") from None
    if unpacked != member:
        raise Damaged(f"{name} in it does not match its hash")


def _check_manifest(path: Path, packed: zipfile.ZipFile) -> BackupManifest:
    names = packed.namelist()
    for needed in (_MANIFEST, DATABASE):
        if needed not in names:
            raise InvalidInput(
                f"{path} is not a backup of mcp-memory: it has no {needed}. `mcp-memory import` reads exports and "
                "other archives."
            )
    if packed.getinfo(_MANIFEST).file_size > _MANIFEST_BYTES:
        raise Damaged("its manifest is too large")
    with packed.open(_MANIFEST) as stream:
        manifest = _manifest(path, stream.read(_MANIFEST_BYTES))
    if manifest.format > FORMAT:
        raise InvalidInput(f"{path} was made by a newer mcp-memory ({manifest.version}). Upgrade this program first.")
    if sorted(names) != sorted([*manifest.members, _MANIFEST]):
        raise Damaged("its files are not those of its manifest")
    for name, member in manifest.members.items():
        if not _NAME.fullmatch(name) or any(not part.strip(". ") for part in name.split("/")):
            raise Damaged(f"the name {name[:80]!r} in it is not the name of a file of a home")
        if packed.getinfo(name).file_size != member.bytes:
            raise Damaged(f"{name} in it is not as long as its manifest says")
    return manifest


def _manifest(path: Path, text: bytes) -> BackupManifest:
    try:
        manifest = TypeAdapter(BackupManifest).validate_json(text)
        if manifest.made_at.tzinfo is None or not with_zone(manifest.made_at):
            raise ValueError
    except ValueError:
        raise Damaged(f"the manifest of {path.name} cannot be read") from None
    return manifest


@contextmanager
def _add_path_to_errors(path: Path) -> Generator[None]:
    """Add the path of the file and the next step to errors of reading."""
    try:
        yield
    except Damaged as error:
        raise Damaged(
            f"{path} is damaged: {error}. Use another backup: `mcp-memory backup --list` shows them."
        ) from None
    except McpMemoryError:
        raise
    except TORN:
        raise Damaged(
            f"{path} is damaged: it cannot be unpacked. Use another backup: `mcp-memory backup --list` shows them."
        ) from None
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {path}. `mcp-memory backup --list` shows the backups.") from None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise Damaged(f"{path} is damaged: the offset of a file in it is negative. Use another backup.") from None
