"""What the formats of agents' logs share: what is known so far, what nobody said, and what is ours. No I/O.

A log is read piece by piece, so a line may answer one that was read last week: `SoFar` is what its reader carries from
one piece to the next.

Claude Code's logs: `~/.claude/projects/<folder>/<session>.jsonl`, an object a line. No I/O.

A line of type `user` or `assistant` has one message or a block of one, with an id of its own; each that has text is a
turn. Lines of other types repeat requests, hooks and settings; of them only a prompt that was typed while the agent
worked (`queued_command`) is talk. A rewound prompt stays in the log, and was said. A fork copies lines, ids and all.

Codex's logs: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`, an object a line. No I/O.

    {timestamp, type, payload}, where type is session_meta, turn_context, response_item, compacted or event_msg

Turns are the `response_item`s that are messages of the user or the assistant, without the context that Codex puts
among the user's. Each is known by its turn, and its id or its place in that: older versions copy both into a fork.
A result is told twice, whole when its tool has ended, and as the model was shown it.

Gemini CLI's logs: `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`, or `.json` of older versions. No I/O.

A line has the conversation's metadata, a message, or a change: {"$set": …} and {"$rewindTo": id}. A message is written
again when a tool has answered, so the same id may be told more than once. A compression sets all messages anew, under
new ids: of those only its summary is taken. The older file is one object, {sessionId, messages: [message, …]}, written
anew each time.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_memory.core.text import is_blank, well_formed, without_blocks
from mcp_memory.core.types import Role
from mcp_memory.integrations.importers.records import (
    LONGEST_ID,
    Agent,
    ImportedResult,
    ImportedTurn,
    ImportProblem,
    InvalidRecord,
    SkippedParts,
    kind_of,
    list_of,
    mended,
    moment,
    object_of,
)
from mcp_memory.longterm.turns import SUMMARY

TIME = ("timestamp",)
"""Where all of them tell when a line was written."""

OWN_TOOLS = frozenset(
    {"memory_search", "conversation_search", "read_persona", "offload_tool_result", "expand_node", "fold_canvas"}
    | {"recall", "remember", "record_turns", "forget", "distill"}
)
"""The tools of our server: what they answer is memory already."""
_COMMON = frozenset({"memory_search", "recall", "remember", "forget", "distill"})

_MOST_CALLS = 50
_MOST_CHARS = 4_000


@dataclass(kw_only=True)
class LogState:
    """What has to be known of the lines before: whose they are, and which calls wait for their results."""

    conversation: str | None = None
    """The client's id of it."""
    aside: bool = False
    """It is the talk of a sub-agent, of which nothing is taken."""
    calls: dict[str, tuple[str, Any]] = field(default_factory=dict[str, tuple[str, Any]])
    """By id: tool and arguments."""
    turn: str = ""
    count: int = 0
    """For formats whose messages have no ids: messages told since that turn began."""

    def called(self, id: object, tool: object, arguments: Any) -> None:
        if isinstance(id, str) and isinstance(tool, str):
            self.calls[id] = tool, arguments

    def answered(self, id: object) -> tuple[str, Any]:
        return self.calls.pop(id, ("", None)) if isinstance(id, str) else ("", None)

    def dumped(self) -> str:
        """Return it as JSON of bounded size; long arguments are only looked at for what a result is of."""
        calls = {
            id: (tool, arguments if len(json.dumps(arguments)) <= _MOST_CHARS else None)
            for id, (tool, arguments) in list(self.calls.items())[-_MOST_CALLS:]
        }
        return json.dumps([self.conversation, self.aside, self.turn, self.count, calls])

    @staticmethod
    def loaded(text: str) -> LogState:
        conversation, aside, turn, count, calls = json.loads(text)
        known = {id: (tool, arguments) for id, (tool, arguments) in calls.items()}
        return LogState(conversation=conversation, aside=aside, turn=turn, count=count, calls=known)


def log_id(value: Any) -> str | None:
    """Return an id that can be stored; None where there is none."""
    return value if isinstance(value, str) and 0 < len(value) <= LONGEST_ID and well_formed(value) else None


