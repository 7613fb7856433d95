"""What following a log would store, and what having it read would cost. Nothing is stored."""

from __future__ import annotations

from pathlib import Path

from mcp_memory.core.config import Settings
from mcp_memory.integrations.importers.agents import Agent, session_name
from mcp_memory.integrations.importers.answer import Brought, of_log
from mcp_memory.integrations.importers.cost import Price, Size, cost
from mcp_memory.integrations.importers.follow import Followed, new_turn
from mcp_memory.integrations.importers.logfile import pieces
from mcp_memory.integrations.importers.results import worth
from mcp_memory.store.protocol import FollowedLog

__all__ = ["foresee"]


def foresee(
    path: Path,
    client: Agent,
    settings: Settings,
    *,
    name: str,
    price: Price,
    known: FollowedLog | None,
    within: Size | None = None,
) -> Brought:
    """Read what is new in a log, and tell. What is stored already under another session is told too; blocks.

    The turns are added to `within`.
    """
    done = Followed(path=path, client=client, session=known and known.session)
    size = Size(settings.batch_turns, within)
    seen, calls = set[str | None](), set[str | None]()
    for piece in pieces(path, client, known):
        done.bad, done.torn = done.bad + piece.bad, piece.torn
        done.misdated += piece.passed.misdated
        if piece.so_far.conversation is None or piece.so_far.aside:
            continue
        done.session = session_name(client, piece.so_far.conversation)
        for turn in map(new_turn, piece.turns):
            if turn.client_id not in seen:
                seen.add(turn.client_id)
                done.count(turn)
                size.add(done.session, turn)
        for result in piece.results:
            if result.call is None or result.call not in calls:
                calls.add(result.call)
                found = worth(result)
                done.kept += found == "large"
                done.small += found == "small"
    if known is not None and not (done.turns or done.kept):
        return of_log(name, done, state="known")
    return of_log(name, done, state="seen", noise=size.noise, cost=cost(size, settings, price))
