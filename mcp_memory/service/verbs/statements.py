"""Verbs of statements (L1) with their facts: remember, search, list, explain."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from mcp_memory.core.errors import InvalidInput, NotFound, StoreUnavailable
from mcp_memory.core.personal_ids import mark_answer, unmarked
from mcp_memory.core.text import one_line
from mcp_memory.core.types import (
    Atom,
    CitedResult,
    Detail,
    EntityOrder,
    Fact,
    Kind,
    MemoryMap,
    MemoryResults,
    MentionedEntity,
    Remembered,
    ShownMemories,
    Source,
    StatementKind,
    StatementPage,
    Why,
)
from mcp_memory.service.verbs.base import (
    MAX_LIMIT,
    MAX_PAGE,
    QueryVectors,
    Verbs,
    are_marked,
    check_range,
    in_thread,
    join_notes,
    of_either_memory,
    reading,
    require_query,
    store_verb,
)
from mcp_memory.store.citations import find_results
from mcp_memory.store.sql import atom_rows, entity_rows, quarantine_rows
from mcp_memory.store.values import Filters, NewAtom

if TYPE_CHECKING:
    from mcp_memory.longterm.search.explain import Explained


logger = logging.getLogger(__name__)

_FACTS = 10_000


_NOT_COMPARED = "It is stored, and was not compared with similar statements, since the memory failed then."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """A statement to store in `memory`, or the answer, `closed`, if what it closes was closed before.

    `replaced_claim` is its text as it was given, if the user's words are stored in its place.
    """

    memory: StatementVerbs
    atom: NewAtom
    note: str | None
    replaced_claim: str | None = None
    closed: Remembered | None = None


class StatementVerbs(Verbs):
    """Remember and find statements, facts and entities, and show their evidence."""

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
        """Store an explicit statement; report replaced and similar statements.

        `source` is who stated it. A statement of the user, or requested by the user, is stored in the user's
        own words that it restates, so record these first: without such words it is quarantined
        (`longterm.verification.trust`). Unless these words say just that and nothing else, it becomes no fact
        and supersedes nothing. `note` mentions each of these cases. `typed` means that the user typed the
        statement.

        It is valid from `valid_from`, by default now, until the end of `valid_until`, by default until a day
        that its text names for certain ("until 10 November"). After that only `as_of` finds it, like a replaced
        statement. A statement of the user ends with `valid_until` only if the user's words give that day, or if
        it is `typed`. Raises InvalidInput if `valid_until` has passed and `valid_from` is not given.

        `cites` names tool results as evidence: refs, with or without lines, or nodes. The text may name them
        too. Raises NotFound for an unknown result, or an unknown id in `supersedes`.

        `entity`, `relation` and `value` together make it a fact (the user is the entity `user`). Statements
        that it supersedes end, and are never deleted. Without these arguments it keeps a fact of the superseded
        statements whose entity and value are in the text. Without `kind` it has their kind, or `persona` if it
        supersedes none.

        A statement that supersedes a promise closes it as done, unless it is a promise too. Without `kind` it
        is the agent's note of what it did, and needs no words of the user, unless other words of the user than
        the promise state the same. Words of the user close only promises about the same matter.

        Beside a personal memory, a lasting statement (`persona`) that names the user is stored there, and so is one
        that supersedes marked ids of it. The user's words are still searched here, where they were recorded. The
        answer then has marked ids. Raises InvalidInput if `supersedes` names statements of both memories.
        """
        prepared = self._store.in_snapshot(
            self._prepare,
            text,
            kind=kind,
            entity=entity,
            relation=relation,
            value=value,
            supersedes=supersedes,
            valid_from=valid_from,
            valid_until=valid_until,
            cites=cites,
            source=source,
            session=session,
            typed=typed,
        )
        memory = prepared.memory
        answer = prepared.closed or memory._store_prepared(prepared)
        return answer if memory is self else mark_answer(answer)

    def _prepare(
        self,
        text: str,
        *,
        kind: StatementKind | None,
        entity: str | None,
        relation: str | None,
        value: str | None,
        supersedes: Sequence[str],
        valid_from: str | None,
        valid_until: str | None,
        cites: Sequence[str],
        source: Source,
        session: str | None,
        typed: bool,
    ) -> _Prepared:
        """Compare a statement for `remember` with the user's words and with what it supersedes."""
        from mcp_memory.longterm.corrections import (
            check_closing,
            entities_of_correction,
            fact_still_stated,
            kind_of_successor,
            may_be_note,
            promises_to_close,
            superseded_ids,
        )
        from mcp_memory.longterm.known_names import with_named
        from mcp_memory.longterm.statements import explicit_atom
        from mcp_memory.longterm.validity import with_end

        parts, store, now = self._parts, self._store, self._parts.now()
        memory = self._memory_about(text, kind, entity, supersedes, cites)
        if memory is not self:
            supersedes, cites = unmarked(supersedes), unmarked(cites)
        supersedes = superseded_ids(store, memory.space, supersedes)
        older = store.read(memory.space, atom_rows.by_ids, supersedes)
        existing = {atom.id for atom in older}
        if unknown := [id for id in supersedes if id not in existing]:  # a quarantined statement would not name them
            raise NotFound(
                f"There is no atom {unknown[0]} to supersede. Find it with memory_search; nothing was stored."
            )
        if not (entity or relation or value) and (fact := fact_still_stated(store, memory.space, text, older)):
            entity, relation, value = fact.entity, fact.relation, fact.value
        promises = promises_to_close(kind, older)
        is_note = may_be_note(kind, older)
        end = parts.parse_time(valid_until, "valid_until", end=True)
        if end is not None and end <= now and valid_from is None:
            raise InvalidInput("valid_until has passed already. Give valid_from too; nothing was stored.")
        atom = explicit_atom(
            text,
            kind=kind or kind_of_successor(older),
            session=self._session_name(session),
            entity=entity,
            relation=relation,
            value=value,
            supersedes=[old.id for old in older if old not in promises],
            valid_from=parts.parse_time(valid_from, "valid_from") or now,
            valid_to=end,
            cites=cites,
            source=source,
        )
        if older:
            entities = entities_of_correction(store, memory.space, atom.text, older, value=atom.value)
            atom = replace(atom, entities=entities)
        atom = replace(atom, entities=with_named(store, memory.space, atom.text, atom.entities))
        vectors = QueryVectors(parts.indexing)
        claim = atom.text
        atom, note = check_closing(
            store,
            memory.space,
            atom,
            promises,
            embed=vectors.embed,
            typed=typed,
            dated=valid_from is not None,
            is_note=is_note,
            said_in=self.space,
        )
        if is_note and atom.source != "user" and all(old.valid_to for old in older):
            closed = Remembered(atom=older[0], duplicate=True, replaced=[], similar=[], note="It was closed before.")
            return _Prepared(memory=memory, atom=atom, note=note, closed=closed)
        replaced_claim = claim if atom.text != claim else None
        if end is not None and end > now and atom.valid_to == end:  # the store writes the end once it has come
            atom = replace(atom, text=with_end(atom.text, end, atom.valid_from), valid_to=None)
        return _Prepared(memory=memory, atom=atom, note=note, replaced_claim=replaced_claim)

    def _store_prepared(self, prepared: _Prepared) -> Remembered:
        """Store a statement, and find similar ones. If the store fails after the commit, the answer says that."""
        from mcp_memory.longterm.similar_statements import similar

        parts, store, now, atom = self._parts, self._store, self._parts.now(), prepared.atom
        embedded = parts.indexing.of_rows([atom.text])
        written = store.write(self.space, atom_rows.add, atom, now=now, vectors=embedded)
        answer = Remembered(
            atom=written.atom,
            duplicate=written.duplicate,
            replaced=written.replaced,
            similar=[],
            note=prepared.note,
        )
        try:
            if (written.atom.held or written.atom.doubts) and not atom.held:  # stored before, without the user's words
                store.write(self.space, quarantine_rows.review, [written.atom.id], "released", now=now)
                answer = replace(answer, atom=replace(written.atom, held=(), doubts=()))
            if prepared.replaced_claim is not None:
                self._close_review_of(prepared.replaced_claim)
            self._refresh()
            near = store.in_snapshot(
                similar,
                store,
                parts.search,
                self.space,
                replace(written, atom=answer.atom),
                embed=(lambda _: [embedded]) if embedded else QueryVectors(parts.indexing).embed,
            )
        except StoreUnavailable as error:
            logger.warning("a statement was stored, and not compared with others: %s", error)
            return replace(answer, note=join_notes(answer.note, _NOT_COMPARED))
        return replace(answer, similar=near.atoms, contradicting=near.contradicting, unsure=near.unsure)

    def _memory_about(
        self, text: str, kind: StatementKind | None, entity: str | None, supersedes: Sequence[str], cites: Sequence[str]
    ) -> StatementVerbs:
        """Return the memory for a new statement, see `remember`. One with tool results stays where these are."""
        from mcp_memory.longterm.names import contains_name, names_in
        from mcp_memory.longterm.verification.claims import names_the_user

        personal = self.personal
        if personal is None:
            return self
        if supersedes or cites:
            return personal if are_marked([supersedes, cites]) else self
        if kind not in (None, "persona") or find_results(text):
            return self
        user = names_in(self._store, personal.space, ()).user
        is_about_them = names_the_user(text, entity) or (user is not None and contains_name([user], text))
        return personal if is_about_them else self

    def _close_review_of(self, claim: str) -> None:
        """Take quarantined statements with the text `claim` out of the review queue.

        No decision about them is needed any more, since the user's words were stored in their place.
        """
        quarantined = [
            row.id for row in self._store.read(self.space, quarantine_rows.list_quarantined) if row.id.startswith("a")
        ]
        same = [atom.id for atom in self._store.read(self.space, atom_rows.by_ids, quarantined) if atom.text == claim]
        self._store.write(self.space, quarantine_rows.review, same, "kept", now=self._parts.now())

    @in_thread
    def end_statement(self, id: str, *, on: str | None = None) -> Remembered:
        """Record for the user that a statement ended on a day, by default now, with no new statement in its place.

        An event that says so replaces it, so that agents do not take what was said before for current.
        `undo_correction` of this event undoes it. Raises NotFound for an unknown statement, InvalidInput if the
        statement has ended, or if the day is in the future or before the statement began.
        """
        from mcp_memory.longterm.corrections import ending_of

        old = self._store.in_snapshot(self._require_atom, id)
        begin, end = self._parts.parse_time(on, "on"), self._parts.parse_time(on, "on", end=True)
        atom = ending_of(old, begin, end, session=self.session, now=self._parts.now())
        return self._store_prepared(_Prepared(memory=self, atom=atom, note=None))

    @reading
    def still_stated(self, text: str, *, supersedes: Sequence[str]) -> bool:
        """Return whether a statement with this text would keep a fact of the statements that it `supersedes`."""
        from mcp_memory.longterm.corrections import fact_still_stated

        older = self._store.read(self.space, atom_rows.by_ids, supersedes)
        return fact_still_stated(self._store, self.space, text, older) is not None

    @reading
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
        """Find atoms and facts current at `as_of` (default: now) and scenes, and verbatim turns if atoms are few.

        Raises NotFound for an unknown scene or entity.
        """
        from mcp_memory.longterm.search import pages

        filters = Filters(kind=kind, entity=entity, scene=scene)
        return self._search_page(
            pages.search_memories, query, filters, since=since, until=until, as_of=as_of, limit=limit, cursor=cursor
        )

    async def memory_excerpts(
        self, query: str = "", *, detail: Detail = "concise", budget_tokens: int | None = None, **filters: Any
    ) -> ShownMemories:
        """Return a page of `memory_search` as excerpts within the budget, as `conversation_excerpts` does for turns."""
        results = await self.memory_search(query, **filters)

        def excerpts() -> ShownMemories:
            from mcp_memory.service.excerpts import ExcerptRequest, shown_memories

            request = ExcerptRequest(query=query, detail=detail, counter=self._parts.counter, budget=budget_tokens)
            return shown_memories(results, request)

        return await anyio.to_thread.run_sync(excerpts)

    @reading
    def statements(
        self,
        *,
        kind: Kind | None = None,
        entity: str | None = None,
        scene: str | None = None,
        since: str | None = None,
        until: str | None = None,
        as_of: str | None = None,
        learned: str | None = None,
        ended: bool = False,
        only_ended: bool = False,
        newest_first: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> StatementPage:
        """Return a page of the statements current at `as_of` (default: now), in the order of a search without a query.

        `since` and `until` limit when they became true. `learned` is the first day on which they were stored; what
        waits for review is left out then. `ended` includes statements that have ended, `only_ended` leaves out
        all others. With `newest_first`, those that became true last are first. Raises NotFound for an unknown scene or
        entity.
        """
        from mcp_memory.longterm.search.pages import after, asked_at, page_of
        from mcp_memory.longterm.search.scenes import resolve_filters
        from mcp_memory.longterm.validity import count_current, current_atoms

        check_range(limit, "limit", 1, MAX_PAGE)
        store, space, at = self._store, self.space, asked_at(cursor, self._parts.now())
        begin, end = self._parts.parse_period(since, until, now=at)
        filters = Filters(
            kind=kind,
            entity=entity,
            scene=scene,
            since=begin,
            until=end,
            as_of=self._parts.parse_time(as_of, "as_of", now=at, end=True),
            learned_since=self._parts.parse_time(learned, "learned", now=at),
            unheld=learned is not None,
            ended=ended or only_ended,
            only_ended=only_ended,
        )
        filters, note = resolve_filters(store, space, filters)
        asked = ("statements", space, filters, newest_first)
        page = page_of(cursor, asked, at=at, store=store, space=space, listing=True)
        page_filters, last = page.then(filters, "atom"), next(iter(page.shown), None)
        atoms = current_atoms(store, space, page_filters, at, after=last, limit=limit + 1, newest_first=newest_first)
        shown = atoms[:limit]
        return StatementPage(
            atoms=shown,
            cursor=after(page.cursor(), [atom.id for atom in shown]) if len(atoms) > limit else None,
            total=count_current(store, space, page_filters, at),
            note=note,
        )

    @reading
    def statement_days(self) -> dict[str, int]:
        """Return the days from which statements are true, as `2026-11-30`, latest first, and how many each.

        Statements that have ended are counted too.
        """
        days = Counter[str]()
        for hour, many in self._store.read(self.space, atom_rows.count_by_hour, filters=Filters(ended=True)):
            days[f"{hour.astimezone():%Y-%m-%d}"] += many
        return dict(sorted(days.items(), reverse=True))

    statements_by_id = store_verb(atom_rows.by_ids)
    superseded_by = store_verb(atom_rows.superseded_by)
    statements_about = store_verb(atom_rows.based_on)

    @reading
    def atom(self, id: str) -> Atom:
        return self._require_atom(id)

    def _require_atom(self, id: str) -> Atom:
        atoms = self._store.read(self.space, atom_rows.by_ids, [id])
        if not atoms:
            raise NotFound(f"There is no atom {one_line(id, 20)} in this space. Find one with memory_search.")
        return atoms[0]

    @reading
    def atoms(self, *, limit: int = 100) -> list[Atom]:
        return self._store.read(self.space, atom_rows.list_atoms, filters=Filters(), limit=limit)

    @reading
    def mentioned_entities(
        self, text: str = "", *, order: EntityOrder = "statements", start: int = 0, limit: int = 100
    ) -> list[MentionedEntity]:
        """Return the people, projects, places and things in current statements, without the user.

        `text` is a part of one of their names, in any case; `start` is the number of entities to skip.
        """
        check_range(limit, "limit", 1, 1_000)
        return self._store.read(
            self.space, entity_rows.mentioned, text=text, order=order, start=max(0, start), limit=limit
        )

    @reading
    def entities(self, *, prefix: str = "", limit: int = 100) -> list[str]:
        """Return the names of entities with facts, sorted; only names that begin with `prefix`, in any case."""
        facts = self._store.read(self.space, atom_rows.facts, filters=Filters(), limit=1_000)
        names = {fact.entity for fact in facts if fact.entity.casefold().startswith(prefix.casefold())}
        return sorted(names)[:limit]

    @reading
    def facts_about(self, entity: str) -> list[Fact]:
        """Return all facts of an entity under any of its names, current and ended, the oldest first.

        Raises NotFound for an unknown entity.
        """
        from mcp_memory.language.words import fold
        from mcp_memory.longterm.search.entity_names import find_entity
        from mcp_memory.longterm.search.scenes import names_of

        store = self._store
        entity = find_entity(store, self.space, entity).name
        names = names_of(store, self.space, entity)
        facts = store.read(self.space, atom_rows.facts, filters=Filters(entity=entity, ended=True), limit=_FACTS)
        return sorted((fact for fact in facts if fold(fact.entity) in names), key=lambda fact: fact.valid_from)

    @reading
    def entity_map(self, *, about: str | None = None, as_of: datetime | None = None, limit: int = 2_000) -> MemoryMap:
        """Return the people, projects, places and things as nodes, with the topics that a model wrote, and their links.

        If there are more than `limit` (1 to 5,000), those with the most statements are returned. With `about`, the
        name of an entity, only this entity and those that share current statements with it are returned, with their
        topics; `related` lists these entities. With `as_of`, `then` has the nodes as they were at that time. Raises
        NotFound for an unknown entity.
        """
        from mcp_memory.longterm.entity_map import entity_map
        from mcp_memory.longterm.search.entity_names import find_entity

        check_range(limit, "limit", 1, 5_000)
        name = None if about is None else find_entity(self._store, self.space, about).name
        return entity_map(self._store, self.space, about=name, as_of=as_of, limit=limit)

    @of_either_memory("id")
    @reading
    def why(self, id: str) -> Why:
        """Return the evidence of an atom or turn and the rows based on it, or the rows that cite a ref or node."""
        from mcp_memory.longterm.verification.evidence import why

        return why(self._store, self.space, id)

    @reading
    def cites(self, id: str) -> list[CitedResult]:
        """Return the tool results that an atom or turn names, or that an atom's turns name."""
        from mcp_memory.longterm.verification.evidence import cites

        return cites(self._store, self.space, id)

    @reading
    def explain(
        self,
        query: str,
        *,
        kind: Kind | None = None,
        entity: str | None = None,
        since: str | None = None,
        until: str | None = None,
        limit: int = 10,
    ) -> Explained:
        """Explain the ranking of a memory search.

        Raises InvalidInput without a query, NotFound for an unknown entity.
        """
        from mcp_memory.longterm.search.explain import explain
        from mcp_memory.longterm.search.scenes import resolve_filters
        from mcp_memory.store.values import Filters

        query = require_query(query)
        check_range(limit, "limit", 1, MAX_LIMIT)
        parts, now = self._parts, self._parts.now()
        parts.indexing.catch_up()
        vectors = QueryVectors(parts.indexing)
        begin, end = parts.parse_period(since, until, now=now)
        filters, taken_as = resolve_filters(
            parts.store, self.space, Filters(kind=kind, entity=entity, since=begin, until=end)
        )
        explained = explain(
            parts.store, parts.search, self.space, query, embed=vectors.embed, filters=filters, limit=limit, at=now
        )
        not_reranked = "A model puts the first results of real searches into order; it was not asked."
        return replace(
            explained, note=join_notes(taken_as, vectors.note, not_reranked if parts.settings.rerank else None)
        )
