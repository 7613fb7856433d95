"""What the stages of the pyramid, and recall, work with: the desk of any stage, search and vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mcp_memory.longterm.search.search import Search
from mcp_memory.models import stage
from mcp_memory.store.protocol import Store, Vectors

__all__ = ["Desk"]


@dataclass(frozen=True, kw_only=True)
class Desk(stage.StageContext[Store]):
    """What the long-term side works with, for one space at one moment."""

    search: Search
    of_query: Callable[[str], Sequence[Vectors]]
    """Vectors of a text to search by."""
    of_rows: Callable[[Sequence[str]], Vectors | None]
    """Vectors to store with new rows, one each; None where the background makes them."""
