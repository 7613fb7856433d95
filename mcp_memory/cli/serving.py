"""`serve`, `ui`, `demo`, `wrap` and `hook`: commands that run until they are done or stopped.

`hook` loads next to nothing, because the user waits for it.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import command_settings, existing_memory_settings, memory_options, settings
from mcp_memory.core.config_file import PREFIX
from mcp_memory.core.errors import InvalidInput, Refused
from mcp_memory.core.garbage import collect_rarely
from mcp_memory.core.token_counts import OFFLOAD_OVER

if TYPE_CHECKING:
    import threading

    from mcp_memory.core.config import Settings

TRANSPORTS = ("stdio", "http", "sse")
HOST, PORT = "127.0.0.1", 8765
_OPENING_SECONDS = 10.0


@click.command()
@click.option(
    "--transport", type=click.Choice(TRANSPORTS), default="stdio", show_default=True, help="How clients connect."
)
@click.option("--host", help=f"Address to listen on, for http and sse.  [default: {HOST}]")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Port to listen on, for http and sse.  [default: {PORT}]")
@click.option(
    "--no-token", is_flag=True, help="Accept every user and program of this machine, for http and sse on loopback."
)
@click.option("--session", hidden=True, help="Session of turns that name none.")
@memory_options
def serve(transport: str, host: str | None, port: int | None, no_token: bool, session: str | None) -> None:
    """Run the MCP server.

    With stdio, which desktop apps and coding agents use, it communicates on standard input and output and ends
    with its client. Clients with the same settings share one process, which it starts (see the setting `shared`).
    With http (at /mcp) or sse (at /sse) it listens until Ctrl-C, and serves all spaces that tokens
    open (`mcp-memory token`). Every client must present a token. On this machine the first start creates a token,
    prints it once and keeps it in the home (http-token); beyond this machine (a --host other than loopback) it does
    not start without a token. With --server it is a bridge for clients that start a program: it passes everything on to
    that server, with the token of this machine.

    \b
    mcp-memory serve
    mcp-memory serve --transport http --port 9000
    mcp-memory --space work serve
    """
    if transport == "stdio" and (host is not None or port is not None or no_token):
        raise click.UsageError("--host, --port and --no-token are for --transport http or sse.")
    gc.disable()  # importing makes many objects and no garbage; collecting takes a tenth of the start
    if transport == "stdio":
        _export_options()
        _serve_shared()
    chosen = settings()
    if transport == "stdio":
        from mcp_memory.integrations.hooks.command import start_if_used

        start_if_used(command_settings().get("home"), command_settings().get("space"))
    if (access := chosen.server_access()) is not None:
        if transport != "stdio":
            raise InvalidInput(f"{transport} serves the memory of this machine, but `server` is set. Unset it.")
        from mcp_memory.integrations.proxy.relay import exit_now, forward

        gc.enable()
        exit_now(forward(access))
    from mcp_memory.server.transports import serve as serve_transport

    collect_rarely()
    serve_transport(
        chosen,
        transport,
        HOST if host is None else host,
        PORT if port is None else port,
        needs_token=not no_token,
        session=session,
    )


def _serve_shared() -> None:
    """Serve a client of stdio through the daemon, and end; return if it is to have a server of its own."""
    from mcp_memory.integrations.hooks.daemon_files import daemon_files, is_shared

    files = daemon_files(command_settings().get("home"), command_settings().get("space"))
    if files is None or not is_shared(files.home):
        return
    from mcp_memory.daemon.bridge import run

    gc.enable()
    place = ["--home", str(files.home), *(["--space", files.space] if files.space else [])]
    code = run(files, [sys.executable, "-P", "-m", "mcp_memory", *place, "serve"])
    sys.stderr.flush()
    os._exit(code)  # a thread is blocked reading standard input


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 for any free one.  [default: the setting ui_port, else that of the last run]",
)
@click.option("--no-browser", is_flag=True, help="Open no browser, and only print the address.")
@memory_options
def ui(port: int | None, no_browser: bool) -> None:
    """Look into the memory in a browser, and correct it there.

    It listens on this machine only, until Ctrl-C, and prints an address that signs a browser in: once, within a minute,
    for a month. Port and path stay the same, so links and bookmarks work when it runs again. While it runs, the same
    command opens it once more. No model is asked meanwhile.

    \b
    mcp-memory ui
    mcp-memory ui --no-browser --port 9001
    mcp-memory --space work ui
    """
    from mcp_memory.ui.local_server import serve_ui

    opening: list[threading.Thread | None] = []

    def show(address: str, about: str) -> None:
        click.echo(address)
        click.echo(about, err=True)
        if not no_browser:
            opening.append(open_browser(address))

    chosen = existing_memory_settings()
    if chosen.server is not None:
        raise Refused(f"The pages of this memory are on its server: open {chosen.server.removesuffix('/mcp')}/ui")
    serve_ui(chosen, port=chosen.ui_port if port is None else port, show=show)
    for thread in filter(
        None, opening
    ):  # another process serves the pages, and this one ends before a browser is there
        thread.join(_OPENING_SECONDS)


def open_browser(address: str) -> threading.Thread | None:
    """Open a graphical browser in a thread, and return the thread.

    Without a display, return None, because a browser in the terminal would take over the terminal.
    """
    import threading
    import webbrowser

    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return None
    thread = threading.Thread(target=webbrowser.open, args=(address,), daemon=True)
    thread.start()
    return thread


@click.command()
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the demo's memory, emptied on each run.  [default: .demo here, or a temporary folder]",
)
@click.option("--full", is_flag=True, help="Show every step, of a whole fortnight.")
def demo(home: Path | None, full: bool) -> None:
    """Show the main job on a made-up conversation and task.

    It starts the real server and uses it like two clients: words of Monday are on the page about the user on Tuesday,
    a promise is kept on Friday, a large tool result is replaced and read again. It ends with the savings. Your own
    memory is not touched: a folder that was not made by an earlier demo is refused. The other commands can open its
    memory:

    \b
    mcp-memory demo
    mcp-memory --home .demo search van
    mcp-memory --home .demo show canvas
    """
    from mcp_memory.cli.demo import run

    run(home or command_settings().get("home"), full=full)


@click.command()
@click.option("--url", metavar="URL", help="Wrap the server at this address (streamable HTTP) instead of a command.")
@click.option("--header", "headers", multiple=True, metavar="LINE", help="'Name: value' to send with --url.")
@click.option(
    "--over",
    type=click.IntRange(50),
    default=OFFLOAD_OVER,
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
@memory_options
def wrap(
    url: str | None, headers: tuple[str, ...], over: int, session: str | None, no_expand: bool, command: tuple[str, ...]
) -> None:
    """Run another MCP server and keep its large results.

    It is a proxy between that server and the client. Everything passes unchanged, except that a large text in a tool's
    result is kept in the memory; the client gets a summary, and an additional tool that opens any part. In the
    client's settings, put it before the server's own command:

    \b
    mcp-memory wrap -- npx -y @modelcontextprotocol/server-filesystem ~/work
    mcp-memory --space work wrap --over 2000 -- uvx mcp-server-git
    mcp-memory wrap --url https://example.com/mcp --header 'X-Api-Key: ${KEY}'

    It ends with the server, and with its exit code. If the memory cannot be opened, large results pass unchanged.
    """
    if bool(command) == bool(url):
        raise click.UsageError("Say what to wrap: either --url URL, or -- and the server's command.")
    if headers and not url:
        raise click.UsageError("--header goes with --url; a command gets its settings from the environment.")
    from mcp_memory.integrations.proxy.relay import WrapOptions, exit_now
    from mcp_memory.integrations.proxy.relay import wrap as relay

    options = WrapOptions(
        command=command,
        url=url,
        headers=headers,
        over=over,
        session=session,
        folder=os.getcwd(),  # noqa: PTH109 only its name is used
        offers_tool=not no_expand,
    )
    options_given = dict(command_settings())

    def settings() -> Settings:
        from mcp_memory.core.config import load_settings

        return load_settings(**options_given)

    exit_now(relay(options, settings))


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})  # exit code 2 would block
@click.option("--client", default="claude-code", show_default=True, help="Whose event it is.")
@click.argument("event")
@memory_options
def hook(event: str, client: str) -> None:
    """Answer an event of a client; clients run this.

    It recalls before a prompt, keeps large results and captures the conversation. `mcp-memory install` or the plugin
    sets it up. It reads the hook's JSON from standard input, and prints the answer for the client, or nothing. It
    always succeeds: if the memory is busy or broken, the client continues without it, and `mcp-memory doctor` says why.

    \b
    mcp-memory hook SessionStart < event.json

    A process keeps the memory open for hooks and clients; the first of them starts it. Without a client, it closes the
    memory after ten minutes without an event, and ends after 12 hours (`hooks_idle_hours`). Until it is ready, hooks
    answer themselves, by words alone.
    """
    if sys.stdin.isatty():
        click.echo("A client gives this its JSON on standard input; see mcp-memory hook --help.", err=True)
        return
    from mcp_memory.integrations.hooks.command import run

    _export_options()
    run(event, client, command_settings().get("home"), command_settings().get("space"))


def _export_options() -> None:
    """Put options into the environment for the hooks' daemon, which has only `--home` and `--space`."""
    for name in ("personal_space", "server", "store"):
        if value := command_settings().get(name):
            os.environ[f"{PREFIX}{name.upper()}"] = value
