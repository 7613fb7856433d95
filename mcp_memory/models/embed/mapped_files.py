"""Memory-mapped files of the bundled models: processes share them, and only the parts that are read are loaded.

A page that was read stays in the process's memory as long as its file is mapped. So matrices that are read whole are
copied, which ends the mapping, and `drop_pages` follows the reading of rows of a large table.

Tensors are in safetensors files, read without the safetensors library, which copies them. A file has a length of eight
bytes, a header in JSON (`{name: {"dtype", "shape", "data_offsets"}}`), and the data
(https://github.com/huggingface/safetensors).

Word pieces with their numbers are in a trie of some 10 bytes a piece: `NAME.marisa` is the trie, `NAME.npy` has the
number of each piece by its place in the trie.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_memory.core.tries import mapped_trie, write_trie

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TYPES = {"I8": "<i1", "U8": "<u1", "U16": "<u2", "F16": "<f2", "F32": "<f4"}


def mapped_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return the tensors of a file by name, read-only. Raises OSError, KeyError or ValueError if it cannot be read."""
    import numpy as np

    data = np.memmap(path, np.uint8, mode="r").view(np.ndarray)
    start = 8 + int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8:start].tobytes())
    header.pop("__metadata__", None)
    return {
        name: data[start:][slice(*entry["data_offsets"])].view(_TYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }


def drop_pages(table: NDArray[Any]) -> None:
    """Drop the pages of a mapped table from this process's memory; Windows keeps them.

    The system has them in its file cache, so that reading 12 rows again takes 20 µs instead of 3.
    """
    if hasattr(mmap, "MADV_DONTNEED"):
        _mapping_of(table).madvise(mmap.MADV_DONTNEED)


def _mapping_of(array: NDArray[Any]) -> mmap.mmap:
    base: Any = array
    while not isinstance(base, mmap.mmap):
        base = base.base
    return base


class PieceNumbers:
    """Word pieces and their numbers, read from `NAME.marisa` and `NAME.npy`.

    Raises OSError, RuntimeError or ValueError if the files cannot be read.
    """

    def __init__(self, folder: Path, name: str) -> None:
        import numpy as np

        self._trie = mapped_trie(folder / f"{name}.marisa")
        numbers: NDArray[np.int32] = np.load(folder / f"{name}.npy", mmap_mode="r")
        self._numbers = memoryview(numbers)

    def beginning(self, text: str) -> list[tuple[int, int]]:
        """Return the pieces with which a text begins, each as its length and number, the shortest first."""
        shown = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # no piece has a lone surrogate
        return [(len(piece), self._numbers[self._trie[piece]]) for piece in self._trie.prefixes(shown)]

    def __iter__(self) -> Iterator[str]:
        """Yield the pieces in the order of their numbers."""
        return iter(sorted(self._trie, key=lambda piece: self._numbers[self._trie[piece]]))

    @staticmethod
    def write(folder: Path, name: str, pieces: Sequence[str], numbers: Sequence[int] | None = None) -> None:
        """Write the two files. Without `numbers`, the number of a piece is its index in `pieces`."""
        import numpy as np

        trie = write_trie(folder / f"{name}.marisa", pieces)
        of_piece = dict(zip(pieces, numbers or range(len(pieces)), strict=True))
        by_place = np.array([of_piece[trie.restore_key(place)] for place in range(len(trie))], np.int32)
        np.save(folder / f"{name}.npy", by_place)
