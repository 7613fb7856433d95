"""The database as a file: copied, rebuilt, repaired and compacted.

    snapshots   a copy at one moment, the files that its rows name, and its rows that were forgotten since
    rebuild     adds the rows of files that a database lacks
    repair      derived indexes and files             compaction  releases free pages
    purging     secure delete, and purges that were not verified yet
    moving      a home that a memory is moved from or to

`mcp_memory.service.upkeep` decides when each is used.
"""
