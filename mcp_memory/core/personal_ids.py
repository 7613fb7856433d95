"""Ids of the personal memory, as a project's memory shows them: `personal:a57`. Each space numbers its own rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

PERSONAL = "personal"
MARK = f"{PERSONAL}:"

_ID = r"(?:[at]\d{1,18}|r-[0-9a-f]{12,64})(?![\w-])"
_UNMARKED = re.compile(rf"(?<![\w:-])(?={_ID})")
_MARKED = re.compile(rf"(?<!\w){MARK}({_ID})")
_NAMED = re.compile(r"^\[[^\]\n]*\]|\(a\d{1,18}(?:, a\d{1,18})*\)", re.MULTILINE)
_WHOLE = re.compile(r"[atx]\d{1,18}|r-[0-9a-f]{12,64}(?::\d+(?:-\d+)?)?")

T = TypeVar("T")


def mark_id(id: str) -> str:
    return f"{MARK}{id}"


def mark_ids(text: str) -> str:
    """Return a text with its ids of turns, statements and results marked."""
    return _UNMARKED.sub(MARK, text)


def mark_block(block: str) -> str:
    """Return a recalled block with its ids marked, in `[a57 …]` and `(a5, a57)`, and the memory named in its tag."""
    return _NAMED.sub(lambda names: mark_ids(names[0]), block).replace(">", f' memory="{PERSONAL}">', 1)


def marked_ids(text: str) -> list[str]:
    """Return the marked ids in a text, without the mark."""
    return _MARKED.findall(text)


def unmarked(ids: Iterable[str]) -> list[str]:
    """Return the marked ones of some ids, without the mark."""
    return [id.removeprefix(MARK) for id in ids if id.startswith(MARK)]


def by_memory(ids: Iterable[str]) -> list[list[str]]:
    """Return the unmarked ids and the marked ids as lists, without an empty list."""
    ids = list(ids)
    both = [id for id in ids if not id.startswith(MARK)], [id for id in ids if id.startswith(MARK)]
    return [part for part in both if part]


def mark_answer(answer: T) -> T:
    """Return an answer of a verb of the personal memory with its ids marked, those of tombstones (`x1`) too.

    Texts that contain an id among other words stay as they are, because they may be the user's.
    """
    return cast("T", _mark(answer))


def _mark(value: Any) -> Any:
    match value:
        case str():
            return mark_id(value) if _WHOLE.fullmatch(value) else value
        case list():
            return [_mark(part) for part in cast("list[Any]", value)]
        case tuple():
            return tuple(_mark(part) for part in cast("tuple[Any, ...]", value))
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{field.name: _mark(getattr(value, field.name)) for field in fields(value)})
        case _:
            return value
