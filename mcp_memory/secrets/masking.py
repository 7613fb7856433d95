"""Where the secrets of a text stand, and the text without them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_memory.secrets.cards import SHOWN, cards
from mcp_memory.secrets.forms import FORMS
from mcp_memory.secrets.named import HINTS, named

__all__ = ["MASK", "Secret", "find", "holds_secret", "mask", "mask_bytes", "mask_lines", "mask_values"]

MASK = "•••"

_BODY = re.compile(r"(?m)^[ \t\"']*[A-Za-z0-9+/]{60,76}={0,2}[\"',]*$")


@dataclass(frozen=True, slots=True)
class Secret:
    """What is to be masked: characters `start` to `end` of a text, and what kind of secret it is."""

    start: int
    end: int
    kind: str


def find(text: str) -> list[Secret]:
    """Return the secrets of a text in order; none overlaps another. What stays readable of them is not in them."""
    small = _small(text)
    found = [*_formed(text, small), *_named(text, small)]
    found += [Secret(start, end - SHOWN, "card number") for start, end in cards(text)]
    return _apart(sorted(found, key=lambda one: (one.start, -one.end)))


def mask(text: str) -> str:
    """Return the text with each secret as `•••`; its name, and what kind of key it was, stay readable."""
    return _without(text, find(text))


def mask_bytes(data: bytes) -> tuple[bytes, list[Secret]]:
    """Return bytes with the secrets masked that they hold as text, and where the masks stand, in bytes.

    What is not UTF-8 (lone surrogates apart) is returned as it is.
    """
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data, []
    secrets = find(text)
    if not secrets:
        return data, []
    pieces: list[bytes] = []
    places: list[Secret] = []
    at = length = 0
    for one in secrets:
        before = text[at : one.start].encode("utf-8", "surrogatepass")
        hidden = MASK.encode()
        places.append(Secret(length + len(before), length + len(before) + len(hidden), one.kind))
        pieces += [before, hidden]
        length += len(before) + len(hidden)
        at = one.end
    return b"".join([*pieces, text[at:].encode("utf-8", "surrogatepass")]), places


def mask_values(value: Any) -> Any:
    """Return a JSON value with every string masked. A string under a name is read with the name in front of it."""
    match value:
        case str():
            return mask(value)
        case list() | tuple():
            return [mask_values(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return {name: _under(name, item) for name, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return value


def holds_secret(text: str) -> bool:
    """Tell whether a text has anything that `mask` would take out."""
    return bool(find(text))


def mask_lines(text: str) -> str:
    """Return a piece of a text masked, with as many lines as before.

    A private key may have begun before the piece. Its lines cannot be told from other encoded data, which nobody reads
    or searches for, so all lines of that form are masked.
    """
    text = _BODY.sub(MASK, text)
    return _without(text, find(text), keep_lines=True)


def _small(text: str) -> str:
    """Return the text in small letters, each where it stood: a few letters have two small ones."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _formed(text: str, small: str) -> Iterator[Secret]:
    for form in FORMS:
        for place in _places(small, form.hints):
            if (found := form.pattern.match(text, place)) is not None:
                shown = found.end("shown") - found.start() if "shown" in form.pattern.groupindex else 0
                yield Secret(found.start() + shown, found.end(), form.kind)


def _named(text: str, small: str) -> Iterator[Secret]:
    for place in _places(small, HINTS):
        yield from (Secret(start, end, "named value") for start, end in named(text, place))


def _places(small: str, hints: Iterable[str]) -> Iterator[int]:
    for hint in hints:
        place = small.find(hint)
        while place >= 0:
            yield place
            place = small.find(hint, place + 1)


def _apart(secrets: Iterable[Secret]) -> list[Secret]:
    """Return the secrets; those that overlap are one."""
    apart: list[Secret] = []
    for one in secrets:
        if apart and one.start < apart[-1].end:
            apart[-1] = Secret(apart[-1].start, max(one.end, apart[-1].end), apart[-1].kind)
        else:
            apart.append(one)
    return apart


def _without(text: str, secrets: Sequence[Secret], *, keep_lines: bool = False) -> str:
    pieces: list[str] = []
    at = 0
    for one in secrets:
        lost = text.count("\n", one.start, one.end) if keep_lines else 0
        pieces += [text[at : one.start], MASK, "\n" * lost]
        at = one.end
    return "".join([*pieces, text[at:]])


def _under(name: Any, value: Any) -> Any:
    """Return a member of a JSON object masked: its name may say what its value does not."""
    if not isinstance(value, str):
        return mask_values(value)
    masked = mask(value)
    head = f"{name}: "
    whole = mask(head + value)
    return whole.removeprefix(head) if masked == value and whole.startswith(head) else masked
