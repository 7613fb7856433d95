"""Statements as they come in: told, drawn from turns, ended; each once, with its times as they are.

What is known is brought up to date: further words that it rests on, and its end. Whatever ended here stays so. Where
a single-valued fact has an open value on both sides, the one that became true last holds, and ends the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.language.words import fold
from mcp_memory.store import carried
from mcp_memory.store.sql import digests, entities, evidence_rows
from mcp_memory.store.sql.rows import number_of, space_id, to_ms, touch
from mcp_memory.store.sqlite.finding import terms
from mcp_memory.store.sqlite.moving.arrivals.desk import GONE, Desk
from mcp_memory.store.sqlite.moving.arrivals.saying import say

__all__ = ["take", "were_forgotten"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Atoms that it ends here; and when it ended itself, by which atom if by one."""

    ends: list[int]
    until: int | None
    by: int | None


def take(desk: Desk, row: carried.Atom, note: carried.Turn | None) -> None:
    """Take in an atom; with the note that comes with it, where it was told and that is new too."""
    known = desk.find(row.id, row.learned_at, row.origins)
    if known is None:
        known = _says_the_same(desk, row)
    if known is not None:
        desk.note(row.id, row.learned_at, row.origins, known)
        desk.meet(known)
        if note is not None:  # the words of it that are here are those of another note
            desk.note(note.id, note.learned_at, note.origins, _first_turn(desk, known))
        if known != GONE:
            _bring_up_to_date(desk, row, number_of(known, "a"))
        return
    words = [] if note is not None else _words(desk, row)
    folded = digests.folded(row.text)
    said = to_ms(note.said_at) if note is not None else evidence_rows.last_said(desk.con, words) if words else 0
    again = digests.statement(desk.con, desk.number, folded, said=said) is not None
    if (note is None and not words) or again or (words and digests.covered(desk.con, words)):
        desk.names[row.id] = GONE
        if note is not None:
            desk.names[note.id] = GONE
        return
    place = _place(desk, row)
    if note is not None:
        say(desk, [note], told=_told(desk, row, note, place))
        words = _words(desk, row)
        if not words:  # the note itself was forgotten here
            desk.names[row.id] = GONE
            return
    _insert(desk, row, folded, words, place)


def were_forgotten(con: apsw.Connection, space: str, statements: Sequence[Sequence[str]]) -> set[int]:
    """See `Store.were_forgotten`."""
    number = space_id(con, space)
    if number is None:
        return set()
    return {
        place for place, wordings in enumerate(statements) if any(digests.words(con, number, text) for text in wordings)
    }


def _words(desk: Desk, row: carried.Atom) -> list[evidence_rows.Words]:
    """Return the words that it rests on, of turns that are here."""
    found: list[evidence_rows.Words] = []
    for one in row.evidence:
        turn = desk.name(one.turn)
        if turn == GONE:
            continue
        held: Any = desk.con.execute(
            "SELECT content, tombstone FROM turn WHERE id = ? AND space = ?", (number_of(turn, "t"), desk.number)
        ).fetchone()
        if held is None or held[1] is not None:
            continue
        if held[0][one.start : one.end] == one.quote:
            found.append((number_of(turn, "t"), one.start, one.end, one.quote))
        elif fold(held[0]) != fold(one.quote):  # a note that says the same in other letters stands for this one
            raise InvalidInput(f"{row.id} quotes {one_line(one.quote, 40)!r} of {one.turn}, which does not say that.")
        else:
            found.append((number_of(turn, "t"), 0, len(held[0]), held[0]))
    return list(dict.fromkeys(found))


def _says_the_same(desk: Desk, row: carried.Atom) -> str | None:
    """Return the atom that says the same of the same time, and carries the same fact."""
    rows: Any = desk.con.execute(
        "SELECT r.id, f.entity_key, f.relation, f.value FROM atom r LEFT JOIN fact f ON f.atom = r.id"
        " WHERE r.space = ?1 AND r.folded = ?2 AND r.kind = ?3 AND r.tombstone IS NULL"
        " AND (r.valid_from = ?4 OR (?5 AND r.valid_to IS NULL)) ORDER BY r.valid_from <> ?4, r.id",
        (desk.number, digests.folded(row.text), row.kind, to_ms(row.valid_from), row.valid_to is None),
    )
    wanted = (None, None, None)
    if row.fact is not None:
        chief = entities.chief(desk.con, desk.number, row.fact.entity)
        wanted = (entities.key(chief), row.fact.relation, fold(row.fact.value))
    for number, entity, relation, value in rows:
        if (entity, relation, None if value is None else fold(value)) == wanted:
            return f"a{number}"
    return None


def _first_turn(desk: Desk, atom: str) -> str:
    number = desk.con.execute("SELECT evidence FROM atom WHERE id = ?", (number_of(atom, "a") if atom else 0,)).get
    return GONE if number is None else f"t{number}"


# --- what is here -----------------------------------------------------------------------------------


