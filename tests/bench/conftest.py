"""A retrieval set of our own: three people's small talk, in the format that the command reads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

SESSIONS: dict[str, list[tuple[str, str]]] = {
    "ana:1": [
        ("user", "My cello teacher moved the lesson to Thursday evening."),
        ("assistant", "Noted, Thursday evening it is. Shall I look for a tram home?"),
        ("user", "Yes please, line 12 runs until midnight."),
    ],
    "ana:2": [
        ("user", "The beehive on the roof was knocked over by the storm."),
        ("assistant", "Oh no. Were the bees all right?"),
        ("user", "  "),
        ("user", "Most of them. I ordered a strap from Imkerei Vogel."),
    ],
    "ben:1": [("user", "I am allergic to hazelnuts."), ("assistant", "I will keep them out of every recipe.")],
    "汉:1": [("user", "我每天早上喝乌龙茶。"), ("assistant", "好的，我记住了。")],
}


def asked(
    name: str, kind: str, text: str, haystack: list[str], turns: list[str], sessions: list[str]
) -> dict[str, Any]:
    return {
        "id": name,
        "type": kind,
        "question": text,
        "haystack": [{"session_id": session, "started_at": "2024-05-06T07:00:00"} for session in haystack],
        "evidence_turns": turns,
        "evidence_sessions": sessions,
    }


QUESTIONS = [
    asked("q1", "fact", "When is the cello lesson?", ["ana:1", "ana:2"], ["ana:1/0"], ["ana:1"]),
    asked("q2", "fact", "What is Ben allergic to?", ["ben:1"], ["ben:1/0"], ["ben:1"]),
    asked("q3", "multi", "What happened to the beehive, and what was ordered?", ["ana:1", "ana:2"], ["ana:2/0", "ana:2/3"], ["ana:2"]),
    asked("q4", "fact", "乌龙茶", ["汉:1"], ["汉:1/0"], ["汉:1"]),
    asked("q5_abs", "fact", "Which dog did Ana adopt?", ["ana:1", "ana:2"], [], []),
]  # fmt: skip


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


@pytest.fixture
def small_set(tmp_path: Path) -> Path:
    """The folder of the set."""
    folder = tmp_path / "small"
    folder.mkdir()
    write_lines(
        folder / "sessions.jsonl.gz",
        [
            {
                "session_id": session,
                "turns": [
                    {"id": f"{session}/{place}", "role": role, "content": content}
                    for place, (role, content) in enumerate(turns)
                ],
            }
            for session, turns in SESSIONS.items()
        ],
    )
    write_lines(folder / "questions.jsonl.gz", QUESTIONS)
    return folder
