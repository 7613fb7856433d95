"""Prepares scenes for readers: without forgotten lines, with ended statements marked and links to related scenes.

All of this is computed at reading time, and nothing is stored here. Until a model has written scenes, readers see
scenes computed from the current statements (`readable_scenes`). The stages of a model, recall and exports use the
stored scenes only.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import normalize, one_line, safe_name
from mcp_memory.core.types import Atom, Scene, SceneAction, Stage
from mcp_memory.language.words import fold
from mcp_memory.longterm.digest import statement_text
from mcp_memory.longterm.statement_cache import ALWAYS, StatementCache
from mcp_memory.longterm.topics import Topic, topics
from mcp_memory.store.citations import cited_atoms, links, scene_without
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, entity_rows, job_rows, page_rows
from mcp_memory.store.values import SceneEdit

USER = "user"
"""The entity that every scene is about."""
MERGED_INTO = "merged into "
"""Start of the reason of a deletion if the scene was merged into another."""
_LINE, _WAS = 220, 60
_SEE_ALSO = 5
_MAX_HOPS = 20


def rendered_page(store: Store, space: str, scene: Scene) -> str:
    """Return the page as people and agents read it."""
    left = without_forgotten(store, space, scene)
    if not left.body:
        return f"# {left.title}\n\nAll that this page told was forgotten.\n"
    parts = [f"# {left.title}", left.body.strip()]
    if changes := _change_lines(ended_since(store, space, left)):
        parts.append("## Since then\n\n" + "\n".join(changes))
    see_also = [
        f"- [[{other.slug}]]: {other.title} ({', '.join(shared)})" for other, shared in related(store, space, left)
    ]
    if see_also:
        parts.append("## See also\n\n" + "\n".join(see_also))
    return "\n\n".join(parts) + "\n"


def _change_lines(ended: Iterable[tuple[Atom, Atom | None]]) -> list[str]:
    """Return a line for each new statement and each statement that ended without a replacement.

    A new statement comes with the first words of the statements that it replaced; the page has them in full.
    """
    lines: dict[str, str] = {}
    for old, newer in ended:
        if newer is None:
            lines[old.id] = f"- No longer: {one_line(old.text, _LINE)} ({old.id})"
            continue
        line = lines.get(newer.id, f"- {one_line(newer.text, _LINE)} ({newer.id})")
        lines[newer.id] = line if is_joined(old, newer) else f"{line}; no longer: {one_line(old.text, _WAS)} ({old.id})"
    return list(lines.values())


# --- changes since a scene was written --------------------------------------------------------------


def readable_scenes(store: Store, space: str) -> list[Scene]:
    """Return the scenes for readers, the hottest first: the stored scenes, or computed scenes if there are none."""
    return stored_scenes(store, space) if store.read(space, page_rows.scenes) else computed_scenes(store, space)


def listed_scenes(store: Store, space: str) -> list[Scene]:
    """Return the scenes like `readable_scenes`, but as they are stored, including scenes without readable content."""
    return store.read(space, page_rows.scenes) or computed_scenes(store, space)


def stored_scenes(store: Store, space: str) -> list[Scene]:
    """Return the stored scenes with content, the hottest first, without content based on forgotten rows."""
    scenes = store.read(space, page_rows.scenes)
    ids = {id for scene in scenes for id in (*scene.atoms, *cited_atoms(scene.body))}
    gone = ids - store.read(space, atom_rows.are_current, ids).keys()
    left = (scene_without(scene, gone) for scene in scenes)
    return [scene for scene in left if scene.body]


def without_forgotten(store: Store, space: str, scene: Scene) -> Scene:
    """Return a scene, or an old version of a scene, without content based on forgotten rows."""
    return scene_without(scene, _forgotten_ids(store, space, scene))


def _forgotten_ids(store: Store, space: str, scene: Scene) -> set[str]:
    return forgotten(store, space, {*scene.atoms, *cited_atoms(scene.body)})


def forgotten(store: Store, space: str, ids: Collection[str]) -> set[str]:
    """Return those of the ids whose atoms are forgotten or quarantined."""
    return set(ids) - {atom.id for atom in store.read(space, atom_rows.by_ids, ids) if not atom.held}


def read_to(store: Store, space: str, stage: Stage) -> int:
    """Return the number of the last atom that a stage has read; 0 if it never ran."""
    state = store.read(space, job_rows.stage_states).get(stage)
    return state.position if state else 0


def ended_since(store: Store, space: str, scene: Scene) -> list[tuple[Atom, Atom | None]]:
    """Return the atoms cited by a scene that ended after it was written, each with its current replacement or None."""
    return ended_atoms(store, space, cited_atoms(scene.body), after=scene.updated)


def without_ended(store: Store, space: str, scenes: Sequence[Scene]) -> list[Scene]:
    """Return the scenes without atoms that ended since they were written, and without empty scenes."""
    atoms = {scene.slug: cited_atoms(scene.body) for scene in scenes}
    standing = store.read(space, atom_rows.are_current, {id for ids in atoms.values() for id in ids})
    ended = {id for id, is_current in standing.items() if not is_current}
    left: list[Scene] = []
    for scene in scenes:
        if not ended.isdisjoint(atoms[scene.slug]):
            scene = scene_without(scene, {old.id for old, _ in ended_since(store, space, scene)})
        left.append(scene)
    return [scene for scene in left if scene.body]


def stale(store: Store, space: str) -> Iterator[Scene]:
    """Yield the scenes that are due for rewriting: their evidence was forgotten, or ended after they were written."""
    for scene in store.read(space, page_rows.scenes):
        if _forgotten_ids(store, space, scene) or ended_since(store, space, scene):
            yield scene


def is_stale(store: Store, space: str) -> bool:
    return next(stale(store, space), None) is not None


# --- computed scenes --------------------------------------------------------------------------------

COMPUTED = "computed from statements, without a model"
"""The reason of a computed scene."""
_SENTENCE = 300  # characters of a line
_SHOWN = 100  # lines of a page


def computed_scenes(store: Store, space: str) -> list[Scene]:
    """Return a scene for each topic of the current statements, the hottest first; cached until a statement changes.

    The same statements give the same scenes. Empty if no statement was extracted without a model.
    """
    return list(_computed.get(store, space, lambda: (tuple(_scenes_of_topics(topics(store, space))), ALWAYS)))


_computed = StatementCache[Sequence[Scene]]()


def _scenes_of_topics(all_topics: Iterable[Topic]) -> Iterator[Scene]:
    slugs: set[str] = set()
    for topic in all_topics:
        slug = free_slug(topic.name, slugs)
        slugs.add(slug)
        first, last = topic.atoms[0], topic.atoms[-1]
        yield Scene(
            slug=slug,
            title=topic.title,
            summary=f"{len(topic.atoms)} statements, {first.valid_from:%Y-%m-%d} to {last.valid_from:%Y-%m-%d}",
            body=_body(topic.atoms, slug),
            heat=len(topic.atoms),
            atoms=tuple(atom.id for atom in topic.atoms),
            entities=topic.entities,
            version=1,
            action="create",
            reason=COMPUTED,
            created=min(atom.learned_at for atom in topic.atoms),
            updated=max(atom.learned_at for atom in topic.atoms),
        )


def _body(atoms: Sequence[Atom], slug: str) -> str:
    """Return the newest statements, oldest first, each on a line with its date and id."""
    lines = [f"- {atom.valid_from:%Y-%m-%d}: {statement_text(atom, _SENTENCE)} ({atom.id})" for atom in atoms[-_SHOWN:]]
    if earlier := len(atoms) - len(lines):
        lines.insert(0, f"- … {earlier} earlier ones: memory_search with scene={slug} lists them")
    return "\n".join(lines) + "\n"


# --- links ------------------------------------------------------------------------------------------


def related(store: Store, space: str, scene: Scene) -> list[tuple[Scene, list[str]]]:
    """Return at most five scenes that share entities with a scene, and the shared names; rare entities count more."""
    scenes = readable_scenes(store, space)
    spread = Counter(fold(name) for other in scenes for name in other.entities)
    own = {fold(name) for name in scene.entities} - {USER}
    hits: list[tuple[float, Scene, list[str]]] = []
    for other in scenes:
        shared = [name for name in other.entities if fold(name) in own]
        if shared and other.slug != scene.slug:
            hits.append((sum(1 / spread[fold(name)] for name in shared), other, shared))
    hits.sort(key=lambda hit: (-hit[0], -hit[1].heat, hit[1].slug))
    return [(other, shared) for _, other, shared in hits[:_SEE_ALSO]]


def resolve(store: Store, space: str, name: str) -> Scene | str | None:
    """Return the target of a link `[[name]]`: a scene, the scene it was merged into, or an entity's name; else None."""
    scene = find_scene({scene.slug: scene for scene in store.read(space, page_rows.scenes)}, name) or _merged_into(
        store, space, name
    )
    if scene is not None:
        return without_forgotten(store, space, scene)
    return entity_called(store, space, name)


