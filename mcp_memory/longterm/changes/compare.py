"""What two statements share and where they differ, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_memory.longterm.changes.statements import Statement, words_alike
from mcp_memory.longterm.changes.values import Value, ValueKind, comparable, differ

__all__ = ["Comparison", "compare"]

_HELD = frozenset(["home", "job", "tool"])
"""Relations whose value is a name."""
_SOLE = _HELD | {"rent", "due", "open"}
"""Relations that tell by themselves what a value is of, where nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How a newer statement stands to an older one.

    `values`: values of a kind differ throughout; `names`: names of a relation do. `apart` is how many words each of the
    two has and the other has not, the fewer. `revoked`: the newer says that a value of the older is no longer so.
    `numbered`: only numbers after a name differ, and nothing says that it is a product ("Step 4" and "Step 5"). `sole`:
    a shared relation is all that both say of what the value is of; `alone`: all that one of them says.
    """

    values: bool
    numbered: bool
    equal: bool
    names: bool
    other_names: bool
    relation: bool
    held: bool
    same_names: bool
    more_names: bool
    sole: bool
    alone: bool
    tool: bool
    dense: bool
    common: int
    apart: int
    changed: bool
    revoked: bool


def compare(newer: Statement, older: Statement) -> Comparison:
    """Return how the newer of two statements stands to the older."""
    mine, theirs = newer.words, older.words
    had, has = words_alike(mine, theirs)
    relations = newer.relations & older.relations
    other_names, own_names = older.names - newer.names, newer.names - older.names
    two_subjects = min(len(own_names), len(other_names)) > 1 and not newer.names & older.names
    kinds, equal = _values(newer.values, older.values)
    return Comparison(
        values=bool(kinds),
        numbered=kinds == {"version"} and "tool" not in newer.relations | older.relations,
        equal=equal,
        names=bool(own_names and other_names and relations & _HELD) and not two_subjects,
        other_names=bool(own_names and other_names),
        relation=bool(relations),
        held=bool(relations & _HELD),
        same_names=bool(newer.names & older.names),
        more_names=bool(own_names),
        sole=bool(relations & _SOLE) and not mine and not theirs,
        alone=bool(relations & _SOLE) and not (mine and theirs),
        tool="tool" in relations,
        dense=bool(mine and theirs) and min(mine) > "\u0e00" and min(theirs) > "\u0e00",
        common=min(had, has),
        apart=min(len(mine) - had, len(theirs) - has),
        changed=newer.changed or bool(newer.former),
        revoked=any(_revokes(gone, value) for gone in newer.former for value in older.values),
    )


def _values(newer: tuple[Value, ...], older: tuple[Value, ...]) -> tuple[set[ValueKind], bool]:
    """Return the kinds of which all values of the two differ, and whether they have an equal value."""
    pairs = [(new, old) for new in newer for old in older if comparable(new, old)]
    kinds: set[ValueKind] = {new.kind for new, _ in pairs}
    agreeing: set[ValueKind] = {new.kind for new, old in pairs if not differ(new, old)}
    return kinds - agreeing, bool(agreeing)


def _revokes(gone: Value, old: Value) -> bool:
    """Tell whether a value that the newer text calls former is the older's: "not 14" revokes 14:00 and 14 mugs too."""
    if gone.kind == "amount" and not gone.unit:
        return gone.reading == (
            old.reading / 60 if old.kind == "clock" and isinstance(old.reading, float) else old.reading
        )
    return comparable(gone, old) and not differ(gone, old)
