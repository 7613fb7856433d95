"""`wrap`: a proxy before another MCP server, which keeps its large results out of the context."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import place, told

if TYPE_CHECKING:
    from mcp_memory.core.config import Settings

__all__ = ["wrap"]

OVER = 300  # about the characters from which `bench.offload` keeps a result


@click.command()
@click.option("--url", metavar="URL", help="Wrap the server at this address (streamable HTTP) instead of a command.")
@click.option("--header", "headers", multiple=True, metavar="LINE", help="'Name: value' to send with --url.")
@click.option(
    "--over",
    type=click.IntRange(50),
    default=OVER,
    show_default=True,
    metavar="TOKENS",
    help="Keep a text that is longer.",
)
@click.option(
    "--session",
    envvar="MCP_MEMORY_SESSION",
    help="Session that its steps belong to.  [default: one for each client, folder and day]",
)
@click.option("--no-expand", is_flag=True, help="Add no tool: the client has expand_node of mcp-memory serve.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@place
def wrap(
    url: str | None,
    headers: tuple[str, ...],
    over: int,
    session: str | None,
    no_expand: bool,
    command: tuple[str, ...],
) -> None:
    """Stand between a client and another MCP server, and keep what is large.

    Everything passes unchanged, except that a large text in a tool's result is kept whole in the memory; the client
    gets a summary of it, and one tool more to open any part. In the client's settings, put it before the server's
    own command:

    \b
    mcp-memory wrap -- npx -y @modelcontextprotocol/server-filesystem ~/work
    mcp-memory --space work wrap --over 2000 -- uvx mcp-server-git
    mcp-memory wrap --url https://mcp.example.com/mcp --header 'Authorization: Bearer ${TOKEN}'

    It ends with the server, and with its exit code. Where the memory cannot be opened, large results pass too.
    """
    if bool(command) == bool(url):
        raise click.UsageError("Say what to wrap: either --url URL, or -- and the server's command.")
    if headers and not url:
        raise click.UsageError("--header goes with --url; a command gets its settings from the environment.")
    from mcp_memory.integrations.proxy import run

    options = run.Options(
        command=command,
        url=url,
        headers=headers,
        over=over,
        session=session,
        folder=os.getcwd(),  # noqa: PTH109 only its name is of interest
        offers_tool=not no_expand,
    )
    given = dict(told())

    def settings() -> Settings:
        from mcp_memory.core.config import load_settings

        return load_settings(**given)

    run.leave(run.wrap(options, settings))
