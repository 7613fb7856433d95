"""Live: the last stored, recalled, offloaded and forgotten items, and the connected programs.

The scripts reload the page when something changes; without them it shows the state when it was loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mcp_memory.core.types import ActivityEntry
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pages.forgetting import kinds_of
from mcp_memory.ui.words import t

if TYPE_CHECKING:
    from mcp_memory.store.values import RecallEntry


_ENTRIES = 50
_RECALLS = 20
_IDS = 12
_KINDS = {
    "turn": "", "statement": "ok", "result": "kind", "recall": "source", "forgotten": "warn", "correction": "ok",
    "uncorrected": "warn", "back": "ok",
}  # fmt: skip


async def live(view: View) -> Page:
    """The last things that happened, the newest first."""
    memory = view.memory
    happened = await memory.activity(limit=_ENTRIES)
    recalled = await memory.recalls(limit=_RECALLS)
    return Page(
        title=t("live.title"),
        here="live",
        body=ui.body(
            ui.section(t("live.happened"), _list(happened)),
            ui.section(t("live.recalls"), _recalls(recalled)),
            _connected(await memory.connected()) if view.is_owner else None,
        ),
    )


def _list(happened: Sequence[ActivityEntry]) -> Element:
    shown = ui.rows(map(_entry, happened)) if happened else ui.empty(t("live.nothing"))
    return el("div", shown, data_live=True)


def _entry(one: ActivityEntry) -> Element:
    return el(
        "div",
        el("p", _what(one), class_="said"),
        ui.gap(
            ui.moment(one.at),
            ui.badge(t(f"live.{one.what}"), _KINDS[one.what]),
            el("span", one.id, class_="id") if one.id else None,
            _reason(one) if one.reason else None,
            _session(one) if one.session else None,
            t("live.by", client=one.client) if one.client else None,
        ),
        class_="statement",
    )


def _session(one: ActivityEntry) -> Element:
    """Return the session of an entry, as a link where it surely has turns."""
    name = ui.words_of(one.session or "")
    return ui.link(f"/session/{ui.part(one.session or '')}", name) if one.what == "turn" else name


def _what(one: ActivityEntry) -> Any:
    if one.what == "recall":
        return [t("live.brought"), " ", _ids(one.text.split())]
    if one.what in ("forgotten", "uncorrected", "back"):
        text: Any = ", ".join(kinds_of(one.text.split())) or t("live.nothing_left")
    else:
        text = ui.words_of(one.text) if one.text else t("live.no_words")
    return ui.link(f"/{one.id}", text) if one.id else text


def _reason(one: ActivityEntry) -> Any:
    """Return why rows were forgotten, or what a correction replaced."""
    return [t("live.instead"), " ", _ids(one.reason.split())] if one.what == "correction" else ui.words_of(one.reason)


def _ids(ids: Sequence[str]) -> list[Element | str]:
    if not ids:
        return [t("live.pages")]
    return list(_linked(ids))


def _linked(ids: Sequence[str]) -> Iterator[Element | str]:
    for id in ids[:_IDS]:
        yield ui.link(f"/{id}", id, class_="id")
        yield " "
    if len(ids) > _IDS:
        yield t("live.more", count=len(ids) - _IDS)


def _recalls(recalled: Sequence[RecallEntry]) -> Element:
    if not recalled:
        return ui.empty(t("live.no_recalls"))
    has_words = any(one.query for one in recalled)
    head = [t("live.at"), t("live.how"), t("live.session"), t("live.rows"), t("live.tokens")]
    lines = (
        (
            ui.moment(one.at),
            t(f"live.how_{one.how}"),
            ui.words_of(one.session),
            el("span", _ids(one.ids)),
            ui.count(one.tokens),
            *([ui.words_of(one.query or "")] if has_words else []),
        )
        for one in recalled
    )
    return ui.table(t("live.table"), [*head, *([t("live.query")] if has_words else [])], lines, numbers=(4,))


def _connected(processes: Sequence[dict[str, Any]]) -> Element:
    if not processes:
        return ui.section(t("live.connected"), ui.empty(t("live.nobody")))
    lines = ((ui.words_of(_name(one)), ui.words_of(one["space"] or "")) for one in processes)
    return ui.section(t("live.connected"), ui.table(t("live.processes"), (t("live.who"), t("live.space")), lines))


def _name(process: dict[str, Any]) -> str:
    clients = ", ".join(process["clients"])
    return f"{process['what']} · {clients}" if clients else str(process["what"])
