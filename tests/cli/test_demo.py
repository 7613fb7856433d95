"""The demo runs to its end on the real server, and what its table claims holds."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.cli.demo import MARK, agent, empty_home, shell_command
from mcp_memory.cli.demo.agent import Replies
from mcp_memory.cli.demo.short import monday_before
from mcp_memory.core.errors import Refused, StoreUnavailable
from mcp_memory.longterm.recall.opening import START_TOKENS
from mcp_memory.service.memory import open_memory
from mcp_memory.shortterm.canvas import flowchart as canvas
from mcp_memory.store.files import read_ref_file

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Played:
    home: Path
    text: str

    @property
    def folder(self) -> Path:
        return self.home / "spaces" / "default"

    def act(self, name: str) -> str:
        """What an act printed, its lines as they were before they were wrapped behind a bar."""
        told = re.split(rf"^\d+\. {name}.*\n", self.text, flags=re.MULTILINE)[1]
        return re.sub(r"\n  \| ", " ", re.split(r"^\d+\. ", told, flags=re.MULTILINE)[0])


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    home = tmp_path_factory.mktemp("demo") / "home"
    command = [sys.executable, "-m", "mcp_memory", "demo", "--full", "--home", str(home)]
    run = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False, env={**os.environ, "PYTHONIOENCODING": "utf-8"}
    )
    assert (run.returncode, run.stderr) == (0, "")
    return Played(home, run.stdout)


def rows(text: str) -> dict[str, list[str]]:
    """The account's table by its first cell."""
    table = text[text.index("10. The account") :]
    cells = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]
    return {row[0]: row[1:] for row in cells if len(row) > 2}


@pytest.mark.parametrize("on_path", [True, False])
def test_what_to_look_at_next_is_a_command_that_starts_this_program(
    on_path: bool, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent) if on_path else "/nowhere")
    assert (shell_command() == "mcp-memory") is on_path
    run = subprocess.run([*shlex.split(shell_command()), "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("mcp-memory")
    assert f" --home {played.home} status" in played.text


def test_every_act_is_played(played: Played) -> None:
    assert re.findall(r"^(\d+)\. ", played.text, re.MULTILINE) == [str(number) for number in range(1, 11)]


def test_it_reads_well_in_a_hundred_columns(played: Played) -> None:
    too_wide = [line for line in played.text.splitlines() if len(line) > 100 and str(played.home) not in line]
    assert too_wide == []


def test_every_raw_result_came_back_identical(played: Played) -> None:
    table = rows(played.text)
    verdicts = {name.split()[-1]: row[-1] for name, row in table.items() if "-N" in name}
    assert verdicts == {step.key: "identical" for step in agent.load_task().steps}
    assert table["total"][-1] == "100% of the bytes"


def test_the_files_hold_what_went_in(played: Played) -> None:
    files = [read_ref_file(path.read_bytes()) for path in (played.folder / "refs").iterdir()]
    assert sorted(data for _, data in files) == sorted(step.result.encode() for step in agent.load_task().steps)


def test_the_totals_are_the_sums_of_the_rows(played: Played) -> None:
    table = rows(played.text)
    figures = {name: [int(re.sub(r"\D", "", cell)) for cell in row[1:4]] for name, row in table.items() if "-N" in name}
    sums = [sum(column) for column in zip(*figures.values(), strict=True)]
    assert [int(re.sub(r"\D", "", cell)) for cell in table["total"][:3]] == sums
    assert sums[2] < sums[1] / 10


def test_the_canvas_it_leaves_shows_the_branch_and_the_dead_end(played: Played) -> None:
    [file] = (played.folder / "mmds").iterdir()
    drawn = canvas.parse(file.read_text(encoding="utf-8"))
    assert [node.status for node in drawn.nodes].count("blocked") == 1
    assert len({edge.target for edge in drawn.edges if edge.source.endswith("-N1")}) == 2
    assert drawn.status == "done"


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ("Search", ["TRF-90457", "runner's knee", "牙医,早上九点出发"]),
        ("Go down", ["key SKV2-202610250230 already present, replaced"]),
        ("Distil", ["written beforehand, by hand, where a client's own model would give its own"]),
        ("Recall", ["User: works as: owner of the timetable data; allergic to: hazelnuts", "[scene jonas-and-eirik"]),
        ("Look", ["## Basics", "## Preferences", "## Now", "## Scenes", "a very cross bishop"]),
    ],
)
def test_an_act_shows_what_it_is_about(act: str, words: list[str], played: Played) -> None:
    assert [one for one in words if one not in played.act(act)] == []


