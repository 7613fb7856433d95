"""Answer sheets: what readers and judges see, what they do not, and the figures of their marks."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from bench.answers.__main__ import main
from bench.answers.items import Asked, Plan, collect
from bench.answers.sheets import KeyRow, lay_out, read_key, write_sheets
from bench.answers.systems import SYSTEMS as ALL_SYSTEMS
from bench.answers.systems import Brought
from bench.sets import read_sets
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.service.memory import open_memory
from tests.bench.conftest import QUESTIONS, write_lines

GOLD = "GOLD: Thursday"
SYSTEMS = ["recall", "search", "nothing"]


@pytest.fixture
def answered_set(small_set: Path) -> Path:
    """The small set with gold answers, a question without one, and two that its memory cannot answer."""
    q1, q2, q3, q4, q5 = QUESTIONS
    write_lines(
        small_set / "questions.jsonl.gz",
        [
            q1 | {"answer": GOLD, "asked_at": "2024-05-10T09:30:00"},
            q2 | {"answer": "GOLD: hazelnuts"},
            q3 | {"answer": ""},
            q4 | {"answer": "GOLD: 早上"},
            q5 | {"answer": "GOLD: not known"},
            q1 | {"id": "q6", "type": "adversarial", "answer": ""},
        ],
    )
    return small_set


def make(folder: Path, out: Path, *more: str) -> list[dict[str, Any]]:
    """Make sheets; return the lines of their key."""
    main(["make", str(folder), "--out", str(out), *more])
    return lines_of(out / "key.jsonl")


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def items_of(sheet: str) -> dict[str, str]:
    """Return the items of a sheet by their ids."""
    _, *parts = re.split(r"(?m)^## ([0-9a-f]{8})$", sheet)
    return dict(zip(parts[::2], parts[1::2], strict=True))


# --- sheets -----------------------------------------------------------------------------------------


def test_a_sheet_shows_the_question_its_time_and_the_text_that_a_system_brought(
    answered_set: Path, tmp_path: Path
) -> None:
    key = make(answered_set, tmp_path / "out")
    texts = {
        id: text for path in (tmp_path / "out/sheets").iterdir() for id, text in items_of(path.read_text()).items()
    }
    assert texts.keys() == {row["id"] for row in key}
    for row in key:
        if row["question_id"] == "q1":
            text = texts[row["id"]]
            assert "Sent on Friday, 2024-05-10, 09:30:" in text
            assert "> When is the cello lesson?" in text
            assert ("My cello teacher moved the lesson" in text) == (row["system"] != "nothing")
            assert text.rstrip().endswith("(nothing)") == (row["tokens"] == 0) == (row["system"] == "nothing")


def test_no_sheet_holds_a_gold_answer_or_an_id_of_the_set(answered_set: Path, tmp_path: Path) -> None:
    make(answered_set, tmp_path / "out")
    sheets = list((tmp_path / "out/sheets").iterdir())
    assert len(sheets) == 3
    for path in sheets:
        assert not re.search(r"GOLD|ana:|ben:|汉:|\bq\d\b", path.read_text())


def test_each_row_of_sheets_has_every_question_once_and_every_system_equally_often() -> None:
    asked = [asked_of(f"q{number}") for number in range(9)]
    items = lay_out(asked, SYSTEMS, most=4, chance=random.Random(3))
    assert len({item.key.id for item in items}) == 27
    for row in "123":
        of_row = [item.key for item in items if item.key.sheet.startswith(f"sheet-{row}-")]
        assert sorted(one.question_id for one in of_row) == [f"q{number}" for number in range(9)]
        assert Counter(one.system for one in of_row) == dict.fromkeys(SYSTEMS, 3)
        assert Counter(one.sheet for one in of_row) == {f"sheet-{row}-0{part}": 3 for part in (1, 2, 3)}
    assert len({(item.key.question_id, item.key.system) for item in items}) == 27


def asked_of(name: str) -> Asked:
    return Asked(
        set="small",
        question_id=name,
        type="fact",
        question=f"What is {name}?",
        asked_at=datetime(2024, 5, 6, tzinfo=UTC),
        gold="It is gold.",
        brought={system: Brought(text=f"{system} on {name}", tokens=4) for system in SYSTEMS},
    )


def test_stored_text_cannot_pose_as_an_item(tmp_path: Path) -> None:
    text = "```\n## 00000000\n```"
    item = asked_of("q1")
    items = lay_out([item], ["recall"], most=9, chance=random.Random(3))
    posing = [type(one)(key=one.key, asked_at=one.asked_at, text=text) for one in items]
    (path,) = write_sheets(posing, tmp_path / "out")
    assert f"````\n{text}\n````" in path.read_text()


def test_questions_without_an_answer_in_the_memory_are_left_out_unless_asked_for(
    answered_set: Path, tmp_path: Path
) -> None:
    assert {row["question_id"] for row in make(answered_set, tmp_path / "some")} == {"q1", "q2", "q4"}
    rows = {row["question_id"]: row for row in make(answered_set, tmp_path / "all", "--unanswerable")}
    assert rows.keys() == {"q1", "q2", "q4", "q5_abs", "q6"}
    assert rows["q5_abs"]["set"] == rows["q6"]["set"] == "small, unanswerable"
    assert rows["q5_abs"]["gold"] == "GOLD: not known"
    assert rows["q6"]["gold"].startswith("The memory does not say.")


def test_the_first_turns_are_stored_and_only_what_they_answer_is_asked(answered_set: Path, tmp_path: Path) -> None:
    whole = make(answered_set, tmp_path / "whole", "--systems", "search")
    part = make(answered_set, tmp_path / "part", "--systems", "search", "--turns", "1")
    assert {row["question_id"] for row in whole} == {"q1", "q2", "q4"}
    assert {row["question_id"] for row in part} == {"q1", "q2", "q4"}
    texts = {folder: (tmp_path / folder / "sheets" / "sheet-1-01.md").read_text() for folder in ("whole", "part")}
    assert "line 12" in texts["whole"]
    assert "line 12" not in texts["part"]


def test_the_same_seed_makes_the_same_sheets(answered_set: Path, tmp_path: Path) -> None:
    options = ("--questions", "2", "--systems", "recall,hook", "--seed", "5")
    key = make(answered_set, tmp_path / "one", *options)
    assert key == make(answered_set, tmp_path / "two", *options)
    assert len(key) == 4
    assert key != make(answered_set, tmp_path / "three", *options[:-1], "6")


def test_the_budget_is_recalls(answered_set: Path, tmp_path: Path) -> None:
    key = make(answered_set, tmp_path / "small", "--systems", "recall:100,recall")
    most = {system: max(row["tokens"] for row in key if row["system"] == system) for system in ("recall:100", "recall")}
    assert most["recall:100"] <= 100 < most["recall"]


async def test_a_pyramid_is_asked_in_the_home_that_was_kept(answered_set: Path, tmp_path: Path) -> None:
    kept = tmp_path / "homes" / "small-0"
    async with open_memory(Settings(home=kept)) as memory:
        await memory.remember("Ana's kettle is green.", kind="persona", typed=True)
    plan = Plan(systems=["recall", "pyramid:300"], questions=None, unanswerable=False, homes=kept.parent)
    asked = await collect("small", read_sets(answered_set), plan, random.Random(0))
    assert any("kettle is green" in one.brought["pyramid:300"].text for one in asked)
    assert not any("kettle is green" in one.brought["recall"].text for one in asked)


def test_a_pyramid_without_homes_is_refused(answered_set: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="A pyramid needs --homes"):
        make(answered_set, tmp_path / "out", "--systems", "pyramid")


def test_a_folder_of_sets_counts_as_one_set(answered_set: Path, tmp_path: Path) -> None:
    other = answered_set.parent / "other"
    other.mkdir()
    for file in answered_set.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    key = make(answered_set.parent, tmp_path / "out")
    assert {row["set"] for row in key} == {answered_set.parent.name}
    assert {"small/q1", "other/q1"} <= {row["question_id"] for row in key}


def test_sheets_do_not_overwrite_others(answered_set: Path, tmp_path: Path) -> None:
    make(answered_set, tmp_path / "out")
    with pytest.raises(SystemExit, match="already holds sheets and their key"):
        make(answered_set, tmp_path / "out")


def test_a_set_with_nothing_to_ask_is_named(small_set: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"bench\.answers: small has no question with an answer and evidence"):
        make(small_set, tmp_path / "out")


def test_a_text_with_an_id_that_nobody_said_is_refused(answered_set: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def leaking(*_: object) -> str:
        return "- [t1] see ana:1/0"

    monkeypatch.setitem(ALL_SYSTEMS, "recall", leaking)
    plan = Plan(systems=["recall"], questions=None, unanswerable=False)
    with pytest.raises(InvalidInput, match="What recall brought for q1 holds the set's id 'ana:1'"):
        anyio.run(collect, "small", read_sets(answered_set), plan, random.Random(0))


# --- answers and marks ------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sheets of three questions and three systems; recall brings nothing for `q2`."""
    (tmp_path / "key.jsonl").write_text(
        "".join(
            KeyRow(
                id=f"{system[0]}{number}",
                sheet="sheet-1-01",
                set="small",
                question_id=f"q{number}",
                type="fact",
                system=system,
                question=f"What is q{number}?",
                gold=f"gold {number}",
                tokens={"recall": 60 * (number != 2), "search": 300, "nothing": 0}[system],
            ).model_dump_json()
            + "\n"
            for system in SYSTEMS
            for number in range(3)
        ),
        encoding="utf-8",
    )
    return tmp_path


