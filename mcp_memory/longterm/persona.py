"""L3: the page about the user, at most 2,000 characters; each line cites its evidence.

A model writes it once there are scenes, and changes lines of it when enough is new; without a model it is chosen from
the statements (`longterm.digest`), or lists the explicit ones if no sentence of the user was extracted. Between two
versions, reading leaves out forgotten lines and lists what changed in a separate section. A reply is refused if it is
too long, mostly without evidence, or cites what the question did not show.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from difflib import unified_diff
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, well_formed
from mcp_memory.core.types import Atom, Kind, PersonaVersion, Scene
from mcp_memory.language.words import fold
from mcp_memory.longterm import digest
from mcp_memory.longterm.digest import HEADINGS, MAX_CHARS, statement_text
from mcp_memory.longterm.page_lines import SAID, STATEMENT, LineChanges, dated_statements, numbered, patched
from mcp_memory.longterm.salience import is_of_the_user
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
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.times import date_of
from mcp_memory.longterm.validity import current_atoms, current_facts, is_past, time_note
from mcp_memory.longterm.verification.trust import attribute_page, fit_for_pages, speakers_of
from mcp_memory.models.llm import without_fence
from mcp_memory.models.metered import Applied, ModelQuestion, StageDefinition
from mcp_memory.models.prompts import fenced, prompt
from mcp_memory.store.citations import cited, links, renamed, uncovered, unwrapped, without
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Conflict, Filters, PersonaPage, Work
from mcp_memory.suspicion.flags import flags

_SINCE_CHARS = 500
_LINE = 220
_READ = 200
_SINCE_READ = 1_000

EMPTY = (
    "# Persona\n\nNothing has been told yet. What the user says of themselves, in conversations or with `remember`, is"
    " listed here; nothing is inferred.\n"
)
_SINCE, _SCENES = "Since then", "Scenes"
OURS = (_SINCE, _SCENES)
"""Generated sections; they are not part of a stored page."""
_HEADINGS: tuple[tuple[Kind, str], ...] = (
    ("instruction", HEADINGS["rules"]),
    ("persona", HEADINGS["user"]),
    ("episodic", HEADINGS["events"]),
)


def whole(store: Store, space: str, *, at: datetime | None = None) -> str:
    """Return the current page followed by the list of scenes; see `body`.

    Without a moment, as in the file of the page, only stored scenes are listed: the file is written after each batch
    of turns, and computed scenes would change it each time.
    """
    scenes = stored_scenes(store, space) if at is None else readable_scenes(store, space)
    return "\n".join(part for part in (body(store, space, at=at), navigation(scenes)) if part)


def due(store: Store, space: str) -> str | None:
    """Return the page as its file has to hold it; None where nothing is known that it could tell."""
    if store.persona(space) is None and listed_page(store, space) == EMPTY:
        return None
    return whole(store, space)


def body(store: Store, space: str, *, at: datetime | None = None) -> str:
    """Return the page as it stands, without the scenes.

    For a reader `at` a moment: without statements that are past then, and with notes on plans whose day has passed and
    on what has yet to begin. Without a moment: as its file holds it, whatever the day.
    """
    held = store.persona(space)
    if held is None or not held.by_model:
        return listed_page(store, space, at=at)
    written = without_forgotten(store, space, held)
    closed = ended_since(store, space, written)
    ended = {old.id for old, _ in closed}
    if at is not None:
        ended |= {atom.id for atom in store.atoms(space, cited(written.text)) if is_past(atom, at)}
    text = without(written.text, ended)
    if not lines_of(text):
        return listed_page(store, space, at=at)
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


def identity(store: Store, space: str, at: datetime) -> list[str]:
    """Return the facts that identify the user at a moment, most telling first: the user's statements about themselves,
    as `name: Maya`.
    """
    known = store.facts(space, filters=Filters(entity="user", unheld=True, ended=True), limit=_READ)
    about = current_facts(store, space, known, at)  # includes values that end in the future
    # Without facts about others that also mention the user, and facts about the user from others.
    facts = [fact for fact in about if fold(fact.entity) == "user" and fact.source == "user"]
    labels = {atom.id: atom.label for atom in store.atoms(space, [fact.atom for fact in facts])}
    facts = [fact for fact in facts if labels[fact.atom] != "person" or fact.relation == "name"]
    rank = {name: place for place, name in enumerate(("name", "preferred_name", "full_name", "pronouns", "works_as"))}
    facts.sort(key=lambda fact: rank.get(fact.relation, len(rank)))
    return list(dict.fromkeys(f"{fact.relation.replace('_', ' ')}: {one_line(fact.value, 80)}" for fact in facts))


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
    lines = text.splitlines()
    while len(text) > limit:
        lines.pop()
        text = _tidy(lines)
    return text


# --- changes since a page was written ---------------------------------------------------------------


def versions(store: Store, space: str) -> list[PersonaVersion]:
    """Return all versions, the newest first, each without forgotten content."""
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
    """Return a version without the lines that are based on forgotten content alone.

    A line that names a scene and no atom is based on everything in that scene when the page was written: the forgotten
    part may be just the content of the line.
    """
    gone = forgotten(store, space, cited(version.text))
    text = without(version.text, gone)
    scenes = {scene.slug: scene for scene in store.scenes(space)}
    shaken = {name for name in links(text) if _is_shaken(store, space, scenes, name, version)}
    lines = [line for line in text.splitlines() if cited(line) or not shaken.intersection(links(line))]
    return replace(version, text=_tidy(lines)) if gone or shaken else version


def _is_shaken(store: Store, space: str, scenes: Mapping[str, Scene], name: str, version: PersonaVersion) -> bool:
    scene = find_scene(scenes, name)
    told = store.scene_versions(space, scene.slug if scene else slug_of(name))
    then = next((one for one in told if one.updated <= version.at), None)
    return then is None or bool(forgotten(store, space, then.atoms))


def sound_scenes(store: Store, space: str) -> list[Scene]:
    """Return the scenes without forgotten evidence; the others are about to be rewritten."""
    scenes = store.scenes(space)
    gone = forgotten(store, space, [id for scene in scenes for id in scene.atoms])
    return [scene for scene in scenes if not gone.intersection(scene.atoms)]


def ended_since(store: Store, space: str, written: PersonaVersion) -> list[tuple[Atom, Atom | None]]:
    """Return the outdated statements of the current page, each with its replacement."""
    return ended_atoms(store, space, cited(written.text), after=read_to(store, space, "persona"))


def _told_since(store: Store, space: str) -> list[Atom]:
    new = store.atoms_since(space, read_to(store, space, "persona"), limit=_SINCE_READ, sentences=False)
    notes = {turn.id for turn in store.turns(space, [atom.evidence for atom in new]) if turn.role == "note"}
    told = [atom for atom in new if atom.valid_to is None and atom.evidence in notes and fit_for_pages(atom)]
    return sorted(told, key=lambda atom: (atom.kind != "instruction", -int(atom.id[1:])))


def _since(closed: Sequence[tuple[Atom, Atom | None]], told: Sequence[Atom]) -> str:
    """Return the section, at most 500 characters; its last line says how much more there is."""
    lines = [_closing(old, newer) for old, newer in closed]
    known = {newer.id for _, newer in closed if newer}
    lines += [f"- {statement_text(atom, _LINE)} ({atom.id})" for atom in told if atom.id not in known]
    for shown in range(len(lines), 0, -1):
        rest = len(lines) - shown
        more = [f"- … and {rest} more: memory_search without a query lists what holds"] if rest else []
        text = f"## {_SINCE}\n\n" + "\n".join([*lines[:shown], *more]) + "\n"
        if len(text) <= _SINCE_CHARS or shown == 1:
            return text
    return ""


def _closing(old: Atom, newer: Atom | None) -> str:
    before = f"{statement_text(old, _LINE // 2)} ({old.id})"
    if newer is None:
        return f"- No longer: {before}"
    if is_joined(old, newer):
        return f"- {statement_text(newer, _LINE)} ({newer.id})"
    return f"- {statement_text(newer, _LINE)} ({newer.id}). No longer: {before}"


# --- without a model --------------------------------------------------------------------------------


def listed_page(store: Store, space: str, *, at: datetime | None = None) -> str:
    """Return the page where no model wrote one: see `longterm.digest`; without a sentence of the user, the explicit
    statements.
    """
    return digest.page(store, space, at=at) or explicit_page(store, space, at=at)


def explicit_page(store: Store, space: str, *, at: datetime | None = None) -> str:
    """Return the explicit statements by kind, each line with its atom and each section with its overflow."""
    told: dict[Kind, list[Atom]] = {kind: _current(store, space, kind, at) for kind, _ in _HEADINGS}
    if not any(told.values()):
        return EMPTY
    lines: dict[Kind, list[str]] = {kind: [_line(kind, atom, at) for atom in atoms] for kind, atoms in told.items()}
    most = MAX_CHARS // min(len(line) + 1 for held in lines.values() for line in held)  # more never fit
    shown: dict[Kind, int] = {kind: min(len(held), most) for kind, held in lines.items()}
    while len(page := _compose(lines, shown)) > MAX_CHARS:
        # Shorten the longest section first: a person's traits do not give way to a long diary.
        longest = max(shown, key=lambda kind: (shown[kind], kind == "episodic"))
        shown[longest] -= 1
    return page


def _current(store: Store, space: str, kind: Kind, at: datetime | None) -> list[Atom]:
    filters = Filters(kind=kind, unheld=True)
    if at is None:
        listed = store.list_atoms(space, filters=filters, limit=_READ)
    else:
        listed = current_atoms(store, space, filters, at, limit=_READ)
    told = [atom for atom in listed if atom.confidence >= SAID and not atom.is_sentence]
    told = [atom for atom in told if atom.label != "promise"]  # it waits for its occasion
    atoms = [atom for atom in told if fit_for_pages(atom) and is_of_the_user(atom)]
    return sorted(atoms, key=lambda atom: atom.valid_from, reverse=True) if kind == "episodic" else atoms


def _compose(lines: Mapping[Kind, Sequence[str]], shown: Mapping[Kind, int]) -> str:
    parts = ["# Persona"]
    for kind, heading in _HEADINGS:
        if held := lines[kind]:
            more = len(held) - shown[kind]
            rest = [f"- … and {more} more: memory_search kind={kind}"] if more else []
            parts.append(f"## {heading}\n\n" + "\n".join([*held[: shown[kind]], *rest]))
    return "\n\n".join(parts) + "\n"


def _line(kind: Kind, atom: Atom, at: datetime | None) -> str:
    note = time_note(atom, at) if at is not None else ""
    when = f"{note}: " if note else f"{atom.valid_from:%Y-%m-%d}: " if kind == "episodic" else ""
    return f"- {when}{statement_text(atom, _LINE)} ({atom.id})"


def cleaned(text: str) -> tuple[str, list[str]]:
    """Return the page under the one title that all have, and the names of the sections that were left out."""
    given = unwrapped(without_fence(text))
    lines = without_sections(given, OURS).strip().splitlines()
    if lines and lines[0].startswith("# "):
        del lines[0]
    page = "# Persona\n\n" + "\n".join(lines).strip() + "\n"
    return page, [name for name in OURS if name in sections(given)]


def without_orders(text: str) -> tuple[str, list[str]]:
    """Return the page without lines that read like an order to a model, and these lines."""
    ordered = [line for line in text.splitlines() if flags(line, "assistant")]
    kept = [line for line in text.splitlines() if line not in ordered]
    return ("\n".join(kept) + "\n" if ordered else text), ordered


def unfounded(text: str) -> list[str]:
    """Return the lines that name neither an atom nor a scene."""
    return [line for line in uncovered(text) if not links(line)]


def check_form(text: str) -> None:
    """Raise InvalidInput for a page that says nothing, is too long, or mostly names no evidence."""
    lines, bare = lines_of(text), unfounded(text)
    if not lines:
        raise InvalidInput("The page says nothing. Write at least who the person is.")
    if not well_formed(text):
        raise InvalidInput("The page has a lone surrogate, which is not text. Write the character itself.")
    if len(text) > MAX_CHARS:
        raise InvalidInput(
            f"The page has {len(text):,} characters of at most {MAX_CHARS:,}: cut {len(text) - MAX_CHARS:,} or more. "
            "Leave out what somebody who meets the person anew needs least, whole lines rather than words."
        )
    if 2 * len(bare) > len(lines):
        raise InvalidInput(
            f"{len(bare)} of {len(lines)} lines name no evidence. Put behind each statement what it rests on, such as "
            f"(a12) or ([[slug]]), and leave out what rests on nothing, such as: {one_line(bare[0], 80)}"
        )


def check_evidence(text: str, citable: Collection[str], scenes: Sequence[Scene]) -> None:
    """Raise InvalidInput for a page that names other atoms than these, or other scenes."""
    unknown = [id for id in cited(text) if id not in citable]
    if unknown:
        raise InvalidInput(
            f"The page names {', '.join(unknown[:10])}, which was not shown or is forgotten by now. Name only ids "
            "that stand in the question, and leave out what rested on others."
        )
    by_slug = {scene.slug: scene for scene in scenes}
    missing = [name for name in links(text) if find_scene(by_slug, name) is None]
    if missing:
        known = ", ".join(by_slug) or "none"
        raise InvalidInput(f"There is no scene [[{one_line(missing[0], 60)}]] to name. Scenes: {known}.")


FROM_SCRATCH = "from scratch"
"""The reason to give to `Store.request_stage` for a page that owes nothing to the one before."""

Mode = Literal["first", "incremental", "scratch"]

_SCENE_CHARS = 12_000
_LEADING: tuple[tuple[Kind, int], ...] = (("instruction", 30), ("persona", 50), ("episodic", 30))
_NEW = 100
_ASKED_CHARS = MAX_CHARS - 300  # models count badly: a slightly longer page is kept
_AGE = timedelta(days=30)
_KNOWN = 80  # characters of a statement whose words the page has
_NONE = "None."


class PersonaBasis(BaseModel):
    """What the page is to be written from; where it is brought up to date, that and the page as it stands."""

    mode: Mode
    reason: str
    upto: int
    version: int
    """The model's page that stood then, 0 for none."""
    scenes: list[str]
    """Those to show in full."""
    atoms: list[str]


