"""Tensors that are mapped from a file are those that the library of the format wrote."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save_file  # pyright: ignore[reportUnknownVariableType]

from mcp_memory.models.embed.bundled import MODEL
from mcp_memory.models.embed.mapped_files import mapped_tensors, take_rows


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


@given(ids=st.lists(st.integers(0, 1_999), max_size=50))
def test_the_rows_that_are_read_are_those_of_the_table(table: np.memmap, ids: list[int]) -> None:
    numbers = np.array(ids, np.int64)
    np.testing.assert_array_equal(take_rows(table, numbers), table[numbers])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_rows_that_were_read_stay_out_of_the_memory_of_the_process(table: np.memmap) -> None:
    def resident() -> int:
        mapped = Path("/proc/self/smaps").read_text(encoding="utf-8").partition(str(table.filename))[2]
        return int(mapped.partition("Rss:")[2].split()[0])

    numbers = np.arange(0, 2_000, 7)
    assert table[numbers].any()
    assert resident() > 0
    assert take_rows(table, numbers).any()
    assert resident() == 0


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
