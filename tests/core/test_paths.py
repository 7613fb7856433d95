"""Paths in settings: expanded as a shell would, and refused if they depend on the working folder or are no folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_memory.core.config import load_settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.hooks.endpoint import daemon_files
from mcp_memory.models.embed.factory import make_embedder


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
    with pytest.raises(InvalidInput, match=r"file is a file, and a home is a folder. Name a folder with --home"):
        load_settings({}, home=tmp_path / "file" / below)
    assert (tmp_path / "file").read_text() == "not a folder"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="modes; root may read everything")
def test_a_home_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0)
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_settings({}, home=tmp_path / "home")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["status", "search x", "doctor", "serve", "ui", "backup", "remember x"])
def test_commands_say_that_a_home_is_a_file(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = subprocess.run(
        [sys.executable, "-m", "mcp_memory", "--home", str(tmp_path / "file"), *command.split()],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode in (1, 2)
    told = " ".join((done.stdout + done.stderr).split())
    assert "is a file, and a home is a folder" in told
    assert "Traceback" not in told


@pytest.mark.slow
def test_a_folder_of_another_program_is_said(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("of another program")
    done = subprocess.run(
        [sys.executable, "-m", "mcp_memory", "--home", str(tmp_path), "status"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "It holds files of other programs (index.html)" in " ".join(done.stdout.split())
