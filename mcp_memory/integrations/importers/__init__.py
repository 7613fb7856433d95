"""Imports histories kept elsewhere: read, checked, stored once, and noted as done.

    records          the records that every format yields, and fields they share; generic JSON turns
    chat_exports     exports of ChatGPT and Claude.ai
    other_memories   mem0, basic-memory, MemPalace and the reference memory server
    agent_logs       lines of the logs of Claude Code, Codex and Gemini CLI
    reader           a file as JSON values or notes, streamed: lines, documents, archives, folders
    history          checks a whole file, then stores it
    log_file         finds logs of coding agents and reads their new lines
    follow           stores the new part of a log, once or as it is written
    report           the result of an import, and the estimated cost of a model reading it

The turns are then like any others: extraction picks them up.
"""
