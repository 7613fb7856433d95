"""Basic-memory: a note in Markdown with observations and relations (github.com/basicmachines-co/basic-memory,
NOTE-FORMAT.md, and docs.basicmemory.com, "Knowledge format").

    ---                                        front matter: title, type, tags, permalink, …
    title: Coffee Brewing Methods
    ---
    - [method] Pour over is clearer #brewing (tried it)      an observation: [category] text #tags (context)
    - requires [[Proper Grinding Technique]] (always)        a relation: type [[target]] (context)

Both are recognised anywhere in a note. An observation is a statement about the note's title, a relation a fact. A
note with other lines is also imported whole, as a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.markdown_notes import front_matter
from mcp_memory.integrations.importers.records import SkippedParts, SourceValue, parse_time
from mcp_memory.integrations.importers.statements import MemoryRecord, as_turn, short_id, statement

_FIELD = re.compile(r"^([A-Za-z_][\w-]*):[ \t]*(.*)$", re.MULTILINE)
_OBSERVATION = re.compile(r"^[ \t]*[-*][ \t]+\[([^\[\]()\n]{1,80})\](?!\()[ \t]+(\S.*)$")
_RELATION = re.compile(
    r"^[ \t]*[-*][ \t]+(?:([^\[\]\n]{1,80}?)[ \t]+)?\[\[([^\[\]\n]{1,200})\]\][ \t]*(\([^\n]*\))?[ \t]*$"
)
_TASK = {" ", "x", "X", "-"}
"""Checkboxes of tasks, which are not categories."""
_TAG = re.compile(r"(?<!\S)#[\w/-]+")
_TIMES = ("modified", "updated", "updated_at", "created", "created_at", "date")


def is_note(text: str) -> bool:
    """Return whether a Markdown file is a note: it has front matter with a title or permalink, or an observation."""
    fields = _fields(text)
    return bool({"title", "permalink"} & fields.keys()) or any(
        map(_parse_observation, front_matter(text)[1].splitlines())
    )


def basic_memory_records(source: SourceValue, skipped: SkippedParts) -> Iterator[MemoryRecord]:
    """Yield the records of a note."""
    text, name = str(source.value), source.where
    fields, (_, body, first) = _fields(text), front_matter(text)
    title = fields.get("title") or name.rpartition("/")[2].removesuffix(".md")
    at = parse_time(fields, _TIMES, skipped)
    rest: list[str] = []
    for number, line in enumerate(body.splitlines(), start=first):
        where = f"{name}, line {number}"
        if (observed := _parse_observation(line)) is not None:
            category, words = observed[0], _remove_tags(observed[1])
            observation = f"{title} ({category}): {words}"
            yield statement(where, skipped, text=observation, words=words, about=(title,), said_at=at)
        elif (relation := _RELATION.match(line)) is not None:
            kind, target = (relation[1] or "relates_to").strip(), relation[2].partition("|")[0].strip()
            if target:
                yield statement(where, skipped, fact=(title, kind, target), about=(title, target), said_at=at)
        else:
            rest.append(line)
    if any(line.strip() and not line.startswith("#") for line in rest):
        id = short_id(f"basic-memory-{fields.get('permalink') or name}")
        yield as_turn(name, text, skipped, program="basic-memory", said_at=at, id=id)


def _parse_observation(line: str) -> tuple[str, str] | None:
    """Return the category and the text of an observation; None if the line is not an observation."""
    match = _OBSERVATION.match(line)
    return None if match is None or match[1] in _TASK or match[1].startswith("[") else (match[1].strip(), match[2])


def _remove_tags(text: str) -> str:
    """Return an observation without its tags, unless it has only tags."""
    return " ".join(_TAG.sub("", text).split()) or text.strip()


def _fields(text: str) -> dict[str, str]:
    """Return the plain fields of the front matter; lists and values over several lines are skipped."""
    front = text.removesuffix(front_matter(text)[1])
    plain = ((key, value.strip().strip("'\"").strip()) for key, value in _FIELD.findall(front))
    return {key: value for key, value in plain if value and value[0] not in "[{|>"}


FORMAT = Format(
    title="a note of basic-memory",
    location="the folder with its notes, or a zip of it",
    unit="text",
    matches=is_note,
    records=basic_memory_records,
)
