"""Statements about the lines of any text: quoted lines that differ from the others, and counts over all of them.

Most lines of a log, a scan or a listing repeat a few patterns with other numbers, names and quoted parts (the idea of
Drain: He et al. 2017). A line is worth quoting if its pattern is rare, if it tells of trouble or of a total, if it is a
heading, begins or ends the text, has the greatest number of its pattern, or has words of the call. A pattern with many
lines is quoted once, with its count and the commonest values of its parts.

Every line is read; counts are over the whole text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from math import log
from operator import eq

from mcp_memory.shortterm.synopsis.diagnostics import PART, diagnostics_in
from mcp_memory.shortterm.synopsis.page import Focus, PageLine, clip, counted, one_line
from mcp_memory.shortterm.synopsis.signals import TROUBLE, Signals, join_lower, signals_in
from mcp_memory.shortterm.synopsis.statements import QUOTED, Statement

QUOTED_PART = re.compile(r'"[^"\n]{0,400}"(?!\s*:)|\'[^\'\n]{1,200}\'')
DIGITS = b"0123456789"
DIGIT = re.compile(r"[0-9]")
HEADING = re.compile(r"#{1,4} \S|\S.{0,60}:$|[A-Z][A-Z ]{4,60}$|\[[\w .-]+\]$|={3,} .* ={3,}$")
RULE = re.compile(r"[=~^*_#-]{3,}\s*$")
NUMBER = re.compile(  # the set first: `re` is quick to find one of a set
    r"[-\d](?<![\w.].)(?:(?<=\d)|\d)[\d,]*(?:\.\d+)?(?![\w.])"
)
LEVEL = re.compile(
    r"\b(FATAL|CRITICAL|SEVERE|PANIC|ERROR|ERR|WARN(?:ING)?|NOTICE|INFO|DEBUG|TRACE)\b"
    r"|(?<=\[)(emerg|alert|crit|error|warn|notice|info|debug)(?=\])|^([VDIWEF])(?=[ /]\S)"
)
LEVEL_NAMES = {
    **{"ERR": "ERROR", "WARNING": "WARN", "V": "VERBOSE", "D": "DEBUG", "I": "INFO", "W": "WARN", "E": "ERROR"},
    "F": "FATAL",
}
MOST_CANDIDATES = 5
"""Patterns with the same number of words and the same first word that a line is compared with; the commonest."""
ALIKE = 0.6
SAMPLE = 500
WORDS, FEWER_WORDS, MANY_FORMS = 12, 5, 3_000
"""Words at the beginning of a line by which it is compared; fewer in a text with very many different lines."""
MOST_READ = 40_000
"""Lines of a pattern whose parts are counted."""
COLUMNS = 8
"""Parts and numbers of a line that are counted or compared with those of the other lines."""
WIDTH = 120
FIRST, LAST = (2.0, 1.0, 0.5, 0.3), (2.5, 1.5, 1.0, 0.6)


@dataclass(slots=True)
class Pattern:
    """Lines that are alike: the words that they share, and the lines' indexes."""

    words: list[str]
    lines: list[int] = field(default_factory=list[int])


def patterns_in(lines: Sequence[str]) -> list[Pattern]:
    """Return the patterns of the lines; blank lines have none."""
    rough: dict[bytes, list[int]] = defaultdict(list)
    joined = "\n".join(lines).encode("utf-8", "surrogatepass")
    for at, line in enumerate(joined.translate(None, DIGITS).split(b"\n")):
        rough[line].append(at)
    exact: dict[str, list[int]] = defaultdict(list)
    form = cache(_form)
    most = WORDS if len(rough) <= MANY_FORMS else FEWER_WORDS
    for places in rough.values():
        line = lines[places[0]]
        if line and not line.isspace():
            exact[_key(line, most, form)].extend(places)
    found: list[Pattern] = []
    near: dict[tuple[int, str], list[Pattern]] = defaultdict(list)
    for key, places in sorted(exact.items(), key=lambda item: -len(item[1])):
        words = key.split(" ")
        candidates = near[len(words), key.lstrip("\0 ").partition(" ")[0]]
        need = ALIKE * len(words)
        for pattern in candidates:
            if sum(map(eq, pattern.words, words)) >= need:
                break
        else:
            pattern = Pattern(words)
            found.append(pattern)
            if len(candidates) < MOST_CANDIDATES:
                candidates.append(pattern)
        pattern.lines.extend(places)
    for pattern in found:
        pattern.lines.sort()
    return found


