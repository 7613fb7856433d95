"""L1: what was told in so many words. Model-made atoms are another stage's; these need none.

An atom told explicitly is certain (confidence 1), and an instruction told explicitly always applies
(priority −1, as upstream marks a global rule).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.secrets import mask_values, states_secret
from mcp_memory.core.text import is_blank, well_formed
from mcp_memory.core.types import Atom, Kind, Source
from mcp_memory.language.words import fold, index_terms
from mcp_memory.longterm.changes import CONTRADICTS, slot_score
from mcp_memory.longterm.search.search import Search
from mcp_memory.store.protocol import Filters, NewAtom, Store, Vectors, WrittenAtom

__all__ = ["SINGLE_VALUED", "Candidates", "knows_scale", "relation_name", "similar", "told"]

MAX_CHARS = 2_000
PRIORITY: dict[Kind, int] = {"persona": 80, "episodic": 70, "instruction": -1}
_SAME_COSINE = 0.85
_SAME_WORDS = 0.7
_SIMILAR = 5  # shown, as upstream takes
_LOOKED_AT = 40
_SMALL = 200

# Relations of which a person has one at a time, so that a new value ends the old one. Any other may have
# several values at once (likes, speaks, owns); there, only `supersedes` ends a statement.
SINGLE_VALUED = frozenset(
    [
        "age",
        "address",
        "birthday",
        "birthplace",
        "boss",
        "city",
        "country",
        "current_project",
        "email",
        "employer",
        "first_name",
        "full_name",
        "gender",
        "height",
        "home",
        "home_town",
        "job",
        "job_title",
        "language",
        "last_name",
        "lives_in",
        "locale",
        "located_in",
        "manager",
        "marital_status",
        "married_to",
        "name",
        "nationality",
        "nickname",
        "occupation",
        "partner",
        "phone",
        "phone_number",
        "preferred_language",
        "preferred_name",
        "profession",
        "pronouns",
        "reports_to",
        "role",
        "spouse",
        "status",
        "surname",
        "team",
        "timezone",
        "title",
        "version",
        "weight",
        "works_as",
        "works_at",
        "works_for",
    ]
)


def told(
    text: str,
    *,
    kind: Kind,
    session: str,
    entity: str | None,
    relation: str | None,
    value: str | None,
    supersedes: Sequence[str],
    valid_from: datetime,
    cites: Sequence[str] = (),
    source: Source = "user",
) -> NewAtom:
    """Return the atom that a `remember` asks for. Raises InvalidInput."""
    parts = {"entity": entity, "relation": relation, "value": value}
    given = {name: part.strip() for name, part in parts.items() if part is not None and not is_blank(part)}
    if given and len(given) < 3:
        lacking = " and ".join(sorted(parts.keys() - given.keys()))
        raise InvalidInput(f"A fact needs entity, relation and value together; add {lacking}. Nothing was stored.")
    words = " ".join(given.values()) if is_blank(text) else text.strip()
    if not words:
        raise InvalidInput("There is nothing to remember: text is empty, or has no visible character.")
    if len(words) > MAX_CHARS:
        raise InvalidInput(
            f"{len(words)} characters are more than one statement (at most {MAX_CHARS}). Split it into several, or "
            "keep the words with record_turns. Nothing was stored."
        )
    if not all(map(well_formed, (words, *given.values()))):
        raise InvalidInput("The text has a lone surrogate, which is not text. Nothing was stored.")
    fact = {given["relation"]: given["value"]} if given else {}
    if any(map(states_secret, (words, *given.values()))) or mask_values(fact) != fact:
        raise InvalidInput(
            "This looks like a key or password, and what is remembered is shown in later conversations. Nothing was "
            "stored. Leave the value out; where it is kept may be remembered."
        )
    name = relation_name(given["relation"]) if given else None
    return NewAtom(
        kind=kind,
        text=words,
        priority=PRIORITY[kind],
        confidence=1.0,
        session=session,
        valid_from=valid_from,
        entity=given.get("entity"),
        relation=name,
        value=given.get("value"),
        single_valued=name in SINGLE_VALUED,
        cites=tuple(cites),
        supersedes=tuple(supersedes),
        source=source,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Current atoms near a new one, best first: contradictions, then repetitions. `contradicting` are ids of them."""

    atoms: list[Atom]
    contradicting: list[str]


