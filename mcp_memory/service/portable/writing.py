"""Writes spaces of a store to one file. The same rows give the same bytes.

Rows are read at one moment into a temporary folder beside the export; the files of results are copied after that read
has ended. The export is written under a temporary name and renamed. Members that compress to almost nothing are stored
uncompressed, so that no reader takes the file for a zip bomb.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound, StoreUnavailable
from mcp_memory.core.private_files import open_private
from mcp_memory.core.progress import ReportProgress, ignore_progress, step_counter
from mcp_memory.service.portable import form
from mcp_memory.service.portable.form import FORMAT, MANIFEST, README, README_NAME, VERSION, data_name, kind_of, line_of
from mcp_memory.store.files import ref_file
from mcp_memory.store.protocol import Store
from mcp_memory.store.row_types import AtomRow, CanvasHistory, PersonaRow, RefRow, Row, SceneRow, TurnRow
from mcp_memory.store.sql import exporting, home_rows, ref_rows

_BLOCK = 2**20
_TIGHT = 100  # compression ratio that no text reaches


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A written export.

    `rows` are counted by space and kind; `lacking` results were left out, since their file is missing or damaged.
    """

    path: str
    bytes: int
    sha256: str
    rows: dict[str, dict[str, int]]
    lacking: list[str]


def export(
    store: Store, target: Path, spaces: Sequence[str] | None = None, *, tell: ReportProgress = ignore_progress
) -> Exported:
    """Write spaces (default: all) to a new file. Blocks.

    Raises NotFound for an empty space, InvalidInput if the file exists, StoreUnavailable if it cannot be written.
    """
    existing = store.read_home(home_rows.spaces)
    chosen = sorted(set(existing if spaces is None else spaces))
    if missing := [space for space in chosen if space not in existing]:
        raise NotFound(f"There is no space {missing[0]!r}. Spaces with rows: {', '.join(existing) or 'none'}.")
    if target.exists():
        raise InvalidInput(f"{target} exists already. Choose another name, or move it away first.")
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".mcp-memory-export-", dir=target.parent) as folder:
            tree = _Tree(Path(folder), store)
            try:
                store.export_rows(chosen, _with_progress(tree.take, store, chosen, tell))
            finally:
                tree.close()
            tree.write_pages()
            tree.copy_results(chosen)
            counts = {space: dict(sorted(tree.rows.get(space, Counter[str]()).items())) for space in chosen}
            with open_private(beside, "x+b") as file:
                _pack(Path(folder), file, home=store.read_home(exporting.home_id), counts=counts, tell=tell)
                size, digest = _measure(file)
                os.fsync(file.fileno())
            beside.replace(target)
    except OSError as error:
        raise StoreUnavailable(
            f"{target} cannot be written: {error.strerror or error}. Nothing was kept of it; make room, or name "
            "another place."
        ) from None
    finally:
        beside.unlink(missing_ok=True)
    return Exported(path=str(target), bytes=size, sha256=digest, rows=counts, lacking=tree.lacking)


def _with_progress(
    take: Callable[[str, Row], None], store: Store, spaces: Sequence[str], tell: ReportProgress
) -> Callable[[str, Row], None]:
    """Return `take`, extended to report progress on turns, statements and results, which are most rows."""
    counts = [store.read(space, home_rows.counts) for space in spaces]
    step = step_counter("reading rows", sum(count.turns + count.atoms + count.refs for count in counts), tell)

    def take_and_count(space: str, row: Row) -> None:
        take(space, row)
        if isinstance(row, TurnRow | AtomRow | RefRow):
            step(1)

    return take_and_count


