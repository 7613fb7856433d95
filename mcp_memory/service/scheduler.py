"""Scheduler of the extraction jobs: decides which stage is due, leases jobs, and applies their results.

`due` computes the jobs from rows alone, so a restart changes nothing. A job is leased in the store, so no two processes
(or an agent and a process) ask the same; a stage commits its output and its cursor in one transaction. A kill at any
point repeats at most one question and loses nothing. A job is planned, leased, answered (by the configured model or the
connected agent) and committed. Jobs that need no model (a batch of small talk, drafts that resemble nothing stored) are
committed at once. A failed job is parked with its error and retried later, in smaller pieces, ever less often; its
cursor stays.

The background thread runs due jobs with the configured model, for all spaces of the store, open or not. It claims the
space that has been due longest (`Store.claim_space`), so the threads of all processes share the spaces; runs one job of
it; and releases it, due now if there was a job, else when time will make one due. The bell only wakes it.

Extraction is due for a session when it has fallen silent and enough turns of the space are unread; fewer are read after
a week. It is due at once when one question is full, or on request. Each question repeats its instructions, so few
large ones cost a fraction of many small ones, and until then the turns are found word for word.
(Upstream asks every 5 turns, and after 1, 2 and 4 of each session.) Merging waits for some drafts, for one question
serves many. Scenes are written when enough is new, and not too often; the persona when `trigger` says so. There is at
most one question per ten turns, after the first few: anything beyond waits. Requests (`flush`, or `eager`) do not wait.

Tasks have their own budget, since they make many results and few turns: at most one question per 25 records. Results
with a poor summary wait until they fill a question; a canvas is reviewed when it has grown by as much, or its task is
done. A task that was not touched for some days is left alone.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, cast

from pydantic import BaseModel

from mcp_memory.core import telemetry
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError, ModelFailed, NoUsableReply, Refused
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Stage
from mcp_memory.longterm.search.search import Search, SearchContext
from mcp_memory.models.llm import parse
from mcp_memory.models.metered import AnyStage, Applied, MeteredModel, ModelQuestion
from mcp_memory.service.indexing import Indexing
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import DISTIL, Backlog, Conflict, Done, Draft, PersonaPage, StageState, Work


@cache
def _stages() -> dict[Stage, AnyStage]:
    from mcp_memory.longterm.extraction import EXTRACT
    from mcp_memory.longterm.merging import MERGE
    from mcp_memory.longterm.persona import PERSONA
    from mcp_memory.longterm.scene_stage import SCENES
    from mcp_memory.shortterm.canvas_stage import CANVAS
    from mcp_memory.shortterm.summary_stage import SUMMARIES

    return {stage.name: stage for stage in (EXTRACT, MERGE, SCENES, PERSONA, CANVAS, SUMMARIES)}


_OVER_TIMEOUT = timedelta(minutes=2)
_LEAST_REST = timedelta(seconds=1)
_AGENT_LEASE = timedelta(minutes=20)
_AFTER_FAILURE = (timedelta(minutes=1), timedelta(minutes=10), timedelta(hours=1), timedelta(hours=6))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedJob:
    """A job that somebody holds, and its question."""

    job: Work
    stage: AnyStage
    basis: BaseModel
    question: ModelQuestion[Any]


def _model_lease(settings: Settings) -> timedelta:
    """Return a lease that outlasts a question to the model."""
    return _OVER_TIMEOUT + timedelta(seconds=settings.llm_timeout)


class Scheduler:
    """The stages of one space. Calls block and may come from any thread."""

    def __init__(
        self,
        store: Store,
        search: Search,
        indexing: Indexing,
        settings: Settings,
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._search = search
        self._indexing = indexing
        self._settings = settings
        self._space = settings.space
        self._now = now
        self.holder = secrets.token_hex(4)
        self._lease = _model_lease(settings)
        self._unfit: set[str] = set()
        self._seen_waiting: Sequence[Draft] = ()
        """Drafts that all need a question: comparing them with the stored atoms again would not change that."""

    def context(self) -> SearchContext:
        return SearchContext(
            store=self._store,
            space=self._space,
            now=self._now(),
            settings=self._settings,
            search=self._search,
            of_query=lambda text: self._indexing.of_query(text)[0],
            of_rows=self._indexing.of_rows,
        )

    # --- asking -------------------------------------------------------------------------------------

    def next(self, *, holder: str, lease: timedelta, eager: bool) -> LeasedJob | None:
        """Take the next job that needs an answer; what needs none is done on the way. None: nothing is due."""
        while True:
            for one in self._due(eager=eager):
                leased = self._take(one, holder=holder, lease=lease, eager=eager)
                if isinstance(leased, LeasedJob):
                    return leased
                if leased is not None:  # it was done without a question, and may have made others due
                    break
            else:
                return None

    def for_agent(self, holder: str) -> LeasedJob | None:
        return self.next(holder=holder, lease=_AGENT_LEASE, eager=True)

    def _due(self, *, eager: bool) -> Iterator[DueStage]:
        return due(self._store, self._space, self._settings, self._now(), eager=eager)

    def _take(self, due: DueStage, *, holder: str, lease: timedelta, eager: bool) -> LeasedJob | Applied | None:
        stage, session = _stages()[due.stage], due.session
        context = self.context()
        if due.waiting and due.waiting == self._seen_waiting:
            return None
        left = [job for job in self._store.jobs(self._space, stage=stage.name) if job.session == session]
        smaller = left[0].attempts if left else 0
        basis = stage.plan(context, session=session, smaller=smaller)
        if basis is None:
            return None
        question = stage.question(context, basis)
        if question is not None and due.waiting:
            self._seen_waiting = due.waiting
            return None
        job = self._store.lease_job(
            self._space,
            stage.name,
            session,
            basis.model_dump_json(),
            holder=holder if question is not None else "",
            lease=lease,
            now=context.now,
            eager=eager,
        )
        if job is None:
            return None
        if question is not None:
            return LeasedJob(job=job, stage=stage, basis=basis, question=question)
        try:
            return self._apply(context, job, stage, basis, None)
        except Conflict:  # another process was faster, and this did nothing
            return Applied(outcome={})

    # --- answering ----------------------------------------------------------------------------------

    def answer(self, id: str, reply: str) -> Applied:
        """Apply a reply given from outside.

        Raises InvalidInput when it does not fit, Conflict when the job is done or another's, NotFound.
        """
        job = self._store.job(self._space, id)
        if job.state == "done":
            raise Conflict(f"{job.id} was answered already.")
        stage = _stages()[job.stage]
        basis = stage.basis.model_validate_json(job.basis)
        return self._apply(self.context(), job, stage, basis, parse(reply, stage.reply))

    def ask(self, asked: LeasedJob, model: MeteredModel) -> None:
        """Have the model answer and apply it.

        Raises ModelFailed, with the job parked, and Refused, with the job given back.
        """
        try:
            model.complete(
                asked.question,
                use=lambda reply: self._apply(self.context(), asked.job, asked.stage, asked.basis, reply),
            )
        except ModelFailed as failure:
            self.park(asked.job, str(failure))
            raise
        except Conflict:
            pass  # another process was faster; the rows show the due stages
        except Refused:
            self._store.release_job(self._space, asked.job.id)
            raise

    def returned(self, id: str, reason: str) -> bool:
        """Note that a reply given from outside was unfit; return whether another may be given, or it is parked."""
        if id not in self._unfit:
            self._unfit.add(id)
            return True
        self._unfit.discard(id)
        self.park(self._store.job(self._space, id), reason)
        return False

    def park(self, job: Work, error: str) -> None:
        wait = _AFTER_FAILURE[min(job.attempts, len(_AFTER_FAILURE) - 1)]
        self._store.park_job(self._space, job.id, error=one_line(mask(error), 400), wait=wait)

    def _apply(
        self, context: SearchContext, job: Work, stage: AnyStage, basis: BaseModel, reply: BaseModel | None
    ) -> Applied:
        applied = stage.apply(context, job, basis, _masked(reply))
        self._indexing.stored()
        if stage.name in ("merge", "scenes", "persona"):
            self.write_persona()
        return applied

    def write_persona(self) -> None:
        """Update the page and its file: without a model it lists explicit statements."""
        from mcp_memory.longterm import persona as l3_page

        store, space = self._store, self._space
        if l3_page.due(store, space) is None:
            return
        held = store.persona(space)
        if held is None or not held.by_model:
            store.commit(space, None, PersonaPage(text=l3_page.listed_page(store, space)), outcome={}, now=self._now())
        written, page = None, l3_page.whole(store, space)
        while written != page:  # another may have changed it and written it since it was read
            store.write_persona_file(space, page)
            written, page = page, l3_page.whole(store, space)

    # --- the model's rounds -------------------------------------------------------------------------

    def run(self, model: MeteredModel, *, eager: bool = False) -> bool:
        """Run one due job with the model; False when there is none.

        Raises ModelFailed, with the job parked, and Refused when the model may not be asked now.
        """
        asked = self.next(holder=self.holder, lease=self._lease, eager=eager)
        if asked is not None:
            self.ask(asked, model)
        return asked is not None

    def step(self, model: MeteredModel) -> bool | None:
        """Run one possible job, as `run` does, unless a worker has claimed the space: then return None."""
        if next(self._due(eager=True), None) is None:
            return False
        claim = self._store.claim_space(DISTIL, lease=self._lease, space=self._space)
        if claim is None:
            return None
        try:
            return self.run(model, eager=True)
        finally:
            self._store.release_space(claim, again=timedelta(0))

    def serve(self, model: MeteredModel) -> timedelta:
        """Run one due job of a space that is claimed; return after how long to look at it again."""
        if self.run(model):
            return timedelta(0)
        now = self._now()
        waits = [one.at - now for one in planned(self._store, self._space, self._settings, now) if one.at > now]
        retry = self._store.next_retry(self._space)
        return max(_LEAST_REST, min([*waits, *([] if retry is None else [retry]), _LONGEST_REST]))


def _masked(value: Any) -> Any:
    """Return a reply without secrets: whoever answers may have seen more than was asked."""
    match value:
        case BaseModel():
            return value.model_copy(update={name: _masked(getattr(value, name)) for name in type(value).model_fields})
        case str():
            return mask(value)
        case list():
            return [_masked(item) for item in cast("list[Any]", value)]
        case _:
            return value


logger = logging.getLogger(__name__)

_EVERY_S = 15.0  # silence has no bell
_REFUSED_S = 60.0
_SETTLE_S = 0.5  # turns come in bursts
_CLOSING_S = 2.0


class SchedulerThread:
    """Serves the due spaces of a store. `start()` and `close()` belong to `open_memory`."""

    def __init__(
        self, store: Store, scheduler_of: Callable[[str], Scheduler], model: MeteredModel, settings: Settings
    ) -> None:
        self._store = store
        self._scheduler_of = scheduler_of
        self._model = model
        self._lease = _model_lease(settings)
        self._bell = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ring(self) -> None:
        """Tell it that there may be something to do."""
        self._bell.set()

    def close(self) -> None:
        """Stop after the step at hand, or in the middle of a model's answer: its job is leased again later."""
        self._stop.set()
        self._bell.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_CLOSING_S)

    def _run(self) -> None:
        is_open, failure = False, ""
        while not self._stop.is_set():
            self._bell.clear()
            wait = _REFUSED_S
            try:
                if not is_open:
                    self._store.open_queue(DISTIL)
                    is_open = True
                wait = 0.0 if self._serve_next() else _EVERY_S
                failure = ""
            except Refused as refused:
                logger.info("the scheduler waits: %s", refused)
            except McpMemoryError as error:
                if str(error) != failure and not self._stop.is_set():
                    logger.warning("the scheduler waits: %s", error)
                failure = str(error)
            except Exception:
                if not self._stop.is_set():  # a store that closes under it is no fault
                    logger.exception("the scheduler failed")
            if wait and self._bell.wait(wait):
                self._stop.wait(_SETTLE_S)

    def _serve_next(self) -> bool:
        """Serve the space that has been due longest. Return False if there is none, or models are paused.

        What fails at one space does not keep it from the others, but for the model, which is the same for all.
        """
        claim = None if self._store.paused() else self._store.claim_space(DISTIL, lease=self._lease)
        if claim is None:
            return False
        again = timedelta(seconds=_REFUSED_S)
        try:
            with telemetry.worker_span("distil", claim_age=claim.age):
                again = self._scheduler_of(claim.space).serve(self._model)
        except NoUsableReply as failure:  # its job is parked
            again = timedelta(0)
            logger.info("a job waits: %s", failure)
        except (ModelFailed, Refused):
            raise
        except McpMemoryError as error:
            logger.warning("a space waits for the scheduler: %s", error)
        except Exception:
            logger.exception("the scheduler failed at a space")
        finally:
            self._store.release_space(claim, again=again)
        return True


