"""L1 in SQLite: atoms with the words they rest on, their facts and whom they are about; what closes them.

Every atom rests on words of turns, row by row in `evidence`: of what was told explicitly that is a note of its own, to
which words that say the same may be added. Words of forgotten turns are out of every answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import apsw

from mcp_memory.core.errors import InvalidInput, NotFound, Refused
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Evidence, Fact, NewTurn, Source
from mcp_memory.language.words import fold
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.protocol import Filters, NewAtom, Vectors, WrittenAtom
from mcp_memory.store.sql import citation_rows, digests, entities, evidence_rows, review, supersession, turns
from mcp_memory.store.sql.filters import where
from mcp_memory.store.sql.rows import (
    from_ms,
    marks,
    number_of,
    numbers_of,
    session_for,
    space_for,
    space_id,
    to_ms,
    touch,
)
from mcp_memory.store.sqlite.finding import terms, vectors

__all__ = ["add", "by_ids", "evidence", "facts", "listed", "put", "replaced", "since"]

_FACT = "f.entity, f.relation, f.value, f.valid_from, f.valid_to, r.source"
_COLUMNS = (
    "r.id, r.kind, r.text, r.priority, r.confidence, r.valid_from, r.valid_to, r.learned_at, r.superseded_by,"
    f" r.closed_because, {evidence_rows.OF_ATOM}, {entities.OF_ATOM}, r.source, {review.OF_ATOM}, {_FACT}"
)
_FROM = "FROM atom r LEFT JOIN fact f ON f.atom = r.id"


# --- writing ----------------------------------------------------------------------------------------


def add(
    con: apsw.Connection,
    folder: Path,
    space: str,
    atom: NewAtom,
    *,
    now: datetime,
    embedded: Vectors | None,
) -> WrittenAtom:
    """See `Store.add_atom`."""
    _must_be_open(con, space_for(con, space), atom.supersedes)
    written = put(con, folder, space, atom, now=now)
    if embedded is not None and not written.duplicate:
        vectors.put(con, "atom", [number_of(written.atom.id, "a")], embedded)
    return written


def put(
    con: apsw.Connection, folder: Path, space: str, atom: NewAtom, *, now: datetime, work: int | None = None
) -> WrittenAtom:
    """Store an atom without its vector, made by a work if by one; what it supersedes is open."""
    space_no = space_for(con, space)
    if atom.entity:
        atom = replace(atom, entity=entities.chief(con, space_no, atom.entity))
        atom = replace(atom, single_valued=atom.single_valued or supersession.follows_single(con, atom))
    words = evidence_rows.checked(con, space_no, atom.evidence)
    folded = digests.folded(atom.text)
    if not words and (gone := digests.statement(con, space_no, folded, said=to_ms(now))):
        raise Refused(f"{one_line(atom.text, 60)!r} was forgotten since it was told, under x{gone}; it stays so.")
    if words or atom.valid_to is not None:
        said = evidence_rows.last_said(con, words) if words else to_ms(now)
        place = supersession.of_drawn(con, space_no, atom, folded, said=said, now=now)
    else:
        place = supersession.of_told(con, space_no, atom)
    same = _held_already(con, space, space_no, atom, folded)
    if same is not None and not set(place.ends) - {number_of(same.id, "a")}:
        evidence_rows.confirm(con, space_no, number_of(same.id, "a"), words, confidence=atom.confidence)
        _vouch(con, same, atom.source)
        citation_rows.note_given(con, space_no, same.id, atom.cites)
        return WrittenAtom(atom=by_ids(con, space, [same.id])[0], replaced=[], duplicate=True)
    if same is not None and not words:  # told again to end others: it ends its own first telling too
        atom = replace(atom, supersedes=tuple(dict.fromkeys((*atom.supersedes, same.id))))
        place = supersession.of_told(con, space_no, atom)
    words = words or [_note(con, folder, space_no, atom, place, now=now)]
    number = _insert(con, space_no, atom, folded, words[0], place, now=now, work=work)
    evidence_rows.add(con, number, words)
    review.note(con, space_no, {f"a{number}": atom.held}, now=now)
    supersession.end(con, place.ends, by=number, at=atom.valid_from, because=atom.because)
    about = list(atom.entities)
    if atom.entity and atom.relation and atom.value:
        about.append(atom.entity)
        _insert_fact(con, space_no, number, atom, place)
    entities.mention(con, space_no, number, about)
    terms.put(con, "atom", space_no, [(number, terms.of_atom(atom.text))])
    citation_rows.note(con, space_no, f"a{number}", atom.text)
    citation_rows.note_given(con, space_no, f"a{number}", atom.cites)
    ids = [f"a{number}", *(f"a{older}" for older in place.ends)]
    touch(con, space_no, *(f"atom:{id}" for id in ids))
    written, *replaced = by_ids(con, space, ids)
    return WrittenAtom(atom=written, replaced=replaced, duplicate=False)


def _must_be_open(con: apsw.Connection, space: int, ids: Iterable[str]) -> None:
    for id in ids:
        row = con.execute(
            "SELECT valid_to, superseded_by FROM atom WHERE id = ? AND space = ? AND tombstone IS NULL",
            (number_of(id, "a"), space),
        ).fetchone()
        if row is None:
            raise NotFound(f"There is no atom {id} to supersede. Find it with memory_search; nothing was stored.")
        if row[0] is not None:
            by = f" by a{row[1]}" if row[1] else ""
            raise InvalidInput(f"{id} was replaced already{by}. Supersede that one instead; nothing was stored.")


def _held_already(con: apsw.Connection, space: str, space_no: int, atom: NewAtom, folded: str) -> Atom | None:
    """Return the atom that says the same and carries the same fact.

    It is open, or of the same time where it was drawn from turns: what ended since is not true anew for being read
    again. Values of one fact follow each other in time, so there only the same time is the same.
    """
    held_then, moment = "valid_to IS NULL", to_ms(atom.valid_from)
    if atom.evidence:
        in_time = atom.single_valued and atom.entity is not None
        held_then = "valid_from = ?3" if in_time else "(valid_to IS NULL OR valid_from = ?3)"
    rows: Any = con.execute(
        "SELECT id FROM atom WHERE space = ?1 AND folded = ?2 AND kind = ?4 AND tombstone IS NULL"
        f" AND ?3 IS NOT NULL AND {held_then} ORDER BY valid_to IS NOT NULL, id",
        (space_no, folded, moment, atom.kind),
    ).fetchall()
    for known in by_ids(con, space, [f"a{number}" for (number,) in rows]):
        if not atom.entity or (known.fact and _what(known.fact) == _what(atom)):
            return known
    return None


def _vouch(con: apsw.Connection, same: Atom, source: Source) -> None:
    """Let an atom be the word of whoever says the same, where that is a more trusted voice."""
    voices = get_args(Source)
    if voices.index(source) < voices.index(same.source):
        con.execute("UPDATE atom SET source = ? WHERE id = ?", (source, number_of(same.id, "a")))


def _what(fact: Fact | NewAtom) -> tuple[str, str | None, str]:
    return entities.key(fact.entity or ""), fact.relation, fold(fact.value or "")


def _note(
    con: apsw.Connection, folder: Path, space: int, atom: NewAtom, place: supersession.Place, *, now: datetime
) -> evidence_rows.Words:
    """Append what was told as a turn, journal line included, and return its words.

    The line says all that the atom's rows say, and what it ended, so that they can be made of it alone.
    """
    number = (con.execute("SELECT seq FROM sqlite_sequence WHERE name = 'atom'").get or 0) + 1
    told = {
        "atom": f"a{number}",
        "kind": atom.kind,
        "priority": atom.priority,
        "confidence": atom.confidence,
        "valid_from": to_ms(atom.valid_from),
        "valid_to": None if atom.valid_to is None else to_ms(atom.valid_to),
        "entities": list(atom.entities),
        "entity": atom.entity,
        "relation": atom.relation,
        "value": atom.value,
        "single_valued": atom.single_valued,
        "supersedes": list(atom.supersedes),
        "ends": [f"a{older}" for older in place.ends],
        **({"because": atom.because} if atom.because else {}),
        **({"until": place.until, "by": place.by and f"a{place.by}"} if place.until is not None else {}),
        **({"cites": list(atom.cites)} if atom.cites else {}),
        **({"source": atom.source} if atom.source != "user" else {}),
        **({"held": list(atom.held)} if atom.held else {}),
    }
    session = session_for(con, space, atom.session)
    note = NewTurn(role="note", content=atom.text)
    stored = turns.insert(con, space, session, atom.session, [note], now=now, hashes=[evidence_hash(note)], told=told)
    turns.journal(con, folder, space, stored, now=now)
    touch(con, space, f"session:{atom.session}")
    return number_of(stored[0].id, "t"), 0, len(atom.text), atom.text


def _insert(
    con: apsw.Connection,
    space: int,
    atom: NewAtom,
    folded: str,
    first: evidence_rows.Words,
    place: supersession.Place,
    *,
    now: datetime,
    work: int | None,
) -> int:
    return con.execute(
        "INSERT INTO atom (space, kind, text, folded, priority, confidence, evidence, span_start, span_end,"
        " valid_from, valid_to, superseded_by, learned_at, work, source)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " RETURNING id",
        (
            space,
            atom.kind,
            atom.text,
            folded,
            atom.priority,
            atom.confidence,
            *first[:3],
            to_ms(atom.valid_from),
            place.until,
            place.by,
            to_ms(now),
            work,
            atom.source,
        ),
    ).get


def _insert_fact(con: apsw.Connection, space: int, number: int, atom: NewAtom, place: supersession.Place) -> None:
    con.execute(
        "INSERT INTO fact (space, atom, entity, entity_key, relation, value, single_valued, valid_from, valid_to)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            space,
            number,
            atom.entity,
            entities.key(atom.entity or ""),
            atom.relation,
            atom.value,
            atom.single_valued,
            to_ms(atom.valid_from),
            place.until,
        ),
    )


# --- reading ----------------------------------------------------------------------------------------


def by_ids(con: apsw.Connection, space: str, ids: Iterable[str]) -> list[Atom]:
    numbers = numbers_of(ids, "a")
    rows = con.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE +r.space = ? AND r.tombstone IS NULL AND r.id IN ({marks(numbers)})",
        (space_id(con, space), *numbers),
    )
    found = {atom.id: atom for atom in map(_atom, rows)}
    return [found[id] for id in (f"a{n}" for n in dict.fromkeys(numbers)) if id in found]


def listed(con: apsw.Connection, space: str, *, filters: Filters, after: str | None, limit: int) -> list[Atom]:
    """See `Store.list_atoms`."""
    number = space_id(con, space)
    if number is None:
        return []
    condition, values = where("atom", number, filters)
    rank = "CASE WHEN r.priority < 0 THEN 1000 ELSE r.priority END"
    if after is not None:
        condition += (
            f" AND ({rank}, -r.id) < (SELECT CASE WHEN priority < 0 THEN 1000 ELSE priority END, -id"
            " FROM atom WHERE id = ?)"
        )
        values.append(number_of(after, "a"))
    sql = f"SELECT r.id FROM atom r WHERE {condition} ORDER BY {rank} DESC, r.id LIMIT ?"
    # Words and names are looked up for those few alone: for all that are sorted it takes five times as long.
    return by_ids(con, space, [f"a{number}" for (number,) in con.execute(sql, (*values, limit))])


def facts(con: apsw.Connection, space: str, *, filters: Filters, relation: str | None, limit: int) -> list[Fact]:
    """See `Store.facts`."""
    number = space_id(con, space)
    if number is None:
        return []
    condition, values = where("atom", number, filters)
    if relation is not None:
        condition += " AND f.relation = ?"
        values.append(relation)
    sql = (
        f"SELECT r.id, {_FACT} FROM atom r JOIN fact f ON f.atom = r.id"
        f" WHERE {condition} ORDER BY f.entity_key, f.relation, f.valid_from, f.id LIMIT ?"
    )
    return [_fact(*row) for row in con.execute(sql, (*values, limit))]


def evidence(con: apsw.Connection, space: str, atom: str) -> list[Evidence]:
    """See `Store.evidence`."""
    row: Any = con.execute(
        f"SELECT {evidence_rows.OF_ATOM} FROM atom r WHERE r.id = ? AND r.space = ? AND r.tombstone IS NULL",
        (number_of(atom, "a"), space_id(con, space)),
    ).fetchone()
    return [] if row is None else evidence_rows.read(row[0])


def since(con: apsw.Connection, space: str, after: int, *, limit: int) -> list[Atom]:
    """See `Store.atoms_since`."""
    rows = con.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE +r.space = ? AND r.tombstone IS NULL AND r.id > ? ORDER BY r.id LIMIT ?",
        (space_id(con, space), after, limit),
    )
    return [_atom(row) for row in rows]


def replaced(con: apsw.Connection, space: str, by: Sequence[str]) -> list[Atom]:
    """See `Store.replaced`."""
    numbers = numbers_of(by, "a")
    rows = con.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE r.space = ? AND r.tombstone IS NULL"
        f" AND r.superseded_by IN ({marks(numbers)}) ORDER BY r.id",
        (space_id(con, space), *numbers),
    )
    return [_atom(row) for row in rows]


def _atom(row: Sequence[Any]) -> Atom:
    number, kind, text, priority, confidence, since, until, learned, by, because, words, names, source, why, *fact = row
    first, *also = evidence_rows.read(words)
    return Atom(
        id=f"a{number}",
        kind=kind,
        text=text,
        priority=priority,
        confidence=confidence,
        evidence=first.turn,
        span=first.span,
        valid_from=from_ms(since),
        valid_to=None if until is None else from_ms(until),
        learned_at=from_ms(learned),
        superseded_by=None if by is None else f"a{by}",
        closed_because=because,
        fact=None if fact[0] is None else _fact(number, *fact),
        entities=tuple(json.loads(names)),
        also=tuple(also),
        source=source,
        held=() if why is None else tuple(json.loads(why)),
    )


def _fact(atom: Any, entity: Any, relation: Any, value: Any, since: Any, until: Any, source: Any) -> Fact:
    return Fact(
        atom=f"a{atom}",
        entity=entity,
        relation=relation,
        value=value,
        valid_from=from_ms(since),
        valid_to=None if until is None else from_ms(until),
        source=source,
    )
