"""The verbs of a memory, in groups, which `service.memory` joins.

longterm     turns, statements, search, recall          pyramid         scenes, persona, the scheduler
tasks        tool results, canvases, message lists      evidence        from a page to its proof and back
answers      as tools show them, within a budget        inspection      contents and history, for people
retention    forgetting, purging, retention             administration  tokens, client logs, exports, review
status       counts, health, usage, savings             upkeep          backups, and files against the database
base         the parts they work with; how a blocking verb becomes awaitable
"""