# The least input of a question.
DRAFTS = 24
NEW_ATOMS = 40
TURNS_A_QUESTION, FIRST = 11, 4  # the promise is ten; the first few and corrections come on top
LATEST = timedelta(days=7)  # after which fewer turns or drafts are enough; until then, search finds each by itself
_LATEST_SCENES = timedelta(days=14)  # the same for statements that no page tells
_FIRST_SCENES, _FIRST_ATOMS = timedelta(days=1), 20  # the same for the first pages: of fewer all is soon rewritten
_LONGEST_REST = timedelta(days=1)
RECORDS_A_QUESTION = 25
REST = timedelta(hours=1)  # after which a task's results wait for no more
_ALL = 10_000  # rows that are counted
SOME = 3  # least results for a question then, or if all are requested: one or two are read as fast as their summary


@dataclass(frozen=True, slots=True, kw_only=True)
class DueStage:
    """A stage that is due, now or at a later moment if nothing is written until then."""

    stage: Stage
    session: str | None = None
    at: datetime = field(compare=False)
    waiting: Sequence[Draft] = field(default=(), compare=False)
    """Of a merge: the drafts, where they are not worth a question yet; only those that need none are merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJobs:
    """What there is to ask a model about, beside what its answers will add."""

    unread: Mapping[str, int] = field(default_factory=dict[str, int])
    """The position of the first turn that was not read, by session."""
    drafts: int = 0
    """Statements to merge."""
    atoms: int = 0
    """Statements that are in no scene yet."""
    results: int = 0
    canvases: int = 0
    persona: bool = False


def due(store: Store, space: str, settings: Settings, now: datetime, *, eager: bool = False) -> Iterator[DueStage]:
    """Yield the due stages, those nearest to completion first. `eager`: all possible ones, without waiting."""
    return (one for one in planned(store, space, settings, now, eager=eager) if one.at <= now)


def planned(store: Store, space: str, settings: Settings, now: datetime, *, eager: bool = False) -> Iterator[DueStage]:
    """Yield the stages that are due, and those that time alone will make due."""
    log: dict[Stage, Done] = {done.stage: done for done in store.stage_logs(space)}
    yield from _of_talk(store, space, settings, now, log, eager=eager)
    yield from _of_tasks(store, space, settings, now, log, eager=eager)


def unread(store: Store, space: str) -> list[Backlog]:
    """Return the sessions with turns to read. An assistant's last words are read with the reply to them."""
    return [one for one in store.backlog(space) if one.asked > 0 or one.turns > 2]


