"""Item: a statement, corrected in its place, with its evidence and history; a turn with the statements based on it.

A claim is followed by the words it is based on, marked in their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
    Turn,
    Why,
)
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.longterm.corrections import is_ending
from mcp_memory.longterm.names import USER
from mcp_memory.longterm.search.marking import marks_of
from mcp_memory.longterm.statements import MAX_CHARS
from mcp_memory.store.citations import address as at_lines
from mcp_memory.store.values import READ_BY_A_MODEL, STATED_AGAIN
from mcp_memory.ui import components as ui
from mcp_memory.ui import times
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.markdown import inline
from mcp_memory.ui.pages.recalls import feedback_part
from mcp_memory.ui.pages.review import WHY


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A correction as it was written, to be shown in its form again: `note` says why it is not stored yet.

    `is_never` means that the statement was never true, else it changed on `day` (`2026-11-30`, empty for today). If
    `asks_value`, the form asks for the new value of the statement's fact. `was` is the statement that it was written
    for, if another has replaced that meanwhile.
    """

    text: str
    note: str
    is_never: bool = False
    day: str = ""
    asks_value: bool = False
    was: Atom | None = None


def _correction(view: View, atom: Atom, draft: Correction | None) -> Element | None:
    """Return the form that corrects a statement, closed unless there is a draft; None if the reader lacks the right."""
    today = times.local(view.memory.now()).date()
    given = draft or Correction(text=ADDITION.sub("", atom.text), note="")
    value = None
    if given.asks_value and atom.fact:
        entity = "you" if atom.fact.entity == USER else atom.fact.entity
        value = ui.input_field(remove_hidden(f"{entity} · {ui.relation_words(atom.fact.relation)}"), "value", "")
    form = ui.form(
        view,
        "remember",
        ui.note(given.note, kind="warn") if given.note else None,
        _superseded_row(given.was, atom) if given.was else None,
        el("textarea", remove_hidden(given.text), name="text", required=True, rows=2, maxlength=MAX_CHARS, dir="auto",
           aria_label="What is true"),
        value,
        ui.hidden({"asked": 1} if value else {}),
        el(
            "fieldset",
            el("legend", "Was it wrong, or has it changed?"),
            ui.line(
                _choose_when("changed", "It has changed, on this day:", bool(draft) and not given.is_never),
                el("input", type="date", name="valid_from", value=given.day or today.isoformat(),
                   aria_label="Day of the change"),
                el("span", f"(today is {ui.weekday_text(today)})"),
            ),
            ui.line(_choose_when("never", "It was wrong all along, as with a slip of the pen", given.is_never)),
        ),
        _save_or_cancel(atom),
        needs="write",
        supersedes=atom.id if atom.valid_to is None else "",
        back=f"/{atom.id}",
    )  # fmt: skip
    return _act("Correct", form, id="correct", key="c", is_open=draft is not None)


def _choose_when(value: str, label: str, is_chosen: bool) -> Element:
    box = el("input", type="radio", name="when", value=value, checked=is_chosen, required=True)
    return el("label", box, " ", label)


def _ending(view: View, atom: Atom) -> Element | None:
    """Return the form that ends a statement without another in its place; None if the reader lacks the right."""
    today, first = times.local(view.memory.now()).date(), ui.day_of(atom.valid_from)
    day = el("input", type="date", name="on", value=today.isoformat(), min=first.isoformat(), max=today.isoformat())
    form = ui.form(
        view,
        "end",
        ui.line(
            el("label", "It ended on this day: ", day),
            el("span", f"(today is {ui.weekday_text(today)})"),
        ),
        el("p", "Agents are told that it is over. It stays in the history, and you can undo this."),
        _save_or_cancel(atom),
        id=atom.id,
        back=f"/{atom.id}",
    )  # fmt: skip
    return _act("It ended", form, id="ended", key="x")


def _save_or_cancel(atom: Atom) -> Element:
    return ui.line(el("button", "Save", class_="main"), ui.link(f"/{atom.id}", "Cancel"))


def _act(name: str, form: Element | None, *, id: str, key: str, is_open: bool = False) -> Element | None:
    return form and el("details", el("summary", name, data_key=key), form, id=id, open=is_open, name="act")


