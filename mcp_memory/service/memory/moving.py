"""From home to home: a memory is exported to one file, and an export is taken in, each row once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_memory.service.memory.forgetting import Forgetting
from mcp_memory.service.memory.verbs import in_thread

if TYPE_CHECKING:
    from mcp_memory.service.portable import Brought, Exported, Parcel
    from mcp_memory.store import carried
    from mcp_memory.store.forgetting import How
    from mcp_memory.store.protocol import NewAtom

__all__ = ["Moving", "Told", "ToldElsewhere"]


def _doubts(row: carried.Turn | carried.Atom) -> tuple[str, ...]:
    """Return why something that comes in is to be held: it reads like an attack on its reader, or has a secret in it.

    What comes is not masked: its hash, and what was quoted of it, are of the words that were said.
    """
    from mcp_memory.core.secrets import holds_secret
    from mcp_memory.longterm.trust import of_role
    from mcp_memory.store import carried
    from mcp_memory.suspicion import flags

    if isinstance(row, carried.Turn):
        text, prose = row.content, row.role != "tool"
        found = (*flags(text, of_role(row.role, row.name)), *flags(row.name or "", "tool"))
    else:
        text, prose = row.text, True
        found = flags(text, row.source)
    return tuple(dict.fromkeys((*found, *(["secret"] if holds_secret(text, prose=prose) else []))))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldElsewhere:
    """A statement of another memory; `id` is what that memory calls it, whatever it says."""

    atom: NewAtom
    id: str | None = None
    words: str = ""
    """Its text without the subject that was put before it."""

    @property
    def wordings(self) -> tuple[str, ...]:
        """Return how it may have been said before it was forgotten."""
        return (self.atom.text, self.words) if self.words else (self.atom.text,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What became of statements: new ones, of which `held` wait for review; those that were here, or forgotten here."""

    told: int = 0
    held: int = 0
    repeated: int = 0
    kept_out: int = 0


class Moving(Forgetting):
    """What leaves this memory as a file, and what comes in from one."""

    @in_thread
    def export(self, target: Path, *, spaces: Sequence[str] | None = ()) -> Exported:
        """Write this space (or these; None means all) to a file that is not there yet. Nothing forgotten is in it."""
        from mcp_memory.service.portable import export
        from mcp_memory.shortterm.canvas.forgotten import scrubbed

        store = self._parts.store
        chosen = None if spaces is None else spaces or [self.space]
        return export(store, target, chosen, scrub=lambda space, refs: scrubbed(store, space, refs))

    @in_thread
    def take_in(self, parcel: Parcel, space: str) -> Brought:
        """Take a space of an export into this one. What is here is not stored again, and what was forgotten not at all.

        What was forgotten there since it last came is forgotten here too, which can be undone.
        """
        from mcp_memory.service.portable import bring

        parts = self._parts
        done = bring(
            parts.store,
            parcel,
            space,
            self.space,
            now=parts.now,
            doubts=_doubts,
            forget=self._forget_too,
            undo=self._undo,
        )
        parts.pipeline.write_persona()
        parts.stored()
        return done

    @in_thread
    def tell(self, statements: Sequence[ToldElsewhere]) -> Told:
        """Store what another memory held to be true, each statement once.

        One that is known by its id and says something new takes the place of what it said before. What was forgotten
        is not told again.
        """
        from mcp_memory.longterm.trust import believed

        parts, store, space = self._parts, self._parts.store, self.space
        gone = store.were_forgotten(space, [one.wordings for one in statements])
        told = held = repeated = kept_out = 0
        for place, one in enumerate(statements):
            known = store.known_as(space, [one.id]).get(one.id) if one.id else None
            before = store.atoms(space, [known]) if known else []
            if place in gone or (known and not before):
                kept_out += 1
                continue
            if before and before[0].text == one.atom.text:
                repeated += 1
                continue
            replaced = [atom.id for atom in before if atom.valid_to is None]
            told_here = replace(one.atom, supersedes=replaced)
            atom, _ = believed(store, space, told_here, embed=parts.asking().vectors)
            written = store.add_atom(space, atom, now=parts.now())
            if one.id:
                store.note_origins(space, {one.id: written.atom.id})
            repeated += written.duplicate
            told += not written.duplicate
            held += bool(atom.held) and not written.duplicate
        if told:
            parts.stored()
            parts.pipeline.write_persona()
        return Told(told=told, held=held, repeated=repeated, kept_out=kept_out)

    @in_thread
    def forget_again(self, ids: Sequence[str], *, reason: str, how: How) -> str:
        """Forget what a later state of this memory had forgotten; return the tombstone."""
        return self._forget_too(ids, reason, how=how)

    def _forget_too(self, ids: Sequence[str], reason: str, *, how: How = "import") -> str:
        refs = self._parts.store.reach(self.space, ids).refs
        return self._forget(ids, refs, reason=reason, how=how).id
