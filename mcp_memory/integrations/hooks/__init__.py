"""Commands that clients run at the events of a conversation, and their answers, which the daemon gives.

    command         the process that a client runs: asks the daemon (`mcp_memory.daemon`), or answers itself
    own_answers     the answers of that process, from the store by words alone
    daemon_client   connects to the daemon and starts it
    daemon_files    the files by which hook and daemon find each other; pending logs; the health of hooks
    events          events as clients describe them, and the forms of answers
    answers         the answer to each event, and which texts each conversation's context already contains
    tool_outputs    offloads large tool outputs
    transcripts     the clients' logs, searched for earlier recalls
    following       the clients' logs, read as they grow

If anything fails here, the user's work continues and the log in the home says why.

This module makes the hooks to install from the descriptions of the clients (`clients.description`).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any

from mcp_memory.integrations.clients.description import Kind, fill, hooks_described

STABLE_TOKENS = 700
"""The most tokens that are added at the start of a conversation, besides the canvas after a compaction."""
NEEDED_TOKENS = 395
"""The most tokens that are added to a prompt."""


def kind_of(client: str, event: str) -> Kind | None:
    hooks = hooks_described(client)
    return hooks and hooks.events.get(event)


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
