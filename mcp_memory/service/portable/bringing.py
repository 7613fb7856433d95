"""Import of an export: stores its rows in batches, each once, and applies its tombstones.

A batch is one transaction and includes the origins of its rows. An import that was killed can be repeated, with
the same result.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import TypeVar

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.progress import ReportProgress, ignore_progress, step_counter
from mcp_memory.service.portable.reading import Parcel
from mcp_memory.store.protocol import Store
from mcp_memory.store.row_types import (
    NOTHING,
    UNDONE,
    AtomRow,
    CanvasHistory,
    CitationRow,
    EntityRow,
    FeedbackRow,
    Origin,
    PersonaRow,
    RecordRow,
    RefRow,
    ReviewRow,
    Row,
    SceneRow,
    SessionRow,
    StageRow,
    TombstoneRow,
    TurnRow,
    gone_by,
    origin_of,
)
from mcp_memory.store.sql import atom_rows, exporting, importing, ref_rows, turn_rows

Doubts = Callable[[TurnRow | AtomRow], Sequence[str]]

BATCH = 500
BATCH_CHARS = 4 * 2**20

Spoken = TypeVar("Spoken", TurnRow | AtomRow, AtomRow)


@dataclass(slots=True, kw_only=True)
class Brought:
    """The result of importing a space of an export.

    `stored` rows are new; `known` rows had been imported before, of which `changed` were updated; `kept_out` rows are
    forgotten here. `forgotten` and `undone` are tombstones of this store that the import created or undid.
    """

    space: str
    into: str
    stored: int = 0
    known: int = 0
    changed: int = 0
    kept_out: int = 0
    forgotten: list[str] = field(default_factory=list[str])
    undone: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])


class _SpaceImport:
    """The state of an import into one space, with the ids that imported rows have here."""

    def __init__(
        self, store: Store, parcel: Parcel, space: str, into: str, now: Callable[[], datetime], tell: ReportProgress
    ) -> None:
        self._step = step_counter("storing rows", sum(parcel.spaces[space].values()), tell)
        self.store, self.into, self.now = store, into, now
        self.of = Origin(parcel.home, space)
        self.names: dict[str, str] = {}
        self._changed: set[str] = set()
        self.result = Brought(space=space, into=into)

    def take(self, rows: Sequence[Row], *, again: bool = False) -> None:
        """Store rows. With `again`, they are also passed in another call, so only new and changed rows are counted."""
        done = self.store.write(self.into, importing.import_rows, rows, of=self.of, names=self.names, now=self.now())
        self.names |= done.names
        self.result.stored += done.stored
        self._changed |= done.changed
        self.result.changed = len(self._changed)
        self.result.known += 0 if again else done.known
        self.result.kept_out += 0 if again else done.forgotten
        self.result.notes += done.left
        self._step(0 if again else len(rows))


def import_space(
    store: Store,
    parcel: Parcel,
    space: str,
    into: str,
    *,
    now: Callable[[], datetime],
    doubts: Doubts,
    forget: Callable[[Sequence[str], str], str],
    undo: Callable[[str], object],
    tell: ReportProgress = ignore_progress,
) -> Brought:
    """Import a space of an export into a space of a store. Blocks.

    `doubts` returns reasons to quarantine a turn or an atom; it is called for rows without a review in the export,
    and for rows that passed review in another home. `forget` removes ids for a reason and returns the tombstone; `undo`
    reverses a tombstone.
    """
    taking = _SpaceImport(store, parcel, space, into, now, tell)
    tombstones = list(parcel.rows(space, TombstoneRow))
    atoms = list(parcel.rows(space, AtomRow))
    # What ended or was forgotten there goes first: while it holds here, it would end an older value of such a fact that
    # is open there again, or prevent its return.
    for batch in _batches(_ended_atoms(taking, atoms)):
        taking.take(batch, again=True)
    taking.result.forgotten += _apply_tombstones(taking, tombstones, forget)
    taking.result.undone += _undo_tombstones(taking, tombstones, undo)
    taking.take(list(parcel.rows(space, EntityRow)))
    for ref in parcel.rows(space, RefRow):
        taking.take([replace(ref, data=parcel.bytes_of(space, ref))])
    # What passed review or a check elsewhere did not pass it here.
    is_ours = parcel.home == store.read_home(exporting.home_id)
    passed = () if is_ours else ("released", "labelled")
    reviewed = {review.id for review in parcel.rows(space, ReviewRow) if review.verdict not in passed}
    for batch in _batches(_in_learning_order(parcel.rows(space, TurnRow), atoms)):
        taking.take([*batch, *_new_reviews(batch, reviewed, doubts, now())])
    for batch in _batches(atoms):  # again: their further evidence and their successors are stored now
        taking.take(batch, again=True)
    taking.take(list(parcel.rows(space, ReviewRow)))
    taking.take(list(parcel.rows(space, FeedbackRow)))
    for batch in _tasks(parcel.rows(space, RecordRow), parcel.rows(space, CanvasHistory)):
        taking.take(batch)
    for kind in (
        SceneRow,
        PersonaRow,
        CitationRow,
        SessionRow,
        StageRow,
    ):
        taking.take(list(parcel.rows(space, kind)))
    taking.result.kept_out += sum(not here for here in taking.names.values())
    return taking.result


def _ended_atoms(taking: _SpaceImport, atoms: Sequence[AtomRow]) -> list[AtomRow]:
    """Return the atoms that were imported before and have ended in the exporting store."""
    ended = [atom for atom in atoms if atom.valid_to is not None]
    keys = {atom.id: (origin_of(taking.of, atom.id, atom.learned_at), *atom.origins) for atom in ended}
    local_ids = taking.store.read(taking.into, importing.known_as, list(chain.from_iterable(keys.values())))
    return [atom for atom in ended if not local_ids.keys().isdisjoint(keys[atom.id])]


def _new_reviews(
    batch: Sequence[TurnRow | AtomRow],
    reviewed: Collection[str],
    doubts: Doubts,
    now: datetime,
) -> Iterator[ReviewRow]:
    """Yield reviews for doubtful rows of a batch without a review: the rules may be newer than the export."""
    for row in batch:
        if row.id not in reviewed and (why := doubts(row)):
            yield ReviewRow(id=row.id, reasons=json.dumps(list(why)), at=now, verdict=None, reviewed_at=None)


def _in_learning_order(turns: Iterable[TurnRow], atoms: Sequence[AtomRow]) -> Iterator[TurnRow | AtomRow]:
    """Yield turns and atoms in the order in which they were learned; an explicit statement follows its note."""
    place_of_note = {atom.evidence[0].turn: place for place, atom in enumerate(atoms)}
    done = 0
    for turn in turns:
        place = place_of_note.get(turn.id, -1) if turn.role == "note" else -1
        if place < done:
            yield turn
            continue
        yield from atoms[done:place]
        yield from (turn, atoms[place])
        done = place + 1
    yield from atoms[done:]


def _batches(rows: Iterable[Spoken]) -> Iterator[list[Spoken]]:
    """Yield rows in batches of some hundred; a note is always in the batch of its atom."""
    batch, chars = list[Spoken](), 0
    for row in rows:
        if isinstance(row, TurnRow) and (len(batch) >= BATCH or chars >= BATCH_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(row)
        chars += len(row.content if isinstance(row, TurnRow) else row.text)
    if batch:
        yield batch


def _tasks(records: Iterable[RecordRow], canvases: Iterable[CanvasHistory]) -> Iterator[list[Row]]:
    """Yield canvases in batches, each with its records."""
    of = defaultdict[int, list[RecordRow]](list)
    for record in records:
        of[record.canvas].append(record)
    batch = list[Row]()
    for canvas in canvases:
        batch += [*of[canvas.number], canvas]
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


# --- tombstones -------------------------------------------------------------------------------------


def _keys(taking: _SpaceImport, tombstone: TombstoneRow) -> tuple[str, ...]:
    return (origin_of(taking.of, tombstone.id, tombstone.at), *tombstone.origins)


def _undo_tombstones(
    taking: _SpaceImport, tombstones: Sequence[TombstoneRow], undo: Callable[[str], object]
) -> Iterator[str]:
    """Undo tombstones of this store whose original was undone in the exporting store, and yield their ids.

    A tombstone that cannot be undone here is named in the notes of the result.
    """
    for tombstone in tombstones:
        if tombstone.undone_at is None:
            continue
        keys = _keys(taking, tombstone)
        here = set(taking.store.read(taking.into, importing.known_as, keys).values())
        for tombstone_id in sorted(name for name in here if name.startswith("x")):
            try:
                undo(tombstone_id)
                yield tombstone_id
            except NotFound:
                pass  # it was undone here, or purged
            except InvalidInput as why:
                taking.result.notes.append(f"{tombstone_id} was undone where this came from, and not here: {why}")
        if here - {UNDONE}:
            taking.store.write(taking.into, importing.note_origins, dict.fromkeys(keys, UNDONE))


def _apply_tombstones(
    taking: _SpaceImport, tombstones: Sequence[TombstoneRow], forget: Callable[[Sequence[str], str], str]
) -> Iterator[str]:
    """Forget the rows that the exporting store forgot, and yield the new tombstones.

    Rows that were never imported are recorded, so that a later import leaves them out.
    """
    store, into = taking.store, taking.into
    for tombstone in tombstones:
        keys = _keys(taking, tombstone)
        if tombstone.undone_at is not None or store.read(into, importing.known_as, keys):
            continue
        local_ids = store.read(into, importing.known_as, tombstone.gone)
        ids = _live_ids(store, into, sorted({name for name in local_ids.values() if name}))
        here = NOTHING
        if ids:
            yield (here := forget(ids, tombstone.reason))
        # By the origin of the first tombstone, to which a later undo refers.
        absent = {gone: gone_by(keys[-1]) for gone in tombstone.gone if gone not in local_ids}
        store.write(into, importing.note_origins, {**absent, **dict.fromkeys(keys, here)})


def _live_ids(store: Store, space: str, ids: Sequence[str]) -> list[str]:
    """Return the ids of rows that are not forgotten. Notes are left out: they are forgotten with their statements."""
    atoms = [atom.id for atom in store.read(space, atom_rows.by_ids, [id for id in ids if id[0] == "a"])]
    turns = [
        turn.id
        for turn in store.read(space, turn_rows.by_ids, [id for id in ids if id[0] == "t"])
        if turn.role != "note"
    ]
    return [*turns, *atoms, *(id for id in ids if id.startswith("r-") and _has_ref(store, space, id))]


def _has_ref(store: Store, space: str, ref: str) -> bool:
    try:
        return store.read(space, ref_rows.by_id, ref).id == ref
    except NotFound:
        return False
