"""Verbs whose answers fit their token budget in every form they are passed on in: as text and as JSON.

The verbs of the same subject elsewhere return rows, or limit only the words they return. Here headings, fences and
notes count exactly too: this is the answer for an MCP client, and for any program that shows `render(answer)`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio.to_thread

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import (
    Bundle,
    CanvasView,
    Detail,
    Expansion,
    ShownMemories,
    ShownTurns,
)
from mcp_memory.service.verbs.base import in_thread
from mcp_memory.service.verbs.longterm import MAX_BUDGET, LongtermVerbs
from mcp_memory.service.verbs.tasks import TaskVerbs

if TYPE_CHECKING:
    from mcp_memory.service.excerpts import ExcerptRequest
    from mcp_memory.service.render import Answer

Results = TypeVar("Results")
Shown = TypeVar("Shown", ShownTurns, ShownMemories)
Framed = TypeVar("Framed", Bundle, CanvasView, Expansion)

FRAME_TOKENS = 40
"""About as many tokens as `render` adds to a text."""
_TOKENS_A_LEFT_OUT = 50
"""One id of a left out row is listed for each of this many tokens of the budget."""


class AnswerVerbs(LongtermVerbs, TaskVerbs):
    """Search, recall, expand and show a canvas within a budget."""

    async def conversation_excerpts(
        self, query: str = "", *, detail: Detail = "concise", budget_tokens: int | None = None, **filters: Any
    ) -> ShownTurns:
        """Return a page of `conversation_search`, whose other arguments are `filters`, as excerpts within the budget.

        Without a budget the answer is about as long as `excerpts.BUDGETS` says. InvalidInput where not one hit fits.
        """
        from mcp_memory.service.excerpts import shown_turns

        results = await self.conversation_search(query, **filters)
        return await self._excerpts(shown_turns, results, query, detail, budget_tokens)

    async def memory_excerpts(
        self, query: str = "", *, detail: Detail = "concise", budget_tokens: int | None = None, **filters: Any
    ) -> ShownMemories:
        """Return a page of `memory_search` as `conversation_excerpts` does for turns."""
        from mcp_memory.service.excerpts import shown_memories

        results = await self.memory_search(query, **filters)
        return await self._excerpts(shown_memories, results, query, detail, budget_tokens)

    async def _excerpts(
        self,
        show: Callable[[Results, ExcerptRequest], Shown],
        results: Results,
        query: str,
        detail: Detail,
        budget: int | None,
    ) -> Shown:
        from mcp_memory.service.excerpts import ExcerptRequest

        asked = ExcerptRequest(query=query, detail=detail, counter=self._parts.counter, budget=budget)
        return await anyio.to_thread.run_sync(show, results, asked)

    async def recall_answer(self, query: str = "", *, session: str | None = None, budget_tokens: int = 1200) -> Bundle:
        """Return what `recall` finds, within the budget. InvalidInput names a budget that holds some of it.

        A conversation keeps earlier answers, so a question of a session gets the same stable block once an hour.
        """

        def recall(budget: int) -> Bundle:
            named = session if query.strip() else None
            return self._recalled(query, session, budget, has_stable=partial(self._has_stable, named))

        async def recalled(budget: int) -> Bundle:
            found = await anyio.to_thread.run_sync(recall, budget)
            named = max(1, budget_tokens // _TOKENS_A_LEFT_OUT)
            return replace(found, left_out=[*found.left_out[:named], *(["…"] if len(found.left_out) > named else [])])

        # As JSON, line ends and quotation marks take more.
        first = budget_tokens - FRAME_TOKENS - budget_tokens // 20
        found = await self._within(recalled, budget_tokens, first=first, also_as_json=True)
        enough = budget_tokens
        while found.left_out and not (found.stable or found.dynamic) and enough < MAX_BUDGET:
            enough = min(enough * 3 // 2, MAX_BUDGET)
            found = await recalled(enough - FRAME_TOKENS)  # empty if the rows were forgotten meanwhile
        if enough > budget_tokens and (found.stable or found.dynamic):
            raise InvalidInput(
                f"budget_tokens={budget_tokens} holds nothing of what was found. Ask again with budget_tokens={enough}."
            )
        logged = await anyio.to_thread.run_sync(self._logged, "recall", query, session, found)
        self._note_stable(session, found)
        self._note_promises(session, found)
        return logged

    async def expand_answer(
        self, *, node: str | None = None, ref: str | None = None, max_tokens: int = 2000, **view: Any
    ) -> Expansion:
        """Return what `expand_node`, whose other arguments are `view`, opens of a node or a ref, within the budget."""
        if (node is None) == (ref is None):
            raise InvalidInput("expand_node takes either node (such as 003-N4) or ref (such as r-9f2c1a7b3d4e).")

        async def expanded(budget: int) -> Expansion:
            return await self.expand_node(node or ref or "", max_tokens=budget, **view)

        return await self._within(expanded, max_tokens, first=max_tokens - FRAME_TOKENS)

    async def canvas_answer(
        self,
        *,
        task: str | None = None,
        nodes: Sequence[str] = (),
        action: Literal["show", "fold", "unfold", "complete", "switch"] = "show",
        budget_tokens: int | None = None,
        session: str | None = None,
    ) -> CanvasView:
        """Do as `fold_canvas` does, and return the canvas within the budget."""
        done = await self.fold_canvas(
            task=task, nodes=nodes, action=action, budget_tokens=budget_tokens, session=session
        )
        if budget_tokens is None:
            return done

        async def shown(budget: int) -> CanvasView:
            return done if budget == budget_tokens else await self.fold_canvas(task=done.canvas, budget_tokens=budget)

        return await self._within(shown, budget_tokens, first=budget_tokens)

    async def _within(
        self, ask: Callable[[int], Awaitable[Framed]], budget: int, *, first: int, also_as_json: bool = False
    ) -> Framed:
        """Return an answer whose text, and JSON where asked for, fits the budget, counted exactly.

        `ask` is given how many tokens the text may take: `first`, then as many less as the whole was over. InvalidInput
        where no room is left for the text.
        """
        room = first = max(1, first)
        while True:
            try:
                answer = await ask(room)
            except InvalidInput:
                if room == first:
                    raise
                break
            over = await self._tokens(answer, also_as_json) - budget
            if over <= 0:
                return answer
            if room == 1:
                break
            room = max(1, room - over)
        raise InvalidInput(f"{budget} tokens do not hold this with what is around it. Ask again with {2 * budget}.")

    @in_thread
    def _tokens(self, answer: Answer, also_as_json: bool) -> int:
        from mcp_memory.service.render import as_json, render

        forms = (render, as_json) if also_as_json else (render,)
        return max(self._parts.counter.count(form(answer)) for form in forms)