# --- the short one ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Short:
    home: Path
    columns: int
    text: str

    def act(self, day: str) -> str:
        """What was printed under a heading, without line breaks."""
        return re.sub(r"\s+", " ", re.split(rf"^{day}, .*\n", self.text, flags=re.MULTILINE)[1].split("\n\n")[0])


@pytest.fixture(
    scope="module",
    params=[80, pytest.param(60, marks=pytest.mark.nightly), pytest.param(200, marks=pytest.mark.nightly)],
)
def short(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Short:
    home = tmp_path_factory.mktemp("short") / "home"
    shown = subprocess.run(
        [sys.executable, "-m", "mcp_memory", "demo", "--home", str(home)],
        capture_output=True, encoding="utf-8", check=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": str(request.param)},
    )  # fmt: skip
    assert shown.stderr == ""
    return Short(home, request.param, shown.stdout)


def test_the_short_demo_is_short_and_says_what_status_says(short: Short) -> None:
    lines = short.text.splitlines()
    assert len(lines) <= 85 * max(1, 80 / short.columns)
    assert [line for line in lines if len(line) > short.columns and str(short.home) not in line] == []
    shown = re.sub(r"\s+", " ", short.text)
    for told in ("TRF-88213", "key SKV2-202610250230 already present, replaced", "every byte is the same"):
        assert told in shown
    run = [sys.executable, "-m", "mcp_memory", "status", "--json", "--home", str(short.home)]
    offload = json.loads(subprocess.run(run, capture_output=True, check=True).stdout)["offload"]
    assert f"{offload['tokens_raw']:,} tokens became {offload['tokens_kept']:,}" in shown
    assert (short.home / "canvas.png").read_bytes().startswith(b"\x89PNG")


def test_the_short_demo_shows_on_tuesday_the_page_that_was_made_without_a_model(short: Short) -> None:
    page, started = short.act("Tuesday").split("-> The hook starts the conversation with ")
    assert re.search(r"People .*My partner Li Wei is a nurse, and our dog is called Pixel\. \(a\d+\)", page)
    assert re.search(r"now runs at 03:30 every night.* until .*: We decided that the import", page)
    assert int(started.split()[0]) <= START_TOKENS
    assert "Always use type hints" in started
    assert "We're moving to Trondheim" in started


def test_the_short_demo_keeps_a_promise_on_friday_and_then_has_it_done(short: Short) -> None:
    friday = short.act("Friday")
    (promise,) = re.findall(r"Promise of [\w ]+, open \((a\d+)\): Next time I mention Lisbon", friday)
    assert "Lisbon" not in friday.split("->")[0]
    assert f"calls remember, which closes {promise}:" in friday
    assert "Asked again in another conversation, the hook adds 0 promises." in friday


@given(st.dates(min_value=date(2000, 1, 1), max_value=date(2200, 1, 1)))
def test_the_short_demo_plays_the_last_week_of_which_the_friday_has_come(today: date) -> None:
    monday = monday_before(today)
    assert monday.weekday() == 0
    assert monday + timedelta(days=4) <= today < monday + timedelta(days=11)


# --- the pyramid ------------------------------------------------------------------------------------


def test_each_question_of_the_pyramid_is_answered_and_all_of_each_answer_is_kept(played: Played) -> None:
    distilled = played.act("Distil")
    asked = re.findall(r"^  (\w+) +\d+ [\w ]+?  +(\d+) kept, (\d+) refused$", distilled, re.MULTILINE)
    notes = sum(int(kept) for stage, kept, _ in asked if stage == "extract")
    assert {stage for stage, _, _ in asked} == {"extract", "merge", "scenes", "persona"}
    assert {refused for _, _, refused in asked} == {"0"}
    repeated = [key for key, decided in agent.load_replies("merge").items() if decided["action"] == "skip"]
    assert notes >= len(agent.load_replies("extract")) - len(repeated)
    assert f"{len(asked)} questions for 38 turns, 0 refused, 0 turns not read yet" in distilled


async def test_what_it_leaves_holds_from_the_persona_down_to_the_words(played: Played) -> None:
    async with open_memory(home=played.home) as memory:
        found, atoms = await memory.verify(), await memory.atoms(limit=100)
    assert (found.problems, found.uncovered, found.personas) == ([], [], 1)
    assert found.quotes >= found.atoms >= len(atoms) >= 38
    assert [atom.id for atom in atoms if not atom.evidence] == []


def test_each_scene_is_on_the_page_about_the_person(played: Played) -> None:
    assert all(f"- {slug} (heat " in played.act("Look") for slug in agent.load_replies("scenes")["pages"])


def test_a_statement_is_followed_down_to_the_words_that_were_said(played: Played) -> None:
    followed = r"a\d+ +Tamsin is seriously allergic .+ t13 +2026-10-14, user, .+“I'm allergic to hazelnuts, properly"
    assert re.search(followed, played.act("Look"))


def test_a_fact_is_told_as_it_was_known_at_a_date(played: Played) -> None:
    facts = re.findall(r"^  (2026\S+)  a\d+  user, moving date: (\d+ \w+)", played.act("Look"), re.MULTILINE)
    assert facts == [("2026-10-22", "14 November")]  # the model reads the fortnight at once, and notes what holds


def test_a_question_of_another_conversation_has_no_written_answer() -> None:
    strange = "(a7) 2024-03-02, about Lena: Lena's dog Rex was hit by a car."
    answers = [Replies().to(stage, strange) for stage in ("extract", "merge", "scenes", "persona")]
    assert answers == [None, None, None, None]


def test_what_is_written_of_a_statement_waits_until_it_is_shown() -> None:
    replies = Replies()
    first = replies.to("scenes", "(a7) 2026-10-12, about user: Tamsin and Li Wei live in Bergen.")
    later = replies.to("scenes", "They live in Bergen (a7).\n(a9) Tamsin is learning Chinese; in October 2026 she was")
    assert json.loads(first or "")["edits"][0]["body"] == "They live in Bergen (a7)."
    assert later is None


def test_each_quote_stands_in_its_turn_and_each_key_names_a_statement() -> None:
    turns = [turn["content"] for _, told in agent.load_conversation() for turn in told]
    notes = agent.load_replies("extract")
    assert [note["key"] for note in notes if note["quote"] not in turns[int(note["turn"][1:]) - 1]] == []
    assert [words for note in notes for words in note.get("more", ()) if words not in "\n".join(turns)] == []
    keys = {one["key"] for one in (*notes, *agent.load_memories())}
    pages = json.dumps([agent.load_replies("scenes"), agent.load_replies("persona")])
    decided = agent.load_replies("merge")
    named = {*re.findall(r"\{(\w+)\}", pages), *decided, *(key for one in decided.values() for key in one["targets"])}
    assert named - keys == set()


# --- the inputs -------------------------------------------------------------------------------------


def test_the_inputs_are_real_in_size_and_the_same_on_every_run() -> None:
    first, again = agent.load_task(), agent.load_task()
    size = {step.key: len(step.result.encode()) for step in first.steps}
    assert first == again
    assert (size["log"] >= 200_000, size["feed"] >= 80_000, len(size) >= 8) == (True, True, True)
    assert sum(len(turns) for _, turns in agent.load_conversation()) >= 36


def test_a_folder_with_other_files_is_refused_and_left_alone(home: Path) -> None:
    home.mkdir()
    (home / "memory.db").write_bytes(b"precious")
    with pytest.raises(Refused, match="no demo made"):
        empty_home(home)
    assert [path.name for path in home.iterdir()] == ["memory.db"]


def test_a_folder_of_an_earlier_demo_is_emptied(home: Path) -> None:
    empty_home(home)
    (home / "spaces" / "default").mkdir(parents=True)
    (home / "memory.db").touch()
    assert [path.name for path in empty_home(home).iterdir()] == [MARK]


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        empty_home(tmp_path / "file" / "home")