class PersonaReply(BaseModel):
    """Lines of the page that change, or the whole page in Markdown; and what is new on it."""

    lines: LineChanges = Field(default_factory=list[str])
    page: str = ""
    changed: str = ""

    @field_validator("page", "changed", mode="before")
    @classmethod
    def _lines(cls, value: Any) -> Any:
        if isinstance(value, list):
            return "\n".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return "" if value is None else value


# --- when -------------------------------------------------------------------------------------------


def trigger(store: Store, space: str, settings: Settings) -> str | None:
    """Return why the page is due, None where it is not."""
    state = store.stage_states(space).get("persona")
    if state is not None and state.wanted:
        return state.wanted
    held = _held(store, space)
    new = len(store.atoms_since(space, read_to(store, space, "persona"), limit=settings.persona_every, sentences=False))
    scenes = store.scenes(space)
    if held is None and scenes:
        return "there are scenes, and no page yet"
    if held is not None and not lines_of(held.text):
        return "all that the page said was forgotten"
    if held is not None and new and scenes and all(scene.created > held.at for scene in scenes):
        return "the first scene was written since"
    return f"{new} new statements" if new >= settings.persona_every else None


def _held(store: Store, space: str) -> PersonaVersion | None:
    """Return the model's page without lines that rest on what was forgotten, or only on scenes that are gone."""
    held = store.persona(space)
    if held is None or not held.by_model:
        return None
    held = without_forgotten(store, space, held)
    scenes = {scene.slug: scene for scene in sound_scenes(store, space)}
    gone = {name for name in links(held.text) if find_scene(scenes, name) is None}
    lines = [line for line in held.text.splitlines() if cited(line) or gone.isdisjoint(links(line))]
    return replace(held, text=_tidy(lines)) if gone else held


