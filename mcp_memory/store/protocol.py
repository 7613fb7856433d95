"""The Store: what any engine must do, verb by verb. This page is the contract; `sqlite/` is one reading.

Model
    Evidence (turns, refs) is appended and hashed, never changed. All else is a projection of it.
    Every verb takes a `space` and sees nothing outside it.
    A verb that writes is one transaction: rows, index entries and files land together or not at all.
    When it returns, the write survives a kill of the process at any moment.

Concurrency
    Verbs are plain functions, safe to call from any thread; several processes may hold the same home.
    Writers queue; nobody waits for readers. A read sees one consistent state.

Failure
    InvalidInput, NotFound, Damaged and StoreUnavailable (see `errors`), and nothing else on purpose.

What the contract does not know: how text is chosen, ranked, summarised or drawn. It stores and finds.
One suite, `tests/store/test_contract.py`, runs against every implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
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
    Stage,
    Turn,
)
from mcp_memory.store import export_model as model
from mcp_memory.store.forgetting import How, Keeping, Policy, Purge, Purged, Reach, Redrawn, Which
from mcp_memory.store.outline import Outline
from mcp_memory.store.purge_search import Traces
from mcp_memory.store.values import (
    Amended,
    Appended,
    Backlog,
    CanvasEdit,
    CanvasGrowth,
    Change,
    Chunk,
    Conflict,
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
    MessageEdit,
    NewAtom,
    NewChunk,
    NewRef,
    Outcome,
    Posting,
    Saved,
    Saving,
    SceneEdit,
    Scored,
    Spend,
    Spent,
    StageState,
    TakenBack,
    TakenStep,
    ThinRecord,
    Token,
    Tombstone,
    UnindexedRef,
    VectorIndex,
    Vectors,
    Verdict,
    Work,
    WrittenAtom,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Admin",
    "Amended",
    "Appended",
    "Backlog",
    "CanvasEdit",
    "CanvasGrowth",
    "Change",
    "Chunk",
    "Conflict",
    "Counts",
    "Done",
    "Draft",
    "EmbeddedStore",
    "Filters",
    "FollowedLog",
    "Grown",
    "Held",
    "Imported",
    "Jobs",
    "Knowledge",
    "Layer",
    "Merging",
    "NewAtom",
    "NewChunk",
    "NewRef",
    "Outcome",
    "Posting",
    "Retention",
    "SceneEdit",
    "Scored",
    "Search",
    "Spend",
    "Spent",
    "StageState",
    "Store",
    "TakenBack",
    "TakenStep",
    "Tasks",
    "ThinRecord",
    "Tombstone",
    "Turns",
    "UnindexedRef",
    "VectorIndex",
    "Vectors",
    "Verdict",
    "Work",
    "WrittenAtom",
]


class Turns(Protocol):
    """Turns (L0), and the imports and logs of clients that they come from."""

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

        Stored once: a turn whose `client_id` and hash the session holds already; and, for turns without one,
        the longest run at the start of `new` that repeats the end of the session (a client that sends its
        history again). `said_at` is part of the hash where the client gave it as known.
        What was forgotten is not stored again: a turn with the same words that was said before that, by its time, or
        that its session held and comes without a time.
        """
        ...

    def turns(self, space: str, /, ids: Iterable[str]) -> list[Turn]:
        """The turns that exist and are not forgotten, in the order asked for."""
        ...

    def session_turns(self, space: str, /, session: str, *, start: int = 0, limit: int = 100) -> list[Turn]:
        """Turns of a session from position `start`, in order. Empty for an unknown session."""
        ...

    def last_turns(self, space: str, /, session: str, *, limit: int, roles: Sequence[Role] = ()) -> list[Turn]:
        """The newest turns of a session (of these roles), oldest first."""
        ...

    def surroundings(self, space: str, /, ids: Iterable[str], *, around: int) -> list[Turn]:
        """These turns, and up to `around` before and after each, every turn once: session by session, in order."""
        ...

    def sessions(self, space: str, /, *, prefix: str = "", limit: int = 100) -> list[SessionInfo]:
        """Sessions that have turns, the one written to last first."""
        ...

    def forgotten_among(self, space: str, /, session: str, new: Sequence[NewTurn]) -> int:
        """How many of these turns `append_turns` would keep out, because they were forgotten. Writes nothing."""
        ...

    def known_client_ids(self, space: str, /, ids: Sequence[str]) -> dict[str, bool]:
        """Those of the ids that a turn of any session has, and whether it is forgotten."""
        ...

    def kept_calls(self, space: str, /, session: str, ids: Sequence[str]) -> set[str]:
        """Those of the ids of tool calls of a session whose result is kept, forgotten or not."""
        ...

    def imported(self, space: str, /) -> list[Imported]:
        """Files whose turns were stored, the last first."""
        ...

    def note_import(self, space: str, /, file: Imported) -> None:
        """Note that all turns of a file are stored."""
        ...

    def followed_logs(self, space: str, /, *, path: str | None = None) -> list[FollowedLog]:
        """Logs that were read (or the one at a path), the one read last first."""
        ...

    def note_followed(self, space: str, /, log: FollowedLog) -> None:
        """Note how far a log was read, in place of what was noted before."""
        ...


