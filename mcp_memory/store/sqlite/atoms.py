"""L1 in SQLite: atoms with their evidence and facts, what closes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.errors import InvalidInput, NotFound
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.protocol import Filters, NewAtom, Vectors, WrittenAtom
from mcp_memory.store.sqlite import terms, turns, vectors
from mcp_memory.store.sqlite.filters import where
from mcp_memory.store.sqlite.rows import (
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
from mcp_memory.text import fold
from mcp_memory.types import Atom, Fact, NewTurn

__all__ = ["add", "by_ids", "evidence", "facts", "listed", "replaced", "since"]

_COLUMNS = (
    "r.id, r.kind, r.text, r.priority, r.confidence, r.evidence, r.span_start, r.span_end, r.valid_from, r.valid_to,"
    " r.learned_at, r.superseded_by, f.entity, f.relation, f.value, f.valid_from, f.valid_to"
)
_FROM = "FROM atom r LEFT JOIN fact f ON f.atom = r.id"


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
    space_no = space_for(con, space)
    older = _to_replace(con, space_no, atom)
    same = _held_already(con, space, space_no, atom)
    if same is not None and not older - {number_of(same.id, "a")}:
        return WrittenAtom(atom=same, replaced=[], duplicate=True)
    evidence = _note(con, folder, space_no, atom, now=now)
    number = con.execute(
        "INSERT INTO atom (space, kind, text, folded, priority, confidence, evidence, span_start, span_end,"
        " valid_from, learned_at) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?) RETURNING id",
        (
            space_no,
            atom.kind,
            atom.text,
            _folded(atom.text),
            atom.priority,
            atom.confidence,
            evidence,
            len(atom.text),
            to_ms(atom.valid_from),
            to_ms(now),
        ),
    ).get
    _close(con, older, by=number, at=to_ms(max(atom.valid_from, _latest_start(con, older))))
    if atom.entity and atom.relation and atom.value:
        con.execute(
            "INSERT INTO fact (space, atom, entity, entity_key, relation, value, single_valued, valid_from)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                space_no,
                number,
                atom.entity,
                atom.entity.casefold(),
                atom.relation,
                atom.value,
                atom.single_valued,
                to_ms(atom.valid_from),
            ),
        )
    terms.put(con, "atom", space_no, [(number, terms.of_atom(atom.text))])
    if embedded is not None:
        vectors.put(con, "atom", [number], embedded)
    touch(con, space_no, f"atom:a{number}", f"session:{atom.session}", *(f"atom:a{n}" for n in sorted(older)))
    written, *replaced = by_ids(con, space, [f"a{number}", *(f"a{n}" for n in sorted(older))])
    return WrittenAtom(atom=written, replaced=replaced, duplicate=False)


def _to_replace(con: apsw.Connection, space: int, atom: NewAtom) -> set[int]:
    """Return the open atoms that this one closes: those it names, and the holder of its single-valued fact."""
    older: set[int] = set()
    for id in atom.supersedes:
        number = number_of(id, "a")
        row = con.execute(
            "SELECT valid_to, superseded_by FROM atom WHERE id = ? AND space = ? AND tombstone IS NULL",
            (number, space),
        ).fetchone()
        if row is None:
            raise NotFound(f"There is no atom {id} to supersede. Find it with memory_search; nothing was stored.")
        if row[0] is not None:
            by = f" by a{row[1]}" if row[1] else ""
            raise InvalidInput(f"{id} was replaced already{by}. Supersede that one instead; nothing was stored.")
        older.add(number)
    if atom.single_valued and atom.entity and atom.relation:
        older |= {
            int(holder)
            for (holder,) in con.execute(
                "SELECT atom FROM fact WHERE space = ? AND entity_key = ? AND relation = ?"
                " AND valid_to IS NULL AND tombstone IS NULL",
                (space, atom.entity.casefold(), atom.relation),
            )
        }
    return older


def _held_already(con: apsw.Connection, space: str, space_no: int, atom: NewAtom) -> Atom | None:
    """Return the open atom that says the same and carries the same fact."""
    for (number,) in con.execute(
        "SELECT id FROM atom WHERE space = ? AND folded = ? AND kind = ? AND valid_to IS NULL AND tombstone IS NULL",
        (space_no, _folded(atom.text), atom.kind),
    ).fetchall():
        (held,) = by_ids(con, space, [f"a{number}"])
        fact = held.fact
        told = (atom.entity or "").casefold(), atom.relation, fold(atom.value or "")
        if not atom.entity or (fact and (fact.entity.casefold(), fact.relation, fold(fact.value)) == told):
            return held
    return None


def _note(con: apsw.Connection, folder: Path, space: int, atom: NewAtom, *, now: datetime) -> int:
    """Append what was told as a turn, journal line included, and return its number."""
    told = {
        "kind": atom.kind,
        "priority": atom.priority,
        "confidence": atom.confidence,
        "valid_from": to_ms(atom.valid_from),
        "entity": atom.entity,
        "relation": atom.relation,
        "value": atom.value,
        "single_valued": atom.single_valued,
        "supersedes": list(atom.supersedes),
    }
    session = session_for(con, space, atom.session)
    note = NewTurn(role="note", content=atom.text)
    stored = turns.insert(con, space, session, atom.session, [note], now=now, hashes=[evidence_hash(note)], told=told)
    turns.journal(con, folder, space, stored, [None], now=now, told=told)
    return number_of(stored[0].id, "t")


def _latest_start(con: apsw.Connection, atoms: set[int]) -> datetime:
    """Nothing ends before it began, whatever `valid_from` the newer one was given."""
    latest = con.execute(f"SELECT max(valid_from) FROM atom WHERE id IN ({marks(list(atoms))})", tuple(atoms)).get
    return from_ms(latest or 0)


def _close(con: apsw.Connection, atoms: set[int], *, by: int, at: int) -> None:
    for number in atoms:
        con.execute("UPDATE atom SET valid_to = ?, superseded_by = ? WHERE id = ?", (at, by, number))
        con.execute("UPDATE fact SET valid_to = ? WHERE atom = ? AND valid_to IS NULL", (at, number))


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
    sql = f"SELECT {_COLUMNS} {_FROM} WHERE {condition} ORDER BY {rank} DESC, r.id LIMIT ?"
    return [_atom(row) for row in con.execute(sql, (*values, limit))]


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
        f"SELECT r.id, f.entity, f.relation, f.value, f.valid_from, f.valid_to FROM atom r JOIN fact f ON f.atom = r.id"
        f" WHERE {condition} ORDER BY f.entity_key, f.relation, f.valid_from, f.id LIMIT ?"
    )
    return [_fact(*row) for row in con.execute(sql, (*values, limit))]


def evidence(*args: Any) -> Any:
    raise NotImplementedError


def since(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def replaced(*args: Any) -> Any:
    raise NotImplementedError


def _folded(text: str) -> str:
    return " ".join(fold(text).split()).rstrip(".!。！")


def _atom(row: Sequence[Any]) -> Atom:
    number, kind, text, priority, confidence, evidence, start, end, since, until, learned, by, *fact = row
    return Atom(
        id=f"a{number}",
        kind=kind,
        text=text,
        priority=priority,
        confidence=confidence,
        evidence=f"t{evidence}",
        span=(start, end),
        valid_from=from_ms(since),
        valid_to=None if until is None else from_ms(until),
        learned_at=from_ms(learned),
        superseded_by=None if by is None else f"a{by}",
        fact=None if fact[0] is None else _fact(number, *fact),
    )


def _fact(atom: Any, entity: Any, relation: Any, value: Any, since: Any, until: Any) -> Fact:
    return Fact(
        atom=f"a{atom}",
        entity=entity,
        relation=relation,
        value=value,
        valid_from=from_ms(since),
        valid_to=None if until is None else from_ms(until),
    )
