"""Live: the most recently stored, recalled, offloaded and forgotten items, and the connected programs.

The scripts reload the page after changes; without them it shows the state when it was loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mcp_memory.core.types import ActivityEntry
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pages.forgetting import count_kinds

if TYPE_CHECKING:
    from mcp_memory.store.values import RecallEntry


_ENTRIES = 50
_RECALLS = 20
_IDS = 12
_BADGES = {
    "turn": ("turn stored", ""),
    "statement": ("statement stored", "ok"),
    "result": ("result kept", "kind"),
    "recall": ("recalled", "source"),
    "forgotten": ("forgotten", "warn"),
    "correction": ("statement corrected", "ok"),
    "uncorrected": ("correction undone", "warn"),
    "back": ("brought back", "ok"),
}
_HOW = {"recall": "an agent", "prompt": "a prompt", "start": "the start of a conversation"}
"""What asked for a recall."""


async def live(view: View) -> Page:
    """Show recent activity, the newest first."""
    memory = view.memory
    happened = await memory.activity(limit=_ENTRIES)
    recalled = await memory.recalls(limit=_RECALLS)
    return Page(
        title="Live",
        here="live",
        body=ui.body(
            ui.section("What happened, the newest first", _list(happened)),
            ui.section("What was recalled", _recalls(recalled)),
            _connected(await memory.connected()) if view.is_owner else None,
        ),
    )


def _list(happened: Sequence[ActivityEntry]) -> Element:
    shown = ui.rows(map(_entry, happened)) if happened else ui.empty("Nothing has happened yet.")
    return el("div", shown, data_live=True)


def _entry(entry: ActivityEntry) -> Element:
    return el(
        "div",
        el("p", _what(entry), class_="said"),
        ui.line(
            ui.moment(entry.at),
            ui.badge(*_BADGES[entry.what]),
            el("span", entry.id, class_="id") if entry.id else None,
            _reason(entry) if entry.reason else None,
            _session(entry) if entry.session else None,
            f"by {entry.client}" if entry.client else None,
        ),
        class_="statement",
    )


def _session(entry: ActivityEntry) -> Element:
    """Return the session of an entry, as a link if it certainly has turns."""
    name = ui.memory_text(entry.session or "")
    return ui.link(f"/session/{ui.part(entry.session or '')}", name) if entry.what == "turn" else name


def _what(entry: ActivityEntry) -> Any:
    if entry.what == "recall":
        return ["Brought ", _ids(entry.text.split())]
    if entry.what in ("forgotten", "uncorrected", "back"):
        text: Any = ", ".join(count_kinds(entry.text.split())) or "nothing that is still there"
    else:
        text = ui.memory_text(entry.text) if entry.text else "no text"
    return ui.link(f"/{entry.id}", text) if entry.id else text


def _reason(entry: ActivityEntry) -> Any:
    """Return the reason for forgetting, or the statements that a correction replaced."""
    return ["instead of ", _ids(entry.reason.split())] if entry.what == "correction" else ui.memory_text(entry.reason)


def _ids(ids: Sequence[str]) -> list[Element | str]:
    if not ids:
        return ["the page about the user"]
    return list(_links(ids))


def _links(ids: Sequence[str]) -> Iterator[Element | str]:
    for id in ids[:_IDS]:
        yield ui.link(f"/{id}", id, class_="id")
        yield " "
    if len(ids) > _IDS:
        yield f"and {len(ids) - _IDS:,} more"


def _recalls(recalled: Sequence[RecallEntry]) -> Element:
    if not recalled:
        return ui.empty("Nothing was recalled yet.")
    has_words = any(recall.query for recall in recalled)
    head = ["At", "Asked by", "Session", "Rows", "Tokens"]
    lines = (
        (
            ui.moment(recall.at),
            _HOW[recall.how],
            ui.memory_text(recall.session),
            el("span", _ids(recall.ids)),
            ui.count(recall.tokens),
            *([ui.memory_text(recall.query or "")] if has_words else []),
        )
        for recall in recalled
    )
    return ui.table("The last recalls", [*head, *(["Words"] if has_words else [])], lines, numbers=(4,))


def _connected(processes: Sequence[dict[str, Any]]) -> Element:
    if not processes:
        return ui.section("Connected", ui.empty("No other program has this memory open."))
    lines = ((ui.memory_text(_name(process)), ui.memory_text(process["space"] or "")) for process in processes)
    return ui.section(
        "Connected", ui.table("Programs that have this memory open", ("Program and its clients", "Space"), lines)
    )


def _name(process: dict[str, Any]) -> str:
    clients = ", ".join(process["clients"])
    return f"{process['what']} · {clients}" if clients else str(process["what"])
