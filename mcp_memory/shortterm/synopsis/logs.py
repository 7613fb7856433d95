"""Logs: how many lines of each level, from when to when, the first and last error, and what repeats.

Lines are folded by their template: the same words with other numbers, ids and quoted parts are one message.
"""

from __future__ import annotations

import re
from collections import Counter

from mcp_memory.shortterm.synopsis.draft import Draft
from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.page import Line, Page, clip
from mcp_memory.shortterm.synopsis.traces import Trace, find_traces

__all__ = ["describe_log"]

TIME = re.compile(
    r"[\[(]?(?P<when>\d{4}[-/]\d\d[-/]\d\d[T ]?\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d+ \d\d:\d\d:\d\d|\d\d:\d\d:\d\d(?:[.,]\d+)?)"
)
LEVEL = re.compile(r"\b(FATAL|CRITICAL|SEVERE|PANIC|ERROR|ERR|WARN(?:ING)?|NOTICE|INFO|DEBUG|TRACE|VERBOSE)\b", re.I)
START = re.compile(r"(?:\S{0,40} )?[\[(]?(?:FATAL|CRITICAL|ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE)\b[\]):| ]")
ACCESS = re.compile(r'"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) \S+[^"]*" (?P<status>\d{3})\b')
CHANGING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b|\d[\d.,:]*|\"[^\"]{0,200}\"|'[^']{0,200}'", re.I)
NAMES = {"ERR": "ERROR", "WARNING": "WARN", "CRITICAL": "FATAL", "SEVERE": "FATAL", "PANIC": "FATAL"}
BAD = ("FATAL", "ERROR")


def describe_log(page: Page, focus: Focus) -> Draft | None:
    """At least half of the sampled lines begin with a time or a level."""
    if len(page.sample) < 3:
        return None
    begins = sum(1 for line in page.sample if TIME.match(line.text.lstrip()) or START.match(line.text) or _access(line))
    if begins < 0.5 * len(page.sample):
        return None
    levels: Counter[str] = Counter()
    templates: Counter[str] = Counter()
    first_of: dict[str, Line] = {}
    by_level: dict[str, list[Line]] = {}
    for line in page.lines:
        if not line.text.strip():
            continue
        if level := _level(line):
            levels[level] += 1
            by_level.setdefault(level, []).append(line)
        template = CHANGING.sub("#", line.text[:240])
        templates[template] += 1
        first_of.setdefault(template, line)
    traces = find_traces(page.lines)
    errors = by_level.get("FATAL", []) + by_level.get("ERROR", [])
    facts = [*_overview(page, levels), *_errors(errors, traces, templates, first_of)]
    facts += _repeated(templates, first_of, focus)
    return Draft(
        kind="log",
        summary=_summary(page, levels, errors, traces),
        score=4,
        facts=tuple(facts),
        picks=_picks(by_level, traces, templates, first_of),
    )


def _access(line: Line) -> bool:
    return ACCESS.search(line.text) is not None


def _level(line: Line) -> str:
    if found := LEVEL.search(line.text, 0, 90):
        name = found[1].upper()
        return NAMES.get(name, name)
    if found := ACCESS.search(line.text):
        return f"{found['status'][0]}xx"
    return ""


def _message(line: Line) -> str:
    """A log line without its time and level."""
    text = TIME.sub("", line.text, count=1).strip(" ])\t")
    found = LEVEL.search(text, 0, 60)
    return (text[found.end() :] if found else text).strip(" ]):|-\t")


def _times(page: Page) -> tuple[str, str] | None:
    found = [m["when"] for line in page.lines if (m := TIME.search(line.text[:60]))]
    return (found[0], found[-1]) if found else None


def _overview(page: Page, levels: Counter[str]) -> list[str]:
    told = ", ".join(f"{n:,} {level}" for level, n in levels.most_common(8))
    times = _times(page)
    return [f"levels: {told}" if told else "", f"from {times[0]} to {times[1]}" if times else ""]


def _errors(errors: list[Line], traces: list[Trace], templates: Counter[str], first_of: dict[str, Line]) -> list[str]:
    """Each different error once, the commonest first, with its line and count; then what was raised."""
    kinds = {CHANGING.sub("#", line.text[:240]) for line in errors}
    ranked = sorted(kinds, key=lambda k: (-templates[k], first_of[k].number))
    facts = [
        f"error ×{templates[kind]:,}, first at line {first_of[kind].number}: {clip(_message(first_of[kind]), 160)}"
        for kind in ranked[:5]
    ]
    raised = {trace.headline: trace for trace in traces}
    facts += [
        f"raised: {clip(headline, 140)}" + "".join(f" at {frame}" for frame in trace.own_frames[:2])
        for headline, trace in list(raised.items())[-3:]
    ]
    return facts


def _repeated(templates: Counter[str], first_of: dict[str, Line], focus: Focus) -> list[str]:
    repeated = [(t, n) for t, n in templates.most_common(6) if n > 2]
    repeated.sort(key=lambda item: -focus.of(item[0]))
    return [f"repeated ×{n:,}: {clip(_message(first_of[t]), 110)}" for t, n in repeated[:4]]


def _picks(
    by_level: dict[str, list[Line]], traces: list[Trace], templates: Counter[str], first_of: dict[str, Line]
) -> dict[int, float]:
    """Errors and what is unlike the rest."""
    picks = {line.number: 1.0 / n for t, n in templates.items() if n <= 3 for line in (first_of[t],)}
    for level, weight in (("WARN", 2.0), ("5xx", 3.0), ("4xx", 1.5), ("ERROR", 4.0), ("FATAL", 6.0)):
        seen: set[str] = set()
        for line in by_level.get(level, []):
            template = CHANGING.sub("#", line.text[:240])
            if template not in seen:
                picks[line.number] = weight
                seen.add(template)
        for line in by_level.get(level, [])[-1:]:
            picks[line.number] = weight + 1
    picks.update({trace.last: 5.0 for trace in traces[-3:]})
    return picks


def _summary(page: Page, levels: Counter[str], errors: list[Line], traces: list[Trace]) -> str:
    many = f"log of {page.total_lines:,} lines"
    times = _times(page)
    span = f", {times[0][:19]} to {times[1][:19]}" if times else ""
    counts = ", ".join(f"{levels[k]:,} {k}" for k in ("FATAL", "ERROR", "WARN", "5xx", "4xx") if levels[k])
    if errors:
        last = f"; last error (line {errors[-1].number}): {clip(_message(errors[-1]), 80)}"
    elif traces:
        last = f"; raised {clip(traces[-1].headline, 80)}"
    else:
        last = "" if counts else ", no errors"
    return f"{many}{span}" + (f": {counts}" if counts else "") + last