def waiting_jobs(store: Store, space: str, settings: Settings, now: datetime) -> WaitingJobs:
    """Return the work that a model would be asked to do if all possible jobs were run now."""
    from mcp_memory.longterm import persona as l3_persona
    from mcp_memory.shortterm import canvas_stage, summary_stage

    scenes = store.stage_states(space).get("scenes")
    thin = [] if settings.llm_summaries == "none" else summary_stage.thin(store, space, now, limit=_ALL)
    drawn = [] if settings.llm_canvas == "none" else canvas_stage.grown(store, space, now, eager=True)
    return WaitingJobs(
        unread={one.session: one.start for one in unread(store, space)},
        drafts=len(store.drafts(space, limit=_ALL)),
        atoms=len(store.atoms_since(space, scenes.position if scenes else 0, limit=_ALL, sentences=False)),
        results=len(thin) if len(thin) >= SOME else 0,
        canvases=len(drawn),
        persona=l3_persona.trigger(store, space, settings) is not None,
    )


def _after(last: datetime, span: timedelta, now: datetime) -> datetime:
    """Return the moment a span after another one; now if that is far ahead: a clock may have been set back."""
    return now if last - now >= span else last + span


def _of_talk(
    store: Store, space: str, settings: Settings, now: datetime, log: Mapping[Stage, Done], *, eager: bool
) -> Iterator[DueStage]:
    from mcp_memory.longterm import persona as l3_persona

    states = store.stage_states(space)
    scenes = states.get("scenes")
    new = store.atoms_since(space, scenes.position if scenes else 0, limit=2 * NEW_ATOMS, sentences=False)
    waiting = unread(store, space)
    if not eager and not _affordable(log, waiting):
        flushed = (one.session for one in waiting if one.flush > one.start)
        yield from (DueStage(stage="extract", session=session, at=now) for session in flushed)
        return
    if len(new) >= 2 * NEW_ATOMS:  # a long backlog must not delay scenes of atoms extracted so far
        yield DueStage(stage="scenes", at=now)
    drafts = store.drafts(space, limit=DRAFTS)
    if drafts:  # an extraction shows what is held
        yield DueStage(stage="merge", at=now, waiting=drafts)
    enough = sum(one.asked for one in waiting) >= _enough(log, settings)
    for one in reversed(waiting) if eager else waiting:  # a whole history is best read as it was lived
        ready = now if eager else _ready(one, settings, now, enough=enough)
        yield DueStage(stage="extract", session=one.session, at=ready)
    if drafts:
        at = now if eager else _gathered(drafts, states.get("merge"), log.get("extract"), now)
        yield DueStage(stage="merge", at=at)
    if (at := _scenes(store, space, settings, scenes, new, now, eager=eager)) is not None:
        yield DueStage(stage="scenes", at=at)
    if l3_persona.trigger(store, space, settings) is not None:
        yield DueStage(stage="persona", at=now)


