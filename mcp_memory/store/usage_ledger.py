"""The ledger of calls to language models and their pause, as an object that `models.metered` uses without a store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mcp_memory.core.types import Spend, Spent
from mcp_memory.store.sql import home_rows
from mcp_memory.store.sql.transaction import Engine


@dataclass(frozen=True, slots=True)
class StoreLedger:
    """The ledger in a store; see `home_rows` for each method."""

    store: Engine

    def paused(self) -> tuple[str, datetime] | None:
        return self.store.read_home(home_rows.paused)

    def spent(self, *, since: datetime, until: datetime | None = None) -> list[Spent]:
        return self.store.read_home(home_rows.spent, since=since, until=until)

    def add_spend(self, spend: Spend) -> None:
        self.store.write_home(home_rows.add_spend, spend)
