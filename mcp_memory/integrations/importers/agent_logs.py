"""The log formats of Claude Code, Codex and Gemini CLI, an object on each line. No I/O.

Claude Code, `~/.claude/projects/<folder>/<session>.jsonl`: a line of type `user` or `assistant` has a message or a
block of a message, with an id for each; each line with text is a turn. Lines of other types repeat requests, hooks and
settings; of them only a prompt typed while the agent worked (`queued_command`) is imported. A rewound prompt stays in
the log and is imported, because the user wrote it. A fork copies lines with their ids.

Codex, `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`: {timestamp, type, payload}, where type is session_meta,
turn_context, response_item, compacted or event_msg. Turns are the `response_item`s that are messages of the user or the
assistant, without the context that Codex puts among the user's. A message is identified by its Codex turn, and its id
or its position in that turn; older versions copy both into a fork. A result occurs twice: whole when its tool ends, and
as the model sees it.

Gemini CLI, `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`: a line has the conversation's metadata, a
message, or a change: {"$set": …} and {"$rewindTo": id}. A message is written again when a tool has answered, so an id
may occur more than once. A compression sets all messages again, under new ids: of these only the summary is imported.
Older versions write one `.json` object, {sessionId, messages: [message, …]}, whole each time.

To add a format: a test for a line, a reader of a line, and an entry in `FORMATS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcp_memory.core.private_passages import without_private, without_private_parts
from mcp_memory.integrations.importers.log_lines import (
    LogLine,
    LogRecord,
    LogState,
    join_parts,
    log_id,
)
from mcp_memory.integrations.importers.parts import parse_or_keep
from mcp_memory.integrations.importers.records import (
    ImportedTurn,
    ImportProblem,
    items_of,
    kind_of,
    list_of,
    object_of,
    objects_in,
    parse_time,
    part_of,
    replace_surrogates,
)
from mcp_memory.longterm.attachments import parts_of_message

# --- Claude Code ------------------------------------------------------------------------------------

_MARK = "[Request interrupted by user"
_HIDDEN_MARKS = {"repeatsCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage", "isMeta"}
_PERSISTED = re.compile(r"\s*<persisted-output>\n.*?saved to: ([^\n]+)\n", re.DOTALL)
_CLAUDE_BEFORE_SUMMARY = re.compile("This session is being continued from ")
_CLAUDE_BEFORE_SUMMARY_ENDS = re.compile(r"(?:\nSummary:|summari[sz]ed below:)\s*")
_CLAUDE_AFTER_SUMMARY = re.compile(
    r"(?<!\n)\n+(?:If you need specific details from before|Please continue the conversation|Continue the "
    r"conversation from where).*",
    re.DOTALL,
)

_ANSWERED = re.compile(r"(?:User has answered your questions?|Your questions? ha(?:s|ve) been answered)\b[^:\n]{0,40}:")
_ANSWER = re.compile(
    r'"(?P<question>[^"]+)"="(?P<answer>.*?)"(?=, "|\. You can now|[.,]?\s*$| user notes| selected)', re.DOTALL
)
_REFUSED = re.compile(
    r"The user doesn't want to (?:proceed with this tool use|take this action right now)\b[^\n]{0,300}"
    r"To tell you how to proceed, the user said:"
)
_AFTER_REFUSAL = "\n\nNote: The user's next message may contain a correction"
_ASKS_BACK = re.compile(r"The user wants to clarify these questions\.")
"""The text of Claude Code's button with which a user asks back instead of answering."""


def is_claude_code_line(value: Any) -> bool:
    line = object_of(value)
    if line is None or "parts" in part_of(line, "message"):  # a session of Qwen Code
        return False
    return isinstance(line.get("type"), str) and ("sessionId" in line or "leafUuid" in line)


