"""The commands `install` and `uninstall`, on a home folder of their own."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from click.testing import CliRunner, Result

from mcp_memory.cli.main import program
from mcp_memory.core.errors import Refused
from mcp_memory.core.projects import find_project
from mcp_memory.integrations.clients.programs import CLIENTS, PLUGIN, PLUGIN_COMMANDS, client_named
from mcp_memory.integrations.clients.server_check import SHORT_PATH, check, environment, expand_variables

Run = Callable[..., Result]

SCRIPT = str(Path(sys.executable).with_name("mcp-memory"))
MOVING = (
    *("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "VSCODE_PORTABLE"),
    *("npm_config_cache", "npm_config_prefix", "NVM_DIR"),
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line as somebody whose home is `tmp_path` and whose PATH has no client."""
    for variable in MOVING:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", SHORT_PATH)

    def call(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(program, arguments, input=stdin, prog_name="mcp-memory")

    return call


def on_one_line(text: str) -> str:
    return " ".join(text.split())


def servers(path: Path, key: str = "mcpServers") -> dict[str, Any]:
    return json.loads(path.read_text())[key]


@pytest.mark.skipif(sys.platform != "linux", reason="the places of Linux; those of other systems are pure functions")
def test_each_client_gets_its_entry_and_the_list_says_so(run: Run, tmp_path: Path) -> None:
    for client in CLIENTS:
        result = run("install", client, "--yes")
        assert result.exit_code == 0, result.output
        assert "Installed as 'memory'." in result.output
        assert f"has it already, as 'memory' in {tmp_path}" in on_one_line(run("install", client).output)
    plain = {"command": SCRIPT, "args": ["serve"]}
    assert servers(tmp_path / ".config/Claude/claude_desktop_config.json") == {"memory": plain}
    assert servers(tmp_path / ".claude.json") == {"memory": {"type": "stdio", **plain}}
    assert servers(tmp_path / ".config/Code/User/mcp.json", "servers") == {"memory": {"type": "stdio", **plain}}
    assert (
        f'[mcp_servers.memory]\ncommand = "{SCRIPT}"\nargs = ["serve"]\n'
        in (tmp_path / ".codex/config.toml").read_text()
    )
    hooks = servers(tmp_path / ".claude/settings.json", "hooks")
    assert hooks["SessionStart"][0]["hooks"][0]["args"] == ["hook", "SessionStart"]
    listed = {line.split()[0]: line for line in run("install").output.splitlines()[1 : len(CLIENTS) + 1]}
    assert list(listed) == list(CLIENTS)
    assert all("installed" in line for line in listed.values())
    hooked = {client for client, line in listed.items() if "installed, with hooks" in line}
    assert hooked == {client for client in CLIENTS if client_named(client).hooks}


def test_the_list_names_what_is_there_and_what_cannot_be_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text('{"mcpServers": {"memory": {"command": "npx"}}}')
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini/settings.json").write_text("{")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text('{"hooks": []}')
    output = run("install").output
    listed = {line.split()[0]: line for line in run("install").output.splitlines()[1 : len(CLIENTS) + 1]}
    assert "another server" in listed["cursor"]
    for client, title, told in (
        ("gemini", "Gemini CLI", ".gemini/settings.json is not valid JSON: line 1, column 2: a name in double"),
        ("claude-code", "Claude Code", ".claude/settings.json, hooks is a list where an object belongs. It was left"),
    ):
        assert listed[client].split("  ")[-2].strip() == "cannot be read"
        assert re.search(rf"{title}: (In )?{tmp_path}/{re.escape(told)}", on_one_line(output))
    assert listed["codex"].split()[1:3] == ["-", "-"]


@pytest.mark.parametrize(
    ("client", "file", "text", "setting"),
    [
        ("claude-code", ".claude/settings.json", '{"disableAllHooks": true}', "disableAllHooks = true"),
        ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks = false"),
        ("gemini", ".gemini/settings.json", '{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled = false"),
        ("qwen-code", ".qwen/settings.json", '{"disableAllHooks": true}', "disableAllHooks = true"),
        ("copilot", ".copilot/settings.json", '{"disableAllHooks": true}', "disableAllHooks = true"),
        ("vscode", ".config/Code/User/settings.json", '{"chat.useHooks": false, /* */}', "chat.useHooks = false"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="the places of Linux")
def test_hooks_that_are_switched_off_are_told(
    run: Run, tmp_path: Path, client: str, file: str, text: str, setting: str
) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    title = client_named(client).title
    warning = f"{title} runs no hooks, because of {setting} in {tmp_path / file}."
    asked = on_one_line(run("install", client, stdin="n\n").output)
    assert warning in asked.partition("Install it into")[0]
    assert warning in on_one_line(run("install", client, "--yes").output)
    assert warning in on_one_line(run("install", client).output)  # it has it already
    listed = {line.split()[0]: line for line in run("install").output.splitlines()[1 : len(CLIENTS) + 1]}
    assert "installed, hooks off" in listed[client]
    assert f"{title} runs none, because of {setting}" in on_one_line(run("doctor").output)
    run("uninstall", client, "--yes")
    assert (tmp_path / file).read_text() == text
    assert "runs none" not in run("doctor").output


def test_hooks_that_a_project_switches_off_are_told_there(run: Run, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    (project / ".claude").mkdir(parents=True)
    (project / ".claude/settings.json").write_text('{"disableAllHooks": true}')
    assert "runs no hooks" in run("install", "claude-code", "--project", str(project), "--yes").output
    assert "runs no hooks" not in run("install", "claude-code", "--no-hooks", "--yes").output


def test_hooks_that_the_working_folder_switches_off_are_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "shop/.claude/settings.local.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"disableAllHooks": true}')
    monkeypatch.chdir(tmp_path / "shop")
    off = "because of disableAllHooks = true in .claude/settings.local.json"
    said = on_one_line(run("install", "claude-code", "--yes").output)
    assert f"Claude Code runs no hooks in this folder, {off}. Until you change that" in said
    assert "Before each prompt" in said  # elsewhere
    assert "installed, hooks off" in run("install").output
    assert f"Claude Code runs none, {off}" in on_one_line(run("doctor").output)
    monkeypatch.chdir(tmp_path)
    assert "installed, with hooks" in run("install").output


def test_nothing_is_promised_of_hooks_that_are_switched_off(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text('{"disableAllHooks": true}')
    said = on_one_line(run("install", "claude-code", "--yes").output)
    assert "The agent in Claude Code gets tools to remember and to recall" in said
    assert "Claude Code runs no hooks, because of disableAllHooks" in said
    assert "Before each prompt" not in said


def test_the_switch_of_a_plugin_is_told(run: Run, tmp_path: Path) -> None:
    run("install", "openclaw", "--yes")
    config = tmp_path / ".openclaw/openclaw.json"
    config.write_text(config.read_text().replace('"plugins": {', '"plugins": {enabled: false,'))
    assert "OpenClaw runs none, because of plugins.enabled = false" in on_one_line(run("doctor").output)


def test_the_list_tells_of_the_plugin_of_claude_code_and_how_to_install_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    settings = tmp_path / ".claude/settings.json"
    said = run("install").output
    assert "Claude Code plugin: not installed." in said
    assert all(f"\n  {command}\n" in said for command in PLUGIN_COMMANDS)
    assert max(map(len, said[said.index("Claude Code plugin") :].splitlines())) <= 80
    run("install", "claude-code", "--yes")
    before = json.loads(settings.read_text())
    for enabled, told in ((True, "has the memory twice"), (False, ", and disabled.")):
        settings.write_text(json.dumps({**before, "enabledPlugins": {PLUGIN: enabled}}))
        said = run("install").output
        assert f"plugin: installed as {PLUGIN}" in said
        assert told in said
    settings.write_text('{"enabledPlugins": []}')
    assert "its state cannot be read" in run("install").output


def test_nothing_is_written_before_somebody_agreed(run: Run, tmp_path: Path) -> None:
    for answer in ("n\n", ""):
        result = run("install", "cursor", stdin=answer)
        assert result.exit_code == 1
        assert (
            f"These files change (--show prints the exact change):\n  create {tmp_path}/.cursor/mcp.json\n"
            in result.stdout
        )
        assert "Nothing was changed. Say --yes" in result.stderr
        assert not (tmp_path / ".cursor").exists()
    result = run("install", "cursor", stdin="y\n")
    assert result.exit_code == 0
    assert "Cursor was not found on this machine" in result.output
    assert (tmp_path / ".cursor/mcp.json").is_file()


def test_what_the_client_will_do_is_said_before_the_question_and_with_yes(run: Run, tmp_path: Path) -> None:
    recalls = (
        "Before each prompt, {} will ask mcp-memory for what matters, up to 395 tokens (700 at the start of a session)."
    )
    stores = "After each answer, the conversation is stored on this machine."
    replaces = "Tool results over 1,500 tokens are stored, and a short stand-in takes their place."
    asked = run("install", "claude-code", stdin="n\n").stdout
    assert max(len(line) for line in asked.splitlines() if str(tmp_path) not in line) <= 80
    before = on_one_line(asked).partition("Install it into Claude Code? [Y/n]:")[0]
    assert " ".join([recalls.format("Claude Code"), stores, replaces]) in before
    assert f"create {tmp_path}/.claude.json create {tmp_path}/.claude/settings.json" in before
    gemini = on_one_line(run("install", "gemini", "--yes").stdout)
    assert f"{recalls.format('Gemini CLI')} {stores}" in gemini
    assert "Tool results" not in gemini
    gone = run("uninstall", "gemini", "--yes").stdout
    assert "Gemini CLI will no longer ask mcp-memory before a prompt or store conversations." in on_one_line(gone)
    assert f"\n  delete {tmp_path}/.gemini/settings.json\n" in gone


def test_of_a_client_without_hooks_it_is_said_that_the_agent_decides(run: Run) -> None:
    for arguments in (["claude-desktop"], ["cursor", "--no-hooks"]):
        said = on_one_line(run("install", *arguments, "--yes").stdout)
        assert "gets tools to remember and to recall, and decides itself when to use them." in said
        assert "Before each prompt" not in said
    gone = on_one_line(run("uninstall", "claude-desktop", "--yes").stdout)
    assert "The agent in Claude Desktop loses its tools to remember and to recall. What is stored stays." in gone


def test_what_is_said_follows_the_settings_of_the_memory(run: Run, tmp_path: Path) -> None:
    home = tmp_path / ".mcp-memory"
    home.mkdir()
    (home / "config.toml").write_text('offload_over = 3000\nllm = "anthropic/claude-haiku-4-5"\n')
    said = on_one_line(run("install", "claude-code", stdin="n\n").stdout)
    assert "Tool results over 3,000 tokens are stored" in said
    assert "The model anthropic/claude-haiku-4-5 reads what is stored, up to 300,000 tokens a day." in said
    (home / "config.toml").write_text('offload_over = 0\nstore = "postgresql://memory.example/all"\n')
    said = on_one_line(run("install", "claude-code", stdin="n\n").stdout)
    assert "Tool results" not in said
    assert "the conversation is stored in the PostgreSQL database of your settings." in said
    said = on_one_line(run("install", "codex", "--env", "MCP_MEMORY_LLM=ollama/qwen3:8b", stdin="n\n").stdout)
    assert "The model ollama/qwen3:8b reads what is stored" in said


@pytest.mark.skipif(shutil.which("patch") is None, reason="the program patch")
@pytest.mark.parametrize("client", ["claude-code", "gemini", "codex"])
def test_a_copy_of_the_diff_makes_the_change_and_undoes_it(run: Run, tmp_path: Path, client: str) -> None:
    name = {"claude-code": ".claude/settings.json", "gemini": ".gemini/settings.json", "codex": ".codex/config.toml"}[
        client
    ]
    config, copy = tmp_path / name, tmp_path / "copy"
    config.parent.mkdir()
    note = f"{'x' * 200}\u2028y"
    original = f'note = "{note}"' if client == "codex" else f'{{\n  "note": "{note}",\n  "hooks": {{}}\n}}'
    config.write_text(original)
    copy.write_text(original)
    arguments = ["--home", str(tmp_path / "a home with a long name" / ("y" * 90)), "install", client]
    shown = run(*arguments, "--show", "--yes")
    assert (shown.exit_code, shown.stderr, config.read_text()) == (0, "", original)
    assert not any("…" in line for line in shown.stdout.splitlines())
    run(*arguments, "--yes")
    _patch(copy, _part_of(shown.stdout, config))
    assert copy.read_text() == config.read_text()
    assert run(*arguments, "--show").stdout == ""
    removal = run("uninstall", client, "--show").stdout
    assert copy.read_text() == config.read_text()
    _patch(copy, _part_of(removal, config))
    assert copy.read_text() == original


def _part_of(shown: str, file: Path) -> str:
    """Return the diff of one file in a diff of several."""
    parts = re.split(r"^(?=--- )", shown, flags=re.MULTILINE)
    return next(part for part in parts if part.startswith(f"--- {file}\n"))


def _patch(file: Path, diff: str) -> None:
    subprocess.run(["/usr/bin/env", f"PATH={os.defpath}", "patch", str(file)], input=diff, text=True, check=True)


def test_files_that_installations_made_and_changed_are_deleted(run: Run, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    run("install", "gemini", "--yes", "--no-hooks")
    run("install", "gemini", "--yes")
    gone = run("uninstall", "gemini", "--yes").output
    run("install", "claude-code", "--project", str(project), "--yes")
    run("install", "claude-code", "--project", str(project), "--per-project", "--yes")
    gone += run("uninstall", "claude-code", "--project", str(project), "--yes").output
    assert "Others changed" not in gone
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_was_installed_per_project_is_uninstalled_so(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path / "shop")
    run("install", "gemini", "--per-project", "--yes")
    assert (tmp_path / "shop/.gemini/settings.json").is_file()
    assert run("uninstall", "gemini", "--yes").exit_code == 1
    assert run("uninstall", "gemini", "--per-project", "--yes").exit_code == 0
    assert not (tmp_path / "shop/.gemini/settings.json").exists()
    for command in ("install", "uninstall"):
        said = on_one_line(run(command, "hermes", "--per-project", "--yes").output)
        assert "Hermes has no settings for a project: leave out --project and --per-project." in said


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("claude", " Did you mean claude-code or claude-desktop?"),
        ("Claude Code", " Did you mean claude-code?"),
        ("qwen", " Did you mean qwen-code?"),
        ("opencod", " Did you mean opencode?"),
        ("emacs", ""),
        ("", ""),
    ],
)
def test_a_client_with_a_similar_name_is_suggested(run: Run, typed: str, meant: str) -> None:
    assert f"There is no client {typed!r}.{meant} Known: claude-code," in on_one_line(run("install", typed).output)


def test_uninstalling_takes_everything_out_again(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    settings = '{"model": "opus",\n "hooks": {"Stop": []}}'
    (tmp_path / ".claude/settings.json").write_text(settings)
    run("install", "claude-code", "--yes")
    assert run("uninstall", "claude-code", stdin="n\n").exit_code == 1
    result = run("uninstall", "claude-code", "--yes")
    assert result.exit_code == 0, result.output
    assert [path.name for path in tmp_path.iterdir()] == [".claude"]
    assert (tmp_path / ".claude/settings.json").read_text() == settings
    again = run("uninstall", "claude-code", "--yes")
    assert (again.exit_code, again.stdout) == (1, "")
    assert "Claude Code has no server 'memory'" in again.stderr


def test_what_is_kept_of_a_file_that_others_changed_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    config = tmp_path / ".cursor/mcp.json"
    config.write_text('{"a": 1}')
    assert "kept next to it, as *.mcp-memory-backup" in run("install", "cursor", "--yes").output
    config.write_text(config.read_text().replace("1", "2"))
    assert f"it is still in {config}.mcp-memory-backup" in on_one_line(run("uninstall", "cursor", "--yes").output)
    assert config.read_text() == '{\n  "a": 2\n}'


def test_what_codex_notes_of_trusted_hooks_is_no_hindrance(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    config = tmp_path / ".codex/config.toml"
    config.write_text('model = "x"\n')
    noted = '\n[hooks.state."hooks.json:stop:0:0"]\ntrusted_hash = "sha256:00"\n'
    for _ in range(2):
        result = run("install", "codex", "--yes")
        assert result.exit_code == 0, result.output
        config.write_text(config.read_text() + noted)
        assert "installed, with hooks" in run("install").output
        assert run("uninstall", "codex", "--yes").exit_code == 0
        assert "trusted_hash" in config.read_text()
        config.write_text(config.read_text().replace(noted, ""))


def test_the_memory_that_is_named_is_the_one_that_clients_get(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("--home", "mine", "install", "claude-code", "--space", "work", "--yes")
    place = ["--home", str(tmp_path / "mine"), "--space", "work"]
    assert servers(tmp_path / ".claude.json")["memory"]["args"] == [*place, "serve"]
    hook = servers(tmp_path / ".claude/settings.json", "hooks")["Stop"][0]["hooks"][0]
    assert (hook["command"], hook["args"]) == (SCRIPT, [*place, "hook", "Stop"])
    monkeypatch.setenv("MCP_MEMORY_SPACE", "exported")
    run("install", "cursor", "--yes")
    assert servers(tmp_path / ".cursor/mcp.json")["memory"]["args"] == ["--space", "exported", "serve"]


def test_a_project_can_have_a_separate_memory_beside_the_shared_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    space = find_project(shop).space
    monkeypatch.chdir(shop)
    result = run("install", "claude-code", "--per-project", "--yes")
    assert f"Its memory is the space '{space}': mcp-memory --space {space} status" in result.output
    assert "The space 'default' is recalled beside it" in result.output
    places = ["--space", space, "--personal-space", "default"]
    assert servers(shop / ".mcp.json")["memory"]["args"] == [*places, "serve"]
    hook = servers(shop / ".claude/settings.local.json", "hooks")["Stop"][0]["hooks"][0]
    assert hook["args"] == [*places, "hook", "Stop"]
    run("remember", "I never eat fish.")
    run("remember", "The shop opens at nine.", "--space", space)
    recalled = run(*places, "recall", "When does the shop open, and who eats fish?").output
    assert "opens at nine" in recalled
    assert "I never eat fish. (personal:a1)" in recalled
    shutil.rmtree(tmp_path / ".mcp-memory")
    monkeypatch.chdir(tmp_path)
    options = ["--project", str(shop), "--space", "till", "--personal-space", "none"]
    assert "beside it" not in run("install", "cursor", "--per-project", *options, "--yes").output
    assert servers(shop / ".cursor/mcp.json")["memory"]["args"] == ["--space", "till", "serve"]
    for client in ("claude-code", "cursor"):
        assert run("uninstall", client, "--project", str(shop), "--yes").exit_code == 0
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_shared_memory_is_the_personal_one_whatever_its_space(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    monkeypatch.setenv("MCP_MEMORY_SPACE", "anna")
    run("install", "cursor", "--per-project", "--project", str(shop), "--yes")
    places = ["--space", find_project(shop).space, "--personal-space", "anna"]
    assert servers(shop / ".cursor/mcp.json")["memory"]["args"] == [*places, "serve"]


def test_a_memory_under_the_name_of_the_folder_is_kept_and_can_be_moved(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    monkeypatch.chdir(shop)
    space = find_project(shop).space
    assert "earlier name" not in run("install", "cursor", "--per-project", "--yes").output
    run("remember", "The shop opens at nine.", "--space", "shop")
    result = run("install", "cursor", "--per-project", "--yes")
    for command in ("export old.zip --space shop", f"--space {space} import old.zip"):
        assert f"mcp-memory {command}\n" in result.output
        assert run(*command.split()).exit_code == 0
    assert "opens at nine" in run("search", "opens", "--space", space).output
    assert "opens at nine" in run("search", "opens", "--space", "shop").output
    assert "earlier name" not in run("install", "cursor", "--per-project", "--space", "shop", "--yes").output
    assert "shop" in servers(shop / ".cursor/mcp.json")["memory"]["args"]


def test_a_folder_that_is_no_project_gets_no_separate_memory(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop").mkdir()
    for folder, options, said in (
        (tmp_path, [], "is not the folder of a project"),
        (tmp_path / "shop", ["--space", "default"], "that all share"),
    ):
        monkeypatch.chdir(folder)
        result = run("install", "cursor", "--per-project", *options, "--yes")
        assert (result.exit_code, said in result.stderr) == (2, True)
    assert (
        "has no settings for a project"
        in run("install", "claude-desktop", "--per-project", "--space", "x", "--yes").stderr
    )


def test_a_project_gets_no_second_memory_and_no_second_hooks(run: Run, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    for client in ("claude-code", "codex", "gemini"):
        run("install", client, "--yes")
        refused = run("install", client, "--project", str(shop), "--yes")
        assert (refused.exit_code, f"first: mcp-memory uninstall {client}" in refused.stderr) == (1, True)
        assert run("install", client, "--per-project", "--project", str(shop), "--no-hooks", "--yes").exit_code == 1
        assert run("install", client, "--project", str(shop), "--no-hooks", "--yes").exit_code == 0
        assert run("uninstall", client, "--yes").exit_code == 0
    (tmp_path / ".claude").mkdir(exist_ok=True)
    (tmp_path / ".claude/settings.json").write_text('{"enabledPlugins": {"mcp-memory@mcp-memory": true}}')
    refused = run("install", "claude-code", "--project", str(shop), "--yes")
    assert (refused.exit_code, "claude plugin uninstall mcp-memory@mcp-memory" in refused.stderr) == (1, True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
@pytest.mark.parametrize(("answer", "is_separate"), [("", False), ("separate", True)])
def test_at_a_terminal_whose_memory_it_is_to_be_is_asked_once(
    run: Run, tmp_path: Path, answer: str, is_separate: bool
) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    space = find_project(shop).space
    file = (shop if is_separate else tmp_path) / ".cursor/mcp.json"
    shown = at_a_terminal("install", "cursor", folder=shop, typed=f"{answer}\ny\n")
    question = f"All clients and projects can share one memory, or this project ('{space}') gets a separate one."
    assert question in on_one_line(shown)
    assert "Which memory (shared, separate) [shared]:" in shown
    places = ["--space", space, "--personal-space", "default"] if is_separate else []
    assert servers(file)["memory"]["args"] == [*places, "serve"]
    if not is_separate:
        assert "Which memory" not in at_a_terminal("install", "cursor", folder=shop, typed="y\n")
    assert "Which memory" not in run("install", "gemini", "--yes").output


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
@pytest.mark.parametrize(("answer", "llm"), [("y", "client:codex"), ("", "none")])
def test_at_a_terminal_whether_the_client_may_read_conversations_is_asked_once_and_the_answer_kept(
    run: Run, tmp_path: Path, answer: str, llm: str
) -> None:
    home = tmp_path / ".mcp-memory"
    question = "May Codex read them? [y/N]:"
    shown = at_a_terminal("install", "codex", folder=tmp_path, typed=f"shared\ny\n{answer}\n")
    assert question in shown
    price = "about 100,000 tokens on a day with 50 prompts, never more than 300,000."
    assert f"This counts against your account there: {price}" in on_one_line(shown)
    assert (home / "config.toml").read_text() == f'llm = "{llm}"\n'
    run("uninstall", "codex", "--yes")
    assert question not in at_a_terminal("install", "codex", folder=tmp_path, typed="shared\ny\n")


def test_nobody_is_asked_whether_the_client_may_read_without_a_terminal(run: Run, tmp_path: Path) -> None:
    for client in ("claude-code", "codex", "gemini"):
        assert "read them?" not in run("install", client, stdin="y\n").output
    assert not (tmp_path / ".mcp-memory").exists()


REFERENCE = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}
ENTITY = '{"type":"entity","name":"Ada","entityType":"person","observations":["keeps bees in Bristol"]}\n'


def test_without_a_terminal_the_command_that_imports_the_reference_memory_is_printed(run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "my memory.jsonl"
    kept.write_text(ENTITY)
    entry = {**REFERENCE, "env": {"MEMORY_FILE_PATH": "${HOME}/my memory.jsonl"}}
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text(json.dumps({"mcpServers": {"graph": entry}}))
    for arguments in (["--yes"], []):
        said = run("--space", "work", "install", "codex", *arguments, stdin="y\n").output
        assert f"with its memory in:\n  {kept}\n" in said
        assert f"To import it: mcp-memory --space work import '{kept}'\n" in said
        run("uninstall", "codex", "--yes")
    assert not (tmp_path / ".mcp-memory").exists()
    kept.unlink()
    assert "reference memory server" not in run("install", "codex", "--yes").output


def test_the_reference_memory_is_found_where_npm_keeps_its_package_and_in_any_configuration(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    package = Path("node_modules/@modelcontextprotocol/server-memory/dist")
    npx, everywhere = tmp_path / ".npm/_npx/15b07286cbcc3329" / package, tmp_path / ".npm-global/lib" / package
    for folder, name in ((npx, "memory.jsonl"), (everywhere, "memory.json")):
        folder.mkdir(parents=True)
        (folder / name).write_text(ENTITY)
    assert "reference memory server" not in run("install", "codex", "--yes").output
    run("uninstall", "codex", "--yes")
    for name, text in (
        (".claude.json", json.dumps({"projects": {"/p": {"mcpServers": {"graph": REFERENCE}}}})),
        (".codex/config.toml", '[mcp_servers.graph]\ncommand = "mcp-server-memory"\n'),
        (".mcp.json", json.dumps({"mcpServers": {"graph": REFERENCE}})),
    ):
        config = tmp_path / name
        config.parent.mkdir(exist_ok=True)
        config.write_text(text)
        said = run("install", "gemini", "--yes").output
        assert f"in:\n  {npx}/memory.jsonl\n  {everywhere}/memory.json\n" in said
        run("uninstall", "gemini", "--yes")
        config.unlink()


def test_if_the_reference_server_has_the_name_its_import_is_offered_with_the_refusal(run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "memory.jsonl"
    kept.write_text(ENTITY)
    entry = {**REFERENCE, "env": {"MEMORY_FILE_PATH": str(kept)}}
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": {"memory": entry}}))
    refused = run("install", "claude-code", "--yes")
    assert refused.exit_code == 1
    assert "Remove it, or use --name for ours." in refused.stderr
    assert f"To import it: mcp-memory import {kept}\n" in refused.stdout


def test_a_relative_file_is_in_the_package_and_strange_entries_are_no_hindrance(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / ".npm/_npx/15b0/node_modules/@modelcontextprotocol/server-memory/dist"
    folder.mkdir(parents=True)
    for name in ("memory.jsonl", "mine.jsonl"):
        (folder / name).write_text(ENTITY)
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini/settings.json").write_text("{")
    (tmp_path / ".cursor").mkdir()
    config = tmp_path / ".cursor/mcp.json"
    strange: list[tuple[Any, list[str]]] = [
        ({"MEMORY_FILE_PATH": "mine.jsonl"}, ["mine.jsonl"]),
        ({"MEMORY_FILE_PATH": 1}, ["memory.jsonl"]),
        ([], ["memory.jsonl"]),
        ({"MEMORY_FILE_PATH": "/none.jsonl"}, []),
    ]
    for variables, files in strange:
        config.write_text(json.dumps({"mcpServers": {"graph": {**REFERENCE, "env": variables}}}))
        said = run("install", "codex", "--yes").output
        assert [name for name in ("memory.jsonl", "mine.jsonl") if f"\n  {folder / name}\n" in said] == files
        run("uninstall", "codex", "--yes")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
def test_at_a_terminal_the_reference_memory_is_imported_after_a_yes_only(run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "memory.jsonl"
    kept.write_text(ENTITY)
    entry = {**REFERENCE, "env": {"MEMORY_FILE_PATH": str(kept)}}
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text(json.dumps({"mcpServers": {"graph": entry}}))
    question = "Import it into this memory? [y/N]:"
    shown = at_a_terminal("--space", "work", "install", "vscode", folder=tmp_path, typed="y\n\n")
    assert question in shown
    assert not (tmp_path / ".mcp-memory").exists()
    run("uninstall", "vscode", "--yes")
    shown = at_a_terminal("--space", "work", "install", "vscode", folder=tmp_path, typed="y\ny\n")
    assert question in shown
    assert "keeps bees in Bristol" in run("--space", "work", "search", "bees").output
    assert "reference memory server" not in run("--space", "work", "install", "gemini", "--yes").output


def at_a_terminal(*arguments: str, folder: Path, typed: str) -> str:
    """Return what the command line shows to somebody at a terminal, who typed ahead."""
    import pty

    ours, its = pty.openpty()
    os.write(ours, typed.encode())
    with subprocess.Popen([SCRIPT, *arguments], cwd=folder, stdin=its, stdout=its, stderr=its) as process:
        os.close(its)
        shown = b""
        with suppress(OSError):  # Linux says that the other side is gone by an error
            while more := os.read(ours, 4096):
                shown += more
    os.close(ours)
    assert process.returncode == 0, shown
    return shown.decode()


def test_hooks_can_be_left_out_and_another_name_taken(run: Run, tmp_path: Path) -> None:
    run("install", "claude-code", "--no-hooks", "--name", "mine", "--yes")
    assert list(servers(tmp_path / ".claude.json")) == ["mine"]
    assert not (tmp_path / ".claude").exists()
    assert "no server 'memory'" in run("uninstall", "claude-code", "--yes").stderr
    assert run("uninstall", "claude-code", "--name", "mine", "--yes").exit_code == 0
    assert not (tmp_path / ".claude.json").exists()


def test_a_project_has_its_own_and_what_is_shared_names_no_machine(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    run("install", "claude-code", "--project", str(project), "--yes")
    assert servers(project / ".mcp.json")["memory"]["command"] == SCRIPT  # no PATH leads to it
    assert (project / ".claude/settings.local.json").is_file()
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(SCRIPT).parent), SHORT_PATH]))
    run("install", "claude-code", "--project", str(project), "--yes")
    assert servers(project / ".mcp.json")["memory"]["command"] == "mcp-memory"
    assert not (tmp_path / ".claude.json").exists()
    refused = run("install", "claude-desktop", "--project", str(project))
    assert (refused.exit_code, "has no settings for a project" in refused.stderr) == (2, True)
    assert "claude-desktop" not in run("install", "--project", str(project)).output


def test_variables_go_into_the_entry_and_wrong_ones_are_told(run: Run, tmp_path: Path) -> None:
    run("install", "codex", "--env", "MCP_MEMORY_LLM=ollama/x", "--env", "KEY=a=b", "--yes")
    assert (
        '[mcp_servers.memory.env]\nMCP_MEMORY_LLM = "ollama/x"\nKEY = "a=b"\n'
        in (tmp_path / ".codex/config.toml").read_text()
    )
    shared = run("install", "cursor", "--project", str(tmp_path), "--env", "KEY=x", "--yes")
    assert "mcp.json is often shared with others" in on_one_line(shared.output)
    assert "Hooks do not see" in run("install", "claude-code", "--env", "MCP_MEMORY_LLM=x", "--yes").output
    for wrong, said in (("KEY", "wants NAME=VALUE"), ("=x", "wants NAME=VALUE"), ("MCP_MEMORY_LM=x", "no setting")):
        result = run("install", "codex", "--env", wrong, "--yes")
        assert (result.exit_code, said in result.stderr) == (2, True)


def test_names_that_no_client_could_read_are_told(run: Run, tmp_path: Path) -> None:
    for wrong in ("", "a b", "a.b", "x" * 33, "ü"):
        result = run("install", "codex", "--name", wrong, "--yes")
        assert (result.exit_code, "not one that every client takes" in result.stderr) == (2, True)
    result = run("--home", os.fsdecode(b"/tmp/\xff"), "install", "codex", "--yes")
    assert (result.exit_code, "is not UTF-8" in result.stderr) == (2, True)
    result = run("--space", "a/b", "install", "codex", "--yes")
    assert (result.exit_code, "path separator" in result.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_what_to_put_where_is_printed_for_any_client(run: Run, tmp_path: Path) -> None:
    other = run("install", "--print")
    assert json.loads(other.stdout) == {"mcpServers": {"memory": {"command": SCRIPT, "args": ["serve"]}}}
    codex = run("install", "codex", "--print")
    assert codex.stdout.startswith(f'[mcp_servers.memory]\ncommand = "{SCRIPT}"')
    assert str(tmp_path / ".codex/config.toml") in codex.stderr
    assert set(json.loads(run("install", "vscode", "--no-hooks", "--print").stdout)) == {"servers"}
    assert list(tmp_path.iterdir()) == []


def test_a_link_has_the_client_install_what_is_here(run: Run, tmp_path: Path) -> None:
    cursor = run("--space", "work", "install", "cursor", "--link", "--env", "A=b c+d")
    query = parse_qs(urlsplit(cursor.stdout.strip()).query)
    entry = {"command": SCRIPT, "args": ["--space", "work", "serve"], "env": {"A": "b c+d"}}
    assert query["name"] == ["memory"]
    assert json.loads(base64.b64decode(query["config"][0])) == entry
    vscode = run("install", "vscode", "--link", "--name", "mine").stdout.strip().removeprefix("vscode:mcp/install?")
    assert json.loads(unquote(vscode)) == {"name": "mine", "type": "stdio", "command": SCRIPT, "args": ["serve"]}
    for wrong in (["codex"], [], ["cursor", "--project", str(tmp_path)]):
        assert run("install", *wrong, "--link").exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_client_that_is_not_known_is_told_which_are(run: Run) -> None:
    for command in (["install", "emacs"], ["uninstall", "emacs"], ["install", "emacs", "--check"]):
        result = run(*command)
        assert (result.exit_code, "Known: claude-code, claude-desktop" in result.stderr) == (2, True)


def test_a_configuration_that_is_broken_is_told_and_both_files_stay(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text('{"hooks": [')
    result = run("install", "claude-code", "--yes")
    assert result.exit_code == 2
    assert f"{tmp_path}/.claude/settings.json is not valid JSON: line 1, column 12" in result.stderr
    assert not (tmp_path / ".claude.json").exists()


# --- whether it answers -------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_installed_is_started_and_greeted(run: Run, tmp_path: Path) -> None:
    assert "No client has it yet" in run("install", "--check").output
    missing = run("install", "cursor", "--check")
    assert (missing.exit_code, "not installed in Cursor" in missing.stderr) == (1, True)
    run("--home", str(tmp_path / "mine"), "install", "claude-desktop", "--yes")
    result = run("install", "claude-desktop", "--check")
    assert result.exit_code == 0, result.output
    assert "Claude Desktop: mcp-memory " in result.output
    assert "11 tools" in result.output
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text(
        '{"mcpServers": {"memory": {"command": "/no/mcp-memory", "args": ["serve"]}}}'
    )
    both = run("install", "cursor", "--check")
    assert (both.exit_code, "There is no program '/no/mcp-memory'" in both.stderr) == (1, True)


def test_a_server_that_ends_or_talks_nonsense_is_told_with_its_last_words() -> None:
    script = "import sys; print('Error: no such setting', file=sys.stderr); sys.exit(2)"
    with pytest.raises(Refused, match=r"did not complete the handshake.* It wrote: Error: no such setting"):
        check({"command": sys.executable, "args": ["-c", script]})


@pytest.mark.slow
def test_an_entry_that_starts_nothing_or_whose_memory_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="names no command"):
        check({"type": "http", "url": "http://127.0.0.1:1/mcp"})
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match=r"did not complete the handshake.*file is a file, but a home must be a folder"):
        check({"command": SCRIPT, "args": ["--home", str(tmp_path / "file" / "home"), "serve"]})


def test_another_server_of_that_name_is_not_started(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    entry = {"command": "touch", "args": [str(tmp_path / "started")]}
    (tmp_path / ".cursor/mcp.json").write_text(json.dumps({"mcpServers": {"memory": entry}}))
    result = run("install", "cursor", "--check")
    assert (result.exit_code, "another server called 'memory'" in result.stderr) == (1, True)
    assert not (tmp_path / "started").exists()


def test_a_desktop_program_does_not_find_what_only_a_shell_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(SCRIPT).parent), SHORT_PATH]))
    assert shutil.which("mcp-memory") == SCRIPT
    with pytest.raises(Refused, match="There is no program 'mcp-memory'"):
        check({"command": "mcp-memory", "args": ["serve"]}, from_desktop=True)


def test_references_are_filled_in_as_clients_do() -> None:
    environ = {"KEY": "k", "EMPTY": ""}
    assert expand_variables("${KEY} ${env:KEY} ${NONE:-d} ${EMPTY:-e} ${NONE} $KEY", environ) == "k k d e  $KEY"
    told = environment({"env": {"A": "${KEY}", "N": 1}}, from_desktop=False, environ=environ)
    assert told == {"A": "k", "N": "1"}
