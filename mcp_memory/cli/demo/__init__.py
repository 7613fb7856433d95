"""The demo: the real server, started as a client starts it, does its main job on a made-up fortnight.

A conversation is recorded, distilled and searched; a task's tool results are offloaded, expanded and folded; and at the
end each raw result is read back and compared. Every number comes from an answer of the server; the replies of a
client's model were written beforehand, and the demo says so. It works in its own folder, and refuses any other.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path

import anyio
import click

from mcp_memory.cli.demo.steps import play
from mcp_memory.core.errors import Refused, StoreUnavailable
from mcp_memory.integrations.clients.locations import NAME, this_command

MARK = "made-by-mcp-memory-demo.txt"


def run(home: Path | None = None) -> None:
    """Play the demo in a new memory in `home`. Raises Refused for a folder with other files."""
    chosen = renewed(default_home() if home is None else home)
    began = time.perf_counter()
    anyio.run(play, [sys.executable, "-m", "mcp_memory", "--home", str(chosen), "serve"], chosen)
    click.echo(f"\nDone in {time.perf_counter() - began:.1f} s. Look around:\n")
    for command in ("status", "show canvas", 'search "night boat"', "show persona", "verify", "doctor"):
        click.echo(f"  {typed()} --home {shlex.quote(_from_here(chosen))} {command}")


def typed() -> str:
    """Return the command that a person types here to start this program: its bare name if it is on the PATH."""
    program, *arguments = this_command()
    on_path = shutil.which(NAME)
    same = on_path is not None and Path(on_path).resolve() == Path(program).resolve()
    return shlex.join([NAME if same else _from_here(Path(program)), *arguments])


def _from_here(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def default_home() -> Path:
    """Return `.demo` in the working directory, or a temporary folder where nothing can be written there."""
    here = Path.cwd()
    return here / ".demo" if os.access(here, os.W_OK) else Path(tempfile.mkdtemp(prefix="mcp-memory-demo-"))


def renewed(home: Path) -> Path:
    """Return the folder, empty but for the mark by which the next run knows that it may empty it."""
    home = home.expanduser().absolute()
    try:
        home.mkdir(parents=True, exist_ok=True)
        if any(home.iterdir()) and not (home / MARK).is_file():
            raise Refused(
                f"{home} holds files that no demo made, and the demo starts with an empty folder. Name another one."
            )
        for entry in home.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != MARK:
                entry.unlink()
        (home / MARK).write_text("Everything in this folder is made anew by each `mcp-memory demo`.\n", "utf-8")
    except OSError as error:
        raise StoreUnavailable(f"{home} cannot be written: {error.strerror}. Name another --home.") from None
    return home