class Knowledge(Protocol):
    """Atoms (L1) with facts and entities, scenes (L2), the persona (L3), and what cites a tool result."""

    def add_atom(self, space: str, /, atom: NewAtom, *, now: datetime, vectors: Vectors | None = None) -> WrittenAtom:
        """Store a statement, its evidence (a turn of role `note`) and its fact; close what it replaces.

        Replaced atoms get `valid_to` and `superseded_by` and stay. The same text held true already
        (compared without case and white space) is a duplicate unless the atom brings something new; told again to
        supersede others, it takes the place of its first telling too.
        Raises NotFound when `supersedes` names an atom that is not there, InvalidInput when it is closed, Refused when
        it was forgotten, and `now` is no later than that: what is told anew is taken.
        """
        ...

    def atoms(self, space: str, /, ids: Iterable[str]) -> list[Atom]:
        """The atoms that exist and are not forgotten, closed ones too, in the order asked for."""
        ...

    def list_atoms(self, space: str, /, *, filters: Filters, after: str | None = None, limit: int = 100) -> list[Atom]:
        """Atoms held true (at `filters.as_of`), highest priority first (−1 before all), then oldest first."""
        ...

    def facts(self, space: str, /, *, filters: Filters, relation: str | None = None, limit: int = 100) -> list[Fact]:
        """Facts held true (at `filters.as_of`) by entity, relation, then time."""
        ...

    def entities(self, space: str, /, *, prefix: str = "", limit: int = 100) -> list[Entity]:
        """Entities with a name that begins so (without case), those of most current atoms first."""
        ...

    def evidence(self, space: str, /, atom: str) -> list[Evidence]:
        """All words that an atom rests on, its first evidence first; a note's are all of it."""
        ...

    def atoms_since(self, space: str, /, after: int, *, limit: int) -> list[Atom]:
        """Atoms with numbers over `after`, oldest first, closed ones too; what they closed is found by `replaced`."""
        ...

    def replaced(self, space: str, /, by: Sequence[str]) -> list[Atom]:
        """The atoms that these superseded."""
        ...

    def scenes(self, space: str, /) -> list[Scene]:
        """Scenes as they stand, hottest first."""
        ...

    def scene_versions(self, space: str, /, slug: str) -> list[Scene]:
        """All versions of a scene, the newest first; empty for a slug that never was."""
        ...

    def persona(self, space: str, /) -> PersonaVersion | None:
        """The page as it stands."""
        ...

    def persona_versions(self, space: str, /) -> list[PersonaVersion]:
        """All versions, the newest first."""
        ...

    def put_persona(self, space: str, /, text: str, *, now: datetime, reason: str = "") -> int:
        """Store a page that no model wrote as a new version, and return its number; the same text changes nothing."""
        ...

    def write_persona_file(self, space: str, /, page: str) -> None:
        """Write `persona.md`, unless it reads so already: the page as it stands with its navigation."""
        ...

    def citations(self, space: str, /, sources: Sequence[str]) -> dict[str, list[Citation]]:
        """The results that turns (`t8`) and atoms (`a5`) name, by those that name any; an atom's turns name for it."""
        ...

    def cited_by(self, space: str, /, ref: str) -> list[Citation]:
        """The turns and atoms that name a ref, then the atoms that rest on these turns."""
        ...


