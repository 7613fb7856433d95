"""`serve` and `demo`: the commands that run something until it is done or stopped."""

from __future__ import annotations

from pathlib import Path

import click

from mcp_memory.cli.base import place, settings, told

__all__ = ["demo", "serve"]

TRANSPORTS = ("stdio", "http", "sse")
HOST, PORT = "127.0.0.1", 8765


@click.command()
@click.option(
    "--transport", type=click.Choice(TRANSPORTS), default="stdio", show_default=True, help="How clients connect."
)
@click.option("--host", help=f"Address to listen on, for http and sse.  [default: {HOST}]")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Port to listen on, for http and sse.  [default: {PORT}]")
@place
def serve(transport: str, host: str | None, port: int | None) -> None:
    """Run the MCP server.

    With stdio, which is what desktop apps and coding agents start, it speaks on standard input and output
    and ends with its client. With http (at /mcp) or sse (at /sse) it listens until Ctrl-C, and serves all
    spaces that tokens open (`mcp-memory token`). Beyond this machine (a --host other than loopback) every
    client must show a token, and it does not start before there is one.

    \b
    mcp-memory serve
    mcp-memory serve --transport http --port 9000
    mcp-memory --space work serve
    """
    if transport == "stdio" and (host is not None or port is not None):
        raise click.UsageError("--host and --port are for --transport http or sse; stdio listens on no port.")
    from mcp_memory.server.transports import serve as serve_transport

    serve_transport(settings(), transport, HOST if host is None else host, PORT if port is None else port)


@click.command()
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the demo's memory, made anew on each run.  [default: .demo here, or a temporary folder]",
)
def demo(home: Path | None) -> None:
    """Show the main job on a made-up fortnight.

    It starts the real server, talks to it as an agent would (remember, search, offload, expand, fold, recall)
    and ends with what that saved. Your own memory is not touched: a folder
    that an earlier demo did not make is refused. What it leaves can be opened with the other commands:

    \b
    mcp-memory demo
    mcp-memory --home .demo search "night boat"
    mcp-memory --home .demo show canvas
    """
    from mcp_memory.cli.demo import run

    run(home or told().get("home"))