def claude_code_records(line: LogLine) -> Iterator[LogRecord]:
    """Update the state of the log from a line, and yield its turns and tool results."""
    fields, state = line.fields, line.state
    if state.conversation is None:
        state.conversation = log_id(fields.get("sessionId"))
    state.note_folder(fields.get("cwd"))
    kind = fields.get("type")
    if fields.get("isSidechain") is True or "agentId" in fields:
        line.skipped.left_out["lines of sub-agents"] += kind in ("user", "assistant")
    elif kind == "assistant":
        yield from _claude_assistant_line(line)
    elif kind == "user":
        yield from _claude_user_line(line)
    elif kind == "custom-title":  # of the command /rename, without a time; written again with every resumption
        yield from line.title(fields.get("customTitle"))
    elif kind == "attachment":
        sent = part_of(fields, "attachment")
        if sent.get("type") == "queued_command" and _is_by_person(sent):
            id = log_id(sent.get("source_uuid")) or log_id(fields.get("uuid"))
            yield from line.message(line.texts(sent.get("prompt")), id=id)


def extract_summary(text: str) -> str:
    """Return only the summary of a compaction, from the text in the log or from the text that a hook gets."""
    _, opened, rest = text.partition("<summary>")
    summary, closed, _ = rest.partition("</summary>")
    if opened and closed:
        return summary.strip()
    begun = _CLAUDE_BEFORE_SUMMARY.search(text)
    if begun and (ends := _CLAUDE_BEFORE_SUMMARY_ENDS.search(text, begun.end())):
        text = text[: begun.start()] + text[ends.end() :]
    return _CLAUDE_AFTER_SUMMARY.sub("", text).strip()


def _claude_assistant_line(line: LogLine) -> Iterator[LogRecord]:
    message = part_of(line.fields, "message")
    content = message.get("content")
    for call in objects_in(list_of(content) or []):
        if call.get("type") == "tool_use":
            line.state.note_call(call.get("id"), call.get("name"), call.get("input"))
    if message.get("model") != "<synthetic>" and not _is_marked(line.fields):
        yield from line.turn("assistant", join_parts(line.texts(content)), id=log_id(line.fields.get("uuid")))


def _claude_user_line(line: LogLine) -> Iterator[LogRecord]:
    content = part_of(line.fields, "message").get("content")
    for block in objects_in(list_of(content) or []):
        if block.get("type") == "tool_result":
            call = block.get("tool_use_id")
            tool, arguments = line.state.take_call(call)
            text = "\n".join(line.texts(block.get("content")))
            yield from line.result(call, tool, arguments, text, _PERSISTED.match(text))
            if _is_by_person(line.fields):
                is_error = block.get("is_error") is True
                yield from _claude_refusal(line, tool, text) if is_error else _claude_answers(line, tool, text)
    if line.fields.get("isCompactSummary") is True:
        yield from line.summary(extract_summary(without_private(join_parts(line.texts(content)))))
    elif _is_by_person(line.fields):
        parts = without_private_parts(line.texts(content))
        typed = [part for part in parts if not part.lstrip().startswith(_MARK)]
        yield from line.message(typed, id=log_id(line.fields.get("uuid")))


def _claude_answers(line: LogLine, tool: str, text: str) -> Iterator[ImportedTurn]:
    """Yield the questions that the agent asked in a dialogue, each before the user's answer."""
    if tool != "AskUserQuestion":
        return
    outcome = part_of(line.fields, "toolUseResult")
    answers = object_of(outcome.get("answers")) or (
        {match["question"]: match["answer"] for match in _ANSWER.finditer(text)} if _ANSWERED.match(text) else {}
    )
    notes = part_of(outcome, "annotations")
    uuid = log_id(line.fields.get("uuid"))
    for at, (question, answer) in enumerate(answers.items()):
        typed = [part for part in (answer, part_of(notes, question).get("notes")) if isinstance(part, str)]
        id = uuid if at == 0 or uuid is None else log_id(f"{uuid}/{at}")
        yield from line.turn("assistant", question, id=None if uuid is None else log_id(f"{uuid}/asked-{at}"))
        yield from line.message(line.texts(typed), id=id)


