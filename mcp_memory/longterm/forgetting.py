"""Selects what to forget by ids, words, sessions and times, and says what else goes or stays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import PersonaVersion, Scene
from mcp_memory.language.words import base_terms
from mcp_memory.longterm.persona import body
from mcp_memory.longterm.scenes import find_scene, slug_of
from mcp_memory.longterm.verification.evidence import call_of
from mcp_memory.store.citations import cited, links, without
from mcp_memory.store.forgetting import How, Reach, Which
from mcp_memory.store.protocol import Store

MAX_IDS = 200
_SHOWN = 12


def chosen_ids(
    store: Store,
    space: str,
    *,
    ids: Sequence[str],
    query: str | None,
    session: str | None,
    since: datetime | None,
    until: datetime | None,
) -> list[str]:
    """Return the ids of the selected rows; several selectors are intersected.

    Raises InvalidInput if no selector is given, and for more than MAX_IDS ids.
    """
    if len(ids) > MAX_IDS:
        raise InvalidInput(f"{len(ids)} ids at once are too many. Forget at most {MAX_IDS} in a call.")
    asked = (query or "").strip()
    if not (ids or asked or session or since or until):
        raise InvalidInput(
            "Say what to forget: ids, a query, a session, a time (since, until), or the tombstone to undo."
        )
    if not (asked or session or since or until):
        return list(ids)
    words = base_terms(asked)
    if asked and not words:
        return []
    found = store.matching(space, Which(terms=words, session=session, since=since, until=until))
    named = set(ids)
    return [id for id in found if id in named] if ids else found


def forgetting_method(*, query: str | None, session: str | None, timed: bool) -> How:
    """Return what the tombstone keeps of how it was said: never the words."""
    return "query" if query else "session" if session else "time" if timed else "ids"


def forgotten_along(store: Store, space: str, reach: Reach, *, query: str | None) -> list[str]:
    """Return sentences about the rows that are forgotten too and the rows that still mention it."""
    told = [
        f"Nothing else is left of what {_named(reach.along)} rest{'s' if len(reach.along) == 1 else ''} on: "
        "that goes too."
        if reach.along
        else "",
        f"{_count(reach.facts, 'fact')} with it." if reach.facts else "",
        f"{_count(reach.records, 'line')} of tasks, with the words on their nodes." if reach.records else "",
        _changed_pages(store, space, reach),
        f"{_named(reach.said_in)} {'stays' if len(reach.said_in) == 1 else 'stay'}, and may say the same: the "
        "statements were drawn from there. Name that too, if it is to go."
        if reach.said_in
        else "",
    ]
    waiting = store.index_progress().unindexed_refs if query else 0
    if waiting:
        told.append(f"{_count(waiting, 'result')} not indexed yet: whether the words stand there is not known.")
    return [sentence for sentence in told if sentence]


def _changed_pages(store: Store, space: str, reach: Reach) -> str:
    atoms = set(reach.atoms)
    is_named = any(not atoms.isdisjoint(cited(line)) for line in body(store, space).splitlines())
    scenes = [scene.title for scene in store.scenes(space) if scene.slug in reach.scenes]
    pages = [*(["the persona"] if is_named else []), *(f"the scene “{title}”" for title in scenes)]
    return f"The lines that are based on it in {', '.join(pages)}." if pages else ""


def previews(store: Store, space: str, ids: Sequence[str], *, written: Mapping[str, str] | None = None) -> list[str]:
    """Return the rows behind the ids, one line per id; `written` are texts that an agent gave some results."""
    atoms = store.atoms(space, [id for id in ids if id.startswith("a")])
    turns = store.turns(space, [id for id in ids if id.startswith("t")])
    lines = {atom.id: atom.text for atom in atoms} | {turn.id: turn.content for turn in turns}
    for ref in (id for id in ids if id.startswith("r-")):
        with suppress(NotFound):
            call, text = call_of(store, space, ref), (written or {}).get(ref, "")
            lines[ref] = call if text in call else f"{call}: {text}"
    for task in (id for id in ids if id.isdecimal()):
        with suppress(NotFound):
            lines[task] = f"task {store.canvas(space, int(task)).label}"
    return [f"{id}: {one_line(lines[id], 120)}" if id in lines else id for id in ids]


def _named(ids: Sequence[str]) -> str:
    rest = len(ids) - _SHOWN
    return ", ".join(ids[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def pages_without(store: Store, space: str, atoms: Collection[str]) -> dict[int, str]:
    """Return the versions that change, by number, without the lines based on these atoms alone.

    A line that names a scene and no atom is based on everything in that scene at the time: it may say just that.
    """
    gone, scenes = set(atoms), {scene.slug: scene for scene in store.scenes(space)}
    changed: dict[int, str] = {}
    for version in store.persona_versions(space):
        text = without(version.text, gone)
        shaken = {name for name in links(text) if _told(store, space, scenes, name, version, gone)}
        kept = [line for line in text.splitlines(keepends=True) if cited(line) or shaken.isdisjoint(links(line))]
        if (left := "".join(kept)) != version.text:
            changed[version.version] = left
    return changed


def _told(
    store: Store, space: str, scenes: Mapping[str, Scene], name: str, version: PersonaVersion, gone: Collection[str]
) -> bool:
    scene = find_scene(scenes, name)
    told = store.scene_versions(space, scene.slug if scene else slug_of(name))
    then = next((one for one in told if one.updated <= version.at), None)
    return then is not None and not set(gone).isdisjoint(then.atoms)
