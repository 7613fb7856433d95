"""L3 without a model: the page lists what was told, by kind, each line with its atom. Nothing is inferred.

A projection: made from the current atoms after each of their changes, versioned by the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from mcp_memory.errors import NotFound
from mcp_memory.store.protocol import Filters, Store
from mcp_memory.text import fold, one_line
from mcp_memory.types import Atom, Kind

__all__ = ["EMPTY", "identity", "page", "section_of", "sections"]

MAX_CHARS = 2_000
_LINE = 220
_READ = 200

EMPTY = (
    "# Persona\n\nNothing has been told yet. What the user says of themselves with `remember` is listed here;"
    " nothing is inferred.\n"
)
_HEADINGS: tuple[tuple[Kind, str], ...] = (
    ("instruction", "Standing instructions"),
    ("persona", "About the user"),
    ("episodic", "What happened"),
)


def page(store: Store, space: str) -> str:
    """Return the page, at most 2,000 characters; each section says how many lines did not fit."""
    told: dict[Kind, list[Atom]] = {kind: _current(store, space, kind) for kind, _ in _HEADINGS}
    if not any(told.values()):
        return EMPTY
    shown: dict[Kind, int] = {kind: len(atoms) for kind, atoms in told.items()}
    while True:
        text = _compose(told, shown)
        if len(text) <= MAX_CHARS:
            return text
        # Shorten the longest section first: a person's traits do not give way to a long diary.
        longest = max(shown, key=lambda kind: (shown[kind], kind == "episodic"))
        shown[longest] -= 1


def sections(text: str) -> list[str]:
    return [line[3:] for line in text.splitlines() if line.startswith("## ")]


def section_of(text: str, wanted: str) -> str:
    """Return one section of the page, heading included. NotFound names those there are."""
    for name in sections(text):
        if fold(name) == fold(wanted.strip().lstrip("# ")):
            rest = text[text.index(f"## {name}\n") :]
            return rest.partition("\n## ")[0].rstrip() + "\n"
    known = ", ".join(sections(text)) or "none yet"
    raise NotFound(f"The persona has no section {one_line(wanted, 40)!r}. Sections: {known}.")


def identity(store: Store, space: str) -> list[str]:
    """Return what tells who the user is, most telling first: the facts about the user, as `name: Maya`."""
    facts = store.facts(space, filters=Filters(entity="user"), limit=50)
    rank = {name: place for place, name in enumerate(("name", "preferred_name", "full_name", "pronouns", "works_as"))}
    facts.sort(key=lambda fact: rank.get(fact.relation, len(rank)))
    return [f"{fact.relation.replace('_', ' ')}: {one_line(fact.value, 80)}" for fact in facts]


def _current(store: Store, space: str, kind: Kind) -> list[Atom]:
    atoms = store.list_atoms(space, filters=Filters(kind=kind), limit=_READ)
    return sorted(atoms, key=lambda atom: atom.valid_from, reverse=True) if kind == "episodic" else atoms


def _compose(told: dict[Kind, list[Atom]], shown: dict[Kind, int]) -> str:
    parts = ["# Persona"]
    for kind, heading in _HEADINGS:
        atoms = told[kind]
        if atoms:
            parts.append(f"## {heading}\n\n" + "\n".join(_lines(kind, atoms, shown[kind])))
    return "\n\n".join(parts) + "\n"


def _lines(kind: Kind, atoms: Sequence[Atom], shown: int) -> Iterable[str]:
    for atom in islice(atoms, shown):
        when = f"{atom.valid_from:%Y-%m-%d}: " if kind == "episodic" else ""
        yield f"- {when}{one_line(atom.text, _LINE)} ({atom.id})"
    if len(atoms) > shown:
        yield f"- … and {len(atoms) - shown} more: memory_search kind={kind}"


def whole(store: Store, space: str) -> str:
    """Return the page as it stands."""
    held = store.persona(space)
    return held.text if held else EMPTY
