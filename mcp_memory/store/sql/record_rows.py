"""Records: one for each tool call, as a row and as a line in the file of its session.

A model may improve the summaries in records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from mcp_memory.core.types import FORGOTTEN, CanvasRow, Record
from mcp_memory.store.row_types import RecordRow
from mcp_memory.store.sql import canvas_rows, digests, job_rows, ref_rows, row_codec, saving_rows, word_index
from mcp_memory.store.sql.line_forms import line_of
from mcp_memory.store.sql.row_codec import fields_of
from mcp_memory.store.sql.transaction import Transaction, Value, marks, to_ms
from mcp_memory.store.values import CanvasChange, OffloadedResult, Saving, Summaries, TakenStep, ThinRecord

_COLUMNS = row_codec.columns(Record)


def commit_step(
    tx: Transaction,
    *,
    record: Record,
    canvas: CanvasRow,
    expected: int,
    step: str | None = None,
    result: OffloadedResult | None = None,
    terms: Sequence[Sequence[str]] = (),
) -> tuple[Record, bool]:
    """Append a record and commit the next version of its canvas, in one transaction.

    With a `result`, the result and everything that belongs to it is stored first, in the same transaction; the record
    gets its ref. `terms` are the `terms_of_chunks` of its chunks. If the session has a record of the same call and
    result, return that record and False, and leave the canvas as it is. Otherwise return the new record and True.

    `step` is stored with the record. `expected` is the canvas version that the caller read, 0 for a new canvas;
    `canvas.version` is ignored. Raises Conflict if the canvas has another version now or the number of a new canvas is
    taken, and Refused if the result was forgotten. The canvas becomes its session's active canvas.
    """
    record = replace(record, tool_call_id=digests.stored_call(tx, record.tool_call_id))
    if result is not None:
        ref = ref_rows.put(tx, result.new)
        if result.chunks is not None:
            word_index.put_chunks(tx, ref.id, result.chunks, terms, start=0, complete=True)
        call = record.tool_call_id
        earlier = call and list_records(tx, session=record.session, tool_call_id=call, ref=ref.id, limit=1)
        if earlier:
            return earlier[0], False
        record = replace(record, ref=ref.id, result_ref=ref.path)
        if result.left is not None:
            canvas_rows.change(tx, [result.left])
        if result.saving is not None:
            saving_rows.add_saving(tx, result.saving)
    canvas_rows.save(tx, canvas, expected=expected, kind="step", make_active=True)
    number = tx.next("record")
    tx.insert("record", **row_codec.columns_of(tx, record), id=number, canvas=canvas.number, step=step)
    append(tx, record.session, [number])
    return record, True


def note_replaced(
    tx: Transaction, *, session: str, tool_call_id: str, ref: str, tokens_kept: int, at: datetime
) -> bool:
    """Record that a text of `tokens_kept` tokens replaced a call's result in the context, and store the saving.

    Returns False if that was recorded before, if the text is not smaller than the result, or if the record does not
    exist.
    """
    noted = tx.one(
        "UPDATE record SET tokens_kept = ? WHERE space = :space AND tokens_kept >= tokens_raw AND tokens_raw > ?"
        " AND id = (SELECT min(id) FROM record WHERE space = :space AND session = ? AND tool_call_id = ? AND ref = ?)"
        " RETURNING id, tokens_raw",
        *(tokens_kept, tokens_kept, tx.session(session), digests.stored_call(tx, tool_call_id), ref),
    )
    if noted is None:
        return False
    number, raw = noted
    append(tx, session, [number])
    saving_rows.add_saving(tx, Saving(session=session, at=at, kind="offload", saved=raw, spent=tokens_kept))
    return True


def append(tx: Transaction, session: str, numbers: Sequence[int]) -> None:
    """Append the lines of records, whose rows are stored already, to the file of their session."""
    tx.files.append(f"offload-{session}.jsonl", _lines(tx, f"r.id IN ({marks(numbers)})", *numbers))


def lines(tx: Transaction, session: str) -> Iterator[bytes]:
    """Yield the lines of the file of a session, one for each record."""
    return _lines(tx, "r.session = ?", tx.session(session))


def _lines(tx: Transaction, which: str, *values: Value) -> Iterator[bytes]:
    yield from map(line_of, row_codec.rows(tx, RecordRow, f"{which} ORDER BY r.id", *values))


def list_records(
    tx: Transaction,
    *,
    node: str | None = None,
    session: str | None = None,
    ref: str | None = None,
    tool_call_id: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    start: int = 0,
    limit: int = 100,
) -> list[Record]:
    """Return records in the order in which they were made; records of forgotten results are without their words.

    `node` is `003-N4`, or `003` for a whole canvas; `until` is exclusive. A negative limit returns all records.
    """
    conditions, values = ["1 = 1"], list[Value]()
    if node is not None:
        number, _, step = node.partition("-")
        conditions.append("r.canvas = ?")
        values.append(int(number) if number.isdecimal() else -1)
        if step:
            conditions.append("r.node = ?")
            values.append(node)
    for column, value in (("r.ref", ref), ("r.tool_call_id", digests.stored_call(tx, tool_call_id))):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    if session is not None:
        conditions.append("r.session = ?")
        values.append(tx.session(session))
    for comparison, at in ((">=", since), ("<", until)):
        if at is not None:
            conditions.append(f"unixepoch(r.timestamp, 'subsec') * 1000 {comparison} ?")
            values.append(to_ms(at))
    which = f"{' AND '.join(conditions)} ORDER BY r.id LIMIT ? OFFSET ?"
    rows = row_codec.read(tx, Record, which, *values, limit if limit >= 0 else 2**62, start)
    return [_without_words(record) if record.forgotten else record for record in map(_record, rows)]


def list_newest(tx: Transaction, *, limit: int) -> list[Record]:
    """Return the newest records whose results are not forgotten, newest first; `limit` counts forgotten ones too."""
    rows = row_codec.read(tx, Record, "1 = 1 ORDER BY r.id DESC LIMIT ?", limit)
    return [record for record in map(_record, rows) if not record.forgotten]


def _without_words(record: Record) -> Record:
    return replace(record, tool_call=FORGOTTEN, summary=FORGOTTEN)


def count(tx: Transaction) -> int:
    """Count the records."""
    return tx.get("SELECT count(*) FROM record WHERE space = :space")


def canvas_steps(tx: Transaction, number: int) -> list[TakenStep]:
    """Return all records of a canvas in the order in which they were made. Forgotten records keep their words here."""
    which = f"SELECT r.step, {_COLUMNS} {row_codec.tables(Record)} r.canvas = ? ORDER BY r.id"
    return [TakenStep(record=_record(fields_of(Record, row)), step=step) for step, *row in tx.all(which, number)]


def last_step(tx: Transaction, node: str) -> str | None:
    """Return the `step` of the newest record of a node, or None."""
    return tx.get(
        "SELECT step FROM record WHERE space = :space AND canvas = ? AND node = ? ORDER BY id DESC LIMIT 1",
        *(int(node.partition("-")[0]), node),
    )


def _record(fields: dict[str, Any]) -> Record:
    return Record(**fields, offloaded=True)


# --- summaries that a model may improve -------------------------------------------------------------

_THIN = (
    "r.id, (SELECT n.tool_call FROM record n WHERE n.space = r.space AND n.session = r.session AND n.id > r.id"
    "  AND NOT EXISTS (SELECT 1 FROM ref g WHERE g.space = n.space AND g.id = n.ref AND g.tombstone IS NOT NULL)"
    "  ORDER BY n.id LIMIT 1),"
    " NOT EXISTS (SELECT 1 FROM record n WHERE n.space = r.space AND n.canvas = r.canvas AND n.node = r.node"
    f" AND n.id > r.id), {_COLUMNS}"
)
_OF_PROGRAM = (
    "JOIN session s ON s.space = r.space AND s.id = r.session JOIN ref f ON f.space = r.space AND f.id = r.ref"
    " WHERE r.summary_by = 'synopsis' AND f.tombstone IS NULL AND r.space = :space"
)


def thin_records(
    tx: Transaction, *, after: int, since: datetime, most_score: int, least_tokens: int, limit: int
) -> list[ThinRecord]:
    """Return records after number `after` with an uninformative summary of a large text result, oldest first.

    Records that an agent or a model summarised are left out, and so are the records of canvases that were last updated
    before `since`. The query starts from the canvases updated since, because these are few.
    """
    rows = tx.all(
        f"SELECT {_THIN} FROM canvas c CROSS JOIN record r ON r.space = c.space AND r.canvas = c.number {_OF_PROGRAM}"
        " AND c.updated >= ? AND r.id > ? AND r.score <= ? AND r.tokens_raw >= ?"
        " AND f.content_type <> 'application/octet-stream' ORDER BY r.id LIMIT ?",
        *(to_ms(since), after, most_score, least_tokens, limit),
    )
    return _thin(rows)


def summarised_by_program(tx: Transaction, numbers: Sequence[int]) -> list[ThinRecord]:
    """Return those of the records whose summary a program wrote and whose ref is not forgotten, oldest first."""
    sql = f"SELECT {_THIN} FROM record r {_OF_PROGRAM} AND r.id IN ({marks(numbers)}) ORDER BY r.id"
    return _thin(tx.all(sql, *numbers))


def _thin(rows: Iterable[Sequence[Any]]) -> list[ThinRecord]:
    return [
        ThinRecord(number=number, record=_record(fields_of(Record, row)), then=then or "", newest=bool(newest))
        for number, then, newest, *row in rows
    ]


def amend(tx: Transaction, job: int | None, better: Summaries, *, now: datetime) -> None:
    job_rows.advance_stage(tx, "summaries", better.upto, now=now)
    canvas_rows.change(tx, [CanvasChange(row=row, kind="summaries") for row in better.canvases])
    for summary in better.amended:
        tx.run(
            "UPDATE record SET summary = ?, score = ?, summary_by = 'model', work = ?"
            " WHERE space = :space AND id = ? AND summary_by = 'synopsis'",
            *(summary.summary, summary.score, job, summary.number),
        )
    changed = defaultdict[str, list[int]](list)
    for session, number in tx.all(
        f"SELECT s.name, r.id {row_codec.tables(Record)} r.work = ? AND r.id IN ({marks(better.amended)})"
        " ORDER BY r.id",
        *(job, *(summary.number for summary in better.amended)),
    ):
        changed[session].append(number)
    for session, numbers in changed.items():
        append(tx, session, numbers)
