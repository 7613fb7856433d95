"""Where the logs of coding agents are. Reads the names and the first lines of files, and writes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.importers.agents import Agent
from mcp_memory.integrations.importers.logfile import agent_of

__all__ = ["Log", "log_folders", "logs_in"]

_ENDINGS = (".jsonl", ".json")
_PASSED = {"subagents", "tool-results", "tool-outputs", "node_modules", ".git"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A log that was found, and whose it is."""

    path: Path
    client: Agent


def log_folders(client: Agent, *, environ: Mapping[str, str], home: Path) -> list[Path]:
    """Return the folders in which a client keeps its logs, whether they are there or not."""
    match client:
        case "claude-code":
            return [Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"]
        case "codex":
            base = Path(environ.get("CODEX_HOME") or home / ".codex")
            return [base / "sessions", base / "archived_sessions"]
        case "gemini":
            return [Path(environ.get("GEMINI_CLI_HOME") or home) / ".gemini" / "tmp"]
        case _:
            assert_never(client)


def logs_in(folder: Path, known: dict[Path, Agent | None]) -> Iterator[Log]:
    """Yield the logs in a folder and those below it, by name. Links to folders are not followed.

    `known` keeps what files were found to be, from one call to the next.
    """
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _PASSED)
        for name in sorted(files):
            path = Path(parent, name)
            if not name.endswith(_ENDINGS):
                continue
            if path not in known:
                try:
                    known[path] = agent_of(path)
                except InvalidInput:  # gone again, or not ours to read
                    continue
            if (client := known[path]) is not None:
                yield Log(path=path, client=client)
