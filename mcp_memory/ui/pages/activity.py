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
_LISTED = 5  # items of an event whose words are read
_NOUNS = {
    "turn": ("message", "messages"),
    "statement": ("statement learned", "statements learned"),
    "result": ("tool result kept", "tool results kept"),
    "recall": ("time an agent asked", "times an agent asked"),
    "forgotten": ("time something was forgotten", "times something was forgotten"),
    "correction": ("statement corrected", "statements corrected"),
    "ended": ("statement ended", "statements ended"),
    "released": ("item released", "items released"),
    "kept": ("item kept out", "items kept out"),
    "uncorrected": ("correction undone", "corrections undone"),
    "back": ("time something was brought back", "times something was brought back"),
}
"""What an event is called, one and several."""
_SAID_IN = ("turn", "statement", "result")
"""Events that are shown with their conversation, and apart from those of another one."""
_COUNTED = ("forgotten", "uncorrected", "back")
"""Events whose texts are ids."""
_DONE = {"forgotten": "forgotten", "uncorrected": "correction undone", "back": "brought back"}


async def activity(view: View) -> Page:
    """Show a page of what happened."""
    happened = await view.memory.activity(limit=_ENTRIES, cursor=view.query.get("cursor"))
    sessions = dict.fromkeys(entry.session for entry in happened.entries if entry.session)
    titles = await view.memory.titles(list(sessions))
    words = await _words(view, happened.entries)
    days = groupby(happened.entries, key=lambda entry: times.local(entry.at).date())
    return Page(
        title="What happened",
        here="live",
        body=ui.body(
            el("p", ui.link("/live", "What your agents got"), class_="lead"),
            *(ui.section(ui.day_text(day), ui.rows(_grouped(list(entries), titles, words))) for day, entries in days),
            None if happened.entries else ui.empty("Nothing has happened yet."),
            ui.pager("/activity", happened.cursor, "Earlier"),
        ),
    )


async def _words(view: View, entries: Sequence[ActivityEntry]) -> dict[str, str]:
    """Return by id the words of what was forgotten, corrected or brought back, as far as they are in memory."""
    ids = list(dict.fromkeys(id for entry in entries if entry.what in _COUNTED for id in _ids(entry)))
    turns = await view.memory.turns([id for id in ids if id[0] == "t"])
    atoms = await view.memory.statements_by_id([id for id in ids if id[0] == "a"])
    return {turn.id: turn.content for turn in turns} | {atom.id: atom.text for atom in atoms}


def _ids(entry: ActivityEntry) -> list[str]:
    """Return the first ids of what was forgotten or brought back, or is true again after a correction was undone."""
    is_known = entry.what == "uncorrected" and entry.reason
    return (entry.reason if is_known else entry.text).split()[:_LISTED]


def _grouped(
    entries: Sequence[ActivityEntry], titles: Mapping[str, str], words: Mapping[str, str]
) -> Iterator[Element]:
    """Yield a row for each event, or for several of one kind in one conversation that followed each other."""

    def kind(entry: ActivityEntry) -> tuple[str, str | None]:
        return entry.what, entry.session if entry.what in _SAID_IN else None

    for _, group in groupby(entries, key=kind):
        same = list(group)
        if len(same) == 1:
            yield _row(same[0], words, _where(same[0], titles))
        else:
            yield el("details", el("summary", _summary(same, titles)), ui.rows(_row(entry, words) for entry in same))


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


def _row(entry: ActivityEntry, words: Mapping[str, str], where: Node | None = None) -> Element:
    what = _DONE.get(entry.what) or (_NOUNS[entry.what][0] if entry.what != "recall" else None)
    reason = ui.memory_text(entry.reason) if entry.reason and entry.what == "forgotten" else None
    return ui.dated_row(el("p", _what(entry, words), class_="said"), what, where, reason, when=ui.moment(entry.at))


def _what(entry: ActivityEntry, words: Mapping[str, str]) -> Node:
    if entry.what == "recall":
        return ui.link(f"/recall/{entry.id}", f"An agent got {plural(len(entry.text.split()), 'line')}")
    if entry.what not in _COUNTED:
        return ui.link(f"/{entry.id}", ui.memory_text(entry.text or "no text"))
    known = [id for id in _ids(entry) if id in words]
    if known:
        more = [f", and {others} more"] if (others := len(entry.text.split()) - 1) else None
        return el("span", ui.link(f"/{known[0]}", ui.memory_text(one_line(words[known[0]], _TEXT))), more)
    return ui.link(f"/{entry.id}", ", ".join(count_kinds(entry.text.split())) or "nothing that is still there")
