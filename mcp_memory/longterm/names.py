"""Resolves names to entities: the user under all their names, other speakers, and known entities.

The user is the entity `user`; their own name is an alias. Other speakers in the user's role under another name are
entities themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Entity, Turn
from mcp_memory.language import lines_of, pattern_of
from mcp_memory.language.words import base_terms, fold
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, entity_rows, turn_rows
from mcp_memory.store.values import Filters

USER = "user"
MAX_NAME = 80
_KNOWN = 500  # entities searched for those that a batch mentions
_SHOWN, _OFTEN = 40, 12  # entities in a question; the best known, which are always among them
_ALSO_SHOWN = 6


_FILE = "mcp_memory.longterm", "words/names.txt"


@cache
def name_words(block: str) -> frozenset[str]:
    """Return the folded words of a block of `words/names.txt`."""
    return frozenset(fold(word) for word in " ".join(lines_of(*_FILE, block)).split(", "))


@cache
def _user_nouns() -> list[str]:
    """Return the words that statements use for the user, without pronouns."""
    return [word for word in name_words("user") if len(word) >= (4 if word < "\u2e80" else 2)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names that resolve mentions to entities.

    `user` is the user's own name, if known; `others` are the names of other people who speak.
    """

    user: str | None
    others: Sequence[str]
    known: Sequence[Entity]
    """The entities that the turns mention, and the best known entities."""
    text: str
    """The text of the turns."""
    relations: Mapping[str, str]
    """Relations of others to the user, from facts: `friend`."""
    introduced: Sequence[str] = ()
    """Names under which the user introduced themselves in any turn, as far as statements use them."""
    everyone: Sequence[str] = ()
    """The names of all known entities, and the capitalised words of statements that occur in the user's turns."""

    def is_other(self, turn: Turn) -> bool:
        """Return whether a turn is by a named speaker other than the user."""
        return bool(turn.name) and fold(one_line(turn.name or "", MAX_NAME)) in {fold(name) for name in self.others}

    def main_name(self, name: str) -> str | None:
        """Return the main name of the entity that has this name, or the name itself if the entity is unknown.

        Returns None for the assistant and for anything that is not a name.
        """
        name = one_line(name, MAX_NAME)
        folded = fold(name)
        if folded in name_words("user") or (self.user and folded == fold(self.user)):
            return USER
        if folded in name_words("assistant") or not any(character.isalnum() for character in name):
            return None
        for entity in self.known:
            if folded in {fold(other) for other in (entity.name, *entity.aliases)}:
                return entity.name
        return name

    def mentioned(self, text: str) -> list[str]:
        """Return the known entities and speakers that a statement names, by their main names."""
        entities = [*named_in(self.known, text), *(name for name in self.others if contains_name([name], text))]
        return [USER, *entities] if contains_name([*_user_nouns(), self.user or ""], text) else entities

    def may_be(self, main_name: str, name: str) -> bool:
        """Return whether a name can be an alias of the entity with the main name `main_name`.

        It cannot if it is another speaker's. If the user's name is known, an alias of the user must be a shorter or
        longer form of it.
        """
        if fold(name) in {fold(other) for other in self.others}:
            return False
        if main_name != USER or self.user is None:
            return True
        own, other = fold(self.user), fold(name)
        return own.startswith(other) or other.startswith(own)


def names_in(store: Store, space: str, turns: Iterable[Turn]) -> Names:
    """Return the names by which mentions in some turns are resolved: of their speakers and of known entities."""
    turns = list(turns)
    content = "\n".join(turn.content for turn in turns)
    entities = known_entities(store, space)
    aliases = next((entity.aliases for entity in entities if fold(entity.name) == USER), ())
    speaking = {role: _speaker_names(turns, role) for role in ("user", "assistant")}
    unnamed = any(turn.role == "user" and not turn.name for turn in turns)
    user = _user(aliases, speaking["user"], unnamed=unnamed)
    speakers = dict.fromkeys((*speaking["user"], *speaking["assistant"]))
    others = [name for name in speakers if not user or fold(name) != fold(user)]
    text = fold("\n".join((content, *others)))
    shown = [
        entity
        for place, entity in enumerate(entities)
        if place < _OFTEN or _contains_any(text, (entity.name, *entity.aliases))
    ]
    return Names(
        user=user,
        others=others,
        known=shown[:_SHOWN],
        text=content,
        relations={name: relation for name in others if (relation := _relation(store, space, user, name))},
        everyone=tuple(name for entity in entities for name in (entity.name, *entity.aliases)),
    )


_CAPITAL = re.compile(r"(?<!\w)[^\W\d_a-zа-яё]\w+")
_SEARCHED = 60  # words of statements that may be the user's name
_TURNS_READ = 8


