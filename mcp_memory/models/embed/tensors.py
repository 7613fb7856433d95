"""Memory-mapped tensors of a safetensors file: processes share them, and only the parts that are read are loaded.

The safetensors library copies the file, and reading it takes eleven lines: a length of eight bytes, a header
in JSON (`{name: {"dtype", "shape", "data_offsets"}}`), and the data (https://github.com/huggingface/safetensors).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


_TYPES = {"I8": "<i1", "U8": "<u1", "U16": "<u2", "F16": "<f2", "F32": "<f4"}


def mapped_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return the tensors of a file by name, read-only. Raises OSError, KeyError or ValueError."""
    import numpy as np

    data = np.memmap(path, np.uint8, mode="r").view(np.ndarray)
    start = 8 + int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8:start].tobytes())
    header.pop("__metadata__", None)
    return {
        name: data[start:][slice(*entry["data_offsets"])].view(_TYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }
