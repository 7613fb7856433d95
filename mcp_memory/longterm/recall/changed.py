"""User turns whose value a later turn changed, among the turns found for a question.

`longterm.changes` compares two texts; this picks the pairs to compare: those of one topic, by their stored vectors. It
misses later turns that the search did not find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mcp_memory.core.types import Turn
from mcp_memory.longterm.desk import Desk
from mcp_memory.longterm.recall.relevance import Asked
from mcp_memory.models.embed.bundled import IDENTITY

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["changed", "promoted"]

_UNKNOWN_PAIRS = 200  # that are compared without cosines
_MAYBE_PAIRS = 12
_ONE_TOPIC, _OTHER_TOPIC = 0.5, 0.35  # cosines of two turns that may, or cannot, speak of the same thing


def changed(wanted: Asked, about: Sequence[Turn], unsure: Sequence[Turn]) -> tuple[dict[str, Turn], dict[str, Turn]]:
    """Return the turns that replaced the value of older user turns, and unsure turns that may have for relevant ones.

    Both map the id of the older turn to the latest newer one.
    """
    from mcp_memory.longterm.changes import announces_change, replaces, same_slot

    pairs = _of_one_topic(wanted, [*about, *unsure])
    newer = {new.id: new for _, new, _ in pairs}
    announced = {id for id, new in newer.items() if announces_change(new.content)}
    likely = [pair for pair in pairs if pair[1].id in announced]
    questions = _before(wanted.desk, [old for old, _, _ in likely])
    replaced = {
        old.id: new
        for old, new, cosine in likely
        if replaces(new.content, old.content, cosine=cosine, asked=questions.get(old.id, ""))
    }
    sure = {turn.id for turn in about}
    across = [pair for pair in pairs if pair[0].id in sure and pair[1].id not in sure and (pair[2] or 0) >= _ONE_TOPIC]
    nearest = sorted(across, key=lambda pair: -(pair[2] or 0))[:_MAYBE_PAIRS]
    maybe = {old.id: new for old, new, cosine in nearest if same_slot(new.content, old.content, cosine=cosine)}
    return replaced, maybe


def _of_one_topic(wanted: Asked, turns: Sequence[Turn]) -> list[tuple[Turn, Turn, float | None]]:
    """Return pairs of user turns on one topic, the older first, in the order of the newer."""
    said = sorted((turn for turn in turns if turn.role == "user"), key=lambda turn: (turn.said_at, turn.position))
    vectors: Mapping[str, NDArray[np.float32]] = {}
    if wanted.model == IDENTITY:  # cosines of other models mean something else
        desk = wanted.desk
        vectors = desk.store.vectors_of(desk.space, "turn", [turn.id for turn in said], IDENTITY)
    pairs: list[tuple[Turn, Turn, float | None]] = []
    for place, new in enumerate(said):
        for old in (turn for turn in said[:place] if _is_before(turn, new)):
            known = old.id in vectors and new.id in vectors
            cosine = float(vectors[old.id] @ vectors[new.id]) if known else None
            if cosine is None or cosine >= _OTHER_TOPIC:
                pairs.append((old, new, cosine))
    return pairs if vectors else pairs[-_UNKNOWN_PAIRS:]


def _is_before(old: Turn, new: Turn) -> bool:
    """Tell which was said first; turns that were recorded together have one time."""
    return old.said_at < new.said_at or (old.session == new.session and old.position < new.position)


def _before(desk: Desk, turns: Sequence[Turn]) -> dict[str, str]:
    """Return the text before each turn, by id: a value may answer a question that names it."""
    near = desk.store.surroundings(desk.space, list(dict.fromkeys(turn.id for turn in turns)), around=1)
    said = {(turn.session, turn.position + 1): turn.content for turn in near}
    return {turn.id: said.get((turn.session, turn.position), "") for turn in turns}


def promoted(about: Sequence[Turn], unsure: Sequence[Turn], newer: Mapping[str, Turn]) -> tuple[list[Turn], list[Turn]]:
    """Return the turns with each newer value placed before the older one, in the same part.

    Otherwise a reader would believe the old value.
    """
    first: dict[str, Turn] = {}
    for turn in about:
        if (change := newer.get(turn.id)) is not None:
            first.setdefault(change.id, change)
        first.setdefault(turn.id, turn)
    return list(first.values()), [turn for turn in unsure if turn.id not in first]
