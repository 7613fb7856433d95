"""The same conversation as each client writes it; follows its log and reads the stored rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from mcp_memory.integrations.importers.follow import FollowReport, follow_log
from mcp_memory.integrations.importers.log_lines import LogLine, LogState
from mcp_memory.integrations.importers.records import (
    Agent,
    ImportedResult,
    ImportedTurn,
    ImportProblem,
    SkippedParts,
)
from mcp_memory.service.memory import Memory
from tests.in_memory import in_memory

BEGAN = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
LONG = "\n".join(f"2026-11-{1 + n % 28:02d} berth {n % 7} ship Kestrel {n * 37} tonnes" for n in range(120))
"""A result large enough to be kept."""
IDS: dict[Agent, str] = {
    "claude-code": "3f2a9c1e-8d1b-4c5a-9e77-1b2c3d4e5f60",
    "codex": "01a20134-1b07-7fa1-a6bb-ae75f2713327",
    "gemini": "595f5ec3-7eb6-4d67-9cb2-60cee7d07a7f",
}

T = TypeVar("T")
Step = tuple[str, ...]
"""`("user", words)`, or with several texts a message of several parts, `("assistant", words)`, `("call", id, tool)`, `("result", id, text)` or `("summary", words)`."""

TALK: list[Step] = [
    ("user", "How many ships lie in the harbour?"),
    ("assistant", "I look at the log."),
    ("call", "call_1", "Bash"),
    ("result", "call_1", LONG),
    ("call", "call_2", "Read"),
    ("result", "call_2", "three lines"),
    ("assistant", "There are 120 entries; berth 3 is the busiest."),
    ("summary", "1. The user asked for ships.\n2. Berth 3 is the busiest."),
    ("user", "Übersetze das: 港には何隻？"),
    ("assistant", "Es sind 120 Einträge."),
]


def at(n: int) -> str:
    return (BEGAN + timedelta(seconds=n)).isoformat().replace("+00:00", "Z")


def claude(steps: Sequence[Step], *, id: str = IDS["claude-code"], ids: str = "m") -> list[dict[str, Any]]:
    """The lines of Claude Code's log; `ids` begins the ids of its messages."""
    lines: list[dict[str, Any]] = [{"type": "queue-operation", "operation": "enqueue", "sessionId": id}]
    for n, step in enumerate(steps):
        more: dict[str, Any] = {}
        match step:
            case ("user", words):
                content, role = words, "user"
            case ("user", *texts):
                content, role = [{"type": "text", "text": text} for text in texts], "user"
            case ("assistant", words):
                content, role = [{"type": "text", "text": words}], "assistant"
            case ("call", call, tool):
                content, role = [{"type": "tool_use", "id": call, "name": tool, "input": {"on": tool}}], "assistant"
            case ("result", call, text):
                content, role = [{"type": "tool_result", "tool_use_id": call, "content": text}], "user"
            case _:
                content, role = _continued(step[1]), "user"
                more = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        message = {"role": role, "content": content}
        line = {"type": role, "message": message, "uuid": f"{ids}-{n}", "timestamp": at(n), "sessionId": id}
        lines += [{**line, "isSidechain": False, **more}, {"type": "last-prompt", "sessionId": id}]
    return lines


def _continued(summary: str) -> str:
    return (
        "This session is being continued from a previous conversation that ran out of context. The summary below "
        "covers the earlier portion of the conversation.\n\n<system-reminder>\nBash\n</system-reminder>\nSummary:\n"
        f"{summary}\n\nIf you need specific details from before compaction, read the full transcript at: /x.jsonl\n"
        "Continue the conversation from where it left off."
    )


def codex(steps: Sequence[Step], *, id: str = IDS["codex"], ids: str = "turn") -> list[dict[str, Any]]:
    """The lines of Codex's log; `ids` begins the ids of its turns."""
    lines: list[tuple[str, dict[str, Any]]] = [("session_meta", {"id": id, "source": "cli"})]
    context = "<environment_context>\n  <cwd>/work</cwd>\n</environment_context>"
    for n, step in enumerate(steps):
        match step:
            case ("user", *texts):
                lines.append(("turn_context", {"turn_id": f"{ids}-{n}"}))
                lines += [("response_item", _item("user", context)), ("response_item", _item("user", *texts))]
                lines.append(("event_msg", {"type": "item_completed", "item": {"type": "UserMessage", "id": "x"}}))
            case ("assistant", words):
                lines.append(("response_item", _item("assistant", words, id=f"msg_{n}")))
            case ("call", call, tool):
                called = {"type": "function_call", "name": tool, "arguments": json.dumps({"on": tool})}
                lines.append(("response_item", {**called, "call_id": call}))
            case ("result", call, text):
                whole = {"type": "CommandExecution", "id": call, "command": ["x"], "aggregated_output": text}
                lines.append(("event_msg", {"type": "item_completed", "item": whole}))
                shown = {"type": "function_call_output", "call_id": call, "output": f"Exit code 0\n{text[:900]}"}
                lines.append(("response_item", shown))
            case _:
                raw = _item("assistant", step[1], id=f"raw_{n}")
                lines.append(("response_item", raw))
                before = "Another language model started to solve this problem. Use it with your own analysis:\n"
                lines.append(("compacted", {"message": before + step[1], "replacement_history": [raw]}))
    made = [{"timestamp": at(n), "type": kind, "payload": payload} for n, (kind, payload) in enumerate(lines)]
    return [
        {**line, "metadata": {"compaction_output": True}} if line["payload"].get("id", "").startswith("raw") else line
        for line in made
    ]


