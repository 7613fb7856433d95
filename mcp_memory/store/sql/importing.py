"""Imports rows that were exported from another store or space (`store.row_types`); each row is stored only once.

Kinds of rows are imported in an order in which a row follows the rows that it refers to. `ImportContext` maps the
origins of rows (home, space, id and time at which they were first stored) to their local ids.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any, TypeVar

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.core.types import IMPORTED, CanvasRow, MaskedPlace, NewTurn, Stage
from mcp_memory.language.words import fold
from mcp_memory.store import deltas
from mcp_memory.store.citations import cited_atoms, rename_atoms, without_atoms
from mcp_memory.store.row_types import (
    UNDONE,
    AtomRow,
    CanvasHistory,
    CitationRow,
    EntityRow,
    FeedbackRow,
    ImportReport,
    Origin,
    PersonaRow,
    RecordRow,
    RefRow,
    ReviewRow,
    Row,
    SceneRow,
    SessionRow,
    StageRow,
    TurnRow,
    gone_by,
    origin_of,
)
from mcp_memory.store.sql import (
    canvas_rows,
    digests,
    entity_rows,
    evidence_rows,
    feedback_rows,
    page_rows,
    record_rows,
    ref_rows,
    replaced_sentences,
    row_codec,
    sentence_rows,
    session_rows,
    supersession,
    turn_rows,
    word_index,
)
from mcp_memory.store.sql.exporting import origin
from mcp_memory.store.sql.transaction import Transaction, Value, number_of, optional_ms, to_ms
from mcp_memory.store.values import READ_BY_A_MODEL, STATED_AGAIN, NewRef

GONE = ""
"""The local id of a row that was forgotten before it was imported, or that is not here."""

R = TypeVar("R", bound=Row)

_OWN_TIME = {
    "t": "SELECT learned_at FROM turn WHERE space = :space AND id = ?",
    "a": "SELECT learned_at FROM atom WHERE space = :space AND id = ?",
    "p": "SELECT at FROM persona WHERE space = :space AND version = ?",
    "x": "SELECT at FROM tombstone WHERE space = :space AND id = ?",
    "k": "SELECT timestamp FROM record WHERE space = :space AND id = ?",
    "s": "SELECT at FROM scene WHERE space = :space AND slug || '/' || version = ?",
}
_OWN = re.compile(
    r"(?P<id>(?P<kind>[taxpkc])(?P<number>\d{1,18})|(?P<scene>s):(?P<page>.+/\d{1,18}))@(?P<at>-?\d{1,18})", re.ASCII
)


def import_rows(
    tx: Transaction,
    rows: Sequence[Row],
    *,
    of: Origin,
    names: Mapping[str, str],
    now: datetime,
) -> ImportReport:
    """Store rows that were exported by `export_rows`, each row only once, and report their local ids.

    `names` maps the ids of rows that were imported earlier to their local ids. An atom must come after the turn of its
    first evidence, records in the same call as their canvas, and all versions of a page in one call. Rows that were
    forgotten here are not stored. Raises InvalidInput if a quote is not in its turn.
    """
    tx.make_space()
    context = ImportContext(tx=tx, of=of, now=now, earlier_names=names, is_own=of == origin(tx))
    for entity in _rows_of_kind(rows, EntityRow):
        entity_rows.make(tx, entity.name)
        entity_rows.learn(tx, {entity.name: entity.aliases})
    for ref in _rows_of_kind(rows, RefRow):
        _import_ref(context, ref)
    _import_statements(context, [row for row in rows if isinstance(row, TurnRow | AtomRow)])
    for review in _rows_of_kind(rows, ReviewRow):
        _import_review(context, review)
    for feedback in _rows_of_kind(rows, FeedbackRow):
        _import_feedback(context, feedback)
    taken = defaultdict[int, list[RecordRow]](list)
    for record in _rows_of_kind(rows, RecordRow):
        taken[record.canvas].append(record)
    for canvas in _rows_of_kind(rows, CanvasHistory):
        _import_canvas(context, canvas, taken[canvas.number])
    for _, versions in groupby(_rows_of_kind(rows, SceneRow), key=lambda scene: scene.slug):
        _import_scene(context, list(versions))
    _import_personas(context, _rows_of_kind(rows, PersonaRow))
    for citation in _rows_of_kind(rows, CitationRow):
        _import_citation(context, citation)
    for session in _rows_of_kind(rows, SessionRow):
        _import_session(context, session)
    for progress in _rows_of_kind(rows, StageRow):
        _import_progress(context, progress)
    word_index.make_due(tx)
    return context.report()


def _rows_of_kind(rows: Sequence[Row], kind: type[R]) -> list[R]:
    return [row for row in rows if isinstance(row, kind)]


@dataclass(kw_only=True)
class ImportContext:
    """The state of an import, which runs in one transaction.

    `of` is where the rows were exported from, and `is_own` whether that is this same space. `names` maps exported ids
    to local ids, and `earlier_names` the ids from earlier calls. `left` has messages about rows that were left out.
    """

    tx: Transaction
    of: Origin
    now: datetime
    earlier_names: Mapping[str, str]
    is_own: bool
    names: dict[str, str] = field(default_factory=dict[str, str])
    stored: int = 0
    known_rows: int = 0
    forgotten: int = 0
    changed: set[str] = field(default_factory=set[str])
    left: list[str] = field(default_factory=list[str])
    _jobs: dict[Stage, int] = field(default_factory=dict[Stage, int])

    def name(self, id: str | None) -> str:
        """Return the local id of an exported row, or GONE if there is no such row here."""
        return GONE if id is None else self.names.get(id) or self.earlier_names.get(id, GONE)

    def find(self, id: str, at: datetime | None, origins: Sequence[str]) -> str | None:
        """Return the local id of a row that is stored here already, or None if the row is new.

        The id is GONE if the row was forgotten before it could be imported.
        """
        keys = (origin_of(self.of, id, at), *origins)
        local_ids = known_as(self.tx, keys)
        return next((local_ids[key] for key in keys if key in local_ids), None)

    def note(self, id: str, at: datetime | None, origins: Sequence[str], here: str) -> None:
        """Remember the local id of a row, and store it under all origins of the row.

        Nothing is stored for GONE, since the row may still be imported later.
        """
        self.names[id] = here
        if here != GONE and not self.is_own:
            note_origins(self.tx, dict.fromkeys((origin_of(self.of, id, at), *origins), here))

    def meet(self, here: str) -> None:
        """Count a row that was imported before: as known, or as forgotten if it was forgotten since."""
        table, key = {"t": ("turn", here[1:]), "a": ("atom", here[1:])}.get(here[:1], ("ref", here))
        if self.tx.one(f"SELECT 1 FROM {table} WHERE space = :space AND id = ? AND tombstone IS NOT NULL", key):
            self.forgotten += 1
        elif here != GONE:  # forgotten rows are reported by name
            self.known_rows += 1

    def job(self, stage: Stage) -> int:
        """Store a finished job, once for each stage, for rows that a model made elsewhere, and return its number."""
        if stage not in self._jobs:
            at = to_ms(self.now)
            self._jobs[stage] = self.tx.next("work")
            self.tx.insert(
                "work",
                id=self._jobs[stage],
                stage=stage,
                basis="{}",
                state="done",
                holder="",
                until=at,
                attempts=0,
                at=at,
                done_at=at,
                outcome="{}",
            )
        return self._jobs[stage]

    def report(self) -> ImportReport:
        return ImportReport(
            names=self.names,
            stored=self.stored,
            known=self.known_rows,
            forgotten=self.forgotten,
            changed=frozenset(self.changed),
            left=tuple(self.left),
        )


# --- origins ----------------------------------------------------------------------------------------


def known_as(tx: Transaction, origins: Sequence[str]) -> dict[str, str]:
    """Map those of the origins that belong to an imported row, or to a row of this space itself, to local ids.

    The id is empty for a row that was forgotten before it was imported.
    """
    local_ids: dict[str, str] = {}
    if not tx.space or not origins:
        return local_ids
    for name, id in tx.among("SELECT origin, id FROM origin WHERE space = :space AND origin IN ({})", origins):
        if (here := _current_name(tx, id)) is not None:
            local_ids[name] = here
    mine = origin_of(origin(tx), "")
    for name in origins:
        if name.startswith(mine) and (id := _find_own_row(tx, name.removeprefix(mine))):
            local_ids[name] = id
    return local_ids


def note_origins(tx: Transaction, names: Mapping[str, str]) -> None:
    """Store the local ids of imported rows by origin; origins in this space itself are skipped."""
    tx.make_space()
    mine = origin_of(origin(tx), "")
    tx.many(
        "INSERT INTO origin (space, origin, id) VALUES (:space, ?, ?)"
        " ON CONFLICT (space, origin) DO UPDATE SET id = excluded.id",
        [(name, id) for name, id in names.items() if not name.startswith(mine)],
    )


def forgotten_statements(tx: Transaction, statements: Sequence[Sequence[str]]) -> set[int]:
    """Return the indexes of the statements that were forgotten here, as a statement or as a turn.

    Each statement is given as a list of its wordings; one forgotten wording is enough.
    """
    return {
        place
        for place, wordings in enumerate(statements)
        if any(digests.forgotten_words(tx, text) for text in wordings)
    }


def _current_name(tx: Transaction, id: str) -> str | None:
    """Return the local id that is stored for an origin.

    Returns GONE if an imported tombstone has forgotten the row, and None if that forgetting was undone since.
    """
    if not id.startswith(gone_by("")):
        return id
    tombstone = id.removeprefix(gone_by(""))
    here = tx.get("SELECT id FROM origin WHERE space = :space AND origin = ?", tombstone)
    return None if here == UNDONE else GONE


def _find_own_row(tx: Transaction, tail: str) -> str | None:
    """Return the id of the row of this space that an origin names, or None if there is none.

    The time in the origin must be that of the row, since another row may have the same number now.
    """
    if tail.startswith("r-"):
        return tx.get("SELECT id FROM ref WHERE space = :space AND id = ?", tail)
    match = _OWN.fullmatch(tail)
    if match is None:
        return None
    if match["kind"] == "c":
        at: Any = _canvas_begun(tx, int(match["number"]))
    else:
        at = tx.get(_OWN_TIME[match["kind"] or "s"], match["page"] or int(match["number"]))
    if isinstance(at, str):
        at = to_ms(datetime.fromisoformat(at))
    return match["id"] if at == int(match["at"]) else None


def _canvas_begun(tx: Transaction, number: int) -> str | None:
    """Return the time of a canvas's first record, or None if it has no records."""
    return tx.get("SELECT timestamp FROM record WHERE space = :space AND canvas = ? ORDER BY id LIMIT 1", number)


