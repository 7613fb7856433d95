"""A text of JSON, changed where a value changes and nowhere else.

`rewrite(text, value)` returns a text that reads as `value`; each member that was the same before keeps its bytes, and
so do comments, order, indentation, line ends and a byte order mark. What goes takes its line and the comment on it
along; what comes looks like its neighbours. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_memory.core.text import well_formed
from mcp_memory.integrations.clients.json_text import BOM, Dialect, Node, parsed, same

__all__ = ["rewrite"]

_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*(?:(?!\*/)[^\r\n])*\*/)*(?://[^\r\n]*)?(?=[\r\n]|\Z)")


def rewrite(text: str, value: Any, dialect: Dialect = "jsonc") -> str:
    """Return the text changed so that it reads as `value`. Raises BadJson when it cannot be read to begin with."""
    root = parsed(text, dialect)
    style = _Style.of(text, root)
    if root.start == root.end:  # nothing but comments, or nothing at all
        if same(value, {}):
            return text
        gap = "" if text.rstrip("\r\n") in ("", BOM) or text.endswith("\n") else style.newline
        return text + gap + style.dump(value, "", inline=False) + style.newline
    pieces: list[str] = []
    at = 0
    for start, end, new in sorted(_edits(text, root, value, style, inline=False), key=lambda edit: edit[:2]):
        pieces += [text[at:start], new]
        at = end
    return "".join([*pieces, text[at:]])


Edit = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class _Style:
    """How this text is written: its line ends, one step of indentation, and the space after a colon."""

    newline: str
    unit: str
    space: str

    @classmethod
    def of(cls, text: str, root: Node) -> _Style:
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
        """Return a value over several lines, as programs write settings; a list of plain values keeps to one."""
        inner = newline + self.unit
        match value:
            case {**members} if members:
                lines = [f"{_plain(key)}: {self._spread(one, inner)}" for key, one in members.items()]
                return f"{{{inner}{f',{inner}'.join(lines)}{newline}}}"
            case [*items] if any(isinstance(item, list | dict) for item in items):
                return f"[{inner}{f',{inner}'.join(self._spread(item, inner) for item in items)}{newline}]"
            case _:
                return _plain(value)


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _indent(text: str, at: int) -> str | None:
    """Return the white space before `at` on its line; None where something else stands before it."""
    begin = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    before = text[begin:at]
    return before if begin and not before.strip(" \t") else None


def _edits(text: str, node: Node, new: Any, style: _Style, *, inline: bool) -> Iterator[Edit]:
    old: object = node.value
    if same(old, new):
        return
    if node.children:  # what it looks like already; an empty one looks like what it stands in
        inline = _indent(text, node.children[0].start) is None
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _Container(text, node, style, inline).become(*_members(node, cast("dict[str, Any]", new)))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _Container(text, node, style, inline).become(*_items(node, cast("list[Any]", new)))
    else:
        yield node.start, node.end, style.dump(new, _line_indent(text, node.start), inline=inline)


Kept = dict[int, Any]
"""Position of a child that stays → the value it is to have."""
Added = dict[int, list[tuple[str | None, Any]]]
"""Position of the child that they follow (-1: none) → new children."""


def _members(node: Node, new: dict[str, Any]) -> tuple[Kept, Added]:
    last = {child.key: at for at, child in enumerate(node.children)}
    kept = {
        at: new[str(child.key)] if last[child.key] == at else child.node.value
        for at, child in enumerate(node.children)
        if child.key in new
    }
    return kept, {max(kept, default=-1): [(key, value) for key, value in new.items() if key not in last]}


def _items(node: Node, new: list[Any]) -> tuple[Kept, Added]:
    old = [child.node.value for child in node.children]
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if not same(old[at], new[at])), shorter)
    tail = next((at for at in range(shorter - head) if not same(old[-1 - at], new[-1 - at])), shorter - head)
    pairs = shorter - head - tail
    kept = {at: new[at] for at in range(head + pairs)}
    kept |= {len(old) - tail + at: new[len(new) - tail + at] for at in range(tail)}
    return kept, {head + pairs - 1: [(None, value) for value in new[head + pairs : len(new) - tail]]}


@dataclass(frozen=True, slots=True)
class _Container:
    """An object or array that changes: which of its children stay, and what comes to stand after which."""

    text: str
    node: Node
    style: _Style
    inline: bool

    def become(self, kept: Kept, added: Added) -> Iterator[Edit]:
        children = self.node.children
        ends_with_comma = bool(children) and children[-1].comma is not None
        last = max((at for at, new in [*((at, [0]) for at in kept), *added.items()] if new), default=None)
        if last is None and self.is_bare():
            yield self.node.start + 1, self.node.end - 1, ""
            return
        for at, child in enumerate(children):
            if at not in kept:
                yield self.deleted(at)
                continue
            yield from _edits(self.text, child.node, kept[at], self.style, inline=self.inline)
            is_last = at == last and not added.get(at)
            if child.comma is None and not (is_last and not ends_with_comma):
                yield child.node.end, child.node.end, ","
            elif child.comma is not None and is_last and not ends_with_comma:
                yield child.comma, child.comma + 1, ""
        for at, new in added.items():
            if new:
                yield self.inserted(at, new, comma_after=at != last or ends_with_comma)

    def is_bare(self) -> bool:
        """Tell whether there is nothing between the brackets but children, commas and white space."""
        ends = [self.node.start + 1, *(c.node.end if c.comma is None else c.comma + 1 for c in self.node.children)]
        starts = [*(child.start for child in self.node.children), self.node.end - 1]
        return not any(self.text[end:start].strip() for end, start in zip(ends, starts, strict=True))

    def deleted(self, at: int) -> Edit:
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

    def inserted(self, after: int, new: Sequence[tuple[str | None, Any]], *, comma_after: bool) -> Edit:
        """Return the edit that puts new children after that at `after` (-1: before all)."""
        texts = [self.written(key, value) for key, value in new]
        if self.inline:
            return self.inserted_on_the_line(after, texts, comma_after=comma_after)
        lines = "".join(f"{self.style.newline}{self.child_indent()}{text}," for text in texts)
        lines = lines if comma_after else lines[:-1]
        if not self.node.children:
            return self.filled(lines)
        at = self.node.start + 1 if after < 0 else self.end_of(after)
        rest = _REST_OF_LINE.match(self.text, at)
        at = at if rest is None else rest.end()
        return at, at, lines

    def inserted_on_the_line(self, after: int, texts: Sequence[str], *, comma_after: bool) -> Edit:
        if after < 0:
            at, comma = self.node.start + 1, "," + self.style.space
            return at, at, comma.join(texts) + (comma if comma_after else "")
        at, line = self.end_of(after), "".join(f"{self.style.space}{text}," for text in texts)
        return at, at, line if comma_after else line[:-1]

    def filled(self, lines: str) -> Edit:
        """Return the edit that puts lines into a container without children, behind the comments in it."""
        start, end = self.node.start + 1, self.node.end - 1
        inside = self.text[start:end]
        at = start + len(inside.rstrip(" \t\r\n"))  # a comment may end in other white space
        closing = self.style.newline + _line_indent(self.text, self.node.start)
        return at, at if inside.strip() else end, lines + closing

    def written(self, key: str | None, value: Any) -> str:
        text = self.style.dump(value, self.child_indent(), inline=self.inline)
        if key is None:
            return text
        space = self.style.space if self.inline else " "
        return f"{self.style.dump(key, '', inline=True)}:{space}{text}"

    def end_of(self, at: int) -> int:
        child = self.node.children[at]
        return child.node.end if child.comma is None else child.comma + 1

    def child_indent(self) -> str:
        if self.node.children and (found := _indent(self.text, self.node.children[0].start)) is not None:
            return found
        return _line_indent(self.text, self.node.start) + self.style.unit


def _line_indent(text: str, at: int) -> str:
    begin = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    line = text[begin:at].removeprefix(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]
