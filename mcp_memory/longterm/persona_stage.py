"""L3: the stage that writes the page about the user (`persona`).

A model writes it when there are scenes, and changes lines of it when enough is new. A reply is refused if, for
example, the page is too long, mostly without evidence, or cites something that the question did not show.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from pydantic import BaseModel

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line, well_formed
from mcp_memory.core.types import Atom, Kind, PersonaVersion, Scene
from mcp_memory.longterm.digest import MAX_CHARS, is_of_the_user
from mcp_memory.longterm.page_lines import STATEMENT, PersonaReply, change_lines, dated_statements, numbered
from mcp_memory.longterm.persona import (
    GENERATED,
    ended_since,
    lines_of,
    lines_without_links,
    sections,
    sound_scenes,
    unfounded,
    without_empty_sections,
    without_forgotten,
    without_sections,
)
from mcp_memory.longterm.scenes import find_scene, is_joined, read_to
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.validity import date_of
from mcp_memory.longterm.verification.trust import attribute_page, fit_for_pages, speakers_of
from mcp_memory.models.llm import without_fence
from mcp_memory.models.metered import Applied, ModelQuestion, StageDefinition
from mcp_memory.models.prompts import fenced, prompt
from mcp_memory.store.citations import cited_atoms, links, rename_atoms, unwrap, without_atoms
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, job_rows, page_rows, stage_outputs
from mcp_memory.store.values import Conflict, Filters, PersonaPage, Work
from mcp_memory.suspicion.flags import flags

FROM_SCRATCH = "from scratch"
"""The reason for `job_rows.request_stage` that asks for a page independent of the current page."""

Mode = Literal["first", "incremental", "scratch"]

_SCENE_CHARS = 12_000
_LEADING: tuple[tuple[Kind, int], ...] = (("instruction", 30), ("persona", 50), ("episodic", 30))
_NEW = 100
_ASKED_CHARS = MAX_CHARS - 300  # models count badly: a slightly longer page is kept
_AGE = timedelta(days=30)
_KNOWN = 80  # characters shown of a statement that the page already contains
_NONE = "None."


class PersonaBasis(BaseModel):
    """The input of a persona job, after which all atoms up to the number `upto` count as read."""

    mode: Mode
    reason: str
    upto: int
    version: int
    """The version of the model's current page, 0 if there is none."""
    scenes: list[str]
    """Scenes to show in full."""
    atoms: list[str]


def trigger(store: Store, space: str, settings: Settings) -> str | None:
    """Return why the page is due, None if it is not."""
    state = store.read(space, job_rows.stage_states).get("persona")
    if state is not None and state.wanted:
        return state.wanted
    page = _current_page(store, space)
    new = len(
        store.read(
            space, atom_rows.list_since, read_to(store, space, "persona"), limit=settings.persona_every, sentences=False
        )
    )
    scenes = store.read(space, page_rows.scenes)
    if page is None and scenes:
        return "there are scenes, and no page yet"
    if page is not None and not lines_of(page.text):
        return "all that the page said was forgotten"
    if page is not None and new and scenes and all(scene.created > page.at for scene in scenes):
        return "the first scene was written since"
    return f"{new} new statements" if new >= settings.persona_every else None


def _current_page(store: Store, space: str) -> PersonaVersion | None:
    """Return the model's page, None if there is none.

    Lines that are based on forgotten content, or only on scenes that are gone, are left out.
    """
    page = store.read(space, page_rows.persona)
    if page is None or not page.by_model:
        return None
    page = without_forgotten(store, space, page)
    scenes = {scene.slug: scene for scene in sound_scenes(store, space)}
    gone = {name for name in links(page.text) if find_scene(scenes, name) is None}
    if not gone:
        return page
    return replace(page, text=without_empty_sections(lines_without_links(page.text.splitlines(), gone)))


# --- the question -----------------------------------------------------------------------------------


def plan(context: SearchContext, *, session: str | None, smaller: int) -> PersonaBasis | None:
    """Return the input of the next job; None if the page is not due, or there is nothing to write it from."""
    store, space = context.store, context.space
    reason = trigger(store, space, context.settings)
    if reason is None:
        return None
    upto = store.totals(space, "atom").newest
    page = _current_page(store, space)
    shown: list[Scene] = []
    if page is not None and reason != FROM_SCRATCH and lines_of(page.text):
        mode: Mode = "incremental"
        many = max(1, _NEW >> smaller)
        new = store.read(space, atom_rows.list_since, read_to(store, space, "persona"), limit=many, sentences=False)
        if len(new) == many:
            upto = int(new[-1].id[1:])  # the rest counts as new next time
        atoms = _relevant([atom for atom in new if atom.valid_to is None and fit_for_pages(atom)], store, space)
    else:
        mode = "first" if page is None else "scratch"
        scenes = sound_scenes(store, space)
        shown = _fitting(scenes[: max(1, len(scenes) >> smaller)])
        in_scenes = {id for scene in shown for id in cited_atoms(scene.body)}
        relevant = _relevant(_leading(store, space, smaller), store, space)
        atoms = [atom for atom in relevant if atom.kind == "instruction" or atom.id not in in_scenes]
        if not (shown or atoms):
            return None
    return PersonaBasis(
        mode=mode,
        reason=reason,
        upto=upto,
        version=page.version if page else 0,
        scenes=[scene.slug for scene in shown],
        atoms=[atom.id for atom in atoms],
    )


