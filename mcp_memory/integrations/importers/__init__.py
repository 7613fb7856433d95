"""A history that was kept elsewhere comes into a memory: read, checked, stored once, and noted.

    reader     bytes → JSON values with their places, a line or a value at a time
    archive    the members of a zip export that hold conversations, as streams
    notes      the files of Markdown of a folder or an archive
    formats    values → turns as their file tells them, statements of other memories, or what is wrong with them
    placing    turns → sessions, times, and ids by which they are known again
    survey     the first pass: is all of it right?
    storing    the second: store it      telling  statements, as a program's word      answer   what became of the file
    cost       what it would cost to have it read by a model

Logs of coding agents grow, and are read from where they were read to:

    agents     whose logs, and their sessions      finding    where they are
    logfile    a file → pieces of it that are new, by the formats
    follow     pieces → turns and results, stored once, and how far that was      foresee  what it would store
    watching   follows logs as they are written

Both tell of results of tools: `results` says which are kept.

The turns are then like any others: what reads new turns reads them.
"""

from mcp_memory.integrations.importers.answer import Brought
from mcp_memory.integrations.importers.storing import bring, look, source_of
from mcp_memory.integrations.importers.survey import STDIN, Asked

__all__ = ["STDIN", "Asked", "Brought", "bring", "look", "source_of"]
