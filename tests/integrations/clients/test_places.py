"""Where configurations are on each system, and what starts this installation: pure functions of a machine."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from mcp_memory.core.distribution import SOURCE
from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.clients.programs import (
    CLIENTS,
    Machine,
    client_named,
    command_for,
    existing_path,
    hooks_files,
    plugin_files,
    server_files,
)

LINUX = Machine("linux", {}, PurePosixPath("/home/ada"))
MACOS = Machine("macos", {}, PurePosixPath("/Users/ada"))
WINDOWS = Machine(
    "windows",
    {"APPDATA": r"D:\Roaming", "LOCALAPPDATA": r"D:\Local", "XDG_CONFIG_HOME": r"D:\xdg"},
    PureWindowsPath(r"C:\Users\Ada"),
)


@pytest.mark.parametrize(
    ("client", "linux", "macos", "windows"),
    [
        (
            "claude-desktop",
            ["/home/ada/.config/Claude/claude_desktop_config.json"],
            ["/Users/ada/Library/Application Support/Claude/claude_desktop_config.json"],
            [
                r"D:\Local\Packages\Claude_*\LocalCache\Roaming\Claude\claude_desktop_config.json",
                r"D:\Roaming\Claude\claude_desktop_config.json",
            ],
        ),
        ("claude-code", ["/home/ada/.claude.json"], ["/Users/ada/.claude.json"], [r"C:\Users\Ada\.claude.json"]),
        ("cursor", ["/home/ada/.cursor/mcp.json"], ["/Users/ada/.cursor/mcp.json"], [r"C:\Users\Ada\.cursor\mcp.json"]),
        (
            "vscode",
            [f"/home/ada/.config/{edition}/User/mcp.json" for edition in ("Code", "Code - Insiders", "VSCodium")],
            [
                f"/Users/ada/Library/Application Support/{edition}/User/mcp.json"
                for edition in ("Code", "Code - Insiders", "VSCodium")
            ],
            [rf"D:\Roaming\{edition}\User\mcp.json" for edition in ("Code", "Code - Insiders", "VSCodium")],
        ),
        (
            "codex",
            ["/home/ada/.codex/config.toml"],
            ["/Users/ada/.codex/config.toml"],
            [r"C:\Users\Ada\.codex\config.toml"],
        ),
        (
            "gemini",
            ["/home/ada/.gemini/settings.json"],
            ["/Users/ada/.gemini/settings.json"],
            [r"C:\Users\Ada\.gemini\settings.json"],
        ),
    ],
)
def test_each_client_has_its_file_on_each_system(
    client: str, linux: list[str], macos: list[str], windows: list[str]
) -> None:
    told = [[str(path) for path in server_files(client, machine)] for machine in (LINUX, MACOS, WINDOWS)]
    assert told == [linux, macos, windows]


@pytest.mark.parametrize(
    ("client", "variable", "file"),
    [
        ("claude-desktop", "XDG_CONFIG_HOME", "/elsewhere/Claude/claude_desktop_config.json"),
        ("claude-code", "CLAUDE_CONFIG_DIR", "/elsewhere/.claude.json"),
        ("vscode", "XDG_CONFIG_HOME", "/elsewhere/Code/User/mcp.json"),
        ("vscode", "VSCODE_PORTABLE", "/elsewhere/user-data/User/mcp.json"),
        ("codex", "CODEX_HOME", "/elsewhere/config.toml"),
        ("gemini", "GEMINI_CLI_HOME", "/elsewhere/.gemini/settings.json"),
    ],
)
def test_the_variables_of_the_clients_move_their_files(client: str, variable: str, file: str) -> None:
    moved = Machine("linux", {variable: "/elsewhere"}, LINUX.home)
    assert str(server_files(client, moved)[0]) == file
    for nonsense in ("", "not/absolute"):
        assert server_files(client, Machine("linux", {variable: nonsense}, LINUX.home))[0].is_relative_to(LINUX.home)


def test_hooks_are_in_the_settings_and_those_of_a_project_are_the_users_own() -> None:
    project = PurePosixPath("/shop")
    assert [str(path) for path in hooks_files("claude-code", LINUX)] == ["/home/ada/.claude/settings.json"]
    assert [str(path) for path in hooks_files("claude-code", LINUX, project)] == ["/shop/.claude/settings.local.json"]
    assert hooks_files("gemini", LINUX) == server_files("gemini", LINUX)
    assert hooks_files("claude-desktop", LINUX) == []
    assert hooks_files("cursor", LINUX, project) == []


def test_plugins_are_enabled_in_the_settings_and_those_of_a_project_count_more() -> None:
    user = "/home/ada/.claude/settings.json"
    assert [str(path) for path in plugin_files(LINUX)] == [user]
    told = [str(path) for path in plugin_files(LINUX, PurePosixPath("/shop"))]
    assert told == [user, "/shop/.claude/settings.json", "/shop/.claude/settings.local.json"]


def test_a_project_has_a_file_for_each_client_that_knows_projects() -> None:
    files = {
        client: server_files(client, LINUX, PurePosixPath("/shop"))
        for client in CLIENTS
        if client_named(client).project
    }
    assert {client: [str(path) for path in paths] for client, paths in files.items()} == {
        "claude-code": ["/shop/.mcp.json"],
        "copilot": ["/shop/.github/mcp.json"],
        "cursor": ["/shop/.cursor/mcp.json"],
        "vscode": ["/shop/.vscode/mcp.json"],
        "codex": ["/shop/.codex/config.toml"],
        "gemini": ["/shop/.gemini/settings.json"],
        "opencode": ["/shop/opencode.json"],
        "qwen-code": ["/shop/.qwen/settings.json"],
    }
    with pytest.raises(InvalidInput, match="no settings for a project"):
        server_files("claude-desktop", LINUX, PurePosixPath("/shop"))


def test_of_several_candidates_the_one_whose_folder_is_there_is_meant(tmp_path: Path) -> None:
    packaged, usual = tmp_path / "Packages" / "Claude_*" / "LocalCache" / "c.json", tmp_path / "Claude" / "c.json"
    assert existing_path([packaged, usual]) == usual
    usual.parent.mkdir()
    assert existing_path([packaged, usual]) == usual
    real = tmp_path / "Packages" / "Claude_pz8" / "LocalCache"
    real.mkdir(parents=True)
    assert existing_path([packaged, usual]) == real / "c.json"
    assert existing_path([tmp_path / "none" / "c.json", usual]) == usual


# --- the command ------------------------------------------------------------------------------------


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment with the installed script."""
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "mcp-memory").touch()
    return tmp_path / "venv"


