"""Projects: which folders belong together.

A session belongs to the project of the folder in which its client was started. A git repository is one project, with
all its folders and worktrees; any other folder is a project of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

from mcp_memory.core.regular_files import read_regular

_MAX_FILE = 4_096
_GITDIR = re.compile(r"gitdir: *(.+)")


def project_of(folder: Path) -> str:
    """Return the name of the project of a folder, which may be deleted: a path. Reads files, and never raises OSError.

    In a git repository it is the root folder; in a worktree, the root folder of the main repository.
    """
    try:
        folder = folder.resolve()
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a link to itself; ValueError: a NUL
        return str(folder)
    for root in (folder, *folder.parents):
        try:
            if (root / ".git").is_dir():
                return str(root)
            if (root / ".git").is_file():
                return str(_main_repository(root))
        except (OSError, ValueError):
            continue
    return str(folder)


def _main_repository(root: Path) -> Path:
    """Return the root of the repository that a worktree belongs to; `root` itself for a submodule."""
    match = _GITDIR.match(read_regular(root / ".git", _MAX_FILE).decode())
    if match is None:
        return root
    git_dir = root / match[1].strip()
    try:
        common = (git_dir / read_regular(git_dir / "commondir", _MAX_FILE).decode().strip()).resolve()
    except FileNotFoundError:
        return root
    return common.parent if common.name == ".git" else common
