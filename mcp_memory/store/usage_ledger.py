"""The ledger of calls to language models and their pause, as an object that `models.metered` uses without a store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mcp_memory.core.errors import Refused
from mcp_memory.core.types import Spend, Spent
from mcp_memory.store.sql import home_rows, quota_rows
from mcp_memory.store.sql.transaction import Engine, HomeTransaction


@dataclass(frozen=True, slots=True)
class StoreLedger:
    """The ledger in a store; see `home_rows` for each method."""

    store: Engine

    def paused(self) -> tuple[str, datetime] | None:
        return self.store.read_home(home_rows.paused)

    def spent(self, *, since: datetime, until: datetime | None = None) -> list[Spent]:
        return self.store.read_home(home_rows.spent, since=since, until=until)

    def add_spend(self, spend: Spend, space: str | None = None) -> None:
        """Record a call, and count it for the quotas of a space."""
        self.store.write_home(_add_spend, spend, space)

    def require_quota(self, space: str, *, now: datetime) -> None:
        """Raise Refused if a monthly quota of a space is used up."""
        quota = self.store.read_home(quota_rows.used_up, space, now=now)
        if quota is not None:
            raise Refused(
                f"The model is not asked about {space!r} until next month: its quota of {describe(quota)} is used up."
                " The operator can raise it: `mcp-memory space quota`."
            )


def describe(quota: quota_rows.Quota) -> str:
    """Return the limit of a quota with its unit, such as `1,000 turns` or `$20.00 a month`."""
    if quota.what == "cost":
        return f"${quota.most / quota_rows.DOLLAR:,.2f} a month"
    return f"{quota.most:,} {quota.what}{' a month' if quota.what in quota_rows.MONTHLY else ''}"


def _add_spend(tx: HomeTransaction, spend: Spend, space: str | None) -> None:
    home_rows.add_spend(tx, spend)
    if space is not None:
        tokens = spend.prompt_tokens + spend.completion_tokens
        quota_rows.count_call(tx, space, tokens=tokens, cost=spend.cost, at=spend.at)
