"""Hands out works and takes answers, whoever gives them: the configured model, or the connected agent.

A work is planned, leased, asked and applied. What needs no model (a batch of chatter, drafts that resemble nothing
held) is applied on the spot. What fails is parked with its error and tried again later, in smaller pieces, ever
less often; its cursor stays where it is.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, cast

from pydantic import BaseModel

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, ModelFailed, Refused
from mcp_memory.core.secrets import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Stage
from mcp_memory.longterm.desk import Desk
from mcp_memory.longterm.search.search import Search
from mcp_memory.models.metered import Metered, Question
from mcp_memory.models.replies import parse
from mcp_memory.models.stage import AnyStage, Applied
from mcp_memory.service.indexing import Indexing
from mcp_memory.service.pipeline.due import DRAFTS, due, gathered
from mcp_memory.store.protocol import Conflict, Draft, Store, Work

__all__ = ["Asked", "Pipeline"]


@cache
def _stages() -> dict[Stage, AnyStage]:
    from mcp_memory.longterm.l1_atoms.extract import EXTRACT
    from mcp_memory.longterm.l1_atoms.merge import MERGE
    from mcp_memory.longterm.l2_scenes.write import SCENES
    from mcp_memory.longterm.l3_persona.write import PERSONA
    from mcp_memory.shortterm.stages.canvas import CANVAS
    from mcp_memory.shortterm.stages.summaries import SUMMARIES

    return {stage.name: stage for stage in (EXTRACT, MERGE, SCENES, PERSONA, CANVAS, SUMMARIES)}


_MODEL_LEASE = timedelta(minutes=2)  # over the model's own timeout
_AGENT_LEASE = timedelta(minutes=20)
_AFTER_FAILURE = (timedelta(minutes=1), timedelta(minutes=10), timedelta(hours=1), timedelta(hours=6))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A work that somebody holds, and its question."""

    work: Work
    stage: AnyStage
    basis: BaseModel
    question: Question[Any]