# --- results and turns ------------------------------------------------------------------------------


def _import_ref(context: ImportContext, row: RefRow) -> None:
    """Import a result if the export has its bytes. Equal bytes are stored only once."""
    local_id = context.find(row.id, None, row.origins)
    if local_id is not None:
        context.meet(local_id)
    elif row.data is not None:
        new = NewRef(
            data=row.data,
            tool=row.tool,
            arguments=row.arguments,
            tool_call_id=row.tool_call_id,
            session=row.session,
            timestamp=row.timestamp,
            content_type=row.content_type,
            masked=[MaskedPlace(start=start, end=end, kind=kind) for start, end, kind in row.masked],
        )
        before = context.tx.get("SELECT count(*) FROM ref WHERE space = :space")
        local_id = ref_rows.put(context.tx, new, refuse=False).id
        if context.tx.get("SELECT count(*) FROM ref WHERE space = :space") > before:
            context.stored += 1
        else:
            context.meet(local_id)
    if local_id is not None:
        context.note(row.id, None, row.origins, local_id)


def _import_statements(context: ImportContext, rows: Sequence[TurnRow | AtomRow]) -> None:
    """Import turns and atoms in the order of the export, in which an atom follows the turn of its first evidence.

    A note (the turn with the words of an explicit statement) is stored together with its atom, because its journal line
    contains the local id of the atom. If the statement is known already, its note is not stored.
    """
    run = _Run(context)
    for row in rows:
        match row:
            case AtomRow():
                note = run.note if run.note is not None and row.evidence[0].turn == run.note.id else None
                run.note = None if note is not None else run.note
                run.end()
                _import_atom(context, row, note)
            case TurnRow():
                run.add(row)
    run.end()


