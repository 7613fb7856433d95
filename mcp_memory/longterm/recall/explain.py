"""Explains a recall: which rows it shows for a question, and why it leaves others out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcp_memory.core.tokens import TokenCounter
from mcp_memory.longterm.desk import Desk
from mcp_memory.longterm.recall import bundle
from mcp_memory.longterm.recall.relevance import ABOUT, NEAR, Weighed, asked, weighed
from mcp_memory.longterm.trust import held_ids
from mcp_memory.store.protocol import Layer

__all__ = ["Recalled", "Verdict", "recalled"]

_LOOKED_AT = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision on one row. `weight` is its relevance: 1 is relevant, 0.5 is near."""

    id: str
    weight: float
    cosine: float
    brought: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The dynamic block for a question, and the decision on each of the first rows of the search."""

    tokens: int
    brought: str
    left_out: tuple[str, ...]
    """Relevant rows that did not fit."""
    about: float
    near: float
    verdicts: tuple[Verdict, ...]


def recalled(desk: Desk, query: str, *, counter: TokenCounter, budget: int) -> Recalled:
    """Recall for a question without a session, and explain the decision on each row."""
    made = bundle.bundle(desk, query, session=None, counter=counter, budget=budget)
    wanted = asked(desk, [query])
    rows = [(layer, row) for layer in _LAYERS for row in weighed(wanted, layer, limit=_LOOKED_AT)] if wanted else []
    anything = any(row.weight >= ABOUT and not row.is_echo for _, row in rows)
    held = held_ids(desk.store, desk.space, [row.id for _, row in rows])
    told = set(_named(made.dynamic))
    stable = set(_named(made.stable))
    return Recalled(
        tokens=made.tokens,
        brought=made.dynamic,
        left_out=tuple(made.left_out),
        about=ABOUT,
        near=NEAR,
        verdicts=tuple(
            Verdict(
                id=row.id,
                weight=round(row.weight, 3),
                cosine=round(row.cosine, 3),
                brought=row.id in told,
                why=_why(row, told=told, stable=stable, left_out=made.left_out, held=held, anything=anything),
            )
            for _, row in sorted(rows, key=lambda one: -one[1].weight)
        ),
    )


_LAYERS: tuple[Layer, ...] = ("atom", "turn")


def _why(row: Weighed, *, told: set[str], stable: set[str], left_out: list[str], held: set[str], anything: bool) -> str:
    is_about = anything and row.weight >= NEAR
    if row.id in told:
        return "is brought" if is_about else "is brought as the closest there is; it may be about something else"
    if row.id in stable:
        return "stands in the stable block"
    if row.id in held:
        return "waits for review"
    if row.id in left_out:
        return "finds no room in the budget"
    if row.is_echo:
        return "only repeats what is asked"
    if not is_about:
        return f"is not surely about it ({row.weight:.2f}, where {NEAR} is near), and closer rows took the room"
    return "is told by another line, or no longer holds"


def _named(block: str) -> Iterator[str]:
    """Yield the ids that a block shows: `- [a5 · …`, `- [t7] …` and, in pages, `(a5, a7)`."""
    from mcp_memory.store.citations import cited

    yield from cited(block)
    for line in block.splitlines():
        if line.startswith("- ["):
            yield line[3:].split("]")[0].split(" ")[0]
