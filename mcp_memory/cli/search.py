"""`recall`: the context that an agent gets. `search`: memories, turns and tool results. `why`: evidence, and explained
searches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from mcp_memory.cli.base import as_json, ask, place, print_answer, settings, wants_json
from mcp_memory.cli.terminal import (
    columns,
    day,
    json_text,
    minute,
    one_line,
    page,
    plural,
    printed,
    said,
    visible,
    wrapped,
)
from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import EXTRACTED, SAID_BY, TurnHit
from mcp_memory.longterm.verification.trust import REASONS
from mcp_memory.service.excerpts import passages
from mcp_memory.store.citations import address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mcp_memory.core.types import (
        Atom,
        AtomHit,
        CitedResult,
        MemoryResults,
        Mention,
        Quoted,
        ResultHit,
        SceneHit,
        Signals,
        Turn,
        TurnResults,
        Why,
    )
    from mcp_memory.longterm.recall.blocks import Recalled, RowVerdict
    from mcp_memory.longterm.search.explain import Explained, ExplainedRow, SearchLeg
    from mcp_memory.service.memory import Memory

KINDS = ("persona", "episodic", "instruction")
ROLES = ("user", "assistant", "system", "tool", "note")
_OF_TURNS, _OF_MEMORIES = ("session", "role", "neighbours"), ("kind", "scene", "entity", "as_of")
_BOTH = ("since", "until", "limit", "cursor")
_FAR = "It may not be known here."
_FAR_SHOWN = 3


@click.command()
@click.argument("question", nargs=-1, required=True)
@click.option(
    "--budget-tokens",
    type=click.IntRange(100, 100_000),
    default=1200,
    show_default=True,
    metavar="N",
    help="Print at most N tokens.",
)
@click.option("--session", metavar="NAME", help="Take the last turns of this session into account.")
@as_json
@place
def recall(question: tuple[str, ...], budget_tokens: int, session: str | None) -> None:
    """Print the context that an agent gets for a question.

    The stable block (the user, standing rules, the persona, scenes), then the memory about the question: the same
    text as that of the tool `recall`, within the same budget. Exit code 1 when there is nothing.

    \b
    mcp-memory recall "when does the boat sail?"
    mcp-memory recall "what does she eat?" --budget-tokens 400
    mcp-memory recall "open questions about the move" --json
    """
    from mcp_memory.service.render import render

    asked = " ".join(question)
    found = ask(lambda memory: memory.recall_answer(asked, session=session, budget_tokens=budget_tokens))
    if wants_json():
        click.echo(json_text(found))
    elif found.tokens:
        click.echo(visible(render(found)))
    if not found.tokens:
        raise NotFound(f"Nothing about this is known in {settings().space}. Try `mcp-memory search` with other words.")


@click.command()
@click.argument("query", nargs=-1)
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
@click.option("--scene", metavar="NAME", help="Memories that this scene is based on.")
@click.option("--entity", metavar="NAME", help="Memories about this person or thing, by any of its names.")
@click.option("--as-of", metavar="TIME", help="Memories held true then, instead of now.")
@click.option(
    "--limit", type=click.IntRange(1, 50), default=10, show_default=True, metavar="N", help="At most N of each."
)
@click.option("--cursor", help="Continue a search where its last page ended; needs --in.")
@as_json
@place
def search(query: tuple[str, ...], layer: str | None, **filters: Any) -> None:
    """Search statements, conversations and tool results.

    The search goes by words and by meaning; without a query, turns are listed by time, newest first. A filter that
    only turns have (--session, --role, --neighbours) or only memories (--kind, --scene, --entity, --as-of) narrows the
    search to them. If the memory is unlikely to know, the answer says so first. Exit code 1 when nothing is found.

    \b
    mcp-memory search "who looks after bookings"
    mcp-memory search TRF-90457 --neighbours 2
    mcp-memory search "ImportError: cannot import name" --role tool
    mcp-memory search knee --since 2026-10-14 --until 2026-10-20 --role user
    mcp-memory search dentist --since "two months ago" --until "last week"
    mcp-memory search --in turns --since yesterday
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
    is_known = next((answer.known for answer in (heard, known) if answer and answer.known), None)
    is_far = is_known == "unlikely" and not (memories or scenes or results)
    cursors = {"memories": known.cursor if known and memories else None, "turns": heard.cursor if heard else None}
    found = {"memories": memories, "scenes": scenes, "turns": turns, "results": results}
    if wants_json() or any(found.values()):
        shown = turns[:_FAR_SHOWN] if is_far else turns
        blocks = [
            *([f"{_FAR} The nearest, perhaps about other things:"] if is_far else []),
            *_found(memories, scenes, shown, results, limit=filters["limit"], cursors=cursors),
        ]
        print_answer(
            {"query": words, "known": is_known, **found, "cursors": cursors, "notes": notes}, "\n\n".join(blocks)
        )
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
        "memories": [_statement(hit.atom, hit.when) for hit in memories],
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


def _result(hit: ResultHit) -> str:
    return printed(address(hit.ref, hit.lines), hit.call, hit.text, taken=hit.at, node=hit.node)


