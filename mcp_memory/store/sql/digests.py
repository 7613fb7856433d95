"""By what the forgotten is known again when it comes once more: keyed digests, rows of `forgotten`.

They outlive the words themselves, which a purge erases. The key is the home's own, so that nobody who has them alone
can find out by trial what it was. Words are compared without case, width and white space. A turn of a few words is
known by its time too, and where it comes without one by its session: everybody says "yes, please", and one of them
that was forgotten says nothing of the others. What other programs keep, statements and texts, may be the words of a
turn, whoever said it.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Any

import apsw

from mcp_memory.core.types import NewTurn
from mcp_memory.language.words import fold
from mcp_memory.store.sql.rows import marks, to_ms

__all__ = ["Key", "add", "covered", "folded", "husk_hash", "key_of", "of", "ref", "statement", "turns", "words"]

Key = bytes

_DISTINCT = 24
"""Characters from which on a turn's words tell it from others."""
_FOUND = (
    "SELECT x.id, x.at FROM forgotten f JOIN tombstone x ON x.id = f.tombstone"
    " WHERE f.space = ? AND f.digest = ? AND x.undone_at IS NULL ORDER BY x.at DESC LIMIT 1"
)


def key_of(con: apsw.Connection) -> Key:
    return bytes(con.execute("SELECT key FROM home").get)


def add(con: apsw.Connection, space: int, tombstone: int) -> None:
    """Keep the digests of all that a tombstone took."""
    key = key_of(con)
    found = list[bytes]()
    turns: Any = con.execute(
        "SELECT t.role, t.content, t.said_at, t.dated, s.name FROM turn t JOIN session s ON s.id = t.session"
        " WHERE t.tombstone = ?",
        (tombstone,),
    )
    for role, content, said_at, dated, session in turns:
        found += [*_of_turn(key, role, content, said_at if dated else None), _in_session(key, role, content, session)]
        found += [] if dated else [_in_session(key, role, content, session, undated=True)]
        found.append(_digest(key, "words", folded(content)))
    atoms: Any = con.execute("SELECT folded FROM atom WHERE tombstone = ?", (tombstone,))
    found += [_digest(key, "atom", statement) for (statement,) in atoms]
    refs: Any = con.execute("SELECT sha256 FROM ref WHERE space = ? AND tombstone = ?", (space, tombstone))
    found += [_digest(key, "ref", sha256) for (sha256,) in refs]
    con.executemany(
        "INSERT INTO forgotten (space, digest, tombstone) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        [(space, digest, tombstone) for digest in found],
    )


def folded(text: str) -> str:
    """Return a statement as it is compared with others."""
    return " ".join(fold(text).split()).rstrip(".!。！")


def of(con: apsw.Connection, space: int, id: str) -> list[bytes] | None:
    """Return the digests of a row that is not forgotten; None where there is none, or it is a note."""
    key = key_of(con)
    match id[:1]:
        case "t":
            sql = "SELECT role, content, CASE WHEN dated THEN said_at END FROM turn WHERE role <> 'note'"
        case "a":
            sql = "SELECT folded FROM atom WHERE TRUE"
        case _:
            sql = "SELECT sha256 FROM ref WHERE TRUE"
    number = id[1:] if id[:1] in ("t", "a") else id
    row: Any = con.execute(f"{sql} AND space = ? AND id = ? AND tombstone IS NULL", (space, number)).fetchone()
    if row is None:
        return None
    return _of_turn(key, *row) if id[0] == "t" else [_digest(key, "atom" if id[0] == "a" else "ref", *row)]


def turns(con: apsw.Connection, space: int, session: int, given: Sequence[NewTurn]) -> set[int]:
    """Return the places of turns that were forgotten, and come again.

    Those that were said before they were forgotten, by the time given with them; those without a time, in a session
    that held them. What is said anew is no longer what was forgotten. Of a history without times nobody knows when it
    was said: what was forgotten does not come back with it.
    """
    if not _any(con, space):
        return set()
    key, name = key_of(con), str(con.execute("SELECT name FROM session WHERE id = ?", (session,)).get)
    return {place for place, turn in enumerate(given) if _is_again(con, key, space, (session, name), turn)}