def _claude_refusal(line: LogLine, tool: str, text: str) -> Iterator[ImportedTurn]:
    """Yield the words that the user typed when refusing a tool call.

    A server's error message may imitate a refusal, and so may a command's output in clients before version 2, which put
    no exit code before it. Such a message counts only if the log marks the call as refused by the user.
    """
    denial = line.fields.get("toolDenialKind")
    is_old = str(line.fields.get("version", "")).startswith(("0.", "1."))
    may_imitate = not tool or tool.startswith("mcp__") or (tool == "Bash" and is_old)
    is_refused = denial == "user-rejected" or (denial is None and not may_imitate)
    refusal = _REFUSED.match(text)
    if is_refused and refusal:
        typed = text[refusal.end() :].partition(_AFTER_REFUSAL)[0].strip()
        if not _ASKS_BACK.match(typed):
            yield from line.message([typed], id=log_id(line.fields.get("uuid")))


def _is_by_person(line: Mapping[str, Any]) -> bool:
    """Return whether the user wrote a line, not another agent, a schedule or a finished task."""
    origin = object_of(line.get("origin"))
    is_typed = line.get("commandMode") in (None, "prompt", "bash")
    return is_typed and not _is_marked(line) and (origin is None or origin.get("kind") == "human")


def _is_marked(line: Mapping[str, Any]) -> bool:
    return any(line.get(mark) is True for mark in _HIDDEN_MARKS)


# --- Codex ------------------------------------------------------------------------------------------

_CODEX_TYPES = frozenset({"session_meta", "turn_context", "response_item", "compacted", "event_msg"})
_CODEX_TEXT = ("input_text", "output_text", "text")
_CODEX_METADATA = "internal_chat_message_metadata_passthrough"
_CODEX_BEFORE_SUMMARY = re.compile(
    r"Another language model started to solve .{,900}?with your own analysis:\s*", re.DOTALL
)
_CODEX_CONTEXT = ("# AGENTS.md instructions", "<INSTRUCTIONS>")


def is_codex_line(value: Any) -> bool:
    line = object_of(value)
    kind = None if line is None or not isinstance(line.get("payload"), dict) else line.get("type")
    return isinstance(kind, str) and kind in _CODEX_TYPES


def codex_records(line: LogLine) -> Iterator[LogRecord]:
    """Update the state of the log from a line, and yield its turns and tool results."""
    state, payload = line.state, part_of(line.fields, "payload")
    if line.fields.get("type") in ("session_meta", "turn_context"):
        state.note_folder(payload.get("cwd"))
    match line.fields.get("type"), payload.get("type"):
        case "session_meta", _:
            _note_conversation(payload, state)
        case ("turn_context", _) | ("event_msg", "task_started"):
            turn = log_id(payload.get("turn_id"))
            if turn is not None and turn != state.turn:
                state.turn, state.count = turn, 0
        case "response_item", _ if not state.is_subagent:
            yield from _codex_item(line, payload)
        case "event_msg", "item_completed" if not state.is_subagent:
            yield from _codex_whole_result(line, part_of(payload, "item"))
        case "compacted", _ if not state.is_subagent and isinstance(text := payload.get("message"), str):
            summary = _CODEX_BEFORE_SUMMARY.sub("", without_private(text), count=1).strip()
            yield from line.summary(replace_surrogates(summary, line.skipped) or "")
        case _:
            pass


def _note_conversation(meta: Mapping[str, Any], state: LogState) -> None:
    """Read from the first metadata line of a log its conversation, and whether the log is a sub-agent's.

    Later metadata lines are ignored, because a fork contains the lines of its parent, including the parent's metadata.
    """
    id = log_id(meta.get("id"))
    if state.conversation is None and id is not None:
        state.conversation = state.turn = id
        state.is_subagent = "subagent" in part_of(meta, "source") or meta.get("thread_source") == "subagent"


