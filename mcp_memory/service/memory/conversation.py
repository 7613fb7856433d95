"""L0: turns are recorded, searched and read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from mcp_memory.core.errors import EmbeddingFailed, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import NewTurn, Recorded, Role, SessionInfo, Turn, TurnResults
from mcp_memory.service.memory.verbs import MAX_LIMIT, Verbs, in_range, in_thread, notes

__all__ = ["Conversation"]

MAX_NEIGHBOURS = 10
WORTH_DISTILLING = 20  # turns; a short chat is not worth the questions


class Conversation(Verbs):
    """Turns, verbatim."""

    @in_thread
    def record_turns(
        self, turns: Sequence[NewTurn], *, session: str | None = None, vectors_later: bool = False
    ) -> Recorded:
        """Store messages verbatim, in order, and index them. What was stored before is not stored again.

        With `vectors_later` they are found by words at once and by meaning when the background has come to them: for
        histories of many turns. Raises InvalidInput, storing nothing, for an empty or oversized turn or a session name
        that cannot be part of a file name.
        """
        from mcp_memory.longterm.l0_turns import admit
        from mcp_memory.longterm.trust import on_arrival

        name = self._session(session)
        admitted = admit(turns)
        kept = on_arrival(self._parts.store, self.space, admitted.turns)
        embedded = self._parts.indexing.of_rows([turn.content for turn in kept], later=vectors_later)
        done = self._parts.store.append_turns(self.space, name, kept, now=self._parts.now(), vectors=embedded)
        self._parts.stored()
        return Recorded(
            session=name,
            stored=[turn.id for turn in done.stored],
            duplicates=done.duplicates,
            emptied=admitted.emptied,
            forgotten=done.forgotten,
            masked=admitted.masked,
            note=self._undistilled(name) if done.stored else None,
        )

    @in_thread
    def forgotten_among(
        self, turns: Sequence[NewTurn], *, session: str, statements: Sequence[Sequence[str]] = ()
    ) -> int:
        """Return how many of these turns and statements (in all their wordings) were forgotten, and would stay so.

        Nothing is written.
        """
        from mcp_memory.longterm.l0_turns import admit

        store = self._parts.store
        gone = store.forgotten_among(self.space, session, admit(turns).turns)
        return gone + len(store.were_forgotten(self.space, statements))

    @in_thread
    def undistilled(self) -> str | None:
        """Return a note for the connected agent, where no model is set: enough turns wait to be worth its questions."""
        return self._undistilled(None)

    def _undistilled(self, session: str | None) -> str | None:
        if self._parts.model is not None:
            return None
        waiting = self._waiting(session)
        if waiting < WORTH_DISTILLING:
            return None
        whose = "earlier conversations" if session is None else "this session"
        return f"{waiting} turns of {whose} are not distilled. When the user is done, call distill."

    @in_thread
    def conversation_search(
        self,
        query: str,
        *,
        session: str | None = None,
        role: Role | None = None,
        since: str | None = None,
        until: str | None = None,
        neighbours: int = 0,
        limit: int = 10,
        cursor: str | None = None,
    ) -> TurnResults:
        """Find turns by words and by meaning, best first.

        `since` and `until` take dates, times and phrases such as "last week", and include all they name.
        `neighbours` adds that many turns before and after each hit (at most 10). `limit` is at most 50; a hit among
        the neighbours of better ones takes no place of it; a page has less than twice as many hits.
        """
        from mcp_memory.longterm.search import find
        from mcp_memory.longterm.search.pages import asked_at
        from mcp_memory.store.protocol import Filters

        in_range(limit, "limit", 1, MAX_LIMIT)
        in_range(neighbours, "neighbours", 0, MAX_NEIGHBOURS)
        asking = self._parts.asking()
        at = asked_at(cursor, self._parts.now())
        begin, end = self._parts.times(since, until, now=at)
        results = find.turns(
            self._parts.store,
            self._parts.search,
            self.space,
            query,
            embed=asking.vectors,
            filters=Filters(
                session=session,
                role=role,
                since=begin,
                until=end,
            ),
            neighbours=neighbours,
            limit=limit,
            cursor=cursor,
            at=at,
            rerank=self._parts.rerank,
        )
        return replace(results, note=notes(asking.note, results.note))

    @in_thread
    def ranked_by(self, signals: Collection[str], query: str, *, limit: int = 10) -> list[Turn]:
        """Return the turns that some signals of the search alone rank first: what it is measured against.

        `longterm.search.ranking` names them: `{"words"}` is BM25, `{"meaning"}` the cosine by the configured model.
        Raises EmbeddingFailed rather than finding less.
        """
        asking = self._parts.asking()
        found = self._parts.search.by(signals, self.space, query, embed=asking.vectors, limit=limit)
        if "meaning" in signals and asking.note:
            raise EmbeddingFailed(asking.note)
        return self._parts.store.turns(self.space, found)

    @in_thread
    def sessions(self, *, prefix: str = "", limit: int = 100) -> list[SessionInfo]:
        return self._parts.store.sessions(self.space, prefix=prefix, limit=limit)

    @in_thread
    def session_turns(self, session: str, *, start: int = 0, limit: int = 100) -> list[Turn]:
        """Return turns of a session in order. NotFound for an unknown one."""
        turns = self._parts.store.session_turns(self.space, session, start=start, limit=limit)
        if not turns and not self._parts.store.session_turns(self.space, session, limit=1):
            known = ", ".join(repr(info.session) for info in self._parts.store.sessions(self.space, limit=5))
            raise NotFound(
                f"There is no session {one_line(session, 60)!r} in this space. "
                + (f"The latest are {known}." if known else "None has been recorded yet.")
            )
        return turns
