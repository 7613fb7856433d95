"""What is unlike the rest of a result is in its stand-in with its place; commits have their subjects; words are whole."""

from __future__ import annotations

import json

import pytest

from mcp_memory.shortterm.synopsis.page import clip
from mcp_memory.shortterm.synopsis.rare import RareRow, rare_rows
from mcp_memory.shortterm.synopsis.synopsis import synopsise


def job(n: int, **other: object) -> dict[str, object]:
    return {"id": f"job-{n}", "status": "ok", "duration_ms": 200 + 7 * n % 50, **other}


def test_the_failed_items_of_an_array_are_named_with_their_reason() -> None:
    jobs = [job(n) for n in range(80)]
    jobs[23] = job(23, status="failed", error={"code": 504, "message": "timeout after 30000 ms"})
    jobs[61] = job(61, status="failed", error={"code": 403, "message": "permission denied"})
    made = synopsise(json.dumps({"total": 80, "items": jobs}), tool="http")
    assert made.summary.endswith("; items.status: ok ×78, failed ×2")
    assert "items[23] job-23, status failed, error.code 504, error.message timeout after 30000 ms" in made.preview
    assert "items[61] job-61, status failed, error.code 403, error.message permission denied" in made.preview


def test_the_one_object_of_an_object_that_differs_is_named() -> None:
    found = {f"pkg-{n}": {"severity": "low", "range": f"<{n}.0"} for n in range(30)}
    found["pkg-7"]["severity"] = "critical"
    made = synopsise(json.dumps({"vulnerabilities": found}, indent=1), tool="npm")
    assert made.summary.endswith("; vulnerabilities.severity: low ×29, critical ×1")
    assert "vulnerabilities[7] pkg-7, severity critical" in made.preview


def test_rows_of_a_table_that_stand_out_are_shown() -> None:
    rows = [[f"TX-{n}", f"{20 + n * 37 % 60}.50", "booked"] for n in range(300)]
    rows[150][1] = "98123.50"
    rows[212][2] = "reversed"
    made = synopsise("id,amount,state\n" + "\n".join(map(",".join, rows)), tool="sql")
    assert "152: TX-150,98123.50,booked" in made.preview
    assert "rows[212] TX-212, state reversed" in made.preview
    assert made.summary.endswith("; state: booked ×299, reversed ×1; rows[150] TX-150, amount 98123.50")


def test_the_only_different_line_of_many_alike_is_told() -> None:
    lines = [f"copied part-{n:04}.parquet ({100 + n} kB)" for n in range(400)]
    lines[257] = "skipped part-0257.parquet: checksum 9f3a is another than the manifest's"
    made = synopsise("\n".join(lines), tool="bash")
    assert f"; 258: {lines[257]}; " in made.summary
    assert "1: copied part-0000.parquet (100 kB) (399 alike)" in made.summary


@pytest.mark.parametrize(
    "cells",
    [
        ["a", "b", "a", "b", "a", "b"],
        [f"id-{n}" for n in range(50)],
        [str(2**n) for n in range(12)],
        ["x", "y"],
    ],
    ids=["two kinds", "all different", "a long tail", "too few"],
)
def test_where_nothing_is_usual_nothing_is_rare(cells: list[str]) -> None:
    assert rare_rows(["one"], [[cell] for cell in cells]) == []


def test_a_row_with_more_rare_cells_comes_first() -> None:
    rows = [["ok", "", "5"] for _ in range(40)]
    rows[3] = ["ok", "", "900"]
    rows[9] = ["failed", "no space", "5"]
    assert rare_rows(["state", "why", "ms"], rows) == [RareRow(9, (0, 1)), RareRow(3, (2,))]


HISTORY = "".join(
    f"commit {n:040x}\nAuthor: Rita <rita@example.org>\nDate:   Mon May {n} 10:00:00 2026 +0200\n\n    {subject}\n\n"
    "    The reason stands here, at length.\n\n"
    for n, subject in enumerate(("Tokens may be thirty seconds late", "The ledger rounds half to even", "Fix typo"), 1)
)
CHANGE = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1,2 +1,2 @@ def round_amount(value):\n-old\n+new\n same\n\n"


def test_a_history_tells_the_subject_of_each_commit_and_its_line() -> None:
    made = synopsise(HISTORY * 4, tool="bash", arguments={"command": "git log"})
    assert made.kind == "commits"
    assert made.summary == "12 commits, 00000000 to 00000000; 00000000 Tokens may be thirty seconds late"
    assert "00000000 The ledger rounds half to even (line 9)" in made.preview.split("\n")


def test_changes_of_several_commits_keep_their_subjects() -> None:
    commits = HISTORY.split("commit ")[1:]
    text = "".join(f"commit {commit}{CHANGE.format(f'shop/part_{n}.py') * 8}" for n, commit in enumerate(commits))
    made = synopsise(text, tool="bash", arguments={"command": "git log -p"})
    assert made.summary.startswith("3 commits, diff of ")
    for subject in ("Tokens may be thirty seconds late", "The ledger rounds half to even", "Fix typo"):
        assert subject in made.preview


def test_a_commit_that_is_shown_begins_with_its_subject() -> None:
    text = HISTORY[: HISTORY.index("commit", 1)] + CHANGE.format("shop/money.py") * 9
    made = synopsise(text, tool="bash", arguments={"command": "git show"})
    assert made.summary.startswith("commit 00000000 Tokens may be thirty seconds late: diff of 9 files")


def test_short_histories_are_known_by_their_lines() -> None:
    text = "\n".join(f"{n * 7919:07x}1 The ferry of pier {n} leaves on time" for n in range(1, 60))
    made = synopsise(text, tool="bash")
    assert made.kind == "commits"
    assert "00035df1 The ferry" not in made.summary
    assert "The ferry of pier 2 leaves on time (line 2)" in made.preview


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("the harbour master", 18, "the harbour master"),
        ("the harbour master", 14, "the harbour…"),
        ("the harbour master", 12, "the harbour…"),
        ("/srv/app/payments/worker.py", 24, "/srv/app/payments/…"),
        ("a" * 30, 10, "a" * 9 + "…"),
        ("ab", 1, "…"),
        ("ab", 0, ""),
    ],
)
def test_a_text_is_cut_between_words(text: str, limit: int, cut: str) -> None:
    assert clip(text, limit) == cut
