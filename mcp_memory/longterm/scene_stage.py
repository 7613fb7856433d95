"""L2: pages that each cover one theme; every line cites its evidence.

Due when atoms were learned since the last round, or when the evidence of a page was forgotten or ended. A round shows
the new atoms, the pages that they may belong to line by line, and the others by their summaries; a reply changes lines.
Every version is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pydantic import BaseModel, Field

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Scene
from mcp_memory.language.words import fold
from mcp_memory.longterm.page_lines import STATEMENT, dated_statements, numbered
from mcp_memory.longterm.scene_edits import MAX_CHARS, SceneReply, SceneRound, check_edits
from mcp_memory.longterm.scenes import (
    USER,
    ended_atoms,
    ended_since,
    entity_called,
    is_joined,
    read_to,
    slug_of,
    stale,
    stored_scenes,
)
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.verification.trust import fit_for_pages, speakers_of
from mcp_memory.models.metered import Applied, ModelQuestion, StageDefinition
from mcp_memory.models.prompts import fenced, prompt
from mcp_memory.store.citations import plain
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Conflict, Filters, SceneChanges, Work

_ATOMS = 60
_LISTED, _KNOWN = 160, 80  # characters of summaries, and of statements whose words a page has
_REASON = 300
_ASKED_CHARS = MAX_CHARS - 300  # models count badly: a slightly longer page is kept
_NEARLY_FULL = 1_000
_ANSWER_TOKENS = 8_000


class SceneBasis(BaseModel):
    """The subject of a round: atoms after the cursor up to `upto`, and the pages that it shows line by line."""

    after: int
    upto: int
    atoms: list[str]
    shown: list[str]
    versions: list[int] = Field(default_factory=list[int])
    """Of the pages shown: their lines have other numbers in other versions."""


# --- when it is due ---------------------------------------------------------------------------------


def plan(context: SearchContext, *, session: str | None, smaller: int) -> SceneBasis | None:
    """Return the next round: the oldest atoms that no round has seen, or else the pages that are due for rewriting."""
    store, space = context.store, context.space
    after = read_to(store, space, "scenes")
    new = store.atoms_since(space, after, limit=max(1, _ATOMS >> smaller), sentences=False)
    scenes = _standing(store, space)
    due = [scene.slug for scene in stale(store, space) if scene.slug in scenes]
    if not new and not due:
        return None
    sound = [atom for atom in new if fit_for_pages(atom)]
    shown = to_show(context, scenes, due, sound, smaller=smaller)
    return SceneBasis(
        after=after,
        upto=int(new[-1].id[1:]) if new else after,
        atoms=[atom.id for atom in sound],
        shown=shown,
        versions=[scenes[slug].version for slug in shown],
    )


def _standing(store: Store, space: str) -> dict[str, Scene]:
    return {scene.slug: scene for scene in stored_scenes(store, space)}


# --- the question -----------------------------------------------------------------------------------


def question(context: SearchContext, basis: SceneBasis) -> ModelQuestion[SceneReply] | None:
    """Put a round into words, as the rows are now; None where all of it was forgotten, joined or rewritten since."""
    store, space = context.store, context.space
    stored = _stored(store, space)
    scenes = _standing(store, space)
    shown = [scenes[slug] for slug in basis.shown if slug in scenes and slug in stored]
    atoms = _with_newer(store, space, basis.atoms)
    new = [atom for atom, newer in atoms if not is_joined(atom, newer)]
    if not new and not _due(store, space, shown):
        return None
    named = {atom.id for atom in new}
    ends = {atom.id: _end(atom, newer, named) for atom, newer in atoms if atom.valid_to is not None}
    return ModelQuestion(
        purpose="scenes",
        messages=prompt(
            "scenes",
            most=f"{_ASKED_CHARS:,}",
            pages="\n".join(_page(scene, stored) for scene in shown) or "None.",
            others="\n".join(_listed(scene) for scene in scenes.values() if scene not in shown) or "None.",
            ended="\n".join(_ended(store, space, shown, named)) or "Nothing.",
            statements="\n".join(dated_statements(new, _one_line, ends=ends)) or "None this time.",
            now=" ".join((*_last_said(store, space, new, shown), _room(len(scenes), context.settings.max_scenes))),
        ),
        reply=SceneReply,
        max_tokens=_ANSWER_TOKENS,
    )


def _stored(store: Store, space: str) -> dict[str, str]:
    """Return the bodies as they are stored: lines are counted in these, whatever of them is forgotten meanwhile."""
    return {scene.slug: scene.body for scene in store.scenes(space)}


def _last_said(store: Store, space: str, new: Sequence[Atom], shown: Sequence[Scene]) -> Iterator[str]:
    """Yield the day that the pages are written on, as their readers see it: the last one on which something was said.

    Of talk that is imported, that is long before today.
    """
    atoms = new or store.atoms(space, {id for scene in shown for id in scene.atoms})
    said = [turn.said_at for turn in store.turns(space, {atom.evidence for atom in atoms})]
    if said:
        yield f"Write as on {max(said):%A, %Y-%m-%d}, when the last of this was said."


def _due(store: Store, space: str, shown: Sequence[Scene]) -> list[str]:
    due = {scene.slug for scene in stale(store, space)}
    return [scene.slug for scene in shown if scene.slug in due]


def _with_newer(store: Store, space: str, ids: Iterable[str]) -> list[tuple[Atom, Atom | None]]:
    """Return the atoms, each with the one that holds in its place if it holds no longer."""
    ids = list(ids)
    newer = {old.id: newer for old, newer in ended_atoms(store, space, ids, after=0)}
    return [(atom, newer.get(atom.id)) for atom in store.atoms(space, ids)]


def _room(count: int, most: int) -> str:
    """Say how many pages there are, and what that means for new ones."""
    there = f"Pages: {count}, of {most - 1} at most."
    if count >= most:
        return f"{there} Too many stand: first merge two or more that belong together, then write what is new."
    if count == most - 1:
        return f"{there} A new page is possible only where two are merged into one."
    if count >= most - 3:
        return f"{there} It is getting full: tell what is new in pages that stand, or merge two that tell one story."
    return there


def _listed(scene: Scene) -> str:
    title = f" ({_one_line(scene.title)})" if slug_of(scene.title) != scene.slug else ""
    return f"{scene.slug}{title}: {_fenced(one_line(scene.summary, _LISTED))}"


def _page(scene: Scene, stored: Mapping[str, str]) -> str:
    length = len(plain(scene.body))
    full = f' full="{length:,} of {_ASKED_CHARS:,} characters"' if length > _NEARLY_FULL else ""
    lines = "\n".join(numbered(stored[scene.slug], scene.body))
    return (
        f'<page slug="{scene.slug}" title="{_quoted(scene.title)}" summary="{_quoted(scene.summary)}"{full}>\n'
        f"{_fenced(lines)}\n</page>"
    )


def _quoted(text: str) -> str:
    return _one_line(text).replace('"', "'")


def _ended(store: Store, space: str, shown: Sequence[Scene], named: Collection[str]) -> Iterator[str]:
    """Yield what the pages tell and holds no longer, or is said by another, since they were written.

    What had ended before they tell as past.
    """
    told = dict.fromkeys(id for scene in shown for id in scene.atoms)
    late = {old.id for scene in shown for old, _ in ended_since(store, space, scene)}
    past: list[str] = []
    for atom, newer in _with_newer(store, space, told):
        if newer is not None and is_joined(atom, newer):
            yield f"({atom.id}) joined into {_named(newer, named)}"
        elif atom.id in late:
            yield f"({atom.id}) {_fenced(one_line(atom.text, _KNOWN))} [{_end(atom, newer, named)}]"
        elif atom.valid_to is not None:
            past.append(f"({atom.id}) {atom.valid_to:%Y-%m-%d}")
    if past:
        yield f"Told as past already: {', '.join(past)}"


def _end(atom: Atom, newer: Atom | None, named: Collection[str]) -> str:
    why = f", because {_one_line(atom.closed_because)}" if atom.closed_because else ""
    now = f"; now {_named(newer, named)}" if newer else ""
    return f"until {atom.valid_to:%Y-%m-%d}{why}{now}"


def _named(atom: Atom, named: Collection[str]) -> str:
    """Return an atom by its id, with its words where they do not stand in the question anyway."""
    return f"({atom.id})" if atom.id in named else f"({atom.id}) {_one_line(atom.text)}"


def _fenced(text: str) -> str:
    return fenced(text, "pages?", "other_pages", "ended", "statements")


def _one_line(text: str) -> str:
    return _fenced(one_line(text, STATEMENT))


# --- the reply --------------------------------------------------------------------------------------


def apply(context: SearchContext, work: Work, basis: SceneBasis, reply: SceneReply | None) -> Applied:
    """Check the edits and store them together. InvalidInput says how to mend what cannot be stored."""
    edits, done = check_edits(reply, _round(context, basis)) if reply else ([], Applied(outcome={}))
    context.store.commit(
        context.space,
        work.id,
        SceneChanges(
            edits=edits,
            upto=basis.upto,
            wanted=one_line(reply.persona, _REASON) or None if reply and _worth_a_page(context) else None,
        ),
        outcome=done.outcome,
        now=context.now,
    )
    return done


_WEIGHTY = 90  # the priority of name, family, health, and what a life turns on


def _worth_a_page(context: SearchContext) -> bool:
    """Return whether enough is new for the persona to be written out of turn: a third of the known atoms, many, or one
    that a life turns on.

    Models ask for it nearly every time.
    """
    many = max(1, context.settings.persona_every // 2)
    new = context.store.atoms_since(
        context.space, read_to(context.store, context.space, "persona"), limit=many, sentences=False
    )
    weighty = any(atom.priority >= _WEIGHTY and fit_for_pages(atom) for atom in new)
    return weighty or len(new) >= min(many, context.store.counts(context.space).current / 3)


def _round(context: SearchContext, basis: SceneBasis) -> SceneRound:
    store, space = context.store, context.space
    scenes = _standing(store, space)
    shown = [scenes[slug] for slug in basis.shown if slug in scenes]
    if any(
        slug in scenes and scenes[slug].version != one for slug, one in zip(basis.shown, basis.versions, strict=False)
    ):
        raise Conflict("A page was rewritten meanwhile, so its lines have other numbers now.")
    due = [scene.slug for scene in stale(store, space) if scene.slug in scenes]
    elsewhere = {id for scene in scenes.values() if scene not in shown for id in scene.atoms}
    citable = _citable(store, space, basis, shown)
    return SceneRound(
        scenes=scenes,
        shown=[scene.slug for scene in shown],
        stale=[slug for slug in due if slug in basis.shown],
        unseen=[slug for slug in due if slug not in basis.shown],
        atoms={atom.id: atom for atom in citable},
        speakers=speakers_of(store, space, citable),
        cited_elsewhere={atom.id: atom for atom in store.atoms(space, elsewhere)},
        stored=_stored(store, space),
        new=basis.atoms,
        most=context.settings.max_scenes,
        is_entity=lambda name: entity_called(store, space, name) is not None,
    )


def _citable(store: Store, space: str, basis: SceneBasis, shown: Sequence[Scene]) -> list[Atom]:
    """Return what the question named by its id and is not forgotten by now."""
    named = _with_newer(store, space, {*basis.atoms, *(id for scene in shown for id in scene.atoms)})
    return [atom for both in named for atom in both if atom]


_CHARS = 6_000
_CHARS_TO_MERGE = 24_000  # scenes to merge must be shown
_CHARS_AT_ONCE = 3_000  # scenes of this total length are all shown
_COLDEST = 3  # to be merged where there is no room for a new page
_ALIKE = 12  # other new atoms are among them


def to_show(
    context: SearchContext, scenes: Mapping[str, Scene], due: Sequence[str], new: Sequence[Atom], *, smaller: int
) -> list[str]:
    """Return the slugs: due scenes first, then the nearest; if two must be merged, also the candidates for merging.

    `scenes` has all current ones, the hottest first.
    """
    most = context.settings.max_scenes
    too_many, full = len(scenes) >= most, len(scenes) == most - 1
    room = (_CHARS_TO_MERGE if too_many else _CHARS) >> smaller
    if sum(map(_length, scenes.values())) <= min(room, _CHARS_AT_ONCE):
        return list(scenes)
    near = _near(context, scenes, new)
    to_merge = list(scenes) if too_many else list(scenes)[-_COLDEST:] if full else []
    wanted = [*due, *(slug for slug, _ in near.most_common()), *to_merge]
    return list(_within(scenes, dict.fromkeys(wanted), room))


def _within(scenes: Mapping[str, Scene], slugs: Iterable[str], room: int) -> Iterator[str]:
    """Yield the slugs of those that there is room for, at least the first."""
    for count, slug in enumerate(slugs):
        room -= _length(scenes[slug])
        if room >= 0 or not count:
            yield slug


def _length(scene: Scene) -> int:
    return len(scene.body) + len(scene.summary)


def _near(context: SearchContext, scenes: Mapping[str, Scene], new: Sequence[Atom]) -> Counter[str]:
    """Return the page that each new atom belongs to most likely, with all that speaks for each."""
    about = {slug: {fold(name) for name in scene.entities} for slug, scene in scenes.items()}
    spread = Counter(name for names in about.values() for name in names)
    tellers: dict[str, list[str]] = {}
    for slug, scene in scenes.items():
        for id in scene.atoms:
            tellers.setdefault(id, []).append(slug)
    near: Counter[str] = Counter()
    for atom in new:
        points = _alike(context, tellers, atom)
        named = {fold(name) for name in atom.entities} - {USER}
        for slug, names in about.items():
            points[slug] += sum(10 // spread[name] for name in names & named)
        near.update({slug: many for slug, many in points.most_common(1) if many})
    return near


def _alike(context: SearchContext, tellers: Mapping[str, Sequence[str]], atom: Atom) -> Counter[str]:
    """Return the pages that tell atoms like this one; the most alike count for most."""
    filters = Filters(unheld=True)
    alike = context.search(context.space, "atom", atom.text, embed=context.of_query, filters=filters, limit=_ALIKE)
    points: Counter[str] = Counter()
    for rank, id in enumerate(id for hit in alike if (id := hit.id) in tellers):
        for slug in tellers[id]:
            points[slug] += 10 // (rank + 1)
    return points


SCENES = StageDefinition(name="scenes", basis=SceneBasis, reply=SceneReply, plan=plan, question=question, apply=apply)
