"""Review: what waits for a decision, with the reasons and the evidence, and the decisions that were made.

One form decides about all ticked items; each item also has separate buttons. The words at fault are marked, and hidden
characters are named in their places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.types import SAID_BY, Atom, Reviewed, Turn
from mcp_memory.suspicion.flags import flagged_spans
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el

WHY: Mapping[str, str] = {
    "hidden": "It has characters that a model reads and you cannot see; they are named in brackets.",
    "fence": "It poses as the end of what an agent gets from this memory, so that what follows reads as an order.",
    "disguised": "Its words are disguised.",
    "drop": "It tells a model to drop its other instructions.",
    "heed": "It speaks to a model, and gives it orders.",
    "keep": "It tells a model to remember something.",
    "role": "It poses as another speaker.",
    "call": "It poses as a call of a tool, or as a tool's answer.",
    "leak": "It tells a model to send something away.",
    "order": "One of its sentences is an order to a model, whatever its words.",
    "unjudged": "It is not checked yet; that happens in the background.",
    "failed": "It could not be checked; the log has the error.",
    "unsaid": "You did not say it: these are the words of a tool or a page.",
    "secret": "It has a key, a password or a card number. Forget it, and erase it for good.",
    "unstated": "It was stored as your word, and nothing that you said states it.",
    "unsupported": "A part of it is in nothing that was said.",
    "other_value": "The words that it is based on have another number or name.",
    "contradicted": "The words that it is based on seem to say otherwise.",
}
"""Why an item waits, or is doubted, by the reasons of `longterm.verification.trust`."""
_CHOICES = (
    ("kept", "Keep out", "q", "It stays stored, and you can find it. No agent is told of it."),
    ("released", "Release", "r", "Agents may be told of it from now on."),
)
_WAITING = 20
_DECIDED = 20
_CHARS, _BEFORE = 600, 150  # characters of an item, and of them before the first words at fault
_JUDGED = 3_000  # characters in which words at fault are looked for
_SAID_BEFORE, _CHARS_BEFORE = 2, 200  # turns before an item, and their characters
_CHOSEN = "chosen"
"""Id of the form for the ticked items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """A quarantined item with its statement, if it is one, the turn that it is or is based on, and the turns before."""

    row: Reviewed
    atom: Atom | None
    turn: Turn | None
    before: Sequence[Turn]
    at_fault: Sequence[tuple[int, int]]
    title: str | None


async def review(view: View) -> Page:
    """Show the items that wait for review, the newest first, and the earlier decisions."""
    rows = await view.memory.waiting(limit=_WAITING + 1)
    decided = await view.memory.decided(limit=_DECIDED)
    items = await _read_items(view, [*rows[:_WAITING], *decided])
    shown = items[: len(rows[:_WAITING])]
    return Page(
        title="Review",
        here="review",
        body=ui.body(
            el("p", "Texts that look like an order to your agent, and rules that are not your own words, wait here. "
               "Searches find them, but no agent is told of them until you release them."),
            ui.section(
                None,
                ui.rows(_waiting_item(view, item, is_one_of_many=len(shown) > 1) for item in shown),
                ui.note(f"These are the newest {_WAITING}. The others follow when these are decided.")
                if len(rows) > _WAITING
                else None,
                _bulk_form(view) if len(shown) > 1 else None,
            )
            if shown
            else ui.empty("Nothing waits for your decision."),
            _earlier_decisions(view, items[len(shown) :]),
            ui.forgotten_line(await view.memory.count_forgotten()),
        ),
    )  # fmt: skip


async def _read_items(view: View, rows: Sequence[Reviewed]) -> list[_Item]:
    memory = view.memory
    atoms = {atom.id: atom for atom in await memory.statements_by_id([row.id for row in rows if row.id[0] == "a"])}
    sources = {row.id: atoms[row.id].evidence if row.id in atoms else row.id for row in rows}
    turns = {turn.id: turn for turn in await memory.turns(list(dict.fromkeys(sources.values())))}
    titles = await memory.titles(list({turn.session for turn in turns.values()}))
    items: list[_Item] = []
    for row in rows:
        turn = turns.get(sources[row.id])
        before = await _said_before(view, turn) if turn and not row.verdict else ()
        judge = partial(flagged_spans, mask(row.text)[:_JUDGED], meaning="order" in row.reasons)
        spans = await anyio.to_thread.run_sync(judge)
        title = titles.get(turn.session) if turn else None
        items.append(_Item(row=row, atom=atoms.get(row.id), turn=turn, before=before, at_fault=spans, title=title))
    return items


