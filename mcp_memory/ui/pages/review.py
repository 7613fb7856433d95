"""Review: the quarantined items, the reasons, and the decisions about them.

One form decides about all ticked items; each item also has separate buttons.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import remove_hidden
from mcp_memory.core.types import SAID_BY, Reviewed
from mcp_memory.longterm.verification.trust import REASONS
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el

_WAITING = 50
_DECIDED = 20
_CHARS = 600
_CHOSEN = "chosen"
"""Id of the form for the ticked items."""


async def review(view: View) -> Page:
    """Show the items that wait for review, the newest first, and the earlier decisions."""
    items = await view.memory.waiting(limit=_WAITING + 1)
    shown = items[:_WAITING]
    return Page(
        title="Review",
        here="review",
        body=ui.body(
            ui.note(
                "Some texts look like an attempt to give orders to your agent; some rules are not your "
                "own words. Both wait here. Searches find them, but no agent is told of them until you "
                "release them."
            ),
            ui.section(
                "Waiting",
                ui.rows(_waiting_item(view, item) for item in shown)
                if shown
                else ui.empty("Nothing waits for review."),
                ui.note(f"These are the newest {_WAITING}. The others follow when these are decided.")
                if len(items) > _WAITING
                else None,
                _bulk_form(view) if shown else None,
            ),
            _earlier_decisions(view, await view.memory.decided(limit=_DECIDED)),
            ui.forgotten_line(await view.memory.count_forgotten()),
        ),
    )


def _bulk_form(view: View) -> Element | None:
    """Return the form that decides about all ticked items."""
    buttons = (
        el("button", "Release all chosen", name="verdict", value="released"),
        el("button", "Keep all chosen in quarantine", name="verdict", value="kept"),
    )
    return ui.form(view, "review", ui.line(*buttons), id_=_CHOSEN, back="/review")


def _waiting_item(view: View, item: Reviewed) -> Element:
    tick = el("input", type="checkbox", name="ids", value=item.id, form=_CHOSEN, aria_label=f"Choose {item.id}")
    buttons = (
        _decision_button(view, item, "released", "Release", key="r"),
        _decision_button(view, item, "kept", "Keep in quarantine", key="q"),
        ui.link("/forget", "Forget …", ids=item.id) if view.may("admin") else None,
    )
    return ui.card(
        ui.line(tick if view.may("admin") else None, *_head(item)),
        el("p", "Why: ", _reasons(item)),
        _text(item),
        ui.line(*buttons),
        tag="div",
    )


def _earlier_decisions(view: View, decided: Sequence[Reviewed]) -> Element | None:
    """Return the section of earlier decisions, each with a button to change it; None if there are none."""
    return ui.section("Decided before", ui.rows(_decided_item(view, item) for item in decided)) if decided else None


def _decided_item(view: View, item: Reviewed) -> list[Element | None]:
    released = item.verdict == "released"
    verdict = ui.badge("released", "ok") if released else ui.badge("kept in quarantine", "warn")
    other, words = ("kept", "Keep in quarantine") if released else ("released", "Release")
    return [
        ui.line(
            verdict,
            ui.moment(item.reviewed_at) if item.reviewed_at else None,
            *_head(item),
            _decision_button(view, item, other, words),
        ),
        el("p", "Why: ", _reasons(item)),
        _text(item),
    ]


def _head(item: Reviewed) -> tuple[Element | None, ...]:
    """Return the kind of an item, its speaker, its session and its time."""
    session = ui.link(f"/session/{ui.part(item.session)}", ui.memory_text(item.session)) if item.session else None
    kind = "turn" if item.kind == "turn" else "statement"
    whose = ui.badge(f"word of {SAID_BY[item.source]}", "source")
    return ui.link(f"/{item.id}", item.id, class_="id"), ui.badge(kind, "kind"), whose, session, ui.moment(item.at)


def _reasons(item: Reviewed) -> str:
    return remove_hidden(", ".join(REASONS.get(reason, reason) for reason in item.reasons))


def _text(item: Reviewed) -> Element:
    """Return the text, with secrets masked, because rows of earlier versions may contain some."""
    text = mask(item.text)
    cut = text[:_CHARS] + "…" if len(text) > _CHARS else text
    return ui.memory_text(cut, tag="blockquote", class_="verbatim")


def _decision_button(view: View, item: Reviewed, verdict: str, words: str, *, key: str | None = None) -> Element | None:
    return ui.action(view, "review", words, key=key, ids=item.id, verdict=verdict, back="/review")
