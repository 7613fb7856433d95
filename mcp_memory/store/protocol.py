"""The Store: the contract of every engine, verb by verb; `sqlite/` implements it.

Model
    Evidence (turns, refs) is appended and hashed, never changed. All else is a projection of it.
    Every verb takes a `space` and sees nothing outside it.
    A verb that writes is one transaction: rows, index entries and files are committed together or not at all.
    When it returns, the write survives a kill of the process at any moment.

Concurrency
    Verbs are plain functions, safe to call from any thread; several processes may open the same home.
    Writers queue and never wait for readers. A read sees one consistent state.

Failure
    InvalidInput, NotFound, Damaged and StoreUnavailable (see `errors`); no other error is raised on purpose.

Outside the contract: how text is chosen, ranked, summarised or drawn. The store saves and finds. One suite,
`tests/store/test_contract.py`, runs against every implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

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
    Spend,
    Spent,
    Stage,
    Turn,
)
from mcp_memory.store import export_model as model
from mcp_memory.store.forgetting import How, Keeping, Policy, Purge, Purged, Reach, Which
from mcp_memory.store.purge_search import Traces
from mcp_memory.store.sql.purged_rows import PurgedRows
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import (
    Appended,
    Backlog,
    CanvasChange,
    CanvasGrowth,
    CanvasVersion,
    Change,
    Chunk,
    Claim,
    Committed,
    Counts,
    Done,
    Draft,
    Filters,
    FollowedLog,
    Grown,
    Held,
    Imported,
    IndexProgress,
    Layer,
    MessageEdit,
    NewAtom,
    NewChunk,
    NewRef,
    OffloadedResult,
    Outcome,
    Posting,
    RecallEntry,
    Saved,
    Saving,
    Scored,
    StageOutput,
    StageState,
    TakenStep,
    ThinRecord,
    Token,
    Tombstone,
    Totals,
    UnindexedRef,
    Vectors,
    Verdict,
    Work,
    WrittenAtom,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TurnStore(Protocol):
    """Turns (L0), and the imports and client logs that they come from."""

    def append_turns(
        self,
        space: str,
        /,
        session: str,
        new: Sequence[NewTurn],
        *,
        now: datetime,
        vectors: Vectors | None = None,
    ) -> Appended:
        """Append turns in order, with their index terms, vectors (one per turn) and journal lines.

        A turn is stored once: a turn whose `client_id` and hash the session has is a duplicate; so is, for turns
        without an id, the longest run at the start of `new` that repeats the end of the session (a client that sends
        its history again). `said_at` is part of the hash if the client gave it as known. Forgotten turns are not stored
        again: turns with the same words that were said before the forgetting, or that come without a time in a session
        that had the forgotten words.
        """
        ...

    def turns(self, space: str, /, ids: Iterable[str]) -> list[Turn]:
        """Return turns that exist and are not forgotten, in the order of `ids`."""
        ...

    def session_turns(self, space: str, /, session: str, *, start: int = 0, limit: int = 100) -> list[Turn]:
        """Return turns of a session from position `start`, in order. Empty for an unknown session."""
        ...

    def last_turns(self, space: str, /, session: str, *, limit: int, roles: Sequence[Role] = ()) -> list[Turn]:
        """Return the newest turns of a session (of these roles), oldest first."""
        ...

    def list_turns(self, space: str, /, *, filters: Filters, after: str | None = None, limit: int = 100) -> list[Turn]:
        """Return turns that pass the filters, without notes, the newest (by `said_at`, then id) first.

        With `after`, only the turns that follow that turn in this order.
        """
        ...

    def context_windows(self, space: str, /, ids: Iterable[str], *, around: int) -> list[Turn]:
        """Return these turns and up to `around` before and after each, every turn once, session by session."""
        ...

    def sessions(self, space: str, /, *, prefix: str = "", limit: int = 100, start: int = 0) -> list[SessionInfo]:
        """Return sessions that have turns, latest written first, without the first `start` of them."""
        ...

    def count_forgotten(self, space: str, /, session: str, new: Sequence[NewTurn]) -> int:
        """Count the turns that `append_turns` would refuse because they were forgotten. Writes nothing."""
        ...

    def known_client_ids(self, space: str, /, ids: Sequence[str]) -> dict[str, bool]:
        """Map the ids that a turn of any session has to whether that turn is forgotten."""
        ...

    def stored_calls(self, space: str, /, session: str, ids: Sequence[str]) -> set[str]:
        """Return the ids of a session's tool calls, among these, whose result is stored, forgotten or not."""
        ...

    def imported_files(self, space: str, /) -> list[Imported]:
        """Return files whose turns were stored, latest first."""
        ...

    def note_imported_file(self, space: str, /, file: Imported) -> None:
        """Record that all turns of a file are stored."""
        ...

    def followed_logs(self, space: str, /, *, path: str | None = None) -> list[FollowedLog]:
        """Return client logs that were read (or only the log at a path), latest read first."""
        ...

    def note_followed_log(self, space: str, /, log: FollowedLog) -> None:
        """Record how far a log was read."""
        ...


