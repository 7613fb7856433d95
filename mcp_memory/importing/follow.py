"""Takes in what a coding agent's log has grown by since it was last read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mcp_memory.errors import InvalidInput
from mcp_memory.importing.agents import Agent
from mcp_memory.memory import Memory

__all__ = ["Followed", "follow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What one reading of a log came to. `session` and `client` are empty where it holds no conversation.

    `stored` turns are new and `duplicates` were there before; `kept` tool results became refs, `small` ones did not.
    `offset` is how many bytes are behind it; `torn` says that a last line was not yet whole.
    """

    path: Path
    client: Agent | None
    session: str | None
    stored: int = 0
    duplicates: int = 0
    kept: int = 0
    small: int = 0
    bad: int = 0
    """Lines that could not be read, and were passed over."""
    offset: int = 0
    torn: bool = False
    notes: list[str] = field(default_factory=list[str])


async def follow(memory: Memory, path: Path, *, live: bool, client: Agent | None = None) -> Followed:
    """Store what a log tells that is not stored yet, from where it was read to last time up to its last whole line.

    `live` results were produced just now: they come onto the session's canvas. Others are kept and indexed only.
    `client` says whose log it is, where that is known. InvalidInput where the file cannot be read, or is no log.
    """
    raise InvalidInput(f"{path} cannot be read yet.")
