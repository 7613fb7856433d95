"""The contract of a store, verb by verb. `sqlite/` and `postgres/` implement it.

Model
    Evidence (turns, refs) is appended and hashed, never changed. Everything else is derived from it.
    Every verb takes a `space` and sees nothing outside it.
    A verb that writes is one transaction: rows, index entries and files are committed together or not at all.
    When it returns, the write survives a kill of the process at any moment.

Concurrency
    Verbs are plain functions, safe to call from any thread; several processes may open the same home.
    Writers of a space queue and never wait for readers. A read sees one consistent state.

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
from mcp_memory.store.forgetting import How, Keeping, Policy, Purge, Purged, Reach, Which
from mcp_memory.store.purge_search import Traces
from mcp_memory.store.row_types import ImportReport, Origin, Row
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

        Turns that the session already has are counted as duplicates and not stored. A turn with a `client_id` is a
        duplicate if the session has a turn with the same id and hash. Turns without an id are duplicates if they are
        part of the longest run at the start of `new` that repeats the end of the session, because some clients send
        their history again. The hash includes `said_at` only if the client knew that time. Forgotten turns are not
        stored again: these are turns with forgotten words that were said before the words were forgotten, or that have
        no time and belong to a session that had these words.
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
        """Map each of these client ids that a turn of any session has to whether that turn is forgotten."""
        ...

    def stored_calls(self, space: str, /, session: str, ids: Sequence[str]) -> set[str]:
        """Return those of these ids of a session's tool calls whose result is stored, even if it was forgotten."""
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

        Replaced atoms are not deleted: they get `valid_to` and `superseded_by`. If a current atom has the same text
        (compared without case and white space), the statement is a duplicate, unless it adds something; if it
        supersedes others, it also replaces that atom. Raises NotFound if `supersedes` names an unknown atom,
        InvalidInput if that atom has ended, and Refused if the statement was forgotten after `now`.
        """
        ...

    def atoms(self, space: str, /, ids: Iterable[str]) -> list[Atom]:
        """Return atoms that exist and are not forgotten, including ended atoms, in the order of `ids`."""
        ...

    def standing(self, space: str, /, ids: Iterable[str]) -> dict[str, bool]:
        """Map each of these atoms to whether it is current, without reading its text.

        Unknown and forgotten atoms are left out.
        """
        ...

    def list_atoms(self, space: str, /, *, filters: Filters, after: str | None = None, limit: int = 100) -> list[Atom]:
        """Return atoms that are current (at `filters.as_of`), highest priority first (−1 before all), then oldest."""
        ...

    def count_atoms(self, space: str, /, *, filters: Filters) -> int:
        """Count the atoms that `list_atoms` lists."""
        ...

    def atoms_based_on(self, space: str, /, turn: str) -> list[Atom]:
        """Return the atoms that a turn is evidence for, including ended atoms."""
        ...

    def facts(self, space: str, /, *, filters: Filters, relation: str | None = None, limit: int = 100) -> list[Fact]:
        """Return facts that are current (at `filters.as_of`), ordered by entity, relation and start of validity."""
        ...

    def entities(self, space: str, /, *, prefix: str = "", limit: int = 100) -> list[Entity]:
        """Return entities with a name that begins with `prefix` (without case), most current atoms first."""
        ...

    def entity_names(self, space: str, /) -> dict[str, str]:
        """Map each name of each entity to the main name of that entity, oldest first.

        Entities that only forgotten or quarantined statements mention are left out.
        """
        ...

    def names(self, space: str, /, known_names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Map each of these names to all names of its entity, the main name first.

        Unknown names, and names of forgotten entities, are left out.
        """
        ...

    def related_entities(self, space: str, /, name: str, *, limit: int) -> list[tuple[str, int]]:
        """Return the entities that current atoms mention together with this entity, and the number of these atoms.

        The entity with the most such atoms comes first.
        """
        ...

    def evidence(self, space: str, /, atom: str) -> list[Evidence]:
        """Return all evidence of an atom, its first evidence first; a note is quoted whole."""
        ...

    def atoms_since(self, space: str, /, after: int, *, limit: int, sentences: bool = True) -> list[Atom]:
        """Return atoms with a number above `after`, including ended atoms, oldest first.

        `superseded_by` returns the atoms that these ended. Without `sentences`, atoms that were extracted without a
        model are left out, because the stages that use a model do not work on them.
        """
        ...

    def superseded_by(self, space: str, /, by: Sequence[str]) -> list[Atom]:
        """Return the atoms that these atoms superseded.

        Sentences that were replaced by a statement from the same words are left out, because nothing ceased to be true.
        """
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
        """Map turns (`t8`) and atoms (`a5`) to the results that they cite.

        An atom also cites the results that its turns cite.
        """
        ...

    def cited_by(self, space: str, /, ref: str) -> list[Citation]:
        """Return the turns and atoms that name a ref, then the atoms based on these turns."""
        ...


