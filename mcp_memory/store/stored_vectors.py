"""Vectors as every engine stores them: rows of int8, all of the same length, so that all compute the same cosines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp_memory.core.errors import InvalidInput
from mcp_memory.store.values import Layer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


EMBEDDED_LAYERS: tuple[Layer, ...] = ("turn", "atom")


def quantise(data: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return the rows as int8, scaled to the same length; a row of zeros (no known word) stays zero.

    A unit vector is multiplied by 12 √dimensions (at least 127). Components are then around 12, so rounding changes a
    cosine by some thousandths, and only components above 127 are cut.
    """
    import numpy as np

    data = np.nan_to_num(data)
    lengths = np.linalg.norm(data, axis=1, keepdims=True)
    scaled = data / np.where(lengths == 0, 1, lengths) * stored_length(data.shape[1])
    return np.clip(np.rint(scaled), -127, 127).astype(np.int8)


def normalise(row: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return a stored row as a unit vector; a row of zeros stays zero."""
    import numpy as np

    return row.astype(np.float32) / max(float(np.linalg.norm(row.astype(np.float32))), 1.0)


def stored_length(dimensions: int) -> float:
    """Return the length of every stored vector, apart from rounding."""
    return max(127.0, 12.0 * dimensions**0.5)


def unit(query: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the vector whose product with stored rows gives their cosines to a query."""
    import numpy as np

    return query.astype(np.float64) / np.linalg.norm(query) / stored_length(len(query))


def cosines(rows: NDArray[np.int8], by: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosines of stored rows to a query; `by` is the result of `unit` for the query.

    Each row is summed on its own, so that equal rows get bitwise equal cosines, whatever their position and engine.
    """
    return (rows * by).sum(axis=1)


def by_layer(rows: Sequence[tuple[str, str]]) -> dict[tuple[str, Layer], list[int]]:
    """Group rows, given as (space, id), by space and layer; return the indexes of the rows of each group."""
    places = defaultdict[tuple[str, Layer], list[int]](list)
    for place, (space, id) in enumerate(rows):
        places[space, "turn" if id[:1] == "t" else "atom"].append(place)
    return places


def other_dimensions(identity: str, now: int, before: int) -> InvalidInput:
    """Return the error for a model whose vectors had other dimensions before."""
    return InvalidInput(
        f"The model {identity} gave vectors of {now} numbers and earlier ones of {before}. "
        "Give the changed model another name in the settings."
    )
