"""What a result is wanted for, and how much room that earns.

A verdict (tests, traces, logs, diffs, listings) is said in a few lines. Code, hits and values are needed again name
by name, so their room grows with them. A text is read for what it says: its words are cheap, and soon enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["USES", "Room", "Use"]

Use = Literal["report", "names", "data", "text", "nothing"]


@dataclass(frozen=True, slots=True)
class Room:
    """How a preview is divided. `least` and `most` are characters, `share` the part of the result's characters."""

    least: int
    share: float
    most: int
    lines: float
    """The part for lines as they are; the rest is gist."""
    runs: int
    """Into how many runs of words the gist is divided at least, where the text is long."""
    numbers: float
    """What a number is worth beside a word: little where most count lines, as much where they are the content."""

    def of(self, chars: int) -> int:
        """Return the room for a result of so many characters."""
        return min(self.most, self.least + int(self.share * chars))


USES: dict[Use, Room] = {
    "report": Room(130, 0.03, 400, lines=0.6, runs=8, numbers=0.4),
    "names": Room(200, 0.12, 1_500, lines=0.3, runs=12, numbers=0.4),
    "data": Room(240, 0.04, 600, lines=0.4, runs=12, numbers=1.0),
    "text": Room(550, 0.02, 920, lines=0.0, runs=3, numbers=0.4),
    "nothing": Room(200, 0.0, 400, lines=0.0, runs=1, numbers=0.0),
}
