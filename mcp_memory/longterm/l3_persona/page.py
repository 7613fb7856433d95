"""The page about the user as it stands: what a model wrote or, without one, what was told, listed; the scenes under it.

A page is a projection. Between two writings of it, reading keeps it true: lines that rest on nothing but what was
forgotten are left out, and what was told or closed since stands in a section of its own. All of it together, the
scenes aside, is at most 2,000 characters. Nothing is inferred here, and nobody is asked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff
from itertools import accumulate

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import ATTRIBUTION, Atom, Kind, PersonaVersion, Scene
from mcp_memory.language.words import fold
from mcp_memory.longterm.endings import ended, is_joined
from mcp_memory.longterm.l2_scenes.page import called, standing
from mcp_memory.longterm.l2_scenes.slugs import slug_of
from mcp_memory.longterm.trust import fit_for_pages
from mcp_memory.store.citations import cited, links, without
from mcp_memory.store.protocol import Filters, Store

__all__ = [
    "EMPTY",
    "MAX_CHARS",
    "OURS",
    "STATED",
    "body",
    "diff",
    "ended_since",
    "identity",
    "last_read",
    "lines_of",
    "navigation",
    "page",
    "section_of",
    "sections",
    "sound_scenes",
    "versions",
    "whole",
    "without_forgotten",
    "without_sections",
]

MAX_CHARS = 2_000
_SINCE_CHARS = 500
_LINE = 220
_READ = 200
STATED = 0.8
"""The confidence of what was said in so many words; what a model took to be implied has less, and is not listed."""
_SINCE_READ = 1_000

EMPTY = (
    "# Persona\n\nNothing has been told yet. What the user says of themselves with `remember` is listed here;"
    " nothing is inferred.\n"
)
_SINCE, _SCENES = "Since then", "Scenes"
OURS = (_SINCE, _SCENES)
"""Sections that are made here: no page has them of its own."""
_HEADINGS: tuple[tuple[Kind, str], ...] = (
    ("instruction", "Standing instructions"),
    ("persona", "About the user"),
    ("episodic", "What happened"),
)


def whole(store: Store, space: str) -> str:
    """Return the page as it stands, with the scenes under it."""
    return "\n".join(part for part in (body(store, space), navigation(standing(store, space))) if part)


def due(store: Store, space: str) -> str | None:
    """Return the page as its file has to hold it; None where nothing is known that it could tell."""
    if store.persona(space) is None and page(store, space) == EMPTY:
        return None
    return whole(store, space)


def body(store: Store, space: str) -> str:
    """Return the page as it stands, without the scenes."""
    held = store.persona(space)
    if held is None or not held.by_model:
        return page(store, space)
    written = without_forgotten(store, space, held)
    closed = ended_since(store, space, written)
    text = without(written.text, {old.id for old, _ in closed})
    if not lines_of(text):
        return page(store, space)
    since = _since(closed, _told_since(store, space))
    return _shortened(text, MAX_CHARS - len(since) - 1) + "\n" + since if since else text


def navigation(scenes: Sequence[Scene]) -> str:
    """Return the section that lists the scenes, hottest first; nothing where there are none."""
    if not scenes:
        return ""
    ordered = sorted(scenes, key=lambda scene: (-scene.heat, scene.slug))
    lines = [
        f"- {scene.slug} (heat {scene.heat}, {scene.updated:%Y-%m-%d}): {one_line(scene.summary, _LINE)}"
        for scene in ordered
    ]
    how = "Hottest first. Read one at memory://scene/<name>; memory_search with scene=<name> finds what it rests on."
    return f"## {_SCENES}\n\n{how}\n\n" + "\n".join(lines) + "\n"


def identity(store: Store, space: str) -> list[str]:
    """Return what tells who the user is, most telling first: the facts the user told of themselves, as `name: Maya`."""
    about = store.facts(space, filters=Filters(entity="user", unheld=True), limit=_READ)
    # Not of others whom the user is named beside, and not what others say of the user.
    facts = [fact for fact in about if fold(fact.entity) == "user" and fact.source == "user"]
    rank = {name: place for place, name in enumerate(("name", "preferred_name", "full_name", "pronouns", "works_as"))}
    facts.sort(key=lambda fact: rank.get(fact.relation, len(rank)))
    return [f"{fact.relation.replace('_', ' ')}: {one_line(fact.value, 80)}" for fact in facts]


# --- sections ---------------------------------------------------------------------------------------


def sections(text: str) -> list[str]:
    return [line[3:] for line in text.splitlines() if line.startswith("## ")]


def section_of(text: str, wanted: str) -> str:
    """Return one section of the page, heading included. NotFound names those there are."""
    for name in sections(text):
        if fold(name) == fold(wanted.strip().lstrip("# ")):
            rest = text[text.index(f"## {name}\n") :]
            return rest.partition("\n## ")[0].rstrip() + "\n"
    known = ", ".join(sections(text)) or "none yet"
    raise NotFound(f"The persona has no section {one_line(wanted, 40)!r}. Sections: {known}.")


def without_sections(text: str, names: Collection[str]) -> str:
    """Return the page without the sections of these names."""
    unwanted = {fold(name) for name in names}
    parts = re.split(r"(?m)^(?=## )", text)
    return "".join(part for part in parts if fold(part.partition("\n")[0].strip("# ")) not in unwanted)


def _tidy(lines: Iterable[str]) -> str:
    """Return the lines as a page, without sections that nothing stands in."""
    parts = re.split(r"(?m)^(?=## )", "\n".join(lines))
    kept = [part.strip() for part in parts if not part.startswith("## ") or part.partition("\n")[2].strip()]
    return "\n\n".join(part for part in kept if part) + "\n"


def lines_of(text: str) -> list[str]:
    """Return the lines that say something: neither blank nor headings."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _shortened(text: str, limit: int) -> str:
    """Return the page within so many characters: its last lines give way."""
    lines = text.splitlines()
    while len(text) > limit:
        lines.pop()
        text = _tidy(lines)
    return text


