"""Test runs: pytest, unittest and Django, jest and vitest, go test, cargo test.

Gives the counts and every failure's name with its one-line reason. Each runner is found by the line it ends with.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from mcp_memory.shortterm.synopsis.logs import find_traces
from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clip
from mcp_memory.shortterm.synopsis.preview import PreviewPart, SynopsisDraft, line_part, listed

COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?|todo|total|ignored)")
PYTEST_END = re.compile(
    r"(?:=+ )?(?=.*\d+ (?:passed|failed|errors?|skipped|deselected|warnings?)|no tests ran).* in [\d.:]+ ?s"
)
PYTEST_FAIL = re.compile(r"(?:FAILED|ERROR) (?P<name>\S+(?:\[.*?\])?)(?: - (?P<why>.*))?$")
PYTEST_TITLE = re.compile(r"_{3,} (?:ERROR (?:at \w+ of|collecting) )?(?P<name>\S.*?) _{3,}$")
PYTEST_WHY = re.compile(r"E {3,}(?P<why>\S.*)")
UNIT_RAN = re.compile(r"Ran (?P<ran>\d+) tests? in [\d.]+s")
UNIT_FAIL = re.compile(r"(?:FAIL|ERROR): (?P<name>\w\S*(?: \([\w.]+\))?.*)$")
UNIT_END = re.compile(r"(?:FAILED|OK)(?: \((?P<counts>[^)]*)\))?$")
JS_END = re.compile(r"\s*Tests:?\s+(?=.*\d+ (?:passed|failed|skipped|todo))")
JS_FAIL = re.compile(
    r"\s*(?:● (?P<jest>.+ › .+|(?!Console)\w.*)|FAIL +(?P<vitest>\S+(?: .*)? > .+?)"
    r"|[×✕✗] (?P<cross>.+?)(?: \(?\d+ ?ms\)?)?)$"
)
JS_WHY = re.compile(r"\s*(?P<why>(?:\w*Error|expect\(.*?\)|Expected|Received)\b.*)")
GO_FAIL = re.compile(r"\s*--- FAIL: (?P<name>\S+)")
GO_START = re.compile(r"=== RUN|\s*--- (?:FAIL|PASS)")
GO_END = re.compile(r"(?:ok|FAIL|---|\?) {0,3}\t(?P<name>\S+)")
GO_WHY = re.compile(r"\s+(?P<why>\S+\.go:\d+: .*)")
CARGO_END = re.compile(r"test result: (?:ok|FAILED)\. (?P<counts>.*)")
CARGO_FAIL = re.compile(r"test (?P<name>\S+)(?: - .*)? \.\.\. FAILED")
CARGO_BLOCK = re.compile(r"---- (?P<name>\S+).* stdout ----")
REASON_WITHIN = 60
END_WITHIN = 300
NEAR = 12
BANNER = re.compile(r"[=_-]{6}|(?:platform|rootdir|plugins|cachedir|configfile|collect\w+)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFailure:
    name: str
    why: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    runner: str
    total: int | None
    counts: str
    end: PageLine
    failures: Sequence[TestFailure]


def describe_tests(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """A result that ends like a test run."""
    readers: tuple[Callable[[Sequence[PageLine]], TestRun | None], ...] = (_cargo, _pytest, _go, _unittest, _javascript)
    run = next((run for read in readers if (run := read(page.lines))), None)
    if run is None:
        return None
    ranked = sorted(run.failures, key=lambda f: -focus.of(f"{f.name} {f.why}"))
    facts = [f"{run.counts} (line {run.end.number})"] if run.failures else []
    facts += [f"✗ {f.name}" + (f": {clip(f.why, 160)}" if f.why else "") + f" (line {f.at})" for f in ranked[:12]]
    if len(ranked) > 12:
        facts.append("also failed: " + listed([f.name for f in ranked[12:]], 30))
    picks = {run.end.number: 60.0} | {failure.at: 5.0 for failure in run.failures[:50]}
    for trace in find_traces(page.lines)[-6:]:
        picks.update({frame.at: 4.0 for frame in trace.own_frames[:2]})
        picks[trace.last] = 6.0
    return SynopsisDraft(
        kind="tests",
        summary=_summary(run),
        score=_score(run),
        facts=tuple(facts),
        picks=picks,
        pieces=tuple(_around(page.lines, sorted(picks) if run.failures else ())),
    )


def _around(lines: Sequence[PageLine], places: Sequence[int]) -> Iterator[PreviewPart]:
    """The lines that tell of a failure, up to `NEAR` from one that was picked, or all; without rules and banners."""
    for line in lines:
        at = bisect_left(places, line.number - NEAR)
        near = not places or (at < len(places) and places[at] <= line.number + NEAR)
        if near and not BANNER.match(line.text):
            yield line_part(line)


def _summary(run: TestRun) -> str:
    """Counts, then as many failures with their reasons as there is room for."""
    if not run.failures:
        return f"{run.runner}: {run.counts}"
    share = f"{len(run.failures)} of {run.total}" if run.total else f"{len(run.failures)}"
    text = f"{run.runner}: {share} failed: "
    told = [_short(f.name) + (f" ({clip(f.why, 60)})" if f.why else "") for f in run.failures[:8]]
    kept = [one for at, one in enumerate(told) if at == 0 or len(text) + len("; ".join(told[: at + 1])) <= 185]
    more = len(run.failures) - len(kept)
    return text + "; ".join(kept) + (f"; {more} more" if more else "")


def _short(name: str) -> str:
    """Return the distinctive part of a test's name."""
    return re.split(r"::| › | > ", name)[-1].split(" (")[0]


