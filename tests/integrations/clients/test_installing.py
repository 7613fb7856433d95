"""The commands `install` and `uninstall`, on a home folder of their own."""

from __future__ import annotations

import base64
import json
import os
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
from mcp_memory.integrations.clients.programs import CLIENTS, PLUGIN, PLUGIN_COMMANDS
from mcp_memory.integrations.clients.server_check import SHORT_PATH, check, environment, expand_variables
from mcp_memory.integrations.hooks import hooks_of

Run = Callable[..., Result]

SCRIPT = str(Path(sys.executable).with_name("mcp-memory"))
MOVING = ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "VSCODE_PORTABLE")


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
    listed = {line.split()[0]: line for line in run("install").output.splitlines()[1:7]}
    assert list(listed) == list(CLIENTS)
    assert all("installed" in line for line in listed.values())
    assert "installed, with hooks" in listed["claude-code"]


def test_the_list_names_what_is_there_and_what_cannot_be_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text('{"mcpServers": {"memory": {"command": "npx"}}}')
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini/settings.json").write_text("{")
    listed = {line.split()[0]: line for line in run("install").output.splitlines()[1:7]}
    assert "another server" in listed["cursor"]
    assert "cannot be read" in listed["gemini"]
    assert listed["codex"].split()[1:3] == ["-", "-"]


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
        assert '+    "memory": {' in result.stdout
        assert "Nothing was changed. Say --yes" in result.stderr
        assert not (tmp_path / ".cursor").exists()
    result = run("install", "cursor", stdin="y\n")
    assert result.exit_code == 0
    assert "Cursor was not found on this machine" in result.output
    assert (tmp_path / ".cursor/mcp.json").is_file()


def test_the_change_is_shown_whole_and_within_80_columns(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini/settings.json").write_text(
        '{\n  "note": "' + "x" * 200 + '",\n  "hooks": {"SessionEnd": []}\n}\n'
    )
    for client in ("claude-code", "gemini", "codex"):
        home = tmp_path / "a home with a long name" / ("y" * 90)
        shown = run("--home", str(home), "install", client, stdin="n\n").stdout.splitlines()
        changed = [line for line in shown if line.startswith(("+", "-", " ")) and not line.startswith(("---", "+++"))]
        assert max(map(len, changed)) <= 80
        added = "".join(line[1:].strip() for line in changed if line[0] == "+")
        assert added.count("y" * 90) == 1 + len(hooks_of(client, ["mcp-memory"]))
        assert not any("…" in line for line in changed if line[0] in "+-")


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
    assert "has no projects" in run("install", "claude-desktop", "--per-project", "--space", "x", "--yes").stderr


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
    assert "This uses your account there, up to 300,000 tokens a day." in on_one_line(shown)
    assert (home / "config.toml").read_text() == f'llm = "{llm}"\n'
    run("uninstall", "codex", "--yes")
    assert question not in at_a_terminal("install", "codex", folder=tmp_path, typed="shared\ny\n")


def test_nobody_is_asked_whether_the_client_may_read_without_a_terminal(run: Run, tmp_path: Path) -> None:
    for client in ("claude-code", "codex", "gemini"):
        assert "read them?" not in run("install", client, stdin="y\n").output
    assert not (tmp_path / ".mcp-memory").exists()


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
    assert (refused.exit_code, "has no projects" in refused.stderr) == (2, True)
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
    assert set(json.loads(run("install", "vscode", "--print").stdout)) == {"servers"}
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
