"""Resolves who is meant: the user under all their names, other speakers, and known entities.

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
from mcp_memory.store.values import Filters

USER = "user"
MAX_NAME = 80
_KNOWN = 500  # entities searched for those that a batch mentions
_SHOWN, _OFTEN = 40, 12  # entities in a question, and how many of them for being known best
_ALSO_SHOWN = 6


_FILE = "mcp_memory.longterm", "words/names.txt"


@cache
def name_words(block: str) -> frozenset[str]:
    """Return the folded words of a block of `words/names.txt`."""
    return frozenset(fold(word) for word in " ".join(lines_of(*_FILE, block)).split(", "))


@cache
def _user_nouns() -> list[str]:
    """Return what the user is called, without pronouns."""
    return [word for word in name_words("user") if len(word) >= (4 if word < "\u2e80" else 2)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """`user` is the user's own name, where it is known; `others` are further people who speak, by their names."""

    user: str | None
    others: Sequence[str]
    known: Sequence[Entity]
    """Those that the turns mention, and those known best."""
    said: str
    """All that was said in the turns and before them."""
    relations: Mapping[str, str]
    """Relations of others to the user, from facts: `friend`."""
    introduced: Sequence[str] = ()
    """Names under which the user introduced themselves in any turn, where statements use them."""
    everyone: Sequence[str] = ()
    """The names of all entities searched, mentioned or not, and all names in the user's turns."""

    def is_other(self, turn: Turn) -> bool:
        """Return whether a turn comes under the name of somebody else than the user."""
        return bool(turn.name) and fold(one_line(turn.name or "", MAX_NAME)) in {fold(name) for name in self.others}

    def chief(self, name: str) -> str | None:
        """Return the name by which an entity is known; None for the assistant and for anything that is not a name."""
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
        """Return the known entities and speakers that a statement names, by their chief names."""
        found = [entity.name for entity in self.known if _names_one_of(fold(text), (entity.name, *entity.aliases))]
        found += [name for name in self.others if _names_one_of(fold(text), (name,))]
        called = [*_user_nouns(), self.user or ""]
        return [USER, *found] if _names_one_of(fold(text), called) else found

    def may_be(self, chief: str, name: str) -> bool:
        """Return whether a name can be an alias of an entity: neither a second user nor a person who speaks for
        themselves.
        """
        if fold(name) in {fold(other) for other in self.others}:
            return False
        if chief != USER or self.user is None:
            return True
        mine, other = fold(self.user), fold(name)
        return mine.startswith(other) or other.startswith(mine)


def names_in(store: Store, space: str, turns: Iterable[Turn]) -> Names:
    """Return who is meant in some turns."""
    turns = list(turns)
    said = "\n".join(turn.content for turn in turns)
    known = store.entities(space, limit=_KNOWN)
    held = next((entity.aliases for entity in known if fold(entity.name) == USER), ())
    speaking = {role: _speaking(turns, role) for role in ("user", "assistant")}
    unnamed = any(turn.role == "user" and not turn.name for turn in turns)
    user = _user(held, speaking["user"], unnamed=unnamed)
    speakers = dict.fromkeys((*speaking["user"], *speaking["assistant"]))
    others = [name for name in speakers if not user or fold(name) != fold(user)]
    text = fold("\n".join((said, *others)))
    shown = [
        entity
        for place, entity in enumerate(known)
        if place < _OFTEN or _names_one_of(text, (entity.name, *entity.aliases))
    ]
    return Names(
        user=user,
        others=others,
        known=shown[:_SHOWN],
        said=said,
        relations={name: relation for name in others if (relation := _relation(store, space, user, name))},
        everyone=tuple(name for entity in known for name in (entity.name, *entity.aliases)),
    )


_CAPITAL = re.compile(r"(?<!\w)[^\W\d_a-zа-яё]\w+")
_ASKED_FOR = 60  # words of statements that may be the user's name
_TURNS_READ = 8


def with_told(names: Names, store: Store, space: str, statements: Iterable[str]) -> Names:
    """Return the names, including those in the user's statements in any turn and the user's names."""
    words = dict.fromkeys(word for text in statements for word in _CAPITAL.findall(text))
    told = {word: turns for word in list(words)[:_ASKED_FOR] if (turns := _turns_with(store, space, word))}
    introduced = [
        word for word, turns in told.items() if any(introduces(turn.content, word, loosely=True) for turn in turns)
    ]
    return replace(names, introduced=tuple(introduced), everyone=(*names.everyone, *told))


