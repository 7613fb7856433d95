"""Imports histories from files of other programs: reads, checks and stores each once, and records the import.

    format           describes a format: how its files are recognised, and a function that yields records
    formats/         the formats, a module each
    format_table     the table of formats; recognises files and values
    chat             reads conversations by a description of their fields
    records          the records that formats yield: turns, results, statements, problems
    generic          generic JSON turns and conversations
    statements       statements and texts of other programs, as records
    markdown_notes   statements in Markdown for agents: bullets and paragraphs
    reader           reads a file as JSON values or notes, streamed: lines, documents, archives, folders
    sqlite_file      databases of other programs
    session_files    sessions that are spread over several files
    history          checks a whole file, then stores it
    placement        the session, time and id of each turn; recognises stored turns
    agent_logs       the log formats of Claude Code, Codex and Gemini CLI; log_lines: their common part
    log_file         finds logs of coding agents and reads their new lines
    follow           stores the new part of a log, once or as it is written
    report           the result of an import, and the estimated cost of extraction
    refusals         messages about files from which nothing can be imported

Extraction processes imported turns like any other turns.
"""
