"""The command line: the verbs of Memory for people and for shell scripts.

    importing, import_files   import
    installing                install, uninstall
    serving                   serve, ui, demo, wrap, hook
    search                    search, why
    show                      show
    forgetting                forget, purge, retention, review
    distilling                distill, flush, pause, resume, verify, scene, persona, compress
    status, doctor            status, doctor
    administration            backup, restore, rebuild, compact, migrate, export, token
    moving                    move
    evaluation                bench

Every command that reads takes `--json`. Importing this loads click and little else, because a client that starts
`mcp-memory serve` waits for it.
"""

from __future__ import annotations

import io
import os
import sys

import click

from mcp_memory import __version__
from mcp_memory.cli.base import Program, place

_COMMANDS = (
    ("installing", "install uninstall"),
    ("serving", "serve ui"),
    ("administration", "token"),
    ("serving", "wrap hook demo"),
    ("importing", "import"),
    ("administration", "export"),
    ("search", "search why"),
    ("show", "show"),
    ("forgetting", "forget purge retention review"),
    ("distilling", "distill flush pause resume scene persona verify"),
    ("status", "status doctor"),
    ("administration", "backup restore rebuild compact migrate"),
    ("moving", "move"),
    ("distilling", "compress"),
    ("evaluation", "bench"),
)
"""Modules and their commands, in the order of the help."""
MODULES = {command: f"mcp_memory.cli.{module}" for module, commands in _COMMANDS for command in commands.split()}


@click.group(
    cls=Program,
    modules=MODULES,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="mcp-memory")
@place
@click.pass_context
def program(ctx: click.Context) -> None:
    """Long-term and short-term memory for agents, over MCP: one local store, no key needed.

    \b
    Try it:        mcp-memory demo
    Connect it:    mcp-memory install claude-code (or another client; without one, it lists them)
    Look into it:  mcp-memory ui (in a browser), mcp-memory status, mcp-memory search "night boat"

    Each command has its own --help with examples. Settings come from the options, then from MCP_MEMORY_*
    variables, then from config.toml in the home.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    """Run the command line; a character that the terminal cannot show is written as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    program(prog_name="mcp-memory")
