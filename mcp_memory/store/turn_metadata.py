"""Turn metadata: the columns that ranking needs of some turns of a space and of the turns around them.

A *place* is a turn's index in these columns, which are ordered by session and position. Turns of a *stretch* follow
each other in their session without a gap: the previous turn is at the previous place. Across the edge of a stretch
nothing is known: the next place may be the next turn, a much later turn, or a turn of another session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.core.types import Role


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TurnMetadata:
    """Columns of equal length, indexed by place; turns of role `note` are left out.

    `rows` are row numbers (812 for t812). `sessions`, `stretches` and `speakers` are arbitrary numbers, equal for turns
    of the same session, stretch or speaker. `said_at` is in milliseconds since 1970, `sizes` in bytes of UTF-8. `asks`
    is true if there is a question mark in the last 120 characters of the turn.
    """

    rows: NDArray[np.int64]
    sessions: NDArray[np.int64]
    stretches: NDArray[np.int64]
    said_at: NDArray[np.int64]
    sizes: NDArray[np.int64]
    speakers: NDArray[np.int64]
    asks: NDArray[np.bool_]
    passes: NDArray[np.bool_]
    """Whether the turn may be returned: it is not forgotten and passes the filters."""
    who: dict[int, tuple[Role, str | None]]
    """The role and the name of each speaker, including speakers that are not in `speakers`."""
    _after: NDArray[np.int32] = field(init=False)
    """By row number, its place plus one; 0 without a place. The system allocates only the pages that are written."""

    def __post_init__(self) -> None:
        import numpy as np

        after = np.zeros(int(self.rows.max(initial=0)) + 1, np.int32)
        after[self.rows] = np.arange(1, len(self.rows) + 1, dtype=np.int32)
        object.__setattr__(self, "_after", after)

    def has(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each of the rows has a place."""
        return (rows < len(self._after)) & (self._after.take(rows, mode="clip") > 0)

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of those rows that have one, in the given order."""
        after = self._after[rows[rows < len(self._after)]]
        return after[after > 0].astype("int64") - 1

    def passing(self, rows: Sequence[int]) -> list[int]:
        """Return the row numbers whose turns may be returned, in the given order."""
        import numpy as np

        places = self.places(np.array(rows, np.int64))
        return self.rows[places[self.passes[places]]].tolist()
