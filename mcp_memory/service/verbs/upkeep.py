"""Backups of a home. A memory in PostgreSQL has those of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_memory.core.errors import Refused
from mcp_memory.service.verbs.base import Verbs, in_thread

if TYPE_CHECKING:
    from mcp_memory.service.upkeep.backup import Backup


class UpkeepVerbs(Verbs):
    """Backups."""

    @property
    def has_files(self) -> bool:
        """Whether the memory is in files of this machine."""
        return self._parts.embedded is not None

    @in_thread
    def backups(self) -> list[Backup]:
        """Return the backups in the home, the newest first. Their members are not read."""
        from mcp_memory.service.upkeep.backup import folder_of, listed

        return listed(folder_of(self.settings.home)) if self.has_files else []

    @in_thread
    def back_up(self) -> Backup:
        """Back up all spaces of the home into one file there, and verify it. Others may go on writing.

        Raises Refused for a memory in PostgreSQL, StoreUnavailable if there is no room, Damaged if the file differs
        from the data that was written.
        """
        from mcp_memory.service.upkeep.backup import back_up

        embedded = self._parts.embedded
        if embedded is None:
            raise Refused("This memory is in PostgreSQL, which has backups of its own. No backup was made.")
        return back_up(embedded, self.settings.home, now=self._parts.now().astimezone())
