"""Forgetting: the forgotten items with a form to restore them, and a preview of the items to be forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, plural
from mcp_memory.core.types import Forgotten, Mention, Turn
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.markdown import inline
from mcp_memory.ui.pages.item import mention_row

if TYPE_CHECKING:
    from mcp_memory.store.values import Tombstone


HOW_FORGOTTEN = {
    "ids": "by their numbers",
    "query": "by words in them",
    "session": "as a session",
    "time": "by their time",
    "retention": "by a retention policy",
    "import": "with an import",
    "correction": "a correction was undone",
}
_LISTED = 200
_SHOWN, _CHARS = 50, 300
_GOING = 5  # items above the button; more are folded
_NAMING = 12  # statements whose lines in pages are shown


async def tombstone(view: View) -> Page:
    """Show a tombstone: the items forgotten together, when, why and how, and a form to restore them.

    Raises NotFound for an unknown id.
    """
    id = view.parts["id"]
    forgotten = next((entry for entry in await view.memory.tombstones() if entry.id == id), None)
    if forgotten is None:
        raise ui.no_item(id)
    ids = forgotten.ids[:_LISTED]
    is_open = bool(ids) and not (forgotten.undone or forgotten.purged)
    return Page(
        title=f"Forgotten items {id}",
        here="home",
        body=ui.body(
            _state(forgotten),
            ui.labelled_values(
                (
                    ("What was forgotten", ", ".join(count_kinds(forgotten.ids)) or None),
                    ("When", ui.moment(forgotten.at)),
                    ("Why", ui.memory_text(forgotten.reason) if forgotten.reason else "no reason was given"),
                    ("How", HOW_FORGOTTEN[forgotten.how]),
                    ("Numbers", ui.line(el("span", entry, class_="id") for entry in ids) if ids else None),
                )
            ),
            *_similar_turns(await view.memory.still_said(id) if is_open else ()),
            *((_undo(view, forgotten), await forgotten_words(view, id)) if is_open else ()),
        ),
    )


async def forgotten_item(view: View, id: str, tombstone: Tombstone) -> Page:
    """Show at the address of a forgotten item when and why it was forgotten, and the button that brings it back."""
    noun = {"t": "message", "a": "statement"}.get(id[0], "result")
    others = len(tombstone.ids) - 1
    why = [" Reason: ", ui.memory_text(tombstone.reason), "."] if tombstone.reason else None
    when = el("p", f"This {noun} was forgotten on ", ui.moment(tombstone.at), ".", why, class_="lead")
    if tombstone.purged:
        return Page(title="Forgotten", here="home", body=ui.body(when, el("p", "It was erased for good.")))
    along = f" {plural(others, 'other item')}, forgotten with it, would come back too." if others else ""
    back = el("p", f"It can be brought back until it is erased for good.{along}")
    undo = ui.action(view, "undo", "Bring it back", kind="main", key="u", tombstone=tombstone.id, back=f"/{id}")
    body = ui.body(when, back, undo, await forgotten_words(view, tombstone.id))
    return Page(title="Forgotten", here="home", body=body)


async def forgotten_words(view: View, tombstone: str) -> Element | None:
    """Return the forgotten words in a closed box; None without words or without the right to restore them."""
    if not view.may("admin"):
        return None
    words = await view.memory.forgotten_words(tombstone, limit=_SHOWN)
    rows = ui.rows([el("span", id, class_="id"), " ", ui.memory_text(one_line(text, _CHARS))] for id, text in words)
    cut = el("p", f"The first {_SHOWN} are listed.") if len(words) == _SHOWN else None
    return el("details", el("summary", "Show what it was"), rows, cut) if words else None


def _undo(view: View, tombstone: Tombstone) -> Element | None:
    """Return the button that restores the items and opens the first of them."""
    back = f"/{tombstone.ids[0]}"
    return ui.action(view, "undo", "Bring back", kind="main", key="u", tombstone=tombstone.id, back=back)


def _similar_turns(turns: Sequence[Turn]) -> Iterator[Element]:
    """Yield a note with the remaining turns that may have the same content."""
    if turns:
        ids = [turn.id for turn in turns[:_SHOWN]]
        links = [[ui.link(f"/{id}", id, class_="id"), " "] for id in ids]
        forget = ui.link("/forget", "Forget them too …", ids=" ".join(ids))
        yield ui.note("Messages that stay, and may say the same: ", links, forget, kind="warn")


def _state(tombstone: Tombstone) -> Element:
    if tombstone.purged:
        return ui.note("Erased for good: nobody can bring it back.", kind="bad")
    if tombstone.undone:
        return ui.note("Brought back: all of it is there again.", kind="ok")
    return ui.note(
        "No search and no list shows these items now. You can bring them back until they are erased for good."
    )


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
        ui.line(
            el("button", "Forget it" if would.total == 1 else "Forget them", class_="danger"),
            el("span", "You can bring it back until it is erased for good."),
        ),
        ui.input_field("Reason, kept with it", "reason", ""),
        ids=" ".join(ids),
        back="/",
    )
    return [
        ui.section("This goes", ui.rows(rows[:_GOING]), folded if rows[_GOING:] else None, cut),
        el("div", form, class_="acts") if form else ui.note("You can look, but not forget here."),
        _effects(would, await _mentions(view, would.ids)),
    ]


def _effects(would: Forgotten, lines: Sequence[list[Node]]) -> Element | None:
    """Return what else changes, folded; None if nothing does."""
    if not (would.along or lines):
        return None
    along = el("ul", (el("li", inline(sentence), dir="auto") for sentence in would.along)) if would.along else None
    return el(
        "details",
        el("summary", "What else happens"),
        along,
        ui.section("Lines that go or change", ui.rows(lines)) if lines else None,
    )


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
