"""Item: a statement with its evidence, history and correction form; a turn with the statements based on it.

A claim is followed by the words it is based on, marked in their turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

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


def correction_form(view: View, atom: Atom) -> Iterator[Element]:
    """Yield the form that corrects a statement, if the reader has the right."""
    value = _value(atom.fact, atom.fact.value) if atom.fact else None
    kind = "promise" if atom.label == "promise" else atom.kind
    form = _form(view, atom, text=atom.text, kind=kind, when="never", day="", value=value)
    if form:
        yield ui.section(
            "Correct it",
            el("p", "Write what is true. The statement above ends and stays in the history. You can undo this."),
            form,
        )


def ask_value(view: View, atom: Atom, fact: Fact, *, text: str, kind: StatementKind, when: str, day: str) -> Page:
    """Return the correction form again, with a field for the new value of the statement's fact.

    It is shown if the corrected text does not contain the old value.
    """
    form = _form(view, atom, text=text, kind=kind, when=when, day=day, value=_value(fact, ""), has_asked=True)
    question = (
        f"The memory also keeps this fact: {remove_hidden(f'{fact.entity} · {fact.relation} · {fact.value}')}. "
        "Your text no longer names that value. "
        "Write the new value below, or leave it empty to end the fact."
    )
    return Page(title=f"Correct {atom.id}", here="memory", body=ui.body(ui.note(question, kind="warn"), form))


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
    times = [("never", "it was never true"), ("changed", "it was true, and changed")]
    return ui.form(
        view,
        "remember",
        el("textarea", remove_hidden(text), name="text", required=True, rows=3, dir="auto", id="correct",
           aria_label="What is true"),
        value,
        ui.hidden({"asked": 1} if has_asked else {}),
        ui.choice("What was wrong", "when", times, when),
        ui.input_field("Changed on", "valid_from", day, kind="date"),
        ui.kind_choice(kind),
        el("button", "Store the correction", class_="main"),
        needs="write",
        supersedes=atom.id,
        back=f"/{atom.id}",
    )  # fmt: skip


def _value(fact: Fact, value: str) -> Element:
    label = remove_hidden(f"{fact.entity} · {fact.relation}")
    return ui.input_field(f"Fact: {label}", "value", remove_hidden(value))


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
    return ui.undo_correction(view, correction.id)


CHANGED_LATER = "Changed later, see"
_QUARANTINED = "It waits for review, and is not recalled until then:"
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
        title=f"Statement {id}",
        here="memory",
        body=ui.body(
            ui.memory_text(atom.text, tag="p", class_="said"),
            *_doubt_note(view, atom.id, atom.held, note=_QUARANTINED),
            *_doubt_note(view, atom.id, atom.doubts, note="Compare it with its words:"),
            *_end_note(atom, newer, [await undo_button(view, quote, [atom]) for quote in newer]),
            _to_actions(view, atom),
            ui.section("Based on", *_quotes(id, evidence, list(turns.values())), id="evidence"),
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
            ("Kind", ui.kind_badge(atom.kind)),
            ("True since", None if was_never_true(atom) else ui.moment(atom.valid_from)),
            (
                "True until",
                None if was_never_true(atom) or not atom.valid_to else ui.moment(atom.valid_to),
            ),
            ("Learned", ui.moment(atom.learned_at)),
            ("Confidence", f"{atom.confidence:.0%}"),
            (
                "Whose word",
                "the assistant: a part of it stands only in what the assistant said" if adds else SAID_BY[atom.source],
            ),
            ("Origin", EXTRACTED if atom.is_sentence else None),
            ("About", entities if atom.entities else None),
            ("Fact", ui.memory_text(f"{fact.entity} · {fact.relation} · {fact.value}") if fact else None),
        )
    )


def _doubt_note(view: View, id: str, reasons: Sequence[str], *, note: str) -> Iterator[Element]:
    """Yield a note with the reasons to doubt a row, and buttons to release or keep it; nothing without reasons."""
    if reasons:
        yield ui.note(note, " ", _reasons(reasons), kind="warn")
        buttons = [
            ui.action(view, "review", "Release it", ids=id, verdict="released", back=f"/{id}"),
            ui.action(view, "review", "Keep it out", ids=id, verdict="kept", back=f"/{id}"),
        ]
        if any(buttons):
            yield ui.line(buttons)


def _reasons(reasons: Iterable[str]) -> str:
    return remove_hidden("; ".join(REASONS.get(reason, reason) for reason in reasons))


def _end_note(atom: Atom, newer: Sequence[Atom], undo: Sequence[Element | None]) -> Iterator[Element]:
    if atom.valid_to is None:
        return
    because = ["This no longer holds: ", ui.memory_text(atom.closed_because)] if atom.closed_because else None
    yield ui.note(
        "This was never true: it was corrected." if was_never_true(atom) else because or "This no longer holds.",
        kind="warn",
    )
    if newer:
        yield ui.section("What holds instead", ui.rows(map(ui.statement_row, newer)), undo)


def _quotes(id: str, evidence: Sequence[Evidence], turns: Sequence[Turn]) -> Iterator[Element]:
    """Yield each turn that is evidence, with all quoted words marked."""
    for turn in turns:
        for spans in _group_spans(place.span for place in evidence if place.turn == turn.id):
            yield ui.quote_turn(turn, spans, of=id)
    if {place.turn for place in evidence} - {turn.id for turn in turns}:
        yield ui.note("The words that it was based on were forgotten.", kind="warn")


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
        results = [_cited_result(result) for result in why.cites]
    elif why.likely:
        about = el("p", "It names no tool result. These were there before, and say the same:")
        results = [about, *map(result_row, why.likely)]
    else:
        results = [ui.empty("No tool result supports this statement.")]
    return ui.section("Tool results that support it", results)


def _cited_result(result: CitedResult) -> Element:
    by = [" · named by ", ui.link(f"/{result.by}", result.by)]
    return _lines(result.at, result.call, result.content, result.node, ui.moment(result.taken), by)


def result_row(hit: ResultHit, *more: Any) -> Element:
    """Return lines of a tool result or a file as evidence, with their call, and where the user contradicted them."""
    changed = [[f" · {CHANGED_LATER} ", ui.link(f"/{line.by}", line.by)] for line in hit.changed]
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
        title = "Persona" if mention.slug is None else mention.title
        words = inline(mention.line.lstrip("-* "), ended=ended)
        return [el("p", ui.link(path, ui.memory_text(title))), el("p", words, dir="auto")]

    rows = ui.rows(map(row, mentions)) if mentions else ui.empty("No scene and no line of the persona names it.")
    return ui.section("Named by", rows)


def _replaced_statements(older: Sequence[Atom], undo: Element | None) -> Iterator[Element]:
    if older:
        yield ui.section("Took the place of", ui.rows(map(ui.statement_row, older)), undo)


def _history(fact: Fact | None, facts: Sequence[Fact]) -> Iterator[Element]:
    """Yield the earlier and current values of a fact, if any of them has ended."""
    values = [value for value in facts if fact and value.relation == fact.relation]
    if fact is None or all(value.valid_to is None for value in values):
        return
    entity, relation = remove_hidden(fact.entity), remove_hidden(fact.relation)
    head = ("Value", "True since", "True until", "Whose word", "Statement")
    lines = (
        (
            ui.memory_text(value.value),
            "never" if was_never_true(value) else ui.moment(value.valid_from, day=True),
            _history_end(value),
            SAID_BY[value.source],
            ui.link(f"/{value.atom}", value.atom, class_="id"),
        )
        for value in values
    )
    caption = f"All values of {relation} of {entity}"
    more = ui.link(f"/entity/{ui.part(fact.entity)}", ui.memory_text(fact.entity))
    yield ui.section("History of this fact", ui.table(caption, head, lines), beside=more, id="history")


def _history_end(fact: Fact) -> Element | str | None:
    if fact.valid_to is None:
        return "now"
    return None if was_never_true(fact) else ui.moment(fact.valid_to, day=True)


def _to_actions(view: View, atom: Atom) -> Element | None:
    links = [
        el("a", "Correct it", href="#correct") if view.may("write") else None,
        ui.link("/forget", "Forget it …", ids=atom.id) if view.may("admin") else None,
    ]
    return ui.line(links) if any(links) else None


def _forget_link(view: View, id: str) -> Iterator[Element]:
    if view.may("admin"):
        yield el("p", ui.link("/forget", "Forget it …", ids=id))


# --- a turn -----------------------------------------------------------------------------------------
async def turn(view: View) -> Page:
    """Show a turn between its neighbours, and the statements based on it. Raises NotFound for an unknown id."""
    memory, id = view.memory, view.parts["id"]
    shown = next(iter(await memory.turns([id])), None)
    if shown is None:
        raise NotFound(f"There is no turn {id} in this space. Find one with a search.")
    atoms = await memory.statements_about(id)
    chosen = next((atom for atom in atoms if atom.id == view.query.get("for")), None)
    start = max(0, shown.position - _AROUND)
    near = await memory.session_turns(shown.session, start=start, limit=2 * _AROUND + 1)
    before = [neighbour for neighbour in near if neighbour.position < shown.position]
    after = [neighbour for neighbour in near if neighbour.position > shown.position][:_AROUND]
    reasons = await memory.why_held([id])
    return Page(
        title=f"Turn {id}",
        here="conversations",
        body=ui.body(
            *_doubt_note(view, id, reasons.get(id, ()), note=_QUARANTINED),
            ui.section(
                "The words",
                ui.rows(map(_neighbour, before)) if before else None,
                *_turn_window(
                    view, shown, [span for atom in ([chosen] if chosen else atoms) for span in _spans(atom, id)]
                ),
                ui.note(
                    f"Only the words that {chosen.id} is based on are marked. ",
                    ui.link(f"/{id}", "Mark all that statements are based on"),
                )
                if chosen
                else None,
                ui.rows(map(_neighbour, after)) if after else None,
            ),
            _turn_facts(shown, is_intact=await memory.is_intact(id)),
            ui.section("Statements based on it", *_statements_from(shown, atoms[:_MAX_STATEMENTS])),
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
            _part_link(view, turn, "Earlier", max(0, start - _WINDOW)) if start else None,
            el("span", f"Characters {first:,} to {last:,} of {size:,}"),
            _part_link(view, turn, "Later", last) if last < size else None,
        ]
        yield el("nav", links, class_="pager", aria_label="Parts of this turn")


def _first_window(view: View, spans: Sequence[tuple[int, int]]) -> int:
    """Return the start of the first window shown: the window of the requested quote, else 0."""
    return min(spans)[0] // _WINDOW * _WINDOW if spans and view.query.get("for") else 0


def _part_link(view: View, turn: Turn, label: str, start: int) -> Element:
    return ui.link(f"/{turn.id}", label, **{"from": str(start), "for": view.query.get("for")})


def _spans(atom: Atom, turn: str) -> list[tuple[int, int]]:
    """Return the spans of a turn that a statement is based on."""
    first = [atom.span] if atom.evidence == turn else []
    return [*first, *(place.span for place in atom.also if place.turn == turn)]


def _turn_facts(turn: Turn, *, is_intact: bool) -> Element:
    verdict = (
        ui.badge("the words match it", "ok")
        if is_intact
        else ui.badge("the words do not match it: they were changed outside this program", "bad")
    )
    session = ui.link(
        f"/session/{ui.part(turn.session)}", ui.memory_text(turn.session), start=max(0, turn.position - _AROUND) or None
    )
    return ui.labelled_values(
        (
            ("Said by", ui.speaker(turn)),
            ("Said", ui.moment(turn.said_at)),
            ("Stored", ui.moment(turn.learned_at)),
            ("Session", session),
            ("Place in it", ui.count(turn.position + 1)),
            ("Hash", [el("code", turn.sha256), " ", verdict]),
        )
    )


def _statements_from(turn: Turn, atoms: Sequence[Atom]) -> Iterator[Element]:
    if not atoms:
        yield ui.empty("No statement is based on this turn.")
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
        yield ui.section("Tool results that it names", map(_cited_result, results))
