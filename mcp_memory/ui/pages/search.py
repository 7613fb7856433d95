"""Search: the hits and why they match, the rows that just missed, and the result of recall for the same query.

Without a layer, the first hits are explained; with a layer, all hits are listed, page by page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

import anyio

from mcp_memory.core.errors import InvalidInput, McpMemoryError, NotFound
from mcp_memory.core.text import one_line, plural, remove_hidden
from mcp_memory.core.types import (
    AtomHit,
    Known,
    MemoryResults,
    ResultHit,
    Role,
    SceneHit,
    Signals,
    TurnHit,
    TurnResults,
)
from mcp_memory.language.snippet import matches, snippet
from mcp_memory.language.words import query_terms
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.markdown import inline
from mcp_memory.ui.pages.item import CHANGED_LATER, result_row
from mcp_memory.ui.pages.memory import KINDS
from mcp_memory.ui.pictures import charts

if TYPE_CHECKING:
    from mcp_memory.longterm.recall.blocks import RowVerdict
    from mcp_memory.longterm.search.explain import Explained, ExplainedRow, SearchLeg


_ROLES = get_args(Role)
_ID = re.compile(r"[atx][1-9]\d{0,17}|r-[0-9a-f]{12}|\d{3,9}(?:-[NF]\d{1,9}(?:-\d{1,9})?)?", re.ASCII)
_LAYERS = {
    "": "everything, explained",
    "memories": "statements and scenes",
    "turns": "turns",
    "recall": "what recall would bring",
}
_OF_MEMORIES, _OF_TURNS, _OF_BOTH = ("kind", "entity", "as_of"), ("session", "role"), ("since", "until")
_LIMIT = 20
_EXPLAINED = 10
_BESIDE = 5
_EXCERPT = 600
_SIGNALS = 3
_EXAMPLES = (
    ("Words, names and numbers as they were said:", "night boat Hellesund"),
    ("A question; the meaning counts too:", "who looks after bookings?"),
    ("A time in the question or as a filter:", "what did we decide last week?"),
    ("A booking number, an error message, a line of a tool result:", "TRF-90457"),
    ("An id opens its page:", "a1"),
)
_SIGNAL_NAMES = {
    "words": "words",
    "context": "words around it",
    "context_short": "short, words around it",
    "related": "related words",
    "meaning": "meaning",
    "beside": "beside what means it",
    "reply": "answers a question",
    "tells": "states something",
    "speaker": "speaker asked for",
    "time": "time asked for",
}
_LEGS = {"atom": "Statements", "turn": "Turns"}
_KNOWN: Mapping[Known, str] = {
    "likely": "The memory likely knows about this.",
    "unsure": "The memory perhaps knows about this.",
    "unlikely": "The memory may not know about this.",
}
_NOTHING = "Nothing found. Try other words, or fewer filters."


async def search(view: View) -> Page:
    """Show the hits of a query with the share of each signal; without a query, show examples."""
    query = view.query.get("q", "").strip()
    filters = {name: value for name, value in view.query.items() if value.strip()}
    layer = _layer(filters)
    if not query:
        return Page(title="Search", body=(_form(view, query, layer), _examples()))
    body: list[Any] = [_form(view, query, layer)]
    if _ID.fullmatch(query):
        body.append(el("p", ui.link(f"/{query}", f"Open {query}")))
    try:
        match layer:
            case "memories":
                body += await _memories(view, query, filters)
            case "turns":
                body += await _turns(view, query, filters)
            case "recall":
                body += await _recall_result(view, query)
            case _:
                body += await _explained_hits(view, query, filters)
    except (InvalidInput, NotFound) as wrong:
        body.append(ui.note(remove_hidden(str(wrong)), kind="bad"))
    title = f"Search: {remove_hidden(one_line(query, 60))}"
    return Page(title=title, body=ui.body(*body))


def _layer(filters: Mapping[str, str]) -> str:
    """Return the layer to search: the chosen layer, else the layer that has the given filters."""
    chosen = filters.get("in", "")
    if chosen and chosen in _LAYERS:
        return chosen
    if any(name in filters for name in _OF_TURNS):
        return "turns"
    return "memories" if "as_of" in filters else ""


# --- asking -----------------------------------------------------------------------------------------


def _form(view: View, query: str, layer: str) -> Element:
    asked = view.query
    roles = [("", "anyone"), *ui.ROLE_NAMES.items()]
    filters = [
        ui.choice("In", "in", _LAYERS.items(), layer),
        *ui.statement_filters(asked),
        ui.input_field("Session", "session", asked.get("session", "")),
        ui.choice("Said by", "role", roles, asked.get("role", "")),
    ]
    chosen = any(asked.get(name) for name in (*_OF_MEMORIES, *_OF_TURNS, *_OF_BOTH, "in"))
    return el(
        "form",
        el("input", type="search", name="q", value=query, aria_label="Search for", dir="auto"),
        el("button", "Search", class_="main"),
        el("details", el("summary", "Filters"), ui.line(filters), open=chosen),
        method="get",
        action="/search",
        role="search",
        aria_label="Search for",
    )


def _examples() -> Element:
    lines = (el("li", words, " ", ui.link("/search", example, q=example)) for words, example in _EXAMPLES)
    return ui.section("What you can ask", el("ul", lines))


# --- everything, explained --------------------------------------------------------------------------


async def _explained_hits(view: View, query: str, parameters: Mapping[str, str]) -> list[Any]:
    """Return the first page of a search with its ranking explained, and the scenes, facts and results that match."""
    filters = _filters(parameters, "kind", "entity", *_OF_BOTH)
    results = dict[str, Any]()

    async def explain() -> None:
        results["explained"] = await view.memory.explain(query, limit=_EXPLAINED, **filters)

    async def beside() -> None:
        results["beside"] = await view.memory.memory_search(query, limit=_BESIDE, **filters)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(explain)
            tasks.start_soon(beside)
    except* McpMemoryError as group:
        raise group.exceptions[0] from None
    explained = cast("Explained", results["explained"])
    beside_it = cast("MemoryResults", results["beside"])
    most = max((part.points for row in explained.shown for part in row.parts), default=0.0)
    words = set(explained.words)
    attributions = await _attributions(
        view, [row.id for row in (*explained.shown, *explained.missed, *explained.left_out)]
    )

    def rows(listed: Iterable[ExplainedRow]) -> Element:
        return ui.rows(_row(row, words, most, attributions.get(row.id, ())) for row in listed)

    return [
        ui.note(explained.note) if explained.note else None,
        *_known_note(explained.known),
        ui.section(
            "Found",
            el("p", "The best answers come first. Statements and turns are ranked apart, and then they alternate."),
            rows(explained.shown),
        )
        if explained.shown
        else ui.empty(_NOTHING),
        ui.section("Just missed", rows(explained.missed)) if explained.missed else None,
        ui.section("Left out", rows(explained.left_out)) if explained.left_out else None,
        *_other_hits(beside_it),
        el("p", ui.link("/search", "What recall would bring", q=query, **{"in": "recall"})),
        _query_details(explained),
    ]


async def _attributions(view: View, ids: Sequence[str]) -> dict[str, tuple[Node | None, ...]]:
    """Return, by id, speaker and time of turns, and start and source (unless it is the user) of statements."""
    turns = await view.memory.turns([id for id in ids if id[0] == "t"])
    atoms = await view.memory.statements_by_id([id for id in ids if id[0] == "a"])
    attributions: dict[str, tuple[Node | None, ...]] = {}
    for turn in turns:
        attributions[turn.id] = ui.speaker(turn), ui.moment(turn.said_at)
    for atom in atoms:
        attributions[atom.id] = ui.moment(atom.valid_from, day=True), ui.name_of_source(atom.source)
    return attributions


def _row(row: ExplainedRow, words: set[str], most: float, attribution: Iterable[Node | None]) -> list[Node | None]:
    return [
        el("p", ui.link(f"/{row.id}", ui.mark_spans(row.text, _places(row.text, words))), class_="said", dir="auto"),
        ui.line(
            el("span", row.id, class_="id"),
            attribution,
            ui.review_badge() if row.held else None,
            el("span", remove_hidden(row.left_out)) if row.left_out else None,
        ),
        _shares(row, most),
    ]


def _shares(row: ExplainedRow, most: float) -> Element | None:
    """Return a bar for each of the strongest signals of a row, and a bar for all other signals together."""
    shares = {_signal_name(part.signal): part.points for part in row.parts[:_SIGNALS]}
    if rest := sum(part.points for part in row.parts[_SIGNALS:]):
        shares["other signals"] = rest
    return _fold_bars(charts.signals(shares, most=most)) if shares else None


def _fold_bars(bars: Element) -> Element:
    return el("details", el("summary", "Why it was found"), bars)


def _places(text: str, words: set[str]) -> list[tuple[int, int]]:
    """Return the spans of a text that match words of the query, each extended to the end of the word."""
    return [
        (match.start, _end(text, match.end) if match.term.isascii() else match.end) for match in matches(text, words)
    ]


def _end(text: str, at: int) -> int:
    while at < len(text) and text[at].isalnum():
        at += 1
    return at


def _signal_name(signal: str) -> str:
    return _SIGNAL_NAMES.get(signal, signal)


def _other_hits(results: MemoryResults) -> Iterator[Element]:
    """Yield the scenes, facts and tool results that match; shown on the first page of a search."""
    if results.scenes:
        yield ui.section("Scenes", ui.rows(map(_scene, results.scenes)))
    if results.facts:
        facts = (
            [ui.link(f"/{fact.atom}", fact.atom, class_="id"), " ",
             ui.memory_text(f"{fact.entity} · {fact.relation} · {fact.value}")] for fact in results.facts
        )  # fmt: skip
        yield ui.section("Facts", ui.rows(facts))
    yield from _result_lines(results.results)


def _result_lines(hits: Sequence[ResultHit]) -> Iterator[Element]:
    if hits:
        yield ui.section("Lines of tool results", ui.rows(map(result_row, hits)))


def _scene(hit: SceneHit) -> list[Node]:
    scene = hit.scene
    return [
        el("p", ui.link(f"/scene/{ui.part(scene.slug)}", ui.memory_text(scene.title)), class_="said"),
        el("p", ui.memory_text(scene.summary)),
        _bars(hit.found_by),
    ]


def _bars(found_by: Signals) -> Element:
    return _fold_bars(charts.signals({_signal_name(name): value for name, value in found_by.items()}, most=1.0))


def _query_details(search: Explained) -> Element:
    speaker = f"what the {search.asks_for} said" if search.asks_for else None
    facts = ui.labelled_values(
        (
            ("Words", ui.memory_text(", ".join(search.words) or "none that says what it is about")),
            ("Related", ui.memory_text(one_line(", ".join(search.related), 300)) if search.related else None),
            ("Speaker", speaker),
            ("Time", "; ".join(search.times) or None),
            *((_LEGS[leg.layer], _leg(leg)) for leg in search.legs),
        )
    )
    return ui.section(None, el("details", el("summary", "How the question was read"), facts))


def _leg(leg: SearchLeg) -> str:
    return (
        f"{ui.count(leg.by_words)} by words, {ui.count(leg.by_meaning)} by meaning, {ui.count(leg.candidates)} ranked"
    )


async def _recall_result(view: View, query: str) -> list[Any]:
    """Return the recall for a question: its text, and the decision on each of the first rows."""
    recall = await view.memory.explain_recall(query)
    brought = [_verdict(verdict) for verdict in recall.verdicts if verdict.brought]
    others = [_verdict(verdict) for verdict in recall.verdicts if not verdict.brought]
    text = el("pre", remove_hidden(recall.brought), dir="auto", tabindex="0") if recall.brought.strip() else None
    return [
        *_known_note(recall.known),
        ui.section(
            "What recall would bring",
            ui.rows(brought) if brought else ui.empty("Recall would bring none of these rows."),
            el("details", el("summary", "The text that an agent gets"), text) if text else None,
            beside=plural(recall.tokens, "token", "tokens, with what is always there"),
        ),
        ui.section("What it leaves out", ui.rows(others)) if others else None,
    ]


def _known_note(verdict: Known | None) -> list[Element]:
    """Return a line on whether the memory knows the answer; empty without a verdict."""
    return [el("p", _KNOWN[verdict])] if verdict else []


def _verdict(verdict: RowVerdict) -> list[Element]:
    chance = el("span", f"{100 * verdict.probability:.0f} % likely to help")
    return [
        ui.memory_text(verdict.text, tag="p"),
        ui.line(
            ui.link(f"/{verdict.id}", verdict.id, class_="id"), chance, el("span", inline(verdict.why), dir="auto")
        ),
    ]


# --- one layer, page by page ------------------------------------------------------------------------


def _filters(parameters: Mapping[str, str], *names: str) -> dict[str, Any]:
    """Return these filters as the verbs take them; an unknown kind or role is ignored."""
    choices = {"kind": KINDS, "role": _ROLES}
    return {
        name: parameters[name]
        for name in names
        if name in parameters and parameters[name] in choices.get(name, (parameters[name],))
    }


async def _memories(view: View, query: str, parameters: Mapping[str, str]) -> list[Any]:
    results = await view.memory.memory_search(
        query, limit=_LIMIT, cursor=parameters.get("cursor"), **_filters(parameters, *_OF_MEMORIES, *_OF_BOTH)
    )
    rows: list[Any] = [*map(_statement, results.atoms), *(_turn(hit, query) for hit in results.turns)]
    nothing = not (rows or results.scenes or results.facts or results.results)
    return [
        ui.note(results.note) if results.note else None,
        *_known_note(results.known),
        ui.empty(_NOTHING) if nothing else None,
        ui.section("Found", ui.rows(rows)) if rows else None,
        _more(view, query, results),
        *_other_hits(results),
    ]


def _statement(hit: AtomHit) -> list[Element]:
    return [ui.statement_row(hit.atom), _bars(hit.found_by)]


async def _turns(view: View, query: str, parameters: Mapping[str, str]) -> list[Any]:
    results = await view.memory.conversation_search(
        query, limit=_LIMIT, cursor=parameters.get("cursor"), **_filters(parameters, *_OF_TURNS, *_OF_BOTH)
    )
    return [
        ui.note(results.note) if results.note else None,
        *_known_note(results.known),
        ui.section("Found", ui.rows(_turn(hit, query) for hit in results.hits)) if results.hits else ui.empty(_NOTHING),
        _more(view, query, results),
        *_result_lines(results.results),
    ]


def _turn(hit: TurnHit, query: str) -> list[Element]:
    turn, words = hit.turn, set(query_terms(query))
    text = snippet(turn.content, _EXCERPT, matches(turn.content, words))[0]
    head = (ui.link(f"/{turn.id}", turn.id, class_="id"), ui.speaker(turn), ui.moment(turn.said_at))
    content = el("div", ui.mark_spans(text, _places(text, words)), dir="auto", class_="verbatim")
    badge = ui.review_badge() if turn.id in hit.held else None
    newer = hit.newer.get(turn.id)
    changed = el("span", f"{CHANGED_LATER} ", ui.link(f"/{newer.id}", newer.id, class_="id")) if newer else None
    return [el("div", ui.line(*head, badge, changed), content, class_=f"turn by-{turn.role}"), _bars(hit.found_by)]


def _more(view: View, query: str, results: MemoryResults | TurnResults) -> Element | None:
    names = (*_OF_MEMORIES, *_OF_TURNS, *_OF_BOTH, "in")
    return ui.pager("/search", results.cursor, "More", q=query, **{name: view.query.get(name) for name in names})
