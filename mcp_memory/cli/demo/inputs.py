"""What the demo plays: a conversation of two weeks, and a task with its tool results.

The words stand in `fixtures/demo` of the repository, and inside the package once it is installed; the
results that are long by nature are made by `generated`. People, places, programs and addresses are invented.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_memory.cli.demo.generated import GENERATED

__all__ = ["Step", "Task", "conversation", "memories", "replies", "task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One tool call of the task. `after` names the keys of the steps it follows."""

    key: str
    tool: str
    arguments: dict[str, Any]
    result: str
    step: str
    after: tuple[str, ...]
    status: str
    summary: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    session: str
    goal: str
    steps: tuple[Step, ...]


def conversation() -> list[tuple[str, list[dict[str, str]]]]:
    """The sessions in order, each with its turns as `record_turns` takes them."""
    sessions: dict[str, list[dict[str, str]]] = {}
    for line in _read("conversation.jsonl").splitlines():
        turn: dict[str, str] = json.loads(line)
        sessions.setdefault(turn.pop("session"), []).append(turn)
    return list(sessions.items())


def memories() -> list[dict[str, str]]:
    """What is told with `remember`, in order; `replaces` names the key of one before it."""
    return json.loads(_read("memories.json"))


def replies(stage: str) -> Any:
    """What is answered to the questions of a stage; `mcp_memory.cli.demo.replies` says how it is written."""
    return json.loads(_read(f"replies/{stage}.json"))


def task() -> Task:
    """The task, with every result in full."""
    told: dict[str, Any] = json.loads(_read("task.json"))
    steps = tuple(
        Step(
            key=step["key"],
            tool=step["tool"],
            arguments=step["arguments"],
            result=_result(step["result"]),
            step=step["step"],
            after=tuple(step.get("after", ())),
            status=step["status"],
            summary=step.get("summary"),
        )
        for step in told["steps"]
    )
    return Task(session=told["session"], goal=told["task"], steps=steps)


def _result(source: str) -> str:
    generated = source.removeprefix("generated:")
    return GENERATED[generated]() if generated != source else _read(f"results/{source}")


def _read(name: str) -> str:
    installed = Path(__file__).with_name("fixtures")
    folder = installed if installed.is_dir() else Path(__file__).parents[3] / "fixtures" / "demo"
    return (folder / name).read_text(encoding="utf-8")