def with_stated_names(names: Names, store: Store, space: str, statements: Iterable[str]) -> Names:
    """Return the names, extended by those capitalised words of the statements that occur in turns of the user."""
    words = dict.fromkeys(word for text in statements for word in _CAPITAL.findall(text))
    stated = {word: turns for word in list(words)[:_SEARCHED] if (turns := _turns_with(store, space, word))}
    introduced = [
        word for word, turns in stated.items() if any(introduces(turn.content, word, loosely=True) for turn in turns)
    ]
    return replace(names, introduced=tuple(introduced), everyone=(*names.everyone, *stated))


def introduces(text: str, name: str, *, loosely: bool = False) -> bool:
    """Return whether the speaker of a text gives this name as their own: "I'm Anna".

    `loosely` allows one word in between.
    """
    between = r"(?:\w+ )?" if loosely else ""
    pattern = rf"\b{pattern_of(*_FILE, 'INTRODUCES').pattern}{between}{re.escape(name)}\b"
    return re.search(pattern, text, re.IGNORECASE) is not None


def _turns_with(store: Store, space: str, word: str) -> list[Turn]:
    postings = store.postings(space, "turn", base_terms(word)[:1], filters=Filters(role="user"))
    rows = sorted({row for of_term in postings for row in of_term.rows.tolist()})
    return [
        turn
        for turn in store.read(space, turn_rows.by_ids, [f"t{row}" for row in rows[:_TURNS_READ]])
        if word in turn.content
    ]


_MUTUAL = frozenset(("friend", "partner", "spouse", "sibling", "colleague"))
_ONE_WAY = frozenset(("child", "parent"))


def _relation(store: Store, space: str, user: str | None, name: str) -> str | None:
    """Return the relation of another person to the user if a current fact states it, else None."""
    users, other = {USER, fold(user or USER)}, fold(name)
    for fact in store.read(space, atom_rows.facts, filters=Filters(entity=name, unheld=True)):
        entity, value = fold(fact.entity), fold(fact.value)
        if entity in users and value == other and fact.relation in _MUTUAL | _ONE_WAY:
            return fact.relation
        if entity == other and value in users and fact.relation in _MUTUAL:
            return fact.relation
    return None


def is_person(turn: Turn) -> bool:
    """Return whether a turn is by a person: the user, or a speaker with a person's name in another role."""
    if turn.role == "user":
        return True
    words = fold(turn.name or "").split()
    return bool(words) and " ".join(words) not in name_words("assistant") and name_words("models").isdisjoint(words)


def _speaker_names(turns: Iterable[Turn], role: str) -> list[str]:
    names = (one_line(turn.name or "", MAX_NAME) for turn in turns if turn.role == role and is_person(turn))
    return [
        name for name in dict.fromkeys(names) if name and fold(name) not in name_words("user") | name_words("assistant")
    ]


def _user(aliases: Sequence[str], speaking: Sequence[str], *, unnamed: bool) -> str | None:
    """Return the user's name: the alias of a speaker, else the first alias, else the only speaker's name; or None.

    If some turns of the user have no name (`unnamed`), a single named speaker is somebody else.
    """
    own = {fold(name) for name in aliases}
    here = next((name for name in speaking if fold(name) in own), None)
    if here or aliases:
        return here or aliases[0]
    return speaking[0] if len(speaking) == 1 and not unnamed else None


def entities_in(store: Store, space: str, text: str) -> list[str]:
    """Return the main names of the known entities that a text names."""
    return named_in(known_entities(store, space), text)


def known_entities(store: Store, space: str) -> list[Entity]:
    """Return the stored entities that are looked for in texts, at most 500."""
    return store.read(space, entity_rows.often_mentioned, limit=_KNOWN)


def named_in(entities: Iterable[Entity], text: str) -> list[str]:
    """Return the main names of the entities that a text names."""
    folded = fold(text)
    return [entity.name for entity in entities if _contains_any(folded, (entity.name, *entity.aliases))]


def contains_name(names: Iterable[str], text: str) -> bool:
    """Return whether a text contains any of the names as whole words, in upper or lower case."""
    return _contains_any(fold(text), names)


def _contains_any(folded: str, names: Iterable[str]) -> bool:
    return any(is_named_in(folded, fold(name)) for name in names)


def is_named_in(folded: str, name: str) -> bool:
    """Return whether a folded text contains a folded name, as whole words in scripts with spaces."""
    if not name or name not in folded:
        return False
    return name[-1] >= "\u0e00" or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded) is not None


def names_table(names: Names) -> str:
    """Return the known entities for a question, one line per entity."""
    lines = [f"- {USER}" + (f" (also: {names.user})" if names.user else "")]
    for entity in names.known:
        if fold(entity.name) != USER:
            also = ", ".join(entity.aliases[:_ALSO_SHOWN])
            lines.append(f"- {entity.name}" + (f" (also: {also})" if also else ""))
    return "\n".join(one_line(re.sub(r"[<>]", " ", line), 300) for line in lines)
