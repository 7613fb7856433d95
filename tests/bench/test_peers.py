"""`bench.peers` without the peers: its messages and table, its client with the floor, and the page that shows it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from bench.peers.__main__ import COLUMNS, table
from bench.peers.installing import Installed
from bench.peers.measures import Candidate, kill_after_writes, two_writers
from bench.peers.programs import CANNOT_RUN, PROGRAMS
from bench.peers.story import QUESTIONS, messages
from bench.peers.wire import Refused, Wire, processes_of
from scripts.doc_examples import ROOT

PAGE = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
(FTS5,) = (program for program in PROGRAMS if program.name == "FTS5 alone")


def floor(folder: Path) -> Candidate:
    return Candidate(FTS5, Installed("", [sys.executable], 0.0, 0), folder)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_each_question_has_one_right_message() -> None:
    texts = [message.text for message in messages(100)]
    assert len(set(texts)) == 100
    assert [texts.count(question.answer) for question in QUESTIONS] == [1] * len(QUESTIONS)


def test_the_page_shows_the_rows_and_servers_of_the_table() -> None:
    shown = PAGE.split("<!-- peers -->\n")[1].split("<!-- end -->")[0].strip().splitlines()
    lines = [cells(line) for line in shown if line.startswith("|")]
    assert lines[0][1:] == [program.name for program in PROGRAMS]
    assert [line[0] for line in lines[2:]] == list(COLUMNS)
    assert {len(line) for line in lines if line[0] != "---"} >= {len(PROGRAMS) + 1}


def test_the_page_names_each_server_that_could_not_run() -> None:
    for name, reason in CANNOT_RUN.items():
        assert f"* {name}: {reason}." in PAGE


def test_a_figure_that_a_server_does_not_have_is_a_dash() -> None:
    found = {"rows": [{"name": "small", "version": "1", "licence": "", "tools": 2}], "reasons": {"other": "has no key"}}
    lines = table(found)
    assert lines[0] == "| | small |"
    assert "| tools | 2 |" in lines
    assert "| licence | – |" in lines
    assert "| resident, MB | – |" in lines
    assert lines[-1] == "* other: has no key."


def test_the_floor_keeps_what_it_acknowledged_when_it_is_killed(tmp_path: Path) -> None:
    one = floor(tmp_path)
    kill_after_writes([one], 2)
    assert (one.failed, one.figures) == ("", {"kept": 2})


def test_two_floors_on_one_home_lose_nothing(tmp_path: Path) -> None:
    one = floor(tmp_path)
    two_writers([one], 10)
    assert (one.failed, one.figures) == ("", {"refused": 0, "lost": 0})


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the bench needs Linux")
def test_a_server_is_killed_with_the_processes_that_it_has_detached(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
        'sys.stdin.readline(); print(\'{"id": 1, "result": {}}\', flush=True); time.sleep(60)'
    )
    with Wire([sys.executable, "-c", program], home=tmp_path, env={**os.environ, "HOME": str(tmp_path)}) as wire:
        assert wire.request("ping", {}) == {}
        assert len(processes_of(tmp_path)) == 2
    assert processes_of(tmp_path) == []


def test_the_client_says_that_a_server_ended(tmp_path: Path) -> None:
    with (
        Wire([sys.executable, "-c", "print('hello')"], home=tmp_path, env=os.environ) as wire,
        pytest.raises(Refused, match=r"initialize: "),
    ):
        wire.initialize()


def test_the_client_reads_past_what_is_no_message_and_refuses_what_it_is_asked(tmp_path: Path) -> None:
    said = ["starting", json.dumps({"jsonrpc": "2.0", "id": 9, "method": "roots/list"})]
    program = (
        f"import json, sys\nprint({said[0]!r}); print({said[1]!r}, flush=True)\n"
        "asked, refused = (json.loads(sys.stdin.readline()) for _ in range(2))\n"
        "print(json.dumps({'id': asked['id'], 'result': {'refused': refused['error']['code']}}), flush=True)"
    )
    with Wire([sys.executable, "-c", program], home=tmp_path, env=os.environ) as wire:
        assert wire.request("ping", {}) == {"refused": -32601}
