"""L3: the page about the user, at most 2,000 characters; each line cites its evidence.

A model writes it (`persona_stage`). Without a model it is selected from the statements (`digest`), or lists the
explicit statements if no sentence of the user was extracted. Between two versions, reading leaves out forgotten lines
and lists changes in a separate section.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from difflib import unified_diff

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Kind, PersonaVersion, Scene
from mcp_memory.language.words import fold
from mcp_memory.longterm import digest
from mcp_memory.longterm.digest import HEADINGS, MAX_CHARS, is_of_the_user, statement_text
from mcp_memory.longterm.page_lines import SAID
from mcp_memory.longterm.scenes import (
    ended_atoms,
    find_scene,
    forgotten,
    is_joined,
    read_to,
    readable_scenes,
    slug_of,
    stored_scenes,
)
from mcp_memory.longterm.validity import current_atoms, current_facts, is_past, time_note
from mcp_memory.longterm.verification.trust import fit_for_pages
from mcp_memory.store.citations import cited_atoms, links, uncited_lines, without_atoms
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, page_rows, turn_rows
from mcp_memory.store.values import Filters

EMPTY = (
    "# Persona\n\nNothing has been told yet. What the user says of themselves, in conversations or with `remember`, is"
    " listed here; nothing is inferred.\n"
)
_SINCE, _SCENES = "Since then", "Scenes"
GENERATED = (_SINCE, _SCENES)
"""Generated sections; they are not part of a stored page."""
_SINCE_CHARS = 500
_LINE = 220
_READ = 200
_SINCE_READ = 1_000


def whole(store: Store, space: str, *, at: datetime | None = None) -> str:
    """Return the current page followed by the list of scenes; see `body`.

    Without a moment, as in the file of the page, only stored scenes are listed, because the file is written after each
    batch of turns, and computed scenes would change it each time.
    """
    scenes = stored_scenes(store, space) if at is None else readable_scenes(store, space)
    return "\n".join(part for part in (body(store, space, at=at), navigation(scenes)) if part)


def due(store: Store, space: str) -> str | None:
    """Return the content for the file of the page, None if there is nothing to write."""
    if store.read(space, page_rows.persona) is None and listed_page(store, space) == EMPTY:
        return None
    return whole(store, space)


def body(store: Store, space: str, *, at: datetime | None = None) -> str:
    """Return the current page without the scenes.

    If no model wrote a page, or nothing is left of it, this is `listed_page`. With `at`, it is the page for readers at
    that moment: statements that are past by then are left out, and a listed page marks plans whose day has passed and
    statements that have yet to begin. Without `at`, it is the content of the file, which does not depend on the day.
    """
    version = store.read(space, page_rows.persona)
    if version is None or not version.by_model:
        return listed_page(store, space, at=at)
    written = without_forgotten(store, space, version)
    closed = ended_since(store, space, written)
    ended = {old.id for old, _ in closed}
    if at is not None:
        ended |= {
            atom.id for atom in store.read(space, atom_rows.by_ids, cited_atoms(written.text)) if is_past(atom, at)
        }
    text = without_atoms(written.text, ended)
    if not lines_of(text):
        return listed_page(store, space, at=at)
    since = since_section(closed, _explicit_since(store, space))
    return _shortened(text, MAX_CHARS - len(since) - 1) + "\n" + since if since else text


def navigation(scenes: Sequence[Scene]) -> str:
    """Return the section that lists the scenes, hottest first; empty without scenes."""
    if not scenes:
        return ""
    lines = [
        f"- {scene.slug} (heat {scene.heat}, {scene.updated:%Y-%m-%d}): {one_line(scene.summary, _LINE)}"
        for scene in sorted(scenes, key=lambda scene: (-scene.heat, scene.slug))
    ]
    how = "Hottest first. Read one at memory://scene/<name>; memory_search with scene=<name> finds what it rests on."
    return f"## {_SCENES}\n\n{how}\n\n" + "\n".join(lines) + "\n"


_IDENTITY = ("name", "preferred_name", "full_name", "pronouns", "works_as")


def identity(store: Store, space: str, at: datetime) -> list[str]:
    """Return the user's own facts about themselves that are current at a moment, names first, such as `name: Maya`."""
    candidates = store.read(
        space, atom_rows.facts, filters=Filters(entity="user", unheld=True, ended=True), limit=_READ
    )
    about = current_facts(store, space, candidates, at)  # includes values that end in the future
    # Without facts about others that also mention the user, and facts about the user from others.
    facts = [fact for fact in about if fold(fact.entity) == "user" and fact.source == "user"]
    labels = {atom.id: atom.label for atom in store.read(space, atom_rows.by_ids, [fact.atom for fact in facts])}
    facts = [fact for fact in facts if labels[fact.atom] != "person" or fact.relation == "name"]
    facts.sort(key=lambda fact: _IDENTITY.index(fact.relation) if fact.relation in _IDENTITY else len(_IDENTITY))
    return list(dict.fromkeys(f"{fact.relation.replace('_', ' ')}: {one_line(fact.value, 80)}" for fact in facts))


