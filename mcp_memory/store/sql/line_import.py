"""Stores rows that files of a home describe (`line_forms`), when a space is rebuilt or lost rows are recovered.

The rows get the numbers that their lines have. Explicit statements are parts of the notes in the journal; `statements`
combines all notes of a space.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from mcp_memory.store.row_types import SessionRow, TombstoneRow, TurnRow, VersionRow
from mcp_memory.store.sql import (
    canvas_rows,
    digests,
    entity_rows,
    evidence_rows,
    quarantine_rows,
    row_codec,
    supersession,
    word_index,
)
from mcp_memory.store.sql.line_forms import LineRow
from mcp_memory.store.sql.transaction import Transaction, Value, catch_up_counters, from_ms, to_ms
from mcp_memory.store.values import UNJUDGED

# --- explicit statements ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """An explicit statement as its note describes it.

    `values` and `fact` are the columns of its atom and its fact, `names` the entities that it mentions, `reasons` why
    it was quarantined, `ends` the numbers of the atoms that it ended, and `because` the reason for ending them.
    """

    number: int
    values: dict[str, Value]
    fact: dict[str, Value] | None
    names: Sequence[str] = ()
    reasons: Sequence[str] = ()
    ends: Sequence[int] = ()
    because: str | None = None

    def end_columns(self, since: int, label: str | None) -> dict[str, Value]:
        """Return the columns that change in an older atom when this statement ends it.

        `since` is the start of the older atom in ms since 1970, `label` its label.
        """
        until = max(cast("int", self.values["valid_from"]), since)
        because = supersession.because_of(self.because, cast("str | None", self.values["label"]), label)
        return {"valid_to": until, "superseded_by": self.number, "closed_because": because}


def statement_of(note: TurnRow) -> Statement:
    """Return the statement of a note, as it was before later statements ended it.

    Raises KeyError, TypeError or ValueError if the note is damaged, or is not a note.
    """
    stored: Any = note.told
    by, until = stored.get("by"), stored.get("until")
    fact: dict[str, Value] | None = None
    if stored["entity"] and stored["relation"] and stored["value"]:
        fact = {name: stored[name] for name in ("entity", "relation", "value", "single_valued")}
    return Statement(
        number=row_codec.exact_number("a", stored["atom"]),
        values={
            "kind": str(stored["kind"]),
            "text": note.content,
            "priority": int(stored["priority"]),
            "confidence": stored["confidence"],
            "evidence": row_codec.exact_number("t", note.id),
            "span_start": 0,
            "span_end": len(note.content),
            "valid_from": int(stored["valid_from"]),
            "valid_to": None if until is None else int(until),
            "superseded_by": None if by is None else row_codec.exact_number("a", by),
            "closed_because": None,
            "learned_at": to_ms(note.learned_at),
            "source": stored.get("source", "user"),
            "label": stored.get("label"),
        },
        fact=fact,
        names=[*stored["entities"], *([stored["entity"]] if fact else [])],
        reasons=stored.get("held", ()),
        ends=[row_codec.exact_number("a", id) for id in stored.get("ends", stored["supersedes"])],
        because=stored.get("because") or None,
    )


def undone_corrections(tombstones: Iterable[TombstoneRow]) -> set[str]:
    """Return the ids of statements that are forgotten as undone corrections."""
    return {
        id
        for tombstone in tombstones
        if tombstone.how == "correction" and tombstone.undone_at is None
        for id in tombstone.ids
    }


def statements(notes: Iterable[TurnRow], *, undone: Collection[str] = ()) -> dict[int, Statement]:
    """Return the explicit statements of a space by number, as they are after all of them have been applied.

    Each statement ends the statements that its note lists, unless its id is in `undone` (see `undone_corrections`).
    """
    by_number: dict[int, Statement] = {}
    for statement in sorted(map(statement_of, notes), key=lambda statement: statement.number):
        by_number[statement.number] = statement
        for older in () if f"a{statement.number}" in undone else statement.ends:
            if older in by_number:
                values = by_number[older].values
                end = statement.end_columns(cast("int", values["valid_from"]), cast("str | None", values["label"]))
                by_number[older] = replace(by_number[older], values={**values, **end})
    return by_number


# --- storing ----------------------------------------------------------------------------------------


def key_columns(row: LineRow) -> dict[str, Value]:
    """Return the columns that identify a row in its space. A session is identified by its name."""
    values = row_codec.values_of(row)
    key = ["name"] if isinstance(row, SessionRow) else row_codec.table_of(row).key
    return {name: values[name] for name in key if name != "space"}


class LineImport:
    """Stores rows from lines in the tables of a space. Call `finish` last, because some rows depend on all lines."""

    def __init__(self, tx: Transaction) -> None:
        tx.make_space()
        self.tx = tx
        self.kept: dict[str, int] = {}
        """Number of rows that still have their words, by tombstone, although the tombstone says that it was purged."""
        self._statements: dict[int, Statement] = {}
        self._canvases: set[int] = set()

    def put(self, row: LineRow) -> None:
        """Insert or update a row and the rows that derive from it. A tombstone also forgets or restores its rows."""
        tx = self.tx
        match row:
            case TurnRow(client_id=str() as client_id):  # a line of an earlier version may have a plain hash
                row = replace(row, client_id=digests.keyed_id(digests.key_of(tx), client_id))
            case SessionRow():
                tx.make_session(row.name)
            case _:
                pass
        values = row_codec.columns_of(tx, row)
        if isinstance(row, VersionRow):
            self._put_canvas(row, values)
        elif isinstance(row, TombstoneRow):
            values["took"] = json.dumps({"ids": row.ids, "how": row.how})
        key = key_columns(row)
        others = {name: value for name, value in values.items() if name not in key}
        is_new = self._write(row_codec.table_of(row).name, key, others)
        if isinstance(row, TurnRow):
            self._put_turn(row, is_new=is_new)
        elif isinstance(row, TombstoneRow):
            self._apply_tombstone(row)

    def is_there(self, row: LineRow) -> bool:
        return self._has(row_codec.table_of(row).name, key_columns(row))

    def _has(self, table: str, key: Mapping[str, Value]) -> bool:
        sql = f"SELECT 1 FROM {table} WHERE space = :space AND {_pairs(key, ' AND ')}"
        return self.tx.one(sql, *key.values()) is not None

    def _write(self, table: str, key: Mapping[str, Value], values: Mapping[str, Value]) -> bool:
        """Insert a row, or update it if it exists. Return whether it was inserted."""
        is_new = not self._has(table, key)
        if is_new:
            self.tx.insert(table, **key, **values)
        else:
            self._update(table, key, values)
        return is_new

    def _update(self, table: str, key: Mapping[str, Value], values: Mapping[str, Value]) -> None:
        sql = f"UPDATE {table} SET {_pairs(values, ', ')} WHERE space = :space AND {_pairs(key, ' AND ')}"
        self.tx.run(sql, *values.values(), *key.values())

    def put_statement(self, new: Statement) -> None:
        """Store an explicit statement, whose note must be stored already. `finish` stores its fact and mentions."""
        tx = self.tx
        values = {**new.values, "folded": digests.statement_key(str(new.values["text"]))}
        note, text = int(str(values["evidence"])), str(values["text"])
        if not self._write("atom", {"id": new.number}, values):
            tx.index.remove("atom", [new.number])
        evidence_rows.add_quotes(tx, new.number, [(note, 0, len(text))])
        self._quarantine(f"a{new.number}", new.reasons, at=from_ms(cast("int", values["learned_at"])))
        self._statements[new.number] = new

    def end(self, older: int, by: Statement) -> None:
        """Record that a statement ended an older atom, if that atom is stored."""
        began = self.tx.one("SELECT valid_from, label FROM atom WHERE space = :space AND id = ?", older)
        if began is not None:
            self._update("atom", {"id": older}, by.end_columns(*began))

    def finish(self) -> None:
        """Catch up the counters, restore the rows of canvases, and store facts and mentions.

        Facts and mentions come last because they depend on which statements were ended or forgotten.
        """
        tx = self.tx
        catch_up_counters(tx)
        word_index.make_due(tx)
        for number in self._canvases:
            canvas_rows.draw(tx, number)
        self._canvases.clear()
        tx.run(
            "UPDATE fact SET valid_to = (SELECT a.valid_to FROM atom a WHERE a.space = fact.space AND a.id = fact.atom)"
            ", tombstone = (SELECT a.tombstone FROM atom a WHERE a.space = fact.space AND a.id = fact.atom)"
            " WHERE space = :space AND EXISTS (SELECT 1 FROM atom a WHERE a.space = fact.space AND a.id = fact.atom"
            " AND (a.valid_to IS DISTINCT FROM fact.valid_to OR a.tombstone IS DISTINCT FROM fact.tombstone))"
        )
        for number, statement in self._statements.items():
            self._put_fact(number, statement.fact)
            if tx.one("SELECT 1 FROM mention WHERE space = :space AND atom = ?", number) is None:
                entity_rows.mention(tx, number, statement.names)
        self._statements.clear()

    def _put_fact(self, atom: int, fact: dict[str, Value] | None) -> None:
        tx = self.tx
        if fact is None:
            tx.run("DELETE FROM fact WHERE space = :space AND atom = ?", atom)
            return
        since, until, tombstone = tx.all(
            "SELECT valid_from, valid_to, tombstone FROM atom WHERE space = :space AND id = ?", atom
        )[0]
        values = {**fact, "valid_from": since, "valid_to": until, "tombstone": tombstone}
        self._write("fact", {"atom": atom}, {**values, "entity_key": entity_rows.key(str(fact["entity"]))})

    def _put_canvas(self, row: VersionRow, values: Mapping[str, Value]) -> None:
        """Set the row of a canvas to this version, unless the row has a later version.

        `finish` adds the text and the groups.
        """
        names = ("label", "session", "status", "folded", "updated")
        columns = ", ".join(f"{name} = excluded.{name}" for name in (*names, "version"))
        self.tx.run(
            f"INSERT INTO canvas (space, number, version, {', '.join(names)}, text, groups)"
            f" VALUES (:space, ?, ?, ?, ?, ?, ?, ?, '', '{{}}') ON CONFLICT (space, number) DO UPDATE SET {columns}"
            " WHERE excluded.version >= canvas.version",
            *(row.canvas, row.version, *(values[name] for name in names)),
        )
        self._canvases.add(row.canvas)

    def _put_turn(self, row: TurnRow, *, is_new: bool) -> None:
        if not is_new:
            self.tx.index.remove("turn", [row_codec.exact_number("t", row.id)])
        elif row.role != "note":
            evidence_rows.note_citations(self.tx, row.id, row.content)
        # Lines are written before turns are judged, so a turn without reasons is judged again.
        unjudged = () if row.role == "note" else (UNJUDGED,)
        self._quarantine(row.id, row.reasons or unjudged, at=row.learned_at)

    def _quarantine(self, id: str, why: Sequence[str], *, at: datetime) -> None:
        quarantine_rows.note(self.tx, {id: why}, now=at)

    def _apply_tombstone(self, row: TombstoneRow) -> None:
        """Forget the rows that a tombstone names, or restore them if it was undone."""
        tx, number = self.tx, row_codec.exact_number("x", row.id)
        is_correction = row.how == "correction"
        if is_correction:
            supersession.end_again(tx, number)
        for table in ("turn", "atom", "ref"):
            tx.run(f"UPDATE {table} SET tombstone = NULL WHERE space = :space AND tombstone = ?", number)
        tx.run("DELETE FROM forgotten WHERE space = :space AND tombstone = ?", number)
        if row.undone_at is not None:
            return
        for id in row.ids:
            if id.startswith("r-"):
                self._mark_ref(id, row, number)
            else:
                table, layer = ("turn", "turn") if id.startswith("t") else ("atom", "atom")
                tx.run(f"UPDATE {table} SET tombstone = ? WHERE space = :space AND id = ?", number, int(id[1:]))
                tx.index.remove(layer, [int(id[1:])])
        tx.many(
            "INSERT INTO forgotten (space, digest, tombstone) VALUES (:space, ?, ?) ON CONFLICT DO NOTHING",
            [(bytes.fromhex(digest), number) for digest in row.digests],
        )
        if is_correction:
            tx.run(
                "UPDATE fact SET tombstone = ? WHERE space = :space AND atom IN"
                " (SELECT id FROM atom WHERE space = :space AND tombstone = ?)",
                *(number, number),
            )
            supersession.reopen(tx, supersession.replaced_under(tx, number))
        if row.purged_at is not None:
            self._mark_purged(number, to_ms(row.purged_at))

    def _mark_purged(self, number: int, purged: int) -> None:
        """Set `purged_at` of those rows of a tombstone that have no words left.

        If other rows still have their words, the tombstone counts as not purged, so that it can be purged again.
        """
        tx, count = self.tx, 0
        for table, words in (("turn", "content"), ("atom", "text"), ("ref", "path")):
            tx.run(
                f"UPDATE {table} SET purged_at = CASE WHEN {words} = '' THEN ? END"
                " WHERE space = :space AND tombstone = ?",
                *(purged, number),
            )
            count += tx.get(
                f"SELECT count(*) FROM {table} WHERE space = :space AND tombstone = ? AND {words} <> ''", number
            )
        if count:
            self.kept[f"x{number}"] = count
            tx.run("UPDATE tombstone SET purged_at = NULL WHERE space = :space AND id = ?", number)

    def _mark_ref(self, id: str, row: TombstoneRow, number: int) -> None:
        tx, id = self.tx, self._present_ref(id)
        if row.purged_at is not None:  # the empty row recognises the result when it is stored again
            tx.run(
                "INSERT INTO ref (space, id, path, tool, arguments, session, timestamp, bytes, sha256, content_type)"
                " VALUES (:space, ?, '', '', 'null', '', ?, 0, '', '') ON CONFLICT DO NOTHING",
                *(id, row.at.isoformat()),
            )
        tx.run("UPDATE ref SET tombstone = ? WHERE space = :space AND id = ?", number, id)
        word_index.forget_chunks(tx, id)

    def _present_ref(self, id: str) -> str:
        """Return the id of a stored result by the id that a purge would give to it.

        If there is no such result, the given id is returned.
        """
        key = digests.key_of(self.tx)
        present: list[str] = self.tx.column("SELECT id FROM ref WHERE space = :space")
        return next((ref for ref in present if digests.purged_ref(key, ref) == id), id)


def _pairs(values: Iterable[str], between: str) -> str:
    return between.join(f"{name} = ?" for name in values)