def _acts(view: View, atom: Atom, draft: Correction | None, *, undo: Any) -> Element | None:
    """Return what the reader may do with a statement; one with an end is only forgotten, unless there is a draft.

    `undo` is the button that undoes its end.
    """
    is_open = atom.valid_to is None
    acts = [
        _correction(view, atom, draft) if is_open or draft else None,
        _ending(view, atom) if is_open else None,
        *(undo or ()),
        ui.forget_link(view, atom.id),
    ]
    return el("div", acts, class_="acts") if any(acts) else None


def was_never_true(statement: Atom | Fact) -> bool:
    """Return whether a statement was corrected as never true; such a correction ends it at its own start or before."""
    return statement.valid_to is not None and statement.valid_to <= statement.valid_from


def is_retired(atom: Atom) -> bool:
    """Return whether a statement only gave way to another from the same words; nothing has changed for the user."""
    is_same = atom.closed_because in (READ_BY_A_MODEL, STATED_AGAIN)
    return atom.is_sentence and was_never_true(atom) and is_same


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
    if correction.superseded_by is not None or all(map(is_retired, replaced)):
        return None
    first = await view.memory.turns([correction.evidence])
    if not any(turn.role == "note" for turn in first):
        return None
    return ui.undo_correction(view, correction.id)


CHANGED_LATER = "changed later"
QUARANTINED = "It waits for review; no agent is told of it until then:"
_TITLE = 160  # characters of a statement as the title of its page
_MAX_OLD = 300  # characters of a statement beside the one that replaced it
_MAX_STATEMENTS = 50
_NEIGHBOUR_CHARS = 800  # characters of a neighbour
_WINDOW = 20_000  # characters of a turn
_MAX_GAP = 600  # characters between quotes; quotes farther apart are shown separately


# --- a statement ------------------------------------------------------------------------------------
async def statement(view: View) -> Page:
    """Show a statement, how it is corrected, its evidence, its versions, and where it is used.

    Raises NotFound for an unknown id.
    """
    return await show_statement(view, view.parts["id"])


async def show_statement(view: View, id: str, draft: Correction | None = None) -> Page:
    """Show a statement; with a `draft`, its form is open and has the draft. Raises NotFound for an unknown id."""
    memory = view.memory
    atom = await memory.atom(id)
    why = await memory.why(id)
    evidence = [Evidence(turn=atom.evidence, span=atom.span, quote=""), *atom.also]
    turns = {quote.turn.id: quote.turn for quote in why.quotes if quote.turn}
    titles = await memory.titles([turn.session for turn in turns.values() if turn.role != "note"])
    first = turns.get(atom.evidence)
    elsewhere = {session: title for session, title in titles.items() if first is None or session != first.session}
    fact = next((quote.fact for quote in (atom, *why.replaces) if quote.fact), None)
    facts = drop_repeated(await memory.facts_about(fact.entity)) if fact else []
    newer, before = why.replaced_by[:1], [old for old in why.replaces if old.text != atom.text]
    has_ended = any(map(is_ending, newer))  # with no other statement in its place
    undo = [await undo_button(view, quote, [atom]) for quote in newer]
    text = ADDITION.sub("", remove_hidden(atom.text))
    title = one_line(text, _TITLE)
    return Page(
        title=title,
        here="memory",
        body=ui.body(
            None if title == text else ui.memory_text(text, tag="p", class_="said"),
            _meta(atom, first, titles),
            *_doubt_note(view, atom.id, atom.held, note=QUARANTINED),
            *_doubt_note(view, atom.id, atom.doubts, note="Compare it with its words:"),
            _end_note(atom, newer),
            _acts(view, atom, draft, undo=undo if has_ended else None),
            None if has_ended else _changes("Now", newer, undo),
            _changes("Before", before, await undo_button(view, atom, why.replaces)),
            ui.section("Based on", *_quotes(atom, evidence, list(turns.values()), elsewhere), id="evidence"),
            _support(why),
            *_history(fact, facts),
            await feedback_part(view, id),
            _mentions(why.mentions, ended={id: atom.superseded_by} if atom.valid_to else {}),
            _details(atom, list(turns.values())),
        ),
    )


