"""Claude Code's logs: `~/.claude/projects/<folder>/<session>.jsonl`, an object a line. No I/O.

A line of type `user` or `assistant` has one message or a block of one, with an id of its own; each that has text is a
turn. Lines of other types repeat requests, hooks and settings; of them only a prompt that was typed while the agent
worked (`queued_command`) is talk. A rewound prompt stays in the log, and was said. A fork copies lines, ids and all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_memory.integrations.importers.formats.logs import TIME, SoFar, id_of, said, summary, texts, turn, without_tags
from mcp_memory.integrations.importers.formats.told import (
    Passed,
    Result,
    Told,
    Unfit,
    Wrong,
    kind_of,
    list_of,
    moment,
    object_of,
)

__all__ = ["is_line", "summary_of", "told"]

_TEXT = frozenset({"text"})
_MARK = "[Request interrupted by user"
_NOT_SAID = {"repeatsCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage", "isMeta"}
_PERSISTED = re.compile(r"\s*<persisted-output>\n.*?saved to: ([^\n]+)\n", re.DOTALL)
_SUMMARY = re.compile(r"<summary>\n?(.*?)\s*</summary>", re.DOTALL)
_BEFORE = re.compile(
    r"This session is being continued from .*?(?:\n<system-reminder>.*?</system-reminder>)?\s*"
    r"(?:\nSummary:|summari[sz]ed below:)\s*",
    re.DOTALL,
)
_AFTER = re.compile(
    r"\n+(?:If you need specific details from before|Please continue the conversation|Continue the "
    r"conversation from where).*",
    re.DOTALL,
)


def is_line(value: Any) -> bool:
    """Tell whether an object is a line of such a log."""
    line = object_of(value)
    return line is not None and isinstance(line.get("type"), str) and ("sessionId" in line or "leafUuid" in line)


def told(value: Any, where: str, so_far: SoFar, passed: Passed) -> Iterator[Told | Result | Wrong]:
    """Yield what a line tells: turns, and results of tools."""
    line = object_of(value)
    if line is None:
        yield Wrong(where=where, what=f"is {kind_of(value)}, and has to be an object.")
        return
    if so_far.conversation is None:
        so_far.conversation = id_of(line.get("sessionId"))
    if line.get("isSidechain") is True or "agentId" in line:
        passed.left["lines of sub-agents"] += line.get("type") in ("user", "assistant")
        return
    try:
        match line.get("type"):
            case "user" | "assistant":
                yield from _message(line, where, so_far, passed)
            case "attachment":
                yield from _queued(line, where, so_far, passed)
            case _:
                pass
    except Unfit as unfit:
        yield Wrong(where=where, what=str(unfit))


def summary_of(text: str) -> str:
    """Return the summary of a compaction alone, from the log's words for it or from those that a hook is given."""
    if found := _SUMMARY.search(text):
        return found[1].strip()
    return _AFTER.sub("", _BEFORE.sub("", text, count=1)).strip()


def _message(line: Mapping[str, Any], where: str, so_far: SoFar, passed: Passed) -> Iterator[Told | Result]:
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
            yield from turn(
                line,
                where,
                so_far,
                "assistant",
                said(texts(content, passed, of=_TEXT)),
                passed,
                id=id_of(line.get("uuid")),
            )
        return
    yield from _results(line, where, content, so_far, passed)
    if line.get("isCompactSummary") is True:
        text = summary_of(said(texts(content, passed, of=_TEXT)))
        yield from summary(line, where, so_far, text, passed)
    elif not _is(line, _NOT_SAID) and _by_a_person(line):
        text = without_tags(said(texts(content, passed, of=_TEXT)))
        if not text.startswith(_MARK):
            yield from turn(line, where, so_far, "user", text, passed, id=id_of(line.get("uuid")))


def _queued(line: Mapping[str, Any], where: str, so_far: SoFar, passed: Passed) -> Iterator[Told]:
    """Yield a prompt that was typed while the agent worked."""
    sent = object_of(line.get("attachment")) or {}
    if sent.get("type") == "queued_command" and not _is(sent, _NOT_SAID) and _by_a_person(sent):
        text = without_tags(said(texts(sent.get("prompt"), passed, of=_TEXT)))
        yield from turn(
            line, where, so_far, "user", text, passed, id=id_of(sent.get("source_uuid")) or id_of(line.get("uuid"))
        )


def _by_a_person(line: Mapping[str, Any]) -> bool:
    """Tell whether a prompt came from a person, and not from another agent, a schedule or a task that ended."""
    origin = object_of(line.get("origin"))
    return origin is None or origin.get("kind") == "human"


def _is(line: Mapping[str, Any], marks: set[str]) -> bool:
    return any(line.get(mark) is True for mark in marks)


def _results(line: Mapping[str, Any], where: str, content: Any, so_far: SoFar, passed: Passed) -> Iterator[Result]:
    for part in list_of(content) or []:
        block = object_of(part)
        if block is None or block.get("type") != "tool_result":
            continue
        tool, arguments = so_far.answered(block.get("tool_use_id"))
        text = "\n".join(texts(block.get("content"), passed, of=_TEXT))
        kept = _PERSISTED.match(text)
        if text.strip():
            yield Result(
                where=where,
                tool=tool,
                arguments=arguments,
                call=id_of(block.get("tool_use_id")),
                text=text,
                said_at=moment(line, TIME, passed),
                whole=kept and re.split(r"[/\\]", kept[1].strip())[-1],
            )
