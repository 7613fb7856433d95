"""Logs and stack traces.

Logs: lines of each level, the time span, the first and last error, repeated messages. Lines are folded by their
template: the same words with other numbers, ids and quoted parts are one message.

Stack traces of Python, JavaScript, Java, Go and Rust: the exception, and its place in the user's own code. Frames in
installed packages, the standard library and a runtime are skipped as long as others remain. Logs and test runs use them
too. One pass over the lines of the page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clip
from mcp_memory.shortterm.synopsis.preview import SynopsisDraft, line_part

FOREIGN = re.compile(
    r"site-packages|dist-packages|/lib/python\d|node_modules|node:|<frozen|<string>|/usr/(?:local/)?(?:lib|go)/"
    r"|/rustc/|\.cargo/registry|^(?:java|javax|jdk|sun|kotlin|scala|org\.junit|org\.springframework)\."
    r"|importlib/|/runtime/(?:panic|proc|asm)"
)
PY_START = re.compile(r"(?P<pad>[ |+]*)Traceback \(most recent call last\):")
PY_FRAME = re.compile(r'\s*File "(?P<path>[^"]+)", line (?P<line>\d+)(?:, in (?P<name>\S+))?')
RAISED = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
JS_RAISED = re.compile(
    r"(?:Uncaught |\[cause\]: )?(?P<type>[A-Z]\w*(?:Error|Exception)|Error)(?: \[\w+\])?: (?P<message>.*)"
)
JS_FRAME = re.compile(
    r"\s+at (?:async )?(?:(?P<name>[^()\s]+(?: \[as \w+\])?) )?\(?(?P<path>[^()\s]+?):(?P<line>\d+):\d+\)?$"
)
JAVA_RAISED = re.compile(
    r'(?:Exception in thread "[^"]*" |Caused by: )?(?P<type>[a-z]\w*(?:\.[\w$]+)+(?:Exception|Error)\w*)'
    r"(?:: (?P<message>.*))?$"
)
JAVA_FRAME = re.compile(r"\s+at (?P<name>[\w.$<>/]+)\((?P<path>[\w.]+):(?P<line>\d+)\)")
GO_RAISED = re.compile(r"(?P<type>panic|fatal error): (?P<message>.*)")
GO_FRAME = re.compile(r"\t(?P<path>\S+\.go):(?P<line>\d+)")
RUST_RAISED = re.compile(
    r"thread '[^']*' (?:\(\d+\) )?(?P<type>panicked) at (?:'(?P<message>.*)', )?(?P<path>\S+?):(?P<line>\d+):\d+:?$"
)
RUST_FRAME = re.compile(r"\s+at (?P<path>\S+\.rs):(?P<line>\d+)(?::\d+)?$")
LONGEST_TRACE = 400
HEADLINE, FRAMES = 120, 4
FRAME = re.compile(r'\s*(?:File "|Traceback \(|During handling of|The above exception was|[~^ ]+$|at \S+ ?\()')
"""Lines that say no more than the facts do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    path: str
    line: str
    name: str
    at: int
    """Line of the raw text."""

    @property
    def own(self) -> bool:
        return not FOREIGN.search(self.path) and not FOREIGN.search(self.name)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" + (f" in {self.name}" if self.name and self.name != "<module>" else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """`frames` are innermost first; `first` and `last` are lines of the raw text."""

    language: str
    exception: str
    message: str
    frames: tuple[Frame, ...]
    first: int
    last: int

    @property
    def headline(self) -> str:
        return f"{self.exception}: {self.message}" if self.message else self.exception

    @property
    def own_frames(self) -> tuple[Frame, ...]:
        return tuple(frame for frame in self.frames if frame.own) or self.frames


def find_traces(lines: Sequence[PageLine]) -> list[Trace]:
    """All traces in order. Chained exceptions are one trace each."""
    found: list[Trace] = []
    at = 0
    while at < len(lines):
        text = lines[at].text
        trace, after = None, at + 1
        if "Traceback" in text and (start := PY_START.search(text)):
            trace, after = _python(lines, at, start["pad"])
        elif "rror" in text or "xception" in text or text.startswith(("panic", "fatal", "thread '")):
            trace, after = _others(lines, at)
        if trace:
            found.append(trace)
        at = after
    return found


def _python(lines: Sequence[PageLine], start: int, pad: str) -> tuple[Trace | None, int]:
    frames: list[Frame] = []
    end = min(len(lines), start + LONGEST_TRACE)
    for at in range(start + 1, end):
        text = lines[at].text.removeprefix(pad)
        if frame := PY_FRAME.match(text):
            frames.append(_frame(frame, lines[at].number))
        elif text and not text[0].isspace() and (raised := RAISED.match(text)):
            trace = Trace(
                language="Python", exception=raised["type"], message=(raised["message"] or "").strip(),
                frames=tuple(reversed(frames)), first=lines[start].number, last=lines[at].number,
            )  # fmt: skip
            return trace, at + 1
        elif text.strip() and not text[0].isspace():
            return None, at
    return None, end


def _others(lines: Sequence[PageLine], start: int) -> tuple[Trace | None, int]:
    """A line that names an error, followed by frames of the same language."""
    text = lines[start].text.lstrip()
    for language, raised_by, frame_of in (
        ("Java", JAVA_RAISED, JAVA_FRAME),
        ("JavaScript", JS_RAISED, JS_FRAME),
        ("Go", GO_RAISED, GO_FRAME),
        ("Rust", RUST_RAISED, RUST_FRAME),
    ):
        raised = raised_by.match(text)
        if not raised:
            continue
        patience = 8 if language in ("Go", "Rust") else 3
        frames, last = _frames(lines, start, frame_of, until=raised_by, patience=patience)
        message = raised["message"] or ""
        if language == "Rust":
            frames.insert(0, _frame(raised, lines[start].number))
            message = message or _next_text(lines, start)
        if frames:
            trace = Trace(
                language=language, exception=raised["type"], message=message.strip(), frames=tuple(frames),
                first=lines[start].number, last=lines[last].number,
            )  # fmt: skip
            return trace, last + 1
    return None, start + 1


def _frames(
    lines: Sequence[PageLine], start: int, pattern: re.Pattern[str], *, until: re.Pattern[str], patience: int
) -> tuple[list[Frame], int]:
    """Frames after a line, until the next exception or until `patience` lines in a row are none."""
    frames: list[Frame] = []
    last, missed = start, 0
    for at in range(start + 1, min(len(lines), start + LONGEST_TRACE)):
        if frame := pattern.match(lines[at].text):
            frames.append(_frame(frame, lines[at].number))
            last, missed = at, 0
        else:
            missed += 1
            if missed > patience or until.match(lines[at].text.lstrip()):
                break
    return frames, last


def _frame(found: re.Match[str], at: int) -> Frame:
    groups = found.groupdict()
    return Frame(path=groups["path"], line=groups["line"], name=groups.get("name") or "", at=at)


def _next_text(lines: Sequence[PageLine], start: int) -> str:
    return lines[start + 1].text if start + 1 < len(lines) else ""


def describe_trace(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """A result that is, or ends in, a stack trace."""
    del focus
    traces = find_traces(page.lines)
    if not traces:
        return None
    covered = sum(trace.last - trace.first + 1 for trace in traces)
    ends_in_it = page.lines[-1].number - traces[-1].last <= 15
    if covered < 0.25 * len(page.lines) and not (ends_in_it and covered >= 3):
        return None
    last = traces[-1]
    own = last.own_frames
    places = str(own[0]) + (f", called from {own[-1]}" if len(own) > 1 else "") if own else ""
    summary = f"{clip(last.headline, HEADLINE)} ({places})" if places else last.headline
    facts = [f"{last.headline} (line {last.last})"] if len(last.headline) > HEADLINE else []
    facts += ["at " + " ← ".join(str(frame) for frame in last.own_frames[:FRAMES])] if len(own) > 1 else []
    facts += [
        f"before it: {clip(cause.headline, 200)}" + "".join(f", {frame}" for frame in cause.own_frames[:2])
        for cause in reversed(traces[:-1][-4:])
    ]
    picks: dict[int, float] = {}
    for trace in traces[-3:]:
        after = int(trace.language == "Python")  # the source of a frame stands below it
        picks.update({frame.at + after: 4.0 for frame in trace.own_frames[:4]})
        picks[trace.last if trace.language == "Python" else trace.first] = 40.0
    return SynopsisDraft(
        kind="traceback",
        summary=summary,
        score=8,
        facts=tuple(facts),
        picks=picks,
        pieces=tuple(line_part(line) for line in page.lines if not FRAME.match(line.text)),
    )


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


def describe_log(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """At least half of the sampled lines begin with a time or a level."""
    if len(page.sample) < 3:
        return None
    begins = sum(1 for line in page.sample if TIME.match(line.text.lstrip()) or START.match(line.text) or _access(line))
    if begins < 0.5 * len(page.sample):
        return None
    levels: Counter[str] = Counter()
    templates: Counter[str] = Counter()
    first_of: dict[str, PageLine] = {}
    by_level: dict[str, list[PageLine]] = {}
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
    return SynopsisDraft(
        kind="log",
        summary=_summary(page, levels, errors, traces),
        score=4,
        facts=tuple(facts),
        picks=_picks(by_level, traces, templates, first_of),
    )


def _access(line: PageLine) -> bool:
    return ACCESS.search(line.text) is not None


def _level(line: PageLine) -> str:
    if found := LEVEL.search(line.text, 0, 90):
        name = found[1].upper()
        return NAMES.get(name, name)
    if found := ACCESS.search(line.text):
        return f"{found['status'][0]}xx"
    return ""


def _message(line: PageLine) -> str:
    """A log line without its time and level."""
    text = TIME.sub("", line.text, count=1).strip(" ])\t")
    found = LEVEL.search(text, 0, 60)
    return (text[found.end() :] if found else text).strip(" ]):|-\t")


def _times(page: ResultPage) -> tuple[str, str] | None:
    found = [m["when"] for line in page.lines if (m := TIME.search(line.text[:60]))]
    return (found[0], found[-1]) if found else None


def _overview(page: ResultPage, levels: Counter[str]) -> list[str]:
    told = ", ".join(f"{n:,} {level}" for level, n in levels.most_common(8))
    times = _times(page)
    return [f"levels: {told}" if told else "", f"from {times[0]} to {times[1]}" if times else ""]


def _errors(
    errors: list[PageLine], traces: list[Trace], templates: Counter[str], first_of: dict[str, PageLine]
) -> list[str]:
    """List each different error once, the commonest first, with its line and count; then the exceptions."""
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


def _repeated(templates: Counter[str], first_of: dict[str, PageLine], focus: Focus) -> list[str]:
    repeated = [(t, n) for t, n in templates.most_common(6) if n > 2]
    repeated.sort(key=lambda item: -focus.of(item[0]))
    return [f"repeated ×{n:,}: {clip(_message(first_of[t]), 110)}" for t, n in repeated[:4]]


def _picks(
    by_level: dict[str, list[PageLine]], traces: list[Trace], templates: Counter[str], first_of: dict[str, PageLine]
) -> dict[int, float]:
    """Weigh errors and unusual lines."""
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


def _summary(page: ResultPage, levels: Counter[str], errors: list[PageLine], traces: list[Trace]) -> str:
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