def _meta(atom: Atom, turn: Turn | None, titles: Mapping[str, str]) -> Element:
    """Return when a statement is true, who said it, where, and what it is about."""
    ended = [" – ", ui.moment(atom.valid_to, day=True)] if atom.valid_to else None
    when = None if was_never_true(atom) else el("span", ui.moment(atom.valid_from, day=True), ended)
    who = turn and turn.role != "note" and atom.source == "user" and ui.speaker(turn)
    title = turn and titles.get(turn.session)
    parts = (
        when,
        who or ui.name_of_source(atom.source) or "you",
        ui.conversation_link(turn, title) if turn and title else None,
        ui.rule_badge(atom),
        ui.entity_links(atom.entities),
    )
    return el("div", parts, class_="line about over" if atom.valid_to and not is_ending(atom) else "line about")


def _details(atom: Atom, quoted: Sequence[Turn]) -> Element:
    fact = atom.fact
    adds = atom.source == "assistant" and any(turn.role == "user" for turn in quoted)
    values = ui.labelled_values(
        (
            ("Kind", "a promise" if atom.label == "promise" else ui.KIND_NAMES[atom.kind]),
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
            ("Fact", ui.fact_words(fact) if fact else None),
            ("As it is stored", ui.memory_text(atom.text) if ADDITION.search(atom.text) else None),
            ("Number", el("span", atom.id, class_="id")),
        )
    )
    return el("details", el("summary", "Details"), values)


def _doubt_note(view: View, id: str, reasons: Sequence[str], *, note: str) -> Iterator[Element]:
    """Yield a note with the reasons to doubt a row, and buttons to release or keep it; nothing without reasons."""
    if reasons:
        yield ui.note(note, " ", " ".join(WHY.get(reason, reason) for reason in reasons), kind="warn")
        buttons = [
            ui.action(view, "review", "Keep out", key="q", kind="main", ids=id, verdict="kept", back=f"/{id}"),
            ui.action(view, "review", "Release", key="r", ids=id, verdict="released", back=f"/{id}"),
        ]
        if any(buttons):
            yield ui.line(buttons)


def _end_note(atom: Atom, newer: Sequence[Atom]) -> Element | None:
    if atom.valid_to is None or is_ending(atom):
        return None
    if any(map(is_ending, newer)):
        return ui.note("Ended ", ui.moment(atom.valid_to, day=True), kind="warn")
    because = ["No longer true: ", ui.memory_text(atom.closed_because)] if atom.closed_because else None
    since = ["No longer true since ", ui.moment(atom.valid_to, day=True), "."]
    if is_retired(atom):
        return ui.note("Another statement was made of these words since.")
    never = was_never_true(atom)
    return ui.note("This was never true: it was corrected." if never else because or since, kind="warn")


def _changes(title: str, others: Sequence[Atom], undo: Any) -> Element | None:
    """Return what replaced a statement, or what it replaced, and the button to undo; None if there is nothing."""
    return ui.section(title, ui.rows(map(ui.statement_row, others)), undo) if others else None


def _superseded_row(old: Atom, new: Atom) -> Element:
    """Return a statement and the one that replaced it."""

    def text(atom: Atom) -> Element:
        return ui.link(f"/{atom.id}", ui.statement_text(one_line(atom.text, _MAX_OLD)))

    return el(
        "div",
        el("p", el("del", text(old)), class_="said"),
        el("p", "→ ", text(new), " ", ui.moment(new.valid_from, day=True), class_="said"),
    )


def _quotes(
    atom: Atom, evidence: Sequence[Evidence], turns: Sequence[Turn], titles: Mapping[str, str]
) -> Iterator[Element]:
    """Yield each turn that is evidence, with all quoted words marked."""
    for turn in turns:
        if turn.role == "note" and turn.content == atom.text:
            yield el("p", _how_stated(turn), " ", ui.moment(turn.said_at), class_="quote")
            continue
        for spans in _group_spans(place.span for place in evidence if place.turn == turn.id):
            yield ui.quote_turn(turn, spans, of=atom.id, title=titles.get(turn.session))
    if {place.turn for place in evidence} - {turn.id for turn in turns}:
        yield ui.note("The words that it was based on were forgotten.", kind="warn")


def _how_stated(note: Turn) -> str:
    return "You typed this here," if note.session == ui.TYPED_HERE else "Stored in these words, in no conversation,"


