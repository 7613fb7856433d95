"""Tensors that are mapped from a file are those that the library of the format wrote."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save_file  # pyright: ignore[reportUnknownVariableType]

from mcp_memory.models.embed.bundled import MODEL
from mcp_memory.models.embed.mapped_files import drop_pages, mapped_tensors


@pytest.mark.parametrize("path", sorted(MODEL.glob("*.safetensors")), ids=lambda path: path.stem)
def test_every_tensor_of_the_package_is_what_the_library_reads(path: Path) -> None:
    expected, mapped = load(path.read_bytes()), mapped_tensors(path)
    assert mapped.keys() == expected.keys()
    for name, tensor in expected.items():
        assert mapped[name].dtype == tensor.dtype
        np.testing.assert_array_equal(mapped[name], tensor)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> np.memmap:
    path = tmp_path_factory.mktemp("rows") / "table.npy"
    np.save(path, np.arange(2_000 * 512).reshape(2_000, 512) % 251)
    return np.load(path, mmap_mode="r")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_pages_that_are_dropped_leave_the_memory_of_the_process_and_can_be_read_again(table: np.memmap) -> None:
    def resident() -> int:
        mapped = Path("/proc/self/smaps").read_text(encoding="utf-8").partition(str(table.filename))[2]
        return int(mapped.partition("Rss:")[2].split()[0])

    before = table[::7].copy()
    assert resident() > 0
    drop_pages(table)
    assert resident() == 0
    np.testing.assert_array_equal(table[::7], before)


def test_metadata_is_no_tensor(tmp_path: Path) -> None:
    path = tmp_path / "some.safetensors"
    save_file({"ones": np.ones((2, 3), np.float32)}, path, metadata={"made": "today"})
    assert list(mapped_tensors(path)) == ["ones"]


@pytest.mark.parametrize("left", [0, 4, 40, 150])
def test_a_file_that_was_cut_is_refused(tmp_path: Path, left: int) -> None:
    path = tmp_path / "some.safetensors"
    save_file({"ones": np.ones((20, 30), np.float32)}, path)
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises((OSError, ValueError)):
        mapped_tensors(path)
