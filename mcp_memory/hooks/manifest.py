"""The hooks that a client is to run, in the form of its own configuration: the one source for every way to install.

Pure. A client without hooks has none: `{}`. It knows what is run, not what comes of it (`events`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["hooks_of"]

_LARGE = "Bash|BashOutput|TaskOutput|Read|Grep|Glob|WebFetch|WebSearch|mcp__.*"
"""Tools of Claude Code whose results may be large. The others answer with a line, or with what is to stay."""

_CLAUDE_CODE = {
    "SessionStart": ("", 10),
    "UserPromptSubmit": ("", 5),
    "PostToolUse": (_LARGE, 10),
    "PreCompact": ("", 5),
    "PostCompact": ("", 5),
    "Stop": ("", 5),
    "SessionEnd": ("", 5),
}
"""Event → the matcher (none: always) and the seconds after which the client goes on without us."""


def hooks_of(client: str, command: Sequence[str]) -> dict[str, Any]:
    """Return the value of `hooks` in the configuration of a client, every entry with a command of its own.

    `command` starts `mcp-memory`, options such as `--home` included: a program and its arguments, which no shell
    reads. `{}` where the client has no hooks, or none that are supported.
    """
    if client != "claude-code":
        return {}
    program, *arguments = command
    return {
        event: [
            {
                **({"matcher": matcher} if matcher else {}),
                "hooks": [
                    {"type": "command", "command": program, "args": [*arguments, "hook", event], "timeout": seconds}
                ],
            }
        ]
        for event, (matcher, seconds) in _CLAUDE_CODE.items()
    }
