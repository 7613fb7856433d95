"""The plugin of coding agents: its files agree with the package, and its launcher never stands in anybody's way."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.core.config import PREFIX, Settings
from mcp_memory.core.distribution import DISTRIBUTION, RELEASED, SOURCE
from mcp_memory.server.tools import TOOLS
from scripts.make_bundle import project

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = ROOT / "plugin"
LAUNCH = PLUGIN / "launch"
OPTION = "CLAUDE_PLUGIN_OPTION_"
posix = pytest.mark.skipif(sys.platform == "win32", reason="launch.cmd is what runs there")


def told(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


MANIFEST = told(PLUGIN / ".claude-plugin" / "plugin.json")


# --- what the files say -----------------------------------------------------------------------------


def test_what_is_missing_is_fetched_from_the_project_alone() -> None:
    """Never by the package's name before its release: a registry may have a stranger's program under it."""
    wanted = DISTRIBUTION if RELEASED else SOURCE
    for file in (LAUNCH, PLUGIN / "launch.cmd"):
        text = file.read_text(encoding="utf-8")
        assert re.findall(r"\bsource=([^\s\"]+)", text) == [wanted]
        fetching = re.findall(r"(?:--from|--spec|pipx install) (\S+)", text)
        assert {re.sub(r"[\"$!]", "", source) for source in fetching} == {"source"}
    readme = (PLUGIN / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"pipx install ([^\s`]+)", readme)) == {wanted}


def test_every_file_names_one_address_of_the_project() -> None:
    address = project()["urls"]["Repository"]
    files = [path for folder in ("plugin", "bundle", ".claude-plugin") for path in (ROOT / folder).rglob("*")]
    texts = [
        path.read_text(encoding="utf-8") for path in [*files, ROOT / "server.json"] if path.suffix in {".json", ".md"}
    ]
    assert {url for text in texts for url in re.findall(r"https://github\.com/[\w-]+/[\w-]+", text)} == {address}
    readme = (PLUGIN / "README.md").read_text(encoding="utf-8")
    for marketplace in re.findall(r"marketplace add (\S+)", readme):
        assert address.endswith(f"github.com/{marketplace}")


def test_its_options_are_settings_that_reach_the_server_and_may_stay_empty() -> None:
    [server] = MANIFEST["mcpServers"].values()
    options = MANIFEST["userConfig"]
    assert set(options) <= set(Settings.model_fields)
    assert server["env"] == {f"{OPTION}{name.upper()}": f"${{user_config.{name}}}" for name in options}
    # Without a default the client leaves out a server whose option nobody has set.
    assert {name: option["default"] for name, option in options.items()} == dict.fromkeys(options, "")
    secret = {name for name, field in Settings.model_fields.items() if not field.repr}
    assert {name for name, option in options.items() if option.get("sensitive")} == secret & set(options)


def test_both_launchers_hand_on_every_option() -> None:
    for launcher in (LAUNCH, PLUGIN / "launch.cmd"):
        text = launcher.read_text(encoding="utf-8")
        assert {name.lower() for name in re.findall(rf"{PREFIX}([A-Z_]+)=", text)} == set(MANIFEST["userConfig"])


def test_the_line_ends_are_those_that_each_shell_reads() -> None:
    assert b"\r" not in LAUNCH.read_bytes()
    batch = (PLUGIN / "launch.cmd").read_bytes()
    assert batch.count(b"\r\n") == batch.count(b"\n")


def test_the_skill_names_tools_that_there_are() -> None:
    skill = (PLUGIN / "skills" / "memory" / "SKILL.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z]+_[a-z_]+|recall|remember|forget|distill)`", skill))
    assert named
    assert named - {tool.name for tool in TOOLS} <= {parameter for tool in TOOLS for parameter in properties(tool)}


def properties(tool: Any) -> set[str]:
    return set(tool.definition.input_schema["properties"])


def test_the_icon_is_a_square_png_of_512_pixels() -> None:
    icon = (PLUGIN / MANIFEST["icon"]).read_bytes()
    assert icon.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", icon[16:24]) == (512, 512)


# --- the launcher -----------------------------------------------------------------------------------

TELL = '#!/bin/sh\necho "$(basename "$0") $*"\n'


def program(folder: Path, name: str, script: str = TELL) -> None:
    """Put a program in the place of the real one; as it is, it says how it was called."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(script, encoding="utf-8")
    (folder / name).chmod(0o755)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home and a PATH with the few programs that the scripts of these tests need."""
    (tmp_path / "bin").mkdir()
    for name in ("basename", "env", "mkdir", "sh"):
        (tmp_path / "bin" / name).symlink_to(
            next(Path(each, name) for each in ("/bin", "/usr/bin") if Path(each, name).exists())
        )
    return tmp_path


def launch(place: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(place / "bin"), "HOME": str(place), **environ}
    return subprocess.run(
        [LAUNCH, *arguments], env=environment, input="{}", capture_output=True, text=True, check=False
    )


@posix
@pytest.mark.parametrize("there", ["bin/mcp-memory", ".local/bin/mcp-memory"])
def test_the_server_is_the_program_that_is_installed(place: Path, there: str) -> None:
    program((place / there).parent, "mcp-memory")
    assert launch(place, "serve").stdout == "mcp-memory serve\n"


@posix
def test_a_server_that_is_nowhere_is_missed_with_a_sentence(place: Path) -> None:
    done = launch(place, "serve")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr.startswith("mcp-memory was not found. Install it: pipx install ")


UVX = '#!/bin/sh\necho "uvx $*" >&2\necho "$FETCHED"\n'
"""A uv that has fetched the program that the variable names."""


@posix
def test_uv_fetches_the_program_for_the_server_and_the_hooks_run_it_too(place: Path) -> None:
    program(place / "bin", "uvx", UVX)
    program(place / "environment", "mcp-memory")
    assert launch(place, "hook", "Stop", FETCHED=str(place / "environment" / "mcp-memory")).stdout == ""
    served = launch(place, "serve", FETCHED=str(place / "environment" / "mcp-memory"))
    assert served.stdout == "mcp-memory serve\n"
    assert served.stderr.startswith(f"uvx --from {SOURCE} python -c ")
    hooked = launch(place, "hook", "Stop")
    assert (hooked.stdout, hooked.stderr) == ("mcp-memory hook Stop\n", "")


@posix
def test_a_program_that_was_fetched_starts_without_a_network(place: Path) -> None:
    program(place / "bin", "uvx", UVX)
    program(place / "environment", "mcp-memory")
    launch(place, "serve", FETCHED=str(place / "environment" / "mcp-memory"))
    program(place / "bin", "uvx", "#!/bin/sh\nexit 1\n")
    assert launch(place, "serve").stdout == "mcp-memory serve\n"


@posix
def test_a_program_that_uv_has_removed_is_missed_by_the_server_alone(place: Path) -> None:
    program(place / "bin", "uvx", UVX)
    launch(place, "serve", FETCHED=str(place / "removed"))
    assert (launch(place, "serve").returncode, launch(place, "hook", "Stop").returncode) == (127, 0)


@posix
def test_pipx_runs_the_server_where_there_is_no_uv(place: Path) -> None:
    program(place / "bin", "pipx")
    assert launch(place, "serve").stdout == f"pipx run --spec {SOURCE} mcp-memory serve\n"
    assert launch(place, "hook", "Stop").stdout == ""


@posix
def test_an_installed_program_comes_before_uv(place: Path) -> None:
    program(place / "bin", "uvx")
    program(place / ".local" / "bin", "mcp-memory")
    assert launch(place, "serve").stdout == "mcp-memory serve\n"


@posix
@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"PATH": ""}, {"PATH": "", "HOME": ""}])
def test_a_hook_without_a_program_is_silent(place: Path, environ: dict[str, str]) -> None:
    done = launch(place, "hook", "Stop", **environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@posix
def test_a_hook_that_fails_stops_nothing(place: Path) -> None:
    # An old program that knows no hooks ends with 2, by which a client would refuse what the user has said.
    program(place / "bin", "mcp-memory", "#!/bin/sh\necho 'No such command' >&2\nexit 2\n")
    done = launch(place, "hook", "UserPromptSubmit")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@posix
def test_a_hook_hears_what_the_client_says_and_its_answer_is_passed_on(place: Path) -> None:
    program(place / "bin", "mcp-memory", '#!/bin/sh\nread -r said\necho "$* $said"\n')
    assert launch(place, "hook", "SessionStart").stdout == "hook SessionStart {}\n"


@posix
def test_options_win_over_the_environment_and_empty_ones_leave_it_alone(place: Path) -> None:
    program(place / "bin", "mcp-memory", "#!/bin/sh\nenv\n")
    environ = {f"{OPTION}SPACE": "it's work", f"{OPTION}LLM": "", f"{OPTION}LLM_API_KEY": "k y"}
    said = launch(place, "serve", **environ, MCP_MEMORY_SPACE="home", MCP_MEMORY_LLM="ollama/a")
    seen = dict(line.split("=", 1) for line in said.stdout.splitlines())
    assert {name: value for name, value in seen.items() if name.startswith(PREFIX)} == {
        "MCP_MEMORY_SPACE": "it's work",
        "MCP_MEMORY_LLM": "ollama/a",
        "MCP_MEMORY_LLM_API_KEY": "k y",
    }
    assert f"{OPTION}LLM_API_KEY" not in seen


@posix
def test_the_launcher_may_be_run_from_a_clone() -> None:
    assert os.access(LAUNCH, os.X_OK)
