"""What a note of basic-memory says: Markdown with observations and relations. No I/O, no state.

    ---                                        front matter: title, type, tags, permalink, …
    title: Coffee Brewing Methods
    ---
    - [method] Pour over is clearer #brewing (tried it)      an observation: [category] text #tags (context)
    - requires [[Proper Grinding Technique]] (always)        a relation: type [[target]] (context)

By its documentation: github.com/basicmachines-co/basic-memory, NOTE-FORMAT.md, and docs.basicmemory.com, "Knowledge
format". Both are known by their form, wherever in a note. An observation is a statement about the note's title, a
relation a fact. What else a note says is told whole, as a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from mcp_memory.integrations.importers.formats.statements import as_turn, statement
from mcp_memory.integrations.importers.formats.told import LONGEST_ID, Passed, Statement, Told, Unfit, Wrong, moment

__all__ = ["is_note", "told"]

_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^([A-Za-z_][\w-]*):[ \t]*(.*)$", re.MULTILINE)
_OBSERVATION = re.compile(r"^[ \t]*[-*][ \t]+\[([^\[\]()\n]{1,80})\](?!\()[ \t]+(\S.*)$")
_RELATION = re.compile(
    r"^[ \t]*[-*][ \t]+(?:([^\[\]\n]{1,80}?)[ \t]+)?\[\[([^\[\]\n]{1,200})\]\][ \t]*(\([^\n]*\))?[ \t]*$"
)
_TASK = {" ", "x", "X", "-"}
"""Boxes of tasks, which are no categories."""
_TAG = re.compile(r"(?<!\S)#[\w/-]+")
_TIMES = ("modified", "updated", "updated_at", "created", "created_at", "date")


def is_note(text: str) -> bool:
    """Tell whether a Markdown file is a note: it has front matter with a title or permalink, or an observation."""
    fields = _fields(text)
    return bool({"title", "permalink"} & fields.keys()) or any(map(_observed, _body(text).splitlines()))


def told(text: str, name: str, passed: Passed) -> Iterator[Statement | Told | Wrong]:
    """Yield what a note says; `name` is its path, for people."""
    fields, body = _fields(text), _body(text)
    title = fields.get("title") or name.rpartition("/")[2].removesuffix(".md")
    at = moment(fields, _TIMES, passed)
    rest: list[str] = []
    first = text.count("\n", 0, len(text) - len(body)) + 1
    try:
        for number, line in enumerate(body.splitlines(), start=first):
            where = f"{name}, line {number}"
            if (observed := _observed(line)) is not None:
                yield statement(
                    where, passed, text=_about(title, *observed), words=_bare(observed[1]), about=(title,), said_at=at
                )
            elif (relation := _RELATION.match(line)) is not None:
                kind, target = (relation[1] or "relates_to").strip(), relation[2].partition("|")[0].strip()
                if target:
                    yield statement(where, passed, fact=(title, kind, target), about=(title, target), said_at=at)
            else:
                rest.append(line)
        if any(line.strip() and not line.startswith("#") for line in rest):
            yield _whole(text, name, fields, at, passed)
    except Unfit as unfit:
        yield Wrong(where=name, what=str(unfit))


def _whole(text: str, name: str, fields: dict[str, str], at: datetime | None, passed: Passed) -> Told:
    id = f"basic-memory-{fields.get('permalink') or name}"
    return as_turn(name, text, passed, program="basic-memory", said_at=at, id=id if len(id) <= LONGEST_ID else None)


def _observed(line: str) -> tuple[str, str] | None:
    """Return the category and the text of an observation."""
    found = _OBSERVATION.match(line)
    return None if found is None or found[1] in _TASK or found[1].startswith("[") else (found[1].strip(), found[2])


def _about(title: str, category: str, text: str) -> str:
    return f"{title} ({category}): {_bare(text)}"


def _bare(text: str) -> str:
    """Return an observation without its tags, where anything else is left of it."""
    return " ".join(_TAG.sub("", text).split()) or text.strip()


def _fields(text: str) -> dict[str, str]:
    """Return the plain fields of the front matter; lists and what spans lines are passed over."""
    found = _FRONT.match(text)
    if found is None:
        return {}
    plain = ((key, value.strip().strip("'\"").strip()) for key, value in _FIELD.findall(found[1]))
    return {key: value for key, value in plain if value and value[0] not in "[{|>"}


def _body(text: str) -> str:
    found = _FRONT.match(text)
    return text if found is None else text[found.end() :]
