"""Verbs of turns (L0): record them, search them, read a session."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import anyio.to_thread

from mcp_memory.core.errors import EmbeddingFailed, NotFound
from mcp_memory.core.secrets.masking import mask_typed
from mcp_memory.core.text import one_line, remove_hidden
from mcp_memory.core.types import (
    Conversation,
    Conversations,
    Detail,
    NewTurn,
    Recorded,
    Role,
    ShownTurns,
    Turn,
    TurnResults,
)
from mcp_memory.service.verbs.base import QueryVectors, Verbs, check_range, in_thread, reading, store_verb
from mcp_memory.store.sql import importing, session_rows, turn_rows
from mcp_memory.store.sql.job_rows import MOST_UNDISTILLED
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.values import Appended, Filters

MAX_NEIGHBOURS = 10
MAX_CONVERSATIONS = 1_000
MAX_CLIENT = 60  # characters of a client's name
WORTH_DISTILLING = 20  # turns; fewer are not worth the questions


class TurnVerbs(Verbs):
    """Record, search and read turns."""

    @in_thread
    def record_turns(self, turns: Sequence[NewTurn], *, session: str | None = None) -> Recorded:
        """Store messages verbatim, in order. Known messages are not stored again.

        Turns with nothing to store are left out and counted (`emptied`). A client's attachment to a user's message is
        stored as a separate turn of a tool. The background indexes and judges them, and then reads and embeds them;
        until then they are found by searches, but not recalled. Raises InvalidInput, storing nothing, for an oversized
        turn or a session name that cannot be part of a file name.
        """
        from mcp_memory.longterm.turns import admit

        name = self._session_name(session)
        admitted = admit(turns)
        append = partial(
            self._append_rows,
            session=name,
            new=turn_rows.prepare(admitted.turns, are_indexed_later=self._parts.embedded is not None),
            now=self._parts.now(),
            earlier=self.earlier_session if session is None else None,
            is_counting=self._parts.model is None,
        )
        done = self._parts.appends.write(self.space, append)
        if self.client is not None and done.stored:
            self._parts.noted_clients.put((self.space, done.session), True)
        self._parts.notify_background(len(done.stored))
        return Recorded(
            session=done.session,
            stored=[turn.id for turn in done.stored],
            duplicates=done.duplicates,
            emptied=admitted.emptied,
            forgotten=done.forgotten,
            masked=admitted.masked,
            note=None if self._parts.model is not None else _undistilled_note(done.undistilled),
        )

    def _append_rows(self, tx: Transaction, **turns: Any) -> Appended:
        """Append turns, and record the client of their session unless this process has done so."""
        done = turn_rows.append(tx, **turns)
        if self.client is not None and done.stored and not self._parts.noted_clients.get((self.space, done.session)):
            session_rows.note_client(tx, done.session, client_name(self.client))
        return done

    @reading
    def forgotten_among(
        self, turns: Sequence[NewTurn], *, session: str, statements: Sequence[Sequence[str]] = ()
    ) -> int:
        """Return how many of these turns and statements (in any of their wordings) were forgotten. Writes nothing."""
        from mcp_memory.longterm.turns import admit

        store = self._store
        forgotten_turns = store.read(self.space, turn_rows.count_forgotten, session, admit(turns).turns)
        return forgotten_turns + len(store.read(self.space, importing.forgotten_statements, statements))

    @reading
    def undistilled(self) -> str | None:
        """Return a note for the connected agent if no model is set and enough turns wait to be worth its questions."""
        return None if self._parts.model is not None else _undistilled_note(self._count_undistilled())

    @reading
    def conversation_search(
        self,
        query: str = "",
        *,
        session: str | None = None,
        role: Role | None = None,
        since: str | None = None,
        until: str | None = None,
        neighbours: int = 0,
        limit: int = 10,
        cursor: str | None = None,
    ) -> TurnResults:
        """Find turns by words and by meaning, best first; without a query, list them by time, newest first.

        A question that names a time and nothing else ("what happened on Tuesday?") finds the turns of that time.
        `since` and `until` take dates, times and phrases such as "last week", and include all they name.
        `neighbours` adds that many turns before and after each hit (at most 10). `limit` is at most 50. Hits among the
        neighbours of better hits do not count, but a page has fewer than twice `limit` hits.
        """
        from mcp_memory.longterm.search import pages

        check_range(neighbours, "neighbours", 0, MAX_NEIGHBOURS)
        search = partial(pages.search_turns, neighbours=neighbours)
        filters = Filters(session=session, role=role)
        return self._search_page(search, query, filters, since=since, until=until, limit=limit, cursor=cursor)

    async def conversation_excerpts(
        self, query: str = "", *, detail: Detail = "concise", budget_tokens: int | None = None, **filters: Any
    ) -> ShownTurns:
        """Return a page of `conversation_search` as excerpts that fit the budget as text and as JSON.

        `filters` are the other arguments of that verb. Without a budget the answer is about as long as
        `excerpts.BUDGETS` says. Raises InvalidInput if not even one hit fits.
        """
        results = await self.conversation_search(query, **filters)

        def excerpts() -> ShownTurns:
            from mcp_memory.service.excerpts import ExcerptRequest, shown_turns

            request = ExcerptRequest(query=query, detail=detail, counter=self._parts.counter, budget=budget_tokens)
            return shown_turns(results, request)

        return await anyio.to_thread.run_sync(excerpts)

    @in_thread
    def ranked_by(self, signals: Collection[str], query: str, *, limit: int = 10) -> list[Turn]:
        """Return the turns that these signals of the search alone rank first: a baseline for benchmarks.

        `longterm.search.ranking` names them: `{"words"}` is BM25, `{"meaning"}` the cosine by the configured model.
        Raises EmbeddingFailed if the model fails, rather than finding less.
        """
        vectors = QueryVectors(self._parts.indexing)
        ids = self._parts.search.by_signals(signals, self.space, query, embed=vectors.embed, limit=limit)
        if "meaning" in signals and vectors.note:
            raise EmbeddingFailed(vectors.note)
        return self._store.read(self.space, turn_rows.by_ids, ids)

    sessions = store_verb(turn_rows.sessions)

    @reading
    def conversations(
        self,
        text: str = "",
        *,
        client: str | None = None,
        project: str | None = None,
        month: str | None = None,
        entity: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Conversations:
        """List the sessions with their titles, by the date of the talk: the one with the latest turn first.

        `text` selects those with all of its words in their title, name or turns; `project` "" those without one.
        `month` selects those in which something was said then: `2026-11`, "last month", or any other time that
        `conversation_search` takes. `entity` selects those with words on which statements about it are based. `limit`
        is at most 1,000. Raises InvalidInput for a month that is no time and for a cursor that is not one of ours, and
        NotFound for an unknown entity.
        """
        from mcp_memory.longterm.conversations import list_conversations
        from mcp_memory.longterm.search.entity_names import find_entity

        check_range(limit, "limit", 1, MAX_CONVERSATIONS)
        filters = session_rows.SessionFilters(
            client=client,
            project=project,
            since=self._parts.parse_time(month, "month"),
            until=self._parts.parse_time(month, "month", end=True),
            entity=find_entity(self._store, self.space, entity).name if entity else None,
        )
        return list_conversations(self._store, self.space, filters, text=text, cursor=cursor, limit=limit)

    @reading
    def conversation(self, session: str) -> Conversation | None:
        """Return a session as `conversations` lists it; None if it has no turns."""
        from mcp_memory.longterm.conversations import list_conversations

        filters = session_rows.SessionFilters(session=session)
        return next(iter(list_conversations(self._store, self.space, filters, limit=1).conversations), None)

    @reading
    def titles(self, sessions: Sequence[str]) -> dict[str, str]:
        """Return the titles of those sessions that have turns, by name; the name itself for one without a title."""
        from mcp_memory.longterm.conversations import titles_of

        return titles_of(self._store, self.space, sessions)

    @reading
    def session_turns(self, session: str, *, start: int = 0, limit: int = 100) -> list[Turn]:
        """Return turns of a session in order. Raises NotFound for an unknown session."""
        turns = self._store.read(self.space, turn_rows.session_turns, session, start=start, limit=limit)
        if not turns and not self._store.read(self.space, turn_rows.session_turns, session, limit=1):
            latest = ", ".join(repr(info.session) for info in self._store.read(self.space, turn_rows.sessions, limit=5))
            raise NotFound(
                f"There is no session {one_line(session, 60)!r} in this space. "
                + (f"The latest are {latest}." if latest else "None has been recorded yet.")
            )
        return turns

    turns = store_verb(turn_rows.by_ids)

    @in_thread
    def is_intact(self, turn: str) -> bool:
        """Return whether the words of a turn match the hash stored with them. Raises NotFound for an unknown turn."""
        from mcp_memory.store.evidence import is_intact

        turns = self._store.read(self.space, turn_rows.by_ids, [turn])
        if not turns:
            raise NotFound(f"There is no turn {one_line(turn, 20)} in this space.")
        return is_intact(turns[0])


def client_name(name: str) -> str:
    """Return the name of a client as it is stored, without secrets and hidden characters."""
    return one_line(remove_hidden(mask_typed(name)), MAX_CLIENT)


def _undistilled_note(waiting: int) -> str | None:
    if waiting < WORTH_DISTILLING:
        return None
    count = f"{waiting}" if waiting < MOST_UNDISTILLED else f"{MOST_UNDISTILLED} or more"
    return f"{count} turns are not distilled. When the user is done, call distill."
