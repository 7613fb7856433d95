"""Histories of aider, `.aider.chat.history.md`: all sessions of a project, one after the other.

    # aider chat started at 2026-01-14 20:03:11     begins a session; local time
    #### words of the user␠␠                        each line of a message; `/command` instead of words
    > text of the program␠␠                         each line
    anything else                                   the answer of the model

The program's own lines end in two spaces, those of an answer in Markdown do not. Within a fence of code only the
beginning of a session counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.parts import COMMANDS, INJECTED

_START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$", re.MULTILINE)
_COMMAND = re.compile(r"/(?!(?:ask|code|architect|context)\s+\S)|!|<blank>$")
_SPOKEN = re.compile(r"/(?:ask|code|architect|context)\s+")
_CONFIRMED = re.compile(r"\(Y\)es/\(N\)o.*\w$")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_THOUGHTS = re.compile(r"-{6,}\n+► \*\*THINKING\*\*.*?-{6,}\n+► \*\*ANSWER\*\*\n*", re.DOTALL)


def _sessions(text: Any) -> Iterator[Any]:
    starts = list(_START.finditer(str(text)))
    for start, following in zip(starts, [*starts[1:], None], strict=False):
        body = str(text)[start.end() : following.start() if following else None]
        yield {"id": start[1], "began": start[1], "messages": list(_messages(body))}


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
        }


def _left_out(message: Message) -> str | None:
    text = str(message.get("content"))
    if message.get("role") == "program" or (message.get("role") == "user" and _CONFIRMED.search(text)):
        return INJECTED
    return COMMANDS if message.get("role") == "user" and _COMMAND.match(text) else None


FORMAT = Format(
    title="a history of aider",
    found="`.aider.chat.history.md` in the folder of a project",
    unit="text",
    path=r"\.md$",
    matches=lambda text: _START.search(text) is not None,
    before=("basic-memory", "mempalace"),
    records=Chat(
        client="aider",
        expected="history of aider",
        conversations=_sessions,
        began=("began",),
        left_out=_left_out,
    ).records,
)
