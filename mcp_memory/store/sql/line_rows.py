"""Converts the lines of line files to rows. The module `line_files` does the opposite.

`row_of` parses a line and checks its hashes. `LineImport` stores the rows under the numbers that their lines have, when
a space is rebuilt or lost rows are recovered. Explicit statements are parts of the notes in the journal; `statements`
combines all notes of a space.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from mcp_memory.core.types import NewTurn
from mcp_memory.store import deltas
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.sql import (
    canvas_rows,
    digests,
    entity_rows,
    evidence_rows,
    quarantine_rows,
    supersession,
    word_index,
)
from mcp_memory.store.sql.transaction import Transaction, Value, catch_up_counters, from_ms, to_ms

KINDS = {
    "turn": "turns",
    "record": "records",
    "canvas": "versions of canvases",
    "tombstone": "tombstones",
    "session": "sessions",
}
"""Kinds of lines, by the field with their number. The first field that a line has determines its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The row that a line describes. `key` has the columns that identify it; `fields` is the parsed line."""

    table: str
    key: dict[str, Value]
    values: dict[str, Value]
    session: str | None = None
    fields: dict[str, Any] = field(default_factory=dict[str, Any])


def key_of(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of row that a line describes, and the name of the row as it is shown to people.

    Raises KeyError if the line lacks the fields that identify a row.
    """
    name = next(name for name in KINDS if name in fields or name == "session")
    shown = str(fields[name])
    if name == "canvas":
        return KINDS[name], f"version {fields['version']} of canvas {shown}"
    return KINDS[name], shown if name in ("turn", "tombstone", "session") else f"{name} {shown}"


def is_idle(fields: Mapping[str, Any]) -> bool:
    """Return whether a line means that a session never had an active canvas. No row corresponds to such a line."""
    return "active" in fields and fields["active"] is None and fields.get("activated") is None


# --- values of lines --------------------------------------------------------------------------------

Read = Callable[[Any], Value]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _int(value: Any) -> int:
    if not isinstance(value, int) or abs(value) >= 2**63:
        raise TypeError
    return value


def _moment(value: Any) -> str:
    return datetime.fromisoformat(value).isoformat()


def _ms(value: Any) -> int:
    return to_ms(datetime.fromisoformat(value))


def _digest(value: Any) -> bytes:
    return bytes.fromhex(value)


def _id(prefix: str) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if not re.fullmatch(rf"{prefix}\d{{1,18}}", value, re.ASCII):
            raise ValueError
        return int(value[1:])

    return read


def _optional(read: Read) -> Read:
    return lambda value: None if value is None else read(value)


def _hash_columns(fields: Mapping[str, Any]) -> dict[str, Value]:
    """Return the columns of a turn that its hash determines: whether its time is known (`dated`), and its statement.

    Raises ValueError if the hash is neither that of the turn with its time nor that of the turn without it.
    """
    statement: Any = fields.get("told")
    new = NewTurn(role=fields["role"], name=fields["name"], content=fields["content"])
    said_at, digest = datetime.fromisoformat(fields["said_at"]), _digest(fields["sha256"])
    dated = evidence_hash(replace(new, said_at=said_at)) == digest
    if new.content and not dated and evidence_hash(new) != digest:  # a purged turn has only its hash left
        raise ValueError
    if statement is not None:
        statement_of(fields)
    return {"dated": dated, "told": None if statement is None else json.dumps(statement)}


def _tombstone_columns(fields: Mapping[str, Any]) -> dict[str, Value]:
    for digest in fields["digests"]:
        _digest(digest)
    return {"took": json.dumps({"ids": [_text(id) for id in fields["ids"]], "how": fields["how"]})}


def _result_columns(fields: Mapping[str, Any]) -> dict[str, Value]:
    masked: Any = fields.get("masked")
    return {"arguments": json.dumps(fields["arguments"]), "masked": json.dumps(masked) if masked else None}


@dataclass(frozen=True, slots=True, kw_only=True)
class _LineForm:
    """Describes how a line of a kind becomes a row.

    `key` and `columns` map each column to a field of the line and the function that parses its value. `also` returns
    columns that are derived from several fields.
    """

    table: str
    key: Mapping[str, tuple[str, Read]]
    columns: Mapping[str, tuple[str, Read]]
    session: str | None = None
    also: Callable[[Mapping[str, Any]], dict[str, Value]] = lambda fields: {}

    def read(self, fields: dict[str, Any]) -> Row:
        return Row(
            table=self.table,
            key={column: read(fields[name]) for column, (name, read) in self.key.items()},
            session=None if self.session is None else _text(fields[self.session]),
            values={column: read(fields[name]) for column, (name, read) in self.columns.items()} | self.also(fields),
            fields=fields,
        )


