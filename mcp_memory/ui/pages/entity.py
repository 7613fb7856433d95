"""An entity: its facts over time, as of any day, the entities that share statements with it, and its statements.

The slider and the date are forms that load the page as of another day, so they work without scripts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

import anyio.to_thread

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, plural, remove_hidden
from mcp_memory.core.types import Atom, Conversations, Fact, MemoryMap, StatementPage
from mcp_memory.language.words import fold
from mcp_memory.longterm.names import USER
from mcp_memory.longterm.validity import coming_day
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pages.conversations import conversation_row
from mcp_memory.ui.pages.item import drop_repeated
from mcp_memory.ui.pages.people import facts_of_user
from mcp_memory.ui.pictures import charts
from mcp_memory.ui.pictures.map import neighbourhood
from mcp_memory.ui.times import day_of

if TYPE_CHECKING:
    from mcp_memory.longterm.search.naming import NamingMessage

_FACTS = 60
_STATEMENTS = 25
_CHANGES = 12
_TALKS = 8
_PLANS = 8
_MESSAGES = 8
_ANSWERS = "? – "
"""Stands between a question and its answer in a statement."""
_DRAWN = 12


async def entity(view: View) -> Page:
    """Show everything about an entity, today or at another time; for an unknown entity, a link to the search.

    The time is given in the query: `as_of` is a date, `day` the position of the slider, in days since the first fact.
    """
    name, memory = view.parts["name"], view.memory
    now = memory.now()
    try:
        facts = drop_repeated(await memory.facts_about(name))
    except NotFound as unknown:
        return _unknown(name, unknown)
    as_of, cursor = _as_of(view, facts, now), view.query.get("cursor")
    listed = await memory.statements(
        entity=name, as_of=as_of.isoformat() if as_of else None, limit=_STATEMENTS, cursor=cursor
    )
    past = None
    if not listed.atoms and as_of is None:
        past = await memory.statements(entity=name, ended=True, limit=_STATEMENTS, cursor=cursor)
    around = await memory.entity_map(about=name, limit=_DRAWN + 1)
    talks = await memory.conversations(entity=name, limit=_TALKS)
    atoms = (past or listed).atoms
    title = _main_name(name, atoms)
    role = (await facts_of_user(view)).get(fold(title))
    is_head = not (as_of or cursor)
    first = _introducing(title, atoms, role) if is_head else None
    named = await memory.messages_naming(title, limit=_MESSAGES) if is_head and title != USER else []
    planned = await _planned(view, atoms, [message.turn.id for message in named]) if is_head else []
    above = {atom.id for atom in (first, *(atom for _, atom in planned)) if atom}
    return Page(
        title=remove_hidden(one_line(ui.shown_name(title), 80)),
        here="people",
        body=ui.body(
            ui.note(remove_hidden(listed.note)) if listed.note else None,
            el("p", f"Your {ui.relation_words(role.relation)}") if role else None,
            await _introduction(view, title, first) if first else None,
            _coming(planned),
            _facts(title, facts, as_of, now),
            _past(title, past) if past and past.atoms else _statements(title, listed, as_of, above),
            _named_in(named),
            _talks(title, talks),
            _near(title, around, day_of(now)) if around.related else None,
            _search_link(title),
        ),
    )


def _main_name(name: str, atoms: Sequence[Atom]) -> str:
    """Return the main name of the entity that all these statements mention and that was asked for as `name`."""
    shared = [main for main in atoms[0].entities if all(main in atom.entities for atom in atoms)] if atoms else []
    return min(shared, key=lambda main: (fold(main) != fold(name), fold(name) not in fold(main)), default=name)


def _rows(name: str, atoms: Sequence[Atom]) -> Element:
    """Return statements about an entity, each with the other entities that it mentions."""
    others = (replace(atom, entities=tuple(main for main in atom.entities if main != name)) for atom in atoms)
    return ui.rows(map(ui.statement_row, others))


def _introducing(name: str, atoms: Sequence[Atom], role: Fact | None) -> Atom | None:
    """Return the statement that introduces an entity: that of its `role`, else the earliest with the whole name.

    Answers that need their question come last, statements about people before others.
    """

    def rank(atom: Atom) -> tuple[bool, bool, bool, bool, datetime, int]:
        is_role = role is not None and atom.id == role.atom
        return (
            not is_role and _ANSWERS in atom.text,
            not is_role,
            name not in atom.text,
            atom.kind != "persona",
            atom.valid_from,
            int(atom.id[1:]),
        )

    return min(atoms, key=rank, default=None)


async def _introduction(view: View, name: str, atom: Atom) -> Element:
    """Return a statement as the sentence at the head of the page, with its date and conversation.

    An answer is shown without its question if it has the name itself.
    """
    turn = next(iter(await view.memory.turns([atom.evidence])), None) if atom.evidence else None
    title = (await view.memory.titles([turn.session])).get(turn.session) if turn else None
    answer = atom.text.rpartition(_ANSWERS)[2]
    return ui.section(
        None,
        el("p", ui.link(f"/{atom.id}", ui.memory_text(answer if name in answer else atom.text)), class_="lead said"),
        ui.line(
            ui.moment(atom.valid_from, day=True),
            ui.name_of_source(atom.source),
            ui.conversation_link(turn, title) if turn and title else None,
        ),
    )


async def _planned(view: View, atoms: Sequence[Atom], messages: Sequence[str]) -> list[tuple[date, Atom]]:
    """Return the statements about a coming day of `atoms`, and those based on `messages`, with the day, next first."""
    now = view.memory.now()
    based = await view.memory.statements_about(messages) if messages else {}
    made = (atom for several in based.values() for atom in several)
    open_ones = (atom for atom in made if atom.valid_to is None and not atom.held and atom.label != "promise")
    known = {atom.id: atom for atom in (*atoms, *open_ones)}.values()
    days = await anyio.to_thread.run_sync(lambda: [coming_day(atom, now) for atom in known])
    coming = [(day_of(day.start), atom) for atom, day in zip(known, days, strict=True) if day]
    return sorted(coming, key=lambda entry: (entry[0], int(entry[1].id[1:])))[:_PLANS]


def _coming(planned: Sequence[tuple[date, Atom]]) -> Element | None:
    rows = (
        ui.dated_row(
            el("p", ui.link(f"/{atom.id}", ui.memory_text(atom.text)), class_="said"),
            when=el("strong", ui.weekday_text(day), class_="when"),
        )
        for day, atom in planned
    )
    return ui.section("Coming up", ui.rows(rows)) if planned else None


def _named_in(messages: Sequence[NamingMessage]) -> Element | None:
    rows = (
        ui.dated_row(
            el("p", ui.link(f"/{turn.id}", ui.mark_spans(message.text, message.marks)), class_="said", dir="auto"),
            None if turn.role == "user" and not turn.name else ui.memory_text(turn.name or turn.role),
            when=ui.moment(turn.said_at, day=True),
        )
        for message in messages
        for turn in [message.turn]
    )
    return ui.section("Messages", ui.rows(rows)) if messages else None


def _talks(name: str, talks: Conversations) -> Element | None:
    if not talks.conversations:
        return None
    more = ui.link("/conversations", "All", entity=name) if talks.cursor else None
    return ui.section("Conversations", ui.rows(map(conversation_row, talks.conversations)), beside=more)


def _unknown(name: str, problem: NotFound) -> Page:
    """Return the page for an unknown name: the message of the error, and a link that searches for the name."""
    shown = remove_hidden(one_line(name, 80))
    return Page(
        title=shown,
        here="people",
        body=ui.body(
            ui.note(remove_hidden(str(problem))),
            _search_link(name),
        ),
    )


def _search_link(name: str) -> Element:
    return el("p", ui.link("/search", f"Search for {remove_hidden(one_line(name, 80))}", q=name))


# --- facts over time --------------------------------------------------------------------------------


def _as_of(view: View, facts: Sequence[Fact], now: datetime) -> date | None:
    as_of, day = view.query.get("as_of"), view.query.get("day")
    try:
        if as_of:
            return date.fromisoformat(as_of)
        if day and facts and (asked := _extent(facts, now)[0] + timedelta(days=int(day))) != day_of(now):
            return asked
    except (ValueError, OverflowError):
        given = one_line(as_of or day or "", 30)
        raise InvalidInput(f"{given} is not a date such as 2026-10-31.") from None
    return None


def _extent(facts: Sequence[Fact], now: datetime) -> tuple[date, date]:
    """Return the first and the last day of the slider, which are those of the bars below it."""
    first, last = charts.extent(facts, now)
    return day_of(first), day_of(last)


def _facts(name: str, facts: Sequence[Fact], as_of: date | None, now: datetime) -> Element | None:
    if not facts:
        return None
    moment = datetime.combine(as_of, time.max).astimezone() if as_of else None
    shown = _most_telling(facts, moment or now)
    return ui.section(
        "Facts over time",
        _slider(name, facts, as_of, now),
        ui.note(f"{len(shown)} of {len(facts):,} facts: the newest of those that hold.")
        if len(shown) < len(facts)
        else None,
        charts.facts(shown, now=now, as_of=moment),
        beside=el("span", "as of ", el("strong", ui.day_text(as_of) if as_of else "now")),
    )


def _most_telling(facts: Sequence[Fact], at: datetime) -> list[Fact]:
    """Return at most as many facts as the picture has room for, in the given order.

    Facts that are valid at `at` are preferred, then facts that began last.
    """

    def rank(fact: Fact) -> tuple[bool, datetime]:
        return fact.valid_from <= at and (fact.valid_to is None or fact.valid_to > at), fact.valid_from

    chosen = {fact.atom for fact in sorted(facts, key=rank, reverse=True)[:_FACTS]}
    return [fact for fact in facts if fact.atom in chosen]


def _slider(name: str, facts: Sequence[Fact], as_of: date | None, now: datetime) -> list[Element | None]:
    """Return the slider, the date, and links to the days on which something changed."""
    path, today = f"/entity/{ui.part(name)}", day_of(now)
    first, last = _extent(facts, now)
    days = max(1, (last - first).days)
    at = min(days, max(0, ((as_of or today) - first).days))
    changes = {at.date() for fact in facts for at in (fact.valid_from, fact.valid_to) if at and at.date() <= today}
    links = [ui.link(path, ui.day_text(day), as_of=day.isoformat()) for day in sorted(changes)[-_CHANGES:]]
    return [
        el(
            "form",
            el(
                "label",
                f"From {ui.day_text(first)} to {ui.day_text(last)}",
                el("input", type="range", name="day", min=0, max=days, value=at),
                class_="field",
            ),
            el("button", "Show"),
            method="get",
            action=path,
        ),
        el(
            "form",
            ui.input_field("Or a date", "as_of", as_of.isoformat() if as_of else "", kind="date"),
            el("button", "Show"),
            ui.link(path, "Back to now") if as_of else None,
            method="get",
            action=path,
        ),
        el("nav", ui.line("Something changed on", links), aria_label="Something changed on"),
    ]


# --- statements and neighbours ----------------------------------------------------------------------


def _statements(name: str, listed: StatementPage, as_of: date | None, above: Collection[str]) -> Element | None:
    """Return the statements about an entity without those `above`, which the page shows already."""
    atoms = [atom for atom in listed.atoms if atom.id not in above]
    if above and not atoms:
        return None
    path, day = f"/entity/{ui.part(name)}", as_of.isoformat() if as_of else None
    title = "What is known" if as_of is None else f"What was known for {ui.day_text(as_of)}"
    return ui.section(
        title,
        _rows(name, atoms) if atoms else ui.empty("No statement mentions it."),
        ui.pager(path, listed.cursor, "More statements", as_of=day),
        beside=None if listed.total is None else plural(listed.total, "statement"),
    )


def _past(name: str, listed: StatementPage) -> Element:
    """Return the ended statements about an entity, which are listed if no current statement mentions it."""
    count = len(listed.atoms) if listed.total is None else listed.total
    return ui.section(
        "What was known",
        ui.note(f"Nothing about it is true now; {plural(count, 'statement is', 'statements are')} past."),
        _rows(name, listed.atoms),
        ui.pager(f"/entity/{ui.part(name)}", listed.cursor, "More statements"),
    )


def _near(name: str, around: MemoryMap, day: date) -> Element:
    lines = ((ui.entity_link(other), ui.count(shared)) for other, shared in around.related)
    return ui.section(
        "In the same statements",
        neighbourhood(around, name, day),
        el(
            "details",
            el("summary", "As a table"),
            ui.table("Names in the same current statements", ("Name", "Statements"), lines, numbers=(1,)),
        ),
    )