def _group_spans(spans: Iterable[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return spans in groups that are close enough to be shown with the words between them."""
    groups: list[list[tuple[int, int]]] = []
    for span in sorted(spans):
        if groups and span[0] - groups[-1][-1][1] <= _MAX_GAP:
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _support(why: Why) -> Element | None:
    if why.cites:
        return ui.section("Tool results that support it", map(_cited_result, why.cites))
    if why.likely:
        return ui.section("Tool results from before that say the same", map(result_row, why.likely))
    return None


def _cited_result(result: CitedResult) -> Element:
    by = ui.link(f"/{result.by}", "where it is named")
    return _lines(result.at, result.call, result.content, result.node, ui.moment(result.taken), by)


def result_row(hit: ResultHit, *more: Any) -> Element:
    """Return lines of a tool result or a file as evidence, with their call, and where the user contradicted them."""
    changed = [ui.link(f"/{line.by}", CHANGED_LATER) for line in hit.changed]
    return _lines(at_lines(hit.ref, hit.lines), hit.call, hit.text, hit.node, ui.moment(hit.at), [*changed, *more])


def _lines(at: str, call: str, text: str, node: str | None, taken: Element, more: Any) -> Element:
    return el(
        "figure",
        el("pre", el("code", remove_hidden(text)), tabindex="0"),
        el(
            "figcaption",
            inline(at),
            ui.memory_text(one_line(call, 200), tag="code"),
            ui.link(f"/{node}", "the step") if node else None,
            taken,
            more,
            class_="line",
        ),
        class_="code",
    )


def _mentions(mentions: Sequence[Mention], *, ended: Mapping[str, str | None]) -> Element | None:
    rows = [mention_row(mention, ended=ended) for mention in mentions]
    return ui.section("Used in", ui.rows(rows)) if rows else None


def mention_row(mention: Mention, *, ended: Mapping[str, str | None] | None = None) -> list[Node]:
    """Return a line of the page about the user or of a topic, below a link to the page."""
    path, title = (
        ("/persona", "About you") if mention.slug is None else (f"/scene/{ui.part(mention.slug)}", mention.title)
    )
    words = inline(mention.line.lstrip("-* "), ended=ended)
    return [el("p", ui.link(path, ui.memory_text(title))), el("p", words, dir="auto")]


def _history(fact: Fact | None, facts: Sequence[Fact]) -> Iterator[Element]:
    """Yield the earlier and current values of a fact, if any of them has ended."""
    values = [value for value in facts if fact and value.relation == fact.relation]
    if fact is None or all(value.valid_to is None for value in values):
        return
    entity = "you" if fact.entity == USER else remove_hidden(fact.entity)
    head = ("Value", "True since", "True until", "Whose word", "Statement")
    lines = (
        (
            ui.memory_text(value.value),
            "never" if was_never_true(value) else ui.moment(value.valid_from, day=True),
            _history_end(value),
            SAID_BY[value.source],
            ui.link(f"/{value.atom}", "open"),
        )
        for value in values
    )
    caption = f"{entity}: {ui.relation_words(fact.relation)}"
    more = ui.link(f"/entity/{ui.part(fact.entity)}", ui.memory_text(entity))
    yield ui.section("History", ui.table(caption, head, lines), beside=more, id="history")


def _history_end(fact: Fact) -> Element | str | None:
    if fact.valid_to is None:
        return "now"
    return None if was_never_true(fact) else ui.moment(fact.valid_to, day=True)


# --- a turn -----------------------------------------------------------------------------------------
async def turn(view: View) -> Page:
    """Show a turn between its neighbours, and the statements based on it. Raises NotFound for an unknown id.

    `q` is a search whose words are marked.
    """
    memory, id = view.memory, view.parts["id"]
    shown = next(iter(await memory.turns([id])), None)
    if shown is None:
        raise ui.no_item(id)
    atoms = (await memory.statements_about([id]))[id]
    known = [atom for atom in atoms if not is_retired(atom)][:_MAX_STATEMENTS]
    chosen = next((atom for atom in atoms if atom.id == view.query.get("for")), None)
    around = 0 if shown.role == "note" else ui.TURNS_AROUND  # a note is in no conversation
    start = max(0, shown.position - around)
    near = await memory.session_turns(shown.session, start=start, limit=2 * around + 1)
    before = [neighbour for neighbour in near if neighbour.position < shown.position]
    after = [neighbour for neighbour in near if neighbour.position > shown.position][: ui.TURNS_AROUND]
    reasons = await memory.why_held([id])
    title = (await memory.titles([shown.session])).get(shown.session)
    source = [span for atom in ([chosen] if chosen else atoms) for span in _spans(atom, id)]
    marks = marks_of(view.query.get("q", ""))
    return Page(
        title=remove_hidden(title) if title else "A message",
        here="conversations",
        body=ui.body(
            el("p", _how_stated(shown), " ", ui.moment(shown.said_at))
            if shown.role == "note"
            else ui.line(ui.conversation_link(shown, "The whole conversation")),
            *_doubt_note(view, id, reasons.get(id, ()), note=QUARANTINED),
            ui.section(
                None,
                ui.rows(_neighbour(turn, marks) for turn in before) if before else None,
                *_turn_window(view, shown, marks(shown.content), source),
                _only_marked(chosen, id) if chosen else None,
                ui.rows(_neighbour(turn, marks) for turn in after) if after else None,
            ),
            ui.section("Learned from it", ui.rows(map(ui.statement_row, known))) if known else None,
            await feedback_part(view, id),
            *_cites(await memory.cites(id)),
            _turn_facts(shown, is_intact=await memory.is_intact(id)),
            el("div", forget, class_="acts") if (forget := ui.forget_link(view, id)) else None,
        ),
    )


def _only_marked(atom: Atom, turn: str) -> Element:
    said = ui.link(f"/{atom.id}", ui.memory_text(one_line(atom.text, _TITLE)))
    return ui.note("Marked are the words behind “", said, "”. ", ui.link(f"/{turn}", "Mark all that was learned"))


def _neighbour(turn: Turn, marks: Callable[[str], Sequence[tuple[int, int]]]) -> Element:
    cut = turn.content[:_NEIGHBOUR_CHARS] + "…" if len(turn.content) > _NEIGHBOUR_CHARS else turn.content
    return ui.turn_row(replace(turn, content=cut), marks(cut))


def _turn_window(
    view: View, turn: Turn, words: Sequence[tuple[int, int]], source: Sequence[tuple[int, int]]
) -> Iterator[Element]:
    """Yield the turn, or a window of a long turn, with the searched and the quoted words marked."""
    asked = view.query.get("from", "")
    start = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else _first_window(view, words, source)
    shown = replace(turn, content=turn.content[start : start + _WINDOW])
    searched, quoted = ([(begin - start, end - start) for begin, end in spans] for spans in (words, source))
    yield ui.card(ui.turn_row(shown, searched, source=quoted), tag="div")
    size = len(turn.content)
    if size > _WINDOW or start:
        first, last = start + 1, min(size, start + _WINDOW)
        links = [
            _part_link(view, turn, "Earlier", max(0, start - _WINDOW)) if start else None,
            el("span", f"Characters {first:,} to {last:,} of {size:,}"),
            _part_link(view, turn, "Later", last) if last < size else None,
        ]
        yield el("nav", links, class_="pager", aria_label="Parts of this turn")


def _first_window(view: View, words: Sequence[tuple[int, int]], source: Sequence[tuple[int, int]]) -> int:
    """Return the start of the first window shown: that of the searched words or of the requested quote, else 0."""
    spans = words or (source if view.query.get("for") else ())
    return min(spans)[0] // _WINDOW * _WINDOW if spans else 0


def _part_link(view: View, turn: Turn, label: str, start: int) -> Element:
    return ui.link(
        f"/{turn.id}", label, **{"from": str(start)}, **{name: view.query.get(name) for name in ("for", "q")}
    )


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
    values = ui.labelled_values(
        (
            ("Said by", ui.speaker(turn)),
            ("Said", ui.moment(turn.said_at)),
            ("Stored", ui.moment(turn.learned_at)),
            ("Conversation", None if turn.role == "note" else ui.memory_text(turn.session)),
            ("Place in it", None if turn.role == "note" else ui.count(turn.position + 1)),
            ("Hash", [el("code", turn.sha256), " ", verdict]),
            ("Number", el("span", turn.id, class_="id")),
        )
    )
    return el("details", el("summary", "Details"), values, open=not is_intact)


def _cites(results: Sequence[CitedResult]) -> Iterator[Element]:
    if results:
        yield ui.section("Tool results that it names", map(_cited_result, results))
