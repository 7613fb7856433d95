"""Item: a statement with its evidence and history, a turn with the statements based on it; tombstones: `forgetting`.

A claim is followed by the words that it is based on, marked in the turn in which they were said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line, remove_hidden
from mcp_memory.core.types import EXTRACTED, SAID_BY, Atom, CitedResult, Evidence, Fact, Mention, ResultHit, Turn, Why
from mcp_memory.longterm.verification.trust import REASONS
from mcp_memory.store.citations import address as at_lines
from mcp_memory.ui import components as ui
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.markdown import inline
from mcp_memory.ui.pages import correcting
from mcp_memory.ui.pages.correcting import was_never_true
from mcp_memory.ui.views import Page, View
from mcp_memory.ui.words import t

_AROUND = 3
_MADE = 50
_BESIDE = 800  # characters of a neighbour
_WINDOW = 20_000  # characters of a turn
_FAR = 600  # characters between quotes that are shown apart


# --- a statement ------------------------------------------------------------------------------------


async def statement(view: View) -> Page:
    """Show a statement, the words it is based on, the pages that cite it, and its older and newer versions."""
    memory, id = view.memory, view.parts["id"]
    atom = await memory.atom(id)
    why = await memory.why(id)
    evidence = [Evidence(turn=atom.evidence, span=atom.span, quote=""), *atom.also]
    turns = {one.turn.id: one.turn for one in why.quotes if one.turn}
    fact = next((one.fact for one in (atom, *why.replaces) if one.fact), None)
    facts = correcting.without_repeated(await memory.facts_about(fact.entity)) if fact else []
    newer = why.replaced_by[:1]
    return Page(
        title=t("item.statement", id=id),
        here="memory",
        body=ui.body(
            ui.words_of(atom.text, tag="p", class_="said"),
            *_quarantined(view, atom.id, atom.held),
            *_questioned(view, atom.id, atom.doubts, note=t("item.doubted")),
            *_ended(atom, newer, [await correcting.undo(view, one, [atom]) for one in newer]),
            _to_actions(view, atom),
            ui.section(t("item.based_on"), *_quotes(id, evidence, list(turns.values())), id="evidence"),
            _about(atom, list(turns.values())),
            _support(why),
            _named_by(why.mentions, ended={id: atom.superseded_by} if atom.valid_to else {}),
            *_replaced(why.replaces, await correcting.undo(view, atom, why.replaces)),
            *_history(fact, facts),
            *correcting.correct(view, atom),
        ),
    )


def _about(atom: Atom, quoted: Sequence[Turn]) -> Element:
    fact = atom.fact
    adds = atom.source == "assistant" and any(turn.role == "user" for turn in quoted)
    entities = ui.gap(ui.link(f"/entity/{ui.part(name)}", ui.words_of(name), class_="entity") for name in atom.entities)
    return ui.facts_of(
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
            (t("item.fact"), ui.words_of(f"{fact.entity} · {fact.relation} · {fact.value}") if fact else None),
        )
    )


def _quarantined(view: View, id: str, reasons: Sequence[str]) -> Iterator[Element]:
    yield from _questioned(view, id, reasons, note=t("item.quarantined"))


def _questioned(view: View, id: str, reasons: Sequence[str], *, note: str) -> Iterator[Element]:
    """Yield a note with the reasons against a row, and the two decisions about it."""
    if reasons:
        yield ui.note(note, " ", _reasons(reasons), kind="warn")
        buttons = [
            ui.action(view, "review", t("item.release"), ids=id, verdict="released", back=f"/{id}"),
            ui.action(view, "review", t("item.keep"), ids=id, verdict="kept", back=f"/{id}"),
        ]
        if any(buttons):
            yield ui.gap(buttons)


def _reasons(reasons: Iterable[str]) -> str:
    return remove_hidden("; ".join(REASONS.get(reason, reason) for reason in reasons))


def _ended(atom: Atom, newer: Sequence[Atom], undo: Sequence[Element | None]) -> Iterator[Element]:
    if atom.valid_to is None:
        return
    because = [t("item.ended_because"), " ", ui.words_of(atom.closed_because)] if atom.closed_because else None
    yield ui.note(t("item.never_true") if was_never_true(atom) else because or t("item.ended"), kind="warn")
    if newer:
        yield ui.section(t("item.superseded"), ui.rows(map(ui.statement_row, newer)), undo)


def _quotes(id: str, evidence: Sequence[Evidence], turns: Sequence[Turn]) -> Iterator[Element]:
    """Yield each turn that is evidence, with all words in it that are quoted marked."""
    for turn in turns:
        for spans in _together(one.span for one in evidence if one.turn == turn.id):
            yield ui.quoted(turn, spans, of=id)
    if {one.turn for one in evidence} - {turn.id for turn in turns}:
        yield ui.note(t("item.evidence_gone"), kind="warn")


def _together(spans: Iterable[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return spans in groups that are near enough to be shown with the words between them."""
    groups: list[list[tuple[int, int]]] = []
    for span in sorted(spans):
        if groups and span[0] - groups[-1][-1][1] <= _FAR:
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _support(found: Why) -> Element:
    if found.cites:
        return ui.section(t("item.result"), map(_cited, found.cites))
    if found.likely:
        return ui.section(t("item.result"), el("p", t("item.result_likely")), map(result_row, found.likely))
    return ui.section(t("item.result"), ui.empty(t("item.result_none")))


