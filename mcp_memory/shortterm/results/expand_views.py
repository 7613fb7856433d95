"""The views on a raw text: what there is to show from an offset on, and where it can be cut.

How much of a window fits a budget is for `expand` to find out. Nothing is raised but InvalidInput.
"""

from __future__ import annotations

import re
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import monotonic

from mcp_memory.core.errors import InvalidInput
from mcp_memory.shortterm.results.expand_json import answer_json_path
from mcp_memory.shortterm.synopsis.page import count_lines

__all__ = ["Shown", "Window", "grep_window", "has_match", "json_window", "lines_window", "page_window"]

CONTEXT = 2
GREP_SECONDS = 5.0
CHARS_PER_SECOND = 5_000_000  # a plain pattern on a busy machine does three times as many
LONGEST_PATTERN = 1_000
CHARS_PER_TOKEN = 16
"""A window of this many characters per token is looked at; real text has three to five."""
RANGE = re.compile(r"(?:(?P<one>\d{1,12})|(?P<a>\d{1,12})\s*[-–]\s*(?P<b>\d{1,12})?|[-–−](?P<last>\d{1,12}))")


@dataclass(frozen=True, slots=True)
class Shown:
    """Some content and what follows from it. `next` is the offset to go on from, None at the end."""

    text: str
    next: int | None
    lines: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Window:
    """`cut(n)` is the first n of `length` characters, moved back to a good place to stop."""

    header: str
    length: int
    cut: Callable[[int], Shown]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the raw text that is to be shown: `prefix`, then `raw[start:end]`."""

    number: int
    start: int
    end: int
    prefix: str


def page_window(raw: str, start: int, max_tokens: int) -> Window:
    """The raw text itself, not a character added."""
    return _prose("page", raw, start, max_tokens, numbered=True)


def json_window(raw: str, asked: str, start: int, max_tokens: int) -> Window:
    """What a JSON path finds, as text."""
    found, answer = answer_json_path(raw, asked)
    header = f"json {_short(asked)}: {found:,} match{'es' * (found != 1)}"
    return _prose(header, answer, start, max_tokens, numbered=False)


def lines_window(raw: str, asked: str, start: int, max_tokens: int) -> Window:
    """A range of lines behind their numbers."""
    first, last = _range(asked, count_lines(raw))
    rows = _rows_from(raw, max(_start_of_line(raw, first), start), last)
    numbered = (Row(n, a, b, f"{n}{'+' * middle}\t") for n, a, b, middle in rows)
    return _table("lines", raw, numbered, max_tokens)


def grep_window(raw: str, asked: str, start: int, max_tokens: int) -> Window:
    """All matches are counted; rows are gathered from `start` until one more than the window holds."""
    room = max_tokens * CHARS_PER_TOKEN
    rows: list[Row] = []
    matches = size = size_before = shown_last = 0
    for number, begin, end, hit in _matching(raw, _searcher(asked, len(raw))):
        matches += hit
        if size_before <= room and (end > start or begin >= start):
            gap = "--\n" if rows and number > shown_last + 1 else ""
            inside = max(begin, start)
            rows.append(Row(number, inside, end, f"{gap}{number}{'+' * (inside > begin)}{':' if hit else '-'}"))
            size_before, size = size, size + len(rows[-1].prefix) + end - inside
        shown_last = number
    found = f"{matches:,} matching line{'s' * (matches != 1)}"
    return _table(f"grep {_short(asked)}: {found}", raw, rows, max_tokens)


def has_match(raw: str, asked: str) -> bool:
    """Tell whether a line matches a pattern."""
    return any(hit for *_, hit in _matching(raw, _searcher(asked, len(raw))))


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


def _searcher(asked: str, chars: int) -> Callable[[str], bool]:
    """Whether a line matches; raises InvalidInput once all lines together have taken too long."""
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
    seconds = GREP_SECONDS + chars / CHARS_PER_SECOND
    deadline = monotonic() + seconds

    def search(line: str) -> bool:
        try:
            return pattern.search(line, timeout=max(0.001, deadline - monotonic())) is not None
        except TimeoutError:
            raise InvalidInput(
                f"grep={_short(asked)} takes longer than {seconds:.0f} s on this result. Make it simpler, "
                "without repeated groups inside repeated groups."
            ) from None

    return search


def _prose(header: str, text: str, start: int, max_tokens: int, *, numbered: bool) -> Window:
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

    return Window(header, len(window), cut)


def _table(header: str, raw: str, rows: Iterable[Row], max_tokens: int) -> Window:
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

    return Window(header, size, cut)


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


def _short(asked: str) -> str:
    flat = " ".join(asked.split())
    return repr(flat if len(flat) <= 40 else flat[:39] + "…")
