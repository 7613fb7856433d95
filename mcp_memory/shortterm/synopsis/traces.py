"""Stack traces of Python, JavaScript, Java, Go and Rust: what was raised, and where in the user's own code.

Frames in installed packages, the standard library and a runtime are passed over as long as others remain.
Also used by the readers of logs and test runs. One pass over the lines of the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_memory.shortterm.synopsis.draft import Draft
from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.gist import Piece
from mcp_memory.shortterm.synopsis.page import Line, Page, clip

__all__ = ["Frame", "Trace", "describe_trace", "find_traces"]

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


def find_traces(lines: Sequence[Line]) -> list[Trace]:
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


def _python(lines: Sequence[Line], start: int, pad: str) -> tuple[Trace | None, int]:
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


def _others(lines: Sequence[Line], start: int) -> tuple[Trace | None, int]:
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
    lines: Sequence[Line], start: int, pattern: re.Pattern[str], *, until: re.Pattern[str], patience: int
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


def _next_text(lines: Sequence[Line], start: int) -> str:
    return lines[start + 1].text if start + 1 < len(lines) else ""


def describe_trace(page: Page, focus: Focus) -> Draft | None:
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
    return Draft(
        kind="traceback",
        content_type="text/plain",
        summary=summary,
        score=8,
        facts=tuple(facts),
        picks=picks,
        pieces=tuple(
            Piece(line.number, line.text, str(line.number)) for line in page.lines if not FRAME.match(line.text)
        ),
    )
