"""Logs and stack traces.

Logs: lines of each level, the time span, the first and last error, repeated messages. Lines are folded by their
template: the same words with other numbers, ids and quoted parts are one message.

Stack traces of Python, JavaScript, Java, Go and Rust: the exception, and its place in the user's own code. Frames in
installed packages, the standard library and a runtime are skipped if any other frames remain. Descriptions of logs and
test runs use stack traces too. The lines of a page are read in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from mcp_memory.language import patterns_of
from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clip
from mcp_memory.shortterm.synopsis.preview import SynopsisDraft

FOREIGN = re.compile(
    r"site-packages|dist-packages|/lib/python\d|node_modules|node:|<frozen|<string>|/usr/(?:local/)?(?:lib|go)/"
    r"|/rustc/|\.cargo/registry|^(?:java|javax|jdk|sun|kotlin|scala|org\.junit|org\.springframework)\."
    r"|importlib/|/runtime/(?:panic|proc|asm)"
)
TRACEBACK = re.compile(r"(?P<pad>[ |+]*)Traceback \(most recent call last\):")
LONGEST_TRACE = 400
HEADLINE, FRAMES = 120, 4
FRAME = re.compile(r'\s*(?:File "|Traceback \(|During handling of|The above exception was|[~^ ]+$|at \S+ ?\()')
"""Lines that add nothing to the facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    path: str
    line: str
    name: str
    at: int
    """Line number in the raw text."""

    @property
    def own(self) -> bool:
        return not FOREIGN.search(self.path) and not FOREIGN.search(self.name)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" + (f" in {self.name}" if self.name and self.name != "<module>" else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A stack trace. `frames` are innermost first; `first` and `last` are line numbers of the raw text."""

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


@dataclass(frozen=True, slots=True)
class TraceForm:
    """How a language writes a trace. At most `gap` other lines are between two frames."""

    language: str
    gap: int
    raised: re.Pattern[str]
    frame: re.Pattern[str]


@cache
def _trace_forms() -> list[TraceForm]:
    """Read `stack_traces.txt`."""
    blocks = list(patterns_of("mcp_memory.shortterm.synopsis", "stack_traces.txt"))
    forms: list[TraceForm] = []
    for (head, raised), (_, frame) in zip(blocks[::2], blocks[1::2], strict=True):
        language, _, gap = head.removeprefix("raised ").partition(", gap ")
        forms.append(TraceForm(language, int(gap or 0), re.compile(raised), re.compile(frame)))
    return forms


def find_traces(lines: Sequence[PageLine]) -> list[Trace]:
    """Return all traces in order. Chained exceptions are separate traces."""
    python, *others = _trace_forms()
    traces: list[Trace] = []
    at = 0
    while at < len(lines):
        text = lines[at].text
        read: tuple[Trace | None, int] | None = None
        if "Traceback" in text and (start := TRACEBACK.search(text)):
            read = _error_last(python, lines, at, start["pad"])
        elif "rror" in text or "xception" in text or text.startswith(("panic", "fatal", "thread '")):
            read = next((error for form in others if (error := _error_first(form, lines, at))), None)
        trace, at = read or (None, at + 1)
        if trace:
            traces.append(trace)
    return traces


def _error_last(form: TraceForm, lines: Sequence[PageLine], start: int, pad: str) -> tuple[Trace | None, int]:
    frames: list[Frame] = []
    end = min(len(lines), start + LONGEST_TRACE)
    for at in range(start + 1, end):
        text = lines[at].text.removeprefix(pad)
        if frame := form.frame.match(text):
            frames.append(_frame(frame, lines[at]))
        elif text and not text[0].isspace():
            if raised := form.raised.match(text):
                return _trace(form, raised, frames[::-1], lines[start], lines[at]), at + 1
            return None, at
    return None, end


def _error_first(form: TraceForm, lines: Sequence[PageLine], start: int) -> tuple[Trace, int] | None:
    """Read an error line followed by frames, until the next error or a gap that is too long."""
    raised = form.raised.match(lines[start].text.lstrip())
    if not raised:
        return None
    frames = [_frame(raised, lines[start])] if form.language == "Rust" else []
    last = start
    for at in range(start + 1, min(len(lines), start + LONGEST_TRACE)):
        if frame := form.frame.match(lines[at].text):
            frames.append(_frame(frame, lines[at]))
            last = at
        elif at - last > form.gap or form.raised.match(lines[at].text.lstrip()):
            break
    if not frames:
        return None
    message = lines[start + 1].text if form.language == "Rust" and start + 1 < len(lines) else ""
    return _trace(form, raised, frames, lines[start], lines[last], message), last + 1