def _same_names(read: Read, *names: str) -> dict[str, tuple[str, Read]]:
    """Return a mapping for columns that are named like their fields and parsed by the same function."""
    return {name: (name, read) for name in names}


_FORMS = {
    "turns": _LineForm(
        table="turn",
        key={"id": ("turn", _id("t"))},
        session="session",
        columns={
            **_same_names(_int, "position"),
            **_same_names(_text, "role", "content"),
            **_same_names(_optional(_text), "name", "client_id"),
            **_same_names(_ms, "said_at", "learned_at"),
            **_same_names(_digest, "sha256"),
        },
        also=_hash_columns,
    ),
    "records": _LineForm(
        table="record",
        key={"id": ("record", _int)},
        session="session",
        columns={
            "canvas": ("node_id", lambda node: int(node.partition("-")[0])),
            "node": ("node_id", _text),
            **_same_names(_text, "tool_call", "summary", "result_ref", "ref"),
            **_same_names(_optional(_text), "tool_call_id", "summary_by", "step"),
            **_same_names(_int, "score", "tokens_raw", "tokens_kept"),
            **_same_names(_moment, "timestamp"),
        },
    ),
    "versions of canvases": _LineForm(
        table="canvas_version",
        key=_same_names(_int, "canvas", "version"),
        session="of",
        columns={
            **_same_names(_text, "label", "status", "kind", "detail"),
            **_same_names(_int, "folded", "updated", "crc"),
            **_same_names(_optional(_id("w")), "work"),
            **_same_names(_optional(deltas.as_json), "delta"),
        },
    ),
    "sessions": _LineForm(
        table="session",
        key={"name": ("session", _text)},
        columns={"active_canvas": ("active", _optional(_int)), "activated_at": ("activated", _optional(_int))},
    ),
    "tombstones": _LineForm(
        table="tombstone",
        key={"id": ("tombstone", _id("x"))},
        columns={
            **_same_names(_text, "reason"),
            **_same_names(_ms, "at"),
            **_same_names(_optional(_ms), "undone_at", "purged_at"),
        },
        also=_tombstone_columns,
    ),
}
_RESULT = _LineForm(
    table="ref",
    key={"id": ("ref", _text)},
    columns={
        **_same_names(_text, "path", "tool", "session", "sha256", "content_type"),
        **_same_names(_optional(_text), "tool_call_id"),
        **_same_names(_moment, "timestamp"),
        **_same_names(_int, "bytes"),
    },
    also=_result_columns,
)


def row_of(fields: dict[str, Any]) -> Row:
    """Return the row that a line describes.

    Raises KeyError, TypeError, ValueError or OverflowError if the line is damaged.
    """
    return _FORMS[key_of(fields)[0]].read(fields)


def ref_row(fields: Mapping[str, Any], path: str) -> Row:
    """Return the row of a result from the front matter of its file at this path."""
    return _RESULT.read({**fields, "path": path})


