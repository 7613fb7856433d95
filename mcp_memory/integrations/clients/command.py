"""How a client can start this installation, from wherever it runs: with absolute paths and no PATH.

The name that the user's PATH has for this program is taken before the file in its environment, for it outlives an
upgrade. An environment that a runner made for one run is gone soon: then the runner itself is the command.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["NAME", "command", "this_command"]

NAME = "mcp-memory"

_PASSING = (
    ("uvx", "/archive-v"),
    ("uvx", "/.cache/uv/"),
    ("uvx", "/uv/cache/"),
    ("pipx", "/pipx/.cache/"),
    ("pipx", "/.cache/pipx/"),
)
"""Runner → what the path of an environment holds that it made for one run."""


def this_command() -> list[str]:
    """Return what starts this installation."""
    return command(Path(sys.executable), Path(sys.prefix), shutil.which)


def command(python: Path, environment: Path, which: Callable[[str], str | None]) -> list[str]:
    """Return the program and its first arguments: the installed script, a runner, or `python -m mcp_memory`."""
    for runner, mark in _PASSING:
        if mark in f"{environment.as_posix()}/" and (path := which(runner)):
            return [os.path.abspath(path), *(["run"] if runner == "pipx" else []), NAME]  # noqa: PTH100 links stay
    script = python.with_name(f"{NAME}.exe" if os.name == "nt" else NAME)
    if not script.is_file():
        return [str(python), "-m", "mcp_memory"]
    named = which(NAME)
    if named and Path(named).resolve() == script.resolve():
        return [os.path.abspath(named)]  # noqa: PTH100
    return [str(script)]