class Jobs(Protocol):
    """Questions to a model: leased, answered and committed; how far each stage has come.

    A commit of a stage names its job and stores rows, cursor and log entry in one transaction. It raises Conflict,
    storing nothing, when the job is done or was leased by another: then the question is asked again, or was answered.
    """

    def backlog(self, space: str, /, *, session: str | None = None, limit: int = 1_000) -> list[Backlog]:
        """Sessions with turns that were not extracted, the one written to last first."""
        ...

    def flush(self, space: str, /, session: str) -> None:
        """Ask for the extraction of all that a session holds by now, without waiting for more."""
        ...

    def stage_states(self, space: str, /) -> dict[Stage, StageState]:
        """How far `scenes` and `persona` have come; a stage that never ran is not in it, unless it is wanted."""
        ...

    def want(self, space: str, /, stage: Stage, reason: str) -> None:
        """Ask for a stage out of turn; the next commit of a work that was made after this settles that."""
        ...

    def works(self, space: str, /, *, stage: Stage | None = None) -> list[Work]:
        """Work that is open or parked, oldest first."""
        ...

    def work(self, space: str, /, id: str) -> Work:
        """NotFound when there is none; a done one is found too."""
        ...

    def take_work(
        self,
        space: str,
        /,
        stage: Stage,
        session: str | None,
        basis: str,
        *,
        holder: str,
        until: datetime,
        now: datetime,
        eager: bool = False,
    ) -> Work | None:
        """Make and hold the work of a stage (of a session), in place of any that was left.

        None while another holds it; while it is parked, unless `eager`; and when the stage has come further than the
        basis says it stood, by its `start` (extract) or `after` (scenes). A new work has a new id, so that what is
        committed under an old one is a Conflict; attempts and error carry over. Who holds it and asks with the same
        basis gets the same work, for longer. Without a `holder` it is a work that asks nobody.
        """
        ...

    def park_work(self, space: str, /, id: str, *, error: str, until: datetime) -> None:
        """Note that a work failed, and let nobody (who is not eager) take it until then. Nothing if it is gone."""
        ...

    def release_work(self, space: str, /, id: str) -> None:
        """Give back a work that was not tried, so that the next may take it at once."""
        ...

    def done(self, space: str, /) -> list[Done]:
        """What the log adds up to, by stage."""
        ...

    def drafts(self, space: str, /, *, limit: int = 100) -> list[Draft]:
        """What waits to be merged, oldest first."""
        ...

    def commit_extraction(
        self,
        space: str,
        /,
        work: str,
        *,
        upto: int,
        drafts: Sequence[NewAtom],
        aliases: dict[str, Sequence[str]],
        scene: str,
        outcome: Outcome,
        now: datetime,
    ) -> None:
        """Move the session's cursor to position `upto` and keep what was drawn from the turns before it.

        `aliases` maps a name to further names of the same entity; a name that another entity has stays with it. The
        user is the entity `user`. InvalidInput where a draft has no evidence, or its quote is not in its turn.
        """
        ...

    def commit_merge(
        self,
        space: str,
        /,
        work: str,
        *,
        merged: Sequence[Merging],
        outcome: Outcome,
        now: datetime,
        vectors: Vectors | None = None,
    ) -> list[WrittenAtom]:
        """Turn drafts into atoms, and return those. `vectors` has one row for each Merging that has an atom, in order.

        What an atom supersedes and is closed or gone by now is passed over. So is a Merging whose draft is gone. Where
        a turn of its evidence was forgotten meanwhile, or all of `onto` ended, the draft waits for the next merge.
        """
        ...

    def commit_scenes(
        self,
        space: str,
        /,
        work: str | None,
        *,
        edits: Sequence[SceneEdit],
        upto: int,
        wanted: str | None = None,
        outcome: Outcome,
        now: datetime,
    ) -> None:
        """Apply all edits, or none, and write their files; atoms up to number `upto` are told. `wanted` asks for L3.

        Without a work it is a person's edit: the cursor stays. NotFound for a slug that is to be updated and is not
        there, InvalidInput for one that is to be made and is. A merge makes its scene where there is none.
        """
        ...

    def commit_persona(
        self, space: str, /, work: str, text: str, *, reason: str, upto: int, outcome: Outcome, now: datetime
    ) -> int:
        """Store a model's page as a new version and return its number; `upto` as for scenes."""
        ...

    def commit_canvas(
        self,
        space: str,
        /,
        work: str,
        *,
        canvas: CanvasRow | None,
        expected: int,
        edits: Sequence[CanvasEdit],
        outcome: Outcome,
        now: datetime,
    ) -> None:
        """Write a canvas as a model would have it, with the edits that made it so; None leaves it as it is.

        Conflict, storing nothing, where it is no longer at version `expected`.
        """
        ...

    def commit_summaries(
        self,
        space: str,
        /,
        work: str,
        *,
        amended: Sequence[Amended],
        canvases: Sequence[CanvasRow],
        upto: int,
        outcome: Outcome,
        now: datetime,
    ) -> None:
        """Give records better summaries: rows, a further line each in its session's file, and canvases that show them.

        Records up to number `upto` were considered. Conflict, storing nothing, where a canvas is no longer at its
        version; one that an agent or a model summarised meanwhile is passed over.
        """
        ...

    def hold(self, name: str, holder: str, *, until: datetime, now: datetime) -> bool:
        """Take or keep a lease of the home until then; False while another holds it."""
        ...

    def let_go(self, name: str, holder: str) -> None:
        """End a lease that one holds."""
        ...

    def pause(self, reason: str, *, now: datetime) -> None:
        """Have no process on this home ask a language model, until `resume`."""
        ...

    def resume(self) -> None: ...

    def paused(self) -> tuple[str, datetime] | None:
        """Why and since when no model is asked."""
        ...


