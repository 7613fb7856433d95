"""The database as a file: copied, compared with the files beside it, rebuilt, repaired and compacted.

    snapshots   a copy at one moment, the files that its rows name, and its rows that were forgotten since
    comparison  files and rows, compared line by line
    recovery    lines that the database lost, and files of uncommitted transactions
    rebuild     a new database that agrees with the files, from the readable rows of the old one
    repair      derived indexes and files             compaction  releases free pages
    purging     secure delete, and purges that are to be verified
    moving      a home that a memory is moved from or to

`mcp_memory.service.upkeep` decides when each is used.
"""
