"""Finds user turns, and lines of files, whose value a later turn replaced, among the rows that a search found.

`longterm.changes` compares two texts. This module picks the pairs to compare: user turns about the same topic, by their
stored vectors, that share rare words; a single rare word suffices if their vectors are close. Recall and both searches
mark these turns. Later turns that the search did not find are missed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar

from mcp_memory.core.types import Atom, ChangedLine, ResultHit, Turn
from mcp_memory.language.words import fold
from mcp_memory.longterm.search.answerability import AskedWords, question_words, terms_of
from mcp_memory.longterm.search.search import atom_turns
from mcp_memory.longterm.verification.trust import quarantined_ids
from mcp_memory.models.embed.bundled import IDENTITY
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, turn_rows
from mcp_memory.store.values import Layer, Vectors

COMPARED = 45
"""Number of the best turns of a search that are compared with each other; a recall reads as many."""

_PAIRS_WITHOUT_COSINE = 200
_POSSIBLE_PAIRS = 12
_MARKED = 300  # characters of a turn that may be marked as outdated, or mark another one
_TELLING = 1.2  # least rarity of the words shared by two turns of one subject; a word in 2 % of the rows has 0.8
_TELLING_ALONE = 0.5  # least rarity for turns with a cosine of `_ONE_TOPIC`
_ONE_TOPIC, _OTHER_TOPIC = 0.5, 0.35  # cosines of two turns that may, or cannot, speak of the same thing


class TurnPair(NamedTuple):
    """Two user turns; `cosine` is None if either has no vector by the bundled model."""

    older: Turn
    newer: Turn
    cosine: float | None


def changed_turns(store: Store, space: str, ids: Sequence[str]) -> dict[str, Turn]:
    """Return the latest turns that replaced the value of an older turn of `ids`, by the id of the older turn.

    Only the user's short turns are compared. Quarantined turns replace nothing.
    """
    from mcp_memory.longterm.value_clauses import announces_change

    turns = [
        turn
        for turn in store.read(space, turn_rows.by_ids, ids)
        if turn.role == "user" and len(turn.content) <= _MARKED
    ]
    changes = {turn.id for turn in turns if announces_change(turn.content)}
    if not changes:
        return {}
    quarantined = quarantined_ids(store, space, [turn.id for turn in turns])
    turns = [turn for turn in turns if turn.id not in quarantined]
    return replaced_by(store, space, pairs_of_one_topic(store, space, turns, newer=changes))


def replaced_by(store: Store, space: str, pairs: Sequence[TurnPair]) -> dict[str, Turn]:
    """Return the latest turn that surely replaced the value of an older turn, by the id of the older turn.

    Only short turns are compared, because a mark on a long turn would not apply to all that it says.
    """
    from mcp_memory.longterm.changes import is_bare_value, replaces
    from mcp_memory.longterm.value_clauses import announces_change

    pairs = [pair for pair in pairs if max(len(pair.older.content), len(pair.newer.content)) <= _MARKED]
    newer = {pair.newer.id: pair.newer for pair in pairs}
    announced = {id for id, turn in newer.items() if announces_change(turn.content)}
    likely = [pair for pair in pairs if pair.newer.id in announced]
    older_turns = {pair.older.id: pair.older for pair in likely}
    answers = [id for id, turn in older_turns.items() if is_bare_value(turn.content)]
    before = store.read(space, turn_rows.context_windows, answers, around=1) if answers else ()
    texts_before = {(turn.session, turn.position + 1): turn.content for turn in before}
    replaced: dict[str, Turn] = {}
    for older, newer, cosine in likely:
        question = texts_before.get((older.session, older.position), "")  # a value may answer a question that names it
        if replaces(newer.content, older.content, cosine=cosine, asked=question) and _share_subject(
            store, space, "turn", older.content, newer.content, cosine
        ):
            replaced[older.id] = newer
    return replaced


def changed_statements(store: Store, space: str, atoms: Iterable[Atom], turns: Iterable[Turn]) -> dict[str, Turn]:
    """Return the latest of the user's turns that surely replaced the value of a statement, by the statement's id.

    Only short statements of the user are compared, and no promises.
    """
    from mcp_memory.longterm.changes import replaces
    from mcp_memory.longterm.value_clauses import announces_change

    own = [atom for atom in atoms if atom.source == "user" and atom.label != "promise" and len(atom.text) <= _MARKED]
    changes = [
        turn
        for turn in sorted(turns, key=lambda turn: turn.said_at)
        if turn.role == "user" and not turn.name and len(turn.content) <= _MARKED and announces_change(turn.content)
    ]
    if not (own and changes):
        return {}
    of_atoms = store.vectors_of(space, "atom", [atom.id for atom in own], IDENTITY)
    of_turns = store.vectors_of(space, "turn", [turn.id for turn in changes], IDENTITY)
    replaced: dict[str, Turn] = {}
    for atom in own:
        for turn in changes:
            if turn.said_at <= atom.valid_from or turn.id in atom_turns(atom):
                continue
            is_embedded = atom.id in of_atoms and turn.id in of_turns
            cosine = float(of_atoms[atom.id] @ of_turns[turn.id]) if is_embedded else None
            if (
                (cosine is None or cosine >= _OTHER_TOPIC)
                and replaces(turn.content, atom.text, cosine=cosine)
                and _share_subject(store, space, "turn", atom.text, turn.content, cosine)
            ):
                replaced[atom.id] = turn
    return replaced


def _share_subject(store: Store, space: str, layer: Layer, older: str, newer: str, cosine: float | None) -> bool:
    """Return whether two texts share words that are rare enough; the newer text is in this layer."""
    terms = terms_of(newer)
    words = question_words(AskedWords(store, space, layer, older), [terms], total=store.totals(space, layer).rows)
    shared = sum(rarity for word, rarity in words.rarity.items() if word in terms)
    return shared >= (_TELLING_ALONE if cosine is not None and cosine >= _ONE_TOPIC else _TELLING)


class UserStatement(NamedTuple):
    """Words of the user, and when they were said; `id` is that of a turn or statement."""

    id: str
    text: str
    at: datetime


def with_changed_lines(
    store: Store, space: str, hits: list[ResultHit], ids: Sequence[str], *, embed: Callable[[str], Sequence[Vectors]]
) -> list[ResultHit]:
    """Return the hits, marking the lines of files whose value the user surely replaced after the file was written.

    `ids` are turns and statements, of which the user's own are compared with each line. `embed` is as in a search.
    """
    from mcp_memory.longterm.changes import replaces
    from mcp_memory.longterm.value_clauses import announces_change

    statements = _user_statements(store, space, ids)
    changes = [said for said in statements if len(said.text) <= _MARKED and announces_change(said.text)]
    changes.sort(key=lambda said: said.at, reverse=True)

    def is_changed_by(said: UserStatement, line: str) -> bool:
        if not replaces(said.text, line):
            return False
        layer: Layer = "turn" if said.id.startswith("t") else "atom"
        stored = store.vectors_of(space, layer, [said.id], IDENTITY).get(said.id)
        vectors = () if stored is None else embed(line)
        cosine = next((float(stored @ each.data[0]) for each in vectors if each.identity == IDENTITY), None)
        return replaces(said.text, line, cosine=cosine) and _share_subject(store, space, layer, line, said.text, cosine)

    def changed_by(line: str, since: datetime) -> UserStatement | None:
        return next((said for said in changes if said.at > since and is_changed_by(said, line)), None)

    def marked(hit: ResultHit) -> ResultHit:
        lines = enumerate(hit.text.split("\n"), start=hit.lines[0])
        found = [(number, changed_by(line, hit.at)) for number, line in lines if line.strip() and len(line) <= _MARKED]
        return replace(hit, changed=tuple(ChangedLine(line=n, by=said.id, at=said.at) for n, said in found if said))

    return [marked(hit) if hit.of_file and changes else hit for hit in hits]


def _user_statements(store: Store, space: str, ids: Sequence[str]) -> list[UserStatement]:
    """Return those of the rows that are the user's own words, without quarantined and ended ones."""
    trusted = set(ids) - quarantined_ids(store, space, ids)
    turns = store.read(space, turn_rows.by_ids, [id for id in ids if id in trusted and id[0] == "t"])
    atoms = store.read(space, atom_rows.by_ids, [id for id in ids if id in trusted and id[0] == "a"])
    own = [atom for atom in atoms if atom.source == "user" and atom.valid_to is None]
    return [
        *(UserStatement(turn.id, turn.content, turn.said_at) for turn in turns if turn.role == "user"),
        *(UserStatement(atom.id, atom.text, atom.valid_from) for atom in own),
    ]


