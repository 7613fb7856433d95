"""Memory: the persona, the scenes and the statements, each with its evidence.

`overview` shows all three, `scene` one scene with its evidence; the page of the persona is in the module `persona`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, remove_hidden
from mcp_memory.core.types import Kind, Scene, StatementKind, StatementPage
from mcp_memory.store.citations import cited
from mcp_memory.ui import components as ui
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.markdown import markdown
from mcp_memory.ui.pages.persona import ended_of, scene_names
from mcp_memory.ui.views import Page, View
from mcp_memory.ui.words import t

if TYPE_CHECKING:
    from mcp_memory.service.verbs.evidence import ProvenLine


KINDS = get_args(Kind)
_WAITING = 100
_LISTED = 30
_STATEMENTS = "/#statements"
"""Where the list of statements begins, so that a filter does not lead to the top of the page."""
_FILTERS = ("kind", "entity", "scene", "since", "until", "as_of", "ended")


# --- the overview -----------------------------------------------------------------------------------


async def overview(view: View) -> Page:
    """Who the user is, what the conversations are about, and every statement; of an empty memory, what to do first."""
    memory = view.memory
    scenes, lines = await memory.scenes(), await memory.persona_lines()
    listed = await _listed(view)
    known = isinstance(listed, str) or listed.atoms or view.query
    if not known and not scenes and not await memory.sessions(limit=1):
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


async def _listed(view: View) -> StatementPage | str:
    """Return the page of statements that match the filters, or the message of the error if the filters are invalid."""
    given = {name: value for name in _FILTERS[1:-1] if (value := view.query.get(name, "").strip())}
    kind = view.query.get("kind")
    try:
        return await view.memory.statements(
            kind=cast("Kind", kind) if kind in KINDS else None,
            ended="ended" in view.query,
            limit=_LISTED,
            cursor=view.query.get("cursor"),
            **given,
        )
    except (InvalidInput, NotFound) as wrong:
        return str(wrong)


def _to_review(many: int) -> Iterator[Element]:
    if many:
        text = t("memory.waiting_many", most=_WAITING) if many > _WAITING else t("memory.waiting", count=many)
        yield ui.note(text, " ", ui.link("/review", t("memory.to_review")), kind="warn")


def _persona_part(lines: Sequence[ProvenLine], scenes: Sequence[Scene]) -> Element:
    text, ended = "\n".join(line.text for line in lines), ended_of(atom for line in lines for atom in line.atoms)
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


def _scene_row(one: Scene) -> Element:
    return el(
        "div",
        el("p", ui.link(f"/scene/{ui.part(one.slug)}", ui.words_of(one.title)), class_="said"),
        el("p", ui.words_of(one.summary)),
        ui.gap(
            el("span", t("scene.heat", heat=one.heat), title=t("scene.what_heat")),
            el("span", t("scene.statements", count=len(one.atoms))),
            el("span", t("scene.written"), " ", ui.moment(one.updated)),
        ),
        class_="statement",
    )


def _statements(view: View, listed: StatementPage | str) -> Element:
    form = _filters(view)
    if isinstance(listed, str):
        return ui.section(t("memory.statements"), form, ui.note(remove_hidden(listed), kind="bad"))
    total = None if listed.total is None else t("memory.statement_count", count=listed.total)
    given = {name: view.query.get(name) for name in _FILTERS}
    return ui.section(
        t("memory.statements"),
        form,
        ui.note(remove_hidden(listed.note)) if listed.note else None,
        ui.rows(map(ui.statement_row, listed.atoms)) if listed.atoms else ui.empty(_none(view)),
        ui.pager(_STATEMENTS, listed.cursor, t("memory.more"), **given),
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
        ui.field(t("memory.entity"), "entity", query.get("entity", "")),
        ui.field(t("memory.since"), "since", query.get("since", ""), hint=t("memory.time_hint")),
        ui.field(t("memory.until"), "until", query.get("until", "")),
        ui.field(t("memory.as_of"), "as_of", query.get("as_of", "")),
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
    """Yield what to do with a memory in which nothing is."""
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
    """A scene as it is read, the statements that it is based on, and its versions."""
    memory, slug = view.memory, view.parts["slug"]
    history = await memory.scene_history(slug)
    newest = history[0]
    chosen = next((one for one in history if str(one.version) == view.query.get("version")), newest)
    is_current = chosen is newest and newest.action != "delete"
    text = await memory.scene_page(slug) if is_current else chosen.body
    atoms = await memory.statements_by_id(list(dict.fromkeys((*chosen.atoms, *cited(text)))))
    ended = ended_of(atoms)
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
            ui.section(t("scene.versions"), ui.rows(_scene_version(view, one, newest) for one in history)),
        ),
    )


def _scene_state(chosen: Scene, newest: Scene) -> Any:
    path = f"/scene/{ui.part(newest.slug)}"
    facts = ui.gap(
        el("span", t("scene.heat", heat=chosen.heat), class_="badge kind", title=t("scene.what_heat")),
        el("span", t("scene.version", version=chosen.version)),
        el("span", t("scene.written"), " ", ui.moment(chosen.updated)),
        (ui.link(f"/entity/{ui.part(name)}", ui.words_of(name), class_="entity") for name in chosen.entities),
    )
    if newest.action == "delete":
        reason = ui.words_of(one_line(newest.reason, 200))
        return el("div", ui.note(t("scene.deleted"), " ", reason, kind="warn"), facts)
    if chosen is not newest:
        return el("div", ui.note(t("scene.old"), " ", ui.link(path, t("scene.current")), kind="warn"), facts)
    return facts


def _scene_version(view: View, one: Scene, newest: Scene) -> Element:
    restorable = one is not newest and bool(one.body)
    return ui.gap(
        ui.link(f"/scene/{ui.part(one.slug)}", t("scene.version", version=one.version), version=one.version),
        ui.badge(t(f"scene.{one.action}"), "kind"),
        ui.moment(one.updated),
        ui.words_of(one_line(one.reason, 200)),
        ui.action(view, "restore_scene", t("scene.restore_this"), slug=one.slug, version=one.version)
        if restorable
        else None,
    )
