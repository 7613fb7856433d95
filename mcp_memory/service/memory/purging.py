"""Purging: what was forgotten is erased for good, and the proof that nothing of it is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.service.memory.verbs import Verbs, in_thread

if TYPE_CHECKING:
    from mcp_memory.core.process_registry import Present
    from mcp_memory.store.forgetting import Purged
    from mcp_memory.store.proof import Proof
    from mcp_memory.store.protocol import Tombstone

__all__ = ["Erased", "Purging"]

_ATTEMPTS = 20
_TRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What a purge erased, and what became of it; `beside` are the others that hold the home meanwhile."""

    tombstones: Sequence[str]
    turns: int
    atoms: int
    refs: int
    shredded: bool
    """False where others were reading all the while: the log of writes may still have some of it. Call again."""
    beside: list[Present]
    proof: Proof | None
    """None where there were no words to look for."""
    cut_short: bool = False
    """An earlier purge had been killed before its end: nobody looked for its words, and they are gone."""

    @property
    def is_proven(self) -> bool:
        """Nothing of it is left in this home, copies aside."""
        return self.shredded and (self.proof is None or not (self.proof.found or self.proof.unread))


class Purging(Verbs):
    """What is erased."""

    @in_thread
    def purgeable(self, *, older_than: timedelta | None = None) -> list[Tombstone]:
        """Return what was forgotten in this space and can be brought back still, the oldest first."""
        before = None if older_than is None else self._parts.now() - older_than
        return [
            one
            for one in self._parts.store.tombstones(self.space)
            if not one.undone and not one.purged and (before is None or one.at <= before)
        ]

    @in_thread
    def unproven(self) -> bool:
        """Return whether a purge of this home was begun and nobody has looked yet for what is left of it."""
        return bool(self._parts.store.unproven())

    @in_thread
    def purge(self, tombstones: Sequence[str] = (), *, delete_copies: bool = False) -> Erased:
        """Erase what was forgotten under these tombstones, and search every file of the home for what is left of it.

        It works beside others that hold the home: rows and files change in one transaction, as ever, and what they
        write waits while the database is made anew. What they hold in memory is theirs until they end. Without
        tombstones it finishes what was killed. NotFound for one that cannot be purged: then nothing is done.
        """
        return self._erase(tombstones, delete_copies=delete_copies)

    def _erase(self, tombstones: Sequence[str], *, delete_copies: bool) -> Erased:
        from mcp_memory.core import process_registry
        from mcp_memory.store.proof import prove
        from mcp_memory.store.traces import Traces

        store, home = self._parts.store, self.settings.home
        cut_short = store.unproven()
        done = self._purged(list(dict.fromkeys(tombstones))) if tombstones else None
        shredded = self._shredded() if done or cut_short else True
        proof = None
        if done:
            self._parts.pipeline.write_persona()
            self._parts.stored()
            traces = Traces(done.texts)
            also_in = store.excuse(traces)
            proof = prove(home, traces, texts=len(done.texts), also_in=also_in, delete_copies=delete_copies)
        if shredded:
            store.note_proven([*cut_short, *(done.tombstones[:1] if done else ())])
        return Erased(
            tombstones=done.tombstones if done else (),
            turns=done.turns if done else 0,
            atoms=done.atoms if done else 0,
            refs=done.refs if done else 0,
            shredded=shredded,
            beside=process_registry.others(home),
            proof=proof,
            cut_short=bool(cut_short),
        )

    def _purged(self, tombstones: Sequence[str]) -> Purged:
        from mcp_memory.longterm.purging import pages_without
        from mcp_memory.shortterm.canvas import forgotten
        from mcp_memory.store.forgetting import Purge
        from mcp_memory.store.protocol import Conflict

        store = self._parts.store
        gone = [one for one in store.tombstones(self.space) if one.id in tombstones]
        refs = [id for one in gone for id in one.ids if id.startswith("r-")]
        atoms = [id for one in gone for id in one.ids if id.startswith("a")]
        for _ in range(_ATTEMPTS):
            what = Purge(
                tombstones=tombstones,
                canvases=forgotten.scrubbed(store, self.space, refs) if refs else (),
                personas=pages_without(store, self.space, atoms),
            )
            try:
                return store.purge(self.space, what, now=self._parts.now())
            except Conflict:
                continue
        raise StoreUnavailable("A canvas is being written to by many others at once. Nothing was erased; call again.")

    def _shredded(self) -> bool:
        """Make the database anew; once more where readers of an older state would not end."""
        return any(self._parts.store.shred() for _ in range(_TRIES))
