"""A page: the bounded sight of one tool result that every recogniser works on.

Bounds: of a result of any size at most `HEAD` characters and `HEAD_LINES` lines from its beginning and `TAIL`
and `TAIL_LINES` from its end become lines, each looked at up to `WIDTH` characters. Beyond that only newlines are
counted.
Line numbers are always those of the raw text, 1-based; a line ends at "\\n" and nowhere else.

What wraps a result is taken off first and remembered: an exit code with an `<output>` element around it, and the
line numbers that a file viewer prints before each line.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

__all__ = ["Line", "Page", "clean", "clip", "count_lines", "one_line", "open_page", "placed", "size"]

HEAD, HEAD_LINES = 400_000, 6_000
TAIL, TAIL_LINES = 100_000, 2_000
WIDTH = 600
SAMPLE = 400

ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
EXIT = re.compile(r"\s*(?:<(?:returncode|exit_?code)>|\[?exit(?:ed with)? (?:code|status):?)\s*(-?\d{1,6})\b", re.I)
TAG = r"</?(?:output|output_head|output_tail|stdout|stderr|result|tool_output|tool_result|elided_chars|warning)>"
WRAPPING = re.compile(rf"\s*(?:{TAG}\s*)+$")
SED = re.compile(r"sed -n ['\"]?(\d{1,7}),")
NUMBERED = re.compile(r"\s*(\d{1,7})(?:\t|→|\s?[|│] ?|:\s)(.*)", re.S)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the raw text; `text` is cleaned and at most `WIDTH` characters."""

    number: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """What there is to see. `text` is all that is inside the wrapping, of any length and unclean."""

    text: str
    lines: tuple[Line, ...]
    """Every line, or those of the head and of the tail where `whole` is False."""
    raw: str
    """The result as it came, wrapping and all; `chars` and `total_lines` are of it."""
    chars: int
    total_lines: int
    whole: bool
    exit_code: int | None = None
    first_file_line: int | None = None
    """Number of the first line in the file that it comes from, where a viewer printed it or the call names it."""

    @cached_property
    def sample(self) -> tuple[Line, ...]:
        """Lines that are not blank: enough to tell what this is, from the head and from the tail."""
        filled = [line for line in self.lines[:SAMPLE] if line.text.strip()]
        return tuple(filled + [line for line in self.lines[SAMPLE:][-SAMPLE // 4 :] if line.text.strip()])

    @cached_property
    def numbers(self) -> list[int]:
        return [line.number for line in self.lines]

    def line(self, number: int) -> Line | None:
        at = bisect_left(self.numbers, number)
        return self.lines[at] if at < len(self.lines) and self.lines[at].number == number else None

    def share(self, pattern: re.Pattern[str]) -> float:
        """The part of the sampled lines that the pattern matches from their start, 0 to 1."""
        return sum(1 for line in self.sample if pattern.match(line.text)) / max(1, len(self.sample))


def count_lines(text: str) -> int:
    """Lines of a text; a newline at the end does not begin another."""
    return text.count("\n") + (0 if not text or text.endswith("\n") else 1)


def clean(text: str) -> str:
    """Without terminal colours; what cannot be printed or encoded becomes U+FFFD. Tabs and newlines stay."""
    return UNPRINTABLE.sub("\ufffd", ANSI.sub("", text).replace("\r\n", "\n"))


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


def clip(text: str, limit: int) -> str:
    """At most `limit` characters, with an ellipsis where some were cut."""
    return text if len(text) <= limit else text[: max(0, limit - 1)].rstrip() + "…"[: max(0, limit)]


def size(chars: int) -> str:
    if chars < 10_000:
        return f"{chars:,} chars"
    return f"{chars / 1000:,.0f} k chars" if chars < 1_000_000 else f"{chars / 1_000_000:,.1f} M chars"


def open_page(text: str) -> Page:
    """Look at a result: split, clean, unwrap."""
    total = count_lines(text)
    head = text[:HEAD].split("\n", HEAD_LINES)
    if len(text) > HEAD or len(head) > HEAD_LINES:
        tail = text[-TAIL:].removesuffix("\n").rsplit("\n", TAIL_LINES)[1:]
        first = max(total - len(tail) + 1, len(head))  # the head's last piece may go on beyond it
        lines = _lines(head[:-1] or head, first=1)
        lines += [line for line in _lines(tail, first=total - len(tail) + 1) if line.number >= first]
    else:
        lines = _lines(head[:-1] if head[-1] == "" else head, first=1)
    page = Page(text=text, raw=text, lines=tuple(lines), chars=len(text), total_lines=total, whole=len(lines) >= total)
    return _unnumber(_unwrap(page))


def placed(page: Page, call: str) -> Page:
    """With the file's line number, where the call is one `sed -n '430,490p'`."""
    asked = SED.findall(call)
    return replace(page, first_file_line=int(asked[0])) if len(asked) == 1 and page.first_file_line is None else page


def _lines(pieces: list[str], *, first: int) -> list[Line]:
    # as a terminal shows it: what follows the last carriage return
    shown = (piece.rstrip("\r").rpartition("\r")[2] for piece in pieces)
    return [Line(n, clean(piece[:WIDTH])) for n, piece in enumerate(shown, start=first)]


def _unwrap(page: Page) -> Page:
    """Take off an exit code in the first or last line, and the elements that a harness puts around output."""
    lines, code = list(page.lines), None
    for at in (0, -1):
        found = EXIT.match(lines[at].text) if lines else None
        if found and code is None:
            code = int(found[1])
            del lines[at]
    if lines and lines[0].text.strip() == "<warning>":
        closed = next((at for at, line in enumerate(lines[:12]) if line.text.startswith("</warning>")), 0)
        del lines[:closed]
    if lines and WRAPPING.match(lines[0].text):
        lines = [line for line in lines if not WRAPPING.match(line.text)]
    if len(lines) == len(page.lines):
        return page
    return replace(page, lines=tuple(lines), exit_code=code, text=_inside(page, lines))


def _inside(page: Page, lines: list[Line]) -> str:
    """The raw text of lines that are a run without its first and last few."""
    if not lines:
        return ""
    start = 0
    for _ in range(lines[0].number - 1):
        start = page.text.find("\n", start) + 1
    end = len(page.text)
    for _ in range(page.total_lines - lines[-1].number + page.text.endswith("\n")):
        end = page.text.rfind("\n", 0, end)
    return page.text[start : max(start, end)]


def _unnumber(page: Page) -> Page:
    """Take off the numbers of a file viewer, where nearly all lines have one and they count up by one."""
    if len(page.sample) < 3 or not NUMBERED.match(page.sample[0].text):
        return page
    parts = [NUMBERED.match(line.text) for line in page.lines]
    given = [int(part[1]) for part in parts if part]
    steps = sum(1 for a, b in pairwise(given) if b == a + 1)
    if len(given) < 0.9 * len([x for x in page.lines if x.text.strip()]) or steps < 0.9 * (len(given) - 1):
        return page
    lines = tuple(Line(line.number, part[2]) if part else line for line, part in zip(page.lines, parts, strict=True))
    return replace(page, lines=lines, first_file_line=given[0], text="\n".join(line.text for line in lines))
