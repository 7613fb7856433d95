"""Verbs of long-term memory: turns (L0) and atoms with their facts (L1), search and recall."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TypeVar

from mcp_memory.core.errors import EmbeddingFailed, InvalidInput, NotFound
from mcp_memory.core.private import without_private
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.types import (
    Atom,
    Bundle,
    CitedResult,
    Kind,
    MemoryResults,
    NewTurn,
    Recorded,
    Remembered,
    Role,
    Source,
    StatementKind,
    Turn,
    TurnResults,
    Why,
)
from mcp_memory.service.verbs.base import MAX_LIMIT, Verbs, in_range, in_thread, notes, of_store
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Filters, RecallEntry, RecallHow

Results = TypeVar("Results", TurnResults, MemoryResults)

MAX_NEIGHBOURS = 10
MAX_BUDGET = 100_000
"""The largest token budget of a recall."""
_KEPT = timedelta(hours=1)  # a stable block in the context of a session
_QUERY_CHARS = 300  # of a query in the log of recalls
_ROW = re.compile(r"(?:[at]\d{1,18}|r-[0-9a-f]{12,64})(?![\w-])", re.ASCII)
WORTH_DISTILLING = 20  # turns; a short chat is not worth the questions


class LongtermVerbs(Verbs):
    """Turns, atoms, facts and entities: record, remember, search, recall."""

    @in_thread
    def record_turns(self, turns: Sequence[NewTurn], *, session: str | None = None) -> Recorded:
        """Store messages verbatim, in order, and index their words. Known ones are not stored again.

        Turns with nothing to store are left out and counted (`emptied`). What a client attached to a user's message is
        stored as a turn of its own, a tool's. The background embeds them. Raises InvalidInput, storing nothing, for an
        oversized turn or a session name that cannot be part of a file name.
        """
        from mcp_memory.longterm.turns import admit
        from mcp_memory.longterm.verification.trust import flag_turns

        name = self._session(session)
        admitted = admit(turns)
        kept = flag_turns(self._parts.store, self.space, admitted.turns)
        done = self._parts.store.append_turns(self.space, name, kept, now=self._parts.now())
        self._parts.stored(len(done.stored))
        return Recorded(
            session=name,
            stored=[turn.id for turn in done.stored],
            duplicates=done.duplicates,
            emptied=admitted.emptied,
            forgotten=done.forgotten,
            masked=admitted.masked,
            note=self._undistilled(),
        )

    @in_thread
    def forgotten_among(
        self, turns: Sequence[NewTurn], *, session: str, statements: Sequence[Sequence[str]] = ()
    ) -> int:
        """Return how many of these turns and statements (in all their wordings) were forgotten, and would stay so.

        Nothing is written.
        """
        from mcp_memory.longterm.turns import admit

        store = self._parts.store
        gone = store.count_forgotten(self.space, session, admit(turns).turns)
        return gone + len(store.forgotten_statements(self.space, statements))

    @in_thread
    def undistilled(self) -> str | None:
        """Return a note for the connected agent, where no model is set: enough turns wait to be worth its questions."""
        return self._undistilled()

    def _undistilled(self) -> str | None:
        """Count the turns of all sessions, as `distill` does."""
        waiting = 0 if self._parts.model is not None else self._waiting()
        if waiting < WORTH_DISTILLING:
            return None
        return f"{waiting} turns are not distilled. When the user is done, call distill."

    @in_thread
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
        `neighbours` adds that many turns before and after each hit (at most 10). `limit` is at most 50; a hit among
        the neighbours of better ones takes no place of it; a page has less than twice as many hits.
        """
        from mcp_memory.longterm.search import pages

        in_range(neighbours, "neighbours", 0, MAX_NEIGHBOURS)
        search = partial(pages.search_turns, neighbours=neighbours)
        filters = Filters(session=session, role=role)
        return self._page(search, query, filters, since=since, until=until, limit=limit, cursor=cursor)

    def _page(
        self,
        search: Callable[..., Results],
        query: str,
        filters: Filters,
        *,
        since: str | None,
        until: str | None,
        as_of: str | None = None,
        limit: int,
        cursor: str | None,
    ) -> Results:
        """Return a page of a search; words for times count from when its first page was asked for."""
        from mcp_memory.longterm.search.pages import asked_at

        in_range(limit, "limit", 1, MAX_LIMIT)
        query = without_private(query)
        parts, asking = self._parts, self._parts.asking()
        at = asked_at(cursor, parts.now())
        begin, end = parts.times(since, until, now=at)
        then = parts.moment(as_of, "as_of", now=at, end=True)
        results = search(
            parts.store,
            parts.search,
            self.space,
            query,
            embed=asking.vectors,
            filters=replace(filters, since=begin, until=end, as_of=then),
            limit=limit,
            cursor=cursor,
            at=at,
            rerank=parts.rerank,
        )
        return replace(results, note=notes(asking.note, results.note))

    @in_thread
    def ranked_by(self, signals: Collection[str], query: str, *, limit: int = 10) -> list[Turn]:
        """Return the turns that some signals of the search rank first on their own: a baseline for benchmarks.

        `longterm.search.ranking` names them: `{"words"}` is BM25, `{"meaning"}` the cosine by the configured model.
        Raises EmbeddingFailed rather than finding less.
        """
        asking = self._parts.asking()
        found = self._parts.search.by_signals(signals, self.space, query, embed=asking.vectors, limit=limit)
        if "meaning" in signals and asking.note:
            raise EmbeddingFailed(asking.note)
        return self._parts.store.turns(self.space, found)

    sessions = of_store(Store.sessions)

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

    @in_thread
    def remember(
        self,
        text: str,
        *,
        kind: StatementKind | None = None,
        entity: str | None = None,
        relation: str | None = None,
        value: str | None = None,
        supersedes: Sequence[str] = (),
        valid_from: str | None = None,
        valid_until: str | None = None,
        cites: Sequence[str] = (),
        source: Source = "user",
        session: str | None = None,
        typed: bool = False,
    ) -> Remembered:
        """Store one explicit statement; report replaced and similar ones.

        `source` says who stated it. What is said of the user, or asked by them, is kept in the words of theirs that it
        restates, so record these first: without any it is quarantined (`longterm.verification.claims`). Unless they
        say just that and nothing else, it states no fact and supersedes nothing. `note` tells of each. `typed`: the
        user typed the statement itself.

        It holds from `valid_from`, else from now, until the end of `valid_until`, else of a day that its text names
        for certain ("until 10 November"). After that it is past, as one that was replaced: only `as_of` finds it.
        What the user said ends with `valid_until` only if their words give that day, or it is `typed`. Raises
        InvalidInput for a `valid_until` that has passed without `valid_from`.

        `cites` names tool results as evidence, as does the text: refs, with or without lines, or nodes. Raises
        NotFound.

        `entity`, `relation` and `value` together make it a fact (the user is the entity `user`). Statements that it
        supersedes end, and are never deleted. Without a fact it keeps a fact of theirs whose entity and value stand in
        the text; without `kind` it has their kind, or `persona` if it supersedes none.

        A statement that supersedes a promise closes it as done, unless it is a promise itself. Without `kind` it is
        the agent's note of what it told, and needs no words of the user; unless other words of the user say it, not
        those of the promise. What they said closes only promises about the same matter.
        """
        from mcp_memory.longterm.corrections import entities_of_correction, fact_still_stated
        from mcp_memory.longterm.merging import similar
        from mcp_memory.longterm.opened import statements_of
        from mcp_memory.longterm.promise_closing import closed_by, closing, is_note, kind_of_successor
        from mcp_memory.longterm.statements import explicit_atom
        from mcp_memory.longterm.validity import with_end

        parts = self._parts
        now = parts.now()
        supersedes = statements_of(parts.store, self.space, supersedes)
        older = parts.store.atoms(self.space, supersedes)
        known = {one.id for one in older}
        if unknown := [id for id in supersedes if id not in known]:  # a quarantined statement would not name them
            raise NotFound(
                f"There is no atom {unknown[0]} to supersede. Find it with memory_search; nothing was stored."
            )
        if not (entity or relation or value) and (kept := fact_still_stated(parts.store, self.space, text, older)):
            entity, relation, value = kept.entity, kept.relation, kept.value
        promises = closed_by(kind, older)
        may_be_note = is_note(kind, older)
        end = parts.moment(valid_until, "valid_until", end=True)
        if end is not None and end <= now and valid_from is None:
            raise InvalidInput("valid_until has passed already. Give valid_from too; nothing was stored.")
        atom = explicit_atom(
            text,
            kind=kind or kind_of_successor(older),
            session=self._session(session),
            entity=entity,
            relation=relation,
            value=value,
            supersedes=[one.id for one in older if one not in promises],
            valid_from=parts.moment(valid_from, "valid_from") or now,
            valid_to=end,
            cites=cites,
            source=source,
        )
        if older:
            about = entities_of_correction(parts.store, self.space, atom.text, older, value=atom.value)
            atom = replace(atom, entities=about)
        asking = parts.asking()
        given = atom.text
        atom, note = closing(
            parts.store,
            self.space,
            atom,
            promises,
            embed=asking.vectors,
            typed=typed,
            dated=valid_from is not None,
            is_note=may_be_note,
        )
        if may_be_note and atom.source != "user" and all(one.valid_to for one in older):
            return Remembered(atom=older[0], duplicate=True, replaced=[], similar=[], note="It was closed before.")
        in_their_words = atom.text != given
        if end is not None and end > now and atom.valid_to == end:  # the store keeps it once it has come
            atom = replace(atom, text=with_end(atom.text, end, atom.valid_from), valid_to=None)
        embedded = parts.indexing.of_rows([atom.text])
        written = parts.store.add_atom(self.space, atom, now=now, vectors=embedded)
        if (written.atom.held or written.atom.doubts) and not atom.held:  # stored before without the user's own words
            parts.store.review(self.space, [written.atom.id], "released", now=now)
            written = replace(written, atom=replace(written.atom, held=(), doubts=()))
        if in_their_words:
            self._keep_out(given)
        self._changed()
        near = similar(
            parts.store,
            parts.search,
            self.space,
            written,
            embed=(lambda _: [embedded]) if embedded else asking.vectors,
        )
        return Remembered(
            atom=written.atom,
            duplicate=written.duplicate,
            replaced=written.replaced,
            similar=near.atoms,
            contradicting=near.contradicting,
            unsure=near.unsure,
            note=note,
        )

    def _keep_out(self, claim: str) -> None:
        """Take a claim out of the review queue: the user's words were stored in its place."""
        store = self._parts.store
        waiting = [one.id for one in store.quarantined(self.space) if one.id.startswith("a")]
        same = [atom.id for atom in store.atoms(self.space, waiting) if atom.text == claim]
        store.review(self.space, same, "kept", now=self._parts.now())

    @in_thread
    def still_stated(self, text: str, *, supersedes: Sequence[str]) -> bool:
        """Return whether a text that supersedes these statements would keep a fact of theirs."""
        from mcp_memory.longterm.corrections import fact_still_stated

        store = self._parts.store
        return fact_still_stated(store, self.space, text, store.atoms(self.space, supersedes)) is not None

    @in_thread
    def memory_search(
        self,
        query: str = "",
        *,
        kind: Kind | None = None,
        scene: str | None = None,
        entity: str | None = None,
        since: str | None = None,
        until: str | None = None,
        as_of: str | None = None,
        limit: int = 10,
        cursor: str | None = None,
    ) -> MemoryResults:
        """Find atoms, facts held true (at `as_of`) and scenes, filled up with verbatim turns where atoms are few.

        NotFound for an unknown scene or entity.
        """
        from mcp_memory.longterm.search import pages

        filters = Filters(kind=kind, entity=entity, scene=scene)
        return self._page(
            pages.search_memories, query, filters, since=since, until=until, as_of=as_of, limit=limit, cursor=cursor
        )

    @in_thread
    def recall(self, query: str = "", *, session: str | None = None, budget_tokens: int = 1200) -> Bundle:
        """Return the context for a question within the budget: a stable and a dynamic block."""
        found = self._recalled(query, session, budget_tokens)
        self._note_promises(session, found)
        return self._logged("recall", query, session, found)

    def _recalled(
        self, query: str, session: str | None, budget: int, *, has_stable: Callable[[str], bool] = lambda block: False
    ) -> Bundle:
        from mcp_memory.longterm.recall import blocks

        in_range(budget, "budget_tokens", 1, MAX_BUDGET)
        query = without_private(query)
        parts = self._parts
        return blocks.bundle(
            parts.scheduler.context(), query, session=session, counter=parts.counter, budget=budget,
            has_stable=has_stable, shown_promises=self._shown_promises(session),
        )  # fmt: skip

    @in_thread
    def recall_stable(self, *, session: str | None = None, budget_tokens: int = 700) -> Bundle:
        """Return what the start of a conversation needs: the stable block alone."""
        from mcp_memory.longterm.recall import blocks

        parts = self._parts
        found = blocks.stable(parts.scheduler.context(), counter=parts.counter, budget=budget_tokens, session=session)
        self._note_stable(session, found)
        self._note_promises(session, found)
        return self._logged("start", "", session, found)

    def _note_stable(self, session: str | None, found: Bundle) -> None:
        """Remember which stable block a session has."""
        if session and found.stable:
            self._parts.stable_blocks.put((self.space, session), (hash(found.stable), self._parts.now()))

    def _has_stable(self, session: str | None, block: str) -> bool:
        """Return whether a session got this stable block, within the last hour: an older context may have been cut."""
        last = self._parts.stable_blocks.get((self.space, session)) if session else None
        return last is not None and last[0] == hash(block) and self._parts.now() - last[1] < _KEPT

    def _note_promises(self, session: str | None, found: Bundle) -> None:
        """Remember which promises a session was shown."""
        from mcp_memory.longterm.recall.promises import promises_in

        if session and (shown := promises_in(found.dynamic)):
            known = self._shown_promises(session) | shown
            self._parts.shown_promises.put((self.space, session), (known, self._parts.now()))

    def _shown_promises(self, session: str | None) -> frozenset[str]:
        """Return the promises that a session was shown, if that was within the last hour, as with the stable block."""
        last = self._parts.shown_promises.get((self.space, session)) if session else None
        return last[0] if last is not None and self._parts.now() - last[1] < _KEPT else frozenset()

    @in_thread
    def recall_beyond(
        self, query: str, *, known: str, session: str, budget_tokens: int = 600, is_rehearsal: bool = False
    ) -> Bundle:
        """Return the dynamic block for a question, without anything that the context has already.

        For programs that recall automatically: `known` is everything they recalled into this context before. The
        turns of the session since its last summary are assumed to be in the context too. `is_rehearsal`: the
        block is not shown to anyone, and not logged.
        """
        from mcp_memory.longterm.recall import blocks

        parts, query = self._parts, without_private(query)
        found = blocks.automatic(
            parts.scheduler.context(), query, session=session, counter=parts.counter, budget=budget_tokens, shown=known
        )
        return found if is_rehearsal else self._logged("prompt", query, session, found)

    def _logged(self, how: RecallHow, query: str, session: str | None, found: Bundle) -> Bundle:
        """Note in the log of recalls which rows a context got; the query only where contents are logged."""
        from mcp_memory.longterm.recall.blocks import ids_in

        query = without_private(query)
        if found.tokens:
            ids = (row[0] for block in (found.stable, found.dynamic) for id in ids_in(block) if (row := _ROW.match(id)))
            shows_query = self.settings.log_contents and query.strip()
            entry = RecallEntry(
                at=self._parts.now(),
                how=how,
                session=one_line(mask(session or self.session), 100),
                ids=tuple(dict.fromkeys(ids)),
                tokens=found.tokens,
                query=one_line(mask(query), _QUERY_CHARS) if shows_query else None,
            )
            self._parts.recall_log.note(self.space, entry)
        return found

    @in_thread
    def why(self, id: str) -> Why:
        """Return the evidence of an atom or turn, and the rows based on it; of a ref or node, the rows that cite it."""
        from mcp_memory.longterm.verification.evidence import why

        return why(self._parts.store, self.space, id)

    @in_thread
    def cites(self, id: str) -> list[CitedResult]:
        """Return the tool results that an atom or turn names, or that an atom's turns name."""
        from mcp_memory.longterm.verification.evidence import cites

        return cites(self._parts.store, self.space, id)

    @in_thread
    def atom(self, id: str) -> Atom:
        found = self._parts.store.atoms(self.space, [id])
        if not found:
            raise NotFound(f"There is no atom {one_line(id, 20)} in this space. Find one with memory_search.")
        return found[0]

    @in_thread
    def atoms(self, *, limit: int = 100) -> list[Atom]:
        return self._parts.store.list_atoms(self.space, filters=Filters(), limit=limit)

    @in_thread
    def entities(self, *, prefix: str = "", limit: int = 100) -> list[str]:
        """Return the names that facts are about, those that begin with `prefix`, in order."""
        facts = self._parts.store.facts(self.space, filters=Filters(), limit=1_000)
        names = {fact.entity for fact in facts if fact.entity.casefold().startswith(prefix.casefold())}
        return sorted(names)[:limit]
