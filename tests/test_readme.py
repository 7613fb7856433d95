"""The README is held to the code: what it names exists, what exists it names, and its blocks run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import mermaidx
import pytest

from mcp_memory.cli import program
from mcp_memory.core.config import PREFIX, Settings
from mcp_memory.server.apps import APP_TOOLS
from mcp_memory.server.prompts import PROMPTS
from mcp_memory.server.resources import FIXED, TEMPLATES
from mcp_memory.server.tools import TOOLS
from mcp_memory.shortterm.canvas.flowchart import parse, render
from tests.endpoint import calling, serving

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Its blocks in a language, those aside that are part of an answer."""
    without_answers = re.sub(r"^~~~text\n.*?^~~~$", "", README, flags=re.DOTALL | re.MULTILINE)
    return re.findall(rf"```{language}\n(.*?)```", without_answers, flags=re.DOTALL)


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, its head left out."""
    table = README.split(f"## {heading}\n", 1)[1].split("\n|", 1)[1].split("\n\n", 1)[0]
    lines = [line for line in ("|" + table).splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_its_tools_are_those_there_are() -> None:
    assert {cells[0].strip("`") for cells in rows("What an agent gets")} == {tool.name for tool in TOOLS}


def test_its_tools_of_the_app_are_those_there_are() -> None:
    said = {cells[0].strip("`"): cells[1] for cells in rows("Inside the conversation")}
    assert said == {tool.name: "the model" if "model" in tool.visibility else "the App alone" for tool in APP_TOOLS}


def test_its_settings_are_those_there_are_with_their_defaults_and_words() -> None:
    said = {cells[0].strip("`"): [cell.strip("`| ") for cell in cells[1:]] for cells in rows("Settings")}
    real = {
        name: ["" if field.default is None else str(field.default), str(field.description).strip("`")]
        for name, field in Settings.model_fields.items()
    }
    assert {name: cells[-1] for name, cells in said.items()} == {name: cells[1] for name, cells in real.items()}
    assert {name: cells[0] for name, cells in said.items() if len(cells) == 2} == {
        name: cells[0] for name, cells in real.items() if cells[0]
    }


def test_its_variables_are_settings() -> None:
    named = set(re.findall(rf"{PREFIX}([A-Z_]*[A-Z])", README))
    assert {name.lower() for name in named} <= set(Settings.model_fields)


def test_its_resources_and_prompts_are_those_there_are() -> None:
    addresses = {str(resource.uri) for resource in FIXED} | {template.uri_template for template in TEMPLATES}
    assert set(re.findall(r"`(memory://[^`]+)`", README)) == addresses
    assert {prompt.name for prompt in PROMPTS} <= set(re.findall(r"`(\w+)`", README.split("Prompts: ")[1][:80]))


def test_its_commands_and_options_exist() -> None:
    context = click.Context(program)
    for line in "\n".join(blocks("sh")).splitlines():
        words = line.split("#")[0].split()
        if words[:1] != ["mcp-memory"]:
            continue
        command: click.Command | None = program
        for word in words[1:]:
            if word == "--":
                break  # the rest is another program's
            if word.startswith("--"):
                assert command is not None
                options = {option for param in command.get_params(context) for option in param.opts}
                assert word in options, line
            elif isinstance(command, click.Group):
                command = command.get_command(context, word)
                assert command is not None, line


def test_its_client_settings_are_the_example_file() -> None:
    serving, wrapping = map(json.loads, blocks("json"))
    assert serving == json.loads((ROOT / "claude_desktop_config.example.json").read_text())
    (wrapped,) = wrapping["mcpServers"].values()
    assert (wrapped["command"], wrapped["args"][:2]) == ("mcp-memory", ["wrap", "--"])


@pytest.mark.slow
def test_its_canvas_is_one_and_its_flow_is_drawn() -> None:
    flow, canvas = blocks("mermaid")
    assert render(parse(canvas)) == canvas
    assert mermaidx.render(flow).svg().startswith("<svg")


@pytest.mark.slow
def test_its_tools_answer_as_it_says() -> None:
    """Each tool that has an answer worth showing is shown; `python scripts/readme_examples.py --write` renews them."""
    run = subprocess.run(
        [sys.executable, ROOT / "scripts" / "readme_examples.py"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.stdout, run.stderr) == ("", "")
    shown = set(re.findall(r"^~~~text\n(\w+) \{", README, flags=re.MULTILINE))
    assert shown == {tool.name for tool in TOOLS}


def test_its_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", "\n".join(blocks("sh")), flags=re.MULTILINE):
        assert f"\n{target}:" in makefile


def run_program(block: str, folder: Path, **environ: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", block],
        cwd=folder,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


@pytest.mark.slow
def test_its_programs_run(tmp_path: Path) -> None:
    verbs, _, compress = blocks("python")
    assert run_program(verbs, tmp_path) == "t1 My sister Ines keeps bees in Porto.\n"
    before, after, fits = run_program(compress, tmp_path).split()
    assert (before, fits) == (after, "True")


@pytest.mark.slow
def test_its_agent_uses_tools_and_remembers_in_its_next_life(tmp_path: Path) -> None:
    _, agent, _ = blocks("python")
    (tmp_path / "notes.txt").write_text("The hives need a new roof.\n")
    told = "My boat to Porto leaves on 12 May"
    with serving() as model:
        environ = {"MODEL": "openai/scripted", "OPENAI_API_BASE": model.url, "OPENAI_API_KEY": "none"}
        model.script += [calling("read_file", path="notes.txt"), "They need a roof.", "On 12 May."]
        assert run_program(agent, tmp_path, **environ) == "They need a roof.\nOn 12 May.\n"
        assert model.asked[1]["messages"][-1]["content"] == "The hives need a new roof.\n"
        first_life = len(model.asked)
        model.script += [f"It says nothing else. {told}", "On 12 May."]
        run_program(agent, tmp_path, **environ)
    asked = model.asked[first_life + 1]["messages"][-1]["content"]
    assert "mcp-memory-recall" in asked
    assert told in asked


def test_the_files_it_links_to_exist() -> None:
    for target in re.findall(r"\]\(([\w./-]+)\)", README):
        assert (ROOT / target).exists(), target