# --- explicit statements ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """An explicit statement as its note describes it.

    `values` and `fact` are the columns of its atom and its fact, `names` the entities that it mentions, `reasons` why
    it was quarantined, `ends` the numbers of the atoms that it ended, and `because` the reason it gave for that.
    """

    number: int
    values: dict[str, Value]
    fact: dict[str, Value] | None
    names: Sequence[str] = ()
    reasons: Sequence[str] = ()
    ends: Sequence[int] = ()
    because: str | None = None

    def end_columns(self, since: int, label: str | None) -> dict[str, Value]:
        """Return the columns of an older atom that this statement has ended.

        `since` is the start of the older atom in ms since 1970, `label` its label.
        """
        until = max(_int(self.values["valid_from"]), since)
        because = supersession.because_of(self.because, cast("str | None", self.values["label"]), label)
        return {"valid_to": until, "superseded_by": self.number, "closed_because": because}


def statement_of(fields: Mapping[str, Any]) -> Statement:
    """Return the statement that the line of a note contains, as it was before later statements ended it."""
    stored: Any = fields["told"]
    text, by = _text(fields["content"]), stored.get("by")
    fact: dict[str, Value] | None = None
    if stored["entity"] and stored["relation"] and stored["value"]:
        fact = {name: stored[name] for name in ("entity", "relation", "value", "single_valued")}
    return Statement(
        number=_id("a")(stored["atom"]),
        values={
            "kind": _text(stored["kind"]),
            "text": text,
            "priority": _int(stored["priority"]),
            "confidence": stored["confidence"],
            "evidence": _id("t")(fields["turn"]),
            "span_start": 0,
            "span_end": len(text),
            "valid_from": _int(stored["valid_from"]),
            "valid_to": _optional(_int)(stored.get("until")),
            "superseded_by": _optional(_id("a"))(by),
            "closed_because": None,
            "learned_at": _ms(fields["learned_at"]),
            "source": stored.get("source", "user"),
            "label": stored.get("label"),
        },
        fact=fact,
        names=[*stored["entities"], *([stored["entity"]] if fact else [])],
        reasons=stored.get("held", ()),
        ends=[_id("a")(id) for id in stored.get("ends", stored["supersedes"])],
        because=stored.get("because") or None,
    )


def undone_corrections(tombstones: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the ids of statements that are forgotten as undone corrections.

    If several lines have the same tombstone, the last counts.
    """
    last = {str(fields.get("tombstone")): fields for fields in tombstones}
    corrections = (
        fields.get("ids")
        for fields in last.values()
        if (fields.get("how"), fields.get("undone_at")) == ("correction", None)
    )
    return {str(id) for ids in corrections if isinstance(ids, list) for id in cast("list[Any]", ids)}


def statements(notes: Iterable[Mapping[str, Any]], *, undone: Collection[str] = ()) -> dict[int, Statement]:
    """Return the explicit statements of a space by number, as they are after all of them have been applied.

    Each statement ends the statements that its note lists, unless its id is in `undone` (see `undone_corrections`).
    """
    by_number: dict[int, Statement] = {}
    for statement in sorted(map(statement_of, notes), key=lambda statement: statement.number):
        by_number[statement.number] = statement
        for older in () if f"a{statement.number}" in undone else statement.ends:
            if older in by_number:
                values = by_number[older].values
                end = statement.end_columns(_int(values["valid_from"]), cast("str | None", values["label"]))
                by_number[older] = replace(by_number[older], values={**values, **end})
    return by_number


# --- storing ----------------------------------------------------------------------------------------


