"""L2: the stage in which a model writes scenes, pages that each cover one theme; every line cites its evidence.

A round is due when atoms were learned since the last round, or when the evidence of a page was forgotten or ended. It
shows the new atoms, the pages that they may belong to line by line, and the summaries of the other pages; a reply
changes lines. Every version is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pydantic import BaseModel, Field

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Scene
from mcp_memory.language.words import fold
from mcp_memory.longterm.page_lines import STATEMENT, SceneReply, dated_statements, numbered
from mcp_memory.longterm.scene_edits import MAX_CHARS, SceneRound, check_edits
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
from mcp_memory.store.citations import without_citations
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, home_rows, page_rows, stage_outputs, turn_rows
from mcp_memory.store.values import Conflict, Filters, SceneChanges, Work

_ATOMS = 60
_LISTED, _KNOWN = 160, 80  # characters shown of a summary, and of a statement that a page already contains
_REASON = 300
_ASKED_CHARS = MAX_CHARS - 300  # models count badly: a slightly longer page is kept
_NEARLY_FULL = 1_000
_ANSWER_TOKENS = 8_000


class SceneBasis(BaseModel):
    """The input of a round: atoms after the cursor up to `upto`, and the pages that it shows line by line."""

    after: int
    upto: int
    atoms: list[str]
    shown: list[str]
    versions: list[int] = Field(default_factory=list[int])
    """Versions of the shown pages, whose lines have other numbers in other versions."""


# --- when it is due ---------------------------------------------------------------------------------


def plan(context: SearchContext, *, session: str | None, smaller: int) -> SceneBasis | None:
    """Return the next round: the oldest atoms after the cursor, and pages to show; None if nothing is new or due."""
    store, space = context.store, context.space
    after = read_to(store, space, "scenes")
    new = store.read(space, atom_rows.list_since, after, limit=max(1, _ATOMS >> smaller), sentences=False)
    scenes = _current_scenes(store, space)
    due = [scene.slug for scene in stale(store, space) if scene.slug in scenes]
    if not new and not due:
        return None
    fit = [atom for atom in new if fit_for_pages(atom)]
    shown = to_show(context, scenes, due, fit, smaller=smaller)
    return SceneBasis(
        after=after,
        upto=int(new[-1].id[1:]) if new else after,
        atoms=[atom.id for atom in fit],
        shown=shown,
        versions=[scenes[slug].version for slug in shown],
    )


def _current_scenes(store: Store, space: str) -> dict[str, Scene]:
    return {scene.slug: scene for scene in stored_scenes(store, space)}


# --- the question -----------------------------------------------------------------------------------


def question(context: SearchContext, basis: SceneBasis) -> ModelQuestion[SceneReply] | None:
    """Return the question of a round, formatted from the current rows.

    None if all of the round was forgotten, joined or rewritten meanwhile.
    """
    store, space = context.store, context.space
    stored = _stored(store, space)
    scenes = _current_scenes(store, space)
    shown = [scenes[slug] for slug in basis.shown if slug in scenes and slug in stored]
    atoms = _with_newer(store, space, basis.atoms)
    new = [atom for atom, newer in atoms if not is_joined(atom, newer)]
    if not new and {scene.slug for scene in stale(store, space)}.isdisjoint(scene.slug for scene in shown):
        return None
    named = {atom.id for atom in new}
    ends = {atom.id: _end(atom, newer, named) for atom, newer in atoms if atom.valid_to is not None}
    return ModelQuestion(
        purpose="scenes",
        messages=prompt(
            "scenes",
            most=f"{_ASKED_CHARS:,}",
            pages="\n".join(_page(scene, stored) for scene in shown) or "None.",
            others="\n".join(_summary_line(scene) for scene in scenes.values() if scene not in shown) or "None.",
            ended="\n".join(_ended(store, space, shown, named)) or "Nothing.",
            statements="\n".join(dated_statements(new, _clean, ends=ends)) or "None this time.",
            now=" ".join((*_writing_date(store, space, new, shown), _room(len(scenes), context.settings.max_scenes))),
        ),
        reply=SceneReply,
        max_tokens=_ANSWER_TOKENS,
    )


def _stored(store: Store, space: str) -> dict[str, str]:
    """Return the bodies as they are stored, because line numbers refer to these, whatever is forgotten meanwhile."""
    return {scene.slug: scene.body for scene in store.read(space, page_rows.scenes)}


def _writing_date(store: Store, space: str, new: Sequence[Atom], shown: Sequence[Scene]) -> Iterator[str]:
    """Yield a sentence with the day as of which the pages are written: the last on which something was said.

    For imported conversations this is long before today.
    """
    atoms = new or store.read(space, atom_rows.by_ids, {id for scene in shown for id in scene.atoms})
    times = [turn.said_at for turn in store.read(space, turn_rows.by_ids, {atom.evidence for atom in atoms})]
    if times:
        yield f"Write as on {max(times):%A, %Y-%m-%d}, when the last of this was said."


def _with_newer(store: Store, space: str, ids: Iterable[str]) -> list[tuple[Atom, Atom | None]]:
    """Return the atoms, each with its current replacement, or None if it has not ended or was not replaced."""
    ids = list(ids)
    newer = {old.id: newer for old, newer in ended_atoms(store, space, ids, after=0)}
    return [(atom, newer.get(atom.id)) for atom in store.read(space, atom_rows.by_ids, ids)]


def _room(count: int, most: int) -> str:
    """Return a sentence on the number of pages, and on the room for new pages."""
    pages = f"Pages: {count}, of {most - 1} at most."
    if count >= most:
        return f"{pages} Too many stand: first merge two or more that belong together, then write what is new."
    if count == most - 1:
        return f"{pages} A new page is possible only where two are merged into one."
    if count >= most - 3:
        return f"{pages} It is getting full: tell what is new in pages that stand, or merge two that tell one story."
    return pages


def _summary_line(scene: Scene) -> str:
    title = f" ({_clean(scene.title)})" if slug_of(scene.title) != scene.slug else ""
    return f"{scene.slug}{title}: {_fenced(one_line(scene.summary, _LISTED))}"


def _page(scene: Scene, stored: Mapping[str, str]) -> str:
    length = len(without_citations(scene.body))
    full = f' full="{length:,} of {_ASKED_CHARS:,} characters"' if length > _NEARLY_FULL else ""
    lines = "\n".join(numbered(stored[scene.slug], scene.body))
    return (
        f'<page slug="{scene.slug}" title="{_quoted(scene.title)}" summary="{_quoted(scene.summary)}"{full}>\n'
        f"{_fenced(lines)}\n</page>"
    )


def _quoted(text: str) -> str:
    return _clean(text).replace('"', "'")


def _ended(store: Store, space: str, shown: Sequence[Scene], named: Collection[str]) -> Iterator[str]:
    """Yield a line for each cited statement that was joined into another, or that ended since its page was written.

    The last line lists the statements that ended before, which the pages already describe as past.
    """
    cited_ids = dict.fromkeys(id for scene in shown for id in scene.atoms)
    ended_lately = {old.id for scene in shown for old, _ in ended_since(store, space, scene)}
    past: list[str] = []
    for atom, newer in _with_newer(store, space, cited_ids):
        if newer is not None and is_joined(atom, newer):
            yield f"({atom.id}) joined into {_reference(newer, named)}"
        elif atom.id in ended_lately:
            yield f"({atom.id}) {_fenced(one_line(atom.text, _KNOWN))} [{_end(atom, newer, named)}]"
        elif atom.valid_to is not None:
            past.append(f"({atom.id}) {atom.valid_to:%Y-%m-%d}")
    if past:
        yield f"Told as past already: {', '.join(past)}"


def _end(atom: Atom, newer: Atom | None, named: Collection[str]) -> str:
    why = f", because {_clean(atom.closed_because)}" if atom.closed_because else ""
    now = f"; now {_reference(newer, named)}" if newer else ""
    return f"until {atom.valid_to:%Y-%m-%d}{why}{now}"


def _reference(atom: Atom, named: Collection[str]) -> str:
    """Return the id of an atom, followed by its text unless the question shows that anyway (`named`)."""
    return f"({atom.id})" if atom.id in named else f"({atom.id}) {_clean(atom.text)}"


def _fenced(text: str) -> str:
    return fenced(text, "pages?", "other_pages", "ended", "statements")


def _clean(text: str) -> str:
    return _fenced(one_line(text, STATEMENT))


# --- the reply --------------------------------------------------------------------------------------


def apply(context: SearchContext, work: Work, basis: SceneBasis, reply: SceneReply | None) -> Applied:
    """Check and store the edits, and mark the atoms of the round as read.

    Raises InvalidInput if an edit has to be corrected, and Conflict if a shown page was rewritten meanwhile.
    """
    edits, done = check_edits(reply, _round(context, basis)) if reply else ([], Applied(outcome={}))
    context.store.write(
        context.space,
        stage_outputs.commit,
        work.id,
        SceneChanges(
            edits=edits,
            upto=basis.upto,
            wanted=one_line(reply.persona, _REASON) or None if reply and _is_much_new(context) else None,
        ),
        outcome=done.outcome,
        now=context.now,
    )
    return done


_IMPORTANT = 90  # the priority of name, family, health, and decisions that change a life


def _is_much_new(context: SearchContext) -> bool:
    """Return whether enough is new to write the persona early, as models request in nearly every reply.

    Enough is an important atom, a third of all atoms, or half as many atoms as make the persona due.
    """
    store, space = context.store, context.space
    many = max(1, context.settings.persona_every // 2)
    new = store.read(space, atom_rows.list_since, read_to(store, space, "persona"), limit=many, sentences=False)
    is_important = any(atom.priority >= _IMPORTANT and fit_for_pages(atom) for atom in new)
    return is_important or len(new) >= min(many, store.read(space, home_rows.counts).current / 3)


def _round(context: SearchContext, basis: SceneBasis) -> SceneRound:
    store, space = context.store, context.space
    scenes = _current_scenes(store, space)
    for slug, version in zip(basis.shown, basis.versions, strict=False):
        if slug in scenes and scenes[slug].version != version:
            raise Conflict("A page was rewritten meanwhile, so its lines have other numbers now.")
    shown = [scenes[slug] for slug in basis.shown if slug in scenes]
    due = [scene.slug for scene in stale(store, space) if scene.slug in scenes]
    elsewhere = {id for scene in scenes.values() if scene not in shown for id in scene.atoms}
    in_question = _with_newer(store, space, {*basis.atoms, *(id for scene in shown for id in scene.atoms)})
    citable = [atom for pair in in_question for atom in pair if atom]
    return SceneRound(
        scenes=scenes,
        shown=[scene.slug for scene in shown],
        stale=[slug for slug in due if slug in basis.shown],
        unseen=[slug for slug in due if slug not in basis.shown],
        atoms={atom.id: atom for atom in citable},
        speakers=speakers_of(store, space, citable),
        cited_elsewhere={atom.id: atom for atom in store.read(space, atom_rows.by_ids, elsewhere)},
        stored=_stored(store, space),
        new=basis.atoms,
        most=context.settings.max_scenes,
        is_entity=lambda name: entity_called(store, space, name) is not None,
    )


# --- the pages to show ------------------------------------------------------------------------------

_CHARS = 6_000
_CHARS_TO_MERGE = 24_000  # scenes to merge must be shown
_CHARS_AT_ONCE = 3_000  # scenes of this total length are all shown
_COLDEST = 3  # least used scenes offered for merging when no further page fits
_SIMILAR = 12  # similar atoms, some of which are new too


def to_show(
    context: SearchContext, scenes: Mapping[str, Scene], due: Sequence[str], new: Sequence[Atom], *, smaller: int
) -> list[str]:
    """Return the slugs of the scenes to show in full: all if they are short, otherwise as many as fit.

    Scenes that are due come first, then the nearest to the new atoms; if two must be merged, also the candidates for
    merging. `scenes` has all current scenes, the hottest first.
    """
    most = context.settings.max_scenes
    too_many, full = len(scenes) >= most, len(scenes) == most - 1
    room = (_CHARS_TO_MERGE if too_many else _CHARS) >> smaller
    if sum(map(_length, scenes.values())) <= min(room, _CHARS_AT_ONCE):
        return list(scenes)
    to_merge = list(scenes) if too_many else list(scenes)[-_COLDEST:] if full else []
    ordered = dict.fromkeys([*due, *_nearest(context, scenes, new), *to_merge])
    return list(_fitting(scenes, ordered, room))


def _fitting(scenes: Mapping[str, Scene], slugs: Iterable[str], room: int) -> Iterator[str]:
    """Yield the slugs that there is room for, at least the first."""
    for place, slug in enumerate(slugs):
        room -= _length(scenes[slug])
        if room >= 0 or not place:
            yield slug


def _length(scene: Scene) -> int:
    return len(scene.body) + len(scene.summary)


def _nearest(context: SearchContext, scenes: Mapping[str, Scene], new: Sequence[Atom]) -> list[str]:
    """Return the slugs of the pages that new atoms probably belong to, the strongest matches first."""
    entities = {slug: {fold(name) for name in scene.entities} for slug, scene in scenes.items()}
    spread = Counter(name for names in entities.values() for name in names)
    citing: dict[str, list[str]] = {}
    for slug, scene in scenes.items():
        for id in scene.atoms:
            citing.setdefault(id, []).append(slug)
    points: Counter[str] = Counter()
    for atom in new:
        of_atom = _similar_pages(context, citing, atom)
        named = {fold(name) for name in atom.entities} - {USER}
        for slug, names in entities.items():
            of_atom[slug] += sum(10 // spread[name] for name in names & named)
        points.update({slug: many for slug, many in of_atom.most_common(1) if many})
    return [slug for slug, _ in points.most_common()]


def _similar_pages(context: SearchContext, citing: Mapping[str, Sequence[str]], atom: Atom) -> Counter[str]:
    """Return points for the pages that cite similar atoms; the most similar count most."""
    hits = context.hits("atom", atom.text, filters=Filters(unheld=True), limit=_SIMILAR, is_question=False)
    points: Counter[str] = Counter()
    for rank, id in enumerate(hit.id for hit in hits if hit.id in citing):
        for slug in citing[id]:
            points[slug] += 10 // (rank + 1)
    return points


SCENES = StageDefinition(name="scenes", basis=SceneBasis, reply=SceneReply, plan=plan, question=question, apply=apply)
