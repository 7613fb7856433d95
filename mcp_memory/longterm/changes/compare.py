"""What two statements share and where they differ."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mcp_memory.longterm.changes.statements import Statement, words_alike
from mcp_memory.longterm.changes.values import Value, ValueKind, comparable, differ

__all__ = ["Comparison"]

_HELD = frozenset(["home", "job", "tool"])
"""Relations whose value is a name."""
_SOLE = _HELD | {"rent", "due", "open"}
"""Relations that are a slot without further words."""


@dataclass(frozen=True)
class Comparison:
    """How a newer statement stands to an older one, worked out as far as it is asked for."""

    newer: Statement
    older: Statement

    @property
    def may_contradict(self) -> bool:
        """Whether they have anything that could contradict; most pairs do not, and this is fast."""
        return self.changed or self.held or not self.newer.kinds.isdisjoint(self.older.kinds)

    @property
    def values(self) -> bool:
        """Whether their values of a kind differ throughout."""
        return bool(self._values[0])

    @property
    def numbered(self) -> bool:
        """Whether only numbers after a name differ, and nothing says that it is a product ("Step 4" and "Step 5")."""
        return self._values[0] == {"version"} and "tool" not in self.newer.relations | self.older.relations

    @property
    def equal(self) -> bool:
        """Whether they have an equal value."""
        return self._values[1]

    @cached_property
    def names(self) -> bool:
        """Whether the names of a relation differ."""
        mine, theirs = self.newer.names, self.older.names
        if not (self.held and self.other_names):
            return False
        return bool(mine & theirs) or min(len(mine), len(theirs)) == 1  # else they speak of two subjects

    @property
    def other_names(self) -> bool:
        return self.more_names and bool(self.older.names - self.newer.names)

    @property
    def more_names(self) -> bool:
        return bool(self.newer.names - self.older.names)

    @property
    def same_names(self) -> bool:
        return not self.newer.names.isdisjoint(self.older.names)

    @property
    def relation(self) -> bool:
        return bool(self._relations)

    @property
    def held(self) -> bool:
        """Whether they share a relation whose value is a name."""
        return not self._relations.isdisjoint(_HELD)

    @property
    def tool(self) -> bool:
        return "tool" in self._relations

    @property
    def sole(self) -> bool:
        """Whether a shared relation is all that both say of what the value is of."""
        return not (self.newer.words or self.older.words) and not self._relations.isdisjoint(_SOLE)

    @property
    def alone(self) -> bool:
        """Whether a shared relation is all that one of them says of what the value is of."""
        return not (self.newer.words and self.older.words) and not self._relations.isdisjoint(_SOLE)

    @property
    def dense(self) -> bool:
        """Whether both are in scripts without spaces."""
        mine, theirs = self.newer.words, self.older.words
        return bool(mine and theirs) and min(mine) > "\u0e00" and min(theirs) > "\u0e00"

    @property
    def common(self) -> int:
        """How many words of the one have one like them in the other, the fewer."""
        return min(self._alike)

    @property
    def apart(self) -> int:
        """How many words each of the two has and the other has not, the fewer."""
        had, has = self._alike
        return min(len(self.newer.words) - had, len(self.older.words) - has)

    @property
    def changed(self) -> bool:
        """Whether the newer says that something is otherwise than before."""
        return self.newer.changed or bool(self.newer.former)

    @cached_property
    def revoked(self) -> bool:
        """Whether the newer says that a value of the older is no longer so."""
        return any(_revokes(gone, value) for gone in self.newer.former for value in self.older.values)

    @cached_property
    def _values(self) -> tuple[set[ValueKind], bool]:
        return _compared(self.newer.values, self.older.values)

    @cached_property
    def _relations(self) -> frozenset[str]:
        return self.newer.relations & self.older.relations

    @cached_property
    def _alike(self) -> tuple[int, int]:
        return words_alike(self.newer.words, self.older.words)


def _compared(newer: tuple[Value, ...], older: tuple[Value, ...]) -> tuple[set[ValueKind], bool]:
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
