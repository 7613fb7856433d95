"""Whether the pyramid still stands: the walk from the persona over scenes and atoms to the turns and their hashes.

It reads, and mends nothing. What was forgotten is named by its id alone. It proves that the words an atom quotes stand
in a turn that nobody changed; that they say what the atom says is for a reader to judge. It takes as long as there
are atoms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Evidence, Scene, Turn, Verified
from mcp_memory.longterm.l2_scenes import page as l2_page
from mcp_memory.longterm.l3_persona.checks import unfounded
from mcp_memory.longterm.l3_persona.page import ended_since
from mcp_memory.store.citations import cited, links, uncovered
from mcp_memory.store.evidence import is_intact
from mcp_memory.store.protocol import Store

__all__ = ["verify"]

_AT_ONCE = 500
_LINE = 160


def verify(store: Store, space: str) -> Verified:
    """Return what was walked and what of it no longer holds, the top of the pyramid first."""
    held = store.persona(space)
    written = held if held is not None and held.by_model else None  # without a model it is listed anew at each reading
    scenes = store.scenes(space)
    problems: list[str] = []
    bare: list[str] = []
    if written is not None:
        problems += _page_problems(store, space, "The persona", written.text, ended_since(store, space, written))
        problems += [
            f"The persona names the scene [[{one_line(name, 60)}]], which is gone."
            for name in links(written.text)
            if not isinstance(l2_page.resolve(store, space, name), Scene)
        ]
        bare += [f"persona: {one_line(line, _LINE)}" for line in unfounded(written.text)]
    for scene in scenes:
        problems += _page_problems(
            store, space, f"The scene {scene.slug}", scene.body, l2_page.ended_since(store, space, scene)
        )
        bare += [f"scene {scene.slug}: {one_line(line, _LINE)}" for line in uncovered(scene.body)]
    ground = _Ground()
    for atoms in _pages(store, space):
        problems += ground.problems(store, space, atoms)
    return Verified(
        personas=int(written is not None),
        scenes=len(scenes),
        atoms=ground.atoms,
        quotes=ground.quotes,
        turns=len(ground.turns),
        problems=problems,
        uncovered=bare,
    )


def _page_problems(
    store: Store, space: str, what: str, text: str, ended: Sequence[tuple[Atom, Atom | None]]
) -> Iterator[str]:
    ids = cited(text)
    there = {atom.id for atom in store.atoms(space, ids)}
    for id in ids:
        if id not in there:
            yield f"{what} rests on {id}, which was forgotten or never was."
    for old, newer in ended:
        instead = f"{newer.id} holds instead" if newer else "nothing holds instead"
        yield f"{what} tells {old.id} as it was: since then it ended, and {instead}."


def _pages(store: Store, space: str) -> Iterator[list[Atom]]:
    """Yield all atoms, closed ones too."""
    after = 0
    while atoms := store.atoms_since(space, after, limit=_AT_ONCE):
        yield atoms
        after = int(atoms[-1].id[1:])


@dataclass
class _Ground:
    """What the atoms stand on, as far as it was walked; each turn is hashed once."""

    atoms: int = 0
    quotes: int = 0
    turns: set[str] = field(default_factory=set[str])

    def problems(self, store: Store, space: str, atoms: Sequence[Atom]) -> Iterator[str]:
        evidence = {atom.id: store.evidence(space, atom.id) for atom in atoms}
        said = {one.turn for found in evidence.values() for one in found}
        turns = {turn.id: turn for turn in store.turns(space, said)}
        for atom in atoms:
            self.atoms += 1
            self.quotes += len(evidence[atom.id])
            if not evidence[atom.id]:
                yield f"{atom.id} rests on no words at all."
            for one in evidence[atom.id]:
                yield from _quote_problems(atom, one, turns.get(one.turn))
        for turn in turns.values():
            if turn.id not in self.turns and not is_intact(turn):
                yield f"{turn.id} does not match its hash: its words were changed outside this program."
        self.turns |= turns.keys()


def _quote_problems(atom: Atom, evidence: Evidence, turn: Turn | None) -> Iterator[str]:
    if turn is None:
        yield f"{atom.id} rests on {evidence.turn}, which was forgotten."
    elif turn.content[slice(*evidence.span)] != evidence.quote or evidence.span[1] - evidence.span[0] != len(
        evidence.quote
    ):
        yield f"{atom.id} quotes words of {evidence.turn} that do not stand there."
