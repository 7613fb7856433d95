"""JSON as people keep it in settings, read with the place of each value, so that one can be changed alone.

Three dialects: strict JSON, JSON with comments, and JSON with comments and commas before a closing bracket. Pure.
Where a name stands twice in an object, the last one counts, as in every reader.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Literal, cast

__all__ = ["BOM", "BadJson", "Child", "Dialect", "Node", "parsed", "read", "same"]

Dialect = Literal["json", "json+comments", "jsonc"]
DEEPEST = 100
BOM = "\ufeff"

_SPACE = re.compile(r"[ \t\r\n]+")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_ATOM = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null", re.ASCII)


class BadJson(ValueError):
    """The text is not of its dialect; `str(error)` is `line 3, column 7: …`."""

    def __init__(self, text: str, at: int, what: str) -> None:
        ends = [found.end() for found in re.finditer(r"\r\n|\r|\n", text)]
        line = bisect_right(ends, at)
        column = at - (ends[line - 1] if line else 0) + 1
        super().__init__(f"line {line + 1}, column {column}: {what}")


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands: `text[start:end]`. `children` of an object or array, in the order of the text."""

    start: int
    end: int
    value: Any
    children: tuple[Child, ...] = ()


@dataclass(frozen=True, slots=True)
class Child:
    """A member or an item: its name (None in an array), where it begins, and the comma after it, if any."""

    key: str | None
    start: int
    node: Node
    comma: int | None


def read(text: str, dialect: Dialect = "jsonc") -> Any:
    """Return the value of a text; an empty one (or only comments) reads as `{}`. Raises BadJson."""
    try:  # most files are plain JSON, which the standard library reads ten times as fast
        return json.loads(text.removeprefix(BOM), parse_constant=_refused)
    except (ValueError, RecursionError):
        return parsed(text, dialect).value


def _refused(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def same(one: object, other: object) -> bool:
    """Tell whether two values are written alike: 1, 1.0 and true are three; the order of members plays no part."""
    alike = type(one) is type(other)
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(one, list) and isinstance(other, list):
        first, second = cast("list[Any]", one), cast("list[Any]", other)
        return len(first) == len(second) and all(map(same, first, second))
    return alike and (one == other or (one != one and other != other))  # TOML has nan


# --- reading ----------------------------------------------------------------------------------------


def parsed(text: str, dialect: Dialect) -> Node:
    """Return the value of a text with all its places; a node of no length where there is none. Raises BadJson."""
    reader = _Reader(text, dialect)
    start = reader.skip(len(BOM) if text.startswith(BOM) else 0)
    if start == len(text):
        return Node(start, start, {})
    node = reader.node(start, 0)
    end = reader.skip(node.end)
    if end != len(text):
        raise BadJson(text, end, "the document has ended and more follows")
    return node


@dataclass(frozen=True, slots=True)
class _Reader:
    text: str
    dialect: Dialect

    def skip(self, at: int) -> int:
        """Return where the next token begins."""
        while True:
            if found := _SPACE.match(self.text, at):
                at = found.end()
            if not self.text.startswith("/", at):
                return at
            found = _COMMENT.match(self.text, at)
            if found is None:
                raise BadJson(self.text, at, "a comment that does not end, or a slash that is none")
            if self.dialect == "json":
                raise BadJson(self.text, at, "a comment, and this client reads none here")
            at = found.end()

    def node(self, at: int, depth: int) -> Node:
        if depth > DEEPEST:
            raise BadJson(self.text, at, f"nested more than {DEEPEST} deep")
        match self.text[at : at + 1]:
            case "{" | "[" as opening:
                return self.container(at, "}" if opening == "{" else "]", depth)
            case '"':
                end, value = self.string(at)
                return Node(at, end, value)
            case _:
                found = _ATOM.match(self.text, at)
                if found is None:
                    what = "the document ends too early" if at >= len(self.text) else "a value is expected here"
                    raise BadJson(self.text, at, what)
                return Node(at, found.end(), _number(found[0]))

    def string(self, at: int) -> tuple[int, str]:
        found = _STRING.match(self.text, at)
        if found is None:
            raise BadJson(self.text, at, "a string that does not end on its line, or has a wrong escape")
        return found.end(), json.loads(found[0])

    def container(self, start: int, closing: str, depth: int) -> Node:
        children: list[Child] = []
        at = self.skip(start + 1)
        while not self.text.startswith(closing, at):
            child = self.child(at, closing, depth)
            children.append(child)
            if child.comma is None:
                at = self.skip(child.node.end)
                if not self.text.startswith(closing, at):
                    early = at >= len(self.text)
                    raise BadJson(self.text, at, f"{'the document ends; ' * early}a comma or {closing} is expected")
            else:
                at = self.skip(child.comma + 1)
                if self.text.startswith(closing, at) and self.dialect != "jsonc":
                    raise BadJson(self.text, child.comma, f"a comma before {closing}, and this client reads none there")
        values: list[Any] = [child.node.value for child in children]
        members = {str(child.key): child.node.value for child in children}
        return Node(start, at + 1, members if closing == "}" else values, tuple(children))

    def child(self, start: int, closing: str, depth: int) -> Child:
        key, at = None, start
        if closing == "}":
            if not self.text.startswith('"', at):
                raise BadJson(self.text, at, "a name in double quotes is expected here")
            end, key = self.string(at)
            at = self.skip(end)
            if not self.text.startswith(":", at):
                raise BadJson(self.text, at, "a colon is expected here")
            at = self.skip(at + 1)
        node = self.node(at, depth + 1)
        after = self.skip(node.end)
        return Child(key, start, node, after if self.text.startswith(",", after) else None)


def _number(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:  # more digits than Python converts
        return float(word)