class Search(Protocol):
    """Candidates for a search, and the indexes they come from. How they are ranked is not known here."""

    def newest(self, space: str, /, layer: Layer) -> int:
        """The number of the space's row stored last; rows stored later have higher ones."""
        ...

    def size(self, space: str, /, layer: Layer) -> int:
        """How many rows of a layer a space has, notes left out; turns and atoms that are forgotten count."""
        ...

    def postings(
        self, space: str, /, layer: Layer, wanted: Sequence[str], *, filters: Filters, also: Sequence[str] = ()
    ) -> list[Posting]:
        """Where wanted terms (of `text.index_terms`) stand, leaving out common ones while there are rarer ones.

        Atoms and chunks that do not pass the filters are left out. Turns that do not pass are not, since they are
        what is said around others: `outline` tells; but every turn that passes and holds a wanted term is in one of
        them, of a common term the newest. Terms of `also` are given where they are rare.
        """
        ...

    def outline(self, space: str, /, *, filters: Filters) -> Outline:
        """The outline of all turns of a space, and which of them pass the filters."""
        ...

    def nearest(self, space: str, /, layer: Layer, query: Vectors, *, filters: Filters, limit: int) -> list[Scored]:
        """Rows nearest to the one vector given, by cosine, among those its model has embedded."""
        ...

    def vectors_of(
        self, space: str, /, layer: Layer, ids: Sequence[str], identity: str
    ) -> Mapping[str, NDArray[np.float32]]:
        """Vectors of length one that a model made of some rows; those that it has not embedded are left out."""
        ...

    def vector_indexes(self) -> list[VectorIndex]:
        """Every model with rows here, most complete first."""
        ...

    def ensure_vector_index(self, identity: str, dimensions: int) -> None:
        """Make room for a model's vectors. InvalidInput when it is there with other dimensions."""
        ...

    def embeddable(self) -> int:
        """How many rows, of all spaces, a model has to embed."""
        ...

    def unembedded(self, identity: str, *, limit: int) -> list[tuple[str, str]]:
        """(id, text) of rows, of all spaces, that the model has yet to embed, oldest first.

        The text of a turn is `text.spoken`: its words and who said them.
        """
        ...

    def put_vectors(self, ids: Sequence[str], new: Vectors) -> None:
        """Add vectors of rows; those forgotten or embedded meanwhile are passed over."""
        ...

    def extend_sketches(self) -> bool:
        """Do a share of the work that keeps the search of many vectors fast; True while there is more to do.

        Searches are complete before, meanwhile and after; it is for the background, where a second is no matter.
        """
        ...

    def drop_vector_index(self, identity: str) -> None:
        """Delete a model's vectors. They can be made again."""
        ...

    def stale_terms(self) -> int:
        """About how many rows, of all spaces, have the terms of an earlier version of `text.index_terms`.

        They are found by those terms until they are renewed.
        """
        ...

    def renew_terms(self, *, limit: int) -> bool:
        """Index up to `limit` such rows anew, newest first, and tell whether to call again.

        Other writers wait for some 20 ms at a time. Any number of processes may do it at once, and be killed.
        """
        ...