class JobStore(Protocol):
    """Jobs, which are questions to a model that are leased, answered and committed; and the progress of each stage.

    A commit raises Conflict and stores nothing if the job is done or was leased by another process, because the
    question was answered already, or is being asked again.
    """

    def backlog(self, space: str, /, *, session: str | None = None, limit: int = 1_000) -> list[Backlog]:
        """Return sessions with turns that were not extracted, latest written first."""
        ...

    def flush(self, space: str, /, session: str) -> None:
        """Request the extraction of everything in a session, without waiting for more."""
        ...

    def stage_states(self, space: str, /) -> dict[Stage, StageState]:
        """Return the progress of the stages that have a cursor in the space.

        Stages that never ran and were not requested are left out.
        """
        ...

    def request_stage(self, space: str, /, stage: Stage, reason: str) -> None:
        """Request a stage before it is due. The request ends with the commit of a job that was created after it."""
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
        """Create a job of a stage (for `extract`: of a session), and lease it to `holder` for the time `lease`.

        The same holder with the same basis gets the same job, with a longer lease. Any other unfinished job of the
        stage is replaced; the new job keeps its attempts and error, but has a new id, so that a commit under the old id
        raises Conflict. Returns None if another holder has the lease, if the job is parked and its wait has not ended
        (unless `eager`), or if another job has committed since `basis` was planned. A job with an empty `holder` asks
        no model. Raises NotFound for an unknown session.
        """
        ...

    def park_job(self, space: str, /, id: str, *, error: str, wait: timedelta) -> None:
        """Record that a job failed. Until `wait` is over, `lease_job` leases it only with `eager`.

        Does nothing if the job is gone.
        """
        ...

    def release_job(self, space: str, /, id: str) -> None:
        """Release a job that was not tried, so that the next holder may lease it at once."""
        ...

    def next_retry(self, space: str, /) -> timedelta | None:
        """Return how long until `lease_job` without `eager` may lease an open or parked job; None without jobs."""
        ...

    def stage_logs(self, space: str, /) -> list[Done]:
        """Return the totals of the job log, by stage."""
        ...

    def drafts(self, space: str, /, *, limit: int = 100) -> list[Draft]:
        """Return drafts that have yet to be merged, oldest first."""
        ...

    def unread_turns(self, space: str, /, *, limit: int) -> list[Turn]:
        """Return the next turns of the user for the sentence reader, by number. A commit of `Readings` moves on.

        These are turns after the reader's cursor that no model has read, up to the first turn that waits for the
        background check of quarantine; quarantined turns are left out. Turns before the cursor that were released from
        quarantine since come first.
        """
        ...

    def commit(
        self, space: str, /, work: str | None, output: StageOutput, *, outcome: Outcome, now: datetime
    ) -> Committed:
        """Store the output of a stage, the end of its job `work`, its log entry and its cursor.

        Scenes, a page of the persona and a canvas have no job if a person edited them, and then move no cursor.
        Readings never have a job. If a model has read all the turns of a sentence, its statements replace the sentence.
        Raises Conflict, storing nothing, also if a scene or a canvas is no longer at the version that the output
        expects; InvalidInput if a draft has no evidence, if its quote is not in its turn, or if the name of a new scene
        is taken; and NotFound for an update of an unknown scene.
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
        """Return the rows with any of the query terms. Common terms are left out if there are rarer terms.

        Atoms and chunks that do not pass the filters are left out. Turns that do not pass may be returned, because they
        may be the context of others (see `turn_metadata`). Every turn that passes and has a query term is returned; for
        a common term, only the newest turns. Terms of `also` are returned if they are rare.
        """
        ...

    def turn_metadata(
        self, space: str, /, rows: NDArray[np.int64], *, filters: Filters, reach: int = 0
    ) -> TurnMetadata:
        """Return the metadata of these turns, and which of them pass the filters; unknown numbers are left out.

        The metadata of up to `reach` turns before and after each turn in its session is returned as well. These turns
        are in the same stretch. Notes are neither returned nor counted.
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
        """Do a part of the background work on the indexes; return whether more may be left.

        First, rows with terms of an earlier version are indexed again, newest first, up to `limit` at a time; then the
        index of many vectors is optimised. Searches find everything before, during and after this work. Other writers
        wait for some 20 ms at a time. Several processes may do it at the same time, and any of them may be killed.
        """
        ...

    def drop_vector_index(self, identity: str) -> None:
        """Delete a model's vectors. They can be made again."""
        ...


