"""L2: pages that each tell one theme of a life, kept up with what became known; every line names its evidence.

Due when atoms were learned since the last round, or when what a page rests on was forgotten or ended. A round shows
the new atoms, in full the pages that they may belong to, and all others by their summaries. `apply` keeps what
`l2_edits` lets pass; whether a page tells its story well is beyond it. Pages are never lost: each version is kept.

How a page reads is told in `l2_page`; its names are this module's too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from mcp_memory.longterm.endings import ended
from mcp_memory.longterm.l2_edits import Checked, Round, checked
from mcp_memory.longterm.l2_page import (
    USER,
    ended_since,
    entity_called,
    is_stale,
    page,
    related,
    resolve,
    restored,
    stale,
    standing,
    versions,
    without_forgotten,
)
from mcp_memory.longterm.l2_reply import Reply
from mcp_memory.longterm.stage import Applied, Desk, StageOf
from mcp_memory.metered import Question
from mcp_memory.prompts import prompt
from mcp_memory.store.protocol import Filters, Store, Work
from mcp_memory.text import fold, one_line
from mcp_memory.types import Atom, Scene

__all__ = [
    "SCENES",
    "Basis",
    "Reply",
    "apply",
    "is_stale",
    "page",
    "plan",
    "question",
    "related",
    "resolve",
    "restored",
    "stale",
    "standing",
    "versions",
    "without_forgotten",
]

_ATOMS = 40
_SHOWN_CHARS = 12_000
_SHOWN_CHARS_WHEN_FULL = 24_000  # what is to be merged has to be seen
_LINE = 300
_NEAR = 6
_ANSWER_TOKENS = 8_000
_SAID = 0.8  # less confidence than that has what was only implied


class Basis(BaseModel):
    """What a round is about: atoms after the cursor up to `upto`, and the pages that it shows in full."""

    after: int
    upto: int
    atoms: list[str]
    shown: list[str]


# --- what is due ------------------------------------------------------------------------------------


def plan(desk: Desk, *, session: str | None, smaller: int) -> Basis | None:
    """Return the next round: the oldest atoms that no round has seen, or else the pages that are due for rewriting."""
    store, space = desk.store, desk.space
    state = store.stage_states(space).get("scenes")
    after = state.position if state else 0
    new = store.atoms_since(space, after, limit=max(1, _ATOMS >> smaller))
    scenes = _standing(store, space)
    due = [scene.slug for scene in stale(store, space) if scene.slug in scenes]
    if not new and not due:
        return None
    crowded = len(scenes) >= desk.settings.max_scenes - 1
    room = (_SHOWN_CHARS_WHEN_FULL if crowded else _SHOWN_CHARS) >> smaller
    return Basis(
        after=after,
        upto=int(new[-1].id[1:]) if new else after,
        atoms=[atom.id for atom in new],
        shown=_to_show(desk, scenes, due, new, room),
    )


def _standing(store: Store, space: str) -> dict[str, Scene]:
    """Return the scenes that tell anything, the hottest first, without what was forgotten."""
    return {scene.slug: scene for scene in standing(store, space)}


def _to_show(desk: Desk, scenes: dict[str, Scene], due: Sequence[str], new: Sequence[Atom], room: int) -> list[str]:
    """Return the pages to show in full: those that are due, then the nearest, as many as there is room for."""
    if sum(map(_length, scenes.values())) <= room:
        return list(scenes)
    near = _nearness(desk, scenes, new)
    order = sorted(scenes, key=lambda slug: (slug not in due, -near[slug], -scenes[slug].heat, slug))
    shown: list[str] = []
    for slug in order:
        room -= _length(scenes[slug])
        if room >= 0 or not shown:
            shown.append(slug)
    return shown


def _length(scene: Scene) -> int:
    return len(scene.body) + len(scene.summary)


def _nearness(desk: Desk, scenes: dict[str, Scene], new: Sequence[Atom]) -> Counter[str]:
    """Return how near each page is to the new atoms: by entities that few pages share, and by atoms that are alike."""
    about = {slug: {fold(name) for name in scene.entities} for slug, scene in scenes.items()}
    spread = Counter(name for names in about.values() for name in names)
    tellers: dict[str, list[str]] = {}
    for slug, scene in scenes.items():
        for id in scene.atoms:
            tellers.setdefault(id, []).append(slug)
    near: Counter[str] = Counter()
    for atom in new:
        named = {fold(name) for name in atom.entities} - {USER}
        for slug, names in about.items():
            near[slug] += sum(10 // spread[name] for name in names & named)
        alike = desk.search(
            desk.space,
            "atom",
            atom.text,
            embedded=lambda text=atom.text: desk.of_query(text),
            filters=Filters(),
            limit=_NEAR,
        )
        for rank, hit in enumerate(alike):
            for slug in tellers.get(hit.id, ()):
                near[slug] += 10 // (rank + 1)
    return near


# --- what is asked ----------------------------------------------------------------------------------


def question(desk: Desk, basis: Basis) -> Question[Reply] | None:
    """Put a round into words, as the rows are now; None where all of it was forgotten or was rewritten since."""
    store, space = desk.store, desk.space
    scenes = _standing(store, space)
    shown = [scenes[slug] for slug in basis.shown if slug in scenes]
    atoms = store.atoms(space, basis.atoms)
    if not atoms and not _due(store, space, shown):
        return None
    return Question(
        purpose="scenes",
        messages=prompt(
            "scenes",
            today=f"{desk.now:%A, %Y-%m-%d}",
            room=_room(len(scenes), desk.settings.max_scenes),
            listed="\n".join(_listed(scene) for scene in scenes.values()) or "There is none yet.",
            pages="\n".join(map(_page, shown)) or "There is none yet.",
            ended="\n".join(_ended(store, space, shown)) or "Nothing.",
            statements="\n".join(_statement(store, space, atom) for atom in atoms) or "None this time.",
        ),
        reply=Reply,
        max_tokens=_ANSWER_TOKENS,
    )


def _due(store: Store, space: str, shown: Sequence[Scene]) -> list[str]:
    due = {scene.slug for scene in stale(store, space)}
    return [scene.slug for scene in shown if scene.slug in due]


def _room(count: int, most: int) -> str:
    """Say how many pages there are, and what that means for new ones."""
    there = f"Pages: {count}; there is room for {most - 1}."
    if count >= most:
        return f"{there} Too many stand: first merge two or more that belong together, then write what is new."
    if count == most - 1:
        return f"{there} A new page is possible only where two are merged into one."
    if count >= most - 3:
        return f"{there} It is getting full: tell what is new in pages that stand, or merge two that tell one story."
    return f"{there} A theme of its own may get a new page."


def _listed(scene: Scene) -> str:
    return (
        f"{scene.slug} | {_one_line(scene.title)} | heat {scene.heat} | {scene.updated:%Y-%m-%d}"
        f" | {_one_line(scene.summary)}"
    )


def _page(scene: Scene) -> str:
    title = _one_line(scene.title).replace('"', "'")
    return (
        f'<page slug="{scene.slug}" title="{title}" updated="{scene.updated:%Y-%m-%d}">\n'
        f"{_fenced(scene.body.strip())}\n</page>"
    )


def _statement(store: Store, space: str, atom: Atom) -> str:
    told = [f"{atom.valid_from:%Y-%m-%d}"]
    if atom.kind == "instruction":
        told.append("a rule for the assistant")
    if atom.confidence < _SAID:
        told.append("implied")
    if atom.entities:
        told.append(f"about {_one_line(', '.join(atom.entities))}")
    return f"({atom.id}) {', '.join(told)}: {_one_line(atom.text)}{_end(store, space, atom)}"


def _ended(store: Store, space: str, shown: Sequence[Scene]) -> Iterator[str]:
    """Yield what the pages tell and holds no longer, since they were written or before, and what holds instead."""
    told = dict.fromkeys(id for scene in shown for id in scene.atoms)
    late = {old.id for scene in shown for old, _ in ended_since(store, space, scene)}
    for atom in store.atoms(space, told):
        if atom.valid_to is not None:
            new = " Ended since the page was written." if atom.id in late else ""
            yield f"({atom.id}) {_one_line(atom.text)}{_end(store, space, atom)}{new}"


def _end(store: Store, space: str, atom: Atom) -> str:
    if atom.valid_to is None:
        return ""
    why = f", because {_one_line(atom.closed_because)}" if atom.closed_because else ""
    now = "".join(f"; now ({newer.id}) {_one_line(newer.text)}" for newer in _in_place_of(store, space, [atom]))
    return f" [until {atom.valid_to:%Y-%m-%d}{why}{now}]"


def _in_place_of(store: Store, space: str, atoms: Sequence[Atom]) -> list[Atom]:
    """Return the atoms that hold where these held."""
    return [newer for _, newer in ended(store, space, [atom.id for atom in atoms], after=0) if newer]


_FENCE = re.compile(r"<(?=\s*/?\s*(all_pages|pages?|ended|statements)\b)", re.IGNORECASE)


def _fenced(text: str) -> str:
    return _FENCE.sub("‹", text)


def _one_line(text: str) -> str:
    return _fenced(one_line(text, _LINE))


# --- what is kept -----------------------------------------------------------------------------------


def apply(desk: Desk, work: Work, basis: Basis, reply: Reply | None) -> Applied:
    """Check the edits and store them together. InvalidInput says how to mend what cannot be stored."""
    done = checked(reply, _round(desk, basis)) if reply else Checked(edits=[], kept=[], refused=[], outcome={})
    desk.store.commit_scenes(
        desk.space,
        work.id,
        edits=done.edits,
        upto=basis.upto,
        wanted=one_line(reply.persona_update, _LINE) or None if reply and _worth_a_page(desk) else None,
        outcome=done.outcome,
        now=desk.now,
    )
    return Applied(outcome=done.outcome, kept=done.kept, refused=done.refused)


def _worth_a_page(desk: Desk) -> bool:
    """Tell whether enough is new for the persona to be written out of turn: models ask for it nearly every time."""
    state = desk.store.stage_states(desk.space).get("persona")
    enough = max(1, desk.settings.persona_every // 2)
    return len(desk.store.atoms_since(desk.space, state.position if state else 0, limit=enough)) >= enough


def _round(desk: Desk, basis: Basis) -> Round:
    store, space = desk.store, desk.space
    scenes = _standing(store, space)
    shown = [scenes[slug] for slug in basis.shown if slug in scenes]
    return Round(
        scenes=scenes,
        shown=[scene.slug for scene in shown],
        stale=_due(store, space, shown),
        atoms={atom.id: atom for atom in _citable(store, space, basis, shown)},
        new=basis.atoms,
        most=desk.settings.max_scenes,
        is_entity=lambda name: entity_called(store, space, name) is not None,
    )


def _citable(store: Store, space: str, basis: Basis, shown: Sequence[Scene]) -> list[Atom]:
    """Return what the question named by its id and is not forgotten by now."""
    named = store.atoms(space, {*basis.atoms, *(id for scene in shown for id in scene.atoms)})
    return [*named, *_in_place_of(store, space, named)]


SCENES = StageOf(name="scenes", basis=Basis, reply=Reply, plan=plan, question=question, apply=apply)