class _Run:
    """Collects consecutive turns of a session, which are stored together, or a note until its atom is imported."""

    def __init__(self, context: ImportContext) -> None:
        self._context = context
        self._turns: list[TurnRow] = []
        self.note: TurnRow | None = None

    def add(self, row: TurnRow) -> None:
        same_session = not self._turns or self._turns[0].session == row.session
        if self.note is not None or not same_session or (row.client_id is not None and self._has(row.client_id)):
            self.end()
        local_id = self._context.find(row.id, row.learned_at, row.origins)
        local_id = _same_message(self._context, row) if local_id is None else local_id
        if local_id is not None:
            self._context.meet(local_id)
            self._context.note(row.id, row.learned_at, row.origins, local_id)
        elif row.role == "note":
            self.end()
            self.note = row
        else:
            self._turns.append(row)

    def _has(self, client_id: str) -> bool:
        return any(turn.client_id == client_id for turn in self._turns)

    def end(self) -> None:
        """Store the collected turns and the note, if there are any."""
        rows, self._turns = self._turns, []
        if self.note is not None:  # its atom was not exported, so it is imported like any turn
            rows, self.note = [*rows, self.note], None
        if rows:
            _insert_turns(self._context, rows)


def _same_message(context: ImportContext, row: TurnRow) -> str | None:
    """Return the id of the turn with the same client id and content, whatever store it came from, or None."""
    if row.client_id is None:
        return None
    key, digest = digests.key_of(context.tx), bytes.fromhex(row.sha256)
    ids = [digests.keyed_id(key, row.client_id)]
    if row.dated and (kind := digests.derived_id(row.client_id)) is not None:
        ids.append(digests.words_id(key, kind, row.session, digest))
    rows = context.tx.among(
        "SELECT id FROM turn WHERE space = :space AND sha256 = ? AND client_id IN ({}) LIMIT 1", ids, digest
    )
    return f"t{rows[0][0]}" if rows else None


def _local_ids(context: ImportContext, rows: Sequence[TurnRow]) -> list[str | None]:
    """Return the client ids under which turns of a session are stored.

    Ids that the other home derived from content are keyed with a secret that is not in the export. If the time of such
    a turn is known, its id is derived from its stored words instead, so that importing the original history here
    recognises the turn.
    """
    tx = context.tx
    key, seen = digests.key_of(tx), set[str]()
    ids = [row.client_id for row in rows]
    for place, row in enumerate(rows):
        if row.client_id is None or not row.dated or not digests.is_keyed(row.client_id) or context.is_own:
            continue
        kind = digests.derived_id(row.client_id) or ""
        id = digests.words_id(key, kind, row.session, bytes.fromhex(row.sha256))
        if id not in seen and not tx.one("SELECT 1 FROM turn WHERE space = :space AND client_id = ? LIMIT 1", id):
            ids[place] = id
            seen.add(id)
    return ids


def _insert_turns(context: ImportContext, rows: Sequence[TurnRow], *, statement: dict[str, Any] | None = None) -> None:
    """Append turns, except forgotten ones, to their session. For a note, `statement` has the fields of its atom."""
    tx, session = context.tx, rows[0].session
    new = [
        NewTurn(
            role=row.role,
            content=row.content,
            name=row.name,
            said_at=row.said_at,
            client_id=id,
            guessed=not row.dated,
        )
        for row, id in zip(rows, _local_ids(context, rows), strict=True)
    ]
    # Without a given time, the time of learning counts as given, except for turns imported from other programs.
    learned = [turn if _is_imported(turn) else replace(turn, guessed=False) for turn in new]
    again = digests.forgotten_turns(tx, session, learned)
    context.names |= {rows[place].id: GONE for place in again}
    taken = [(row, turn) for place, (row, turn) in enumerate(zip(rows, new, strict=True)) if place not in again]
    if not taken:
        return
    stored = turn_rows.insert(tx, session, [turn for _, turn in taken], now=context.now, statement=statement)
    turn_rows.write_journal(tx, stored, now=context.now)
    for (row, _), turn in zip(taken, stored, strict=True):
        # Ids in the text mean other rows here; the exported citations are imported separately.
        tx.run("DELETE FROM citation WHERE space = :space AND source = ?", turn.id)
        context.note(row.id, row.learned_at, row.origins, turn.id)
    context.stored += len(stored)
    tx.touch(f"session:{session}")


