"""Changes: the statements that others replaced, the old one struck out above the new one, newest change first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_memory.core.text import one_line
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el

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
    rows = ui.rows(map(change_row, changed.changes))
    return Page(
        title="Changes",
        here="memory",
        body=ui.body(
            el("p", "What is no longer true, and what is true instead.", class_="lead"),
            _periods(days),
            rows if changed.changes else ui.empty(f"Nothing changed in the last {_PERIODS[days].removeprefix('a ')}."),
            ui.pager("/changes", changed.cursor, "Earlier changes", days=days),
        ),
    )


def _periods(chosen: str) -> Element:
    return ui.chosen_of(
        "Period", ((words, ui.address("/changes", days=days), days == chosen) for days, words in _PERIODS.items())
    )


def change_row(change: Replaced) -> Element:
    """Return a replaced statement above the one that replaced it, with the day of the change."""
    old, new = (ui.statement_text(one_line(atom.text, _TEXT)) for atom in (change.old, change.new))
    return ui.dated_row(
        [
            el("p", el("del", ui.link(f"/{change.old.id}", old)), class_="said"),
            el("p", ui.link(f"/{change.new.id}", new), class_="said"),
        ],
        when=ui.moment(change.new.valid_from, day=True),
    )
