"""Paths in settings: `~` and variables are expanded, and paths relative to the working folder are refused.

Clients start servers in folders of their choice and pass settings on without a shell, so `~/memory`, `$HOME/memory` and
`memory` arrive here unchanged. Standard library only, because hooks import this module.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from mcp_memory.core.errors import InvalidInput

HOME_VARIABLE = "MCP_MEMORY_HOME"
DEFAULT_HOME = "~/.mcp-memory"

_OURS = {
    "backups",
    "canvas.png",
    "config.toml",
    "exports",
    "hooks",
    "http-token",
    "identity.json",
    "logs",
    "made-by-mcp-memory-demo.txt",
    "models",
    "recovered.jsonl",
    "run",
    "servers",
    "spaces",
    "unsettled",
}
_OURS_TOO = re.compile(r"memory\.db.*|ui(?:-[0-9a-f]{12})?\.json|\..*\.tmp|.*\.log(?:\.\d+)?")
_OF_SYSTEMS = {"$recycle.bin", "desktop.ini", "lost+found", "system volume information", "thumbs.db"}
"""Files and folders that operating systems create in a volume or folder, in lower case."""
_VARIABLE = re.compile(r"\$(?:\w+|\{[^}]*\})" if os.name != "nt" else r"\$(?:\w+|\{[^}]*\})|%[^%]+%")


def expand_path(text: str, name: str) -> Path:
    """Return the path `text` with `~` and variables expanded.

    Raises InvalidInput, with the `name` of the setting, for an unknown variable or user and for an impossible path.
    """
    path = os.path.expanduser(os.path.expandvars(text))  # noqa: PTH111 of Path it raises RuntimeError
    if unknown := _VARIABLE.search(path):
        raise InvalidInput(f"{name} is {text!r}, but the variable {unknown[0]} is not set. Write the whole path.")
    if path.startswith("~"):
        raise InvalidInput(f"{name} is {text!r}, but that user has no home folder. Write the whole path.")
    if "\0" in path:
        raise InvalidInput(f"{name} contains a NUL character. Write the whole path.")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{name} is {text!r}, which is not UTF-8. Name a folder with a UTF-8 path.") from None
    return Path(path)


def absolute_path(text: str, name: str) -> Path:
    """Return the path `text` expanded. Raises InvalidInput like `expand_path`, and for a relative path."""
    path = expand_path(text, name)
    if not path.is_absolute():
        raise InvalidInput(
            f"{name} is {text!r}, which depends on the working folder. Write the whole path, such as "
            f"{Path.cwd() / path}, or one that begins with ~."
        )
    return path


def home_of_environment(text: str | None) -> Path:
    """Return the home for a value of MCP_MEMORY_HOME, or the default home. Raises InvalidInput like `absolute_path`."""
    return absolute_path(text or DEFAULT_HOME, HOME_VARIABLE)


def is_ours(name: str) -> bool:
    """Return whether this program uses a name directly in a home."""
    return name in _OURS or _OURS_TOO.fullmatch(name) is not None


def foreign_files(home: Path) -> list[str]:
    """Return the names in a home that do not belong to this program; empty if it cannot be listed.

    Hidden files do not count, because systems and sync programs leave them in every folder.
    """
    try:
        names = sorted(path.name for path in home.iterdir())
    except OSError:
        return []
    return [name for name in names if not is_ours(name) and name[0] != "." and name.lower() not in _OF_SYSTEMS]


def is_memory(home: Path) -> bool:
    """Return whether a folder contains a memory."""
    return any(os.path.lexists(home / name) for name in ("memory.db", "identity.json"))


def home_problem(home: Path) -> str | None:
    """Return why a path cannot be a home, with the next step; None if it can, or does not exist yet.

    The path and its parents must be folders, and readable. The root of the file system is refused.
    """
    if why := _folder_problem(home):
        return why
    if home.resolve() == Path(home.anchor) and not is_memory(home):
        return f"{home} is the root of the file system; a memory needs a separate folder. {_NAME_ANOTHER}"
    return None


def _folder_problem(home: Path) -> str | None:
    for path in (home, *home.parents):
        try:
            is_folder = stat.S_ISDIR(path.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            if path.is_symlink():
                return f"{path} is a broken link, but a home must be a folder. {_NAME_ANOTHER}"
            continue
        except OSError as error:
            return f"{path} cannot be used as a home ({error.strerror}). {_NAME_ANOTHER}"
        if not is_folder:
            return f"{path} is a file, but a home must be a folder. {_NAME_ANOTHER}"
        if path == home and not os.access(path, os.R_OK | os.X_OK):
            return f"The folder {path} cannot be read. Give yourself the right to it. {_NAME_ANOTHER}"
        return None
    return None


_NAME_ANOTHER = f"Name a folder with --home or {HOME_VARIABLE}."
