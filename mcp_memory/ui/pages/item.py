"""Item: a statement with its evidence, history and correction form; a turn with the statements based on it.

A claim is followed by the words it is based on, marked in their turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line, remove_hidden
from mcp_memory.core.types import (
    EXTRACTED,
    SAID_BY,
    Atom,
    CitedResult,
    Evidence,
    Fact,
    Mention,
    ResultHit,
    StatementKind,
    Turn,
    Why,
)
from mcp_memory.longterm.verification.trust import REASONS
from mcp_memory.store.citations import address as at_lines
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.markdown import inline
from mcp_memory.ui.words import t


def correction_form(view: View, atom: Atom) -> Iterator[Element]:
    """Yield the form that corrects a statement, if the reader has the right."""
    value = _value(atom.fact, atom.fact.value) if atom.fact else None
    kind = "promise" if atom.label == "promise" else atom.kind
    form = _form(view, atom, text=atom.text, kind=kind, when="never", day="", value=value)
    if form:
        yield ui.section(t("item.correct"), el("p", t("item.correct_about")), form)


def ask_value(view: View, atom: Atom, fact: Fact, *, text: str, kind: StatementKind, when: str, day: str) -> Page:
    """Return the correction form again, with a field for the new value of the statement's fact.

    It is shown if the corrected text does not contain the old value.
    """
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
    times = [(name, t(f"item.when_{name}")) for name in ("never", "changed")]
    kinds = [(name, t(f"memory.kind_{name}")) for name in get_args(StatementKind)]
    return ui.form(
        view,
        "remember",
        el("textarea", remove_hidden(text), name="text", required=True, rows=3, dir="auto", id="correct",
           aria_label=t("item.correct_words")),
        value,
        ui.hidden({"asked": 1} if has_asked else {}),
        ui.choice(t("item.when_wrong"), "when", times, when),
        ui.input_field(t("item.changed_on"), "valid_from", day, kind="date"),
        ui.choice(t("memory.kind"), "kind", kinds, kind),
        el("button", t("item.correct_do"), class_="main"),
        needs="write",
        supersedes=atom.id,
        back=f"/{atom.id}",
    )  # fmt: skip


def _value(fact: Fact, value: str) -> Element:
    label = t("item.fact_value", fact=remove_hidden(f"{fact.entity} · {fact.relation}"))
    return ui.input_field(label, "value", remove_hidden(value))


def was_never_true(statement: Atom | Fact) -> bool:
    """Return whether a statement was corrected as never true; such a correction ends it at its own start or before."""
    return statement.valid_to is not None and statement.valid_to <= statement.valid_from


def drop_repeated(facts: Sequence[Fact]) -> list[Fact]:
    """Leave out facts that were corrected as never true, if another fact has the same value and start."""

    def identity(fact: Fact) -> tuple[object, ...]:
        return fact.entity, fact.relation, fact.value, fact.valid_from

    kept = {identity(entry) for entry in facts if not was_never_true(entry)}
    return [entry for entry in facts if not (was_never_true(entry) and identity(entry) in kept)]


async def undo_button(view: View, correction: Atom, replaced: Sequence[Atom]) -> Element | None:
    """Return the button that undoes a correction.

    None without the right, and if the correction was replaced itself, replaced nothing, or came from a model.
    """
    if correction.valid_to is not None or not replaced:
        return None
    first = await view.memory.turns([correction.evidence])
    if not any(turn.role == "note" for turn in first):
        return None
    return ui.action(view, "undo_correction", t("item.undo_correction"), id=correction.id, back=f"/{correction.id}")


_AROUND = 3
_MAX_STATEMENTS = 50
_NEIGHBOUR_CHARS = 800  # characters of a neighbour
_WINDOW = 20_000  # characters of a turn
_MAX_GAP = 600  # characters between quotes; quotes farther apart are shown separately


# --- a statement ------------------------------------------------------------------------------------
async def statement(view: View) -> Page:
    """Show a statement, its evidence, the pages that cite it, and its older and newer versions.

    Raises NotFound for an unknown id.
    """
    memory, id = view.memory, view.parts["id"]
    atom = await memory.atom(id)
    why = await memory.why(id)
    evidence = [Evidence(turn=atom.evidence, span=atom.span, quote=""), *atom.also]
    turns = {quote.turn.id: quote.turn for quote in why.quotes if quote.turn}
    fact = next((quote.fact for quote in (atom, *why.replaces) if quote.fact), None)
    facts = drop_repeated(await memory.facts_about(fact.entity)) if fact else []
    newer = why.replaced_by[:1]
    return Page(
        title=t("item.statement", id=id),
        here="memory",
        body=ui.body(
            ui.memory_text(atom.text, tag="p", class_="said"),
            *_doubt_note(view, atom.id, atom.held, note=t("item.quarantined")),
            *_doubt_note(view, atom.id, atom.doubts, note=t("item.doubted")),
            *_end_note(atom, newer, [await undo_button(view, quote, [atom]) for quote in newer]),
            _to_actions(view, atom),
            ui.section(t("item.based_on"), *_quotes(id, evidence, list(turns.values())), id="evidence"),
            _details(atom, list(turns.values())),
            _support(why),
            _mentions(why.mentions, ended={id: atom.superseded_by} if atom.valid_to else {}),
            *_replaced_statements(why.replaces, await undo_button(view, atom, why.replaces)),
            *_history(fact, facts),
            *correction_form(view, atom),
        ),
    )


def _details(atom: Atom, quoted: Sequence[Turn]) -> Element:
    fact = atom.fact
    adds = atom.source == "assistant" and any(turn.role == "user" for turn in quoted)
    entities = ui.line(
        ui.link(f"/entity/{ui.part(name)}", ui.memory_text(name), class_="entity") for name in atom.entities
    )
    return ui.labelled_values(
        (
            (t("item.kind"), ui.kind_badge(atom.kind)),
            (t("item.true_since"), None if was_never_true(atom) else ui.moment(atom.valid_from)),
            (
                t("item.true_until"),
                None if was_never_true(atom) or not atom.valid_to else ui.moment(atom.valid_to),
            ),
            (t("item.learned"), ui.moment(atom.learned_at)),
            (t("item.confidence"), f"{atom.confidence:.0%}"),
            (t("item.whose"), t("item.whose_adds") if adds else SAID_BY[atom.source]),
            (t("item.origin"), EXTRACTED if atom.is_sentence else None),
            (t("item.about"), entities if atom.entities else None),
            (t("item.fact"), ui.memory_text(f"{fact.entity} · {fact.relation} · {fact.value}") if fact else None),
        )
    )


def _doubt_note(view: View, id: str, reasons: Sequence[str], *, note: str) -> Iterator[Element]:
    """Yield a note with the reasons to doubt a row, and buttons to release or keep it; nothing without reasons."""
    if reasons:
        yield ui.note(note, " ", _reasons(reasons), kind="warn")
        buttons = [
            ui.action(view, "review", t("item.release"), ids=id, verdict="released", back=f"/{id}"),
            ui.action(view, "review", t("item.keep"), ids=id, verdict="kept", back=f"/{id}"),
        ]
        if any(buttons):
            yield ui.line(buttons)


def _reasons(reasons: Iterable[str]) -> str:
    return remove_hidden("; ".join(REASONS.get(reason, reason) for reason in reasons))


def _end_note(atom: Atom, newer: Sequence[Atom], undo: Sequence[Element | None]) -> Iterator[Element]:
    if atom.valid_to is None:
        return
    because = [t("item.ended_because"), " ", ui.memory_text(atom.closed_because)] if atom.closed_because else None
    yield ui.note(t("item.never_true") if was_never_true(atom) else because or t("item.ended"), kind="warn")
    if newer:
        yield ui.section(t("item.superseded"), ui.rows(map(ui.statement_row, newer)), undo)


def _quotes(id: str, evidence: Sequence[Evidence], turns: Sequence[Turn]) -> Iterator[Element]:
    """Yield each turn that is evidence, with all quoted words marked."""
    for turn in turns:
        for spans in _group_spans(place.span for place in evidence if place.turn == turn.id):
            yield ui.quote_turn(turn, spans, of=id)
    if {place.turn for place in evidence} - {turn.id for turn in turns}:
        yield ui.note(t("item.evidence_gone"), kind="warn")


def _group_spans(spans: Iterable[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return spans in groups that are close enough to be shown with the words between them."""
    groups: list[list[tuple[int, int]]] = []
    for span in sorted(spans):
        if groups and span[0] - groups[-1][-1][1] <= _MAX_GAP:
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _support(why: Why) -> Element:
    if why.cites:
        return ui.section(t("item.result"), map(_cited_result, why.cites))
    if why.likely:
        return ui.section(t("item.result"), el("p", t("item.result_likely")), map(result_row, why.likely))
    return ui.section(t("item.result"), ui.empty(t("item.result_none")))


