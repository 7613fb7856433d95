"""The sentence reader: makes statements of the user's turns without a model, in the background.

It reads the user's turns in order of arrival, each once. The store keeps a cursor, which moves in the transaction that
stores the statements. A crash repeats a batch and makes no duplicates. Turns with a name are read only if the name is
known as the user's, because the first speaker of a group may be anybody. Skipped turns are not read later.
`sentence_statements` makes the statements, `contradiction` finds the older statements that they replace. When a model
has read a turn, the model's statements replace the reader's (`stage_outputs.commit`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from mcp_memory.core.errors import EmbeddingFailed, Refused, StoreUnavailable
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Turn
from mcp_memory.language.words import fold
from mcp_memory.longterm.contradiction import Embedded, replaced_by, replaced_in_store
from mcp_memory.longterm.known_names import known_names
from mcp_memory.longterm.names import MAX_NAME, USER, name_words
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.sentence_statements import TurnSentence, in_context, sentences_of, statements_of
from mcp_memory.longterm.verification.trust import quarantined_ids
from mcp_memory.models.embed.bundled import IDENTITY
from mcp_memory.models.embed.sentence_labels import classify
from mcp_memory.store.sql import stage_outputs, turn_rows
from mcp_memory.store.values import NewAtom, Readings, Vectors

logger = logging.getLogger(__name__)

_PASSING = StoreUnavailable, Refused, EmbeddingFailed
"""Errors that no turn causes. The turns are read again later."""


def read(context: SearchContext, turns: Sequence[Turn], *, going_on: Callable[[], bool] = lambda: True) -> bool:
    """Read turns of the user, those of `sentence_rows.unread_turns`, and return whether all were read.

    A turn that cannot be read is logged and skipped, so that it does not keep the reader from the turns after it.
    Once `going_on` returns false, nothing more is written, because the store may be closed.

    Raises StoreUnavailable and Refused if nothing can be stored, and EmbeddingFailed if the bundled model cannot be
    read.
    """
    try:
        return _read(context, turns, going_on)
    except _PASSING:
        raise
    except Exception:  # noqa: BLE001  # a fault of one turn: reading each alone shows which
        return all(_read_or_skip(context, turn, going_on) for turn in turns)


def _read_or_skip(context: SearchContext, turn: Turn, going_on: Callable[[], bool]) -> bool:
    try:
        return _read(context, [turn], going_on)
    except _PASSING:
        raise
    except Exception as error:  # noqa: BLE001  # its text may quote the turn, so only its type is logged
        if not going_on():
            return False
        logger.error("the sentence reader skips turn %s: %s", turn.id, type(error).__name__)
        skipped = Readings(turns=[turn.id], atoms=[])
        context.store.write(context.space, stage_outputs.commit, None, skipped, outcome={}, now=context.now)
        return True


def _read(context: SearchContext, turns: Sequence[Turn], going_on: Callable[[], bool]) -> bool:
    atoms = _statements(context, turns)
    vectors = context.of_rows([atom.text for atom in atoms])
    rows = [Embedded(atom, vectors.data[place] if vectors else None) for place, atom in enumerate(atoms)]
    before, upto = 0, max(int(turn.id[1:]) for turn in turns)
    for batch, last in _batches(rows, upto, is_comparable=vectors is not None and vectors.identity == IDENTITY):
        if not going_on():
            return False
        covered = [turn.id for turn in turns if before < int(turn.id[1:]) <= last]
        _store(context, batch, covered, vectors)
        before = last
    return True


def _statements(context: SearchContext, turns: Sequence[Turn]) -> list[NewAtom]:
    """Return the statements of some turns in order, each with the entities that it names."""
    store, space = context.store, context.space
    known = known_names(store, space)
    users = known.own | name_words("user")
    window = store.read(space, turn_rows.context_windows, [turn.id for turn in turns], around=1)
    by_position = {(turn.session, turn.position): turn for turn in window}
    quarantined = quarantined_ids(store, space, [turn.id for turn in window])
    sentences: list[TurnSentence] = []
    for turn in turns:
        before = by_position.get((turn.session, turn.position - 1))
        if not turn.name or fold(one_line(turn.name, MAX_NAME)) in users:
            is_quarantined = before is not None and before.id in quarantined
            sentences += sentences_of(turn, before, before_is_held=is_quarantined)
    by_turn = [list(group) for _, group in groupby(sentences, key=lambda sentence: sentence.turn.id)]
    classes = iter(classify([text for group in by_turn for text in in_context(group)]))
    atoms = [atom for group in by_turn for atom in statements_of(group, [next(classes) for _ in group])]
    known.own.update(
        fold(atom.value) for atom in atoms if atom.value and (atom.entity, atom.relation) == (USER, "name")
    )
    known.add(name for atom in atoms for name in atom.entities)
    return [replace(atom, entities=known.named_in(atom.text, atom.entities)) for atom in atoms]


def _batches(rows: Sequence[Embedded], upto: int, *, is_comparable: bool) -> Iterator[tuple[list[Embedded], int]]:
    """Yield the statements in parts to store, each with the number of the last turn that it covers.

    A statement can only replace a stored statement, so a new part begins at a turn that replaces a statement of the
    part before.
    """
    part: list[Embedded] = []
    for turn, of_turn in groupby(rows, key=lambda row: _turn_number(row.atom)):
        new = list(of_turn)
        if is_comparable and any(replaced_by(row, part) for row in new):
            yield part, turn - 1
            part = []
        part += new
    yield part, upto


def _store(context: SearchContext, part: Sequence[Embedded], turns: Sequence[str], vectors: Vectors | None) -> None:
    import numpy as np

    store, space = context.store, context.space
    identity = vectors.identity if vectors else ""
    atoms = [replace(new.atom, supersedes=replaced_in_store(store, space, new, identity)) for new in part]
    data = [new.vector for new in part if new.vector is not None]
    own = Vectors(identity=identity, data=np.stack(data)) if data and len(data) == len(part) else None
    store.write(
        space, stage_outputs.commit, None, Readings(turns=turns, atoms=atoms, vectors=own), outcome={}, now=context.now
    )


def _turn_number(atom: NewAtom) -> int:
    return int(atom.evidence[0].turn[1:])
