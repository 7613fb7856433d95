"""Pages in questions and replies of a model: dated statements, numbered lines, and the edits of scenes and persona.

A page is shown with a number before each line: `3| Maya lives in Faro (a12).` A reply changes it by these numbers:
`3| …` replaces a line, `3|` removes it, `3+| …` adds below it, `0+| …` at the top, and `3-5| …` replaces three lines.
The numbers count the lines as they are stored, so a line keeps its number when another is forgotten.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.core.types import ATTRIBUTION, Atom
from mcp_memory.longterm.validity import date_of
from mcp_memory.models.replies import Text, TextList, TolerantReply, as_list, as_text, choice, object_fields
from mcp_memory.store.citations import cited_atoms, tidy, without_atoms

SAID = 0.8
"""The least confidence of what was literally said; what is implied has less."""
STATEMENT = 2_000
"""The most characters of a statement in a question."""

# --- statements -------------------------------------------------------------------------------------


def dated_statements(
    atoms: Iterable[Atom], clean: Callable[[str], str], *, ends: Mapping[str, str] | None = None
) -> list[str]:
    """Return lines with the statements in chronological order, below a line for each time.

    `clean` prepares a text for the question; `ends` maps the ids of ended statements to when and why they ended.
    """
    lines: list[str] = []
    last_time = ""
    for atom in sorted(atoms, key=lambda atom: (atom.valid_from, int(atom.id[1:]))):
        if (time := _time(atom)) != last_time:
            last_time = time
            lines.append(f"{time}:")
        marks = ", ".join(_marks(atom))
        end = f" [{ends[atom.id]}]" if ends and atom.id in ends else ""
        lines.append(f"({atom.id}) {f'[{marks}] ' if marks else ''}{clean(atom.text)}{end}")
    return lines


def _time(atom: Atom) -> str:
    """Return when a statement happened, or else the day and weekday on which it was said."""
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


def numbered(stored: str, readable: str) -> Iterator[str]:
    """Yield the lines of a page, each after its number in `stored`; `readable` is the page without forgotten words."""
    return (f"{number}| {line}" for number, line in enumerate(_readable_lines(stored, readable), start=1) if line)


def change_lines(stored: str, readable: str, changes: Sequence[str]) -> str:
    """Return the readable page with some lines changed.

    Raises InvalidInput if a change names no line or a line that does not exist; the message is for the author.
    """
    lines = ["", *_readable_lines(stored, readable)]
    added: dict[int, list[str]] = {}
    new = list(lines)
    for change in changes:
        match = _CHANGE.fullmatch(change)
        if match is None:
            raise InvalidInput(
                f"This names no line: {one_line(change, 60)!r}. Begin each change with a number: `3| new text`, `3|` "
                "to remove, `3+| text to add below`."
            )
        label, text = match["label"], match["text"].strip()
        numbers = [int(number) for number in re.findall(r"\d+", label)]
        first, last = numbers[0], numbers[-1]
        if last >= len(lines) or first > last or (not first and "+" not in label):
            raise InvalidInput(f"There is no line {last}: the lines are numbered from 1 to {len(lines) - 1}.")
        if "+" in label:
            added.setdefault(last, []).append(text)
        else:
            new[first : last + 1] = [text, *[""] * (last - first)]
    gaps = [False, *_followed_by_gap(stored)]
    parts = [
        "\n".join(part for part in (line, *added.get(number, ())) if part) + ("\n" if gaps[number] else "")
        for number, line in enumerate(new)
    ]
    return tidy(_HEADING.sub(r"\n\1\n", "\n".join(part for part in parts if part)).splitlines())


def _readable_lines(stored: str, readable: str) -> Iterator[str]:
    """Yield each line of the stored page without forgotten words, empty if none are left."""
    gone = {*cited_atoms(stored)} - {*cited_atoms(readable)}
    rest = deque(_lines(readable))
    for line in _lines(stored):
        yield rest.popleft() if rest and without_atoms(line, gone) == rest[0] else ""


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _followed_by_gap(text: str) -> Iterator[bool]:
    lines = text.splitlines()
    return (not after.strip() for line, after in zip(lines, [*lines[1:], "-"], strict=True) if line.strip())


# --- replies ----------------------------------------------------------------------------------------


def _line_changes(value: Any) -> Any:
    """Accept one text, or an object with the numbers as keys."""
    if isinstance(value, dict):
        labelled = cast("dict[Any, Any]", value).items()
        return [f"{str(label).rstrip('|')}| {'' if text is None else text}" for label, text in labelled]
    if isinstance(value, str):
        return _NEXT.split(value) if value.strip() else []
    return as_list(value)


LineChanges = Annotated[list[str], BeforeValidator(_line_changes)]


class PersonaReply(TolerantReply):
    """Changed lines of the page, or the whole page in Markdown; and the reason."""

    lines: LineChanges = Field(default_factory=list[str])
    page: Text = ""
    changed: Text = ""


_ACTIONS = {
    "": "", "create": "create", "update": "update", "append": "append", "merge": "merge", "delete": "delete",
    "add": "create", "new": "create", "insert": "create", "edit": "update", "rewrite": "update", "modify": "update",
    "combine": "merge", "remove": "delete",
}  # fmt: skip
_DROPPED = re.compile(r"[\W_]*(a\d{1,18}\b(?:[^\w:：]+(?:and[^\w:：]+)?a\d{1,18}\b)*)\W*(.*)", re.DOTALL)
_NEXT_DROPPED = re.compile(r"[;；\n]\s*(?=\W?a\d)")


def _dropped(value: Any) -> Any:
    """Return `{"atom": "a12", "reason": "small"}` or `{"a12": "small"}` as `a12: small`; other values unchanged."""
    fields = object_fields(value)
    if fields is None:
        return value
    reasons = [(fields["atom"], fields.get("reason"))] if "atom" in fields else fields.items()
    return "; ".join(f"{id}: {reason or ''}" for id, reason in reasons)


def _reason_to_rewrite(value: Any) -> Any:
    """Accept a plain yes or no as a reason."""
    if isinstance(value, bool):
        return "the scenes changed" if value else ""
    return as_text(value)


class RequestedEdit(BaseModel):
    """Changed lines of a page, a whole page, sentences to add to a page, or the removal of a page."""

    model_config = ConfigDict(populate_by_name=True)

    slug: Text = ""
    lines: LineChanges = Field(default_factory=list[str])
    title: Text = ""
    summary: Text = ""
    body: Text = ""
    from_: TextList = Field(default_factory=list[str], alias="from")
    action: Annotated[Literal["", "create", "update", "append", "merge", "delete"], choice(_ACTIONS)] = ""
    """Empty if the other fields imply it."""
    reason: SkipJsonSchema[Text] = ""

    @property
    def name(self) -> str:
        return self.slug or self.title

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not (self.name or self.lines or self.body or self.from_):
            raise ValueError("an edit names a page, or has the body of a new one")
        return self


class SceneReply(TolerantReply):
    """The edits of a round."""

    edits: list[RequestedEdit] = Field(default_factory=list[RequestedEdit])
    dropped: list[Annotated[str, BeforeValidator(_dropped)]] = Field(default_factory=list[str])
    """Statements for no page, each with the reason: `a12, a57: small`."""
    persona: Annotated[str, BeforeValidator(_reason_to_rewrite)] = ""
    """Why the page about the user has to change now; empty if it need not."""

    @property
    def explained_ids(self) -> set[str]:
        """The ids of the statements that were dropped with a reason."""
        parts = (_DROPPED.fullmatch(part) for entry in self.dropped for part in _NEXT_DROPPED.split(entry))
        return {id for part in parts if part and part[2].strip() for id in re.findall(r"a\d+", part[1])}

    @classmethod
    def arranged(cls, data: Any) -> Any:
        """Accept a list of edits, a single edit, and `dropped` within edits."""
        fields = object_fields(data, {"persona_update": "persona"})
        if fields is None:
            fields = {"edits": data}
        if "action" in fields or "slug" in fields:
            fields = {"edits": [fields]}
        edits = as_list(fields.get("edits"))
        parts: list[Any] = [fields.get("dropped"), *((object_fields(edit) or {}).get("dropped") for edit in edits)]
        return {**fields, "edits": edits, "dropped": [entry for part in parts for entry in as_list(part)]}
