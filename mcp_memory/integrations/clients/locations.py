"""Where each client keeps its configuration, on Linux, macOS and Windows.

Pure: a machine is its system, its environment and the home folder of its user. A path may hold one `*`, for a folder
whose name a package manager makes up; `found` looks on the disk which of the candidates is meant.

How a client can start this installation, from wherever it runs: with absolute paths and no PATH.

The name that the user's PATH has for this program is taken before the file in its environment, for it outlives an
upgrade. An environment that a runner made for one run is gone soon: then the runner itself is the command.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Literal, get_args

from mcp_memory.core.errors import InvalidInput, Refused

ClientName = Literal["claude-desktop", "claude-code", "cursor", "vscode", "codex", "gemini"]
CLIENTS: tuple[ClientName, ...] = get_args(ClientName)
System = Literal["linux", "macos", "windows"]

_SYSTEMS: Mapping[str, System] = {"win32": "windows", "darwin": "macos"}
_EDITIONS = ("Code", "Code - Insiders", "VSCodium")


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides where files are. `home` is absolute."""

    system: System
    environ: Mapping[str, str]
    home: PurePath

    def path(self, *parts: str) -> PurePath:
        """Return a path of this system, which need not be the one that this runs on."""
        return (PureWindowsPath if self.system == "windows" else PurePosixPath)(*parts)

    def folder(self, variable: str, *default: str) -> PurePath:
        """Return the folder that a variable names, or the default one in the home."""
        told = self.environ.get(variable, "").strip()
        return self.path(told) if told and self.path(told).is_absolute() else self.home.joinpath(*default)

    @property
    def settings(self) -> PurePath:
        """Where desktop programs of this system keep their folders."""
        match self.system:
            case "linux":
                return self.folder("XDG_CONFIG_HOME", ".config")
            case "macos":
                return self.home / "Library" / "Application Support"
            case "windows":
                return self.folder("APPDATA", "AppData", "Roaming")


def this_machine() -> Machine:
    """Return the machine that this runs on. Raises Refused where the user has no home folder."""
    try:
        home = Path.home()
    except RuntimeError:
        raise Refused("This user has no home folder, where clients keep their configuration. Set HOME.") from None
    return Machine(_SYSTEMS.get(sys.platform, "linux"), dict(os.environ), home)


def clients(project: PurePath | None) -> list[ClientName]:
    """Return the clients that can have a server: in a project alone, or everywhere."""
    return [client for client in CLIENTS if project is None or client != "claude-desktop"]


def server_files(client: ClientName, machine: Machine, project: PurePath | None = None) -> list[PurePath]:
    """Return where the client's servers may be configured, the likeliest first; of a project, in its folder.

    Raises InvalidInput for a client that knows no projects.
    """
    if project is not None:
        return [_of_project(client, project)]
    match client:
        case "claude-desktop":
            name = "claude_desktop_config.json"
            usual = machine.settings / "Claude" / name
            if machine.system != "windows":
                return [usual]
            local = machine.folder("LOCALAPPDATA", "AppData", "Local")
            # What the installer from the store or the web site brings sees a folder of its own.
            return [local / "Packages" / "Claude_*" / "LocalCache" / "Roaming" / "Claude" / name, usual]
        case "claude-code":
            return [machine.folder("CLAUDE_CONFIG_DIR") / ".claude.json"]
        case "cursor":
            return [machine.home / ".cursor" / "mcp.json"]
        case "vscode":
            if "VSCODE_PORTABLE" in machine.environ:
                return [machine.folder("VSCODE_PORTABLE") / "user-data" / "User" / "mcp.json"]
            return [machine.settings / edition / "User" / "mcp.json" for edition in _EDITIONS]
        case "codex":
            return [machine.folder("CODEX_HOME", ".codex") / "config.toml"]
        case "gemini":
            return [machine.folder("GEMINI_CLI_HOME") / ".gemini" / "settings.json"]


def hooks_files(client: ClientName, machine: Machine, project: PurePath | None = None) -> list[PurePath]:
    """Return where the client's hooks are configured: none where it has none.

    Hooks of a project are the user's own there, for they start a program of this machine.
    """
    match client:
        case "claude-code" if project is not None:
            return [project / ".claude" / "settings.local.json"]
        case "claude-code":
            return [machine.folder("CLAUDE_CONFIG_DIR", ".claude") / "settings.json"]
        case "gemini":
            return server_files(client, machine, project)
        case "codex" if project is not None:
            return [project / ".codex" / "hooks.json"]
        case "codex":
            return [machine.folder("CODEX_HOME", ".codex") / "hooks.json"]
        case _:
            return []


def _of_project(client: ClientName, project: PurePath) -> PurePath:
    match client:
        case "claude-code":
            return project / ".mcp.json"
        case "cursor":
            return project / ".cursor" / "mcp.json"
        case "vscode":
            return project / ".vscode" / "mcp.json"
        case "codex":
            return project / ".codex" / "config.toml"
        case "gemini":
            return project / ".gemini" / "settings.json"
        case "claude-desktop":
            raise InvalidInput("Claude Desktop has no projects; install it without --project.")


def found(candidates: Sequence[PurePath]) -> Path:
    """Return the first candidate whose folder is there, or the first one that names a place when none is."""
    for candidate in candidates:
        folder = candidate.parent
        if "*" not in str(folder):
            if Path(folder).is_dir():
                return Path(candidate)
            continue
        star = folder.parts.index(next(part for part in folder.parts if "*" in part))
        for match in sorted(Path(*folder.parts[:star]).glob(str(PurePath(*folder.parts[star:])))):
            if match.is_dir():
                return match / candidate.name
    return Path(next(candidate for candidate in candidates if "*" not in str(candidate)))


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
