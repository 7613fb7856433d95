"""Domain types: frozen values that all layers share, and the answers of the API.

Ids are short strings that agents can type: turn `t812`, atom `a57`, ref `r-9f2c1a7b3d4e`, node `003-N4`,
folded group `003-F1`, tombstone `x3`. Times are aware datetimes. Each row belongs to one space.

The MCP edge publishes the classes under "answers" as output schemas.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, NamedTuple

Role = Literal["user", "assistant", "system", "tool", "note"]
"""Speaker of a turn. A `note` is the text of a `remember` call: the evidence of that atom."""

Kind = Literal["persona", "episodic", "instruction"]
"""Kind of an atom: a stable trait of the user, an event, a rule for the agent."""

StatementKind = Literal["persona", "episodic", "instruction", "promise"]
"""Kinds that `remember` accepts: a promise is an instruction with the label `promise`."""

Label = Literal["trait", "person", "rule", "decision", "plan", "event", "promise"]
"""Class of a user's sentence: a lasting trait, a fact about another person, an order for later (promise) …"""

EXTRACTED = "extracted without a model, verbatim"
"""Display text for the origin of a statement that is a sentence of the user."""

Known = Literal["likely", "unsure", "unlikely"]
"""Whether the memory knows about the question, judged by the rows it found."""

Voice = Literal["user", "assistant", "tool", "web"]
"""Speakers that can make a statement directly."""

Source = Literal["user", "assistant", "import", "quoted", "tool", "web"]
"""Origin of a statement, from the most trusted to the least. A fetched page counts as `web`.

`import` is another memory or a file of notes, `quoted` a text that the user pasted or forwarded.
"""

SAID_BY: dict[Source, str] = {
    "user": "the user",
    "assistant": "the assistant",
    "import": "an imported file",
    "quoted": "a text that the user quoted",
    "tool": "a tool",
    "web": "a web page",
}

ATTRIBUTION: dict[Source, str] = {
    "user": "",
    "assistant": "said by the assistant",
    "import": "from an imported file",
    "quoted": "from a text that the user quoted",
    "tool": "said by a tool",
    "web": "said by a web page",
}
"""Mark of a statement wherever it is shown. The user's own words need none."""

StepStatus = Literal["doing", "done", "paused", "blocked"]
"""State of a step; `blocked` is a dead end that should not be tried again."""

Detail = Literal["concise", "detailed"]

Stage = Literal["extract", "merge", "scenes", "persona", "canvas", "summaries", "read"]
"""Stage of the pyramid: turns → atoms, merged with stored atoms → scenes → persona.

Short-term stages order a canvas, or improve the summaries of large results.
"""
SummaryBy = Literal["agent", "synopsis", "model"]

# --- long-term rows ---------------------------------------------------------------------------------


IMPORTED = "import-"
"""Prefix of turn ids that an import assigned."""