def statement(con: apsw.Connection, space: int, text: str, *, said: int) -> int | None:
    """Return the tombstone of a statement that was said no later than it was forgotten; None where there is none."""
    if not _any(con, space):
        return None
    row: Any = con.execute(_FOUND, (space, _digest(key_of(con), "atom", text))).fetchone()
    return row[0] if row is not None and said <= row[1] else None


def words(con: apsw.Connection, space: int, text: str) -> bool:
    """Tell whether a statement or a turn with these words was forgotten."""
    if not _any(con, space):
        return False
    key = key_of(con)
    known_by = [_digest(key, what, folded(text)) for what in ("atom", "words")]
    return any(con.execute(_FOUND, (space, digest)).fetchone() is not None for digest in known_by)


def ref(con: apsw.Connection, space: int, sha256: str) -> int | None:
    """Return the tombstone of a result with these bytes; None where there is none."""
    if not _any(con, space):
        return None
    row: Any = con.execute(_FOUND, (space, _digest(key_of(con), "ref", sha256))).fetchone()
    return None if row is None else row[0]


def covered(con: apsw.Connection, given: Sequence[tuple[int, int, int, str]]) -> bool:
    """Tell whether all these words of turns lie within words of statements that were forgotten."""
    numbers = sorted({turn for turn, *_ in given})
    rows: Any = con.execute(
        "SELECT e.turn, e.span_start, e.span_end FROM evidence e JOIN atom a ON a.id = e.atom"
        f" WHERE a.tombstone IS NOT NULL AND e.turn IN ({marks(numbers)})",
        numbers,
    ).fetchall()
    return bool(rows) and all(
        any(turn == held and first <= start and end <= last for held, first, last in rows)
        for turn, start, end, _ in given
    )


def husk_hash(key: Key, sha256: bytes) -> bytes:
    """Return what stands for the hash of a purged turn: it tells the turn again, and nobody can try words on it."""
    return _digest(key, "husk", sha256.hex())


def _any(con: apsw.Connection, space: int) -> bool:
    return con.execute("SELECT 1 FROM forgotten WHERE space = ? LIMIT 1", (space,)).get is not None


def _is_again(con: apsw.Connection, key: Key, space: int, session: tuple[int, str], turn: NewTurn) -> bool:
    said = None if turn.said_at is None else to_ms(turn.said_at)
    known_by = _of_turn(key, turn.role, turn.content, None if turn.guessed else said)
    if turn.role == "tool" and len(turn.content) >= _DISTINCT:
        known_by += [_digest(key, what, folded(turn.content)) for what in ("atom", "words")]
    if said is not None:
        known_by.append(_in_session(key, turn.role, turn.content, session[1], undated=not turn.guessed))
    for digest in known_by:
        row: Any = con.execute(_FOUND, (space, digest)).fetchone()
        if row is None:
            continue
        if turn.guessed:
            return True
        if said is not None and said <= row[1]:
            return True
        held_here = "SELECT 1 FROM turn WHERE tombstone = ? AND session = ? LIMIT 1"
        if said is None and con.execute(held_here, (row[0], session[0])).get is not None:
            return True
    return False


def _in_session(key: Key, role: str, content: str, session: str, *, undated: bool = False) -> bytes:
    """Return what a turn of any length is known by within its session: where one of the two has no time."""
    return _digest(key, "undated turn in" if undated else "turn in", role, " ".join(fold(content).split()), session)


def _of_turn(key: Key, role: str, content: str, said_at: int | None) -> list[bytes]:
    words = " ".join(fold(content).split())
    found = [_digest(key, "turn", role, words)] if len(words) >= _DISTINCT else []
    return found if said_at is None else [*found, _digest(key, "turn at", role, words, str(said_at))]


def _digest(key: Key, *parts: str) -> bytes:
    data = b"".join(b"%d:" % len(part) + part for part in (text.encode("utf-8", "surrogatepass") for text in parts))
    return hmac.digest(key, data, "sha256")
