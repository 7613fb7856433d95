"""Open a raw result again: by page, by lines, by search, by JSON path; never over the tokens that were asked for.

An answer is a header line, the content, and where something was left out a last line with the cursor for it.
Laws: following the cursors of view `page` and joining `content_of` gives back the raw text, whatever it is; no
answer counts more than `max_tokens`; nothing is raised but InvalidInput.
Line numbers are those of the raw text; a line ends at "\n". A line that does not fit is cut inside and its
cursor goes on in the middle of it (its number then carries a `+`).
A cursor names a view and a character offset and is tied to ref, text and question by a checksum: it is not a
secret, and it never expires, because a raw result never changes.
Text comes back as it is stored: what cannot be encoded or printed is for the edge to deal with.

The JSON view asks by JSON path (RFC 9535), of JSON and JSON lines, and prints pretty where long and flat where short.
Its work is bounded by nodes visited (`VISITS`), not by time, so the same question always has the same answer; only
regular expressions inside a filter are stopped by the clock.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, cast

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import Expansion
from mcp_memory.shortterm.synopsis.page import count_lines, counted

if TYPE_CHECKING:
    from mcp_memory.core.token_counts import TokenCounter

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

    Raises InvalidInput for a wrong range, pattern, path, budget or cursor; its text names the allowed values.
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
            window = _prose("page", raw, start, max_tokens, numbered=True)
        case "lines":
            window = _lines_window(raw, asked, start, max_tokens)
        case "grep":
            window = _grep_window(raw, asked, start, max_tokens)
        case "json":
            found, answer = answer_json_path(raw, asked)
            header = f"json {_short(asked)}: {counted(found, 'match', 'es')}"
            window = _prose(header, answer, start, max_tokens, numbered=False)
    return _fitted(_ExpandQuestion(ref, view, question, count_lines(raw)), window, counter, max_tokens)


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
class _ExpandQuestion:
    """The question that an answer and its cursor belong to; `total` are lines of the raw text."""

    ref: str
    view: View
    question: str
    total: int


def _fitted(asked: _ExpandQuestion, window: Window, counter: TokenCounter, max_tokens: int) -> Expansion:
    """The longest answer within the budget: all of the window, else a first guess, then less until it fits."""
    everything = window.cut(window.length).text
    for brief in (False, True):
        answer = _answer(asked, window, window.length, brief=brief)
        if not counter.fits(answer.text, max_tokens):
            around = counter.count(_answer(asked, window, 0, brief=brief).text)
            length = len(counter.cut(everything, max(0, max_tokens - around)))
            answer = _answer(asked, window, length, brief=brief)
            while not counter.fits(answer.text, max_tokens) and length > 0:
                length -= max(1, length // 20)
                answer = _answer(asked, window, length, brief=brief)
        if counter.fits(answer.text, max_tokens) and (content_of(answer) or not everything):
            return replace(answer, tokens=counter.count(answer.text))
    raise InvalidInput(f"max_tokens is {max_tokens}, too few for this ref. Ask for at least {4 * max_tokens}.")


def _answer(asked: _ExpandQuestion, window: Window, length: int, *, brief: bool) -> Expansion:
    """Header, content, and the last line where there is more; `brief` for the smallest budgets. Not counted yet."""
    shown = window.cut(length)
    parts = [asked.ref if brief else _top(asked, window.header, shown), shown.text]
    cursor = None if shown.next is None else _cursor(asked.view, asked.question, shown.next)
    if cursor:
        parts.append(f"… cursor {cursor}" if brief else _rest(asked, shown, cursor))
    return Expansion(
        view=asked.view,
        text="\n".join(parts),
        tokens=0,
        ref=asked.ref,
        lines=shown.lines,
        total_lines=None if asked.view == "json" else asked.total,
        cursor=cursor,
    )


def _top(asked: _ExpandQuestion, header: str, shown: ShownPart) -> str:
    """Return the header line: `r-9f2c… lines 120–180 of 4,012`, and the search."""
    if asked.view == "json":
        return f"{asked.ref} {header}"
    if shown.lines is None:
        return f"{asked.ref} {header} (the result has {asked.total:,} lines)"
    first, last = shown.lines
    span = f"line {first:,}" if first == last else f"lines {first:,}–{last:,}"
    return f"{asked.ref} {span} of {asked.total:,}" + (f", {header}" if asked.view == "grep" else "")


def _rest(asked: _ExpandQuestion, shown: ShownPart, cursor: str) -> str:
    """Return the last line: the size of the rest, and how to get it."""
    again = "go on with" if asked.view == "page" else "the same call with"
    what = "more was found"
    if asked.view == "lines":
        what = "more of these lines"
    elif shown.lines and asked.view == "page":
        left = asked.total - shown.lines[1]
        what = f"{left:,} more lines in the result" if left else "the rest of this line"
    return f"… {what}: {again} cursor={cursor}"


CONTEXT = 2
GREP_SECONDS = 5.0
CHARS_PER_SECOND = 5_000_000  # a plain pattern on a busy machine does three times as many
LONGEST_PATTERN = 1_000
CHARS_PER_TOKEN = 16
"""A window of this many characters per token is looked at; real text has three to five."""
RANGE = re.compile(r"(?:(?P<one>\d{1,12})|(?P<a>\d{1,12})\s*[-–]\s*(?P<b>\d{1,12})?|[-–−](?P<last>\d{1,12}))")


@dataclass(frozen=True, slots=True)
class ShownPart:
    """Some content and what follows from it. `next` is the offset to go on from, None at the end."""

    text: str
    next: int | None
    lines: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Window:
    """`cut(n)` is the first n of `length` characters, moved back to a good place to stop."""

    header: str
    length: int
    cut: Callable[[int], ShownPart]


@dataclass(frozen=True, slots=True)
class NumberedRow:
    """A line of the raw text that is to be shown: `prefix`, then `raw[start:end]`."""

    number: int
    start: int
    end: int
    prefix: str


def _lines_window(raw: str, asked: str, start: int, max_tokens: int) -> Window:
    """A range of lines behind their numbers."""
    first, last = _range(asked, count_lines(raw))
    rows = _rows_from(raw, max(_start_of_line(raw, first), start), last)
    numbered = (NumberedRow(n, a, b, f"{n}{'+' * middle}\t") for n, a, b, middle in rows)
    return _table("lines", raw, numbered, max_tokens)


def _grep_window(raw: str, asked: str, start: int, max_tokens: int) -> Window:
    """All matches are counted; rows are gathered from `start` until one more than the window holds."""
    room = max_tokens * CHARS_PER_TOKEN
    rows: list[NumberedRow] = []
    matches = size = size_before = shown_last = 0
    for number, begin, end, hit in _matching(raw, _searcher(asked, len(raw))):
        matches += hit
        if size_before <= room and (end > start or begin >= start):
            gap = "--\n" if rows and number > shown_last + 1 else ""
            inside = max(begin, start)
            rows.append(NumberedRow(number, inside, end, f"{gap}{number}{'+' * (inside > begin)}{':' if hit else '-'}"))
            size_before, size = size, size + len(rows[-1].prefix) + end - inside
        shown_last = number
    return _table(f"grep {_short(asked)}: {counted(matches, 'matching line')}", raw, rows, max_tokens)


def has_match(raw: str, asked: str) -> bool:
    """Return whether a line matches a pattern."""
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

    def cut(length: int) -> ShownPart:
        if start + length < len(text) and (newline := window.rfind("\n", length // 2, length)) >= 0:
            length = newline + 1
        shown = window[:length]
        last = first + shown.count("\n") - shown.endswith("\n")
        following = start + length if start + length < len(text) else None
        return ShownPart(shown, following, (first, last) if numbered and shown else None)

    return Window(header, len(window), cut)


def _table(header: str, raw: str, rows: Iterable[NumberedRow], max_tokens: int) -> Window:
    """Rows, cut between two of them, or inside the first when it alone is too long."""
    room = max_tokens * CHARS_PER_TOKEN
    shown: list[NumberedRow] = []
    ends: list[int] = []  # of each row, in the text of all
    after: NumberedRow | None = None
    for row in rows:
        size = ends[-1] if ends else -1
        if size >= room:
            after = row
            break
        shown.append(row)
        ends.append(size + 1 + len(row.prefix) + row.end - row.start)

    def cut(length: int) -> ShownPart:
        whole = bisect_right(ends, length)
        if whole == 0 and shown:
            row = shown[0]
            inside = max(0, min(length, room) - len(row.prefix))
            part = row.prefix + raw[row.start : row.start + inside]
            return ShownPart(part if inside else "", row.start + inside, (row.number, row.number) if inside else None)
        following = shown[whole] if whole < len(shown) else after
        return ShownPart(
            "\n".join(row.prefix + raw[row.start : row.end] for row in shown[:whole]),
            following.start if following else None,
            (shown[0].number, shown[whole - 1].number) if whole else None,
        )

    return Window(header, ends[-1] if ends else 0, cut)


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


VISITS = 500_000
MATCHES = 20_000
LONGEST_PATH = 1_000
WIDTH = 100
REGEX_SECONDS = 2.0
PLAIN_NAME, NAMED = re.compile(r"\['([A-Za-z_]\w*)'\]"), r".\1"
"""Paths are shown as an agent would type them: `$.items[3].name` for `$['items'][3]['name']`."""


def answer_json_path(raw: str, path: str) -> tuple[int, str]:
    """How many values match, and the answer: one value alone, several each behind its path."""
    value = _parse(raw)
    try:
        found = _ask(value, path)
        if len(found) == 1:
            return 1, _pretty(found[0][1], "")
        if not found:
            return 0, _what_there_is(value)
        return len(found), "\n".join(f"{PLAIN_NAME.sub(NAMED, where)}: {_pretty(one, '')}" for where, one in found)
    except RecursionError:
        raise InvalidInput(
            "The JSON is nested too deep for this path. Name a deeper part, or use view `page` or `grep`."
        ) from None


def _parse(raw: str) -> Any:
    """The value, or the list of values of JSON lines."""
    try:
        return json.loads(raw)
    except RecursionError:
        raise InvalidInput("The JSON is nested too deep to parse. Use view `page`, `lines` or `grep`.") from None
    except json.JSONDecodeError as error:
        if (rows := _parse_lines(raw)) is not None:
            return rows
        raise InvalidInput(
            f"The result is not JSON: {error.msg} at line {error.lineno}, column {error.colno}. "
            "Use view `lines`, `grep` or `page`."
        ) from None
    except ValueError as error:  # an integer with thousands of digits
        raise InvalidInput(f"The result is not JSON that can be read: {error}. Use view `grep` or `page`.") from None


def _parse_lines(raw: str) -> list[Any] | None:
    rows: list[Any] = []
    for line in raw.split("\n"):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except (ValueError, RecursionError):
                return None
    return rows if len(rows) > 1 else None


def _ask(value: Any, path: str) -> list[tuple[str, Any]]:
    import jsonpath  # late: 40 ms that most answers never need
    from jsonpath.function_extensions import Match, Search

    if len(path) > LONGEST_PATH:
        raise InvalidInput(f"json_path is longer than {LONGEST_PATH:,} characters. Ask in smaller steps.")
    visited = 0

    class Counted(jsonpath.JSONPathMatch):
        """Counts the nodes that a query visits; those of `$..*..*` grow without end."""

        def __init__(self, **given: Any) -> None:
            nonlocal visited
            visited += 1
            if visited > VISITS:
                raise InvalidInput(
                    f"json_path visits more than {VISITS:,} values. Name more of the path and use `..` less."
                )
            super().__init__(**given)

    left = REGEX_SECONDS  # for all values together: a filter asks each of them

    def timed(pattern: Any, method: str, value: object) -> bool:
        nonlocal left
        if pattern is None or not isinstance(value, str):
            return False
        start = monotonic()
        found = bool(getattr(pattern, method)(value, timeout=max(0.001, left)))
        left -= monotonic() - start
        return found

    class TimedSearch(Search):
        def __call__(self, value: object, pattern: object) -> bool:
            return timed(self.check_cache(pattern), "search", value) if isinstance(pattern, str) else False

    class TimedMatch(Match):
        def __call__(self, value: object, pattern: object) -> bool:
            return timed(self.check_cache(pattern), "fullmatch", value) if isinstance(pattern, str) else False

    class Environment(jsonpath.JSONPathEnvironment):
        match_class = Counted

    environment = Environment()
    environment.function_extensions |= {"search": TimedSearch(), "match": TimedMatch()}
    try:
        found: list[tuple[str, Any]] = []
        query = environment.compile(path)
        if isinstance(value, str):  # which the library would take for a document to parse
            return [("$", value)] if path.strip() == "$" else []
        for match in query.finditer(value):
            found.append((match.path, match.obj))
            if len(found) > MATCHES:
                raise InvalidInput(f"json_path matches more than {MATCHES:,} values. Slice it, such as [0:100].")
        return found
    except jsonpath.JSONPathError as error:
        if isinstance(error, RecursionError):
            raise RecursionError from None
        told = str(error).partition("\n")[0].rstrip(".")
        raise InvalidInput(
            f"json_path {path[:80]!r} is not valid: {told}. Examples: $.items[0], $..name, $.rows[?@.id == 7]."
        ) from None
    except TimeoutError:
        raise InvalidInput("A regular expression in json_path takes too long. Make it simpler.") from None


def _what_there_is(value: Any) -> str:
    if isinstance(value, dict):
        keys = list(cast("dict[str, Any]", value))
        return f"nothing matches; the top level has the keys {', '.join(keys[:20])}" + (" …" if len(keys) > 20 else "")
    if isinstance(value, list):
        return f"nothing matches; the top level is an array of {len(cast('list[Any]', value)):,}"
    return "nothing matches; the result is a single value"


def _pretty(value: Any, indent: str) -> str:
    """On one line where that is short, else one entry a line."""
    flat = _flat(value, WIDTH - len(indent))
    if flat is not None:
        return flat
    inner = indent + " "
    if isinstance(value, dict) and value:
        entries = cast("dict[str, Any]", value).items()
        parts = [f"{inner}{_dump(key)}: {_pretty(one, inner)}" for key, one in entries]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        parts = [inner + _pretty(one, inner) for one in cast("list[Any]", value)]
        return "[\n" + ",\n".join(parts) + f"\n{indent}]"
    return _dump(value)


def _flat(value: Any, room: int) -> str | None:
    """The value on one line, or None as soon as it is longer than that."""
    text = ""
    for piece in _ENCODER.iterencode(value):
        text += piece
        if len(text) > room:
            return None
    return text


def _dump(value: Any) -> str:
    return _ENCODER.encode(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False)