def _cited(one: CitedResult) -> Element:
    by = [" · ", t("item.named_by"), " ", ui.link(f"/{one.by}", one.by)]
    return _lines(one.at, one.call, one.content, one.node, ui.moment(one.taken), by)


def result_row(hit: ResultHit, *more: Any) -> Element:
    """Return lines of a tool result as evidence, with the call that they are of."""
    return _lines(at_lines(hit.ref, hit.lines), hit.call, hit.text, hit.node, ui.moment(hit.at), more)


def _lines(at: str, call: str, text: str, node: str | None, taken: Element, more: Any) -> Element:
    return el(
        "figure",
        el("pre", el("code", remove_hidden(text)), tabindex="0"),
        el(
            "figcaption",
            inline(at),
            " · ",
            ui.words_of(one_line(call, 200), tag="code"),
            [" · ", ui.link(f"/{node}", node)] if node else None,
            " · ",
            taken,
            more,
        ),
        class_="code",
    )


def _named_by(found: Sequence[Mention], *, ended: Mapping[str, str | None]) -> Element:
    def row(one: Mention) -> list[Node]:
        path = "/persona" if one.slug is None else f"/scene/{ui.part(one.slug)}"
        title = t("persona.title") if one.slug is None else one.title
        words = inline(one.line.lstrip("-* "), ended=ended)
        return [el("p", ui.link(path, ui.words_of(title))), el("p", words, dir="auto")]

    rows = ui.rows(map(row, found)) if found else ui.empty(t("item.cited_by_none"))
    return ui.section(t("item.cited_by"), rows)


def _replaced(older: Sequence[Atom], undo: Element | None) -> Iterator[Element]:
    if older:
        yield ui.section(t("item.supersedes"), ui.rows(map(ui.statement_row, older)), undo)


def _history(fact: Fact | None, facts: Sequence[Fact]) -> Iterator[Element]:
    """Yield the values that a fact had, where one of them has ended."""
    known = [one for one in facts if fact and one.relation == fact.relation]
    if fact is None or all(one.valid_to is None for one in known):
        return
    entity, relation = remove_hidden(fact.entity), remove_hidden(fact.relation)
    head = (t("item.value"), t("item.true_since"), t("item.true_until"), t("item.whose"), t("item.statement_column"))
    lines = (
        (
            ui.words_of(one.value),
            t("item.never") if was_never_true(one) else ui.moment(one.valid_from, day=True),
            _history_end(one),
            SAID_BY[one.source],
            ui.link(f"/{one.atom}", one.atom, class_="id"),
        )
        for one in known
    )
    caption = t("item.history_of", relation=relation, entity=entity)
    more = ui.link(f"/entity/{ui.part(fact.entity)}", ui.words_of(fact.entity))
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
    return ui.gap(links) if any(links) else None


def _forget_link(view: View, id: str) -> Iterator[Element]:
    if view.may("admin"):
        yield el("p", ui.link("/forget", t("item.forget_it"), ids=id))


# --- a turn -----------------------------------------------------------------------------------------