class LineImport:
    """Stores rows from lines in the tables of a space. Call `finish` last: it stores what depends on all lines."""

    def __init__(self, tx: Transaction) -> None:
        tx.make_space()
        self.tx = tx
        self.kept: dict[str, int] = {}
        """Tombstones that were purged where their rows are here with their words: forgotten, and how many rows."""
        self._statements: dict[int, Statement] = {}
        self._canvases: set[int] = set()

    def put(self, row: Row) -> None:
        """Insert or update a row, with the rows that derive from it."""
        tx, values = self.tx, dict(row.values)
        if values.get("client_id") is not None:  # a line of an earlier version may have a plain hash
            values["client_id"] = digests.keyed_id(digests.key_of(tx), str(values["client_id"]))
        if row.session is not None:
            values["session"] = tx.make_session(row.session)
        if row.table == "session":
            tx.make_session(str(row.key["name"]))
        if row.table == "canvas_version":
            self._put_canvas(row, values)
        is_new = self._write(row.table, row.key, values)
        match row.table:
            case "turn":
                self._put_turn(row, is_new=is_new)
            case "tombstone":
                self._apply_tombstone(row)
            case _:
                pass

    def is_there(self, row: Row) -> bool:
        return self._has(row.table, row.key)

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
        """Store an explicit statement. Its note must be stored already; its fact is stored by `finish`."""
        tx = self.tx
        values = {**new.values, "folded": digests.fold_statement(str(new.values["text"]))}
        note, text = int(str(values["evidence"])), str(values["text"])
        if not self._write("atom", {"id": new.number}, values):
            tx.index.remove("atom", [new.number])
        evidence_rows.add_quotes(tx, new.number, [(note, 0, len(text), text)])
        self._quarantine(f"a{new.number}", new.reasons, at=values["learned_at"])
        self._statements[new.number] = new

    def end(self, older: int, by: Statement) -> None:
        """Record that a statement ended an older atom."""
        began = self.tx.one("SELECT valid_from, label FROM atom WHERE space = :space AND id = ?", older)
        if began is not None:
            self._update("atom", {"id": older}, by.end_columns(*began))

    def finish(self) -> None:
        """Restore the rows of canvases, and store facts and mentions.

        Facts and mentions come last because they depend on which statements were ended or forgotten.
        """
        tx = self.tx
        catch_up_counters(tx)
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

    def _put_canvas(self, row: Row, values: Mapping[str, Value]) -> None:
        """Set the row of a canvas to this version, unless the row has a later version.

        `finish` adds the text and the groups.
        """
        names = ("label", "session", "status", "folded", "updated")
        columns = ", ".join(f"{name} = excluded.{name}" for name in (*names, "version"))
        self.tx.run(
            f"INSERT INTO canvas (space, number, version, {', '.join(names)}, text, groups)"
            f" VALUES (:space, ?, ?, ?, ?, ?, ?, ?, '', '{{}}') ON CONFLICT (space, number) DO UPDATE SET {columns}"
            " WHERE excluded.version >= canvas.version",
            *(*row.key.values(), *(values[name] for name in names)),
        )
        self._canvases.add(int(str(row.key["canvas"])))

    def _put_turn(self, row: Row, *, is_new: bool) -> None:
        id, fields = f"t{row.key['id']}", row.fields
        if not is_new:
            self.tx.index.remove("turn", [int(id[1:])])
        elif fields["role"] != "note":
            evidence_rows.note_citations(self.tx, id, fields["content"])
        self._quarantine(id, fields.get("held", ()), at=row.values["learned_at"])

    def _quarantine(self, id: str, why: Sequence[str], *, at: Value) -> None:
        quarantine_rows.note(self.tx, {id: why}, now=from_ms(int(str(at))))

    def _apply_tombstone(self, row: Row) -> None:
        """Forget the rows that a tombstone names, or restore them if it was undone."""
        tx, number, purged = self.tx, int(str(row.key["id"])), row.values["purged_at"]
        is_correction = row.fields["how"] == "correction"
        if is_correction:
            supersession.end_again(tx, number)
        for table in ("turn", "atom", "ref"):
            tx.run(f"UPDATE {table} SET tombstone = NULL WHERE space = :space AND tombstone = ?", number)
        tx.run("DELETE FROM forgotten WHERE space = :space AND tombstone = ?", number)
        if row.values["undone_at"] is not None:
            return
        for id in row.fields["ids"]:
            if id.startswith("r-"):
                self._mark_ref(id, row)
            else:
                table, layer = ("turn", "turn") if id.startswith("t") else ("atom", "atom")
                tx.run(f"UPDATE {table} SET tombstone = ? WHERE space = :space AND id = ?", number, int(id[1:]))
                tx.index.remove(layer, [int(id[1:])])
        tx.many(
            "INSERT INTO forgotten (space, digest, tombstone) VALUES (:space, ?, ?) ON CONFLICT DO NOTHING",
            [(bytes.fromhex(digest), number) for digest in row.fields["digests"]],
        )
        if is_correction:
            tx.run(
                "UPDATE fact SET tombstone = ? WHERE space = :space AND atom IN"
                " (SELECT id FROM atom WHERE space = :space AND tombstone = ?)",
                *(number, number),
            )
            supersession.reopen(tx, supersession.replaced_under(tx, number))
        if purged is not None:
            self._mark_purged(number, purged)

    def _mark_purged(self, number: int, purged: Value) -> None:
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

    def _mark_ref(self, id: str, row: Row) -> None:
        tx, at = self.tx, row.fields["at"]
        id = self._present_ref(id)
        if row.values["purged_at"] is not None:  # the empty row recognises the result when it is stored again
            tx.run(
                "INSERT INTO ref (space, id, path, tool, arguments, session, timestamp, bytes, sha256, content_type)"
                " VALUES (:space, ?, '', '', 'null', '', ?, 0, '', '') ON CONFLICT DO NOTHING",
                *(id, _moment(at)),
            )
        tx.run("UPDATE ref SET tombstone = ? WHERE space = :space AND id = ?", row.key["id"], id)
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
