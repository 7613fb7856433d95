"""Search hits: `grep -n`, `grep -r`, ripgrep with and without headings, and compilers' `file:line:col: message`.

Hits are regrouped: each file once with its lines under it, the ones nearest to what was asked first in line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mcp_memory.shortterm.synopsis.draft import SUMMARY, Draft, listed
from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.gist import Piece
from mcp_memory.shortterm.synopsis.page import Line, Page, clip

__all__ = ["describe_hits"]

IN_FILE = re.compile(
    r"(?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]{0,250}?[\w)\]])(?P<mark>[:])(?:(?P<line>\d+):(?:\d+:)?)?(?P<text>.*)"
)
CONTEXT = re.compile(r"(?P<path>\S{1,250}?\.\w{1,8})-(?:(?P<line>\d+)-)?(?P<text>.*)")
NUMBERED = re.compile(r"(?P<line>\d+)(?P<mark>[:-])(?P<text>.*)")
LOOKS_LIKE_PATH = re.compile(r"[\w.~@+/\\ -]*(?:/[\w.@+ -]+|\.\w{1,8})$")
SEVERITY = re.compile(r"\s*(?P<what>fatal error|error|warning|note|info)\b(?:\[[\w-]+\])?:? ?(?P<text>.*)", re.I)
DEFINES = re.compile(r"\s*(?:async |export |pub )*(?:def|class|func|fn|function|interface|struct|enum)\b")
SEPARATOR = "--"


@dataclass(frozen=True, slots=True)
class Hit:
    path: str
    line: str
    text: str
    at: int
    context: bool = False


def describe_hits(page: Page, focus: Focus) -> Draft | None:
    """At least 70 % of the lines are hits, their context, separators or the headings above them."""
    for lines in (page.sample, page.lines):  # the sample is proof enough against
        hits, missed = _read(lines)
        if len(hits) < 2 or missed > 0.3 * (len(hits) + missed):
            return None
    real = [hit for hit in hits if not hit.context]
    if not real:
        return None
    by_file: dict[str, list[Hit]] = {}
    for hit in hits:
        by_file.setdefault(hit.path, []).append(hit)
    severities = [m["what"].lower() for hit in real if (m := SEVERITY.match(hit.text))]
    compiled = len(severities) > 0.5 * len(real)
    picks = {hit.at: (0.2 if hit.context else 1.0) + (1.5 if DEFINES.match(hit.text) else 0) for hit in hits}
    summary = _diagnosed(real, severities) if compiled else _found(real, by_file, focus)
    return Draft(
        kind="diagnostics" if compiled else "matches",
        summary=summary,
        use="names",
        edges=False,
        score=5 if compiled or len(real) <= 8 else 4,
        picks=picks,
        pieces=tuple(_pieces(hits, clip(summary, SUMMARY))),
    )


def _read(lines: Sequence[Line]) -> tuple[list[Hit], int]:
    """The hits, and how many lines are none."""
    hits: list[Hit] = []
    missed = 0
    heading = ""
    for line in lines:
        text = line.text
        if (found := NUMBERED.match(text)) and not text.startswith("0"):
            hits.append(Hit(heading, found["line"], found["text"], line.number, found["mark"] == "-"))
        elif (found := IN_FILE.match(text)) and LOOKS_LIKE_PATH.match(found["path"]):
            hits.append(Hit(found["path"], found["line"] or "", found["text"], line.number))
        elif found := CONTEXT.match(text):
            hits.append(Hit(found["path"], found["line"] or "", found["text"], line.number, context=True))
        elif text and LOOKS_LIKE_PATH.match(text) and "/" in text:
            heading = text
        elif text.strip() and text.strip() != SEPARATOR:
            missed += 1
    return hits, missed


def _pieces(hits: Sequence[Hit], summary: str) -> Iterator[Piece]:
    """The hits under the names that the next call will use: `path:line`, or the line where there is one file.

    Of a path that the summary tells, its last part is enough.
    """
    for hit in hits:
        path = hit.path.rsplit("/", 1)[-1] if hit.path in summary else hit.path
        yield Piece(hit.at, hit.text, ":".join(part for part in (path, hit.line) if part) or str(hit.at))


def _found(real: list[Hit], by_file: dict[str, list[Hit]], focus: Focus) -> str:
    if list(by_file) == [""]:
        where = f"at lines {listed([hit.line for hit in real if hit.line], 8)}"
        best = focus.best((" ".join(hit.text.split()) for hit in real), 2)
        return f"{len(real)} matches {where}: {clip('; '.join(clip(text, 60) for text in best), 120)}"
    counts = {path: sum(1 for hit in hits if not hit.context) for path, hits in by_file.items()}
    ranked = sorted((path for path in counts if path), key=lambda p: (-focus.of(p), -counts[p]))
    many = f"{len(real)} match{'es' * (len(real) != 1)} in {len(ranked)} file{'s' * (len(ranked) != 1)}"
    return f"{many}: {listed([f'{path} ({counts[path]})' for path in ranked], 3)}"


def _diagnosed(real: list[Hit], severities: list[str]) -> str:
    errors = sum(1 for s in severities if "error" in s)
    warnings = sum(1 for s in severities if s == "warning")
    first = next((hit for hit in real if "error" in hit.text.lower()[:20]), real[0])
    return f"{errors} errors, {warnings} warnings; first: {first.path}:{first.line}: {first.text.strip()}"