# --- what became of a page since it was written -----------------------------------------------------


def versions(store: Store, space: str) -> list[PersonaVersion]:
    """Return all versions, the newest first, each without what was forgotten."""
    return [without_forgotten(store, space, version) for version in store.persona_versions(space)]


def diff(old: PersonaVersion | None, new: PersonaVersion | None) -> str:
    """Return what changed from one version to another, as a unified diff; empty where nothing did."""
    lines = unified_diff(
        old.text.splitlines() if old else [],
        new.text.splitlines() if new else [],
        fromfile=_label(old),
        tofile=_label(new),
        lineterm="",
    )
    return "".join(f"{line}\n" for line in lines)


def _label(version: PersonaVersion | None) -> str:
    return f"version {version.version}, {version.at:%Y-%m-%d %H:%M}" if version else "no page"


def without_forgotten(store: Store, space: str, version: PersonaVersion) -> PersonaVersion:
    """Return a version without the lines that rest on nothing but what was forgotten.

    A line that names a scene and no atom rests on all that this scene told when the page was written: what was
    forgotten of it may be just what the line says.
    """
    gone = _forgotten(store, space, cited(version.text))
    text = without(version.text, gone)
    scenes = {scene.slug: scene for scene in store.scenes(space)}
    shaken = {name for name in links(text) if _is_shaken(store, space, scenes, name, version)}
    lines = [line for line in text.splitlines() if cited(line) or not shaken.intersection(links(line))]
    return replace(version, text=_tidy(lines)) if gone or shaken else version


def _is_shaken(store: Store, space: str, scenes: Mapping[str, Scene], name: str, version: PersonaVersion) -> bool:
    scene = called(scenes, name)
    told = store.scene_versions(space, scene.slug if scene else slug_of(name))
    then = next((one for one in told if one.updated <= version.at), None)
    return then is None or bool(_forgotten(store, space, then.atoms))


def _forgotten(store: Store, space: str, ids: Sequence[str]) -> set[str]:
    return set(ids) - {atom.id for atom in store.atoms(space, ids) if not atom.held}


def sound_scenes(store: Store, space: str) -> list[Scene]:
    """Return the scenes that rest on nothing forgotten; the others are about to be written anew."""
    scenes = store.scenes(space)
    gone = _forgotten(store, space, [id for scene in scenes for id in scene.atoms])
    return [scene for scene in scenes if not gone.intersection(scene.atoms)]


def ended_since(store: Store, space: str, written: PersonaVersion) -> list[tuple[Atom, Atom | None]]:
    """Return what the page that stands says and holds no longer, each with what holds in its place."""
    return ended(store, space, cited(written.text), after=last_read(store, space))


def last_read(store: Store, space: str) -> int:
    """Return the number of the last atom that was there when a model last wrote the page."""
    state = store.stage_states(space).get("persona")
    return state.position if state else 0


