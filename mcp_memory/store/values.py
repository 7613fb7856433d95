"""Frozen values that the functions and methods of a store take and return, in addition to the domain types of `types`.

They include edits of message lists, token savings and model usage, and access tokens for HTTP with three rights, each
of which includes the previous rights. The store has only the SHA-256 of a token's secret; the secret has 256 random
bits, so a slow password hash is not needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, NamedTuple

from mcp_memory.core.rights import Right
from mcp_memory.core.types import (
    Atom,
    CanvasRow,
    Evidence,
    Kind,
    Label,
    MaskedPlace,
    Record,
    Role,
    SceneAction,
    Source,
    Stage,
    StepStatus,
    Turn,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Layer = Literal["turn", "atom", "chunk"]
"""A kind of row with a word index: a turn, an atom, or a chunk of a tool result. Chunks have no vectors."""


class Conflict(Exception):
    """Another writer committed first: read again, decide again, commit again. Never shown to a user."""


DONE = "done"
"""The reason stored with a promise that ended because it was kept (`Atom.closed_because`)."""
READ_BY_A_MODEL = "A model has read these words."
"""Why a sentence ended: after a model had read its words, it was replaced or withdrawn."""
STATED_AGAIN = "It was stated again in the same words."
"""Why a sentence ended: it is an explicit statement now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """Embeddings of the rows given with them, in order; `data` is float32 of shape (rows, dimensions)."""

    identity: str
    data: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The result of appending turns: the new turns, and the number of turns that were stored before."""

    stored: list[Turn]
    duplicates: int
    session: str
    forgotten: int = 0
    """Turns that were forgotten and sent again."""
    undistilled: int = 0
    """Turns of the space that no extraction has read, if they were to be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Filters of a search, applied before ranking. None means any.

    `since` (inclusive) and `until` (exclusive) are compared with the `said_at` of turns, the `valid_from` of atoms and
    the `timestamp` of results. `as_of` selects atoms that were valid at that moment, and results that were taken by
    then; None means now. `session`, `project` and `client` apply to turns and results, `role` to turns only. `kind`,
    `entity` and `scene` apply to atoms only: `entity` is any name, compared without case, of an entity that the atom
    mentions; `scene` is a page that cites the atom (`scene_atoms` lists the atoms of a scene that is not stored).
    `upto` is a row number: newer rows are left out, so that later pages of a query see the same rows.
    """

    session: str | None = None
    project: str | None = None
    client: str | None = None
    role: Role | None = None
    kind: Kind | None = None
    entity: str | None = None
    scene: str | None = None
    scene_atoms: tuple[str, ...] | None = field(default=None, repr=False)  # not part of what a cursor identifies
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    upto: int | None = None
    unheld: bool = False
    """Leave out atoms that wait for review."""
    ended: bool = False
    """Without `as_of`: include ended atoms, except sentences that a statement replaced."""
    only_ended: bool = False
    """With `ended`: only ended atoms."""
    at: datetime | None = None
    """Without `as_of` and `ended`: the present moment. Atoms that end later pass; if None, atoms with an end do not."""
    label: Label | None = None
    """Atoms only: the label."""
    sentences: bool = True
    """Whether atoms that were extracted without a model pass."""
    least_priority: int | None = None
    """Atoms only: the least priority; a negative priority is above all others."""
    learned_since: datetime | None = None
    """Atoms only: the earliest moment at which they were stored."""


class NearestQuery(NamedTuple):
    """A search by meaning: the nearest `limit` rows that pass the filters. `vectors` has one row."""

    vectors: Vectors
    filters: Filters
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A search hit. A higher score is better; scores of different kinds of search are not comparable."""

    id: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """How many rows a layer of a space has, and the number of the newest row, or 0.

    The other fields are for turns only: the number of sessions with a turn, the mean size of a turn in bytes of UTF-8,
    and the sorted names of speakers.
    """

    rows: int
    newest: int
    sessions: int = 0
    mean_size: float = 0.0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posting:
    """The rows with a term, each once, as row numbers (812 for t812).

    `documents` counts all rows of the layer with the term. It is greater than the number of `rows` for a common term,
    of which only the newest rows are returned.
    """

    term: str
    rows: NDArray[np.int64]
    documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAtom:
    """An atom to store.

    Without `evidence` it is an explicit statement: its text is appended to the session's turns and the journal as a
    note, which becomes its evidence. With `evidence` it was extracted from the quoted turns, which may arrive in any
    order, so it may be stored as already ended, superseded by a stored atom (`store.sql.supersession`).
    """

    kind: Kind
    text: str
    priority: int
    confidence: float
    session: str
    valid_from: datetime
    entity: str | None = None
    relation: str | None = None
    value: str | None = None
    single_valued: bool = False
    """Whether its relation has one value at a time, so that the atom supersedes an older open value."""
    supersedes: Sequence[str] = ()
    because: str = ""
    """Why it supersedes other atoms. Without a reason, a promise gets `DONE`, unless a new promise supersedes it."""
    cites: Sequence[str] = ()
    """Results that support it, in addition to the results its text names: refs, with or without lines, or nodes."""
    valid_to: datetime | None = None
    """When it stopped being true, if that is known; an end in the future is ignored.

    An atom with an end neither ends another value of its fact nor is ended by another value.
    """
    evidence: Sequence[Evidence] = ()
    entities: Sequence[str] = ()
    """The entities it mentions, by any of their names; new names become entities."""
    source: Source = "user"
    """The speaker of the statement; of several, the most trusted."""
    held: Sequence[str] = ()
    """Why it waits for review (see `quarantine_rows.list_quarantined`); if all are `DOUBTS`, it is only labelled."""
    label: Label | None = None
    """The kind of sentence, see `Atom.label`."""
    reader: int | None = None
    """The version of the sentence reader (`longterm.reader`) that extracted it; None for other atoms."""


