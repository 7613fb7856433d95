"""`why`: which output made us believe this, who rests on an output, and how a search finds what it shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import as_json, ask, place
from mcp_memory.cli.terminal import columns, json_text, one_line, plural, printed, visible, wrapped
from mcp_memory.store.naming import address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mcp_memory.core.types import CitedResult, ResultHit, Signals, Why
    from mcp_memory.longterm.recall.explain import Recalled, Verdict
    from mcp_memory.longterm.search.explain import Explained
    from mcp_memory.longterm.search.seen import Leg, Row

__all__ = ["why"]

_ID = re.compile(r"[at]\d+|r-[0-9a-f]{12}(?:-\d+)?(?::\d+(?:-\d+)?)?|\d{3,}-N\d+", re.IGNORECASE)
_TEXT, _PARTS, _VERDICTS = 68, 4, 8


@click.command()
@click.argument("id_or_query", nargs=-1, required=True)
@click.option("--kind", type=click.Choice(["persona", "episodic", "instruction"]), help="Of a query: this kind only.")
@click.option("--entity", help="Of a query: what is known of this one.")
@click.option("--since", help='Of a query: from this time on, such as "last week".')
@click.option("--until", help="Of a query: up to this time.")
@click.option("--limit", type=click.IntRange(1, 50), default=10, show_default=True, help="Results that are explained.")
@as_json
@place
def why(
    id_or_query: tuple[str, ...],
    kind: str | None,
    entity: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show what a memory rests on; of a query, how a search finds what it shows.

    Of a memory or a turn, the tool results it rests on; of a result, who rests on it. Where nobody named one, lines
    that say the same and were there before are shown as a guess.

    Of a query: what each leg of the search finds, what each signal gives every result and which place it has by it,
    what just missed and by how much, what filters and reviews take out, and what recall would bring of it.

    \b
    mcp-memory why a57
    mcp-memory why t812 --json
    mcp-memory why r-9f2c1a7b3d4e:120-134
    mcp-memory why 003-N4
    mcp-memory why "where is the boat?" --since "last month"
    """
    asked = " ".join(id_or_query)
    if _ID.fullmatch(asked.strip()):
        found = ask(lambda memory: memory.why(asked))
        click.echo(json_text(found) if as_json else _told(found))
        return
    search, recall = ask(
        lambda memory: memory.explain(
            asked,
            kind=kind,  # pyright: ignore[reportArgumentType]
            entity=entity,
            since=since,
            until=until,
            limit=limit,
        )
    )
    click.echo(json_text({"search": search, "recall": recall}) if as_json else "\n\n".join(_explained(search, recall)))


# --- of an id ---------------------------------------------------------------------------------------


def _told(found: Why) -> str:
    blocks = [f"{click.style(found.id, bold=True)}  {visible(found.text)}"]
    if found.cites:
        blocks.append("\n".join(["It rests on", *map(_cited, found.cites)]))
    if found.likely:
        head = "It names no output. These were there before, and say the same:"
        blocks.append("\n".join([head, *map(_likely, found.likely)]))
    if found.cited_by:
        rows = (
            f"  {click.style(f'{one.id}  {one.at}', dim=True)}\n{wrapped(one.text, '    ')}" for one in found.cited_by
        )
        blocks.append("\n".join(["What rests on it", *rows]))
    return "\n\n".join(blocks if len(blocks) > 1 else [*blocks, "No output is named here, and none says the same."])


def _cited(one: CitedResult) -> str:
    return printed(one.at, one.call, one.content, taken=one.taken, node=one.node, note=f"named by {one.by}")


def _likely(hit: ResultHit) -> str:
    return printed(address(hit.ref, hit.lines), hit.call, hit.text, taken=hit.at, node=hit.node)


# --- of a query -------------------------------------------------------------------------------------


def _explained(search: Explained, recall: Recalled) -> Iterator[str]:
    yield visible(columns(_asked(search)))
    yield _block("Shown, best first", search.shown) if search.shown else "Nothing is found."
    if search.missed:
        yield _block("Just missed", search.missed)
    if search.left_out:
        yield _block("Not shown, though it ranks as high", search.left_out)
    lines = [f"  scene {visible(slug)}  {_signals(by)}" for slug, by in search.scenes]
    lines += [
        f"  {visible(at)}  {_signals(by)}{'' if enough else '  holds too little of the question'}"
        for at, by, enough in search.results
    ]
    if lines:
        yield "\n".join([click.style("Beside these", bold=True), *lines])
    yield _recall(recall)


def _asked(search: Explained) -> Iterator[tuple[str, str]]:
    yield "words", ", ".join(search.words) or "none that says what it is about"
    if search.related:
        yield "related", one_line(", ".join(search.related), 90)
    if search.asks_for:
        yield "speaker", f"asks for what the {search.asks_for} said"
    if search.times:
        yield "time", "; ".join(search.times)
    for leg in search.legs:
        yield f"{leg.layer}s", _leg(leg)
    if search.note:
        yield "note", search.note


def _leg(leg: Leg) -> str:
    words = ", ".join(f"{word} {many:,}" for word, many in sorted(leg.words.items(), key=lambda one: one[1]))
    nearest = f", the nearest at {leg.nearest:.2f}" if leg.nearest is not None else ""
    return (
        f"{leg.by_words:,} by words{f' ({words})' if words else ''}, {leg.by_meaning:,} by meaning{nearest}; "
        f"{leg.candidates:,} weighed"
    )


def _block(title: str, rows: Sequence[Row]) -> str:
    return "\n".join([click.style(title, bold=True), *(line for row in rows for line in _row(row))])


def _row(row: Row) -> Iterable[str]:
    parts = " + ".join(f"{part.signal} {part.points:.3f} (no. {part.place})" for part in row.parts[:_PARTS])
    rest = sum(part.points for part in row.parts[_PARTS:])
    notes = [
        f"{row.behind:.3f} behind" if row.behind else "",
        row.left_out or "",
        f"waits for review: {', '.join(row.held)}" if row.held else "",
    ]
    yield f"  {row.id:<7} {row.score:.3f}  {one_line(row.text, _TEXT)}"
    sums = f"= {parts}{f' + {rest:.3f} more' if rest > 0 else ''}" if parts else ""
    cosine = f"cosine {row.cosine:.2f}" if row.cosine is not None else ""
    told = "; ".join(visible(part) for part in (sums, cosine, *notes) if part)
    yield click.style(wrapped(told, " " * 10), dim=True)


def _signals(by: Signals) -> str:
    return ", ".join(f"{name} {value}" for name, value in by.items())


def _recall(recall: Recalled) -> str:
    brought = [one.id for one in recall.verdicts if one.brought]
    head = f"Recall would bring {', '.join(brought) if brought else 'none of these rows'}"
    lines = [f"  {one.id:<7} {_verdict(one)}" for one in recall.verdicts if not one.brought]
    more = len(lines) - _VERDICTS
    return "\n".join(
        [
            f"{click.style(head, bold=True)} ({plural(recall.tokens, 'token')} with the stable block)",
            *lines[:_VERDICTS],
            *([f"  and {more} more like these; --json has them all"] if more > 0 else []),
        ]
    )


def _verdict(one: Verdict) -> str:
    return f"weighs {one.weight:.2f}: {one.why}" if not one.why.startswith("has too little") else one.why