def entity_called(store: Store, space: str, name: str) -> str | None:
    """Return the main name of the entity that has this name or alias, None if there is none."""
    folded = fold(name.strip())
    for entity in store.read(space, entity_rows.list_entities, prefix=name.strip(), limit=1_000):
        if folded in map(fold, (entity.name, *entity.aliases)):
            return entity.name
    return None


def find_scene(scenes: Mapping[str, Scene], name: str) -> Scene | None:
    """Return the scene with this slug, in any spelling, or this title; None if there is none."""
    name = name.strip().removeprefix("[[").removesuffix("]]").removesuffix(".md").strip()
    titles = (scene for scene in scenes.values() if fold(scene.title) == fold(name))
    return scenes.get(name) or scenes.get(slug_of(name)) or next(titles, None)


def _merged_into(store: Store, space: str, name: str) -> Scene | None:
    """Follow the merges of a deleted scene, and return the scene that it is part of now; None if it is part of none."""
    slug = slug_of(name)
    for _ in range(_MAX_HOPS):
        last = next(iter(store.read(space, page_rows.scene_versions, slug)), None)
        if last is None or last.action != "delete":
            return last
        into = links(last.reason) if last.reason.startswith(MERGED_INTO) else []
        if not into:
            return None
        slug = into[0]
    return None


