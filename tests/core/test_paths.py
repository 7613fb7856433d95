"""Paths in settings: expanded as a shell would, and refused if they depend on the working folder or are no folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcp_memory.cli.main import program
from mcp_memory.core.config import load_settings, require_home
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.private_files import make_folder
from mcp_memory.integrations.hooks.daemon_files import daemon_files
from mcp_memory.models.embed.factory import make_embedder
from mcp_memory.service.memory import open_memory
from tests.cli.conftest import unwrapped


def home_of(text: str) -> Path:
    return load_settings({"MCP_MEMORY_HOME": text}).home


@pytest.mark.parametrize("text", ["~/x", "$HOME/x", "${HOME}/x"])
def test_the_home_of_the_environment_is_expanded(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert home_of(text) == Path.home() / "x"
    assert load_settings({}, home=text).home == Path.home() / "x"
    monkeypatch.setenv("MCP_MEMORY_HOME", text)
    place = daemon_files(None, None)
    assert place is not None
    assert place.home == Path.home() / "x"


@pytest.mark.parametrize(
    "text", ["mem", "./mem", "../mem", ".", "$NOWHERE/x", "${NOWHERE}/x", "~nobody-here/x", "a\0b"]
)
def test_a_home_that_depends_on_the_working_folder_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"MCP_MEMORY_HOME .+ Write the whole path"):
        home_of(text)
    if "\0" not in text:  # which no variable can have
        monkeypatch.setenv("MCP_MEMORY_HOME", text)
        assert daemon_files(None, None) is None
    assert not any(tmp_path.iterdir())


def test_a_home_of_the_command_line_is_relative_to_the_folder_it_is_typed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings({"MCP_MEMORY_HOME": "refused"}, home="mem").home == tmp_path / "mem"


@pytest.mark.parametrize("embedder", ["model2vec:./model", "fastembed:../model", "model2vec:$NOWHERE/model"])
def test_the_folder_of_a_model_is_a_whole_path(embedder: str) -> None:
    with pytest.raises(InvalidInput, match=r"MCP_MEMORY_EMBEDDER .+ Write the whole path"):
        make_embedder(load_settings({"MCP_MEMORY_EMBEDDER": embedder}))


@pytest.mark.parametrize("below", ["", "home", "deep/home"])
def test_a_home_that_is_a_file_or_in_one_is_refused(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InvalidInput, match=r"file is a file, but a home must be a folder. Name a folder with --home"):
        load_settings({}, home=tmp_path / "file" / below)
    assert (tmp_path / "file").read_text() == "not a folder"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="modes; root may read everything")
def test_a_home_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0)
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_settings({}, home=tmp_path / "home")


@pytest.mark.parametrize("command", ["status", "search x", "doctor", "serve", "ui", "backup", "remember x"])
def test_commands_say_that_a_home_is_a_file(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = CliRunner().invoke(program, ["--home", str(tmp_path / "file"), *command.split()])
    assert done.exit_code in (1, 2)
    assert isinstance(done.exception, SystemExit)
    assert "is a file, but a home must be a folder" in " ".join(done.output.split())


def test_a_folder_of_another_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("of another program")
    done = CliRunner().invoke(program, ["--home", str(tmp_path), "status"])
    assert "It contains files of other programs (index.html)" in " ".join(done.stdout.split())


def test_the_root_of_the_machine_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    for place in ("/", str(tmp_path / "link")):
        with pytest.raises(InvalidInput, match="needs a separate folder"):
            require_home(load_settings({}, home=place))


async def test_a_new_memory_changes_no_permissions_of_folders_that_it_did_not_make(tmp_path: Path) -> None:
    (tmp_path / "home" / "run").mkdir(parents=True)
    (tmp_path / "home" / "run").chmod(0o755)
    async with open_memory(home=tmp_path / "home", embedder="none") as memory:
        await memory.remember("The boat is red.")
    assert (tmp_path / "home" / "run").stat().st_mode & 0o777 == 0o755


@pytest.mark.skipif(sys.platform == "win32", reason="bytes in paths")
def test_a_home_whose_path_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    for given in ({"MCP_MEMORY_HOME": f"{tmp_path}/a\udcff"}, {}):
        with pytest.raises(InvalidInput, match="is not UTF-8"):
            load_settings(given, home=None if given else f"{tmp_path}/a\udcff")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")
def test_a_folder_where_none_can_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        make_folder(Path("/proc/mem-x/deep"))
    done = CliRunner().invoke(program, ["--home", "/proc/mem-x", "remember", "The boat is red."])
    assert (done.exit_code, done.exception.__class__) == (1, SystemExit)
    assert "/proc/mem-x" in unwrapped(done.output)