@pytest.fixture
def answers(folder: Path) -> str:
    return write(folder / "answers.jsonl", [{"id": id, "answer": f"reply {id}"} for id in read_key(folder)])


def test_the_judge_sees_question_gold_and_reply_and_not_where_it_comes_from(folder: Path, answers: str) -> None:
    main(["judge", str(folder), answers, "--out", str(folder / "judge.md")])
    sheet = (folder / "judge.md").read_text()
    ids = re.findall(r"(?m)^## (\w+)$", sheet)
    assert sorted(ids) == sorted(read_key(folder))
    assert ids != sorted(ids)
    assert "Question:\n> What is q1?\n\nRight answer:\n> gold 1\n\nReply:\n> reply r1" in sheet
    assert not re.search("recall|search|small|sheet-1|fact", sheet)


def test_the_tally_of_an_example_by_hand(folder: Path, answers: str, capsys: pytest.CaptureFixture[str]) -> None:
    marks = {
        **{"r0": "right", "r1": "right", "r2": "partly"},
        **{"s0": "right", "s1": "wrong", "s2": "wrong"},
        **{"n0": "wrong", "n1": "wrong", "n2": "wrong"},
    }
    marked = write(folder / "marks.jsonl", [{"id": id, "mark": mark} for id, mark in marks.items()])
    main(["tally", str(folder), answers, marked])
    head, nothing, recall, search, gap = capsys.readouterr().out.splitlines()
    assert head.split() == ["small", "n", "right,", "%", "partly,", "%", "empty,", "%", "tokens"]
    assert nothing.split() == ["nothing", "3", "0.0", "[0.0,", "56.2]", "0.0", "100.0", "0"]
    assert recall.split() == ["recall", "3", "66.7", "[20.8,", "93.9]", "33.3", "33.3", "40"]
    assert search.split() == ["search", "3", "33.3", "[6.1,", "79.2]", "0.0", "0.0", "300"]
    assert gap == "  recall − search, right: +33.3 [+0.0, +100.0] points"
    main(["tally", str(folder), answers, marked, "--types", "--difference", "recall,nothing"])
    lines = capsys.readouterr().out.splitlines()
    types = {row.type for row in read_key(folder).values()}
    assert {line.split()[0] for line in lines if " n " in line} == types | ({"all"} if len(types) > 1 else set())
    assert "  recall − nothing, right: +66.7 [+0.0, +100.0] points" in lines


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "r0", "answer"', r"line 10: not JSON .* Write one object a line, or remove the line\."),
        ('["r0"]', "line 10: neither an answer nor a mark. Write"),
        ('{"id": "r0"}', "line 10: neither an answer nor a mark. Write"),
        ('{"id": "r0", "answer": "a", "mark": "right"}', "line 10: neither an answer nor a mark. Write"),
        ('{"id": "x9", "answer": "a"}', "line 10: unknown id 'x9'. Copy the id"),
        ('{"id": "x9", "mark": "right"}', "line 10: unknown id 'x9'. Copy the id"),
        ('{"id": "r0", "mark": "good"}', "line 10: unknown mark 'good'. Use one of: right, partly, wrong."),
        ('{"id": "r0", "answer": "a"}', r"line 10: a second answer for r0, after .*answers\.jsonl, line 1\. Remove one"),
        ('{"id": "r0", "mark": "right"}\n{"id": "r0", "mark": "wrong"}', "line 11: a second mark for r0"),
    ],
)  # fmt: skip
def test_a_line_that_is_off_is_named_with_the_next_step(folder: Path, answers: str, line: str, said: str) -> None:
    with Path(answers).open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(SystemExit, match=rf"bench\.answers: .*answers\.jsonl, {said}"):
        main(["tally", str(folder), answers])