def possibly_changed(pairs: Sequence[TurnPair], about: Iterable[Turn]) -> dict[str, Turn]:
    """Return later turns outside of `about` that may contradict a turn in `about`, by the id of the turn in `about`."""
    from mcp_memory.longterm.changes import same_slot

    sure = {turn.id for turn in about}
    across = [
        pair
        for pair in pairs
        if pair.older.id in sure and pair.newer.id not in sure and (pair.cosine or 0) >= _ONE_TOPIC
    ]
    nearest = sorted(across, key=lambda pair: -(pair.cosine or 0))[:_POSSIBLE_PAIRS]
    return {
        older.id: newer for older, newer, cosine in nearest if same_slot(newer.content, older.content, cosine=cosine)
    }


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


_Row = TypeVar("_Row", bound=_Identified)


def newer_first(rows: Iterable[_Row], newer: Mapping[str, _Row]) -> list[_Row]:
    """Return the rows, each newer row before the older row, since a reader would believe the old value.

    `newer` maps the ids of older rows to newer rows; newer rows that are not in `rows` are added.
    """
    first: dict[str, _Row] = {}
    for row in rows:
        versions = [row]
        while (change := newer.get(versions[-1].id)) is not None and change.id not in first:
            versions.append(change)
        for version in reversed(versions):
            first.setdefault(version.id, version)
    return list(first.values())


