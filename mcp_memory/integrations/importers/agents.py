"""The coding agents whose logs are read: what they are called, and the session that a conversation of theirs has here.

No I/O. Everything that meets a conversation (a hook, an import, a follower) names its session by `session_name`, so
that all of them speak of one.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal, get_args

__all__ = ["AGENTS", "Agent", "agent_named", "session_name"]

Agent = Literal["claude-code", "codex", "gemini"]
AGENTS: tuple[Agent, ...] = get_args(Agent)

_HEX = re.compile(r"[0-9a-f-]{8,}")
_LENGTH = 8


def agent_named(name: str) -> Agent | None:
    """Return the agent of that name, if there is one."""
    return next((agent for agent in AGENTS if agent == name), None)


def session_name(client: Agent | Literal["chatgpt", "claude-ai"], id: str) -> str:
    """Return the session of a client's conversation with this id, as `claude-code-3f2a9c1e`; pure and stable.

    The eight characters are the first of a version-4 uuid, the last hex digits of any other id made of such (a
    version-7 uuid begins with the time), and else those of the id's SHA-256. White space and case do not count.
    """
    told = id.strip().lower()
    digits = told.replace("-", "")
    if not _HEX.fullmatch(told) or len(digits) < _LENGTH:
        mark = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]
    elif len(digits) == 32 and digits[12] == "4":
        mark = digits[:_LENGTH]
    else:
        mark = digits[-_LENGTH:]
    return f"{client}-{mark}"