# --- the question -----------------------------------------------------------------------------------


def plan(context: SearchContext, *, session: str | None, smaller: int) -> PersonaBasis | None:
    """Return what the page is to be written from, where it is due and there is anything."""
    store, space = context.store, context.space
    reason = trigger(store, space, context.settings)
    if reason is None:
        return None
    upto = store.totals(space, "atom").newest
    held = _held(store, space)
    mode = _mode(held, reason)
    shown: list[Scene] = []
    if mode == "incremental":
        many = max(1, _NEW >> smaller)
        new = store.atoms_since(space, read_to(store, space, "persona"), limit=many, sentences=False)
        if len(new) == many:
            upto = int(new[-1].id[1:])  # the rest counts as new next time
        fit = [atom for atom in new if atom.valid_to is None and fit_for_pages(atom)]
        atoms = _telling(fit, store, space)
    else:
        scenes = sound_scenes(store, space)
        shown = _within(scenes[: max(1, len(scenes) >> smaller)])
        atoms = _not_told(_telling(_leading(store, space, smaller), store, space), shown)
    if not (shown or atoms or mode == "incremental"):
        return None
    return PersonaBasis(
        mode=mode,
        reason=reason,
        upto=upto,
        version=held.version if held else 0,
        scenes=[scene.slug for scene in shown],
        atoms=[atom.id for atom in atoms],
    )


