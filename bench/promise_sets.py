"""The promises and prompts of `fixtures/promises`, for `bench.promises` and `scripts/fit_promises.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "fixtures/promises"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPromise:
    """A promise with its parts, and prompts: `same` and `other` trigger it, `near` do not."""

    language: str
    said_at: datetime
    turn: str
    promise: str
    trigger: str
    say: str
    due: date | None
    is_date: bool
    same: tuple[str, ...]
    other: tuple[str, ...]
    near: tuple[str, ...]

    @property
    def context(self) -> str:
        """The turn up to the end of the promise."""
        return self.turn[: self.turn.find(self.promise) + len(self.promise)]


def read_promises(part: str) -> list[LabelledPromise]:
    """Return the promises of a part, `dev` or `held`."""
    return [_promise(row) for row in _rows(f"{part}.jsonl")]


def read_prompts(part: str) -> list[tuple[str, str]]:
    """Return (language, prompt) for the prompts of a part that trigger no promise."""
    return [(row["language"], row["prompt"]) for row in _rows(f"{part}_none.jsonl")]


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def _promise(row: dict[str, Any]) -> LabelledPromise:
    return LabelledPromise(
        language=row["language"],
        said_at=datetime.combine(date.fromisoformat(row["said_at"]), time(12)).astimezone(),
        turn=row["turn"],
        promise=row["promise"],
        trigger=row["trigger"],
        say=row["say"],
        due=date.fromisoformat(row["due"]) if row["due"] else None,
        is_date=row["kind"] == "time",
        same=tuple(row["same"]),
        other=tuple(row["other"]),
        near=tuple(row["near"]),
    )
