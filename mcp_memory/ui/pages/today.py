"""Today, the first page: what is coming up, what changed and what is new this week; and the page of all coming dates.

Below or beside it are promises and what agents got, and folded, names and conversations. Empty parts are left out. It
needs no model; without one, it says what a model would add.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from mcp_memory.core.text import one_line, plural
from mcp_memory.core.types import Atom, Conversation, MentionedEntity
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.ui import components as ui
from mcp_memory.ui import times
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.pages.changes import change_row
from mcp_memory.ui.pages.conversations import conversation_row
from mcp_memory.ui.pages.memory import first_steps
from mcp_memory.ui.pages.recalls import latest_questions

if TYPE_CHECKING:
    from mcp_memory.longterm.lately import Lately, Planned, Replaced
    from mcp_memory.store.values import RecallEntry

_DAYS = 7
_WAITING = 20
_RECALLS, _RECALLS_SHOWN = 200, 3
_COMING, _CHANGED, _LEARNED, _PROMISES, _NAMES, _TALKS = 4, 3, 4, 2, 8, 4  # rows and names of each part
_DATES = 50  # rows of the page of dates
_TEXT = 220  # characters of a statement


async def today(view: View) -> Page:
    """Show what is new; for an empty memory, the first steps."""
    memory = view.memory
    talks = (await memory.conversations(limit=_TALKS)).conversations
    new = await memory.lately(days=_DAYS)
    if not (talks or new.learned_total or await memory.scenes() or await _is_known(view)):
        return Page(title="Today", here="today", body=ui.body(*first_steps(view)))
    recalls = [entry for entry in await memory.recalls(limit=_RECALLS) if ui.day_of(entry.at) >= new.since]
    saved = sum(day.saved - day.spent for day in await memory.savings_by_day(days=_DAYS))
    today = new.since + timedelta(days=_DAYS)
    planned, changed = new.planned[:_COMING], new.changed[:_CHANGED]
    learned = _chosen(new.learned, {plan.atom.id for plan in planned})
    return Page(
        title="Today",
        here="today",
        body=ui.body(
            _summary(today, new, recalls, saved),
            _tell(view),
            _review_note(len(await memory.waiting(limit=_WAITING + 1))),
            ui.wide_columns(
                [await _coming(view, planned, today), _changes(changed), _new(new, learned)],
                [
                    _promised(new.promises),
                    await _recalled(view, recalls),
                    _named(new.entities),
                    _talks(talks, is_open=not (planned or changed or learned)),
                ],
            ),
            None if memory.model else _model_note(),
        ),
    )


async def _is_known(view: View) -> bool:
    """Return whether anything is known about the user."""
    return any(line.is_claim for line in await view.memory.persona_lines())


def _summary(today: date, new: Lately, recalls: Sequence[RecallEntry], saved: int) -> Element:
    """Return the date, and the week in one sentence whose numbers lead to their pages."""
    learned = plural(new.learned_total, "new statement") if new.learned_total else "nothing new"
    parts = [
        ui.link(_new_statements(new), learned),
        ui.link("/changes", f"{new.changed_total:,} changed", days=_DAYS) if new.changed else None,
        ui.link("/live", plural(len(recalls), "recall"), " by agents") if recalls else None,
        ui.link("/savings", f"{saved:,} tokens saved") if saved > 0 else None,
    ]
    shown = [part for part in parts if part is not None]
    week = [[", " if place else "", part] for place, part in enumerate(shown)]
    return el(
        "p",
        "What your agents remember from your conversations and ",
        ui.link("/persona", "about you"),
        f". {today:%A}, {ui.day_text(today)}; the last {_DAYS} days: ",
        week,
        ".",
        class_="lead",
    )


def _new_statements(new: Lately) -> str:
    """Return the address of the list of the new statements."""
    return ui.address("/memory#statements", learned=new.since.isoformat())


def _tell(view: View) -> Element | None:
    """Return a line that stores a statement; None if the reader lacks the right."""
    words = "Tell the memory something"
    return ui.form(
        view,
        "remember",
        el("input", type="text", name="text", required=True, aria_label=words, placeholder=words, dir="auto"),
        el("button", "Remember it", class_="main"),
        needs="write",
        class_="tell",
    )


def _review_note(waiting: int) -> Element | None:
    if not waiting:
        return None
    many = f"More than {_WAITING} items wait" if waiting > _WAITING else plural(waiting, "item waits", "items wait")
    return ui.note(f"{many} for your decision. ", ui.link("/review", "Review"), kind="warn")


def _statement(atom: Atom, *meta: Node | None, when: Node) -> Element:
    """Return a statement with its date or day beside it."""
    text = ui.memory_text(one_line(atom.text, _TEXT))
    return ui.dated_row(el("p", ui.link(f"/{atom.id}", text), class_="said"), *meta, when=when)


def _first(rows: Sequence[Element], many: int) -> list[Element]:
    """Return the first rows, and the others folded."""
    shown, folded = rows[:many], rows[many:]
    return [ui.rows(shown), *([el("details", el("summary", f"{len(folded)} more"), ui.rows(folded))] if folded else [])]


def _changes(changed: Sequence[Replaced]) -> Element | None:
    if not changed:
        return None
    rows = (change_row(change, when=ui.moment(change.at, day=True)) for change in changed)
    return ui.section("Changed", ui.rows(rows), beside=ui.link("/changes", "All"))


def _chosen(learned: Sequence[Atom], shown: Collection[str]) -> list[Atom]:
    """Return the most telling of the new statements, the newest first, without those that are shown already."""
    chosen = [atom for atom in learned if atom.id not in shown][:_LEARNED]
    return sorted(chosen, key=lambda atom: atom.learned_at, reverse=True)


def _new(new: Lately, learned: Sequence[Atom]) -> Element | None:
    if not learned:
        return None
    rows = (
        _statement(atom, ui.name_of_source(atom.source), when=ui.moment(atom.learned_at, day=True)) for atom in learned
    )
    return ui.section("New this week", ui.rows(rows), beside=ui.link(_new_statements(new), "All"))


async def _coming(view: View, planned: Sequence[Planned], now: date) -> Element | None:
    if not planned:
        return None
    return ui.section("Coming up", await _dates(view, planned, now), beside=ui.link("/coming", "All dates"))


async def _dates(view: View, planned: Sequence[Planned], now: date) -> Element:
    """Return plans with their days, which are left out of the texts where a date was added to them.

    Sentences that point back to others have their conversation beside them.
    """
    turns = await view.memory.turns([plan.atom.evidence for plan in planned if plan.points_back])
    titles = await view.memory.titles([turn.session for turn in turns])
    said_in = {turn.id: ui.conversation_link(turn, titles[turn.session]) for turn in turns if turn.session in titles}
    return ui.rows(
        _statement(
            replace(plan.atom, text=ADDITION.sub("", plan.atom.text)),
            said_in.get(plan.atom.evidence) if plan.points_back else None,
            when=el("strong", _when(plan.day, now), class_="when"),
        )
        for plan in planned
    )


async def coming(view: View) -> Page:
    """List all statements about coming days; the query has the place at which the list begins (`start`)."""
    start, today = ui.start_of(view.query), times.local(view.memory.now()).date()
    planned = (await view.memory.lately(days=1)).planned
    shown, following = planned[start : start + _DATES], start + _DATES
    more = ui.link("/coming", "Later dates", start=following) if following < len(planned) else None
    months = groupby(shown, lambda plan: f"{plan.day:%B %Y}")
    return Page(
        title="Coming up",
        here="today",
        body=ui.body(
            el("p", "The days ahead that your statements name.", class_="lead"),
            [ui.section(month, await _dates(view, list(plans), today)) for month, plans in months],
            None if shown else ui.empty("No statement names a day to come."),
            el("p", more, class_="pager") if more else None,
        ),
    )


def _when(day: date, now: date) -> str:
    """Return a day of the next weeks: `today`, `tomorrow`, `Thu, 12 Feb 2026`."""
    return {0: "today", 1: "tomorrow"}.get((day - now).days, ui.weekday_text(day))


def _promised(promises: Sequence[Atom]) -> Element | None:
    rows = [_statement(atom, when=ui.moment(atom.valid_from, day=True)) for atom in promises]
    return ui.section("You asked to be told", _first(rows, _PROMISES)) if rows else None


async def _recalled(view: View, recalls: Sequence[RecallEntry]) -> Element | None:
    rows = await latest_questions(view, recalls, _RECALLS_SHOWN)
    return ui.section("What your agents got", rows, beside=ui.link("/live", "All, and why")) if rows else None


def _named(entities: Sequence[MentionedEntity]) -> Element | None:
    if not entities:
        return None
    return _folded("People and things of the week", ui.entity_names(entities[:_NAMES]), ui.link("/people", "All"))


def _talks(talks: Sequence[Conversation], *, is_open: bool) -> Element | None:
    if not talks:
        return None
    rows = ui.rows(map(conversation_row, talks))
    return _folded("Last conversations", rows, ui.link("/conversations", "All"), is_open=is_open)


def _folded(title: str, content: Element, more: Element, *, is_open: bool = False) -> Element:
    return el("details", el("summary", title), content, el("p", more, class_="pager"), open=is_open)


def _model_note() -> Element:
    return el(
        "details",
        el("summary", "What a language model would add"),
        el(
            "p",
            "All of this page is made of your own words, without a model. A model would also put statements in its own"
            " words, join them into pages by topic, and write the page about you. Your agent can do that with its own"
            " model, without a key: ask it to read what this memory has not read yet. Or name a model of yours:",
        ),
        el("pre", el("code", "MCP_MEMORY_LLM=ollama/qwen3:8b")),
    )
