"""The way into a home: rows of another, or of another space, as `store.carried` has them.

    desk    what is known of where rows came from, and what they are called here
    words   results, turns and the statements that rest on them
    tasks   canvases with their records and edits
    pages   scenes and the persona
    places  how far sessions and stages have come, what is held, what cites what

What is here already is known by its origin, or because it says the same; it is stored once, brought up to date, and
nothing of it is overwritten. What was forgotten here is not taken. Rows keep their order, their words and all their
times but the one at which they were learned, which is now.
"""

from mcp_memory.store.sqlite.moving.arrivals.desk import known_as, note_origins
from mcp_memory.store.sqlite.moving.arrivals.statements import were_forgotten
from mcp_memory.store.sqlite.moving.arrivals.take import take_in

__all__ = ["known_as", "note_origins", "take_in", "were_forgotten"]