class Tasks(Protocol):
    """Raw tool results, records of calls, canvases; edits of message lists and what all of it saved."""

    def put_ref(self, space: str, /, new: NewRef, *, refuse: bool = True) -> Ref:
        """Write the raw bytes to `refs/` and return how they are addressed; the same bytes are kept once.

        A forgotten ref comes back by the undoing alone: its bytes are Refused or, unless `refuse`, left forgotten.
        """
        ...

    def ref(self, space: str, /, id: str) -> Ref:
        """NotFound when there is none; `id` may be the 12 digits without the `r-`."""
        ...

    def read_ref(self, space: str, /, id: str) -> bytes:
        """The raw bytes. Damaged when the file is missing, torn or does not match its hash."""
        ...

    def unindexed_ref(self, *, passing: Iterable[tuple[str, str]] = ()) -> UnindexedRef | None:
        """A ref of any space whose lines are not in the index, or with terms of an earlier version of them.

        `passing` names those, by space and id, that are to be left for another time.
        """
        ...

    def refs_waiting(self) -> int:
        """How many such there are."""
        ...

    def put_chunks(self, space: str, /, ref: str, new: Sequence[NewChunk], *, start: int, complete: bool) -> bool:
        """Add the next chunks of a ref, those that begin at byte `start`; `complete` when they are its last.

        Where the ref is forgotten, complete already, or has come to another byte than `start`, nothing is done and
        False is returned.
        """
        ...

    def chunks(self, space: str, /, ids: Iterable[str]) -> list[tuple[Chunk, bytes]]:
        """Chunks and their raw bytes, in the order asked for.

        Those that are gone, or whose file is missing or torn, are left out; the bytes are not checked against a hash.
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
        move: str | None = None,
        edits: Sequence[CanvasEdit] = (),
    ) -> None:
        """Append the record (a row, a line of its session's file) and write the canvas, in one transaction.

        `move` is kept with the record, and `edits` as done just before it: from them the canvas can be drawn anew.

        `expected` is the canvas's version that the caller read, 0 for a new one; `canvas.version` is ignored.
        Raises Conflict when the canvas has moved on, or a new one's number is taken.
        The canvas becomes its session's active one.
        """
        ...

    def note_replaced(
        self, space: str, /, *, session: str, node: str, ref: str, tokens_raw: int, tokens_kept: int
    ) -> bool:
        """Have the last such record say what its result would have taken of a context, and what is there instead.

        False where it says so already, or there is none.
        """
        ...

    def save_canvas(
        self,
        space: str,
        /,
        canvas: CanvasRow,
        *,
        expected: int,
        edits: Sequence[CanvasEdit] = (),
        undo: Sequence[int] = (),
        now: datetime | None = None,
    ) -> None:
        """Write a canvas that gained no record, with the edits that made it so. Which canvas is active stays as it is.

        `undo` has the numbers of earlier edits that count no more, from `now` on.
        """
        ...

    def canvas_history(self, space: str, /, number: int) -> list[TakenStep | CanvasEdit]:
        """All that made a canvas what it is, in order; edits that were undone too. Empty where there is none."""
        ...

    def last_move(self, space: str, /, node: str) -> str | None:
        """The `move` of a node's newest record; None where it was not kept, or there is none."""
        ...

    def activate(self, space: str, /, session: str, number: int | None, *, now: datetime) -> None:
        """Make a canvas its session's active one, or none."""
        ...

    def active_canvas(self, space: str, /, session: str | None = None) -> CanvasRow | None:
        """The active canvas of a session; with None, the one of the space that was active last."""
        ...

    def canvas(self, space: str, /, number: int) -> CanvasRow:
        """NotFound when there is none."""
        ...

    def canvases(
        self, space: str, /, *, session: str | None = None, label: str | None = None, limit: int = 100
    ) -> list[CanvasRow]:
        """Canvases, the one updated last first."""
        ...

    def next_canvas_number(self, space: str, /) -> int:
        """One more than the highest there is; `commit_step` says Conflict if another took it."""
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
        """Records in the order they were made. `node` takes `003-N4`, or `003` for a whole canvas."""
        ...

    def recorded(self, space: str, /) -> int:
        """How many records there are."""
        ...

    def canvas_growth(self, space: str, /, *, since: datetime) -> list[CanvasGrowth]:
        """Canvases touched `since` that gained records after a model last looked them over, most first."""
        ...

    def thin_records(
        self, space: str, /, *, after: int, since: datetime, most_score: int, least_tokens: int, limit: int
    ) -> list[ThinRecord]:
        """Records after number `after` whose summary says little of a large result that is text, oldest first.

        Those that an agent or a model summarised are left out, and canvases that were not touched `since`.
        """
        ...

    def summarised_by_program(self, space: str, /, numbers: Sequence[int]) -> list[ThinRecord]:
        """Those of the records whose summary a program wrote, and whose ref is not forgotten, in order."""
        ...

    def message_edits(
        self, space: str, /, *, shown: Sequence[str] = (), reaching: Sequence[str] = ()
    ) -> list[MessageEdit]:
        """Edits that show one of these digests, or reach to one of these places; oldest first.

        Those that name a ref which was forgotten are not among them.
        """
        ...

    def put_message_edits(self, space: str, /, edits: Sequence[MessageEdit], *, seen: int, saving: Saving) -> None:
        """Store edits together with what they save.

        Conflict, storing nothing, when another of a higher id than `seen` reaches to one of their places by now.
        """
        ...

    def add_saving(self, space: str, /, saving: Saving) -> None: ...

    def savings(self, space: str, /, *, since: datetime | None = None) -> list[Saved]:
        """What savings come to, by kind."""
        ...


class Retention(Protocol):
    """Forgetting, undo and purge; retention policies; quarantine and review."""

    def matching(self, space: str, /, which: Which) -> list[str]:
        """Ids of all turns, atoms and refs for which all of `which` holds.

        Terms stand in the words of a turn or atom, in a run of lines of a ref. Where a session or a time is asked for,
        atoms are those that were told in it: what was drawn goes with the turns that it rests on.
        """
        ...

    def reach(self, space: str, /, ids: Sequence[str]) -> Reach:
        """All that would go if these were forgotten. Raises as `forget` does; nothing is changed."""
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
        redrawn: Sequence[Redrawn] = (),
    ) -> Tombstone:
        """Take turns, atoms and refs out of every search, listing and read; the evidence stays on disk.

        What goes is what `reach` says: an atom with its facts and its note, and with the last turn that it rests on. It
        is not learned again. `redrawn` are canvases without what told of the refs; Conflict, and nothing is done, where
        one has moved on. NotFound names the ids that are not there, and nothing is done.
        """
        ...

    def undo_forget(
        self, space: str, /, tombstone: str, *, now: datetime, redrawn: Sequence[Redrawn] = ()
    ) -> Tombstone:
        """Bring back what it took, and nothing else. NotFound for another's, an undone or a purged one.

        InvalidInput where a single-valued fact has another value now, or all that an atom rests on was forgotten since.
        """
        ...

    def tombstones(self, space: str, /) -> list[Tombstone]:
        """All that was ever forgotten, undone ones too, oldest first."""
        ...

    def purge(self, space: str, /, what: Purge, *, now: datetime) -> Purged:
        """Erase what was forgotten from rows and files, for good; `shred` and a search for it have to follow.

        It is still known again: turns, atoms and refs keep their ids and places and no words, and what told of them
        loses the words that did.
        Conflict, and nothing is done, where a canvas has moved on. NotFound for a tombstone that cannot be purged.
        """
        ...

    def unproven(self) -> list[str]:
        """Purges, each by its first tombstone, that nobody noted as proven: they were killed, or are under way."""
        ...

    def note_proven(self, purges: Sequence[str]) -> None:
        """Note of purges that what they erased was shredded and looked for, or cannot be looked for any more."""
        ...

    def policies(self, space: str, /) -> list[Policy]:
        """How long the space keeps what; empty where nothing was set."""
        ...

    def put_policy(self, space: str, /, what: Keeping, days: int | None, *, now: datetime) -> None:
        """Set or, with None, take away a policy."""
        ...

    def due_policies(self, space: str, /, *, now: datetime, eager: bool = False) -> list[Policy]:
        """Policies that nobody followed today (all, where `eager`); whoever is given them is the one who follows."""
        ...

    def overdue(self, space: str, /, what: Keeping, *, before: datetime, limit: int) -> list[str]:
        """Ids of what came in before that moment: turns, results, or tombstones of policies.

        Turns and results that a statement rests on are not among them: they stay.
        """
        ...

    def count_overdue(self, space: str, /, what: Keeping, *, before: datetime) -> tuple[int, int]:
        """How many `overdue` names, and how many more stay, as a statement rests on them."""
        ...

    def note_kept(self, space: str, /, what: Keeping, took: int) -> None:
        """Count what a policy took."""
        ...

    def put_aside(self, space: str, /, found: Mapping[str, Sequence[str]], *, now: datetime) -> None:
        """Quarantine turns and atoms (`t8`, `a5`) for the reasons found; what was quarantined before stays as it is.

        What comes with `NewTurn.held` or `NewAtom.held` is held from the moment it is stored.
        """
        ...

    def held(self, space: str, /, ids: Iterable[str] | None = None, *, limit: int = 100) -> list[Held]:
        """What waits for review, the newest first; with ids those of them that were ever held, whatever was decided.

        Forgotten ones are left out.
        """
        ...

    def held_count(self, space: str, /) -> int:
        """How many wait for review."""
        ...

    def review(self, space: str, /, ids: Sequence[str], verdict: Verdict, *, now: datetime) -> list[Held]:
        """Decide of what is held; a decision may be changed.

        NotFound names what was never held, and nothing is done.
        """
        ...


