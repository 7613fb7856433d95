"""Which results of tools, told beside the turns of a history, are worth a file of their own, and which have one.

The rule is one for exports and for logs of agents. It does not know where a result is put.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mcp_memory.core.tokens import estimate_tokens
from mcp_memory.integrations.importers.formats.logs import is_own, is_stand_in
from mcp_memory.integrations.importers.formats.told import Result
from mcp_memory.service.memory import Memory

__all__ = ["Worth", "not_kept", "worth"]

OVER = 300
"""Tokens, rather too many estimated than too few: what a result must be larger than to be kept."""

Worth = Literal["large", "small", "ours"]
"""The `large` ones are kept; `ours` tell of this memory, which has it already."""


def worth(result: Result) -> Worth:
    """Tell whether a result is worth keeping. Of a text that is over the threshold, its start proves it."""
    if is_own(result.tool) or is_stand_in(result.text):
        return "ours"
    is_large = len(result.text) > OVER // 2 and estimate_tokens(result.text[: 32 * OVER]) > OVER
    return "large" if is_large else "small"


async def not_kept(memory: Memory, session: str, results: Sequence[Result]) -> list[Result]:
    """Return those results that the session does not hold yet, the first of each call; one without a call is new."""
    first = {one.call: one for one in reversed(results)}
    known = await memory.kept_calls(session, [call for call in first if call is not None])
    return [one for one in results if one.call is None or (one.call not in known and first[one.call] is one)]