Verdict = Literal["released", "kept"]
"""The review decision on a quarantined row: it may be recalled, or stays quarantined."""

DOUBTS = frozenset(("other_value", "contradicted"))
"""Reasons that only label a row: a check is not sure that the user's words support it."""


def quarantines(reasons: Iterable[str]) -> bool:
    """Return whether these reasons quarantine a row. A row with doubts only is recalled, with a label."""
    return not DOUBTS.issuperset(reasons)


UNJUDGED = "unjudged"
"""The reason of a quarantined row that was not judged yet; such rows are the queue of the background check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A turn or atom with reasons against it, and the review decision.

    Without a decision, or with `kept`, it is quarantined: left out of automatic recall. `labelled` rows have only
    `DOUBTS` as reasons; they are recalled, and need no review.
    """

    id: str
    reasons: tuple[str, ...]
    at: datetime
    verdict: Verdict | Literal["labelled"] | None = None
    reviewed_at: datetime | None = None

    @property
    def is_quarantined(self) -> bool:
        return self.verdict in (None, "kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Counts of the turns of users and assistants in a session that no model has read yet, from position `start` on."""

    session: str
    start: int
    turns: int
    asked: int
    """The number of these turns that are from the user."""
    batches: int
    """How often turns of this session have been extracted."""
    last: datetime
    """When the newest turn was stored."""
    flush: int
    """The position up to which `flush` has requested extraction (exclusive)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A job with an id such as `w12`: a question to a model.

    `basis` is JSON from which its stage can make the question again. An `open` job is leased until `until`, by the
    clock of the database; after that any process may lease it. A `parked` job has failed `attempts` times, last with
    `error`, and waits until `until`. A `done` job is in the log, with its `outcome`.
    """

    id: str
    stage: Stage
    session: str | None
    basis: str
    state: Literal["open", "parked", "done"]
    holder: str
    until: datetime = field(compare=False)
    attempts: int
    error: str | None
    at: datetime
    done_at: datetime | None = None
    outcome: Outcome | None = None


DISTIL = "distil"
"""The queue of the scheduler."""

INDEX = "index"
"""The kind of the queues of indexing, one for each model of vectors (`word_index.index_queue`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """The standbys of a database: how many are connected, and whether commits wait for one.

    `lag` is how many bytes of the log the slowest has not replayed; None if the user may not see that.
    """

    connected: int
    is_required: bool
    lag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A space that a worker of a queue has claimed; `token` distinguishes this claim from later claims.

    `age` is how long the space had been due, by the clock of the database.
    """

    queue: str
    space: str
    token: str
    age: timedelta


Outcome = dict[str, int]
"""Counts of a job's results, such as `turns`, `skipped`, `drafts` or `refused`, depending on its stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An extracted atom that waits to be merged with the stored atoms.

    It has an id such as `d7`. `job` is the id of the job that extracted it.
    """

    id: str
    atom: NewAtom
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """How a draft is merged with the stored atoms.

    If `atom` is None, the draft repeats the stored atoms `onto`: they get its evidence, and their confidence grows; if
    the open atoms of `onto` are sentences, the draft is stored as an atom instead, with their evidence. Otherwise
    `atom` is stored and ends the atoms that it supersedes, and `onto` is empty.
    """

    draft: str
    atom: NewAtom | None
    onto: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneEdit:
    """The new version of a scene, already validated. With the action `delete`, title and texts may be empty."""

    action: SceneAction
    slug: str
    reason: str
    title: str = ""
    summary: str = ""
    body: str = ""
    heat: int = 1
    atoms: Sequence[str] = ()
    entities: Sequence[str] = ()
    version: int | None = None
    """The version that it is based on, if required: the commit raises Conflict if another version is current."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The output of extraction, the first half of L1: drafts from the turns of sessions.

    `upto` maps each session to the position up to which it was read (exclusive). `aliases` maps a name to further names
    of the same entity; names that belong to another entity already are ignored. The user is the entity `user`.
    """

    upto: Mapping[str, int]
    drafts: Sequence[NewAtom]
    aliases: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """The output of merging, the second half of L1: what becomes of each draft.

    `vectors` has one row for each Merging that has an atom, in order. A Merging whose draft no longer exists is
    skipped, and so are superseded atoms that have ended or no longer exist. If a turn of the evidence was forgotten, or
    all atoms of `onto` have ended, the draft waits for the next merge.
    """

    merged: Sequence[Merging]
    vectors: Vectors | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneChanges:
    """The output of L2: edits of scenes, from the atoms up to number `upto`.

    `wanted` is the reason to request L3, or None.
    """

    edits: Sequence[SceneEdit]
    upto: int = 0
    wanted: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaPage:
    """The output of L3: the next version of the persona page, from the atoms up to number `upto`."""

    text: str
    reason: str = ""
    upto: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The output of the sentence reader: statements from `turns` of the user.

    `turns` has at least one id. `vectors` has one row for each of the `atoms`, in order. Statements are left out if
    their words or any of their turns were forgotten, or if a model has read their turns in the meantime.
    """

    turns: Sequence[str]
    atoms: Sequence[NewAtom]
    vectors: Vectors | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasPatch:
    """The next versions of a canvas that a model proposes, in order; empty if nothing changes.

    The first version is based on the version that the model read.
    """

    changes: Sequence[CanvasChange] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summaries:
    """Better summaries for records up to number `upto`, and the next versions of the canvases that show them.

    Records that an agent or a model summarised meanwhile are skipped.
    """

    amended: Sequence[Amended]
    canvases: Sequence[CanvasRow]
    upto: int


StageOutput = Extraction | Merge | SceneChanges | PersonaPage | CanvasPatch | Summaries | Readings


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The rows that a commit stored: the atoms of a merge or of readings, or the version of the persona page."""

    atoms: Sequence[WrittenAtom] = ()
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageState:
    """The progress of a stage in a space.

    `position` is the number of the last atom that the stage has processed (of the last turn for `read`, of the last
    record for `summaries`); `at` is the time of the last run.
    """

    position: int
    at: datetime
    wanted: str | None
    """Why it was requested before it was due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Totals of the job log of a stage. `works` counts all jobs, `asked` those that asked a model."""

    stage: Stage
    works: int
    asked: int
    last: datetime
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A file whose turns were stored; `modified` is its mtime in milliseconds."""

    path: str
    sha256: str
    modified: int
    turns: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTurn:
    """A stored turn with a client's id. `content` is None if it was purged, `said_at` if the client gave no time."""

    session: str
    content: str | None
    said_at: datetime | None
    forgotten: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedLog:
    """The progress of reading a client's log. `head` and `tail` are hashes that detect a replaced file.

    The log was read up to `offset` (bytes); `state` is JSON with what the reader has to know of the lines before it.
    """

    path: str
    client: str
    session: str
    offset: int
    head: str
    tail: str
    state: str
    at: datetime


PROJECT_FILE = "project-file"
"""Stands for the client of a log, and the tool and session of a result, if these are a file of a project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """A file with instructions or notes for agents, and the ref with its current content.

    `bytes` and `modified` (mtime in nanoseconds) detect a change; `project` is the folder of its project.
    """

    path: str
    project: str
    ref: str
    bytes: int
    modified: int
    at: datetime

    @property
    def label(self) -> str:
        """The file for readers: `docs/AGENTS.md of /home/maya/web`."""
        path, project = PurePath(self.path), PurePath(self.project)
        name = path.relative_to(project) if path.is_relative_to(project) else PurePath(*path.parts[-2:])
        return f"{name.as_posix()} of {project}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenAtom:
    """A stored atom, and the atoms that it replaced.

    If `duplicate` is True, the statement was already stored as `atom`, and no new atom was stored.
    """

    atom: Atom
    replaced: list[Atom]
    duplicate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """Rows forgotten together. `ids` are excluded from every search and listing until it is undone."""

    id: str
    ids: list[str]
    reason: str
    at: datetime
    how: str = "ids"
    undone: bool = False
    purged: bool = False
    undone_at: datetime | None = field(default=None, compare=False)
    took: tuple[str, ...] = field(default=(), compare=False)
    """The ids that it excluded, including notes; kept after it was undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRef:
    """A raw result to store in `refs/`. `data` is stored byte for byte; `masked` lists the places of secrets in it."""

    data: bytes
    tool: str
    arguments: object
    tool_call_id: str | None
    session: str
    timestamp: datetime
    content_type: str
    masked: Sequence[MaskedPlace] = ()

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def id(self) -> str:
        """The id of its ref, unless another result has that id already; then a longer id is chosen."""
        return f"r-{self.sha256[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadedResult:
    """A result to store together with its step.

    `chunks` are the chunks to index, or None if the result is indexed in the background. `left` is the next version of
    the canvas that the session leaves for the canvas of this step. `saving` is the entry for the ledger.
    """

    new: NewRef
    chunks: Sequence[NewChunk] | None = None
    left: CanvasChange | None = None
    saving: Saving | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasChange:
    """The next version of a canvas.

    `row` has its new content and the version it is based on; `kind` is the kind of change. `detail` is the number of
    the reverted version for `undone`, and the ids of the forgotten rows as JSON for `forgotten`.
    """

    row: CanvasRow
    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasVersion:
    """A version of a canvas. `work` is the id of the job that made it, if any. If `is_erased`, its text was purged."""

    number: int
    kind: str
    detail: str
    label: str
    work: str | None = None
    is_erased: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenStep:
    """A record of a step, and the change that its call made to the canvas.

    `step` is the JSON of a `shortterm.canvas.placement.StepNote`, or None if the call changed nothing. A record that
    was forgotten still has its text here.
    """

    record: Record
    step: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChunk:
    """A run of lines of a ref to index.

    `lines` are the first and the last line, counted from 1. `span` is the range of bytes in the raw result, without the
    end; `text` is masked. A long line is split into several chunks with the same lines.
    """

    lines: tuple[int, int]
    span: tuple[int, int]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A stored run of lines of a ref, with an id such as `c12`. `lines` and `span` are those of `NewChunk`."""

    id: str
    ref: str
    lines: tuple[int, int]
    span: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnindexedRef:
    """A ref that is not fully indexed; chunks before byte `start` are indexed."""

    ref: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasGrowth:
    """The number of records (`steps`) of a canvas since its last review by a model, and the newest record (`upto`)."""

    canvas: int
    status: StepStatus
    steps: int
    upto: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinRecord:
    """A record with a summary that a program wrote and a model may improve, and the number of the record."""

    number: int
    record: Record
    then: str
    """The next call in its session; empty if there was none."""
    newest: bool
    """Whether no later record belongs to the same node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amended:
    """A better summary for a record, by the record's number."""

    number: int
    summary: str
    score: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorIndex:
    """The identity of a model, the dimensions of its vectors, and the number of rows that it has embedded."""

    identity: str
    dimensions: int
    embedded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProgress:
    """The progress of the indexes, over all spaces."""

    embeddable: int
    """Rows that should have a vector; a model with as many vectors is complete."""
    vectors: Sequence[VectorIndex]
    """Every model with vectors, most complete first."""
    stale_terms: int
    """Approximate number of rows without terms, or with those of an earlier `TERMS_VERSION`; searches find them all."""
    unindexed_refs: int
    """Tool results that are not fully indexed, or with terms of an earlier version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that a subscriber may watch, with a `topic` such as `persona`, `canvas:003` or `atom:a57`."""

    space: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Row counts of a space, without forgotten turns, atoms and results; `forgotten` counts tombstones.

    `raw_bytes` is the size of all its results.
    """

    sessions: int
    turns: int
    atoms: int
    """Current and ended atoms."""
    current: int
    """Current atoms."""
    facts: int
    entities: int
    scenes: int
    forgotten: int
    refs: int
    records: int
    canvases: int
    raw_bytes: int
    tokens_raw: int
    tokens_kept: int
    """`tokens_raw` and `tokens_kept` are sums over the results that a shorter text replaced in a context."""
    masked: int
    """Stored results with masked secrets."""
    quarantined: int
    """Turns and atoms that wait for review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """The numbers of rows that were added to a space since a moment: forgotten rows count, notes do not."""

    turns: int
    atoms: int
    results: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEdit:
    """The replacement of messages between two positions of a message list, see `compression`.

    Either `texts` maps parts of the single message there to their new texts, or a `note` replaces all messages between
    the positions `before` and `after`. `shown` is the digest of the replacement; `refs` contain the removed content.
    Later edits have a higher `id`; it is 0 before the edit is stored.
    """

    id: int = 0
    session: str
    before: str
    after: str
    shown: str
    texts: dict[int, str] = field(default_factory=dict[int, str])
    note: str | None = None
    refs: tuple[str, ...] = ()
    calls: int = 0
    """The number of model calls among the replaced messages."""


SavingKind = Literal["offload", "expand", "canvas", "compress", "compacted"]
"""`compacted`: the client has replaced the context by a summary, so no later call repeats what was saved before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """An event that saved or cost tokens of a context.

    `saved` tokens were replaced by `spent`; `cache_broken` tokens were in the provider's cache and are read again.
    """

    session: str
    at: datetime
    kind: SavingKind
    saved: int = 0
    spent: int = 0
    cache_broken: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Totals of the savings of a kind.

    `…_later` counts a saving once for each later call of the model in its session, because each call repeats it, until
    the client compacts its context.
    """

    kind: SavingKind
    times: int
    saved: int
    spent: int
    cache_broken: int
    saved_later: int
    spent_later: int


RecallHow = Literal["recall", "prompt", "start"]
"""Who recalled: a caller on request, or a program before a prompt or at the start of a conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallEntry:
    """A recall that returned rows: their ids, and its size in tokens.

    `client` is the program that recalled, if known. `words` are the hashes of the words of the question, by which
    feedback on its rows counts for similar questions. `query` is recorded only with the setting `log_contents`.
    """

    id: int = field(default=0, compare=False)
    """Its number in the log, from 1; 0 before it is written."""
    at: datetime
    how: RecallHow
    session: str
    ids: tuple[str, ...]
    tokens: int
    client: str | None = None
    words: tuple[str, ...] = ()
    query: str | None = None


FeedbackVerdict = Literal["helpful", "wrong"]
"""What a person said of a row that was recalled: it helped with the question, or was wrong for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What a person said of the turn or atom `target` that was recalled for a question.

    `words` are the hashes of the question's words (`RecallEntry.words`). `recall` is the number of the recall, None for
    one of another memory. If `undone_at`, it does not count.
    """

    id: int
    target: str
    verdict: FeedbackVerdict
    words: tuple[str, ...]
    recall: int | None
    at: datetime
    undone_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An access token. `spaces` are the spaces it opens, the default first; `used_at` is exact to the hour."""

    id: str
    name: str
    spaces: tuple[str, ...]
    right: Right
    at: datetime
    until: datetime | None = None
    used_at: datetime | None = None
    revoked_at: datetime | None = None
    hash: bytes = field(repr=False)

    def is_good(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.until is None or now < self.until)
