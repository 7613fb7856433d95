"""Search: all that matches in one list, page by page; why rows are ranked so, and what an agent would get."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, plural, remove_hidden
from mcp_memory.core.types import ATTRIBUTION, FoundLayer, Hit, Known, Role, Source
from mcp_memory.language.snippet import matches
from mcp_memory.longterm.search.find import PERSONA
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.markdown import for_people, inline
from mcp_memory.ui.pages.item import CHANGED_LATER
from mcp_memory.ui.pages.memory import KINDS
from mcp_memory.ui.pictures import charts

if TYPE_CHECKING:
    from mcp_memory.longterm.recall.blocks import RowVerdict
    from mcp_memory.longterm.search.explain import Explained, ExplainedRow, SearchLeg


_ROLES = get_args(Role)
_ID = re.compile(r"[atx][1-9]\d{0,17}|r-[0-9a-f]{12}|\d{3,9}(?:-[NF]\d{1,9}(?:-\d{1,9})?)?", re.ASCII)
_LAYERS: Mapping[FoundLayer, str] = {
    "turn": "what was said",
    "statement": "statements",
    "result": "tool results and files",
    "page": "pages",
    "entity": "people and things",
}
_VIEWS = {"": "everything", **_LAYERS, "why": "why rows are ranked so", "recall": "what an agent would get"}
_FILTERS = ("kind", "entity", "as_of", "session", "role", "since", "until")
_OF_EXPLAINED = ("kind", "entity", "since", "until")
_LIMIT = 20
_EXPLAINED = 10
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
    "feedback": "your feedback",
}
_LEGS = {"atom": "Statements", "turn": "Turns"}
_KNOWN: Mapping[Known, str] = {"likely": "Found", "unsure": "Perhaps", "unlikely": "Nothing close"}
_NEAREST = "These are only the nearest rows; what you look for is probably not in this memory."
_NOTHING = "Nothing found. Try other words, or fewer filters."


async def search(view: View) -> Page:
    """Show what a query finds; without a query, show examples."""
    query = view.query.get("q", "").strip()
    filters = {name: value for name, value in view.query.items() if value.strip()}
    chosen = filters.get("in", "")
    if not query:
        return Page(title="Search", body=(_form(view, query, chosen), _examples()))
    body: list[Any] = [_form(view, query, chosen)]
    if _ID.fullmatch(query):
        body.append(el("p", ui.link(f"/{query}", f"Open {query}")))
    try:
        match chosen:
            case "recall":
                body += await _recall_result(view, query)
            case "why":
                body += await _explained_hits(view, query, filters)
            case _:
                body += await _found(view, query, filters)
    except (InvalidInput, NotFound) as wrong:
        body.append(ui.note(remove_hidden(str(wrong)), kind="bad"))
    title = f"Search: {remove_hidden(one_line(query, 60))}"
    return Page(title=title, body=ui.body(*body))


# --- asking -----------------------------------------------------------------------------------------


def _form(view: View, query: str, layer: str) -> Element:
    asked = view.query
    roles = [("", "anyone"), *ui.ROLE_NAMES.items()]
    filters = [
        ui.choice("In", "in", _VIEWS.items(), layer),
        *ui.statement_filters(asked),
        ui.input_field("Session", "session", asked.get("session", "")),
        ui.choice("Said by", "role", roles, asked.get("role", "")),
    ]
    chosen = any(asked.get(name) for name in (*_FILTERS, "in"))
    folded = el("details", el("summary", "Filters"), ui.line(filters), open=chosen)
    return ui.search_form("/search", "Search for", query, folded, button=el("button", "Search", class_="main"))


def _examples() -> Element:
    lines = (el("li", words, " ", ui.link("/search", example, q=example)) for words, example in _EXAMPLES)
    return ui.section("What you can ask", el("ul", lines))


# --- what was found ---------------------------------------------------------------------------------


async def _found(view: View, query: str, parameters: Mapping[str, str]) -> list[Any]:
    """Return a page of the hits of all layers, or of the chosen layer."""
    layers: list[FoundLayer] = [layer for layer in _LAYERS if layer == parameters.get("in")]
    results = await view.memory.find(
        query, layers=layers, limit=_LIMIT, cursor=parameters.get("cursor"), **_filters(parameters, *_FILTERS)
    )
    names = {name: view.query.get(name) for name in (*_FILTERS, "in")}
    return [
        ui.note(results.note) if results.note else None,
        ui.section(
            _KNOWN[results.known or "likely"],
            el("p", _NEAREST) if results.known == "unlikely" else None,
            ui.rows(map(_hit, results.hits)),
            beside=ui.link("/search", "Why these", q=query, **{"in": "why"}),
        )
        if results.hits
        else ui.empty(_NOTHING),
        ui.pager("/search", results.cursor, "More", q=query, **names),
        el("p", ui.link("/search", "What an agent would get", q=query, **{"in": "recall"})),
    ]


def _filters(parameters: Mapping[str, str], *names: str) -> dict[str, Any]:
    """Return these filters as the verbs take them; an unknown kind or role is ignored."""
    choices = {"kind": KINDS, "role": _ROLES}
    return {
        name: parameters[name]
        for name in names
        if name in parameters and parameters[name] in choices.get(name, (parameters[name],))
    }


def _hit(hit: Hit) -> list[Node]:
    text = ui.mark_spans(*(for_people(hit.text, hit.marks) if hit.layer == "page" else (hit.text, hit.marks)))
    title = "About you" if hit.layer == "page" and hit.id == PERSONA else hit.title
    shown: Node = el("p", ui.link(_address(hit), text), class_="said", dir="auto")
    if hit.layer == "result":
        shown = el("pre", el("code", text), tabindex="0")
    return [
        el("p", ui.link(_address(hit), ui.memory_text(title)), class_="said") if title else "",
        shown,
        ui.line(
            ui.badge(_LAYER_NAMES[hit.layer], "kind"),
            ui.memory_text(_speaker(hit)) if hit.said_by else None,
            ui.moment(hit.at, day=hit.layer != "turn") if hit.at else None,
            ui.link(f"/session/{ui.part(hit.session)}", ui.memory_text(hit.session)) if hit.session else None,
            ui.badge("word for word", "ok") if hit.verbatim else None,
            ui.review_badge() if hit.held else None,
            el("span", f"{CHANGED_LATER} ", ui.link(f"/{hit.newer.id}", hit.newer.id)) if hit.newer else None,
            (el("span", f"{CHANGED_LATER} ", ui.link(f"/{line.by}", line.by)) for line in hit.changed),
            el("span", hit.id, class_="id"),
        ),
    ]


_LAYER_NAMES: Mapping[FoundLayer, str] = {
    "turn": "said",
    "statement": "statement",
    "result": "tool result",
    "page": "page",
    "entity": "person or thing",
}


def _speaker(hit: Hit) -> str:
    said_by = hit.said_by or ""
    if hit.layer == "statement":
        return ATTRIBUTION.get(cast("Source", said_by), said_by)
    return ui.ROLE_NAMES.get(cast("Role", said_by), said_by)


def _address(hit: Hit) -> str:
    match hit.layer:
        case "page":
            return "/persona" if hit.id == "persona" else f"/scene/{ui.part(hit.id)}"
        case "entity":
            return f"/entity/{ui.part(hit.id)}"
        case "result":
            ref, _, lines = hit.id.partition(":")
            return ui.address(f"/{ref}", lines=lines)
        case _:
            return f"/{hit.id}"


# --- why rows are ranked so -------------------------------------------------------------------------


async def _explained_hits(view: View, query: str, parameters: Mapping[str, str]) -> list[Any]:
    """Return the first statements and turns with their ranking explained, and those that just missed."""
    explained = await view.memory.explain(query, limit=_EXPLAINED, **_filters(parameters, *_OF_EXPLAINED))
    most = max((part.points for row in explained.shown for part in row.parts), default=0.0)
    words = set(explained.words)
    attributions = await _attributions(
        view, [row.id for row in (*explained.shown, *explained.missed, *explained.left_out)]
    )

    def rows(listed: Iterable[ExplainedRow]) -> Element:
        return ui.rows(_row(row, words, most, attributions.get(row.id, ())) for row in listed)

    return [
        ui.note(explained.note) if explained.note else None,
        ui.section(
            _KNOWN[explained.known or "likely"],
            el("p", "Statements and turns are ranked apart; here they alternate."),
            rows(explained.shown),
            beside=ui.link("/search", "All that was found", q=query),
        )
        if explained.shown
        else ui.empty(_NOTHING),
        ui.section("Just missed", rows(explained.missed)) if explained.missed else None,
        ui.section("Left out", rows(explained.left_out)) if explained.left_out else None,
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
        ui.section(
            "What an agent would get",
            ui.rows(brought) if brought else ui.empty("Recall would bring none of these rows."),
            el("details", el("summary", "The text that an agent gets"), text) if text else None,
            beside=plural(recall.tokens, "token", "tokens, with what is always there"),
        ),
        ui.section("What it leaves out", ui.rows(others)) if others else None,
    ]


def _verdict(verdict: RowVerdict) -> list[Element]:
    chance = el("span", f"{100 * verdict.probability:.0f} % likely to help")
    return [
        ui.memory_text(verdict.text, tag="p"),
        ui.line(
            ui.link(f"/{verdict.id}", verdict.id, class_="id"), chance, el("span", inline(verdict.why), dir="auto")
        ),
    ]
