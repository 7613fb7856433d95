"""Test runs: pytest, unittest and Django, jest and vitest, go test, cargo test.

A run is described by its counts and each failure's name with a one-line reason. Runners are recognised by the line that
ends their output.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from mcp_memory.language import patterns_of
from mcp_memory.shortterm.synopsis.diagnostics import PART
from mcp_memory.shortterm.synopsis.line_patterns import statements_of_lines
from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clip, first_items
from mcp_memory.shortterm.synopsis.preview import SynopsisDraft
from mcp_memory.shortterm.synopsis.stack_traces import find_traces
from mcp_memory.shortterm.synopsis.statements import statements_of_facts, statements_of_picks

COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?|todo|total|ignored)")
FAILED = re.compile(r"(?<!expected )\b(?:failures|errors)=(\d{1,9})")
LINES = {head: re.compile(source) for head, source in patterns_of("mcp_memory.shortterm.synopsis", "test_runners.txt")}
"""The lines of each runner, read from `test_runners.txt`."""
REASON_WITHIN = 60
END_WITHIN = 300
BANNER = re.compile(r"[=_-]{6}|(?:platform|rootdir|plugins|cachedir|configfile|collect\w+)\b")


@dataclass(frozen=True, slots=True)
class TestFailure:
    """A failed test: its name, the reason, and the number of a line about it."""

    name: str
    why: str
    at: int


@dataclass(frozen=True, slots=True)
class TestRun:
    """A test run. `counts` is a text such as `2 failed, 40 passed`, `end` the line by which it was recognised.

    `failed` is the run's own count: the output may name fewer failures, because it was cut.
    """

    runner: str
    total: int | None
    failed: int
    counts: str
    end: PageLine
    failures: Sequence[TestFailure]


def describe_tests(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe a result that ends like a test run."""
    readers: tuple[Callable[[Sequence[PageLine]], TestRun | None], ...] = (_cargo, _pytest, _go, _unittest, _javascript)
    run = next((run for read in readers if (run := read(page.lines))), None)
    if run is None:
        return None
    facts = [f"{run.counts} (line {run.end.number})"] if run.failed else []
    facts += _by_reason(focus.ranked(run.failures, lambda failure: f"{failure.name} {failure.why}"))
    picks = {failure.at: 5.0 for failure in run.failures[:50]}
    for trace in find_traces(page.lines)[-6:]:
        picks |= {frame.at: 4.0 for frame in trace.own_frames[:2]} | {trace.last: 6.0}
    lines = [line for line in page.lines if not BANNER.match(line.text)]
    return SynopsisDraft(
        kind="tests",
        summary=_summary(run),
        score=9 if not run.failed else 7 if run.failed <= 3 else 5,
        statements=[
            *statements_of_facts(facts),
            *statements_of_picks(lines, picks, focus),
            *statements_of_lines(lines, focus),
        ],
    )


def _by_reason(failures: Sequence[TestFailure]) -> list[str]:
    """Return a line for each reason, with the tests that failed for it."""
    reasons: dict[str, list[TestFailure]] = {}
    for failure in failures:
        reasons.setdefault(PART.sub("…", failure.why) or failure.name, []).append(failure)
    facts: list[str] = []
    for alike in reasons.values():
        first = alike[0]
        names = [_short(failure.name) for failure in alike] if len(alike) > 1 else [first.name]
        example = "e.g. " * any(failure.why != first.why for failure in alike)
        why = f": {example}{clip(first.why, 120)}" if first.why else ""
        facts.append(f"✗ {first_items(names, 4)}{why} (line {first.at})")
    return facts


def _summary(run: TestRun) -> str:
    """Return the counts, then as many failures with their reasons as fit."""
    if not run.failures:
        return f"{run.runner}: {run.counts}"
    text = f"{run.runner}: {run.failed:,}{f' of {run.total:,}' if run.total else ''} failed: "
    failures = [_short(f.name) + (f" ({clip(f.why, 60)})" if f.why else "") for f in run.failures[:8]]
    while len(failures) > 1 and len(text) + len("; ".join(failures)) > 185:
        failures.pop()
    more = run.failed - len(failures)
    return text + "; ".join(failures) + (f"; {more:,} more" if more > 0 else "")


def _short(name: str) -> str:
    """Return the distinctive part of a test's name."""
    return re.split(r"::| › | > ", name)[-1].split(" (")[0]


def _last(lines: Sequence[PageLine], kind: str) -> tuple[int, re.Match[str]] | None:
    for at in range(len(lines) - 1, max(-1, len(lines) - END_WITHIN), -1):
        if match := LINES[kind].match(lines[at].text):
            return at, match
    return None


