"""`wrap`: a proxy before another MCP server, which keeps its large results out of the context."""

from __future__ import annotations

import click

from mcp_memory.cli.base import place, settings

__all__ = ["wrap"]

OVER = 500


@click.command(context_settings={"ignore_unknown_options": False})
@click.option(
    "--over", type=click.IntRange(50), default=OVER, show_default=True, metavar="TOKENS", help="Keep texts over this."
)
@click.option(
    "--session",
    envvar="MCP_MEMORY_SESSION",
    help="Where its steps go.  [default: one for each client, folder and day]",
)
@click.option("--no-expand", is_flag=True, help="Add no tool: the client has expand_node from mcp-memory itself.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@place
def wrap(over: int, session: str | None, no_expand: bool, command: tuple[str, ...]) -> None:
    """Stand between a client and another MCP server.

    Everything passes as it is, but large results of its tools: they are kept whole, and the client gets a
    summary, a preview and a tool to open any part. Put it before the server's command in the client's settings:

    \b
    mcp-memory wrap -- npx -y @modelcontextprotocol/server-filesystem ~/work
    mcp-memory wrap --over 2000 -- uvx mcp-server-git
    mcp-memory --space work wrap --session release -- ./my-server --verbose

    Ends with the server, with its exit code. Without a memory that can be opened it passes everything.
    """
    if not command:
        raise click.UsageError("Say what to wrap: mcp-memory wrap -- COMMAND ARGS…")
    from mcp_memory.wrap.run import leave, wrap_command

    leave(wrap_command(command, settings, over=over, session=session, offers_tool=not no_expand))
