"""Logs of clients: how far each was read, and what of them is here already. For `importing` and the hooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_memory.service.memory.verbs import Verbs, in_thread

if TYPE_CHECKING:
    from mcp_memory.store.protocol import FollowedLog

__all__ = ["Logs"]


class Logs(Verbs):
    """What is known of the logs that clients write of their conversations."""

    @in_thread
    def followed_logs(self, path: Path | None = None) -> list[FollowedLog]:
        """Return the logs that were read (or the one at a path), the one read last first."""
        return self._parts.store.followed_logs(self.space, path=None if path is None else str(path))

    @in_thread
    def note_followed(self, log: FollowedLog) -> None:
        self._parts.store.note_followed(self.space, log)

    @in_thread
    def known_client_ids(self, ids: Sequence[str]) -> dict[str, bool]:
        """Return those of the ids that a turn of any session has, and whether it is forgotten."""
        return self._parts.store.known_client_ids(self.space, ids)

    @in_thread
    def kept_calls(self, session: str, ids: Sequence[str]) -> set[str]:
        """Return those of the ids of tool calls of a session whose result is kept, forgotten or not."""
        return self._parts.store.kept_calls(self.space, session, ids)
