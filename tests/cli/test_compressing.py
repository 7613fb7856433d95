"""`compress`: a list in, the same list made to fit out, and what was done told beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import mcp_memory
from mcp_memory.cli.main import program
from tests.service.compression.lists import long_talk, openai


def compress(home: Path, given: object, *options: str) -> Result:
    text = given if isinstance(given, str) else json.dumps(given)
    return CliRunner().invoke(program, ["--home", str(home), "compress", *options], input=text)


@pytest.mark.slow
def test_a_list_comes_out_shorter_and_the_same_again_when_it_is_sent_again(home: Path) -> None:
    messages = openai(long_talk(20))
    command = [sys.executable, "-m", "mcp_memory", "--home", str(home), "compress", "--window", "15000"]
    ran = subprocess.run(command, input=json.dumps(messages), capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.startswith("emergency: ")
    assert "edits now" in ran.stderr
    shorter = json.loads(ran.stdout)
    assert len(ran.stdout) < 0.6 * len(json.dumps(messages))
    assert mcp_memory.compress(messages, window=15_000, home=home).messages == shorter


def test_a_whole_request_comes_out_as_one_and_its_tools_count(home: Path) -> None:
    request = {"model": "m", "system": "rule " * 900, "messages": [{"role": "user", "content": "Go."}]}
    ran = compress(home, request, "--window", "600")
    assert json.loads(ran.stdout) == request
    assert ran.exit_code == 1
    assert "are taken by `overhead`" in ran.stderr


@pytest.mark.parametrize(
    ("given", "options", "wrong"),
    [
        ("{not json", ["--window", "1000"], "Standard input is not JSON"),
        ({"model": "m"}, ["--window", "1000"], 'nor a request with a list "messages"'),
        ([{"role": "nobody"}], ["--window", "1000"], "Message 1 is not a chat message"),
        ([], ["--window", "1000", "--mild", "2"], "mild is 2.0; it can be 0 to 1"),
    ],
)
def test_what_is_wrong_is_said(home: Path, given: Any, options: list[str], wrong: str) -> None:
    ran = compress(home, given, *options)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert wrong in ran.stderr