class Pipeline:
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
        self._unfit: set[str] = set()
        self._seen_waiting: list[Draft] = []
        """Drafts all of which have to be asked about: comparing them with all that is held anew would tell no more."""

    def desk(self) -> Desk:
        return Desk(
            store=self._store,
            space=self._space,
            now=self._now(),
            settings=self._settings,
            search=self._search,
            of_query=lambda text: self._indexing.of_query(text)[0],
            of_rows=self._indexing.of_rows,
        )

    # --- asking -------------------------------------------------------------------------------------

    def next(self, *, holder: str, lease: timedelta, eager: bool) -> Asked | None:
        """Take the next work that needs an answer; what needs none is done on the way. None: nothing is due."""
        progress = True
        while progress:
            progress = False
            for one in due(self._store, self._space, self._settings, self._now(), eager=eager):
                taken = self._take(_stages()[one.stage], one.session, holder=holder, lease=lease, eager=eager)
                if isinstance(taken, Asked):
                    return taken
                if taken is not None:  # it was done without a question, and may have made others due
                    progress = True
                    break
        return None

    def for_agent(self, holder: str) -> Asked | None:
        return self.next(holder=holder, lease=_AGENT_LEASE, eager=True)

    def _take(
        self, stage: AnyStage, session: str | None, *, holder: str, lease: timedelta, eager: bool
    ) -> Asked | Applied | None:
        desk = self.desk()
        waiting = self._waiting() if stage.name == "merge" and not eager else None
        if waiting and waiting == self._seen_waiting:
            return None
        left = [work for work in self._store.works(self._space, stage=stage.name) if work.session == session]
        smaller = left[0].attempts if left else 0
        basis = stage.plan(desk, session=session, smaller=smaller)
        if basis is None:
            return None
        question = stage.question(desk, basis)
        if question is not None and waiting:
            self._seen_waiting = waiting
            return None
        work = self._store.take_work(
            self._space,
            stage.name,
            session,
            basis.model_dump_json(),
            holder=holder if question is not None else "",
            until=desk.now + lease,
            now=desk.now,
            eager=eager,
        )
        if work is None:
            return None
        if question is not None:
            return Asked(work=work, stage=stage, basis=basis, question=question)
        return self._apply(desk, work, stage, basis, None)

    def _waiting(self) -> list[Draft] | None:
        """Return the drafts, where they are not worth a question yet: only those that need none are to be merged."""
        if gathered(self._store, self._space, self._now()):
            return None
        return self._store.drafts(self._space, limit=DRAFTS)

    # --- answering ----------------------------------------------------------------------------------

    def answer(self, id: str, reply: str) -> Applied:
        """Apply a reply given from outside.

        Raises InvalidInput when it does not fit, Conflict when the work is done or another's, NotFound.
        """
        work = self._store.work(self._space, id)
        if work.state == "done":
            raise Conflict(f"{work.id} was answered already.")
        stage = _stages()[work.stage]
        basis = stage.basis.model_validate_json(work.basis)
        return self._apply(self.desk(), work, stage, basis, parse(reply, stage.reply))

    def ask(self, asked: Asked, model: Metered) -> None:
        """Have the model answer and apply it.

        Raises ModelFailed, with the work parked, and Refused, with the work given back.
        """
        try:
            model.complete(
                asked.question,
                use=lambda reply: self._apply(self.desk(), asked.work, asked.stage, asked.basis, reply),
            )
        except ModelFailed as failure:
            self.park(asked.work, str(failure))
            raise
        except Conflict:
            pass  # somebody else was faster; the rows say what is due now
        except Refused:
            self._store.release_work(self._space, asked.work.id)
            raise

    def returned(self, id: str, reason: str) -> bool:
        """Note that a reply given from outside was unfit; return whether another may be given, or it is parked."""
        if id not in self._unfit:
            self._unfit.add(id)
            return True
        self._unfit.discard(id)
        self.park(self._store.work(self._space, id), reason)
        return False

    def park(self, work: Work, error: str) -> None:
        wait = _AFTER_FAILURE[min(work.attempts, len(_AFTER_FAILURE) - 1)]
        self._store.park_work(self._space, work.id, error=one_line(mask(error), 400), until=self._now() + wait)

    def _apply(self, desk: Desk, work: Work, stage: AnyStage, basis: BaseModel, reply: BaseModel | None) -> Applied:
        try:
            applied = stage.apply(desk, work, basis, _masked(reply))
        except InvalidInput:
            if reply is None:
                raise AssertionError(f"{work.stage} cannot be done without a reply") from None
            raise
        self._indexing.stored()
        if stage.name in ("merge", "scenes", "persona"):
            self.write_persona()
        return applied

    def write_persona(self) -> None:
        """Bring the page up to date: without a model it lists what was told; its file has the navigation too."""
        from mcp_memory.longterm.l3_persona import page as l3_page

        store, space = self._store, self._space
        if l3_page.due(store, space) is None:
            return
        held = store.persona(space)
        if held is None or not held.by_model:
            store.put_persona(space, l3_page.page(store, space), now=self._now())
        written, page = None, l3_page.whole(store, space)
        while written != page:  # another may have changed it and written it since it was read
            store.write_persona_file(space, page)
            written, page = page, l3_page.whole(store, space)

    # --- the model's rounds -------------------------------------------------------------------------

    def step(self, model: Metered, *, eager: bool = False) -> bool | None:
        """Do one piece of due work with the model; False when there is none, None while another process is at it.

        Raises ModelFailed, with the work parked, and Refused when the model may not be asked now.
        """
        now = self._now()
        if next(due(self._store, self._space, self._settings, now, eager=eager), None) is None:
            return False  # only read so far: an idle process leaves the disk alone
        lease = _MODEL_LEASE + timedelta(seconds=self._settings.llm_timeout)
        if not self._store.hold("worker", self.holder, until=now + lease, now=now):
            return None
        try:
            asked = self.next(holder=self.holder, lease=lease, eager=eager)
            if asked is None:
                return False
            self.ask(asked, model)
            return True
        finally:
            self._store.let_go("worker", self.holder)


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
