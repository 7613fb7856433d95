"""Answers that fit the budget that they were asked for within, with all that `render` puts around their text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.tokens import token_counter
from mcp_memory.core.types import Bundle, CanvasView, Expansion
from mcp_memory.service.render import Answer, render

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory


Framed = TypeVar("Framed", Bundle, CanvasView, Expansion)

FRAME_TOKENS = 40
"""About what is around a text."""


async def within(
    memory: Memory,
    ask: Callable[[int], Awaitable[Framed]],
    budget: int,
    *,
    first: int,
    forms: Sequence[Callable[[Answer], str]] = (render,),
) -> Framed:
    """Return an answer of which each of these forms fits the budget, counted exactly.

    `ask` is given how many tokens the text may take: `first`, then as many less as the whole was over. InvalidInput
    where no room is left for the text.
    """
    counter = token_counter(memory.settings.tokenizer)
    room = max(1, first)
    while True:
        try:
            answer = await ask(room)
        except InvalidInput:
            if room >= max(1, first):
                raise
            break
        texts = [form(answer) for form in forms]
        over = await anyio.to_thread.run_sync(lambda texts: max(map(counter.count, texts)), texts) - budget
        if over <= 0:
            return answer
        if room == 1:
            break
        room = max(1, room - over)
    raise InvalidInput(f"{budget} tokens do not hold this with what is around it. Ask again with {2 * budget}.")
