"""Metrics of this process in the text format of Prometheus.

A metric is created once, at the top of the module that changes it, and is thread-safe. Labels have few values, which
are names of ours: never names of spaces, sessions or users. `text()` formats all metrics; it reads memory only, so that
it cannot fail or wait. Prometheus adds up the counters of several servers.
"""

from __future__ import annotations

import os
import sys
import time
from bisect import bisect_left
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from mcp_memory import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the histograms, in seconds."""

Labels = tuple[str, ...]
_STARTED = time.time()


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a gauge that is read at a scrape. `labels` maps the names of labels to values."""

    name: str
    help: str
    value: float
    labels: dict[str, str] = field(default_factory=dict[str, str])


class Metric:
    """A counter or a gauge, with a value for each combination of label values that has occurred."""

    kind = "gauge"

    def __init__(self, name: str, help: str, *labels: str) -> None:  # noqa: A002 - as Prometheus calls it
        self.name, self.help, self._labels = name, help, labels
        self._lock = Lock()
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}
        _METRICS.append(self)

    def add(self, amount: float = 1.0, *labels: str) -> None:
        with self._lock:
            self._values[labels] = self._values.get(labels, 0.0) + amount

    def lines(self) -> Iterator[str]:
        with self._lock:
            values = sorted(self._values.items())
        for labels, value in values:
            yield _line(self.name, zip(self._labels, labels, strict=True), value)


class Gauge(Metric):
    """A number that goes up and down."""

    def set(self, value: float, *labels: str) -> None:
        with self._lock:
            self._values[labels] = value

    @contextmanager
    def one_more(self) -> Generator[None]:
        """Add 1 while the block runs."""
        self.add(1)
        try:
            yield
        finally:
            self.add(-1)


class Counter(Metric):
    """A number that only grows. Its name ends with `_total`."""

    kind = "counter"


class Histogram(Metric):
    """Durations in seconds, counted by `BUCKETS`."""

    kind = "histogram"

    def __init__(self, name: str, help: str, *labels: str) -> None:  # noqa: A002
        super().__init__(name, help, *labels)
        self._counts: dict[Labels, list[int]] = {} if labels else {(): _no_counts()}

    def observe(self, seconds: float, *labels: str) -> None:
        with self._lock:
            self._counts.setdefault(labels, _no_counts())[bisect_left(BUCKETS, seconds)] += 1
            self._values[labels] = self._values.get(labels, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        with self._lock:
            rows = [(labels, [*counts], self._values[labels]) for labels, counts in sorted(self._counts.items())]
        for labels, counts, total in rows:
            names = [*zip(self._labels, labels, strict=True)]
            so_far = 0
            for bound, count in zip((*BUCKETS, float("inf")), counts, strict=True):
                so_far += count
                yield _line(f"{self.name}_bucket", [*names, ("le", _number(bound))], so_far)
            yield _line(f"{self.name}_sum", names, total)
            yield _line(f"{self.name}_count", names, so_far)


def _no_counts() -> list[int]:
    return [0] * (len(BUCKETS) + 1)


_METRICS: list[Metric] = []


def text(samples: Iterable[Sample] = ()) -> str:
    """Return all metrics of this process, and `samples`, in the text format of Prometheus."""
    lines: list[str] = []
    for metric in sorted(_METRICS, key=lambda metric: metric.name):
        lines += [*_head(metric.name, metric.help, metric.kind), *metric.lines()]
    head = ""
    for sample in sorted([*_process(), *samples], key=lambda sample: sample.name):
        if sample.name != head:
            head = sample.name
            lines += _head(head, sample.help, "counter" if head.endswith("_total") else "gauge")
        lines.append(_line(head, sample.labels.items(), sample.value))
    return "\n".join(lines) + "\n"


def _head(name: str, help_text: str, kind: str) -> list[str]:
    return [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    shown = ",".join(f'{label}="{_escape(text)}"' for label, text in labels)
    return f"{name}{{{shown}}} {_number(value)}" if shown else f"{name} {_number(value)}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _process() -> Iterator[Sample]:
    """Yield version, memory, CPU time and start time of this process, under their usual names."""
    yield Sample("mcp_memory_info", "Version of this server.", 1, {"version": __version__})
    yield Sample("process_cpu_seconds_total", "CPU time of this process, in seconds.", time.process_time())
    yield Sample("process_start_time_seconds", "When this process started, in seconds since 1970.", _STARTED)
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        resident = pages * os.sysconf("SC_PAGE_SIZE")
        yield Sample("process_resident_memory_bytes", "Resident memory of this process, in bytes.", resident)
