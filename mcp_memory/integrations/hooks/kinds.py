"""What each client calls the events at which it runs our hook, and what they are to us: the one table of them.

Nothing is imported for it, since every hook reads it before it does anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

__all__ = ["KINDS", "Kind", "kind_of"]

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
"""Client → the events that are run, by the client's names, in the order of a session."""


def kind_of(client: str, event: str) -> Kind | None:
    return KINDS.get(client, {}).get(event)
