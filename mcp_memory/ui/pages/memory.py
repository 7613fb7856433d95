"""Memory: the overview, the persona, the scenes and the statements, each with its evidence.

`overview` shows all of them, `persona` the page about the user with its versions and the proof of each line, `scene` a
scene with its versions and evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, remove_hidden
from mcp_memory.core.types import Atom, Kind, PersonaVersion, Scene, StatementKind, StatementPage, Turn
from mcp_memory.store.citations import cited_atoms
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.markdown import inline, markdown
from mcp_memory.ui.words import t

if TYPE_CHECKING:
    from mcp_memory.service.verbs.pages import ProvenLine
_AROUND = 60  # characters around a quote


def scene_names(scenes: Iterable[Scene]) -> dict[str, str]:
    """Return the slugs of scenes by slug and by title, in lower case, for `markdown`."""
    listed = list(scenes)
    return {scene.title.lower(): scene.slug for scene in listed} | {scene.slug.lower(): scene.slug for scene in listed}


def ended_statements(atoms: Iterable[Atom]) -> dict[str, str | None]:
    """Return the ended statements by id, with their replacement, for `markdown`."""
    return {atom.id: atom.superseded_by for atom in atoms if atom.valid_to}


async def persona(view: View) -> Page:
    """Show the page about the user, the statements that each line cites, its versions, and their differences."""
    memory = view.memory
    versions, names = await memory.persona_history(), scene_names(await memory.scenes())
    chosen = next((version for version in versions if str(version.version) == view.query.get("version")), None)
    lines = [] if chosen else await memory.persona_lines()
    text = chosen.text if chosen else "\n".join(line.text for line in lines)
    ended = ended_statements(await memory.statements_by_id(cited_atoms(text)))
    body = [_version_note(versions, chosen, anything=any(line.is_claim for line in lines))]
    is_compared = bool({"old", "new"} & view.query.keys())
    if is_compared:
        body.append(await _comparison(view))
    body.append(ui.section(t("persona.page"), markdown(text, scenes=names, ended=ended, title="Persona", top=2)))
    if not is_compared and (claims := [line for line in lines if line.is_claim]):
        first = {atom.evidence for line in claims for atom in line.atoms}
        turns = {turn.id: turn for turn in await memory.turns(sorted(first))}
        proofs = (_proof(line, turns) for line in claims)
        body.append(ui.section(t("persona.proof"), el("p", t("persona.proof_about")), *proofs, id="evidence"))
    if versions:
        body.append(_versions(versions))
    return Page(title=t("persona.title"), here="memory", body=tuple(body))


def _version_note(versions: Sequence[PersonaVersion], chosen: PersonaVersion | None, *, anything: bool) -> Element:
    if chosen:
        back = ui.link("/persona", t("persona.current"))
        return ui.note(t("persona.old", version=chosen.version), " ", ui.moment(chosen.at), " ", back, kind="warn")
    if versions and versions[0].by_model:
        newest = versions[0]
        return el("p", t("persona.by_model", version=newest.version), " ", ui.moment(newest.at))
    return el("p", t("persona.listed" if anything else "persona.none"))


def _proof(line: ProvenLine, turns: Mapping[str, Turn]) -> Element:
    """Return a line with the statements that it cites, each with the first quote it is based on."""
    if line.atoms:
        ended = [" ", ui.badge(t("shared.ended"), "warn")] if any(atom.valid_to for atom in line.atoms) else None
        return el(
            "details",
            el("summary", remove_hidden(line.text.strip(" -*")), ended, dir="auto"),
            ui.rows(_proven_statement(atom, turns.get(atom.evidence)) for atom in line.atoms),
        )
    unproven = None if line.scenes else [" ", ui.badge(t("persona.unproven"), "warn")]
    return el("p", inline(line.text.strip(" -*")), unproven, dir="auto")


def _proven_statement(atom: Atom, turn: Turn | None) -> list[Element]:
    quote = ui.quote_turn(turn, [atom.span], around=_AROUND, of=atom.id) if turn else None
    ended = [" ", ui.badge(t("shared.ended"), "warn")] if atom.valid_to else None
    stated = el("p", ui.link(f"/{atom.id}", ui.memory_text(atom.text)), ended, class_="said")
    return [stated, *([quote] if quote else [])]


async def _comparison(view: View) -> Element:
    old, new = (_number(view.query.get(name)) for name in ("old", "new"))
    try:
        diff = await view.memory.persona_diff(old, new)
    except NotFound as unknown:
        return ui.note(str(unknown), kind="bad")
    return ui.section(t("persona.changes"), *_diff(diff), id="changes")


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def _diff(unified: str) -> Iterator[Element]:
    """Yield the lines of a unified diff. New and removed lines have signs, not just a colour."""
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
    numbers = [(str(version.version), str(version.version)) for version in versions]
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


def _version(version: PersonaVersion) -> Element:
    return ui.line(
        ui.link("/persona", t("persona.version", version=version.version), version=version.version),
        ui.moment(version.at),
        ui.memory_text(one_line(version.reason, 200)) if version.reason else None,
        ui.link("/persona", t("persona.what_changed"), old=version.version - 1, new=version.version),
    )


if TYPE_CHECKING:
    from mcp_memory.service.verbs.pages import ProvenLine
KINDS = get_args(Kind)
_WAITING = 100
_LISTED = 30
_STATEMENTS = "/#statements"
"""The address of the list of statements, so that filters do not lead to the top of the page."""
_FILTERS = ("kind", "entity", "scene", "since", "until", "as_of", "ended")


# --- the overview -----------------------------------------------------------------------------------
async def overview(view: View) -> Page:
    """Show the persona, the scenes and the list of statements; for an empty memory, the first steps."""
    memory = view.memory
    scenes, lines = await memory.scenes(), await memory.persona_lines()
    listed = await _read_statements(view)
    has_content = isinstance(listed, str) or listed.atoms or view.query
    if not has_content and not scenes and not await memory.sessions(limit=1):
        return Page(title=t("memory.title"), here="memory", body=ui.body(*_first_steps(view)))
    return Page(
        title=t("memory.title"),
        here="memory",
        body=ui.body(
            *_to_review(len(await memory.waiting(limit=_WAITING + 1))),
            ui.columns(_persona_part(lines, scenes), _scenes_part(scenes)),
            _statements(view, listed),
            ui.forgotten_line(await memory.count_forgotten()),
            *_tell(view),
        ),
    )


async def _read_statements(view: View) -> StatementPage | str:
    """Return the page of statements that match the filters, or the message of the error if the filters are invalid."""
    filters = {name: value for name in _FILTERS[1:-1] if (value := view.query.get(name, "").strip())}
    kind = view.query.get("kind")
    try:
        return await view.memory.statements(
            kind=cast("Kind", kind) if kind in KINDS else None,
            ended="ended" in view.query,
            limit=_LISTED,
            cursor=view.query.get("cursor"),
            **filters,
        )
    except (InvalidInput, NotFound) as wrong:
        return str(wrong)


def _to_review(many: int) -> Iterator[Element]:
    if many:
        text = t("memory.waiting_many", most=_WAITING) if many > _WAITING else t("memory.waiting", count=many)
        yield ui.note(text, " ", ui.link("/review", t("memory.to_review")), kind="warn")


def _persona_part(lines: Sequence[ProvenLine], scenes: Sequence[Scene]) -> Element:
    text, ended = (
        "\n".join(line.text for line in lines),
        ended_statements(atom for line in lines for atom in line.atoms),
    )
    more = ui.link("/persona", t("memory.persona_more"))
    if not any(line.is_claim for line in lines):
        return ui.section(t("persona.title"), ui.empty(t("persona.none")), beside=more)
    return ui.section(
        t("persona.title"),
        markdown(text, scenes=scene_names(scenes), ended=ended, title="Persona", top=2),
        beside=more,
    )


def _scenes_part(scenes: Sequence[Scene]) -> Element:
    rows = ui.rows(map(_scene_row, scenes)) if scenes else ui.empty(t("memory.no_scenes"))
    return ui.section(t("memory.scenes"), rows, beside=t("memory.scene_count", count=len(scenes)))


def _scene_row(scene: Scene) -> Element:
    return el(
        "div",
        el("p", ui.link(f"/scene/{ui.part(scene.slug)}", ui.memory_text(scene.title)), class_="said"),
        el("p", ui.memory_text(scene.summary)),
        ui.line(
            el("span", t("scene.heat", heat=scene.heat), title=t("scene.what_heat")),
            el("span", t("scene.statements", count=len(scene.atoms))),
            el("span", t("scene.written"), " ", ui.moment(scene.updated)),
        ),
        class_="statement",
    )


def _statements(view: View, listed: StatementPage | str) -> Element:
    form = _filters(view)
    if isinstance(listed, str):
        return ui.section(t("memory.statements"), form, ui.note(remove_hidden(listed), kind="bad"))
    total = None if listed.total is None else t("memory.statement_count", count=listed.total)
    filters = {name: view.query.get(name) for name in _FILTERS}
    return ui.section(
        t("memory.statements"),
        form,
        ui.note(remove_hidden(listed.note)) if listed.note else None,
        ui.rows(map(ui.statement_row, listed.atoms)) if listed.atoms else ui.empty(_none(view)),
        ui.pager(_STATEMENTS, listed.cursor, t("memory.more"), **filters),
        el("p", el("small", t("memory.legend"))),
        beside=total,
        id="statements",
    )


def _none(view: View) -> str:
    return t("memory.none_so") if any(view.query.get(name) for name in _FILTERS) else t("memory.none_yet")


def _filters(view: View) -> Element:
    query = view.query
    kinds = [("", t("memory.any_kind")), *((kind, t(f"shared.kind_{kind}")) for kind in KINDS)]
    return el(
        "form",
        ui.choice(t("memory.kind"), "kind", kinds, query.get("kind", "")),
        ui.input_field(t("memory.entity"), "entity", query.get("entity", "")),
        ui.input_field(t("memory.since"), "since", query.get("since", ""), hint=t("memory.time_hint")),
        ui.input_field(t("memory.until"), "until", query.get("until", "")),
        ui.input_field(t("memory.as_of"), "as_of", query.get("as_of", "")),
        ui.tick(t("memory.ended"), "ended", checked="ended" in query),
        el("input", type="hidden", name="scene", value=query["scene"]) if query.get("scene") else None,
        el("button", t("memory.show")),
        ui.link(_STATEMENTS, t("memory.show_all")) if any(query.get(name) for name in _FILTERS) else None,
        method="get",
        action=_STATEMENTS,
    )


def _tell(view: View) -> Iterator[Element]:
    """Yield the form that stores a statement; nothing if the reader lacks the right."""
    kinds = [(kind, t(f"memory.kind_{kind}")) for kind in get_args(StatementKind)]
    form = ui.form(
        view,
        "remember",
        el("textarea", name="text", required=True, rows=3, aria_label=t("memory.tell_words"), dir="auto"),
        ui.choice(t("memory.kind"), "kind", kinds, "persona"),
        el("button", t("memory.tell_do"), class_="main"),
        needs="write",
        supersedes="",
    )
    if form:
        yield ui.section(t("memory.tell"), el("p", t("memory.tell_about")), form, id="tell")


def _first_steps(view: View) -> Iterator[Element]:
    """Yield the first steps with an empty memory, and the form that stores a statement."""
    steps = [
        (t("memory.first_connect"), "mcp-memory install"),
        (t("memory.first_import"), "mcp-memory import"),
        (t("memory.first_demo"), "mcp-memory demo"),
    ]
    yield ui.note(t("memory.empty"))
    lines = (el("li", el("p", words), el("pre", el("code", command))) for words, command in steps)
    yield ui.section(t("memory.first"), el("ol", lines))
    yield from _tell(view)


# --- a scene ----------------------------------------------------------------------------------------
async def scene(view: View) -> Page:
    """Show a scene, or the version in the query, with its statements and versions.

    Raises NotFound for an unknown scene.
    """
    memory, slug = view.memory, view.parts["slug"]
    history = await memory.scene_history(slug)
    newest = history[0]
    chosen = next((version for version in history if str(version.version) == view.query.get("version")), newest)
    is_current = chosen is newest and newest.action != "delete"
    text = await memory.scene_page(slug) if is_current else chosen.body
    atoms = await memory.statements_by_id(list(dict.fromkeys((*chosen.atoms, *cited_atoms(text)))))
    ended = ended_statements(atoms)
    based_on = [atom for atom in atoms if atom.id in chosen.atoms]
    names = scene_names(await memory.scenes())
    return Page(
        title=remove_hidden(one_line(chosen.title or slug, 120)),
        here="memory",
        body=ui.body(
            _scene_state(chosen, newest),
            markdown(text, scenes=names, ended=ended, title=chosen.title, top=1)
            if text.strip()
            else ui.empty(t("scene.nothing")),
            ui.section(
                t("scene.based_on"),
                ui.rows(map(ui.statement_row, based_on)) if based_on else ui.empty(t("shared.none")),
                id="evidence",
            ),
            ui.section(t("scene.versions"), ui.rows(_scene_version(view, version, newest) for version in history)),
        ),
    )


def _scene_state(chosen: Scene, newest: Scene) -> Any:
    path = f"/scene/{ui.part(newest.slug)}"
    facts = ui.line(
        el("span", t("scene.heat", heat=chosen.heat), class_="badge kind", title=t("scene.what_heat")),
        el("span", t("scene.version", version=chosen.version)),
        el("span", t("scene.written"), " ", ui.moment(chosen.updated)),
        (ui.link(f"/entity/{ui.part(name)}", ui.memory_text(name), class_="entity") for name in chosen.entities),
    )
    if newest.action == "delete":
        reason = ui.memory_text(one_line(newest.reason, 200))
        return el("div", ui.note(t("scene.deleted"), " ", reason, kind="warn"), facts)
    if chosen is not newest:
        return el("div", ui.note(t("scene.old"), " ", ui.link(path, t("scene.current")), kind="warn"), facts)
    return facts


def _scene_version(view: View, scene: Scene, newest: Scene) -> Element:
    restorable = scene is not newest and bool(scene.body)
    return ui.line(
        ui.link(f"/scene/{ui.part(scene.slug)}", t("scene.version", version=scene.version), version=scene.version),
        ui.badge(t(f"scene.{scene.action}"), "kind"),
        ui.moment(scene.updated),
        ui.memory_text(one_line(scene.reason, 200)),
        ui.action(view, "restore_scene", t("scene.restore_this"), slug=scene.slug, version=scene.version)
        if restorable
        else None,
    )
