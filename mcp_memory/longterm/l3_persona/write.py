"""L3: one page about the user, written from what the scenes tell and the atoms state; each line names its evidence.

Written first as soon as there are scenes, then kept up with what changed, or made anew from scratch. Whether it is due
is computed from rows. `apply` keeps no page that is too long, that mostly names no evidence, or that names evidence
which the question did not show; whether a line says no more than its evidence does is beyond it.

How the page reads in between, and without a model, is told in `page`; its names are this module's too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.core.types import ATTRIBUTION, Atom, Kind, PersonaVersion, Scene
from mcp_memory.longterm.desk import Desk
from mcp_memory.longterm.endings import is_joined
from mcp_memory.longterm.l1_atoms.times import date_of
from mcp_memory.longterm.l3_persona.checks import check_evidence, check_form, cleaned, unfounded, without_orders
from mcp_memory.longterm.l3_persona.page import (
    EMPTY,
    MAX_CHARS,
    STATED,
    body,
    diff,
    ended_since,
    identity,
    last_read,
    lines_of,
    navigation,
    page,
    section_of,
    sections,
    sound_scenes,
    versions,
    whole,
    without_forgotten,
)
from mcp_memory.longterm.trust import attributed, fit_for_pages
from mcp_memory.models.metered import Question
from mcp_memory.models.prompts import fenced, prompt
from mcp_memory.models.stage import Applied, StageDefinition
from mcp_memory.store.citations import cited
from mcp_memory.store.protocol import Conflict, Filters, Store, Work

__all__ = [
    "EMPTY",
    "FROM_SCRATCH",
    "PERSONA",
    "Basis",
    "Reply",
    "body",
    "diff",
    "identity",
    "navigation",
    "page",
    "section_of",
    "sections",
    "trigger",
    "versions",
    "whole",
]

FROM_SCRATCH = "from scratch"
"""The reason to give to `Store.want` for a page that owes nothing to the one before."""

Mode = Literal["first", "incremental", "scratch"]

_SCENE_CHARS = 20_000
_LEADING: tuple[tuple[Kind, int], ...] = (("instruction", 30), ("persona", 50), ("episodic", 30))
_NEW = 100
_ASKED_CHARS = MAX_CHARS - 200  # models count badly: what comes a little longer is kept
_AGE = timedelta(days=30)
_STATEMENT = 300
_NONE = "None."


class Basis(BaseModel):
    """What the page is to be written from; where it is brought up to date, that and the page as it stands."""

    mode: Mode
    reason: str
    upto: int
    version: int
    """The model's page that stood then, 0 for none."""
    scenes: list[str]
    """Those to show in full."""
    atoms: list[str]