async def _said_before(view: View, turn: Turn) -> Sequence[Turn]:
    start = max(0, turn.position - _SAID_BEFORE)
    near = await view.memory.session_turns(turn.session, start=start, limit=_SAID_BEFORE)
    return [before for before in near if before.position < turn.position]


def _bulk_form(view: View) -> Element | None:
    """Return the form that decides about all ticked items."""
    buttons = (
        el("button", "Keep all chosen out", name="verdict", value="kept"),
        el("button", "Release all chosen", name="verdict", value="released"),
    )
    return ui.form(view, "review", ui.line(*buttons), id_=_CHOSEN, back="/review")


def _waiting_item(view: View, item: _Item, *, is_one_of_many: bool) -> Iterator[Node | None]:
    row = item.row
    can_choose = is_one_of_many and view.may("admin")
    tick = can_choose and el(
        "input", type="checkbox", name="ids", value=row.id, form=_CHOSEN, aria_label=f"Choose {row.id}"
    )
    yield ui.line(tick or None, *_head(item))
    yield _text(item)
    if item.atom and item.atom.fact:
        yield el("p", "As a fact: ", ui.fact_words(item.atom.fact))
    yield from (el("p", WHY.get(reason, reason), class_="why") for reason in row.reasons)
    yield from _evidence(item)
    for verdict, name, key, effect in _CHOICES:
        yield _choice(_decision_button(view, row, verdict, name, key=key), effect)
    yield _choice(
        ui.forget_link(view, row.id),
        "It leaves every search and page. You can bring it back until it is erased for good.",
    )


def _choice(button: Element | None, effect: str) -> Element | None:
    return button and el("div", button, el("span", effect), class_="choice")


def _earlier_decisions(view: View, decided: Sequence[_Item]) -> Element | None:
    """Return the section of earlier decisions, each with a button that revokes it; None if there are none."""
    return ui.section("Decided before", ui.rows(_decided_item(view, item) for item in decided)) if decided else None


def _decided_item(view: View, item: _Item) -> list[Element | None]:
    row = item.row
    verdict = ui.badge("released", "ok") if row.verdict == "released" else ui.badge("kept out", "warn")
    when = ui.moment(row.reviewed_at) if row.reviewed_at else None
    undo = _decision_button(view, row, "waiting", "Undo", key="u")
    return [_text(item), ui.line(verdict, when, *_head(item), undo)]


def _head(item: _Item) -> Iterator[Element | None]:
    """Yield what an item is, whose words it has, its conversation, and when it was said."""
    row, turn = item.row, item.turn
    what = "message" if row.kind == "turn" else "statement"
    whose = " in your name" if row.source == "user" else f" from {SAID_BY[row.source]}"
    yield el("span", ui.link(f"/{row.id}", f"A {what}"), whose)
    if turn:
        yield ui.conversation_link(turn, item.title or turn.session)
    yield ui.moment(turn.said_at if turn else row.at)


def _text(item: _Item) -> Element:
    """Return the text around its first words at fault, which are marked. Secrets are masked: old rows may have some."""
    text, spans = mask(item.row.text), item.at_fault
    start = max(0, spans[0][0] - _BEFORE) if spans else 0
    end = start + _CHARS
    pieces: list[object] = ["…"] if start else []
    place = start
    for first, last in spans:
        if first < end:
            pieces += [ui.reveal(text[place:first]), el("mark", ui.reveal(text[first : min(last, end)]))]
            place = min(last, end)
    pieces += [ui.reveal(text[place:end]), "…" if end < len(text) else ""]
    return el("blockquote", pieces, dir="auto", class_="verbatim card")


def _evidence(item: _Item) -> Iterator[Element]:
    """Yield the words that a statement is based on, and what was said before."""
    if item.before:
        lines = (
            el("p", ui.speaker(turn), ": ", ui.memory_text(one_line(mask(turn.content), _CHARS_BEFORE)))
            for turn in item.before
        )
        yield el("div", el("small", "Said before it"), lines, class_="quote")
    if item.atom and item.turn and item.turn.role != "note":
        yield ui.quote_turn(item.turn, [item.atom.span], of=item.atom.id)


def _decision_button(view: View, row: Reviewed, verdict: str, words: str, *, key: str | None = None) -> Element | None:
    kind = "main" if verdict == "kept" else ""
    return ui.action(view, "review", words, kind=kind, key=key, ids=row.id, verdict=verdict, back="/review")