class _Tree:
    """The members as files of a folder, written row by row."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.rows: dict[str, Counter[str]] = {}
        self.lacking: list[str] = []
        self._folder, self._store = folder, store
        self._names: dict[str, str] = {}
        self._open: tuple[str, IO[bytes]] | None = None
        self._page: tuple[str, IO[bytes]] | None = None
        self._begun: set[str] = set()
        self._standing: dict[str, SceneRow | PersonaRow] = {}
        self._add(README_NAME, README.encode())

    def take(self, space: str, row: Row) -> None:
        counts = self.rows.setdefault(space, Counter())
        kind = kind_of(row)
        match row:
            case TurnRow():
                self._add_turn(space, row)
            case SceneRow():
                name = self._member_name(f"spaces/{space}/scenes/", row.slug, ".md")
                self._standing[name] = row
            case PersonaRow():
                self._standing[f"spaces/{space}/persona.md"] = row
                if not row.by_model:  # a list of explicit statements, rebuilt from them
                    return
            case CanvasHistory():
                name = self._member_name(f"spaces/{space}/canvases/", f"{row.number:03}-{row.label}", ".mmd")
                self._add(name, row.text.encode())
            case _:
                pass
        counts[kind] += 1
        self._open = self._open_or_reuse(self._open, data_name(space, kind))
        self._open[1].write(line_of(row))

    def close(self) -> None:
        for opened in (self._open, self._page):
            if opened is not None:
                opened[1].close()

    def write_pages(self) -> None:
        """Write the newest version of each page, except deleted scenes."""
        for name, row in self._standing.items():
            if isinstance(row, PersonaRow):
                self._add(name, form.persona_page(row))
            elif row.action != "delete":
                self._add(name, form.scene_page(row))

    def copy_results(self, spaces: Sequence[str]) -> None:
        """Copy the files of results. Missing or damaged results are left out with their rows, and listed.

        Reads the store, so it must not run while the rows are read.
        """
        for space in spaces:
            rows = self._folder / data_name(space, "refs")
            if rows.exists():
                complete = [line for line in rows.read_bytes().splitlines(keepends=True) if self._copy(space, line)]
                self.rows[space]["refs"] = len(complete)
                rows.write_bytes(b"".join(complete))
                if not complete:
                    rows.unlink()
                    del self.rows[space]["refs"]

    def _copy(self, space: str, line: bytes) -> bool:
        id = json.loads(line)["id"]
        try:
            result = self._store.read(space, ref_rows.by_id, id)
            content = ref_file(result, self._store.read(space, ref_rows.read_bytes, id))
        except (Damaged, NotFound, OSError):
            self.lacking.append(f"{space}: {id}")
            return False
        self._add(f"spaces/{space}/{result.path}", content)
        return True

    def _add_turn(self, space: str, row: TurnRow) -> None:
        name = self._member_name(f"spaces/{space}/sessions/", row.session, ".md")
        head = "" if name in self._begun else form.session_head(row.session)
        self._begun.add(name)
        self._page = self._open_or_reuse(self._page, name)
        self._page[1].write((head + form.turn_section(row)).encode("utf-8", "backslashreplace"))

    def _member_name(self, folder: str, name: str, ending: str) -> str:
        """Return a member's name; names that differ only in case get distinct names for every file system.

        Raises ValueError for a name that no file can have; the store, which is being read, then names the row.
        """
        if "\0" in name:
            raise ValueError("embedded null byte")
        number, member = 1, f"{folder}{name}{ending}"
        while self._names.setdefault(member.casefold(), f"{folder}{name}") != f"{folder}{name}":
            number += 1
            member = f"{folder}{name}-{number}{ending}"
        return member

    def _open_or_reuse(self, current: tuple[str, IO[bytes]] | None, name: str) -> tuple[str, IO[bytes]]:
        if current is not None and current[0] == name:
            return current
        if current is not None:
            current[1].close()
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return name, path.open("ab")

    def _add(self, name: str, data: bytes) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


# --- packing ----------------------------------------------------------------------------------------


def _pack(folder: Path, file: IO[bytes], *, home: str, counts: dict[str, dict[str, int]], tell: ReportProgress) -> None:
    members: dict[str, dict[str, object]] = {}
    names = _names(folder)
    step = step_counter("packing", len(names), tell)
    with zipfile.ZipFile(file, "w") as packed:
        for name in names:
            step(1)
            with (folder / name).open("rb") as stream:
                digest, size, packs_to = hashlib.sha256(), 0, 0
                packer = zlib.compressobj(1)
                while block := stream.read(_BLOCK):
                    digest.update(block)
                    size, packs_to = size + len(block), packs_to + len(packer.compress(block))
                packs_to += len(packer.flush())
                members[name] = {"bytes": size, "sha256": digest.hexdigest()}
                stream.seek(0)
                with packed.open(_info(name, size, packs_to), "w") as out:
                    shutil.copyfileobj(stream, out, _BLOCK)
        manifest = {"format": FORMAT, "version": VERSION, "home": home, "spaces": counts, "members": members}
        text = _indented_json(manifest)
        with packed.open(_info(MANIFEST, len(text), len(text)), "w") as out:
            out.write(text)


def _names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _info(name: str, size: int, packs_to: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system, info.external_attr, info.file_size = 3, 0o600 << 16, size
    info.compress_type = zipfile.ZIP_STORED if size > _TIGHT * packs_to else zipfile.ZIP_DEFLATED
    return info


def _indented_json(manifest: Mapping[str, object]) -> bytes:
    return json.dumps(manifest, ensure_ascii=False, indent=1).encode() + b"\n"


def _measure(file: IO[bytes]) -> tuple[int, str]:
    file.flush()
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256")  # pyright: ignore[reportArgumentType]
    return file.tell(), digest.hexdigest()
