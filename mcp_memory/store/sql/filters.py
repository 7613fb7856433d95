"""Filters as SQL, one way for every leg: rows are left out before they are ranked, never after."""

from __future__ import annotations

from mcp_memory.store.protocol import Filters, Layer
from mcp_memory.store.sql import review
from mcp_memory.store.sql.entities import key
from mcp_memory.store.sql.rows import to_ms
from mcp_memory.store.sqlite.finding.terms import RULE

__all__ = ["STATES_RULE", "is_plain", "where"]

_MENTIONS = (
    "r.id IN (SELECT m.atom FROM entity_name n JOIN mention m ON m.entity = n.entity WHERE n.space = ? AND n.key = ?)"
)
_TOLD_IN = (
    "r.id IN (SELECT CAST(substr(a.value, 2) AS INTEGER) FROM ("
    "SELECT action, atoms FROM scene WHERE space = ? AND slug = ? ORDER BY version DESC LIMIT 1) s,"
    " json_each(s.atoms) a WHERE s.action <> 'delete')"
)
_TAKEN = "(SELECT unixepoch(f.timestamp, 'subsec') * 1000 FROM ref f WHERE f.space = r.space AND f.id = r.ref)"
STATES_RULE = f"r.id IN (SELECT rowid FROM turn_terms WHERE turn_terms MATCH 'terms : \"{RULE}\"')"
_OFFLOADED_IN = (
    "r.ref IN (SELECT o.ref FROM record o WHERE o.space = ? AND o.session ="
    " (SELECT id FROM session WHERE space = ? AND name = ?))"
)


def is_plain(layer: Layer, filters: Filters) -> bool:
    """Tell whether the rows of a layer's index all pass: its live turns, its chunks, with nothing asked of them.

    Atoms always have a condition: only those held true, and the index keeps closed ones too.
    """
    return layer != "atom" and filters == Filters()


def where(layer: Layer, space: int, filters: Filters) -> tuple[str, list[int | str]]:
    """Return the condition on the row `r` of a layer's table, and its values."""
    conditions = ["r.space = ?"] if layer == "chunk" else ["r.space = ?", "r.tombstone IS NULL"]
    values: list[int | str] = [space]

    def add(condition: str, *given: int | str) -> None:
        conditions.append(condition)
        values.extend(given)

    when = {"turn": "r.said_at", "atom": "r.valid_from", "chunk": _TAKEN}[layer]
    if filters.since is not None:
        add(f"{when} >= ?", to_ms(filters.since))
    if filters.until is not None:
        add(f"{when} < ?", to_ms(filters.until))
    if filters.upto is not None:
        add("r.id <= ?", filters.upto)
    if layer == "chunk":
        if filters.session is not None:
            add(_OFFLOADED_IN, space, space, filters.session)
        if filters.as_of is not None:
            add(f"{_TAKEN} <= ?", to_ms(filters.as_of))
    elif layer == "turn":
        if filters.session is not None:
            add("r.session = (SELECT id FROM session WHERE space = ? AND name = ?)", space, filters.session)
        if filters.role is not None:
            add("r.role = ?", filters.role)
        if filters.states_rule:
            add(STATES_RULE)
    else:
        if filters.kind is not None:
            add("r.kind = ?", filters.kind)
        if filters.entity is not None:
            add(_MENTIONS, space, key(filters.entity))
        if filters.scene is not None:
            add(_TOLD_IN, space, filters.scene)
        if filters.unheld:
            add(review.PASSES)
        if filters.as_of is None:
            add("r.valid_to IS NULL")
        else:
            moment = to_ms(filters.as_of)
            add("r.valid_from <= ? AND (r.valid_to IS NULL OR r.valid_to > ?)", moment, moment)
    return " AND ".join(conditions), values