def _affordable(log: Mapping[Stage, Done], waiting: Sequence[Backlog]) -> bool:
    """Return whether another question keeps to the promise."""
    read = log["extract"].outcome.get("turns", 0) if "extract" in log else 0
    turns = read + sum(one.turns for one in waiting)
    asked = sum(done.asked for stage, done in log.items() if stage not in _TASKS)
    return asked < FIRST + turns / TURNS_A_QUESTION


def _gathered(drafts: Sequence[Draft], state: StageState | None, extracted: Done | None, now: datetime) -> datetime:
    """Return when the drafts that wait are worth a question: they are many, were asked for, or have waited long."""
    if (state is not None and state.wanted) or len(drafts) >= DRAFTS or extracted is None:
        return now
    return _after(extracted.last, LATEST, now)


_FIRST_TURNS = 2  # of the user; a new user sees soon what a session gives


def _enough(log: Mapping[Stage, Done], settings: Settings) -> int:
    """Return how many turns of the user are worth a question."""
    return settings.every_turns if "extract" in log else min(_FIRST_TURNS, settings.every_turns)


def _ready(backlog: Backlog, settings: Settings, now: datetime, *, enough: bool) -> datetime:
    """Return when a session is read; `enough` tells whether the unread turns of the space are worth a question."""
    if backlog.flush > backlog.start or backlog.turns >= settings.batch_turns:
        return now
    return _after(backlog.last, timedelta(seconds=settings.idle_seconds) if enough else LATEST, now)


