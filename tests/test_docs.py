"""README.md, docs/ and SECURITY.md agree with the code: what they name exists, what exists they name, and blocks run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path

import click
import mermaidx
import pytest

from mcp_memory.cli.main import program
from mcp_memory.core.config import PREFIX, Settings
from mcp_memory.server.mcp_app import APP_TOOLS
from mcp_memory.server.prompts import PROMPTS
from mcp_memory.server.resources import FIXED, TEMPLATES
from mcp_memory.server.tools import TOOLS
from mcp_memory.shortterm.canvas.flowchart import parse, render
from scripts.doc_examples import PAGES, ROOT, commands, settings
from tests.endpoint import calling, serving

TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in (*PAGES, ROOT / "SECURITY.md")}
every_page = pytest.mark.parametrize("page", TEXTS)


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page in a language, without those that are part of an answer."""
    without_answers = re.sub(r"^~~~text\n.*?^~~~$", "", TEXTS[page], flags=re.DOTALL | re.MULTILINE)
    return re.findall(rf"```{language}\n(.*?)```", without_answers, flags=re.DOTALL)


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    table = TEXTS[page].split(f"# {heading}\n", 1)[1].split("\n|", 1)[1].split("\n\n", 1)[0]
    lines = [line for line in ("|" + table).splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_readme_is_one_first_page() -> None:
    assert len(TEXTS["README.md"].splitlines()) <= 180


def test_the_table_of_tools_has_all_tools() -> None:
    assert {cells[0].strip("`") for cells in rows("docs/tools.md", "Tools")} == {tool.name for tool in TOOLS}


def test_the_table_of_app_tools_has_all_of_them_with_their_callers() -> None:
    named = {cells[0].strip("`"): cells[1] for cells in rows("docs/clients.md", "Pages inside the conversation")}
    assert named == {tool.name: "the model" if "model" in tool.visibility else "the App alone" for tool in APP_TOOLS}


def test_the_table_of_settings_has_all_settings_with_their_defaults() -> None:
    assert settings() in TEXTS["docs/settings.md"]


def test_the_page_of_the_command_line_has_all_commands_with_their_options() -> None:
    assert commands() in TEXTS["docs/cli.md"], "renew it: python scripts/doc_examples.py --write"


def test_the_example_of_a_config_file_has_valid_settings() -> None:
    (example,) = blocks("docs/settings.md", "toml")
    assert Settings.model_validate(tomllib.loads(example))


@every_page
def test_its_variables_are_settings(page: str) -> None:
    named = set(re.findall(rf"\b{PREFIX}([A-Z_]*[A-Z])", TEXTS[page]))
    assert {name.lower() for name in named} <= set(Settings.model_fields)


def test_the_resources_and_prompts_are_those_of_the_server() -> None:
    page = TEXTS["docs/tools.md"]
    addresses = {str(resource.uri) for resource in FIXED} | {template.uri_template for template in TEMPLATES}
    assert set(re.findall(r"`(memory://[^`]+)`", page)) == addresses
    assert {prompt.name for prompt in PROMPTS} == set(
        re.findall(r"`(\w+)`", page.split("Prompts: ")[1].split(".\n")[0])
    )


def exists(words: list[str]) -> bool:
    """Whether `mcp-memory` takes these words: commands and options, not values."""
    command, context = program, click.Context(program)
    while True:
        try:
            _, words, _ = command.make_parser(context).parse_args(list(words))
        except click.UsageError:
            return False
        if not isinstance(command, click.Group) or not words:
            return True
        found = command.get_command(context, words[0])
        if found is None:
            return False
        command, context, words = found, click.Context(found, parent=context), words[1:]


@every_page
def test_its_commands_and_options_exist(page: str) -> None:
    shown = "\n".join(blocks(page, "sh")) + "\n".join(re.findall(r"`(mcp-memory [^`\n]+)`", TEXTS[page]))
    for line in shown.splitlines():
        words = list(takewhile(lambda word: word not in ("<", ">", "|", "&&"), shlex.split(line, comments=True)))
        while words and re.match(r"[A-Z_]+=", words[0]):
            words = words[1:]
        if words[:1] == ["mcp-memory"]:
            assert exists(words[1:]), line


@every_page
def test_its_make_targets_modules_and_paths_exist(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", "\n".join(blocks(page, "sh")), flags=re.MULTILINE):
        assert f"\n{target}:" in makefile
    for module in re.findall(r"python -m (bench\.\w+)", TEXTS[page]):
        assert find_spec(module), module
    for path in re.findall(r"\b(?:tests|scripts|bench)/[\w/.-]+\w", TEXTS[page]):
        assert (ROOT / path).exists(), path


@every_page
def test_the_files_it_links_to_exist(page: str) -> None:
    for target in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", TEXTS[page]):
        assert (ROOT / page).parent.joinpath(target).exists(), target


@every_page
def test_its_json_is_valid(page: str) -> None:
    for block in blocks(page, "json"):
        assert json.loads(block)


def test_the_client_settings_are_the_example_file() -> None:
    serving, wrapping = map(json.loads, blocks("docs/clients.md", "json"))
    assert serving == json.loads((ROOT / "claude_desktop_config.example.json").read_text())
    (wrapped,) = wrapping["mcpServers"].values()
    assert (wrapped["command"], wrapped["args"][:2]) == ("mcp-memory", ["wrap", "--"])


@pytest.mark.slow
@every_page
def test_its_diagrams_are_drawn_and_its_canvases_are_canvases(page: str) -> None:
    for block in blocks(page, "mermaid"):
        if block.startswith("%%"):
            assert render(parse(block)) == block
        assert mermaidx.render(block).svg().startswith("<svg")


@pytest.mark.slow
def test_what_the_pages_show_of_the_code_is_so() -> None:
    """`python scripts/doc_examples.py --write` renews them."""
    run = subprocess.run(
        [sys.executable, ROOT / "scripts" / "doc_examples.py"], capture_output=True, text=True, timeout=110, check=False
    )
    assert run.stdout == ""
    assert run.returncode == 0, run.stderr
    shown = set(re.findall(r"^~~~text\n(\w+) \{", TEXTS["docs/tools.md"], flags=re.MULTILINE))
    assert shown == {tool.name for tool in TOOLS}


@pytest.mark.slow
def test_the_site_has_no_broken_link_and_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", tmp_path],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    pages = "\n".join(page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html"))
    assert re.findall(r"""(?:src=|<link[^>]* href=|url\()["']?((?:https?:)?//[^"'> )]+)""", pages) == []
    assert 'class="mermaid"' not in pages, "the theme would load Mermaid from another host"


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
def test_the_programs_run(tmp_path: Path) -> None:
    verbs, _, compress = blocks("docs/python.md", "python")
    assert run_program(verbs, tmp_path) == "t1 My sister Ines keeps bees in Porto.\n"
    before, after, fits = run_program(compress, tmp_path).split()
    assert (before, fits) == (after, "True")


@pytest.mark.slow
def test_the_agent_uses_tools_and_remembers_in_its_next_life(tmp_path: Path) -> None:
    _, agent, _ = blocks("docs/python.md", "python")
    (tmp_path / "notes.txt").write_text("The hives need a new roof.\n")
    told = "My boat to Porto leaves on 12 May"
    with serving() as model:
        environ = {"MODEL": "openai/scripted", "OPENAI_API_BASE": model.url, "OPENAI_API_KEY": "none"}
        model.script += [calling("read_file", path="notes.txt"), "They need a roof.", "On 12 May."]
        model.script += [f"It says nothing else. {told}", "Still on 12 May."]
        two_lives = f"{agent}\n{agent}"  # one process: litellm takes seconds to load
        answers = ["They need a roof.", "On 12 May.", f"It says nothing else. {told}", "Still on 12 May."]
        assert run_program(two_lives, tmp_path, **environ).splitlines() == answers
    assert model.asked[1]["messages"][-1]["content"] == "The hives need a new roof.\n"
    asked = model.asked[4]["messages"][-1]["content"]  # the second question of the second life
    assert "mcp-memory-recall" in asked
    assert told in asked