# --- versions ---------------------------------------------------------------------------------------


def versions(store: Store, space: str, slug: str) -> list[Scene]:
    """Return all versions of a scene, the newest first, each without forgotten content."""
    return [without_forgotten(store, space, version) for version in store.read(space, page_rows.scene_versions, slug)]


def restored(store: Store, space: str, slug: str, version: int) -> SceneEdit:
    """Return the edit that makes an old version current, without forgotten content.

    Raises NotFound if there is no such version; InvalidInput if it has no content.
    """
    history = versions(store, space, slug)
    if not history:
        raise NotFound(f"There never was a scene {one_line(slug, 60)!r}. `show scenes` lists those there are.")
    old = next((scene for scene in history if scene.version == version), None)
    if old is None:
        raise NotFound(f"There is no version {version} of {slug}. Versions: 1 to {history[0].version}.")
    if not old.body:
        why = "deleted the scene" if old.action == "delete" else "told nothing but what was forgotten since"
        raise InvalidInput(f"Version {version} of {slug} {why}. Choose another; `scene history {slug}` lists them.")
    newest = history[0]
    edit = edit_from(old, action="restore", reason=f"version {version} is back")
    return replace(edit, heat=max(old.heat, newest.heat), version=newest.version)


def edit_from(scene: Scene, *, action: SceneAction, reason: str) -> SceneEdit:
    """Return an edit that stores a scene as it is."""
    return SceneEdit(
        action=action,
        slug=scene.slug,
        reason=reason,
        title=scene.title,
        summary=scene.summary,
        body=scene.body,
        heat=scene.heat,
        atoms=scene.atoms,
        entities=scene.entities,
        version=scene.version,
    )


