"""Verbs for forgetting, purging and retention.

Forgetting takes rows and everything that quotes them out of memory, and can be undone. Purging erases forgotten rows,
and searches every byte of the home for remains. Retention policies are off until somebody sets them; an open server
follows them once a day.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mcp_memory.core import process_registry
from mcp_memory.core.errors import InvalidInput, Refused, StoreUnavailable
from mcp_memory.core.logs import SafeText
from mcp_memory.core.personal_ids import mark_id
from mcp_memory.core.secrets.masking import mask, mask_typed
from mcp_memory.core.text import one_line
from mcp_memory.core.types import FORGOTTEN, Forgotten, Turn
from mcp_memory.service.verbs.base import MAX_PAGE, Verbs, check_range, in_thread, of_either_memory, reading, store_verb
from mcp_memory.store.forgetting import How, Keeping, Policy, Purge, Purged, Reach
from mcp_memory.store.purge_search import Proof, Traces, prove
from mcp_memory.store.sql import home_rows, policy_rows, tombstone_rows, turn_rows
from mcp_memory.store.values import CanvasChange, Conflict, Tombstone

if TYPE_CHECKING:
    from mcp_memory.core.process_registry import HomeProcess
    from mcp_memory.store.protocol import Store


logger = logging.getLogger(__name__)

T = TypeVar("T")

_ATTEMPTS = 20
_RETENTION_BATCH = 2_000
_MAX_DAYS = 36_500
_LISTED = 200
_ALSO = 50
_ALL = 2**31
_MAX_REASON = 200
_PURGE_ATTEMPTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeReport:
    """Counts of erased rows, and the verification."""

    tombstones: Sequence[str]
    turns: int
    atoms: int
    refs: int
    shredded: bool
    """False if other processes kept reading: the write-ahead log may still have erased words. Call again."""
    beside: Sequence[HomeProcess] = ()
    """The other processes that have the home open."""
    proof: Proof | None = None
    """None if there were no words to search for."""
    cut_short: bool = False
    """An earlier purge was killed before its verification: its words are erased, but were not searched for."""
    provable: bool = True
    """False in PostgreSQL, whose pages, log, standbys and backups keep deleted bytes where we cannot search."""
    copies: Sequence[str] = ()
    """Backups, exports and quarantine folders in the home with rows that this or an earlier purge erased."""
    deleted: Sequence[str] = ()
    """Copies with erased rows that were deleted."""
    repeated: Sequence[str] = ()
    """Ids of retained results and tasks with a step, summary, goal or label that repeats erased words."""
    bucket: str | None = None
    """The bucket that results were deleted from; if it has versioning, it keeps the deleted versions."""

    @property
    def is_proven(self) -> bool:
        """Whether no erased words are left in the home, except in `copies`, and no text of an agent repeats them."""
        is_clean = self.proof is None or not (self.proof.found or self.proof.unread)
        return self.shredded and is_clean and not self.repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class OverdueRows:
    """Numbers of rows older than a policy allows.

    The next run forgets `going` rows; `staying` rows are kept because statements cite them. `next_run` is when a server
    that is open applies the policy.
    """

    policy: Policy
    going: int
    staying: int
    next_run: datetime


def overdue_rows(store: Store, space: str, *, now: datetime) -> list[OverdueRows]:
    """Return the policies of a space, each with its next run and the number of rows that are overdue."""
    found: list[OverdueRows] = []
    for policy in store.read(space, policy_rows.list_policies):
        before = now - timedelta(days=policy.days)
        going, staying = store.read(space, policy_rows.count_overdue, policy.what, before=before)
        next_run = policy_rows.next_run(policy, now=now)
        found.append(OverdueRows(policy=policy, going=going, staying=staying, next_run=next_run))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRun:
    """A run of a policy, which forgot or purged `took` rows under `tombstones`."""

    policy: Policy
    took: int
    tombstones: list[str]


class ForgettingVerbs(Verbs):
    """Forget, undo, purge, and follow retention policies."""

    @of_either_memory("ids", "undo")
    @in_thread
    def forget(
        self,
        ids: Sequence[str] = (),
        *,
        query: str | None = None,
        session: str | None = None,
        since: str | None = None,
        until: str | None = None,
        reason: str = "",
        dry_run: bool | None = None,
        undo: str | None = None,
        also: bool = False,
    ) -> Forgotten:
        """Take turns, atoms and refs out of every search; with `undo`, restore the rows of a tombstone.

        Only rows that match all of ids, query, session and time are chosen. By ids alone it acts at once; otherwise
        it is a dry run, unless `dry_run` is False. Other rows with the same content are returned in `Forgotten.also`;
        with `also=True` they are forgotten as well, those of the personal memory under a tombstone there. The goal of a
        task is forgotten with the user's turn that it was copied from; the agent's step or summary is forgotten with
        its result. The id of a task, such as `003`, means its goal, and the titles, summaries and labels on its canvas
        that came from no step.
        """
        from mcp_memory.longterm import forgetting
        from mcp_memory.longterm.restatements import restatements
        from mcp_memory.shortterm.canvas.forgetting import agent_texts

        has_filter = bool(query or session or since or until)
        if undo:
            if ids or has_filter:
                raise InvalidInput("Give the tombstone to undo, or say what to forget: not both in one call.")
            return self._undo(undo)
        if len(one_line(reason, len(reason))) > _MAX_REASON:
            raise InvalidInput(
                f"reason has {len(reason):,} characters; it can have {_MAX_REASON}. Nothing was forgotten."
            )
        store, space = self._store, self.space
        begin, end = self._parts.parse_period(since, until)
        chosen = forgetting.chosen_ids(store, space, ids=ids, query=query, session=session, since=begin, until=end)
        if not chosen and not query:
            return Forgotten(ids=[], tombstone=None, dry_run=True, previews=[], undone=False)
        reach = store.read(space, tombstone_rows.reach_of, chosen) if chosen else Reach(turns=(), atoms=(), refs=())
        redrawn = self._redraw_canvases(reach)
        repeats = restatements(store, space, reach, agent_texts(store, space, redrawn), query=query)
        beside = self._restated_in_personal(reach)
        if also and repeats:
            chosen = [*chosen, *repeats]
            reach, repeats = store.read(space, tombstone_rows.reach_of, chosen), {}
            redrawn = self._redraw_canvases(reach)
        is_dry_run = not chosen or (dry_run if dry_run is not None else has_filter or not ids)
        previews = forgetting.previews(store, space, reach.ids[:_LISTED])
        along = forgetting.forgotten_along(store, space, reach, query=query)
        along += _forgotten_goals(redrawn, reach)
        if (more := len(repeats) + len(beside) - _ALSO) > 0:
            along.append(
                f"{more:,} more rows have the same content than the {_ALSO} that are listed; also=True or --also "
                "forgets all."
            )
        also_ids = list(repeats)[:_ALSO]
        also_previews = forgetting.previews(store, space, also_ids, written=repeats)
        tombstone = None
        if not is_dry_run:
            how = forgetting.forgetting_method(query=query, session=session, timed=bool(since or until))
            why = one_line(mask_typed(reason), _MAX_REASON)
            if also and beside and self.personal is not None:  # first: if it fails, all can be called again
                taken = self.personal._forget(beside, reason=why, how=how)
                along.append(
                    f"In the personal memory {', '.join(map(mark_id, taken.ids[:_ALSO]))} with it. To bring them back: "
                    f"forget(undo={mark_id(taken.id)!r})."
                )
                beside = []
            tombstone = self._forget(chosen, reason=why, how=how)
        if beside and self.personal is not None:
            beside = beside[: _ALSO - len(also_ids)]
            also_ids += map(mark_id, beside)
            also_previews += map(mark_id, forgetting.previews(store, self.personal.space, beside))
        forgotten = tombstone.ids if tombstone else reach.ids
        return Forgotten(
            ids=forgotten[:_LISTED],
            tombstone=tombstone.id if tombstone else None,
            dry_run=is_dry_run,
            previews=previews,
            undone=False,
            total=len(forgotten),
            along=along,
            also=also_ids,
            also_previews=also_previews,
        )

    def _restated_in_personal(self, reach: Reach) -> list[str]:
        """Return the ids of rows of the personal memory with the content of rows in `reach`."""
        from mcp_memory.longterm.restatements import restatements

        if self.personal is None:
            return []
        return [*restatements(self._store, self.space, reach, (), other_space=self.personal.space)]

    @in_thread
    def undo_correction(self, id: str) -> Forgotten:
        """Forget an explicit statement and make the statements it replaced current again. `forget(undo=…)` undoes this.

        Raises InvalidInput if it replaced nothing, was replaced itself, or a fact has another value now.
        """
        from mcp_memory.longterm import forgetting

        previews = forgetting.previews(self._store, self.space, [id])
        tombstone = self._forget([id], reason="", how="correction")
        ids = tombstone.ids
        return Forgotten(
            ids=ids, tombstone=tombstone.id, dry_run=False, previews=previews, undone=False, total=len(ids)
        )

    def _forget(self, ids: Sequence[str], *, reason: str, how: How) -> Tombstone:
        store, now = self._store, self._parts.now()

        def attempt() -> Tombstone:
            redrawn = self._redraw_canvases(store.read(self.space, tombstone_rows.reach_of, ids))
            return store.write(self.space, tombstone_rows.forget, ids, reason=reason, how=how, redrawn=redrawn, now=now)

        tombstone = _retry_conflicts(attempt)
        self._refresh()
        return tombstone

    def _redraw_canvases(self, reach: Reach) -> list[CanvasChange]:
        """Return the changed canvases, without the words of the rows that are forgotten."""
        from mcp_memory.shortterm.canvas.forgetting import remove_goals, remove_result_texts

        store, now = self._store, self._parts.now().astimezone()
        redrawn = remove_result_texts(store, self.space, reach.refs, now=now) if reach.refs else ()
        requests = {
            turn.id: turn.content
            for turn in store.read(self.space, turn_rows.by_ids, reach.turns)
            if turn.role == "user"
        }
        return remove_goals(store, self.space, turns=requests, tasks=reach.tasks, redrawn=redrawn, now=now)

    def _undo(self, undo: str) -> Forgotten:
        from mcp_memory.longterm import forgetting
        from mcp_memory.shortterm.canvas.forgetting import restore_texts

        store, now = self._store, self._parts.now()

        def attempt() -> Tombstone:
            tombstones = [row for row in store.read(self.space, tombstone_rows.tombstones) if row.id == undo]
            ids = {id for row in tombstones for id in (*row.ids, *row.took)}
            redrawn = restore_texts(store, self.space, ids) if ids else ()
            return store.write(self.space, tombstone_rows.undo, undo, redrawn=redrawn, now=now)

        tombstone = _retry_conflicts(attempt)
        self._refresh(turns=sum(id.startswith("t") for id in tombstone.ids))
        ids = tombstone.ids[:_LISTED]
        return Forgotten(
            ids=ids,
            tombstone=None,
            dry_run=False,
            previews=forgetting.previews(store, self.space, ids),
            undone=True,
            total=len(tombstone.ids),
        )

    @reading
    def tombstones(self, *, limit: int | None = None) -> list[Tombstone]:
        """Return all tombstones, or the last `limit`, oldest first, even if they are undone or purged."""
        rows = self._store.read(self.space, tombstone_rows.tombstones)
        return rows if limit is None else rows[max(0, len(rows) - limit) :]

    @reading
    def forgotten_words(self, tombstone: str, *, limit: int = 50) -> list[tuple[str, str]]:
        """Return ids and words of the rows under a tombstone, to help a person decide whether to restore them.

        Keys and passwords are masked. Restored and purged rows are left out. No tool may call this.
        """
        check_range(limit, "limit", 1, MAX_PAGE)
        return [
            (id, mask(text))
            for id, text in self._store.read(self.space, tombstone_rows.words_under, tombstone, limit=limit)
        ]

    @reading
    def still_said(self, tombstone: str) -> list[Turn]:
        """Return the turns that are kept although statements that this tombstone forgot are based on them."""
        return self._store.read(
            self.space, turn_rows.by_ids, self._store.read(self.space, tombstone_rows.still_said, tombstone)
        )

    tombstone_over = store_verb(tombstone_rows.tombstone_over)
    count_forgotten = store_verb(tombstone_rows.count_restorable)

    @in_thread
    def forget_again(self, ids: Sequence[str], *, reason: str, how: How) -> str:
        """Forget rows that a later state of this memory had forgotten; return the id of the tombstone."""
        return self._forget(ids, reason=reason, how=how).id

    @in_thread
    def purgeable(self, *, older_than: timedelta | None = None) -> list[Tombstone]:
        """Return the tombstones of this space that are neither undone nor purged, oldest first.

        With `older_than`, only tombstones of at least that age.
        """
        before = None if older_than is None else self._parts.now() - older_than
        return [
            row
            for row in self._store.read(self.space, tombstone_rows.tombstones)
            if not row.undone and not row.purged and (before is None or row.at <= before)
        ]

    @in_thread
    def unproven(self) -> bool:
        """Return whether a purge of this home was started but not verified."""
        embedded = self._parts.embedded
        return bool(embedded and embedded.unverified_purges())

    @in_thread
    def purge(self, tombstones: Sequence[str] = (), *, delete_copies: bool = False) -> PurgeReport:
        """Erase the rows of these tombstones, and search every file of the home for remains.

        Other processes may have the home open: rows and files change in one transaction, and their writes wait while
        the database is rebuilt. Their main memory is not erased. Without tombstones it finishes an interrupted purge,
        and searches the copies in the home (backups, exports, quarantine folders) for rows that earlier purges erased.
        `delete_copies` deletes copies with such rows. Raises NotFound, changing nothing, if a tombstone cannot be
        purged.
        """
        return self._purge(tombstones, delete_copies=delete_copies)

    def _purge(self, tombstones: Sequence[str], *, delete_copies: bool) -> PurgeReport:
        from mcp_memory.service.upkeep import purged_copies

        chosen = list(dict.fromkeys(tombstones))
        self._parts.recall_log.wait_until_written()  # its sessions may be named after what is erased
        store, home = self._parts.embedded, self.settings.home
        cut_short = store.unverified_purges() if store else ()
        purged, repeated = self._erase_rows(chosen)
        report = partial(
            PurgeReport,
            tombstones=purged.tombstones,
            turns=purged.turns,
            atoms=purged.atoms,
            refs=purged.refs,
            repeated=repeated,
        )
        if store is None:
            return report(shredded=False, provable=False, bucket=self.settings.objects)
        proof = None
        # Readers of an older state delay it.
        shredded = any(store.secure_delete() for _ in range(_PURGE_ATTEMPTS)) if chosen or cut_short else True
        if chosen:
            traces = Traces(purged.texts, words=purged.texts, names=purged.names)
            also_in = store.exclude_retained(traces)
            proof = prove(home, traces, texts=len(purged.texts), also_in=also_in, delete_copies=delete_copies)
        if shredded:
            store.note_verified([*cut_short, *(f"{self.space}/{id}" for id in purged.tombstones[:1])])
        copies = purged_copies.with_purged_rows(home, store)
        for path in copies if delete_copies else ():
            purged_copies.remove(path)
        names = [path.relative_to(home).as_posix() for path in copies]
        return report(
            copies=() if delete_copies else names,
            deleted=names if delete_copies else (),
            shredded=shredded,
            beside=process_registry.other_processes(home),
            proof=proof,
            cut_short=bool(cut_short),
        )

    def _erase_rows(self, tombstones: Sequence[str]) -> tuple[Purged, list[str]]:
        """Erase rows; return the counts, and the ids of results and tasks in which an agent repeats erased words."""
        from mcp_memory.longterm.persona import versions_without
        from mcp_memory.longterm.restatements import repeating
        from mcp_memory.shortterm.canvas.forgetting import agent_texts, remove_goals

        if not tombstones:
            return Purged(tombstones=(), turns=0, atoms=0, refs=0, texts=()), []
        store, now = self._store, self._parts.now()
        ids = [
            id for row in store.read(self.space, tombstone_rows.tombstones) if row.id in tombstones for id in row.ids
        ]
        personas = versions_without(store, self.space, [id for id in ids if id.startswith("a")])
        words = [
            pair for id in tombstones for pair in store.read(self.space, tombstone_rows.words_under, id, limit=_ALL)
        ]

        def attempt() -> Purged:
            # Earlier versions did not forget a goal with the turn that it was copied from.
            turns = {id: text for id, text in words if id[0] == "t"}
            redrawn = remove_goals(store, self.space, turns=turns, now=now.astimezone())
            return store.purge(self.space, Purge(tombstones=tombstones, personas=personas, redrawn=redrawn), now=now)

        purged = _retry_conflicts(attempt)
        self._refresh()
        texts = (text for id, text in words if id[0] in "ta")
        return purged, repeating(texts, agent_texts(store, self.space))

    @in_thread
    def retention(self) -> list[OverdueRows]:
        """Return the policies of the space, each with its next run and the number of rows that are overdue."""
        return overdue_rows(self._store, self.space, now=self._parts.now())

    @in_thread
    def set_retention(self, days: Mapping[Keeping, int | None]) -> None:
        """Set the days after which each kind of row is forgotten, None for never. Nothing is forgotten yet.

        Raises InvalidInput, setting nothing, for a number of days out of range.
        """
        self._set_retention(self.space, days)

    def _set_retention(self, space: str, days: Mapping[Keeping, int | None]) -> None:
        for what, number in days.items():
            if number is not None and not 1 <= number <= _MAX_DAYS:
                raise InvalidInput(f"{what} is {number} days; it can be 1 to {_MAX_DAYS:,}, or off.")
        for what, number in days.items():
            self._store.write(space, policy_rows.put_policy, what, number, now=self._parts.now())

    @in_thread
    def follow_retention(self, *, eager: bool = False) -> list[RetentionRun]:
        """Forget rows older than the policies of the space allow: at most once a day, or now with `eager`.

        This can be undone like any forgetting. Only a policy for purging purges, and only rows that a policy forgot:
        rows that a person forgot are left to that person. Raises Refused if the clock of this machine and that of the
        store differ: one of them is wrong.
        """
        store = self._store
        if not store.read(self.space, policy_rows.list_policies):
            return []
        if problem := store.clock.problem():
            raise Refused(problem)
        runs = list[RetentionRun]()
        for policy in store.write(self.space, policy_rows.start_due, now=self._parts.now(), eager=eager):
            took, tombstones = self._apply_policy(policy)
            store.write(self.space, policy_rows.note_retained, policy.what, took)
            if took:
                logger.warning("retention took %d %s after %d days", took, SafeText(policy.what), policy.days)
            runs.append(RetentionRun(policy=policy, took=took, tombstones=tombstones))
        return runs

    def _apply_policy(self, policy: Policy) -> tuple[int, list[str]]:
        store, before = self._store, self._parts.now() - timedelta(days=policy.days)
        took, tombstones = 0, list[str]()
        while ids := store.read(self.space, policy_rows.overdue, policy.what, before=before, limit=_RETENTION_BATCH):
            if policy.what == "purge":
                tombstones += self._purge(ids, delete_copies=False).tombstones
            else:
                reason = f"kept for {policy.days} days"
                tombstones.append(self._forget(ids, reason=reason, how="retention").id)
            took += len(ids)
        return took, tombstones

    @in_thread
    def spaces_with_policies(self) -> list[str]:
        """Return the spaces of the store that have a retention policy."""
        return [
            space
            for space in self._store.read_home(home_rows.spaces)
            if self._store.read(space, policy_rows.list_policies)
        ]


def _forgotten_goals(redrawn: Sequence[CanvasChange], reach: Reach) -> list[str]:
    """Return a line on the goals that are forgotten because they were copied from the user's words."""
    named = {int(task) for task in reach.tasks}
    numbers = [change.row.number for change in redrawn if change.row.label == FORGOTTEN]
    tasks = [f"{number:03}" for number in numbers if number not in named]
    what = "goal of the task" if len(tasks) == 1 else "goals of the tasks"
    return [f"The {what} {', '.join(tasks)} with it."] if tasks else []


def _retry_conflicts(attempt: Callable[[], T]) -> T:
    """Return the result of `attempt`, repeated while other writers change a canvas first.

    Raises StoreUnavailable after many attempts.
    """
    for _ in range(_ATTEMPTS):
        with suppress(Conflict):
            return attempt()
    raise StoreUnavailable("A canvas is being written to by many others at once. Nothing was changed; call again.")
