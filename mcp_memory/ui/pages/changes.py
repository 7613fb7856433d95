"""Changes: the statements that others replaced, or that ended, by the day on which the memory learned it, newest first.

The old statement is struck out, with the new one below it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from mcp_memory.core.text import one_line
from mcp_memory.longterm.corrections import is_ending
from mcp_memory.ui import components as ui
from mcp_memory.ui import times
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.pages.item import was_never_true

if TYPE_CHECKING:
    from mcp_memory.longterm.lately import Replaced
_PERIODS = {"7": "7 days", "14": "14 days", "30": "30 days", "365": "a year"}
_USUAL = "30"
_TEXT = 220  # characters of a statement


async def changes(view: View) -> Page:
    """List the changes of the last days; the query has their number (`days`) and the `cursor` of a later page."""
    days = view.query.get("days", _USUAL)
    days = days if days in _PERIODS else _USUAL
    changed = await view.memory.replacements(days=int(days), cursor=view.query.get("cursor"))
    told = await view.memory.turns([change.new.evidence for change in changed.changes])
    return Page(
        title="Changes",
        here="memory",
        body=ui.body(
            el("p", "What is no longer true, and what is true instead.", class_="lead"),
            _periods(days),
            *_by_day(view, changed.changes, {turn.id for turn in told if turn.role == "note"}),
            None if changed.changes else ui.empty(f"Nothing changed in the last {_PERIODS[days].removeprefix('a ')}."),
            ui.pager("/changes", changed.cursor, "Earlier changes", days=days),
        ),
    )


def _periods(chosen: str) -> Element:
    return ui.chosen_of(
        "Period", ((words, ui.address("/changes", days=days), days == chosen) for days, words in _PERIODS.items())
    )


def _by_day(view: View, changes: Sequence[Replaced], notes: Collection[str]) -> Iterator[Element]:
    """Yield the changes of each day; those that a person or an agent stated, in one of the `notes`, can be undone."""

    def undo(change: Replaced) -> Element | None:
        is_open = change.new.evidence in notes and change.new.superseded_by is None
        return ui.undo_correction(view, change.new.id) if is_open else None

    for day, several in groupby(changes, lambda change: times.local(change.at).date()):
        yield ui.section(ui.day_text(day), ui.rows(change_row(change, undo=undo(change)) for change in several))


def change_row(change: Replaced, *, when: Element | None = None, undo: Element | None = None) -> Element:
    """Return a statement that is no longer true, and what is true instead, or that nothing is."""
    old, new = (ui.statement_text(one_line(atom.text, _TEXT)) for atom in (change.old, change.new))
    instead = (
        el("p", "Ended, nothing in its place.")
        if is_ending(change.new)
        else el("p", ui.link(f"/{change.new.id}", new), class_="said")
    )
    return ui.dated_row(
        [el("p", el("del", ui.link(f"/{change.old.id}", old)), class_="said"), instead],
        _since(change),
        el("span", undo, class_="say") if undo else None,
        when=when,
    )


def _since(change: Replaced) -> Node | None:
    """Return the day since which a change is true, unless that is the day on which it became known."""
    since = change.new.valid_from
    if was_never_true(change.old):
        return el("span", "was wrong all along")
    if times.day_of(since) == times.local(change.at).date():
        return None
    return el("span", "since ", ui.moment(since, day=True))
