"""A memory as one file that a person can read and any other memory can take in: a zip of Markdown and JSON lines.

    form      what stands where in it: names, manifest, the page that explains it
    lines     rows as lines of JSON, and back
    pages     rows as pages for people
    writing   the rows of a store → the file      reading   the file → rows, all of it checked first
    bringing  rows → another store or space, each once

The same store gives the same bytes: nothing in the file says when it was written, by what or where.
"""

from mcp_memory.service.portable.bringing import Brought, bring
from mcp_memory.service.portable.reading import Parcel, is_parcel, opened
from mcp_memory.service.portable.writing import Exported, export

__all__ = ["Brought", "Exported", "Parcel", "bring", "export", "is_parcel", "opened"]