def _scenes(
    store: Store,
    space: str,
    settings: Settings,
    state: StageState | None,
    new: Sequence[Atom],
    now: datetime,
    *,
    eager: bool,
) -> datetime | None:
    """Return when scenes are written, or looked at whether they have to be."""
    from mcp_memory.longterm.scenes import is_stale

    if state is not None and state.wanted:
        return now
    start = now
    if state is not None and not eager:
        start = max(now, _after(state.at, timedelta(seconds=settings.scenes_interval), now))
    if not new:
        return start if start > now or is_stale(store, space) else None
    if eager or len(new) >= NEW_ATOMS:
        return start
    latest = _FIRST_SCENES if state is None and len(new) >= _FIRST_ATOMS else _LATEST_SCENES
    return max(start, _after(new[0].learned_at, latest, now))


# --- tasks ------------------------------------------------------------------------------------------

_TASKS: tuple[Stage, ...] = ("canvas", "summaries")


def _of_tasks(
    store: Store, space: str, settings: Settings, now: datetime, log: Mapping[Stage, Done], *, eager: bool
) -> Iterator[DueStage]:
    from mcp_memory.shortterm import canvas_stage, summary_stage

    asked = sum(log[stage].asked for stage in _TASKS if stage in log)
    if not eager and asked >= 1 + store.recorded(space) / RECORDS_A_QUESTION:
        return
    if settings.llm_summaries != "none":
        thin = summary_stage.thin(store, space, now)
        if len(thin) >= SOME:
            many = eager or len(thin) >= summary_stage.AT_ONCE
            yield DueStage(stage="summaries", at=now if many else _after(thin[-1].record.timestamp, REST, now))
    if settings.llm_canvas != "none" and canvas_stage.grown(store, space, now, eager=eager):
        yield DueStage(stage="canvas", at=now)
