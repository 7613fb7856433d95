"""The database as a file: copied, compared with the files beside it, rebuilt, repaired and compacted.

    snapshots   a copy at one moment, and the files that its rows name      compaction     releases free pages
    comparison  files and rows, compared line by line                       recovery       lines that the database lost
    rebuild     a new database that agrees with the files                   repair         derived indexes and files
    salvage     rows that are readable around torn pages                    restored_rows  forgotten rows of a backup

`mcp_memory.service.upkeep` decides when each is used.
"""