# --- slugs ------------------------------------------------------------------------------------------

_SLUG_CHARS, _SLUG_BYTES = 60, 100
_NAMELESS = "scene"


def slug_of(title: str) -> str:
    """Return the title in lower case in its original script, with `-` for everything but letters and digits.

    The same title always gives the same slug. A title without letters gives `scene`; names reserved by operating
    systems get the prefix `scene-`.
    """
    words = re.sub(r"(?<=\w)['’](?=\w)", "", normalize("NFKC", title).lower())
    kept = "".join(c if _is_letter(c) else " " for c in words)
    slug = normalize("NFC", "-".join(re.findall(r"[^\W_]\S*", kept)))
    slug = _cut(slug) or _NAMELESS
    try:
        return safe_name(slug, what="name of a scene")
    except InvalidInput:
        return f"{_NAMELESS}-{slug}"


def free_slug(title: str, taken: Collection[str]) -> str:
    """Return the slug of a title, with a number if it is taken."""
    slug = slug_of(title)
    return next(name for n in count(1) if (name := slug if n == 1 else f"{slug}-{n}") not in taken)


def _is_letter(c: str) -> bool:
    return unicodedata.category(c)[0] in "LNM" and not "\ufe00" <= c <= "\ufe0f"


def _cut(slug: str) -> str:
    slug = slug[:_SLUG_CHARS]
    while len(slug.encode()) > _SLUG_BYTES:
        slug = slug[:-1]
    return slug.strip("-")


# --- atoms that ended -------------------------------------------------------------------------------


def ended_atoms(
    store: Store, space: str, ids: Iterable[str], *, after: datetime | int
) -> list[tuple[Atom, Atom | None]]:
    """Return the atoms that ended after a moment, each with its current replacement or None.

    `after` may also be the number of the last atom at that moment, which is exact even if atoms have equal times.
    """
    ids = list(ids)
    standing = store.read(space, atom_rows.are_current, ids)
    ended: list[tuple[Atom, Atom | None]] = []
    for atom in store.read(space, atom_rows.by_ids, [id for id in ids if standing.get(id) is False]):
        newer = _replacement(store, space, atom)
        if atom.valid_to is not None and _ended_after(atom, atom.valid_to, newer, after):
            while newer is not None and newer.valid_to is not None:
                newer = _replacement(store, space, newer)
            ended.append((atom, newer))
    return ended


def is_joined(old: Atom, newer: Atom | None) -> bool:
    """Return whether the newer atom includes an ended atom, with all of its evidence.

    Then the old statement is still true as a part of the newer, and readers must not see it as ended. A sentence that a
    model's statement replaced counts without comparing evidence, since its evidence may include the assistant's
    question. False without a newer atom.
    """
    if newer is None:
        return False
    was_sentence = old.is_sentence and old.valid_to == old.valid_from
    return was_sentence or _evidence_spans(old) <= _evidence_spans(newer)


def _evidence_spans(atom: Atom) -> set[tuple[str, tuple[int, int]]]:
    return {(atom.evidence, atom.span), *((quote.turn, quote.span) for quote in atom.also)}


def _ended_after(atom: Atom, end: datetime, newer: Atom | None, after: datetime | int) -> bool:
    if isinstance(after, int):  # without a replacement, its end was known from the start
        return atom.superseded_by is not None and int(atom.superseded_by[1:]) > after
    if atom.learned_at > after:  # a page that cites a later atom was imported with its atoms
        return end > after
    return (newer.learned_at if newer else end) > after


def _replacement(store: Store, space: str, atom: Atom) -> Atom | None:
    return next(iter(store.read(space, atom_rows.by_ids, [atom.superseded_by])), None) if atom.superseded_by else None
