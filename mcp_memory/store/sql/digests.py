"""Recognises forgotten content when it is given again, by digests: keyed hashes, stored as rows of `forgotten`.

Digests are kept after a purge has erased the words. Each home has a secret key, which no export or log contains, so the
words cannot be guessed from the digests. Ids from importers or clients that look like a hash are stored as keyed hashes
too (`keyed_id`), because they may be hashes of a text with a secret that is stored masked.

Words are compared without case, width and white space. A short turn is recognised only together with its time (without
a time, its session), because many turns say "yes, please", and forgetting one of them must not affect all.
Statements and texts that are imported from other programs may repeat the words of a turn, so they are compared with
turns of every role.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Sequence

from mcp_memory.core.keyed_hash import derived_id, is_keyed, keyed_form, keyed_hash, keyed_id
from mcp_memory.core.types import NewTurn
from mcp_memory.language.words import fold
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, marks, to_ms

Key = bytes

ANY = "EXISTS (SELECT 1 FROM forgotten WHERE space = :space)"
"""The condition that anything of the space was ever forgotten."""

_DISTINCT = 24
"""Minimum characters of a turn that is recognised by its words alone."""


def key_of(tx: HomeTransaction) -> Key:
    return bytes(tx.get("SELECT key FROM home"))


def add(tx: Transaction, tombstone: int) -> None:
    """Store the digests of all rows of a tombstone."""
    key = key_of(tx)
    new_digests = list[bytes]()
    turns = tx.all(
        "SELECT t.role, t.content, t.said_at, t.dated, s.name FROM turn t"
        " JOIN session s ON s.space = t.space AND s.id = t.session WHERE t.space = :space AND t.tombstone = ?",
        tombstone,
    )
    for role, content, said_at, dated, session in turns:
        new_digests += _of_turn(key, role, content, said_at if dated else None)
        new_digests.append(_in_session(key, role, content, session))
        new_digests += [] if dated else [_in_session(key, role, content, session, undated=True)]
        new_digests.append(_digest(key, "words", fold_statement(content)))
    statements = tx.column("SELECT text FROM atom WHERE space = :space AND tombstone = ?", tombstone)
    new_digests += [_digest(key, "atom", fold_statement(statement)) for statement in statements]
    refs = tx.column("SELECT sha256 FROM ref WHERE space = :space AND tombstone = ?", tombstone)
    new_digests += [_digest(key, "ref", sha256) for sha256 in refs]
    tx.many(
        "INSERT INTO forgotten (space, digest, tombstone) VALUES (:space, ?, ?) ON CONFLICT DO NOTHING",
        [(digest, tombstone) for digest in new_digests],
    )


def fold_statement(text: str) -> str:
    """Return the text of a statement in the form in which texts are compared."""
    return " ".join(fold(text).split()).rstrip(".!。！")


def statement_key(text: str) -> str:
    """Return the short form of a statement's text that is stored to find equal statements: a hash of the folded text.

    It begins with an upper-case letter, unlike the folded texts that earlier versions stored.
    """
    digest = hashlib.sha256(fold_statement(text).encode("utf-8", "surrogatepass")).digest()
    return f"H{base64.urlsafe_b64encode(digest[:12]).decode()}"


def of_row(tx: Transaction, id: str) -> list[bytes] | None:
    """Return the digests of a row, or None if it does not exist, is forgotten or is a note."""
    key = key_of(tx)
    match id[:1]:
        case "t":
            sql = "SELECT role, content, CASE WHEN dated THEN said_at END FROM turn WHERE role <> 'note'"
        case "a":
            sql = "SELECT text FROM atom WHERE 1 = 1"
        case _:
            sql = "SELECT sha256 FROM ref WHERE 1 = 1"
    row = tx.one(
        f"{sql} AND space = :space AND id = ? AND tombstone IS NULL", int(id[1:]) if id[:1] in ("t", "a") else id
    )
    if row is None:
        return None
    match id[0]:
        case "t":
            return _of_turn(key, *row)
        case "a":
            return [_digest(key, "atom", fold_statement(row[0]))]
        case _:
            return [of_result(key, row[0])]


def of_words(key: Key, text: str) -> list[bytes]:
    """Return the digests that a statement and a turn with these words have."""
    return [_digest(key, what, fold_statement(text)) for what in ("atom", "words")]


def of_result(key: Key, sha256: str) -> bytes:
    """Return the digest of a result, by the hash of its bytes."""
    return _digest(key, "ref", sha256)


def is_distinct(text: str) -> bool:
    """Return whether a turn is long enough to be recognised by its words alone."""
    return len(fold_statement(text)) >= _DISTINCT


def forgotten_turns(tx: Transaction, session: str, turns: Sequence[NewTurn]) -> set[int]:
    """Return the indexes of the given turns that repeat a forgotten turn.

    A turn with a time matches if it was said before the forgotten turn was forgotten; a later turn is new. A turn with
    a guessed time matches regardless of that time. A turn without a time matches only in the session of the forgotten
    turn, since it may be the same message imported again.
    """
    if not _any(tx):
        return set()
    key = key_of(tx)
    return {place for place, turn in enumerate(turns) if _is_again(tx, key, session, turn)}


def forgotten_statement(tx: Transaction, text: str, *, said_at: int) -> int | None:
    """Return the number of the tombstone under which a statement was forgotten at or after `said_at`, or None."""
    row = _find_tombstone(tx, _digest(key_of(tx), "atom", fold_statement(text))) if _any(tx) else None
    return row[0] if row is not None and said_at <= row[1] else None


def was_forgotten(tx: Transaction, text: str, quotes: Sequence[tuple[int, int, int]]) -> bool:
    """Return whether a statement was forgotten after it was said, or all its quotes are in forgotten evidence."""
    turns = [turn for turn, *_ in quotes]
    sql = f"SELECT max(said_at) FROM turn WHERE space = :space AND id IN ({marks(turns)})"
    said_at = (tx.get(sql, *turns) if turns else None) or 0
    return are_quotes_forgotten(tx, quotes) or forgotten_statement(tx, text, said_at=said_at) is not None


def forgotten_words(tx: Transaction, text: str) -> bool:
    """Return whether a statement or a turn with these words was forgotten."""
    if not _any(tx):
        return False
    key = key_of(tx)
    return any(_find_tombstone(tx, digest) for digest in of_words(key, text))


def forgotten_ref(tx: Transaction, sha256: str) -> int | None:
    """Return the number of the tombstone of a forgotten result with this SHA-256, or None."""
    row = _find_tombstone(tx, _digest(key_of(tx), "ref", sha256)) if _any(tx) else None
    return None if row is None else row[0]


def are_quotes_forgotten(tx: Transaction, quotes: Sequence[tuple[int, int, int]]) -> bool:
    """Return whether each of these quotes lies within a quote of a forgotten statement."""
    rows = tx.among(
        "SELECT e.turn, e.span_start, e.span_end FROM evidence e JOIN atom a ON a.space = e.space AND a.id = e.atom"
        " WHERE e.space = :space AND a.tombstone IS NOT NULL AND e.turn IN ({})",
        {turn for turn, *_ in quotes},
    )
    return bool(rows) and all(
        any(turn == number and first <= start and end <= last for number, first, last in rows)
        for turn, start, end in quotes
    )


def purged_hash(key: Key, sha256: bytes) -> bytes:
    """Return the keyed hash that replaces the SHA-256 of a purged turn.

    The turn is recognised by it if it is given again. Without the key, words cannot be tested against the hash.
    """
    return _digest(key, "husk", sha256.hex())


# --- identifiers ------------------------------------------------------------------------------------


def secret(tx: HomeTransaction, purpose: str) -> bytes:
    """Return the secret key of this home for one purpose, 32 bytes (see `core.keyed_hash`); it is never stored."""
    return _digest(key_of(tx), "secret", purpose)


def purged_id(key: Key, client_id: str) -> str:
    """Return the id that replaces the client id of a purged turn, or the call id of a purged result.

    An id that is a keyed hash already is returned unchanged.
    """
    return client_id if is_keyed(client_id) else keyed_form("purged", keyed_hash(key, "purged id", client_id))


def stored_call(tx: Transaction, id: str | None) -> str | None:
    """Return the form in which the id of a call is stored."""
    return id if id is None or derived_id(id) is None else keyed_id(key_of(tx), id)


def stored_ids(key: Key, ids: Iterable[str]) -> dict[str, str]:
    """Map the forms in which ids of turns or calls may be stored, including purged forms, to the given ids."""
    return {form: id for id in ids for form in (id, keyed_id(key, id), purged_id(key, id))}


def words_id(key: Key, kind: str, session: str, sha256: bytes) -> str:
    """Return the client id of a turn that was exported by another home.

    The key of that home is unknown, so the id is derived from the stored words.
    """
    return keyed_form(kind, keyed_hash(key, "words", session, sha256.hex()))


def purged_ref(key: Key, id: str) -> str:
    """Return the replacement for the id of a purged result, because that id is a hash of the content."""
    return f"r-{keyed_hash(key, 'purged ref', id)[: len(id) - 2]}"


def _any(tx: Transaction) -> bool:
    return bool(tx.get(f"SELECT {ANY}"))


def _find_tombstone(tx: Transaction, digest: bytes) -> tuple[int, int] | None:
    """Return the number and the time of the last tombstone with this digest that was not undone, or None."""
    return tx.one(
        "SELECT x.id, x.at FROM forgotten f JOIN tombstone x ON x.space = f.space AND x.id = f.tombstone"
        " WHERE f.space = :space AND f.digest = ? AND x.undone_at IS NULL ORDER BY x.at DESC LIMIT 1",
        digest,
    )


def _is_again(tx: Transaction, key: Key, session: str, turn: NewTurn) -> bool:
    said_at = None if turn.said_at is None else to_ms(turn.said_at)
    known_by = _of_turn(key, turn.role, turn.content, None if turn.guessed else said_at)
    if turn.role == "tool" and len(turn.content) >= _DISTINCT:
        known_by += of_words(key, turn.content)
    if said_at is not None:
        known_by.append(_in_session(key, turn.role, turn.content, session, undated=not turn.guessed))
    for digest in known_by:
        row = _find_tombstone(tx, digest)
        if row is None:
            continue
        if turn.guessed:
            return True
        if said_at is not None and said_at <= row[1]:
            return True
        held_here = "SELECT 1 FROM turn WHERE space = :space AND tombstone = ? AND session = ? LIMIT 1"
        if said_at is None and tx.one(held_here, row[0], tx.session(session)):
            return True
    return False


def _in_session(key: Key, role: str, content: str, session: str, *, undated: bool = False) -> bytes:
    """Return the digest of a turn within its session, for comparing two turns of which at least one has no time."""
    return _digest(key, "undated turn in" if undated else "turn in", role, " ".join(fold(content).split()), session)


def _of_turn(key: Key, role: str, content: str, said_at: int | None) -> list[bytes]:
    words = " ".join(fold(content).split())
    result = [_digest(key, "turn", role, words)] if len(words) >= _DISTINCT else []
    return result if said_at is None else [*result, _digest(key, "turn at", role, words, str(said_at))]


def _digest(key: Key, *parts: str) -> bytes:
    data = b"".join(b"%d:" % len(part) + part for part in (text.encode("utf-8", "surrogatepass") for text in parts))
    return hmac.digest(key, data, "sha256")
