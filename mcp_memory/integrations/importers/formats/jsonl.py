"""Turns and conversations as generic JSON, which `importers.records` describes. Every JSON value that is of no other
format is read as such.
"""

from __future__ import annotations

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.records import generic_records

FORMAT = Format(
    title="turns or conversations as JSON",
    found="an object on each line, or an array of them",
    matches=lambda _: False,
    records=generic_records,
)
