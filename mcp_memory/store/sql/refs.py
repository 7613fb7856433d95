"""Refs in SQLite: how raw tool results are addressed, and the files that hold them."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import Damaged, NotFound, Refused
from mcp_memory.core.regular_files import read_regular
from mcp_memory.core.text import one_line
from mcp_memory.core.types import MaskedPlace, Ref
from mcp_memory.store import files
from mcp_memory.store.protocol import NewRef
from mcp_memory.store.sql import digests
from mcp_memory.store.sql.rows import space_for, space_id, touch

__all__ = ["put", "read", "ref"]

_REF = "id, path, tool, arguments, tool_call_id, session, timestamp, bytes, sha256, content_type, masked"

_TO_DO = "`mcp-memory doctor` says what to do."

_PURGED = ""
"""In place of the hash of what was purged."""


def put(con: apsw.Connection, folder: Path, space: str, new: NewRef, *, refuse: bool = True) -> Ref:
    """See `Store.put_ref`. The file comes first: a kill leaves at worst a file that nothing points at."""
    space_no = space_for(con, space)
    digest = hashlib.sha256(new.data).hexdigest()
    for length in (12, 16, 24, 64):  # 48 bits can collide in a long life; then the id grows
        id = f"r-{digest[:length]}"
        known = _find_ref(con, space_no, id)
        if known is None or known[0].sha256 == digest or _is_husk_of(con, space_no, known[1], digest):
            break
    else:
        raise AssertionError("two contents with one SHA-256")
    if known is not None and known[1] is not None and refuse:
        raise Refused(f"This result was forgotten and is not kept again. {_undoing(con, known[1])}")
    if known is not None and (known[1] is not None or _intact(folder / known[0].path)):
        return known[0]
    found = Ref(
        id=id,
        path=files.ref_name(new.tool, new.timestamp.date().isoformat(), id[2:]) if known is None else known[0].path,
        tool=new.tool,
        arguments=new.arguments,
        tool_call_id=new.tool_call_id,
        session=new.session,
        timestamp=new.timestamp,
        bytes=len(new.data),
        sha256=digest,
        content_type=new.content_type,
        masked=tuple(new.masked),
    )
    files.write_whole(folder / found.path, files.ref_file(found, new.data))
    con.execute(
        f"INSERT OR REPLACE INTO ref (space, {_REF}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            space_no,
            found.id,
            found.path,
            found.tool,
            json.dumps(found.arguments),
            found.tool_call_id,
            found.session,
            found.timestamp.isoformat(),
            found.bytes,
            found.sha256,
            found.content_type,
            json.dumps([[one.start, one.end, one.kind] for one in found.masked]) if found.masked else None,
        ),
    )
    touch(con, space_no, f"ref:{found.id}")
    return found


def ref(con: apsw.Connection, space: str, id: str) -> Ref:
    wanted = id.strip() if id.strip().startswith("r-") else f"r-{id.strip()}"
    found = _find_ref(con, space_id(con, space), wanted)
    if found is not None and found[1] is not None:
        undoing = "What was purged is gone." if found[0].sha256 == _PURGED else "`forget` can undo that."
        raise NotFound(f"There is no ref {found[0].id!r} any more: it was forgotten. {undoing}")
    if found is None:
        raise NotFound(f"There is no ref {one_line(id, 40)!r} in this space. Refs look like r-9f2c1a7b3d4e.")
    return found[0]


def read(folder: Path, found: Ref) -> bytes:
    """Return the raw bytes of a ref, checked against the hash in the database and the one in the file."""
    path = folder / found.path
    try:
        fields, data = files.read_ref_file(read_regular(path))
    except FileNotFoundError:
        raise Damaged(f"The file of {found.id} is missing: {path}. {_TO_DO}") from None
    except OSError as error:
        raise Damaged(f"The file of {found.id} cannot be read ({error.strerror}): {path}. {_TO_DO}") from None
    except Damaged as error:
        raise Damaged(f"The file of {found.id} is damaged: {error}. It is left as it is: {path}. {_TO_DO}") from None
    if fields["sha256"] != found.sha256:
        raise Damaged(
            f"The file of {found.id} holds other bytes than were stored. It is left as it is: {path}. {_TO_DO}"
        )
    return data


def _is_husk_of(con: apsw.Connection, space: int, tombstone: int | None, sha256: str) -> bool:
    return tombstone is not None and digests.ref(con, space, sha256) == tombstone


def _undoing(con: apsw.Connection, tombstone: int) -> str:
    if con.execute("SELECT purged_at FROM tombstone WHERE id = ?", (tombstone,)).get is not None:
        return "It was purged since; what it says can be told anew in other words."
    return f"forget(undo='x{tombstone}') brings it back."


def _intact(path: Path) -> bool:
    try:
        files.read_ref_file(read_regular(path))
    except (OSError, Damaged):
        return False
    return True


def _find_ref(con: apsw.Connection, space: int | None, id: str) -> tuple[Ref, int | None] | None:
    """Return a ref, with its tombstone where it has one."""
    row: Any = con.execute(f"SELECT {_REF}, tombstone FROM ref WHERE space = ? AND id = ?", (space, id)).fetchone()
    if row is None:
        return None
    id, path, tool, arguments, call, session, timestamp, size, digest, content_type, masked, tombstone = row
    return Ref(
        id=id,
        path=path,
        tool=tool,
        arguments=json.loads(arguments),
        tool_call_id=call,
        session=session,
        timestamp=datetime.fromisoformat(timestamp),
        bytes=size,
        sha256=digest,
        content_type=content_type,
        masked=tuple(MaskedPlace(start=start, end=end, kind=kind) for start, end, kind in json.loads(masked or "[]")),
    ), tombstone