class Reply(BaseModel):
    """The page in Markdown, and what is new on it."""

    page: str = Field(description="The whole page in Markdown; each line ends with its evidence: (a12) or ([[slug]])")
    changed: str = Field("", description="One sentence: what is new on this page")

    @field_validator("page", mode="before")
    @classmethod
    def _lines(cls, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


# --- when -------------------------------------------------------------------------------------------


def trigger(store: Store, space: str, settings: Settings) -> str | None:
    """Return why the page is due, None where it is not."""
    state = store.stage_states(space).get("persona")
    if state is not None and state.wanted:
        return state.wanted
    held = _held(store, space)
    new = len(store.atoms_since(space, last_read(store, space), limit=settings.persona_every))
    scenes = store.scenes(space)
    if held is None and scenes:
        return "there are scenes, and no page yet"
    if held is not None and not lines_of(held.text):
        return "all that the page said was forgotten"
    if held is not None and new and scenes and all(scene.created > held.at for scene in scenes):
        return "the first scene was written since"
    return f"{new} new statements" if new >= settings.persona_every else None


def _held(store: Store, space: str) -> PersonaVersion | None:
    """Return the page that a model wrote, without what was forgotten."""
    held = store.persona(space)
    return without_forgotten(store, space, held) if held is not None and held.by_model else None


# --- what is asked ----------------------------------------------------------------------------------


def plan(desk: Desk, *, session: str | None, smaller: int) -> Basis | None:
    """Return what the page is to be written from, where it is due and there is anything."""
    store, space = desk.store, desk.space
    reason = trigger(store, space, desk.settings)
    if reason is None:
        return None
    upto = store.newest(space, "atom")
    held = _held(store, space)
    mode = _mode(held, reason)
    shown: list[Scene] = []
    if mode == "incremental":
        many = max(1, _NEW >> smaller)
        new = store.atoms_since(space, last_read(store, space), limit=many)
        if len(new) == many:
            upto = int(new[-1].id[1:])  # the rest counts as new next time
        atoms = [atom for atom in new if atom.valid_to is None and fit_for_pages(atom)]
    else:
        scenes = sound_scenes(store, space)
        shown = _within(scenes[: max(1, len(scenes) >> smaller)])
        atoms = _not_told(_leading(store, space, smaller), shown)
    if not (shown or atoms or mode == "incremental"):
        return None
    return Basis(
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
    """Return the atoms that no scene tells; rules are shown in their own words all the same."""
    told = {id for scene in scenes for id in cited(scene.body)}
    return [atom for atom in atoms if atom.kind == "instruction" or atom.id not in told]


def question(desk: Desk, basis: Basis) -> Question[Reply]:
    """Put the basis into words, as the rows are now: what was forgotten meanwhile is not shown."""
    store, space = desk.store, desk.space
    scenes = sound_scenes(store, space)
    shown = [scene for scene in scenes if scene.slug in basis.scenes]
    held = _held(store, space) if basis.mode == "incremental" else None
    return Question(
        purpose="persona",
        messages=prompt(
            "persona",
            most=f"{_ASKED_CHARS:,}",
            today=f"{desk.now:%Y-%m-%d}",
            characters=f"{len(held.text):,}" if held else "0",
            page=_fenced(held.text.strip()) if held else _NONE,
            ageing=", ".join(_ageing(store, space, held, desk.now) if held else ()) or _NONE,
            closed=_listed(_closed(store, space, held) if held else ()),
            scenes=_listed(map(_scene, shown)),
            others=_listed(f"[[{one.slug}]] {_one_line(one.summary)}" for one in scenes if one not in shown),
            statements=_listed(map(_statement, store.atoms(space, basis.atoms))),
        ),
        reply=Reply,
    )


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(lines) or _NONE


def _scene(scene: Scene) -> str:
    return (
        f'<scene slug="{scene.slug}" title="{_one_line(scene.title)}" updated="{scene.updated:%Y-%m-%d}">\n'
        f"{_fenced(scene.summary)}\n\n{_fenced(scene.body.strip())}\n</scene>"
    )


def _statement(atom: Atom) -> str:
    known = "outright" if atom.confidence >= 1 else "said" if atom.confidence >= STATED else "implied"
    kind = "standing rule" if atom.kind == "instruction" and atom.priority < 0 else atom.kind
    whose = f", {ATTRIBUTION[atom.source]}" if ATTRIBUTION[atom.source] else ""
    return f"({atom.id}) {date_of(atom.valid_from, atom.text)}, {kind}, {known}{whose}: {_one_line(atom.text)}"


def _ageing(store: Store, space: str, held: PersonaVersion, now: datetime) -> Iterator[str]:
    """Yield what the page tells as happening or planned, and nothing was said of for long, with its date."""
    for atom in store.atoms(space, cited(held.text)):
        if atom.kind == "episodic" and atom.valid_to is None and atom.valid_from < now - _AGE:
            yield f"({atom.id}) {date_of(atom.valid_from, atom.text)}"


def _closed(store: Store, space: str, held: PersonaVersion) -> Iterator[str]:
    for old, newer in ended_since(store, space, held):
        if newer is not None and is_joined(old, newer):
            yield f"({old.id}) joined into ({newer.id}) {_one_line(newer.text)}"
            continue
        why = f" Reason: {_one_line(old.closed_because)}" if old.closed_because else ""
        now = f" Now: ({newer.id}) {_one_line(newer.text)}" if newer else ""
        yield f"({old.id}) {_one_line(old.text)}{now}{why}"


def _fenced(text: str) -> str:
    return fenced(text, "page", "ageing", "closed", "scenes?", "other_scenes", "statements")


def _one_line(text: str) -> str:
    return _fenced(one_line(text, _STATEMENT)).replace('"', "'")


# --- what is kept -----------------------------------------------------------------------------------


def apply(desk: Desk, work: Work, basis: Basis, reply: Reply | None) -> Applied:
    """Check the page and store it as a new version. InvalidInput says how to mend it."""
    if reply is None:
        raise InvalidInput("There is no page in the reply.")
    store, space = desk.store, desk.space
    held = _held(store, space)
    if basis.version != (held.version if held else 0):
        raise Conflict("The page was written anew meanwhile.")
    text, dropped = cleaned(reply.page)
    text, ordered = without_orders(text)
    check_form(text)
    check_evidence(text, _citable(store, space, basis, held), sound_scenes(store, space))
    text = attributed(text, store.atoms(space, cited(text)))
    lines, bare = lines_of(text), unfounded(text)
    outcome = {"characters": len(text), "covered": len(lines) - len(bare), "uncovered": len(bare)}
    reason = one_line(f"{basis.reason}: {reply.changed}" if reply.changed.strip() else basis.reason, 300)
    version = store.commit_persona(space, work.id, text, reason=reason, upto=basis.upto, outcome=outcome, now=desk.now)
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


def _citable(store: Store, space: str, basis: Basis, held: PersonaVersion | None) -> set[str]:
    """Return the atoms that the question showed, in any version of its scenes, and that are not forgotten by now."""
    shown = {*basis.atoms}
    for slug in basis.scenes:
        shown.update(id for version in store.scene_versions(space, slug) for id in version.atoms)
    if held is not None and basis.mode == "incremental":
        shown.update(cited(held.text), (newer.id for _, newer in ended_since(store, space, held) if newer))
    return {atom.id for atom in store.atoms(space, shown)}


PERSONA = StageDefinition(name="persona", basis=Basis, reply=Reply, plan=plan, question=question, apply=apply)
