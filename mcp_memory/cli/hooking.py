"""`hook`: what a client runs at the events of its conversations. Loads next to nothing: the user waits for it."""

from __future__ import annotations

import sys

import click

from mcp_memory.cli.base import place, told

__all__ = ["hook"]


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})  # exit code 2 would block
@click.option("--client", default="claude-code", show_default=True, help="Whose event it is.")
@click.argument("event")
@place
def hook(event: str, client: str) -> None:
    """Answer an event of a client: recall before a prompt, keep large results, capture what is said.

    A client runs this where `mcp-memory install` or the plugin has told it to. It takes the hook's JSON on standard
    input, and prints what the client is to do, or nothing. It always ends well: where the memory is busy or broken,
    the work goes on without it, and `mcp-memory doctor` says why.

    \b
    mcp-memory hook SessionStart < event.json

    The first hook starts a small process that keeps the memory open for the next ones. It ends with the last
    conversation, or after 15 minutes of silence.
    """
    if sys.stdin.isatty():
        click.echo("A client gives this its JSON on standard input; see mcp-memory hook --help.", err=True)
        return
    from mcp_memory.integrations.hooks.client import run

    run(event, client, told().get("home"), told().get("space"))
