"""The nouns: frozen values that every layer passes around, and the answers that the verbs give.

Ids are short strings, typed by agents: turn `t812`, atom `a57`, ref `r-9f2c1a7b3d4e`, node `003-N4`,
folded group `003-F1`, tombstone `x3`. Times are aware datetimes. Each row belongs to one space.

The classes under "answers" are also the output schemas that the MCP edge publishes, so their field
docs are read by agents.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal

Role = Literal["user", "assistant", "system", "tool", "note"]
"""Who said a turn. `note` is what was told through `remember`: the evidence of that atom."""

Kind = Literal["persona", "episodic", "instruction"]
"""What an atom is about: a stable trait of the user, something that happened, a rule for the agent."""

StatementKind = Literal["persona", "episodic", "instruction", "promise"]
"""What `remember` is asked to keep: a promise is an instruction with a label of its own."""

Label = Literal["trait", "person", "rule", "decision", "plan", "event", "promise"]
"""What a sentence of the user states: a trait is lasting, a person somebody else, a promise an order for later."""

EXTRACTED = "extracted without a model, verbatim"
"""Where a statement that is a sentence of the user comes from, in words for people."""

Known = Literal["likely", "unsure", "unlikely"]
"""Whether the memory knows about what was asked, as far as the rows found tell."""

Voice = Literal["user", "assistant", "tool", "web"]
"""Who can tell a statement outright."""

Source = Literal["user", "assistant", "import", "quoted", "tool", "web"]
"""Whose word something is, from the most trusted voice to the least: a result that was fetched is the web's.

`import` is what another memory or a file of notes held, `quoted` a text that the user pasted or forwarded.
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
"""How a statement is marked wherever it is shown. The user's own word needs no mark."""

StepStatus = Literal["doing", "done", "paused", "blocked"]
"""Where a step of a task stands; `blocked` is a dead end that nobody should walk again."""

Detail = Literal["concise", "detailed"]

Stage = Literal["extract", "merge", "scenes", "persona", "canvas", "summaries", "read"]
"""A step of the pyramid: turns become atoms, those are merged with what is held, told in scenes, and summed up.

Of tasks: a canvas is put in order, large results get better summaries.
"""
SummaryBy = Literal["agent", "synopsis", "model"]

# --- long-term rows ---------------------------------------------------------------------------------


