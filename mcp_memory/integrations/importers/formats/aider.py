"""Histories of aider, `.aider.chat.history.md`: all sessions of a project, one after the other.

    # aider chat started at 2026-01-14 20:03:11     begins a session; local time
    #### words of the user␠␠                        each line of a message; `/command` instead of words
    > text of the program␠␠                         each line
    anything else                                   the answer of the model

The program's own lines end in two spaces, those of an answer in Markdown do not. Within a fence of code only the
beginning of a session counts. `.aider.input.history` in the same folder has the times of the user's input:

    # 2026-01-14 20:04:02.220022
    +each line
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import AnyRecord, Format
from mcp_memory.integrations.importers.parts import COMMANDS, INJECTED
from mcp_memory.integrations.importers.records import SkippedParts, SourceValue, find, items_of
from mcp_memory.integrations.importers.session_files import text_at

_START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$", re.MULTILINE)
_COMMAND = re.compile(r"/(?!(?:ask|code|architect|context)\s+\S)|!|<blank>$")
_SPOKEN = re.compile(r"/(?:ask|code|architect|context)\s+")
_TYPED = re.compile(r"^# (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*)\n((?:\+.*\n?)+)", re.MULTILINE)
_CONFIRMED = re.compile(r"\(Y\)es/\(N\)o.*\w$")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_THOUGHTS = re.compile(r"-{6,}\n+► \*\*THINKING\*\*.*?-{6,}\n+► \*\*ANSWER\*\*\n*", re.DOTALL)


def _sessions(value: Any) -> Iterator[Any]:
    text, typed = str(find(value, "text")), items_of(value, "typed")
    starts = list(_START.finditer(text))
    for start, following in zip(starts, [*starts[1:], None], strict=False):
        body = text[start.end() : following.start() if following else None]
        until = following[1] if following else "9999"
        inputs = [(time, words) for time, words in typed if start[1] <= time < until]
        yield {"id": start[1], "began": start[1], "messages": list(_dated(_messages(body), inputs))}


def _typed(text: str) -> list[tuple[str, str]]:
    """Return the time and words of each input."""
    entries = [(entry[1], entry[2]) for entry in _TYPED.finditer(text)]
    return [(time, "\n".join(line[1:].rstrip() for line in lines.splitlines()).strip()) for time, lines in entries]


def _dated(messages: Iterator[dict[str, Any]], typed: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield the messages; those of the user get the time at which their words were typed."""
    at = 0
    for message in messages:
        words = message.get("typed")
        nth = next((nth for nth in range(at, len(typed)) if typed[nth][1] == words), None)
        at = at if nth is None else nth + 1
        yield message if nth is None else {**message, "ts": typed[nth][0]}


def _messages(body: str) -> Iterator[dict[str, Any]]:
    """Yield runs of lines by the same speaker: user, assistant or program."""
    speaker, lines, is_code = "assistant", list[str](), False
    for line in body.splitlines():
        is_ours = line.endswith("  ") and not is_code
        who = (
            "user" if is_ours and line.startswith("#### ") else "program" if is_ours and line[0] == ">" else "assistant"
        )
        is_code ^= who == "assistant" and _FENCE.match(line) is not None
        if who != speaker:
            yield from _message(speaker, lines)
            speaker, lines = who, []
        lines.append(line.removeprefix("#### ").rstrip() if who == "user" else line)
    yield from _message(speaker, lines)


def _message(speaker: str, lines: list[str]) -> Iterator[dict[str, Any]]:
    text = "\n".join(lines).strip()
    if not text:
        return
    if speaker == "program":
        yield from ({"role": "program", "content": line} for line in lines)
    else:
        yield {
            "role": speaker,
            "content": _SPOKEN.sub("", text, count=1) if speaker == "user" else _THOUGHTS.sub("", text),
            "typed": text if speaker == "user" else None,
        }


def _left_out(message: Message) -> str | None:
    text = str(message.get("content"))
    if message.get("role") == "program" or (message.get("role") == "user" and _CONFIRMED.search(text)):
        return INJECTED
    return COMMANDS if message.get("role") == "user" and _COMMAND.match(text) else None


_CHAT = Chat(
    client="aider",
    expected="history of aider",
    conversations=_sessions,
    began=("began",),
    time=("ts",),
    left_out=_left_out,
)


def aider_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the records of a history, with the times of the user's input."""
    typed = _typed(text_at(Path(source.path).with_name(".aider.input.history"), whole=True)) if source.path else []
    yield from _CHAT.records(replace(source, value={"text": source.value, "typed": typed}), skipped)


FORMAT = Format(
    title="a history of aider",
    location="`.aider.chat.history.md` in the folder of a project",
    unit="text",
    path=r"\.md$",
    matches=lambda text: _START.search(text) is not None,
    before=("basic-memory", "mempalace"),
    records=aider_records,
)
