"""The stable block at the start of a session if no model has written the persona page: at most 400 tokens.

It shows who the user is, in a line; the rules; plans within two weeks; then statements for which the page has no room.
Each line has its id. The block changes only when the memory does, and once a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from mcp_memory.core.token_counts import TokenCounter
from mcp_memory.longterm import persona
from mcp_memory.longterm.digest import Candidate, line, ranked
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.turns import recall_block
from mcp_memory.store.citations import cited_atoms
from mcp_memory.store.sql import page_rows

START_TOKENS = 400
_RULES, _PLANS = 0.65, 0.2  # shares of the budget
_IDENTITY_TOKENS = 50
_WITHIN = timedelta(days=14)


def opening(context: SearchContext, *, counter: TokenCounter, budget: int) -> str:
    """Return the block; empty if a model wrote the page, or no sentence of the user was extracted."""
    stored = context.store.read(context.space, page_rows.persona)
    if stored is not None and stored.by_model:
        return ""
    candidates = [
        candidate for candidate in ranked(context.store, context.space, at=context.now) if _is_shown(candidate)
    ]
    if not any(candidate.atom.is_sentence for candidate in candidates):
        return ""
    budget = min(budget, START_TOKENS) - counter.count(recall_block("", part="stable"))
    rules = [candidate for candidate in candidates if candidate.section == "rules"]
    plans = [candidate for candidate in candidates if _is_near(context, candidate)]
    on_page = set(cited_atoms(persona.body(context.store, context.space, at=context.now)))
    placed = {candidate.atom.id for candidate in (*rules, *plans)} | on_page
    others = [candidate for candidate in candidates if candidate.atom.id not in placed]
    sections = (
        ("User: ", persona.identity(context.store, context.space, context.now), "; ", _IDENTITY_TOKENS),
        ("Always:\n", [line(rule) for rule in rules], "\n", int(_RULES * budget)),
        ("Next:\n", [line(plan) for plan in plans], "\n", int(_PLANS * budget)),
        ("Also:\n", [line(other) for other in others], "\n", budget),
    )
    parts: list[str] = []
    for label, items, joint, most in sections:
        room = min(most, budget - counter.count("\n".join([*parts, ""])))
        if part := _fit(label, items, joint, counter, room):
            parts.append(part)
    return recall_block("\n".join(parts), part="stable") if parts else ""


def _fit(label: str, items: Sequence[str], joint: str, counter: TokenCounter, budget: int) -> str:
    """Return the label with the items that fit, in order; an item that does not fit is skipped. Empty if none fits."""
    part = ""
    for item in items:
        longer = f"{part}{joint}{item}" if part else f"{label}{item}"
        if counter.fits(longer, budget):
            part = longer
    return part


def _is_shown(candidate: Candidate) -> bool:
    """Return whether a statement is the user's own or imported, and not doubted: the block has no marks for others.

    Promises are left out, because `recall.promises` shows them when they are due.
    """
    atom = candidate.atom
    return atom.source in ("user", "import") and not atom.doubts and candidate.section != "promises"


def _is_near(context: SearchContext, candidate: Candidate) -> bool:
    """Return whether a statement is about today or a day in the next two weeks."""
    if candidate.day is None:
        return False
    today = context.now.astimezone().date()
    return today <= candidate.day.astimezone().date() <= today + _WITHIN
