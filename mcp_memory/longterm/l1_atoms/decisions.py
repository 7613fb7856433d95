"""The reply to a question about new statements: a decision on each, read tolerantly.

A wrong decision never spoils the others: an unknown action is `add`, ids and targets may be written in any way that
has one meaning, and what names no statement is left out. What a decision may do is told in `rules`.
"""

from __future__ import annotations

import re
from typing import Any, Literal, cast

from pydantic import BaseModel, Field, field_validator

from mcp_memory.core.types import Kind

__all__ = ["Action", "Decision", "Reply"]

Action = Literal["add", "update", "merge", "skip"]

_ACTIONS: dict[str, Action] = {
    "add": "add", "store": "add", "new": "add", "create": "add", "keep": "add",
    "update": "update", "replace": "update", "correct": "update", "supersede": "update",
    "merge": "merge", "join": "merge", "combine": "merge",
    "skip": "skip", "drop": "skip", "duplicate": "skip", "ignore": "skip", "none": "skip",
}  # fmt: skip
_KINDS = ("persona", "episodic", "instruction")


class Decision(BaseModel):
    """What becomes of one new statement."""

    draft: str = Field(description="Id of the new statement, such as d7")
    action: Action = "add"
    targets: list[str] = Field([], description="Ids that it is compared with: held ones (a12) or new ones (d3)")
    text: str = Field("", description="For merge, and for update where it reads better: the statement in full")
    kind: Kind | None = None
    priority: int | None = Field(None, description="0 to 100; left out, it stays as it is")
    reason: str = Field("", description="Why, in one short sentence")

    @field_validator("draft", mode="before")
    @classmethod
    def _draft(cls, value: Any) -> Any:
        return _id(value, "d")

    @field_validator("action", mode="before")
    @classmethod
    def _action(cls, value: Any) -> Any:
        return _ACTIONS.get(str(value).strip().casefold(), "add")

    @field_validator("targets", mode="before")
    @classmethod
    def _targets(cls, value: Any) -> Any:
        listed = cast("list[Any]", value) if isinstance(value, list) else [value]
        written = " ".join(str(one) for one in listed if isinstance(one, str | int))
        return [_id(part, "a") for part in re.split(r"[\s,;]+", written) if part]

    @field_validator("text", "reason", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return value if isinstance(value, str) else ""

    @field_validator("kind", mode="before")
    @classmethod
    def _kind(cls, value: Any) -> Any:
        kind = str(value).strip().casefold()
        return kind if kind in _KINDS else None

    @field_validator("priority", mode="before")
    @classmethod
    def _priority(cls, value: Any) -> Any:
        found = re.fullmatch(r"\s*(-?\d{1,6})(\.\d*)?\s*", str(value))
        return int(found[1]) if found else None


class Reply(BaseModel):
    """One decision for each new statement."""

    decisions: list[Decision]

    @field_validator("decisions", mode="before")
    @classmethod
    def _decisions(cls, value: Any) -> Any:
        """A decision that names no statement decides nothing; the others still do."""
        if not isinstance(value, list):
            return value
        items = cast("list[Any]", value)
        return [item for item in items if isinstance(item, Decision) or (isinstance(item, dict) and "draft" in item)]


def _id(value: Any, letter: str) -> str:
    """`a12`, `[A12]` and, where only one sort is meant, `12`."""
    text = str(value).strip(" \t\n[](){}\"'`.:").casefold()
    return letter + text if text.isdigit() else text
