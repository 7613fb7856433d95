"""The price of asking a model: told before it is asked, and at a terminal agreed to."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from mcp_memory.cli.main import program
from mcp_memory.core.types import NewTurn
from tests.cli.conftest import unwrapped
from tests.endpoint import Endpoint, serving
from tests.in_memory import in_memory

Run = Callable[..., Result]

SAID = "I moved to Porto in May and keep bees there."
NOTHING_DURABLE = json.dumps({"scenes": []})


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """A model on loopback that is set for every command."""
    with serving() as scripted:
        for name, value in {"LLM": "openai/scripted", "LLM_BASE_URL": scripted.url, "LLM_API_KEY": "k"}.items():
            monkeypatch.setenv(f"MCP_MEMORY_{name}", value)
        yield scripted


@pytest.fixture
def talked(home: Path) -> Path:
    in_memory(home, lambda memory: memory.record_turns([NewTurn(role="user", content=SAID)], session="s"), llm="none")
    return home


@pytest.mark.slow
@pytest.mark.usefixtures("loop_for_litellm")
def test_distilling_says_its_price_first_and_a_program_is_not_asked(run: Run, model: Endpoint, talked: Path) -> None:
    model.script.append(NOTHING_DURABLE)
    result = run("distill", home=talked)
    assert (result.exit_code, len(model.asked)) == (0, 1), (result.output, result.exception)
    price, *lines = unwrapped(result.stderr).splitlines()
    assert re.fullmatch(
        r"Doing all that waits takes about 4 calls of openai/scripted: [\d,]+ tokens in and [\d,]+ out, the price is "
        r"not known\.",
        price,
    )
    assert lines == ["1: 0 turns wait"]
    assert result.stdout == "1 question asked. `mcp-memory status` shows the result.\n"
    assert run("distill", home=talked).stdout == "0 questions asked. Nothing waited.\n"
    assert len(model.asked) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("loop_for_litellm")
def test_a_request_for_a_new_persona_says_what_it_costs(run: Run, model: Endpoint, talked: Path) -> None:
    result = run("persona", "rebuild", home=talked)
    assert (result.exit_code, model.asked) == (0, [])
    assert unwrapped(result.stderr).startswith("Rewriting the persona takes about 1 call of openai/scripted: ")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="There is no pseudo-terminal.")
@pytest.mark.usefixtures("loop_for_litellm")
@pytest.mark.parametrize(("arguments", "reply", "calls"), [([], b"n\n", 0), ([], b"y\n", 1), (["--yes"], b"", 1)])
def test_at_a_terminal_the_user_is_asked_before_anything_is_spent(
    arguments: list[str],
    reply: bytes,
    calls: int,
    model: Endpoint,
    talked: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import pty

    model.script.append(NOTHING_DURABLE)
    ours, theirs = pty.openpty()
    os.write(ours, reply)
    with os.fdopen(theirs) as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", terminal)
        with pytest.raises(SystemExit) as ended:
            program(["--home", str(talked), "distill", *arguments], prog_name="mcp-memory")
    os.close(ours)
    shown = capsys.readouterr()
    assert (ended.value.code, len(model.asked)) == (0 if calls else 1, calls), shown.err
    assert ("Go on? [y/N]" in shown.err) == (not arguments)


def test_without_a_model_there_is_no_price(run: Run) -> None:
    result = run("distill")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: No model is configured")


def test_flushing_a_session_that_is_not_there_is_an_error_that_names_the_latest(run: Run) -> None:
    result = run("flush", "nope")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: There is no session 'nope' in this space. The latest are ")
    assert run("flush", "moving").exit_code == 0