def _mode(held: PersonaVersion | None, reason: str) -> Mode:
    if held is None:
        return "first"
    return "scratch" if reason == FROM_SCRATCH or not lines_of(held.text) else "incremental"


def _leading(store: Store, space: str, smaller: int) -> list[Atom]:
    """Return what matters most of all that holds, of each kind."""
    return [
        atom
        for kind, many in _LEADING
        for atom in store.list_atoms(space, filters=Filters(kind=kind, unheld=True), limit=max(1, many >> smaller))
        if fit_for_pages(atom)
    ]


def _telling(atoms: Sequence[Atom], store: Store, space: str) -> list[Atom]:
    """Return the statements without episodes that are only about others, or that no scene had a use for."""
    judged = read_to(store, space, "scenes")
    told = {id for scene in store.scenes(space) for id in scene.atoms}
    return [
        atom
        for atom in atoms
        if is_of_the_user(atom) and (atom.kind != "episodic" or int(atom.id[1:]) > judged or atom.id in told)
    ]


def _within(scenes: Sequence[Scene]) -> list[Scene]:
    """Return the first scenes, as many as one question may show."""
    shown: list[Scene] = []
    room = _SCENE_CHARS
    for scene in scenes:
        room -= len(scene.body) + len(scene.summary)
        if room >= 0:
            shown.append(scene)
    return shown


