"""Masks the strings of a JSON value, each by its own text and by the text around it.

Guarantees: any JSON value can be masked, and what comes out has the same structure: only characters of strings and of
names are replaced, and a long number becomes a string where it is masked. The text around a string is that of the
whole value, written as JSON.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, islice, takewhile
from typing import Any, cast

from mcp_memory.core.secrets.masking import Secret, find, holds_key, without
from mcp_memory.core.secrets.names import HINTS

__all__ = ["mask_values"]

_DEEPEST = 100
_CHARACTER = re.compile(r"\\u[0-9a-f]{4}|\\.|.", re.DOTALL)
"""A character as the text of JSON has it."""


def mask_values(value: Any) -> Any:
    """Return a JSON value with every string and name masked, and long numbers. What has a name is read behind it.

    A string in a list is read behind an option that stands before it, as in `["--password", "…"]`. What is nested
    deeper than any call needs is left out: it could be read to no end.
    """
    strings = _Strings()
    masked = _read(value, "", _DEEPEST, strings)
    strings.mask()
    return masked()


class _Strings:
    """The strings of a value in the order of its text, which is put together with them."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._found: list[tuple[int, str, str, list[Secret]]] = []
        self._masked: list[str] = []

    def write(self, text: str) -> None:
        """Add what stands between strings."""
        self._pieces.append(text)

    def add(self, text: str, head: str, own: list[Secret]) -> Callable[[], str]:
        """Add a string that has secrets of its own and stands behind a head. What is returned gives it masked."""
        number = len(self._found)
        self._found.append((len(self._pieces) + 1, text, head, own))
        self._pieces += ['"', _escaped(text), '"']
        return lambda: self._masked[number]

    def mask(self) -> None:
        """Mask every string by what it has, what stands in front of it, and what the whole text says of it."""
        whole = find("".join(self._pieces), prose=False)
        ends = [one.end for one in whole]
        starts = [0, *accumulate(map(len, self._pieces))]
        for piece, text, head, own in self._found:
            start, end = starts[piece], starts[piece + 1]
            around = takewhile(lambda one, end=end: one.start < end, islice(whole, bisect_right(ends, start), None))
            named = find(f'{head}{_escaped(text)}"') if _has_hint(head) else []
            found = [*own, *_within(text, around, start), *_within(text, named, len(head))]
            self._masked.append(without(text, found))


def _has_hint(head: str) -> bool:
    small = head.lower()
    return any(hint in small for hint in HINTS)


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _within(text: str, secrets: Iterable[Secret], start: int) -> Iterator[Secret]:
    """Yield what a text that has a string, escaped, from `start` on says of the string: of its beginning or its end.

    What stands between those the string says itself, where its lines are lines and not escapes.
    """
    escaped = _escaped(text)
    secrets = [one for one in secrets if one.start <= start or one.end >= start + len(escaped)]
    places = [one.start() for one in _CHARACTER.finditer(escaped)] if secrets else []
    for one in secrets:
        first = max(0, bisect_right(places, one.start - start) - 1)
        last = bisect_left(places, one.end - start)
        if first < last:
            yield Secret(first, last, one.kind)


def _read(value: Any, head: str, depth: int, strings: _Strings) -> Callable[[], Any]:
    """Write a value to the strings; what is returned gives it masked, once they are."""
    match value:
        case str():
            return strings.add(value, head, find(value))
        case int() if 10**5 < value < 10**19:
            shown = strings.add(str(value), head, [])  # alone, digits count something
            return lambda: value if shown() == str(value) else shown()
        case list() | tuple() | dict() if depth == 0:
            return lambda: "…"
        case list() | tuple():
            items = _items(cast("Iterable[Any]", value), head, depth - 1, strings)
            return lambda: [item() for item in items]
        case dict():
            members = _members(cast("dict[Any, Any]", value), depth - 1, strings)
            return lambda: {name(): item() for name, item in members}
        case _:
            strings.write(str(value) if isinstance(value, float | int) else "null")
            return lambda: value


def _items(values: Iterable[Any], head: str, depth: int, strings: _Strings) -> list[Callable[[], Any]]:
    items: list[Callable[[], Any]] = []
    before = ""
    strings.write("[")
    for value in values:
        strings.write(", " if items else "")
        items.append(_read(value, f'"{before[-80:]}", "' if before.startswith("-") else head, depth, strings))
        before = value if isinstance(value, str) else ""
    strings.write("]")
    return items


def _members(value: dict[Any, Any], depth: int, strings: _Strings) -> list[tuple[Callable[[], Any], Callable[[], Any]]]:
    members: list[tuple[Callable[[], Any], Callable[[], Any]]] = []
    strings.write("{")
    for name, item in value.items():
        strings.write(", " if members else "")
        shown = strings.add(name, "", find(name) if holds_key(name) else []) if isinstance(name, str) else _same(name)
        strings.write(": ")
        members.append((shown, _read(item, f'"{str(name)[-80:]}": "', depth, strings)))
    strings.write("}")
    return members


def _same(value: Any) -> Callable[[], Any]:
    return lambda: value