def _cited_result(result: CitedResult) -> Element:
    by = [" · ", t("item.named_by"), " ", ui.link(f"/{result.by}", result.by)]
    return _lines(result.at, result.call, result.content, result.node, ui.moment(result.taken), by)


def result_row(hit: ResultHit, *more: Any) -> Element:
    """Return lines of a tool result or a file as evidence, with their call, and where the user contradicted them."""
    changed = [[" · ", t("search.changed"), " ", ui.link(f"/{line.by}", line.by)] for line in hit.changed]
    return _lines(at_lines(hit.ref, hit.lines), hit.call, hit.text, hit.node, ui.moment(hit.at), [*changed, *more])


def _lines(at: str, call: str, text: str, node: str | None, taken: Element, more: Any) -> Element:
    return el(
        "figure",
        el("pre", el("code", remove_hidden(text)), tabindex="0"),
        el(
            "figcaption",
            inline(at),
            " · ",
            ui.memory_text(one_line(call, 200), tag="code"),
            [" · ", ui.link(f"/{node}", node)] if node else None,
            " · ",
            taken,
            more,
        ),
        class_="code",
    )


def _mentions(mentions: Sequence[Mention], *, ended: Mapping[str, str | None]) -> Element:
    def row(mention: Mention) -> list[Node]:
        path = "/persona" if mention.slug is None else f"/scene/{ui.part(mention.slug)}"
        title = t("persona.title") if mention.slug is None else mention.title
        words = inline(mention.line.lstrip("-* "), ended=ended)
        return [el("p", ui.link(path, ui.memory_text(title))), el("p", words, dir="auto")]

    rows = ui.rows(map(row, mentions)) if mentions else ui.empty(t("item.cited_by_none"))
    return ui.section(t("item.cited_by"), rows)


