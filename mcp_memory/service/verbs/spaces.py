"""Verbs of an operator: quotas, and all spaces of the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.service.verbs.base import in_thread
from mcp_memory.service.verbs.forgetting import ForgettingVerbs
from mcp_memory.store.forgetting import Keeping, Policy
from mcp_memory.store.sql import home_rows, policy_rows, quota_rows, space_rows
from mcp_memory.store.sql.quota_rows import QUOTA_KINDS, Quota, QuotaKind
from mcp_memory.store.sql.space_rows import SpaceSummary

_MOST = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedSpace:
    """A deleted space: how many turns were ever stored in it, and the names of the tokens that were revoked."""

    name: str
    turns: int
    revoked: list[str]


class SpaceVerbs(ForgettingVerbs):
    """Quotas of the space, and the spaces of the store."""

    @in_thread
    def quotas(self) -> list[Quota]:
        return self._store.read(self.space, quota_rows.list_quotas, now=self._parts.now())

    @in_thread
    def set_quotas(self, space: str, most: Mapping[QuotaKind, int | None]) -> list[Quota]:
        """Set quotas of a space, remove those that are None, and return all of them.

        Costs are in millionths of a US dollar. Raises InvalidInput, changing nothing, for an unknown kind or number,
        and for an invalid name.
        """
        for what, number in most.items():
            if what not in QUOTA_KINDS:
                raise InvalidInput(f"There is no quota of {one_line(what, 40)!r}. Quotas: {', '.join(QUOTA_KINDS)}.")
            if number is not None and not 0 <= number <= _MOST:
                raise InvalidInput(f"The quota of {what} is {number:,}; it can be 0 to {_MOST:,}.")
        name, store, now = safe_name(space, what="space"), self._store, self._parts.now()
        for what, number in most.items():
            store.write(name, quota_rows.put_quota, what, number, now=now)
        return store.read(name, quota_rows.list_quotas, now=now)

    @in_thread
    def set_space_retention(self, space: str, days: Mapping[Keeping, int | None]) -> list[Policy]:
        """Set the retention of a space like `set_retention`, and return its policies."""
        name = safe_name(space, what="space")
        self._set_retention(name, days)
        return self._store.read(name, policy_rows.list_policies)

    @in_thread
    def space_summaries(self) -> list[SpaceSummary]:
        """Return all spaces of the store, sorted by name."""
        return self._store.read_home(space_rows.summaries, now=self._parts.now())

    @in_thread
    def space_summary(self, space: str) -> SpaceSummary:
        """Return a space of the store. Raises NotFound for an unknown space."""
        return self._summary(space)

    def _summary(self, name: str) -> SpaceSummary:
        summaries = self._store.read_home(space_rows.summaries, now=self._parts.now())
        found = next((summary for summary in summaries if summary.name == name), None)
        if found is None:
            raise NotFound(f"There is no space {one_line(name, 60)!r}. `mcp-memory space list` lists the spaces.")
        return found

    @in_thread
    def create_space(self, space: str) -> bool:
        """Create a space, which otherwise happens when something is stored in it; return whether it is new.

        Raises InvalidInput for an invalid name.
        """
        return self._store.write(safe_name(space, what="space"), space_rows.create)

    @in_thread
    def delete_space(self, space: str) -> DeletedSpace:
        """Delete a space with everything in it, for good, and revoke the tokens that open no other space.

        If it is interrupted, a second call deletes the rest. Raises NotFound for an unknown space. Copies elsewhere
        (backups, exports, the logs of PostgreSQL) are not touched.
        """
        summary, store, embedded = self._summary(space), self._store, self._parts.embedded
        revoked = [
            token
            for token in store.read_home(home_rows.tokens)
            if token.revoked_at is None and set(token.spaces) == {space}
        ]
        for token in revoked:
            store.write_home(home_rows.revoke_token, token.id, now=self._parts.now())
        store.write(space, space_rows.empty_indexes)
        for table in space_rows.tables():
            store.write(space, space_rows.empty_table, table)
        if embedded is not None:  # before the space is gone: a rebuild would read its files
            embedded.remove_folder(space)
        store.write_home(space_rows.retire, space)
        if embedded is not None:
            embedded.secure_delete()
        return DeletedSpace(name=space, turns=summary.turns, revoked=[token.name for token in revoked])
