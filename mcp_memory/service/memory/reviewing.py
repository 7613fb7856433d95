"""What is held: listed, released, kept as it is, or looked for in what was stored before there were flags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import Atom, Reviewed, Turn
from mcp_memory.service.memory.verbs import Verbs, in_thread
from mcp_memory.store.values import Held, Verdict

__all__ = ["Reviewing"]

_PAGE = 500


class Reviewing(Verbs):
    """Turns and atoms that wait for a person. Nothing of it is for agents: they would be told to release things."""

    @in_thread
    def waiting(self, *, limit: int = 100) -> list[Reviewed]:
        """Return what waits for review, the newest first, each with its words."""
        return self._worded(self._parts.store.held(self.space, limit=limit))

    @in_thread
    def why_held(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return those of the rows that wait for review, and why, so that whoever shows them marks them."""
        found = self._parts.store.held(self.space, ids)
        return {one.id: tuple(one.reasons) for one in found if one.verdict != "released"}

    @in_thread
    def waiting_count(self) -> int:
        return self._parts.store.held_count(self.space)

    @in_thread
    def review(self, ids: Sequence[str], verdict: Verdict) -> list[Reviewed]:
        """Let what is held be recalled (`released`), or leave it so for good (`kept`). NotFound for what is not."""
        if not ids:
            raise InvalidInput("Nothing is named: give ids such as a5 or t8. `mcp-memory review` lists what waits.")
        done = self._parts.store.review(self.space, ids, verdict, now=self._parts.now())
        self._parts.pipeline.write_persona()
        self._parts.stored()
        return self._worded(done)

    @in_thread
    def scan(self) -> list[Reviewed]:
        """Judge all that is stored as if it came in now, and return what is held that was not before.

        What was stored before secrets were masked is held where it has one.
        """
        from mcp_memory.core.secrets import holds_secret
        from mcp_memory.core.types import NewTurn
        from mcp_memory.longterm.trust import on_arrival
        from mcp_memory.store.protocol import Filters
        from mcp_memory.suspicion import flags

        def _secret(turn: Turn) -> list[str]:
            return ["secret"] if holds_secret(turn.content, prose=turn.role != "tool") else []

        store = self._parts.store
        new: list[str] = []
        for turns in self._turns():
            given = [NewTurn(role=turn.role, content=turn.content, name=turn.name) for turn in turns]
            judged = zip(turns, on_arrival(store, self.space, given), strict=True)
            new += self._hold({turn.id: why for turn, one in judged if (why := (*one.held, *_secret(turn)))})
        last: str | None = None
        while atoms := store.list_atoms(self.space, filters=Filters(), after=last, limit=_PAGE):
            last = atoms[-1].id
            new += self._hold({atom.id: why for atom in atoms if (why := flags(atom.text, atom.source))})
        if new:
            self._parts.pipeline.write_persona()
        return self._worded(store.held(self.space, new)) if new else []

    def _hold(self, reasons: dict[str, tuple[str, ...]]) -> list[str]:
        store = self._parts.store
        known = {one.id for one in store.held(self.space, reasons)} if reasons else set[str]()
        fresh = {id: why for id, why in reasons.items() if id not in known}
        if fresh:
            store.put_aside(self.space, fresh, now=self._parts.now())
        return list(fresh)

    def _turns(self) -> Iterator[list[Turn]]:
        store = self._parts.store
        for session in store.sessions(self.space, limit=1_000_000):
            start = 0
            while page := store.session_turns(self.space, session.session, start=start, limit=_PAGE):
                yield [turn for turn in page if turn.role != "note"]
                start = page[-1].position + 1

    def _worded(self, held: Sequence[Held]) -> list[Reviewed]:
        store, ids = self._parts.store, [one.id for one in held]
        rows: dict[str, Turn | Atom] = {
            **{turn.id: turn for turn in store.turns(self.space, [id for id in ids if id[0] == "t"])},
            **{atom.id: atom for atom in store.atoms(self.space, [id for id in ids if id[0] == "a"])},
        }
        return [_reviewed(one, rows[one.id]) for one in held if one.id in rows]


def _reviewed(held: Held, row: Turn | Atom) -> Reviewed:
    from mcp_memory.longterm.trust import of_turn

    match row:
        case Turn():
            kind, source, session, text = "turn", of_turn(row), row.session, row.content
        case Atom():
            kind, source, session, text = row.kind, row.source, None, row.text
    return Reviewed(
        id=held.id,
        reasons=list(held.reasons),
        at=held.at,
        verdict=held.verdict,
        source=source,
        session=session,
        text=text,
        kind=kind,
    )
