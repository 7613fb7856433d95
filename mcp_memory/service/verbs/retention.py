"""Verbs for forgetting, purging and retention.

Forgetting takes rows and everything that quotes them out of memory, and can be undone. Purging erases forgotten rows,
and searches every byte of the home for remains. Retention policies are off until somebody sets them; an open server
follows them once a day.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mcp_memory.core.errors import InvalidInput, StoreUnavailable
from mcp_memory.core.logs import SafeText
from mcp_memory.core.secrets.masking import mask_typed
from mcp_memory.core.text import one_line
from mcp_memory.core.types import FORGOTTEN, Forgotten
from mcp_memory.service.verbs.base import Verbs, in_thread
from mcp_memory.store.values import CanvasChange, Conflict, Tombstone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_memory.core.process_registry import HomeProcess
    from mcp_memory.store.forgetting import How, Keeping, Policy, Purged, Reach
    from mcp_memory.store.purge_search import Proof

logger = logging.getLogger(__name__)

T = TypeVar("T")

_ATTEMPTS = 20
_AT_ONCE = 2_000
_MOST_DAYS = 36_500
_LISTED = 200
_ALSO = 50
_ALL = 2**31
_MAX_REASON = 200
_TRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeReport:
    """Counts of erased rows, and the verification; `beside` are the other processes that have the home open."""

    tombstones: Sequence[str]
    turns: int
    atoms: int
    refs: int
    shredded: bool
    """False where others were reading all the while: the log of writes may still have some of it. Call again."""
    beside: Sequence[HomeProcess] = ()
    proof: Proof | None = None
    """None where there were no words to look for."""
    cut_short: bool = False
    """An earlier purge was killed before its verification: its words are erased, but were not searched for."""
    provable: bool = True
    """False in PostgreSQL, whose pages, log, standbys and backups keep deleted bytes for a while, out of our sight."""
    copies: Sequence[str] = ()
    """Backups, exports and quarantine folders in the home with rows that this purge or an earlier one erased."""
    deleted: Sequence[str] = ()
    """Such copies that were deleted."""
    repeated: Sequence[str] = ()
    """Ids of retained results and tasks with a step, summary, goal or label that repeats erased words."""
    bucket: str | None = None
    """The bucket that results were deleted from; if it has versioning, it keeps the deleted versions."""

    @property
    def is_proven(self) -> bool:
        """Whether nothing of it is left in this home, copies aside, and no text of an agent repeats it."""
        is_clean = self.proof is None or not (self.proof.found or self.proof.unread)
        return self.shredded and is_clean and not self.repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class OverdueRows:
    """Rows older than a policy allows: `going` at its next run, and `staying` because statements cite them."""

    policy: Policy
    going: int
    staying: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRun:
    """What following a policy came to: how many it took, and under which tombstones."""

    policy: Policy
    took: int
    tombstones: list[str]


def _report(done: Purged) -> partial[PurgeReport]:
    return partial(PurgeReport, tombstones=done.tombstones, turns=done.turns, atoms=done.atoms, refs=done.refs)


class RetentionVerbs(Verbs):
    """Forget, undo, purge, and follow retention policies."""

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
        """Take turns, atoms and refs out of every search; with `undo`, restore those of a tombstone.

        Only rows that match all of ids, query, session and time are chosen. By ids alone it acts at once; otherwise
        it is a dry run, unless `dry_run` is False. Other rows with the same content are returned in `Forgotten.also`;
        with `also=True` they are forgotten as well. The goal of a task goes with the user's turn that it was copied
        from. A step or summary by the agent goes with its result. The id of a task, such as `003`, stands for
        its goal, and for titles, summaries and labels on its canvas that came from no step.
        """
        from mcp_memory.longterm import forgetting
        from mcp_memory.longterm.restatements import restatements
        from mcp_memory.shortterm.canvas.goals import agent_texts
        from mcp_memory.store.forgetting import Reach

        if undo:
            if ids or query or session or since or until:
                raise InvalidInput("Give the tombstone to undo, or say what to forget: not both in one call.")
            return self._undo(undo)
        if len(one_line(reason, len(reason))) > _MAX_REASON:
            raise InvalidInput(
                f"reason has {len(reason):,} characters; it can have {_MAX_REASON}. Nothing was forgotten."
            )
        parts, store = self._parts, self._parts.store
        begin, end = parts.times(since, until)
        wanted = forgetting.chosen_ids(store, self.space, ids=ids, query=query, session=session, since=begin, until=end)
        alone = bool(ids) and not (query or session or since or until)
        shows = dry_run if dry_run is not None else not alone
        if not wanted and not query:
            return Forgotten(ids=[], tombstone=None, dry_run=True, previews=[], undone=False)
        reach = store.reach(self.space, wanted) if wanted else Reach(turns=(), atoms=(), refs=())
        redrawn = self._redrawn(reach)
        said = restatements(store, self.space, reach, agent_texts(store, self.space, redrawn), query=query)
        if also and said:
            wanted = [*wanted, *said]
            reach, said = store.reach(self.space, wanted), {}
            redrawn = self._redrawn(reach)
        shows = shows or not wanted
        previews = forgetting.previews(store, self.space, reach.ids[:_LISTED])
        along = forgetting.forgotten_along(store, self.space, reach, query=query)
        along += self._about_goals(redrawn, reach)
        if len(said) > _ALSO:
            along.append(
                f"{len(said) - _ALSO:,} more rows have the same content than the {_ALSO} that are listed; also=True or"
                " --also forgets all."
            )
        also_ids = list(said)[:_ALSO]
        tombstone = None
        if not shows:
            how = forgetting.forgetting_method(query=query, session=session, timed=bool(since or until))
            tombstone = self._forget(wanted, reason=one_line(mask_typed(reason), _MAX_REASON), how=how)
        gone = tombstone.ids if tombstone else reach.ids
        return Forgotten(
            ids=gone[:_LISTED],
            tombstone=tombstone.id if tombstone else None,
            dry_run=shows,
            previews=previews,
            undone=False,
            total=len(gone),
            along=along,
            also=also_ids,
            also_previews=forgetting.previews(store, self.space, also_ids, written=said),
        )

    @in_thread
    def undo_correction(self, id: str) -> Forgotten:
        """Forget an explicit statement that replaced others, and have these hold again. `forget(undo=…)` takes it back.

        InvalidInput where it replaced nothing, was replaced itself, or a fact has another value now.
        """
        from mcp_memory.longterm import forgetting

        previews = forgetting.previews(self._parts.store, self.space, [id])
        done = self._forget([id], reason="", how="correction")
        return Forgotten(
            ids=done.ids, tombstone=done.id, dry_run=False, previews=previews, undone=False, total=len(done.ids)
        )

    def _forget(self, ids: Sequence[str], *, reason: str, how: How) -> Tombstone:
        store, now = self._parts.store, self._parts.now()

        def attempt() -> Tombstone:
            redrawn = self._redrawn(store.reach(self.space, ids))
            return store.forget(self.space, ids, reason=reason, how=how, redrawn=redrawn, now=now)

        done = self._retried(attempt)
        self._changed()
        return done

    def _redrawn(self, reach: Reach) -> list[CanvasChange]:
        """Return the canvases without the words of the rows that are forgotten."""
        from mcp_memory.shortterm.canvas.goals import without_goals
        from mcp_memory.shortterm.canvas.state import without_words

        store, now = self._parts.store, self._parts.now().astimezone()
        redrawn = without_words(store, self.space, reach.refs, now=now) if reach.refs else ()
        said = {turn.id: turn.content for turn in store.turns(self.space, reach.turns) if turn.role == "user"}
        return without_goals(store, self.space, said=said, tasks=reach.tasks, redrawn=redrawn, now=now)

    def _about_goals(self, redrawn: Sequence[CanvasChange], reach: Reach) -> list[str]:
        """Tell which goals go, because they were taken from the user's words or because their task was named."""
        named = {int(task) for task in reach.tasks}
        taken = [f"{one.row.number:03}" for one in redrawn if one.row.label == FORGOTTEN]
        taken = [number for number in taken if int(number) not in named]
        what = "goal of the task" if len(taken) == 1 else "goals of the tasks"
        return [f"The {what} {', '.join(taken)} with it."] if taken else []

    def _undo(self, undo: str) -> Forgotten:
        from mcp_memory.longterm import forgetting
        from mcp_memory.shortterm.canvas.state import with_words

        store, now = self._parts.store, self._parts.now()

        def attempt() -> Tombstone:
            ids = {id for one in store.tombstones(self.space) if one.id == undo for id in (*one.ids, *one.took)}
            redrawn = with_words(store, self.space, ids) if ids else ()
            return store.undo_forget(self.space, undo, redrawn=redrawn, now=now)

        back = self._retried(attempt)
        self._changed()
        return Forgotten(
            ids=back.ids[:_LISTED],
            tombstone=None,
            dry_run=False,
            previews=forgetting.previews(store, self.space, back.ids[:_LISTED]),
            undone=True,
            total=len(back.ids),
        )

    def _retried(self, attempt: Callable[[], T]) -> T:
        """Retry while other writers change a canvas first."""
        for _ in range(_ATTEMPTS):
            with suppress(Conflict):
                return attempt()
        raise StoreUnavailable("A canvas is being written to by many others at once. Nothing was changed; call again.")

    @in_thread
    def tombstones(self, *, limit: int | None = None) -> list[Tombstone]:
        """Return all tombstones, or the last ones, oldest first; undone and purged ones too."""
        found = self._parts.store.tombstones(self.space)
        return found if limit is None else found[max(0, len(found) - limit) :]

    @in_thread
    def purgeable(self, *, older_than: timedelta | None = None) -> list[Tombstone]:
        """Return the tombstones of this space that can still be undone, oldest first."""
        before = None if older_than is None else self._parts.now() - older_than
        return [
            one
            for one in self._parts.store.tombstones(self.space)
            if not one.undone and not one.purged and (before is None or one.at <= before)
        ]

    @in_thread
    def unproven(self) -> bool:
        """Return whether a purge of this home was begun and not verified yet."""
        embedded = self._parts.embedded
        return bool(embedded and embedded.unverified_purges())

    @in_thread
    def purge(self, tombstones: Sequence[str] = (), *, delete_copies: bool = False) -> PurgeReport:
        """Erase the rows of these tombstones, and search every file of the home for remains.

        Other processes may have the home open: rows and files change in one transaction, and their writes wait while
        the database is rebuilt. Their memory is not touched. Without tombstones it finishes an interrupted purge, and
        searches the copies in the home (backups, exports, quarantine folders) for rows that earlier purges erased.
        `delete_copies` deletes those copies.
        Raises NotFound, changing nothing, for a tombstone that cannot be purged.
        """
        return self._erase(tombstones, delete_copies=delete_copies)

    def _erase(self, tombstones: Sequence[str], *, delete_copies: bool) -> PurgeReport:
        from mcp_memory.core import process_registry
        from mcp_memory.service.upkeep import purged_copies
        from mcp_memory.store.purge_search import Traces, prove

        chosen = list(dict.fromkeys(tombstones))
        store, home = self._parts.embedded, self.settings.home
        if store is None:
            done, repeated = self._purged(chosen)
            bucket = self.settings.objects
            return _report(done)(repeated=repeated, shredded=False, provable=False, bucket=bucket)
        cut_short = store.unverified_purges()
        done, repeated = self._purged(chosen)
        proof = None
        # Readers of an older state delay it.
        shredded = any(store.secure_delete() for _ in range(_TRIES)) if chosen or cut_short else True
        if chosen:
            traces = Traces(done.texts, words=done.texts, names=done.names)
            also_in = store.exclude_retained(traces)
            proof = prove(home, traces, texts=len(done.texts), also_in=also_in, delete_copies=delete_copies)
        if shredded:
            store.note_verified([*cut_short, *(f"{self.space}/{one}" for one in done.tombstones[:1])])
        copies = purged_copies.with_purged_rows(home, store)
        for path in copies if delete_copies else ():
            purged_copies.remove(path)
        named = [path.relative_to(home).as_posix() for path in copies]
        return _report(done)(
            repeated=repeated,
            copies=() if delete_copies else named,
            deleted=named if delete_copies else (),
            shredded=shredded,
            beside=process_registry.other_processes(home),
            proof=proof,
            cut_short=bool(cut_short),
        )

    def _purged(self, tombstones: Sequence[str]) -> tuple[Purged, list[str]]:
        """Erase rows; return the counts, and the ids of results and tasks in which an agent repeats erased words."""
        from mcp_memory.longterm.persona import versions_without
        from mcp_memory.longterm.restatements import repeating
        from mcp_memory.shortterm.canvas.goals import agent_texts, without_goals
        from mcp_memory.store.forgetting import Purge, Purged

        if not tombstones:
            return Purged(tombstones=(), turns=0, atoms=0, refs=0, texts=()), []
        store = self._parts.store
        gone = [id for one in store.tombstones(self.space) if one.id in tombstones for id in one.ids]
        personas = versions_without(store, self.space, [id for id in gone if id.startswith("a")])
        now = self._parts.now()

        words = [pair for one in tombstones for pair in store.words_under(self.space, one, limit=_ALL)]

        def attempt() -> Purged:
            # Earlier versions did not forget a goal with the turn that it was copied from.
            said = {id: text for id, text in words if id[0] == "t"}
            redrawn = without_goals(store, self.space, said=said, now=now.astimezone())
            return store.purge(self.space, Purge(tombstones=tombstones, personas=personas, redrawn=redrawn), now=now)

        done = self._retried(attempt)
        self._changed()
        texts = (text for id, text in words if id[0] in "ta")
        return done, repeating(texts, agent_texts(store, self.space))

    @in_thread
    def retention(self) -> list[OverdueRows]:
        """Return the policies of the space, with what each will take; none where nothing was set."""
        store, now = self._parts.store, self._parts.now()

        def overdue(policy: Policy) -> OverdueRows:
            going, staying = store.count_overdue(self.space, policy.what, before=now - timedelta(days=policy.days))
            return OverdueRows(policy=policy, going=going, staying=staying)

        return [overdue(policy) for policy in store.policies(self.space)]

    @in_thread
    def set_retention(self, days: Mapping[Keeping, int | None]) -> None:
        """Set after how many days what goes, None for never. Nothing is forgotten yet."""
        for what, number in days.items():
            if number is not None and not 1 <= number <= _MOST_DAYS:
                raise InvalidInput(f"{what} is {number} days; it can be 1 to {_MOST_DAYS:,}, or off.")
        for what, number in days.items():
            self._parts.store.put_policy(self.space, what, number, now=self._parts.now())

    @in_thread
    def follow_retention(self, *, eager: bool = False) -> list[RetentionRun]:
        """Forget rows older than the policies of the space allow, at most once a day; `eager`: now.

        It can be undone like any forgetting. It purges only where a policy says so, and only rows that a policy
        forgot: those that a person forgot wait for that person.
        """
        store = self._parts.store
        if not store.policies(self.space):
            return []
        done = list[RetentionRun]()
        for policy in store.due_policies(self.space, now=self._parts.now(), eager=eager):
            took, tombstones = self._follow(policy)
            store.note_retained(self.space, policy.what, took)
            if took:
                logger.warning("retention took %d %s after %d days", took, SafeText(policy.what), policy.days)
            done.append(RetentionRun(policy=policy, took=took, tombstones=tombstones))
        return done

    def _follow(self, policy: Policy) -> tuple[int, list[str]]:
        store, before = self._parts.store, self._parts.now() - timedelta(days=policy.days)
        took, tombstones = 0, list[str]()
        while ids := store.overdue(self.space, policy.what, before=before, limit=_AT_ONCE):
            if policy.what == "purge":
                tombstones += self._erase(ids, delete_copies=False).tombstones
            else:
                reason = f"kept for {policy.days} days"
                tombstones.append(self._forget(ids, reason=reason, how="retention").id)
            took += len(ids)
        return took, tombstones

    @in_thread
    def spaces_with_policies(self) -> list[str]:
        """Return the spaces of the store that keep something for a while only."""
        store = self._parts.store
        return [space for space in store.spaces() if store.policies(space)]