class KnowledgeStore(Protocol):
    """Atoms (L1) with facts and entities, scenes (L2), the persona (L3), and citations of tool results."""

    def add_atom(self, space: str, /, atom: NewAtom, *, now: datetime, vectors: Vectors | None = None) -> WrittenAtom:
        """Store a statement with its evidence (a turn of role `note`) and its fact; end the statements it replaces.

        Replaced atoms get `valid_to` and `superseded_by` and stay. If a current atom has the same text (compared
        without case and white space), the statement is a duplicate, unless it adds something; if it supersedes others,
        it also replaces that atom. Raises NotFound when `supersedes` names an unknown atom, InvalidInput when that atom
        has ended, Refused when the statement was forgotten after `now`.
        """
        ...

    def atoms(self, space: str, /, ids: Iterable[str]) -> list[Atom]:
        """Return atoms that exist and are not forgotten, including ended atoms, in the order of `ids`."""
        ...

    def standing(self, space: str, /, ids: Iterable[str]) -> dict[str, bool]:
        """Map the existing, not forgotten atoms among these to whether they are current; texts are not read."""
        ...

    def list_atoms(self, space: str, /, *, filters: Filters, after: str | None = None, limit: int = 100) -> list[Atom]:
        """Return atoms that are current (at `filters.as_of`), highest priority first (−1 before all), then oldest."""
        ...

    def count_atoms(self, space: str, /, *, filters: Filters) -> int:
        """Count the atoms that `list_atoms` lists."""
        ...

    def atoms_based_on(self, space: str, /, turn: str) -> list[Atom]:
        """Return the atoms that a turn is evidence of, including ended atoms."""
        ...

    def facts(self, space: str, /, *, filters: Filters, relation: str | None = None, limit: int = 100) -> list[Fact]:
        """Return facts that are current (at `filters.as_of`) by entity, relation, then time."""
        ...

    def entities(self, space: str, /, *, prefix: str = "", limit: int = 100) -> list[Entity]:
        """Return entities with a name that begins with `prefix` (without case), most current atoms first."""
        ...

    def entity_names(self, space: str, /) -> dict[str, str]:
        """Map each name of each entity to the chief name, oldest first.

        Entities that only forgotten or quarantined statements mention are left out.
        """
        ...

    def names(self, space: str, /, known_names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return all names of the entity with each of these names, the chief name first.

        Unknown names, and names of forgotten entities, are left out.
        """
        ...

    def related_entities(self, space: str, /, name: str, *, limit: int) -> list[tuple[str, int]]:
        """Return the entities that current atoms mention together with this entity, and in how many; most first."""
        ...

    def evidence(self, space: str, /, atom: str) -> list[Evidence]:
        """Return all evidence of an atom, its first evidence first; a note is quoted whole."""
        ...

    def atoms_since(self, space: str, /, after: int, *, limit: int, sentences: bool = True) -> list[Atom]:
        """Return atoms numbered above `after`, oldest first, also ended atoms; `superseded_by` finds those they ended.

        Without `sentences`, atoms that were extracted without a model are left out: its stages do not work on them.
        """
        ...

    def superseded_by(self, space: str, /, by: Sequence[str]) -> list[Atom]:
        """Return the atoms that these superseded, without sentences that gave way, which did not end a truth."""
        ...

    def scenes(self, space: str, /) -> list[Scene]:
        """Return current scenes, hottest first."""
        ...

    def scene_versions(self, space: str, /, slug: str) -> list[Scene]:
        """Return all versions of a scene, the newest first; empty for an unknown slug."""
        ...

    def persona(self, space: str, /) -> PersonaVersion | None:
        """Return the current page."""
        ...

    def persona_versions(self, space: str, /) -> list[PersonaVersion]:
        """Return all versions, the newest first."""
        ...

    def write_persona_file(self, space: str, /, page: str) -> None:
        """Write `persona.md`, the current page with its navigation, unless it is up to date.

        An engine without files does nothing.
        """
        ...

    def citations(self, space: str, /, sources: Sequence[str]) -> dict[str, list[Citation]]:
        """Return the results that turns (`t8`) and atoms (`a5`) name, by source; an atom's turns count as the atom."""
        ...

    def cited_by(self, space: str, /, ref: str) -> list[Citation]:
        """Return the turns and atoms that name a ref, then the atoms based on these turns."""
        ...


class JobStore(Protocol):
    """Questions to a model: leased, answered and committed; and the progress of each stage.

    A commit raises Conflict, storing nothing, when the job is done or was leased by another process: the question is
    asked again, or was answered already.
    """

    def backlog(self, space: str, /, *, session: str | None = None, limit: int = 1_000) -> list[Backlog]:
        """Return sessions with turns that were not extracted, latest written first."""
        ...

    def flush(self, space: str, /, session: str) -> None:
        """Request the extraction of everything in a session, without waiting for more."""
        ...

    def stage_states(self, space: str, /) -> dict[Stage, StageState]:
        """Return the progress of `scenes`, `persona` and `read`; without stages that never ran, unless requested."""
        ...

    def request_stage(self, space: str, /, stage: Stage, reason: str) -> None:
        """Request a stage before it is due; the next commit of a job that was made later fulfils it."""
        ...

    def jobs(self, space: str, /, *, stage: Stage | None = None) -> list[Work]:
        """Return open and parked jobs, oldest first."""
        ...

    def job(self, space: str, /, id: str) -> Work:
        """Return a job, also if it is done. Raises NotFound."""
        ...

    def lease_job(
        self,
        space: str,
        /,
        stage: Stage,
        session: str | None,
        basis: str,
        *,
        holder: str,
        lease: timedelta,
        now: datetime,
        eager: bool = False,
    ) -> Work | None:
        """Create a job of a stage (of a session) and lease it for a while; it replaces an abandoned job.

        Returns None while another holder has the lease; while the job is parked, unless `eager`; and when the stage is
        already past the basis, by its `start` (extract) or `after` (scenes). A new job has a new id, so a commit under
        the old id is a Conflict; attempts and error are kept. The same holder with the same basis gets the same job,
        with a longer lease. A job without a `holder` asks no model.
        """
        ...

    def park_job(self, space: str, /, id: str, *, error: str, wait: timedelta) -> None:
        """Record that a job failed; only eager holders may lease it before that wait. Does nothing if it is gone."""
        ...

    def release_job(self, space: str, /, id: str) -> None:
        """Release a job that was not tried, so that the next holder may lease it at once."""
        ...

    def next_retry(self, space: str, /) -> timedelta | None:
        """Return how long until a holder that is not eager may lease an open or parked job; None without jobs."""
        ...

    def stage_logs(self, space: str, /) -> list[Done]:
        """Return the sums of the job log, by stage."""
        ...

    def drafts(self, space: str, /, *, limit: int = 100) -> list[Draft]:
        """Return drafts that have yet to be merged, oldest first."""
        ...

    def unread_turns(self, space: str, /, *, limit: int) -> list[Turn]:
        """Return the next turns of the user for the sentence reader, by number; a commit of `Readings` moves on.

        These are turns after its cursor that no model has read, up to the first unjudged turn; quarantined turns are
        left out. Turns before the cursor that were released since come first.
        """
        ...

    def commit(
        self, space: str, /, work: str | None, output: StageOutput, *, outcome: Outcome, now: datetime
    ) -> Committed:
        """Store the output of a stage, the end of its job, its log entry and its cursor.

        Scenes, a page of the persona and a canvas may come without a job: a person's edit, which moves no cursor.
        Readings always do. If a model has read all the turns of a sentence, the sentence gives way to the statements.
        Conflict, storing nothing, also if a scene or a canvas is no longer at the version that the output expects.
        InvalidInput if a draft has no evidence or its quote is not in its turn, and for a new scene whose name is
        taken; NotFound for an update of an unknown scene.
        """
        ...

    def open_queue(self, queue: str) -> None:
        """Create a queue: every space is due now, and again after each write to it."""
        ...

    def claim_space(self, queue: str, *, lease: timedelta, space: str | None = None) -> Claim | None:
        """Claim the space that has been due longest in a queue; None if no space is due, or all are claimed.

        With `space`, claim that space, due or not. The claim ends with `release_space` or, by the clock of the
        database, after `lease`.
        """
        ...

    def release_space(self, claim: Claim, *, again: timedelta) -> None:
        """End a claim; the space is due after `again`, or now if it was written to meanwhile.

        Does nothing if another worker has claimed the space since.
        """
        ...

    def waiting_spaces(self, queue: str) -> int:
        """Count the spaces of a queue that are due or claimed."""
        ...

    def pause(self, reason: str, *, now: datetime) -> None:
        """Stop all calls to language models, of every process of the home, until `resume`."""
        ...

    def resume(self) -> None: ...

    def paused(self) -> tuple[str, datetime] | None:
        """Return why and since when models are paused; None while they are not."""
        ...


class SearchStore(Protocol):
    """Search candidates and the indexes they come from. Ranking is outside the store."""

    def totals(self, space: str, /, layer: Layer) -> Totals:
        """Return how many rows a layer has (without notes, with forgotten turns and atoms), and its newest row.

        The other counts of turns may be from before a purge.
        """
        ...

    def postings(
        self, space: str, /, layer: Layer, query_terms: Sequence[str], *, filters: Filters, also: Sequence[str] = ()
    ) -> list[Posting]:
        """Return the rows with any of the query terms, leaving out common terms while there are rarer terms.

        Atoms and chunks that do not pass the filters are left out. Turns are not, since they may be the context of
        others (see `turn_metadata`); but every turn that passes and has a query term is included, of a common term the
        newest. Terms of `also` are returned if they are rare.
        """
        ...

    def turn_metadata(
        self, space: str, /, rows: NDArray[np.int64], *, filters: Filters, reach: int = 0
    ) -> TurnMetadata:
        """Return the metadata of these turns, and which of them pass the filters; unknown numbers are left out.

        With a `reach`, also of as many turns before and after each in its session, which are then in its stretch.
        Notes do not count.
        """
        ...

    def nearest(self, space: str, /, layer: Layer, query: Vectors, *, filters: Filters, limit: int) -> list[Scored]:
        """Return the rows nearest to a vector, by cosine, among those that its model has embedded."""
        ...

    def vectors_of(
        self, space: str, /, layer: Layer, ids: Sequence[str], identity: str
    ) -> Mapping[str, NDArray[np.float32]]:
        """Return a model's unit vectors of some rows; rows without a vector are left out."""
        ...

    def index_progress(self) -> IndexProgress:
        """Return how far the indexes have come, over all spaces."""
        ...

    def unembedded(self, space: str, /, identity: str, *, limit: int) -> list[tuple[str, str]]:
        """Return (id, text) of rows that the model has yet to embed, oldest first.

        The text of a turn is its content, without the speaker.
        """
        ...

    def put_vectors(self, rows: Sequence[tuple[str, str]], new: Vectors) -> None:
        """Add vectors of rows, given as (space, id); rows that were forgotten or embedded meanwhile are skipped.

        InvalidInput when the model's vectors had other dimensions before.
        """
        ...

    def maintain_indexes(self, *, limit: int) -> bool:
        """Do a part of the background work on the indexes; return True while more is left.

        Rows with terms of an earlier version are indexed again, up to `limit` of them, newest first; then the index of
        many vectors is optimised. Searches are complete before, meanwhile and after. Other writers wait for some 20 ms
        at a time. Any number of processes may do it at once, and be killed.
        """
        ...

    def drop_vector_index(self, identity: str) -> None:
        """Delete a model's vectors. They can be made again."""
        ...


class TaskStore(Protocol):
    """Raw tool results, records of calls, canvases; edits of message lists and the token savings."""

    def put_ref(self, space: str, /, new: NewRef, *, refuse: bool = True) -> Ref:
        """Write the raw bytes to `refs/` and return their address; the same bytes are stored once.

        A forgotten ref is only restored by an undo: its bytes are Refused or, without `refuse`, left forgotten.
        """
        ...

    def ref(self, space: str, /, id: str) -> Ref:
        """Return a ref; `id` may be the 12 digits without the `r-`. Raises NotFound."""
        ...

    def read_ref(self, space: str, /, id: str) -> bytes:
        """Return the raw bytes. Raises Damaged when the file is missing, torn or does not match its hash."""
        ...

    def unindexed_ref(self, space: str, /, *, passing: Iterable[str] = ()) -> UnindexedRef | None:
        """Return a ref outside `passing` whose lines are not indexed, or with terms of an earlier version."""
        ...

    def put_chunks(self, space: str, /, ref: str, new: Sequence[NewChunk], *, start: int, complete: bool) -> bool:
        """Add the next chunks of a ref, which begin at byte `start`; `complete` when they are the last.

        Returns False, changing nothing, if the ref is forgotten, indexed completely, or indexed up to a byte other than
        `start`.
        """
        ...

    def chunks(self, space: str, /, ids: Iterable[str]) -> list[tuple[Chunk, bytes]]:
        """Return chunks and their raw bytes, in the order of `ids`.

        Chunks that are gone, or whose file is missing or torn, are left out; the bytes are not checked against a hash.
        """
        ...

    def commit_step(
        self,
        space: str,
        /,
        *,
        record: Record,
        canvas: CanvasRow,
        expected: int,
        step: str | None = None,
        result: OffloadedResult | None = None,
    ) -> tuple[Record, bool]:
        """Append the record (a row, a line of its session's file) and commit the canvas's next version, both together.

        With a `result`, the result and everything that belongs to it is stored first, in the same transaction; the
        record gets its ref. If the session has a record of the same call and result, return that record and False, and
        leave the canvas as it is. Otherwise return the new record and True.

        `step` is stored with the record. `expected` is the canvas version that the caller read, 0 for a new canvas;
        `canvas.version` is ignored. Raises Conflict when the canvas has moved on, or a new canvas's number is taken.
        The canvas becomes its session's active canvas.
        """
        ...

    def note_replaced(
        self, space: str, /, *, session: str, tool_call_id: str, ref: str, tokens_kept: int, at: datetime
    ) -> bool:
        """Record the size in tokens of the text that replaced a call's result in the context, and enter the saving.

        Returns False if that was recorded before, if the text is not smaller than the result, or if the record does not
        exist.
        """
        ...

    def save_canvas(
        self,
        space: str,
        /,
        canvas: CanvasRow,
        *,
        expected: int,
        kind: str = "edited",
        detail: str = "",
    ) -> None:
        """Commit the next version of a canvas without a new record; see `CanvasChange`. The active canvas stays."""
        ...

    def redraw_canvas(self, space: str, /, number: int) -> tuple[CanvasRow, bool]:
        """Rewrite the row and file of a canvas from its versions. Return the canvas, and whether its row differed.

        Raises NotFound if the versions are incomplete.
        """
        ...

    def canvas_versions(self, space: str, /, number: int) -> list[CanvasVersion]:
        """Return the versions of a canvas, oldest first. Empty for an unknown canvas."""
        ...

    def canvas_steps(self, space: str, /, number: int) -> list[TakenStep]:
        """Return the records of a canvas in order; forgotten records keep their words here."""
        ...

    def last_step(self, space: str, /, node: str) -> str | None:
        """Return the `step` of a node's newest record."""
        ...

    def activate(self, space: str, /, session: str, number: int | None, *, now: datetime) -> None:
        """Make a canvas its session's active one, or none."""
        ...

    def active_canvas(self, space: str, /, session: str | None = None) -> CanvasRow | None:
        """Return the active canvas of a session; with None, the latest active canvas of the space."""
        ...

    def canvas(self, space: str, /, number: int, *, version: int | None = None) -> CanvasRow:
        """Return a canvas, or a past version of it. Raises NotFound."""
        ...

    def canvases(
        self, space: str, /, *, session: str | None = None, label: str | None = None, limit: int = 100
    ) -> list[CanvasRow]:
        """Return canvases, latest updated first."""
        ...

    def next_canvas_number(self, space: str, /) -> int:
        """Return the highest number plus one; `commit_step` raises Conflict if another caller took it."""
        ...

    def records(
        self,
        space: str,
        /,
        *,
        node: str | None = None,
        session: str | None = None,
        ref: str | None = None,
        tool_call_id: str | None = None,
        start: int = 0,
        limit: int = 100,
    ) -> list[Record]:
        """Return records in the order they were made. `node` takes `003-N4`, or `003` for a whole canvas."""
        ...

    def recorded(self, space: str, /) -> int:
        """Count the records."""
        ...

    def canvas_growth(self, space: str, /, *, since: datetime) -> list[CanvasGrowth]:
        """Return canvases touched `since` with records after their last review by a model, most records first."""
        ...

    def thin_records(
        self, space: str, /, *, after: int, since: datetime, most_score: int, least_tokens: int, limit: int
    ) -> list[ThinRecord]:
        """Return records after number `after` with an uninformative summary of a large text result, oldest first.

        Records that an agent or a model summarised are left out, and canvases that were not touched `since`.
        """
        ...

    def summarised_by_program(self, space: str, /, numbers: Sequence[int]) -> list[ThinRecord]:
        """Return the records, among these, whose summary a program wrote and whose ref is not forgotten, in order."""
        ...

    def message_edits(
        self, space: str, /, *, shown: Sequence[str] = (), reaching: Sequence[str] = ()
    ) -> list[MessageEdit]:
        """Return edits that show any of these digests, or reach any of these places; oldest first.

        Edits that name a forgotten ref are left out.
        """
        ...

    def put_message_edits(self, space: str, /, edits: Sequence[MessageEdit], *, seen: int, saving: Saving) -> None:
        """Store edits together with their saving.

        Conflict, storing nothing, when an edit newer than `seen` reaches any of their places.
        """
        ...

    def add_saving(self, space: str, /, saving: Saving) -> None: ...

    def savings(self, space: str, /, *, since: datetime | None = None) -> list[Saved]:
        """Return the sums of savings, by kind."""
        ...

    def savings_between(self, space: str, /, moments: Sequence[datetime]) -> list[list[Saved]]:
        """Return the sums of savings from each moment to the next, and from the last moment on. Moments are in order.

        They add up to `savings` since the first moment: a later call counts in the period of the saving it repeats.
        """
        ...

    def savings_of_sessions(self, space: str, /, *, since: datetime) -> list[tuple[str, datetime, list[Saved]]]:
        """Return the sums of savings of each session with the time of its last saving, newest session first."""
        ...


class RetentionStore(Protocol):
    """Forgetting, undo and purge; retention policies; quarantine and review."""

    def matching(self, space: str, /, which: Which) -> list[str]:
        """Return the ids of all turns, atoms and refs that match all of `which`.

        Terms are looked for in the words of a turn or atom, and in a run of lines of a ref. With a session or a time,
        only explicit statements match as atoms: extracted atoms go with the turns they are based on.
        """
        ...

    def reach(self, space: str, /, ids: Sequence[str]) -> Reach:
        """Return everything that `forget` would take. Raises the same errors; nothing is changed."""
        ...

    def forget(
        self,
        space: str,
        /,
        ids: Sequence[str],
        *,
        reason: str,
        now: datetime,
        how: How = "ids",
        redrawn: Sequence[CanvasChange] = (),
    ) -> Tombstone:
        """Take turns, atoms and refs out of every search, listing and read; the evidence stays on disk.

        `reach` returns all rows that go: an atom with its facts and its note, and with the last turn that it is based
        on. It is not learned again. `redrawn` are canvases without the words of forgotten refs; Conflict, changing
        nothing, if a canvas has moved on. NotFound names unknown ids, and nothing is changed.

        With `how="correction"` the atoms that these explicit statements ended are current again. InvalidInput if one
        of the statements was replaced itself or ended nothing, or if a single-valued fact has another value now.
        """
        ...

    def undo_forget(
        self, space: str, /, tombstone: str, *, now: datetime, redrawn: Sequence[CanvasChange] = ()
    ) -> Tombstone:
        """Restore exactly the rows that a tombstone took. NotFound if the tombstone was undone or purged.

        Undoing a correction ends the same atoms again, unless they have ended since.
        InvalidInput if a single-valued fact has another value now, or all evidence of an atom was forgotten since.
        """
        ...

    def tombstones(self, space: str, /) -> list[Tombstone]:
        """Return all tombstones, including undone ones, oldest first."""
        ...

    def words_under(self, space: str, /, tombstone: str, *, limit: int) -> list[tuple[str, str]]:
        """Return ids and words of the rows that undoing a tombstone would restore: atoms, turns, then refs.

        The words of a ref are its call and summary. Empty for a tombstone that was undone or purged.
        """
        ...

    def still_said(self, space: str, /, tombstone: str) -> list[str]:
        """Return the turns that remain although they are evidence of atoms under a tombstone."""
        ...

    def count_under_tombstones(self, space: str, /) -> int:
        """Return how many atoms, turns and refs can be restored."""
        ...

    def purge(self, space: str, /, what: Purge, *, now: datetime) -> Purged:
        """Erase forgotten content from rows and files, for good; `secure_delete` and a search follow.

        It is still recognised: turns, atoms and refs keep their ids and positions without any words, and everything
        that quoted them loses those words. Conflict, changing nothing, if a canvas has moved on. NotFound for a
        tombstone that cannot be purged.
        """
        ...

    def note_recall(self, space: str, /, entry: RecallEntry) -> None:
        """Add to the log of recalls, which has the last 500 of a space; does nothing if the space has no rows.

        The log is not evidence: it is not exported. A purge erases the queries of its space.
        """
        ...

    def recalls(self, space: str, /, *, limit: int = 50) -> list[RecallEntry]:
        """Return the last recalls, newest first. Ids of forgotten rows remain in them."""
        ...

    def policies(self, space: str, /) -> list[Policy]:
        """Return the retention policies of the space."""
        ...

    def put_policy(self, space: str, /, what: Keeping, days: int | None, *, now: datetime) -> None:
        """Set or, with None, remove a policy."""
        ...

    def due_policies(self, space: str, /, *, now: datetime, eager: bool = False) -> list[Policy]:
        """Return policies that were not run today (with `eager`, all). They count as run: the caller must run them."""
        ...

    def overdue(self, space: str, /, what: Keeping, *, before: datetime, limit: int) -> list[str]:
        """Return ids of rows stored before a moment: turns (oldest first), results, or tombstones of policies.

        Turns and results that are evidence of a statement are left out, because they are kept.
        """
        ...

    def count_overdue(self, space: str, /, what: Keeping, *, before: datetime) -> tuple[int, int]:
        """Count the rows that `overdue` returns, and the rows that are kept as evidence of a statement."""
        ...

    def note_retained(self, space: str, /, what: Keeping, took: int) -> None:
        """Add to the number of rows that a policy has forgotten or purged."""
        ...

    def quarantine(self, space: str, /, row_reasons: Mapping[str, Sequence[str]], *, now: datetime) -> None:
        """Quarantine turns and atoms (`t8`, `a5`) for these reasons; earlier reviews stay as they are.

        Rows that come with `NewTurn.held` or `NewAtom.held` are quarantined as they are stored.
        """
        ...

    def quarantined(
        self, space: str, /, ids: Iterable[str] | None = None, *, decided: bool = False, limit: int = 100
    ) -> list[Held]:
        """Return rows that wait for review, newest first; with ids, every row among them that has reasons against it:
        quarantined, reviewed, or only labelled (`Held`).

        With `decided`, return reviewed rows, latest review first. Forgotten rows are left out.
        """
        ...

    def may_have_attacks(self, space: str, /) -> bool:
        """Return whether there are chunks of tool results, which are judged when shown, or quarantined rows."""
        ...

    def unjudged(self, space: str, /, *, limit: int) -> list[str]:
        """Return the ids of rows that were quarantined as `UNJUDGED` and not reviewed since, oldest first."""
        ...

    def judge(self, space: str, /, row_reasons: Mapping[str, Sequence[str]], *, now: datetime) -> None:
        """Replace the mark `UNJUDGED` of rows by these reasons; rows without reasons leave quarantine.

        Rows that were reviewed or forgotten meanwhile stay as they are.
        """
        ...

    def review(self, space: str, /, ids: Sequence[str], verdict: Verdict, *, now: datetime) -> list[Held]:
        """Review quarantined rows; a decision may be changed. NotFound names all other ids, and nothing is changed."""
        ...


class AdminStore(Protocol):
    """The home: spaces, tokens, the usage ledger, the change feed, export and import."""

    def close(self) -> None:
        """Release files and threads. Safe to call twice; the store cannot be used afterwards."""
        ...

    def schema(self) -> str:
        """Return the name of the schema the store is at."""
        ...

    def not_ready(self) -> str | None:
        """Run a query; return the reason if the store cannot be fully read and written now, else None."""
        ...

    def spaces(self) -> list[str]:
        """Return the names of spaces, sorted."""
        ...

    def counts(self, space: str, /) -> Counts:
        """Return the row counts of a space."""
        ...

    def unread(self, space: str, /) -> tuple[int, int]:
        """Return how many turns of users and assistants no model has read yet, and in how many sessions."""
        ...

    def grown(self, space: str, /, *, since: datetime) -> Grown:
        """Return how many rows a space got at or after a moment."""
        ...

    def last_change(self, space: str, /) -> int:
        """Return a number that grows with every commit of any process that changes the space; 0 before the first."""
        ...

    def last_changes(self, spaces: Sequence[str]) -> dict[str, int]:
        """Return the numbers of several spaces; cheap enough to poll."""
        ...

    def changes(self, space: str, /, after: int) -> list[Change]:
        """Return what changed since `last_change` returned `after`, each topic once, in order."""
        ...

    def on_change(self, heard: Callable[[], None]) -> None:
        """Call `heard`, on another thread, soon after other processes changed something, until `close`.

        Calls may be spurious, late, or missing if an engine has no notifications: poll `last_changes` too.
        """
        ...

    def home_id(self) -> str:
        """Return the id of this memory in its exports."""
        ...

    def secret(self, purpose: str) -> bytes:
        """Return the secret key of this home for one purpose, 32 bytes (see `core.keyed_hash`); it is never stored."""
        ...

    def export_rows(self, spaces: Sequence[str], take: Callable[[str, model.ExportedRow], None]) -> None:
        """Pass every row of some spaces that was not forgotten to `take`, with its space, from one snapshot.

        Kinds are ordered as `import_rows` requires; the same store gives the same rows.
        """
        ...

    def import_rows(
        self,
        space: str,
        /,
        rows: Sequence[model.ExportedRow],
        *,
        of: model.Origin,
        names: Mapping[str, str],
        now: datetime,
    ) -> model.ImportReport:
        """Store rows that `export_rows` gave elsewhere, and return their local ids. Repeated rows are stored once.

        `names` are the local ids of rows imported earlier. Atoms come after the turn of their first evidence, records
        with their canvas, versions of a page together. Rows that were forgotten here are not stored. InvalidInput if a
        quote is not in its turn.
        """
        ...

    def known_as(self, space: str, /, origins: Sequence[str]) -> dict[str, str]:
        """Map the known origins among these, of imported rows or of rows of this space, to local ids.

        The id is empty for a row that was forgotten before it was imported.
        """
        ...

    def forgotten_statements(self, space: str, /, statements: Sequence[Sequence[str]]) -> set[int]:
        """Return the indexes of statements, each with all its wordings, that were forgotten as a statement or turn."""
        ...

    def note_origins(self, space: str, /, names: Mapping[str, str]) -> None:
        """Store the local ids of imported rows by origin."""
        ...

    def add_spend(self, spend: Spend) -> None:
        """Record a call to a language model, made from any space: there is one ledger."""
        ...

    def spent(self, *, since: datetime, until: datetime | None = None) -> list[Spent]:
        """Return the sums of calls at or after `since`, and before `until`, by purpose, then model."""
        ...

    def spent_between(self, moments: Sequence[datetime]) -> list[list[Spent]]:
        """Return the sums of calls from each moment to the next. Moments are in order."""
        ...

    def add_token(self, token: Token) -> None:
        """Store a token; it belongs to the home. InvalidInput if a valid token has its name."""
        ...

    def token(self, id: str) -> Token | None:
        """Return a token, also if it is revoked or expired; cheap enough to be called at every request."""
        ...

    def tokens(self) -> list[Token]:
        """Return all tokens, oldest first."""
        ...

    def revoke_token(self, id: str, *, now: datetime) -> None:
        """Revoke a token, for every process. Does nothing if the token is unknown or revoked."""
        ...

    def note_token_used(self, id: str, *, now: datetime) -> None:
        """Record that a token was used, unless that was recorded within the hour."""
        ...

    @property
    def place(self) -> str:
        """The location of the store for messages: the path of its file, or its URL without user and password."""
        ...

    def problems(self) -> list[str]:
        """Return all problems for `doctor`.

        With files: damaged rows, and missing, torn or stray files. With a server: settings that weaken durability.
        """
        ...

    def take_requests(self, key: str, *, count: int, a_minute: int) -> int:
        """Spend up to `count` requests of a client's allowance; return how many were granted.

        The allowance is at most `a_minute` and refills at that rate. All processes share it.
        """
        ...

    @property
    def has_files(self) -> bool:
        """Whether results and pages are files, at the paths that `Ref` and `Record` name."""
        ...

    @property
    def read_only(self) -> str | None:
        """The reason why nothing can be written, or None if writes are possible. If set, every writing verb raises."""
        ...


class Store(TurnStore, KnowledgeStore, JobStore, SearchStore, TaskStore, RetentionStore, AdminStore, Protocol):
    """One home. The module docstring states the rules for every verb."""


class EmbeddedStore(Store, Protocol):
    """A store in files of this machine, with the operations that only such an engine has."""

    def folder(self, space: str, /) -> Path:
        """Return the folder of a space's files."""
        ...

    def kept_beside(self, space: str, /) -> list[Path]:
        """Return backups of line files that had more lines than the database when they were rewritten."""
        ...

    def snapshot(self, to: Path) -> None:
        """Copy the database to a new file, in a consistent state; others read and write meanwhile."""
        ...

    def repair(self, set_aside: Callable[[Path], object]) -> list[str]:
        """Rebuild the indexes and copies that `problems` names from the rows, and return a line for each repair.

        Files that are replaced are passed to `set_aside`, which moves them.
        """
        ...

    def compact(self, *, vacuum: bool) -> None:
        """Merge the word index and empty the write-ahead log; with `vacuum`, release free pages too.

        It works in steps, so that others can read and write; during a vacuum writers wait, some 10 s for each GB.
        """
        ...

    def free_bytes(self) -> tuple[int, int]:
        """Return how much of the database is unused, and how large it is."""
        ...

    def secure_delete(self, *, patience: float = 10.0) -> bool:
        """Erase deleted content from free pages, indexes and logs of the engine. Writers wait meanwhile.

        Returns False if others read an older state for `patience` seconds: then it has to be called again.
        """
        ...

    def exclude_retained(self, traces: Traces) -> list[str]:
        """Exclude from `traces` everything that retained rows and refs also contain, and return their names."""
        ...

    def unverified_purges(self) -> list[str]:
        """Return purges whose verification was killed or is running: `work/x3`, by first tombstone."""
        ...

    def purged_rows(self) -> PurgedRows:
        """Return the ids and digests that recognise purged rows of all spaces in copies."""
        ...

    def note_verified(self, purges: Sequence[str]) -> None:
        """Record that purges were verified, or cannot be verified."""
        ...
