"""Vectors as every engine stores them: rows of int8, all of the same length, so that all compute the same cosines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["quantised", "stored_length"]


def quantised(data: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return the rows as int8, each of the same length; a row of zeros (no known word) is near to nothing.

    A unit vector is stored times 12 √dimensions (127 at least): components are around 12, so rounding moves a
    cosine by some thousandths, and only one of more than two thirds of the whole length is cut.
    """
    import numpy as np

    data = np.nan_to_num(data)
    lengths = np.linalg.norm(data, axis=1, keepdims=True)
    scaled = data / np.where(lengths == 0, 1, lengths) * stored_length(data.shape[1])
    return np.clip(np.rint(scaled), -127, 127).astype(np.int8)


def stored_length(dimensions: int) -> float:
    """How long every stored vector is, but for rounding."""
    return max(127.0, 12.0 * dimensions**0.5)