def _bring_up_to_date(desk: Desk, row: carried.Atom, number: int) -> None:
    con = desk.con
    held: Any = con.execute(
        "SELECT valid_to, superseded_by, closed_because, tombstone FROM atom WHERE id = ?", (number,)
    ).fetchone()
    if held is None or held[3] is not None:
        return
    until, by, because, _ = held
    changed = evidence_rows.add(con, number, _words(desk, row))
    con.execute("UPDATE atom SET confidence = max(confidence, ?) WHERE id = ?", (row.confidence, number))
    if until is None and row.valid_to is not None:
        con.execute("UPDATE atom SET valid_to = max(valid_from, ?) WHERE id = ?", (to_ms(row.valid_to), number))
        con.execute("UPDATE fact SET valid_to = (SELECT valid_to FROM atom WHERE id = ?1) WHERE atom = ?1", (number,))
        changed = True
    successor = desk.name(row.superseded_by) if row.superseded_by else GONE
    if row.valid_to is not None and by is None and successor != GONE and successor != f"a{number}":
        con.execute("UPDATE atom SET superseded_by = ? WHERE id = ?", (number_of(successor, "a"), number))
        changed = True
    if row.valid_to is not None and because is None and row.closed_because:
        con.execute("UPDATE atom SET closed_because = ? WHERE id = ?", (row.closed_because, number))
    if changed:
        desk.changed += 1
        touch(con, desk.number, f"atom:a{number}")


# --- what is new ------------------------------------------------------------------------------------


def _place(desk: Desk, row: carried.Atom) -> _Place:
    """Return what it ends of what is here, and how it ended."""
    ended = [number_of(name, "a") for older in row.supersedes if (name := desk.name(older)) != GONE]
    successor = desk.name(row.superseded_by) if row.superseded_by else GONE
    until = None if row.valid_to is None else to_ms(row.valid_to)
    by = None if successor == GONE else number_of(successor, "a")
    if until is None and row.fact is not None and row.fact.single_valued:
        key = entities.key(entities.chief(desk.con, desk.number, row.fact.entity))
        rival: Any = desk.con.execute(
            "SELECT atom, valid_from FROM fact WHERE space = ? AND entity_key = ? AND relation = ? AND single_valued"
            " AND valid_to IS NULL AND tombstone IS NULL",
            (desk.number, key, row.fact.relation),
        ).fetchone()
        if rival is not None and rival[1] > to_ms(row.valid_from):
            until, by = rival[1], rival[0]
        elif rival is not None:
            ended.append(rival[0])
    return _Place(ends=sorted(set(ended)), until=until, by=by)


def _told(desk: Desk, row: carried.Atom, note: carried.Turn, place: _Place) -> dict[str, Any]:
    """Return what the note's line in the journal says of its atom: how it is called here, and what it ends."""
    next_one = (desk.con.execute("SELECT seq FROM sqlite_sequence WHERE name = 'atom'").get or 0) + 1
    told = {key: value for key, value in (note.told or {}).items() if key not in ("until", "by", "cites")}
    ends = [f"a{number}" for number in place.ends]
    told |= {"atom": f"a{next_one}", "supersedes": ends, "ends": ends}
    if place.until is not None and (place.by is not None or row.superseded_by is None):
        told |= {"until": place.until, "by": None if place.by is None else f"a{place.by}"}
    return told


def _insert(desk: Desk, row: carried.Atom, folded: str, words: list[evidence_rows.Words], place: _Place) -> None:
    con = desk.con
    work = desk.work("merge") if row.by_model else None
    number: int = con.execute(
        "INSERT INTO atom (space, kind, text, folded, priority, confidence, evidence, span_start, span_end, valid_from,"
        " valid_to, superseded_by, closed_because, learned_at, work, source)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            desk.number,
            row.kind,
            row.text,
            folded,
            row.priority,
            row.confidence,
            *words[0][:3],
            to_ms(row.valid_from),
            place.until,
            place.by,
            row.closed_because,
            to_ms(desk.now),
            work,
            row.source,
        ),
    ).get
    evidence_rows.add(con, number, words)
    for older in place.ends:
        _end(desk, older, by=number, at=to_ms(row.valid_from))
    if row.fact is not None:
        chief = entities.chief(con, desk.number, row.fact.entity)
        con.execute(
            "INSERT INTO fact (space, atom, entity, entity_key, relation, value, single_valued, valid_from, valid_to)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                desk.number,
                number,
                chief,
                entities.key(chief),
                row.fact.relation,
                row.fact.value,
                row.fact.single_valued,
                to_ms(row.valid_from),
                place.until,
            ),
        )
    entities.mention(con, desk.number, number, row.entities)
    terms.put(con, "atom", desk.number, [(number, terms.of_atom(row.text))])
    touch(con, desk.number, f"atom:a{number}", *(f"atom:a{older}" for older in place.ends))
    desk.note(row.id, row.learned_at, row.origins, f"a{number}")
    desk.stored += 1


def _end(desk: Desk, older: int, *, by: int, at: int) -> None:
    """Note that a new atom replaced another: it ends now what is open, and stands as the reason of what ended."""
    held: Any = desk.con.execute(
        "SELECT valid_to, superseded_by, tombstone FROM atom WHERE id = ?", (older,)
    ).fetchone()
    if held is None or held[2] is not None or held[1] is not None:
        return
    if held[0] is not None:
        desk.con.execute("UPDATE atom SET superseded_by = ? WHERE id = ?", (by, older))
        return
    moment = desk.con.execute(
        "UPDATE atom SET valid_to = max(?, valid_from), superseded_by = ? WHERE id = ? RETURNING valid_to",
        (at, by, older),
    ).get
    desk.con.execute("UPDATE fact SET valid_to = ? WHERE atom = ?", (moment, older))
