"""The shape of an answer about scenes, read with the patience that small models need."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

__all__ = ["Dropped", "Edit", "Reply"]

_ACTIONS = {
    "add": "create",
    "new": "create",
    "insert": "create",
    "edit": "update",
    "rewrite": "update",
    "modify": "update",
    "combine": "merge",
    "remove": "delete",
}


def _action(value: Any) -> Any:
    return _ACTIONS.get(value.strip().lower(), value.strip().lower()) if isinstance(value, str) else value


def _text(value: Any) -> Any:
    """Lines may come as a list, nothing as null."""
    if isinstance(value, list):
        return "\n".join(map(str, cast("list[Any]", value)))
    return "" if value is None else value


def _why(value: Any) -> Any:
    """A plain yes or no is taken for a reason, too."""
    if isinstance(value, bool):
        return "the scenes changed" if value else ""
    return _text(value)


def _names(value: Any) -> Any:
    return [] if value is None else [value] if isinstance(value, str) else value


def _id(value: Any) -> Any:
    found = re.search(r"a\d{1,18}", value) if isinstance(value, str) else None
    return found[0] if found else value


def _dropped(value: Any) -> Any:
    """`"a12: said twice"` stands for an atom and its reason."""
    if not isinstance(value, str):
        return value
    return {"atom": value, "reason": re.sub(r"^\W*a\d+\W*", "", value)}


Text = Annotated[str, BeforeValidator(_text)]


class Dropped(BaseModel):
    """A statement that no page tells, and why."""

    atom: Annotated[str, BeforeValidator(_id), Field(description="Its id, such as a12")]
    reason: Text = Field("", description="Why no page needs it")


class Edit(BaseModel):
    """A page as it should be, whole; what to add to one; or one that should go."""

    model_config = ConfigDict(populate_by_name=True)

    action: Annotated[Literal["create", "update", "append", "merge", "delete"], BeforeValidator(_action)]
    slug: Text = Field("", description="The page: as listed, or for a new one a few words with hyphens")
    from_: Annotated[list[str], BeforeValidator(_names)] = Field(
        default_factory=list[str], alias="from", description="merge only: the pages that become one with it"
    )
    title: Text = Field("", description="What the person would call it")
    summary: Text = Field("", description="One sentence: what the page tells")
    body: Text = Field(
        "", description="The whole page, of `append` only what is new; each sentence ends with ids: (a12, a57)"
    )
    reason: Text = Field("", description="Why this edit, in a few words")


class Reply(BaseModel):
    """What becomes of the pages."""

    edits: list[Edit] = Field(default_factory=list[Edit])
    dropped: list[Annotated[Dropped, BeforeValidator(_dropped)]] = Field(
        default_factory=list[Dropped], description="Statements that no page tells, each with the reason"
    )
    persona_update: Annotated[str, BeforeValidator(_why)] = Field(
        default="", description="Why the page about the person has to change now; empty if it need not"
    )

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        """Edits may come bare, and what is dropped may stand within the edit that drops it."""
        if not isinstance(value, dict | list):
            return value
        given: dict[str, Any] = _as_reply(value)
        edits: Any = given.get("edits") or []
        within = [cast("dict[str, Any]", edit).get("dropped") for edit in _listed(edits) if isinstance(edit, dict)]
        dropped = [one for part in (given.get("dropped"), *within) for one in _listed(part)]
        return {**given, "edits": edits, "dropped": dropped}


def _listed(value: Any) -> list[Any]:
    """What stands where a list is asked for, which may be one thing or none."""
    return cast("list[Any]", value) if isinstance(value, list) else [value] if value else []


def _as_reply(value: Any) -> Any:
    if isinstance(value, list):
        return {"edits": cast("list[Any]", value)}
    return {"edits": [value]} if "action" in value else value
