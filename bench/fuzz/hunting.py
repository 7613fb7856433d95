"""Runs a target again and again, and reports each finding once, minimized.

Time is processor time, so that a busy machine causes no findings; an input that takes longer than its target allows is
stopped. If code does not return to Python, `faulthandler` ends the process, and the parent reports it.
"""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from bench.fuzz.target import Target

_ROUND = 200
"""Inputs per seed."""
_SMALLER_SECONDS = 10.0
_ROOT = Path(__file__).parents[2]


class TooLong(BaseException):
    """The time limit of an input. It is a BaseException, so that readers do not catch it as an error of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An error or violated check; `where` is the innermost line of this repository.

    Findings with the same `key` are one.
    """

    target: str
    what: str
    where: str
    data: bytes
    trace: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.target, self.what.partition(":")[0], self.where


@contextmanager
def _limited(seconds: float) -> Generator[None]:
    def stop(*_: object) -> None:
        raise TooLong(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def tried(target: Target, data: bytes) -> Finding | None:
    """Run the target on an input; return the finding, if any. Main thread only, since it uses a signal."""
    try:
        with _limited(target.seconds):
            target.run(data)
    except (Exception, TooLong) as error:  # noqa: BLE001 whatever it is, it is what is looked for
        return Finding(
            target=target.name,
            what=f"{type(error).__name__}: {str(error)[:300]}",
            where=_innermost(error),
            data=data,
            trace="".join(traceback.format_exception(error, limit=-12)),
        )
    return None


def _innermost(error: BaseException) -> str:
    ours = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(str(_ROOT))
        and ".venv" not in frame.filename
        and "hunting.py" not in frame.filename
    ]
    if not ours:
        return "nowhere of ours"
    last = ours[-1]
    at = f":{last.lineno}" if not isinstance(error, TooLong) else ""  # where it was stopped is chance
    return f"{Path(last.filename).relative_to(_ROOT)}{at} in {last.name}"


def _nobody(_: Finding) -> None: ...


@dataclass
class Hunt:
    """A target with the number of its runs and its findings."""

    target: Target
    runs: int = 0
    findings: dict[tuple[str, str, str], Finding] = field(default_factory=dict[tuple[str, str, str], Finding])
    told: Callable[[Finding], None] = _nobody

    def once(self, data: bytes) -> None:
        self.runs += 1
        found = tried(self.target, data)
        if found is not None and found.key not in self.findings:
            self.findings[found.key] = found
            small = self._smaller(found)
            self.findings[found.key] = small
            self.told(small)

    def by_hypothesis(self, *, seconds: float, start: int) -> None:
        """Draw inputs from the target's own strategy until time is over."""
        for data in self.target.seeds():
            self.once(data)
        end = monotonic() + seconds
        for number in count(start):
            if monotonic() > end:
                return
            self.some(_ROUND, start=number, until=end)

    def some(self, most: int, *, start: int, until: float = inf) -> None:
        """Run the target on `most` inputs that the seed `start` determines; fewer if the time is over before."""

        @seed(start)
        @settings(
            max_examples=most,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        )
        @given(self.target.inputs())
        def inputs(data: bytes) -> None:
            if monotonic() < until:
                self.once(data)

        run: Any = inputs
        run()

    def _smaller(self, found: Finding) -> Finding:
        """Remove parts of the input that the finding does not need, in ever smaller pieces, for some seconds."""
        end, size = monotonic() + _SMALLER_SECONDS, max(1, len(found.data) // 2)
        while size and monotonic() < end:
            at = 0
            while at < len(found.data) and monotonic() < end:
                again = tried(self.target, found.data[:at] + found.data[at + size :])
                if again is not None and again.key == found.key:
                    found = again
                else:
                    at += size
            size //= 2
        return found
