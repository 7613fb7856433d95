"""Only regular files are read: no device, no pipe, nothing larger than was allowed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mcp_memory.core.config import load_settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.regular_files import open_regular, read_regular
from mcp_memory.integrations.hooks.transcripts import recalled_before, whole_output
from mcp_memory.integrations.importers.log_file import agent_of, read_chunks
from mcp_memory.integrations.importers.reader import first_value
from mcp_memory.integrations.importers.streams import readable_file
from mcp_memory.service.portable.reading import is_parcel
from mcp_memory.service.upkeep.archive import is_backup
from mcp_memory.service.upkeep.backup import verify

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices have other names there")


@pytest.fixture(params=["a device", "a pipe", "a link to a device"])
def endless(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "endless.jsonl"
    match request.param:
        case "a device":
            return Path("/dev/zero")
        case "a pipe":
            os.mkfifo(path)
        case _:
            path.symlink_to("/dev/zero")
    return path


def test_what_is_no_regular_file_is_not_opened(endless: Path) -> None:
    with pytest.raises(OSError, match="it is not a regular file"):
        open_regular(endless)


def test_a_folder_is_none_and_a_name_with_a_nul_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "a\0b")


def test_a_file_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    (tmp_path / "link").symlink_to(path)
    assert read_regular(tmp_path / "link", 5) == b"12345"
    with pytest.raises(OSError, match="larger than"):
        read_regular(path, 4)


def test_every_reader_of_a_named_path_passes_an_endless_one_over(endless: Path) -> None:
    assert recalled_before(endless) == []
    assert whole_output(endless, "call_1") is None
    assert first_value(readable_file(endless)) is None
    assert not is_parcel(endless)
    assert not is_backup(endless)
    for read in (agent_of, lambda path: list(read_chunks(path, "codex", None)), verify):  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType, reportUnknownArgumentType]
        with pytest.raises(InvalidInput, match="it is not a regular file"):
            read(endless)


def test_settings_that_are_a_device_are_refused(home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").symlink_to("/dev/zero")
    with pytest.raises(InvalidInput, match=r"config\.toml cannot be read: it is not a regular file"):
        load_settings({}, home=home)
