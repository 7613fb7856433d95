"""Groups the current statements of a space by entity and by topic, without a model.

An entity with three or more statements is a topic. The other statements are clustered by their vectors: a topic is the
statement with the most neighbours and these neighbours, except statements that share no word with any other. A topic is
titled by its entity, or by the first words of the statement with the most words that are frequent in the topic and rare
in the rest of the memory.

The result depends only on the statements and their vectors, and is the same in every process. Statements without a
vector yet are in the topics of their entities only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING

from mcp_memory.core.types import Atom
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.language.words import (
    base_terms,
    base_terms_of_word,
    content_terms,
    fold,
    function_words,
    languages_of,
)
from mcp_memory.longterm.conversations import title_of
from mcp_memory.longterm.digest import newest_statements, number_of
from mcp_memory.longterm.names import USER
from mcp_memory.longterm.verification.trust import fit_for_pages
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, entity_rows
from mcp_memory.suspicion.flags import flags

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_READ = 4_000  # the newest statements
_FEWEST = 3  # statements of a topic
_MAX_TOPICS = 15  # topics, as many as `max_scenes` allows by default
_NEAR = 0.15  # least cosine between the central statement of a topic and the others, the mean of all subtracted
_NAME_WORDS = 3
_TITLE = 40  # characters
_UNSPACED = "\u0e00"  # from here on, scripts without spaces
_CHUNK = 512  # rows of the similarity matrix at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A title, statements by date, and the entities that these mention, the most frequent first.

    `name` is short: the entity, or three words of a topic that has a sentence as its title.
    """

    title: str
    name: str
    atoms: tuple[Atom, ...]
    entities: tuple[str, ...]


def topics(store: Store, space: str) -> list[Topic]:
    """Return at most 15 topics, the largest first; none if no statement was extracted without a model."""
    if not store.read(space, atom_rows.has_sentences):
        return []
    atoms = _statements(store, space)
    if not any(atom.is_sentence for atom in atoms):
        return []
    names = _names_of(store, space, atoms)
    all_topics = list(_by_entity(atoms, names))
    placed = {atom.id for topic in all_topics for atom in topic.atoms}
    said_in = Counter(term for atom in atoms for term in _content_terms(atom))
    all_topics += (
        _topic_of(group, said_in, _entities(group, names))
        for group in islice(_clusters(store, space, atoms, placed), _MAX_TOPICS)
    )
    ordered = sorted(all_topics, key=lambda topic: (-len(topic.atoms), number_of(topic.atoms[0]), topic.title))
    return ordered[:_MAX_TOPICS]


def _statements(store: Store, space: str) -> list[Atom]:
    """Return the newest current statements that pages may use, by date; of statements in the same words the latest."""
    stored = newest_statements(store, space, _READ)
    current = (atom for atom in stored if atom.valid_to is None and fit_for_pages(atom))
    # The reader flags sentences before it stores them.
    fit = (atom for atom in current if atom.is_sentence or not flags(atom.text, "user"))
    latest = {fold(_without_dates(atom)).strip(" .!"): atom for atom in fit}
    return sorted(latest.values(), key=lambda atom: (atom.valid_from, number_of(atom)))


def _without_dates(atom: Atom) -> str:
    """Return a statement without added dates."""
    return ADDITION.sub("", atom.text)


# --- entities ---------------------------------------------------------------------------------------


def _names_of(store: Store, space: str, atoms: Sequence[Atom]) -> dict[str, list[str]]:
    """Map the id of each statement to its entities without the user."""
    own = {fold(name) for name in (USER, *store.read(space, entity_rows.names, [USER]).get(USER, ()))}
    return {atom.id: [name for name in atom.entities if fold(name) not in own] for atom in atoms}


