"""Readers take whatever they are given: what broke them once, and a few inputs more of the kind that `bench.fuzz` draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.fuzz import parsers
from bench.fuzz.hunting import Hunt, tried
from bench.fuzz.parsers import targets
from bench.fuzz.target import SEEDS, Target

KEPT = sorted((path.parent.name, path) for path in SEEDS.glob("*/*") if path.parent.name in targets())
LONG = {
    "times": [b"yesterday " * 4_000, "昨天".encode() * 5_000, b'{"a":' * 6_000],
    "citations": [b"a\n" * 20_000],
    "ref-file": [b"---\nref: " + b"[" * 30_000 + b"\n---\n"],
}
"""What took a time that grew with the square of its length, or was nested too deep to read."""


@pytest.mark.parametrize(("name", "path"), KEPT, ids=[f"{name}-{path.name}" for name, path in KEPT])
def test_what_was_found_once_is_read_or_refused(name: str, path: Path) -> None:
    found = tried(targets()[name], path.read_bytes())
    assert found is None, found.trace


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_long_and_deep_texts_take_a_time_in_proportion(name: str) -> None:
    for data in LONG[name]:
        found = tried(targets()[name], data)
        assert found is None, found.trace


@pytest.mark.parametrize("name", targets())
def test_a_few_inputs_of_each_target_break_nothing(name: str) -> None:
    hunt = Hunt(targets()[name])
    hunt.some(12, start=1)
    assert hunt.runs >= 12
    assert not hunt.findings, [found.trace for found in hunt.findings.values()]


def test_a_hunt_finds_what_is_wrong_makes_it_small_and_tells_it_once() -> None:
    def run(data: bytes) -> None:
        if b"y" in data:
            raise KeyError(data[:1])

    hunt = Hunt(Target(name="canvas", run=run))
    for data in (b"x" * 50, b"x" * 50 + b"y" + b"x" * 50, b"yy"):
        hunt.once(data)
    assert [(found.what, found.data) for found in hunt.findings.values()] == [("KeyError: b'y'", b"y")]


def test_a_target_that_never_ends_is_stopped() -> None:
    def run(_: bytes) -> None:
        while True:
            pass

    found = tried(Target(name="canvas", run=run, seconds=0.05), b"")
    assert found is not None
    assert found.what == "TooLong: more than 0.05 s of processor time"


@pytest.mark.slow
def test_the_command_prints_a_row_a_target_and_finds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert parsers.main(["--minutes", "0.01", "--only", "label", "--jobs", "1", "--engine", "hypothesis"]) == 0
    assert [line.split()[:1] for line in capsys.readouterr().out.splitlines()][1:2] == [["label"]]