def _leading(store: Store, space: str, smaller: int) -> list[Atom]:
    """Return the most important current statements of each kind."""
    return [
        atom
        for kind, many in _LEADING
        for atom in store.read(
            space, atom_rows.list_atoms, filters=Filters(kind=kind, unheld=True), limit=max(1, many >> smaller)
        )
        if fit_for_pages(atom)
    ]


def _relevant(atoms: Sequence[Atom], store: Store, space: str) -> list[Atom]:
    """Return the statements that belong on a page about the user.

    An episode that the scenes stage has read is left out unless a scene cites it.
    """
    judged_upto = read_to(store, space, "scenes")
    in_scenes = {id for scene in store.read(space, page_rows.scenes) for id in scene.atoms}
    return [
        atom
        for atom in atoms
        if is_of_the_user(atom) and (atom.kind != "episodic" or int(atom.id[1:]) > judged_upto or atom.id in in_scenes)
    ]


def _fitting(scenes: Sequence[Scene]) -> list[Scene]:
    """Return the first scenes, as many as one question may show."""
    shown: list[Scene] = []
    room = _SCENE_CHARS
    for scene in scenes:
        room -= len(scene.body) + len(scene.summary)
        if room >= 0:
            shown.append(scene)
    return shown


def question(context: SearchContext, basis: PersonaBasis) -> ModelQuestion[PersonaReply] | None:
    """Return the question for a persona job, from the current rows; None if nothing new could change the page."""
    store, space = context.store, context.space
    scenes = sound_scenes(store, space)
    shown = [scene for scene in scenes if scene.slug in basis.scenes]
    page = _current_page(store, space) if basis.mode == "incremental" else None
    closed = list(_closed(store, space, page, basis.atoms) if page else ())
    ageing = list(_ageing(store, space, page, context.now) if page else ())
    new = store.read(space, atom_rows.by_ids, basis.atoms)
    if page and not (new or closed or ageing):
        return None
    numbered_page = _NONE
    if page:
        lines = _lines(numbered(_stored_text(store, space), page.text))
        numbered_page = _fenced(f"{len(page.text):,} characters\n{lines}")
    others = [] if page else [scene for scene in scenes if scene not in shown]
    return ModelQuestion(
        purpose="persona",
        messages=prompt(
            "persona",
            most=f"{_ASKED_CHARS:,}",
            today=f"{context.now:%Y-%m-%d}",
            page=numbered_page,
            ageing=", ".join(ageing) or _NONE,
            closed=_lines(closed),
            scenes=_lines(f'<scene slug="{scene.slug}">\n{_fenced(scene.body.strip())}\n</scene>' for scene in shown),
            others=_lines(f"[[{scene.slug}]] {_clean(scene.summary)}" for scene in others),
            statements=_lines(dated_statements(new, _clean)),
        ),
        reply=PersonaReply,
    )


def _stored_text(store: Store, space: str) -> str:
    """Return the page as it is stored, because line numbers refer to it, whatever is forgotten meanwhile."""
    page = store.read(space, page_rows.persona)
    return page.text if page else ""


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines) or _NONE


def _ageing(store: Store, space: str, page: PersonaVersion, now: datetime) -> Iterator[str]:
    for atom in store.read(space, atom_rows.by_ids, cited_atoms(page.text)):
        if atom.kind == "episodic" and atom.valid_to is None and atom.valid_from < now - _AGE:
            yield f"({atom.id}) {date_of(atom.valid_from, atom.text)}"


def _closed(store: Store, space: str, page: PersonaVersion, new: Collection[str]) -> Iterator[str]:
    """Yield a line for each outdated statement of the page, with its replacement.

    A replacement whose id is in `new` is given by its id alone, because the question shows its text.
    """
    for old, newer in ended_since(store, space, page):
        current = ""
        if newer is not None:
            current = f"({newer.id})" if newer.id in new else f"({newer.id}) {_clean(newer.text)}"
            if is_joined(old, newer):
                yield f"({old.id}) joined into {current}"
                continue
        why = f" Reason: {_clean(old.closed_because)}" if old.closed_because else ""
        now = f" Now: {current}" if newer else ""
        yield f"({old.id}) {_fenced(one_line(old.text, _KNOWN))}{now}{why}"


def _fenced(text: str) -> str:
    return fenced(text, "page", "ageing", "closed", "scenes?", "other_scenes", "statements")


def _clean(text: str) -> str:
    return _fenced(one_line(text, STATEMENT)).replace('"', "'")


# --- the reply --------------------------------------------------------------------------------------