def log_turn(
    line: Mapping[str, Any],
    where: str,
    so_far: LogState,
    role: Role,
    text: str,
    passed: SkippedParts,
    *,
    id: str | None,
    name: str | None = None,
) -> Iterator[ImportedTurn]:
    """Yield the turn that a line tells; none where it has no text."""
    if not is_blank(text):
        yield ImportedTurn(
            where=where,
            role=role,
            content=text,
            name=name,
            said_at=moment(line, TIME, passed),
            id=id,
            session=so_far.conversation,
        )


def log_summary(
    line: Mapping[str, Any], where: str, so_far: LogState, text: str, passed: SkippedParts
) -> Iterator[ImportedTurn]:
    """Yield what a compaction left of a conversation, as the turn that it is."""
    role, name = SUMMARY
    yield from log_turn(line, where, so_far, role, text, passed, name=name, id=summary_id(text))


# --- texts ------------------------------------------------------------------------------------------


def texts(content: Any, passed: SkippedParts, *, of: frozenset[str]) -> Iterator[str]:
    """Yield the texts of a content: a string, or the `text` of those of its parts whose type is one `of` these."""
    if isinstance(content, str):
        yield mended(content, passed) or ""
        return
    for part in list_of(content) or []:
        block = object_of(part)
        text = part if isinstance(part, str) else block.get("text") if block else None
        if isinstance(text, str) and (block is None or block.get("type", "text") in of):
            yield mended(text, passed) or ""
        elif block is not None and "image" in str(block.get("type", "")):
            passed.parts += 1


_WRAPPERS = (
    "system-reminder|local-command-[a-z]+|command-(?:name|message|args)|bash-(?:input|stdout|stderr)|user-memory-input"
    "|task-notification|ide_[a-z_]+|[a-z-]+-hook|hook_context|session_context|environment_context|user_instructions"
    "|turn_aborted|subagent_notification|user_shell_command|user_action|permissions instructions|skills?_instructions"
    "|skill|recommended_plugins|collaboration_mode|agent_message_board_notification|total_tokens"
    "|channel(?= source=)|teammate-message|cross-session-message|mcp-resource|pasted-text"
)
_NEVER_CLOSED = re.compile(r"^<system-reminder>\s*\n.*\Z", re.MULTILINE | re.DOTALL)
_WRAPPED = re.compile(rf"<({_WRAPPERS})\b[^<>]*>")


def without_tags(text: str) -> str:
    """Return what a person said, without what the client put beside it in tags of its own."""
    if "<" not in text:
        return text.strip()
    left = without_blocks(text, _WRAPPED, lambda found: f"</{found[1]}>", after=r"\s*")
    return _NEVER_CLOSED.sub("", left).strip()


def said(parts: Iterator[str]) -> str:
    return "\n\n".join(part for part in parts if part.strip())


# --- what is ours -----------------------------------------------------------------------------------

_STAND_IN = re.compile(r"\[\d{3,}-N\d+ r-[0-9a-f]{12,64}\b")


def is_own(tool: str) -> bool:
    """Tell whether a tool is of our server, by whatever prefix a client gives it: `mcp__memory__recall`.

    A server may be installed under any name, so the names that others may have too count only with `memory` in front.
    """
    return any(
        tool == own or (tool.endswith((f"_{own}", f":{own}")) and (own not in _COMMON or "memory" in tool))
        for own in OWN_TOOLS
    )


def is_stand_in(text: str) -> bool:
    """Tell whether it is what we put in place of a result, as hooks and `wrap` do."""
    return _STAND_IN.search(text, 0, 600) is not None


def summary_id(text: str) -> str:
    """Return the client id of a conversation's summary, by which it is known wherever it is told."""
    return f"summary-{hashlib.sha256(' '.join(text.split()).encode()).hexdigest()[:24]}"


_CLAUDE_TEXT = frozenset({"text"})
_MARK = "[Request interrupted by user"
_NOT_SAID = {"repeatsCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage", "isMeta"}
_PERSISTED = re.compile(r"\s*<persisted-output>\n.*?saved to: ([^\n]+)\n", re.DOTALL)
_SUMMARY = re.compile(r"<summary>\n?(.*?)\s*</summary>", re.DOTALL)
_CLAUDE_BEFORE_SUMMARY = re.compile(
    r"This session is being continued from .*?(?:\n<system-reminder>.*?</system-reminder>)?\s*"
    r"(?:\nSummary:|summari[sz]ed below:)\s*",
    re.DOTALL,
)
_CLAUDE_AFTER_SUMMARY = re.compile(
    r"\n+(?:If you need specific details from before|Please continue the conversation|Continue the "
    r"conversation from where).*",
    re.DOTALL,
)


