"""Corrections: the form that replaces a statement by what is true, and the buttons that undo a correction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from mcp_memory.core.text import remove_hidden
from mcp_memory.core.types import Atom, Fact, StatementKind
from mcp_memory.ui import components as ui
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.views import Page, View
from mcp_memory.ui.words import t


def correct(view: View, atom: Atom) -> Iterator[Element]:
    """Yield the form that corrects a statement, where the reader may."""
    value = _value(atom.fact, atom.fact.value) if atom.fact else None
    kind = "promise" if atom.label == "promise" else atom.kind
    form = _form(view, atom, text=atom.text, kind=kind, when="never", day="", value=value)
    if form:
        yield ui.section(t("item.correct"), el("p", t("item.correct_about")), form)


def ask_value(view: View, atom: Atom, fact: Fact, *, text: str, kind: StatementKind, when: str, day: str) -> Page:
    """Return the form again, for a new text that no longer has the value of the statement's fact."""
    form = _form(view, atom, text=text, kind=kind, when=when, day=day, value=_value(fact, ""), has_asked=True)
    question = t("item.ask_value", fact=remove_hidden(f"{fact.entity} · {fact.relation} · {fact.value}"))
    return Page(
        title=t("item.correct_title", id=atom.id), here="memory", body=ui.body(ui.note(question, kind="warn"), form)
    )


def _form(
    view: View,
    atom: Atom,
    *,
    text: str,
    kind: StatementKind,
    when: str,
    day: str,
    value: Element | None,
    has_asked: bool = False,
) -> Element | None:
    return ui.form(
        view,
        "remember",
        el("textarea", remove_hidden(text), name="text", required=True, rows=3, dir="auto", id="correct",
           aria_label=t("item.correct_words")),
        value,
        ui.hidden({"asked": 1} if has_asked else {}),
        ui.choice(t("item.when_wrong"), "when", [(one, t(f"item.when_{one}")) for one in ("never", "changed")], when),
        ui.field(t("item.changed_on"), "valid_from", day, kind="date"),
        ui.choice(t("memory.kind"), "kind", [(one, t(f"memory.kind_{one}")) for one in get_args(StatementKind)], kind),
        el("button", t("item.correct_do"), class_="main"),
        needs="write",
        supersedes=atom.id,
        back=f"/{atom.id}",
    )  # fmt: skip


def _value(fact: Fact, value: str) -> Element:
    label = t("item.fact_value", fact=remove_hidden(f"{fact.entity} · {fact.relation}"))
    return ui.field(label, "value", remove_hidden(value))


def was_never_true(one: Atom | Fact) -> bool:
    """Return whether a statement was corrected as wrong from the start: then it ends where it began."""
    return one.valid_to is not None and one.valid_to <= one.valid_from


def without_repeated(facts: Sequence[Fact]) -> list[Fact]:
    """Return facts without those that a correction repeated with the same value from the same moment on."""

    def stated(one: Fact) -> tuple[object, ...]:
        return one.entity, one.relation, one.value, one.valid_from

    kept = {stated(one) for one in facts if not was_never_true(one)}
    return [one for one in facts if not (was_never_true(one) and stated(one) in kept)]


async def undo(view: View, correction: Atom, replaced: Sequence[Atom]) -> Element | None:
    """Return the button that undoes a correction; None for one that was replaced itself, and for one of a model."""
    if correction.valid_to is not None or not replaced:
        return None
    first = await view.memory.turns([correction.evidence])
    if not any(turn.role == "note" for turn in first):
        return None
    return ui.action(view, "undo_correction", t("item.undo_correction"), id=correction.id, back=f"/{correction.id}")