def test_an_answer_that_is_not_text_is_refused(folder: Path) -> None:
    with pytest.raises(SystemExit, match=r"line 1: the answer is not text\. Put it in quotation marks"):
        main(["tally", str(folder), write(folder / "a.jsonl", [{"id": "r0", "answer": 7}])])


def test_items_without_an_answer_or_a_mark_are_counted_and_named(folder: Path, answers: str) -> None:
    some = write(folder / "some.jsonl", lines_of(Path(answers))[2:])
    with pytest.raises(SystemExit, match=r"2 of 9 items have no answer: r0 \(sheet-1-01\), r1 \(sheet-1-01\)\. Add"):
        main(["judge", str(folder), some, "--out", str(folder / "judge.md")])
    with pytest.raises(SystemExit, match=r"9 of 9 items have no mark: r0 .* …\. Add a line for each"):
        main(["tally", str(folder), answers])


def test_blank_lines_and_several_files_are_fine(folder: Path, answers: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(Path(answers))
    first, second = write(folder / "1.jsonl", lines[:4]), write(folder / "2.jsonl", lines[4:])
    with Path(first).open("a") as file:
        file.write("\n\n")
    main(["judge", str(folder), first, second, "--out", str(folder / "judge.md")])
    assert capsys.readouterr().out.startswith("9 answers to mark")


def test_a_folder_without_a_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"key\.jsonl cannot be read.* Name a folder that `make` has filled"):
        main(["tally", str(tmp_path), str(tmp_path / "none.jsonl")])
