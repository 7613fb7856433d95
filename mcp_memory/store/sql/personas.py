"""L3: the versions of the page about the user. The file is a projection of the newest version."""

from __future__ import annotations

from datetime import datetime

from mcp_memory.core.types import PersonaVersion
from mcp_memory.store.sql import jobs
from mcp_memory.store.sql.transaction import Transaction, from_ms, to_ms
from mcp_memory.store.values import PersonaPage

__all__ = ["FILE", "current", "is_written", "put", "versions", "write_file"]

FILE = "persona.md"


def current(tx: Transaction) -> PersonaVersion | None:
    return next(iter(_newest_first(tx, "LIMIT 1")), None)


def versions(tx: Transaction) -> list[PersonaVersion]:
    return _newest_first(tx)


def _newest_first(tx: Transaction, limit: str = "") -> list[PersonaVersion]:
    rows = tx.all(
        f"SELECT version, text, at, work, reason FROM persona WHERE space = :space ORDER BY version DESC {limit}"
    )
    return [
        PersonaVersion(version=version, text=text, at=from_ms(at), by_model=work is not None, reason=reason or "")
        for version, text, at, work, reason in rows
    ]


def put(tx: Transaction, job: int | None, page: PersonaPage, *, now: datetime) -> int:
    """Store a page as the next version and return its number; without a job, only if its text is new."""
    if job is not None:
        jobs.move(tx, "persona", page.upto, now=now)
    elif (newest := current(tx)) is not None and newest.text == page.text:
        return newest.version
    version: int = tx.get("SELECT coalesce(max(version), 0) + 1 FROM persona WHERE space = :space")
    tx.insert(
        "persona",
        version=version,
        text=page.text,
        at=to_ms(now),
        reason=page.reason,
        work=job,
    )
    tx.touch("persona")
    return version


def is_written(tx: Transaction, page: str) -> bool:
    """Tell whether the file already has the page."""
    try:
        return tx.files.read(FILE) == page.encode("utf-8", "backslashreplace")
    except OSError:  # not readable: writing it again says why
        return False


def write_file(tx: Transaction, page: str) -> None:
    tx.files.write(FILE, page.encode("utf-8", "backslashreplace"))