def _not_told(atoms: Sequence[Atom], scenes: Sequence[Scene]) -> list[Atom]:
    told = {id for scene in scenes for id in cited(scene.body)}
    return [atom for atom in atoms if atom.kind == "instruction" or atom.id not in told]


def question(context: SearchContext, basis: PersonaBasis) -> ModelQuestion[PersonaReply] | None:
    """Format the basis from the current rows: content forgotten meanwhile is not shown.

    None where a page stands and nothing that is new could change it.
    """
    store, space = context.store, context.space
    scenes = sound_scenes(store, space)
    shown = [scene for scene in scenes if scene.slug in basis.scenes]
    held = _held(store, space) if basis.mode == "incremental" else None
    closed = list(_closed(store, space, held, basis.atoms) if held else ())
    ageing = list(_ageing(store, space, held, context.now) if held else ())
    new = store.atoms(space, basis.atoms)
    if held and not (new or closed or ageing):
        return None
    others = [] if held else [scene for scene in scenes if scene not in shown]
    return ModelQuestion(
        purpose="persona",
        messages=prompt(
            "persona",
            most=f"{_ASKED_CHARS:,}",
            today=f"{context.now:%Y-%m-%d}",
            page=_fenced(f"{len(held.text):,} characters\n{_listed(numbered(_stored(store, space), held.text))}")
            if held
            else _NONE,
            ageing=", ".join(ageing) or _NONE,
            closed=_listed(closed),
            scenes=_listed(map(_scene, shown)),
            others=_listed(f"[[{one.slug}]] {_one_line(one.summary)}" for one in others),
            statements=_listed(dated_statements(new, _one_line)),
        ),
        reply=PersonaReply,
    )


def _stored(store: Store, space: str) -> str:
    """Return the page as it is stored: its lines are counted in it, whatever of it is forgotten meanwhile."""
    held = store.persona(space)
    return held.text if held else ""


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(lines) or _NONE


def _scene(scene: Scene) -> str:
    return f'<scene slug="{scene.slug}">\n{_fenced(scene.body.strip())}\n</scene>'


def _ageing(store: Store, space: str, held: PersonaVersion, now: datetime) -> Iterator[str]:
    for atom in store.atoms(space, cited(held.text)):
        if atom.kind == "episodic" and atom.valid_to is None and atom.valid_from < now - _AGE:
            yield f"({atom.id}) {date_of(atom.valid_from, atom.text)}"


