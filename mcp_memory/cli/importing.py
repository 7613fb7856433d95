"""`import`: imports conversations, histories and logs of coding agents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from mcp_memory.cli.base import as_json, memory_options
from mcp_memory.integrations.importers.formats import names

AGENTS = ("claude-code", "codex", "gemini")


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--session", help="Session of turns without a session.  [default: the file's name]")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["auto", *names(), *AGENTS]),
    metavar="NAME",
    default="auto",
    show_default=True,
    help=f"Format of the files, if it is not detected: {', '.join([*names(), *AGENTS])}.",
)
@click.option("--skip-bad", is_flag=True, help="Skip wrong entries of a file, and list them.")
@click.option("--again", is_flag=True, help="Also read files that have not changed since their import.")
@click.option("--dry-run", is_flag=True, help="Check the files and say what would be stored, and what reading costs.")
@click.option("--watch", is_flag=True, help="Follow logs of agents as they are written, until Ctrl-C.")
@click.option(
    "--project",
    is_flag=True,
    help="Make the instructions for agents in these folders searchable, such as AGENTS.md, and import nothing.",
)
@as_json
@memory_options
def import_(
    files: tuple[Path, ...],
    session: str | None,
    layout: Any,
    skip_bad: bool,
    again: bool,
    dry_run: bool,
    watch: bool,
    project: bool,
) -> None:
    """Import conversations from elsewhere.

    Formats are detected automatically. A PATH is a memory that `export` wrote, whose spaces keep their names (or its
    only space goes to --space); an export of a chat program such as ChatGPT or Claude.ai (the original zip), a log of
    Claude Code, Codex or Gemini CLI, sessions of another coding agent, a folder with any of these, the files of another
    memory, or JSON. claude-code, codex and gemini mean the folder with that program's logs.
    JSON is an object a line (or an array of them): a turn, {"role", "content"} and where known "session", "name",
    "said_at" and "id"; or a conversation, {"session", "turns": [...]} or {"messages": [...]}. Seeds of TencentDB
    Agent Memory are read too. Files may be gzipped; - is standard input.

    Nothing is stored twice: an interrupted import continues when it is called again, and of a file that has grown only
    the new part is stored. A log is read from the last position; its large tool results are kept. Any other file is
    checked completely before any of it is stored. No model is asked; extraction happens later, as for all new turns.

    With --project, searches find the lines of CLAUDE.md, AGENTS.md, GEMINI.md, and the rules of Cursor and Copilot in
    a folder and the repository around it. Hooks do the same whenever a conversation starts.

    \b
    mcp-memory import claude-code --dry-run
    mcp-memory import claude-code codex --watch
    mcp-memory import chatgpt-export.zip history.jsonl.gz
    mcp-memory import --project .
    mcp-memory --space work import --session standup - < standup.jsonl
    """
    from mcp_memory.cli.import_files import run_import, run_projects
    from mcp_memory.core.text import safe_name
    from mcp_memory.integrations.importers.history import ImportOptions

    if project:
        if watch or dry_run or session or skip_bad or again or layout != "auto":
            raise click.UsageError("--project reads the files of projects; it takes folders and no other option.")
        run_projects(files)
        return
    if watch and dry_run:
        raise click.UsageError("--watch stores turns, and --dry-run nothing: choose one.")
    form = "auto" if layout in AGENTS else layout
    name = session and safe_name(session, what="session")
    asked = ImportOptions(session=name, format=form, skip_bad=skip_bad, again=again)
    sys.exit(0 if run_import(files, layout, asked, dry_run=dry_run, watch=watch) else 1)