def pairs_of_one_topic(
    store: Store, space: str, turns: Iterable[Turn], *, newer: Collection[str] | None = None
) -> list[TurnPair]:
    """Return the pairs of user turns by one speaker that may be on one topic, sorted by the time of the newer turn.

    With `newer`, pairs whose newer turn has none of these ids may be left out. If no turn has a vector, the last 200
    pairs are returned, whatever their topic.
    """
    import numpy as np

    by_time = sorted((turn for turn in turns if turn.role == "user"), key=lambda turn: (turn.said_at, turn.position))
    speakers = [fold(turn.name or "") for turn in by_time]
    # Cosines of other models are on other scales.
    vectors = store.vectors_of(space, "turn", [turn.id for turn in by_time], IDENTITY)
    rows = {id: row for row, id in enumerate(vectors)}
    data = np.stack(list(vectors.values())) if vectors else None
    pairs: list[TurnPair] = []
    for index, turn in enumerate(by_time):
        if data is not None and newer is not None and turn.id not in newer:
            continue
        row = rows.get(turn.id)
        # A matrix product would wake its threads, which is slower.
        cosines = np.einsum("k,jk->j", data[row], data).tolist() if data is not None and row is not None else ()
        for older, speaker in zip(by_time[:index], speakers, strict=False):
            place = rows.get(older.id)
            cosine = cosines[place] if cosines and place is not None else None
            is_near = cosine is None or cosine >= _OTHER_TOPIC
            if is_near and is_before(older, turn) and speaker == speakers[index]:
                pairs.append(TurnPair(older, turn, cosine))
    return pairs if vectors else pairs[-_PAIRS_WITHOUT_COSINE:]


def is_before(turn: Turn, other: Turn) -> bool:
    """Return whether a turn was said before another: by position within a session, by time across sessions."""
    if turn.session == other.session:  # turns that were recorded together have one time
        return turn.position < other.position
    return turn.said_at < other.said_at