def _is_imported(turn: NewTurn) -> bool:
    return (turn.client_id or "").startswith((IMPORTED, f"{IMPORTED.removesuffix('-')}:"))


# --- atoms ------------------------------------------------------------------------------------------


def _import_atom(context: ImportContext, row: AtomRow, note: TurnRow | None) -> None:
    """Import an atom, together with its note if the note is new.

    If the atom is known, its evidence is added and, if it is still open here, its end. If both stores have an open
    value of a single-valued fact, the value that became true last is current and ends the other.
    """
    tx = context.tx
    local_id = context.find(row.id, row.learned_at, row.origins)
    local_id = _same_statement(context, row) if local_id is None else local_id
    if local_id is not None:
        context.note(row.id, row.learned_at, row.origins, local_id)
        context.meet(local_id)
        if note is not None:  # the same words are stored here with another note
            context.note(note.id, note.learned_at, note.origins, _first_turn(context, local_id))
        if local_id != GONE:
            _update_atom(context, row, number_of(local_id, "a"))
        return
    quotes = [] if note is not None else _quotes(context, row)
    said_at = to_ms(note.said_at) if note is not None else evidence_rows.last_said(tx, quotes) if quotes else 0
    again = digests.forgotten_statement(tx, row.text, said_at=said_at) is not None
    if (note is None and not quotes) or again or (quotes and digests.are_quotes_forgotten(tx, quotes)):
        context.names[row.id] = GONE
        if note is not None:
            context.names[note.id] = GONE
        return
    superseded, number = _supersession(context, row), tx.last("atom") + 1
    if note is not None:
        _insert_turns(context, [note], statement=_local_statement(row, note, number, superseded))
        quotes = _quotes(context, row)
        if not quotes:  # the note itself was forgotten here
            context.names[row.id] = GONE
            return
    _insert_atom(context, row, tx.next("atom"), quotes, superseded)


def _quotes(context: ImportContext, row: AtomRow) -> list[evidence_rows.Quote]:
    """Return the evidence of an atom from those turns that exist here.

    Raises InvalidInput if a turn does not contain its quote.
    """
    quotes: list[evidence_rows.Quote] = []
    for quoted in row.evidence:
        turn = context.name(quoted.turn)
        if turn == GONE:
            continue
        number = number_of(turn, "t")
        text = context.tx.get("SELECT content FROM turn WHERE space = :space AND id = ? AND tombstone IS NULL", number)
        if text is None:
            continue
        if text[quoted.start : quoted.end] == quoted.quote:
            quotes.append((number, quoted.start, quoted.end))
        elif fold(text) != fold(quoted.quote):  # a note that differs only in case is accepted
            quote = one_line(quoted.quote, 40)
            raise InvalidInput(f"{row.id} quotes {quote!r} of {quoted.turn}, which does not say that.")
        else:
            quotes.append((number, 0, len(text)))
    return list(dict.fromkeys(quotes))


def _same_statement(context: ImportContext, row: AtomRow) -> str | None:
    """Return the id of the local atom that is the same statement, or None.

    Its text must be equal, and it must have the same start, or both must be open. An imported statement is compared
    with statements of its kind only, and their facts must be equal; it replaces any sentence with its text. An imported
    sentence is compared with statements and sentences; if it was replaced, only with replaced sentences.
    """
    moment, own_fact = to_ms(row.valid_from), (None, None, None)
    if row.reader is None:
        alike, kinds = "r.reader IS NULL AND r.kind = ?", [row.kind]
    else:
        replaced = supersession.REPLACED_SENTENCE
        alike, kinds = replaced if _is_replaced_sentence(row) else f"NOT ({replaced})", []
    if row.fact is not None:
        main_name = entity_rows.main_name(context.tx, row.fact.entity)
        own_fact = (entity_rows.key(main_name), row.fact.relation, fold(row.fact.value))
    for number, since, until, entity, relation, value in context.tx.all(
        "SELECT r.id, r.valid_from, r.valid_to, f.entity_key, f.relation, f.value FROM atom r"
        " LEFT JOIN fact f ON f.space = r.space AND f.atom = r.id WHERE r.space = :space AND r.folded = ?"
        f" AND r.tombstone IS NULL AND {alike} ORDER BY CASE WHEN r.valid_from = ? THEN 0 ELSE 1 END, r.id",
        *(digests.statement_key(row.text), *kinds, moment),
    ):
        of_its_time = since == moment or (row.valid_to is None and until is None)
        is_same_fact = (entity, relation, None if value is None else fold(value)) == own_fact
        if of_its_time and (is_same_fact or row.reader is not None):
            return f"a{number}"
    return None


def _is_replaced_sentence(row: AtomRow) -> bool:
    is_retired = row.closed_because in (READ_BY_A_MODEL, STATED_AGAIN)
    return row.reader is not None and row.valid_to == row.valid_from and is_retired


def _first_turn(context: ImportContext, atom: str) -> str:
    number = number_of(atom, "a") if atom else 0
    turn = context.tx.get("SELECT evidence FROM atom WHERE space = :space AND id = ?", number)
    return GONE if turn is None else f"t{turn}"