class TaskStore(Protocol):
    """Raw tool results, records of calls, canvases; edits of message lists and the token savings."""

    def put_ref(self, space: str, /, new: NewRef, *, refuse: bool = True) -> Ref:
        """Store the raw bytes of a result and return its ref; the same bytes are stored once.

        Only an undo restores a forgotten ref. For the bytes of a forgotten ref, Refused is raised; without `refuse`,
        that ref is returned and stays forgotten.
        """
        ...

    def ref(self, space: str, /, id: str) -> Ref:
        """Return a ref; `id` may be the 12 digits without the `r-`. Raises NotFound."""
        ...

    def read_ref(self, space: str, /, id: str) -> bytes:
        """Return the raw bytes. Raises Damaged when the file is missing, torn or does not match its hash."""
        ...

    def unindexed_ref(self, space: str, /, *, passing: Iterable[str] = ()) -> UnindexedRef | None:
        """Return a ref that is not fully indexed, or whose terms are of an earlier version; None if there is none.

        The refs in `passing` are skipped.
        """
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
        """Append a record and commit the next version of its canvas, in one transaction.

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
        """Record that a text of `tokens_kept` tokens replaced a call's result in the context, and store the saving.

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
        """Return edits whose `shown` is in `shown` or whose `after` is in `reaching`, oldest first.

        Edits that name a forgotten ref are left out.
        """
        ...

    def put_message_edits(self, space: str, /, edits: Sequence[MessageEdit], *, seen: int, saving: Saving) -> None:
        """Store edits together with their saving.

        Raises Conflict, storing nothing, if an edit with an id above `seen` shares its `after` with any of them.
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
        """Return all rows that `forget` would forget. Raises the same errors; nothing is changed."""
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
        """Exclude turns, atoms and refs from every search, listing and read; the evidence stays on disk.

        `reach` returns all rows that are forgotten: an atom is forgotten with its facts and its note, or with the last
        turn that it is based on. Forgotten statements are not learned again. `redrawn` are the next versions of
        canvases, without the words of forgotten refs. Raises NotFound for unknown ids, and Conflict if a canvas has
        another version now; then nothing is changed.

        With `how="correction"` the atoms that these explicit statements ended become current again. Raises InvalidInput
        if any of the statements was replaced itself or ended nothing, or if a single-valued fact has another value now.
        """
        ...

    def undo_forget(
        self, space: str, /, tombstone: str, *, now: datetime, redrawn: Sequence[CanvasChange] = ()
    ) -> Tombstone:
        """Restore exactly the rows that were forgotten under a tombstone.

        Undoing a correction ends the same atoms again, unless they have ended since. Raises NotFound if the tombstone
        was undone or purged, and InvalidInput if a single-valued fact has another value now, or if all evidence of an
        atom was forgotten since.
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
        """Erase forgotten content from rows and files, for good.

        The caller then runs `secure_delete` and searches the files for residual matches. Erased turns, atoms and refs
        keep their ids and positions without any words, and everything that quoted them loses those words. Their digests
        are kept, so that the same content is not stored again. Raises Conflict, changing nothing, if a canvas has
        another version now, and NotFound for a tombstone that cannot be purged.
        """
        ...

    def note_recall(self, space: str, /, entry: RecallEntry) -> None:
        """Add an entry to the log of recalls, which keeps the last 500 of a space.

        Does nothing if the space has no rows. The log is not evidence, so it is not exported. A purge erases the
        queries in the log of its space.
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
        """Return policies that have not run for 23 hours; with `eager`, all policies.

        They are recorded as run now, so the caller must run them.
        """
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
        """Return rows that wait for review, newest first; with `decided`, reviewed rows, latest review first.

        With `ids`, return those of these rows that are quarantined, reviewed or labelled (see `Held`). Forgotten rows
        are left out.
        """
        ...

    def may_have_attacks(self, space: str, /) -> bool:
        """Return whether the space may contain the text of an attack.

        This is so if there are chunks of tool results, which are judged only when they are shown, or rows that have or
        had reasons for quarantine.
        """
        ...

    def unjudged(self, space: str, /, *, limit: int) -> list[str]:
        """Return the ids of rows that were quarantined as `UNJUDGED` and not reviewed since, oldest first."""
        ...

    def judge(self, space: str, /, row_reasons: Mapping[str, Sequence[str]], *, now: datetime) -> None:
        """Replace the reason `UNJUDGED` of rows by the reasons found; rows without any reason leave quarantine.

        Rows that were reviewed or forgotten meanwhile stay as they are.
        """
        ...

    def review(self, space: str, /, ids: Sequence[str], verdict: Verdict, *, now: datetime) -> list[Held]:
        """Store the decision on quarantined rows, and return them; a decision may be changed later.

        Raises NotFound, changing nothing, if any of the ids is not that of such a row.
        """
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
        """Return how many rows were added to a space at or after a moment."""
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

    def export_rows(self, spaces: Sequence[str], take: Callable[[str, Row], None]) -> None:
        """Call `take(space, row)` for every row of these spaces that is not forgotten, all from one snapshot.

        Rows are ordered by kind, as `import_rows` requires. An unchanged store always gives the same rows.
        """
        ...

    def import_rows(
        self,
        space: str,
        /,
        rows: Sequence[Row],
        *,
        of: Origin,
        names: Mapping[str, str],
        now: datetime,
    ) -> ImportReport:
        """Store rows that `export_rows` gave elsewhere, and report their local ids. Repeated rows are stored once.

        `names` maps the ids of rows that were imported earlier to their local ids. An atom must come after the turn of
        its first evidence, records in the same call as their canvas, and all versions of a page in one call. Rows that
        were forgotten here are not stored. Raises InvalidInput if a quote is not in its turn.
        """
        ...

    def known_as(self, space: str, /, origins: Sequence[str]) -> dict[str, str]:
        """Map those of these origins that are known here (of imported rows, or of rows of this space) to local ids.

        The id is empty for a row that was forgotten before it was imported.
        """
        ...

    def forgotten_statements(self, space: str, /, statements: Sequence[Sequence[str]]) -> set[int]:
        """Return the indexes of the statements that were forgotten here, as a statement or as a turn.

        Each statement is given as all its wordings; one forgotten wording is enough.
        """
        ...

    def note_origins(self, space: str, /, names: Mapping[str, str]) -> None:
        """Store the local ids of imported rows by origin."""
        ...

    def add_spend(self, spend: Spend) -> None:
        """Record a call to a language model, made from any space: there is one ledger."""
        ...

    def spent(self, *, since: datetime, until: datetime | None = None) -> list[Spent]:
        """Return the totals of calls from `since` up to, but not including, `until`, by purpose and model."""
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
        """Take up to `count` requests from the rate limit of a client; return how many were granted.

        `key` names the client. The limit allows bursts of up to `a_minute` requests and refills at that rate per
        minute. All processes share it.
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
        """Return the line files that were renamed before they were rewritten from the database.

        They were longer than the database's copy, or damaged.
        """
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
        """Merge the segments of the word index and empty the write-ahead log; with `vacuum`, release free pages too.

        The merge is done in steps, so that others can read and write. During a vacuum writers wait some 10 s per GB.
        """
        ...

    def free_bytes(self) -> tuple[int, int]:
        """Return how many bytes of the database are unused, and its size in bytes."""
        ...

    def secure_delete(self, *, patience: float = 10.0) -> bool:
        """Erase deleted content from free pages, indexes and logs of the engine. Writers wait meanwhile.

        Returns False if it has to be called again, because other connections read an older state for `patience`
        seconds, or copies that may have erased words could not be rewritten.
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