def _score(run: TestRun) -> int:
    return 9 if not run.failures else 7 if len(run.failures) <= 3 else 5


def _last(lines: Sequence[PageLine], pattern: re.Pattern[str]) -> tuple[int, re.Match[str]] | None:
    for at in range(len(lines) - 1, max(-1, len(lines) - END_WITHIN), -1):
        if found := pattern.match(lines[at].text):
            return at, found
    return None


def _numbers(texts: Iterable[str]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for text in texts:
        for number, what in COUNT.findall(text):
            key = what.rstrip("s") if what in ("errors", "warnings") else what
            sums[key] = sums.get(key, 0) + int(number[:9])
    return sums


def _told(sums: dict[str, int]) -> str:
    order = ("failed", "error", "passed", "skipped", "ignored", "xfailed", "xpassed", "warning")
    return (
        ", ".join(f"{sums[key]} {key}{'s' if key == 'warning' else ''}" for key in order if sums.get(key))
        or "no tests ran"
    )


def _reason(lines: Sequence[PageLine], start: int, pattern: re.Pattern[str], stop: re.Pattern[str]) -> str:
    for line in lines[start + 1 : start + 1 + REASON_WITHIN]:
        if stop.match(line.text):
            break
        if found := pattern.match(line.text):
            return found["why"].strip()
    return ""


def _pytest(lines: Sequence[PageLine]) -> TestRun | None:
    end = _last(lines, PYTEST_END)
    if not end or (not COUNT.search(end[1][0]) and "no tests ran" not in end[1][0]):
        return None
    titles: dict[str, tuple[int, str]] = {}
    for at, line in enumerate(lines):
        if line.text.startswith("___") and (title := PYTEST_TITLE.match(line.text)):
            titles[title["name"]] = (line.number, _reason(lines, at, PYTEST_WHY, PYTEST_TITLE))
    failures: dict[str, TestFailure] = {}
    for line in lines:
        if line.text.startswith(("FAILED ", "ERROR ")) and (found := PYTEST_FAIL.match(line.text)):
            at, why = titles.get(found["name"].split("::", 1)[-1].replace("::", "."), (line.number, ""))
            failures[found["name"]] = TestFailure(name=found["name"], why=found["why"] or why, at=at)
    if not failures:  # run without the short summary
        failures = {name: TestFailure(name=name, why=why, at=at) for name, (at, why) in titles.items()}
    sums = _numbers([end[1][0]])
    total = sum(sums.get(key, 0) for key in ("failed", "error", "passed", "skipped", "xfailed", "xpassed"))
    return TestRun(runner="pytest", total=total, counts=_told(sums), end=lines[end[0]], failures=[*failures.values()])


def _unittest(lines: Sequence[PageLine]) -> TestRun | None:
    ran = _last(lines, UNIT_RAN)
    if not ran:
        return None
    traces = find_traces(lines)
    failures: list[TestFailure] = []
    for line in lines[: ran[0]]:
        if line.text.startswith(("FAIL: ", "ERROR: ")) and (found := UNIT_FAIL.match(line.text)):
            trace = next((t for t in traces if t.first > line.number), None)
            failures.append(TestFailure(name=found["name"], why=trace.headline if trace else "", at=line.number))
    verdict = next((found for line in lines[ran[0] :] if (found := UNIT_END.match(line.text))), None)
    counts = f"{ran[1]['ran']} run" + (f", {verdict[0]}" if verdict else "")
    return TestRun(runner="unittest", total=int(ran[1]["ran"]), counts=counts, end=lines[ran[0]], failures=failures)


def _javascript(lines: Sequence[PageLine]) -> TestRun | None:
    end = _last(lines, JS_END)
    if not end:
        return None
    failures: dict[str, TestFailure] = {}
    for at, line in enumerate(lines[: end[0]]):
        found = JS_FAIL.match(line.text) if any(mark in line.text for mark in ("●", "FAIL", "×", "✕", "✗")) else None
        if found and (name := (found["jest"] or found["vitest"] or "").strip()) and name not in failures:
            failures[name] = TestFailure(name=name, why=_reason(lines, at, JS_WHY, JS_FAIL), at=line.number)
    text = lines[end[0]].text
    sums = _numbers([text])
    total = sums.pop("total", 0) or sum(sums.values())
    runner = "vitest" if "Tests:" not in text else "jest"
    return TestRun(runner=runner, total=total, counts=_told(sums), end=lines[end[0]], failures=[*failures.values()])


def _go(lines: Sequence[PageLine]) -> TestRun | None:
    end = _last(lines, GO_END)
    if not end:
        return None
    failures = [
        TestFailure(name=found["name"], why=_go_reason(lines, at), at=line.number)
        for at, line in enumerate(lines)
        if "--- FAIL" in line.text and (found := GO_FAIL.match(line.text))
    ]
    packages = [line.text.split("\t") for line in lines if GO_END.match(line.text)]
    bad = [parts[1] for parts in packages if parts[0].strip() == "FAIL"]
    passed = sum(1 for line in lines if line.text.lstrip().startswith("--- PASS"))
    counts = f"{len(packages) - len(bad)} of {len(packages)} packages ok"
    counts += f", failed: {listed(bad, 6)}" if bad else ""
    total = passed + len(failures) if passed else None
    return TestRun(runner="go test", total=total, counts=counts, end=lines[end[0]], failures=failures)


def _go_reason(lines: Sequence[PageLine], at: int) -> str:
    """What the test said: below its verdict, or with `-v` above it."""
    if why := _reason(lines, at, GO_WHY, GO_START):
        return why
    above = reversed(lines[max(0, at - REASON_WITHIN) : at])
    said = (line.text for line in takewhile(lambda line: not GO_START.match(line.text), above))
    return next((found["why"] for text in said if (found := GO_WHY.match(text))), "")


def _cargo(lines: Sequence[PageLine]) -> TestRun | None:
    end = _last(lines, CARGO_END)
    if not end:
        return None
    panics = {t.first: t for t in find_traces(lines)}
    blocks = [(line.number, m["name"]) for line in lines if (m := CARGO_BLOCK.match(line.text))]
    failures: list[TestFailure] = []
    for line in lines:
        if line.text.startswith("test ") and (found := CARGO_FAIL.match(line.text)):
            start = next((n for n, name in blocks if name == found["name"]), line.number)
            panic = next((t for n, t in panics.items() if n > start), None) if blocks else None
            why = f"{panic.message} at {panic.frames[0]}" if panic else ""
            failures.append(TestFailure(name=found["name"], why=why, at=start))
    sums = _numbers(m["counts"] for line in lines if (m := CARGO_END.match(line.text)))
    total = sum(sums.get(key, 0) for key in ("failed", "passed", "ignored"))
    return TestRun(runner="cargo test", total=total, counts=_told(sums), end=lines[end[0]], failures=failures)