def _by_entity(atoms: Sequence[Atom], names: Mapping[str, Sequence[str]]) -> Iterator[Topic]:
    """Yield the topics of entities, without those whose statements are all in the topic of a more frequent entity."""
    about: dict[str, list[Atom]] = {}
    for atom in atoms:
        for name in names[atom.id]:
            about.setdefault(name, []).append(atom)
    placed: list[set[str]] = []
    for name, group in sorted(about.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        ids = {atom.id for atom in group}
        if len(group) >= _FEWEST and not any(ids <= other for other in placed):
            placed.append(ids)
            others = (other for other in _entities(group, names) if other != name)
            yield Topic(title=name, name=name, atoms=tuple(group), entities=(name, *others))


def _entities(atoms: Sequence[Atom], names: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(name for name, _ in Counter(name for atom in atoms for name in names[atom.id]).most_common())


# --- clusters ---------------------------------------------------------------------------------------


def _clusters(store: Store, space: str, atoms: Sequence[Atom], placed: Collection[str]) -> Iterator[list[Atom]]:
    """Yield clusters of similar statements, without those that are `placed`, the largest first."""
    import numpy as np

    from mcp_memory.models.embed.bundled import IDENTITY

    vectors = store.vectors_of(space, "atom", [atom.id for atom in atoms], IDENTITY)
    atoms = [atom for atom in atoms if atom.id in vectors]
    if not atoms:
        return
    data = _centered(np.stack([vectors[atom.id] for atom in atoms]))
    free = [place for place, atom in enumerate(atoms) if atom.id not in placed]
    atoms, near = [atoms[place] for place in free], _neighbours(data[free])
    counts = near.sum(axis=1)
    while counts.max(initial=0) >= _FEWEST:
        center = int(np.argmax(counts))
        members = np.flatnonzero(near[center])
        group = _related([atoms[place] for place in members])
        if len(group) >= _FEWEST:
            yield group
        counts -= near[:, members].sum(axis=1)
        near[:, members] = False
        counts[members] = 0


def _centered(data: NDArray[np.float32]) -> NDArray[np.float32]:
    """Subtract the mean from the vectors and normalise them; otherwise all statements of a person look similar."""
    import numpy as np

    data = data - data.mean(axis=0)
    return data / np.maximum(np.linalg.norm(data, axis=1, keepdims=True), 1e-6)


def _neighbours(data: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return a square matrix of which rows are near to each other; each row is near to itself."""
    import numpy as np

    near = np.empty((len(data), len(data)), dtype=np.bool_)
    for start in range(0, len(data), _CHUNK):
        near[start : start + _CHUNK] = data[start : start + _CHUNK] @ data.T >= _NEAR
    np.fill_diagonal(near, True)
    return near


# --- words ------------------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_SHORTEST = 2  # characters of a term in a name


def _terms_of(atoms: Sequence[Atom]) -> list[frozenset[str]]:
    """Return the content terms of each statement, without numbers and the function words of all their languages."""
    spoken = dict.fromkeys(language for atom in atoms for language in languages_of(_WORD.findall(_without_dates(atom))))
    idle = _function_terms(tuple(sorted(spoken)))
    return [
        frozenset(term for term in _content_terms(atom) - idle if len(term) >= _SHORTEST and not term.isdecimal())
        for atom in atoms
    ]


@lru_cache(maxsize=64)
def _function_terms(languages: tuple[str, ...]) -> frozenset[str]:
    return frozenset(base_terms(" ".join(function_words(languages))))


def _related(atoms: Sequence[Atom]) -> list[Atom]:
    """Return the statements that share a content word with another; the rest are similar only in tone."""
    terms = _terms_of(atoms)
    counts = Counter(chain.from_iterable(terms))
    return [atom for atom, own in zip(atoms, terms, strict=True) if any(counts[term] > 1 for term in own)]


def _topic_of(atoms: Sequence[Atom], said_in: Counter[str], entities: tuple[str, ...]) -> Topic:
    """Return a topic that is named by the words that two or more of the statements share and that others seldom have.

    `said_in` has the number of statements of the memory with each term. The name has at most three words, as the user
    wrote them.
    """
    terms = _terms_of(atoms)
    counts = Counter(chain.from_iterable(terms))
    weight = {term: count * count / said_in[term] for term, count in counts.items() if count > 1}
    words = [_WORD.findall(_without_dates(atom)) for atom in atoms]
    chosen: dict[str, str] = {}
    for term in sorted(weight, key=lambda term: (-weight[term], term)):
        word = _as_written(term, words)
        chosen.setdefault(fold(word), word)
        if len(chosen) == _NAME_WORDS:
            break
    telling = max(range(len(atoms)), key=lambda place: sum(weight.get(term, 0) for term in terms[place]))
    title = title_of(_without_dates(atoms[telling]), _TITLE)
    return Topic(title=title, name=", ".join(chosen.values()), atoms=tuple(atoms), entities=entities)


def _as_written(term: str, texts: Sequence[Sequence[str]]) -> str:
    """Return the most frequent word with a term; in scripts without spaces, the characters of the term itself."""
    written = Counter(word for words in texts for word in words if term in base_terms_of_word(word))
    word = next((word for word, _ in written.most_common(1)), term)
    return term if term >= _UNSPACED and term in word else word


def _content_terms(atom: Atom) -> frozenset[str]:
    """Return the content terms of a statement, without added dates."""
    return _content_terms_of(_without_dates(atom))


@lru_cache(maxsize=4096)
def _content_terms_of(text: str) -> frozenset[str]:
    return frozenset(content_terms(text))