def _matching(lines: Sequence[PageLine], kind: str, *marks: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the index and the match of each line of a kind. Lines without any of `marks` are skipped, for speed."""
    for at, line in enumerate(lines):
        if any(mark in line.text for mark in marks) and (match := LINES[kind].match(line.text)):
            yield at, match


def _numbers(texts: Iterable[str]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for text in texts:
        for number, what in COUNT.findall(text):
            sums[what.rstrip("s") if what in ("errors", "warnings") else what] += int(number[:9])
    return sums


def _total(sums: Counter[str], *keys: str) -> int:
    return sum(sums[key] for key in keys)


def _counts_text(sums: Counter[str]) -> str:
    order = ("failed", "error", "passed", "skipped", "ignored", "xfailed", "xpassed", "warning")
    counts = [f"{sums[key]} {key}{'s' * (key == 'warning')}" for key in order if sums[key]]
    return ", ".join(counts) or "no tests ran"


def _reason(lines: Sequence[PageLine], start: int, kind: str, stop: str) -> str:
    for line in lines[start + 1 : start + 1 + REASON_WITHIN]:
        if LINES[stop].match(line.text):
            break
        if match := LINES[kind].match(line.text):
            return match["why"].strip()
    return ""


def _pytest(lines: Sequence[PageLine]) -> TestRun | None:
    end = _last(lines, "pytest end")
    if not end or (not COUNT.search(end[1][0]) and "no tests ran" not in end[1][0]):
        return None
    titles = {
        title["name"]: (lines[at].number, _reason(lines, at, "pytest reason", "pytest title"))
        for at, title in _matching(lines, "pytest title", "___")
    }
    failures: dict[str, TestFailure] = {}
    for place, match in _matching(lines, "pytest failure", "FAILED ", "ERROR "):
        name = match["name"]
        at, why = titles.get(name.split("::", 1)[-1].replace("::", "."), (lines[place].number, ""))
        failures[name] = TestFailure(name, match["why"] or why, at)
    if not failures:  # run without the short summary
        failures = {name: TestFailure(name, why, at) for name, (at, why) in titles.items()}
    sums = _numbers([end[1][0]])
    total = _total(sums, "failed", "error", "passed", "skipped", "xfailed", "xpassed")
    failed = _total(sums, "failed", "error")
    return TestRun("pytest", total, failed, _counts_text(sums), lines[end[0]], [*failures.values()])


def _unittest(lines: Sequence[PageLine]) -> TestRun | None:
    end = _last(lines, "unittest end")
    if not end:
        return None
    at, ran = end
    traces = find_traces(lines)
    failures: list[TestFailure] = []
    for place, match in _matching(lines[:at], "unittest failure", "FAIL: ", "ERROR: "):
        why = next((trace.headline for trace in traces if trace.first > lines[place].number), "")
        failures.append(TestFailure(match["name"], why, lines[place].number))
    verdict = next((match[0] for line in lines[at:] if (match := LINES["unittest verdict"].match(line.text))), "")
    failed = sum(map(int, FAILED.findall(verdict))) or len(failures)
    counts = ", ".join(filter(None, [f"{ran['ran']} run", verdict]))
    return TestRun("unittest", int(ran["ran"]), failed, counts, lines[at], failures)


def _javascript(lines: Sequence[PageLine]) -> TestRun | None:
    end = _last(lines, "javascript end")
    if not end:
        return None
    failures: dict[str, TestFailure] = {}
    for at, match in _matching(lines[: end[0]], "javascript failure", *"●×✕✗", "FAIL"):
        if (name := (match["jest"] or match["vitest"] or "").strip()) and name not in failures:
            why = _reason(lines, at, "javascript reason", "javascript failure")
            failures[name] = TestFailure(name, why, lines[at].number)
    text = lines[end[0]].text
    sums = _numbers([text])
    total = sums.pop("total", 0) or sums.total()
    runner = "jest" if "Tests:" in text else "vitest"
    return TestRun(runner, total, sums["failed"], _counts_text(sums), lines[end[0]], [*failures.values()])


def _go(lines: Sequence[PageLine]) -> TestRun | None:
    end = _last(lines, "go end")
    if not end:
        return None
    failures = [
        TestFailure(match["name"], _go_reason(lines, at), lines[at].number)
        for at, match in _matching(lines, "go failure", "--- FAIL")
    ]
    packages = [lines[at].text.split("\t") for at, _ in _matching(lines, "go end", "\t")]
    bad = [parts[1] for parts in packages if parts[0].strip() == "FAIL"]
    passed = sum(1 for line in lines if line.text.lstrip().startswith("--- PASS"))
    counts = f"{len(packages) - len(bad)} of {len(packages)} packages ok"
    counts += f", failed: {first_items(bad, 6)}" if bad else ""
    total = passed + len(failures) if passed else None
    return TestRun("go test", total, len(failures) or len(bad), counts, lines[end[0]], failures)


def _go_reason(lines: Sequence[PageLine], at: int) -> str:
    """Return the output of the test: below its verdict, or above it with `-v`."""
    above = lines[max(0, at - REASON_WITHIN) : at][::-1]
    return _reason(lines, at, "go reason", "go start") or _reason([lines[at], *above], 0, "go reason", "go start")


def _cargo(lines: Sequence[PageLine]) -> TestRun | None:
    end = _last(lines, "cargo end")
    if not end:
        return None
    panics = find_traces(lines)
    blocks = [(lines[at].number, match["name"]) for at, match in _matching(lines, "cargo block", "---- ")]
    failures: list[TestFailure] = []
    for at, match in _matching(lines, "cargo failure", "test "):
        start = next((number for number, name in blocks if name == match["name"]), lines[at].number)
        panic = next((trace for trace in panics if trace.first > start), None) if blocks else None
        why = f"{panic.message} at {panic.frames[0]}" if panic else ""
        failures.append(TestFailure(match["name"], why, start))
    sums = _numbers(match["counts"] for _, match in _matching(lines, "cargo end", "test result: "))
    total = _total(sums, "failed", "passed", "ignored")
    return TestRun("cargo test", total, sums["failed"], _counts_text(sums), lines[end[0]], failures)
