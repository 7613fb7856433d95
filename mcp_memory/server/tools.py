"""The tools of the server, and the table that publishes them.

Each function is a declaration without a body: its signature is the tool's input schema, its docstring the description,
its return type the output schema. A verb of Memory is called with the checked arguments.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import anyio.to_thread
import mcp.types as wire
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import to_json

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.rights import Right
from mcp_memory.core.text import with_zone
from mcp_memory.core.types import (
    MIN_BUDGET,
    Bundle,
    CanvasView,
    Detail,
    Distilled,
    Expansion,
    Forgotten,
    Kind,
    NewTurn,
    Offloaded,
    Persona,
    Recorded,
    Remembered,
    Role,
    ShownMemories,
    ShownTurns,
    StatementKind,
    StepStatus,
    Voice,
)
from mcp_memory.server.arguments import argument_model, input_schema, output_schema, parse_arguments, parse_json
from mcp_memory.service.jsonrpc import sendable
from mcp_memory.service.render import Answer, as_data, render

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory


# --- arguments --------------------------------------------------------------------------------------


def _accept_json(what: str, expected: str) -> BeforeValidator:
    """Return a validator that also accepts a value sent as JSON text; `what` and `expected` are for the error."""
    return BeforeValidator(lambda value: parse_json(value, what, expected) if isinstance(value, str) else value)


def _parse_ids(value: object) -> object:
    """Accept a list sent as JSON text, or ids separated by commas or spaces."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return parse_json(value, "The list", "a list of ids")
    return re.findall(r"[^\s,]+", value)


def _undescribed(schema: dict[str, Any]) -> None:
    del schema["description"]  # the docstring, which is for readers of this file


