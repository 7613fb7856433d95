"""Turn metadata of a space: the data that ranking needs of every turn, as columns. A projection; turns never change.

A *place* is a turn's index in these columns, which are ordered by session and position: the turn before is one place
before, and a session is one range of places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.core.types import Role

__all__ = ["TurnMetadata"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TurnMetadata:
    """Columns of equal length, by place; `note`s are left out.

    `rows` are row numbers (812 for t812), `sessions` and `speakers` arbitrary numbers, `said_at` milliseconds since
    1970, `sizes` bytes of UTF-8, `asks` whether the turn ends with a question.
    """

    rows: NDArray[np.int64]
    sessions: NDArray[np.int64]
    said_at: NDArray[np.int64]
    sizes: NDArray[np.int64]
    speakers: NDArray[np.int64]
    asks: NDArray[np.bool_]
    passes: NDArray[np.bool_]
    """Whether the turn may be returned: it is not forgotten and passes the filters."""
    who: dict[int, tuple[Role, str | None]]
    """The role and the name of each speaker."""
    place_of_row: NDArray[np.int32]
    """By row number; −1 if the row is not a turn of this space."""

    @property
    def mean_size(self) -> float:
        return float(self.sizes.mean()) if len(self.sizes) else 0.0

    @property
    def session_count(self) -> int:
        """The number of sessions with turns: one more than the changes of session between neighbours."""
        return int((self.sessions[1:] != self.sessions[:-1]).sum()) + bool(len(self.sessions))

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of those rows that have one."""
        return self.place_of_row[self._here(rows)].astype("int64")

    def passing(self, rows: Sequence[int]) -> list[int]:
        """Return the row numbers whose turns may be returned, in the given order."""
        import numpy as np

        here = self._here(np.array(rows, np.int64))
        return here[self.passes[self.place_of_row[here]]].tolist()

    def _here(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows that have a place."""
        rows = rows[rows < len(self.place_of_row)]
        return rows[self.place_of_row[rows] >= 0]
