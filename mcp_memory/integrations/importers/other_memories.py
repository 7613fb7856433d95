"""Exports of other memories, as statements and turns. No I/O, no state.

A statement has at most some 2,000 characters. A longer text is imported as a turn of role `tool`, so that it is kept
and never taken for the user's words.

basic-memory: a note in Markdown with observations and relations (github.com/basicmachines-co/basic-memory,
NOTE-FORMAT.md, and docs.basicmemory.com, "Knowledge format").

    ---                                        front matter: title, type, tags, permalink, …
    title: Coffee Brewing Methods
    ---
    - [method] Pour over is clearer #brewing (tried it)      an observation: [category] text #tags (context)
    - requires [[Proper Grinding Technique]] (always)        a relation: type [[target]] (context)

Both are recognised anywhere in a note. An observation is a statement about the note's title, a relation a fact. A
note with other lines is also imported whole, as a text.

mem0: the answer of `get_all`, and exports of such answers (docs.mem0.ai, "Get all memories", "Export stored memories").

    memory     {id, memory, user_id | agent_id | run_id, hash, metadata, categories, created_at, updated_at}
    relation   {source, relationship, target | destination}

alone, in a list, or in {results: [memory, …], relations: [relation, …]} (`memories` in older answers). Of an export
with a custom schema, texts under `memory` are read. Each memory is a statement, identified by its id, so that a memory
reworded by mem0 replaces its older version.

The reference memory server: a line of `memory.jsonl`, before that `memory.json` (modelcontextprotocol/servers,
src/memory/index.ts), or the graph of its tool `read_graph`, {entities: [entity, …], relations: [relation, …]}.

    entity     {type: "entity", name, entityType, observations: [text, …]}
    relation   {type: "relation", from, to, relationType}

Each observation is a statement about its entity, each relation a fact; a type is a fact too.

MemPalace: Markdown, a file for each room of each wing, plain or as a snapshot with indexes
(github.com/MemPalace/mempalace, mempalace/exporter.py, `_write_room_markdown`).

    # <wing> / <room>
    ## <drawer id>
    > text, each line quoted
    | Source | <file> |    | Filed | <time> |    | Added by | <who> |
    ---

A drawer holds verbatim words of files and conversations, without their speakers. So it is a turn of role `tool` in a
session of its room, identified by the drawer's id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from mcp_memory.core.private_passages import without_private
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import is_blank
from mcp_memory.integrations.importers.records import (
    MAX_ID_CHARS,
    ImportedStatement,
    ImportedTurn,
    ImportProblem,
    InvalidRecord,
    SkippedParts,
    SourceValue,
    id_of,
    items_of,
    kind_of,
    list_of,
    object_of,
    parse_time,
    place_inside,
    replace_surrogates,
    storable_text,
)
from mcp_memory.longterm.statements import MAX_CHARS

_MAX_OF_A_NAME = 200

MemoryRecord = ImportedStatement | ImportedTurn | ImportProblem


def statement(
    where: str,
    skipped: SkippedParts,
    *,
    text: str | None = None,
    words: str = "",
    fact: tuple[str, str, str] | None = None,
    about: tuple[str, ...] = (),
    said_at: datetime | None = None,
    id: str | None = None,
    program: str = "memory",
) -> ImportedStatement | ImportedTurn:
    """Return a statement without lone surrogates and private passages. If `text` is None, the fact is its text.

    A text that is too long for a statement is returned as a turn. Raises InvalidRecord if it is empty.
    """
    # Masked first: a key without its underscores would not be recognised.
    content = _clean_text(
        text if text is not None else " ".join(map(mask, fact or ())).replace("_", " "), skipped
    ).strip()
    names = tuple(
        name for mention in about if (name := _clean_text(mention, skipped).strip()) and len(name) <= _MAX_OF_A_NAME
    )
    if fact is not None:
        fact = _clean_text(fact[0], skipped), _clean_text(fact[1], skipped), _clean_text(fact[2], skipped)
    if max(map(len, (content, *(fact or ())))) > MAX_CHARS:
        return as_turn(where, content, skipped, program=program, said_at=said_at, id=id)
    if any(map(is_blank, fact or (content,))):
        raise InvalidRecord("is empty, or has no visible character. Take it out.")
    return ImportedStatement(where=where, text=content, said_at=said_at, id=id, fact=fact, about=names, words=words)


def _clean_text(text: str, skipped: SkippedParts) -> str:
    return replace_surrogates(without_private(text), skipped) or ""


def as_turn(
    where: str,
    text: str,
    skipped: SkippedParts,
    *,
    program: str,
    said_at: datetime | None = None,
    id: str | None = None,
    session: str | None = None,
) -> ImportedTurn:
    """Return another program's text as a turn of role `tool`: searchable, and never taken for the user's words."""
    content = storable_text(without_private(text), skipped)
    return ImportedTurn(
        where=where,
        role="tool",
        content=content,
        name=program,
        said_at=said_at,
        id=id or f"{program}-{hashlib.sha256(content.encode()).hexdigest()[:24]}",
        session=session,
    )


_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
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
    return bool({"title", "permalink"} & fields.keys()) or any(map(_parse_observation, _body(text).splitlines()))


def basic_memory_records(source: SourceValue, skipped: SkippedParts) -> Iterator[MemoryRecord]:
    """Yield the records of a note, up to the first problem."""
    text, name = str(source.value), source.where
    fields, body = _fields(text), _body(text)
    title = fields.get("title") or name.rpartition("/")[2].removesuffix(".md")
    at = parse_time(fields, _TIMES, skipped)
    rest: list[str] = []
    first = text.count("\n", 0, len(text) - len(body)) + 1
    try:
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
            id = _short_id(f"basic-memory-{fields.get('permalink') or name}")
            yield as_turn(name, text, skipped, program="basic-memory", said_at=at, id=id)
    except InvalidRecord as unfit:
        yield ImportProblem(where=name, what=str(unfit))


def _short_id(id: str) -> str | None:
    return id if len(id) <= MAX_ID_CHARS else None


def _parse_observation(line: str) -> tuple[str, str] | None:
    """Return the category and the text of an observation; None if the line is not an observation."""
    match = _OBSERVATION.match(line)
    return None if match is None or match[1] in _TASK or match[1].startswith("[") else (match[1].strip(), match[2])


def _remove_tags(text: str) -> str:
    """Return an observation without its tags, unless it has only tags."""
    return " ".join(_TAG.sub("", text).split()) or text.strip()


def _fields(text: str) -> dict[str, str]:
    """Return the plain fields of the front matter; lists and values over several lines are skipped."""
    front = _FRONT.match(text)
    if front is None:
        return {}
    plain = ((key, value.strip().strip("'\"").strip()) for key, value in _FIELD.findall(front[1]))
    return {key: value for key, value in plain if value and value[0] not in "[{|>"}


def _body(text: str) -> str:
    front = _FRONT.match(text)
    return text if front is None else text[front.end() :]


_LISTS = ("results", "memories")
_OURS = frozenset({"role", "content", "turns", "messages"})


def is_mem0(value: Any) -> bool:
    thing = object_of(value)
    if thing is None:
        return False
    if any(_is_memory(item) for key in _LISTS for item in items_of(thing, key)[:1]):
        return True
    return _is_memory(thing)


def _is_memory(value: Any) -> bool:
    thing = object_of(value)
    return thing is not None and isinstance(thing.get("memory"), str) and not _OURS & thing.keys()


def mem0_records(source: SourceValue, skipped: SkippedParts) -> Iterator[MemoryRecord]:
    """Yield the records of a memory, or of a list of memories."""
    thing, where = object_of(source.value) or {}, source.where
    key = next((key for key in _LISTS if list_of(thing.get(key)) is not None), None)
    if key is None:
        yield _memory(thing, where, skipped)
        return
    for index, value in enumerate(items_of(thing, key)):
        place, fields = place_inside(where, f"{key}[{index}]"), object_of(value)
        if fields is None:
            yield ImportProblem(where=place, what=f"is {kind_of(value)}, and has to be a memory of mem0.")
        else:
            yield _memory(fields, place, skipped)
    for index, value in enumerate(items_of(thing, "relations")):
        place, fields = place_inside(where, f"relations[{index}]"), object_of(value) or {}
        names = [fields.get("source"), fields.get("relationship"), fields.get("target", fields.get("destination"))]
        match names:
            case [str(start), str(relation), str(target)] if start.strip() and relation.strip() and target.strip():
                yield _relation(place, skipped, start, relation, target)
            case _:
                yield ImportProblem(where=place, what="is no relation of mem0: {source, relationship, target}.")


def _relation(where: str, skipped: SkippedParts, start: str, relation: str, target: str) -> MemoryRecord:
    try:
        return statement(where, skipped, fact=(start, relation, target), about=(start, target))
    except InvalidRecord as unfit:
        return ImportProblem(where=where, what=str(unfit))


def _memory(thing: Mapping[str, Any], where: str, skipped: SkippedParts) -> MemoryRecord:
    text = thing.get("memory")
    if not isinstance(text, str) or is_blank(text):
        return ImportProblem(where=where, what=f"has a memory that is {kind_of(text)}, and it has to be a text.")
    id = id_of(thing, "id")
    try:
        return statement(
            where,
            skipped,
            text=text,
            said_at=parse_time(thing, ("updated_at", "created_at"), skipped),
            id=None if id is None else f"mem0:{id}",
            program="mem0",
        )
    except InvalidRecord as unfit:
        return ImportProblem(where=where, what=str(unfit))


def is_graph(value: Any) -> bool:
    thing = object_of(value)
    if thing is None:
        return False
    if list_of(thing.get("entities")) is not None and list_of(thing.get("relations")) is not None:
        return True
    return (thing.get("type") == "entity" and "observations" in thing) or (
        thing.get("type") == "relation" and "relationType" in thing
    )


def memory_server_records(source: SourceValue, skipped: SkippedParts) -> Iterator[MemoryRecord]:
    """Yield the records of a line, or of a whole graph."""
    thing, where = object_of(source.value) or {}, source.where
    if list_of(thing.get("entities")) is not None:
        for key, kind in (("entities", "entity"), ("relations", "relation")):
            for index, value in enumerate(items_of(thing, key)):
                place, fields = place_inside(where, f"{key}[{index}]"), object_of(value)
                if fields is None:
                    yield ImportProblem(where=place, what=f"is {kind_of(value)}, and has to be an object.")
                else:
                    yield from memory_server_records(SourceValue({"type": kind, **fields}, place), skipped)
        return
    try:
        if thing.get("type") == "entity":
            yield from _entity(thing, where, skipped)
        elif thing.get("type") == "relation":
            start, target = _text(thing, "from"), _text(thing, "to")
            yield statement(where, skipped, fact=(start, _text(thing, "relationType"), target), about=(start, target))
        else:
            yield ImportProblem(where=where, what="is neither an entity nor a relation of the reference memory server.")
    except InvalidRecord as unfit:
        yield ImportProblem(where=where, what=str(unfit))


def _entity(thing: Mapping[str, Any], where: str, skipped: SkippedParts) -> Iterator[ImportedStatement | ImportedTurn]:
    name = _text(thing, "name")
    observed = list_of(thing.get("observations"))
    if observed is None:
        raise InvalidRecord(f"observations is {kind_of(thing.get('observations'))}, and has to be a list of texts.")
    kind = thing.get("entityType")
    if isinstance(kind, str) and kind.strip():
        yield statement(where, skipped, fact=(name, "is a", kind.strip()), about=(name,))
    for nth, observation in enumerate(observed):
        if not isinstance(observation, str):
            raise InvalidRecord(f"observations[{nth}] is {kind_of(observation)}, and has to be a text.")
        if observation.strip():
            place, text = place_inside(where, f"observations[{nth}]"), observation.strip()
            text = (
                text if name.casefold() in observation.casefold() else f"{name}: {text}"
            )  # a statement names its entity
            yield statement(place, skipped, text=text, words=observation, about=(name,))


def _text(thing: Mapping[str, Any], key: str) -> str:
    value = thing.get(key)
    if not isinstance(value, str) or is_blank(value):
        what = "empty" if isinstance(value, str) else kind_of(value)
        raise InvalidRecord(f"{key} is {what}, and has to be a text.")
    return value.strip()


_ROOM = re.compile(r"\A# ([^\n]+?) / ([^\n]+)\n\s*## \S")
_INDEX = re.compile(r"\A# (?:Palace Export|Snapshot Index|Wing Export|Palace Snapshot)\b")
_DRAWER = re.compile(
    r"^## (?P<id>[^\n]+)\n\n(?P<text>> ?[^\n]*(?:\n> ?[^\n]*)*)\n\n\| Field \| Value \|\n\|[-| ]+\|\n"
    r"(?P<table>(?:\|[^\n]*\|\n)*)\n---[ \t]*(?:\n|\Z)",
    re.MULTILINE,
)
_CELL = re.compile(r"^\| ([^|\n]+?) \| (.*?) \|$", re.MULTILINE)
_HEAD = re.compile(r"^## ", re.MULTILINE)
_UNREADABLE = "a drawer that cannot be read. Export the palace again."


def is_room(text: str) -> bool:
    return _ROOM.match(text) is not None


def is_index(text: str) -> bool:
    """Return whether a file only lists other files."""
    return _INDEX.match(text) is not None


def mempalace_records(source: SourceValue, skipped: SkippedParts) -> Iterator[MemoryRecord]:
    """Yield the drawers of a room."""
    text, name = str(source.value), source.where
    room = _ROOM.match(text)
    session = f"mempalace {room[1].strip()} - {room[2].strip()}" if room else None
    at = 0

    def place(start: int) -> str:
        return f"{name}, line {text.count(chr(10), 0, start) + 1}"

    for drawer in _DRAWER.finditer(text):
        where = place(drawer.start())
        if _HEAD.search(text, at, drawer.start()):
            yield ImportProblem(where=where, what=f"comes after {_UNREADABLE}")
        at = drawer.end()
        words = "\n".join(line[2:] if line.startswith("> ") else line[1:] for line in drawer["text"].split("\n"))
        id = _short_id(f"mempalace-{drawer['id'].strip()}")
        said_at = parse_time(dict(_CELL.findall(drawer["table"])), ("Filed",), skipped)
        try:
            yield as_turn(where, words, skipped, program="mempalace", said_at=said_at, id=id, session=session)
        except InvalidRecord as unfit:
            yield ImportProblem(where=where, what=str(unfit))
    if _HEAD.search(text, at):
        yield ImportProblem(where=place(at), what=f"has {_UNREADABLE}")