def introduces(text: str, name: str, *, loosely: bool = False) -> bool:
    """Return whether the speaker of a text says their name: "I'm Anna"; `loosely`, one word may stand between."""
    between = r"(?:\w+ )?" if loosely else ""
    pattern = rf"\b{pattern_of(*_FILE, 'INTRODUCES').pattern}{between}{re.escape(name)}\b"
    return re.search(pattern, text, re.IGNORECASE) is not None


def _turns_with(store: Store, space: str, word: str) -> list[Turn]:
    found = store.postings(space, "turn", base_terms(word)[:1], filters=Filters(role="user"))
    rows = sorted({row for one in found for row in one.rows.tolist()})
    return [turn for turn in store.turns(space, [f"t{row}" for row in rows[:_TURNS_READ]]) if word in turn.content]


_MUTUAL = frozenset(("friend", "partner", "spouse", "sibling", "colleague"))
_ONE_WAY = frozenset(("child", "parent"))


def _relation(store: Store, space: str, user: str | None, name: str) -> str | None:
    """Return what somebody is to the user."""
    users, other = {USER, fold(user or USER)}, fold(name)
    for fact in store.facts(space, filters=Filters(entity=name, unheld=True)):
        entity, value = fold(fact.entity), fold(fact.value)
        if entity in users and value == other and fact.relation in _MUTUAL | _ONE_WAY:
            return fact.relation
        if entity == other and value in users and fact.relation in _MUTUAL:
            return fact.relation
    return None


def is_person(turn: Turn) -> bool:
    """Return whether a person says a turn: the user, or a named speaker where a model would answer."""
    if turn.role == "user":
        return True
    words = fold(turn.name or "").split()
    return bool(words) and " ".join(words) not in name_words("assistant") and name_words("models").isdisjoint(words)


def _speaking(turns: Iterable[Turn], role: str) -> list[str]:
    names = (one_line(turn.name or "", MAX_NAME) for turn in turns if turn.role == role and is_person(turn))
    return [
        name for name in dict.fromkeys(names) if name and fold(name) not in name_words("user") | name_words("assistant")
    ]


def _user(held: Sequence[str], speaking: Sequence[str], *, unnamed: bool) -> str | None:
    """Return the user's name: one held that speaks here, the first one held, or the only one that speaks here.

    Where turns come with and without a name, those without are the user's, and the names are of others.
    """
    mine = {fold(name) for name in held}
    here = next((name for name in speaking if fold(name) in mine), None)
    if here or held:
        return here or held[0]
    return speaking[0] if len(speaking) == 1 and not unnamed else None


def entities_in(store: Store, space: str, text: str) -> list[str]:
    """Return the known entities that a text names, by their chief names."""
    return named_in(known_entities(store, space), text)


def known_entities(store: Store, space: str) -> list[Entity]:
    """Return the entities that are looked for in a text."""
    return store.entities(space, limit=_KNOWN)


def named_in(known: Iterable[Entity], text: str) -> list[str]:
    """Return those of some entities that a text names, by their chief names."""
    folded = fold(text)
    return [one.name for one in known if _names_one_of(folded, (one.name, *one.aliases))]


def stands_in(names: Iterable[str], text: str) -> bool:
    """Return whether one of the names stands in a text, in any case."""
    return _names_one_of(fold(text), names)


def _names_one_of(text: str, names: Iterable[str]) -> bool:
    """Return whether one of the names stands in a folded text, as a word where the script has words."""
    return any(
        name and name in text and (name[-1] >= "\u0e00" or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text))
        for name in map(fold, names)
    )


def names_table(names: Names) -> str:
    """Return the known entities as a question shows them, one line per entity."""
    lines = [f"- {USER}" + (f" (also: {names.user})" if names.user else "")]
    for entity in names.known:
        if fold(entity.name) != USER:
            also = ", ".join(entity.aliases[:_ALSO_SHOWN])
            lines.append(f"- {entity.name}" + (f" (also: {also})" if also else ""))
    return "\n".join(one_line(re.sub(r"[<>]", " ", line), 300) for line in lines)