def _passage(run: Sequence[TurnHit | Turn]) -> str:
    """Return a turn alone, or a run of them, its hits marked, with a line of room after it."""
    alone = len(run) == 1
    newer = {id: turn for row in run if isinstance(row, TurnHit) for id, turn in row.newer.items()}
    shown = [
        said(row.turn, marked=not alone, newer=newer.get(row.turn.id))
        if isinstance(row, TurnHit)
        else said(row, newer=newer.get(row.id))
        for row in run
    ]
    return "\n".join(shown) + ("" if alone else "\n")


_ID = re.compile(r"[at]\d+|r-[0-9a-f]{12}(?:-\d+)?(?::\d+(?:-\d+)?)?|\d{3,}-N\d+", re.IGNORECASE)
_TEXT, _PARTS, _VERDICTS = 60, 4, 8


@click.command()
@click.argument("id_or_query", nargs=-1, required=True)
@click.option("--kind", type=click.Choice(KINDS), help="Of a query: this kind only.")
@click.option("--entity", help="Of a query: memories about this person or thing.")
@click.option("--since", help='Of a query: from this time on, such as "last week".')
@click.option("--until", help="Of a query: up to this time.")
@click.option("--limit", type=click.IntRange(1, 50), default=10, show_default=True, help="Results that are explained.")
@as_json
@place
def why(id_or_query: tuple[str, ...], **filters: Any) -> None:
    """Show the basis of a memory, or why a search finds it.

    Of a statement: the words that it is based on, their speaker and time, whether they are still there, and the rows
    based on it. Of a turn: the statements made from it. Of both, the tool results that they cite; if none is cited,
    earlier lines that say the same are shown as a guess. Of a result, the rows that cite it.

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


def _evidence(found: Why) -> Iterator[str]:
    yield f"{click.style(found.id, bold=True)}  {visible(found.text)}"
    if found.turn is not None:
        yield click.style(f"  {_spoken(found.turn)}", dim=True)
    if found.atom is not None:
        yield click.style(columns(_about(found.atom), indent=2), dim=True)
    yield from _listed("Based on these words", map(_quote, found.quotes))
    yield from _listed("Replaced by", map(_statement, found.replaced_by))
    yield from _listed("Replaces", map(_statement, found.replaces))
    yield from _listed("Named in", map(_mention, found.mentions))
    yield from _listed("Statements based on it", map(_statement, found.atoms))
    yield from _listed("Tool results that it cites", map(_cited, found.cites))
    head = "It cites no tool result. These lines were there before it, and say the same"
    yield from _listed(head, map(_result, found.likely))
    yield from _listed("Cited by", (_row_of(f"{one.id}  {one.at}", one.text) for one in found.cited_by))
    if found.atom is None and not (found.atoms or found.cites or found.likely or found.cited_by):
        yield "\nNothing is based on it, and it cites no tool result."


def _listed(title: str, blocks: Iterable[str]) -> Iterator[str]:
    shown = list(blocks)
    if shown:
        yield "\n".join(["", click.style(title, bold=True), *shown])


def _row_of(head: str, text: str) -> str:
    return f"  {click.style(visible(head), dim=True)}\n{wrapped(text, '    ')}"


def _about(atom: Atom) -> Iterator[tuple[str, str]]:
    from mcp_memory.service.render import promise_state

    yield "kind", atom.kind if atom.label != "promise" else f"promise, {promise_state(atom)}"
    yield (
        "true",
        f"{day(atom.valid_from)} to {day(atom.valid_to)}" if atom.valid_to else f"since {day(atom.valid_from)}",
    )
    yield "learned", minute(atom.learned_at)
    yield "said by", SAID_BY[atom.source]
    if atom.is_sentence:
        yield "origin", EXTRACTED
    if atom.closed_because:
        yield "ended", visible(atom.closed_because)
    if atom.held:
        yield "held", f"{', '.join(REASONS.get(reason, reason) for reason in atom.held)}; see `mcp-memory review`"
    if atom.doubts:
        yield "check", ", ".join(REASONS.get(reason, reason) for reason in atom.doubts)


def _spoken(turn: Turn) -> str:
    if turn.role == "note":
        who = "told with `remember`"
    else:
        who = f"said by {turn.name} ({turn.role})" if turn.name else f"said by the {turn.role}"
    return visible(f"{minute(turn.said_at)}  {who}  session {turn.session}")


def _quote(one: Quoted) -> str:
    if one.turn is None:
        return _row_of(one.turn_id, f"“{one.quote}”\nThe turn was forgotten.")
    stands = "These words are in the turn, unchanged." if one.stands else "The turn no longer has these words: changed."
    return _row_of(f"{one.turn_id}  {_spoken(one.turn)}", f"“{one.quote}”\n{stands}")


def _statement(atom: Atom, when: str | None = None) -> str:
    until = f" to {day(atom.valid_to)}" if atom.valid_to else ""
    return _row_of(f"{atom.id}  {when or day(atom.valid_from)}{until}  {atom.kind}", atom.text)


def _mention(one: Mention) -> str:
    return _row_of("persona" if one.slug is None else f"scene {one.slug}", one.line.lstrip("-* "))


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
        yield "related", one_line(", ".join(search.related), 140)
    if search.asks_for:
        yield "speaker", f"asks for what the {search.asks_for} said"
    if search.times:
        yield "time", "; ".join(search.times)
    for leg in search.legs:
        yield f"{leg.layer}s", _leg(leg)
    if search.known:
        yield "known here", search.known
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
    return f"{100 * one.probability:.0f} % likely to help: {one.why}"