# --- sections ---------------------------------------------------------------------------------------


def sections(text: str) -> list[str]:
    return [line[3:] for line in text.splitlines() if line.startswith("## ")]


def section_of(text: str, name: str) -> str:
    """Return one section of the page, heading included. Raises NotFound, which names the existing sections."""
    for heading in sections(text):
        if fold(heading) == fold(name.strip().lstrip("# ")):
            rest = text[text.index(f"## {heading}\n") :]
            return rest.partition("\n## ")[0].rstrip() + "\n"
    names = ", ".join(sections(text)) or "none yet"
    raise NotFound(f"The persona has no section {one_line(name, 40)!r}. Sections: {names}.")


def without_sections(text: str, names: Collection[str]) -> str:
    """Return the page without the sections of these names."""
    removed = {fold(name) for name in names}
    parts = re.split(r"(?m)^(?=## )", text)
    return "".join(part for part in parts if fold(part.partition("\n")[0].strip("# ")) not in removed)


def without_empty_sections(lines: Iterable[str]) -> str:
    """Return the lines as a page, without sections that have no lines."""
    parts = re.split(r"(?m)^(?=## )", "\n".join(lines))
    kept = [part.strip() for part in parts if not part.startswith("## ") or part.partition("\n")[2].strip()]
    return "\n\n".join(part for part in kept if part) + "\n"


