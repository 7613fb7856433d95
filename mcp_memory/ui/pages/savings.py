"""Savings: the tokens saved and spent, in total, by day and by session; the calls to language models.

Totals are those of `Memory.status()`; all days together add up to them. The ledger of models covers the whole home, so
only readers with the right to administer see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import plural
from mcp_memory.core.types import DaySavings, SessionSavings
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pictures import charts

_SPANS = (7, 30, 90, 365)
_COUNTED = (
    "Your provider bills the conversations themselves, and that bill is not known here. Money is known only for the "
    "calls that this memory makes itself: the price of your agent's model is not known here.",
    "Each later call of a conversation would have sent the same tokens again. A provider charges about a tenth for "
    "tokens that it has read before, so they count for a tenth. Only calls that this memory knows of are counted: the "
    "saving is at least this much. What later calls saved counts on the day on which the result came.",
)
_SPENT = {"expand": "Spent on opening results", "canvas": "Spent on canvases"}


async def savings(view: View) -> Page:
    """Show tokens saved and spent: since the beginning, on the last days (`days` of the query), and by session."""
    span = _span(view)
    ledger = await view.memory.ledger()
    days = await view.memory.savings_by_day(days=span)
    sessions = await view.memory.savings_by_session(days=span)
    titles = await _titles(view, sessions)
    knows_models = view.is_owner or view.right == "admin"
    return Page(
        title="Savings",
        here="savings",
        body=ui.body(
            _share(ledger["offload"]),
            _net(ledger),
            _by_day(days, span, knows_models and any(day.model_tokens for day in days)),
            ui.wide_columns(
                [
                    _by_session(sessions, titles, span) if sessions else None,
                    _calls(ledger["model"]["ever"]) if knows_models else None,
                ],
                [_totals(ledger), _models(view, ledger) if knows_models else None],
            ),
            el("details", el("summary", "How this is counted"), (el("p", text) for text in _COUNTED)),
        ),
    )


async def _titles(view: View, sessions: Sequence[SessionSavings]) -> dict[str, str]:
    """Return the titles of the sessions that have a page, because they have turns or tool results."""
    named = await view.memory.titles([session.session for session in sessions])
    titles: dict[str, str] = {}
    for session in sessions:
        name = session.session
        if name in named or await view.memory.records(session=name, limit=1):
            titles[name] = named[name] if named.get(name, name) != name else ui.untitled(session.at)
    return titles


def _span(view: View) -> int:
    days = view.query.get("days", "30")
    if days not in map(str, _SPANS):
        raise InvalidInput(f"The days can be {', '.join(map(str, _SPANS))}.")
    return int(days)


# --- in all -----------------------------------------------------------------------------------------


def _has_savings(ledger: dict[str, Any]) -> bool:
    return bool(ledger["savings"]["kinds"] or ledger["offload"]["tokens_raw"])


def _totals(ledger: dict[str, Any]) -> Element | None:
    saved, offload = ledger["savings"], ledger["offload"]
    if not _has_savings(ledger):
        return None
    raw, kept = offload["tokens_raw"], offload["tokens_kept"]
    less = f"{1 - kept / raw:.1%}" if raw else ""
    became = f"{ui.count(raw)} tokens became {ui.count(kept)}, {less} less"
    spent = [(_SPENT[kind], _tokens(tokens)) for kind, tokens in saved["spent"].items()]
    return ui.section(
        "Since the beginning",
        ui.labelled_values(
            (
                ("Saved when the results came", _tokens(saved["saved_once"])),
                ("Saved in later calls, at least", _tokens(saved["saved_later"])),
                *spent,
                ("Spent on both in later calls", _tokens(saved["spent_later"])),
                ("Read anew where a cache broke", _tokens(saved["cache_broken"]) if saved["cache_broken"] else None),
                ("Tool results", became if raw else None),
            )
        ),
    )


def _share(offload: dict[str, Any]) -> Element | None:
    """Return in a sentence which share of the tool results was sent to agents; None without a result."""
    raw, kept = offload["tokens_raw"], offload["tokens_kept"]
    if not raw:
        return None
    share = "less than 1 %" if kept * 100 < raw else f"{kept / raw:.0%}".replace("%", " %")
    what = f"Of the long tool results that would have been sent to a model, {share} was sent"
    return el("p", el("strong", what), "; the rest is kept here, and can be opened.", class_="lead")


def _net(ledger: dict[str, Any]) -> Element:
    """Return the net tokens, and what they cost if that is another number of the same sign."""
    if not _has_savings(ledger):
        return el("p", "Nothing was saved yet: an agent must offload a large result first.", class_="lead")
    tokens, cost = ledger["savings"]["net_tokens"], ledger["savings"]["net_cost"]
    is_saved, worth = tokens >= 0, None
    if (cost >= 0) == is_saved and cost != tokens:
        verb = "would have cost" if is_saved else "cost"
        worth = f"They {verb} as much as {_tokens(abs(cost))} that a model reads for the first time."
    kind = "saved, less what was spent." if is_saved else "more spent than saved."
    return el("p", el("strong", _tokens(abs(tokens))), f" {kind} ", worth, class_="lead")


def _tokens(number: int) -> str:
    return plural(number, "token")


# --- by day -----------------------------------------------------------------------------------------


def _by_day(days: Sequence[DaySavings], span: int, knows_models: bool) -> Element:
    spans = [
        el("strong", f"last {each} days") if each == span else ui.link("/savings", f"last {each} days", days=each)
        for each in _SPANS
    ]
    busy = [day for day in days if day.saved or day.spent or (knows_models and day.model_tokens)]
    if not busy:
        return ui.section(
            "By day", ui.empty(f"Nothing was saved or spent in these {span} days."), beside=ui.line(*spans)
        )
    series = [(day.day, {"Saved": day.saved, "Spent": day.spent}) for day in days]
    head = ["Day", "Saved", "Spent", "Net"]
    head += ["Used by models", "US dollars"] if knows_models else []
    lines = [_sum(busy, knows_models), *(_line(day, knows_models) for day in reversed(busy))]
    return ui.section(
        "By day",
        charts.days(series, label=f"Tokens saved and spent on each of the last {span} days"),
        ui.table(
            f"Tokens on each of the last {span} days",
            head,
            lines,
            numbers=range(1, len(head)),
        ),
        beside=ui.line(*spans),
    )


def _line(day: DaySavings, knows_models: bool) -> list[Any]:
    cells = [
        el("span", ui.day_text(day.day), class_="number"),
        ui.count(day.saved),
        ui.count(day.spent),
        ui.count(day.saved - day.spent),
    ]
    return [*cells, *([ui.count(day.model_tokens), _money(day.cost)] if knows_models else [])]


def _sum(days: Sequence[DaySavings], knows_models: bool) -> list[Any]:
    saved, spent = sum(day.saved for day in days), sum(day.spent for day in days)
    cells = [el("strong", "Sum"), ui.count(saved), ui.count(spent), ui.count(saved - spent)]
    models = ui.count(sum(day.model_tokens for day in days)), _money(_costs(day.cost for day in days))
    return [*cells, *(models if knows_models else ())]


def _costs(costs: Iterable[float | None]) -> float | None:
    priced = [cost for cost in costs if cost is not None]
    return sum(priced) if priced else None


def _money(cost: float | None) -> str:
    return "–" if cost is None else f"${cost:,.4f}" if cost < 1 else f"${cost:,.2f}"


def _by_session(sessions: Sequence[SessionSavings], titles: Mapping[str, str], span: int) -> Element:
    """Return the savings and costs by session; sessions that have a page are links."""
    head = ["Conversation", "Last", "Saved", "Spent", "Net"]
    lines = (
        (
            ui.session_link(session.session, titles[session.session])
            if session.session in titles
            else ui.untitled(session.at),
            ui.moment(session.at, day=True),
            ui.count(session.saved),
            ui.count(session.spent),
            ui.count(session.saved - session.spent),
        )
        for session in sessions
    )
    title = f"Conversations of the last {span} days"
    return ui.section(
        title,
        ui.table(
            "Tokens that each conversation saved and spent, the newest first",
            head,
            lines,
            numbers=(2, 3, 4),
        ),
    )


# --- models -----------------------------------------------------------------------------------------


def _models(view: View, ledger: dict[str, Any]) -> Element:
    model, paused, ever = ledger["model"], ledger["paused"], ledger["model"]["ever"]
    tokens = sum(row["prompt_tokens"] + row["completion_tokens"] for row in ever)
    cached = sum(row["cached_tokens"] for row in ever)
    failed = sum(row["failed"] for row in model["today"])
    state = (
        [
            ui.note(f"Models are paused: {paused['reason']}.", kind="warn"),
            ui.action(view, "resume", "Resume"),
        ]
        if paused
        else [ui.action(view, "pause", "Pause models") if model["name"] else None]
    )
    limits = model["name"] is not None
    return ui.section(
        "Language models",
        ui.labelled_values(
            (
                ("Model", ui.memory_text(model["name"]) if model["name"] else "none is set"),
                ("Tokens today", _of(model["tokens_today"], model["daily_tokens"]) if limits else None),
                ("Tokens this hour", _of(model["tokens_this_hour"], model["hourly_tokens"]) if limits else None),
                ("Calls that failed today", ui.count(failed) if failed else None),
                ("Calls in all spaces", plural(sum(row["calls"] for row in ever), "call")),
                ("Tokens of all calls", _tokens(tokens)),
                ("Read from the provider's cache", _tokens(cached) if cached else None),
                ("Cost of all calls", _money(_costs(row["cost"] for row in ever))),
            )
        ),
        state,
    )


def _of(tokens: int, most: int) -> str:
    return f"{ui.count(tokens)} of {ui.count(most)}"


def _calls(ever: Sequence[dict[str, Any]]) -> Element | None:
    """Return a table of all calls to language models, with a row for each purpose and model; None without a call."""
    if not ever:
        return None
    head = ("Purpose", "Model", "Calls", "Failed",
            "Tokens read", "Tokens written", "US dollars")  # fmt: skip
    lines = (
        (
            ui.memory_text(row["purpose"]),
            ui.memory_text(row["model"]),
            ui.count(row["calls"]),
            ui.count(row["failed"]),
            ui.count(row["prompt_tokens"]),
            ui.count(row["completion_tokens"]),
            _money(row["cost"]),
        )
        for row in ever
    )
    return ui.section(
        "What models were asked for",
        ui.table("Calls to models by purpose, of all spaces", head, lines, numbers=range(2, 7)),
    )