def _replaced_statements(older: Sequence[Atom], undo: Element | None) -> Iterator[Element]:
    if older:
        yield ui.section(t("item.supersedes"), ui.rows(map(ui.statement_row, older)), undo)


def _history(fact: Fact | None, facts: Sequence[Fact]) -> Iterator[Element]:
    """Yield the earlier and current values of a fact, if any of them has ended."""
    values = [value for value in facts if fact and value.relation == fact.relation]
    if fact is None or all(value.valid_to is None for value in values):
        return
    entity, relation = remove_hidden(fact.entity), remove_hidden(fact.relation)
    head = (t("item.value"), t("item.true_since"), t("item.true_until"), t("item.whose"), t("item.statement_column"))
    lines = (
        (
            ui.memory_text(value.value),
            t("item.never") if was_never_true(value) else ui.moment(value.valid_from, day=True),
            _history_end(value),
            SAID_BY[value.source],
            ui.link(f"/{value.atom}", value.atom, class_="id"),
        )
        for value in values
    )
    caption = t("item.history_of", relation=relation, entity=entity)
    more = ui.link(f"/entity/{ui.part(fact.entity)}", ui.memory_text(fact.entity))
    yield ui.section(t("item.history"), ui.table(caption, head, lines), beside=more, id="history")


def _history_end(fact: Fact) -> Element | str | None:
    if fact.valid_to is None:
        return t("shared.now")
    return None if was_never_true(fact) else ui.moment(fact.valid_to, day=True)


def _to_actions(view: View, atom: Atom) -> Element | None:
    links = [
        el("a", t("item.correct"), href="#correct") if view.may("write") else None,
        ui.link("/forget", t("item.forget_it"), ids=atom.id) if view.may("admin") else None,
    ]
    return ui.line(links) if any(links) else None


def _forget_link(view: View, id: str) -> Iterator[Element]:
    if view.may("admin"):
        yield el("p", ui.link("/forget", t("item.forget_it"), ids=id))


