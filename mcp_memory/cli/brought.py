"""What became of imported files, of each and of all together, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from mcp_memory.cli.terminal import day, plural, visible, wrapped

if TYPE_CHECKING:
    from mcp_memory.integrations.importers import Brought
    from mcp_memory.integrations.importers.cost import Cost

__all__ = ["lines", "together"]


def lines(one: Brought) -> Iterator[str]:
    """Yield what became of a file: its name and what it holds, then what was done, what it costs and what is odd."""
    name = click.style(visible(one.file), bold=True)
    if one.state == "known":
        yield f"{name}: nothing new"
    elif one.state == "refused":
        yield f"{name}: nothing of it was stored, for {plural(one.bad, 'place')} in it cannot be taken"
    else:
        span = f", {day(one.first)} to {day(one.last)}" if one.first and one.last else ""
        where = f"session {one.session}" if one.session else plural(one.sessions, "session")
        turns = f": {plural(one.turns, 'turn')} in {where}{span}" if one.turns or not one.statements else ""
        yield f"{name}{turns}"
    if one.state == "stored" and (one.turns or not one.statements):
        before = f", {one.duplicates:,} were there before" if one.duplicates else ""
        gone = f", {one.forgotten:,} were forgotten here and stay so" if one.forgotten else ""
        emptied = f", {one.emptied:,} held only what this memory had recalled" if one.emptied else ""
        yield f"  {one.stored:,} stored{before}{gone}{emptied}"
    if one.state == "seen" and one.forgotten:
        yield f"  {one.forgotten:,} were forgotten here and would stay so"
    if one.statements:
        yield _told(one)
    if one.kept or one.small:
        kept = "would be kept" if one.state == "seen" else "kept"
        yield f"  {plural(one.kept, 'tool result')} {kept}, {one.small:,} too small for that"
    if one.noise is not None and one.turns:
        yield f"  {one.noise:,} of the turns ({one.noise / one.turns:.0%}) are noise that no model would be shown"
    if one.cost is not None:
        yield from _cost(one.cost)
    for note in one.notes:
        yield wrapped(note, "  ")
    for wrong in one.wrong:
        yield wrapped(wrong, "  wrong: ")
    if one.bad > len(one.wrong) > 0:
        yield f"  and {one.bad - len(one.wrong):,} more"
    if one.state == "refused":
        yield "  Mend them, or pass over them with --skip-bad."


def _told(one: Brought) -> str:
    if one.state != "stored":
        return f"  {plural(one.statements, 'statement')} of another memory"
    rest = one.statements - one.told - one.repeated
    parts = [f"{plural(one.told, 'statement')} told"]
    parts += [f"{one.repeated:,} were here before"] if one.repeated else []
    parts += [f"{rest:,} were forgotten here"] if rest else []
    parts += [f"{one.held:,} wait for review (`mcp-memory review`)"] if one.held else []
    return f"  {', '.join(parts)}"


def together(files: Sequence[Brought], cost: Cost | None) -> Brought | None:
    """Return what came of all files as if they were one; None where fewer than two hold something new."""
    from mcp_memory.integrations.importers import Brought

    new = [one for one in files if one.state in ("stored", "seen")]
    if len(new) < 2:
        return None
    return Brought(
        file=f"All {len(new):,} together",
        state=new[0].state,
        turns=sum(one.turns for one in new),
        sessions=len({one.session for one in new if one.session}) + sum(one.sessions for one in new if not one.session),
        first=min((one.first for one in new if one.first), default=None),
        last=max((one.last for one in new if one.last), default=None),
        stored=sum(one.stored for one in new),
        statements=sum(one.statements for one in new),
        told=sum(one.told for one in new),
        held=sum(one.held for one in new),
        repeated=sum(one.repeated for one in new),
        duplicates=sum(one.duplicates for one in new),
        forgotten=sum(one.forgotten for one in new),
        emptied=sum(one.emptied for one in new),
        kept=sum(one.kept for one in new),
        small=sum(one.small for one in new),
        noise=sum(one.noise or 0 for one in new) if new[0].state == "seen" else None,
        cost=None if any(one.state == "refused" for one in files) else cost,
    )


def _cost(cost: Cost) -> Iterator[str]:
    price = "a price that is not known" if cost.price is None else f"about ${cost.price:,.2f}"
    days = (
        "The caps allow no calls."
        if cost.days is None
        else f"With the caps on tokens it takes {plural(cost.days, 'day')}."
    )
    yield wrapped(
        f"Having {cost.model} read it takes about {plural(cost.questions, 'question')}, {cost.prompt_tokens:,} tokens "
        f"in and {cost.completion_tokens:,} out, {price}. {days}",
        "  ",
    )