def _closed(store: Store, space: str, held: PersonaVersion, new: Collection[str]) -> Iterator[str]:
    """Yield what the page says and holds no longer, with what holds instead: by its id alone if it is `new`."""
    for old, newer in ended_since(store, space, held):
        held_now = (
            "" if newer is None else f"({newer.id})" if newer.id in new else f"({newer.id}) {_one_line(newer.text)}"
        )
        if newer is not None and is_joined(old, newer):
            yield f"({old.id}) joined into {held_now}"
            continue
        why = f" Reason: {_one_line(old.closed_because)}" if old.closed_because else ""
        now = f" Now: {held_now}" if newer else ""
        yield f"({old.id}) {_fenced(one_line(old.text, _KNOWN))}{now}{why}"


def _fenced(text: str) -> str:
    return fenced(text, "page", "ageing", "closed", "scenes?", "other_scenes", "statements")


def _one_line(text: str) -> str:
    return _fenced(one_line(text, STATEMENT)).replace('"', "'")


# --- the reply --------------------------------------------------------------------------------------


def apply(context: SearchContext, work: Work, basis: PersonaBasis, reply: PersonaReply | None) -> Applied:
    """Check the page and store it as a new version. InvalidInput says how to mend it."""
    store, space = context.store, context.space
    held = _held(store, space)
    if basis.version != (held.version if held else 0):
        raise Conflict("The page was written anew meanwhile.")
    reply = reply or PersonaReply()
    text, dropped = cleaned(_asked_for(store, space, basis, held, reply))
    text, ordered = without_orders(text)
    check_form(text)
    check_evidence(text, _citable(store, space, basis, held), sound_scenes(store, space))
    atoms = store.atoms(space, cited(text))
    text = attribute_page(text, atoms, speakers_of(store, space, atoms))
    lines, bare = lines_of(text), unfounded(text)
    outcome = {"characters": len(text), "covered": len(lines) - len(bare), "uncovered": len(bare)}
    reason = one_line(f"{basis.reason}: {reply.changed}" if reply.changed.strip() else basis.reason, 300)
    version = store.commit(
        space, work.id, PersonaPage(text=text, reason=reason, upto=basis.upto), outcome=outcome, now=context.now
    ).version
    return Applied(
        outcome=outcome,
        kept=[
            f"Version {version} of the page: {len(text):,} characters, {len(lines) - len(bare)} lines with evidence."
        ],
        refused=[
            *(f"This line is kept, but names no evidence: {one_line(line, 120)}" for line in bare),
            *(
                f"This line is left out, for it reads like an order to a model: {one_line(line, 120)}"
                for line in ordered
            ),
            *(f"The section {name!r} was left out: it is made mechanically." for name in dropped),
        ],
    )


def _asked_for(store: Store, space: str, basis: PersonaBasis, held: PersonaVersion | None, reply: PersonaReply) -> str:
    """Return the page that a reply asks for: whole, or made from the one that stands."""
    if reply.page.strip():
        return reply.page
    if held is None or basis.mode != "incremental":
        raise InvalidInput("There is no page in the reply, and none to change lines of: write a whole one as `page`.")
    left = set(lines_of(held.text))
    text = patched(_stored(store, space), held.text, reply.lines)
    ended = ended_since(store, space, held)
    names = {old.id: newer.id for old, newer in ended if newer and is_joined(old, newer)}
    over = {old.id for old, _ in ended} - names.keys()
    # What ended must not stay as true in a line that was not touched.
    return _tidy(renamed(without(line, over), names) if line in left else line for line in text.splitlines())


def _citable(store: Store, space: str, basis: PersonaBasis, held: PersonaVersion | None) -> set[str]:
    """Return the atoms that the question showed, in any version of its scenes, and that are not forgotten by now."""
    shown = {*basis.atoms}
    for slug in basis.scenes:
        shown.update(id for version in store.scene_versions(space, slug) for id in version.atoms)
    if held is not None and basis.mode == "incremental":
        shown.update(cited(held.text), (newer.id for _, newer in ended_since(store, space, held) if newer))
    return {atom.id for atom in store.atoms(space, shown)}


PERSONA = StageDefinition(
    name="persona", basis=PersonaBasis, reply=PersonaReply, plan=plan, question=question, apply=apply
)
