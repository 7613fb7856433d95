"""Refs: the rows and files of raw tool results."""

from __future__ import annotations

from mcp_memory.core.errors import Damaged, NotFound, Refused
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Ref
from mcp_memory.store import files
from mcp_memory.store.sql import digests, row_codec, word_index
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.values import NewRef

_TO_DO = "`mcp-memory doctor` says what to do."
_PURGED = ""
"""Replaces the hash of a purged result."""


def put(tx: Transaction, new: NewRef, *, refuse: bool = True) -> Ref:
    """Store the raw bytes of a result and return its ref.

    If it is stored already and its file is intact, nothing changes. Only an undo restores a forgotten ref. For the
    bytes of a forgotten ref, Refused is raised; without `refuse`, that ref is returned and stays forgotten. The file is
    written before the row, so that a kill leaves at worst a file without a row.
    """
    tx.make_space()
    digest = new.sha256
    for length in (12, 16, 24, 64):  # 48 bits may collide eventually; then the id grows
        id = f"r-{digest[:length]}"
        existing = _find(tx, id) or _find_purged(tx, id)
        if existing is None or existing[0].sha256 == digest or _is_purged(tx, existing[1], digest):
            break
    else:
        raise AssertionError("two contents with one SHA-256")
    if existing is not None and existing[1] is not None and refuse:
        raise Refused(f"This result was forgotten and is not kept again. {_undoing(tx, existing[1])}")
    if existing is not None and (existing[1] is not None or _is_intact(tx, existing[0].path)):
        return existing[0]
    path = files.ref_name(new.tool, new.timestamp.date().isoformat(), id[2:]) if existing is None else existing[0].path
    stored = Ref(
        id=id,
        path=path,
        tool=new.tool,
        arguments=new.arguments,
        tool_call_id=digests.stored_call(tx, new.tool_call_id),
        session=new.session,
        timestamp=new.timestamp,
        bytes=len(new.data),
        sha256=digest,
        content_type=new.content_type,
        masked=tuple(new.masked),
    )
    tx.files.write(stored.path, files.ref_file(stored, new.data))
    tx.run("DELETE FROM ref WHERE space = :space AND id = ?", stored.id)
    tx.insert("ref", **row_codec.columns_of(tx, stored))
    word_index.make_due(tx)
    tx.touch(f"ref:{stored.id}")
    return stored


def by_id(tx: Transaction, id: str) -> Ref:
    """Return a ref; `id` may lack the `r-`. Raises NotFound if the ref is unknown or forgotten."""
    id = id.strip() if id.strip().startswith("r-") else f"r-{id.strip()}"
    row = _find(tx, id) or _find_purged(tx, id)
    if row is not None and row[1] is not None:
        undoing = "What was purged is gone." if row[0].sha256 == _PURGED else "`forget` can undo that."
        raise NotFound(f"There is no ref {one_line(id, 40)!r} any more: it was forgotten. {undoing}")
    if row is None:
        raise NotFound(f"There is no ref {one_line(id, 40)!r} in this space. Refs look like r-9f2c1a7b3d4e.")
    return row[0]


def find(tx: Transaction, id: str) -> Ref | None:
    """Return a ref, even if it is forgotten, or None if it does not exist."""
    row = _find(tx, id)
    return None if row is None else row[0]


def read_bytes(tx: Transaction, id: str) -> bytes:
    """Return the raw bytes of a ref.

    Raises NotFound if the ref is unknown or forgotten, and Damaged if its file is missing, cannot be read, or does not
    match the hashes in the file and the database.
    """
    stored = by_id(tx, id)
    try:
        content = tx.files.read(stored.path)
        if content is None:
            raise Damaged(f"The file of {stored.id} is missing: {tx.files.display_path(stored.path)}. {_TO_DO}")
        fields, data = files.read_ref_file(content)
    except OSError as error:
        raise Damaged(
            f"The file of {stored.id} cannot be read ({error.strerror}): {tx.files.display_path(stored.path)}. {_TO_DO}"
        ) from None
    except Damaged as error:
        if str(error).startswith("The file"):
            raise
        raise Damaged(
            f"The file of {stored.id} is damaged: {error}. It is left as it is: "
            f"{tx.files.display_path(stored.path)}. {_TO_DO}"
        ) from None
    if fields["sha256"] != stored.sha256:
        raise Damaged(
            f"The file of {stored.id} holds other bytes than were stored. It is left as it is: "
            f"{tx.files.display_path(stored.path)}. {_TO_DO}"
        )
    return data


def _is_purged(tx: Transaction, tombstone: int | None, sha256: str) -> bool:
    return tombstone is not None and digests.forgotten_ref(tx, sha256) == tombstone


def _undoing(tx: Transaction, tombstone: int) -> str:
    if tx.get("SELECT purged_at FROM tombstone WHERE space = :space AND id = ?", tombstone) is not None:
        return "It was purged since; its content can only be stored again in other words."
    return f"forget(undo='x{tombstone}') restores it."


def _is_intact(tx: Transaction, path: str) -> bool:
    try:
        files.read_ref_file(tx.files.read(path) or b"")
    except (OSError, Damaged):
        return False
    return True


def _find_purged(tx: Transaction, id: str) -> tuple[Ref, int | None] | None:
    """Return the empty row of a purged ref by the former id of the ref."""
    return _find(tx, digests.purged_ref(digests.key_of(tx), id))


def _find(tx: Transaction, id: str) -> tuple[Ref, int | None] | None:
    """Return a ref and, if it is forgotten, the number of its tombstone."""
    row = tx.one(f"SELECT r.tombstone, {row_codec.columns(Ref)} {row_codec.tables(Ref)} r.id = ?", id)
    if row is None:
        return None
    tombstone, *columns = row
    return Ref(**row_codec.fields_of(Ref, columns)), tombstone
