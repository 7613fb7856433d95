"""Forgetting: what was forgotten, with a button that brings it back, and a preview of what would be forgotten."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, plural, remove_hidden
from mcp_memory.core.types import Forgotten, Mention, Turn
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.pages.item import mention_row

if TYPE_CHECKING:
    from mcp_memory.store.values import Tombstone


HOW_FORGOTTEN = {
    "ids": "chosen one by one",
    "query": "chosen by words in it",
    "session": "as a conversation",
    "time": "by its time",
    "retention": "by the limit of how long it is kept",
    "import": "with an import",
    "correction": "a correction was undone",
}
_LISTED = 200
_SHOWN, _CHARS = 50, 300
_TITLE = 120  # characters of what was forgotten
_GOING = 5  # items above the button; more are folded
_IDS = re.compile(r"(?<![\w“])(?:[at][1-9][0-9]{0,17}|r-[0-9a-f]{12})(?![\w”])")
_NOUNS = {"a": "a statement", "t": "a message", "r": "a result"}
_NAMING = 12  # statements whose lines in pages are shown


async def tombstone(view: View) -> Page:
    """Show what was forgotten together, when and why, and a button that brings it back.

    Raises NotFound for an unknown id.
    """
    id = view.parts["id"]
    forgotten = next((entry for entry in await view.memory.tombstones() if entry.id == id), None)
    if forgotten is None:
        raise ui.no_item(id)
    return await _forgotten(view, forgotten, back=f"/{forgotten.ids[0]}" if forgotten.ids else "/")


async def forgotten_item(view: View, id: str, tombstone: Tombstone) -> Page:
    """Show at the address of a forgotten item what was forgotten with it, and the button that brings it back."""
    return await _forgotten(view, tombstone, back=f"/{id}", first=id)


async def _forgotten(view: View, tombstone: Tombstone, *, back: str, first: str | None = None) -> Page:
    """Return the page of a forgetting; `first` is the item that it is about."""
    is_open = bool(tombstone.ids) and not (tombstone.undone or tombstone.purged)
    words = await forgotten_words(view, tombstone.id) if is_open else {}
    texts = list(dict.fromkeys(words.values()))  # a message and a statement can be the same words
    what = ", ".join(count_kinds(tombstone.ids or tombstone.took))
    title = words.get(first or "") or next(iter(texts), what)
    reason = [". Reason: ", ui.memory_text(tombstone.reason)] if tombstone.reason else None
    cut = el("p", f"The first {_SHOWN} are listed.") if len(words) == _SHOWN else None
    return Page(
        title=f"Forgotten: {one_line(title, _TITLE)}" if title else "Forgotten",
        here="home",
        body=ui.body(
            el("p", f"{what}, forgotten on " if what else "Forgotten on ", ui.moment(tombstone.at), reason, ".",
               class_="lead"),
            _state(view, tombstone, back),
            ui.section("All of it", ui.rows(map(ui.memory_text, texts)), cut) if len(texts) > 1 else None,
            _similar_turns(await view.memory.still_said(tombstone.id)) if is_open else None,
            _details(tombstone),
        ),
    )  # fmt: skip


async def forgotten_words(view: View, tombstone: str) -> dict[str, str]:
    """Return the forgotten words by their ids; empty without the right to bring them back."""
    if not view.may("admin"):
        return {}
    words = await view.memory.forgotten_words(tombstone, limit=_SHOWN)
    return {id: remove_hidden(one_line(text, _CHARS)) for id, text in words}


def _state(view: View, tombstone: Tombstone, back: str) -> Element:
    if tombstone.purged:
        return ui.note("It was erased for good: nobody can bring it back.", kind="bad")
    if tombstone.undone:
        return ui.note("It was brought back: all of it is there again.", kind="ok")
    button = ui.action(view, "undo", "Bring it back", kind="main", key="u", tombstone=tombstone.id, back=back)
    note = ui.note(
        "No list, search or recall has this now; messages with the same words stay. It can be brought back until it is "
        "erased for good."
    )
    return el("div", note, button, class_="acts")


def _similar_turns(turns: Sequence[Turn]) -> Element | None:
    """Return the remaining messages that may have the same content; None if there are none."""
    if not turns:
        return None
    forget = ui.link("/forget", "Forget them too …", ids=" ".join(turn.id for turn in turns[:_SHOWN]))
    rows = (
        ui.dated_row(
            el("p", ui.link(f"/{turn.id}", ui.memory_text(one_line(turn.content, _CHARS))), class_="said"),
            when=ui.moment(turn.said_at),
        )
        for turn in turns[:_SHOWN]
    )
    return ui.section("Messages that stay, and may say the same", ui.rows(rows), beside=forget)


def _details(tombstone: Tombstone) -> Element:
    ids = tombstone.ids[:_LISTED]
    values = (
        ("How", HOW_FORGOTTEN[tombstone.how]),
        ("Its number", el("span", tombstone.id, class_="id")),
        ("Numbers of what went", ui.line(el("span", id, class_="id") for id in ids) if ids else None),
    )
    return el("details", el("summary", "Details"), ui.labelled_values(values))


def count_kinds(ids: Iterable[str]) -> Iterator[str]:
    """Yield how many of these ids are turns, statements, results and goals of tasks, in words."""
    many = Counter("0" if id.isdecimal() else id[0] for id in ids)
    for letter, noun in (("t", "message"), ("a", "statement"), ("r", "result")):
        if many[letter]:
            yield plural(many[letter], noun)
    if goals := many["0"]:
        yield f"the goal{'s' if goals > 1 else ''} of {plural(goals, 'task')}"


# --- forgetting -------------------------------------------------------------------------------------


async def forget(view: View) -> Page:
    """Show what would be forgotten with the ids in the query, and the form that forgets it."""
    ids = view.query.get("ids", "").replace(",", " ").split()
    by_numbers = el(
        "form",
        ui.input_field("Numbers", "ids", "", hint="a14 t3"),
        el("p", "The numbers of statements (a14), messages (t3) or results. You see first what would go."),
        el("button", "Show what would go"),
        method="get",
        action="/forget",
    )
    body = (
        [await _preview(view, ids), el("details", el("summary", "Forget something else, by its number"), by_numbers)]
        if ids
        else [by_numbers]
    )
    return Page(title="Forget", here="home", body=ui.body(*body))


async def _preview(view: View, ids: Sequence[str]) -> list[Any]:
    try:
        would = await view.memory.forget(ids, dry_run=True)
    except (InvalidInput, NotFound) as wrong:
        return [ui.note(str(wrong), kind="bad")]
    if not would.ids:
        return [ui.empty("Nothing would be forgotten.")]
    rows = list(map(_preview_row, would.ids, would.previews))
    folded = el("details", el("summary", f"{would.total - _GOING:,} more"), ui.rows(rows[_GOING:]))
    cut = el("p", f"The first {len(rows)} are listed.") if would.total > len(rows) else None
    form = ui.form(
        view,
        "forget",
        *await _also(view, would),
        ui.input_field("Reason, kept with it", "reason", ""),
        ui.line(
            el("button", "Forget it" if would.total == 1 else "Forget them", class_="danger"),
            ui.link(f"/{ids[0]}", "Cancel"),
            el("span", "It can be brought back until it is erased for good."),
        ),
        ids=" ".join(ids),
        back="/",
    )
    return [
        ui.section("This goes", ui.rows(rows[:_GOING]), folded if rows[_GOING:] else None, cut),
        el("div", form, class_="acts") if form else ui.note("You can look, but not forget here."),
        _effects(would, await _mentions(view, would.ids)),
    ]


def _effects(would: Forgotten, lines: Sequence[list[Node]]) -> Element | None:
    """Return what else changes, folded; None if nothing does. Messages that the form offers are left out."""
    sentences = [sentence for sentence in would.along if set(would.also).isdisjoint(_IDS.findall(sentence))]
    along = el("ul", (el("li", _without_ids(sentence), dir="auto") for sentence in sentences)) if sentences else None
    if not (along or lines):
        return None
    return el(
        "details",
        el("summary", "What else happens"),
        along,
        ui.section("Lines that go or change", ui.rows(lines)) if lines else None,
    )


def _without_ids(sentence: str) -> list[Node]:
    """Return a sentence with the words for what its ids mean, as links."""
    nodes, place = list[Node](), 0
    for match in _IDS.finditer(sentence):
        nodes += [sentence[place : match.start()], ui.link(f"/{match[0]}", _NOUNS[match[0][0]])]
        place = match.end()
    return [*nodes, sentence[place:]]


async def _mentions(view: View, ids: Sequence[str]) -> list[list[Node]]:
    """Return the lines of pages that name these statements."""
    mentions: dict[Mention, None] = {}
    for id in [id for id in ids if id[0] == "a"][:_NAMING]:
        mentions |= dict.fromkeys(await view.memory.lines_citing(id))
    return list(map(mention_row, mentions))


async def _also(view: View, would: Forgotten) -> Iterable[Element]:
    """Return checkboxes for the messages that the statements are based on, and for other rows with the same content."""
    atoms = await view.memory.statements_by_id([id for id in would.ids if id[0] == "a"])
    sources = {turn for atom in atoms for turn in (atom.evidence, *(quote.turn for quote in atom.also))}
    came_from, alike = list[Element](), list[Element]()
    for id, line in zip(would.also, would.also_previews, strict=True):
        words = ui.memory_text(line.removeprefix(f"{id}: "))
        box = el("label", el("input", type="checkbox", name="ids", value=id), " ", words)
        (came_from if id in sources else alike).append(box)
    messages = "message" if len(came_from) == 1 else "messages"
    titles = (f"Also forget the {messages} that it came from?", "Also forget what may say the same?")
    return [
        el(
            "fieldset",
            el("legend", title),
            ui.rows([box] for box in boxes),
        )
        for title, boxes in zip(titles, (came_from, alike), strict=True)
        if boxes
    ]


def _preview_row(id: str, line: str) -> list[Node]:
    return [el("p", ui.link(f"/{id}", ui.memory_text(line.removeprefix(f"{id}: "))), class_="said")]