def _update_atom(context: ImportContext, row: AtomRow, number: int) -> None:
    tx = context.tx
    current = tx.one(
        "SELECT valid_from, valid_to, superseded_by, closed_because, confidence, reader FROM atom"
        " WHERE space = :space AND id = ? AND tombstone IS NULL",
        number,
    )
    if current is None:
        return
    since, until, by, because, confidence, reader = current
    if row.label == "promise":
        tx.run("UPDATE atom SET label = ? WHERE space = :space AND id = ?", row.label, number)
    changed = evidence_rows.add_quotes(tx, number, _quotes(context, row))
    successor = context.name(row.superseded_by)
    if _is_replaced_sentence(row) and reader is None:
        row = replace(row, valid_to=None)
    if until is None and row.valid_to is not None:
        until, changed = max(since, to_ms(row.valid_to)), True
    if row.valid_to is not None and by is None and successor not in (GONE, f"a{number}"):
        by, changed = number_of(successor, "a"), True
    if row.valid_to is not None and because is None:
        because = row.closed_because
    tx.run(
        "UPDATE atom SET confidence = ?, valid_to = ?, superseded_by = ?, closed_because = ?"
        " WHERE space = :space AND id = ?",
        *(max(confidence, row.confidence), until, by, because, number),
    )
    tx.run("UPDATE fact SET valid_to = ? WHERE space = :space AND atom = ?", until, number)
    for older in {context.name(id) for id in row.supersedes} - {GONE, f"a{number}"}:
        _end(tx, number_of(older, "a"), by=number, at=since)
    if changed:
        context.changed.add(f"a{number}")
        tx.touch(f"atom:a{number}")


def _supersession(context: ImportContext, row: AtomRow) -> supersession.Supersession:
    """Return which local atoms an imported atom ends, and when and by which atom it has ended itself."""
    ended = [number_of(name, "a") for older in row.supersedes if (name := context.name(older)) != GONE]
    successor = context.name(row.superseded_by)
    until = optional_ms(row.valid_to)
    by = None if successor == GONE else number_of(successor, "a")
    if until is None and row.fact is not None and row.fact.single_valued:
        rival = context.tx.one(
            "SELECT atom, valid_from FROM fact WHERE space = :space AND entity_key = ? AND relation = ?"
            " AND single_valued = 1 AND valid_to IS NULL AND tombstone IS NULL",
            *(entity_rows.key(entity_rows.main_name(context.tx, row.fact.entity)), row.fact.relation),
        )
        if rival is not None and rival[1] > to_ms(row.valid_from):
            until, by = rival[1], rival[0]
        elif rival is not None:
            ended.append(rival[0])
    return supersession.Supersession(ends=sorted(set(ended)), until=until, by=by)


def _local_statement(row: AtomRow, note: TurnRow, number: int, superseded: supersession.Supersession) -> dict[str, Any]:
    """Return the statement in a note's journal line, with the ids of this store."""
    statement = {key: value for key, value in (note.told or {}).items() if key not in ("until", "by", "cites")}
    ends = [f"a{older}" for older in superseded.ends]
    statement |= {"atom": f"a{number}", "supersedes": ends, "ends": ends}
    if superseded.until is not None and (superseded.by is not None or row.superseded_by is None):
        statement |= {"until": superseded.until, "by": None if superseded.by is None else f"a{superseded.by}"}
    return statement


def _insert_atom(
    context: ImportContext,
    row: AtomRow,
    number: int,
    quotes: Sequence[evidence_rows.Quote],
    superseded: supersession.Supersession,
) -> None:
    tx = context.tx
    turn, start, end = quotes[0]
    local = replace(row, id=f"a{number}", learned_at=context.now)
    tx.insert(
        "atom",
        **{**row_codec.columns_of(tx, local), "valid_to": superseded.until, "superseded_by": superseded.by},
        folded=digests.statement_key(row.text),
        evidence=turn,
        span_start=start,
        span_end=end,
        work=context.job("merge") if row.by_model else None,
    )
    evidence_rows.add_quotes(tx, number, quotes)
    for older in superseded.ends:
        _end(tx, older, by=number, at=to_ms(row.valid_from))
    if row.fact is not None:
        main_name = entity_rows.main_name(tx, row.fact.entity)
        tx.insert(
            "fact",
            **row_codec.columns_of(tx, replace(row.fact, entity=main_name)),
            atom=number,
            entity_key=entity_rows.key(main_name),
            valid_from=to_ms(row.valid_from),
            valid_to=superseded.until,
        )
    if row.reader is None and superseded.until is None and (row.by_model or row.source == "user"):
        _replace_sentences(tx, number, row.text)
    entity_rows.mention(tx, number, row.entities)
    tx.index.put_terms("atom", [(number, word_index.terms_of_atom(row.text))])
    tx.touch(f"atom:a{number}", *(f"atom:a{older}" for older in superseded.ends))
    context.note(row.id, row.learned_at, row.origins, f"a{number}")
    context.stored += 1


def _replace_sentences(tx: Transaction, number: int, text: str) -> None:
    """End the open sentences that have the same words as a new statement."""
    for sentence, label in tx.all(
        "SELECT id, label FROM atom WHERE space = :space AND folded = ? AND reader IS NOT NULL AND valid_to IS NULL"
        " AND tombstone IS NULL",
        digests.statement_key(text),
    ):
        replaced_sentences.join(tx, sentence, number, label, because=STATED_AGAIN)


