"""The command line: the verbs of Memory for people and for shell scripts.

    importing, import_files   import
    installing                install, uninstall
    serving                   serve, demo, wrap, hook
    search                    search, why
    show                      show
    forgetting                forget, purge, retention, review
    distilling                distill, flush, pause, resume, verify, scene, persona, compress
    status, doctor            status, doctor
    administration            backup, restore, rebuild, compact, export, token
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

MODULES = {
    "install": "mcp_memory.cli.installing",
    "uninstall": "mcp_memory.cli.installing",
    "serve": "mcp_memory.cli.serving",
    "token": "mcp_memory.cli.administration",
    "wrap": "mcp_memory.cli.serving",
    "hook": "mcp_memory.cli.serving",
    "demo": "mcp_memory.cli.serving",
    "import": "mcp_memory.cli.importing:import_",
    "export": "mcp_memory.cli.administration",
    "search": "mcp_memory.cli.search",
    "why": "mcp_memory.cli.search",
    "show": "mcp_memory.cli.show",
    "forget": "mcp_memory.cli.forgetting",
    "purge": "mcp_memory.cli.forgetting",
    "retention": "mcp_memory.cli.forgetting",
    "review": "mcp_memory.cli.forgetting",
    "distill": "mcp_memory.cli.distilling",
    "flush": "mcp_memory.cli.distilling",
    "pause": "mcp_memory.cli.distilling",
    "resume": "mcp_memory.cli.distilling",
    "scene": "mcp_memory.cli.distilling",
    "persona": "mcp_memory.cli.distilling",
    "verify": "mcp_memory.cli.distilling",
    "status": "mcp_memory.cli.status",
    "doctor": "mcp_memory.cli.status",
    "backup": "mcp_memory.cli.administration",
    "restore": "mcp_memory.cli.administration",
    "rebuild": "mcp_memory.cli.administration",
    "compact": "mcp_memory.cli.administration",
    "compress": "mcp_memory.cli.distilling",
    "bench": "mcp_memory.cli.evaluation",
}


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
    Look into it:  mcp-memory status, mcp-memory search "night boat"

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
