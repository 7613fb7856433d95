"""Transcripts of Antigravity, `~/.gemini/antigravity-cli/brain/<id>/.system_generated/logs/transcript_full.jsonl`.

    line   {step_index, source: USER_EXPLICIT | SYSTEM | MODEL, type, status, created_at, content, thinking, tool_calls}

The user's words are in `<USER_REQUEST>`. A step of the model is an answer (PLANNER_RESPONSE) or, with any other type,
the result of the tool of that name. `transcript.jsonl` has the same steps. Conversations in `.pb` files are encrypted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, any_line, has
from mcp_memory.integrations.importers.parts import HIDDEN, INJECTED, RESULT, SUMMARIES, THOUGHTS, WORDS, call_parts
from mcp_memory.integrations.importers.records import find, text_of
from mcp_memory.integrations.importers.session_files import chat_records, load_lines

_REQUEST = re.compile(r"<USER_REQUEST>\n?(.*?)\n?</USER_REQUEST>\s*", re.DOTALL)
_ADDED = re.compile(r"<([A-Z_]+)>.*?</\1>\s*", re.DOTALL)


def _session(path: Path, lines: list[Any]) -> dict[str, Any]:
    return {
        "id": path.parents[2].name if path.parents[1].name == ".system_generated" else None,
        "began": find(next(iter(lines), None), "created_at"),
        "is_copy": path.name == "transcript.jsonl" and path.with_name("transcript_full.jsonl").exists(),
        "messages": lines,
    }


def _speaker(step: Message) -> Any:
    match step.get("source"), step.get("type"):
        case "USER_EXPLICIT", _:
            return "user"
        case "MODEL", "PLANNER_RESPONSE":
            return "assistant"
        case _:
            return "tool"


def _left_out(step: Message) -> str | None:
    if step.get("type") == "CHECKPOINT":
        return SUMMARIES
    return HIDDEN if step.get("source") == "SYSTEM" else None


def _parts(step: Message) -> Iterator[dict[str, Any]]:
    text = text_of(step, "content") or ""
    match _speaker(step):
        case "tool":
            id = f"step-{step.get('step_index')}"
            yield {"type": RESULT, "id": id, "name": str(step.get("type")).lower(), "output": text}
        case "user":
            requests, rest = _REQUEST.findall(text), _REQUEST.sub("", text)
            rest, added = _ADDED.subn("", rest)
            yield from ({"type": INJECTED} for _ in range(added))
            yield {"type": WORDS, "text": "\n\n".join(requests) or rest.strip()}
        case _:
            yield from [{"type": THOUGHTS}] if step.get("thinking") else []
            yield {"type": WORDS, "text": text}
            yield from call_parts(step.get("tool_calls"))


FORMAT = Format(
    title="a transcript of Antigravity",
    location="`brain` in `~/.gemini/antigravity-cli`",
    unit="lines",
    matches=any_line(has("step_index", "source", "type")),
    load=load_lines(_session),
    records=chat_records(
        Chat(
            client="antigravity",
            expected="transcript of Antigravity",
            began=("began",),
            key=(),
            speaker=_speaker,
            split=_parts,
            left_out=_left_out,
        )
    ),
)
