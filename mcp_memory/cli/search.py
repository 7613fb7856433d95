"""`search`: memories, turns and lines of tool results. `why`: the evidence of a memory, and explained searches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from mcp_memory.cli.base import as_json, ask, place, print_answer, settings, wants_json
from mcp_memory.cli.terminal import columns, day, one_line, page, plural, printed, said, visible, wrapped
from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import TurnHit
from mcp_memory.service.excerpts import passages
from mcp_memory.store.citations import address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mcp_memory.core.types import (
        AtomHit,
        CitedResult,
        MemoryResults,
        ResultHit,
        SceneHit,
        Signals,
        Turn,
        TurnResults,
        Why,
    )
    from mcp_memory.longterm.recall import Recalled, RowVerdict
    from mcp_memory.longterm.search.explain import Explained, ExplainedRow, SearchLeg
    from mcp_memory.service.memory import Memory

KINDS = ("persona", "episodic", "instruction")
ROLES = ("user", "assistant", "system", "tool", "note")
_OF_TURNS, _OF_MEMORIES = ("session", "role", "neighbours"), ("kind", "scene", "entity", "as_of")
_BOTH = ("since", "until", "limit", "cursor")


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--in", "layer", type=click.Choice(["turns", "memories"]), help="Search only these.")
@click.option(
    "--since", metavar="TIME", help="From this time on: 2026-10-25, 2026-10-25T08:20, 2026-10, yesterday, last week."
)
@click.option("--until", metavar="TIME", help="Up to this time; a day, week or month is included whole.")
@click.option("--session", metavar="NAME", help="Turns of this session.")
@click.option("--role", type=click.Choice(ROLES), help="Turns said by this role.")
@click.option(
    "--neighbours", type=click.IntRange(0, 10), default=0, metavar="N", help="Show N turns around each one found."
)
@click.option("--kind", type=click.Choice(KINDS), help="Memories of this kind.")
@click.option("--scene", metavar="NAME", help="Memories that this scene rests on.")
@click.option("--entity", metavar="NAME", help="Memories about this person or thing, by any of its names.")
@click.option("--as-of", metavar="TIME", help="Memories held true then, instead of now.")
@click.option(
    "--limit", type=click.IntRange(1, 50), default=10, show_default=True, metavar="N", help="At most N of each."
)
@click.option("--cursor", help="Continue a search where its last page ended; needs --in.")
@as_json
@place
def search(query: tuple[str, ...], layer: str | None, **filters: Any) -> None:
    """Find memories and verbatim turns, by words and by meaning, and lines of tool results.

    A filter that only one of the two knows (--session, --role, --neighbours; --kind, --scene, --entity,
    --as-of) narrows the search to it. Exit code 1 when nothing is found.

    \b
    mcp-memory search "who looks after bookings"
    mcp-memory search TRF-90457 --neighbours 2
    mcp-memory search "ImportError: cannot import name" --role tool
    mcp-memory search knee --since 2026-10-14 --until 2026-10-20 --role user
    mcp-memory search dentist --since "two months ago" --until "last week"
    mcp-memory search 牙医 --json
    """
    layer = _layer(layer, filters)
    if filters["cursor"] and not layer:
        raise click.UsageError("--cursor continues one list: add --in turns or --in memories.")
    words = " ".join(query)
    of_turns, of_memories, both = (
        {name: filters[name] for name in names} for names in (_OF_TURNS, _OF_MEMORIES, _BOTH)
    )

    async def find(memory: Memory) -> tuple[MemoryResults | None, TurnResults | None, list[str]]:
        known = heard = None
        if layer != "turns":
            known = await memory.memory_search(words, **of_memories, **both)
        if layer != "memories":
            heard = await memory.conversation_search(words, **of_turns, **both)
        answers = [answer for answer in (known, heard) if answer]
        found = bool((known and (known.atoms or known.scenes)) or (heard and heard.hits))
        found = found or any(answer.results for answer in answers)
        return known, heard, [] if found else (await memory.status())["spaces"]

    known, heard, spaces = ask(find)
    memories, scenes = (known.atoms, known.scenes) if known else ([], [])
    turns = heard.hits if heard else []
    results = heard.results if heard else known.results if known else []
    notes = list(dict.fromkeys(answer.note for answer in (known, heard) if answer and answer.note))
    cursors = {"memories": known.cursor if known and memories else None, "turns": heard.cursor if heard else None}
    found = {"memories": memories, "scenes": scenes, "turns": turns, "results": results}
    if wants_json() or any(found.values()):
        blocks = _found(memories, scenes, turns, results, limit=filters["limit"], cursors=cursors)
        print_answer({"query": words, **found, "cursors": cursors, "notes": notes}, "\n\n".join(blocks))
    for note in () if wants_json() else notes:
        click.echo(note, err=True)
    if not any(found.values()):
        here = settings().space
        others = ", ".join(space for space in spaces if space != here)
        more = f"Other spaces that hold something: {others}." if others else "Try other words, or fewer filters."
        raise NotFound(f"Nothing found in {here}. {more}")


def _layer(chosen: str | None, filters: dict[str, Any]) -> str | None:
    """Return the one layer that the filters leave, or None for both."""
    of_turns, of_memories = (any(filters[name] for name in names) for names in (_OF_TURNS, _OF_MEMORIES))
    if (of_turns and (of_memories or chosen == "memories")) or (of_memories and chosen == "turns"):
        raise click.UsageError(
            "--session, --role and --neighbours are about turns; --kind, --scene, --entity and --as-of about memories."
        )
    return chosen or ("turns" if of_turns else "memories" if of_memories else None)


def _found(
    memories: list[AtomHit],
    scenes: list[SceneHit],
    turns: list[TurnHit],
    results: list[ResultHit],
    *,
    limit: int,
    cursors: dict[str, str | None],
) -> Iterator[str]:
    listed = {
        "memories": [_memory(hit) for hit in memories],
        "scenes": [page(hit.scene) for hit in scenes],
        "turns": [_passage(run) for run in passages(turns)],
        "tool results": [_result(hit) for hit in results],
    }
    for title, found in listed.items():
        if found:
            yield "\n".join([click.style(title, bold=True), *found])
    for layer, cursor in cursors.items():
        if cursor:
            yield f"More {layer}: --in {layer} --limit {limit} --cursor {cursor}"


def _memory(hit: AtomHit) -> str:
    atom = hit.atom
    until = f" to {day(atom.valid_to)}" if atom.valid_to else ""
    head = f"  {atom.id}  {day(atom.valid_from)}{until}  {atom.kind}"
    return f"{click.style(head, dim=True)}\n{wrapped(atom.text, '    ')}"


def _result(hit: ResultHit) -> str:
    return printed(address(hit.ref, hit.lines), hit.call, hit.text, taken=hit.at, node=hit.node)


def _passage(run: Sequence[TurnHit | Turn]) -> str:
    """Return a turn alone, or a run of them, its hits marked, with a line of room after it."""
    alone = len(run) == 1
    shown = [said(turn.turn, marked=not alone) if isinstance(turn, TurnHit) else said(turn) for turn in run]
    return "\n".join(shown) + ("" if alone else "\n")


_ID = re.compile(r"[at]\d+|r-[0-9a-f]{12}(?:-\d+)?(?::\d+(?:-\d+)?)?|\d{3,}-N\d+", re.IGNORECASE)
_TEXT, _PARTS, _VERDICTS = 68, 4, 8


@click.command()
@click.argument("id_or_query", nargs=-1, required=True)
@click.option("--kind", type=click.Choice(KINDS), help="Of a query: this kind only.")
@click.option("--entity", help="Of a query: what is known of this one.")
@click.option("--since", help='Of a query: from this time on, such as "last week".')
@click.option("--until", help="Of a query: up to this time.")
@click.option("--limit", type=click.IntRange(1, 50), default=10, show_default=True, help="Results that are explained.")
@as_json
@place
def why(id_or_query: tuple[str, ...], **filters: Any) -> None:
    """Show the evidence of a memory; of a query, how a search finds and ranks its results.

    Of a memory or a turn, the tool results that it cites; of a result, the rows that cite it. If none is cited,
    earlier lines that say the same are shown as a guess.

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
        print_answer(found, _evidence(found))
        return

    async def explain(memory: Memory) -> tuple[Explained, Recalled]:
        return await memory.explain(asked, **filters), await memory.explain_recall(asked)

    search, recall = ask(explain)
    print_answer({"search": search, "recall": recall}, "\n\n".join(_explained(search, recall)))