def _codex_item(line: LogLine, item: Mapping[str, Any]) -> Iterator[LogRecord]:
    call = item.get("call_id")
    match item.get("type", "message"):
        case "message" if item.get("role") in ("user", "assistant") and not _is_by_program(line.fields, item):
            parts = line.texts(item.get("content"), _CODEX_TEXT)
            parts = [part for part in parts if part.strip() and not _is_context(item, part)]
            is_by_user = item["role"] == "user"
            if is_by_user and parts and (before := _CODEX_BEFORE_SUMMARY.match(parts[0].lstrip())):
                yield from line.summary(join_parts([parts[0].lstrip()[before.end() :], *parts[1:]]).strip())
            elif parts:
                line.state.count += 1  # some models give the first message of every conversation the same id
                turn = log_id(part_of(item, _CODEX_METADATA).get("turn_id")) or line.state.turn
                id = f"{turn}/{log_id(item.get('id')) or line.state.count}"
                yield from (
                    line.message(parts, id=id) if is_by_user else line.turn("assistant", join_parts(parts), id=id)
                )
        case "function_call":
            line.state.note_call(call, _tool_name(item), parse_or_keep(item.get("arguments")))
        case "custom_tool_call":
            line.state.note_call(call, _tool_name(item), item.get("input"))
        case "local_shell_call":
            line.state.note_call(call, "shell", object_of(item.get("action")))
        case "function_call_output" | "custom_tool_call_output":
            yield from line.result(call, *line.state.take_call(call), _output(line, item.get("output")))
        case _:
            pass


def _codex_whole_result(line: LogLine, item: Mapping[str, Any]) -> Iterator[LogRecord]:
    """Yield a result as the tool returned it; the answer to its call comes later and may be cut."""
    id = item.get("id")
    tool, arguments = line.state.calls.get(id, ("", None)) if isinstance(id, str) else ("", None)
    match item:
        case {"type": "CommandExecution", "aggregated_output": str() as text}:
            yield from line.result(id, tool or "shell", arguments or item.get("command"), text)
        case {"type": "McpToolCall"}:
            name = tool or f"mcp__{item.get('server')}__{item.get('tool')}"
            text = _output(line, item.get("result"))
            yield from line.result(id, name, arguments or item.get("arguments"), text)
        case _:
            pass