def is_claude_code_line(value: Any) -> bool:
    """Tell whether an object is a line of such a log."""
    line = object_of(value)
    return line is not None and isinstance(line.get("type"), str) and ("sessionId" in line or "leafUuid" in line)


def claude_code_records(
    value: Any, where: str, so_far: LogState, passed: SkippedParts
) -> Iterator[ImportedTurn | ImportedResult | ImportProblem]:
    """Yield what a line tells: turns, and results of tools."""
    line = object_of(value)
    if line is None:
        yield ImportProblem(where=where, what=f"is {kind_of(value)}, and has to be an object.")
        return
    if so_far.conversation is None:
        so_far.conversation = log_id(line.get("sessionId"))
    if line.get("isSidechain") is True or "agentId" in line:
        passed.left["lines of sub-agents"] += line.get("type") in ("user", "assistant")
        return
    try:
        match line.get("type"):
            case "user" | "assistant":
                yield from _claude_message(line, where, so_far, passed)
            case "attachment":
                yield from _queued(line, where, so_far, passed)
            case _:
                pass
    except InvalidRecord as unfit:
        yield ImportProblem(where=where, what=str(unfit))


def summary_of(text: str) -> str:
    """Return the summary of a compaction alone, from the log's words for it or from those that a hook is given."""
    if found := _SUMMARY.search(text):
        return found[1].strip()
    return _CLAUDE_AFTER_SUMMARY.sub("", _CLAUDE_BEFORE_SUMMARY.sub("", text, count=1)).strip()


def _claude_message(
    line: Mapping[str, Any], where: str, so_far: LogState, passed: SkippedParts
) -> Iterator[ImportedTurn | ImportedResult]:
    message = object_of(line.get("message"))
    if message is None:
        return
    content = message.get("content")
    if line["type"] == "assistant":
        for block in list_of(content) or []:
            call = object_of(block)
            if call is not None and call.get("type") == "tool_use":
                so_far.called(call.get("id"), call.get("name"), call.get("input"))
        if message.get("model") != "<synthetic>" and not _is(line, _NOT_SAID):
            yield from log_turn(
                line,
                where,
                so_far,
                "assistant",
                said(texts(content, passed, of=_CLAUDE_TEXT)),
                passed,
                id=log_id(line.get("uuid")),
            )
        return
    yield from _results(line, where, content, so_far, passed)
    if line.get("isCompactSummary") is True:
        text = summary_of(said(texts(content, passed, of=_CLAUDE_TEXT)))
        yield from log_summary(line, where, so_far, text, passed)
    elif not _is(line, _NOT_SAID) and _by_a_person(line):
        text = without_tags(said(texts(content, passed, of=_CLAUDE_TEXT)))
        if not text.startswith(_MARK):
            yield from log_turn(line, where, so_far, "user", text, passed, id=log_id(line.get("uuid")))


def _queued(line: Mapping[str, Any], where: str, so_far: LogState, passed: SkippedParts) -> Iterator[ImportedTurn]:
    """Yield a prompt that was typed while the agent worked."""
    sent = object_of(line.get("attachment")) or {}
    if sent.get("type") == "queued_command" and not _is(sent, _NOT_SAID) and _by_a_person(sent):
        text = without_tags(said(texts(sent.get("prompt"), passed, of=_CLAUDE_TEXT)))
        yield from log_turn(
            line, where, so_far, "user", text, passed, id=log_id(sent.get("source_uuid")) or log_id(line.get("uuid"))
        )


def _by_a_person(line: Mapping[str, Any]) -> bool:
    """Tell whether a prompt came from a person, and not from another agent, a schedule or a task that ended."""
    origin = object_of(line.get("origin"))
    return origin is None or origin.get("kind") == "human"


def _is(line: Mapping[str, Any], marks: set[str]) -> bool:
    return any(line.get(mark) is True for mark in marks)


