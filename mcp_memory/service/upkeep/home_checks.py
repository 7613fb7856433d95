"""Checks of a home folder that need no open store: its identity file, its permissions, files of other programs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from mcp_memory.store.sqlite.home import exposed_paths as exposed_paths
from mcp_memory.store.sqlite.home import identity_problem as identity_problem


def nearest_folder(home: Path) -> Path:
    """Return the home, or the nearest existing folder above it."""
    return next(folder for folder in (home, *home.parents) if os.access(folder, os.F_OK))


def why_unwritable(home: Path) -> str | None:
    """Return why a home, or the folder in which it would be created, cannot be written to; None if it can."""
    folder = nearest_folder(home)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return f"{folder} cannot be written to: {error.strerror}"
