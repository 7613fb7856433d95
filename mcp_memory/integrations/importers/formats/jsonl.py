"""Turns and conversations as generic JSON, which `importers.generic` describes. Every JSON value that is of no other
format is read as such, but in an archive only what has roles.
"""

from __future__ import annotations

from mcp_memory.integrations.importers.format import Format, first_of, has
from mcp_memory.integrations.importers.generic import generic_records

FORMAT = Format(
    title="turns or conversations as JSON",
    location="an object on each line, or an array of them",
    is_last=True,
    matches=lambda value: any(
        test(value) for test in (has("role"), first_of("messages", has("role")), first_of("turns", has("role")))
    ),
    records=generic_records,
)
