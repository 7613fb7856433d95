"""Shows parts of a raw result: by page, lines, search or JSON path, within a token budget.

An answer is a header line, the content, and, if something was left out, a last line with a cursor.
Following the cursors of view `page` and joining `content_of` returns exactly the raw text; no answer has more than
`max_tokens`; only InvalidInput is raised.
Line numbers are those of the raw text; a line ends at "\n". A line that does not fit is cut, and its cursor continues
in the middle of it (its number then has a `+`).
A cursor consists of a view and a character offset and is tied to ref, text and query by a checksum. It is not a secret,
and it never expires, because a raw result never changes.
Text is returned as stored; callers handle characters that cannot be encoded or printed.

The JSON view evaluates a JSON path (RFC 9535) on JSON and JSON lines, and prints long values on several lines. Its work
is bounded by nodes visited (`VISITS`), not by time, so the same query always has the same answer; only regular
expressions inside a filter have a timeout.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, cast

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import Expansion
from mcp_memory.shortterm.synopsis.page import count_lines, count_of

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
    argument: str = "",
    max_tokens: int,
    cursor: str | None = None,
) -> Expansion:
    """Show a part of `raw` in at most `max_tokens` tokens, header and last line included.

    `argument` is the range, pattern or path of the views `lines`, `grep` and `json`.
    Raises InvalidInput for a wrong range, pattern, path, budget or cursor.
    """
    if max_tokens < MIN_TOKENS:
        raise InvalidInput(f"max_tokens is {max_tokens}; the least that can be shown is {MIN_TOKENS}.")
    if not argument and view != "page":
        name = "json_path" if view == "json" else view
        raise InvalidInput(f"View `{view}` needs the argument `{name}`.")
    query = f"{ref}\0{view}\0{argument}\0{len(raw)}"
    start = _offset(cursor, view, query)
    if view != "json" and start > len(raw):  # anybody can compute a checksum
        raise _wrong_cursor()
    match view:
        case "page":
            window = _text_window("page", raw, start, max_tokens, numbered=True)
        case "lines":
            window = _lines_window(raw, argument, start, max_tokens)
        case "grep":
            window = _grep_window(raw, argument, start, max_tokens)
        case "json":
            matches, answer = _answer_json_path(raw, argument)
            header = f"json {_quote(argument)}: {count_of(matches, 'match', 'es')}"
            window = _text_window(header, answer, start, max_tokens, numbered=False)
    return _fit(_ExpandQuery(ref, view, query, count_lines(raw)), window, counter, max_tokens)


def content_of(expansion: Expansion) -> str:
    """Return the content of an answer, without its header and its last line."""
    content = expansion.text.partition("\n")[2]
    return content if expansion.cursor is None else content.rpartition("\n")[0]


def view_of_cursor(cursor: str) -> View:
    """Return the view that a cursor continues. Raises InvalidInput if the text is not a cursor."""
    return VIEWS[_parse_cursor(cursor)[1]]


# --- cursors -----------------------------------------------------------------------------------------


def _parse_cursor(cursor: str) -> re.Match[str]:
    match = CURSOR.fullmatch(cursor.strip())
    if not match:
        raise _wrong_cursor()
    return match


def _checksum(query: str, offset: int) -> str:
    return hashlib.sha256(f"{query}\0{offset}".encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _offset(cursor: str | None, view: View, query: str) -> int:
    if cursor is None or not cursor.strip():
        return 0
    match = _parse_cursor(cursor)
    if VIEWS[match[1]] != view:
        raise InvalidInput(f"This cursor continues view `{VIEWS[match[1]]}`, not `{view}`. Ask with that view again.")
    if match[3] != _checksum(query, int(match[2])):
        raise InvalidInput(
            "This cursor belongs to another ref or another question. Repeat the same target, view and arguments "
            "with it, or leave it out to begin again."
        )
    return int(match[2])


def _wrong_cursor() -> InvalidInput:
    return InvalidInput("This is not a cursor of this tool. Copy it from the last line of an answer, or leave it out.")


# --- the answer within the budget --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ExpandQuery:
    """The query that an answer and its cursor belong to. `query` is hashed into the cursor."""

    ref: str
    view: View
    query: str
    total_lines: int


def _fit(query: _ExpandQuery, window: Window, counter: TokenCounter, max_tokens: int) -> Expansion:
    """Return the longest answer that fits the budget: the whole window, or a part that is shortened until it fits.

    Raises InvalidInput if nothing fits.
    """
    everything = window.cut(window.length).text
    for brief in (False, True):
        answer = _answer(query, window, window.length, brief=brief)
        if not counter.fits(answer.text, max_tokens):
            frame = counter.count(_answer(query, window, 0, brief=brief).text)
            length = len(counter.cut(everything, max(0, max_tokens - frame)))
            answer = _answer(query, window, length, brief=brief)
            while not counter.fits(answer.text, max_tokens) and length > 0:
                length -= max(1, length // 20)
                answer = _answer(query, window, length, brief=brief)
        if counter.fits(answer.text, max_tokens) and (content_of(answer) or not everything):
            return replace(answer, tokens=counter.count(answer.text))
    raise InvalidInput(f"max_tokens is {max_tokens}, too few for this ref. Ask for at least {4 * max_tokens}.")


def _answer(query: _ExpandQuery, window: Window, length: int, *, brief: bool) -> Expansion:
    """Return an answer with the first `length` characters of the window; its tokens are not counted yet.

    `brief` shortens the header and the last line, for the smallest budgets.
    """
    shown = window.cut(length)
    parts = [query.ref if brief else _header(query, window.header, shown), shown.text]
    cursor = None
    if shown.next is not None:
        cursor = f"{query.view[0]}{shown.next}-{_checksum(query.query, shown.next)}"
        parts.append(f"… cursor {cursor}" if brief else _last_line(query, shown, cursor))
    return Expansion(
        view=query.view,
        text="\n".join(parts),
        tokens=0,
        ref=query.ref,
        lines=shown.lines,
        total_lines=None if query.view == "json" else query.total_lines,
        cursor=cursor,
    )


def _header(query: _ExpandQuery, header: str, shown: ShownPart) -> str:
    """Return the header line, such as `r-9f2c… lines 120–180 of 4,012`, for `grep` and `json` with the query."""
    if query.view == "json":
        return f"{query.ref} {header}"
    if shown.lines is None:
        return f"{query.ref} {header} (the result has {query.total_lines:,} lines)"
    first, last = shown.lines
    span = f"line {first:,}" if first == last else f"lines {first:,}–{last:,}"
    return f"{query.ref} {span} of {query.total_lines:,}" + (f", {header}" if query.view == "grep" else "")


def _last_line(query: _ExpandQuery, shown: ShownPart, cursor: str) -> str:
    """Return the last line: how much was left out, and the cursor to continue."""
    again = "go on with" if query.view == "page" else "the same call with"
    rest = "more was found"
    if query.view == "lines":
        rest = "more of these lines"
    elif shown.lines and query.view == "page":
        count = query.total_lines - shown.lines[1]
        rest = f"{count:,} more lines in the result" if count else "the rest of this line"
    return f"… {rest}: {again} cursor={cursor}"


CONTEXT = 2
GREP_SECONDS = 5.0
CHARS_PER_SECOND = 5_000_000  # a plain pattern on a busy machine does three times as many
LONGEST_PATTERN = 1_000
CHARS_PER_TOKEN = 16
"""Characters per token in a window; real text has three to five."""
RANGE = re.compile(r"(?:(?P<one>\d{1,12})|(?P<a>\d{1,12})\s*[-–]\s*(?P<b>\d{1,12})?|[-–−](?P<last>\d{1,12}))")


@dataclass(frozen=True, slots=True)
class ShownPart:
    """The shown part of a window. `next` is the offset at which to continue; None at the end."""

    text: str
    next: int | None
    lines: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Window:
    """The text that an answer may show. `cut(n)` returns its first n characters, or fewer for a better end."""

    header: str
    length: int
    cut: Callable[[int], ShownPart]


@dataclass(frozen=True, slots=True)
class NumberedRow:
    """A line to show: `prefix`, then `raw[start:end]`."""

    number: int
    start: int
    end: int
    prefix: str


def _lines_window(raw: str, line_range: str, start: int, max_tokens: int) -> Window:
    first, last = _parse_range(line_range, count_lines(raw))
    first_start = 0
    for _ in range(first - 1):
        first_start = raw.index("\n", first_start) + 1
    rows = _rows_from(raw, max(first_start, start), last)
    numbered = (NumberedRow(n, a, b, f"{n}{'+' * middle}\t") for n, a, b, middle in rows)
    return _row_window("lines", raw, numbered, max_tokens)


def _grep_window(raw: str, pattern: str, start: int, max_tokens: int) -> Window:
    """Return a window on the matching lines from `start` on, with a count of all matches."""
    room = max_tokens * CHARS_PER_TOKEN
    rows: list[NumberedRow] = []
    matches = size = size_before = shown_last = 0
    for number, begin, end, hit in _grep_lines(raw, _searcher(pattern, len(raw))):
        matches += hit
        if size_before <= room and (end > start or begin >= start):
            gap = "--\n" if rows and number > shown_last + 1 else ""
            inside = max(begin, start)
            rows.append(NumberedRow(number, inside, end, f"{gap}{number}{'+' * (inside > begin)}{':' if hit else '-'}"))
            size_before, size = size, size + len(rows[-1].prefix) + end - inside
        shown_last = number
    return _row_window(f"grep {_quote(pattern)}: {count_of(matches, 'matching line')}", raw, rows, max_tokens)


def has_match(raw: str, pattern: str) -> bool:
    """Return whether a line matches a pattern. Raises InvalidInput for an invalid or too slow pattern."""
    return any(hit for *_, hit in _grep_lines(raw, _searcher(pattern, len(raw))))


def _grep_lines(raw: str, search: Callable[[str], bool]) -> Iterator[tuple[int, int, int, bool]]:
    """Yield (number, start, end, is match) of every matching line and its context lines."""
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


def _searcher(pattern: str, chars: int) -> Callable[[str], bool]:
    """Return a function that tells whether a line matches; it raises InvalidInput if its calls together take too long.

    Case counts only if the pattern has upper-case letters. Raises InvalidInput for an invalid pattern.
    """
    import regex  # late: only this view needs it

    if len(pattern) > LONGEST_PATTERN:
        raise InvalidInput(f"grep is longer than {LONGEST_PATTERN:,} characters. Search for less of it.")
    any_case = not any(char.isupper() for char in re.sub(r"\\.", "", pattern, flags=re.S))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = regex.compile(pattern, regex.IGNORECASE if any_case else 0)
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise InvalidInput(
            f"grep={_quote(pattern)} is not a regular expression: {error}. "
            "Escape special characters with \\, as in foo\\(."
        ) from None
    seconds = GREP_SECONDS + chars / CHARS_PER_SECOND
    deadline = monotonic() + seconds

    def search(line: str) -> bool:
        try:
            return compiled.search(line, timeout=max(0.001, deadline - monotonic())) is not None
        except TimeoutError:
            raise InvalidInput(
                f"grep={_quote(pattern)} takes longer than {seconds:.0f} s on this result. Make it simpler, "
                "without repeated groups inside repeated groups."
            ) from None

    return search


def _text_window(header: str, text: str, start: int, max_tokens: int, *, numbered: bool) -> Window:
    """Return a window on plain text, cut at a line end if at least half remains."""
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


def _row_window(header: str, raw: str, rows: Iterable[NumberedRow], max_tokens: int) -> Window:
    """Return a window on rows, cut between two rows, or inside the first row if that is too long."""
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


def _parse_range(text: str, total: int) -> tuple[int, int]:
    allowed = f'Allowed: "120-180", "120", "120-", "-40" (the last 40); there are {total:,} lines, from 1.'
    match = RANGE.fullmatch(text.strip())
    if not match:
        raise InvalidInput(f"lines={text[:40]!r} is not a range. {allowed}")
    if match["last"]:
        first, last = max(1, total - int(match["last"]) + 1), total
    elif match["one"]:
        first = last = int(match["one"])
    else:
        first, last = int(match["a"]), int(match["b"] or total)
    if not 1 <= first <= total or last < first:
        raise InvalidInput(f"lines={text[:40]!r} is outside of the result. {allowed}")
    return first, min(last, total)


def _rows_from(raw: str, start: int, last: int | None = None) -> Iterator[tuple[int, int, int, bool]]:
    """Yield (number, start, end, starts in the middle) of each line from an offset on."""
    number = raw.count("\n", 0, start) + 1
    middle = start > 0 and raw[start - 1] != "\n"
    while start < len(raw) and (last is None or number <= last):
        end = raw.find("\n", start)
        end = len(raw) if end < 0 else end
        yield number, start, end, middle
        start, number, middle = end + 1, number + 1, False


def _quote(argument: str) -> str:
    flat = " ".join(argument.split())
    return repr(flat if len(flat) <= 40 else flat[:39] + "…")


VISITS = 500_000
MATCHES = 20_000
LONGEST_PATH = 1_000
WIDTH = 100
REGEX_SECONDS = 2.0
PLAIN_NAME, NAMED = re.compile(r"\['([A-Za-z_]\w*)'\]"), r".\1"
"""Paths are shown as an agent would type them: `$.items[3].name` for `$['items'][3]['name']`."""


def _answer_json_path(raw: str, path: str) -> tuple[int, str]:
    """Return the number of matches, and their values: with several, each after its path; with none, the top level.

    Raises InvalidInput for a text that is not JSON, and for an invalid or too expensive path.
    """
    value = _parse_json(raw)
    try:
        matches = _query(value, path)
        if len(matches) == 1:
            return 1, _pretty(matches[0][1], "")
        if not matches:
            return 0, _describe_top_level(value)
        return len(matches), "\n".join(f"{PLAIN_NAME.sub(NAMED, at)}: {_pretty(match, '')}" for at, match in matches)
    except RecursionError:
        raise InvalidInput(
            "The JSON is nested too deep for this path. Name a deeper part, or use view `page` or `grep`."
        ) from None


def _parse_json(raw: str) -> Any:
    """Return the value of a text, or the list of values of JSON lines. Raises InvalidInput for anything else."""
    try:
        return json.loads(raw)
    except RecursionError:
        raise InvalidInput("The JSON is nested too deep to parse. Use view `page`, `lines` or `grep`.") from None
    except json.JSONDecodeError as error:
        lines = [line for line in raw.split("\n") if line.strip()]
        if len(lines) > 1:
            with suppress(ValueError, RecursionError):
                return [json.loads(line) for line in lines]
        raise InvalidInput(
            f"The result is not JSON: {error.msg} at line {error.lineno}, column {error.colno}. "
            "Use view `lines`, `grep` or `page`."
        ) from None
    except ValueError as error:  # an integer with thousands of digits
        raise InvalidInput(f"The result is not JSON that can be read: {error}. Use view `grep` or `page`.") from None


def _query(value: Any, path: str) -> list[tuple[str, Any]]:
    """Return the location and value of each match of the JSONPath query `path`.

    Raises InvalidInput for an invalid or too expensive query, and RecursionError for a value nested too deeply.
    """
    import jsonpath  # late: 40 ms that most answers never need
    from jsonpath.function_extensions import Match, Search

    if len(path) > LONGEST_PATH:
        raise InvalidInput(f"json_path is longer than {LONGEST_PATH:,} characters. Ask in smaller steps.")
    visited = 0

    class Counted(jsonpath.JSONPathMatch):
        """A match that limits the nodes that a query visits; a query such as `$..*..*` visits far too many."""

        def __init__(self, **fields: Any) -> None:
            nonlocal visited
            visited += 1
            if visited > VISITS:
                raise InvalidInput(
                    f"json_path visits more than {VISITS:,} values. Name more of the path and use `..` less."
                )
            super().__init__(**fields)

    left = REGEX_SECONDS  # for all values of a filter together

    def timed(pattern: Any, method: str, value: object) -> bool:
        nonlocal left
        if pattern is None or not isinstance(value, str):
            return False
        start = monotonic()
        is_match = bool(getattr(pattern, method)(value, timeout=max(0.001, left)))
        left -= monotonic() - start
        return is_match

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
        matches: list[tuple[str, Any]] = []
        query = environment.compile(path)
        if isinstance(value, str):  # which the library would parse as a document
            return [("$", value)] if path.strip() == "$" else []
        for match in query.finditer(value):
            matches.append((match.path, match.obj))
            if len(matches) > MATCHES:
                raise InvalidInput(f"json_path matches more than {MATCHES:,} values. Slice it, such as [0:100].")
        return matches
    except jsonpath.JSONPathError as error:
        if isinstance(error, RecursionError):
            raise RecursionError from None
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InvalidInput(
            f"json_path {path[:80]!r} is not valid: {reason}. Examples: $.items[0], $..name, $.rows[?@.id == 7]."
        ) from None
    except TimeoutError:
        raise InvalidInput("A regular expression in json_path takes too long. Make it simpler.") from None


def _describe_top_level(value: Any) -> str:
    if isinstance(value, dict):
        keys = list(cast("dict[str, Any]", value))
        return f"nothing matches; the top level has the keys {', '.join(keys[:20])}" + (" …" if len(keys) > 20 else "")
    if isinstance(value, list):
        return f"nothing matches; the top level is an array of {len(cast('list[Any]', value)):,}"
    return "nothing matches; the result is a single value"


def _pretty(value: Any, indent: str) -> str:
    """Return a value on one line if it is short, else with one entry per line."""
    flat = ""
    for piece in _ENCODER.iterencode(value):
        flat += piece
        if len(flat) > WIDTH - len(indent):
            break
    else:
        return flat
    inner = indent + " "
    if isinstance(value, dict) and value:
        entries = cast("dict[str, Any]", value).items()
        parts = [f"{inner}{_ENCODER.encode(key)}: {_pretty(entry, inner)}" for key, entry in entries]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        parts = [inner + _pretty(entry, inner) for entry in cast("list[Any]", value)]
        return "[\n" + ",\n".join(parts) + f"\n{indent}]"
    return _ENCODER.encode(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False)
