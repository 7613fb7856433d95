r"""A page, the view of a tool result that every format works on, and its focus, the words of the call.

Every line of the text is a line of the page, up to `WIDTH` characters of it. Line numbers are those of the raw text,
1-based; a line ends only at "\n". Wrapping is removed first: an exit code, elements such as `<output>`, and the line
numbers that a file viewer prints before each line.

Focus: words of the arguments count three times as much as words of the talk, their paths half as much; a word on many
lines of the result counts less. Matching ignores case and works inside longer names.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import fsum, log2
from typing import Any, NamedTuple, TypeVar, cast

from mcp_memory.shortterm.synopsis.signals import LoweredLines, lines_with

WIDTH = 2_000
LONG, PART = 3_000, 200
BEGINS = re.compile(r"\s(?=\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d|\[(?:INFO|ERROR|WARN\w*|DEBUG)\])")
SAMPLE = 400

ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
INSIDE = re.compile(r"\w\w")
LAST_WORD = re.compile(r"(?<!\w)\w+\Z")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
EXIT = re.compile(r"\s*(?:<(?:returncode|exit_?code)>|\[?exit(?:ed with)? (?:code|status):?)\s*(-?\d{1,6})\b", re.I)
PREFIX = re.compile(
    r"\[\s*\d+\.\d+\]\s+"
    r"|(?:\d{2,7}\s+)?[\[(]?(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?"
    r"(?:\w{3} {1,2}\d{1,2} |\d{4}[-/]\d\d[-/]\d\d[T ]|\d\d[-/]\d\d[ T])?"
    r"(?:\d\d:\d\d:\d\d(?:[.,]\d+)?|\d{6} \d{6})(?:Z|[+-]\d\d:?\d\d| \d{4}(?=\]))?[\])]?:?\s*"
    r"(?:\d{1,7}\s+){0,2}(?:- )?"
)
"""What precedes the message in nearly all lines of a log: a process, the date and the time, a process and a thread."""
COLUMNS = re.compile(r"(?:[^\t\n]{0,80}\t){1,3}(?=\S*\d\d:\d\d:\d\d)")
"""Columns before the time, as continuous integration prints the job and the step."""
TAG = r"</?(?:output|output_head|output_tail|stdout|stderr|result|tool_output|tool_result|elided_chars|warning)>"
WRAPPING = re.compile(rf"\s*(?:{TAG}\s*)+$")
SED = re.compile(r"sed -n ['\"]?(\d{1,7}),")
NUMBERED = re.compile(r"\s*(\d{1,7})(?:\t|→|\s?[|│] ?|:\s)(.*)", re.S)


class PageLine(NamedTuple):
    """A line of the raw text, or a part of a structure. Lines are sorted and grouped by `number`."""

    number: int
    text: str
    """If a line: cleaned, and at most `WIDTH` characters."""
    name: str = ""
    """If a part: the name that the next call will use; a line is named by its number."""


@dataclass(frozen=True, kw_only=True)
class ResultPage:
    """The readable part of a result. `text` is everything inside the wrapping, of any length and not cleaned."""

    text: str
    lines: tuple[PageLine, ...]
    raw: str
    """The original result with its wrapping, to which `chars` and `total_lines` refer."""
    chars: int
    total_lines: int
    exit_code: int | None = None
    span: tuple[str, str] | None = None
    """What preceded the first and the last message of a log, such as their times, which the lines are without."""
    first_file_line: int | None = None
    """Number of the first line within its file, if a viewer printed it or the call names it."""

    @cached_property
    def sample(self) -> tuple[PageLine, ...]:
        """Non-blank lines from the head and the tail, enough to recognise the format."""
        filled = [line for line in self.lines[:SAMPLE] if line.text.strip()]
        return tuple(filled + [line for line in self.lines[SAMPLE:][-SAMPLE // 4 :] if line.text.strip()])

    def share(self, pattern: re.Pattern[str]) -> float:
        """Return the share of sampled lines that match the pattern at their start, 0 to 1."""
        return sum(1 for line in self.sample if pattern.match(line.text)) / max(1, len(self.sample))


def count_lines(text: str) -> int:
    """Count the lines of a text; a final newline does not begin another line."""
    return text.count("\n") + (0 if not text or text.endswith("\n") else 1)


def clean(text: str) -> str:
    """Remove terminal colours, and replace unprintable characters, except tabs and newlines, by U+FFFD."""
    if text.isprintable():  # fast, and true of nearly all
        return text
    return UNPRINTABLE.sub("\ufffd", ANSI.sub("", text).replace("\r\n", "\n"))


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


def clip(text: str, limit: int) -> str:
    """Cut a text to `limit` characters with an ellipsis, between words unless a word is very long."""
    if len(text) <= limit:
        return text
    kept = text[: max(0, limit - 1)]
    if kept and INSIDE.match(text, limit - 2):
        kept = kept[: -len(last_word[0])] if (last_word := LAST_WORD.search(kept, len(kept) // 2)) else kept
    return kept.rstrip(" ,;:(.-") + "…"[: max(0, limit)]


def clip_start(text: str, limit: int) -> str:
    """Cut the beginning of a text, as `clip` cuts the end."""
    return clip(text[::-1], limit)[::-1]


def count_of(number: int, noun: str, ending: str = "s") -> str:
    return f"{number:,} {noun}{ending * (number != 1)}"


def first_items(items: Sequence[str], limit: int) -> str:
    """Join the first items, and the number of further items."""
    more = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {more:,} more" if more > 0 else "")


def counted(counts: Counter[str], most: int, shorten: Callable[[str], str] = str) -> str:
    """Return the `most` commonest values with their counts, and the number of further values."""
    shown = counts.most_common(most)
    more = len(counts) - len(shown)
    return ", ".join(f"{shorten(value)} ×{count:,}" for value, count in shown) + (f" and {more:,} more" if more else "")


def size(chars: int) -> str:
    if chars < 10_000:
        return f"{chars:,} chars"
    return f"{chars / 1000:,.0f} k chars" if chars < 1_000_000 else f"{chars / 1_000_000:,.1f} M chars"


def open_page(text: str) -> ResultPage:
    """Split a result into lines, clean and unwrap it."""
    mark = "\n" if "\n" in text else "\r"  # files of old Macs have only carriage returns
    lines = _lines(text.removesuffix(mark).split(mark) if text else [])
    page = ResultPage(text=text, raw=text, lines=tuple(lines), chars=len(text), total_lines=count_lines(text))
    return _unprefix(_unnumber(_unwrap(page)))


def placed(page: ResultPage, call: str) -> ResultPage:
    """Return the page with the number of its first line in the file if the call has it: 430 in `sed -n '430,490p'`."""
    asked = SED.findall(call)
    return replace(page, first_file_line=int(asked[0])) if len(asked) == 1 and page.first_file_line is None else page


def _lines(pieces: list[str]) -> list[PageLine]:
    # like a terminal, which overwrites at a carriage return
    if len(pieces) < 20 and any(len(piece) > LONG for piece in pieces):
        return [line for n, piece in enumerate(pieces, start=1) for line in _parts(n, piece)]
    shown = (piece.rstrip("\r").rpartition("\r")[2] if "\r" in piece else piece for piece in pieces)
    return [PageLine(n, clean(piece[:WIDTH])) for n, piece in enumerate(shown, start=1)]


def _parts(number: int, text: str) -> Iterator[PageLine]:
    """Yield a long line in parts, cut before times and levels, else at white space; parts are named by their place."""
    start = 0
    while start < len(text):
        end = min(len(text), start + PART)
        if end < len(text):
            begins = BEGINS.search(text, start + 39, end)
            blank = max(text.rfind(" ", start + 40, end), text.rfind(",", start + 40, end)) + 1
            end = begins.end() if begins else blank or end
        yield PageLine(number, clean(text[start:end]), f"{number}@{start}" if start else str(number))
        start = end


def _unwrap(page: ResultPage) -> ResultPage:
    """Remove an exit code in the first or last line, and the elements that a harness puts around output."""
    lines, code = list(page.lines), None
    for at in (0, -1):
        match = EXIT.match(lines[at].text) if lines else None
        if match and code is None:
            code = int(match[1])
            del lines[at]
    if lines and lines[0].text.strip() == "<warning>":
        closed = next((at for at, line in enumerate(lines[:12]) if line.text.startswith("</warning>")), 0)
        del lines[:closed]
    if lines and WRAPPING.match(lines[0].text):
        lines = [line for line in lines if not WRAPPING.match(line.text)]
    if len(lines) == len(page.lines):
        return page
    return replace(page, lines=tuple(lines), exit_code=code, text=_inside(page, lines))


def _inside(page: ResultPage, lines: list[PageLine]) -> str:
    """Return the raw text of a contiguous run of lines."""
    if not lines:
        return ""
    start = 0
    for _ in range(lines[0].number - 1):
        start = page.text.find("\n", start) + 1
    end = len(page.text)
    for _ in range(page.total_lines - lines[-1].number + page.text.endswith("\n")):
        end = page.text.rfind("\n", 0, end)
    return page.text[start : max(start, end)]


def _unnumber(page: ResultPage) -> ResultPage:
    """Remove the line numbers of a file viewer, if nearly all lines have consecutive numbers."""
    if len(page.sample) < 3 or not NUMBERED.match(page.sample[0].text):
        return page
    parts = [NUMBERED.match(line.text) for line in page.lines]
    line_numbers = [int(part[1]) for part in parts if part]
    steps = sum(1 for a, b in pairwise(line_numbers) if b == a + 1)
    if len(line_numbers) < 0.9 * len([x for x in page.lines if x.text.strip()]) or steps < 0.9 * (
        len(line_numbers) - 1
    ):
        return page
    lines = tuple(
        PageLine(line.number, part[2]) if part else line for line, part in zip(page.lines, parts, strict=True)
    )
    return replace(page, lines=lines, first_file_line=line_numbers[0], text="\n".join(line.text for line in lines))


def _unprefix(page: ResultPage) -> ResultPage:
    """Remove what precedes the messages of a log if nearly all lines have it; the first and last become the span."""
    if len(page.sample) < 5 or sum(1 for line in page.sample if _prefix(line.text)) < 0.8 * len(page.sample):
        return page
    ends = [_prefix(line.text) for line in page.lines]
    having = [at for at, end in enumerate(ends) if end]
    if len(having) < 0.8 * sum(1 for line in page.lines if line.text.strip()):
        return page
    first, last = (one_line(page.lines[at].text[: ends[at]]).strip("[]: ") for at in (having[0], having[-1]))
    lines = [PageLine(n, text[end:], name) for (n, text, name), end in zip(page.lines, ends, strict=True)]
    return replace(page, lines=tuple(lines), span=(first, last))


def _prefix(text: str) -> int:
    """Return the length of what precedes the message of a line, 0 if there is nothing."""
    columns = COLUMNS.match(text) if "\t" in text else None
    match = PREFIX.match(text, columns.end() if columns else 0)
    return match.end() if match else 0


Item = TypeVar("Item")
WORD = re.compile(r"[^\W\d]\w{2,60}|\d{3,}")
PATH = re.compile(r"(?:[\w.~*-]{0,80}/)+[\w.~*-]{0,120}")
KEPT_WORDS = 60
NEAR_LINES = 300
CALL_CHARS = 4_000
TALK_CHARS = 6_000

COMMON = frozenset(
    "the and for with that this from are was were has have had not but you your our its into out all any can will"
    " would should could let now then than them they there here what which when where who how why see use using used"
    " also just like need want make made get got one two new old first last next more most some such only other"
    " look looking check find found file files code line lines show run running test tests add let's i'll we'll"
    " grep head tail cat sed awk find echo python python3 bash xargs sort uniq node npm pip git type name path include"
    " null true false none dev tmp usr bin testbed home work src command query description pattern import print def"
    " class return self args kwargs str int EOF".lower().split()
)


@dataclass(frozen=True, slots=True)
class Focus:
    """Weights of words on a page; `call` is the arguments as plain text."""

    call: str
    weights: dict[str, float]
    pattern: re.Pattern[str] | None
    asked_terms: frozenset[str] = frozenset()
    """Words of the call and the talk, in lower case: already known to the reader."""

    def of(self, text: str) -> float:
        """Return how relevant a text is to the call, 0 if not at all."""
        found = self.pattern.findall(text) if self.pattern else []
        if not found:
            return 0.0
        words = {word.lower() for word in found}
        return fsum(self.weights.get(word, 0.0) for word in words)  # unlike sum, the same in any order

    def near(self, texts: Sequence[str], lowered: LoweredLines) -> dict[int, float]:
        """Return how relevant texts are that have a word of the call which is not in very many of them, by index."""
        found = lines_with([f"{word}*" for word in self.weights], lowered, NEAR_LINES)
        return {at: self.of(texts[at]) for at in found}

    def nearest(self, items: Iterable[Item], text: Callable[[Item], str] = str) -> list[Item]:
        """Return the items relevant to the call, the most relevant first."""
        return self.ranked([item for item in items if self.of(text(item)) > 0], text)

    def ranked(self, items: Iterable[Item], text: Callable[[Item], str] = str) -> list[Item]:
        """Return all items, the most relevant to the call first, otherwise in their order."""
        return sorted(items, key=lambda item: -self.of(text(item)))

    def best(self, items: Iterable[Item], limit: int, text: Callable[[Item], str] = str) -> list[Item]:
        """Return the `limit` most relevant items in their own order; the first items if all are equal."""
        ranked = self.ranked(enumerate(items), lambda numbered: text(numbered[1]))[:limit]
        return [item for _, item in sorted(ranked, key=lambda numbered: numbered[0])]


def focus_on(lines: Iterable[PageLine], *, arguments: object, talk: str) -> Focus:
    """Weigh the words of the call and of the end of the talk by how rare they are in the lines."""
    call = words_of_call(arguments)
    weights: dict[str, float] = {}
    where = " ".join(PATH.findall(call))  # paths are less informative than search terms
    for text, weight in ((where, 0.5), (talk[-TALK_CHARS:], 1.0), (PATH.sub(" ", call), 3.0)):
        for word in WORD.findall(text):
            if (low := word.lower()) not in COMMON:
                weights[low] = max(weight, weights.pop(low, 0.0))  # re-inserted: the latest words come last
    kept = dict(sorted(weights.items(), key=lambda item: item[1])[-KEPT_WORDS:])
    asked_terms = frozenset(term.lower() for term in terms_in(f"{call} {talk}"))
    if not kept:
        return Focus(call, {}, None, asked_terms)
    pattern = re.compile("|".join(re.escape(w) for w in sorted(kept, key=len, reverse=True)), re.I)
    text = "\n".join(line.text for line in lines).lower()
    weights = {word: weight / log2(2 + text.count(word)) for word, weight in kept.items()}
    return Focus(call, weights, pattern, asked_terms)


def words_of_call(arguments: object) -> str:
    """Return all strings and numbers in the arguments, at any depth, as a text of bounded length."""
    if isinstance(arguments, str):
        try:
            arguments = cast("object", json.loads(arguments[: 4 * CALL_CHARS]))
        except (ValueError, RecursionError):
            pass
    words: list[str] = []
    waiting: list[Any] = [arguments]
    room = CALL_CHARS
    while waiting and room > 0:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(reversed(list(cast("dict[Any, Any]", value).values())))
        elif isinstance(value, (list, tuple)):
            waiting.extend(reversed(cast("list[Any]", value)))
        elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
            words.append(value[:room] if isinstance(value, str) else str(value)[:40])
            room -= len(words[-1]) + 1
    return " ".join(words)


# --- terms ---

LONGEST = 90
TERM = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]{4,20}Z?|\d{0,8}[^\W\d][\w./@-]{0,200}|\d[\d.,:-]{2,40}"
    r"|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]{2,12}"
)
CODE = re.compile(r"[A-Z0-9]{3}")


def terms_in(text: str) -> list[str]:
    """Return words, names and paths of at least four characters, and codes and numbers of three, in order."""
    return [term for term, _ in located_terms([text])[0]]


def located_terms(texts: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Return the terms of each text, each with the text between it and the previous term."""
    return [list(_located_terms(text)) for text in texts]


def _located_terms(text: str) -> Iterator[tuple[str, str]]:
    end = 0
    for match in TERM.finditer(text):
        term = match[0].strip("./-,:")
        if 3 < len(term) <= LONGEST or (len(term) == 3 and CODE.fullmatch(term)):
            yield term, text[end : match.start()]
            end = match.start() + len(match[0].rstrip("./-,:"))