def _told_since(store: Store, space: str) -> list[Atom]:
    """Return what was told in so many words since a model last read, and holds; rules first, then the newest."""
    new = store.atoms_since(space, last_read(store, space), limit=_SINCE_READ)
    notes = {turn.id for turn in store.turns(space, [atom.evidence for atom in new]) if turn.role == "note"}
    told = [atom for atom in new if atom.valid_to is None and atom.evidence in notes and fit_for_pages(atom)]
    return sorted(told, key=lambda atom: (atom.kind != "instruction", -int(atom.id[1:])))


def _since(closed: Sequence[tuple[Atom, Atom | None]], told: Sequence[Atom]) -> str:
    """Return the section, at most 500 characters; its last line says how much more there is."""
    lines = [_closing(old, newer) for old, newer in closed]
    known = {newer.id for _, newer in closed if newer}
    lines += [f"- {_said(atom, _LINE)} ({atom.id})" for atom in told if atom.id not in known]
    for shown in range(len(lines), 0, -1):
        rest = len(lines) - shown
        more = [f"- … and {rest} more: memory_search without a query lists what holds"] if rest else []
        text = f"## {_SINCE}\n\n" + "\n".join([*lines[:shown], *more]) + "\n"
        if len(text) <= _SINCE_CHARS or shown == 1:
            return text
    return ""


def _closing(old: Atom, newer: Atom | None) -> str:
    before = f"{_said(old, _LINE // 2)} ({old.id})"
    if newer is None:
        return f"- No longer: {before}"
    if is_joined(old, newer):
        return f"- {_said(newer, _LINE)} ({newer.id})"
    return f"- {_said(newer, _LINE)} ({newer.id}). No longer: {before}"


def _said(atom: Atom, limit: int) -> str:
    """Return a statement behind whose word it is, which the user's own needs not."""
    text = one_line(atom.text, limit)
    return f"{ATTRIBUTION[atom.source]}: {text}" if ATTRIBUTION[atom.source] else text


# --- without a model --------------------------------------------------------------------------------


def page(store: Store, space: str) -> str:
    """Return what was told, by kind, each line with its atom; each section says how many lines did not fit."""
    told: dict[Kind, list[Atom]] = {kind: _current(store, space, kind) for kind, _ in _HEADINGS}
    if not any(told.values()):
        return EMPTY
    lines: dict[Kind, list[str]] = {kind: [_line(kind, atom) for atom in atoms] for kind, atoms in told.items()}
    lengths = {kind: [0, *accumulate(len(line) + 1 for line in held)] for kind, held in lines.items()}
    shown: dict[Kind, int] = {kind: len(held) for kind, held in lines.items()}

    def length() -> int:
        """Of the page as it would be; it is composed once, for there may be hundreds of lines to leave out."""
        parts = [len("# Persona")]
        for kind, heading in _HEADINGS:
            if lines[kind]:
                rest = _rest(kind, len(lines[kind]) - shown[kind])
                parts.append(len(f"## {heading}\n\n") + lengths[kind][shown[kind]] + (len(rest) if rest else -1))
        return sum(parts) + 2 * (len(parts) - 1) + 1

    while length() > MAX_CHARS:
        # Shorten the longest section first: a person's traits do not give way to a long diary.
        longest = max(shown, key=lambda kind: (shown[kind], kind == "episodic"))
        shown[longest] -= 1
    return _compose(lines, shown)


def _current(store: Store, space: str, kind: Kind) -> list[Atom]:
    listed = store.list_atoms(space, filters=Filters(kind=kind, unheld=True), limit=_READ)
    atoms = [atom for atom in listed if atom.confidence >= STATED and fit_for_pages(atom)]
    return sorted(atoms, key=lambda atom: atom.valid_from, reverse=True) if kind == "episodic" else atoms


def _compose(lines: Mapping[Kind, Sequence[str]], shown: Mapping[Kind, int]) -> str:
    parts = ["# Persona"]
    for kind, heading in _HEADINGS:
        if held := lines[kind]:
            rest = _rest(kind, len(held) - shown[kind])
            parts.append(f"## {heading}\n\n" + "\n".join([*held[: shown[kind]], *([rest] if rest else [])]))
    return "\n\n".join(parts) + "\n"


def _rest(kind: Kind, more: int) -> str:
    return f"- … and {more} more: memory_search kind={kind}" if more else ""


def _line(kind: Kind, atom: Atom) -> str:
    when = f"{atom.valid_from:%Y-%m-%d}: " if kind == "episodic" else ""
    return f"- {when}{_said(atom, _LINE)} ({atom.id})"
