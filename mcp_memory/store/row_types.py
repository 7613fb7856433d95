"""The rows of a space as they leave the database: in exports, and in the line files of a home.

A field that is named like a column has the value of this column (`sql.row_codec`). The other fields are derived from
other rows. Ids are those of the store that the row comes from.

An export leaves out forgotten rows; a tombstone names them without any words. Also left out are data that the importing
store derives (index terms, vectors, files, chunks of results) and data of a machine (followed logs, the usage ledger,
tokens), and the fields marked as `LOCAL`.

An import recognises a row by its origin: its home, its space, its id and the time when it was learned there, such as
`<home>:<space>:t12@1763812345678`. The time distinguishes rows of two copies of a home that diverged. A row that was
itself imported has its earlier origins in `origins`; the importer adds the origin in the exporting store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from mcp_memory.core.types import Kind, Label, Role, SceneAction, Source, Stage, StepStatus, SummaryBy

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Origin:
    """The home and space that exported rows come from."""

    home: str
    space: str


def origin_of(of: Origin, id: str, at: datetime | None = None) -> str:
    """Return the origin of a row. `at` is the time when it was learned, which ids that are only numbers need."""
    moment = "" if at is None else f"@{(at - _EPOCH) // timedelta(milliseconds=1)}"
    return f"{of.home}:{of.space}:{id}{moment}"


NOTHING, UNDONE = "-", "undone"
"""Stored instead of a local tombstone if an imported forgetting matched nothing here, or was undone elsewhere."""


def gone_by(tombstone: str) -> str:
    """Return the value stored instead of a local id for a row that was forgotten elsewhere before its import.

    It contains the origin of the tombstone.
    """
    return f"gone {tombstone}"


READ = "read"
"""Stored instead of an id if an origin marks a turn that the sentence reader must not read (again)."""


def read_mark(turn: str) -> str:
    """Return the origin that marks a turn of this space as read by the sentence reader."""
    return f"read {turn}"


LOCAL = {"local": True}
"""Marks fields that are not in the rows of an export, such as fields that only line files have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefRow:
    """The metadata of a tool result. `file` is the path of its file; `data` has its bytes, or None if unavailable."""

    id: str
    file: str
    tool: str
    arguments: Any
    tool_call_id: str | None
    session: str
    timestamp: datetime
    size: int
    sha256: str
    content_type: str
    masked: tuple[tuple[int, int, str], ...] = ()
    """The places of secrets in its text: first byte, end byte, and kind of secret."""
    origins: tuple[str, ...] = ()
    data: bytes | None = field(default=None, metadata=LOCAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """A turn. If `dated`, the client gave `said_at`, and the hash includes it. `told` is the statement of a note.

    `reasons` are the reasons why it is quarantined.
    """

    id: str
    session: str
    position: int = field(default=0, metadata=LOCAL)
    role: Role
    name: str | None
    content: str
    said_at: datetime
    dated: bool
    learned_at: datetime
    client_id: str | None
    sha256: str
    told: dict[str, Any] | None = None
    reasons: tuple[str, ...] = field(default=(), metadata=LOCAL)
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRow:
    name: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuoteRow:
    """Evidence of an atom: a part of a turn, where `turn.content[start:end] == quote`."""

    turn: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    entity: str
    relation: str
    value: str
    single_valued: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomRow:
    """An atom. `evidence` begins with the first evidence of the atom."""

    id: str
    kind: Kind
    text: str
    priority: int
    confidence: float
    source: Source
    valid_from: datetime
    valid_to: datetime | None
    learned_at: datetime
    superseded_by: str | None
    supersedes: tuple[str, ...]
    closed_because: str | None
    by_model: bool
    fact: FactRow | None
    entities: tuple[str, ...]
    evidence: tuple[QuoteRow, ...]
    label: Label | None = None
    reader: int | None = None
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRow:
    """A quarantined turn or atom, with the reasons and the decision of a person."""

    id: str
    reasons: str
    at: datetime
    verdict: str | None
    reviewed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRow:
    """What a person said of a turn or an atom that was recalled; `words` are the hashes of the question's words."""

    target: str
    verdict: str
    words: tuple[str, ...]
    at: datetime
    undone_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """A record of a tool call. `step` is its change to the canvas, as JSON."""

    id: str
    canvas: int
    node_id: str
    session: str
    timestamp: datetime
    tool_call: str
    summary: str
    result_ref: str
    tool_call_id: str | None
    score: int
    tokens_raw: int
    tokens_kept: int
    ref: str
    summary_by: SummaryBy | None
    step: str | None
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    """A version of a canvas.

    `delta` is the change of its groups and text from the previous version, or None if it was erased. `crc` is the
    checksum of both.
    """

    canvas: int = field(default=0, metadata=LOCAL)
    version: int
    kind: str
    detail: str = ""
    label: str
    session: str
    status: StepStatus
    folded: bool
    updated: datetime
    by_model: bool
    work: str | None = field(default=None, metadata=LOCAL)
    crc: int = field(default=0, metadata=LOCAL)
    delta: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasHistory:
    """A canvas. `begun` is the time of its first record. `versions` is empty if it was exported without versions."""

    number: int
    label: str
    session: str
    begun: datetime
    text: str
    status: StepStatus
    folded: bool
    groups: dict[str, Any]
    updated: datetime
    versions: tuple[VersionRow, ...] = ()
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneRow:
    """A version of a scene, without the words of forgotten atoms."""

    slug: str
    version: int
    action: SceneAction
    title: str
    summary: str
    body: str
    heat: int
    atoms: tuple[str, ...]
    entities: tuple[str, ...]
    reason: str
    created: datetime
    at: datetime
    by_model: bool
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaRow:
    """A version of the persona page, without the words of forgotten atoms."""

    version: int
    text: str
    at: datetime
    reason: str
    by_model: bool
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationRow:
    """A turn or an atom that names a result, and the cited lines; None for the whole result."""

    source: str
    ref: str
    lines: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session with its active canvas. `read` is the last turn whose statements were extracted.

    `client` is the program that recorded it, unless its name tells that. `activated_at` is when the canvas became
    active or inactive, in ms since 1970.
    """

    name: str
    read: str | None
    batches: int
    scene: str | None
    canvas: int | None
    project: str | None = None
    client: str | None = None
    activated_at: int | None = field(default=None, metadata=LOCAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """The progress of a stage: the last atom that it processed, or for `read` the last turn."""

    stage: Stage
    upto: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TombstoneRow:
    """A tombstone. `gone` are the origins of the forgotten rows; it is empty if the forgetting was undone.

    In a line file `ids` are the ids of these rows, `how` is how they were selected, and `digests` has the hashes by
    which their content is recognised.
    """

    id: str
    at: datetime
    reason: str
    gone: tuple[str, ...]
    undone_at: datetime | None
    purged_at: datetime | None
    origins: tuple[str, ...] = ()
    how: str = field(default="ids", metadata=LOCAL)
    ids: tuple[str, ...] = field(default=(), metadata=LOCAL)
    digests: tuple[str, ...] = field(default=(), metadata=LOCAL)


Row = (
    RefRow
    | TurnRow
    | EntityRow
    | AtomRow
    | ReviewRow
    | FeedbackRow
    | RecordRow
    | CanvasHistory
    | SceneRow
    | PersonaRow
    | CitationRow
    | SessionRow
    | StageRow
    | TombstoneRow
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The result of importing rows.

    `names` maps the ids of the rows to their local ids (`a5` to `a19`), which are empty for forgotten rows. `known`
    counts rows that were imported before, without those that were `forgotten` since. `changed` are the ids of updated
    rows. `left` are sentences about rows that were left out.
    """

    names: dict[str, str]
    stored: int = 0
    known: int = 0
    forgotten: int = 0
    changed: frozenset[str] = frozenset()
    left: tuple[str, ...] = ()
