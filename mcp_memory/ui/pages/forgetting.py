"""Forgetting: the forgotten items with a form to restore them, and a preview of the items to be forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Forgotten, Mention, Turn
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.markdown import inline
from mcp_memory.ui.words import t

if TYPE_CHECKING:
    from mcp_memory.store.values import Tombstone


_LISTED = 200
_SHOWN, _CHARS = 50, 300
_NAMING = 12  # statements whose lines in pages are shown


async def tombstone(view: View) -> Page:
    """Show a tombstone: the items forgotten together, when, why and how, and a form to restore them.

    Raises NotFound for an unknown id.
    """
    id = view.parts["id"]
    forgotten = next((entry for entry in await view.memory.tombstones() if entry.id == id), None)
    if forgotten is None:
        raise NotFound(t("item.no_tombstone", id=id))
    ids = forgotten.ids[:_LISTED]
    is_open = bool(ids) and not (forgotten.undone or forgotten.purged)
    return Page(
        title=t("item.tombstone", id=id),
        here="home",
        body=ui.body(
            _state(forgotten),
            ui.labelled_values(
                (
                    (t("item.gone"), ", ".join(count_kinds(forgotten.ids)) or None),
                    (t("item.when"), ui.moment(forgotten.at)),
                    (t("item.why"), ui.memory_text(forgotten.reason) if forgotten.reason else t("item.no_reason")),
                    (t("item.how"), t(f"item.how_{forgotten.how}")),
                    (t("item.ids"), ui.line(el("span", entry, class_="id") for entry in ids) if ids else None),
                )
            ),
            *_similar_turns(await view.memory.still_said(id) if is_open else ()),
            *((_undo(view, forgotten), await forgotten_words(view, id)) if is_open else ()),
        ),
    )


async def forgotten_words(view: View, tombstone: str) -> Element | None:
    """Return the forgotten words in a closed box; None without words or without the right to restore them."""
    if not view.may("admin"):
        return None
    words = await view.memory.forgotten_words(tombstone, limit=_SHOWN)
    rows = ui.rows([el("span", id, class_="id"), " ", ui.memory_text(one_line(text, _CHARS))] for id, text in words)
    cut = el("p", t("forget.first", count=_SHOWN)) if len(words) == _SHOWN else None
    return el("details", el("summary", t("item.show_words")), rows, cut) if words else None


def _undo(view: View, tombstone: Tombstone) -> Element | None:
    """Return the button that restores the items and opens the first of them."""
    return ui.action(view, "undo", t("item.undo"), kind="main", tombstone=tombstone.id, back=f"/{tombstone.ids[0]}")


def _similar_turns(turns: Sequence[Turn]) -> Iterator[Element]:
    """Yield a note with the remaining turns that may have the same content."""
    if turns:
        ids = [turn.id for turn in turns[:_SHOWN]]
        links = [[ui.link(f"/{id}", id, class_="id"), " "] for id in ids]
        forget = ui.link("/forget", t("item.forget_them"), ids=" ".join(ids))
        yield ui.note(t("item.still_said"), " ", links, forget, kind="warn")


def _state(tombstone: Tombstone) -> Element:
    if tombstone.purged:
        return ui.note(t("item.purged"), kind="bad")
    if tombstone.undone:
        return ui.note(t("item.undone"), kind="ok")
    return ui.note(t("item.can_undo"))


def count_kinds(ids: Iterable[str]) -> Iterator[str]:
    """Yield how many of these ids are turns, statements, tool results and goals of tasks, in words."""
    words = {"t": "item.gone_turns", "a": "item.gone_statements", "r": "item.gone_results", "0": "item.gone_goals"}
    many = Counter("0" if id.isdecimal() else id[0] for id in ids)
    return (t(text, count=many[letter]) for letter, text in words.items() if many[letter])


# --- forgetting -------------------------------------------------------------------------------------


async def forget(view: View) -> Page:
    """Show what would be forgotten with the ids in the query, and the form that forgets it."""
    ids = view.query.get("ids", "").replace(",", " ").split()
    ask = el(
        "form",
        ui.input_field(t("forget.ids"), "ids", " ".join(ids), hint="a14 t3"),
        el("button", t("forget.look")),
        method="get",
        action="/forget",
    )
    would = await _preview(view, ids) if ids else None
    return Page(title=t("item.forget"), here="home", body=ui.body(el("p", t("forget.about")), ask, would))


async def _preview(view: View, ids: Sequence[str]) -> list[Any]:
    try:
        would = await view.memory.forget(ids, dry_run=True)
    except (InvalidInput, NotFound) as wrong:
        return [ui.note(str(wrong), kind="bad")]
    if not would.ids:
        return [ui.empty(t("forget.nothing"))]
    rows = [_preview_row(id, line) for id, line in zip(would.ids, would.previews, strict=True)]
    cut = el("p", t("forget.first", count=len(rows))) if would.total > len(rows) else None
    along = el("ul", (el("li", inline(sentence), dir="auto") for sentence in would.along)) if would.along else None
    lines = await _mentions(view, would.ids)
    form = ui.form(
        view,
        "forget",
        ui.input_field(t("forget.reason"), "reason", ""),
        el("button", t("forget.do"), class_="danger"),
        el("span", t("forget.undoable")),
        ids=" ".join(ids),
        back="/",
    )
    return [
        ui.section(t("forget.goes"), ui.rows(rows), cut, beside=t("forget.count", count=would.total)),
        ui.section(t("forget.along"), along) if along else None,
        ui.section(t("forget.lines"), ui.rows(lines)) if lines else None,
        *_related(view, ids, would),
        form or ui.note(t("forget.reader")),
    ]


async def _mentions(view: View, ids: Sequence[str]) -> list[list[Node]]:
    """Return the lines of the persona and the scenes that name these statements."""
    mentions: dict[Mention, None] = {}
    for id in [id for id in ids if id[0] == "a"][:_NAMING]:
        mentions |= dict.fromkeys(await view.memory.lines_citing(id))
    return [
        [
            el(
                "p",
                ui.link(
                    "/persona" if mention.slug is None else f"/scene/{ui.part(mention.slug)}",
                    ui.memory_text(mention.title),
                ),
            ),
            el("p", inline(mention.line.lstrip("-* ")), dir="auto"),
        ]
        for mention in mentions
    ]


def _related(view: View, ids: Sequence[str], would: Forgotten) -> Iterable[Element]:
    """Return the form that adds remaining rows with the same content; nothing without rows or without the right."""
    if not (view.may("admin") and would.also):
        return ()
    boxes = [
        el("label", el("input", type="checkbox", name="ids", value=id), " ", el("span", id, class_="id"), " ",
           ui.memory_text(one_line(line.removeprefix(f"{id}: "), _CHARS)))
        for id, line in zip(would.also, would.also_previews, strict=True)
    ]  # fmt: skip
    form = el(
        "form", ui.hidden({"ids": " ".join(ids)}), boxes, el("button", t("forget.add")), method="get", action="/forget"
    )
    return (ui.section(t("forget.related"), form),)


def _preview_row(id: str, line: str) -> list[Node]:
    return [ui.link(f"/{id}", id, class_="id"), " ", ui.memory_text(line.removeprefix(f"{id}: "))]
