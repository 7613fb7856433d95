"""The database as a file: copied, compared with the files beside it, rebuilt, repaired and made small.

    snapshots   a copy at one moment, and the files that its rows name      compaction  free pages released
    comparison  what files and rows say, row by row                         recovery    lines that the database lost
    rebuild     a new database that says what the files say                 repair      indexes and files made of rows
    salvage     what can be read around torn pages                          restored_rows  what a backup brings back

`mcp_memory.service.upkeep` decides when each is done.
"""
