"""A stage of the short-term side as tests put it to somebody: the question in words, and what comes of a reply."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from mcp_memory.core.config import Settings
from mcp_memory.models.llm import parse
from mcp_memory.models.metered import AnyStage, Applied, StageContext
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import job_rows
from mcp_memory.store.values import Work
from tests.shortterm.agent import START


def context_at(store: Store, now: datetime | None = None) -> StageContext[Store]:
    return StageContext(store=store, space="default", now=now or START + timedelta(hours=2), settings=Settings())


@dataclass(frozen=True)
class Asking:
    """A work of the stage, taken. `text` is the question as a model sees it."""

    context: StageContext[Store]
    stage: AnyStage
    work: Work
    basis: Any
    text: str

    @classmethod
    def of(cls, stage: AnyStage, context: StageContext[Store]) -> Asking | None:
        """Plan the stage and take its work; None where nothing is due or nobody has to be asked."""
        basis = stage.plan(context, session=None, smaller=0)
        question = None if basis is None else stage.question(context, basis)
        if basis is None or question is None:
            return None
        work = context.store.write(
            context.space, job_rows.lease, stage.name, None, basis.model_dump_json(), holder="h", lease=timedelta(hours=1),
            now=context.now,
        )  # fmt: skip
        assert work is not None
        return cls(context, stage, work, basis, question.messages[-1].text)

    def answer(self, reply: Any) -> Applied:
        return self.stage.apply(self.context, self.work, self.basis, parse(json.dumps(reply), self.stage.reply))


def asked(stage: AnyStage, store: Store, now: datetime | None = None) -> Asking:
    """Take the work of a stage that is due."""
    found = Asking.of(stage, context_at(store, now))
    assert found is not None
    return found