def _end(tx: Transaction, older: int, *, by: int, at: int) -> None:
    """Record that the atom `by` has replaced the atom `older`.

    An existing end is kept. An atom that has a successor already, or was forgotten, is not changed.
    """
    current = tx.one(
        "SELECT valid_from, valid_to, superseded_by FROM atom WHERE space = :space AND id = ? AND tombstone IS NULL",
        older,
    )
    if current is None or current[2] is not None:
        return
    until = max(at, current[0]) if current[1] is None else current[1]
    tx.run("UPDATE atom SET valid_to = ?, superseded_by = ? WHERE space = :space AND id = ?", until, by, older)
    tx.run("UPDATE fact SET valid_to = ? WHERE space = :space AND atom = ?", until, older)


def _import_review(context: ImportContext, row: ReviewRow) -> None:
    """Store why a row was quarantined elsewhere, and the verdict there, unless it was quarantined here already."""
    name = context.name(row.id)
    if name != GONE:
        context.tx.run(
            "INSERT INTO held (space, id, reasons, at, verdict, reviewed_at) VALUES (:space, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            *(name, row.reasons, to_ms(row.at), row.verdict, optional_ms(row.reviewed_at)),
        )


def _import_feedback(context: ImportContext, row: FeedbackRow) -> None:
    """Store what a person said of a row elsewhere, unless it is stored already; it may have been undone since."""
    target = context.name(row.target)
    if target != GONE:
        feedback_rows.bring(context.tx, replace(row, target=target))


# --- tasks ------------------------------------------------------------------------------------------


def _import_canvas(context: ImportContext, row: CanvasHistory, taken: Sequence[RecordRow]) -> None:
    """Import a canvas, or later changes to a canvas that was imported before.

    A canvas that was changed both here and in its source is not changed; this is noted in the report.
    """
    if context.is_own:
        context.names[f"c{row.number}"] = f"c{row.number}"
        context.known_rows += 1 + len(taken)
        return
    local_id = context.find(f"c{row.number}", row.begun, row.origins)
    if local_id is None:
        is_taken = context.tx.one("SELECT 1 FROM canvas WHERE space = :space AND number = ?", row.number)
        number, expected = canvas_rows.next_number(context.tx) if is_taken else row.number, 0
        context.stored += 1
    else:
        number = number_of(local_id, "c")
        here = canvas_rows.canvas(context.tx, number)
        new = [record for record in taken if context.find(record.id, record.timestamp, record.origins) is None]
        is_ahead = (len(row.versions) or 1) > len(canvas_rows.versions(context.tx, number))
        context.note(f"c{row.number}", row.begun, row.origins, local_id)
        if not (new or is_ahead) and row.updated <= here.updated:
            context.known_rows += 1 + len(taken)
            return
        if _has_diverged(context, number, row, taken):
            context.left.append(
                f"Canvas {number:03} was changed both here and in its source. It stays as it is here; "
                f"{len(new)} imported steps were left out."
            )
            return
        context.changed.add(local_id)
        expected = here.version
    _write_canvas(context, row, taken, number=number, expected=expected)


def _has_diverged(context: ImportContext, number: int, row: CanvasHistory, taken: Sequence[RecordRow]) -> bool:
    """Return whether the local canvas has records or versions that the imported canvas lacks."""
    came = {context.find(record.id, record.timestamp, record.origins) for record in taken}
    here = context.tx.column("SELECT 'k' || id FROM record WHERE space = :space AND canvas = ?", number)
    versions = [(version.number, version.kind) for version in canvas_rows.versions(context.tx, number)]
    if row.versions:
        is_begin = versions == [(version.version, version.kind) for version in row.versions[: len(versions)]]
    else:
        is_begin = all(kind == canvas_rows.IMPORTED for _, kind in versions)
    return not (is_begin and came.issuperset(here))


def _write_canvas(
    context: ImportContext,
    row: CanvasHistory,
    taken: Sequence[RecordRow],
    *,
    number: int,
    expected: int,
) -> None:
    def here(text: str) -> str:
        return text if number == row.number else _renumber(text, row.number, number)

    canvas = CanvasRow(
        number=number,
        label=row.label,
        session=row.session,
        text=here(row.text),
        status=row.status,
        folded=row.folded,
        groups=canvas_rows.groups_of(here(json.dumps(row.groups))),
        updated=row.updated,
        version=expected,
    )
    canvas_rows.take_over(context.tx, canvas, _imported_versions(context, row, here, number))
    context.note(f"c{row.number}", row.begun, row.origins, f"c{number}")
    lines = defaultdict[str, list[int]](list)
    for record in taken:
        lines[record.session].append(_import_record(context, record, number, here))
    for session, numbers in lines.items():
        record_rows.append(context.tx, session, numbers)


def _import_record(context: ImportContext, row: RecordRow, canvas: int, here: Callable[[str], str]) -> int:
    """Store a record and return its number. Of a known record, only the summary and its score are updated."""
    tx, local_id = context.tx, context.find(row.id, row.timestamp, row.origins)
    if local_id is not None:
        context.note(row.id, row.timestamp, row.origins, local_id)
        number = number_of(local_id, "k")
        tx.run(
            "UPDATE record SET summary = ?, score = ?, summary_by = ? WHERE space = :space AND id = ?",
            *(here(row.summary), row.score, row.summary_by, number),
        )
        return number
    ref, number = context.name(row.ref) or row.ref, tx.next("record")
    path = tx.get("SELECT path FROM ref WHERE space = :space AND id = ?", ref)
    local = replace(
        row,
        id=f"k{number}",
        canvas=canvas,
        node_id=here(row.node_id),
        tool_call=here(row.tool_call),
        summary=here(row.summary),
        result_ref=path or row.result_ref,
        tool_call_id=digests.stored_call(tx, row.tool_call_id),
        ref=ref,
        step=None if row.step is None else here(row.step),
    )
    tx.insert("record", **row_codec.columns_of(tx, local))
    context.note(row.id, row.timestamp, row.origins, f"k{number}")
    context.stored += 1
    return number


