"""L1: what is known. Atoms and facts are told and searched; recall brings what matters of everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Bundle, CitedResult, Kind, MemoryResults, Remembered, Source, Why
from mcp_memory.service.memory.verbs import MAX_LIMIT, Verbs, in_range, in_thread, notes

__all__ = ["Knowledge"]


class Knowledge(Verbs):
    """Atoms, facts and entities."""

    @in_thread
    def remember(
        self,
        text: str,
        *,
        kind: Kind = "persona",
        entity: str | None = None,
        relation: str | None = None,
        value: str | None = None,
        supersedes: Sequence[str] = (),
        valid_from: str | None = None,
        cites: Sequence[str] = (),
        source: Source = "user",
        session: str | None = None,
    ) -> Remembered:
        """Store one durable statement, told explicitly, and say what it replaced or may repeat.

        `source` is whose word it is. A rule or a trait is the user's to tell. A rule that no recorded turn of the user
        states waits for review, and so does what stands in a tool's output and in no words of the user
        (`longterm.trust`); the answer says so. A memory without the user's turns can vouch for no rule: record the
        words in which they gave it first.

        `cites` names tool results that it rests on, as does its text: refs, with or without lines, or nodes.
        NotFound where one is not there.

        `entity`, `relation` and `value` together make it a fact (the user is the entity `user`). What it
        replaces is closed, never deleted.
        """
        from mcp_memory.longterm.l1_atoms import told as l1_atoms
        from mcp_memory.longterm.trust import believed

        parts = self._parts
        now = parts.now()
        atom = l1_atoms.told(
            text,
            kind=kind,
            session=self._session(session),
            entity=entity,
            relation=relation,
            value=value,
            supersedes=supersedes,
            valid_from=parts.moment(valid_from, "valid_from") or now,
            cites=cites,
            source=source,
        )
        asking = parts.asking()
        atom, note = believed(parts.store, self.space, atom, embed=asking.vectors)
        embedded = parts.indexing.of_rows([atom.text])
        written = parts.store.add_atom(self.space, atom, now=now, vectors=embedded)
        if written.atom.held and not atom.held:  # told before without the user's word, and now with it
            parts.store.review(self.space, [written.atom.id], "released", now=now)
            written = replace(written, atom=replace(written.atom, held=()))
        parts.stored()
        parts.pipeline.write_persona()
        near = l1_atoms.similar(
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
            note=note,
        )

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

        NotFound for a scene that is not there.
        """
        from mcp_memory.longterm.search import find
        from mcp_memory.longterm.search.pages import asked_at
        from mcp_memory.store.protocol import Filters

        in_range(limit, "limit", 1, MAX_LIMIT)
        asking = self._parts.asking()
        at = asked_at(cursor, self._parts.now())
        begin, end = self._parts.times(since, until, now=at)
        results = find.memories(
            self._parts.store,
            self._parts.search,
            self.space,
            query,
            embed=asking.vectors,
            filters=Filters(
                kind=kind,
                entity=entity,
                scene=scene,
                as_of=self._parts.moment(as_of, "as_of", now=at, end=True),
                since=begin,
                until=end,
            ),
            limit=limit,
            cursor=cursor,
            at=at,
            rerank=self._parts.rerank,
        )
        return replace(results, note=notes(asking.note, results.note))

    @in_thread
    def recall(self, query: str = "", *, session: str | None = None, budget_tokens: int = 1200) -> Bundle:
        """Return what a context needs for this question, within the budget: a stable and a dynamic block."""
        from mcp_memory.longterm.recall import bundle as recall

        in_range(budget_tokens, "budget_tokens", 1, 100_000)
        parts = self._parts
        return recall.bundle(parts.pipeline.desk(), query, session=session, counter=parts.counter, budget=budget_tokens)

    @in_thread
    def recall_stable(self, *, budget_tokens: int = 700) -> Bundle:
        """Return what the start of a conversation needs: the stable block alone."""
        from mcp_memory.longterm.recall import bundle as recall

        return recall.stable(self._parts.pipeline.desk(), counter=self._parts.counter, budget=budget_tokens)

    @in_thread
    def recall_beyond(self, query: str, *, known: str, session: str, budget_tokens: int = 600) -> Bundle:
        """Return what a question needs beyond what its context holds, as a dynamic block.

        For programs that put it there unasked: `known` is all that they recalled into this context before. The turns
        of the session since its last summary are taken to be there too.
        """
        from mcp_memory.longterm.recall import bundle as recall

        parts = self._parts
        return recall.beyond(
            parts.pipeline.desk(), query, session=session, counter=parts.counter, budget=budget_tokens, known=known
        )

    @in_thread
    def why(self, id: str) -> Why:
        """Return which tool results an atom or turn rests on; of a ref or node, which atoms and turns rest on it."""
        from mcp_memory.longterm.why import why

        return why(self._parts.store, self.space, id)

    @in_thread
    def cites(self, id: str) -> list[CitedResult]:
        """Return the tool results that an atom or turn names, or that an atom's turns name."""
        from mcp_memory.longterm.why import cites

        return cites(self._parts.store, self.space, id)

    @in_thread
    def atom(self, id: str) -> Atom:
        found = self._parts.store.atoms(self.space, [id])
        if not found:
            raise NotFound(f"There is no atom {one_line(id, 20)} in this space. Find one with memory_search.")
        return found[0]

    @in_thread
    def atoms(self, *, limit: int = 100) -> list[Atom]:
        from mcp_memory.store.protocol import Filters

        return self._parts.store.list_atoms(self.space, filters=Filters(), limit=limit)

    @in_thread
    def entities(self, *, prefix: str = "", limit: int = 100) -> list[str]:
        """Return the names that facts are about, those that begin with `prefix`, in order."""
        from mcp_memory.store.protocol import Filters

        facts = self._parts.store.facts(self.space, filters=Filters(), limit=1_000)
        names = {fact.entity for fact in facts if fact.entity.casefold().startswith(prefix.casefold())}
        return sorted(names)[:limit]
