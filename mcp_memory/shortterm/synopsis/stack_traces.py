"""Stack traces of Python, JavaScript, Java, Go and Rust: the exception, and its place in the user's own code.

Frames in installed packages, the standard library and a runtime are skipped if any other frames remain. Descriptions of
test runs use stack traces too. The lines of a page are read in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from mcp_memory.language import patterns_of
from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clip
from mcp_memory.shortterm.synopsis.preview import SynopsisDraft
from mcp_memory.shortterm.synopsis.statements import statements_of_facts, statements_of_picks

FOREIGN = re.compile(
    r"site-packages|dist-packages|/lib/python\d|node_modules|node:|<frozen|<string>|/usr/(?:local/)?(?:lib|go)/"
    r"|/rustc/|\.cargo/registry|^(?:java|javax|jdk|sun|kotlin|scala|org\.junit|org\.springframework)\."
    r"|importlib/|/runtime/(?:panic|proc|asm)"
)
TRACEBACK = re.compile(r"(?P<pad>[ |+]*)Traceback \(most recent call last\):")
LONGEST_TRACE = 400
HEADLINE, FRAMES = 120, 4


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
        statements=[*statements_of_facts(facts), *statements_of_picks(page.lines, picks, focus)],
    )
