"""Forgetting: what is named goes, with all that tells of it, and comes back whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mcp_memory.core.errors import InvalidInput, StoreUnavailable
from mcp_memory.core.secrets import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Forgotten
from mcp_memory.service.memory.verbs import Verbs, in_thread

if TYPE_CHECKING:
    from mcp_memory.store.forgetting import How
    from mcp_memory.store.protocol import Tombstone

__all__ = ["Forgetting"]

_ATTEMPTS = 20
_LISTED = 200
_CANVASES = 1_000
_MAX_REASON = 200


class Forgetting(Verbs):
    """What is to go, and come back."""

    @in_thread
    def forget(
        self,
        ids: Sequence[str] = (),
        *,
        query: str | None = None,
        session: str | None = None,
        since: str | None = None,
        until: str | None = None,
        reason: str = "",
        dry_run: bool | None = None,
        undo: str | None = None,
    ) -> Forgotten:
        """Take turns, atoms and refs out of every search; with `undo`, bring back what a tombstone took.

        What all of ids, query, session and time name is meant. By ids alone it acts at once; otherwise it shows what
        it would forget, unless `dry_run` is False.
        """
        from mcp_memory.longterm import forgetting

        if undo:
            if ids or query or session or since or until:
                raise InvalidInput("Give the tombstone to undo, or say what to forget: not both in one call.")
            return self._undo(undo)
        if len(one_line(reason, len(reason))) > _MAX_REASON:
            raise InvalidInput(
                f"reason has {len(reason):,} characters; it can have {_MAX_REASON}. Nothing was forgotten."
            )
        parts, store = self._parts, self._parts.store
        begin, end = parts.times(since, until)
        wanted = forgetting.chosen(store, self.space, ids=ids, query=query, session=session, since=begin, until=end)
        alone = bool(ids) and not (query or session or since or until)
        shows = dry_run if dry_run is not None else not alone
        if not wanted:
            return Forgotten(ids=[], tombstone=None, dry_run=True, previews=[], undone=False)
        reach = store.reach(self.space, wanted)
        previews = forgetting.previews(store, self.space, reach.ids[:_LISTED])
        along = [*forgetting.along(store, reach, query=query), *self._told_still(query, reach.refs)]
        tombstone = None
        if not shows:
            how = forgetting.how(query=query, session=session, timed=bool(since or until))
            tombstone = self._forget(wanted, reach.refs, reason=one_line(mask(reason), _MAX_REASON), how=how)
        gone = tombstone.ids if tombstone else reach.ids
        return Forgotten(
            ids=gone[:_LISTED],
            tombstone=tombstone.id if tombstone else None,
            dry_run=shows,
            previews=previews,
            undone=False,
            total=len(gone),
            along=along,
        )

    def _forget(self, ids: Sequence[str], refs: Sequence[str], *, reason: str, how: How) -> Tombstone:
        from mcp_memory.shortterm.canvas import forgotten

        store, now = self._parts.store, self._parts.now()

        def attempt() -> Tombstone:
            redrawn = forgotten.taken_off(store, self.space, refs, now=now.astimezone()) if refs else ()
            return store.forget(self.space, ids, reason=reason, how=how, redrawn=redrawn, now=now)

        return self._settled(attempt)

    def _told_still(self, query: str | None, refs: Sequence[str]) -> list[str]:
        """Tell which tasks say the words of a query even then: their goals and the steps that stay are not searched."""
        from mcp_memory.language.words import base_terms
        from mcp_memory.shortterm.canvas import forgotten

        words = set(base_terms(query or ""))
        if not words:
            return []
        store, now = self._parts.store, self._parts.now().astimezone()
        bare = {one.row.number: one.row for one in forgotten.taken_off(store, self.space, refs, now=now)}
        rows = [bare.get(row.number, row) for row in store.canvases(self.space, limit=_CANVASES)]
        still = [f"{row.number:03}" for row in rows if words <= set(base_terms(row.text))]
        return (
            [f"Tasks that stay and say it too, in their goal or in other steps: {', '.join(still)}."] if still else []
        )

    def _undo(self, undo: str) -> Forgotten:
        from mcp_memory.longterm import forgetting
        from mcp_memory.shortterm.canvas import forgotten

        store, now = self._parts.store, self._parts.now()

        def attempt() -> Tombstone:
            refs = [id for one in store.tombstones(self.space) if one.id == undo for id in one.ids if id[0] == "r"]
            redrawn = forgotten.brought_back(store, self.space, refs) if refs else ()
            return store.undo_forget(self.space, undo, redrawn=redrawn, now=now)

        back = self._settled(attempt)
        return Forgotten(
            ids=back.ids[:_LISTED],
            tombstone=None,
            dry_run=False,
            previews=forgetting.previews(store, self.space, back.ids[:_LISTED]),
            undone=True,
            total=len(back.ids),
        )

    def _settled(self, attempt: Callable[[], Tombstone]) -> Tombstone:
        """Try until no writer of a canvas was first, and bring what is made of it all into line."""
        from mcp_memory.store.protocol import Conflict

        for _ in range(_ATTEMPTS):
            try:
                done = attempt()
            except Conflict:
                continue
            self._parts.pipeline.write_persona()
            self._parts.stored()
            return done
        raise StoreUnavailable("A canvas is being written to by many others at once. Nothing was changed; call again.")

    @in_thread
    def tombstones(self) -> list[Tombstone]:
        """Return all that was ever forgotten in this space, undone ones too, oldest first."""
        return self._parts.store.tombstones(self.space)
