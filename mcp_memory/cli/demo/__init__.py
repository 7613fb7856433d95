"""The demo: starts the real server as clients do, and shows its main job in a separate folder.

    short    words of Monday are on the page on Tuesday, without a model; a promise is kept on Friday; a task has large
             tool results and a picture
    full     all steps of a fortnight (`--full`)

The full demo plays a connected agent whose model answers the questions of `distill`; the answers were written
beforehand (`agent.Replies`), as its output says. Everything else that is printed comes from the server and from hooks.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import time
from pathlib import Path

import anyio
import click

from mcp_memory.core.errors import Refused, StoreUnavailable
from mcp_memory.core.paths import expand_path
from mcp_memory.core.private_files import make_folder
from mcp_memory.integrations.clients.programs import NAME, this_command

MARK = "made-by-mcp-memory-demo.txt"
_NEXT = ("ui", "show persona", "show canvas", "search van", "status")


def run(home: Path | None = None, *, full: bool = False) -> None:
    """Play the demo, with `full` the long version, in `home` or the default folder.

    The folder is created, or emptied if an earlier demo made it. Raises Refused for a folder with other files,
    StoreUnavailable for a folder that cannot be written.
    """
    from mcp_memory.cli.demo import full as whole
    from mcp_memory.cli.demo import short

    for name in ("MCP_MEMORY_STORE", "MCP_MEMORY_SERVER"):  # the user's own memory
        os.environ.pop(name, None)
    chosen = empty_home(default_home() if home is None else home)
    began = time.perf_counter()
    anyio.run(whole.play if full else short.play, chosen)
    click.echo(f"\nDone in {time.perf_counter() - began:.1f} s. Look around:\n")
    here = f"{shell_command()} --home {shlex.quote(_relative_path(chosen))}"
    for command in [*_NEXT, *(["verify"] if full else [])]:
        click.echo(f"  {here} {command}")
    if not full:
        click.echo(f"\nEvery step, of a whole fortnight:\n\n  {shell_command()} demo --full")


def shell_command() -> str:
    """Return the shell command that starts this program, by its bare name if the PATH leads to this program."""
    program, *arguments = this_command()
    on_path = shutil.which(NAME)
    same = on_path is not None and Path(on_path).resolve() == Path(program).resolve()
    return shlex.join([NAME if same else _relative_path(Path(program)), *arguments])


def _relative_path(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def default_home() -> Path:
    """Return `.demo` in the working directory; if that cannot be written to, make and return a temporary folder."""
    here = Path.cwd()
    return here / ".demo" if os.access(here, os.W_OK) else Path(tempfile.mkdtemp(prefix="mcp-memory-demo-"))


def empty_home(home: Path) -> Path:
    """Make a folder, or empty the folder of an earlier demo, and return it. A marker file identifies it later.

    Raises Refused for a folder with other files, StoreUnavailable for a folder that cannot be written.
    """
    home = expand_path(str(home), "--home").absolute()
    try:
        make_folder(home)
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
