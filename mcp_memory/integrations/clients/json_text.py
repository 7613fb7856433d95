"""JSON settings files edited in place: strict JSON, with comments, with trailing commas too, or JSON5. Pure.

Of JSON5, bare names and texts in single quotes are read, and kept as they are; its other numbers and escapes are not.

`rewrite_json(text, value)` returns a text that reads as `value`. Each member that stays the same keeps its bytes, and
so do comments, order, indentation, line ends and a byte order mark. Removing a member removes its line and the comment
on that line; a new member is written like its neighbours. If a line would grow past 80 columns, the object or array on
it is split, with a line for each child. A document that is one longer line stays on one line. If a name occurs twice in
an object, the last value counts.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_memory.core.text import well_formed

Dialect = Literal["json", "json+comments", "jsonc", "json5"]
MAX_DEPTH = 100
MAX_WIDTH = 80
"""Columns of a line as people write it."""
BOM = "\ufeff"

_SPACE = re.compile(r"[ \t\r\n]+")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SINGLE_QUOTED = re.compile(r"'((?:[^'\\\x00-\x1f]|\\(?:[\"'\\/bfnrt]|u[0-9a-fA-F]{4}))*)'")
_TO_DOUBLE_QUOTED = re.compile(r"""\\'|"|\\.""")
_BARE_NAME = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_ATOM = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null", re.ASCII)


