"""Statements in Markdown that people or programs wrote for an agent. No I/O, no state.

Each paragraph and each bullet, with the lines nested in it, is a statement. Its text begins with the headings above it
and, for bullets, with the paragraph before them if it ends in a colon. A fence of code belongs to the text above it.
HTML comments are ignored. Bullets that link to other notes, lines that only name a file to read (`@path`), and labels
without a value are counted, not imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from textwrap import dedent

from mcp_memory.core.text import is_blank
from mcp_memory.integrations.importers.parts import ATTACHED
from mcp_memory.integrations.importers.records import SkippedParts, SourceValue
from mcp_memory.integrations.importers.statements import MemoryRecord, statement

INDEX = "lines that lead to other notes"
WITHOUT_VALUE = "fields without a value"

_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^[ \t]*([A-Za-z_][\w-]*):[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t#]*$")
_BULLET = re.compile(r" ?(?:[-*+]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_RULE = re.compile(r"\s*(?:-[ -]*-|\*[ *]*\*|_[ _]*_)\s*$")
_LINK = re.compile(r"\[[^\]\n]+\]\([^)\n]+\.md\)")
_NAMED_FILE = re.compile(r"@\S+$")
_WITHOUT_VALUE = re.compile(r"\*\*[^*\n]+\*\*:?\s*(?:[_*(][^\n]*[_*)])?$|[^\n:]{1,40}:$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A paragraph or bullet, the headings above it, and the paragraph that introduces it; `line` is from 1."""

    line: int
    text: str
    headings: tuple[str, ...] = ()
    intro: str = ""


def front_matter(text: str) -> tuple[dict[str, str], str, int]:
    """Return the fields at the top of a note, also inner ones, its other text, and the number of its first line."""
    front = _FRONT.match(text)
    if front is None:
        return {}, text, 1
    fields = {key: value.strip("'\"") for key, value in _FIELD.findall(front[1])}
    return fields, text[front.end() :], text.count("\n", 0, front.end()) + 1


def note_records(
    source: SourceValue,
    skipped: SkippedParts,
    passages: Iterator[Passage],
    *,
    speaker: str,
    program: str,
    said_at: datetime | None = None,
) -> Iterator[MemoryRecord]:
    """Yield a statement for each passage, which begins with `speaker`."""
    for passage in passages:
        words, where = passage.text, f"{source.where}, line {passage.line}"
        if _LINK.match(words):
            skipped.left_out[INDEX] += 1
        elif _NAMED_FILE.match(words):
            skipped.left_out[ATTACHED] += 1
        elif _WITHOUT_VALUE.match(words) or is_blank(words):
            skipped.left_out[WITHOUT_VALUE] += 1
        else:
            under = f" ({', '.join(passage.headings)})" if passage.headings else ""
            text = f"{speaker}{under}: {f'{passage.intro} ' if passage.intro else ''}{words}"
            yield statement(where, skipped, text=text, words=words, said_at=said_at, program=program)


def markdown_passages(text: str, first: int = 1) -> Iterator[Passage]:
    """Yield the passages of a text whose first line has the number `first`."""
    blank = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    page = _Page()
    for number, line in enumerate(blank.splitlines(), start=first):
        yield from page.read(number, line.rstrip())
    yield from page.end()


def divided_passages(text: str, mark: str) -> Iterator[Passage]:
    """Yield the entries of a text between lines with a mark."""
    line = 1
    for entry in re.split(rf"^{re.escape(mark)}[ \t]*$", text, flags=re.MULTILINE):
        if words := entry.strip():
            start = len(entry) - len(entry.lstrip())
            yield Passage(line=line + entry.count("\n", 0, start), text=words)
        line += entry.count("\n")


@dataclass(slots=True, kw_only=True)
class _Page:
    """Markdown that is read line by line: the headings above, and the lines of the passage that is being read."""

    headings: dict[int, str] = field(default_factory=dict[int, str])
    intro: Passage | None = None
    """A paragraph that ends in a colon; None once it is a statement, or if a bullet has it."""
    lead: str = ""
    """The paragraph that introduces the bullets."""
    lines: list[str] = field(default_factory=list[str])
    line: int = 0
    is_bullet: bool = False
    is_apart: bool = False
    """Whether a blank line was read after the passage."""
    fence: str = ""

    def read(self, number: int, line: str) -> Iterator[Passage]:
        mark = _FENCE.match(line)
        if self.fence:
            self.lines.append(line)
            self.fence = "" if mark and line.strip().startswith(self.fence) and not line.strip(" `~") else self.fence
        elif not line:
            self.is_apart = True
        elif heading := _HEADING.match(line):
            yield from self.end()
            level = len(heading[1])
            self.headings = {key: name for key, name in self.headings.items() if key < level}
            self.headings[level], self.lead = heading[2], ""
        elif _RULE.match(line):
            yield from self._close()
        elif mark and (not self.is_apart or (self.lines and self.lines[-1].endswith(":"))):
            self.fence = mark[1]
            self._add(number, line)
        elif bullet := _BULLET.match(line):
            yield from self._close()
            self.is_bullet = True
            self._add(number, line[bullet.end() :])
        else:
            is_inside = line[0] in " \t" if self.is_bullet and self.is_apart else not self.is_apart
            if not is_inside:
                yield from self._close()
                self.is_bullet = False
            self.fence = mark[1] if mark else ""
            self._add(number, line)

    def end(self) -> Iterator[Passage]:
        """Yield the last passage of a section, and the paragraph that introduces nothing."""
        yield from self._close()
        if self.intro is not None:
            yield self.intro
        self.intro, self.is_bullet = None, False

    def _add(self, number: int, line: str) -> None:
        self.line = self.line if self.lines else number
        self.lines.append(line)
        self.is_apart = False

    def _close(self) -> Iterator[Passage]:
        """Yield the passage that was read, unless it may introduce the next one."""
        text = "\n".join([*self.lines[:1], dedent("\n".join(self.lines[1:]))]).strip()
        self.lines, self.is_apart = [], False
        if not text:
            return
        above = tuple(name for level, name in sorted(self.headings.items()) if level > 1)
        above = above or tuple(self.headings.values())
        passage = Passage(line=self.line, text=text, headings=above, intro=self.lead if self.is_bullet else "")
        if self.is_bullet:
            self.intro = None
        elif self.intro is not None:
            yield self.intro
            self.intro = None
        if not self.is_bullet:
            self.lead = text if text.endswith(":") else ""
            self.intro = passage if self.lead else None
        if self.intro is None:
            yield passage