def _results(
    line: Mapping[str, Any], where: str, content: Any, so_far: LogState, passed: SkippedParts
) -> Iterator[ImportedResult]:
    for part in list_of(content) or []:
        block = object_of(part)
        if block is None or block.get("type") != "tool_result":
            continue
        tool, arguments = so_far.answered(block.get("tool_use_id"))
        text = "\n".join(texts(block.get("content"), passed, of=_CLAUDE_TEXT))
        kept = _PERSISTED.match(text)
        if text.strip():
            yield ImportedResult(
                where=where,
                tool=tool,
                arguments=arguments,
                call=log_id(block.get("tool_use_id")),
                text=text,
                said_at=moment(line, TIME, passed),
                whole=kept and re.split(r"[/\\]", kept[1].strip())[-1],
            )


_TYPES = frozenset({"session_meta", "turn_context", "response_item", "compacted", "event_msg"})
_CODEX_TEXT = frozenset({"input_text", "output_text", "text"})
_BESIDE = "internal_chat_message_metadata_passthrough"
_CODEX_BEFORE_SUMMARY = re.compile(
    r"Another language model started to solve .{,900}?with your own analysis:\s*", re.DOTALL
)
_CODEX_CONTEXT = ("# AGENTS.md instructions", "<INSTRUCTIONS>")


def is_codex_line(value: Any) -> bool:
    """Tell whether an object is a line of such a log."""
    line = object_of(value)
    if line is None or not isinstance(line.get("payload"), dict):
        return False
    kind = line.get("type")
    return isinstance(kind, str) and kind in _TYPES


def codex_records(
    value: Any, where: str, so_far: LogState, passed: SkippedParts
) -> Iterator[ImportedTurn | ImportedResult | ImportProblem]:
    """Yield what a line tells: turns, and results of tools."""
    line = object_of(value)
    if line is None:
        yield ImportProblem(where=where, what=f"is {kind_of(value)}, and has to be an object.")
        return
    payload = object_of(line.get("payload")) or {}
    try:
        match line.get("type"):
            case "session_meta":
                _opened(payload, so_far)
            case "turn_context":
                _turned(payload, so_far)
            case "event_msg" if payload.get("type") == "task_started":
                _turned(payload, so_far)
            case "response_item" if not so_far.aside:
                yield from _item(line, payload, where, so_far, passed)
            case "event_msg" if payload.get("type") == "item_completed" and not so_far.aside:
                yield from _whole(line, object_of(payload.get("item")) or {}, where, so_far, passed)
            case "compacted" if not so_far.aside:
                yield from _codex_summary(line, payload, where, so_far, passed)
            case _:
                pass
    except InvalidRecord as unfit:
        yield ImportProblem(where=where, what=str(unfit))


def _opened(meta: Mapping[str, Any], so_far: LogState) -> None:
    """Note whose log it is; a fork has the lines of its parent after its own, and the parent's first line too."""
    id = log_id(meta.get("id"))
    if so_far.conversation is None and id is not None:
        so_far.conversation = so_far.turn = id
        source = object_of(meta.get("source")) or {}
        so_far.aside = "subagent" in source or meta.get("thread_source") == "subagent"


def _turned(context: Mapping[str, Any], so_far: LogState) -> None:
    turn = log_id(context.get("turn_id"))
    if turn is not None and turn != so_far.turn:
        so_far.turn, so_far.count = turn, 0


def _item(
    line: Mapping[str, Any], item: Mapping[str, Any], where: str, so_far: LogState, passed: SkippedParts
) -> Iterator[ImportedTurn | ImportedResult]:
    match item.get("type"):
        case "message" if item.get("role") in ("user", "assistant") and not _by_the_program(line, item):
            role: Role = "user" if item["role"] == "user" else "assistant"
            parts = texts(item.get("content"), passed, of=_CODEX_TEXT)
            text = said(map(_asked, parts)) if role == "user" else said(parts)
            if text:
                yield from log_turn(line, where, so_far, role, text, passed, id=_id(item, so_far))
        case "function_call":
            so_far.called(item.get("call_id"), _named(item), _arguments(item.get("arguments")))
        case "custom_tool_call":
            so_far.called(item.get("call_id"), _named(item), item.get("input"))
        case "local_shell_call":
            so_far.called(item.get("call_id"), "shell", object_of(item.get("action")))
        case "function_call_output" | "custom_tool_call_output":
            tool, arguments = so_far.answered(item.get("call_id"))
            yield from _codex_result(
                line, item.get("call_id"), tool, arguments, where, _output(item.get("output"), passed), passed
            )
        case _:
            pass


