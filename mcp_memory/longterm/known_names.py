"""Known names, and the entities that texts name with them; without a model.

A part of one known name means its bearer: after "Teun Verhage", "Teun" is the same person, and so is "Frau Roth" after
"Sabine Roth". A part that several have means none of them. A name in lower case counts unless it is also a word of the
language, as "Access" and "Grace" are. A part of a name always needs its capital.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from mcp_memory.core.types import Entity
from mcp_memory.language.words import fold
from mcp_memory.longterm.introductions import certain_names, without_title
from mcp_memory.longterm.names import USER, is_named_in, known_entities
from mcp_memory.models.embed.classifiers import related_words
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows
from mcp_memory.store.values import Filters

_CAPITALISED = re.compile(r"(?<!\w)[^\W\d_a-z][\w-]+")
_COMPOUND = re.compile(r" (?:of|&|and|und|et|en|y|e) ")
"""In the name of a thing that is not called by a part: "Gulf of Riga", "Naald en Draad"."""


class KnownNames:
    """The names of entities, to which the names of new statements are added."""

    def __init__(self, entities: Iterable[Entity], own: Iterable[str]) -> None:
        self.own = set(own)
        """The folded names of the user, who is the entity `user`."""
        self._main: dict[str, str] = {}
        """The main name for each folded name."""
        self._bearers: defaultdict[str, set[str]] = defaultdict(set)
        """The main names that have a word, by the folded word."""
        for entity in entities:
            for name in (entity.name, *entity.aliases):
                if fold(name) not in self.own:
                    self._put(name, entity.name)

    def add(self, names: Iterable[str]) -> None:
        """Add names. The longest come first, so that its parts mean its bearer wherever they stand."""
        for name in sorted(dict.fromkeys(names), key=lambda name: -len(name.split())):
            if fold(name) not in self.own and fold(name) not in self._main:
                self._put(name, self._same(name) or name)

    def _put(self, name: str, main: str) -> None:
        self._main[fold(name)] = main
        if not _COMPOUND.search(name):
            for word in without_title(name).split():
                self._bearers[fold(word)].add(main)

    def _same(self, name: str) -> str | None:
        """Return the only entity whose name contains all words of a name, or is contained in it; None if none is.

        "De Kaai" is "Theater De Kaai", whoever else is called "De".
        """
        words = [fold(word) for word in without_title(name).split()]
        if _COMPOUND.search(name):
            return None
        bearers = [self._bearers[word] for word in words if word in self._bearers]
        if len(bearers) < len(words) and not any(word in self._main for word in words):
            return None
        several = set[str]().union(*bearers)
        if len(bearers) == len(words):
            several.intersection_update(*bearers)
        return next(iter(several)) if len(several) == 1 else None

    def named_in(self, text: str, names: Iterable[str]) -> tuple[str, ...]:
        """Return the main names of `names` and of the known names in a text, each once; `user` is kept."""
        named = [USER if fold(name) == USER else self._main.get(fold(name)) for name in names]
        capitalised, folded = set(map(fold, _CAPITALISED.findall(text))), fold(text)
        named += [
            main
            for name, main in self._main.items()
            if is_named_in(folded, name) and (name in capitalised or not related_words(name))
        ]
        for word in capitalised:
            bearers = self._bearers.get(word, set[str]())
            if word not in self._main and len(bearers) == 1:
                named += bearers
        return tuple(dict.fromkeys(filter(None, named)))


def known_names(store: Store, space: str) -> KnownNames:
    """Return the stored names of entities, and those of the user: aliases and names in facts."""
    entities = known_entities(store, space)
    aliases = (alias for entity in entities if fold(entity.name) == USER for alias in entity.aliases)
    facts = store.read(space, atom_rows.facts, filters=Filters(entity=USER, unheld=True))
    stated = (fact.value for fact in facts if fold(fact.entity) == USER and fact.relation == "name")
    return KnownNames(entities, [USER, *map(fold, (*aliases, *stated))])


def with_named(store: Store, space: str, text: str, entities: Sequence[str]) -> tuple[str, ...]:
    """Return the entities of a statement, with those that its text names."""
    known = known_names(store, space)
    known.add([*entities, *certain_names(text)])
    return known.named_in(text, entities)
