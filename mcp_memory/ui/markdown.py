"""Pages of the memory as elements: a subset of Markdown, without HTML, images and external links.

Supported are headings, paragraphs, lists, quotes, tables, rules, code blocks, and inline bold, italic and code.
Everything else is plain text, including URLs and tags. References to the memory become links to their pages: the words
before `(a12, a57)` lead to these statements, `r-9f2c1a7b3d4e:120-134` is shown as a result, and `t4`, `x2`, `003-N4`
and `[[Name]]` as they are. Dates that the memory added to the words of others are faint. Never raises; keeps every
word; takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mcp_memory.core.text import remove_hidden
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.ui.components import ENDED, fade_dates, link, memory_text, part
from mcp_memory.ui.elements import Element, Node, el, text_of

_DEEPEST = 6
"""Levels of nested quotes and lists; deeper levels are text."""
_LOWEST = 4  # the lowest level of headings

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)$")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_QUOTE = re.compile(r" {0,3}>[ ]?")
_ITEM = re.compile(r"([ \t]*)([-*+•]|(\d{1,9})[.)])(?:[ \t]+(?=\S)|$)")
_DELIMITER = re.compile(r"\|? {0,40}:?-{1,40}:? {0,40}(?:\| {0,40}:?-{1,40}:? {0,40}){0,60}\|?$")
_FOR_AGENTS = re.compile(r"(?m)^((?:[ \t]*- )?… .{1,40}): memory_search\b.*$")
"""The last line of a page made without a model: how many statements it leaves out, and how an agent finds them."""
_CELL = re.compile(r"(?<!\\)\|")


def markdown(
    text: str,
    *,
    scenes: Mapping[str, str] | None = None,
    ended: Mapping[str, str | None] | None = None,
    top: int = 2,
    title: str | None = None,
) -> Element:
    """Return a text as elements. Words that cite only `ended` statements are struck out.

    A link to the replacement follows them, unless it is on the same line. `ended` maps ended statements to their
    replacement or None. `scenes` maps slugs and titles of scenes, in lower case, to slugs. `#` becomes a heading of
    level `top`, at least 2, since a page has a first-level heading; a first heading equal to `title` is left out.
    """
    lines = for_people(remove_hidden(text))[0].replace("\r\n", "\n").replace("\r", "\n").expandtabs(4).split("\n")
    if title is not None:
        lines = _without_title(lines, title)
    return el("div", _Page(scenes or {}, ended or {}, top).blocks(lines, 0), class_="prose")


def inline(
    text: str, *, scenes: Mapping[str, str] | None = None, ended: Mapping[str, str | None] | None = None
) -> list[Node]:
    """Return a single line as nodes: bold, italic, code, and links to parts of the memory."""
    return _Page(scenes or {}, ended or {}, 2).inline(for_people(remove_hidden(text))[0])


def for_people(text: str, spans: Sequence[tuple[int, int]] = ()) -> tuple[str, list[tuple[int, int]]]:
    """Return a page without what it says to agents only, and where these spans of it are then."""
    cuts = [(hint.end(1), hint.end()) for hint in _FOR_AGENTS.finditer(text)]

    def moved(place: int) -> int:
        return place - sum(min(place, end) - start for start, end in cuts if start < place)

    return _FOR_AGENTS.sub(r"\1", text), [(moved(start), moved(end)) for start, end in spans]


def _without_title(lines: list[str], title: str) -> list[str]:
    first = next((place for place, line in enumerate(lines) if line.strip()), 0)
    heading = _HEADING.match(lines[first])
    return lines[first + 1 :] if heading and heading[2].strip() == remove_hidden(title).strip() else lines


@dataclass(frozen=True, slots=True)
class _Page:
    scenes: Mapping[str, str]
    ended: Mapping[str, str | None]
    top: int

    # --- blocks -------------------------------------------------------------------------------------

    def blocks(self, lines: Sequence[str], depth: int) -> Iterator[Element]:
        at = 0
        while at < len(lines):
            line = lines[at]
            if not line.strip():
                at += 1
            elif fence := _FENCE.match(line):
                at, block = self._code(lines, at, fence)
                yield block
            elif heading := _HEADING.match(line):
                level = min(_LOWEST, max(2, self.top + len(heading[1]) - 1))
                yield el(f"h{level}", self.inline(heading[2]), dir="auto")
                at += 1
            elif _RULE.match(line):
                yield el("hr")
                at += 1
            elif depth < _DEEPEST and _QUOTE.match(line):
                inside = _take_lines(lines, at, _QUOTE.match)
                rest = [_QUOTE.sub("", line_inside, count=1) for line_inside in inside]
                yield el("blockquote", self.blocks(rest, depth + 1))
                at += len(inside)
            elif depth < _DEEPEST and (item := _ITEM.match(line)):
                at, block = self._list(lines, at, item, depth)
                yield block
            elif _is_table(lines, at):
                rows = _take_lines(lines, at + 2, lambda row: "|" in row)
                yield self._table(line, rows)
                at += 2 + len(rows)
            else:
                end = at + 1
                while end < len(lines) and not self._begins(lines, end, depth):
                    end += 1
                yield el("p", self.inline("\n".join(line_inside.strip() for line_inside in lines[at:end])), dir="auto")
                at = end

    def _begins(self, lines: Sequence[str], at: int, depth: int) -> bool:
        """Return whether a line ends the paragraph before it."""
        line = lines[at]
        if not line.strip() or _FENCE.match(line) or _HEADING.match(line) or _RULE.match(line):
            return True
        return (depth < _DEEPEST and bool(_QUOTE.match(line) or _ITEM.match(line))) or _is_table(lines, at)

    def _code(self, lines: Sequence[str], at: int, fence: re.Match[str]) -> tuple[int, Element]:
        """Return the index after a code block, and the block with its info string."""
        close = re.compile(rf" {{0,3}}{re.escape(fence[1][0])}{{{len(fence[1])},}}[ ]*$")
        end = next((place for place in range(at + 1, len(lines)) if close.match(lines[place])), len(lines))
        code = el("pre", el("code", "\n".join(lines[at + 1 : end])), tabindex="0", dir="ltr")
        about = fence[2].strip()
        return end + 1, el("figure", el("figcaption", about), code, class_="code") if about else code

    def _list(self, lines: Sequence[str], at: int, first: re.Match[str], depth: int) -> tuple[int, Element]:
        """Return the index after a list, and the list; deeper lines belong to the item before them."""
        indent, ordered = len(first[1]), first[3] is not None
        items = list[Element]()
        while at < len(lines) and (item := _ITEM.match(lines[at])) and not _RULE.match(lines[at]):
            if len(item[1]) > indent + 1 or len(item[1]) < indent or (item[3] is not None) != ordered:
                break
            inside = [lines[at][item.end() :]]
            at += 1
            while at < len(lines) and _is_inside(lines, at, indent):
                inside.append(lines[at][min(item.end(), len(lines[at]) - len(lines[at].lstrip())) :])
                at += 1
            items.append(el("li", self._of_item(inside, depth), value=item[3], dir="auto"))
            while at + 1 < len(lines) and not lines[at].strip() and _ITEM.match(lines[at + 1]):
                at += 1  # blank lines between items
        return at, el("ol" if ordered else "ul", items)

    def _of_item(self, lines: Sequence[str], depth: int) -> list[Node]:
        """Return the content of a list item; a paragraph at its start has no tag."""
        made = list(self.blocks(lines, depth + 1))
        return [*made[0].children, *made[1:]] if made and made[0].tag == "p" else [*made]

    def _table(self, head: str, rows: Sequence[str]) -> Element:
        def line(tag: str, text: str) -> Element:
            scope = "col" if tag == "th" else None
            return el("tr", (el(tag, self.inline(cell), scope=scope, dir="auto") for cell in _cells(text)))

        body = el("tbody", (line("td", row) for row in rows))
        return el("div", el("table", el("thead", line("th", head)), body), class_="scroll", tabindex="0")

    # --- inside a line ------------------------------------------------------------------------------

    def inline(self, text: str) -> list[Node]:
        """Return a text as nodes."""
        open_ = [_Open("", list[Node]())]
        named = {match[0] for match in _IN_GROUP.finditer(text)}
        place = 0
        for match in _TOKEN.finditer(text):
            if match.start() > place:
                open_[-1].nodes.append(text[place : match.start()])
            place = match.end()
            kind, token = str(match.lastgroup), match[0]
            if kind == "mark":
                _toggle_mark(open_, token, text, match.start(), match.end())
            elif kind == "cites":
                self._cites(open_[-1], token, named)
                if text[place : place + 1] == "." and text[max(0, match.start() - 2) : match.start()].rstrip().endswith(
                    (".", "!", "?")
                ):
                    place += 1  # one full stop is enough where no ids are between two
            else:
                open_[-1].nodes += self._token(kind, token)
        open_[-1].nodes.append(text[place:])
        while len(open_) > 1:
            _close_unmatched(open_)
        return [node for node in open_[0].nodes if node != ""]

    def _token(self, kind: str, token: str) -> list[Node]:
        match kind:
            case "escape":
                return [token[1:]]
            case "code":
                ticks = len(token) - len(token.lstrip("`"))
                return [el("code", token[ticks:-ticks])]
            case "name":
                return [self._name_link(token[2:-2])]
            case "addition":
                return fade_dates(token)
            case "turn" | "node":
                return [link(f"/{token}", token)]
            case "ref":
                ref, _, lines = token.partition(":")
                lines = lines.replace("–", "-")
                shown = f", line{'s' if '-' in lines else ''} {lines.replace('-', '–')}" if lines else ""
                return [link(f"/{ref}", f"a result{shown}", lines=lines)]
            case _:
                return [token]

    def _cites(self, words: _Open, group: str, named: Collection[str]) -> None:
        """Make the words since the last group of ids a link to the first statement of this one.

        The others follow as `[2]`, `[3]`. The words are struck out if all of these statements have ended; `named` are
        the ids of the whole line.
        """
        parts = [match[0] for match in _IN_GROUP.finditer(group)]
        ids = [part for part in parts if part[0] == "a"]
        before, said = _split_start(words.nodes[words.cited :])
        cites = [link(f"/{id}", f"[{place}]", class_="cite") for place, id in enumerate(ids, 1)]
        if ids and any(text_of(node).strip() for node in said) and not any(map(_has_link, said)):
            said, cites = [link(f"/{ids[0]}", *said, class_="cite")], cites[1:]
        if ids and all(id in self.ended for id in ids):
            said = [el("del", said), *self._end_mark(ids, named)]
        beside = [*cites, *(self._name_link(part[2:-2]) for part in parts if part[0] == "[")]
        words.nodes[words.cited :] = [before, *said, *(piece for node in beside for piece in (" ", node))]
        words.cited = len(words.nodes)

    def _end_mark(self, ids: Sequence[str], named: Collection[str]) -> list[Node]:
        """Return the mark of ended statements, with what replaced them; nothing if the line names that itself."""
        now = [self.ended[id] for id in ids if self.ended[id]]
        if any(id in named for id in now):
            return []
        instead = [f"{ENDED}, ", link(f"/{now[0]}", "what is true now")] if now else ENDED
        return [" ", el("span", instead, class_="badge warn")]

    def _name_link(self, inside: str) -> Node:
        """Return the link for `[[Name]]` or `[[Name|as shown]]`: to the scene of that name, else to the entity.

        If the name is empty, the brackets stay text.
        """
        name, _, shown = (raw.strip() for raw in inside.partition("|"))
        if not name:
            return f"[[{inside}]]"
        slug = self.scenes.get(name.lower())
        text = f"{shown} ({name})" if shown and shown != name else name
        return link(f"/scene/{part(slug)}" if slug else f"/entity/{part(name)}", memory_text(text))


def _split_start(nodes: Sequence[Node]) -> tuple[str, list[Node]]:
    """Return the punctuation and space at the start of nodes, which belong to the words before, and the rest.

    The space at its end is left out.
    """
    rest = [node for node in nodes if node != ""]
    before = ""
    if rest and isinstance(rest[0], str):
        bare = rest[0].lstrip(_PUNCTUATION)
        before, rest[0] = rest[0][: len(rest[0]) - len(bare)], bare
    if rest and isinstance(rest[-1], str):
        rest[-1] = rest[-1].rstrip()
    return before, [node for node in rest if node != ""]


def _has_link(node: Node) -> bool:
    return not isinstance(node, str) and (node.tag == "a" or any(map(_has_link, node.children)))


def _take_lines(lines: Sequence[str], at: int, belongs: Callable[[str], object]) -> Sequence[str]:
    """Return the lines from an index on, while `belongs` is true."""
    end = at
    while end < len(lines) and belongs(lines[end]):
        end += 1
    return lines[at:end]


def _is_table(lines: Sequence[str], at: int) -> bool:
    following = lines[at + 1] if at + 1 < len(lines) else ""
    return (
        "|" in lines[at] and "|" in following and "-" in following and _DELIMITER.match(following.strip()) is not None
    )


def _cells(row: str) -> list[str]:
    cells = _CELL.split(row.strip())
    if cells and not cells[0].strip():
        del cells[0]
    if cells and not cells[-1].strip():
        del cells[-1]
    return [cell.strip() for cell in cells]


def _is_inside(lines: Sequence[str], at: int, indent: int) -> bool:
    """Return whether a line continues the list item whose marker has this indent."""
    line = lines[at]
    if not line.strip():
        following = lines[at + 1] if at + 1 < len(lines) else ""
        return bool(following.strip()) and len(following) - len(following.lstrip()) > indent + 1
    if len(line) - len(line.lstrip()) > indent + 1:
        return True
    begins = (_ITEM, _FENCE, _HEADING, _RULE, _QUOTE)
    return bool(lines[at - 1].strip()) and not any(pattern.match(line) for pattern in begins)


_PUNCTUATION = " \n.,;:!?…。，；、)）]"
_GROUPED = r"(?:a[0-9]{1,18}|\[\[[^\[\]\n]{1,200}\]\])"
_IN_GROUP = re.compile(r"\[\[[^\[\]\n]{1,200}\]\]|(?<![\w\[])a[0-9]{1,18}(?!\w)")
_TOKEN = re.compile(
    rf"""
    (?P<escape>\\[\\`*_{{}}\[\]()\#+.!|>~-])
  | (?P<code>(?<!`)`[^`\n]{{1,2000}}`(?!`) | (?<!`)``(?!`)[^\n]{{1,2000}}?``(?!`))
  | (?P<address>[A-Za-z][A-Za-z0-9+.-]{{1,15}}://[^\s<>"'`)\]]{{1,2000}})
  | (?P<addition>{ADDITION.pattern.replace(" ", "[ ]")})
  | (?P<cites>[(\[（][ ]?{_GROUPED}(?:[ ,;&，；、]{{1,4}}{_GROUPED}){{0,200}}[ ]?[)\]）])
  | (?P<name>\[\[[^\[\]|\n]{{1,200}}(?:\|[^\[\]|\n]{{1,200}})?\]\])
  | (?P<turn>(?<![\w./&#-])[tx][1-9][0-9]{{0,17}}(?![\w-]|\.\w))
  | (?P<ref>(?<![\w-])r-[0-9a-f]{{12}}(?::[1-9][0-9]{{0,8}}(?:[-–][1-9][0-9]{{0,8}})?)?(?![\w]))
  | (?P<node>(?<![\w-])[0-9]{{3,9}}-[NF][0-9]{{1,9}}(?![\w]))
  | (?P<mark>\*\*|__|\*|_)
    """,
    re.VERBOSE,
)


@dataclass(slots=True)
class _Open:
    """An open bold or italic mark, with the nodes after it."""

    mark: str
    nodes: list[Node] = field(default_factory=list[Node])
    cited: int = 0
    """The number of nodes up to the last group of ids."""


def _toggle_mark(open_: list[_Open], mark: str, text: str, start: int, end: int) -> None:
    """Close the matching mark, or open a new mark; a mark that can do neither is text."""
    before, after = text[start - 1 : start], text[end : end + 1]
    in_word = mark[0] == "_" and before.isalnum() and after.isalnum()
    if before.strip() and not in_word and any(opened.mark == mark for opened in open_):
        while open_[-1].mark != mark:
            _close_unmatched(open_)
        done = open_.pop()
        open_[-1].nodes.append(el("strong" if len(mark) == 2 else "em", done.nodes))
    elif after.strip() and not in_word and not any(opened.mark == mark for opened in open_):
        open_.append(_Open(mark))
    else:
        open_[-1].nodes.append(mark)


def _close_unmatched(open_: list[_Open]) -> None:
    """Turn the last open mark, which nothing closed, back into text."""
    last = open_.pop()
    open_[-1].nodes += [last.mark, *last.nodes]
