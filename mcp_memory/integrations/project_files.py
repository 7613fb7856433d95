"""The files of a project that clients load as instructions or write as notes, stored so that searches find their lines.

They are written by others too, as in a cloned repository, so they are results of tools to this memory: their lines are
in searches, with file and line; no statement is extracted from them, and no recall shows them, because clients load
them into the context themselves. `clients/descriptions` says which files a client loads.

A file must be UTF-8 text, and in the folder of the project after all links are followed. Private passages are left out.
It is read again when its size or time has changed, and dropped when it is gone. The former content stays, but no search
finds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio.to_thread

from mcp_memory.core.private_passages import with_private_lines_blank
from mcp_memory.core.regular_files import read_regular
from mcp_memory.core.secrets.masking import holds_key
from mcp_memory.core.text import is_blank
from mcp_memory.integrations.clients.description import describe, described_clients
from mcp_memory.service.memory import Memory
from mcp_memory.store.values import ProjectFile

MAX_BYTES = 256 * 2**10
"""A larger file is ignored: it is no instruction that a client could load."""
MAX_FILES = 200

_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"(?:^|(?<=\s))@((?:[^\s\\]|\\ )+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """The content of a file that is new or has changed; `text` has the lines of the file."""

    path: str
    text: str
    size: int
    modified: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectChanges:
    """What has changed since the files of a project were read: new contents, and paths without a usable file."""

    project: str
    changed: Sequence[FileContent]
    gone: Sequence[str]


async def store_project_files(
    memory: Memory, folder: Path, *, client: str = "", log: Path | None = None
) -> ProjectChanges:
    """Read the files of the project of a folder that are new or have changed, and store them; return the changes.

    With `client` and its `log` of a conversation, the notes of that client are read too. Raises the errors of Memory.
    """
    known = await memory.project_files()
    changes = await anyio.to_thread.run_sync(partial(find_changes, folder, known, client=client, log=log))
    for file in changes.changed:
        await memory.store_project_file(
            file.path, file.text, project=changes.project, size=file.size, modified=file.modified
        )
    for path in changes.gone:
        await memory.drop_project_file(path)
    return changes


def find_changes(
    folder: Path, known: Sequence[ProjectFile], *, client: str = "", log: Path | None = None
) -> ProjectChanges:
    """Return what has changed in the files of a folder's project, and which files of deleted projects are `known`."""
    root = _project_root(folder)
    if root is None:
        return ProjectChanges(project="", changed=(), gone=())
    before = {Path(file.path): file for file in known if file.project == str(root)}
    found = _Found()
    starts = [folder.resolve(), *(path.parent for path in before)]
    folders = [above for start in starts for above in (start, *start.parents) if above.is_relative_to(root)]
    for program in described_clients():
        for above in dict.fromkeys(folders):
            found.add_matching(above, program.instructions, within=root, imports=program.imports)
    if log is not None and (program := describe(client)) is not None and program.notes:
        notes = program.notes.replace("{project}", re.sub(r"[^A-Za-z0-9]", "-", str(root)))
        found.add_matching(log.parent.parent, [notes], within=log.parent.parent)
    for path in before:
        if not path.is_relative_to(root):
            found.add(path, within=path.parent)  # another client's notes
    changed: list[FileContent] = []
    gone = [file.path for file in known if _is_deleted(file.project)]
    gone += [str(path) for path in before if path not in found.paths]
    for path in found.paths:
        if not _is_unchanged(path, before.get(path)):
            content = _content(path)
            if content is not None:
                changed.append(content)
            elif path in before:
                gone.append(str(path))
    return ProjectChanges(project=str(root), changed=changed, gone=gone)


def _project_root(folder: Path) -> Path | None:
    """Return the folder of the repository that a folder is in, else the folder itself; None if it does not exist."""
    try:
        folder = folder.resolve(strict=True)
        return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a link to itself; ValueError: a NUL
        return None


def _is_deleted(project: str) -> bool:
    try:
        return not (project and Path(project).is_dir())  # a purge may have erased the name
    except OSError:
        return False


@dataclass(slots=True)
class _Found:
    """The files to read, as resolved paths, in the order in which they were found."""

    paths: dict[Path, None] = field(default_factory=dict[Path, None])

    def add_matching(self, folder: Path, patterns: Iterable[str], *, within: Path, imports: int = 0) -> None:
        for pattern in patterns:
            try:
                for path in sorted(folder.glob(pattern)):
                    self.add(path, within=within, imports=imports)
            except OSError:
                continue  # the folder cannot be read

    def add(self, path: Path, *, within: Path, imports: int = 0) -> None:
        """Add a file, and the files that it imports, unless it is outside of the folder `within`."""
        try:
            path = path.resolve(strict=True)
            is_usable = path.is_file() and path.is_relative_to(within.resolve()) and not holds_key(str(path))
        except (OSError, RuntimeError, ValueError):
            return
        if not is_usable or path in self.paths or len(self.paths) >= MAX_FILES:
            return
        self.paths[path] = None
        if imports and (content := _content(path)) is not None:
            for name in _IMPORT.findall(_CODE.sub("", content.text)):
                self._add_import(path.parent, name.replace("\\ ", " "), within=within, imports=imports - 1)

    def _add_import(self, folder: Path, name: str, *, within: Path, imports: int) -> None:
        for spelling in dict.fromkeys((name, name.rstrip(".,;:!?)"))):
            try:
                path = folder / Path(spelling).expanduser()
            except RuntimeError:  # no such user
                continue
            self.add(path, within=within, imports=imports)


def _is_unchanged(path: Path, before: ProjectFile | None) -> bool:
    try:
        stat = path.stat()
    except OSError:
        return False
    return before is not None and (before.bytes, before.modified) == (stat.st_size, stat.st_mtime_ns)


def _content(path: Path) -> FileContent | None:
    """Return the content of a file without private passages; None if it is no text, empty, too large or unreadable."""
    try:
        stat = path.stat()
        text = read_regular(path, MAX_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
    text = with_private_lines_blank(text)
    if "\0" in text or is_blank(text):
        return None
    return FileContent(path=str(path), text=text, size=stat.st_size, modified=stat.st_mtime_ns)