def _key(line: str, most: int, form: Callable[[str], str]) -> str:
    """Return the forms of the first `most` words of a line."""
    if '"' in line or "'" in line:
        line = QUOTED_PART.sub("\0", line)
    return " ".join(map(form, line.split(None, most)[:most]))


def _form(word: str) -> str:
    """Return a word with NUL for its parts."""
    if word.isdigit():
        return "\0"
    return word if word.isalpha() else PART.sub("\0", word) if "/" in word or DIGIT.search(word) else word


def statements_of_lines(lines: Sequence[PageLine], focus: Focus) -> list[Statement]:
    """Return statements about the lines of a text: counts over all of them, and single lines in their places."""
    texts = [line.text for line in lines]
    patterns = patterns_in(texts)
    total = sum(len(pattern.lines) for pattern in patterns)
    if not total:
        return []
    statements: list[Statement] = [*_counts(texts, patterns), *diagnostics_in(texts)]
    lowered = join_lower(texts)
    worths = _worths(texts, patterns, total, signals_in(lowered))
    for places, bonuses in ((_ends(texts, 4), FIRST), (_ends(texts, -4), LAST)):
        for at, bonus in zip(places, bonuses, strict=False):
            worths[at] = worths.get(at, 0.3) + bonus
    for at, near in focus.near(texts, lowered).items():
        worths[at] = worths.get(at, 0.3) + min(1.5, near / 2)
    counts = {pattern.lines[0]: _times(texts, pattern) for pattern in patterns if len(pattern.lines) > 1}
    group_of = {at: number for number, pattern in enumerate(patterns) for at in pattern.lines}
    for at in sorted(worths, key=lambda at: -worths[at])[:600]:
        times = f" ({counts[at]})" if at in counts else ""
        shown = f"{lines[at].name or lines[at].number}: {narrow(texts[at])}{times}"
        statements.append(Statement(shown, worths[at], QUOTED + lines[at].number, ("lines", group_of.get(at))))
    return statements


def _times(texts: Sequence[str], pattern: Pattern) -> str:
    """Return how often the first line of a pattern repeats, or how many lines are like it."""
    first, count = texts[pattern.lines[0]], len(pattern.lines)
    return f"×{count:,}" if all(texts[at] == first for at in pattern.lines) else f"{count:,} alike"


def has_levels(lines: Sequence[PageLine]) -> bool:
    """Return whether at least half of the lines have the level of a log."""
    return sum(1 for line in lines if LEVEL.search(line.text[:120])) >= 0.5 * max(1, len(lines))


def _ends(texts: Sequence[str], count: int) -> list[int]:
    order = range(len(texts)) if count > 0 else range(len(texts) - 1, -1, -1)
    found: list[int] = []
    for at in order:
        if any(char.isalnum() for char in texts[at][:300]):
            found.append(at)
            if len(found) == abs(count):
                break
    return found


def _worths(texts: Sequence[str], patterns: Sequence[Pattern], total: int, signals: Signals) -> dict[int, float]:
    """Return the worth of the lines that may be quoted, by index."""
    worths: dict[int, float] = {}
    troubled: Counter[str] = Counter()
    for pattern in patterns:
        if pattern.lines[0] in signals.trouble and (match := TROUBLE.search(texts[pattern.lines[0]])):
            troubled[match[0].lower()] += len(pattern.lines)
    for pattern in patterns:
        count = len(pattern.lines)
        rare = log(total / count) / log(total + 1) if total > 1 else 0.0
        first = pattern.lines[0]
        for at in {first, pattern.lines[-1], *_extremes(texts, pattern)}:
            line = texts[at].strip()
            worth = 0.3 + rare
            if at in signals.trouble and (match := TROUBLE.search(line)):
                often = troubled[match[0].lower()] or 1
                worth += 2.6 * (log(total / often) / log(total + 1) if total > 1 else 1.0)
            elif at in signals.warning:
                worth += 1.0 * (0.3 + rare)
            if at in signals.total and any(map(str.isdigit, line)):
                worth += 1.5 * (0.2 + rare)
            if HEADING.match(line) or (at + 1 < len(texts) and RULE.match(texts[at + 1])):
                worth += 0.6
            worths[at] = max(worths.get(at, 0.0), worth - 0.3 * (at != first))
    return worths


