"""What the stages of the pyramid and of the canvas store, each with the end of its job and its cursor."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from mcp_memory.store.sql import canvases, drafts, jobs, personas, records, scenes
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.values import (
    CanvasPatch,
    Committed,
    Extraction,
    Merge,
    Outcome,
    PersonaPage,
    SceneChanges,
    StageOutput,
    Summaries,
)

__all__ = ["commit"]


def commit(tx: Transaction, work: str | None, output: StageOutput, *, outcome: Outcome, now: datetime) -> Committed:
    tx.make_space()
    job = None if work is None else jobs.finish(tx, work, outcome=outcome, now=now)
    match output:
        case Extraction():
            drafts.add(tx, job, output)
        case Merge():
            return Committed(atoms=drafts.merge(tx, job, output, now=now))
        case SceneChanges():
            scenes.change(tx, job, output, now=now)
        case PersonaPage():
            return Committed(version=personas.put(tx, job, output, now=now))
        case CanvasPatch():
            canvases.patch(tx, job, output.changes)
        case Summaries():
            records.amend(tx, job, output, now=now)
        case _:
            assert_never(output)
    return Committed()
