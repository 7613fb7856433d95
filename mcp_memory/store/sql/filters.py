"""Search filters as SQL conditions, shared by word and vector search. They apply before rows are ranked."""

from __future__ import annotations

import json
from typing import get_args

from mcp_memory.core.types import Kind
from mcp_memory.store.sql import quarantine_rows
from mcp_memory.store.sql.entity_rows import key
from mcp_memory.store.sql.supersession import ENDING, REPLACED_SENTENCE
from mcp_memory.store.sql.transaction import Transaction, Value, marks, numbers_of, to_ms
from mcp_memory.store.values import Filters, Layer

_MENTIONS = (
    "r.id IN (SELECT m.atom FROM entity_name n JOIN mention m ON m.space = n.space AND m.entity = n.entity"
    " WHERE n.space = :space AND n.key = ?)"
)
_SESSION = "(SELECT id FROM session WHERE space = :space AND name = ?)"
_TAKEN = "(SELECT unixepoch(f.timestamp, 'subsec') * 1000 FROM ref f WHERE f.space = r.space AND f.id = r.ref)"
# Hooks and imports name a session after its client and eight hexadecimal digits.
CLIENT = (
    "CASE WHEN length(s.name) > 9 AND substr(s.name, length(s.name) - 8, 1) = '-'"
    " AND rtrim(substr(s.name, length(s.name) - 7), '0123456789abcdef') = ''"
    " AND substr(s.name, 1, 1) NOT BETWEEN '0' AND '9' AND s.name NOT LIKE 'session-%'"
    " THEN substr(s.name, 1, length(s.name) - 9) ELSE s.client END"
)
"""The client of a session `s`."""
_OF_PROJECT = "(SELECT id FROM session WHERE space = :space AND project = ?)"
_OF_CLIENT = f"(SELECT s.id FROM session s WHERE s.space = :space AND {CLIENT} = ?)"
_OFFLOADED_IN = "r.ref IN (SELECT o.ref FROM record o WHERE o.space = :space AND o.session {})"


def is_plain(layer: Layer, filters: Filters) -> bool:
    """Return whether no filter is set, so that every row in the index of a layer passes.

    It is never true for atoms, because the index also contains ended atoms, which a search leaves out by default.
    """
    return layer != "atom" and filters == Filters()


def where(tx: Transaction, layer: Layer, filters: Filters) -> tuple[str, list[Value]]:
    """Return the SQL condition that selects rows `r` of a layer's table, and the values of its placeholders."""
    conditions = ["r.space = :space"] if layer == "chunk" else ["r.space = :space", "r.tombstone IS NULL"]
    values: list[Value] = []

    def add(condition: str, *new_values: Value) -> None:
        conditions.append(condition)
        values.extend(new_values)

    when = {"turn": "r.said_at", "atom": "r.valid_from", "chunk": _TAKEN}[layer]
    if filters.since is not None:
        add(f"{when} >= ?", to_ms(filters.since))
    if filters.until is not None:
        add(f"{when} < ?", to_ms(filters.until))
    if filters.upto is not None:
        add("r.id <= ?", filters.upto)
    if layer == "chunk":
        if filters.session is not None:
            add(_OFFLOADED_IN.format(f"= {_SESSION}"), filters.session)
        if filters.project is not None:
            add(_OFFLOADED_IN.format(f"IN {_OF_PROJECT}"), filters.project)
        if filters.client is not None:
            add(_OFFLOADED_IN.format(f"IN {_OF_CLIENT}"), filters.client)
        if filters.as_of is not None:
            add(f"{_TAKEN} <= ?", to_ms(filters.as_of))
    elif layer == "turn":
        if filters.session is not None:
            add(f"r.session = {_SESSION}", filters.session)
        if filters.project is not None:
            add(f"r.session IN {_OF_PROJECT}", filters.project)
        if filters.client is not None:
            add(f"r.session IN {_OF_CLIENT}", filters.client)
        if filters.role is not None:
            add("r.role = ?", filters.role)
    else:
        if filters.kind is not None:
            add("r.kind = ?", filters.kind)
        if not filters.sentences:
            add("r.reader IS NULL")
        if filters.least_priority is not None:
            add("(r.priority < 0 OR r.priority >= ?)", filters.least_priority)
        if filters.learned_since is not None:
            add("r.learned_at >= ?", to_ms(filters.learned_since))
        if filters.label is not None:
            add("r.label = ?", filters.label)
        if filters.entity is not None:
            add(_MENTIONS, key(filters.entity))
        if filters.scene is not None:
            scene_atoms = filters.scene_atoms
            atoms = _atoms_of_scene(tx, filters.scene) if scene_atoms is None else numbers_of(scene_atoms, "a")
            add(f"r.id IN ({marks(atoms)})", *atoms)
        if filters.unheld:
            add(quarantine_rows.NOT_AMONG_QUARANTINED)
        if filters.as_of is None:
            if filters.ended:
                add(f"NOT ({REPLACED_SENTENCE}) AND NOT ({ENDING})")
                if filters.only_ended:
                    add("r.valid_to IS NOT NULL")
            else:
                if filters.at is None:
                    add("r.valid_to IS NULL")
                else:
                    add("(r.valid_to IS NULL OR r.valid_to > ?)", to_ms(filters.at))
        else:
            moment = to_ms(filters.as_of)
            add("r.valid_from <= ? AND (r.valid_to IS NULL OR r.valid_to > ?)", moment, moment)
        if filters.kind is filters.entity is filters.scene is filters.label is None:
            # Lets SQLite read the index `atom_listed`, which begins with the kind, instead of the texts of all atoms.
            add(f"r.kind IN {get_args(Kind)}")
    return " AND ".join(conditions), values


def _atoms_of_scene(tx: Transaction, slug: str) -> list[int]:
    newest = tx.one(
        "SELECT action, atoms FROM scene WHERE space = :space AND slug = ? ORDER BY version DESC LIMIT 1", slug
    )
    return [] if newest is None or newest[0] == "delete" else numbers_of(json.loads(newest[1]), "a")