def similar(
    store: Store,
    search: Search,
    space: str,
    written: WrittenAtom,
    *,
    embed: Callable[[str], Sequence[Vectors]],
) -> Candidates:
    """Return current atoms that may repeat or contradict the one just written, five at most."""
    new = written.atom
    apart = {new.id, *(atom.id for atom in written.replaced)}
    vectors = embed(new.text)
    hits = search(space, "atom", new.text, embed=lambda _: vectors, filters=Filters(unheld=True), limit=_LOOKED_AT)
    cosines = {hit.id: hit.cosine for hit in hits}
    if len(hits) < _LOOKED_AT:  # few words are shared, and vectors may be off: a small memory is looked through
        held = store.list_atoms(space, filters=Filters(unheld=True), limit=_SMALL)
        cosines = dict.fromkeys(atom.id for atom in held) | cosines
    of_the_same = _of_the_same(store, space, new)
    ids = [id for id in dict.fromkeys([*of_the_same, *cosines]) if id not in apart]
    known = knows_scale(vectors)
    judged = [(atom, *_judged(new, atom, cosines.get(atom.id), known=known)) for atom in store.atoms(space, ids)]
    ranked = sorted(judged, key=lambda one: (-one[1], -one[2]))[:_SIMILAR]
    found = [one for one in ranked if one[1] or one[2]]
    return Candidates(
        atoms=[atom for atom, _, _ in found],
        contradicting=[atom.id for atom, contradiction, _ in found if contradiction >= CONTRADICTS],
    )


def _of_the_same(store: Store, space: str, new: Atom) -> list[str]:
    """Return the atoms of current facts about the same relation of the same entity."""
    if new.fact is None:
        return []
    current = Filters(entity=new.fact.entity, unheld=True)
    return [fact.atom for fact in store.facts(space, filters=current, relation=new.fact.relation, limit=_LOOKED_AT)]


def knows_scale(vectors: Sequence[Vectors]) -> bool:
    """Tell whether cosines of these vectors are of the model that changes are judged by: other models have others."""
    from mcp_memory.models.embed.bundled import IDENTITY

    return bool(vectors) and all(one.identity == IDENTITY for one in vectors)


def _judged(new: Atom, old: Atom, cosine: float | None, *, known: bool) -> tuple[float, float]:
    """Return how likely the new atom contradicts an old one, and whether it is like it at all, each 0 to 1."""
    if _other_subject(new, old):
        return 0.0, 0.0
    alike = (cosine or 0.0) >= _SAME_COSINE or _alike(new, old)
    return slot_score(new.text, old.text, cosine=cosine if known else None), 1.0 if alike else 0.0


def _other_subject(new: Atom, old: Atom) -> bool:
    """Tell whether two facts are about different entities, whatever their words are."""
    return bool(new.fact and old.fact and fold(new.fact.entity) != fold(old.fact.entity))


def _alike(one: Atom, other: Atom) -> bool:
    """Tell whether two statements share most of their words, or speak of the same entity's same relation."""
    if one.fact and other.fact:
        same = (one.fact.entity.casefold(), one.fact.relation) == (
            other.fact.entity.casefold(),
            other.fact.relation,
        )
        if same:
            return True
    mine, theirs = set(index_terms(one.text)), set(index_terms(other.text))
    return bool(mine and theirs) and len(mine & theirs) / min(len(mine), len(theirs)) >= _SAME_WORDS


def relation_name(name: str) -> str:
    """Return how a relation is stored: `Lives in`, `livesIn` and `lives-in` are one, `lives_in`."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return "_".join(re.findall(r"[\w']+", fold(spaced))) or "is"
