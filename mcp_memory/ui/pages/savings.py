"""Savings: the tokens saved and spent, in total, by day and by session; the calls to language models.

Totals are those of `Memory.status()`; all days together add up to them. The ledger of models covers the whole home, so
only readers with the right to administer see it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import DaySavings, SessionSavings
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pictures import charts
from mcp_memory.ui.words import t

_SPANS = (7, 30, 90, 365)
_SESSIONS = 100


async def savings(view: View) -> Page:
    """Show tokens saved and spent: since the beginning, on the last days (`days` of the query), and by session."""
    span = _span(view)
    ledger = await view.memory.ledger()
    days = await view.memory.savings_by_day(days=span)
    sessions = await view.memory.savings_by_session(days=span)
    sessions_with_pages = await _sessions_with_pages(view, sessions)
    knows_models = view.is_owner or view.right == "admin"
    return Page(
        title=t("savings.title"),
        here="savings",
        body=ui.body(
            el("p", t("savings.counts")),
            ui.columns(_totals(ledger), _models(view, ledger) if knows_models else None),
            _by_day(days, span, knows_models and any(day.model_tokens for day in days)),
            _by_session(sessions, sessions_with_pages, span) if sessions else None,
            _calls(ledger["model"]["ever"]) if knows_models else None,
        ),
    )


async def _sessions_with_pages(view: View, sessions: Sequence[SessionSavings]) -> set[str]:
    """Return the names of the sessions that have a page, because they have turns or tool results."""
    names = {session.session for session in await view.memory.sessions(limit=_SESSIONS)}
    others = [session.session for session in sessions if session.session not in names]
    return names | {name for name in others if await view.memory.records(session=name, limit=1)}


def _span(view: View) -> int:
    days = view.query.get("days", "30")
    if days not in map(str, _SPANS):
        raise InvalidInput(t("savings.no_span", spans=", ".join(map(str, _SPANS))))
    return int(days)


# --- in all -----------------------------------------------------------------------------------------


def _totals(ledger: dict[str, Any]) -> Element:
    saved, offload = ledger["savings"], ledger["offload"]
    if not saved["kinds"] and not offload["tokens_raw"]:
        return ui.section(t("savings.all"), ui.empty(t("savings.nothing")))
    raw, kept = offload["tokens_raw"], offload["tokens_kept"]
    less = f"{1 - kept / raw:.1%}" if raw else ""
    became = t("savings.became", raw=ui.count(raw), kept=ui.count(kept), less=less)
    spent = [(t(f"savings.spent_{kind}"), _tokens(tokens)) for kind, tokens in saved["spent"].items()]
    return ui.section(
        t("savings.all"),
        _net(saved["net_tokens"], saved["net_cost"]),
        ui.labelled_values(
            (
                (t("savings.once"), _tokens(saved["saved_once"])),
                (t("savings.later"), _tokens(saved["saved_later"])),
                *spent,
                (t("savings.spent_later"), _tokens(saved["spent_later"])),
                (t("savings.broken"), _tokens(saved["cache_broken"]) if saved["cache_broken"] else None),
                (t("savings.results"), became if raw else None),
            )
        ),
        ui.note(t("savings.about")),
    )


def _net(tokens: int, cost: int) -> Element:
    kind = "saved" if tokens >= 0 else "lost"
    worth = t(f"savings.worth_{kind}", count=abs(cost)) if (cost >= 0) == (tokens >= 0) else None
    return el("p", el("strong", _tokens(abs(tokens))), " ", t(f"savings.net_{kind}"), " ", worth)


def _tokens(number: int) -> str:
    return t("savings.tokens", count=number)


# --- by day -----------------------------------------------------------------------------------------


def _by_day(days: Sequence[DaySavings], span: int, knows_models: bool) -> Element:
    spans = [
        el("strong", t("savings.days", count=each))
        if each == span
        else ui.link("/savings", t("savings.days", count=each), days=each)
        for each in _SPANS
    ]
    busy = [day for day in days if day.saved or day.spent or (knows_models and day.model_tokens)]
    if not busy:
        return ui.section(t("savings.by_day"), ui.empty(t("savings.no_days", count=span)), beside=ui.line(*spans))
    series = [(day.day, {t("savings.saved"): day.saved, t("savings.spent"): day.spent}) for day in days]
    head = [t("savings.day"), t("savings.saved"), t("savings.spent"), t("savings.net_column")]
    head += [t("savings.model_tokens"), t("savings.cost")] if knows_models else []
    lines = [_sum(busy, knows_models), *(_line(day, knows_models) for day in reversed(busy))]
    return ui.section(
        t("savings.by_day"),
        charts.days(series, label=t("savings.chart", count=span)),
        ui.table(t("savings.table", count=span), head, lines, numbers=range(1, len(head))),
        beside=ui.line(*spans),
    )


def _line(day: DaySavings, knows_models: bool) -> list[Any]:
    cells = [
        el("span", day.day.isoformat(), class_="number"),
        ui.count(day.saved),
        ui.count(day.spent),
        ui.count(day.saved - day.spent),
    ]
    return [*cells, *([ui.count(day.model_tokens), _money(day.cost)] if knows_models else [])]


def _sum(days: Sequence[DaySavings], knows_models: bool) -> list[Any]:
    saved, spent = sum(day.saved for day in days), sum(day.spent for day in days)
    cells = [el("strong", t("savings.sum")), ui.count(saved), ui.count(spent), ui.count(saved - spent)]
    models = ui.count(sum(day.model_tokens for day in days)), _money(_costs(day.cost for day in days))
    return [*cells, *(models if knows_models else ())]


def _costs(costs: Iterable[float | None]) -> float | None:
    priced = [cost for cost in costs if cost is not None]
    return sum(priced) if priced else None


def _money(cost: float | None) -> str:
    return "–" if cost is None else f"${cost:,.4f}" if cost < 1 else f"${cost:,.2f}"


def _by_session(sessions: Sequence[SessionSavings], with_pages: Collection[str], span: int) -> Element:
    """Return the savings and costs by session; sessions that have a page are links."""
    head = [t("savings.session"), t("savings.last"), t("savings.saved"), t("savings.spent"), t("savings.net_column")]
    lines = (
        (
            ui.link(f"/session/{ui.part(session.session)}", ui.memory_text(session.session))
            if session.session in with_pages
            else ui.memory_text(session.session),
            ui.moment(session.at, day=True),
            ui.count(session.saved),
            ui.count(session.spent),
            ui.count(session.saved - session.spent),
        )
        for session in sessions
    )
    title = t("savings.by_session", count=span)
    return ui.section(title, ui.table(t("savings.session_table"), head, lines, numbers=(2, 3, 4)))


# --- models -----------------------------------------------------------------------------------------


def _models(view: View, ledger: dict[str, Any]) -> Element:
    model, paused, ever = ledger["model"], ledger["paused"], ledger["model"]["ever"]
    tokens = sum(row["prompt_tokens"] + row["completion_tokens"] for row in ever)
    cached = sum(row["cached_tokens"] for row in ever)
    failed = sum(row["failed"] for row in model["today"])
    state = (
        [
            ui.note(t("savings.paused", reason=paused["reason"]), kind="warn"),
            ui.action(view, "resume", t("savings.resume")),
        ]
        if paused
        else [ui.action(view, "pause", t("savings.pause")) if model["name"] else None]
    )
    limits = model["name"] is not None
    return ui.section(
        t("savings.models"),
        ui.labelled_values(
            (
                (t("savings.model"), ui.memory_text(model["name"]) if model["name"] else t("savings.no_model")),
                (t("savings.today"), _of(model["tokens_today"], model["daily_tokens"]) if limits else None),
                (t("savings.hour"), _of(model["tokens_this_hour"], model["hourly_tokens"]) if limits else None),
                (t("savings.failed"), ui.count(failed) if failed else None),
                (t("savings.ever"), t("savings.calls", count=sum(row["calls"] for row in ever))),
                (t("savings.ever_tokens"), _tokens(tokens)),
                (t("savings.ever_cached"), _tokens(cached) if cached else None),
                (t("savings.ever_cost"), _money(_costs(row["cost"] for row in ever))),
            )
        ),
        state,
    )


def _of(tokens: int, most: int) -> str:
    return t("savings.of", tokens=ui.count(tokens), most=ui.count(most))


def _calls(ever: Sequence[dict[str, Any]]) -> Element:
    """Return a table of all calls to language models, with a row for each purpose and model."""
    if not ever:
        return ui.section(t("savings.ledger"), ui.empty(t("savings.no_calls")))
    head = (t("savings.purpose"), t("savings.model"), t("savings.calls_column"), t("savings.failed_column"),
            t("savings.read"), t("savings.written"), t("savings.cost"))  # fmt: skip
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
    return ui.section(t("savings.ledger"), ui.table(t("savings.ledger_table"), head, lines, numbers=range(2, 7)))