class BadJson(ValueError):
    """The text is not JSON of the dialect; `str(error)` is `line 3, column 7: …`."""

    def __init__(self, text: str, at: int, what: str) -> None:
        ends = [line_break.end() for line_break in re.finditer(r"\r\n|\r|\n", text)]
        line = bisect_right(ends, at)
        column = at - (ends[line - 1] if line else 0) + 1
        super().__init__(f"line {line + 1}, column {column}: {what}")


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A value at `text[start:end]`; `children` of an object or array are in the order of the text."""

    start: int
    end: int
    value: Any
    children: tuple[JsonChild, ...] = ()


@dataclass(frozen=True, slots=True)
class JsonChild:
    """A member or an item: its name (None in an array), its start, and the position of the comma after it, if any."""

    key: str | None
    start: int
    node: JsonNode
    comma: int | None


def read_json(text: str, dialect: Dialect = "json5") -> Any:
    """Return the value of a text, `{}` if it is empty or only comments. Raises BadJson if it is invalid."""
    try:  # most files are plain JSON, which the standard library reads ten times as fast
        return json.loads(text.removeprefix(BOM), parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return parse_json(text, dialect).value


def _reject_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def same_value(left_value: object, right_value: object) -> bool:
    """Return whether two values are written alike, in any order of members; 1, 1.0 and true all differ."""
    alike = type(left_value) is type(right_value)
    if isinstance(left_value, dict) and isinstance(right_value, dict):
        left, right = cast("dict[str, Any]", left_value), cast("dict[str, Any]", right_value)
        return left.keys() == right.keys() and all(same_value(left[key], right[key]) for key in left)
    if isinstance(left_value, list) and isinstance(right_value, list):
        first, second = cast("list[Any]", left_value), cast("list[Any]", right_value)
        return len(first) == len(second) and all(map(same_value, first, second))
    return alike and (
        left_value == right_value or (left_value != left_value and right_value != right_value)
    )  # TOML has nan


def is_minified(text: str) -> bool:
    """Return whether the whole document is on one line that is longer than a person would write."""
    return len(text) > MAX_WIDTH and not re.search(r"[\r\n]", text.strip())


# --- reading ----------------------------------------------------------------------------------------


def parse_json(text: str, dialect: Dialect) -> JsonNode:
    """Parse a text with all positions; an empty text gives a node of length 0. Raises BadJson if it is invalid."""
    reader = _JsonReader(text, dialect)
    start = reader.skip(len(BOM) if text.startswith(BOM) else 0)
    if start == len(text):
        return JsonNode(start, start, {})
    node = reader.node(start, 0)
    end = reader.skip(node.end)
    if end != len(text):
        raise BadJson(text, end, "the document has ended and more follows")
    return node


@dataclass(frozen=True, slots=True)
class _JsonReader:
    text: str
    dialect: Dialect

    def skip(self, at: int) -> int:
        """Return where the next token begins, after white space and comments. Raises BadJson for a bad comment."""
        while True:
            if match := _SPACE.match(self.text, at):
                at = match.end()
            if not self.text.startswith("/", at):
                return at
            match = _COMMENT.match(self.text, at)
            if match is None:
                raise BadJson(self.text, at, "a comment that does not end, or a slash that is none")
            if self.dialect == "json":
                raise BadJson(self.text, at, "a comment, and this client reads none here")
            at = match.end()

    def node(self, at: int, depth: int) -> JsonNode:
        if depth > MAX_DEPTH:
            raise BadJson(self.text, at, f"nested more than {MAX_DEPTH} deep")
        match self.text[at : at + 1]:
            case "{" | "[" as opening:
                return self.container(at, "}" if opening == "{" else "]", depth)
            case quote if self.quotes(quote):
                end, value = self.string(at)
                return JsonNode(at, end, value)
            case _:
                match = _ATOM.match(self.text, at)
                if match is None:
                    what = "the document ends too early" if at >= len(self.text) else "a value is expected here"
                    raise BadJson(self.text, at, what)
                return JsonNode(at, match.end(), _number(match[0]))

    def quotes(self, character: str) -> bool:
        return character == '"' or (character == "'" and self.dialect == "json5")

    def string(self, at: int) -> tuple[int, str]:
        single = self.text.startswith("'", at)
        match = (_SINGLE_QUOTED if single else _STRING).match(self.text, at)
        if match is None:
            raise BadJson(self.text, at, "a string that does not end on its line, or has a wrong escape")
        return match.end(), json.loads(_double_quoted(match[1]) if single else match[0])

    def name(self, at: int) -> tuple[int, str]:
        if self.quotes(self.text[at : at + 1]):
            return self.string(at)
        if self.dialect == "json5" and (match := _BARE_NAME.match(self.text, at)):
            return match.end(), match[0]
        what = "a name" if self.dialect == "json5" else "a name in double quotes"
        raise BadJson(self.text, at, f"{what} is expected here")

    def container(self, start: int, closing: str, depth: int) -> JsonNode:
        children: list[JsonChild] = []
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
                if self.text.startswith(closing, at) and self.dialect in ("json", "json+comments"):
                    raise BadJson(self.text, child.comma, f"a comma before {closing}, and this client reads none there")
        values: list[Any] = [child.node.value for child in children]
        members = {str(child.key): child.node.value for child in children}
        return JsonNode(start, at + 1, members if closing == "}" else values, tuple(children))

    def child(self, start: int, closing: str, depth: int) -> JsonChild:
        key, at = None, start
        if closing == "}":
            end, key = self.name(at)
            at = self.skip(end)
            if not self.text.startswith(":", at):
                raise BadJson(self.text, at, "a colon is expected here")
            at = self.skip(at + 1)
        node = self.node(at, depth + 1)
        after = self.skip(node.end)
        return JsonChild(key, start, node, after if self.text.startswith(",", after) else None)


def _double_quoted(inner: str) -> str:
    """Return a text in single quotes, given without them, as JSON writes it."""
    shorter = {"\\'": "'", '"': '\\"'}
    return f'"{_TO_DOUBLE_QUOTED.sub(lambda match: shorter.get(match[0], match[0]), inner)}"'


def _number(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:  # more digits than Python converts
        return float(word)


_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*(?:(?!\*/)[^\r\n])*\*/)*(?://[^\r\n]*)?(?=[\r\n]|\Z)")


def rewrite_json(text: str, value: Any, dialect: Dialect = "json5") -> str:
    """Return the text, changed so that it reads as `value`. Raises BadJson if the text cannot be parsed."""
    root = parse_json(text, dialect)
    style = _JsonStyle.of(text, root)
    while not is_minified(text) and (crowded := _find_crowded(text, root, value, style)):
        text = _apply(text, crowded.spread_out())
        root = parse_json(text, dialect)
    if root.start == root.end:  # nothing but comments, or nothing at all
        if same_value(value, {}):
            return text
        gap = "" if text.rstrip("\r\n") in ("", BOM) or text.endswith("\n") else style.newline
        return text + gap + style.dump(value, "", inline=False) + style.newline
    return _apply(text, _edits(text, root, value, style, inline=False))


Edit = tuple[int, int, str]


def _apply(text: str, edits: Iterable[Edit]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [text[at:start], new]
        at = end
    return "".join([*pieces, text[at:]])


@dataclass(frozen=True, slots=True)
class _JsonStyle:
    """How a text is written: its line ends, one step of indentation, and the space after a colon."""

    newline: str
    unit: str
    space: str

    @classmethod
    def of(cls, text: str, root: JsonNode) -> _JsonStyle:
        newline = re.search(r"\r\n|\n", text)
        first = root.children[0] if root.children else None
        unit = _indent(text, first.start) if first else None
        colon = text.find(":", first.start + len(first.key or "")) if first else -1
        return cls(
            newline=newline[0] if newline else "\n",
            unit=unit or "  ",
            space=" " if colon < 0 or text[colon + 1 : colon + 2] in (" ", "") else "",
        )

    def dump(self, value: Any, indent: str, *, inline: bool) -> str:
        text = (
            json.dumps(value, ensure_ascii=False, separators=("," + self.space, ":" + self.space))
            if inline
            else self._spread(value, self.newline + indent)
        )
        return text if well_formed(text) else json.dumps(value)

    def _spread(self, value: Any, newline: str) -> str:
        """Write a value on several lines, as programs write settings.

        A short list of plain values stays on one line.
        """
        inner, plain = newline + self.unit, _dump_inline(value)
        match value:
            case {**members} if members:
                lines = [f"{_dump_inline(key)}: {self._spread(member, inner)}" for key, member in members.items()]
                return f"{{{inner}{f',{inner}'.join(lines)}{newline}}}"
            case [*items] if any(isinstance(item, list | dict) for item in items) or _width(inner + plain) > MAX_WIDTH:
                return f"[{inner}{f',{inner}'.join(self._spread(item, inner) for item in items)}{newline}]"
            case _:
                return plain


def _dump_inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _indent(text: str, at: int) -> str | None:
    """Return the white space before `at` on its line; None if anything else comes before it."""
    begin = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    before = text[begin:at]
    return before if begin and not before.strip(" \t") else None


def _edits(text: str, node: JsonNode, new: Any, style: _JsonStyle, *, inline: bool) -> Iterator[Edit]:
    old: object = node.value
    if same_value(old, new):
        return
    if node.children:  # keep the present layout; an empty container takes its parent's
        inline = _indent(text, node.children[0].start) is None
    if changes := _changes(node, new):
        yield from _JsonContainer(text, node, style, inline).edits_to(*changes)
    else:
        yield node.start, node.end, style.dump(new, _line_indent(text, node.start), inline=inline)


def _find_crowded(text: str, node: JsonNode, new: Any, style: _JsonStyle) -> _JsonContainer | None:
    """Return the outermost container on a line that would grow too wide, unless it contains comments."""
    if same_value(node.value, new) or not node.children or not (changes := _changes(node, new)):
        return None
    container = _JsonContainer(text, node, style, inline=_indent(text, node.children[0].start) is None)
    if container.inline and container.is_bare():
        begin = max(text.rfind("\n", 0, node.start), text.rfind("\r", 0, node.start)) + 1
        edits = [(start - begin, end - begin, piece) for start, end, piece in container.edits_to(*changes)]
        before = text[begin : node.end]
        if _width(_apply(before, edits)) > max(MAX_WIDTH, _width(before)):
            return container
    inner = (_find_crowded(text, node.children[at].node, value, style) for at, value in changes[0].items())
    return next(filter(None, inner), None)


def _width(text: str) -> int:
    return max(map(len, re.split(r"[\r\n]", text)))


Kept = dict[int, Any]
"""New values of the children that stay, by position."""
Added = dict[int, list[tuple[str | None, Any]]]
"""New children, by the position of the child that they follow (-1: none)."""


def _changes(node: JsonNode, new: Any) -> tuple[Kept, Added] | None:
    """Return the children that stay and those to add. None unless both values are objects, or both are arrays."""
    old: object = node.value
    if isinstance(old, dict) and isinstance(new, dict):
        return _members(node, cast("dict[str, Any]", new))
    if isinstance(old, list) and isinstance(new, list):
        return _items(node, cast("list[Any]", new))
    return None


def _members(node: JsonNode, new: dict[str, Any]) -> tuple[Kept, Added]:
    last = {child.key: at for at, child in enumerate(node.children)}
    kept = {
        at: new[str(child.key)] if last[child.key] == at else child.node.value
        for at, child in enumerate(node.children)
        if child.key in new
    }
    return kept, {max(kept, default=-1): [(key, value) for key, value in new.items() if key not in last]}


def _items(node: JsonNode, new: list[Any]) -> tuple[Kept, Added]:
    old = [child.node.value for child in node.children]
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if not same_value(old[at], new[at])), shorter)
    tail = next((at for at in range(shorter - head) if not same_value(old[-1 - at], new[-1 - at])), shorter - head)
    pairs = shorter - head - tail
    kept = {at: new[at] for at in range(head + pairs)}
    kept |= {len(old) - tail + at: new[len(new) - tail + at] for at in range(tail)}
    return kept, {head + pairs - 1: [(None, value) for value in new[head + pairs : len(new) - tail]]}


@dataclass(frozen=True, slots=True)
class _JsonContainer:
    """An object or array whose children change; `inline` if they are not on separate lines."""

    text: str
    node: JsonNode
    style: _JsonStyle
    inline: bool

    def edits_to(self, kept: Kept, added: Added) -> Iterator[Edit]:
        children = self.node.children
        ends_with_comma = bool(children) and children[-1].comma is not None
        last = max((at for at, new in [*((at, [0]) for at in kept), *added.items()] if new), default=None)
        if last is None and self.is_bare():
            yield self.node.start + 1, self.node.end - 1, ""
            return
        for at, child in enumerate(children):
            if at not in kept:
                yield self.deletion(at)
                continue
            yield from _edits(self.text, child.node, kept[at], self.style, inline=self.inline)
            is_last = at == last and not added.get(at)
            if child.comma is None and not (is_last and not ends_with_comma):
                yield child.node.end, child.node.end, ","
            elif child.comma is not None and is_last and not ends_with_comma:
                yield child.comma, child.comma + 1, ""
        for at, new in added.items():
            if new:
                yield self.insertion(at, new, comma_after=at != last or ends_with_comma)

    def is_bare(self) -> bool:
        """Return whether there are only children, commas and white space between the brackets."""
        return not any(self.text[end:start].strip() for end, start in self.gaps())

    def gaps(self) -> list[tuple[int, int]]:
        """Return the spans of text before each child and after the last."""
        ends = [self.node.start + 1, *map(self.end_of, range(len(self.node.children)))]
        return list(zip(ends, [*(child.start for child in self.node.children), self.node.end - 1], strict=True))

    def spread_out(self) -> Iterator[Edit]:
        """Yield the edits that put each child on a separate line."""
        closing = self.style.newline + _line_indent(self.text, self.node.start)
        *before, (start, end) = self.gaps()
        yield from ((*gap, closing + self.style.unit) for gap in before)
        yield start, end, closing

    def deletion(self, at: int) -> Edit:
        child = self.node.children[at]
        end = child.node.end if child.comma is None else child.comma + 1
        indent = _indent(self.text, child.start)
        rest = _REST_OF_LINE.match(self.text, end)
        if indent is not None and rest is not None:
            start = child.start - len(indent)
            return start - (2 if self.text[start - 2 : start] == "\r\n" else 1), rest.end(), ""
        start = child.start
        if child.comma is None:
            while self.text[start - 1] in " \t":
                start -= 1
        else:
            while self.text[end : end + 1] in (" ", "\t"):
                end += 1
        return start, end, ""

    def insertion(self, after: int, new: Sequence[tuple[str | None, Any]], *, comma_after: bool) -> Edit:
        """Return the edit that inserts children after the child at `after` (-1: at the start)."""
        texts = [self.dump_child(key, value) for key, value in new]
        if self.inline:
            return self.inline_insertion(after, texts, comma_after=comma_after)
        lines = "".join(f"{self.style.newline}{self.child_indent()}{text}," for text in texts)
        lines = lines if comma_after else lines[:-1]
        if not self.node.children:
            return self.filling(lines)
        at = self.node.start + 1 if after < 0 else self.end_of(after)
        rest = _REST_OF_LINE.match(self.text, at)
        at = at if rest is None else rest.end()
        return at, at, lines

    def inline_insertion(self, after: int, texts: Sequence[str], *, comma_after: bool) -> Edit:
        if after < 0:
            at, comma = self.node.start + 1, "," + self.style.space
            return at, at, comma.join(texts) + (comma if comma_after else "")
        at, line = self.end_of(after), "".join(f"{self.style.space}{text}," for text in texts)
        return at, at, line if comma_after else line[:-1]

    def filling(self, lines: str) -> Edit:
        """Return the edit that puts lines into a container without children, after any comments."""
        start, end = self.node.start + 1, self.node.end - 1
        inside = self.text[start:end]
        at = start + len(inside.rstrip(" \t\r\n"))  # a comment may end in other white space
        closing = self.style.newline + _line_indent(self.text, self.node.start)
        return at, at if inside.strip() else end, lines + closing

    def dump_child(self, key: str | None, value: Any) -> str:
        text = self.style.dump(value, self.child_indent(), inline=self.inline)
        if key is None:
            return text
        space = self.style.space if self.inline else " "
        return f"{self.style.dump(key, '', inline=True)}:{space}{text}"

    def end_of(self, at: int) -> int:
        child = self.node.children[at]
        return child.node.end if child.comma is None else child.comma + 1

    def child_indent(self) -> str:
        if self.node.children and (indent := _indent(self.text, self.node.children[0].start)) is not None:
            return indent
        return _line_indent(self.text, self.node.start) + self.style.unit


def _line_indent(text: str, at: int) -> str:
    begin = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    line = text[begin:at].removeprefix(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]
