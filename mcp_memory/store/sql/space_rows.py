"""Spaces as a whole: what an operator sees of all of them, and how one is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mcp_memory.store.forgetting import Policy
from mcp_memory.store.sql import policy_rows, quota_rows, schema
from mcp_memory.store.sql.home_rows import DELETED, spaces
from mcp_memory.store.sql.quota_rows import Quota
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction
from mcp_memory.store.values import Layer

_INDEXED: tuple[Layer, ...] = ("turn", "atom", "chunk")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceSummary:
    """A space as its operator sees it. `turns` counts all turns that were ever stored in it."""

    name: str
    turns: int
    quotas: list[Quota]
    retention: list[Policy]


def summaries(tx: HomeTransaction, *, now: datetime) -> list[SpaceSummary]:
    """Return all spaces, sorted by name. Reads no row of a turn."""
    turns = dict(tx.all("SELECT s.name, n.last FROM number n JOIN space s ON s.id = n.space WHERE n.kind = 'turn'"))
    quotas, policies = quota_rows.quotas_of_all(tx, now=now), policy_rows.policies_of_all(tx)
    return [
        SpaceSummary(name=name, turns=turns.get(name, 0), quotas=quotas.get(name, []), retention=policies.get(name, []))
        for name in spaces(tx)
    ]


def create(tx: Transaction) -> bool:
    """Create the space; return whether it is new."""
    is_new = not tx.space
    tx.make_space()
    return is_new


def tables() -> list[str]:
    """Return the tables of spaces, each before the tables that it refers to."""
    return [*reversed(schema.tables_of_spaces())]


def empty_indexes(tx: Transaction) -> None:
    """Remove all rows of the space from the indexes of words and vectors."""
    for layer in _INDEXED:
        tx.index.remove(layer, tx.column(f"SELECT id FROM {layer} WHERE space = :space"))


def empty_table(tx: Transaction, table: str) -> None:
    """Delete all rows of the space from a table, and the raw results with their rows."""
    if table == "ref":
        for path in tx.column("SELECT path FROM ref WHERE space = :space AND path <> ''"):
            tx.files.remove(path)
    tx.run(f"DELETE FROM {table} WHERE space = :space")


def retire(tx: HomeTransaction, name: str) -> None:
    """Give the row of an empty space a name that no space can have, and let no worker look at it again."""
    tx.run("DELETE FROM due WHERE space = (SELECT id FROM space WHERE name = ?)", name)
    tx.run(f"UPDATE space SET name = '{DELETED}' || id WHERE name = ?", name)
