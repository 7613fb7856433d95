"""The program: its groups of commands, each loaded when it is run."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import NoReturn

import click

from mcp_memory import __version__
from mcp_memory.cli.base import INTERRUPTED, Program, has_error, memory_options

GROUPS = {
    "Use": {
        "recall": "search",
        "search": "search",
        "import": "importing",
        "distill": "distilling",
        "flush": "distilling",
        "compress": "distilling",
        "demo": "serving",
    },
    "Look": {
        "ui": "serving",
        "status": "status",
        "show": "show",
        "why": "search",
        "verify": "distilling",
    },
    "Change": {
        "remember": "changing",
        "review": "changing",
        "forget": "changing",
        "purge": "changing",
        "retention": "changing",
        "scene": "distilling",
        "persona": "distilling",
        "pause": "distilling",
        "resume": "distilling",
    },
    "Keep": {
        "backup": "administration",
        "restore": "administration",
        "export": "administration",
        "move": "administration",
        "rebuild": "administration",
        "compact": "administration",
        "migrate": "administration",
    },
    "Connect": {
        "install": "installing",
        "uninstall": "installing",
        "serve": "serving",
        "wrap": "serving",
        "hook": "serving",
        "token": "administration",
        "space": "spaces",
    },
    "Measure": {
        "doctor": "status",
        "bench": "evaluation",
    },
}
"""The commands as the help groups them, each with its module."""

_EPILOG = """\
\b
Complete commands with the Tab key; the line for your shell's start-up file:
  bash   eval "$(_MCP_MEMORY_COMPLETE=bash_source mcp-memory)"
  zsh    eval "$(_MCP_MEMORY_COMPLETE=zsh_source mcp-memory)"
  fish   _MCP_MEMORY_COMPLETE=fish_source mcp-memory | source
\b
Exit codes:
  0   done
  1   failed, or nothing was found; the error says what to do next
  2   wrong usage: an argument, a setting or the input cannot be used
`wrap` ends with the exit code of the server that it runs.
"""


@click.group(
    cls=Program,
    groups=GROUPS,
    epilog=_EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="mcp-memory")
@memory_options
@click.pass_context
def program(ctx: click.Context) -> None:
    """Long-term and short-term memory for agents, over MCP: one local store, no key needed.

    \b
    Try it:        mcp-memory demo
    Connect it:    mcp-memory install (lists the clients), … install claude-code
    Ask it:        mcp-memory recall "when does the boat sail?"
    Look into it:  mcp-memory ui (in a browser), mcp-memory status

    Each command has its own --help with examples. Settings come from the options, then from MCP_MEMORY_*
    variables, then from config.toml in the home.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


_PIPE_CLOSED = 141
"""Exit code of a program that SIGPIPE ended, as shells give it."""


def main() -> None:
    """Run the command line; a character that the terminal cannot show is written as an escape.

    Ctrl-C and a closed output pipe (`mcp-memory demo | head`) end it without a message.
    """
    output = sys.stdout
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            program(prog_name="mcp-memory")
        finally:
            sys.stdout.flush()
    except SystemExit:
        if sys.stdout is not output:  # click replaces it after a broken pipe
            _exit_now(_PIPE_CLOSED)
        raise
    except BaseException as error:
        if has_error(error, KeyboardInterrupt):
            _exit_now(INTERRUPTED)
        if has_error(error, BrokenPipeError) and _is_pipe_closed():
            _exit_now(_PIPE_CLOSED)
        raise


def _is_pipe_closed() -> bool:
    """Flush standard output, and return whether it is a pipe without a reader; on an error in Windows always True."""
    try:
        sys.stdout.flush()
        os.write(sys.stdout.fileno(), b"")
        import select

        watched = select.poll()
        watched.register(sys.stdout.fileno(), 0)
        return bool(watched.poll(0))
    except BrokenPipeError:
        return True
    except (AttributeError, OSError, ValueError):  # no poll on Windows
        return os.name == "nt"


def _exit_now(code: int) -> NoReturn:
    """Flush what can be written, and end the process at once, because its normal end would fail on the rest."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
