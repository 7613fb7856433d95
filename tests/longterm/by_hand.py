"""A pyramid built by hand, a stone at a time, through the store's own verbs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from mcp_memory.core.config import Settings
from mcp_memory.core.types import Evidence, Kind, NewTurn, Stage
from mcp_memory.longterm.page_lines import PersonaReply
from mcp_memory.longterm.persona_stage import PERSONA, PersonaBasis
from mcp_memory.longterm.search.search import Search, SearchContext
from mcp_memory.models.metered import Applied, ModelQuestion
from mcp_memory.store.citations import cited_atoms
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, job_rows, page_rows, stage_outputs, tombstone_rows, turn_rows
from mcp_memory.store.values import Extraction, Merge, Merging, NewAtom, PersonaPage, SceneChanges, SceneEdit, Work

SPACE = "me"


@dataclass
class ByHand:
    """Each stone is laid a minute after the one before."""

    store: Store
    search: Search
    settings: Settings
    now: datetime = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

    def __post_init__(self) -> None:
        self._numbers = count()

    def tick(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now

    def tell(self, text: str, *, kind: Kind = "persona", **more: Any) -> str:
        """Store what the user told in so many words."""
        priority = -1 if kind == "instruction" else 80
        told = self._atom(text, kind, **{"priority": priority, "confidence": 1.0, **more})
        return self.store.write(SPACE, atom_rows.add, told, now=self.tick()).atom.id

    def draw(self, text: str, *, said: str | None = None, kind: Kind = "persona", **more: Any) -> str:
        """Store what a model drew from a turn, which says `said`."""
        session = f"s{next(self._numbers)}"
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

    def forget(self, *ids: str) -> str:
        return self.store.write(SPACE, tombstone_rows.forget, ids, reason="", now=self.tick()).id

    def work(self, stage: Stage, session: str | None = None, basis: str = "{}") -> Work:
        work = self.store.write(
            SPACE, job_rows.lease, stage, session, basis, holder="one", lease=timedelta(hours=1), now=self.now
        )
        assert work is not None
        return work

    # the stage

    def context(self) -> SearchContext:
        return SearchContext(
            store=self.store,
            space=SPACE,
            now=self.now,
            settings=self.settings,
            search=self.search,
            of_query=lambda text: [],
            of_rows=lambda texts: None,
        )

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
