"""Imports histories kept elsewhere: read, checked, stored once, and recorded as imported.

    reader           a file as JSON values or notes, streamed: lines, documents, archives, folders
    formats          the table of formats, and how a value's format is recognised
    records          what every format yields: turns, results, statements, problems; generic JSON turns
    chat_exports     exports of ChatGPT and Claude.ai
    other_memories   mem0, basic-memory, MemPalace and the reference memory server
    history          checks a whole file, then stores it
    agent_logs       the log formats of Claude Code, Codex and Gemini CLI; log_lines: their common part
    log_file         finds logs of coding agents and reads their new lines
    follow           stores the new part of a log, once or as it is written
    report           the result of an import, and the estimated cost of extraction

Extraction processes imported turns like any other turns.
"""
