"""A pyramid built by hand, a stone at a time, through the store's own verbs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from mcp_memory.core.config import Settings
from mcp_memory.core.types import Atom, Evidence, Kind, Label, MemoryResults, NewTurn, Stage, TurnResults
from mcp_memory.longterm.page_lines import PersonaReply
from mcp_memory.longterm.persona_stage import PERSONA, PersonaBasis
from mcp_memory.longterm.search import pages
from mcp_memory.longterm.search.search import Search, SearchContext
from mcp_memory.models.embed.bundled import IDENTITY, BundledEmbedder
from mcp_memory.models.metered import Applied, ModelQuestion
from mcp_memory.store.citations import cited_atoms
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, job_rows, page_rows, stage_outputs, tombstone_rows, turn_rows
from mcp_memory.store.values import (
    Extraction,
    Filters,
    Merge,
    Merging,
    NewAtom,
    PersonaPage,
    Readings,
    SceneChanges,
    SceneEdit,
    Vectors,
    Work,
)

SPACE = "me"
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def statement(text: str, **more: Any) -> NewAtom:
    given = {"kind": "persona", "priority": 80, "confidence": 1.0, "session": "s", "valid_from": NOON, **more}
    return NewAtom(text=text, **given)


def atom(id: str, text: str = "A statement.", **more: Any) -> Atom:
    """Return a stored statement that needs no store."""
    given = {"kind": "persona", "priority": 80, "confidence": 0.9, "evidence": "t1", "span": (0, 1), **more}
    return Atom(**{"id": id, "text": text, "valid_from": NOON, "valid_to": None, "learned_at": NOON, **given})


def search_context(store: Store, search: Search | None, **more: Any) -> SearchContext:
    """Return a context without vectors."""
    given = {"space": SPACE, "now": NOON, "settings": Settings(), **more}
    return SearchContext(
        **{"store": store, "search": search, "of_query": lambda text: [], "of_rows": lambda texts: None, **given}
    )


def search_turns(store: Store, search: Search, space: str, query: str, **more: Any) -> TurnResults:
    """Search for turns, without vectors and neighbours unless they are given."""
    given = {"embed": lambda _: [], "filters": Filters(), "neighbours": 0, "limit": 50, "cursor": None, "at": NOON}
    return pages.search_turns(store, search, space, query, **{**given, **more})


def search_memories(store: Store, search: Search, space: str, query: str, **more: Any) -> MemoryResults:
    given = {"embed": lambda _: [], "filters": Filters(), "limit": 50, "cursor": None, "at": NOON}
    return pages.search_memories(store, search, space, query, **{**given, **more})


def vectors_of(*texts: str) -> Vectors:
    return Vectors(identity=IDENTITY, data=BundledEmbedder().embed(list(texts)))


@dataclass
class Pyramid:
    """A store in which a minute passes with everything that is done."""

    store: Store
    search: Search
    settings: Settings
    now: datetime = NOON

    def tick(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now

    def forget(self, *ids: str) -> str:
        return self.store.write(SPACE, tombstone_rows.forget, ids, reason="", now=self.tick()).id

    def context(self) -> SearchContext:
        return search_context(self.store, self.search, now=self.now, settings=self.settings)

    def work(self, stage: Stage, session: str | None = None, basis: str = "{}") -> Work:
        work = self.store.write(
            SPACE, job_rows.lease, stage, session, basis, holder="one", lease=timedelta(hours=1), now=self.now
        )
        assert work is not None
        return work


@dataclass
class ByHand(Pyramid):
    """Each stone is laid a minute after the one before."""

    numbers: Iterator[int] = field(default_factory=count)

    def tell(self, text: str, *, kind: Kind = "persona", **more: Any) -> str:
        """Store what the user told in so many words."""
        priority = -1 if kind == "instruction" else 80
        told = self._atom(text, kind, **{"priority": priority, "confidence": 1.0, **more})
        return self.store.write(SPACE, atom_rows.add, told, now=self.tick()).atom.id

    def draw(self, text: str, *, said: str | None = None, kind: Kind = "persona", **more: Any) -> str:
        """Store what a model drew from a turn, which says `said`."""
        session = f"s{next(self.numbers)}"
        turn = NewTurn(role="user", content=f"Well: {said or text} And so on.")
        (turn,) = self.store.write(SPACE, turn_rows.append, session, turn_rows.prepare([turn]), now=self.tick()).stored
        quote = Evidence(turn=turn.id, span=(6, 6 + len(said or text)), quote=said or text)
        drawn = self._atom(text, kind, **{"priority": 80, "confidence": 0.9, "evidence": [quote], **more})
        self.store.write(
            SPACE,
            stage_outputs.commit,
            self.work("extract", session).id,
            Extraction(upto={session: 1}, drafts=[drawn], aliases={}),
            outcome={},
            now=self.now,
        )
        (draft,) = self.store.read(SPACE, stage_outputs.drafts)
        merged = [Merging(draft=draft.id, atom=draft.atom)]
        (written,) = self.store.write(
            SPACE, stage_outputs.commit, self.work("merge").id, Merge(merged=merged), outcome={}, now=self.tick()
        ).atoms
        return written.atom.id

    def scene(self, slug: str, body: str, *, heat: int = 1, summary: str = "A theme.", title: str = "") -> None:
        """Write a scene, or write it anew."""
        stands = any(scene.slug == slug for scene in self.store.read(SPACE, page_rows.scenes))
        edit = SceneEdit(
            action="update" if stands else "create",
            slug=slug,
            reason="by hand",
            title=title or slug.title(),
            summary=summary,
            body=body,
            heat=heat,
            atoms=cited_atoms(body),
        )
        self.store.write(
            SPACE, stage_outputs.commit, None, SceneChanges(edits=[edit], upto=0), outcome={}, now=self.tick()
        )

    def write(self, *lines: str) -> str:
        """Store a page as a model's, unchecked, and return it."""
        text = "# Persona\n\n" + "\n".join(lines) + "\n"
        work, upto = self.work("persona"), self.store.totals(SPACE, "atom").newest
        self.store.write(
            SPACE,
            stage_outputs.commit,
            work.id,
            PersonaPage(text=text, reason="by hand", upto=upto),
            outcome={},
            now=self.tick(),
        )
        return text

    # the stage

    def plan(self, *, smaller: int = 0) -> PersonaBasis | None:
        return PERSONA.plan(self.context(), session=None, smaller=smaller)

    def planned(self, *, smaller: int = 0) -> PersonaBasis:
        basis = self.plan(smaller=smaller)
        assert basis is not None
        return basis

    def asked(self, basis: PersonaBasis) -> ModelQuestion[PersonaReply]:
        question = PERSONA.question(self.context(), basis)
        assert question is not None
        return question

    def apply(self, basis: PersonaBasis, *lines: str, changed: str = "") -> Applied:
        self.tick()
        work = self.work("persona", basis=basis.model_dump_json())
        return PERSONA.apply(self.context(), work, basis, PersonaReply(page="\n".join(lines), changed=changed))

    def _atom(self, text: str, kind: Kind, **more: Any) -> NewAtom:
        return NewAtom(kind=kind, text=text, session="told", valid_from=more.pop("valid_from", self.now), **more)


KINDS: dict[Label, Kind] = {
    "trait": "persona", "person": "persona", "rule": "instruction", "promise": "instruction",
    "decision": "episodic", "plan": "episodic", "event": "episodic",
}  # fmt: skip


def say(
    hand: ByHand,
    text: str,
    label: Label,
    *,
    session: str = "talk",
    name: str | None = None,
    embedded: bool = False,
    space: str = SPACE,
    **more: Any,
) -> str:
    """Store a sentence of the user as the reader would; return its id."""
    said = NewTurn(role="user", name=name, content=text, said_at=hand.tick())
    (turn,) = hand.store.write(space, turn_rows.append, session, turn_rows.prepare([said]), now=hand.now).stored
    quote = Evidence(turn=turn.id, span=(0, len(text)), quote=text)
    given = {
        "kind": KINDS[label],
        "priority": 70,
        "confidence": 0.9,
        "valid_from": hand.now,
        "session": session,
        **more,
    }
    read = statement(text, evidence=[quote], label=label, reader=1, **given)
    readings = Readings(turns=[turn.id], atoms=[read], vectors=vectors_of(text) if embedded else None)
    (written,) = hand.store.write(space, stage_outputs.commit, None, readings, outcome={}, now=hand.now).atoms
    return written.atom.id