class TurnIn(BaseModel):
    """A message as a client sends it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_undescribed)

    role: Literal["user", "assistant", "system", "tool"]
    content: str
    name: Annotated[str | None, Field(description="Speaker")] = None
    said_at: datetime | None = None
    id: str | None = None

    def to_new_turn(self) -> NewTurn:
        said_at = self.said_at
        try:
            said_at = said_at and with_zone(said_at)
        except ValueError:
            raise InvalidInput(
                f"said_at {said_at} is out of range. Send a time such as 2026-05-07T10:00:00Z."
            ) from None
        return NewTurn(role=self.role, content=self.content, name=self.name, said_at=said_at, client_id=self.id)


def _new_turns(turns: list[TurnIn]) -> list[NewTurn]:
    return [turn.to_new_turn() for turn in turns]


Turns = Annotated[
    list[TurnIn], _accept_json("turns", "a list of {role, content}"), Field(min_length=1), AfterValidator(_new_turns)
]
Ids = Annotated[list[str], BeforeValidator(_parse_ids)]


def _reply_text(value: object) -> object:
    """Accept a reply sent as a JSON value instead of its text."""
    return value if value is None or isinstance(value, str) else to_json(value).decode()


Reply = Annotated[str | None, BeforeValidator(_reply_text), Field(description="JSON as its reply_schema says")]
CallArguments = Annotated[Any, _accept_json("arguments", "an object"), WithJsonSchema({"type": "object"})]
Limit = Annotated[int, Field(ge=1, le=50)]
Cursor = str | None  # an answer that has more results gives the cursor
Since = Annotated[str | None, Field(description='2026-05-07 or "last week"')]
Until = str | None
Session = str | None
Detailed = Annotated[Detail, Field(description="detailed: whole turns, why found")]
Budget = Annotated[int | None, Field(ge=MIN_BUDGET, le=100_000, description="Default 2000; detailed 6000")]


# --- long-term --------------------------------------------------------------------------------------


def record_turns(
    turns: Turns,
    session: Annotated[Session, Field(description="From the last call")] = None,
) -> Recorded:
    """Store messages of this conversation, so that any later one can find them.

    Call it when a topic or decision is closed and before the conversation ends, with what matters since the last
    call: the user's words as they are, your own shorter if long, without small talk, secrets, long code and output.
    Not where your context says that the conversation is recorded by itself.
    """
    ...


def remember(
    text: Annotated[str, Field(description="One statement, clear alone: no pronouns")],
    kind: Annotated[
        StatementKind,
        Field(description="persona: what lasts; episodic: what happened; instruction: a rule; promise: tell them when"),
    ] = "persona",
    entity: Annotated[str | None, Field(description="Fact in their words: Anna / lives in / Porto")] = None,
    relation: str | None = None,
    value: str | None = None,
    supersedes: Annotated[Ids, Field(description="Atoms it outdates, promises kept")] = [],  # noqa: B006
    valid_from: Annotated[str | None, Field(description="Default now")] = None,
    valid_until: Annotated[str | None, Field(description="Last day")] = None,
    cites: Annotated[Ids, Field(description="Refs, nodes it rests on")] = [],  # noqa: B006
    source: Annotated[Voice, Field(description="Who says so")] = "user",
) -> Remembered:
    """Keep one durable statement about the user, their world, or how they want you to work.

    Call it at once, unasked, when they state a fact, preference, decision, rule or correction, also in passing. Never
    secrets. Record their words first, or it waits. The answer shows similar ones: call again with what is outdated
    in supersedes.
    """
    ...


def conversation_search(
    query: Annotated[str, Field(description="Any language; left out: newest first")] = "",
    session: Annotated[Session, Field(description="This one alone")] = None,
    role: Role | None = None,
    since: Since = None,
    until: Until = None,
    neighbours: Annotated[int, Field(ge=0, le=10, description="Turns around each")] = 1,
    limit: Limit = 10,
    cursor: Cursor = None,
    detail: Detailed = "concise",
    budget_tokens: Budget = None,
) -> ShownTurns:
    """Find what was said in past conversations, verbatim, by words and meaning, and lines of offloaded results.

    Use it for what recall did not bring, and before you say you do not know. For what is true now,
    use memory_search.
    """
    ...


def memory_search(
    query: Annotated[str, Field(description="Left out: list by the filters")] = "",
    kind: Kind | None = None,
    scene: Annotated[str | None, Field(description="Its slug")] = None,
    entity: Annotated[str | None, Field(description="Person, project or thing")] = None,
    since: Since = None,
    until: Until = None,
    as_of: Annotated[str | None, Field(description="What was held true then")] = None,
    limit: Limit = 10,
    cursor: Cursor = None,
    detail: Detailed = "concise",
    budget_tokens: Budget = None,
) -> ShownMemories:
    """Look up what is known: statements and facts about the user, people, projects and past events, with dates and
    evidence; turns where these are few.

    Use it for questions such as "what does Anna work on" or "which database did we choose".
    """
    ...


def recall(
    query: Annotated[str, Field(description="Question or 'continue'")] = "",
    session: Session = None,
    budget_tokens: Annotated[int, Field(ge=100, le=100_000)] = 1200,
) -> Bundle:
    """Get what matters before you answer: who the user is, their standing rules, what is known about the question.

    Call it before the first answer that this could change, and again when the topic turns to the user, their people
    or earlier work. Not for sums or small talk, nor for what an <mcp-memory-recall> block tells already.
    """
    ...


def read_persona(
    section: Annotated[str | None, Field(description="Heading; left out, the whole page")] = None,
) -> Persona:
    """Read the page about the user: traits, preferences and rules, with the list of scenes."""
    ...


def forget(
    ids: Annotated[Ids, Field(description="t8, a5, r-…")] = [],  # noqa: B006
    query: str | None = None,
    session: Session = None,
    since: str | None = None,
    until: Until = None,
    reason: str = "",
    dry_run: bool | None = None,
    undo: Annotated[str | None, Field(description="Tombstone")] = None,
) -> Forgotten:
    """Take turns, statements or results out of memory when the user asks for it. It can be undone.

    Without ids it only shows what would go, until dry_run=false. A query means what holds all its words.
    """
    ...


def distill(
    work_id: Annotated[str | None, Field(description="Of the question")] = None,
    reply: Reply = None,
) -> Distilled:
    """Turn recorded turns into lasting memory, with you as the model: get a question, answer it exactly as it
    says, pass the reply, and get the next until there is none.

    Call it when a long session ends or an answer says that much waits, not after a short chat.
    """
    ...


# --- short-term -------------------------------------------------------------------------------------


def offload_tool_result(
    tool_name: str,
    result: Annotated[str, Field(description="The output, or the lines of it that matter")],
    arguments: Annotated[CallArguments, Field(description="Of that call")] = None,
    tool_call_id: str | None = None,
    session: Session = None,
    task: Annotated[str | None, Field(description="Goal; a new one starts a new canvas")] = None,
    step: Annotated[str | None, Field(description="What it was for; the same words continue a node")] = None,
    after: Annotated[Ids, Field(description="Nodes it follows; left out, the last")] = [],  # noqa: B006
    status: StepStatus | None = None,
    summary: Annotated[str | None, Field(description="Your conclusion, 200 characters")] = None,
) -> Offloaded:
    """Note a step of a task, with the tool result it rests on, as a node of the task's Mermaid canvas.

    It outlives your context: fold_canvas shows it after a compaction, expand_node gets the result back. In a task of
    ten calls or more, call it when a step is finished or a dead end (status=blocked), with the lines that matter. Only
    a program that replaces the result by the answer passes all of it.
    """
    ...


def expand_node(
    node: Annotated[str | None, Field(description="003-N4, group 003-F1 or canvas 003")] = None,
    ref: Annotated[str | None, Field(description="r-9f2c1a7b3d4e, t12, a5")] = None,
    view: Annotated[str | None, Field(description="records, page, lines, grep, json")] = None,
    lines: Annotated[str | None, Field(description="120-180")] = None,
    grep: Annotated[str | None, Field(description="Regular expression")] = None,
    json_path: Annotated[str | None, Field(description="$.items[0].name")] = None,
    max_tokens: Annotated[int, Field(ge=100, le=100_000)] = 2000,
    cursor: Cursor = None,
) -> Expansion:
    """Go one layer down: from a canvas node to its records, from a node or ref to the raw result, whole or by
    lines, search or JSON path.

    Use it on a stand-in, [003-N4 r-9f2c1a7b3d4e; expand_node], instead of running the tool again.
    """
    ...


def fold_canvas(
    task: Annotated[str | None, Field(description="Number or label; left out, the active one")] = None,
    nodes: Annotated[Ids, Field(description="Only these")] = [],  # noqa: B006
    action: Literal["show", "fold", "unfold", "complete", "switch"] = "show",
    budget_tokens: Annotated[int | None, Field(ge=1, description="Fold old steps until it fits")] = None,
    session: Session = None,
) -> CanvasView:
    """Show or reshape a task's canvas, the flowchart of its steps.

    fold what is finished (it stays one call away), unfold it, complete a task, or switch to another one.
    Show it after a compaction, to go on where you were.
    """
    ...


REPLACED = "mcp-memory/replaced"
"""Key in the `_meta` of `offload_tool_result`. True if a program replaces the result, so that no model reads it."""


# --- the table --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A function as agents see it. Schemas are built on first use and cached."""

    run: Callable[..., Answer]
    """Declares the verb of Memory to call, which has the same name unless `verb` is given."""
    title: str
    verb: str | None = None
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    right: Right | None = None
    """The right that it needs, if the annotations do not imply it."""
    at_once: bool = False
    """Always loaded: Claude Code shows other tools only by name until it looks for them."""

    @property
    def name(self) -> str:
        return self.run.__name__

    @cached_property
    def model(self) -> type[BaseModel]:
        return argument_model(self.run)

    @cached_property
    def definition(self) -> wire.Tool:
        return wire.Tool(
            name=self.name,
            title=self.title,
            description=" ".join((self.run.__doc__ or "").split()),
            input_schema=input_schema(self.model),
            output_schema=output_schema(get_type_hints(self.run)["return"]),
            annotations=self._annotations,
            _meta={"anthropic/alwaysLoad": True} if self.at_once else None,
        )

    @property
    def _annotations(self) -> wire.ToolAnnotations:
        """Return the annotations; for a tool that only reads, the hints about changes are left out."""
        if self.read_only:
            return wire.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return wire.ToolAnnotations(
            read_only_hint=False,
            destructive_hint=self.destructive,
            idempotent_hint=self.idempotent,
            open_world_hint=False,
        )

    async def call(
        self, memory: Callable[[], Awaitable[Memory]], arguments: dict[str, Any], meta: Mapping[str, Any]
    ) -> wire.CallToolResult:
        """Run a call: arguments are validated before the store is opened. `meta` is the request's `_meta`."""
        parsed = parse_arguments(self.name, self.model, arguments)
        if self.run is remember and "kind" not in arguments:
            parsed["kind"] = None  # a correction has the kind of the statement it supersedes
        if self.run is offload_tool_result and meta.get(REPLACED) is True:
            parsed["replaced"] = True
        answer = await getattr(await memory(), self.verb or self.name)(**parsed)
        return await anyio.to_thread.run_sync(_result, answer)


def _result(answer: Answer) -> wire.CallToolResult:
    """Return an answer as a tool result. Takes some milliseconds; the first call also loads the words for dates."""
    return wire.CallToolResult(
        content=[wire.TextContent(text=sendable(render(answer)))],
        structured_content=sendable(as_data(answer)),
    )


TOOLS = (
    Tool(run=recall, verb="recall_answer", title="Recall what matters", read_only=True, at_once=True),
    Tool(run=memory_search, verb="memory_excerpts", title="Search what is known", read_only=True),
    Tool(
        run=conversation_search,
        verb="conversation_excerpts",
        title="Search past conversations",
        read_only=True,
    ),
    Tool(run=read_persona, title="Read the persona", read_only=True),
    Tool(run=remember, title="Remember a statement", idempotent=True, at_once=True),
    Tool(run=record_turns, title="Record turns", idempotent=True),
    Tool(run=distill, title="Distil memories"),
    Tool(run=offload_tool_result, title="Offload a tool result"),
    Tool(run=expand_node, verb="expand_answer", title="Expand a node", read_only=True),
    Tool(run=fold_canvas, verb="canvas_answer", title="Fold or show a canvas", idempotent=True),
    Tool(run=forget, title="Forget", destructive=True),
)