def lines_of(text: str) -> list[str]:
    """Return the lines with content: neither blank nor headings."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def unfounded(text: str) -> list[str]:
    """Return the lines that cite neither an atom nor a scene."""
    return [line for line in uncited_lines(text) if not links(line)]


def _shortened(text: str, limit: int) -> str:
    lines = text.splitlines()
    while len(text) > limit:
        lines.pop()
        text = without_empty_sections(lines)
    return text


# --- changes since a page was written ---------------------------------------------------------------


def versions(store: Store, space: str) -> list[PersonaVersion]:
    """Return all versions, the newest first, each without forgotten content."""
    return [without_forgotten(store, space, version) for version in store.read(space, page_rows.persona_versions)]


def diff(old: PersonaVersion | None, new: PersonaVersion | None) -> str:
    """Return the changes from one version to another as a unified diff, empty if there are none."""
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
    """Return a version without the lines that are based on forgotten content alone.

    A line that cites a scene and no atom is left out if any atom that the scene had when the page was written is
    forgotten, because the line may be based on it.
    """
    gone = forgotten(store, space, cited_atoms(version.text))
    text = without_atoms(version.text, gone)
    unsure: set[str] = set()
    for name, atoms in _linked_scenes(store, space, version, text):
        if atoms is None or forgotten(store, space, atoms):
            unsure.add(name)
    if not (gone or unsure):
        return version
    return replace(version, text=without_empty_sections(lines_without_links(text.splitlines(), unsure)))


def versions_without(store: Store, space: str, atoms: Collection[str]) -> dict[int, str]:
    """Return the new texts of the versions that change if these atoms are purged, by version number."""
    changed: dict[int, str] = {}
    for version in store.read(space, page_rows.persona_versions):
        text = without_atoms(version.text, atoms)
        linked = _linked_scenes(store, space, version, text)
        unsure = {name for name, in_scene in linked if not set(atoms).isdisjoint(in_scene or ())}
        left = "".join(lines_without_links(text.splitlines(keepends=True), unsure))
        if left != version.text:
            changed[version.version] = left
    return changed


def lines_without_links(lines: Iterable[str], scenes: Collection[str]) -> list[str]:
    """Return the lines except lines that cite no atom and link any of these scenes."""
    return [line for line in lines if cited_atoms(line) or set(scenes).isdisjoint(links(line))]


def _linked_scenes(
    store: Store, space: str, version: PersonaVersion, text: str
) -> list[tuple[str, Sequence[str] | None]]:
    """Return the scenes that a page links, each with its atoms when the page was written, None if not stored then."""
    scenes = {scene.slug: scene for scene in store.read(space, page_rows.scenes)}
    linked: list[tuple[str, Sequence[str] | None]] = []
    for name in links(text):
        scene = find_scene(scenes, name)
        history = store.read(space, page_rows.scene_versions, scene.slug if scene else slug_of(name))
        linked.append((name, next((then.atoms for then in history if then.updated <= version.at), None)))
    return linked


def sound_scenes(store: Store, space: str) -> list[Scene]:
    """Return the scenes without forgotten evidence, which need no rewriting."""
    scenes = store.read(space, page_rows.scenes)
    gone = forgotten(store, space, [id for scene in scenes for id in scene.atoms])
    return [scene for scene in scenes if not gone.intersection(scene.atoms)]


def ended_since(store: Store, space: str, written: PersonaVersion) -> list[tuple[Atom, Atom | None]]:
    """Return the outdated statements of the current page, each with its replacement or None."""
    return ended_atoms(store, space, cited_atoms(written.text), after=read_to(store, space, "persona"))


def _explicit_since(store: Store, space: str) -> list[Atom]:
    """Return the explicit statements since the page was written, rules first, then the newest first."""
    new = store.read(space, atom_rows.list_since, read_to(store, space, "persona"), limit=_SINCE_READ, sentences=False)
    notes = {
        turn.id for turn in store.read(space, turn_rows.by_ids, [atom.evidence for atom in new]) if turn.role == "note"
    }
    explicit = [atom for atom in new if atom.valid_to is None and atom.evidence in notes and fit_for_pages(atom)]
    return sorted(explicit, key=lambda atom: (atom.kind != "instruction", -int(atom.id[1:])))


def since_section(closed: Sequence[tuple[Atom, Atom | None]], explicit: Sequence[Atom]) -> str:
    """Return the section of changes; empty without changes. Its last line counts the changes left out.

    It has at most 500 characters, unless it lists a single change.
    """
    lines = [_closing_line(old, newer) for old, newer in closed]
    replacements = {newer.id for _, newer in closed if newer}
    lines += [f"- {statement_text(atom, _LINE)} ({atom.id})" for atom in explicit if atom.id not in replacements]
    for shown in range(len(lines), 0, -1):
        rest = len(lines) - shown
        more = [f"- … and {rest} more: memory_search without a query lists what holds"] if rest else []
        text = f"## {_SINCE}\n\n" + "\n".join([*lines[:shown], *more]) + "\n"
        if len(text) <= _SINCE_CHARS or shown == 1:
            return text
    return ""


def _closing_line(old: Atom, newer: Atom | None) -> str:
    ended = f"No longer: {statement_text(old, _LINE // 2)} ({old.id})"
    if newer is None:
        return f"- {ended}"
    current = f"- {statement_text(newer, _LINE)} ({newer.id})"
    return current if is_joined(old, newer) else f"{current}. {ended}"


# --- without a model --------------------------------------------------------------------------------

_HEADINGS: tuple[tuple[Kind, str], ...] = (
    ("instruction", HEADINGS["rules"]),
    ("persona", HEADINGS["user"]),
    ("episodic", HEADINGS["events"]),
)


def listed_page(store: Store, space: str, *, at: datetime | None = None) -> str:
    """Return the page made without a model: that of `digest`, or the explicit statements if that is empty."""
    return digest.page(store, space, at=at) or explicit_page(store, space, at=at)


def explicit_page(store: Store, space: str, *, at: datetime | None = None) -> str:
    """Return the explicit statements by kind, each on a line with its id; `EMPTY` if there are none.

    Each section counts the statements left out.
    """
    lines: dict[Kind, list[str]] = {
        kind: [_line(atom, at) for atom in _explicit_statements(store, space, kind, at)] for kind, _ in _HEADINGS
    }
    if not any(lines.values()):
        return EMPTY
    most = MAX_CHARS // min(len(line) + 1 for section in lines.values() for line in section)  # more never fit
    shown: dict[Kind, int] = {kind: min(len(section), most) for kind, section in lines.items()}
    while len(page := _composed_page(lines, shown)) > MAX_CHARS:
        # Shorten the longest section first: a person's traits do not give way to a long diary.
        longest = max(shown, key=lambda kind: (shown[kind], kind == "episodic"))
        shown[longest] -= 1
    return page


def explicit_lists() -> list[tuple[Filters, int]]:
    """Return the lists of statements, as filters and limits, that `explicit_page` reads."""
    return [(_of_kind(kind), _READ) for kind, _ in _HEADINGS]


def _of_kind(kind: Kind) -> Filters:
    return Filters(kind=kind, unheld=True, sentences=False)


def _explicit_statements(store: Store, space: str, kind: Kind, at: datetime | None) -> list[Atom]:
    filters = _of_kind(kind)
    if at is None:
        listed = store.read(space, atom_rows.list_atoms, filters=filters, limit=_READ)
    else:
        listed = current_atoms(store, space, filters, at, limit=_READ)
    atoms = [
        atom
        for atom in listed
        if atom.confidence >= SAID
        and atom.label != "promise"  # it waits for its occasion
        and fit_for_pages(atom)
        and is_of_the_user(atom)
    ]
    return sorted(atoms, key=lambda atom: atom.valid_from, reverse=True) if kind == "episodic" else atoms


def _composed_page(lines: Mapping[Kind, Sequence[str]], shown: Mapping[Kind, int]) -> str:
    parts = ["# Persona"]
    for kind, heading in _HEADINGS:
        if section := lines[kind]:
            rest = len(section) - shown[kind]
            more = [f"- … and {rest} more: memory_search kind={kind}"] if rest else []
            parts.append(f"## {heading}\n\n" + "\n".join([*section[: shown[kind]], *more]))
    return "\n\n".join(parts) + "\n"


def _line(atom: Atom, at: datetime | None) -> str:
    note = time_note(atom, at) if at is not None else ""
    when = f"{note}: " if note else f"{atom.valid_from:%Y-%m-%d}: " if atom.kind == "episodic" else ""
    return f"- {when}{statement_text(atom, _LINE)} ({atom.id})"
