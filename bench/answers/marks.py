"""Reads the answers of readers and the marks of judges, and writes the judge's sheet.

Readers return `{"id", "answer"}` per line, judges `{"id", "mark"}`. An answer of white space is valid: the reader did
not answer. The judge sees questions, gold answers and answers in random order, but not the set, the system or the text.
Errors name the file, the line and the next step.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeGuard, cast, get_args

from bench.answers.sheets import KeyRow
from mcp_memory.core.errors import InvalidInput
from mcp_memory.service.render import quote

Mark = Literal["right", "partly", "wrong"]
MARKS: tuple[Mark, ...] = get_args(Mark)

INSTRUCTIONS = """\
Each item below is a question, the right answer, and a reply to be marked. Judge what the reply says, not how.

- right: the reply says what the right answer says. Other words, another language and true details beside it are fine.
- partly: the reply has a part of what the right answer says, and nothing that contradicts it.
- wrong: the reply contradicts the right answer, has nothing of it, or does not know. But where the right answer is \
that the memory does not say, a reply that does not know is right.

Return one line of JSON for each item: {"id": "the item's id", "mark": "right"}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """Answers and marks by id of the item."""

    answers: dict[str, str] = field(default_factory=dict[str, str])
    marks: dict[str, Mark] = field(default_factory=dict[str, Mark])


def read_returned(files: Sequence[Path], key: Mapping[str, KeyRow]) -> Returned:
    """Return the answers and marks of some files, in any order. Raises InvalidInput for the first invalid line."""
    returned = Returned()
    seen: dict[tuple[str, str], str] = {}
    for path in files:
        for number, line in enumerate(_lines(path), start=1):
            if line.strip():
                _take(line, f"{path}, line {number}", key, returned, seen)
    return returned


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from None


def _take(
    line: str, where: str, key: Mapping[str, KeyRow], returned: Returned, seen: dict[tuple[str, str], str]
) -> None:
    fields = _fields(line, where)
    id, kind = fields["id"], "mark" if "mark" in fields else "answer"
    if id not in key:
        raise InvalidInput(f"{where}: unknown id {id!r}. Copy the id of an item of these sheets.")
    if (id, kind) in seen:
        raise InvalidInput(f"{where}: a second {kind} for {id}, after {seen[id, kind]}. Remove one of them.")
    seen[id, kind] = where
    value: object = fields[kind]
    if kind == "answer":
        if not isinstance(value, str):
            raise InvalidInput(f"{where}: the answer is not text. Put it in quotation marks.")
        returned.answers[id] = value
    elif _is_mark(value):
        returned.marks[id] = value
    else:
        raise InvalidInput(f"{where}: unknown mark {value!r}. Use one of: {', '.join(MARKS)}.")


def _fields(line: str, where: str) -> dict[str, Any]:
    """Return the object of a line, which has a text `id` and either `answer` or `mark`. Raises InvalidInput."""
    try:
        value: object = json.loads(line)
    except ValueError as error:
        raise InvalidInput(f"{where}: not JSON ({error}). Write one object a line, or remove the line.") from None
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if not isinstance(fields.get("id"), str) or ("answer" in fields) == ("mark" in fields):
        raise InvalidInput(
            f"{where}: neither an answer nor a mark. "
            'Write {"id": "…", "answer": "…"} or {"id": "…", "mark": "right"}.'
        )
    return fields


def _is_mark(value: object) -> TypeGuard[Mark]:
    return isinstance(value, str) and value in MARKS


def check_complete(kind: Literal["answer", "mark"], given: Mapping[str, str], key: Mapping[str, KeyRow]) -> None:
    """Raise InvalidInput if an item of the key has no answer or mark."""
    missing = [row for row in key.values() if row.id not in given]
    if missing:
        some = ", ".join(f"{row.id} ({row.sheet})" for row in missing[:3]) + (" …" if len(missing) > 3 else "")
        raise InvalidInput(
            f"{len(missing)} of {len(key)} items have no {kind}: {some}. "
            "Add a line for each, or name the file that has them."
        )


def judge_sheet(key: Mapping[str, KeyRow], answers: Mapping[str, str], *, chance: random.Random) -> str:
    """Return the sheet for the judge, its items in random order."""
    rows = sorted(key.values(), key=lambda row: row.id)
    chance.shuffle(rows)
    return (
        "\n\n".join([f"# Replies to mark ({len(rows)} items)", INSTRUCTIONS, *(_item(row, answers) for row in rows)])
        + "\n"
    )


def _item(row: KeyRow, answers: Mapping[str, str]) -> str:
    reply = answers[row.id].strip() or "(no reply)"
    return (
        f"## {row.id}\n\nQuestion:\n{quote(row.question)}\n\nRight answer:\n{quote(row.gold)}\n\nReply:\n{quote(reply)}"
    )
