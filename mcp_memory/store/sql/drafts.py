"""Drafts in SQLite: atoms as they were extracted, until it is known what they add to what is held.

They wait as rows, each a `NewAtom` in JSON with moments in milliseconds. A draft of which a turn was forgotten is not
there, until that is undone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line, well_formed
from mcp_memory.core.types import Evidence
from mcp_memory.store.protocol import Draft, Merging, NewAtom, Outcome, Vectors, WrittenAtom
from mcp_memory.store.sql import atoms, digests, entities, evidence_rows, jobs, supersession
from mcp_memory.store.sql.rows import from_ms, marks, number_of, numbers_of, space_for, space_id, to_ms
from mcp_memory.store.sqlite.finding import vectors

__all__ = ["commit_extraction", "commit_merge", "drafts"]

_STANDING = (
    "SELECT d.id, d.atom FROM draft d WHERE d.space = ? AND NOT EXISTS ("
    " SELECT 1 FROM json_each(d.atom, '$.evidence') e"
    " JOIN turn t ON t.id = CAST(substr(e.value ->> 'turn', 2) AS INTEGER) WHERE t.tombstone IS NOT NULL)"
)


def commit_extraction(
    con: apsw.Connection,
    space: str,
    work: str,
    *,
    upto: int,
    drafts: Sequence[NewAtom],
    aliases: Mapping[str, Sequence[str]],
    scene: str,
    outcome: Outcome,
    now: datetime,
) -> None:
    """See `Store.commit_extraction`."""
    space_no = space_for(con, space)
    jobs.finish(con, space_no, work, outcome=outcome, now=now)
    jobs.extracted(con, space_no, work, upto=upto, scene=scene)
    entities.learn(con, space_no, aliases)
    wanted = list[NewAtom]()
    for draft in drafts:
        _check(draft)
        if not _was_forgotten(con, space_no, draft, evidence_rows.checked(con, space_no, draft.evidence)):
            wanted.append(draft)
    con.executemany(
        "INSERT INTO draft (space, work, atom) VALUES (?, ?, ?)",
        [(space_no, number_of(work, "w"), _to_json(draft)) for draft in wanted],
    )


def drafts(con: apsw.Connection, space: str, *, limit: int) -> list[Draft]:
    """See `Store.drafts`."""
    rows: Any = con.execute(f"{_STANDING} ORDER BY d.id LIMIT ?", (space_id(con, space), limit))
    return [Draft(id=f"d{number}", atom=_from_json(atom)) for number, atom in rows]


def commit_merge(
    con: apsw.Connection,
    folder: Path,
    space: str,
    work: str,
    *,
    merged: Sequence[Merging],
    outcome: Outcome,
    now: datetime,
    embedded: Vectors | None,
) -> list[WrittenAtom]:
    """See `Store.commit_merge`."""
    space_no = space_for(con, space)
    jobs.finish(con, space_no, work, outcome=outcome, now=now)
    rows = {one.draft: row for row, one in enumerate(one for one in merged if one.atom is not None)}
    written: dict[str, WrittenAtom] = {}
    for one in merged:
        draft = _standing(con, space_no, one.draft)
        if draft is None or not _all_there(con, one):
            continue  # forgotten in the meantime; the rest of it is asked about again
        drawn = one.atom or draft
        if _was_forgotten(con, space_no, drawn, evidence_rows.checked(con, space_no, drawn.evidence)):
            pass
        elif one.atom is None:
            if not _confirm(con, space_no, draft, one.onto):
                continue
        else:
            _check(one.atom)
            atom = replace(one.atom, supersedes=supersession.still_open(con, space_no, one.atom.supersedes))
            written[one.draft] = atoms.put(con, folder, space, atom, now=now, work=number_of(work, "w"))
        con.execute("DELETE FROM draft WHERE id = ?", (number_of(one.draft, "d"),))
    new = {draft: number_of(made.atom.id, "a") for draft, made in written.items() if not made.duplicate}
    if embedded is not None and new:
        vectors.put(con, "atom", list(new.values()), embedded, rows=[rows[draft] for draft in new])
    return list(written.values())


def _standing(con: apsw.Connection, space: int, draft: str) -> NewAtom | None:
    row: Any = con.execute(f"{_STANDING} AND d.id = ?", (space, number_of(draft, "d"))).fetchone()
    return None if row is None else _from_json(row[1])


def _was_forgotten(con: apsw.Connection, space: int, atom: NewAtom, words: Sequence[evidence_rows.Words]) -> bool:
    """Tell whether a statement, or all the words that it rests on, were forgotten since they were said."""
    said = evidence_rows.last_said(con, words) if words else 0
    return digests.covered(con, words) or (
        digests.statement(con, space, digests.folded(atom.text), said=said) is not None
    )


def _all_there(con: apsw.Connection, merging: Merging) -> bool:
    return merging.atom is None or evidence_rows.all_there(con, merging.atom.evidence)


def _confirm(con: apsw.Connection, space: int, draft: NewAtom, onto: Sequence[str]) -> bool:
    """Add what a draft rests on to atoms that say the same; False where all of them have ended meanwhile.

    Where they were forgotten, what says the same is not learned again.
    """
    words = evidence_rows.checked(con, space, draft.evidence)
    numbers = numbers_of(onto, "a")
    rows: Any = con.execute(
        f"SELECT id, valid_to IS NULL FROM atom WHERE id IN ({marks(numbers)}) AND +space = ? AND tombstone IS NULL",
        (*numbers, space),
    ).fetchall()
    for number, is_open in rows:
        if is_open:
            evidence_rows.confirm(con, space, number, words, confidence=draft.confidence)
    return not rows or any(is_open for _, is_open in rows)


def _check(atom: NewAtom) -> None:
    """Raise InvalidInput where a model's statement rests on nothing, or is not text."""
    if not atom.evidence:
        raise InvalidInput(f"{one_line(atom.text, 80)!r} rests on nothing: name the turn and its words.")
    if not well_formed(_to_json(atom)):
        raise InvalidInput(f"{one_line(atom.text, 80)!r} or its fact has a lone surrogate, which is not text.")


def _to_json(atom: NewAtom) -> str:
    until = None if atom.valid_to is None else to_ms(atom.valid_to)
    fields = {**asdict(atom), "valid_from": to_ms(atom.valid_from), "valid_to": until}
    return json.dumps(fields, ensure_ascii=False)


def _from_json(text: str) -> NewAtom:
    fields: dict[str, Any] = json.loads(text)
    words: list[dict[str, Any]] = fields["evidence"]
    fields["evidence"] = tuple(Evidence(turn=w["turn"], span=(*w["span"],), quote=w["quote"]) for w in words)
    fields |= {name: tuple(fields.get(name, ())) for name in ("supersedes", "entities", "cites", "held")}
    fields["valid_from"] = from_ms(fields["valid_from"])
    if fields["valid_to"] is not None:
        fields["valid_to"] = from_ms(fields["valid_to"])
    return NewAtom(**fields)
