"""The persona: the page about the user with the proof of each line, its versions, and what changed between two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line, remove_hidden
from mcp_memory.core.types import Atom, PersonaVersion, Scene, Turn
from mcp_memory.store.citations import cited
from mcp_memory.ui import components as ui
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.markdown import inline, markdown
from mcp_memory.ui.views import Page, View
from mcp_memory.ui.words import t

if TYPE_CHECKING:
    from mcp_memory.service.verbs.evidence import ProvenLine

_AROUND = 60  # characters around a quote


def scene_names(scenes: Iterable[Scene]) -> dict[str, str]:
    """Return the slug of each scene by its slug and by its title, in lower case, as `markdown` takes them."""
    known = list(scenes)
    return {one.title.lower(): one.slug for one in known} | {one.slug.lower(): one.slug for one in known}


def ended_of(atoms: Iterable[Atom]) -> dict[str, str | None]:
    """Return by id the statements that no longer hold, with what holds instead, as `markdown` takes them."""
    return {atom.id: atom.superseded_by for atom in atoms if atom.valid_to}


async def persona(view: View) -> Page:
    """The page about the user, the statements that each of its lines names, its versions, and what changed."""
    memory = view.memory
    versions, names = await memory.persona_history(), scene_names(await memory.scenes())
    chosen = next((one for one in versions if str(one.version) == view.query.get("version")), None)
    lines = [] if chosen else await memory.persona_lines()
    text = chosen.text if chosen else "\n".join(line.text for line in lines)
    ended = ended_of(await memory.statements_by_id(cited(text)))
    body = [_which(versions, chosen, anything=any(line.is_claim for line in lines))]
    is_compared = bool({"old", "new"} & view.query.keys())
    if is_compared:
        body.append(await _compared(view))
    body.append(ui.section(t("persona.page"), markdown(text, scenes=names, ended=ended, title="Persona", top=2)))
    if not is_compared and (claims := [line for line in lines if line.is_claim]):
        first = {atom.evidence for line in claims for atom in line.atoms}
        turns = {turn.id: turn for turn in await memory.turns(sorted(first))}
        proofs = (_proof(line, turns) for line in claims)
        body.append(ui.section(t("persona.proof"), el("p", t("persona.proof_about")), *proofs, id="evidence"))
    if versions:
        body.append(_versions(versions))
    return Page(title=t("persona.title"), here="memory", body=tuple(body))


def _which(versions: Sequence[PersonaVersion], chosen: PersonaVersion | None, *, anything: bool) -> Element:
    if chosen:
        back = ui.link("/persona", t("persona.current"))
        return ui.note(t("persona.old", version=chosen.version), " ", ui.moment(chosen.at), " ", back, kind="warn")
    if versions and versions[0].by_model:
        newest = versions[0]
        return el("p", t("persona.by_model", version=newest.version), " ", ui.moment(newest.at))
    return el("p", t("persona.listed" if anything else "persona.none"))


def _proof(line: ProvenLine, turns: Mapping[str, Turn]) -> Element:
    """Return a line with the statements that it names, each with the words that it is based on first."""
    if line.atoms:
        ended = [" ", ui.badge(t("shared.ended"), "warn")] if any(atom.valid_to for atom in line.atoms) else None
        return el(
            "details",
            el("summary", remove_hidden(line.text.strip(" -*")), ended, dir="auto"),
            ui.rows(_proven(atom, turns.get(atom.evidence)) for atom in line.atoms),
        )
    unproven = None if line.scenes else [" ", ui.badge(t("persona.unproven"), "warn")]
    return el("p", inline(line.text.strip(" -*")), unproven, dir="auto")


def _proven(atom: Atom, turn: Turn | None) -> list[Element]:
    quote = ui.quoted(turn, [atom.span], around=_AROUND, of=atom.id) if turn else None
    held = [" ", ui.badge(t("shared.ended"), "warn")] if atom.valid_to else None
    stated = el("p", ui.link(f"/{atom.id}", ui.words_of(atom.text)), held, class_="said")
    return [stated, *([quote] if quote else [])]


async def _compared(view: View) -> Element:
    old, new = (_number(view.query.get(name)) for name in ("old", "new"))
    try:
        diff = await view.memory.persona_diff(old, new)
    except NotFound as unknown:
        return ui.note(str(unknown), kind="bad")
    return ui.section(t("persona.changes"), *_diff(diff), id="changes")


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def _diff(unified: str) -> Iterator[Element]:
    """Yield the lines of a unified diff. Signs mark new and removed lines, not colour alone."""
    lines = [line for line in unified.splitlines()[2:] if line[1:].strip()]
    if not lines:
        yield ui.empty(t("persona.no_changes"))
        return
    yield el("div", map(_diff_line, lines[lines[0][0] == "@" :]))


def _diff_line(line: str) -> Element | None:
    words = inline(line[1:])
    match line[:1]:
        case "+":
            return el("p", el("ins", "+ ", words), dir="auto")
        case "-":
            return el("p", el("del", "− ", words), dir="auto")
        case "@":
            return el("hr")
        case _:
            return el("p", words, dir="auto")


def _versions(versions: Sequence[PersonaVersion]) -> Element:
    numbers = [(str(one.version), str(one.version)) for one in versions]
    newest = versions[0].version
    form = el(
        "form",
        ui.choice(t("persona.from"), "old", [*numbers, ("0", t("persona.nothing"))], str(max(0, newest - 1))),
        ui.choice(t("persona.to"), "new", numbers, str(newest)),
        el("button", t("persona.compare")),
        method="get",
        action="/persona",
    )
    return ui.section(t("persona.versions"), form, ui.rows(map(_version, versions)))


def _version(one: PersonaVersion) -> Element:
    return ui.gap(
        ui.link("/persona", t("persona.version", version=one.version), version=one.version),
        ui.moment(one.at),
        ui.words_of(one_line(one.reason, 200)) if one.reason else None,
        ui.link("/persona", t("persona.what_changed"), old=one.version - 1, new=one.version),
    )
