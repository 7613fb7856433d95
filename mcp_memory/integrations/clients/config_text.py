"""Configuration files as texts: JSON with comments and TOML, parsed with positions and edited in place. Pure.

JSON comes in three dialects: strict, with comments, and with comments and trailing commas. If a name occurs twice in an
object, the last one counts. `rewrite_json(text, value)` returns a text that reads as `value`; each member that is the
same keeps its bytes, and so do comments, order, indentation, line ends and a byte order mark. A removed member takes
its line and the comment on it along; a new one looks like its neighbours. If a line would grow past 80 columns, the
object or array on it is split, one line for each child. A document that is one longer line stays on one line.

`rewrite_toml(text, value)` adds, replaces and removes tables two levels deep (`[mcp_servers.memory]` with its
subtables); a new one goes to the end. The result is parsed again, so it is either correct or refused: BadToml. A table
written in braces on a line of a larger one is refused.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_memory.core.text import well_formed

Dialect = Literal["json", "json+comments", "jsonc"]
MAX_DEPTH = 100
MAX_WIDTH = 80
"""Columns of a line that people write."""
BOM = "\ufeff"

_SPACE = re.compile(r"[ \t\r\n]+")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_ATOM = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null", re.ASCII)


class BadJson(ValueError):
    """The text is not of its dialect; `str(error)` is `line 3, column 7: …`."""

    def __init__(self, text: str, at: int, what: str) -> None:
        ends = [line_break.end() for line_break in re.finditer(r"\r\n|\r|\n", text)]
        line = bisect_right(ends, at)
        column = at - (ends[line - 1] if line else 0) + 1
        super().__init__(f"line {line + 1}, column {column}: {what}")


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A value and where it stands: `text[start:end]`. `children` of an object or array, in the order of the text."""

    start: int
    end: int
    value: Any
    children: tuple[JsonChild, ...] = ()


@dataclass(frozen=True, slots=True)
class JsonChild:
    """A member or an item: its name (None in an array), where it begins, and the comma after it, if any."""

    key: str | None
    start: int
    node: JsonNode
    comma: int | None


