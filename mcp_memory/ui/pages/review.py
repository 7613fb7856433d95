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
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.views import Page, View
from mcp_memory.ui.words import t

_WAITING = 50
_DECIDED = 20
_CHARS = 600
_CHOSEN = "chosen"
"""The id of the form for what is ticked."""


async def review(view: View) -> Page:
    """Show the items that wait for review, the newest first, and the earlier decisions."""
    found = await view.memory.waiting(limit=_WAITING + 1)
    shown = found[:_WAITING]
    return Page(
        title=t("review.title"),
        here="review",
        body=ui.body(
            ui.note(t("review.about")),
            ui.section(
                t("review.waiting"),
                ui.rows(_waiting(view, one) for one in shown) if shown else ui.empty(t("review.none")),
                ui.note(t("review.more", count=_WAITING)) if len(found) > _WAITING else None,
                _several(view) if shown else None,
            ),
            _before(view, await view.memory.decided(limit=_DECIDED)),
            ui.forgotten_line(await view.memory.count_forgotten()),
        ),
    )


def _several(view: View) -> Element | None:
    """Return the form that decides about all that is ticked."""
    buttons = (
        el("button", t("review.release_chosen"), name="verdict", value="released"),
        el("button", t("review.keep_chosen"), name="verdict", value="kept"),
    )
    return ui.form(view, "review", ui.gap(*buttons), id_=_CHOSEN, back="/review")


def _waiting(view: View, one: Reviewed) -> Element:
    tick = el("input", type="checkbox", name="ids", value=one.id, form=_CHOSEN, aria_label=t("review.tick", id=one.id))
    buttons = (
        _decide(view, one, "released", t("review.release"), key="r"),
        _decide(view, one, "kept", t("review.keep"), key="q"),
        ui.link("/forget", t("review.forget"), ids=one.id) if view.may("admin") else None,
    )
    return ui.card(
        ui.gap(tick if view.may("admin") else None, *_head(one)),
        el("p", t("review.because"), " ", _reasons(one)),
        _text(one),
        ui.gap(*buttons),
        tag="div",
    )


def _before(view: View, decided: Sequence[Reviewed]) -> Element | None:
    """Return the section of earlier decisions, each with a button to change it; None if there are none."""
    return ui.section(t("review.before"), ui.rows(_decided(view, one) for one in decided)) if decided else None


def _decided(view: View, one: Reviewed) -> list[Element | None]:
    released = one.verdict == "released"
    verdict = ui.badge(t("review.released"), "ok") if released else ui.badge(t("review.kept"), "warn")
    other, words = ("kept", t("review.keep")) if released else ("released", t("review.release"))
    return [
        ui.gap(
            verdict,
            ui.moment(one.reviewed_at) if one.reviewed_at else None,
            *_head(one),
            _decide(view, one, other, words),
        ),
        el("p", t("review.because"), " ", _reasons(one)),
        _text(one),
    ]


def _head(one: Reviewed) -> tuple[Element | None, ...]:
    """Return the kind of an item, its speaker, its session and its time."""
    session = ui.link(f"/session/{ui.part(one.session)}", ui.words_of(one.session)) if one.session else None
    kind = t("review.turn") if one.kind == "turn" else t("review.statement")
    whose = ui.badge(t("review.whose", who=SAID_BY[one.source]), "source")
    return ui.link(f"/{one.id}", one.id, class_="id"), ui.badge(kind, "kind"), whose, session, ui.moment(one.at)


def _reasons(one: Reviewed) -> str:
    return remove_hidden(", ".join(REASONS.get(reason, reason) for reason in one.reasons))


def _text(one: Reviewed) -> Element:
    """Return the text, with keys and passwords masked: rows of earlier versions may have some."""
    text = mask(one.text)
    cut = text[:_CHARS] + "…" if len(text) > _CHARS else text
    return ui.words_of(cut, tag="blockquote", class_="verbatim")


def _decide(view: View, one: Reviewed, verdict: str, words: str, *, key: str | None = None) -> Element | None:
    return ui.action(view, "review", words, key=key, ids=one.id, verdict=verdict, back="/review")
