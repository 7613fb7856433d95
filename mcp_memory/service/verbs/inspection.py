"""Verbs that show the contents and the history of a memory: for people who inspect it, and for the interface.

They read rows unchanged, a page or the newest of them at a time, and write nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any

from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.types import ActivityEntry, Atom, DaySavings, Fact, Kind, SessionSavings, StatementPage, Turn
from mcp_memory.service.verbs.base import Verbs, in_range, in_thread
from mcp_memory.service.verbs.status import connected
from mcp_memory.store.values import Filters, RecallEntry, Saved, Tombstone

MAX_PAGE = 500
MAX_DAYS = 366
_FACTS = 10_000
_COUNTED = 1_000  # statements that are read to count those that are current


class InspectionVerbs(Verbs):
    """Rows by id and by page, their relations, recent events and recalls, and the savings by day and by session."""

    @in_thread
    def turns(self, ids: Sequence[str]) -> list[Turn]:
        """Return turns that exist and are not forgotten, in the order asked for."""
        return self._parts.store.turns(self.space, ids)

    @in_thread
    def statements(
        self,
        *,
        kind: Kind | None = None,
        entity: str | None = None,
        scene: str | None = None,
        since: str | None = None,
        until: str | None = None,
        as_of: str | None = None,
        ended: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> StatementPage:
        """Return a page of the statements that are current (at `as_of`), with `ended` also those that are not.

        The order is that of `memory_search` without a query. Raises NotFound for an unknown scene or entity.
        """
        from mcp_memory.longterm.search.pages import after, asked_at, page_of
        from mcp_memory.longterm.search.scenes import resolve_filters
        from mcp_memory.longterm.validity import current_atoms

        in_range(limit, "limit", 1, MAX_PAGE)
        store, space, at = self._parts.store, self.space, asked_at(cursor, self._parts.now())
        begin, end = self._parts.times(since, until, now=at)
        filters = Filters(
            kind=kind,
            entity=entity,
            scene=scene,
            since=begin,
            until=end,
            as_of=self._parts.moment(as_of, "as_of", now=at, end=True),
            ended=ended,
        )
        filters, note = resolve_filters(store, space, filters)
        page = page_of(cursor, ("statements", space, filters), at=at, store=store, space=space, listing=True)
        passing = page.then(filters, "atom")
        listed = current_atoms(store, space, passing, at, after=next(iter(page.shown), None), limit=limit + 1)
        shown = listed[:limit]
        return StatementPage(
            atoms=shown,
            cursor=after(page.cursor(), [atom.id for atom in shown]) if len(listed) > limit else None,
            total=self._count_current(passing, at),
            note=note,
        )

    def _count_current(self, filters: Filters, at: datetime) -> int:
        """Count statements; if there are more than `_COUNTED`, including those whose text names a past end."""
        from mcp_memory.longterm.validity import current_atoms

        store = self._parts.store
        total = store.count_atoms(self.space, filters=replace(filters, at=at))
        if filters.ended or total > _COUNTED:
            return total
        return len(current_atoms(store, self.space, filters, at, limit=_COUNTED))

    @in_thread
    def facts_about(self, entity: str) -> list[Fact]:
        """Return all facts of an entity, by any of its names, ended ones too, the oldest first.

        Raises NotFound for an unknown entity.
        """
        from mcp_memory.language.words import fold
        from mcp_memory.longterm.search.entity_names import find_entity
        from mcp_memory.longterm.search.scenes import names_of

        store = self._parts.store
        entity = find_entity(store, self.space, entity).name
        names = names_of(store, self.space, entity)
        found = store.facts(self.space, filters=Filters(entity=entity, ended=True), limit=_FACTS)
        return sorted((fact for fact in found if fold(fact.entity) in names), key=lambda fact: fact.valid_from)

    @in_thread
    def related_entities(self, name: str, *, limit: int = 60) -> list[tuple[str, int]]:
        """Return the entities in the same current statements as this one, and in how many of them; most first.

        Raises NotFound for an unknown entity.
        """
        from mcp_memory.longterm.search.entity_names import find_entity

        name = find_entity(self._parts.store, self.space, name).name
        return self._parts.store.related_entities(self.space, name, limit=limit)

    @in_thread
    def statements_about(self, turn: str) -> list[Atom]:
        """Return the statements that a turn is evidence of, ended ones too."""
        return self._parts.store.atoms_based_on(self.space, turn)

    # --- what was forgotten -------------------------------------------------------------------------

    @in_thread
    def forgotten_words(self, tombstone: str, *, limit: int = 50) -> list[tuple[str, str]]:
        """Return ids and words of the rows under a tombstone, so that a person can decide whether to restore them.

        Keys and passwords are masked. Restored and purged rows are left out. No tool may call this.
        """
        in_range(limit, "limit", 1, MAX_PAGE)
        return [(id, mask(text)) for id, text in self._parts.store.words_under(self.space, tombstone, limit=limit)]

    @in_thread
    def still_said(self, tombstone: str) -> list[Turn]:
        """Return the turns that stay although forgotten statements are based on their words."""
        store = self._parts.store
        return store.turns(self.space, store.still_said(self.space, tombstone))

    @in_thread
    def count_forgotten(self) -> int:
        """Return how many statements, turns and tool results can be brought back."""
        return self._parts.store.count_under_tombstones(self.space)

    # --- what happened ------------------------------------------------------------------------------

    @in_thread
    def recalls(self, *, limit: int = 50) -> list[RecallEntry]:
        """Return the last recalls of all processes, the newest first. Forgotten rows are left out of their ids."""
        return self._recalls(limit)

    def _recalls(self, limit: int) -> list[RecallEntry]:
        parts, store = self._parts, self._parts.store
        parts.recall_log.written()
        found = store.recalls(self.space, limit=limit)
        named = {id for one in found for id in one.ids}
        there = {
            *(turn.id for turn in store.turns(self.space, [id for id in named if id[0] == "t"])),
            *(atom.id for atom in store.atoms(self.space, [id for id in named if id[0] == "a"])),
        }
        return [replace(one, ids=tuple(id for id in one.ids if id[0] == "r" or id in there)) for one in found]

    @in_thread
    def activity(self, *, limit: int = 50) -> list[ActivityEntry]:
        """Return the last stored, recalled and forgotten items, the newest first."""
        in_range(limit, "limit", 1, MAX_PAGE)
        store, space = self._parts.store, self.space
        clients = {log.session: log.client for log in store.followed_logs(space)}
        newest = store.totals(space, "turn").newest
        last = [f"t{number}" for number in range(max(1, newest - limit + 1), newest + 1)]
        turns = [turn for turn in store.turns(space, last) if turn.role != "note"]
        atoms = store.atoms_since(space, max(0, store.totals(space, "atom").newest - limit), limit=limit)
        steps = store.records(space, start=max(0, store.recorded(space) - limit), limit=limit)
        found = [
            *(_entry(turn.learned_at, "turn", turn.id, turn.session, turn.content) for turn in turns),
            *_told(atoms, store.superseded_by(space, [atom.id for atom in atoms])),
            *(_entry(one.timestamp, "result", one.ref, one.session, one.summary) for one in steps if not one.forgotten),
            *(_entry(one.at, "recall", None, one.session, " ".join(one.ids)) for one in self._recalls(limit)),
            *self._forgotten(store.tombstones(space)[-limit:]),
        ]
        shown = sorted(found, key=lambda one: one.at, reverse=True)[:limit]
        return [replace(one, client=clients.get(one.session or "")) for one in shown]

    def _forgotten(self, tombstones: Sequence[Tombstone]) -> Iterator[ActivityEntry]:
        """Yield that rows were forgotten, and that they were brought back if they were."""
        back = [id for one in tombstones if one.undone for id in one.took if id[0] == "t"]
        notes = {turn.id for turn in self._parts.store.turns(self.space, back) if turn.role == "note"}
        for one in tombstones:
            ids = " ".join(one.ids or [id for id in one.took if id not in notes])
            what = "uncorrected" if one.how == "correction" else "forgotten"
            gone = ActivityEntry(
                at=one.at, what=what, id=one.id, session=None, text=ids, client=None, reason=one.reason
            )
            yield gone
            if one.undone_at is not None:
                yield replace(gone, at=one.undone_at, what="back", reason="")

    @in_thread
    def connected(self) -> list[dict[str, Any]]:
        """Return the processes that have the home open, as `status` does, with the clients that they serve."""
        return connected(self.settings.home)

    # --- savings ------------------------------------------------------------------------------------

    @in_thread
    def savings_by_day(self, *, days: int = 30) -> list[DaySavings]:
        """Return what each of the last days saved and cost, today last; a day is one of this machine's time zone."""
        in_range(days, "days", 1, MAX_DAYS)
        store, today = self._parts.store, self._parts.now().astimezone().date()
        dates = [today - timedelta(days=back) for back in reversed(range(days))]
        begin = [datetime.combine(day, time()).astimezone() for day in (*dates, today + timedelta(days=1))]
        saved = store.savings_between(self.space, begin[:-1])
        asked = store.spent_between(begin)
        return [
            DaySavings(
                day=day,
                saved=_saved(kinds),
                spent=_spent(kinds),
                model_tokens=sum(one.prompt_tokens + one.completion_tokens for one in calls),
                cost=sum(prices) if (prices := [one.cost for one in calls if one.cost is not None]) else None,
            )
            for day, kinds, calls in zip(dates, saved, asked, strict=True)
        ]

    @in_thread
    def savings_by_session(self, *, days: int = 7, limit: int = 30) -> list[SessionSavings]:
        """Return what each session saved and spent in the last days; the session that did so last comes first."""
        in_range(days, "days", 1, MAX_DAYS)
        found = self._parts.store.savings_of_sessions(self.space, since=self._parts.now() - timedelta(days=days))
        return [
            SessionSavings(session=session, at=at, saved=_saved(kinds), spent=_spent(kinds))
            for session, at, kinds in found[:limit]
        ]


def _told(atoms: Sequence[Atom], replaced: Sequence[Atom]) -> Iterator[ActivityEntry]:
    """Yield the statements that were stored; those that replaced others as corrections."""
    for atom in atoms:
        older = " ".join(one.id for one in replaced if one.superseded_by == atom.id)
        entry = _entry(atom.learned_at, "correction" if older else "statement", atom.id, None, atom.text)
        yield replace(entry, reason=older)


def _saved(kinds: Sequence[Saved]) -> int:
    return sum(_net(one) for one in kinds if one.kind in ("offload", "compress"))


def _spent(kinds: Sequence[Saved]) -> int:
    return -sum(_net(one) for one in kinds if one.kind in ("expand", "canvas"))


def _net(one: Saved) -> int:
    return one.saved + one.saved_later - one.spent - one.spent_later


_WORDS = 200  # characters of a row that an entry shows


def _entry(at: datetime, what: Any, id: str | None, session: str | None, text: str) -> ActivityEntry:
    return ActivityEntry(at=at, what=what, id=id, session=session, text=one_line(text, _WORDS), client=None)
