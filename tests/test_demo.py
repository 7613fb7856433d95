"""The demo runs to its end on the real server, and what its table claims holds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcp_memory.demo import MARK, inputs, renewed
from mcp_memory.errors import Refused, StoreUnavailable
from mcp_memory.shortterm import canvas
from mcp_memory.store.files import read_ref_file


@dataclass(frozen=True)
class Played:
    home: Path
    text: str

    @property
    def folder(self) -> Path:
        return self.home / "spaces" / "default"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    home = tmp_path_factory.mktemp("demo") / "home"
    command = [sys.executable, "-m", "mcp_memory", "demo", "--home", str(home)]
    run = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False, env={**os.environ, "PYTHONIOENCODING": "utf-8"}
    )
    assert (run.returncode, run.stderr) == (0, "")
    return Played(home, run.stdout)


def rows(text: str) -> dict[str, list[str]]:
    """The account's table by its first cell."""
    table = text[text.index("8. The account") :]
    cells = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]
    return {row[0]: row[1:] for row in cells if len(row) > 2}


def test_every_act_is_played(played: Played) -> None:
    assert re.findall(r"^(\d)\. ", played.text, re.MULTILINE) == list("12345678")


def test_it_reads_well_in_a_hundred_columns(played: Played) -> None:
    too_wide = [line for line in played.text.splitlines() if len(line) > 100 and str(played.home) not in line]
    assert too_wide == []


def test_every_raw_result_came_back_identical(played: Played) -> None:
    table = rows(played.text)
    verdicts = {name.split()[-1]: row[-1] for name, row in table.items() if "-N" in name}
    assert verdicts == {step.key: "identical" for step in inputs.task().steps}
    assert table["total"][-1] == "100% of the bytes"


def test_the_files_hold_what_went_in(played: Played) -> None:
    files = [read_ref_file(path.read_bytes()) for path in (played.folder / "refs").iterdir()]
    assert sorted(data for _, data in files) == sorted(step.result.encode() for step in inputs.task().steps)


def test_the_totals_are_the_sums_of_the_rows(played: Played) -> None:
    table = rows(played.text)
    figures = {name: [int(re.sub(r"\D", "", cell)) for cell in row[1:4]] for name, row in table.items() if "-N" in name}
    sums = [sum(column) for column in zip(*figures.values(), strict=True)]
    folded = int(table["canvas, folded"][-1])
    assert [int(re.sub(r"\D", "", cell)) for cell in table["total"][:3]] == [*sums[:2], sums[2] + folded]
    assert sums[2] < sums[1] / 10


def test_the_canvas_it_leaves_shows_the_branch_and_the_dead_end(played: Played) -> None:
    [file] = (played.folder / "mmds").iterdir()
    drawn = canvas.parse(file.read_text(encoding="utf-8"))
    assert [node.status for node in drawn.nodes].count("blocked") == 1
    assert len({edge.target for edge in drawn.edges if edge.source.endswith("-N1")}) == 2
    assert drawn.status == "done"


def test_each_question_is_answered_by_the_turn_that_knows(played: Played) -> None:
    found = played.text[played.text.index("3. Search") : played.text.index("4. Offload")]
    assert all(words in found for words in ("TRF-90457", "runner's knee", "牙医,早上九点出发"))


def test_the_raw_line_that_tells_it_all_is_shown(played: Played) -> None:
    unwrapped = re.sub(r"\n  \| ", " ", played.text)
    assert "key SKV2-202610250230 already present, replaced" in unwrapped


def test_the_inputs_are_real_in_size_and_the_same_on_every_run() -> None:
    first, again = inputs.task(), inputs.task()
    size = {step.key: len(step.result.encode()) for step in first.steps}
    assert first == again
    assert (size["log"] >= 200_000, size["feed"] >= 80_000, len(size) >= 8) == (True, True, True)
    assert sum(len(turns) for _, turns in inputs.conversation()) >= 36


def test_a_folder_with_other_files_is_refused_and_left_alone(home: Path) -> None:
    home.mkdir()
    (home / "memory.db").write_bytes(b"precious")
    with pytest.raises(Refused, match="no demo made"):
        renewed(home)
    assert [path.name for path in home.iterdir()] == ["memory.db"]


def test_a_folder_of_an_earlier_demo_is_emptied(home: Path) -> None:
    renewed(home)
    (home / "spaces" / "default").mkdir(parents=True)
    (home / "memory.db").touch()
    assert [path.name for path in renewed(home).iterdir()] == [MARK]


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        renewed(tmp_path / "file" / "home")
