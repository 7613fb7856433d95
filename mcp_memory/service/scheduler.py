"""Scheduler of the extraction jobs of a space. A job is planned, leased, answered and committed.

`due_stages` decides when a stage is due. A job is leased in the store, so no two processes (or an agent and a process)
ask the same question. It is answered by the configured model or the connected agent; a stage commits its output and its
cursor in one transaction. A kill at any point repeats at most one question and loses nothing. Jobs that need no model
(a batch of small talk, drafts that resemble nothing stored) are committed at once. A failed job is parked with its
error and retried later, in smaller pieces, ever less often; its cursor stays.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, cast

from pydantic import BaseModel

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import ModelFailed, Refused
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Stage
from mcp_memory.longterm.search.search import Search, SearchContext
from mcp_memory.models.llm import parse
from mcp_memory.models.metered import AnyStage, Applied, MeteredModel, ModelQuestion
from mcp_memory.service import due_stages
from mcp_memory.service.due_stages import DueStage
from mcp_memory.service.indexing import Indexing
from mcp_memory.service.persona_page import write_persona
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import job_rows, queues
from mcp_memory.store.values import DISTIL, Conflict, Draft, Work

_LEASE_MARGIN = timedelta(minutes=2)
_AGENT_LEASE = timedelta(minutes=20)
_AFTER_FAILURE = (timedelta(minutes=1), timedelta(minutes=10), timedelta(hours=1), timedelta(hours=6))
_LEAST_REST, _LONGEST_REST = timedelta(seconds=1), timedelta(days=1)


@cache
def _stages() -> dict[Stage, AnyStage]:
    from mcp_memory.longterm.extraction import EXTRACT
    from mcp_memory.longterm.merging import MERGE
    from mcp_memory.longterm.persona_stage import PERSONA
    from mcp_memory.longterm.scene_stage import SCENES
    from mcp_memory.shortterm.canvas_stage import CANVAS
    from mcp_memory.shortterm.summary_stage import SUMMARIES

    return {stage.name: stage for stage in (EXTRACT, MERGE, SCENES, PERSONA, CANVAS, SUMMARIES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedJob:
    """A leased job, the input for which it was planned (`basis`), and its question."""

    job: Work
    basis: BaseModel
    question: ModelQuestion[Any]


def model_lease(settings: Settings) -> timedelta:
    """Return a lease that outlasts a question to the model."""
    return _LEASE_MARGIN + timedelta(seconds=settings.llm_timeout)


class Scheduler:
    """The jobs of a space. Calls block and may come from any thread."""

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
        self._holder = secrets.token_hex(4)
        self._lease = model_lease(settings)
        self._rejected: set[str] = set()
        """Jobs to which the agent has given one unusable reply."""
        self._seen_waiting: Sequence[Draft] = ()
        """Drafts that all need a question, as compared last: the comparison need not be repeated for the same
        drafts.
        """

    def context(self) -> SearchContext:
        """Return the context of the space for stages and searches, at this moment."""
        return SearchContext(
            store=self._store,
            space=self._space,
            now=self._now(),
            settings=self._settings,
            search=self._search,
            of_query=lambda text: self._indexing.of_query(text)[0],
            of_rows=self._indexing.of_rows,
        )

    # --- the connected agent ------------------------------------------------------------------------

    def lease_for_agent(self) -> LeasedJob | None:
        """Lease the next job with a question to the connected agent, due or not; None if there is no such job.

        Jobs without a question that come first are applied.
        """
        return self._lease_next(holder=f"agent {self._holder}", lease=_AGENT_LEASE, eager=True)

    def answer(self, id: str, reply: str) -> Applied:
        """Apply the agent's reply.

        Raises InvalidInput if it is unusable, Conflict if it comes too late, NotFound for an unknown job.
        """
        job = self._store.read(self._space, job_rows.by_id, id)
        if job.state == "done":
            raise Conflict(f"{job.id} was answered already.")
        stage = _stages()[job.stage]
        return self._apply(job, stage.basis.model_validate_json(job.basis), parse(reply, stage.reply))

    def reject_reply(self, id: str, reason: str) -> bool:
        """Note an unusable reply; return whether the agent may try again. The second such reply parks the job."""
        if id not in self._rejected:
            self._rejected.add(id)
            return True
        self._rejected.discard(id)
        self._park(self._store.read(self._space, job_rows.by_id, id), reason)
        return False

    # --- the configured model -----------------------------------------------------------------------

    def run(self, model: MeteredModel, *, eager: bool = False) -> bool:
        """Run one due job with the model; return False when there is none.

        Raises ModelFailed, with the job parked, if the model fails; Refused, with the job released, if it may not be
        asked.
        """
        leased = self._lease_next(holder=self._holder, lease=self._lease, eager=eager)
        if leased is None:
            return False
        try:
            model.complete(
                leased.question, use=lambda reply: self._apply(leased.job, leased.basis, reply), space=self._space
            )
        except ModelFailed as failure:
            self._park(leased.job, str(failure))
            raise
        except Conflict:
            pass  # another process was faster; the rows show the due stages
        except Refused:
            self._store.write(self._space, job_rows.release, leased.job.id)
            raise
        return True

    def step(self, model: MeteredModel) -> bool | None:
        """Run one job, due or not, as `run` does. Return None, running nothing, if a worker has claimed the space."""
        if next(self._due(eager=True), None) is None:
            return False
        claim = queues.claim_space(self._store, DISTIL, lease=self._lease, space=self._space)
        if claim is None:
            return None
        try:
            return self.run(model, eager=True)
        finally:
            self._store.write_home(queues.release, claim, again=timedelta(0))

    def serve(self, model: MeteredModel) -> timedelta:
        """Run one due job of a claimed space; return the time until the space is due again."""
        if self.run(model):
            return timedelta(0)
        now = self._now()
        stages = due_stages.planned(self._store, self._space, self._settings, now)
        waits = [stage.at - now for stage in stages if stage.at > now]
        retry = self._store.read(self._space, job_rows.next_retry)
        return max(_LEAST_REST, min([*waits, *([] if retry is None else [retry]), _LONGEST_REST]))

    # --- both ---------------------------------------------------------------------------------------

    def _due(self, *, eager: bool) -> Iterator[DueStage]:
        return due_stages.due(self._store, self._space, self._settings, self._now(), eager=eager)

    def _lease_next(self, *, holder: str, lease: timedelta, eager: bool) -> LeasedJob | None:
        """Apply due jobs that need no answer until one needs an answer; lease and return that job, or None."""
        while True:
            for due in self._due(eager=eager):
                leased = self._lease_stage(due, holder=holder, lease=lease, eager=eager)
                if isinstance(leased, LeasedJob):
                    return leased
                if leased is not None:  # applied without a question; this may have made other stages due
                    break
            else:
                return None

    def _lease_stage(self, due: DueStage, *, holder: str, lease: timedelta, eager: bool) -> LeasedJob | Applied | None:
        """Lease a job of the stage, or apply it if it needs no answer.

        Return None if there is nothing to do yet, or if the store grants no lease.
        """
        if due.waiting and due.waiting == self._seen_waiting:
            return None
        stage, context = _stages()[due.stage], self.context()
        parked = [
            job
            for job in self._store.read(self._space, job_rows.list_jobs, stage=stage.name)
            if job.session == due.session
        ]
        basis = stage.plan(context, session=due.session, smaller=parked[0].attempts if parked else 0)
        if basis is None:
            return None
        question = stage.question(context, basis)
        if question is not None and due.waiting:
            self._seen_waiting = due.waiting
            return None
        job = self._store.write(
            self._space,
            job_rows.lease,
            stage.name,
            due.session,
            basis.model_dump_json(),
            holder=holder if question is not None else "",
            lease=lease,
            now=context.now,
            eager=eager,
        )
        if job is None:
            return None
        if question is not None:
            return LeasedJob(job=job, basis=basis, question=question)
        try:
            return self._apply(job, basis, None)
        except Conflict:  # another process was faster, and nothing was written
            return Applied(outcome={})

    def _apply(self, job: Work, basis: BaseModel, reply: BaseModel | None) -> Applied:
        applied = _stages()[job.stage].apply(self.context(), job, basis, _mask_reply(reply))
        self._indexing.stored()
        if job.stage in ("merge", "scenes", "persona"):
            write_persona(self._store, self._space, self._now())
        return applied

    def _park(self, job: Work, error: str) -> None:
        wait = _AFTER_FAILURE[min(job.attempts, len(_AFTER_FAILURE) - 1)]
        self._store.write(self._space, job_rows.park, job.id, error=one_line(mask(error), 400), wait=wait)


def _mask_reply(value: Any) -> Any:
    """Return a reply without secrets: whoever answers may have seen more than the question."""
    match value:
        case BaseModel():
            fields = {name: _mask_reply(getattr(value, name)) for name in type(value).model_fields}
            return value.model_copy(update=fields)
        case str():
            return mask(value)
        case list():
            return [_mask_reply(item) for item in cast("list[Any]", value)]
        case _:
            return value
