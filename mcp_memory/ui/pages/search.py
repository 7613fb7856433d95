"""Search: all that matches in one list, page by page; why rows are ranked so, and what an agent would get."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast, get_args

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, plural, remove_hidden
from mcp_memory.core.types import ATTRIBUTION, Fact, FoundLayer, FoundPage, Hit, Known, Role, Source, Turn
from mcp_memory.language.snippet import matches
from mcp_memory.longterm.search.find import PERSONA
from mcp_memory.longterm.search.question_words import content_words
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.markdown import for_people
from mcp_memory.ui.pages.memory import KINDS
from mcp_memory.ui.pages.people import facts_of_user, role_text
from mcp_memory.ui.pictures import charts

if TYPE_CHECKING:
    from mcp_memory.longterm.recall.blocks import RowVerdict
    from mcp_memory.longterm.search.explain import Explained, ExplainedRow, SearchLeg


_ROLES = get_args(Role)
_ID = re.compile(r"[atx][1-9]\d{0,17}|r-[0-9a-f]{12}|\d{3,9}(?:-[NF]\d{1,9}(?:-\d{1,9})?)?", re.ASCII)
_MARKUP = re.compile(
    r"(?:\A|(?<=…)|(?P<newline>\s*\n\s*))(?:#{1,6}[ \t]+|[-*+][ \t]+)?|\*\*|[ \t]*\((?:a\d+(?:, ?)?)+\)", re.ASCII
)
_LAYERS: Mapping[FoundLayer, str] = {
    "turn": "Messages",
    "statement": "Statements",
    "result": "Results",
    "page": "Pages",
    "entity": "People and things",
}
_BETWEEN_PARTS = re.compile(r"(?:^|\s)· |(?<=[.!?])\s+(?=\w)")
_FILTERS = ("kind", "entity", "as_of", "session", "client", "role", "since", "until")
_OF_EXPLAINED = ("kind", "entity", "since", "until")
_LIMIT = 20
_EXPLAINED = 10
_SIGNALS = 3
_CORRECTION = 100  # characters
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
_LESS_CLOSE = 5
"""Rows shown of those that are less close; the others are folded away."""
_GROUPS: Mapping[FoundLayer, int] = {"entity": 0, "turn": 1, "statement": 1, "page": 2, "result": 3}
"""The order of layers on the page; within a group rows have the order of the ranking."""
_OF_A_PAGE = 3  # parts of a page with words of the query
_LINE = 70  # characters of a line of a result
_NOTHING = "Nothing found. Try other words, or fewer filters."


async def search(view: View) -> Page:
    """Show what a query finds; without a query, show examples."""
    query = view.query.get("q", "").strip()
    filters = {name: value for name, value in view.query.items() if value.strip()}
    chosen = filters.get("in", "")
    if not query:
        return Page(title="Search", body=(_form(view, query, chosen), _examples()))
    body: list[Any] = [_form(view, query, chosen), _layer_links(view, query, chosen)]
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
        *ui.hidden({"in": layer} if layer else {}),
        *ui.statement_filters(asked),
        ui.input_field("Client", "client", asked.get("client", ""), hint="codex"),
        ui.input_field("Conversation", "session", asked.get("session", "")),
        ui.choice("Said by", "role", roles, asked.get("role", "")),
    ]
    chosen = any(asked.get(name) for name in _FILTERS)
    folded = el("details", el("summary", "Filters"), ui.line(filters), open=chosen)
    return ui.search_form("/search", "Search for", query, folded, button=el("button", "Search", class_="main"))


def _examples() -> Element:
    lines = (el("li", words, " ", ui.link("/search", example, q=example)) for words, example in _EXAMPLES)
    return ui.section("What you can ask", el("ul", lines))


# --- what was found ---------------------------------------------------------------------------------


def _layer_links(view: View, query: str, chosen: str) -> Element:
    """Return links to the hits of all layers and of each layer, with the same filters."""
    asked = {name: view.query.get(name) for name in (*_FILTERS, "time")}
    return ui.chosen_of(
        "What to search in",
        (
            (words, ui.address("/search", q=query, **asked, **{"in": layer}), layer == chosen)
            for layer, words in {"": "All", **_LAYERS}.items()
        ),
    )


async def _found(view: View, query: str, parameters: Mapping[str, str]) -> list[Any]:
    """Return a page of the hits of all layers, or of the chosen layer.

    A past time in the query filters unless `time` is `any`, or nothing of that time is close.
    """
    layers: list[FoundLayer] = [layer for layer in _LAYERS if layer == parameters.get("in")]
    find = partial(
        view.memory.find, query, layers=layers, limit=_LIMIT, cursor=parameters.get("cursor"),
        **_filters(parameters, *_FILTERS),
    )  # fmt: skip
    in_period = parameters.get("time") != "any"
    results = await find(in_period=in_period)
    if (
        in_period
        and results.filtered
        and (not results.hits or results.known == "unlikely")
        and "cursor" not in parameters
    ):
        in_period, results = False, await find()
    names = {name: view.query.get(name) for name in (*_FILTERS, "in")}
    titles = await _titles(view, results.hits)
    facts = await facts_of_user(view) if any(hit.layer == "entity" for hit in results.hits) else {}
    return [
        _period(view, results, query, names, parameters),
        ui.note(results.note) if results.note else None,
        *_hits(
            results,
            query,
            partial(_hit, titles=titles, query=query, facts=facts, opens=parameters.get("in") == "result"),
        ),
        ui.pager("/search", results.cursor, "More answers", q=query, time=None if in_period else "any", **names),
        _why(query),
    ]


def _hits(results: FoundPage, query: str, row: Callable[[Hit], Element]) -> list[Element]:
    """Return the hits by groups; those that are neither close nor have all words of the query apart."""
    if not results.hits:
        return [ui.empty(_NOTHING)]
    words = frozenset(content_words(query))
    hits = sorted(results.hits, key=_place)
    found = [hit for hit in hits if _is_about(hit, words)] if results.known != "unlikely" else []
    less = [hit for hit in hits if hit not in found] if found else []
    rest = less[_LESS_CLOSE:]
    more = el("details", el("summary", f"{len(rest)} more"), ui.rows(map(row, rest))) if rest else None
    return [
        ui.section(
            _KNOWN[results.known or "likely"],
            el("p", _NEAREST) if results.known == "unlikely" else None,
            ui.rows(map(row, found or hits)),
        ),
        *([ui.section("Less close", ui.rows(map(row, less[:_LESS_CLOSE])), more)] if less else []),
    ]


def _place(hit: Hit) -> tuple[bool, int]:
    """Return the order of a hit: exact identifiers and phrases first, then by layer, quarantined ones last."""
    return bool(hit.held), -1 if hit.verbatim else _GROUPS[hit.layer]


def _is_about(hit: Hit, words: Set[str]) -> bool:
    """Return whether a hit is surely about the query, is named in it, or has all of its words."""
    if hit.held:
        return False
    has_all = bool(words) and words <= {match.term for match in matches(f"{hit.title or ''} {hit.text}", words)}
    return hit.close or hit.layer == "entity" or has_all


def _period(
    view: View, results: FoundPage, query: str, names: Mapping[str, Any], parameters: Mapping[str, str]
) -> Element | None:
    """Return the time that filters, with a link that removes it; or why the time of the query does not filter."""
    if results.period is None:
        return None
    first, last = ui.day_of(results.period[0]), ui.day_of(results.period[1] - timedelta(seconds=1))
    days = ui.day_text(first) if first == last else f"{ui.day_text(first)} to {ui.day_text(last)}"
    if results.filtered:
        remove = ui.link("/search", f"{days} ×", q=query, time="any", **names)
        return el("nav", ui.line(remove), class_="chips", aria_label="Remove the time")
    if parameters.get("time") == "any":
        return ui.line(ui.link("/search", f"Only {days}", q=query, **names))
    has_begun = results.period[0] <= view.memory.now()
    return ui.note(f"Nothing close is from {days}; these are from any time.") if has_begun else None


def _why(query: str) -> Element:
    return el(
        "details",
        el("summary", "Why these answers?"),
        ui.line(
            ui.link("/search", "How each row was ranked", q=query, **{"in": "why"}),
            ui.link("/search", "What an agent would get", q=query, **{"in": "recall"}),
        ),
    )


async def _titles(view: View, hits: Sequence[Hit]) -> dict[str, tuple[Turn | None, str, str]]:
    """Return, by the id of a hit, the turn that it is from, the session and its title."""
    turns = {turn.id: turn for turn in await view.memory.turns([hit.evidence[0] for hit in hits if hit.evidence])}
    of_hits = {hit.id: turns.get(hit.evidence[0]) if hit.evidence else None for hit in hits}
    sessions = {hit.id: turn.session if (turn := of_hits[hit.id]) else hit.session for hit in hits}
    titles = await view.memory.titles(list(set(filter(None, sessions.values()))))
    return {
        id: (of_hits[id], session, titles[session])
        for id, session in sessions.items()
        if session is not None and session in titles
    }


def _filters(parameters: Mapping[str, str], *names: str) -> dict[str, Any]:
    """Return these filters as the verbs take them; an unknown kind or role is ignored."""
    choices = {"kind": KINDS, "role": _ROLES}
    return {
        name: parameters[name]
        for name in names
        if name in parameters and parameters[name] in choices.get(name, (parameters[name],))
    }


def _hit(
    hit: Hit, *, titles: Mapping[str, tuple[Turn | None, str, str]], query: str, facts: Mapping[str, Fact], opens: bool
) -> Element:
    """Return a hit as a row; a result in one line, unless it has an identifier of the query or `opens` results."""
    talk, address, when = titles.get(hit.id), _address(hit, query), None
    if hit.at:
        when = ui.moment(hit.at, day=hit.layer != "turn")
    if hit.layer == "result" and not (opens or hit.verbatim):
        return ui.dated_row(_result_line(hit, address), when=when)
    shown: Node = el("p", ui.link(address, ui.mark_spans(hit.text, hit.marks)), class_="said", dir="auto")
    match hit.layer:
        case "result":
            shown = el("pre", el("code", ui.mark_spans(hit.text, hit.marks)), tabindex="0")
        case "page":
            shown = el("p", ui.mark_spans(*_parts(*_plain(*for_people(hit.text, hit.marks)))), dir="auto")
        case _:
            pass
    title = "About you" if hit.layer == "page" and hit.id == PERSONA else hit.title
    is_titled = title and not (hit.layer == "entity" and hit.text.startswith(title))
    return ui.dated_row(
        [el("p", ui.link(address, ui.memory_text(title)), class_="said") if title and is_titled else None, shown],
        (role_text(hit.id, facts) if hit.layer == "entity" else None) or _LAYER_NAMES[hit.layer],
        ui.memory_text(_speaker(hit)) if hit.said_by else None,
        _conversation(*talk, query) if talk and hit.layer != "page" else None,
        ui.review_badge() if hit.held else None,
        _changed_since(hit.newer) if hit.newer else None,
        *(ui.link(f"/{line.by}", "changed later") for line in hit.changed),
        el("span", hit.id, class_="id") if hit.id == query else None,
        when=when,
    )


def _result_line(hit: Hit, address: str) -> Element:
    """Return a result in one line: what was called, and the first line with a word of the query."""
    place = hit.marks[0][0] if hit.marks else 0
    start = hit.text.rfind("\n", 0, place) + 1
    start = max(start, place - _LINE // 2)
    end = min(start + _LINE, (hit.text + "\n").index("\n", place))
    marks = [(max(first, start) - start, last - start) for first, last in hit.marks if first < end and last > start]
    found = ui.mark_spans(hit.text[start:end], marks)
    return el(
        "p", ui.link(address, ui.memory_text(hit.title or hit.id)), " ", el("code", found, dir="auto"), class_="said"
    )


def _changed_since(turn: Turn) -> Element:
    words = ui.memory_text(one_line(turn.content, _CORRECTION))
    return el("span", "changed since: “", ui.link(f"/{turn.id}", words), "”")


def _parts(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """Return the first sentences and lines of a page that have one of these spans, and where the spans are then."""
    starts = [0, *(found.end() for found in _BETWEEN_PARTS.finditer(text)), len(text)]
    parts = [(start, end) for start, end in pairwise(starts) if any(start <= first < end for first, _ in spans)]
    shown, moved = "", list[tuple[int, int]]()
    for start, end in parts[:_OF_A_PAGE] or [(0, starts[1])]:
        shown += " … " if shown else ""
        moved += [
            (first - start + len(shown), last - start + len(shown)) for first, last in spans if start <= first < end
        ]
        shown += text[start:end].strip(" ·")
    return shown, moved


def _plain(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """Return a part of a page as a line without Markdown and citations, and where these spans of it are then."""
    moves: list[tuple[int, int]] = []

    def shorten(found: re.Match[str]) -> str:
        instead = " · " if found["newline"] else ""
        moves.append((found.end(), len(found[0]) - len(instead)))
        return instead

    def moved(place: int) -> int:
        return place - sum(fewer for end, fewer in moves if end <= place)

    line = _MARKUP.sub(shorten, text)
    return line, [(moved(start), moved(end)) for start, end in spans]


def _conversation(turn: Turn | None, session: str, title: str, query: str) -> Element:
    if turn is not None:
        return ui.conversation_link(turn, title, q=query)
    return ui.session_link(session, title)


_LAYER_NAMES: Mapping[FoundLayer, str | None] = {
    "turn": None,
    "statement": "statement",
    "result": "result",
    "page": "page",
    "entity": "person or thing",
}


def _speaker(hit: Hit) -> str:
    said_by = hit.said_by or ""
    if hit.layer == "statement":
        return ATTRIBUTION.get(cast("Source", said_by), said_by)
    return ui.ROLE_NAMES.get(cast("Role", said_by), said_by)


def _address(hit: Hit, query: str) -> str:
    match hit.layer:
        case "page":
            return "/persona" if hit.id == "persona" else f"/scene/{ui.part(hit.id)}"
        case "entity":
            return f"/entity/{ui.part(hit.id)}"
        case "result":
            ref, _, lines = hit.id.partition(":")
            return ui.address(f"/{ref}#hit", lines=lines, q=query)
        case "turn":
            return ui.address(f"/{hit.id}", q=query)
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
    percent = round(100 * verdict.probability)
    return [
        el("p", ui.link(f"/{verdict.id}", ui.memory_text(verdict.text)), class_="said"),
        ui.line(
            el("span", f"It {verdict.why}.", dir="auto"),
            el("span", f"{percent} % likely to answer") if percent else None,
        ),
    ]
