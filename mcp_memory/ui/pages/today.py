"""Today, the first page: what is new this week, what is planned, what agents got, and what is known about the user.

Empty parts are left out. It needs no model; without one, it says what a model would add.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

from mcp_memory.core.text import one_line, plural
from mcp_memory.core.types import Atom, Conversation, MentionedEntity
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.pages.changes import change_row
from mcp_memory.ui.pages.conversations import conversation_row
from mcp_memory.ui.pages.memory import first_steps, persona_part
from mcp_memory.ui.pages.recalls import recall_rows

if TYPE_CHECKING:
    from mcp_memory.longterm.lately import Lately, Planned, Replaced
    from mcp_memory.store.values import RecallEntry

_DAYS = 7
_WAITING = 20
_RECALLS, _RECALLS_SHOWN = 200, 3
_ROWS, _LEARNED, _NAMES, _CLAIMS = 4, 6, 8, 6  # rows of a part, new statements, names, lines about the user
_TEXT = 220  # characters of a statement


async def today(view: View) -> Page:
    """Show what is new; for an empty memory, the first steps."""
    memory = view.memory
    talks = (await memory.conversations(limit=_ROWS)).conversations
    new = await memory.lately(days=_DAYS)
    lines, scenes = await memory.persona_lines(), await memory.scenes()
    is_known = any(line.is_claim for line in lines)
    if not (talks or is_known or scenes or new.learned_total):
        return Page(title="Today", here="today", body=ui.body(*first_steps(view)))
    recalls = [entry for entry in await memory.recalls(limit=_RECALLS) if ui.day_of(entry.at) >= new.since]
    saved = sum(day.saved - day.spent for day in await memory.savings_by_day(days=_DAYS))
    today = new.since + timedelta(days=_DAYS)
    about = persona_part(lines, scenes, claims=_CLAIMS) if is_known else None
    return Page(
        title="Today",
        here="today",
        body=ui.body(
            _summary(today, new, recalls, saved),
            _tell(view),
            _review_note(len(await memory.waiting(limit=_WAITING + 1))),
            ui.wide_columns(
                [_coming(new.planned, today), _changed(new.changed), _learned(new), about],
                [_promised(new.promises), await _recalled(view, recalls), _named(new.entities), _talks(talks)],
            ),
            None if memory.model else _model_note(),
        ),
    )


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
        f"What your agents remember from your conversations. {today:%A}, {ui.day_text(today)}; the last {_DAYS} days: ",
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


def _first(rows: Sequence[Element]) -> list[Element]:
    """Return the first rows, and the others folded."""
    shown, folded = rows[:_ROWS], rows[_ROWS:]
    return [ui.rows(shown), *([el("details", el("summary", f"{len(folded)} more"), ui.rows(folded))] if folded else [])]


def _changed(changed: Sequence[Replaced]) -> Element | None:
    if not changed:
        return None
    return ui.section("Changed", ui.rows(map(change_row, changed[:_ROWS])), beside=ui.link("/changes", "All"))


def _learned(new: Lately) -> Element | None:
    if not new.learned:
        return None
    rows = (
        _statement(atom, ui.name_of_source(atom.source), when=ui.moment(atom.valid_from, day=True))
        for atom in new.learned[:_LEARNED]
    )
    return ui.section("New this week", ui.rows(rows), beside=ui.link(_new_statements(new), "All"))


def _talks(talks: Sequence[Conversation]) -> Element | None:
    if not talks:
        return None
    rows = ui.rows(map(conversation_row, talks))
    return ui.section("Conversations", rows, beside=ui.link("/conversations", "All"))


def _coming(planned: Sequence[Planned], now: date) -> Element | None:
    """Return the plans with their days, which are left out of the texts where a date was added to them."""
    rows = [
        _statement(
            replace(plan.atom, text=ADDITION.sub("", plan.atom.text)),
            when=el("strong", _when(plan.day, now), class_="when"),
        )
        for plan in planned
    ]
    return ui.section("Coming up", _first(rows)) if rows else None


def _when(day: date, now: date) -> str:
    """Return a day of the next weeks: `today`, `tomorrow`, `Thu, 12 Feb 2026`."""
    return {0: "today", 1: "tomorrow"}.get((day - now).days, ui.weekday_text(day))


def _promised(promises: Sequence[Atom]) -> Element | None:
    rows = [_statement(atom, when=ui.moment(atom.valid_from, day=True)) for atom in promises]
    return ui.section("You asked to be told", _first(rows)) if rows else None


async def _recalled(view: View, recalls: Sequence[RecallEntry]) -> Element | None:
    if not recalls:
        return None
    rows = await recall_rows(view, recalls[:_RECALLS_SHOWN])
    return ui.section("What your agents got", rows, beside=ui.link("/live", "All, and why"))


def _named(entities: Sequence[MentionedEntity]) -> Element | None:
    if not entities:
        return None
    return ui.section("People and things", ui.entity_names(entities[:_NAMES]), beside=ui.link("/people", "All"))


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