def apply(context: SearchContext, work: Work, basis: PersonaBasis, reply: PersonaReply | None) -> Applied:
    """Check the page and store it as a new version.

    Raises InvalidInput if the page has to be corrected, and Conflict if another version was written meanwhile.
    """
    store, space = context.store, context.space
    page = _current_page(store, space)
    if basis.version != (page.version if page else 0):
        raise Conflict("The page was written anew meanwhile.")
    reply = reply or PersonaReply()
    text, generated = _cleaned(_requested_page(store, space, basis, page, reply))
    text, orders = _without_orders(text)
    _check_form(text)
    _check_evidence(text, _citable(store, space, basis, page), sound_scenes(store, space))
    atoms = store.read(space, atom_rows.by_ids, cited_atoms(text))
    text = attribute_page(text, atoms, speakers_of(store, space, atoms))
    lines, bare = lines_of(text), unfounded(text)
    outcome = {"characters": len(text), "covered": len(lines) - len(bare), "uncovered": len(bare)}
    reason = one_line(f"{basis.reason}: {reply.changed}" if reply.changed else basis.reason, 300)
    new_page = PersonaPage(text=text, reason=reason, upto=basis.upto)
    version = store.write(space, stage_outputs.commit, work.id, new_page, outcome=outcome, now=context.now).version
    return Applied(
        outcome=outcome,
        kept=[
            f"Version {version} of the page: {len(text):,} characters, {len(lines) - len(bare)} lines with evidence."
        ],
        refused=[
            *reply.dropped_items,
            *(f"This line is kept, but names no evidence: {one_line(line, 120)}" for line in bare),
            *(
                f"This line is left out, for it reads like an order to a model: {one_line(line, 120)}"
                for line in orders
            ),
            *(f"The section {name!r} was left out: it is made mechanically." for name in generated),
        ],
    )


def _requested_page(
    store: Store, space: str, basis: PersonaBasis, page: PersonaVersion | None, reply: PersonaReply
) -> str:
    """Return the page of the reply, or else the current page with its lines changed and without outdated statements.

    Raises InvalidInput if the reply has no page and there is none to change, or if its changes name no line.
    """
    if reply.page:
        return reply.page
    if page is None or basis.mode != "incremental":
        raise InvalidInput("The reply has no `page`, and there is no page to edit: write a whole one as `page`.")
    untouched = set(lines_of(page.text))
    text = change_lines(_stored_text(store, space), page.text, reply.lines)
    ended = ended_since(store, space, page)
    names = {old.id: newer.id for old, newer in ended if newer and is_joined(old, newer)}
    over = {old.id for old, _ in ended} - names.keys()
    # An outdated statement must not stay in a line that was not changed.
    return without_empty_sections(
        rename_atoms(without_atoms(line, over), names) if line in untouched else line for line in text.splitlines()
    )


def _citable(store: Store, space: str, basis: PersonaBasis, page: PersonaVersion | None) -> set[str]:
    """Return the ids of the atoms that the question showed or any version of its scenes cites, unless forgotten."""
    shown = {*basis.atoms}
    for slug in basis.scenes:
        shown.update(id for version in store.read(space, page_rows.scene_versions, slug) for id in version.atoms)
    if page is not None and basis.mode == "incremental":
        shown.update(cited_atoms(page.text), (newer.id for _, newer in ended_since(store, space, page) if newer))
    return {atom.id for atom in store.read(space, atom_rows.by_ids, shown)}


def _cleaned(text: str) -> tuple[str, list[str]]:
    """Return the page under its fixed title, and the names of generated sections that were removed."""
    text = unwrap(without_fence(text))
    lines = without_sections(text, GENERATED).strip().splitlines()
    if lines and lines[0].startswith("# "):
        del lines[0]
    page = "# Persona\n\n" + "\n".join(lines).strip() + "\n"
    return page, [name for name in GENERATED if name in sections(text)]


def _without_orders(text: str) -> tuple[str, list[str]]:
    """Return the page without lines that read like an order to a model, and these lines."""
    orders = [line for line in text.splitlines() if flags(line, "assistant")]
    kept = [line for line in text.splitlines() if line not in orders]
    return ("\n".join(kept) + "\n" if orders else text), orders


def _check_form(text: str) -> None:
    """Raise InvalidInput for a page that is empty, malformed, too long, or mostly without evidence."""
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


def _check_evidence(text: str, citable: Collection[str], scenes: Sequence[Scene]) -> None:
    """Raise InvalidInput for a page that cites an atom or a scene other than `citable` and `scenes`."""
    unknown = [id for id in cited_atoms(text) if id not in citable]
    if unknown:
        raise InvalidInput(
            f"The page names {', '.join(unknown[:10])}, which was not shown or is forgotten by now. Name only ids "
            "that stand in the question, and leave out what rested on others."
        )
    by_slug = {scene.slug: scene for scene in scenes}
    missing = [name for name in links(text) if find_scene(by_slug, name) is None]
    if missing:
        slugs = ", ".join(by_slug) or "none"
        raise InvalidInput(f"There is no scene [[{one_line(missing[0], 60)}]] to name. Scenes: {slugs}.")


PERSONA = StageDefinition(
    name="persona", basis=PersonaBasis, reply=PersonaReply, plan=plan, question=question, apply=apply
)
