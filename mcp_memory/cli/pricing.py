"""Estimates of the calls, tokens and dollars that a command costs, printed before a model is asked.

The estimate is rather high (`integrations.importers.report`). At a terminal the user has to agree. Programs cannot
answer, so the command goes on; the caps on tokens hold for them too.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import ask, say, settings, settings_of_a_memory
from mcp_memory.cli.terminal import plural
from mcp_memory.core.types import NewTurn, Turn

if TYPE_CHECKING:
    from mcp_memory.integrations.importers.report import CostEstimate, HistorySize
    from mcp_memory.service.due_stages import WaitingJobs
    from mcp_memory.service.memory import Memory

_PAGE = 1_000  # turns


def distilling_cost() -> CostEstimate | None:
    """Estimate the cost of all waiting jobs; None where no model is set."""
    from mcp_memory.integrations.importers.report import HistorySize

    async def waiting(memory: Memory) -> tuple[WaitingJobs, list[Turn]]:
        jobs, unread = await memory.waiting_jobs(), list[Turn]()
        for session, start in jobs.unread.items():
            while turns := await memory.session_turns(session, start=start, limit=_PAGE):
                unread += turns
                start = turns[-1].position + 1
        return jobs, unread

    chosen = settings_of_a_memory()
    if chosen.llm == "none":
        return None
    jobs, unread = ask(waiting)
    size = HistorySize(chosen.batch_turns)
    for turn in unread:
        size.add(turn.session, NewTurn(role=turn.role, content=turn.content, said_at=turn.said_at, name=turn.name))
    return _estimate(size, jobs)


def persona_cost() -> CostEstimate | None:
    """Estimate the cost of a new persona; None where no model is set."""
    from mcp_memory.integrations.importers.report import HistorySize
    from mcp_memory.service.due_stages import WaitingJobs

    return _estimate(HistorySize(settings().batch_turns), WaitingJobs(persona=True))


def _estimate(size: HistorySize, waiting: WaitingJobs) -> CostEstimate | None:
    from mcp_memory.integrations.importers.report import estimate_cost
    from mcp_memory.models.llm import price

    return estimate_cost(size, settings(), price, beside=waiting)


def cost_line(what: str, cost: CostEstimate) -> str:
    """Return the estimate as a sentence that begins with `what` takes it."""
    dollars = "the price is not known" if cost.price is None else f"about ${cost.price:,.2f}"
    if cost.days is None:
        caps = " The caps on tokens allow no calls."
    else:
        caps = f" With the caps on tokens it takes {plural(cost.days, 'day')}." if cost.days > 1 else ""
    return (
        f"{what} takes about {plural(cost.questions, 'call')} of {cost.model}: {cost.prompt_tokens:,} tokens in and "
        f"{cost.completion_tokens:,} out, {dollars}.{caps}"
    )


def agree(what: str, cost: CostEstimate | None, *, yes: bool) -> None:
    """Tell the price and, at a terminal, ask; ends the command for any answer but yes."""
    if cost is None or not cost.questions:
        return
    say(cost_line(what, cost), err=True)
    if not yes and sys.stdin.isatty():
        click.confirm("Go on?", abort=True, err=True)