def _imported_versions(
    context: ImportContext, row: CanvasHistory, here: Callable[[str], str], number: int
) -> list[dict[str, Value]]:
    """Return the versions of a canvas as rows to insert.

    The list is empty if the deltas are incomplete or do not result in the exported canvas.
    """
    kept = [version for version in row.versions if version.delta is not None]
    history = [here(version.delta) for version in kept if version.delta is not None]
    due = canvas_rows.document(
        canvas_rows.groups_text(canvas_rows.groups_of(here(json.dumps(row.groups)))), here(row.text)
    )
    try:
        kept_versions = [version.version for version in kept]
        crcs = dict(zip(kept_versions, map(canvas_rows.crc_of, deltas.texts(history)), strict=True))
    except ValueError:
        return []
    if not kept or kept[-1] != row.versions[-1] or crcs[kept[-1].version] != canvas_rows.crc_of(due):
        return []
    local = (
        replace(
            version,
            canvas=number,
            work=f"w{context.job('canvas')}" if version.by_model else None,
            crc=crcs.get(version.version, 0),
            delta=None if version.delta is None else here(version.delta),
        )
        for version in row.versions
    )
    return [row_codec.columns_of(context.tx, version) for version in local]


def _renumber(text: str, old: int, new: int) -> str:
    """Return a text with the node and group ids of a canvas (`003-N4`) under its new number."""
    return re.sub(rf"(?<![\w-]){old:03}-(?=[NF]\d)", f"{new:03}-", text, flags=re.ASCII)


# --- pages ------------------------------------------------------------------------------------------


def _import_scene(context: ImportContext, versions: Sequence[SceneRow]) -> None:
    """Import the versions of a scene, under another slug if a different scene here has or had its slug.

    If the newest version was written here, imported versions that are not newer than it are left out.
    """
    if context.is_own or not versions:
        return
    local_ids = {row.version: context.find(_scene_id(row), row.at, row.origins) for row in versions}
    page_id = next((name for name in local_ids.values() if name), None)
    slug = _free_slug(context, versions[0].slug) if page_id is None else page_id.removeprefix("s:").rpartition("/")[0]
    context.names[f"s:{versions[0].slug}"] = slug
    new = [row for row in versions if local_ids[row.version] is None]
    newest = context.tx.one(
        "SELECT version, at FROM scene WHERE space = :space AND slug = ? ORDER BY version DESC LIMIT 1", slug
    )
    is_own = newest is not None and f"s:{slug}/{newest[0]}" not in local_ids.values()
    if newest is not None and is_own and any(to_ms(row.at) <= newest[1] for row in new):
        context.left.append(f"Scene {slug} was rewritten here; its earlier imported versions were left out.")
        new = [row for row in new if to_ms(row.at) > newest[1]]
    for row in new:
        _insert_scene(context, row, slug)
    context.stored += len(new)
    context.known_rows += len(versions) - len(new)
    if new:
        context.tx.touch("persona", f"scene:{slug}")
        page_rows.write_scene_files(context.tx)


def _scene_id(row: SceneRow) -> str:
    return f"s:{row.slug}/{row.version}"


def _free_slug(context: ImportContext, slug: str) -> str:
    """Return the slug, with a number appended if a scene has or had it."""
    name, number = slug, 1
    while context.tx.one("SELECT 1 FROM scene WHERE space = :space AND slug = ?", name):
        number += 1
        name = f"{slug}-{number}"
    return name


def _insert_scene(context: ImportContext, row: SceneRow, slug: str) -> None:
    tx = context.tx
    version = 1 + (tx.get("SELECT max(version) FROM scene WHERE space = :space AND slug = ?", slug) or 0)
    local = replace(
        row,
        slug=slug,
        version=version,
        body=_with_links(context, _with_names(context, row.body)),
        atoms=tuple(name for atom in row.atoms if (name := context.name(atom)) != GONE),
    )
    tx.insert("scene", **row_codec.columns_of(tx, local), work=context.job("scenes") if row.by_model else None)
    context.note(_scene_id(row), row.at, row.origins, f"s:{slug}/{version}")


def _import_personas(context: ImportContext, versions: Sequence[PersonaRow]) -> None:
    """Import the persona pages that models wrote, unless a model wrote the newest page of this space here."""
    tx, rows = context.tx, [row for row in versions if row.by_model]
    if context.is_own or not rows:
        return
    local_ids = {row.version: context.find(f"p{row.version}", row.at, row.origins) for row in rows}
    new = [row for row in rows if local_ids[row.version] is None]
    context.known_rows += len(rows) - len(new)
    newest = tx.one("SELECT version, work FROM persona WHERE space = :space ORDER BY version DESC LIMIT 1")
    if new and newest is not None and newest[1] is not None and f"p{newest[0]}" not in local_ids.values():
        context.left.append("The persona page of this space was kept; its next version covers the imported statements.")
        return
    last: int = newest[0] if newest is not None else 0
    for version, row in enumerate(new, start=last + 1):
        text = _with_names(context, row.text)
        local = replace(row, version=version, text=text)
        tx.insert("persona", **row_codec.columns_of(tx, local), work=context.job("persona"))
        context.note(f"p{row.version}", row.at, row.origins, f"p{version}")
    context.stored += len(new)
    if new:
        tx.touch("persona")


