"""Open a raw result again: by page, by lines, by search, by JSON path; never over the tokens that were asked for.

An answer is a header line, the content, and where something was left out a last line with the cursor for it.
Laws: following the cursors of view `page` and joining `content_of` gives back the raw text, whatever it is; no
answer counts more than `max_tokens`; nothing is raised but InvalidInput.
Line numbers are those of the raw text; a line ends at "\\n". A line that does not fit is cut inside and its
cursor goes on in the middle of it (its number then carries a `+`).
A cursor names a view and a character offset and is tied to ref, text and question by a checksum: it is not a
secret, and it never expires, because a raw result never changes.
Text comes back as it is stored: what cannot be encoded or printed is for the edge to deal with.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import Expansion
from mcp_memory.shortterm.results.expand_views import Shown, Window, grep_window, json_window, lines_window, page_window
from mcp_memory.shortterm.synopsis.page import count_lines

if TYPE_CHECKING:
    from mcp_memory.core.tokens import TokenCounter

__all__ = ["MIN_TOKENS", "View", "content_of", "expand_text", "view_of_cursor"]

View = Literal["page", "lines", "grep", "json"]

MIN_TOKENS = 50
CURSOR = re.compile(r"([plgj])(\d{1,12})-([0-9a-f]{6})")
VIEWS: dict[str, View] = {"p": "page", "l": "lines", "g": "grep", "j": "json"}


def expand_text(
    raw: str,
    *,
    ref: str,
    counter: TokenCounter,
    view: View,
    lines: str | None = None,
    grep: str | None = None,
    json_path: str | None = None,
    max_tokens: int,
    cursor: str | None = None,
) -> Expansion:
    """Show a part of `raw` in at most `max_tokens` tokens, header and last line included.

    Raises InvalidInput for a wrong range, pattern, path, budget or cursor; its text says what is allowed.
    """
    if max_tokens < MIN_TOKENS:
        raise InvalidInput(f"max_tokens is {max_tokens}; the least that can be shown is {MIN_TOKENS}.")
    asked = {"lines": lines, "grep": grep, "json": json_path, "page": ""}[view] or ""
    if not asked and view != "page":
        name = "json_path" if view == "json" else view
        raise InvalidInput(f"View `{view}` needs the argument `{name}`.")
    question = f"{ref}\0{view}\0{asked}\0{len(raw)}"
    start = _offset(cursor, view, question)
    if view != "json" and start > len(raw):  # anybody can reckon a checksum
        raise _wrong_cursor()
    match view:
        case "page":
            window = page_window(raw, start, max_tokens)
        case "lines":
            window = lines_window(raw, asked, start, max_tokens)
        case "grep":
            window = grep_window(raw, asked, start, max_tokens)
        case "json":
            window = json_window(raw, asked, start, max_tokens)
    return _fitted(Asked(ref, view, question, count_lines(raw)), window, counter=counter, max_tokens=max_tokens)


def content_of(expansion: Expansion) -> str:
    """The content of an answer, without its header and its last line."""
    content = expansion.text.partition("\n")[2]
    return content if expansion.cursor is None else content.rpartition("\n")[0]


def view_of_cursor(cursor: str) -> View:
    """Which view a cursor continues, for callers that were given nothing else. Raises InvalidInput."""
    found = CURSOR.fullmatch(cursor.strip())
    if not found:
        raise _wrong_cursor()
    return VIEWS[found[1]]


# --- cursors -----------------------------------------------------------------------------------------


def _cursor(view: View, question: str, offset: int) -> str:
    return f"{view[0]}{offset}-{_checksum(question, offset)}"


def _checksum(question: str, offset: int) -> str:
    return hashlib.sha256(f"{question}\0{offset}".encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _offset(cursor: str | None, view: View, question: str) -> int:
    if cursor is None or not cursor.strip():
        return 0
    found = CURSOR.fullmatch(cursor.strip())
    if not found:
        raise _wrong_cursor()
    if VIEWS[found[1]] != view:
        raise InvalidInput(f"This cursor continues view `{VIEWS[found[1]]}`, not `{view}`. Ask with that view again.")
    if found[3] != _checksum(question, int(found[2])):
        raise InvalidInput(
            "This cursor belongs to another ref or another question. Repeat the same target, view and arguments "
            "with it, or leave it out to begin again."
        )
    return int(found[2])


def _wrong_cursor() -> InvalidInput:
    return InvalidInput("This is no cursor of this tool. Copy it from the last line of an answer, or leave it out.")


# --- fitting -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer says of itself. `question` is what its cursor is tied to."""

    ref: str
    view: View
    question: str
    total: int


def _fitted(asked: Asked, window: Window, *, counter: TokenCounter, max_tokens: int) -> Expansion:
    """The longest answer within the budget: all of the window, else a first guess, then less until it fits."""
    everything = window.cut(window.length).text
    for brief in (False, True):
        length = window.length
        text, shown, following = _answer(asked, window, length, brief=brief)
        if not counter.fits(text, max_tokens):
            around = counter.count(_answer(asked, window, 0, brief=brief)[0])
            length = len(counter.cut(everything, max(0, max_tokens - around)))
            text, shown, following = _answer(asked, window, length, brief=brief)
        while not counter.fits(text, max_tokens) and length > 0:
            length -= max(1, length // 20)
            text, shown, following = _answer(asked, window, length, brief=brief)
        if counter.fits(text, max_tokens) and (shown.text or not everything):
            return Expansion(
                view=asked.view,
                text=text,
                tokens=counter.count(text),
                ref=asked.ref,
                lines=shown.lines,
                total_lines=None if asked.view == "json" else asked.total,
                cursor=following,
            )
    raise InvalidInput(f"max_tokens is {max_tokens}, too few for this ref. Ask for at least {4 * max_tokens}.")


def _answer(asked: Asked, window: Window, length: int, *, brief: bool) -> tuple[str, Shown, str | None]:
    """Header, content, and the last line where there is more; `brief` for the smallest budgets."""
    shown = window.cut(length)
    parts = [asked.ref if brief else _top(asked, window.header, shown), shown.text]
    cursor = None if shown.next is None else _cursor(asked.view, asked.question, shown.next)
    if cursor:
        parts.append(f"… cursor {cursor}" if brief else _rest(asked, shown, cursor))
    return "\n".join(parts), shown, cursor


def _top(asked: Asked, header: str, shown: Shown) -> str:
    """`r-9f2c… lines 120–180 of 4,012`, and what was searched for."""
    if asked.view == "json":
        return f"{asked.ref} {header}"
    if shown.lines is None:
        return f"{asked.ref} {header} (the result has {asked.total:,} lines)"
    first, last = shown.lines
    span = f"line {first:,}" if first == last else f"lines {first:,}–{last:,}"
    return f"{asked.ref} {span} of {asked.total:,}" + (f", {header}" if asked.view == "grep" else "")


def _rest(asked: Asked, shown: Shown, cursor: str) -> str:
    """What was left out, and how to get it."""
    again = "go on with" if asked.view == "page" else "the same call with"
    what = "more was found"
    if asked.view == "lines":
        what = "more of these lines"
    elif shown.lines and asked.view == "page":
        left = asked.total - shown.lines[1]
        what = f"{left:,} more lines in the result" if left else "the rest of this line"
    return f"… {what}: {again} cursor={cursor}"