# --- a turn -----------------------------------------------------------------------------------------
async def turn(view: View) -> Page:
    """Show a turn between its neighbours, and the statements based on it. Raises NotFound for an unknown id."""
    memory, id = view.memory, view.parts["id"]
    shown = next(iter(await memory.turns([id])), None)
    if shown is None:
        raise NotFound(t("item.no_turn", id=id))
    atoms = await memory.statements_about(id)
    chosen = next((atom for atom in atoms if atom.id == view.query.get("for")), None)
    start = max(0, shown.position - _AROUND)
    near = await memory.session_turns(shown.session, start=start, limit=2 * _AROUND + 1)
    before = [neighbour for neighbour in near if neighbour.position < shown.position]
    after = [neighbour for neighbour in near if neighbour.position > shown.position][:_AROUND]
    reasons = await memory.why_held([id])
    return Page(
        title=t("item.turn", id=id),
        here="conversations",
        body=ui.body(
            *_doubt_note(view, id, reasons.get(id, ()), note=t("item.quarantined")),
            ui.section(
                t("item.words"),
                ui.rows(map(_neighbour, before)) if before else None,
                *_turn_window(
                    view, shown, [span for atom in ([chosen] if chosen else atoms) for span in _spans(atom, id)]
                ),
                ui.note(t("item.for", id=chosen.id), " ", ui.link(f"/{id}", t("item.for_all"))) if chosen else None,
                ui.rows(map(_neighbour, after)) if after else None,
            ),
            _turn_facts(shown, is_intact=await memory.is_intact(id)),
            ui.section(t("item.made"), *_statements_from(shown, atoms[:_MAX_STATEMENTS])),
            *_cites(await memory.cites(id)),
            *_forget_link(view, id),
        ),
    )


def _neighbour(turn: Turn) -> Element:
    cut = turn.content[:_NEIGHBOUR_CHARS] + "…" if len(turn.content) > _NEIGHBOUR_CHARS else turn.content
    return ui.turn_row(replace(turn, content=cut))


def _turn_window(view: View, turn: Turn, spans: Sequence[tuple[int, int]]) -> Iterator[Element]:
    """Yield the turn, or a window of a long turn, with the quoted words marked."""
    asked = view.query.get("from", "")
    start = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else _first_window(view, spans)
    shown = replace(turn, content=turn.content[start : start + _WINDOW])
    yield ui.card(ui.turn_row(shown, [(begin - start, end - start) for begin, end in spans]), tag="div")
    size = len(turn.content)
    if size > _WINDOW or start:
        first, last = start + 1, min(size, start + _WINDOW)
        links = [
            _part_link(view, turn, "item.earlier", max(0, start - _WINDOW)) if start else None,
            el("span", t("item.window", first=f"{first:,}", last=f"{last:,}", size=f"{size:,}")),
            _part_link(view, turn, "item.later", last) if last < size else None,
        ]
        yield el("nav", links, class_="pager", aria_label=t("item.windows"))


def _first_window(view: View, spans: Sequence[tuple[int, int]]) -> int:
    """Return the start of the first window shown: the window of the requested quote, else 0."""
    return min(spans)[0] // _WINDOW * _WINDOW if spans and view.query.get("for") else 0


def _part_link(view: View, turn: Turn, word: str, start: int) -> Element:
    return ui.link(f"/{turn.id}", t(word), **{"from": str(start), "for": view.query.get("for")})


def _spans(atom: Atom, turn: str) -> list[tuple[int, int]]:
    """Return the spans of a turn that a statement is based on."""
    first = [atom.span] if atom.evidence == turn else []
    return [*first, *(place.span for place in atom.also if place.turn == turn)]


def _turn_facts(turn: Turn, *, is_intact: bool) -> Element:
    verdict = ui.badge(t("item.intact"), "ok") if is_intact else ui.badge(t("item.changed"), "bad")
    session = ui.link(
        f"/session/{ui.part(turn.session)}", ui.memory_text(turn.session), start=max(0, turn.position - _AROUND) or None
    )
    return ui.labelled_values(
        (
            (t("item.who"), ui.speaker(turn)),
            (t("item.said"), ui.moment(turn.said_at)),
            (t("item.stored"), ui.moment(turn.learned_at)),
            (t("item.session"), session),
            (t("item.place"), ui.count(turn.position + 1)),
            (t("item.hash"), [el("code", turn.sha256), " ", verdict]),
        )
    )


def _statements_from(turn: Turn, atoms: Sequence[Atom]) -> Iterator[Element]:
    if not atoms:
        yield ui.empty(t("item.made_none"))
        return
    yield ui.rows(
        [
            ui.statement_row(atom),
            *(
                el("blockquote", ui.mark_spans(turn.content, spans, around=60), dir="auto")
                for spans in _group_spans(_spans(atom, turn.id))
            ),
        ]
        for atom in atoms
    )


def _cites(results: Sequence[CitedResult]) -> Iterator[Element]:
    if results:
        yield ui.section(t("item.cites"), map(_cited_result, results))
