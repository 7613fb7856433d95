"""Readable copies of the rows of a space: the paths of the files in its folder, and the content of each file.

Line files (`*.jsonl`) are the journals of turns by day, the records of each session, the versions of canvases and the
tombstones. Each scene and each canvas also has a separate file. The file of the persona page is composed by a layer
above the store, so it is not made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date
from fnmatch import fnmatchcase

from mcp_memory.store.sql import canvas_rows, page_rows, record_rows, tombstone_rows, turn_rows
from mcp_memory.store.sql.transaction import Transaction, from_ms

LINE_FILES = ("conversations/*.jsonl", "offload-*.jsonl", canvas_rows.FILE, tombstone_rows.TOMBSTONES_FILE)
"""Patterns of the paths of line files."""


def is_line_file(path: str) -> bool:
    """Return whether a path is that of a line file. The name of a journal must be a date."""
    if not any(fnmatchcase(path, pattern) for pattern in LINE_FILES):
        return False
    folder, _, name = path.rpartition("/")
    try:
        return not folder or bool(date.fromisoformat(name.removesuffix(".jsonl")))
    except ValueError:
        return False


def line_files(tx: Transaction) -> list[str]:
    """Return the paths of all line files that have at least one row of the space."""
    days = tx.column("SELECT DISTINCT learned_at / 86400000 FROM turn WHERE space = :space")
    sessions = tx.column(
        "SELECT DISTINCT s.name FROM record r JOIN session s ON s.space = r.space AND s.id = r.session"
        " WHERE r.space = :space"
    )
    return [
        *(f"conversations/{from_ms(day * 86_400_000).astimezone(UTC):%Y-%m-%d}.jsonl" for day in days),
        *(f"offload-{session}.jsonl" for session in sessions),
        *([canvas_rows.FILE] if tx.one("SELECT 1 FROM canvas WHERE space = :space LIMIT 1") else []),
        *([tombstone_rows.TOMBSTONES_FILE] if tx.one("SELECT 1 FROM tombstone WHERE space = :space LIMIT 1") else []),
    ]


def paths(tx: Transaction) -> Iterator[str]:
    """Yield the paths of all copies of a space."""
    yield from line_files(tx)
    for number, label in tx.all("SELECT number, label FROM canvas WHERE space = :space ORDER BY number"):
        yield canvas_rows.path_of(number, label)
    yield from (page_rows.scene_path(scene.slug) for scene in page_rows.scenes(tx))


def content(tx: Transaction, path: str) -> Iterable[bytes] | None:
    """Return the content of a copy: the lines of a line file, or the whole content of any other file as one item.

    Returns None if there are no rows for a file with this path.
    """
    if is_line_file(path):
        return lines(tx, path) if _has_lines(tx, path) else None
    match path.split("/"):
        case ["mmds", name]:
            number = name.partition("-")[0]
            row = tx.one(
                "SELECT label, text FROM canvas WHERE space = :space AND number = ?",
                int(number) if number.isdecimal() else 0,
            )
            is_current = row is not None and canvas_rows.path_of(int(number), row[0]) == path
            return [row[1].encode()] if row is not None and is_current else None
        case ["scenes", name]:
            page = page_rows.scene_file(tx, name.removesuffix(".md"))
            return None if page is None else [page]
        case _:
            return None


def _has_lines(tx: Transaction, path: str) -> bool:
    """Return whether a line file has any line. A session is found only by its current name."""
    if path.startswith("offload-"):
        sql = (
            "SELECT 1 FROM session s WHERE s.space = :space AND s.name = ? AND EXISTS"
            " (SELECT 1 FROM record r WHERE r.space = s.space AND r.session = s.id)"
        )
        return tx.one(sql, path.removeprefix("offload-").removesuffix(".jsonl")) is not None
    return next(iter(lines(tx, path)), None) is not None


def lines(tx: Transaction, path: str) -> Iterable[bytes]:
    """Return all lines of a line file."""
    folder, _, name = path.rpartition("/")
    if folder:
        return turn_rows.day_lines(tx, date.fromisoformat(name.removesuffix(".jsonl")))
    if name == canvas_rows.FILE:
        return canvas_rows.lines(tx)
    if name == tombstone_rows.TOMBSTONES_FILE:
        return tombstone_rows.tombstone_lines(tx)
    return record_rows.lines(tx, name.removeprefix("offload-").removesuffix(".jsonl"))