def read_json(text: str, dialect: Dialect = "jsonc") -> Any:
    """Return the value of a text; an empty one (or only comments) reads as `{}`. Raises BadJson."""
    try:  # most files are plain JSON, which the standard library reads ten times as fast
        return json.loads(text.removeprefix(BOM), parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return parse_json(text, dialect).value


def _reject_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def same_value(one: object, other: object) -> bool:
    """Return whether two values are written alike: 1, 1.0 and true are three; the order of members plays no part."""
    alike = type(one) is type(other)
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return left.keys() == right.keys() and all(same_value(left[key], right[key]) for key in left)
    if isinstance(one, list) and isinstance(other, list):
        first, second = cast("list[Any]", one), cast("list[Any]", other)
        return len(first) == len(second) and all(map(same_value, first, second))
    return alike and (one == other or (one != one and other != other))  # TOML has nan


def is_minified(text: str) -> bool:
    """Return whether the whole document is on one line, longer than people write."""
    return len(text) > MAX_WIDTH and not re.search(r"[\r\n]", text.strip())


# --- reading ----------------------------------------------------------------------------------------


def parse_json(text: str, dialect: Dialect) -> JsonNode:
    """Return the value of a text with all positions; a node of length 0 for an empty text. Raises BadJson."""
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
        """Return where the next token begins."""
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
            case '"':
                end, value = self.string(at)
                return JsonNode(at, end, value)
            case _:
                match = _ATOM.match(self.text, at)
                if match is None:
                    what = "the document ends too early" if at >= len(self.text) else "a value is expected here"
                    raise BadJson(self.text, at, what)
                return JsonNode(at, match.end(), _number(match[0]))

    def string(self, at: int) -> tuple[int, str]:
        match = _STRING.match(self.text, at)
        if match is None:
            raise BadJson(self.text, at, "a string that does not end on its line, or has a wrong escape")
        return match.end(), json.loads(match[0])

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
                if self.text.startswith(closing, at) and self.dialect != "jsonc":
                    raise BadJson(self.text, child.comma, f"a comma before {closing}, and this client reads none there")
        values: list[Any] = [child.node.value for child in children]
        members = {str(child.key): child.node.value for child in children}
        return JsonNode(start, at + 1, members if closing == "}" else values, tuple(children))

    def child(self, start: int, closing: str, depth: int) -> JsonChild:
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
        return JsonChild(key, start, node, after if self.text.startswith(",", after) else None)


def _number(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:  # more digits than Python converts
        return float(word)


_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*(?:(?!\*/)[^\r\n])*\*/)*(?://[^\r\n]*)?(?=[\r\n]|\Z)")


def rewrite_json(text: str, value: Any, dialect: Dialect = "jsonc") -> str:
    """Return the text changed so that it reads as `value`. Raises BadJson when it cannot be read to begin with."""
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
    """How this text is written: its line ends, one step of indentation, and the space after a colon."""

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
        """Return a value over several lines, as programs write settings; a short list of plain values keeps to one."""
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
    """Return the white space before `at` on its line; None where something else stands before it."""
    begin = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    before = text[begin:at]
    return before if begin and not before.strip(" \t") else None


def _edits(text: str, node: JsonNode, new: Any, style: _JsonStyle, *, inline: bool) -> Iterator[Edit]:
    old: object = node.value
    if same_value(old, new):
        return
    if node.children:  # what it looks like already; an empty one looks like what it stands in
        inline = _indent(text, node.children[0].start) is None
    if changes := _changes(node, new):
        yield from _JsonContainer(text, node, style, inline).edits_to(*changes)
    else:
        yield node.start, node.end, style.dump(new, _line_indent(text, node.start), inline=inline)


def _find_crowded(text: str, node: JsonNode, new: Any, style: _JsonStyle) -> _JsonContainer | None:
    """Return the outermost container on a line that would grow too wide, unless comments are in the way."""
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
"""Position of a child that stays → the value it is to have."""
Added = dict[int, list[tuple[str | None, Any]]]
"""Position of the child that they follow (-1: none) → new children."""


def _changes(node: JsonNode, new: Any) -> tuple[Kept, Added] | None:
    """Return which children stay and which are new; None where the two values are not both objects or both arrays."""
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
    """An object or array that changes."""

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
        """Return whether there is nothing between the brackets but children, commas and white space."""
        return not any(self.text[end:start].strip() for end, start in self.gaps())

    def gaps(self) -> list[tuple[int, int]]:
        """Return the spans of the text before each child, and after the last."""
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
        """Return the edit that puts new children after that at `after` (-1: before all)."""
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
        """Return the edit that puts lines into a container without children, behind the comments in it."""
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


_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PART = r"""(?:"(?:\\.|[^"\\\r\n])*"|'[^'\r\n]*'|[^"'\[\]#\r\n])*"""
_HEADER = re.compile(rf"[ \t]*\[\[?(?P<name>{_PART})\]\]?[ \t]*(?:#[^\r\n]*)?(?:\r?\n|\Z)")
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{1,2}(?!"))?'
    r"|'''.*?'''(?:'{1,2}(?!'))?"
    r'|"(?:\\.|[^"\\\r\n])*"'
    r"|'[^'\r\n]*'"
    r"|#[^\r\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)

Keys = tuple[str, ...]


class BadToml(ValueError):
    """The text is not TOML, or not such that a table could be changed in it."""


def read_toml(text: str) -> dict[str, Any]:
    """Return the document. Raises BadToml with line and column."""
    try:
        return tomllib.loads(text.removeprefix(BOM).replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise BadToml(str(error)) from None
    except (ValueError, RecursionError):
        raise BadToml("it holds a number or a nesting that is too large to read") from None


def rewrite_toml(text: str, value: Mapping[str, Any]) -> str:
    """Return the text with the tables of the second level as in `value`.

    Raises BadToml when it cannot be read, or when the change is not one of such a table.
    """
    old = read_toml(text)
    for path in sorted(_paths(old) | _paths(value)):
        before, after = _table_at(old, path), _table_at(value, path)
        if same_value(before, after):
            continue
        blocks = list(_blocks(text, path))
        if before is not None and not blocks:
            raise BadToml(f"{'.'.join(path)} is not a table of its own, with a line [{'.'.join(path)}]")
        if after is None:
            text = _cut_blocks(text, blocks)
        elif not blocks:
            text = _append_block(text, toml_table(path, after))
        else:
            (start, end), *others = blocks
            text = _cut_blocks(text, others)
            text = text[:start] + toml_table(path, after).replace("\n", _newline(text)) + text[end:]
    try:
        if same_value(_drop_empty_tables(read_toml(text)), _drop_empty_tables(value)):
            return text
    except BadToml:
        pass
    raise BadToml("it writes the tables in a way that leaves no place for another, such as in braces on one line")


def toml_table(path: Keys, values: Mapping[str, Any]) -> str:
    """Return a table as text: its header, its values, then the tables in it."""
    inner = {key: cast("dict[str, Any]", value) for key, value in values.items() if isinstance(value, dict)}
    lines = [f"{_key(key)} = {_value(value)}\n" for key, value in values.items() if key not in inner]
    head = f"[{'.'.join(map(_key, path))}]\n" if lines or not inner else ""
    parts = [head + "".join(lines), *(toml_table((*path, key), value) for key, value in inner.items())]
    return "\n".join(part for part in parts if part)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _string(value)
        case list():
            return f"[{', '.join(map(_value, cast('list[Any]', value)))}]"
        case dict():
            members = cast("dict[str, Any]", value).items()
            return f"{{ {', '.join(f'{_key(key)} = {_value(inner)}' for key, inner in members)} }}" if members else "{}"
        case _:
            return str(value)  # numbers, and times, which TOML writes as Python does


def _paths(document: Mapping[str, Any]) -> set[Keys]:
    return {
        (outer, inner)
        for outer, tables in document.items()
        if isinstance(tables, dict)
        for inner in cast("dict[str, Any]", tables)
    }


def _table_at(document: Mapping[str, Any], path: Keys) -> Any:
    outer = document.get(path[0])
    return cast("dict[str, Any]", outer).get(path[1]) if isinstance(outer, dict) else None


def _drop_empty_tables(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document without empty tables of the first level, which may be there without a line that says so."""
    return {key: value for key, value in document.items() if value != {}}


# --- where a table stands ---------------------------------------------------------------------------


def _blocks(text: str, path: Keys) -> Iterator[tuple[int, int]]:
    """Yield where the table and the tables in it stand: from their header to the end of their last line."""
    headers = list(_headers(text))
    for at, (start, body, name) in enumerate(headers):
        if name[: len(path)] == path:
            end = headers[at + 1][0] if at + 1 < len(headers) else len(text)
            yield start, body + len(_strip_trailing_comments(text[body:end]))


def _headers(text: str) -> Iterator[tuple[int, int, Keys]]:
    """Yield start, end and name of each line that begins a table; those in strings and arrays are none."""
    at, depth, fresh = len(BOM) if text.startswith(BOM) else 0, 0, True
    while at < len(text):
        if fresh and not depth and (header := _HEADER.match(text, at)):
            yield at, header.end(), _name(header["name"])
            at = header.end()
            continue
        token = _TOKEN.search(text, at)
        if token is None:
            return
        depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
        fresh, at = token[0] == "\n", token.end()


def _name(name: str) -> Keys:
    """Return the parts of a header's name, as TOML itself reads it."""
    document: Any = tomllib.loads(f"{name.strip('[] ')} = 0")
    parts: list[str] = []
    while isinstance(document, dict):
        ((part, document),) = cast("dict[str, Any]", document).items()
        parts.append(part)
    return tuple(parts)


def _strip_trailing_comments(body: str) -> str:
    """Return a table's lines up to its last value; comments and empty lines behind it belong to what follows."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", body)
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return "".join(lines)


def _cut_blocks(text: str, blocks: list[tuple[int, int]]) -> str:
    for start, end in reversed(blocks):
        rest = text[end:]
        before = text[:start]
        # One empty line stood between the table and what comes before or after it: it goes too.
        if before.endswith(("\n\n", "\r\n\r\n")) and (not rest or rest.startswith(("\n", "\r\n"))):
            before = before[: -2 if before.endswith("\r\n") else -1]
        elif not before.removeprefix(BOM):
            rest = rest.lstrip("\r\n")
        text = before + rest
    return text


def _append_block(text: str, block: str) -> str:
    newline = _newline(text)
    if text.removeprefix(BOM):
        text += newline if text.endswith("\n") else newline * 2
    return text + block.replace("\n", newline)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
