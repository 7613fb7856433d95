"""Reads a model's reply: JSON of a given shape, however the model dressed it.

What is asked for is one JSON value. What comes may stand in a fence or in prose, follow the model's thoughts,
have trailing commas or raw control characters in strings, be the one item where a list of items was asked for,
the list where an object that holds it was, one object a line, or have one more object around it. Of several values
the last that fits is the reply, since models think first and answer then.

Any text either gives a value of the shape or raises InvalidInput, which says where it does not fit, in words
that can go back to whoever wrote it. What is missing is never made up, and a torn value is not mended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar, cast, get_origin

from pydantic import BaseModel, RootModel, ValidationError

from mcp_memory.core.errors import InvalidInput

__all__ = ["parse", "without_fence"]

MAX_CHARACTERS = 1_000_000
_STARTS_TRIED = 12  # brackets that never close, before what follows the last of them is given up

R = TypeVar("R", bound=BaseModel)

_FENCE = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)
_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPENING = re.compile(r"[\[{]")
_INSIDE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', re.DOTALL)


def parse(text: str, shape: type[R]) -> R:
    """Return the value of that shape which the text holds. InvalidInput says what is wrong with it."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"The reply has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read.")
    values = list(_values(_THOUGHTS.sub("", text)))
    if not values:
        raise InvalidInput("The reply holds no complete JSON value. Answer with the JSON alone, all of it.")
    trouble: ValidationError | None = None
    for reading in _readings(values, shape):
        try:
            return shape.model_validate(reading)
        except ValidationError as error:
            trouble = trouble or error
    assert trouble is not None
    raise InvalidInput(_explained(trouble))


def without_fence(text: str) -> str:
    """Return a page without the Markdown fence that stands around all of it."""
    found = _FENCE.fullmatch(text)
    return found[1] if found else text


def _values(text: str) -> Iterator[Any]:
    """Yield the JSON objects and lists that stand in a text, side by side, not within each other."""
    for span in _spans(text):
        for tried in (span, _TRAILING_COMMA.sub(r"\1", span)):
            try:
                yield json.loads(tried, strict=False)
                break
            except (ValueError, RecursionError):
                continue


def _spans(text: str) -> Iterator[str]:
    """Yield what stands between brackets that match. Quotes count within them only: prose has apostrophes."""
    start, unclosed = 0, 0
    while unclosed < _STARTS_TRIED and (opening := _OPENING.search(text, start)):
        end = _closing(text, opening.start())
        if end is None:
            start, unclosed = opening.end(), unclosed + 1
        else:
            yield text[opening.start() : end]
            start = end


def _closing(text: str, start: int) -> int | None:
    """Return where the value that begins at `start` ends, None where its brackets do not match."""
    open_: list[str] = []
    for token in _INSIDE.finditer(text, start):
        match token.group():
            case "[" | "{" as bracket:
                open_.append("]" if bracket == "[" else "}")
            case "]" | "}" as bracket:
                if open_.pop() != bracket:
                    return None
                if not open_:
                    return token.end()
            case _:
                pass
    return None


def _readings(values: list[Any], shape: type[BaseModel]) -> Iterator[Any]:
    """Yield what the values may have meant: each as it stands, the last first; then all that is less plain."""
    latest = values[::-1]
    yield from latest
    everything = [values, *latest] if len(values) > 1 else latest
    for value in everything:
        yield from _less_plain(value, shape)


def _less_plain(value: Any, shape: type[BaseModel]) -> Iterator[Any]:
    field = _list_field(shape)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        yield items if field is None else {field: items}
        yield from items[:1] if len(items) == 1 else ()
    else:
        members = cast("dict[str, Any]", value)
        if field is None:
            yield [members]
        else:
            yield {**members, field: [members[field]]} if field in members else {field: [members]}
        yield from members.values() if len(members) == 1 else ()


def _list_field(shape: type[BaseModel]) -> str | None:
    """Return the field that is a list, where it is all that the shape asks for."""
    if issubclass(shape, RootModel):
        return None
    needed = [(name, field) for name, field in shape.model_fields.items() if field.is_required()]
    lists = [name for name, field in needed or shape.model_fields.items() if get_origin(field.annotation) is list]
    return lists[0] if len(lists) == 1 and len(needed) <= 1 else None


def _explained(error: ValidationError) -> str:
    troubles = error.errors(include_url=False, include_input=False)
    said = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'the reply'}: {one['msg']}" for one in troubles[:5])
    more = f"; and {len(troubles) - 5} more" if len(troubles) > 5 else ""
    return f"The reply does not have the shape that was asked for ({said}{more})."
