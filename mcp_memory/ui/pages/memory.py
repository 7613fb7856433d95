"""Memory: all that is known, each with its evidence.

`overview` shows the page about the user, the topics and the statements; `persona` the page about the user with its
versions and the proof of each line; `scene` a topic with its versions and evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, cast, get_args

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, plural, remove_hidden
from mcp_memory.core.types import Atom, Kind, PersonaVersion, Scene, StatementPage
from mcp_memory.longterm.scenes import COMPUTED
from mcp_memory.store.citations import cited_atoms
from mcp_memory.ui import components as ui
from mcp_memory.ui import times
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.markdown import for_people, inline, markdown

if TYPE_CHECKING:
    from mcp_memory.service.verbs.pages import ProvenLine
_NO_PERSONA = "Nothing is known about you yet."
_LISTED_PERSONA = "Chosen from what you said, in your own words. Each line leads to where it is from."


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
    if chosen or any(line.is_claim for line in lines):
        body.append(ui.section(None, el("div", _persona_text(text, names, ended, top=1), class_="spread")))
    if not is_compared and (unproven := [line for line in lines if line.is_claim and not _has_proof(line)]):
        rows = (el("p", inline(line.text.strip(" -*")), dir="auto") for line in unproven)
        body.append(ui.section("Lines that name no statement", ui.rows(rows)))
    if versions:
        body.append(_versions(versions))
    return Page(title="About you", here="memory", body=tuple(body))


def _version_note(versions: Sequence[PersonaVersion], chosen: PersonaVersion | None, *, anything: bool) -> Element:
    if chosen:
        back = ui.link("/persona", "Show the current page")
        return ui.note(f"This is version {chosen.version}. ", ui.moment(chosen.at), " ", back, kind="warn")
    if versions and versions[0].by_model:
        newest = versions[0]
        return ui.line(
            el("span", "Written by a model on ", ui.moment(newest.at), ". Each line leads to where it is from.")
        )
    return ui.line(_LISTED_PERSONA) if anything else ui.empty(_NO_PERSONA)


def _has_proof(line: ProvenLine) -> bool:
    return bool(line.atoms or line.scenes) or line.text.startswith("- …")


async def _comparison(view: View) -> Element:
    old, new = (_number(view.query.get(name)) for name in ("old", "new"))
    try:
        diff = await view.memory.persona_diff(old, new)
    except NotFound as unknown:
        return ui.note(str(unknown), kind="bad")
    return ui.section("Changes", *_diff(diff), id="changes")


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def _diff(unified: str) -> Iterator[Element]:
    """Yield the lines of a unified diff. New and removed lines have signs, not just a colour."""
    lines = [line for line in unified.splitlines()[2:] if line[1:].strip() not in ("", "# Persona")]
    if not lines:
        yield ui.empty("The two versions say the same.")
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
        ui.choice("From", "old", [*numbers, ("0", "no page")], str(max(0, newest - 1))),
        ui.choice("To", "new", numbers, str(newest)),
        el("button", "Compare"),
        method="get",
        action="/persona",
    )
    return el("details", el("summary", "Earlier versions"), form, ui.rows(map(_version, versions)))


def _version(version: PersonaVersion) -> Element:
    return ui.line(
        ui.link("/persona", f"Version {version.version}", version=version.version),
        ui.moment(version.at),
        ui.memory_text(one_line(version.reason, 200)) if version.reason else None,
        ui.link("/persona", "what changed", old=version.version - 1, new=version.version),
    )


KINDS = get_args(Kind)
_LISTED = 30
_TOPICS, _SUMMARY = 8, 160  # topics that are not folded, characters of their summaries
_OF_TOPIC = 100  # statements
_CLAIMS = 10  # lines about the user
_WEEKS, _MONTHS = 4, 24
_STATEMENTS = "/memory#statements"
"""The address of the list of statements, so that filters do not lead to the top of the page."""
_ACTIONS = {
    "create": "written",
    "update": "changed",
    "merge": "merged",
    "delete": "removed",
    "restore": "restored",
}
_FILTERS = ("kind", "entity", "scene", "since", "until", "learned", "as_of", "ended")
_FIELDS = ("kind", "since", "until", "learned", "ended", "order")
"""The filters that the form has fields for, and the order."""
_ONLY = "only"
_ENDED = {"": "true now", "1": "all", _ONLY: "ended"}
_IMPORTANT = "important"
_PERIOD = {"in": "of", "since": "from", "until": "to", "learned": "learned since", "as_of": "as of"}
_ORDERS = {"": "newest first", _IMPORTANT: "most important first"}


# --- the overview -----------------------------------------------------------------------------------
async def overview(view: View) -> Page:
    """Show the page about the user, the topics and the list of statements; for an empty memory, the first steps."""
    memory = view.memory
    scenes, lines = await memory.scenes(), await memory.persona_lines()
    listed = await _read_statements(view)
    has_content = isinstance(listed, str) or listed.atoms or view.query
    if not has_content and not scenes and not await memory.sessions(limit=1):
        return Page(title="Memory", here="memory", body=ui.body(*first_steps(view)))
    is_known = any(line.is_claim for line in lines)
    return Page(
        title="Memory",
        here="memory",
        body=ui.body(
            _parts(is_known=is_known, has_topics=bool(scenes)),
            ui.wide_columns([persona_part(lines, scenes, claims=_CLAIMS)] if is_known else [], _topics(scenes)),
            _statements(view, listed, await memory.statement_days()),
            ui.forgotten_line(await memory.count_forgotten()),
        ),
    )


def _parts(*, is_known: bool, has_topics: bool) -> Element | None:
    """Return links to the parts of the page; None if it has only one."""
    links = [
        ("About you", "#about", False) if is_known else None,
        ("Topics", "#topics", False) if has_topics else None,
        ("Statements", "#statements", False),
    ]
    shown = [entry for entry in links if entry]
    return ui.chosen_of("Parts of this page", shown) if len(shown) > 1 else None


async def _read_statements(view: View) -> StatementPage | str:
    """Return the page of statements that match the filters, or the message of the error if the filters are invalid."""
    filters = {name: value for name in _FILTERS[1:-1] if (value := view.query.get(name, "").strip())}
    kind = view.query.get("kind")
    try:
        return await view.memory.statements(
            kind=cast("Kind", kind) if kind in KINDS else None,
            ended=bool(view.query.get("ended")),
            only_ended=view.query.get("ended") == _ONLY,
            newest_first=view.query.get("order") != _IMPORTANT,
            limit=_LISTED,
            cursor=view.query.get("cursor"),
            **filters,
        )
    except (InvalidInput, NotFound) as wrong:
        return str(wrong)


def persona_part(lines: Sequence[ProvenLine], scenes: Sequence[Scene], *, claims: int) -> Element:
    """Return the first lines about the user as a section, with a link to all."""
    places = [place for place, line in enumerate(lines) if line.is_claim]
    shown = lines[: places[:claims][-1] + 1]
    ended = ended_statements(atom for line in shown for atom in line.atoms)
    return ui.section(
        "About you",
        _persona_text("\n".join(line.text for line in shown), scene_names(scenes), ended),
        beside=ui.link("/persona", "All"),
        id="about",
    )


def _persona_text(
    text: str, names: Mapping[str, str], ended: Mapping[str, str | None], *, top: int = 2
) -> list[Element]:
    """Return a page about the user. What it says of statements that it has no room for is a link to them."""
    shown, _ = for_people(text)
    page, mark, more = shown.rpartition("\n- … ") if shown != text else (text, "", "")
    link = el("p", ui.link(_STATEMENTS, ui.memory_text(f"… {more.strip()}"))) if mark else None
    return [markdown(page, scenes=names, ended=ended, title="Persona", top=top), *([link] if link else [])]


def _topics(scenes: Sequence[Scene]) -> Iterator[Element]:
    if scenes:
        shown, folded = scenes[:_TOPICS], scenes[_TOPICS:]
        more = el("details", el("summary", f"{len(folded):,} more"), ui.rows(map(_topic_row, folded)))
        yield ui.section("Topics", ui.rows(map(_topic_row, shown)), more if folded else None, id="topics")


def _topic_row(scene: Scene) -> Element:
    title = el("p", ui.link(f"/scene/{ui.part(scene.slug)}", ui.memory_text(scene.title)), class_="said")
    summary = None if scene.reason == COMPUTED else ui.memory_text(one_line(scene.summary, _SUMMARY))
    return ui.dated_row(title, summary, when=el("span", plural(len(scene.atoms), "statement"), class_="when"))


def _statements(view: View, listed: StatementPage | str, days: Mapping[str, int]) -> Element:
    search = [_periods(view, days), _filters(view)]
    if isinstance(listed, str):
        return ui.section("Statements", *search, ui.note(remove_hidden(listed), kind="bad"), id="statements")
    filters = {name: view.query.get(name) for name in (*_FILTERS, "order")}
    return ui.section(
        "Statements",
        *search,
        ui.note(remove_hidden(listed.note)) if listed.note else None,
        ui.rows(map(ui.statement_row, listed.atoms)) if listed.atoms else ui.empty(_none(view)),
        ui.pager(_STATEMENTS, listed.cursor, "More statements", **filters),
        beside=[_total(view, listed), ui.link("/changes", "Changes")],
        id="statements",
    )


def _total(view: View, listed: StatementPage) -> Element | None:
    """Return the number of statements, and the period that they are of."""
    if listed.total is None:
        return None
    query = {name: view.query.get(name, "").strip() for name in _PERIOD}
    if query["since"] == query["until"]:
        query |= {"since": "", "until": "", "in": query["since"]}
    period = "".join(f" {_PERIOD[name]} {_day(remove_hidden(time))}" for name, time in query.items() if time)
    return el("span", plural(listed.total, "statement"), period)


def _day(time: str) -> str:
    """Return a time of a filter as it is shown: `3 Nov 2026`, `Nov 2026`, other texts as they are."""
    try:
        return ui.day_text(date.fromisoformat(time))
    except ValueError:
        pass
    try:
        return f"{date.fromisoformat(f'{time}-01'):%b %Y}"
    except ValueError:
        return time


def _periods(view: View, days: Mapping[str, int]) -> Element | None:
    """Return links to the statements of the latest weeks, and before these of months; None if all are of this week.

    What has ended since is listed too.
    """
    today = times.local(view.memory.now()).date()
    monday = today - timedelta(days=today.weekday())
    weeks, months = Counter[date](), Counter[date]()
    for text, many in days.items():
        day = date.fromisoformat(text)
        week = min(monday, day - timedelta(days=day.weekday()))
        if monday - week < timedelta(weeks=_WEEKS):
            weeks[week] += many
        else:
            months[day.replace(day=1)] += many
    if len(weeks) + len(months) < 2:
        return None
    names = {monday: "This week", monday - timedelta(weeks=1): "Last week"}
    periods = [
        (names.get(week, f"Week of {week.day} {week:%b}"), many, week, week + timedelta(days=6))
        for week, many in weeks.items()
    ]
    oldest = min(weeks, default=monday)
    periods += [
        (f"{month:%b %Y}", many, month, min(_last_of_month(month), oldest - timedelta(days=1)))
        for month, many in list(months.items())[:_MONTHS]
    ]
    since, until = view.query.get("since", ""), view.query.get("until", "")
    links: list[tuple[Any, str, bool]] = [("All", _STATEMENTS, not (since or until or view.query.get("learned")))]
    for name, many, first, last in periods:
        period = {"since": first.isoformat(), "until": "" if first == monday else last.isoformat()}
        address = ui.address(_STATEMENTS, **period, ended=1)
        is_chosen = (since, until) == tuple(period.values())
        links.append(([name, " ", el("small", ui.count(many))], address, is_chosen))
    return ui.chosen_of("Weeks and months", links)


def _last_of_month(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def _none(view: View) -> str:
    if any(view.query.get(name) for name in _FILTERS):
        return "No statement passes these filters."
    return "No statements yet. They are made of what you say in conversations, in the background."


def _filters(view: View) -> Element:
    query = view.query
    kept = {name: query[name] for name in _FILTERS if query.get(name) and name not in _FIELDS}
    return el(
        "form",
        ui.date_field("Learned from", "since", query.get("since") or query.get("learned") or ""),
        ui.date_field("to", "until", query.get("until", "")),
        ui.choice("Which", "ended", _ENDED.items(), query.get("ended", "")),
        ui.choice("Kind", "kind", [("", "any"), *ui.KIND_NAMES.items()], query.get("kind", "")),
        ui.choice("Order", "order", _ORDERS.items(), query.get("order", "")),
        ui.hidden(kept),
        el("button", "Show"),
        ui.link(_STATEMENTS, "Show all") if kept else None,
        method="get",
        action=_STATEMENTS,
    )


def tell(view: View) -> Iterator[Element]:
    """Yield the form that stores a statement; nothing if the reader lacks the right."""
    form = ui.form(
        view,
        "remember",
        el("textarea", name="text", required=True, rows=3, aria_label="Statement", dir="auto"),
        ui.kind_choice("persona"),
        el("button", "Remember it", class_="main"),
        needs="write",
        supersedes="",
    )
    if form:
        yield ui.section(
            "Tell the memory something",
            el("p", "One statement. It is your own word, so it counts more than what a model extracts."),
            form,
            id="tell",
        )


def first_steps(view: View) -> Iterator[Element]:
    """Yield the first steps with an empty memory, and the form that stores a statement."""
    steps = [
        ("Connect an agent. It stores conversations and recalls them. This lists the clients:", "mcp-memory install"),
        ("Import conversations that other programs have kept:", "mcp-memory import"),
        ("Or look at a filled memory first, a made-up fortnight in a folder of its own:", "mcp-memory demo"),
    ]
    yield ui.note("Nothing is in this memory yet.")
    lines = (el("li", el("p", words), el("pre", el("code", command))) for words, command in steps)
    yield ui.section("Fill it", el("ol", lines))
    yield from tell(view)


# --- a topic ----------------------------------------------------------------------------------------
async def scene(view: View) -> Page:
    """Show a topic, or the version in the query, with its statements and versions.

    Raises NotFound for an unknown topic.
    """
    memory, slug = view.memory, view.parts["slug"]
    try:
        history = await memory.scene_history(slug)
    except NotFound:
        raise NotFound(f"There is no topic {one_line(slug, 60)} in this memory.") from None
    newest = history[0]
    chosen = next((version for version in history if str(version.version) == view.query.get("version")), newest)
    is_current = chosen is newest and newest.action != "delete"
    text = await memory.scene_page(slug) if is_current else chosen.body
    atoms = await memory.statements_by_id(list(dict.fromkeys((*chosen.atoms, *cited_atoms(text)))))
    ended = ended_statements(atoms)
    names = scene_names(await memory.scenes())
    based_on = [atom for atom in atoms if atom.id in chosen.atoms]
    if chosen.reason == COMPUTED:
        _, mark, rest = text.partition("\n## ")  # before it are the lines of the statements
        parts = [_listed_statements(chosen, based_on[::-1]), markdown(f"{mark}{rest}", scenes=names, top=1)]
    else:
        versions = ui.rows(_scene_version(view, version, newest) for version in history)
        parts = [
            markdown(text, scenes=names, ended=ended, title=chosen.title, top=1)
            if text.strip()
            else ui.empty("Nothing is left of this version."),
            ui.section("Based on", ui.rows(map(ui.statement_row, based_on)), id="evidence") if based_on else None,
            el("details", el("summary", "Earlier versions"), versions, open=not is_current),
        ]
    return Page(
        title=remove_hidden(one_line(chosen.title or slug, 120)),
        here="memory",
        body=ui.body(_scene_state(chosen, newest), *parts),
    )


def _listed_statements(topic: Scene, atoms: Sequence[Atom]) -> Element:
    """Return the first statements of a topic, and a link to all if there are more."""
    every = ui.link(_STATEMENTS, f"All {ui.count(len(atoms))} statements", scene=topic.slug)
    return ui.section(
        None,
        ui.rows(map(ui.statement_row, atoms[:_OF_TOPIC])),
        el("p", every, class_="pager") if len(atoms) > _OF_TOPIC else None,
    )


def _scene_state(chosen: Scene, newest: Scene) -> Any:
    path = f"/scene/{ui.part(newest.slug)}"
    written = None if chosen.reason == COMPUTED else el("span", "written ", ui.moment(chosen.updated))
    facts = ui.line(written, plural(len(chosen.atoms), "statement"), ui.entity_links(chosen.entities))
    if newest.action == "delete":
        reason = ui.memory_text(one_line(newest.reason, 200))
        return el("div", ui.note("This topic was removed: ", reason, kind="warn"), facts)
    if chosen is not newest:
        return el("div", ui.note("This is an old version. ", ui.link(path, "Show the current one"), kind="warn"), facts)
    return facts


def _scene_version(view: View, scene: Scene, newest: Scene) -> Element:
    restorable = scene is not newest and bool(scene.body)
    return ui.line(
        ui.link(f"/scene/{ui.part(scene.slug)}", f"Version {scene.version}", version=scene.version),
        ui.badge(_ACTIONS[scene.action], "kind"),
        ui.moment(scene.updated),
        ui.memory_text(one_line(scene.reason, 200)),
        ui.action(view, "restore_scene", "Restore this version", slug=scene.slug, version=scene.version)
        if restorable
        else None,
    )