# --- of an id ---------------------------------------------------------------------------------------


def _evidence(found: Why) -> str:
    blocks = [f"{click.style(found.id, bold=True)}  {visible(found.text)}"]
    if found.cites:
        blocks.append("\n".join(["It rests on", *map(_cited, found.cites)]))
    if found.likely:
        head = "It names no output. These were there before, and say the same:"
        blocks.append("\n".join([head, *map(_result, found.likely)]))
    if found.cited_by:
        rows = (
            f"  {click.style(f'{one.id}  {one.at}', dim=True)}\n{wrapped(one.text, '    ')}" for one in found.cited_by
        )
        blocks.append("\n".join(["What rests on it", *rows]))
    return "\n\n".join(blocks if len(blocks) > 1 else [*blocks, "No output is named here, and none says the same."])


def _cited(one: CitedResult) -> str:
    return printed(one.at, one.call, one.content, taken=one.taken, node=one.node, note=f"named by {one.by}")


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


def _leg(leg: SearchLeg) -> str:
    words = ", ".join(f"{word} {many:,}" for word, many in sorted(leg.words.items(), key=lambda one: one[1]))
    nearest = f", the nearest at {leg.nearest:.2f}" if leg.nearest is not None else ""
    return (
        f"{leg.by_words:,} by words{f' ({words})' if words else ''}, {leg.by_meaning:,} by meaning{nearest}; "
        f"{leg.candidates:,} weighed"
    )


def _block(title: str, rows: Sequence[ExplainedRow]) -> str:
    return "\n".join([click.style(title, bold=True), *(line for row in rows for line in _row(row))])


def _row(row: ExplainedRow) -> Iterable[str]:
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


def _verdict(one: RowVerdict) -> str:
    return f"weighs {one.weight:.2f}: {one.why}" if not one.why.startswith("has too little") else one.why