def _extremes(texts: Sequence[str], pattern: Pattern) -> set[int]:
    """Return the lines with the greatest number in a column of numbers."""
    if not 5 <= len(pattern.lines) <= MOST_READ:
        return set()
    greatest: set[int] = set()
    for values in _columns(NUMBER, texts, pattern.lines):
        lines = [at for at, value in zip(pattern.lines, values, strict=True) if value is not None]
        numbers = [float(value.replace(",", "")[:18]) for value in values if value is not None]
        if len(lines) >= 0.8 * len(pattern.lines) and len(set(numbers)) > 2:
            greatest.add(max(zip(numbers, lines, strict=True))[1])
    return greatest


def _counts(texts: Sequence[str], patterns: Sequence[Pattern]) -> Iterator[Statement]:
    """Yield counts of levels and codes over all lines, and of the values of the commonest patterns' parts."""
    levels: Counter[str] = Counter()
    step = 1 + len(texts) // SAMPLE
    leveled = sum(1 for text in texts[::step] if LEVEL.search(text[:120])) >= 0.05 * len(texts[::step])
    for pattern in patterns if leveled else ():
        if LEVEL.search(texts[pattern.lines[0]][:120]):
            for at in pattern.lines:
                if match := LEVEL.search(texts[at][:120]):
                    levels[LEVEL_NAMES.get(match[0], match[0].upper())] += 1
    if levels:
        yield Statement(f"levels: {counted(levels, len(levels))}", 3.0, 1)
    for pattern in sorted(patterns, key=lambda pattern: -len(pattern.lines))[:40]:
        if len(pattern.lines) >= 4:
            yield from _of_parts(texts, pattern)


def _of_parts(texts: Sequence[str], pattern: Pattern) -> Iterator[Statement]:
    if sum(1 for word in pattern.words if word.isalpha()) < 2:
        return
    count = len(pattern.lines)
    label = narrow(" ".join(pattern.words).replace("\0", "…"), 60)
    for column, values in enumerate(_columns(PART, texts, pattern.lines[:MOST_READ])):
        filled = [value for value in values if value is not None]
        if len(filled) < 0.7 * count:
            continue
        counts = Counter(filled)
        different = len(counts)
        if different < 2 or different > 0.34 * count or max(counts.values()) < 3:
            continue
        yield Statement(
            f"{count:,}× {label}: {counted(counts, 5, _unquoted)}",
            0.4 * log(count) * (1 - different / count),
            2 + column / 100,
            ("parts", id(pattern)),
        )


def _columns(part: re.Pattern[str], texts: Sequence[str], lines: Sequence[int]) -> Iterator[tuple[str | None, ...]]:
    """Yield the first parts of all lines, then their second parts, up to `COLUMNS`; None for lines with fewer parts."""
    return zip_longest(*[part.findall(texts[at])[:COLUMNS] for at in lines])


def _unquoted(value: str) -> str:
    return clip(value.strip('"'), 50)


def narrow(line: str, width: int = WIDTH) -> str:
    """Cut a line to `width` characters, around a word of trouble if that is far right."""
    line = one_line(line)
    if len(line) <= width:
        return line
    match = TROUBLE.search(line)
    if match and match.start() > 0.7 * width:
        start = max(0, match.start() - width // 3)
        return clip("…" + line[start:], width)
    return clip(line, width)