class Admin(Protocol):
    """The home: spaces, tokens, the usage ledger, the change feed, export and import."""

    def close(self) -> None:
        """Release files and threads. Safe to call twice; the store cannot be used afterwards."""
        ...

    def spaces(self) -> list[str]:
        """Spaces that hold anything, by name."""
        ...

    def counts(self, space: str, /) -> Counts:
        """What the space holds."""
        ...

    def grown(self, space: str, /, *, since: datetime) -> Grown:
        """How much came to the space at or after a moment."""
        ...

    def last_change(self) -> int:
        """A number that grows with every commit of any process; cheap enough to poll."""
        ...

    def changes(self, after: int, *, space: str | None = None) -> list[Change]:
        """What changed since `last_change()` answered `after`, each topic once."""
        ...

    def home_id(self) -> str:
        """What this memory is called in what is exported from it."""
        ...

    def carry_out(self, spaces: Sequence[str], take: Callable[[str, model.ExportedRow], None]) -> None:
        """Hand over, with its space, every row of spaces that was not forgotten, all as of one moment.

        Each kind together, in the order in which `take_in` wants them; the same store gives the same rows.
        """
        ...

    def take_in(
        self,
        space: str,
        /,
        rows: Sequence[model.ExportedRow],
        *,
        of: model.Origin,
        names: Mapping[str, str],
        now: datetime,
    ) -> model.ImportReport:
        """Store rows that `carry_out` gave elsewhere, each once however often it comes, and say how they are called.

        `names` are those of rows that came before, which these name. Atoms stand behind the turn that they first rest
        on, records come with their canvas, versions of a page together. What was forgotten here is not taken.
        InvalidInput where an atom quotes what its turn does not say.
        """
        ...

    def known_as(self, space: str, /, origins: Sequence[str]) -> dict[str, str]:
        """How rows are called here that came from elsewhere (or are of this space), by those origins that are known.

        Nothing stands for a row that was forgotten before it came.
        """
        ...

    def were_forgotten(self, space: str, /, statements: Sequence[Sequence[str]]) -> set[int]:
        """The places of statements, each in all its wordings, that were forgotten here as a statement or a turn."""
        ...

    def note_origins(self, space: str, /, names: Mapping[str, str]) -> None:
        """Remember how rows of elsewhere are called here."""
        ...

    def add_spend(self, spend: Spend) -> None:
        """Record a call to a language model, made from any space: there is one bill."""
        ...

    def spent(self, *, since: datetime, until: datetime | None = None) -> list[Spent]:
        """What calls at or after a moment, and before another, came to, by purpose, then model."""
        ...

    def add_token(self, token: Token) -> None:
        """Keep a token; it belongs to the home. InvalidInput where one of its name is not revoked."""
        ...

    def token(self, id: str) -> Token | None:
        """A token, revoked and expired ones too; cheap enough to be asked at every request."""
        ...

    def tokens(self) -> list[Token]:
        """All tokens that ever were, the oldest first."""
        ...

    def revoke_token(self, id: str, *, now: datetime) -> None:
        """Have a token open nothing any more, in any process. Nothing happens to one that is revoked or not there."""
        ...

    def note_token_used(self, id: str, *, now: datetime) -> None:
        """Note that a token was used, where that is not noted of the last hour."""
        ...

    @property
    def read_only(self) -> str | None:
        """Why nothing can be written here, for a reader; None where it can. Every verb that writes raises then."""
        ...


