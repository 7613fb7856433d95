"""The verbs of a memory, in groups, which `service.memory` joins.

turns           record and search turns              statements      remember, search and list statements
recall          context within a token budget        tasks           tool results, canvases, message lists
pages           scenes, persona, their jobs          forgetting      forget, undo, purge, retention
administration  tokens, imports, backups, review     status          counts, activity, usage, savings
base            the parts that verbs use; how a blocking verb becomes awaitable
"""