def _whole(
    line: Mapping[str, Any], item: Mapping[str, Any], where: str, so_far: LogState, passed: SkippedParts
) -> Iterator[ImportedResult]:
    """Yield a result as the tool gave it: what answers its call may be cut, and comes after."""
    id = item.get("id")
    tool, arguments = so_far.calls.get(id, ("", None)) if isinstance(id, str) else ("", None)
    match item.get("type"):
        case "CommandExecution" if isinstance(item.get("aggregated_output"), str):
            yield from _codex_result(
                line, id, tool or "shell", arguments or item.get("command"), where, item["aggregated_output"], passed
            )
        case "McpToolCall":
            tool = tool or f"mcp__{item.get('server')}__{item.get('tool')}"
            text = _output(item.get("result"), passed)
            yield from _codex_result(line, id, tool, arguments or item.get("arguments"), where, text, passed)
        case _:
            pass


def _codex_result(
    line: Mapping[str, Any], call: Any, tool: str, arguments: Any, where: str, text: str, passed: SkippedParts
) -> Iterator[ImportedResult]:
    if text.strip():
        yield ImportedResult(
            where=where,
            tool=tool,
            arguments=arguments,
            call=log_id(call),
            text=text,
            said_at=moment(line, TIME, passed),
        )


def _by_the_program(line: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    """Tell whether nobody said it: context for the model, or the raw answer that a compaction is made of."""
    if (object_of(line.get("metadata")) or {}).get("compaction_output") is True:
        return True
    if item["role"] != "user":
        return False
    kinds = [str(kind) for kind in list_of((object_of(item.get(_BESIDE)) or {}).get("content_item_kinds")) or []]
    return bool(kinds) and not any(kind.startswith(("user", "unknown")) for kind in kinds)


def _asked(part: str) -> str:
    return "" if part.lstrip().startswith(_CODEX_CONTEXT) else without_tags(part)


def _id(item: Mapping[str, Any], so_far: LogState) -> str:
    """Return an id for a message; some models call the first one of every conversation the same."""
    so_far.count += 1
    turn = log_id((object_of(item.get(_BESIDE)) or {}).get("turn_id")) or so_far.turn
    return f"{turn}/{log_id(item.get('id')) or so_far.count}"


def _codex_summary(
    line: Mapping[str, Any], item: Mapping[str, Any], where: str, so_far: LogState, passed: SkippedParts
) -> Iterator[ImportedTurn]:
    text = item.get("message")
    if isinstance(text, str) and (text := mended(_CODEX_BEFORE_SUMMARY.sub("", text, count=1).strip(), passed)):
        yield from log_summary(line, where, so_far, text, passed)


def _named(item: Mapping[str, Any]) -> str:
    """Return a tool's name, with the server's where it has one."""
    namespace = item.get("namespace")
    return f"{namespace}__{item.get('name')}" if isinstance(namespace, str) else str(item.get("name"))


def _arguments(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


def _output(output: Any, passed: SkippedParts) -> str:
    """Return what a tool answered: a string, parts, or an object with either as its content."""
    fields = object_of(output)
    return "\n".join(texts(fields.get("content") if fields else output, passed, of=_CODEX_TEXT))


_GEMINI_TEXT = frozenset({"text"})
_COMMAND = re.compile(r"[/?][\w-]*(?:\s|$)")
_GEMINI_CONTEXT = re.compile(r"\s*<hook_context>.*?</hook_context>", re.DOTALL)
_CUT = re.compile(r"Output too large\. [^\n]*full output see: ([^\n]+)\n")
_FENCED = re.compile(r"<untrusted_context>\n(.*?)\n?</untrusted_context>\s*", re.DOTALL)
_SNAPSHOT = "<state_snapshot>"
_DONE = ("success", "error", "cancelled")


def is_gemini_line(value: Any) -> bool:
    """Tell whether an object is the first of such a log, or all of it."""
    line = object_of(value)
    return line is not None and isinstance(line.get("sessionId"), str) and "projectHash" in line


def gemini_records(
    value: Any, where: str, so_far: LogState, passed: SkippedParts
) -> Iterator[ImportedTurn | ImportedResult | ImportProblem]:
    """Yield what a line, or a whole document, tells: turns, and results of tools."""
    line = object_of(value)
    if line is None:
        yield ImportProblem(where=where, what=f"is {kind_of(value)}, and has to be an object.")
        return
    changed = object_of(line.get("$set"))
    about = line if changed is None else changed
    if so_far.conversation is None:
        so_far.conversation = log_id(about.get("sessionId"))
    so_far.aside = so_far.aside or about.get("kind") == "subagent"
    if so_far.aside:
        return
    messages = list_of(about.get("messages"))
    if messages is None:
        messages = [line] if isinstance(line.get("id"), str) and "type" in line else []
    for nth, message in enumerate(messages):
        place = where if message is line else f"{where}, messages[{nth}]"
        fields = object_of(message)
        if fields is None:
            yield ImportProblem(where=place, what=f"is {kind_of(message)}, and has to be an object.")
            continue
        try:
            if changed is None or _is_snapshot(fields):
                yield from _gemini_message(fields, place, so_far, passed)
        except InvalidRecord as unfit:
            yield ImportProblem(where=place, what=str(unfit))


def _is_snapshot(message: Mapping[str, Any]) -> bool:
    return any(
        str((object_of(part) or {}).get("text")).startswith(_SNAPSHOT) for part in _listed(message.get("content"))
    )


def _gemini_message(
    message: Mapping[str, Any], where: str, so_far: LogState, passed: SkippedParts
) -> Iterator[ImportedTurn | ImportedResult]:
    match message.get("type"):
        case "user":
            text = without_tags(said(_parts(message.get("displayContent") or message.get("content"), passed)))
            if text.startswith(_SNAPSHOT):
                yield from log_summary(message, where, so_far, text, passed)
            elif not _COMMAND.match(text):
                yield from log_turn(message, where, so_far, "user", text, passed, id=log_id(message.get("id")))
        case "gemini":
            text = said(_parts(message.get("content"), passed)).strip()
            yield from log_turn(message, where, so_far, "assistant", text, passed, id=log_id(message.get("id")))
            for call in list_of(message.get("toolCalls")) or []:
                yield from _gemini_result(message, object_of(call) or {}, where, passed)
        case _:
            pass


def _parts(content: Any, passed: SkippedParts) -> Iterator[str]:
    """Yield the texts of a content: a string, a part, or a list of them; thoughts are not said."""
    if isinstance(content, str):
        return texts(content, passed, of=_GEMINI_TEXT)
    spoken = [part for part in _listed(content) if not (object_of(part) or {}).get("thought")]
    return texts(spoken, passed, of=_GEMINI_TEXT)


def _listed(content: Any) -> list[Any]:
    return [content] if isinstance(content, dict | str) else list_of(content) or []  # pyright: ignore[reportUnknownVariableType]


def _gemini_result(
    message: Mapping[str, Any], call: Mapping[str, Any], where: str, passed: SkippedParts
) -> Iterator[ImportedResult]:
    text = _GEMINI_CONTEXT.sub("", mended("\n".join(_answers(call.get("result"))), passed) or "")
    cut = _CUT.match(text)
    text = _FENCED.sub(r"\1", text)
    if text.strip() and call.get("status", "success") in _DONE:
        name = call.get("name")
        yield ImportedResult(
            where=where,
            tool=name if isinstance(name, str) else "",
            arguments=call.get("args"),
            call=log_id(call.get("id")),
            text=text,
            said_at=moment(call, TIME, passed) or moment(message, TIME, passed),
            whole=cut and re.split(r"[/\\]", cut[1].strip())[-1],
        )


def _answers(result: Any) -> Iterator[str]:
    """Yield the texts of a call's result: parts with a functionResponse, or text beside them."""
    for part in _listed(result):
        fields = object_of(part) or {}
        answer = object_of((object_of(fields.get("functionResponse")) or {}).get("response"))
        output = part if isinstance(part, str) else fields.get("text")
        if answer is not None:
            output = answer.get("output", answer.get("error", answer))
        if output is not None:
            yield output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


@dataclass(frozen=True)
class LogFormat:
    """How an agent writes its logs: whether an object is a line of one, and how to read a line."""

    is_line: Callable[[Any], bool]
    records: Callable[[Any, str, LogState, SkippedParts], Iterator[ImportedTurn | ImportedResult | ImportProblem]]


FORMATS: Mapping[Agent, LogFormat] = {
    "claude-code": LogFormat(is_claude_code_line, claude_code_records),
    "codex": LogFormat(is_codex_line, codex_records),
    "gemini": LogFormat(is_gemini_line, gemini_records),
}
