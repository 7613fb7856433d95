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
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Literal

from mcp_memory.errors import InvalidInput
from mcp_memory.shortterm.expand_json import answer_json_path
from mcp_memory.shortterm.synopsis.page import count_lines
from mcp_memory.types import Expansion

if TYPE_CHECKING:
    from mcp_memory.tokens import TokenCounter

__all__ = ["MIN_TOKENS", "View", "content_of", "expand_text", "view_of_cursor"]

View = Literal["page", "lines", "grep", "json"]

MIN_TOKENS = 50
CONTEXT = 2
GREP_SECONDS = 5.0
LONGEST_PATTERN = 1_000
CHARS_PER_TOKEN = 16
"""A window of this many characters per token is looked at; real text has three to five."""
CURSOR = re.compile(r"([plgj])(\d{1,12})-([0-9a-f]{6})")
VIEWS: dict[str, View] = {"p": "page", "l": "lines", "g": "grep", "j": "json"}
RANGE = re.compile(r"(?:(?P<one>\d{1,12})|(?P<a>\d{1,12})\s*[-–]\s*(?P<b>\d{1,12})?|[-–−](?P<last>\d{1,12}))")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the raw text that is to be shown: `prefix`, then `raw[start:end]`."""

    number: int
    start: int
    end: int
    prefix: str


@dataclass(frozen=True, slots=True)
class Shown:
    """Some content and what follows from it. `next` is the offset to go on from, None at the end."""

    text: str
    next: int | None
    lines: tuple[int, int] | None


Cut = Callable[[int], Shown]
"""The first n characters of a window, moved back to a good place to stop."""


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
    asked = {"lines": lines, "grep": grep, "json": json_path, "page": ""}[view]
    if not asked and view != "page":
        name = "json_path" if view == "json" else view
        raise InvalidInput(f"View `{view}` needs the argument `{name}`.")
    question = f"{ref}\0{view}\0{asked}\0{len(raw)}"
    start = _offset(cursor, view, question)
    total = count_lines(raw)
    match view:
        case "page":
            header, window, cut = _page(raw, start, max_tokens)
        case "lines":
            header, window, cut = _lines(raw, asked or "", total, start, max_tokens)
        case "grep":
            header, window, cut = _grep(raw, asked or "", start, max_tokens)
        case "json":
            found, answer = answer_json_path(raw, asked or "")
            if start > len(answer):
                raise _wrong_cursor()
            header = f"json {_short(asked or '')}: {found:,} match{'es' * (found != 1)}"
            window, cut = _prose(answer, start, max_tokens, numbered=False)
    return _fitted(ref, view, header, window, cut, question, total, counter=counter, max_tokens=max_tokens)


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


# --- views: what the header says, how many characters there are to show, and how to cut them ------------


def _page(raw: str, start: int, max_tokens: int) -> tuple[str, int, Cut]:
    window, cut = _prose(raw, start, max_tokens, numbered=True)
    return "page", window, cut


def _prose(text: str, start: int, max_tokens: int, *, numbered: bool) -> tuple[int, Cut]:
    """Text as it is, cut at the end of a line where that keeps at least half."""
    window = text[start : start + max_tokens * CHARS_PER_TOKEN]
    first = text.count("\n", 0, start) + 1

    def cut(length: int) -> Shown:
        if start + length < len(text) and (newline := window.rfind("\n", length // 2, length)) >= 0:
            length = newline + 1
        shown = window[:length]
        last = first + shown.count("\n") - shown.endswith("\n")
        following = start + length if start + length < len(text) else None
        return Shown(shown, following, (first, last) if numbered and shown else None)

    return len(window), cut


def _lines(raw: str, asked: str, total: int, start: int, max_tokens: int) -> tuple[str, int, Cut]:
    first, last = _range(asked, total)
    begin = _start_of_line(raw, first)
    rows = _rows_from(raw, max(begin, start), last)
    prefixed = (Row(n, a, b, f"{n}{'+' if mid else ''}\t") for n, a, b, mid in rows)
    window, cut = _table(raw, prefixed, max_tokens)
    return "lines", window, cut


def _range(asked: str, total: int) -> tuple[int, int]:
    allowed = f'Allowed: "120-180", "120", "120-", "-40" (the last 40); there are {total:,} lines, from 1.'
    found = RANGE.fullmatch(asked.strip())
    if not found:
        raise InvalidInput(f"lines={asked[:40]!r} is no range. {allowed}")
    if found["last"]:
        first, last = max(1, total - int(found["last"]) + 1), total
    elif found["one"]:
        first = last = int(found["one"])
    else:
        first, last = int(found["a"]), int(found["b"] or total)
    if not 1 <= first <= total or last < first:
        raise InvalidInput(f"lines={asked[:40]!r} is outside of the result. {allowed}")
    return first, min(last, total)


def _start_of_line(raw: str, number: int) -> int:
    at = 0
    for _ in range(number - 1):
        at = raw.index("\n", at) + 1
    return at


def _rows_from(raw: str, start: int, last: int | None = None) -> Iterator[tuple[int, int, int, bool]]:
    """(number, start, end, begun in the middle) of each line from an offset on."""
    number = raw.count("\n", 0, start) + 1
    middle = start > 0 and raw[start - 1] != "\n"
    while start < len(raw) and (last is None or number <= last):
        end = raw.find("\n", start)
        end = len(raw) if end < 0 else end
        yield number, start, end, middle
        start, number, middle = end + 1, number + 1, False


def _table(raw: str, rows: Iterable[Row], max_tokens: int) -> tuple[int, Cut]:
    """Rows, cut between two of them, or inside the first when it alone is too long."""
    room = max_tokens * CHARS_PER_TOKEN
    shown: list[Row] = []
    ends: list[int] = []
    size = 0
    after: Row | None = None
    for row in rows:
        if size >= room:
            after = row
            break
        shown.append(row)
        size += len(row.prefix) + row.end - row.start + (1 if ends else 0)
        ends.append(size)

    def text_of(row: Row) -> str:
        return row.prefix + raw[row.start : row.end]

    def cut(length: int) -> Shown:
        whole = sum(1 for end in ends if end <= length)
        if whole == len(shown):
            following = after.start if after else None
        elif whole > 0:
            following = shown[whole].start
        else:
            inside = max(0, min(length, room) - len(shown[0].prefix))
            row = shown[0]
            part = row.prefix + raw[row.start : row.start + inside]
            return Shown(part if inside else "", row.start + inside, (row.number, row.number) if inside else None)
        return Shown(
            "\n".join(map(text_of, shown[:whole])),
            following,
            (shown[0].number, shown[whole - 1].number) if whole else None,
        )

    return size, cut


def _grep(raw: str, asked: str, start: int, max_tokens: int) -> tuple[str, int, Cut]:
    """All matches are counted; rows are gathered from `start` until one more than the window holds."""
    room = max_tokens * CHARS_PER_TOKEN
    rows: list[Row] = []
    matches = size = size_before = shown_last = 0
    for number, begin, end, hit in _matching(raw, _searcher(asked)):
        matches += hit
        if size_before <= room and (end > start or begin >= start):
            gap = "--\n" if rows and number > shown_last + 1 else ""
            inside = max(begin, start)
            rows.append(Row(number, inside, end, f"{gap}{number}{'+' * (inside > begin)}{':' if hit else '-'}"))
            size_before, size = size, size + len(rows[-1].prefix) + end - inside
        shown_last = number
    window, cut = _table(raw, rows, max_tokens)
    return f"grep {_short(asked)}: {matches:,} matching line{'s' * (matches != 1)}", window, cut


def _matching(raw: str, search: Callable[[str], bool]) -> Iterator[tuple[int, int, int, bool]]:
    """(number, start, end, matches) of every line that matches or is near one that does."""
    before: deque[tuple[int, int, int, bool]] = deque(maxlen=CONTEXT)
    after = 0
    for number, begin, end, _ in _rows_from(raw, 0):
        if search(raw[begin:end].rstrip("\r")):
            yield from before
            before.clear()
            yield number, begin, end, True
            after = CONTEXT
        elif after > 0:
            after -= 1
            yield number, begin, end, False
        else:
            before.append((number, begin, end, False))


def _searcher(asked: str) -> Callable[[str], bool]:
    import regex  # late: only this view needs it

    if len(asked) > LONGEST_PATTERN:
        raise InvalidInput(f"grep is longer than {LONGEST_PATTERN:,} characters. Search for less of it.")
    any_case = not any(char.isupper() for char in re.sub(r"\\.", "", asked, flags=re.S))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pattern = regex.compile(asked, regex.IGNORECASE if any_case else 0)
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise InvalidInput(
            f"grep={_short(asked)} is no regular expression: {error}. Escape special characters with \\, as in foo\\(."
        ) from None
    deadline = monotonic() + GREP_SECONDS

    def search(line: str) -> bool:
        try:
            return pattern.search(line, timeout=max(0.001, deadline - monotonic())) is not None
        except TimeoutError:
            raise InvalidInput(
                f"grep={_short(asked)} takes longer than {GREP_SECONDS:.0f} s on this result. Make it simpler, "
                "without repeated groups inside repeated groups."
            ) from None

    return search


# --- fitting -----------------------------------------------------------------------------------------


def _fitted(
    ref: str, view: View, header: str, window: int, cut: Cut, question: str, total: int, *, counter: TokenCounter,
    max_tokens: int,
) -> Expansion:  # fmt: skip
    """The longest answer within the budget: a first guess by the counter, then shorter until it fits."""

    def build(length: int, *, brief: bool) -> tuple[str, Shown, str | None]:
        shown = cut(length)
        following = None if shown.next is None else _cursor(view, question, shown.next)
        top = ref if brief else _top(ref, header, shown, total)
        parts = [top, shown.text]
        if following:
            parts.append(f"… cursor {following}" if brief else _rest(shown, total, view, following))
        return "\n".join(parts), shown, following

    for brief in (False, True):
        everything = cut(window).text
        around = counter.count(build(0, brief=brief)[0])
        length = len(counter.cut(everything, max(0, max_tokens - around))) if everything else 0
        if counter.fits(build(window, brief=brief)[0], max_tokens):
            length = window
        while True:
            text, shown, following = build(length, brief=brief)
            if counter.fits(text, max_tokens) and (shown.text or not everything):
                return Expansion(
                    view=view, text=text, tokens=counter.count(text), ref=ref, lines=shown.lines,
                    total_lines=None if view == "json" else total, cursor=following,
                )  # fmt: skip
            if length == 0:
                break
            length -= max(1, length // 20)
    raise InvalidInput(f"max_tokens is {max_tokens}, too few for this ref. Ask for at least {4 * max_tokens}.")


def _top(ref: str, header: str, shown: Shown, total: int) -> str:
    """`r-9f2c… lines 120–180 of 4,012`, after what was asked where that is more than lines."""
    if header.startswith("json"):
        return f"{ref} {header}"
    if shown.lines is None:
        return f"{ref} {header} (the result has {total:,} lines)"
    first, last = shown.lines
    span = f"line {first:,}" if first == last else f"lines {first:,}–{last:,}"
    return f"{ref} {span} of {total:,}" + (f", {header}" if header.startswith("grep") else "")


def _rest(shown: Shown, total: int, view: View, cursor: str) -> str:
    again = "the same call with" if view != "page" else "go on with"
    if shown.lines and view in ("page", "lines"):
        left = total - shown.lines[1]
        what = f"{left:,} more lines in the result" if left else "the rest of this line"
    else:
        what = "more was found"
    return f"… {what}: {again} cursor={cursor}"


def _short(asked: str) -> str:
    flat = " ".join(asked.split())
    return repr(flat if len(flat) <= 40 else flat[:39] + "…")