def test_the_command_is_the_script_by_its_full_path(environment: Path) -> None:
    script = environment / "bin" / "mcp-memory"
    assert command_for(environment / "bin" / "python", environment, lambda _: None) == [str(script)]
    assert command_for(environment / "bin" / "python", environment, lambda _: "/usr/bin/mcp-memory") == [str(script)]


def test_a_name_on_the_path_that_leads_to_the_script_outlives_it(environment: Path, tmp_path: Path) -> None:
    named = tmp_path / "mcp-memory"
    named.symlink_to(environment / "bin" / "mcp-memory")
    assert command_for(environment / "bin" / "python", environment, lambda _: str(named)) == [str(named)]


def test_without_a_script_python_runs_the_module(tmp_path: Path) -> None:
    python = tmp_path / "python"
    assert command_for(python, tmp_path, lambda _: None) == [str(python), "-m", "mcp_memory"]


@pytest.mark.parametrize(
    ("prefix", "runner", "told"),
    [
        ("/home/ada/.cache/uv/archive-v0/x1", "uvx", ["/bin/uvx", "--from", SOURCE, "mcp-memory"]),
        ("/Users/ada/.cache/uv/environments-v2/x1", "uvx", ["/bin/uvx", "--from", SOURCE, "mcp-memory"]),
        ("/home/ada/.local/share/pipx/.cache/x1", "pipx", ["/bin/pipx", "run", "--spec", SOURCE, "mcp-memory"]),
    ],
)
def test_an_environment_made_for_one_run_is_left_to_its_runner(prefix: str, runner: str, told: list[str]) -> None:
    found_by = {runner: f"/bin/{runner}"}
    assert command_for(Path(prefix, "bin", "python"), Path(prefix), found_by.get) == told
