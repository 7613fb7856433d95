"""What the arguments of `import` stand for: files, logs of coding agents, and standard input."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_memory.core.errors import InvalidInput

if TYPE_CHECKING:
    from mcp_memory.integrations.importers.agents import Agent
    from mcp_memory.integrations.importers.finding import Log
    from mcp_memory.integrations.importers.reader import Source

    Found = Source | Log | InvalidInput

__all__ = ["AGENTS", "NOTES", "logs_of", "packed_logs", "sources"]

AGENTS = ("claude-code", "codex", "gemini")
"""As in `importing.agents`, which the command line's help does not wait for."""

NOTES = ("basic-memory", "mempalace")
"""Memories that are kept, or exported, as folders of Markdown."""


@contextmanager
def sources(files: Sequence[Path], layout: str) -> Generator[list[Found]]:
    """Give what is to be read, each file once; standard input as a file, for it is read twice."""
    from mcp_memory.integrations.importers import STDIN, source_of
    from mcp_memory.integrations.importers.archive import unpacked_in

    with tempfile.TemporaryDirectory(prefix="mcp-memory-import-") as folder:
        found: list[Found] = []
        for file in dict.fromkeys(files):
            try:
                if str(file) == STDIN:
                    kept = Path(folder, "stdin")
                    with kept.open("wb") as stream:
                        shutil.copyfileobj(sys.stdin.buffer, stream)
                    found.append(source_of(kept, name=STDIN))
                elif file.is_dir() and (parts := unpacked_in(file)):
                    found += [source_of(part) for part in parts]
                elif _is_notes(file, layout):
                    found.append(source_of(file))
                elif logs := logs_of(file, layout, {}):
                    found += logs
                else:
                    found.append(source_of(file))
            except InvalidInput as error:
                found.append(error)
        yield found


def _is_notes(file: Path, layout: str) -> bool:
    """Tell whether a folder holds notes of another memory: by the asked format, or as it holds Markdown and no logs."""
    from mcp_memory.integrations.importers.finding import logs_in
    from mcp_memory.integrations.importers.notes import found_in

    if not file.is_dir() or layout in AGENTS:
        return False
    return layout in NOTES or (bool(found_in(file)) and not any(logs_in(file, {})))


def _folders(file: Path) -> list[Path]:
    """Return the folders that a path stands for: itself, or those in which the client of that name keeps its logs."""
    from mcp_memory.integrations.importers.agents import agent_named
    from mcp_memory.integrations.importers.finding import log_folders

    agent = agent_named(str(file))
    if agent is not None and not file.exists():
        return log_folders(agent, environ=os.environ, home=Path.home())
    return [file] if file.is_dir() else []


def logs_of(file: Path, layout: str, known: dict[Path, Agent | None]) -> list[Log]:
    """Return the logs that a path stands for; none where it is another file. InvalidInput for a folder without any."""
    from mcp_memory.integrations.importers.agents import agent_named
    from mcp_memory.integrations.importers.finding import Log, logs_in
    from mcp_memory.integrations.importers.logfile import agent_of

    folders = _folders(file)
    if not folders:
        if not file.is_file():
            return []
        agent = agent_of(file) if layout == "auto" else agent_named(layout)
        return [] if agent is None else [Log(path=file, client=agent)]
    logs = [log for folder in folders for log in logs_in(folder, known)]
    if not logs:
        where = ", ".join(str(folder) for folder in folders)
        raise InvalidInput(f"There is no log of a coding agent in {where}. Other files have to be named one by one.")
    return logs


def packed_logs(files: Sequence[Path]) -> list[Path]:
    """Return old logs in these places that Codex has compressed, which cannot be read here."""
    return [path for file in files for folder in _folders(file) for path in sorted(folder.rglob("rollout-*.jsonl.zst"))]
