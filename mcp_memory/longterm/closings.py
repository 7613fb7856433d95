"""Decides which older sentence of the user a newer one replaces: "the eye is moved to 9 June" ends "… on 19 May".

Only statements that were extracted without a model are compared, and only sure changes count: the newer one has a word
of change and gives another value for the same thing (`changes.replaces`), and both are about one matter by the encoder.
A wrong closing hides what is true; a missed one leaves two dated statements side by side. The encoder's cosine is
needed: in languages that it does not know well, words of change alone closed unrelated sentences. A similar sentence
with another value of the same kind is not enough: it is about somebody else's appointment as often as about the same
one. Each statement is compared with the two nearest.

Of the 877 pairs of `fixtures/changes` and `fixtures/hints`, of which 364 are changes, 144 are closed, 143 of them
rightly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.core.types import Atom
from mcp_memory.longterm.changes import announces_change, replaces
from mcp_memory.longterm.contradiction import pair_features
from mcp_memory.models.embed.bundled import IDENTITY
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Filters, NewAtom, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_NEAREST = 2
_SEARCHED = 16  # statements, of which some are not sentences
_LEAST_COSINE = 0.4
_ONE_MATTER = 0.4  # cosine by the encoder


class Embedded(NamedTuple):
    """A new statement and its vector, None where the embedding model does not know this text yet."""

    atom: NewAtom
    vector: NDArray[np.float32] | None


def replaced_in_store(store: Store, space: str, new: Embedded, identity: str) -> list[str]:
    """Return the ids of stored sentences replaced by a new statement; `identity` names the model of its vector."""
    if identity != IDENTITY:  # cosines of other models are on other scales
        return []
    if new.vector is None or not announces_change(new.atom.text):
        return []
    query = Vectors(identity=identity, data=new.vector[None, :])
    hits = store.nearest(space, "atom", query, filters=Filters(unheld=True), limit=_SEARCHED)
    cosines = {hit.id: hit.score for hit in hits if hit.score >= _LEAST_COSINE}
    open_sentences = [atom for atom in store.atoms(space, cosines) if _may_end(atom, new.atom)]
    nearest = sorted(open_sentences, key=lambda atom: -cosines[atom.id])[:_NEAREST]
    stored = store.vectors_of(space, "atom", [atom.id for atom in nearest], identity)
    vectors = {atom.text: stored[atom.id] for atom in nearest if atom.id in stored} | {new.atom.text: new.vector}
    return [atom.id for atom in nearest if _is_replaced(new.atom.text, atom.text, cosines[atom.id], vectors)]


def _may_end(atom: Atom, new: NewAtom) -> bool:
    """Return whether a stored statement is an open sentence, said earlier and in another turn."""
    is_open = atom.is_sentence and atom.valid_to is None and atom.label != "promise"
    return is_open and atom.valid_from <= new.valid_from and atom.evidence not in {one.turn for one in new.evidence}


def replaced_by(new: Embedded, older: Sequence[Embedded]) -> bool:
    """Return whether a new sentence replaces any of the sentences that are not stored yet."""
    if not announces_change(new.atom.text):
        return False
    for old in older:
        if new.vector is None or old.vector is None or old.atom.label == "promise":
            continue
        cosine = float(new.vector @ old.vector)
        vectors = {new.atom.text: new.vector, old.atom.text: old.vector}
        if cosine >= _LEAST_COSINE and _is_replaced(new.atom.text, old.atom.text, cosine, vectors):
            return True
    return False


def _is_replaced(newer: str, older: str, cosine: float, vectors: Mapping[str, NDArray[np.float32]]) -> bool:
    if not replaces(newer, older, cosine=cosine):
        return False
    (pair,) = pair_features(newer, [older], vectors)
    return pair.meaning >= _ONE_MATTER
