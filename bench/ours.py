"""The system under measurement, used as an agent would: `Memory.record_turns`, then `Memory.conversation_search`.

Each haystack gets a separate home with default settings and nothing from the environment, like a user's store. Spaces
of one home would not do, since BM25 would weigh words by their frequency in other haystacks. A session is recorded in
one call; its turns have the session's `started_at` as date, their names and, as `client_id`, the set's id. Turns
without a visible character are left out, as by the verb.

A question is the query, unchanged, asked at `asked_at`, or an hour after the last session if the set has no time; it is
asked again with each signal of the ranking left out. The first page of 20 ranks the turns and is timed (after a first
call, which loads the model). Sessions are ranked by their first turn over as many further pages of 50 as are needed for
10 sessions, or to the end. `tokens` counts the first 10 hits with cl100k_base in the tool's concise text.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from anyio import sleep, to_thread

from bench.asking import Answer, Ask, in_order_of_first_turn
from bench.sets import Haystack, Question
from mcp_memory.core.config import Settings
from mcp_memory.core.text import is_blank
from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import NewTurn, TurnHit, TurnResults
from mcp_memory.longterm.search.ranking import SIGNALS
from mcp_memory.longterm.turns import ATTACHED, admit
from mcp_memory.service.excerpts import ExcerptRequest, shown_turns
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.render import render
from mcp_memory.store.sql import sentence_rows

PAGE, FURTHER_PAGE = 20, 50
SESSIONS = 10
SHOWN = 10
ALL = frozenset(name for name in SIGNALS if name != "context_short")  # which goes with `context`


class Clock:
    """A clock that is set: at first an hour after the last session, or now if sessions have no dates."""

    def __init__(self, haystack: Haystack) -> None:
        dates = [session.started_at for session in haystack.sessions if session.started_at]
        self.after = max(dates) + timedelta(hours=1) if dates else datetime.now(UTC)
        self.moment = self.after

    def __call__(self) -> datetime:
        return self.moment


@asynccontextmanager
async def ours(haystack: Haystack) -> AsyncGenerator[Ask]:
    clock = Clock(haystack)
    with TemporaryDirectory(prefix="bench-") as folder:
        async with open_memory(Settings(home=Path(folder)), now=clock) as memory:
            ids, sessions = await record(memory, haystack)
            await memory.conversation_search("warm")
            counter = token_counter("cl100k_base")

            async def ask(question: Question) -> Answer:
                clock.moment = question.asked_at or clock.after
                start = perf_counter()
                first = await memory.conversation_search(question.text, limit=PAGE)
                seconds = perf_counter() - start
                hits = await _until_enough_sessions(memory, question.text, first)
                asking = ExcerptRequest(query=question.text, detail="concise", counter=counter)
                shown = await to_thread.run_sync(shown_turns, replace(first, hits=first.hits[:SHOWN]), asking)
                return Answer(
                    turns=[ids[hit.turn.id] for hit in hits],
                    sessions=in_order_of_first_turn(sessions[hit.turn.session] for hit in hits),
                    seconds=seconds,
                    tokens=await to_thread.run_sync(lambda: counter.count(render(shown))),
                    without={
                        name: [ids[turn.id] for turn in await memory.ranked_by(ALL - {name}, question.text, limit=PAGE)]
                        for name in sorted(ALL)
                    },
                )

            yield ask


async def record(memory: Memory, haystack: Haystack) -> tuple[dict[str, str], dict[str, str]]:
    """Store the haystack; return two mappings of our ids to the set's, for turns and for sessions.

    Sessions get our own names, since the set's may be invalid as file names. An attachment of a message is stored
    as a turn of its own, with the same id of the set.
    """
    ids: dict[str, str] = {}
    names: dict[str, str] = {}
    for number, session in enumerate(haystack.sessions, start=1):
        turns = [
            NewTurn(role=turn.role, content=turn.content, name=turn.name, said_at=session.started_at, client_id=turn.id)
            for turn in session.turns
            if not is_blank(turn.content)
        ]
        kept = (await to_thread.run_sync(admit, turns)).turns if turns else []
        if not kept:
            continue
        done = await memory.record_turns(turns, session=f"session-{number}")
        names[done.session] = session.id
        # what is attached to a message is a turn after it
        theirs = [(turn.client_id or "").removesuffix(f"#{ATTACHED}") for turn in kept]
        ids.update(zip(done.stored, theirs, strict=True))
    await until_indexed(memory)
    return ids, names


async def until_indexed(memory: Memory) -> None:
    """Wait until the background has embedded all turns, indexed all tool results and extracted all sentences."""
    parts = memory._parts  # pyright: ignore[reportPrivateUsage]  no user waits for so much

    def is_done() -> bool:
        state = parts.indexing.state()
        is_indexed = state.refs_waiting == 0 and (state.model is None or state.embedded >= state.total)
        is_read = not parts.settings.read_sentences or not parts.store.read(
            memory.space, sentence_rows.unread_turns, limit=1
        )
        return state.error is not None or (is_indexed and is_read)

    await to_thread.run_sync(parts.indexing.catch_up)  # without this, it waits for a pause between calls
    while not await to_thread.run_sync(is_done):  # noqa: ASYNC110 the background has no event for it
        await sleep(0.02)


async def _until_enough_sessions(memory: Memory, query: str, first: TurnResults) -> list[TurnHit]:
    hits, cursor = list(first.hits), first.cursor
    while cursor and len({hit.turn.session for hit in hits}) < SESSIONS:
        page = await memory.conversation_search(query, limit=FURTHER_PAGE, cursor=cursor)
        hits, cursor = [*hits, *page.hits], page.cursor
    return hits