async def turn(view: View) -> Page:
    """The words as they were said, between those before and after, and the statements that are based on them."""
    memory, id = view.memory, view.parts["id"]
    found = next(iter(await memory.turns([id])), None)
    if found is None:
        raise NotFound(t("item.no_turn", id=id))
    atoms = await memory.statements_about(id)
    chosen = next((atom for atom in atoms if atom.id == view.query.get("for")), None)
    start = max(0, found.position - _AROUND)
    near = await memory.session_turns(found.session, start=start, limit=2 * _AROUND + 1)
    before = [one for one in near if one.position < found.position]
    after = [one for one in near if one.position > found.position][:_AROUND]
    held = await memory.why_held([id])
    return Page(
        title=t("item.turn", id=id),
        here="conversations",
        body=ui.body(
            *_quarantined(view, id, held.get(id, ())),
            ui.section(
                t("item.words"),
                ui.rows(map(_neighbour, before)) if before else None,
                *_words(view, found, [span for atom in ([chosen] if chosen else atoms) for span in _spans(atom, id)]),
                ui.note(t("item.for", id=chosen.id), " ", ui.link(f"/{id}", t("item.for_all"))) if chosen else None,
                ui.rows(map(_neighbour, after)) if after else None,
            ),
            _turn_facts(found, is_intact=await memory.is_intact(id)),
            ui.section(t("item.made"), *_made(found, atoms[:_MADE])),
            *_cites(await memory.cites(id)),
            *_forget_link(view, id),
        ),
    )


def _neighbour(turn: Turn) -> Element:
    cut = turn.content[:_BESIDE] + "…" if len(turn.content) > _BESIDE else turn.content
    return ui.turn_row(replace(turn, content=cut))


def _words(view: View, found: Turn, spans: Sequence[tuple[int, int]]) -> Iterator[Element]:
    """Yield the turn, or a window of it if it is long, with the quoted words marked."""
    asked = view.query.get("from", "")
    start = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else _first_window(view, spans)
    shown = replace(found, content=found.content[start : start + _WINDOW])
    yield ui.card(ui.turn_row(shown, [(begin - start, end - start) for begin, end in spans]), tag="div")
    size = len(found.content)
    if size > _WINDOW or start:
        first, last = start + 1, min(size, start + _WINDOW)
        links = [
            _part_link(view, found, "item.earlier", max(0, start - _WINDOW)) if start else None,
            el("span", t("item.window", first=f"{first:,}", last=f"{last:,}", size=f"{size:,}")),
            _part_link(view, found, "item.later", last) if last < size else None,
        ]
        yield el("nav", links, class_="pager", aria_label=t("item.windows"))


def _first_window(view: View, spans: Sequence[tuple[int, int]]) -> int:
    """Return where the window begins that is shown first: of words that were asked for, the one that has them."""
    return min(spans)[0] // _WINDOW * _WINDOW if spans and view.query.get("for") else 0


def _part_link(view: View, found: Turn, word: str, start: int) -> Element:
    return ui.link(f"/{found.id}", t(word), **{"from": str(start), "for": view.query.get("for")})


def _spans(atom: Atom, turn: str) -> list[tuple[int, int]]:
    """Return which words of a turn a statement is based on."""
    first = [atom.span] if atom.evidence == turn else []
    return [*first, *(one.span for one in atom.also if one.turn == turn)]


def _turn_facts(found: Turn, *, is_intact: bool) -> Element:
    verdict = ui.badge(t("item.intact"), "ok") if is_intact else ui.badge(t("item.changed"), "bad")
    session = ui.link(
        f"/session/{ui.part(found.session)}", ui.words_of(found.session), start=max(0, found.position - _AROUND) or None
    )
    return ui.facts_of(
        (
            (t("item.who"), ui.speaker(found)),
            (t("item.said"), ui.moment(found.said_at)),
            (t("item.stored"), ui.moment(found.learned_at)),
            (t("item.session"), session),
            (t("item.place"), ui.count(found.position + 1)),
            (t("item.hash"), [el("code", found.sha256), " ", verdict]),
        )
    )


def _made(found: Turn, atoms: Sequence[Atom]) -> Iterator[Element]:
    if not atoms:
        yield ui.empty(t("item.made_none"))
        return
    yield ui.rows(
        [
            ui.statement_row(atom),
            *(
                el("blockquote", ui.marked(found.content, spans, around=60), dir="auto")
                for spans in _together(_spans(atom, found.id))
            ),
        ]
        for atom in atoms
    )


def _cites(found: Sequence[CitedResult]) -> Iterator[Element]:
    if found:
        yield ui.section(t("item.cites"), map(_cited, found))
