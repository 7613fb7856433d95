"""Commands that clients run at the events of a conversation, and the hook daemon that answers them.

    command         the process that a client runs: asks the daemon, or answers itself; never fails
    own_answers     the answers of that process, from the store by words alone
    daemon_process  the process of the daemon: its lock, its log, its new start while nobody asks
    daemon          keeps the memory open and answers
    daemon_files    the files by which hook and daemon find each other; pending logs; the health of hooks
    events          events as clients describe them, and the forms of answers
    answers         the answer to each event, and which texts each conversation's context already contains
    tool_outputs    offloads large tool outputs
    transcripts     the clients' logs, searched for earlier recalls
    following       the clients' logs, read as they grow

If anything fails here, the user's work continues and the log in the home says why.

This module has the table of the events at which clients run our hooks, and makes the hooks to install. Every hook
imports it first, so it imports nothing.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

Kind = Literal["start", "prompt", "tool", "compacting", "compacted", "stop", "end"]

_LIKE_CLAUDE_CODE: Mapping[str, Kind] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "PreCompact": "compacting",
    "PostCompact": "compacted",
    "Stop": "stop",
    "SessionEnd": "end",
}
KINDS: Mapping[str, Mapping[str, Kind]] = {
    "claude-code": _LIKE_CLAUDE_CODE,
    "codex": _LIKE_CLAUDE_CODE,
    # A tool's output can only be replaced as an error, and PreCompress comes before every request: neither is used.
    "gemini": {"SessionStart": "start", "BeforeAgent": "prompt", "AfterAgent": "stop", "SessionEnd": "end"},
}
"""The events at which each client runs our hooks, by the client's names, in the order of a session."""


def kind_of(client: str, event: str) -> Kind | None:
    return KINDS.get(client, {}).get(event)


_LARGE_TOOLS: Mapping[str, str] = {
    "claude-code": "Bash|Read|Grep|Glob|WebFetch|WebSearch|mcp__.*",
    "codex": "Bash|mcp__.*",
}
"""The tools of each client whose results may be large. Other results are one line, or must stay unchanged."""

_SECONDS: Mapping[Kind, int] = {"start": 10, "prompt": 10, "tool": 15}
_DEFAULT_SECONDS = 5
"""Seconds that a client waits for a hook: more than the hook takes (`command`), even on a busy machine."""
_MAX_SECONDS: Mapping[tuple[str, Kind], int] = {("codex", "end"): 3}
"""The most seconds that a client allows."""


def hooks_of(client: str, command: Sequence[str]) -> dict[str, Any]:
    """Return the value of `hooks` in a client's configuration: our hook for each event, `{}` for an unknown client.

    `command` starts `mcp-memory`: a program and its arguments, with options such as `--home`.
    """
    return {event: [_entry(client, event, kind, command)] for event, kind in KINDS.get(client, {}).items()}


def _entry(client: str, event: str, kind: Kind, command: Sequence[str]) -> dict[str, Any]:
    seconds = _MAX_SECONDS.get((client, kind), _SECONDS.get(kind, _DEFAULT_SECONDS))
    hooks = {"hooks": [_hook(client, [*command, "hook", event], seconds)]}
    return {"matcher": _LARGE_TOOLS[client], **hooks} if kind == "tool" else hooks


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
    """Quote a command for the shell of this machine."""
    if os.name == "nt":
        from subprocess import list2cmdline

        return list2cmdline(command)
    return shlex.join(command)
