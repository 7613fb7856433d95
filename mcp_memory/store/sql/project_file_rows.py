"""Files of projects, each with the ref that has its current content: rows of `followed`, as for the logs of clients.

A ref that was stored for a file is indexed only while it is the content of a file, or if a tool call returned it too.
So a search finds no former content, which stays as evidence for the rows that cite it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from mcp_memory.store.sql import turn_rows, word_index
from mcp_memory.store.sql.transaction import Transaction, from_ms
from mcp_memory.store.values import PROJECT_FILE, FollowedLog, ProjectFile

_FILES = "SELECT path, head, upto, state, at FROM followed WHERE space = :space AND client = ?"


def project_files(tx: Transaction) -> list[ProjectFile]:
    """Return the files, sorted by path."""
    return [_file(row) for row in tx.all(f"{_FILES} ORDER BY path", PROJECT_FILE)]


def files_of_refs(tx: Transaction, refs: Iterable[str]) -> dict[str, list[ProjectFile]]:
    """Return, by ref, the files with this content; other refs are left out."""
    files = defaultdict[str, list[ProjectFile]](list)
    if not tx.has_any("followed"):
        return {}
    for row in tx.among(f"{_FILES} AND head IN ({{}}) ORDER BY path", dict.fromkeys(refs), PROJECT_FILE):
        file = _file(row)
        files[file.ref].append(file)
    return dict(files)


def note_project_file(tx: Transaction, file: ProjectFile) -> None:
    """Record the current content of a file, which replaces its former content in the index."""
    former = _former(tx, file.path)
    state = json.dumps({"project": file.project, "modified": file.modified})
    log = FollowedLog(
        path=file.path,
        client=PROJECT_FILE,
        session=PROJECT_FILE,
        offset=file.bytes,
        head=file.ref,
        tail="",
        state=state,
        at=file.at,
    )
    turn_rows.note_followed_log(tx, log)
    _leave_index(tx, former)


def drop_project_file(tx: Transaction, path: str) -> None:
    """Forget that a file exists; searches do not find its content any more."""
    former = _former(tx, path)
    tx.run("DELETE FROM followed WHERE space = :space AND client = ? AND path = ?", PROJECT_FILE, path)
    _leave_index(tx, former)


def _former(tx: Transaction, path: str) -> str | None:
    return tx.get("SELECT head FROM followed WHERE space = :space AND client = ? AND path = ?", PROJECT_FILE, path)


def _leave_index(tx: Transaction, ref: str | None) -> None:
    """Remove a former content from the index, unless it is still to be found."""
    sql = f"SELECT 1 FROM ref r WHERE r.space = :space AND r.id = ? AND NOT {word_index.SEARCHED}"
    if ref is not None and tx.one(sql, ref) is not None:
        word_index.forget_chunks(tx, ref)


def _file(row: Sequence[Any]) -> ProjectFile:
    path, ref, size, state, at = row
    fields = json.loads(state)  # `{}` if a purge has erased it
    return ProjectFile(
        path=path,
        project=fields.get("project", ""),
        ref=ref,
        bytes=size,
        modified=fields.get("modified", 0),
        at=from_ms(at),
    )
