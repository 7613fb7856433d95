"""What the questions about scenes and the persona share: statements by their times, and pages line by line.

A page is shown with a number before each line: `3| Maya lives in Faro (a12).` A reply changes it by these numbers:
`3| …` replaces a line, `3|` removes it, `3+| …` adds below it, `0+| …` at the top, and `3-5| …` replaces three lines.
The numbers count the lines as they are stored, so a line keeps its number when another one is forgotten.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, cast

from pydantic import BeforeValidator

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.core.types import ATTRIBUTION, Atom
from mcp_memory.longterm.validity import date_of
from mcp_memory.store.citations import cited, tidy, without

SAID = 0.8
"""The least confidence of what was literally said; what is implied has less."""
STATEMENT = 2_000
"""Characters of a statement in a question."""


# --- statements -------------------------------------------------------------------------------------


def dated_statements(
    atoms: Iterable[Atom], shown: Callable[[str], str], *, ends: Mapping[str, str] | None = None
) -> list[str]:
    """Return the statements in the order of their times, each time once, above its statements.

    `shown` prepares a text for the question; `ends` says of the statements that hold no longer when and why they ended.
    """
    lines: list[str] = []
    when = ""
    for atom in sorted(atoms, key=lambda atom: (atom.valid_from, int(atom.id[1:]))):
        if (time := _time(atom)) != when:
            when = time
            lines.append(f"{time}:")
        marks = ", ".join(_marks(atom))
        end = f" [{ends[atom.id]}]" if ends and atom.id in ends else ""
        lines.append(f"({atom.id}) {f'[{marks}] ' if marks else ''}{shown(atom.text)}{end}")
    return lines


def _time(atom: Atom) -> str:
    """Return when a statement happened, or the day on which it was said, with its weekday: people say "on Saturday"."""
    time = date_of(atom.valid_from, atom.text)
    return f"told on {atom.valid_from:%A, %Y-%m-%d}" if time.startswith("told") else time


def _marks(atom: Atom) -> Iterator[str]:
    if atom.kind == "instruction":
        yield "standing rule" if atom.priority < 0 else "rule"
    if atom.confidence < SAID:
        yield "implied"
    if ATTRIBUTION[atom.source]:
        yield ATTRIBUTION[atom.source]


# --- lines ------------------------------------------------------------------------------------------

_LABEL = r"\s*\+?\s*\d{1,4}(?:\s*[-–]\s*\d{1,4})?\s*\+?\s*[|｜:：)]"
_CHANGE = re.compile(rf"(?P<label>{_LABEL})[ \t]?(?P<text>.*)", re.DOTALL)
_NEXT = re.compile(rf"\n(?={_LABEL})")
_HEADING = re.compile(r"(?m)^(#{1,6} .*)$")


def _changes(value: Any) -> Any:
    """Changes may come as one text, or as an object with the numbers as keys."""
    if isinstance(value, dict):
        labelled = cast("dict[Any, Any]", value).items()
        return [f"{str(label).rstrip('|')}| {'' if text is None else text}" for label, text in labelled]
    if isinstance(value, str):
        return _NEXT.split(value) if value.strip() else []
    return [] if value is None else value


LineChanges = Annotated[list[str], BeforeValidator(_changes)]
"""Changes of lines, as they stand in a reply."""


def numbered(stored: str, left: str) -> Iterator[str]:
    """Yield the lines of a page behind their numbers. `left` is what of it may be read: nothing that was forgotten."""
    return (f"{number}| {line}" for number, line in enumerate(_readable(stored, left), start=1) if line)


def patched(stored: str, left: str, changes: Sequence[str]) -> str:
    """Return what is left of a page, with its lines changed.

    Raises InvalidInput, worded for the author of the changes.
    """
    lines = ["", *_readable(stored, left)]
    added: dict[int, list[str]] = {}
    new = list(lines)
    for change in changes:
        found = _CHANGE.fullmatch(change)
        if found is None:
            raise InvalidInput(
                f"This names no line: {one_line(change, 60)!r}. Begin each change with a number: `3| new text`, `3|` "
                "to remove, `3+| text to add below`."
            )
        first, last = _span(found["label"])
        if last >= len(lines) or first > last or (not first and "+" not in found["label"]):
            raise InvalidInput(f"There is no line {last}: the lines are numbered from 1 to {len(lines) - 1}.")
        if "+" in found["label"]:
            added.setdefault(last, []).append(found["text"].strip())
        else:
            new[first : last + 1] = [found["text"].strip(), *[""] * (last - first)]
    gaps = [False, *_followed_by_a_gap(stored)]
    parts = [
        "\n".join(part for part in (line, *added.get(number, ())) if part) + ("\n" if gaps[number] else "")
        for number, line in enumerate(new)
    ]
    return tidy(_HEADING.sub(r"\n\1\n", "\n".join(part for part in parts if part)).splitlines())


def _readable(stored: str, left: str) -> Iterator[str]:
    """Yield the lines of a stored page as far as they may be read, and nothing for those that are gone."""
    gone = {*cited(stored)} - {*cited(left)}
    rest = deque(_lines(left))
    for line in _lines(stored):
        yield rest.popleft() if rest and without(line, gone) == rest[0] else ""


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _span(label: str) -> tuple[int, int]:
    numbers = [int(number) for number in re.findall(r"\d+", label)]
    return numbers[0], numbers[-1]


def _followed_by_a_gap(text: str) -> Iterator[bool]:
    lines = text.splitlines()
    return (not after.strip() for line, after in zip(lines, [*lines[1:], "-"], strict=True) if line.strip())
