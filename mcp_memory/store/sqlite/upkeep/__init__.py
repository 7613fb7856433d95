"""The database as a file: copied, made anew of the files beside it, compared, mended and made small.

    snapshots   a copy at one moment, and its files     compacting  free pages given back
    rebuilding  a new database of the files …           refilling   … kind by kind
    comparing   two databases, row by row               mending     indexes and files made of rows again
    salvaging   what can be read around torn pages      recovering  lines of files that the database lost
    dangling    references to rows that are missing     owning      which folder belongs to a space's rows
    derived     rows that are made of other rows

What is done with it is `mcp_memory.service.upkeep`'s to say.
"""
