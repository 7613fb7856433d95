"""What happened in the memory, by day, the newest first; what happened several times in a row is one entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from mcp_memory.core.text import one_line, plural
from mcp_memory.core.types import ActivityEntry
from mcp_memory.ui import components as ui
from mcp_memory.ui import times
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.pages.forgetting import count_kinds

_ENTRIES = 100
_TEXT = 160  # characters
_NOUNS = {
    "turn": ("message", "messages"),
    "statement": ("statement learned", "statements learned"),
    "result": ("tool result kept", "tool results kept"),
    "recall": ("time an agent asked", "times an agent asked"),
    "forgotten": ("time something was forgotten", "times something was forgotten"),
    "correction": ("statement corrected", "statements corrected"),
    "uncorrected": ("correction undone", "corrections undone"),
    "back": ("time something was brought back", "times something was brought back"),
}
"""What an event is called, one and several."""
_SAID_IN = ("turn", "statement", "result")
"""Events that are shown with their conversation, and apart from those of another one."""
_KINDS = (*_SAID_IN, "correction")
_DONE = {"forgotten": "Forgotten: ", "uncorrected": "Correction undone: ", "back": "Brought back: "}


async def activity(view: View) -> Page:
    """Show a page of what happened."""
    happened = await view.memory.activity(limit=_ENTRIES, cursor=view.query.get("cursor"))
    sessions = dict.fromkeys(entry.session for entry in happened.entries if entry.session)
    titles = await view.memory.titles(list(sessions))
    days = groupby(happened.entries, key=lambda entry: times.local(entry.at).date())
    return Page(
        title="What happened",
        here="live",
        body=ui.body(
            el("p", ui.link("/live", "What your agents got"), class_="lead"),
            *(ui.section(ui.day_text(day), ui.rows(_grouped(list(entries), titles))) for day, entries in days),
            None if happened.entries else ui.empty("Nothing has happened yet."),
            ui.pager("/activity", happened.cursor, "Earlier"),
        ),
    )


def _grouped(entries: Sequence[ActivityEntry], titles: Mapping[str, str]) -> Iterator[Element]:
    """Yield a row for each event, or for several of one kind in one conversation that followed each other."""

    def kind(entry: ActivityEntry) -> tuple[str, str | None]:
        return entry.what, entry.session if entry.what in _SAID_IN else None

    for _, group in groupby(entries, key=kind):
        same = list(group)
        if len(same) == 1:
            yield _row(same[0], _where(same[0], titles))
        else:
            yield el("details", el("summary", _summary(same, titles)), ui.rows(map(_row, same)))


def _summary(same: Sequence[ActivityEntry], titles: Mapping[str, str]) -> list[Node]:
    last = same[0]
    where = titles.get(last.session or "") if last.what in _SAID_IN else None
    place = [" in ", ui.memory_text(f"“{one_line(where, _TEXT)}”")] if where else []
    return [plural(len(same), *_NOUNS[last.what]), *place, " · ", ui.time_span(same[-1].at, last.at)]


def _where(entry: ActivityEntry, titles: Mapping[str, str]) -> Node | None:
    title = titles.get(entry.session or "")
    if not title or not entry.session:
        return None
    return ui.session_link(entry.session, one_line(title, _TEXT))


def _row(entry: ActivityEntry, where: Node | None = None) -> Element:
    reason = ui.memory_text(entry.reason) if entry.reason and entry.what != "correction" else None
    noun = _NOUNS[entry.what][0] if entry.what in _KINDS else None
    meta = [noun, where, reason]
    return ui.dated_row(el("p", _what(entry), class_="said"), *meta, when=ui.moment(entry.at))


def _what(entry: ActivityEntry) -> Node:
    if entry.what == "recall":
        return ui.link(f"/recall/{entry.id}", f"An agent got {plural(len(entry.text.split()), 'line')}")
    if done := _DONE.get(entry.what):
        kinds = ", ".join(count_kinds(entry.text.split())) or "nothing that is still there"
        return ui.link(f"/{entry.id}", f"{done}{kinds}")
    return ui.link(f"/{entry.id}", ui.memory_text(entry.text or "no text"))
