"""Today, the first page: what is new this week, what is planned, what agents were told, and what is known of the user.

Empty parts are left out. It needs no model; without one, it says what a model would add.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

from mcp_memory.core.text import one_line, plural
from mcp_memory.core.types import Atom, Conversation, MentionedEntity
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.pages.conversations import conversation_row
from mcp_memory.ui.pages.memory import first_steps, persona_part, tell

if TYPE_CHECKING:
    from mcp_memory.longterm.lately import Lately, Planned, Replaced
    from mcp_memory.store.values import RecallEntry

_DAYS = 7
_WAITING = 100
_RECALLS, _RECALLS_SHOWN = 200, 4
_SESSIONS = 5
_TEXT = 220  # characters of a statement
_HOW = {"recall": "An agent asked", "prompt": "Before a prompt", "start": "At the start of a conversation"}


async def today(view: View) -> Page:
    """Show what is new; for an empty memory, the first steps."""
    memory = view.memory
    talks = (await memory.conversations(limit=_SESSIONS)).conversations
    new = await memory.lately(days=_DAYS)
    lines, scenes = await memory.persona_lines(), await memory.scenes()
    is_known = any(line.is_claim for line in lines)
    if not (talks or is_known or scenes or new.learned_total):
        return Page(title="Today", here="today", body=ui.body(*first_steps(view)))
    recalls = [entry for entry in await memory.recalls(limit=_RECALLS) if entry.at.astimezone().date() >= new.since]
    saved = sum(day.saved - day.spent for day in await memory.savings_by_day(days=_DAYS))
    waiting = len(await memory.waiting(limit=_WAITING + 1))
    return Page(
        title="Today",
        here="today",
        body=ui.body(
            _summary(new, recalls, saved),
            _review_note(waiting),
            ui.columns(
                el("div", _changed(new.changed), _learned(new), _talks(talks)),
                el(
                    "div",
                    _coming(new.planned, new.since + timedelta(days=_DAYS)),
                    _promised(new.promises),
                    _recalled(recalls),
                    _named(new.entities),
                    persona_part(lines, scenes) if is_known else None,
                ),
            ),
            None if (await memory.ledger())["model"]["name"] else _model_note(),
            *tell(view),
        ),
    )


def _summary(new: Lately, recalls: Sequence[RecallEntry], saved: int) -> Element:
    """Return the week in one sentence."""
    parts = [
        plural(new.learned_total, "new statement") if new.learned_total else "nothing new",
        f"{len(new.changed)} changed" if new.changed else "",
        f"{plural(len(recalls), 'recall')} by agents" if recalls else "",
        f"{saved:,} tokens saved" if saved > 0 else "",
    ]
    return el("p", f"In the last {_DAYS} days: ", ", ".join(filter(None, parts)), ".", class_="lead")


def _review_note(waiting: int) -> Element | None:
    if not waiting:
        return None
    many = f"More than {_WAITING} items wait" if waiting > _WAITING else plural(waiting, "item waits", "items wait")
    return ui.note(f"{many} for your decision. ", ui.link("/review", "Review"), kind="warn")


def _statement(atom: Atom, *beside: Node | None) -> Element:
    text = ui.memory_text(one_line(atom.text, _TEXT))
    return el("p", ui.link(f"/{atom.id}", text), *([" ", part] for part in beside if part), class_="said")


def _changed(changed: Sequence[Replaced]) -> Element | None:
    if not changed:
        return None
    rows = (
        [
            el("p", el("del", ui.memory_text(one_line(change.old.text, _TEXT))), class_="said"),
            _statement(change.new, ui.moment(change.new.valid_from, day=True)),
        ]
        for change in changed
    )
    return ui.section("Changed", ui.rows(rows))


def _learned(new: Lately) -> Element | None:
    if not new.learned:
        return None
    rows = (
        _statement(atom, ui.moment(atom.valid_from, day=True), ui.name_of_source(atom.source)) for atom in new.learned
    )
    more = new.learned_total > len(new.learned)
    return ui.section(
        "New this week", ui.rows(rows), beside=ui.link("/memory#statements", "All statements") if more else None
    )


def _talks(talks: Sequence[Conversation]) -> Element | None:
    if not talks:
        return None
    rows = ui.rows(map(conversation_row, talks))
    return ui.section("Conversations", rows, beside=ui.link("/conversations", "All"))


def _coming(planned: Sequence[Planned], now: date) -> Element | None:
    rows = [_statement(plan.atom, el("strong", _when(plan.day, now))) for plan in planned]
    return ui.section("Coming up", ui.rows(rows)) if rows else None


def _when(day: date, now: date) -> str:
    """Return a day of the next weeks: `today`, `tomorrow`, `Thursday 12 February`."""
    return {0: "today", 1: "tomorrow"}.get((day - now).days, f"{day:%A} {day.day} {day:%B}")


def _promised(promises: Sequence[Atom]) -> Element | None:
    rows = [_statement(atom) for atom in promises]
    return ui.section("You asked to be told", ui.rows(rows)) if rows else None


def _recalled(recalls: Sequence[RecallEntry]) -> Element | None:
    if not recalls:
        return None
    rows = (
        [
            el("p", _question(entry), class_="said"),
            ui.line(ui.moment(entry.at), plural(len(entry.ids), "line was", "lines were") + " given"),
        ]
        for entry in recalls[:_RECALLS_SHOWN]
    )
    return ui.section("What your agents were told", ui.rows(rows), beside=ui.link("/live", "All, and why"))


def _question(entry: RecallEntry) -> Element:
    asked = ui.memory_text(f"“{one_line(entry.query, 120)}”") if entry.query else _HOW[entry.how]
    return ui.link("/live", asked)


def _named(entities: Sequence[MentionedEntity]) -> Element | None:
    if not entities:
        return None
    return ui.section("People and things", ui.entity_names(entities), beside=ui.link("/people", "All"))


def _model_note() -> Element:
    return el(
        "details",
        el("summary", "What a language model would add"),
        el(
            "p",
            "All of this page is made of your own words, without a model. A model would also put statements in its own"
            " words, join them into pages by topic, and write the page about you. Your agent can do that with its own"
            " model, without a key: ask it to call distill. Or name a model of yours:",
        ),
        el("pre", el("code", "MCP_MEMORY_LLM=ollama/qwen3:8b")),
    )