def _with_names(context: ImportContext, text: str) -> str:
    """Return the text of a page with local ids in its citations.

    What the page says on the basis of atoms that do not exist here is removed.
    """
    gone = [atom for atom in cited_atoms(text) if context.name(atom) == GONE]
    left = without_atoms(text, gone)
    return rename_atoms(left, {atom: context.name(atom) for atom in cited_atoms(left)})


def _with_links(context: ImportContext, text: str) -> str:
    """Return the text of a page in which links to other pages have the local slugs."""
    moved = {old.removeprefix("s:"): new for old, new in context.names.items() if old.startswith("s:")}
    changed = {old: new for old, new in moved.items() if old != new}
    if not changed:
        return text
    names = "|".join(map(re.escape, sorted(changed, key=len, reverse=True)))
    return re.sub(rf"\[\[({names})(?=[\]|])", lambda link: f"[[{changed[link[1]]}", text)


# --- citations, and how far sessions and stages have come -------------------------------------------


def _import_citation(context: ImportContext, row: CitationRow) -> None:
    source, ref = context.name(row.source), context.name(row.ref)
    if GONE not in (source, ref):
        context.tx.run(
            "INSERT INTO citation (space, source, ref, first_line, last_line) VALUES (:space, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            *(source, ref, *(row.lines or (0, 0))),
        )


def _import_session(context: ImportContext, row: SessionRow) -> None:
    """Move the read cursor of a session forward to the imported position, and set what it lacks.

    That is its project, its client and its active canvas. The cursor is not moved if it would skip turns that were not
    imported.
    """
    tx, number = context.tx, context.tx.session(row.name)
    if number is None or context.is_own:
        return
    if row.project is not None:
        turn_rows.note_project(tx, row.name, row.project)
    if row.client is not None:
        session_rows.note_client(tx, row.name, row.client)
    canvas = context.name(f"c{row.canvas}") if row.canvas is not None else GONE
    if canvas != GONE and canvas_rows.active_canvas(tx, row.name) is None:
        canvas_rows.activate(tx, row.name, number_of(canvas, "c"), now=context.now)
    read = context.name(row.read)
    if read == GONE:
        return
    position: int | None = tx.get(
        "SELECT position + 1 FROM turn WHERE space = :space AND id = ? AND session = ?", number_of(read, "t"), number
    )
    at: int = tx.get("SELECT position FROM progress WHERE space = :space AND session = ?", number) or 0
    own = tx.one(
        "SELECT 1 FROM turn t WHERE t.space = :space AND t.session = ? AND t.position >= ? AND t.position < ?"
        " AND t.role <> 'note' AND NOT EXISTS ("
        "  SELECT 1 FROM origin o WHERE o.space = t.space AND o.id = 't' || t.id) LIMIT 1",
        *(number, at, position or 0),
    )
    if position is not None and position > at and own is None:
        batches = tx.get("SELECT batches FROM progress WHERE space = :space AND session = ?", number) or 0
        tx.run(
            "INSERT INTO progress (space, session, position, batches, flush, scene) VALUES (:space, ?, ?, ?, 0, ?)"
            " ON CONFLICT (space, session) DO UPDATE SET position = excluded.position, batches = excluded.batches,"
            " scene = excluded.scene",
            *(number, position, max(batches, row.batches), row.scene),
        )


def _import_progress(context: ImportContext, row: StageRow) -> None:
    """Move the cursor of a stage forward to the imported position, unless it would skip rows that were not imported.

    Turns that the sentence reader has read elsewhere are not read again here, because their statements are imported,
    except forgotten statements.
    """
    tx, name = context.tx, context.name(row.upto)
    if name == GONE or context.is_own:
        return
    _move_cursor(context, row, name)
    if row.stage == "read":
        upto, local_ids = number_of(row.upto, "t"), {**context.earlier_names, **context.names}
        turns_read = [here for id, here in local_ids.items() if id[0] == "t" and number_of(id, "t") <= upto]
        sentence_rows.mark_read(tx, [number_of(here, "t") for here in turns_read if here != GONE])


def _move_cursor(context: ImportContext, row: StageRow, name: str) -> None:
    tx = context.tx
    prefix, table = ("t", "turn") if row.stage == "read" else ("a", "atom")
    upto = number_of(name, prefix)
    at: int = tx.get("SELECT position FROM stage_cursor WHERE space = :space AND stage = ?", row.stage) or 0
    own = tx.one(
        f"SELECT 1 FROM {table} r WHERE r.space = :space AND r.id > ? AND r.id <= ? AND r.tombstone IS NULL"
        f" AND NOT EXISTS (SELECT 1 FROM origin o WHERE o.space = r.space AND o.id = '{prefix}' || r.id) LIMIT 1",
        *(at, upto),
    )
    if upto > at and own is None:
        tx.run(
            "INSERT INTO stage_cursor (space, stage, position, at) VALUES (:space, ?, ?, ?)"
            " ON CONFLICT (space, stage) DO UPDATE SET position = excluded.position",
            *(row.stage, upto, to_ms(context.now)),
        )
