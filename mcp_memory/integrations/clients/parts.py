"""What of ours belongs into which file of a client on this machine."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import well_formed
from mcp_memory.integrations.clients import entries, places
from mcp_memory.integrations.clients.command import NAME
from mcp_memory.integrations.clients.plan import Part
from mcp_memory.integrations.hooks.manifest import hooks_of

__all__ = ["for_any_client", "is_here", "parts"]


def parts(
    client: str,
    command: Sequence[str],
    *,
    name: str,
    project: Path | None,
    env: Mapping[str, str],
    hooks: bool,
) -> list[Part]:
    """Return the server's part and, in a file of their own or with it, that of the hooks.

    `command` starts this program, with the options that say which memory. Raises InvalidInput for a client that is not
    known or has no projects, and for names that none could read.
    """
    _check(name, command, env)
    of = entries.client(client)
    machine = places.this_machine()
    path = places.found(places.server_files(of.name, machine, project))
    start = _shared(command) if project else command
    server = entries.entry(of, [*start, "serve"], env)
    wanted = hooks_of(of.name, command) if hooks else {}
    beside = [Path(file) for file in places.hooks_files(of.name, machine, project)] if wanted else []
    return [
        Part(path, of.format, of, name, server, wanted if beside == [path] else {}),
        *(Part(file, "json", of, name, hooks=wanted) for file in beside if file != path),
    ]


def for_any_client(command: Sequence[str], *, name: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Return what most clients that are not known here want to see in their file. Raises InvalidInput as `parts`."""
    _check(name, command, env)
    return {"mcpServers": {name: entries.entry(None, [*command, "serve"], env)}}


def _check(name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name):
        raise InvalidInput(f"The name {name!r} is not one that every client takes. Use letters, digits, - and _.")
    if strange := next((word for word in (*command, *env, *env.values()) if not well_formed(word)), None):
        raise InvalidInput(f"{strange!r} is not UTF-8, and configurations are. Use another path or value.")


def _shared(command: Sequence[str]) -> Sequence[str]:
    """Return the command for a file that others share: by its name, where a PATH leads to it."""
    named = shutil.which(NAME)
    same = named is not None and Path(named).resolve() == Path(command[0]).resolve()
    return [NAME, *command[1:]] if same else command


def is_here(part: Part) -> bool:
    """Tell whether the client seems to be on this machine: its folder or its command is."""
    place = part.path if part.path.parent == Path.home() else part.path.parent
    return place.exists() or bool(part.of.program and shutil.which(part.of.program))
