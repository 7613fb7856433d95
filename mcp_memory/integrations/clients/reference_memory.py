"""The files of the reference memory server (`@modelcontextprotocol/server-memory`) that clients here start.

The server keeps its memory in the file that MEMORY_FILE_PATH names, by default `memory.jsonl`, before that
`memory.json`. A relative path is in the folder of its package, which npm keeps in one of several places.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.integrations.clients import plan, programs

_STARTS = re.compile(r"@modelcontextprotocol[/\\]server-memory(?![\w-])|(?:^|[/\\])mcp-server-memory(?:\.\w+)?$")
_PACKAGES = (
    "${npm_config_cache:-~/.npm}/_npx/*/node_modules",
    "${LOCALAPPDATA}/npm-cache/_npx/*/node_modules",
    "${APPDATA}/npm/node_modules",
    "${npm_config_prefix:-~/.npm-global}/lib/node_modules",
    "${NVM_DIR:-~/.nvm}/versions/node/*/lib/node_modules",
    "/opt/homebrew/lib/node_modules",
    "/usr/local/lib/node_modules",
    "/usr/lib/node_modules",
)
"""Folders of packages: those that npx made for a run, then those of global installations."""


def reference_memories(project: Path) -> list[Path]:
    """Return the files with content that the servers of any client have, for the user or in the folder of a project.

    Configurations that cannot be read are skipped.
    """
    files: dict[Path, None] = {}
    for entry in _configured_servers(project):
        files |= dict.fromkeys(_memory_files(entry))
    return list(files)


def _configured_servers(project: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of this server, wherever they are in a configuration: Claude Code has some under `projects`."""
    machine = programs.this_machine()
    for place in (None, project):
        for name in programs.clients_for(place):
            for path in map(Path, programs.server_files(name, machine, place)):
                with suppress(McpMemoryError, RecursionError):
                    yield from _find_entries(plan.read_document(path, programs.client_named(name).format))


def _find_entries(value: Any) -> Iterator[Mapping[str, Any]]:
    match value:
        case dict():
            fields = cast("dict[str, Any]", value)
            if any(map(_STARTS.search, programs.command_words(fields))):
                yield fields
            for member in fields.values():
                yield from _find_entries(member)
        case list():
            for item in cast("list[Any]", value):
                yield from _find_entries(item)
        case _:
            pass


def _memory_files(entry: Mapping[str, Any]) -> Iterator[Path]:
    from mcp_memory.integrations.clients.server_check import expand_variables  # takes a second to import

    variables = entry.get("env") or entry.get("environment")
    named = cast("dict[str, Any]", variables).get("MEMORY_FILE_PATH") if isinstance(variables, dict) else None
    named = expand_variables(named, os.environ) if isinstance(named, str) else ""
    names = [named] if named else ["memory.jsonl", "memory.json"]
    folders = [Path()] if named and Path(named).is_absolute() else _package_folders()
    for path in (folder / name for folder in folders for name in names):
        with suppress(OSError):
            if path.is_file() and path.stat().st_size:
                yield path


def _package_folders() -> Iterator[Path]:
    machine = programs.this_machine()
    for template in _PACKAGES:
        if path := machine.expand(f"{template}/@modelcontextprotocol/server-memory/dist"):
            yield from Path(path.anchor).glob(str(path.relative_to(path.anchor)))
