"""How long a space keeps what: off until somebody sets it, followed once a day by an open server, and never silent."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.logs import Word
from mcp_memory.service.memory.forgetting import Forgetting
from mcp_memory.service.memory.purging import Purging
from mcp_memory.service.memory.verbs import in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_memory.store.forgetting import Keeping, Policy

__all__ = ["Followed", "Outdated", "Retention"]

logger = logging.getLogger(__name__)

_AT_ONCE = 2_000
_MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdated:
    """What is older than a policy allows: `going` at its next turn, and `staying` as statements rest on it."""

    policy: Policy
    going: int
    staying: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What following a policy came to: how many it took, and under which tombstones."""

    policy: Policy
    took: int
    tombstones: list[str]


class Retention(Forgetting, Purging):
    """Policies and following them, with the verbs that they lead to."""

    @in_thread
    def retention(self) -> list[Outdated]:
        """Return the policies of the space, with what each will take; none where nothing was set."""
        store, now = self._parts.store, self._parts.now()
        found = list[Outdated]()
        for policy in store.policies(self.space):
            going, staying = store.count_overdue(self.space, policy.what, before=now - timedelta(days=policy.days))
            found.append(Outdated(policy=policy, going=going, staying=staying))
        return found

    @in_thread
    def set_retention(self, days: Mapping[Keeping, int | None]) -> None:
        """Set after how many days what goes, None for never. Nothing is forgotten yet."""
        for what, number in days.items():
            if number is not None and not 1 <= number <= _MOST_DAYS:
                raise InvalidInput(f"{what} is {number} days; it can be 1 to {_MOST_DAYS:,}, or off.")
        for what, number in days.items():
            self._parts.store.put_policy(self.space, what, number, now=self._parts.now())

    @in_thread
    def follow_retention(self, *, eager: bool = False) -> list[Followed]:
        """Forget what is older than the policies of the space allow, unless that was done today; `eager`: in any case.

        It can be undone like any forgetting. It is purged only where a policy says so, and then only what a policy
        forgot: what a person forgot waits for that person.
        """
        store = self._parts.store
        if not store.policies(self.space):
            return []
        done = list[Followed]()
        for policy in store.due_policies(self.space, now=self._parts.now(), eager=eager):
            took, tombstones = self._follow(policy)
            store.note_kept(self.space, policy.what, took)
            if took:
                logger.warning("retention took %d %s after %d days", took, Word(policy.what), policy.days)
            done.append(Followed(policy=policy, took=took, tombstones=tombstones))
        return done

    def _follow(self, policy: Policy) -> tuple[int, list[str]]:
        store, before = self._parts.store, self._parts.now() - timedelta(days=policy.days)
        took, tombstones = 0, list[str]()
        while ids := store.overdue(self.space, policy.what, before=before, limit=_AT_ONCE):
            if policy.what == "purge":
                tombstones += self._erase(ids, delete_copies=False).tombstones
            else:
                refs = ids if policy.what == "results" else ()
                reason = f"kept for {policy.days} days"
                tombstones.append(self._forget(ids, refs, reason=reason, how="retention").id)
            took += len(ids)
        return took, tombstones

    @in_thread
    def spaces_with_policies(self) -> list[str]:
        """Return the spaces of the store that keep something for a while only."""
        store = self._parts.store
        return [space for space in store.spaces() if store.policies(space)]