def _is_by_program(line: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    """Return whether a message is context from the client, or the raw answer from which a compaction is made."""
    if part_of(line, "metadata").get("compaction_output") is True:
        return True
    kinds = list(map(str, items_of(part_of(item, _CODEX_METADATA), "content_item_kinds")))
    return item["role"] == "user" and bool(kinds) and not any(kind.startswith(("user", "unknown")) for kind in kinds)


def _is_context(item: Mapping[str, Any], part: str) -> bool:
    """Return whether a part of a user's message is only context that Codex adds."""
    if item["role"] != "user":
        return False
    message = parts_of_message(part)
    return part.lstrip().startswith(_CODEX_CONTEXT) or not (message.typed or message.attached)


def _tool_name(item: Mapping[str, Any]) -> str:
    """Return a tool's name, after its namespace if it has one."""
    namespace = item.get("namespace")
    return f"{namespace}__{item.get('name')}" if isinstance(namespace, str) else str(item.get("name"))


def _output(line: LogLine, output: Any) -> str:
    """Return the text of a tool's output, which is a string, parts, or an object with either as its content."""
    fields = object_of(output)
    return "\n".join(line.texts(fields.get("content") if fields else output, _CODEX_TEXT))


# --- Gemini CLI -------------------------------------------------------------------------------------

_COMMAND = re.compile(r"[/?][\w-]*(?:\s|$)")
_GEMINI_CONTEXT = re.compile(r"\s*<hook_context>.*?</hook_context>", re.DOTALL)
_CUT = re.compile(r"Output too large\. [^\n]*full output see: ([^\n]+)\n")
_FENCED = re.compile(r"<untrusted_context>\n(.*?)\n?</untrusted_context>\s*", re.DOTALL)
_SNAPSHOT = "<state_snapshot>"
_DONE = ("success", "error", "cancelled")


def is_gemini_line(value: Any) -> bool:
    """Return whether a value is the first line of a log, or a whole log."""
    line = object_of(value)
    return line is not None and isinstance(line.get("sessionId"), str) and "projectHash" in line


def gemini_records(line: LogLine) -> Iterator[LogRecord]:
    """Yield the turns and tool results of a line or document; a message that is not an object is a problem."""
    fields, state = line.fields, line.state
    changed = object_of(fields.get("$set"))
    about = fields if changed is None else changed
    if state.conversation is None:
        state.conversation = log_id(about.get("sessionId"))
    state.is_subagent = state.is_subagent or about.get("kind") == "subagent"
    if state.is_subagent:
        return
    messages = list_of(about.get("messages"))
    if messages is None:
        messages = [fields] if isinstance(fields.get("id"), str) and "type" in fields else []
    for index, entry in enumerate(messages):
        where = line.where if entry is fields else f"{line.where}, messages[{index}]"
        message = object_of(entry)
        if message is None:
            yield ImportProblem(where=where, what=f"is {kind_of(entry)}, and has to be an object.")
        elif changed is None or _is_snapshot(message):
            yield from _gemini_message(replace(line, fields=message, where=where))


def _is_snapshot(message: Mapping[str, Any]) -> bool:
    return any(str(part.get("text")).startswith(_SNAPSHOT) for part in objects_in(_as_list(message.get("content"))))


def _gemini_message(line: LogLine) -> Iterator[LogRecord]:
    message = line.fields
    match message.get("type"):
        case "user":
            spoken = _visible_texts(line, message.get("displayContent") or message.get("content"))
            parts = without_private_parts(spoken)
            text = join_parts(parts).strip()
            if text.startswith(_SNAPSHOT):
                yield from line.summary(text)
            elif not _COMMAND.match(text):
                yield from line.message(parts, id=log_id(message.get("id")))
        case "gemini":
            text = join_parts(_visible_texts(line, message.get("content"))).strip()
            yield from line.turn("assistant", text, id=log_id(message.get("id")))
            for call in items_of(message, "toolCalls"):
                yield from _gemini_result(line, object_of(call) or {})
        case _:
            pass


def _visible_texts(line: LogLine, content: Any) -> Iterator[str]:
    """Yield the texts of a content: a string, a part, or a list of them, without thoughts."""
    if isinstance(content, str):
        return line.texts(content)
    return line.texts([part for part in _as_list(content) if not (object_of(part) or {}).get("thought")])


def _as_list(content: Any) -> list[Any]:
    return [content] if isinstance(content, dict | str) else list_of(content) or []  # pyright: ignore[reportUnknownVariableType]


def _gemini_result(line: LogLine, call: Mapping[str, Any]) -> Iterator[LogRecord]:
    text = _GEMINI_CONTEXT.sub(
        "", replace_surrogates("\n".join(_response_texts(call.get("result"))), line.skipped) or ""
    )
    whole, name = _CUT.match(text), call.get("name")
    if call.get("status", "success") in _DONE:
        tool, said_at = name if isinstance(name, str) else "", parse_time(call, ("timestamp",), line.skipped)
        text = _FENCED.sub(r"\1", text)
        yield from line.result(call.get("id"), tool, call.get("args"), text, whole, said_at=said_at)


def _response_texts(result: Any) -> Iterator[str]:
    """Yield the texts of a call's result: of parts with a functionResponse, or with text."""
    for part in _as_list(result):
        fields = object_of(part) or {}
        answer = object_of(part_of(fields, "functionResponse").get("response"))
        output = part if isinstance(part, str) else fields.get("text")
        if answer is not None:
            output = answer.get("output", answer.get("error", answer))
        if output is not None:
            yield output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class LogFormat:
    """The format of an agent's logs: a test for a line, and a function that yields the records of a line."""

    is_line: Callable[[Any], bool]
    records: Callable[[LogLine], Iterator[LogRecord]]


FORMATS: Mapping[str, LogFormat] = {
    "claude-code": LogFormat(is_claude_code_line, claude_code_records),
    "codex": LogFormat(is_codex_line, codex_records),
    "gemini": LogFormat(is_gemini_line, gemini_records),
}