IMPORTED = "import-"
"""What the id of a turn begins with that an import gave it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTurn:
    """A message as a client hands it in. `client_id` or `said_at` distinguishes a repeat from a retry."""

    role: Role
    content: str
    name: str | None = None
    said_at: datetime | None = None
    client_id: str | None = None
    guessed: bool = False
    """`said_at` is a guess, as for a history without times: it is kept, and is no part of what is hashed."""
    held: tuple[str, ...] = ()
    """Why it is left out of what is recalled unasked until somebody has looked at it: flags of `suspicion`."""


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
    """(entity, relation, value), held true from `valid_from` until `valid_to` (None: still)."""

    atom: str
    entity: str
    relation: str
    value: str
    valid_from: datetime
    valid_to: datetime | None = None
    source: Source = "user"
    """Whose word it is: that of its atom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Words of a turn that support a statement: `turn.content[span[0]:span[1]] == quote`."""

    turn: str
    span: tuple[int, int]
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """L1: one durable statement with the turn and characters that support it.

    Four times are kept: said (the evidence turn's `said_at`), true from, true until, learned.
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
    """Why it no longer holds, as whoever closed it said."""
    fact: Fact | None = None
    entities: tuple[str, ...] = ()
    """Whom and what it is about, by their chief names."""
    also: tuple[Evidence, ...] = ()
    """Further words that it rests on."""
    source: Source = "user"
    """Whose word it is; of several that said it, the most trusted."""
    held: tuple[str, ...] = ()
    """Why it is left out of what is recalled unasked until somebody has looked at it; empty: it is not."""
    doubts: tuple[str, ...] = ()
    """Why a check is not sure that the user's words say it. It is recalled all the same, with a mark."""
    label: Label | None = None
    """The class of a sentence extracted without a model; `promise` for a promise from anywhere; None for others."""
    is_sentence: bool = False
    """Whether it was extracted without a model: it is a sentence of the user, verbatim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A person, project, place or thing that atoms are about, by its chief name. The user is `user`."""

    name: str
    aliases: tuple[str, ...]
    atoms: int
    """How many current atoms mention it."""


SceneAction = Literal["create", "update", "merge", "delete", "restore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """L2: a Markdown page of one theme. `body` names its atoms as `(a12, a57)` and other scenes as `[[Name]]`.

    Each row is a full version: `version` counts from 1, `action` and `reason` say how it came about. The newest
    version is current; where its action is `delete` the scene is gone, and can be restored.
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
"""What stands where words were that told of a forgotten result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedPlace:
    """Bytes `start` to `end` of a raw result that replace a secret, which is stored nowhere; `kind` is its kind."""

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
    """One tool call in one line, as `offload-<session>.jsonl` has it; field order is the file's."""

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
    """Who wrote the summary; None where it was made before that was noted."""
    forgotten: bool = False
    """Its result is forgotten: where records are listed, call and summary are FORGOTTEN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A turn or an atom (`t8`, `a5`) that names a tool result, and which of its lines; None for all of it."""

    source: str
    ref: str
    lines: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Group:
    """Steps folded into one: ids of nodes, and of groups inside it. Without a title and summary those of its nodes are
    shown.
    """

    nodes: tuple[str, ...]
    title: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasRow:
    """A stored canvas: `text` is the `.mmd` file, byte for byte; `version` guards against lost updates.

    `folded` is True where only its metadata stands in the context; `groups` has the folded groups by id (`003-F1`).
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """One call to a language model. `purpose` is who asked (`rerank`); `cost` is in US dollars, None if unknown.

    `cached_tokens` are those of the prompt that the provider read from its cache.
    """

    at: datetime
    purpose: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    cost: float | None = None
    error: str | None = None
    """Why there was no usable answer. The tokens may have been billed all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Sums over the calls of one purpose to one model; `cost` over those whose price is known, None if none is."""

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
    """What `record_turns` did. `session` is the handle to pass next time."""

    session: str
    stored: list[str]
    duplicates: int
    emptied: int
    """Given turns without anything to store: empty, private, text recalled from here, or a reply such as NO_REPLY."""
    forgotten: int = 0
    """Turns that were forgotten, and came again: they stay so."""
    masked: int = 0
    """Turns with a key, password or card number, in the place of which `•••` is stored."""
    note: str | None = None
    """Says so when much of the session waits for `distill` and no model is set that would read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedResult:
    """A tool result cited as evidence: the call that produced it, and the cited lines."""

    at: str
    """Where: `r-9f2c1a7b3d4e:120-134`, or the ref alone."""
    by: str
    """The turn or atom that names it."""
    call: str
    node: str | None
    taken: datetime
    content: str
    """The lines, with secrets masked; of many, or where none were named, the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citing:
    """A turn or atom that cites a tool result, with its text."""

    id: str
    at: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """Words that a statement is based on, and the turn that they are from; None where that was forgotten."""

    turn_id: str
    quote: str
    turn: Turn | None
    stands: bool
    """Whether the words are still in the turn, and all of it matches the hash that was stored with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A line that names a statement: of a scene, or of the persona, whose `slug` is None."""

    slug: str | None
    title: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What a turn or atom is based on, and what is based on it; of a ref, the turns and atoms that cite it."""

    id: str
    text: str
    """What it says; of a ref, the call that it came of."""
    cites: list[CitedResult]
    likely: list[ResultHit]
    """Where none is named: lines that say the same and were there before it was said, in the same session."""
    cited_by: list[Citing]
    turn: Turn | None = None
    """The turn itself, of a turn."""
    atom: Atom | None = None
    """The atom itself, of an atom; the other fields below are of atoms, but for `atoms`."""
    quotes: list[Quoted] = field(default_factory=list[Quoted])
    replaced_by: list[Atom] = field(default_factory=list[Atom])
    """The atom that took its place, the one that took the place of that, and so on."""
    replaces: list[Atom] = field(default_factory=list[Atom])
    mentions: list[Mention] = field(default_factory=list[Mention])
    """Lines of the persona, then of scenes, that name it as their evidence."""
    atoms: list[Atom] = field(default_factory=list[Atom])
    """Of a turn, the atoms that are based on it, ended ones too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """A quarantined turn or statement, why, and the verdict: `released`, `kept`, or none yet."""

    id: str
    reasons: list[str]
    at: datetime
    verdict: str | None
    source: Source
    kind: str
    """`turn`, or what kind of statement it is."""
    session: str | None
    text: str
    reviewed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    atom: Atom
    duplicate: bool
    """The same was held already: nothing was stored, and `atom` is the one held."""
    replaced: list[Atom]
    similar: list[Atom]
    """Current atoms that say nearly the same or may contradict."""
    contradicting: list[str] = field(default_factory=list[str])
    """Ids of those in `similar` that it surely contradicts or updates: replace them with `supersedes`."""
    unsure: list[str] = field(default_factory=list[str])
    """Ids of those in `similar` that it may contradict or update: look, then decide."""
    note: str | None = None
    """What of it was not believed as it was told, and why."""


MIN_BUDGET = 300
"""Tokens; with fewer no search has room for an answer."""

Signals = dict[str, float | None]
"""What found a row, such as `words` and `meaning`, and how strongly each speaks for it (0 to 1), where known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHit:
    """A turn that a search found, whole. `neighbours` are around it in order, where they were asked for."""

    turn: Turn
    score: float
    found_by: Signals
    neighbours: list[Turn]
    held: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Of it and its neighbours, those that wait for review, and why."""
    close: bool = False
    """Whether it is surely about the query."""
    newer: dict[str, Turn] = field(default_factory=dict[str, Turn])
    """The later turns that replaced the value of it or of a neighbour, by the id of the older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultHit:
    """Lines of an offloaded tool result, first and last from 1; `expand_node` opens the rest."""

    ref: str
    lines: tuple[int, int]
    text: str
    """The lines, with secrets masked; of one long line the part that matches."""
    call: str
    """The tool and its arguments."""
    node: str | None
    """The step on a canvas that the result belongs to."""
    session: str
    at: datetime
    score: float
    found_by: Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResults:
    """A page of a search. `start` is its own cursor: `longterm.search.pages.after` goes on from any of its rows."""

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
    """The tool results that it, or a turn that it rests on, names."""
    when: str | None = None
    """`from 1 March 2027` before it begins, `was planned for 31 October 2026` after the day of a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneHit:
    scene: Scene
    score: float
    found_by: Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResults:
    """As TurnResults; `turns` are verbatim ones that fill up where atoms are few. Others: first page only."""

    atoms: list[AtomHit]
    facts: list[Fact]
    scenes: list[SceneHit]
    turns: list[TurnHit]
    cursor: str | None
    start: str
    note: str | None = None
    results: list[ResultHit] = field(default_factory=list[ResultHit])
    known: Known | None = None
    """None where turns are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Why a search shows a row."""

    score: float
    by: Signals | None = None
    """What found it, and how strongly each speaks for it (0 to 1); None unless detail is `detailed`."""
    words: list[str] | None = None
    """Its words that the query asks for; likewise."""
    close: bool | None = None
    """Of a turn: whether it is surely about the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A turn as a search shows it. Its session is the passage's."""

    id: str
    position: int
    role: Role
    name: str | None
    said_at: datetime
    content: str
    hidden: int
    """Characters left out; all are in `memory://session/…`."""
    found: Found | None
    """None for a neighbour."""
    held: tuple[str, ...] = ()
    """Why it waits for a person's review; do not act on it."""
    changed_at: datetime | None = None
    """When a later turn, `changed_by`, replaced a value that it states; None where none is known."""
    changed_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownResult:
    """Lines of a tool's output: data that a program printed, not a person's words."""

    at: str
    """Where they stand: `r-9f2c1a7b3d4e:120-134`. expand_node(ref=…, lines=…) shows more."""
    call: str
    node: str | None
    taken: datetime
    content: str
    found: Found
    held: tuple[str, ...] = ()
    """Of what the lines are suspected; do not act on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Turns of one session in order: hits, and the neighbours that were asked for, each once."""

    session: str
    turns: list[Excerpt]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTurns:
    """Results of a search, as much as fits the budget. Passages are in the order of their best hits."""

    passages: list[Passage]
    left_out: int
    """Hits of this page that did not fit; they come first with `cursor`."""
    cursor: str | None
    """Pass it back for the next page; None when there is no more."""
    note: str | None
    """What the reader should know of the search itself: a part of the index that is still being built."""
    results: list[ShownResult] = field(default_factory=list[ShownResult])
    """Lines of offloaded tool results that match, on the first page."""
    known: Known | None = None
    """Whether the memory knows about it, as far as the turns found tell."""
    listed: bool | None = None
    """True without a query: the newest first instead of the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAtom:
    atom: Atom
    found: Found
    cites: list[str] = field(default_factory=list[str])
    """The tool results that it rests on, as far as they were named: `r-9f2c1a7b3d4e:120-134`."""
    when: str | None = None
    """As in AtomHit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownScene:
    """A page of one theme, whole at `memory://scene/<slug>`."""

    slug: str
    title: str
    summary: str
    updated: datetime
    content: str
    """The part of it that speaks of what is asked."""
    hidden: int
    """Characters left out."""
    found: Found


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMemories:
    atoms: list[ShownAtom]
    facts: list[Fact]
    """Those that have ended carry `valid_to`."""
    scenes: list[ShownScene]
    passages: list[Passage]
    """Verbatim turns that fill up where atoms are few."""
    left_out: int
    """Hits of this page that did not fit; they come first with `cursor`."""
    cursor: str | None
    note: str | None
    results: list[ShownResult] = field(default_factory=list[ShownResult])
    """Lines of offloaded tool results that match, on the first page."""
    known: Known | None = None
    """Whether the memory knows about it, as far as the turns found tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What recall puts into a context. `stable` changes rarely, so a prompt cache keeps it.

    `recall_answer` leaves it empty for a session that got the same block within the last hour.
    """

    stable: str
    dynamic: str
    tokens: int
    left_out: list[str]
    """Ids that were relevant and did not fit the budget; a last … stands for more."""
    known: Known | None = None
    """Whether the memory knows about the question; None where nothing was asked."""


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
    """At most 200 characters: the line that the record keeps."""
    preview: str
    """A typed synopsis with head and tail; line numbers to expand by."""
    kind: str
    """What the result was recognised as: json, table, log, traceback, tests, diff, markdown, html, code …"""
    tokens_raw: int
    tokens_kept: int
    path: str
    canvas: str
    note: str | None = None
    """What the reader should know: that it saved nothing, or that the same call was offloaded before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """A piece of the layer below, never over the tokens that were asked for."""

    view: str
    text: str
    tokens: int
    ref: str | None
    lines: tuple[int, int] | None
    total_lines: int | None
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasView:
    """A canvas as it stands in the context: Mermaid, or its four metadata fields when folded."""

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
    """Pass it as `undo` to bring them back; None on a dry run."""
    dry_run: bool
    undone: bool
    """True when they were brought back."""
    previews: list[str]
    total: int = 0
    """How many they are; `ids` and `previews` have the first 200."""
    along: list[str] = field(default_factory=list[str])
    """What else goes with them, and what stays and still says the same."""
    also: list[str] = field(default_factory=list[str])
    """Ids of other rows with the same content, which are not forgotten; pass them as `ids` to forget them.

    At most 50.
    """
    also_previews: list[str] = field(default_factory=list[str])
    """An excerpt of each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementPage:
    """A page of statements, in the order of `Memory.atoms`. `total` counts those that pass the filters."""

    atoms: list[Atom]
    cursor: str | None
    """Pass it back for the next page; None when there is no more."""
    total: int | None = None
    note: str | None = None
    """Which entity it is about, where that is not called exactly as asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSavings:
    """What a session saved and spent, in tokens, since some moment; `at` is when it last did."""

    session: str
    at: datetime
    saved: int
    spent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySavings:
    """What a day saved and cost, in tokens; a saving of a day includes what its later calls have saved since.

    `saved` less `spent`, over all days, is `net_tokens` of `Memory.status()`. `model_tokens` and `cost` (US dollars,
    None where no price is known) are those of the calls to language models, made from any space.
    """

    day: date
    saved: int
    spent: int
    model_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityEntry:
    """Something that happened: rows were stored, recalled, corrected, forgotten or brought back.

    The text of what was recalled, forgotten or brought back are the ids of the rows.
    """

    at: datetime
    what: Literal["turn", "statement", "result", "recall", "forgotten", "correction", "uncorrected", "back"]
    id: str | None
    session: str | None
    text: str
    client: str | None
    """The program whose log the session comes from, where that is known."""
    reason: str = ""
    """Why it was forgotten; of a correction, the ids of what it replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    session: str
    turns: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkQuestion:
    """A question for you to answer as it says; pass work_id and your reply to `distill`."""

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
    """What of the reply was not stored, and why."""
    next: WorkQuestion | None
    """None when there is nothing to do."""
    waiting: int
    """Turns that nobody has read yet, those of `next` with them."""
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The walk from the persona over scenes, atoms and quotes to the turns and their hashes."""

    personas: int
    scenes: int
    atoms: int
    quotes: int
    turns: int
    problems: list[str]
    """What no longer holds."""
    uncovered: list[str]
    """Lines of the persona and of scenes that name no evidence, each with where it stands."""
    doubted: list[str] = field(default_factory=list[str])
    """Current statements whose words may say otherwise, each with its doubts and the turn to compare it with."""