def _item(role: str, *texts: str, **more: Any) -> dict[str, Any]:
    kind = "input_text" if role == "user" else "output_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts], **more}


def gemini(steps: Sequence[Step], *, id: str = IDS["gemini"], ids: str = "g") -> list[dict[str, Any]]:
    """The lines of Gemini CLI's log."""
    lines: list[dict[str, Any]] = [{"sessionId": id, "projectHash": "ab", "startTime": at(0), "kind": "main"}]
    calls: dict[str, dict[str, Any]] = {}
    for n, step in enumerate(steps):
        head = {"id": f"{ids}-{n}", "timestamp": at(n)}
        match step:
            case ("user", *texts):
                lines.append({**head, "type": "user", "content": [{"text": text} for text in texts]})
            case ("assistant", words):
                lines.append({**head, "type": "gemini", "content": words, "thoughts": [{"subject": "hm"}]})
            case ("call", call, tool):
                calls[call] = {**head, "type": "gemini", "content": "", "toolCalls": [{"id": call, "name": tool}]}
                lines.append({**head, "type": "gemini", "content": ""})
            case ("result", call, text):
                response = {"functionResponse": {"id": call, "response": {"output": text}}}
                done = {**calls[call]["toolCalls"][0], "args": {}, "result": [response], "status": "success"}
                lines += [{**calls[call], "toolCalls": [done]}, {**calls[call], "toolCalls": [done], "tokens": {}}]
            case _:
                kept = [{**line, "id": f"new-{line['id']}"} for line in lines if "id" in line][-2:]
                snapshot = {
                    **head,
                    "type": "user",
                    "content": [{"text": f"<state_snapshot>{step[1]}</state_snapshot>"}],
                }
                lines.append({"$set": {"messages": [snapshot, *kept]}})
        lines.append({"$set": {"lastUpdated": at(n)}})
    return lines


WRITERS = {"claude-code": claude, "codex": codex, "gemini": gemini}
NAMES: dict[Agent, str] = {
    "claude-code": f"projects/-work/{IDS['claude-code']}.jsonl",
    "codex": f"sessions/2026/11/20/rollout-2026-11-20T09-00-00-{IDS['codex']}.jsonl",
    "gemini": "tmp/work/chats/session-2026-11-20T09-00-595f5ec3.jsonl",
}


def data(lines: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def written(folder: Path, agent: Agent, steps: Sequence[Step] = TALK, **about: str) -> Path:
    """Write a conversation where its client would, and return its log."""
    path = folder / NAMES[agent]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data(WRITERS[agent](steps, **about)))
    return path


def records_of(
    records: Callable[[LogLine], Iterable[ImportedTurn | ImportedResult | ImportProblem]], *lines: Any
) -> list[ImportedTurn | ImportedResult | ImportProblem]:
    """Return the records of consecutive lines of a log."""
    so_far, skipped = LogState(), SkippedParts()
    return [
        record for n, value in enumerate(lines, 1) for record in records(LogLine(value, f"line {n}", so_far, skipped))
    ]


# --- the contents of a memory -----------------------------------------------------------------------


def followed(home: Path, *paths: Path, live: bool = False, now: datetime = BEGAN, **options: Any) -> list[FollowReport]:
    """Follow logs in order, into the memory at `home`."""

    async def visit(memory: Memory) -> list[FollowReport]:
        return [await follow_log(memory, path, live=live, now=lambda: now, **options) for path in paths]

    return in_memory(home, visit)


def turns(home: Path) -> dict[str, list[tuple[str, str]]]:
    """Roles and words of every turn, by session."""

    async def visit(memory: Memory) -> dict[str, list[tuple[str, str]]]:
        return {
            info.session: [(turn.role, turn.content) for turn in await memory.session_turns(info.session, limit=1_000)]
            for info in await memory.sessions(limit=1_000)
        }

    return in_memory(home, visit)


def refs(home: Path) -> list[bytes]:
    """The raw bytes of every result that is kept."""
    files = sorted((home / "spaces" / "default" / "refs").glob("*.md"))
    return [path.read_bytes().split(b"\n---\n", 1)[1] for path in files]
