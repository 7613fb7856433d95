"""Verbs from a page down to its proof, and back up: the statements that lines name, the lines that name a statement."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Mention
from mcp_memory.service.verbs.base import Verbs, in_thread, of_store
from mcp_memory.store.protocol import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenLine:
    """A line of the persona as it is read, with the statements and the scenes that it names."""

    text: str
    atoms: tuple[Atom, ...]
    scenes: tuple[str, ...]
    """Slugs or titles, as the line has them."""
    is_claim: bool
    """False for headings, rules and blank lines, which need no proof."""


class EvidenceVerbs(Verbs):
    """What pages of the memory are based on."""

    statements_by_id = of_store(Store.atoms)
    superseded_by = of_store(Store.superseded_by)

    @in_thread
    def persona_lines(self) -> list[ProvenLine]:
        """Return the persona as it is read, without the list of scenes under it, line by line with its statements."""
        from mcp_memory.longterm import persona
        from mcp_memory.store.citations import cited, links

        store = self._parts.store
        text = persona.body(store, self.space, at=self._parts.now())
        atoms = {atom.id: atom for atom in store.atoms(self.space, cited(text))}
        claims = set(persona.lines_of(text)) if text != persona.EMPTY else set[str]()
        return [
            ProvenLine(
                text=line,
                atoms=tuple(atoms[id] for id in cited(line) if id in atoms),
                scenes=tuple(links(line)),
                is_claim=line in claims,
            )
            for line in text.splitlines()
        ]

    @in_thread
    def mentions(self, id: str) -> list[Mention]:
        """Return the lines of the persona, then of the scenes, that name a statement as their evidence."""
        from mcp_memory.longterm.verification.evidence import mentions

        return mentions(self._parts.store, self.space, id)

    @in_thread
    def is_intact(self, turn: str) -> bool:
        """Return whether the words of a turn match the hash that was stored with them. Raises NotFound."""
        from mcp_memory.store.evidence import is_intact

        found = self._parts.store.turns(self.space, [turn])
        if not found:
            raise NotFound(f"There is no turn {one_line(turn, 20)} in this space.")
        return is_intact(found[0])
