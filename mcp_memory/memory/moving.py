"""From home to home: a memory is exported to one file, and an export is taken in, each row once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_memory.memory.forgetting import Forgetting
from mcp_memory.memory.verbs import in_thread

if TYPE_CHECKING:
    from mcp_memory.portable import Brought, Exported, Parcel

__all__ = ["Moving"]


class Moving(Forgetting):
    """What leaves this memory as a file, and what comes in from one."""

    @in_thread
    def export(self, target: Path, *, spaces: Sequence[str] | None = ()) -> Exported:
        """Write this space (or these; None means all) to a file that is not there yet. Nothing forgotten is in it."""
        from mcp_memory.portable import export
        from mcp_memory.shortterm.canvas.forgotten import scrubbed

        store = self._parts.store
        chosen = None if spaces is None else spaces or [self.space]
        return export(store, target, chosen, scrub=lambda space, refs: scrubbed(store, space, refs))

    @in_thread
    def take_in(self, parcel: Parcel, space: str) -> Brought:
        """Take a space of an export into this one. What is here is not stored again, and what was forgotten not at all.

        What was forgotten there since it last came is forgotten here too, which can be undone.
        """
        from mcp_memory.portable import bring

        parts = self._parts
        done = bring(parts.store, parcel, space, self.space, now=parts.now, forget=self._forget_too, undo=self._undo)
        parts.pipeline.write_persona()
        parts.stored()
        return done

    def _forget_too(self, ids: Sequence[str], reason: str) -> str:
        refs = self._parts.store.reach(self.space, ids).refs
        return self._forget(ids, refs, reason=reason, how="import").id