class Store(Turns, Knowledge, Jobs, Search, Tasks, Retention, Admin, Protocol):
    """One home. See the module docstring for what holds of every verb."""


class EmbeddedStore(Store, Protocol):
    """A store in files of this machine: what only such an engine can do."""

    def schema(self) -> str:
        """The name of the schema the store is at."""
        ...

    def folder(self, space: str, /) -> Path:
        """Where the files of a space are."""
        ...

    def problems(self) -> list[str]:
        """Everything that `doctor` should tell: damaged rows, files that are missing, torn or strange."""
        ...

    @property
    def taken_back(self) -> Sequence[TakenBack]:
        """What the files gave back as this store was opened; the canvases among it are to be drawn anew."""
        ...

    def recovered(self, space: str, /) -> list[TakenBack]:
        """What was taken back from the files of a space, for the database had lost it; the last first."""
        ...

    def set_aside(self, space: str, /) -> list[str]:
        """The names of files beside those of a space that hold lines which were moved aside."""
        ...

    def snapshot(self, to: Path) -> None:
        """Copy the database to a new file, as it is at one moment; others read and write meanwhile."""
        ...

    def misnamed(self) -> dict[str, str]:
        """Return the folders whose names are no space's, each with the space whose lines it has."""
        ...

    def mend(self, set_aside: Callable[[Path], object], *, everything: bool = False) -> list[str]:
        """Make indexes and files that `problems` tells of anew from the rows, and say what was mended.

        Files that something else takes the place of are handed to `set_aside`, which moves them. With `everything` all
        line files are brought to what the rows say. What files that were moved aside hold is taken back first.
        """
        ...

    def compact(self, *, vacuum: bool) -> None:
        """Bring the word index into one piece and empty the log of writes; with `vacuum`, give free pages back too.

        Others read and write meanwhile, in shares; during a vacuum writers wait, some 10 s for each GB.
        """
        ...

    def free_bytes(self) -> tuple[int, int]:
        """How much of the database nothing uses, and how large it is."""
        ...

    def shred(self, *, patience: float = 10.0) -> bool:
        """Leave nothing of what was erased in free space, indexes and logs of the engine. Writers wait meanwhile.

        False where others read an older state for so many seconds: then it is to be called again.
        """
        ...

    def excuse(self, traces: Traces) -> list[str]:
        """Take from traces all that what is kept says too, in rows and refs, and return what says it."""
        ...