TITLE = "title"
"""Name of a turn of role `system` that is the title of its session; the latest one counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTurn:
    """A message to store. `client_id` or `said_at` distinguishes a repeated message from a retry."""

    role: Role
    content: str
    name: str | None = None
    said_at: datetime | None = None
    client_id: str | None = None
    guessed: bool = False
    """`said_at` is a guess, for a history without times: it is stored but not hashed."""
    held: tuple[str, ...] = ()
    """Reasons for its quarantine (flags of `suspicion`): it is not recalled automatically until it is reviewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """L0: one message, verbatim, never rewritten. `position` counts from 0 within its session."""

    id: str
    session: str
    position: int
    role: Role
    name: str | None
    content: str
    said_at: datetime
    learned_at: datetime
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """(entity, relation, value), valid from `valid_from` to `valid_to` (None: still valid)."""

    atom: str
    entity: str
    relation: str
    value: str
    valid_from: datetime
    valid_to: datetime | None = None
    source: Source = "user"
    """Origin, that of its atom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Words of a turn that support a statement: `turn.content[span[0]:span[1]] == quote`."""

    turn: str
    span: tuple[int, int]
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """L1: one durable statement with the turn and characters that support it.

    It has four times: said (the evidence turn's `said_at`), valid from, valid to, learned.
    """

    id: str
    kind: Kind
    text: str
    priority: int
    confidence: float
    evidence: str
    span: tuple[int, int]
    valid_from: datetime
    valid_to: datetime | None
    learned_at: datetime
    superseded_by: str | None = None
    closed_because: str | None = None
    """Why it is no longer valid, in the words of whoever closed it."""
    fact: Fact | None = None
    entities: tuple[str, ...] = ()
    """People and things that it is about, by their main names."""
    also: tuple[Evidence, ...] = ()
    """Additional evidence."""
    source: Source = "user"
    """Origin; if several sources state it, the most trusted."""
    held: tuple[str, ...] = ()
    """Reasons for its quarantine: it is not recalled automatically until it is reviewed. Empty: not quarantined."""
    doubts: tuple[str, ...] = ()
    """Doubts of a check that the user's words support it. It is recalled with a mark."""
    label: Label | None = None
    """Class of a sentence extracted without a model, or `promise` for any promise; else None."""
    is_sentence: bool = False
    """Whether it is a verbatim sentence of the user, extracted without a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A person, project, place or thing that atoms are about, by its main name. The user is `user`."""

    name: str
    aliases: tuple[str, ...]
    atoms: int
    """Number of current atoms that mention it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionedEntity:
    """An entity, by its main name, with the number of current statements that mention it and the time of the last."""

    name: str
    statements: int
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MapNode:
    """An entity or a topic on the map, and the statements that mention it."""

    name: str
    topic: str | None = None
    """The slug of a topic; None for an entity."""
    statements: int
    """How many of the statements are current."""
    past: int
    first: datetime
    last: datetime
    """When the first and the last of the statements begin."""
    until: datetime | None
    """When the last of the statements ended; None if there is a current one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapLink:
    """Two nodes, by their place in the list of nodes, and the statements that mention both."""

    ends: tuple[int, int]
    statements: int
    first: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryMap:
    """The entities and topics of a memory and how they are linked; `total` counts those that were left out too."""

    nodes: list[MapNode]
    """The oldest first."""
    links: list[MapLink]
    total: int
    related: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Of the map of one entity: those that share current statements with it, and how many, most first; at most 40."""


EntityOrder = Literal["statements", "last", "name"]
"""Most statements first, mentioned last first, or by name."""

SceneAction = Literal["create", "update", "merge", "delete", "restore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """L2: a Markdown page about a theme. `body` names its atoms as `(a12, a57)` and other scenes as `[[Name]]`.

    Each row is a full version: `version` counts from 1, `action` and `reason` record the edit. The newest version is
    current; if its action is `delete` the scene is deleted, but can be restored.
    """

    slug: str
    title: str
    summary: str
    body: str
    heat: int
    atoms: tuple[str, ...]
    entities: tuple[str, ...]
    version: int
    action: SceneAction
    reason: str
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaVersion:
    """L3: the page about the user, without the navigation under it. `by_model` False: a list of explicit statements."""

    version: int
    text: str
    at: datetime
    by_model: bool
    reason: str


# --- short-term rows --------------------------------------------------------------------------------

FORGOTTEN = "forgotten"
"""Replaces words about a forgotten result."""


class MaskedPlace(NamedTuple):
    """Bytes `start` to `end` of a raw result, which replace a secret of this `kind`. The secret is not stored."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A raw tool result in `refs/`, addressed by its content. `path` is relative to the space's folder."""

    id: str
    path: str
    tool: str
    arguments: Any
    tool_call_id: str | None
    session: str
    timestamp: datetime
    bytes: int
    sha256: str
    content_type: str
    masked: tuple[MaskedPlace, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A tool call: one line of `offload-<session>.jsonl`, with fields in the order of the file."""

    timestamp: datetime
    node_id: str
    tool_call: str
    summary: str
    result_ref: str
    tool_call_id: str | None
    offloaded: bool
    session: str
    score: int
    tokens_raw: int
    tokens_kept: int
    ref: str
    summary_by: SummaryBy | None = None
    """Author of the summary; None in records of older versions."""
    forgotten: bool = False
    """The result is forgotten: listings show FORGOTTEN for call and summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A citation of a tool result by a turn or atom (`t8`, `a5`). `lines` None: the whole result."""

    source: str
    ref: str
    lines: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Group:
    """Folded steps: ids of nodes, and of groups inside it. Without title and summary, those of its nodes are shown."""

    nodes: tuple[str, ...]
    title: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasRow:
    """A stored canvas: `text` is the `.mmd` file, byte for byte; `version` prevents lost updates.

    If `folded`, only its metadata is in the context. `groups` maps ids (`003-F1`) to folded groups.
    """

    number: int
    label: str
    session: str
    text: str
    status: StepStatus
    folded: bool = False
    groups: dict[str, Group] = field(default_factory=dict[str, Group])
    updated: datetime
    version: int


class OpenStep(NamedTuple):
    """A step in progress: the id of its node, and its title."""

    id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTask:
    """A task that is not done: its number (`003`), its goal, and its steps in progress, oldest first."""

    id: str
    goal: str
    steps: tuple[OpenStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """One call to a language model. `purpose` is the caller (`rerank`); `cost` is in US dollars, None if unknown.

    `cached_tokens` counts the prompt tokens that the provider read from its cache.
    """

    at: datetime
    purpose: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    cost: float | None = None
    error: str | None = None
    """Why there was no usable answer. The tokens may still have been billed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Sums over the calls to a model for a purpose; `cost` over calls with a known price, None without any."""

    purpose: str
    model: str
    calls: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    cost: float | None


# --- answers ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Result of `record_turns`. Pass `session` with the next call."""

    session: str
    stored: list[str]
    duplicates: int
    emptied: int
    """Turns without anything to store: empty, private, text recalled from here, or a reply such as NO_REPLY."""
    forgotten: int = 0
    """Turns that had been forgotten and were sent again: they stay forgotten."""
    masked: int = 0
    """Turns with a key, password or card number, which are stored as `•••`."""
    note: str | None = None
    """Says that much of the session waits for `distill`, if no model is configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedResult:
    """A tool result cited as evidence: the call that produced it, and the cited lines."""

    at: str
    """Address: `r-9f2c1a7b3d4e:120-134`, or the ref alone."""
    by: str
    """Id of the turn or atom that cites it."""
    call: str
    node: str | None
    taken: datetime
    content: str
    """The lines, with secrets masked; only the first if there are many or none are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citing:
    """A turn or atom that cites a tool result, with its text."""

    id: str
    at: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """Words that a statement is based on, and their turn; None if the turn was forgotten."""

    turn_id: str
    quote: str
    turn: Turn | None
    stands: bool
    """Whether the turn still contains the words and matches its stored hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A line of a scene or the persona (`slug` None) that cites a statement."""

    slug: str | None
    title: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Evidence of a turn or atom, and the rows based on it; of a ref, the turns and atoms that cite it."""

    id: str
    text: str
    """Its text; of a ref, the call that produced it."""
    cites: list[CitedResult]
    likely: list[ResultHit]
    """Without citations: earlier lines of the same session that say the same."""
    cited_by: list[Citing]
    turn: Turn | None = None
    """Set if `id` is a turn."""
    atom: Atom | None = None
    """Set if `id` is an atom, like the fields below except `atoms`."""
    quotes: list[Quoted] = field(default_factory=list[Quoted])
    replaced_by: list[Atom] = field(default_factory=list[Atom])
    """The chain of atoms that superseded it, oldest first."""
    replaces: list[Atom] = field(default_factory=list[Atom])
    mentions: list[Mention] = field(default_factory=list[Mention])
    """Lines of the persona, then of scenes, that cite it."""
    atoms: list[Atom] = field(default_factory=list[Atom])
    """Atoms based on the turn, including closed atoms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """A quarantined turn or statement, the reasons, and the verdict: `released`, `kept`, or None."""

    id: str
    reasons: list[str]
    at: datetime
    verdict: str | None
    source: Source
    kind: str
    """`turn`, or the kind of statement."""
    session: str | None
    text: str
    reviewed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    atom: Atom
    duplicate: bool
    """The statement was stored already, as `atom`; nothing was written."""
    replaced: list[Atom]
    similar: list[Atom]
    """Current atoms that are nearly the same or may contradict it."""
    contradicting: list[str] = field(default_factory=list[str])
    """Ids in `similar` that it surely contradicts or updates: replace them with `supersedes`."""
    unsure: list[str] = field(default_factory=list[str])
    """Ids in `similar` that it may contradict or update: look, then decide."""
    note: str | None = None
    """Which part of the statement was not accepted unchanged, and why."""


MIN_BUDGET = 300
"""Tokens; a smaller budget has no room for an answer of a search."""

Signals = dict[str, float | None]
"""Search signals of a row, such as `words` and `meaning`, each with its strength in [0, 1] if known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHit:
    """A whole turn found by a search. `neighbours` are the requested turns around it, in order."""

    turn: Turn
    score: float
    found_by: Signals
    neighbours: list[Turn]
    held: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Quarantined turns among it and its neighbours, by id, with the reasons."""
    close: bool = False
    """Whether it is certainly about the query."""
    newer: dict[str, Turn] = field(default_factory=dict[str, Turn])
    """Later turns that replaced a value of it or of a neighbour, by the id of the older turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedLine:
    """A line of a project's file, counted from 1, whose value the user changed later, in a turn or statement."""

    line: int
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultHit:
    """Lines of an offloaded tool result or of a project's file, counted from 1, inclusive.

    `expand_node` opens the rest.
    """

    ref: str
    lines: tuple[int, int]
    text: str
    """The lines, with secrets masked; of a single long line only the matching part."""
    call: str
    """The tool and its arguments, or the file and its project."""
    node: str | None
    """Canvas step of the result."""
    session: str
    at: datetime
    score: float
    found_by: Signals
    of_file: bool = False
    """Whether it is the content of a project's file."""
    changed: tuple[ChangedLine, ...] = ()
    share: float = 0.0
    """The share of the query's words in its lines, weighted by rarity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResults:
    """A page of results. `cursor` continues after it.

    `start` is the cursor of this page, from which `longterm.search.pages.after` can continue after any of its rows.
    """

    hits: list[TurnHit]
    cursor: str | None
    start: str
    note: str | None = None
    results: list[ResultHit] = field(default_factory=list[ResultHit])
    """Lines of tool results, on the first page only."""
    known: Known | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomHit:
    atom: Atom
    score: float
    found_by: Signals
    cites: tuple[Citation, ...] = ()
    """Tool results cited by it or by its evidence."""
    when: str | None = None
    """`from 1 March 2027` before it begins, `was planned for 31 October 2026` after the day of a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneHit:
    scene: Scene
    score: float
    found_by: Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResults:
    """A page of results like TurnResults. `turns` complete the page if there are few atoms.

    Only `atoms` have further pages; everything else is on the first page.
    """

    atoms: list[AtomHit]
    facts: list[Fact]
    scenes: list[SceneHit]
    turns: list[TurnHit]
    cursor: str | None
    start: str
    note: str | None = None
    results: list[ResultHit] = field(default_factory=list[ResultHit])
    known: Known | None = None
    """None if turns are left out."""


FoundLayer = Literal["turn", "statement", "result", "page", "entity"]
"""Layers of `find`. A result is lines of a tool result or of a project's file, a page the persona or a scene."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A row of any layer that `find` shows."""

    id: str
    """`t812`, `a57`, `r-9f2c1a7b3d4e:120-134`, the slug of a scene, `persona`, or the main name of an entity."""
    layer: FoundLayer
    text: str
    """The part that is about the query; secrets are masked."""
    marks: list[tuple[int, int]]
    """Start and end of the words of the query in `text`."""
    title: str | None
    """Title of a page, tool call or file of a result."""
    kind: str | None
    """Role of a turn, kind of a statement."""
    said_by: str | None
    """Speaker's name or role of a turn, `Source` of a statement."""
    at: datetime | None
    """When a turn was said, a statement became true, a result was taken, a page was written."""
    session: str | None
    chance: float
    """Probability that it is part of the answer, in [0, 1]."""
    verbatim: bool
    """Whether it contains an identifier or a quoted phrase of the query."""
    close: bool
    """Whether it is surely about the query."""
    held: tuple[str, ...] = ()
    """Reasons for its quarantine, or suspicions about a result."""
    evidence: tuple[str, ...] = ()
    """A turn itself, or the turns that a statement, or the statements cited in `text`, are based on."""
    when: str | None = None
    """As in AtomHit."""
    node: str | None = None
    """Canvas step of a result."""
    newer: Turn | None = None
    """Later turn that replaced a value of it."""
    changed: tuple[ChangedLine, ...] = ()
    """Lines of a file that the user changed later."""
    neighbours: list[Turn] = field(default_factory=list[Turn])
    """The requested turns around a turn, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPage:
    """A page of `find`, best first; `cursor` continues after it."""

    hits: list[Hit]
    cursor: str | None
    known: Known | None
    """Whether the memory knows about the query: if "unlikely", nothing is close. None without a query."""
    period: tuple[datetime, datetime] | None = None
    """The time that the query names: its start and end (exclusive). A query of a time alone has only rows of it."""
    filtered: bool = False
    """Whether only rows of `period` were searched for."""
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Why a search shows a row."""

    score: float
    by: Signals | None = None
    """Its signals; None unless detail is `detailed`."""
    words: list[str] | None = None
    """Its words that match the query; None unless detail is `detailed`."""
    close: bool | None = None
    """Whether a turn is certainly about the query."""
    verbatim: bool | None = None
    """True if it contains an identifier or a quoted phrase of the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A turn in the results of a search. Its session is that of its passage."""

    id: str
    position: int
    role: Role
    name: str | None
    said_at: datetime
    content: str
    hidden: int
    """Number of characters left out; the whole turn is in `memory://session/…`."""
    found: Found | None
    """None for a neighbour."""
    held: tuple[str, ...] = ()
    """Reasons for its quarantine; do not act on it."""
    changed_at: datetime | None = None
    """When a later turn, `changed_by`, replaced a value that it states."""
    changed_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownResult:
    """Lines of a tool's output or of a project's file: data, not the user's words."""

    at: str
    """Their address: `r-9f2c1a7b3d4e:120-134`. expand_node(ref=…, lines=…) shows more."""
    call: str
    node: str | None
    taken: datetime
    content: str
    found: Found
    held: tuple[str, ...] = ()
    """What the lines are suspected of; do not act on them."""
    changed: tuple[ChangedLine, ...] = ()
    """The lines that the user has contradicted since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Turns of a session in order: hits and requested neighbours, each once."""

    session: str
    turns: list[Excerpt]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTurns:
    """Results of a search that fit the budget. Passages are in the order of their best hits."""

    passages: list[Passage]
    left_out: int
    """Hits of this page that did not fit; they come first with `cursor`."""
    cursor: str | None
    """Pass it back for the next page; None when there is no more."""
    note: str | None
    """Remark on the search itself, for example that the index is incomplete."""
    results: list[ShownResult] = field(default_factory=list[ShownResult])
    """Lines of offloaded tool results that match, on the first page."""
    known: Known | None = None
    """Whether the memory knows about the question, judged by the turns it found."""
    listed: bool | None = None
    """True without a query: newest first, instead of best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAtom:
    atom: Atom
    found: Found
    cites: list[str] = field(default_factory=list[str])
    """Cited tool results: `r-9f2c1a7b3d4e:120-134`."""
    when: str | None = None
    """As in AtomHit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownScene:
    """A scene in the results of a search; the whole page is `memory://scene/<slug>`."""

    slug: str
    title: str
    summary: str
    updated: datetime
    content: str
    """The part that is about the query."""
    hidden: int
    """Characters left out."""
    found: Found


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMemories:
    atoms: list[ShownAtom]
    facts: list[Fact]
    """Facts that are no longer valid have `valid_to`."""
    scenes: list[ShownScene]
    passages: list[Passage]
    """Verbatim turns that fill up if atoms are few."""
    left_out: int
    """Hits of this page that did not fit; they come first with `cursor`."""
    cursor: str | None
    note: str | None
    results: list[ShownResult] = field(default_factory=list[ShownResult])
    """Lines of offloaded tool results that match, on the first page."""
    known: Known | None = None
    """Whether the memory knows about the question, judged by the turns it found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Recalled context. `stable` changes rarely, so a prompt cache keeps it.

    `recall_answer` leaves `stable` empty for a session that received the same block within the last hour.
    """

    stable: str
    dynamic: str
    tokens: int
    left_out: list[str]
    """Ids of relevant rows that did not fit the budget; a final … means that there are more."""
    known: Known | None = None
    """Whether the memory knows about the question; None without a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    text: str
    sections: list[str]
    version: int
    updated: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offloaded:
    node: str
    ref: str
    session: str
    task: str
    summary: str
    """At most 200 characters: the summary line of the record."""
    preview: str
    """Synopsis by type, with head, tail, and line numbers for `expand_node`."""
    kind: str
    """Detected type of the result: json, table, log, traceback, tests, diff, markdown, html, code …"""
    tokens_raw: int
    tokens_kept: int
    path: str
    canvas: str
    note: str | None = None
    """Remark: nothing was saved, or the same call was offloaded before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """Part of the layer below, within the requested number of tokens."""

    view: str
    text: str
    tokens: int
    ref: str | None
    lines: tuple[int, int] | None
    total_lines: int | None
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasView:
    """A canvas for the context: Mermaid, or four metadata fields if folded."""

    canvas: str
    task_goal: str
    status: StepStatus
    updated_time: str
    mmd_file_path: str
    folded: bool
    text: str
    tokens: int
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    ids: list[str]
    tombstone: str | None
    """Pass it as `undo` to restore the rows; None on a dry run."""
    dry_run: bool
    undone: bool
    """Whether the rows were restored."""
    previews: list[str]
    total: int = 0
    """Number of rows; `ids` and `previews` have the first 200."""
    along: list[str] = field(default_factory=list[str])
    """What else is forgotten with them, and what stays with the same content."""
    also: list[str] = field(default_factory=list[str])
    """Ids of other rows with the same content, at most 50. They stay; pass them as `ids` to forget them too."""
    also_previews: list[str] = field(default_factory=list[str])
    """An excerpt of each row in `also`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementPage:
    """A page of statements, in the order of `Memory.atoms`. `total` counts the statements that match the filters."""

    atoms: list[Atom]
    cursor: str | None
    """Pass it back for the next page; None when there is no more."""
    total: int | None = None
    note: str | None = None
    """The entity that matched, if its name differs from the requested name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSavings:
    """Tokens that a session saved and spent within a period; `at` is the time of the last entry."""

    session: str
    at: datetime
    saved: int
    spent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySavings:
    """Tokens saved and spent on a day. A saving includes what later calls have saved since.

    `saved` minus `spent`, over all days, is `net_tokens` of `Memory.status()`. `model_tokens` and `cost` (US dollars,
    None if no price is known) cover the calls to language models from all spaces.
    """

    day: date
    saved: int
    spent: int
    model_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityEntry:
    """An event: rows were stored, recalled, corrected, forgotten or restored.

    For recalled, forgotten and restored rows, `text` lists their ids. The `id` of a recall is its number in the log.
    The `session` of a statement is the one whose words it was made of.
    """

    at: datetime
    what: Literal["turn", "statement", "result", "recall", "forgotten", "correction", "uncorrected", "back"]
    id: str | None
    session: str | None
    text: str
    client: str | None
    """The program whose log the session comes from, if known."""
    reason: str = ""
    """Why it was forgotten; of a correction, the ids of the replaced rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """A page of events, the newest first; `cursor` is for the next page, None on the last."""

    entries: list[ActivityEntry]
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    session: str
    turns: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A session as it is listed for people.

    `title` is the one that it was given or imported with, else made from the user's first message that says something;
    `first_line` is the beginning of that message. Both are None if there is none. `client` is the program that recorded
    it. `turns` counts its turns without titles; the first and the last of them were said at `first` and `last`.
    """

    session: str
    title: str | None
    first_line: str | None
    client: str | None
    project: str | None
    turns: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """A page of conversations. `cursor` continues after it; None if there are no more."""

    conversations: list[Conversation]
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkQuestion:
    """A question for you to answer as instructed; pass work_id and your reply to `distill`."""

    work_id: str
    stage: Stage
    instructions: str
    question: str
    reply_schema: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distilled:
    """Outcome of a reply, and the next question."""

    kept: list[str]
    refused: list[str]
    """Parts of the reply that were not stored, with the reasons."""
    next: WorkQuestion | None
    """None when there is nothing to do."""
    waiting: int
    """Number of unread turns, including those of `next`."""
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Result of checking the persona, scenes, atoms and quotes down to the turns and their hashes."""

    personas: int
    scenes: int
    atoms: int
    quotes: int
    turns: int
    problems: list[str]
    """Claims that are no longer supported."""
    uncovered: list[str]
    """Lines of the persona and of scenes that cite no evidence, each with its location."""
    doubted: list[str] = field(default_factory=list[str])
    """Current statements that their evidence may not support, each with the doubts and the turn to compare with."""
