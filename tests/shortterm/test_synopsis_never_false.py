"""A stand-in never says what is false: counts are over the whole text, and each format owns only its own texts."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.shortterm.synopsis.parsed import parse
from mcp_memory.shortterm.synopsis.synopsis import Synopsis, synopsise

RESULTS = Path(__file__).parents[2] / "fixtures" / "results"


def shown(made: Synopsis) -> str:
    return f"{made.summary}\n{made.preview}"


def count_after(said: str, label: str) -> int:
    """Return the number said for a label, as in `ERROR ×1`."""
    match = re.search(rf"{re.escape(label)} ×([\d,]+)", said)
    assert match, said
    return int(match[1].replace(",", ""))


# --- logs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [1, 5_999, 7_000, 11_998])
def test_an_error_anywhere_in_a_log_of_12000_lines_is_counted_and_shown(at: int) -> None:
    lines = [f"2026-05-07 10:00:{n % 60:02} INFO http.access GET /orders/{n} 200 in {n % 97} ms" for n in range(12_000)]
    lines[at] = "2026-05-07 10:00:00 ERROR payments charge ch_9Q declined by bank_eu"
    said = shown(synopsise("\n".join(lines), tool="bash"))
    assert "levels: INFO ×11,999, ERROR ×1" in said
    assert f"{at + 1}: ERROR payments charge ch_9Q declined by bank_eu" in said


@pytest.mark.parametrize("time", ["[2025-09-01 16:00:{:02}]", "[16:00:{:02}]"])
@pytest.mark.parametrize("count", [6, 200])
def test_lines_that_begin_with_a_time_in_brackets_are_a_log_and_not_json(time: str, count: int) -> None:
    lines = [f"{time.format(n % 60)} production.INFO: job {n} done" for n in range(count)]
    made = synopsise("\n".join(lines), tool="bash", budget_chars=200)
    assert made.kind == "log"
    assert made.summary.startswith(f"{count} lines, {time.strip('[]').format(0)} to ")
    assert "items" not in shown(made)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["INFO", "WARN", "ERROR", "DEBUG"]), st.integers(1, 70), min_size=2), st.randoms()
)
def test_the_count_of_each_level_is_the_number_of_its_lines(counts: dict[str, int], order: object) -> None:
    lines = [f"{level} worker took {n} jobs" for level, count in counts.items() for n in range(count)]
    order.shuffle(lines)  # type: ignore[attr-defined]
    said = shown(synopsise("\n".join(lines), tool="bash", budget_chars=500))
    if len("\n".join(lines)) > 500:  # else it is shown whole
        assert {level: count_after(said, level) for level in counts} == counts


@settings(max_examples=60, deadline=None)
@given(st.integers(30, 400), st.integers(2, 20), st.randoms())
def test_the_count_of_a_pattern_is_the_number_of_its_lines(many: int, few: int, order: object) -> None:
    lines = [f"copied part-{n:04}.parquet of {n * 7} kB" for n in range(many)]
    lines += [f"could not read block {n} on disk sda" for n in range(few)]
    order.shuffle(lines)  # type: ignore[attr-defined]
    said = shown(synopsise("\n".join(lines), tool="bash", budget_chars=600))
    first = next(at for at, line in enumerate(lines) if line.startswith("could"))
    assert f"{first + 1}: {lines[first]} ({few} alike)" in said
    first = next(at for at, line in enumerate(lines) if line.startswith("copied"))
    assert f"{first + 1}: {lines[first]} ({many} alike)" in said


def test_lines_that_are_only_alike_are_not_said_to_repeat() -> None:
    text = "\n".join(["ready"] * 40 + [f"job {n} done" for n in range(40)] + ["end"])
    said = shown(synopsise(text, tool="bash"))
    assert "1: ready (×40)" in said
    assert "41: job 0 done (40 alike)" in said


# --- tables ------------------------------------------------------------------------------------------

PS = "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n" + "\n".join(
    f"root      {n:6} {n % 7:2}.{n % 10}  0.{n % 9} {128_068 + n * 1000:6} {1000 + n * 13:5} ?        Ss   Sep0{n % 9 + 1}"
    f"   0:{n % 60:02} /usr/lib/daemon-{n} --flag"
    for n in range(80)
)


def test_columns_of_ps_are_not_split_inside_numbers() -> None:
    said = shown(synopsise(PS, tool="bash", arguments={"command": "ps axu"}))
    assert "table, 80 rows with USER, PID, %CPU, %MEM, VSZ, RSS, TTY, STAT, START, TIME, COMMAND" in said
    assert "VSZ: 128068 (0) to 207068 (79)" in said


def test_csv_with_carriage_returns_is_a_table() -> None:
    text = "id,name,city\r" + "".join(f"{n},name {n},{'Graz' if n % 3 else 'Brno'}\r" for n in range(60))
    made = synopsise(text, tool="bash")
    assert made.kind == "table"
    assert made.summary.startswith("table, 60 rows with id, name, city; ")
    assert "city: Graz ×40, Brno ×20" in shown(made)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["open", "paid", "refunded", "lost, perhaps"]), min_size=40, max_size=200))
def test_the_values_of_a_column_are_counted_over_all_rows(states: list[str]) -> None:
    rows = [{"id": f"ORD-{at:04}", "state": state} for at, state in enumerate(states)]
    lines = io.StringIO()
    writer = csv.DictWriter(lines, ["id", "state", "place"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(row | {"place": "Graz"} for row in rows)
    for text in (json.dumps({"orders": rows}), "\n".join(map(json.dumps, rows)), lines.getvalue()):
        said = shown(synopsise(text, tool="http", budget_chars=700))
        assert f"{len(rows)} rows with id, state" in said
        if len(set(states)) == 1:
            assert f"state: {states[0]} in all" in said
        else:
            assert {state: count_after(said, state) for state in set(states)} == Counter(states)


# --- JSON that is cut off ----------------------------------------------------------------------------

JOBS = [{"id": f"job-{n}", "state": "ok" if n % 3 else "failed", "tags": ["a", "b"]} for n in range(60)]
STATES = Counter(str(job["state"]) for job in JOBS)


@settings(max_examples=80, deadline=None)
@given(st.floats(0, 1), st.sampled_from([None, 1]))
def test_json_cut_off_at_any_place_says_so_and_counts_no_more_than_there_is(place: float, indent: int | None) -> None:
    full = json.dumps({"total": 60, "jobs": JOBS}, indent=indent)
    made = synopsise(full[: int(place * len(full))], tool="http", budget_chars=600)
    said = shown(made)
    if made.kind == "json":
        assert "cut off" in made.summary or place == 1
        assert all(int(rows) <= 60 for rows in re.findall(r"jobs: (\d+) rows", said))
        assert all(int(count) <= STATES[state] for state, count in re.findall(r"\b(ok|failed) ×(\d+)", said))
        assert "state empty" not in said


# --- listings and labels -----------------------------------------------------------------------------


def test_a_folder_list_with_a_name_like_an_error_tells_no_error() -> None:
    names = ["accepts", "body-parser", "http-errors", "express", "cookie", "debug", *(f"pkg-{n}" for n in range(60))]
    long = "total 8\n" + "\n".join(f"drwxr-xr-x 2 dev dev 4096 Apr 16 22:01 {name}" for name in names)
    for text in ("\n".join(names), "\n".join(f"node_modules/{name}" for name in names), long):
        said = shown(synopsise(text, tool="bash", arguments={"command": "ls"}))
        assert not re.search(r"(?i)\berrors?\b(?<!http-errors)", said)
        assert "()" not in said


TEXTS = sorted(path.name for path in RESULTS.iterdir())


@pytest.mark.parametrize("name", TEXTS)
def test_no_label_is_followed_by_nothing(name: str) -> None:
    text = (RESULTS / name).read_text(encoding="utf-8") * 3
    made = synopsise(text, tool="bash", budget_chars=min(700, len(text) // 2))
    labels = "levels|rows|severity|rule|file|message|names|largest|imports|readable"
    for line in shown(made).strip().split("\n"):
        assert line.strip()
        assert not re.search(rf"(?:\b(?:{labels}):|×\d+:| \(\))\s*$", line)


# --- test runs ---------------------------------------------------------------------------------------


def test_jest_with_5_failed_says_5_although_it_names_2() -> None:
    named = [f"  ● suite › case {n}\n\n    Expected: {n}\n    Received: 9\n" for n in range(2)]
    ends = ["Test Suites: 1 failed, 1 passed, 2 total", "Tests:       5 failed, 17 passed, 22 total", "Time: 2.871 s"]
    made = synopsise("\n".join(["FAIL src/b.test.ts", *named, *ends]), tool="bash", budget_chars=200)
    assert made.summary == "jest: 5 of 22 failed: case 0 (Expected: 0); case 1 (Expected: 1); 3 more"
    assert "e.g. Expected: 0" in made.preview
    assert made.score == 5


def test_failures_of_unittest_that_were_expected_do_not_count() -> None:
    text = "F\nFAIL: test_a (t.T.test_a)\n\nRan 3 tests in 0.1s\n\nFAILED (failures=1, expected failures=7)\n"
    assert synopsise(text, tool="bash").summary == "unittest: 1 of 3 failed: test_a"


# --- bombs -------------------------------------------------------------------------------------------

ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12)
)
ENTITIES = (
    '<?xml version="1.0"?>\n<!DOCTYPE x [\n<!ENTITY e0 "ha">\n'
    + "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">\n' for n in range(1, 12))
    + "]>\n<x>&e11;</x>"
)


@pytest.mark.parametrize("text", [ALIASES, ENTITIES], ids=["aliases of YAML", "entities of XML"])
def test_a_text_that_would_grow_without_bound_is_refused_at_once(text: str) -> None:
    start = perf_counter()
    assert parse(text) is None
    assert len(shown(synopsise(text, tool="bash"))) < 2_000
    assert perf_counter() - start < 2.0