def _trace(
    form: TraceForm, raised: re.Match[str], frames: list[Frame], first: PageLine, last: PageLine, message: str = ""
) -> Trace:
    return Trace(
        language=form.language,
        exception=raised["type"],
        message=(raised["message"] or message).strip(),
        frames=tuple(frames),
        first=first.number,
        last=last.number,
    )


def _frame(match: re.Match[str], line: PageLine) -> Frame:
    groups = match.groupdict()
    return Frame(path=groups["path"], line=groups["line"], name=groups.get("name") or "", at=line.number)


def describe_trace(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe a result that is, or ends in, a stack trace."""
    del focus
    traces = find_traces(page.lines)
    if not traces:
        return None
    covered = sum(trace.last - trace.first + 1 for trace in traces)
    ends_in_it = page.lines[-1].number - traces[-1].last <= 15
    if covered < 0.25 * len(page.lines) and not (ends_in_it and covered >= 3):
        return None
    last = traces[-1]
    summary, facts, own = last.headline, list[str](), last.own_frames
    if own:
        called = "".join(f", called from {frame}" for frame in own[1:][-1:])
        summary = f"{clip(summary, HEADLINE)} ({own[0]}{called})"
    if len(last.headline) > HEADLINE:
        facts.append(f"{last.headline} (line {last.last})")
    if len(own) > 1:
        facts.append("at " + " ← ".join(map(str, own[:FRAMES])))
    for cause in reversed(traces[:-1][-4:]):
        facts.append(", ".join([f"before it: {clip(cause.headline, 200)}", *map(str, cause.own_frames[:2])]))
    picks: dict[int, float] = {}
    for trace in traces[-3:]:
        after = int(trace.language == "Python")  # the line below a frame is its source
        picks.update({frame.at + after: 4.0 for frame in trace.own_frames[:4]})
        picks[trace.last if trace.language == "Python" else trace.first] = 40.0
    return SynopsisDraft(
        kind="traceback",
        summary=summary,
        score=8,
        facts=facts,
        picks=picks,
        pieces=tuple(line for line in page.lines if not FRAME.match(line.text)),
    )


TIME = re.compile(
    r"[\[(]?(?P<when>\d{4}[-/]\d\d[-/]\d\d[T ]?\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d+ \d\d:\d\d:\d\d|\d\d:\d\d:\d\d(?:[.,]\d+)?)"
)
LEVEL = re.compile(  # comparing the first letter first is faster
    r"\b(?=[FCSPEWNIDTV])(FATAL|CRITICAL|SEVERE|PANIC|ERROR|ERR|WARN(?:ING)?|NOTICE|INFO|DEBUG|TRACE|VERBOSE)\b", re.I
)
START = re.compile(r"(?:\S{0,40} )?[\[(]?(?:FATAL|CRITICAL|ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE)\b[\]):| ]")
ACCESS = re.compile(r'"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) \S+[^"]*" (?P<status>\d{3})\b')
CHANGING = re.compile(
    r"(?=[\da-fA-F\"'])(?:0[xX][0-9a-fA-F]+|\b[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*\b|\d[\d.,:]*"
    r"|\"[^\"]{0,200}\"|'[^']{0,200}')"
)
NAMES = {"ERR": "ERROR", "WARNING": "WARN", "CRITICAL": "FATAL", "SEVERE": "FATAL", "PANIC": "FATAL"}


def describe_log(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe a log if at least half of the sampled lines begin with a time or a level."""
    if len(page.sample) < 3:
        return None
    begins = sum(1 for line in page.sample if TIME.match(line.text.lstrip()) or START.match(line.text) or _access(line))
    if begins < 0.5 * len(page.sample):
        return None
    levels: dict[str, list[PageLine]] = {}
    messages: dict[str, list[PageLine]] = {}
    for line in page.lines:
        if line.text.strip():
            messages.setdefault(template(line.text), []).append(line)
            if level := _level(line):
                levels.setdefault(level, []).append(line)
    traces = find_traces(page.lines)
    errors = levels.get("FATAL", []) + levels.get("ERROR", [])
    times = [m["when"] for line in page.lines if (m := TIME.search(line.text[:60]))]
    counts = sorted(((len(lines), level) for level, lines in levels.items()), key=lambda count: -count[0])
    facts = [f"levels: {', '.join(f'{n:,} {level}' for n, level in counts[:8])}" if counts else ""]
    facts.append(f"from {times[0]} to {times[-1]}" if times else "")
    facts += [*_errors(errors, traces, messages), *_repeated(messages, focus)]
    return SynopsisDraft(
        kind="log",
        summary=_summary(page, times, levels, errors, traces),
        score=4,
        facts=facts,
        picks=_picks(levels, traces, messages),
    )


def _access(line: PageLine) -> bool:
    return ACCESS.search(line.text) is not None


def _level(line: PageLine) -> str:
    if match := LEVEL.search(line.text, 0, 90):
        name = match[1].upper()
        return NAMES.get(name, name)
    if match := ACCESS.search(line.text):
        return f"{match['status'][0]}xx"
    return ""


def template(text: str) -> str:
    """Return a line with `#` for its numbers, ids and quoted parts. Lines with the same template repeat a message."""
    return CHANGING.sub("#", text[:240])


def _message(line: PageLine) -> str:
    """Return a log line without its time and level."""
    text = TIME.sub("", line.text, count=1).strip(" ])\t")
    match = LEVEL.search(text, 0, 60)
    return (text[match.end() :] if match else text).strip(" ]):|-\t")


def _errors(errors: list[PageLine], traces: list[Trace], messages: dict[str, list[PageLine]]) -> Iterator[str]:
    """Yield the five commonest errors, each with its first line and count, then the last three exceptions."""
    alike = [messages[template] for template in {template(line.text) for line in errors}]
    for lines in sorted(alike, key=lambda lines: (-len(lines), lines[0].number))[:5]:
        yield f"error ×{len(lines):,}, first at line {lines[0].number}: {clip(_message(lines[0]), 160)}"
    raised = {trace.headline: trace for trace in traces}
    for headline, trace in list(raised.items())[-3:]:
        yield " at ".join([f"raised: {clip(headline, 140)}", *map(str, trace.own_frames[:2])])


def _repeated(messages: dict[str, list[PageLine]], focus: Focus) -> list[str]:
    commonest = sorted(messages, key=lambda template: -len(messages[template]))[:6]
    repeated = focus.ranked(template for template in commonest if len(messages[template]) > 2)
    return [f"repeated ×{len(messages[t]):,}: {clip(_message(messages[t][0]), 110)}" for t in repeated[:4]]


def _picks(
    levels: dict[str, list[PageLine]], traces: list[Trace], messages: dict[str, list[PageLine]]
) -> dict[int, float]:
    """Return the weights of lines worth quoting, such as errors and rare messages, by line number."""
    picks = {lines[0].number: 1.0 / len(lines) for lines in messages.values() if len(lines) <= 3}
    for level, weight in (("WARN", 2.0), ("5xx", 3.0), ("4xx", 1.5), ("ERROR", 4.0), ("FATAL", 6.0)):
        if lines := levels.get(level):
            firsts = {template(line.text): line.number for line in reversed(lines)}
            picks |= dict.fromkeys(firsts.values(), weight) | {lines[-1].number: weight + 1}
    picks.update({trace.last: 5.0 for trace in traces[-3:]})
    return picks


def _summary(
    page: ResultPage, times: list[str], levels: dict[str, list[PageLine]], errors: list[PageLine], traces: list[Trace]
) -> str:
    span = f", {times[0][:19]} to {times[-1][:19]}" if times else ""
    counts = ", ".join(f"{len(levels[k]):,} {k}" for k in ("FATAL", "ERROR", "WARN", "5xx", "4xx") if k in levels)
    if errors:
        last = f"; last error (line {errors[-1].number}): {clip(_message(errors[-1]), 80)}"
    elif traces:
        last = f"; raised {clip(traces[-1].headline, 80)}"
    else:
        last = "" if counts else ", no errors"
    return f"log of {page.total_lines:,} lines{span}" + (f": {counts}" if counts else "") + last
