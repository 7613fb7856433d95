"""Substring tests for some hundred short strings on one text; a long text is indexed once by its three-letter parts.

The result is that of `in`. Most of these strings are in no text, and a search for each took half of all masking.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Has", "having"]

Has = Callable[[str], bool]
"""Tells whether a string is in a text."""

_OTHER = "?"
"""Stands for what is no ASCII."""
_LONG = 2**13
"""Characters from which on one look at all of them is quicker."""
_BITS = 7  # of a letter


def having(text: str) -> Has:
    """Return what tells whether a string is in the text."""
    if len(text) < _LONG:
        return text.__contains__
    there = _threes(text)

    def has(part: str) -> bool:
        if len(part) < 3 or not part.isascii() or _OTHER in part:
            return part in text
        return bool(there[_number(*map(ord, part[:3]))]) and (len(part) == 3 or part in text)

    return has


def _threes(text: str) -> NDArray[np.bool_]:
    """Return for the number of each three letters of ASCII whether they stand side by side somewhere."""
    import numpy as np

    letters = np.frombuffer(text.encode("ascii", "replace"), np.uint8).astype(np.uint32)
    there = np.zeros(2 ** (3 * _BITS), np.bool_)
    there[(letters[:-2] << 2 * _BITS) + (letters[1:-1] << _BITS) + letters[2:]] = True
    return there


def _number(first: int, second: int, third: int) -> int:
    return (first << 2 * _BITS) + (second << _BITS) + third
