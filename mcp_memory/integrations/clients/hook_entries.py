"""The hooks to install in a client's configuration, made from its description."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any

from mcp_memory.integrations.clients.description import fill, hooks_described


def hooks_of(client: str, command: Sequence[str]) -> dict[str, Any]:
    """Return the value of `hooks` in a client's configuration: our hook for each event, `{}` for a client without any.

    `command` starts `mcp-memory`: a program and its arguments, with options such as `--home`.
    """
    hooks = hooks_described(client)
    if hooks is None or hooks.entry is None:
        return {}
    entries: dict[str, Any] = {}
    for event, kind in hooks.events.items():
        words = [*command, "hook", event, *([] if client == _DEFAULT else ["--client", client])]
        seconds = hooks.seconds(kind)
        values = {
            "program": words[0],
            "arguments": words[1:],
            "line": _line(words),
            "seconds": seconds,
            "milliseconds": seconds * 1000,
        }
        matcher = {"matcher": hooks.matcher} if kind == "tool" and hooks.matcher else {}
        entries[event] = [{**matcher, **fill(hooks.entry, values)}]
    return entries


_DEFAULT = "claude-code"
"""The client of `mcp-memory hook` without `--client`."""


def _line(command: Sequence[str]) -> str:
    """Quote a command for the shell of this machine."""
    if os.name == "nt":
        from subprocess import list2cmdline

        return list2cmdline(command)
    return shlex.join(command)
