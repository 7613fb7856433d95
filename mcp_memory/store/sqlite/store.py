"""`SQLiteStore`: the verbs of `store.protocol`, each one transaction over the functions beside this file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from mcp_memory.core.types import (
    Atom,
    CanvasRow,
    Citation,
    Entity,
    Evidence,
    Fact,
    NewTurn,
    PersonaVersion,
    Record,
    Ref,
    Role,
    Scene,
    SessionInfo,
    Stage,
    Turn,
)
from mcp_memory.store import carried
from mcp_memory.store.access import Token
from mcp_memory.store.economy import MessageEdit, Saved, Saving
from mcp_memory.store.forgetting import How, Keeping, Policy, Purge, Purged, Reach, Redrawn, Which
from mcp_memory.store.outline import Outline
from mcp_memory.store.protocol import (
    Amended,
    Appended,
    Backlog,
    CanvasEdit,
    CanvasGrowth,
    Change,
    Chunk,
    Counts,
    Done,
    Draft,
    Filters,
    FollowedLog,
    Grown,
    Held,
    Imported,
    Layer,
    Merging,
    NewAtom,
    NewChunk,
    NewRef,
    Outcome,
    Posting,
    SceneEdit,
    Scored,
    Spend,
    Spent,
    StageState,
    TakenBack,
    TakenStep,
    ThinRecord,
    Tombstone,
    UnindexedRef,
    VectorIndex,
    Vectors,
    Verdict,
    Work,
    WrittenAtom,
)
from mcp_memory.store.sql import (
    atoms,
    canvases,
    chunks,
    citation_rows,
    client_logs,
    entities,
    forget_reach,
    forgetting,
    imports,
    jobs,
    leases,
    matching,
    overviews,
    personas,
    purging,
    records,
    refs,
    retention,
    scenes,
    spends,
    summaries,
    tokens,
    tombstones,
    turns,
)
from mcp_memory.store.sql import drafts as merging
from mcp_memory.store.sql import review as held
from mcp_memory.store.sql import savings as economy
from mcp_memory.store.sql.rows import space_id
from mcp_memory.store.sqlite import checks
from mcp_memory.store.sqlite.database import Database
from mcp_memory.store.sqlite.finding import extents, outlines, postings, renewal, vectors
from mcp_memory.store.sqlite.migrations import SCHEMA
from mcp_memory.store.sqlite.moving import arrivals, carrying
from mcp_memory.store.sqlite.upkeep import compacting, mending, recovering, snapshots
from mcp_memory.store.traces import Traces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SQLiteStore", "open_store"]


def open_store(home: Path) -> SQLiteStore:
    """Open or create the store in `home`. Raises StoreUnavailable, which says what to do."""
    return SQLiteStore(Database(home))


class SQLiteStore:
    """One open home; `store.protocol.Store` says what each verb promises."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._common = postings.CommonTerms()
        self._outlines = outlines.Outlines()
        self._extents = extents.Extents(self._outlines)
        self._seen = vectors.Seen()

    def folder(self, space: str) -> Path:
        """Where the files of a space are."""
        return self._db.home / "spaces" / space

    def close(self) -> None:
        self._db.close()

    # L0

    def append_turns(
        self,
        space: str,
        session: str,
        new: Sequence[NewTurn],
        *,
        now: datetime,
        vectors: Vectors | None = None,
    ) -> Appended:
        folder = self.folder(space)
        return self._db.write(lambda con: turns.append(con, folder, space, session, new, now=now, embedded=vectors))

    def turns(self, space: str, ids: Iterable[str]) -> list[Turn]:
        return self._db.read(lambda con: turns.by_ids(con, space, ids))

    def session_turns(self, space: str, session: str, *, start: int = 0, limit: int = 100) -> list[Turn]:
        return self._db.read(lambda con: turns.of_session(con, space, session, start=start, limit=limit))

    def last_turns(self, space: str, session: str, *, limit: int, roles: Sequence[Role] = ()) -> list[Turn]:
        return self._db.read(lambda con: turns.last(con, space, session, limit=limit, roles=roles))

    def surroundings(self, space: str, ids: Iterable[str], *, around: int) -> list[Turn]:
        return self._db.read(lambda con: turns.around_all(con, space, ids, around=around))

    def sessions(self, space: str, *, prefix: str = "", limit: int = 100) -> list[SessionInfo]:
        return self._db.read(lambda con: turns.sessions(con, space, prefix=prefix, limit=limit))

    # L1

    def add_atom(self, space: str, atom: NewAtom, *, now: datetime, vectors: Vectors | None = None) -> WrittenAtom:
        folder = self.folder(space)
        return self._db.write(lambda con: atoms.add(con, folder, space, atom, now=now, embedded=vectors))

    def atoms(self, space: str, ids: Iterable[str]) -> list[Atom]:
        return self._db.read(lambda con: atoms.by_ids(con, space, ids))

    def list_atoms(self, space: str, *, filters: Filters, after: str | None = None, limit: int = 100) -> list[Atom]:
        return self._db.read(lambda con: atoms.listed(con, space, filters=filters, after=after, limit=limit))

    def facts(self, space: str, *, filters: Filters, relation: str | None = None, limit: int = 100) -> list[Fact]:
        return self._db.read(lambda con: atoms.facts(con, space, filters=filters, relation=relation, limit=limit))

    def entities(self, space: str, *, prefix: str = "", limit: int = 100) -> list[Entity]:
        return self._db.read(lambda con: entities.listed(con, space, prefix=prefix, limit=limit))

    def evidence(self, space: str, atom: str) -> list[Evidence]:
        return self._db.read(lambda con: atoms.evidence(con, space, atom))

    def atoms_since(self, space: str, after: int, *, limit: int) -> list[Atom]:
        return self._db.read(lambda con: atoms.since(con, space, after, limit=limit))

    def replaced(self, space: str, by: Sequence[str]) -> list[Atom]:
        return self._db.read(lambda con: atoms.replaced(con, space, by))

    # the pipeline

    def backlog(self, space: str, *, session: str | None = None, limit: int = 1_000) -> list[Backlog]:
        return self._db.read(lambda con: jobs.backlog(con, space, session=session, limit=limit))

    def flush(self, space: str, session: str) -> None:
        self._db.write(lambda con: jobs.flush(con, space, session))

    def stage_states(self, space: str) -> dict[Stage, StageState]:
        return self._db.read(lambda con: jobs.stage_states(con, space))

    def want(self, space: str, stage: Stage, reason: str) -> None:
        self._db.write(lambda con: jobs.want(con, space, stage, reason))

    def works(self, space: str, *, stage: Stage | None = None) -> list[Work]:
        return self._db.read(lambda con: jobs.waiting(con, space, stage=stage))

    def work(self, space: str, id: str) -> Work:
        return self._db.read(lambda con: jobs.by_id(con, space, id))

    def take_work(
        self,
        space: str,
        stage: Stage,
        session: str | None,
        basis: str,
        *,
        holder: str,
        until: datetime,
        now: datetime,
        eager: bool = False,
    ) -> Work | None:
        return self._db.write(
            lambda con: jobs.take(con, space, stage, session, basis, holder=holder, until=until, now=now, eager=eager)
        )

    def park_work(self, space: str, id: str, *, error: str, until: datetime) -> None:
        self._db.write(lambda con: jobs.park(con, space, id, error=error, until=until))

    def release_work(self, space: str, id: str) -> None:
        self._db.write(lambda con: jobs.release(con, space, id))

    def commit_extraction(
        self,
        space: str,
        work: str,
        *,
        upto: int,
        drafts: Sequence[NewAtom],
        aliases: dict[str, Sequence[str]],
        scene: str,
        outcome: Outcome,
        now: datetime,
    ) -> None:
        self._db.write(
            lambda con: merging.commit_extraction(
                con, space, work, upto=upto, drafts=drafts, aliases=aliases, scene=scene, outcome=outcome, now=now
            )
        )

    def drafts(self, space: str, *, limit: int = 100) -> list[Draft]:
        return self._db.read(lambda con: merging.drafts(con, space, limit=limit))

    def commit_merge(
        self,
        space: str,
        work: str,
        *,
        merged: Sequence[Merging],
        outcome: Outcome,
        now: datetime,
        vectors: Vectors | None = None,
    ) -> list[WrittenAtom]:
        folder = self.folder(space)
        return self._db.write(
            lambda con: merging.commit_merge(
                con, folder, space, work, merged=merged, outcome=outcome, now=now, embedded=vectors
            )
        )

    def commit_scenes(
        self,
        space: str,
        work: str | None,
        *,
        edits: Sequence[SceneEdit],
        upto: int,
        wanted: str | None = None,
        outcome: Outcome,
        now: datetime,
    ) -> None:
        folder = self.folder(space)
        self._db.write(
            lambda con: scenes.commit(
                con, folder, space, work, edits=edits, upto=upto, wanted=wanted, outcome=outcome, now=now
            )
        )

    def commit_persona(
        self, space: str, work: str, text: str, *, reason: str, upto: int, outcome: Outcome, now: datetime
    ) -> int:
        return self._db.write(
            lambda con: personas.commit(con, space, work, text, reason=reason, upto=upto, outcome=outcome, now=now)
        )

    def done(self, space: str) -> list[Done]:
        return self._db.read(lambda con: jobs.done(con, space))

    def hold(self, name: str, holder: str, *, until: datetime, now: datetime) -> bool:
        return self._db.write(lambda con: leases.hold(con, name, holder, until=until, now=now))

    def let_go(self, name: str, holder: str) -> None:
        self._db.write(lambda con: leases.let_go(con, name, holder))

    def pause(self, reason: str, *, now: datetime) -> None:
        self._db.write(lambda con: leases.pause(con, reason, now=now))

    def resume(self) -> None:
        self._db.write(leases.resume)

    def paused(self) -> tuple[str, datetime] | None:
        return self._db.read(leases.paused)

    # scenes

    def scenes(self, space: str) -> list[Scene]:
        return self._db.read(lambda con: scenes.listed(con, space))

    def scene_versions(self, space: str, slug: str) -> list[Scene]:
        return self._db.read(lambda con: scenes.versions(con, space, slug))

    # imports

    def imported(self, space: str) -> list[Imported]:
        return self._db.read(lambda con: imports.listed(con, space))

    def note_import(self, space: str, file: Imported) -> None:
        self._db.write(lambda con: imports.note(con, space, file))

    # from home to home

    def home_id(self) -> str:
        return self._db.read(carrying.home_id)

    def carry_out(self, spaces: Sequence[str], take: Callable[[str, carried.Row], None]) -> None:
        self._db.read(lambda con: [carrying.carry_out(con, space, take) for space in spaces])

    def take_in(
        self,
        space: str,
        rows: Sequence[carried.Row],
        *,
        of: carried.From,
        names: Mapping[str, str],
        now: datetime,
    ) -> carried.Arrival:
        folder = self.folder(space)
        return self._db.write(lambda con: arrivals.take_in(con, folder, space, rows, of=of, names=names, now=now))

    def known_as(self, space: str, origins: Sequence[str]) -> dict[str, str]:
        return self._db.read(lambda con: arrivals.known_as(con, space, origins))

    def were_forgotten(self, space: str, statements: Sequence[Sequence[str]]) -> set[int]:
        return self._db.read(lambda con: arrivals.were_forgotten(con, space, statements))

    def note_origins(self, space: str, names: Mapping[str, str]) -> None:
        self._db.write(lambda con: arrivals.note_origins(con, space, names))

    # logs of clients

    def followed_logs(self, space: str, *, path: str | None = None) -> list[FollowedLog]:
        return self._db.read(lambda con: client_logs.listed(con, space, path=path))

    def note_followed(self, space: str, log: FollowedLog) -> None:
        self._db.write(lambda con: client_logs.note(con, space, log))

    def known_client_ids(self, space: str, ids: Sequence[str]) -> dict[str, bool]:
        return self._db.read(lambda con: client_logs.known_turns(con, space, ids))

    def forgotten_among(self, space: str, session: str, new: Sequence[NewTurn]) -> int:
        return self._db.read(lambda con: turns.forgotten_among(con, space, session, new))

    def kept_calls(self, space: str, session: str, ids: Sequence[str]) -> set[str]:
        return self._db.read(lambda con: client_logs.kept_calls(con, space, session, ids))

    # search

    def newest(self, space: str, layer: Layer) -> int:
        return self._db.read(lambda con: self._extents.of(con, space, layer).newest)

    def size(self, space: str, layer: Layer) -> int:
        return self._db.read(lambda con: self._extents.of(con, space, layer).rows)

    def postings(
        self, space: str, layer: Layer, wanted: Sequence[str], *, filters: Filters, also: Sequence[str] = ()
    ) -> list[Posting]:
        return self._db.read(
            lambda con: postings.read(
                con, layer, space, wanted, also, filters=filters, common=self._common, outlines=self._outlines
            )
        )

    def outline(self, space: str, *, filters: Filters) -> Outline:
        return self._db.read(lambda con: self._outlines.of(con, space, filters))

    def nearest(self, space: str, layer: Layer, query: Vectors, *, filters: Filters, limit: int) -> list[Scored]:
        return self._db.read(
            lambda con: vectors.nearest(con, layer, space, query, filters=filters, limit=limit, outlines=self._outlines)
        )

    def vectors_of(
        self, space: str, layer: Layer, ids: Sequence[str], identity: str
    ) -> Mapping[str, NDArray[np.float32]]:
        return self._db.read(lambda con: vectors.of_rows(con, layer, space, ids, identity))

    def vector_indexes(self) -> list[VectorIndex]:
        return self._db.read(vectors.indexes)

    def ensure_vector_index(self, identity: str, dimensions: int) -> None:
        self._db.write(lambda con: vectors.ensure(con, identity, dimensions))

    def embeddable(self) -> int:
        return self._db.read(vectors.embeddable)

    def unembedded(self, identity: str, *, limit: int) -> list[tuple[str, str]]:
        return self._db.read(lambda con: vectors.unembedded(con, identity, limit=limit, seen=self._seen))

    def put_vectors(self, ids: Sequence[str], new: Vectors) -> None:
        self._db.write(lambda con: vectors.put_by_id(con, ids, new))

    def extend_sketches(self) -> bool:
        if not self._db.read(vectors.due_sketches):
            return False
        self._db.write(vectors.extend_sketches)
        return True

    def drop_vector_index(self, identity: str) -> None:
        self._db.write(lambda con: vectors.drop(con, identity))

    # index terms

    def stale_terms(self) -> int:
        return self._db.read(renewal.stale)

    def renew_terms(self, *, limit: int) -> bool:
        batch = self._db.read(lambda con: renewal.next_batch(con, limit=limit))
        if batch is not None:
            found = renewal.cut(batch)
            self._db.write(lambda con: renewal.commit(con, batch, found))
            self._db.write(lambda con: renewal.merge(con, batch.layer))
            return True
        left = self._db.read(renewal.unsettled)
        if left:
            self._db.write(lambda con: renewal.settle(con, left[0]))
        return bool(left)

    # persona

    def persona(self, space: str) -> PersonaVersion | None:
        return self._db.read(lambda con: personas.current(con, space))

    def persona_versions(self, space: str) -> list[PersonaVersion]:
        return self._db.read(lambda con: personas.versions(con, space))

    def put_persona(self, space: str, text: str, *, now: datetime, reason: str = "") -> int:
        return self._db.write(lambda con: personas.put(con, space, text, now=now, reason=reason))

    def write_persona_file(self, space: str, page: str) -> None:
        folder = self.folder(space)
        if not personas.is_written(folder, page):
            self._db.write(lambda con: personas.write_file(folder, page))

    # short-term

    def put_ref(self, space: str, ref: NewRef, *, refuse: bool = True) -> Ref:
        folder = self.folder(space)
        return self._db.write(lambda con: refs.put(con, folder, space, ref, refuse=refuse))

    def ref(self, space: str, id: str) -> Ref:
        return self._db.read(lambda con: refs.ref(con, space, id))

    def read_ref(self, space: str, id: str) -> bytes:
        return refs.read(self.folder(space), self.ref(space, id))

    def unindexed_ref(self, *, passing: Iterable[tuple[str, str]] = ()) -> UnindexedRef | None:
        return self._db.read(lambda con: chunks.unindexed(con, passing=passing))

    def refs_waiting(self) -> int:
        return self._db.read(chunks.waiting)

    def put_chunks(self, space: str, ref: str, new: Sequence[NewChunk], *, start: int, complete: bool) -> bool:
        found = chunks.cut(new)
        return self._db.write(lambda con: chunks.put(con, space, ref, new, found, start=start, complete=complete))

    def chunks(self, space: str, ids: Iterable[str]) -> list[tuple[Chunk, bytes]]:
        return chunks.read(self.folder(space), self._db.read(lambda con: chunks.by_ids(con, space, ids)))

    def citations(self, space: str, sources: Sequence[str]) -> dict[str, list[Citation]]:
        return self._db.read(lambda con: citation_rows.by_sources(con, space, sources))

    def cited_by(self, space: str, ref: str) -> list[Citation]:
        return self._db.read(lambda con: citation_rows.of_ref(con, space, ref))

    def commit_step(
        self,
        space: str,
        *,
        record: Record,
        canvas: CanvasRow,
        expected: int,
        move: str | None = None,
        edits: Sequence[CanvasEdit] = (),
    ) -> None:
        folder = self.folder(space)
        self._db.write(
            lambda con: records.commit_step(
                con, folder, space, record=record, row=canvas, expected=expected, move=move, edits=edits
            )
        )

    def note_replaced(
        self, space: str, *, session: str, node: str, ref: str, tokens_raw: int, tokens_kept: int
    ) -> bool:
        folder = self.folder(space)
        return self._db.write(
            lambda con: records.note_replaced(
                con, folder, space, session, node, ref, tokens_raw=tokens_raw, tokens_kept=tokens_kept
            )
        )

    def save_canvas(
        self,
        space: str,
        canvas: CanvasRow,
        *,
        expected: int,
        edits: Sequence[CanvasEdit] = (),
        undo: Sequence[int] = (),
        now: datetime | None = None,
    ) -> None:
        folder = self.folder(space)
        self._db.write(
            lambda con: canvases.save(
                con, folder, space, canvas, expected=expected, make_active=False, edits=edits, undo=undo, now=now
            )
        )

    def canvas_history(self, space: str, number: int) -> list[TakenStep | CanvasEdit]:
        return self._db.read(lambda con: records.history(con, space, number))

    def last_move(self, space: str, node: str) -> str | None:
        return self._db.read(lambda con: records.last_move(con, space, node))

    def activate(self, space: str, session: str, number: int | None, *, now: datetime) -> None:
        folder = self.folder(space)
        self._db.write(lambda con: canvases.activate(con, folder, space, session, number, now=now))

    def active_canvas(self, space: str, session: str | None = None) -> CanvasRow | None:
        return self._db.read(lambda con: canvases.active(con, space, session))

    def canvas(self, space: str, number: int) -> CanvasRow:
        return self._db.read(lambda con: canvases.canvas(con, space, number))

    def canvases(
        self, space: str, *, session: str | None = None, label: str | None = None, limit: int = 100
    ) -> list[CanvasRow]:
        return self._db.read(lambda con: canvases.listed(con, space, session=session, label=label, limit=limit))

    def next_canvas_number(self, space: str) -> int:
        return self._db.read(lambda con: canvases.next_number(con, space))

    def records(
        self,
        space: str,
        *,
        node: str | None = None,
        session: str | None = None,
        ref: str | None = None,
        tool_call_id: str | None = None,
        start: int = 0,
        limit: int = 100,
    ) -> list[Record]:
        return self._db.read(
            lambda con: records.records(
                con, space, node=node, session=session, ref=ref, call=tool_call_id, start=start, limit=limit
            )
        )

    def recorded(self, space: str) -> int:
        return self._db.read(lambda con: summaries.recorded(con, space))

    def canvas_growth(self, space: str, *, since: datetime) -> list[CanvasGrowth]:
        return self._db.read(lambda con: overviews.growth(con, space, since=since))

    def commit_canvas(
        self,
        space: str,
        work: str,
        *,
        canvas: CanvasRow | None,
        expected: int,
        edits: Sequence[CanvasEdit],
        outcome: Outcome,
        now: datetime,
    ) -> None:
        folder = self.folder(space)
        self._db.write(
            lambda con: overviews.commit(
                con, folder, space, work, row=canvas, expected=expected, edits=edits, outcome=outcome, now=now
            )
        )

    def thin_records(
        self, space: str, *, after: int, since: datetime, most_score: int, least_tokens: int, limit: int
    ) -> list[ThinRecord]:
        return self._db.read(
            lambda con: summaries.thin(
                con, space, after=after, since=since, most_score=most_score, least_tokens=least_tokens, limit=limit
            )
        )

    def summarised_by_program(self, space: str, numbers: Sequence[int]) -> list[ThinRecord]:
        return self._db.read(lambda con: summaries.by_program(con, space, numbers))

    def commit_summaries(
        self,
        space: str,
        work: str,
        *,
        amended: Sequence[Amended],
        canvases: Sequence[CanvasRow],
        upto: int,
        outcome: Outcome,
        now: datetime,
    ) -> None:
        folder = self.folder(space)
        self._db.write(
            lambda con: summaries.commit(
                con, folder, space, work, amended=amended, rows=canvases, upto=upto, outcome=outcome, now=now
            )
        )

    # forgetting

    def matching(self, space: str, which: Which) -> list[str]:
        return self._db.read(lambda con: matching.of(con, space, which))

    def reach(self, space: str, ids: Sequence[str]) -> Reach:
        return self._db.read(lambda con: forget_reach.of(con, space_id(con, space), ids))

    def forget(
        self,
        space: str,
        ids: Sequence[str],
        *,
        reason: str,
        now: datetime,
        how: How = "ids",
        redrawn: Sequence[Redrawn] = (),
    ) -> Tombstone:
        folder = self.folder(space)
        return self._forgetting(
            space,
            lambda con: forgetting.forget(con, folder, space, ids, reason=reason, how=how, redrawn=redrawn, now=now),
        )

    def undo_forget(self, space: str, tombstone: str, *, now: datetime, redrawn: Sequence[Redrawn] = ()) -> Tombstone:
        folder = self.folder(space)
        return self._forgetting(
            space, lambda con: forgetting.undo(con, folder, space, tombstone, redrawn=redrawn, now=now)
        )

    def tombstones(self, space: str) -> list[Tombstone]:
        return self._db.read(lambda con: tombstones.listed(con, space))

    def purge(self, space: str, what: Purge, *, now: datetime) -> Purged:
        folder = self.folder(space)
        return self._db.write(lambda con: purging.purge(con, folder, space, what, now=now))

    def shred(self, *, patience: float = 10.0) -> bool:
        return self._db.outside(lambda con: purging.shred(con, patience=patience))

    def unproven(self) -> list[str]:
        return self._db.read(purging.unproven)

    def note_proven(self, purges: Sequence[str]) -> None:
        self._db.write(lambda con: purging.note_proven(con, purges))

    def policies(self, space: str) -> list[Policy]:
        return self._db.read(lambda con: retention.listed(con, space))

    def put_policy(self, space: str, what: Keeping, days: int | None, *, now: datetime) -> None:
        self._db.write(lambda con: retention.put(con, space, what, days, now=now))

    def due_policies(self, space: str, *, now: datetime, eager: bool = False) -> list[Policy]:
        return self._db.write(lambda con: retention.due(con, space, now=now, eager=eager))

    def overdue(self, space: str, what: Keeping, *, before: datetime, limit: int) -> list[str]:
        return self._db.read(lambda con: retention.overdue(con, space, what, before=before, limit=limit))

    def count_overdue(self, space: str, what: Keeping, *, before: datetime) -> tuple[int, int]:
        return self._db.read(lambda con: retention.count_overdue(con, space, what, before=before))

    def note_kept(self, space: str, what: Keeping, took: int) -> None:
        self._db.write(lambda con: retention.note(con, space, what, took))

    def excuse(self, traces: Traces) -> list[str]:
        home = self._db.home
        return self._db.read(lambda con: purging.excuse(con, home, traces))

    def _forgetting(self, space: str, change: Callable[[apsw.Connection], Tombstone]) -> Tombstone:
        """Write, and bring the files that told of it into line."""
        folder = self.folder(space)

        def write(con: apsw.Connection) -> Tombstone:
            tombstone = change(con)
            scenes.write_files(con, folder, space)
            return tombstone

        return self._db.write(write)

    # review

    def put_aside(self, space: str, reasons: Mapping[str, Sequence[str]], *, now: datetime) -> None:
        self._db.write(lambda con: held.put(con, space, reasons, now=now))

    def held(self, space: str, ids: Iterable[str] | None = None, *, limit: int = 100) -> list[Held]:
        wanted = None if ids is None else list(ids)
        return self._db.read(lambda con: held.listed(con, space, wanted, limit=limit))

    def held_count(self, space: str) -> int:
        return self._db.read(lambda con: held.count(con, space))

    def review(self, space: str, ids: Sequence[str], verdict: Verdict, *, now: datetime) -> list[Held]:
        return self._db.write(lambda con: held.review(con, space, ids, verdict, now=now))

    # spend

    def add_spend(self, spend: Spend) -> None:
        self._db.write(lambda con: spends.add(con, spend))

    def spent(self, *, since: datetime, until: datetime | None = None) -> list[Spent]:
        return self._db.read(lambda con: spends.sums(con, since=since, until=until))

    # the economy of contexts

    def message_edits(
        self, space: str, *, shown: Sequence[str] = (), reaching: Sequence[str] = ()
    ) -> list[MessageEdit]:
        return self._db.read(lambda con: economy.message_edits(con, space, shown=shown, reaching=reaching))

    def put_message_edits(self, space: str, edits: Sequence[MessageEdit], *, seen: int, saving: Saving) -> None:
        self._db.write(lambda con: economy.put_message_edits(con, space, edits, seen=seen, saving=saving))

    def add_saving(self, space: str, saving: Saving) -> None:
        self._db.write(lambda con: economy.add_saving(con, space, saving))

    def savings(self, space: str, *, since: datetime | None = None) -> list[Saved]:
        return self._db.read(lambda con: economy.savings(con, space, since=since))

    # access

    def add_token(self, token: Token) -> None:
        self._db.write(lambda con: tokens.add(con, token))

    def token(self, id: str) -> Token | None:
        return self._db.read(lambda con: tokens.by_id(con, id))

    def tokens(self) -> list[Token]:
        return self._db.read(tokens.listed)

    def revoke_token(self, id: str, *, now: datetime) -> None:
        self._db.write(lambda con: tokens.revoke(con, id, now=now))

    def note_token_used(self, id: str, *, now: datetime) -> None:
        self._db.write(lambda con: tokens.note_used(con, id, now=now))

    # seeing

    @property
    def read_only(self) -> str | None:
        return self._db.read_only

    def schema(self) -> str:
        return SCHEMA[-1][0]

    def spaces(self) -> list[str]:
        return self._db.read(checks.spaces)

    def counts(self, space: str) -> Counts:
        return self._db.read(lambda con: checks.counts(con, space))

    def grown(self, space: str, *, since: datetime) -> Grown:
        return self._db.read(lambda con: checks.grown(con, space, since=since))

    def last_change(self) -> int:
        return self._db.read(checks.last_change)

    def changes(self, after: int, *, space: str | None = None) -> list[Change]:
        return self._db.read(lambda con: checks.changes(con, after, space=space))

    def problems(self) -> list[str]:
        home = self._db.home
        if unreadable := self._db.read(checks.unreadable):
            return unreadable  # whatever else is asked reads these rows too
        found = self._db.read(checks.problems)
        # Pages are compared while nobody writes: each would differ from its row for a moment.
        pages = self._db.read if self._db.read_only else self._db.write
        found += pages(lambda con: checks.page_problems(con, home))
        refs = self._db.read(lambda con: checks.ref_problems(con, home))
        if refs:  # what was forgotten while they were read is gone by right
            again = self._db.read(lambda con: checks.ref_problems(con, home))
            refs = [problem for problem in refs if problem in again]
        return [*found, *refs]

    # upkeep

    def misnamed(self) -> dict[str, str]:
        home = self._db.home
        return self._db.read(lambda con: recovering.misnamed(con, home))

    def snapshot(self, to: Path) -> None:
        self._db.read(lambda con: snapshots.take(con, to))

    def mend(self, set_aside: Callable[[Path], object], *, everything: bool = False) -> list[str]:
        home = self._db.home
        return self._db.write(
            lambda con: [
                *recovering.bring_in(con, home, set_aside),
                *mending.mend(con, home, set_aside, everything=everything),
            ]
        )

    def recovered(self, space: str) -> list[TakenBack]:
        return recovering.noted(self._db.home, space)

    def set_aside(self, space: str) -> list[str]:
        return [path.name for path in recovering.set_aside(self._db.home) if path.is_relative_to(self.folder(space))]

    @property
    def taken_back(self) -> Sequence[TakenBack]:
        return self._db.taken_back

    def compact(self, *, vacuum: bool) -> None:
        more = self._db.write(lambda con: compacting.optimise(con, begin=True))
        while more:
            more = self._db.write(lambda con: compacting.optimise(con, begin=False))
        if vacuum:
            self._db.outside(compacting.vacuum)
        self._db.outside(compacting.checkpoint)

    def free_bytes(self) -> tuple[int, int]:
        return self._db.read(compacting.free)
