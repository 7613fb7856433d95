"""The hooks that a client is to run, in the form of its own configuration: the one source for every way to install.

Pure. A client without hooks has none: `{}`. It knows what is run, not what comes of it (`dialects`, `events`).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["hooks_of"]

_LARGE = "Bash|Read|Grep|Glob|WebFetch|WebSearch|mcp__.*"
"""Tools of Claude Code whose results may be large. The others answer with a line, or with what is to stay."""

_EVENTS: Mapping[str, Mapping[str, tuple[str, int]]] = {
    "claude-code": {
        "SessionStart": ("", 10),
        "UserPromptSubmit": ("", 5),
        "PostToolUse": (_LARGE, 10),
        "PreCompact": ("", 5),
        "PostCompact": ("", 5),
        "Stop": ("", 5),
        "SessionEnd": ("", 5),
    },
    "codex": {
        "SessionStart": ("", 10),
        "UserPromptSubmit": ("", 5),
        "PostToolUse": ("Bash|mcp__.*", 10),
        "PreCompact": ("", 5),
        "PostCompact": ("", 5),
        "Stop": ("", 5),
        "SessionEnd": ("", 3),
    },
    "gemini": {  # a tool's output can only be replaced as an error, and PreCompress comes before every request
        "SessionStart": ("", 10),
        "BeforeAgent": ("", 5),
        "AfterAgent": ("", 5),
        "SessionEnd": ("", 5),
    },
}
"""Event → the matcher (none: always) and the seconds after which the client goes on without us."""


def hooks_of(client: str, command: Sequence[str]) -> dict[str, Any]:
    """Return the value of `hooks` in the configuration of a client, every entry with a command of its own.

    `command` starts `mcp-memory`, options such as `--home` included: a program and its arguments. `{}` where the
    client has no hooks, or none that are supported.
    """
    return {
        event: [
            {**({"matcher": matcher} if matcher else {}), "hooks": [_hook(client, [*command, "hook", event], seconds)]}
        ]
        for event, (matcher, seconds) in _EVENTS.get(client, {}).items()
    }


def _hook(client: str, command: Sequence[str], seconds: int) -> dict[str, Any]:
    match client:
        case "claude-code":  # no shell reads it
            return {"type": "command", "command": command[0], "args": [*command[1:]], "timeout": seconds}
        case "gemini":
            line = _line([*command, "--client", client])
            return {"name": "mcp-memory", "type": "command", "command": line, "timeout": seconds * 1000}
        case _:
            return {"type": "command", "command": _line([*command, "--client", client]), "timeout": seconds}


def _line(command: Sequence[str]) -> str:
    """Return a command as the shell of this machine reads it."""
    if os.name == "nt":
        from subprocess import list2cmdline

        return list2cmdline(command)
    return shlex.join(command)
