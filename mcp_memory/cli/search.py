"""`recall`: context for an agent. `search`: memories, turns, tool results. `why`: evidence, explained searches."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from mcp_memory.cli.base import as_json, ask, memory_options, print_answer, settings, wants_json
from mcp_memory.cli.terminal import (
    columns,
    escape_controls,
    format_day,
    format_minute,
    json_text,
    one_line,
    output_block,
    turn_block,
    wrap,
)
from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import plural
from mcp_memory.core.types import EXTRACTED, SAID_BY
from mcp_memory.longterm.verification.trust import REASONS
from mcp_memory.store.citations import address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mcp_memory.core.types import (
        Atom,
        CitedResult,
        FoundLayer,
        FoundPage,
        Hit,
        Mention,
        Quoted,
        ResultHit,
        Signals,
        Turn,
        Why,
    )
    from mcp_memory.longterm.recall.blocks import Recalled, RowVerdict
    from mcp_memory.longterm.search.explain import Explained, ExplainedRow, SearchLeg
    from mcp_memory.service.memory import Memory

KINDS = ("persona", "episodic", "instruction")
ROLES = ("user", "assistant", "system", "tool", "note")
LAYERS: dict[str, FoundLayer] = {
    "turns": "turn",
    "statements": "statement",
    "results": "result",
    "pages": "page",
    "entities": "entity",
}
_TURN_FILTERS, _STATEMENT_FILTERS = ("session", "role"), ("kind", "scene", "entity")
_FAR = "Nothing close is known here. The nearest, perhaps about other things:"
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
@memory_options
def recall(question: tuple[str, ...], budget_tokens: int, session: str | None) -> None:
    """Print the context that an agent gets for a question.

    The stable block (the user, standing rules, the persona, scenes), then the memory about the question: the same
    text as the tool `recall` returns, within the same budget. Exit code 1 if nothing is found.

    \b
    mcp-memory recall "when does the boat sail?"
    mcp-memory recall "what does she eat?" --budget-tokens 400
    mcp-memory recall "open questions about the move" --json
    """
    from mcp_memory.service.render import render

    asked = " ".join(question)
    answer = ask(lambda memory: memory.recall_answer(asked, session=session, budget_tokens=budget_tokens))
    if wants_json():
        click.echo(json_text(answer))
    elif answer.tokens:
        click.echo(escape_controls(render(answer)))
    if not answer.tokens:
        raise NotFound(f"Nothing about this is known in {settings().space}. Try `mcp-memory search` with other words.")


@click.command()
@click.argument("query", nargs=-1)
@click.option("--in", "layers", type=click.Choice(list(LAYERS)), multiple=True, help="Search only these; repeatable.")
@click.option(
    "--since", metavar="TIME", help="From this time on: 2026-10-25, 2026-10-25T08:20, 2026-10, yesterday, last week."
)
@click.option("--until", metavar="TIME", help="Up to this time; a day, week or month is included whole.")
@click.option("--session", metavar="NAME", help="Turns and tool results of this session.")
@click.option("--role", type=click.Choice(ROLES), help="Turns said by this role; tool: tool results too.")
@click.option(
    "--neighbours", type=click.IntRange(0, 10), default=0, metavar="N", help="Show N turns around each one found."
)
@click.option("--kind", type=click.Choice(KINDS), help="Statements of this kind.")
@click.option("--scene", metavar="NAME", help="Statements that this scene is based on.")
@click.option("--entity", metavar="NAME", help="Statements about this person or thing, by any of its names.")
@click.option("--as-of", metavar="TIME", help="Statements held true then, and what was said until then.")
@click.option("--limit", type=click.IntRange(1, 50), default=10, show_default=True, metavar="N", help="At most N.")
@click.option("--cursor", help="Continue a search where its last page ended.")
@as_json
@memory_options
def search(query: tuple[str, ...], layers: tuple[str, ...], **filters: Any) -> None:
    """Search all that was said, stored and learned.

    Everything is in one list, best first, by words and meaning. What contains an identifier or a "quoted phrase" of the
    query comes first, what waits for review last. Without a query, turns are listed by time, newest first. A filter
    that only turns have (--session, --role) or only statements (--kind, --scene, --entity) limits the search to them.
    If nothing is close, the answer begins with that, and the nearest rows follow. Exit code 1 if there is nothing to
    show.

    \b
    mcp-memory search "who looks after bookings"
    mcp-memory search TRF-90457 --neighbours 2
    mcp-memory search "ImportError: cannot import name" --role tool
    mcp-memory search knee --since 2026-10-14 --until 2026-10-20 --role user
    mcp-memory search dentist --since "two months ago" --until "last week"
    mcp-memory search --in turns --since yesterday
    mcp-memory search 牙医 --json
    """
    of_turns, of_statements = (any(filters[name] for name in names) for names in (_TURN_FILTERS, _STATEMENT_FILTERS))
    if of_turns and of_statements:
        raise click.UsageError(
            "--session and --role are about turns; --kind, --scene and --entity about statements. Leave one group out."
        )
    words = " ".join(query)

    async def find(memory: Memory) -> tuple[FoundPage, list[str]]:
        page = await memory.find(words, layers=[LAYERS[name] for name in layers], **filters)
        return page, [] if page.hits else (await memory.status()).get("spaces", [])

    page, spaces = ask(find)
    if wants_json() or page.hits:
        is_far = page.known == "unlikely"
        blocks = [_FAR, *_hit_blocks(page.hits[:_FAR_SHOWN])] if is_far else [*_hit_blocks(page.hits)]
        if page.cursor and not is_far:
            blocks.append(f"More: --limit {filters['limit']} --cursor {page.cursor}")
        print_answer({"query": words, **asdict(page)}, "\n".join(blocks))
    if page.note and not wants_json():
        click.echo(page.note, err=True)
    if not page.hits:
        here = settings().space
        others = ", ".join(space for space in spaces if space != here)
        more = f"Other spaces with contents: {others}." if others else "Try other words, or fewer filters."
        raise NotFound(f"Nothing found in {here}. {more}")


def _hit_blocks(hits: Sequence[Hit]) -> Iterator[str]:
    """Yield each hit as text; a turn that stands beside a better hit is not repeated."""
    shown: set[str] = set()
    for hit in hits:
        if hit.id in shown:
            continue
        around = [turn for turn in hit.neighbours if turn.id not in shown]
        shown.update([hit.id, *(turn.id for turn in around)])
        behind = [turn for turn in around if _number(turn.id) > _number(hit.id)]
        yield "\n".join(
            [
                *(turn_block(turn) for turn in around if turn not in behind),
                _hit_block(hit, marked=bool(hit.neighbours)),
                *(turn_block(turn) for turn in behind),
                *([""] if around else []),
            ]
        )


def _number(id: str) -> int:
    return int(id[1:])


def _hit_block(hit: Hit, *, marked: bool) -> str:
    from mcp_memory.service.render import changed_lines

    held = f"quarantined: {', '.join(REASONS.get(reason, reason) for reason in hit.held)}" if hit.held else ""
    changed = f"changed {format_day(hit.newer.said_at)}, see {hit.newer.id}" if hit.newer else ""
    match hit.layer:
        case "turn":
            who = hit.kind if hit.said_by == hit.kind else f"{hit.kind} {hit.said_by}"
            parts = (hit.id, format_minute(hit.at) if hit.at else "", who, hit.session, changed)
        case "statement":
            parts = (hit.id, hit.when or (format_day(hit.at) if hit.at else ""), hit.kind)
        case "result":
            lines = ",".join(changed_lines(hit.changed)).strip()
            parts = (hit.id, hit.node, format_minute(hit.at) if hit.at else "", one_line(hit.title or "", 60), lines)
        case "page":
            parts = ("page", hit.id, format_day(hit.at) if hit.at else "", one_line(hit.title or "", 60))
        case "entity":
            parts = ("name", hit.id)
    head = "  ".join(part for part in (*parts, held) if part)
    mark = "*" if marked else " "
    body = wrap(hit.text, "    | " if hit.layer == "result" else "    ")
    return f"{click.style(escape_controls(f'{mark} {head}'), dim=True)}\n{body}"


def _result_hit(hit: ResultHit) -> str:
    from mcp_memory.service.render import changed_lines

    note = ",".join(changed_lines(hit.changed)).strip()
    return output_block(address(hit.ref, hit.lines), hit.call, hit.text, taken=hit.at, node=hit.node, note=note)


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
@memory_options
def why(id_or_query: tuple[str, ...], **filters: Any) -> None:
    """Show the basis of a memory, or why a search finds it.

    For a statement: the words that it is based on, their speaker and time, whether they are still there, and the rows
    based on it. For a turn: the statements made from it. For both, the tool results that they cite; without citations,
    earlier lines with the same meaning are shown as a guess. For a result: the rows that cite it.

    For a query: what each leg of the search finds, the points and rank of every result by each signal, what just
    missed and by how much, what filters and reviews exclude, and what recall would use.

    \b
    mcp-memory why a57
    mcp-memory why t812 --json
    mcp-memory why r-9f2c1a7b3d4e:120-134
    mcp-memory why 003-N4
    mcp-memory why "where is the boat?" --since "last month"
    """
    asked = " ".join(id_or_query)
    if _ID.fullmatch(asked.strip()):
        evidence = ask(lambda memory: memory.why(asked))
        print_answer(evidence, _evidence(evidence))
        return

    async def explain(memory: Memory) -> tuple[Explained, Recalled]:
        return await memory.explain(asked, **filters), await memory.explain_recall(asked)

    search, recall = ask(explain)
    print_answer({"search": search, "recall": recall}, "\n\n".join(_explanation(search, recall)))


# --- why: an id ---------------------------------------------------------------------------------------


def _evidence(why: Why) -> Iterator[str]:
    yield f"{click.style(why.id, bold=True)}  {escape_controls(why.text)}"
    if why.turn is not None:
        yield click.style(f"  {_speaker_line(why.turn)}", dim=True)
    if why.atom is not None:
        yield click.style(columns(_atom_rows(why.atom), indent=2), dim=True)
    yield from _section("Based on these words", map(_evidence_block, why.quotes))
    yield from _section("Replaced by", map(_statement, why.replaced_by))
    yield from _section("Replaces", map(_statement, why.replaces))
    yield from _section("Named in", map(_mention, why.mentions))
    yield from _section("Statements based on it", map(_statement, why.atoms))
    yield from _section("Tool results that it cites", map(_citation, why.cites))
    head = "It cites no tool result. These earlier lines say the same"
    yield from _section(head, map(_result_hit, why.likely))
    yield from _section(
        "Cited by", (_block_of_text(f"{citing.id}  {citing.at}", citing.text) for citing in why.cited_by)
    )
    if why.atom is None and not (why.atoms or why.cites or why.likely or why.cited_by):
        yield "\nNothing is based on it, and it cites no tool result."


def _section(title: str, blocks: Iterable[str]) -> Iterator[str]:
    shown = list(blocks)
    if shown:
        yield "\n".join(["", click.style(title, bold=True), *shown])


def _block_of_text(head: str, text: str) -> str:
    return f"  {click.style(escape_controls(head), dim=True)}\n{wrap(text, '    ')}"


def _atom_rows(atom: Atom) -> Iterator[tuple[str, str]]:
    from mcp_memory.service.render import promise_state

    yield "kind", atom.kind if atom.label != "promise" else f"promise, {promise_state(atom)}"
    yield (
        "true",
        f"{format_day(atom.valid_from)} to {format_day(atom.valid_to)}"
        if atom.valid_to
        else f"since {format_day(atom.valid_from)}",
    )
    yield "learned", format_minute(atom.learned_at)
    yield "said by", SAID_BY[atom.source]
    if atom.is_sentence:
        yield "origin", EXTRACTED
    if atom.closed_because:
        yield "ended", escape_controls(atom.closed_because)
    if atom.held:
        yield "held", f"{', '.join(REASONS.get(reason, reason) for reason in atom.held)}; see `mcp-memory review`"
    if atom.doubts:
        yield "check", ", ".join(REASONS.get(reason, reason) for reason in atom.doubts)


def _speaker_line(turn: Turn) -> str:
    if turn.role == "note":
        who = "stored with `remember`"
    else:
        who = f"said by {turn.name} ({turn.role})" if turn.name else f"said by the {turn.role}"
    return escape_controls(f"{format_minute(turn.said_at)}  {who}  session {turn.session}")


def _evidence_block(evidence: Quoted) -> str:
    if evidence.turn is None:
        return _block_of_text(evidence.turn_id, f"“{evidence.quote}”\nThe turn was forgotten.")
    stands = (
        "These words are in the turn, unchanged." if evidence.stands else "The turn no longer has these words: changed."
    )
    return _block_of_text(f"{evidence.turn_id}  {_speaker_line(evidence.turn)}", f"“{evidence.quote}”\n{stands}")


def _statement(atom: Atom, when: str | None = None) -> str:
    until = f" to {format_day(atom.valid_to)}" if atom.valid_to else ""
    return _block_of_text(f"{atom.id}  {when or format_day(atom.valid_from)}{until}  {atom.kind}", atom.text)


def _mention(mention: Mention) -> str:
    return _block_of_text("persona" if mention.slug is None else f"scene {mention.slug}", mention.line.lstrip("-* "))


def _citation(result: CitedResult) -> str:
    return output_block(
        result.at, result.call, result.content, taken=result.taken, node=result.node, note=f"named by {result.by}"
    )


# --- why: a query -------------------------------------------------------------------------------------


def _explanation(search: Explained, recall: Recalled) -> Iterator[str]:
    yield escape_controls(columns(_query_rows(search)))
    yield _row_block("Shown, best first", search.shown) if search.shown else "Nothing is found."
    if search.missed:
        yield _row_block("Just missed", search.missed)
    if search.left_out:
        yield _row_block("Not shown, though it ranks as high", search.left_out)
    lines = [f"  scene {escape_controls(slug)}  {_signals(by)}" for slug, by in search.scenes]
    lines += [
        f"  {escape_controls(at)}  {_signals(by)}{'' if enough else '  matches too little of the question'}"
        for at, by, enough in search.results
    ]
    if lines:
        yield "\n".join([click.style("Also", bold=True), *lines])
    yield _recall_summary(recall)


def _query_rows(search: Explained) -> Iterator[tuple[str, str]]:
    yield "words", ", ".join(search.words) or "no content words"
    if search.related:
        yield "related", one_line(", ".join(search.related), 140)
    if search.asks_for:
        yield "speaker", f"asks for words of the {search.asks_for}"
    if search.times:
        yield "time", "; ".join(search.times)
    for leg in search.legs:
        yield f"{leg.layer}s", _leg_summary(leg)
    if search.known:
        yield "known here", search.known
    if search.note:
        yield "note", search.note


def _leg_summary(leg: SearchLeg) -> str:
    words = ", ".join(f"{word} {many:,}" for word, many in sorted(leg.words.items(), key=lambda entry: entry[1]))
    nearest = f", the nearest at {leg.nearest:.2f}" if leg.nearest is not None else ""
    return (
        f"{leg.by_words:,} by words{f' ({words})' if words else ''}, {leg.by_meaning:,} by meaning{nearest}; "
        f"{leg.candidates:,} ranked"
    )


def _row_block(title: str, rows: Sequence[ExplainedRow]) -> str:
    return "\n".join([click.style(title, bold=True), *(line for row in rows for line in _row_lines(row))])


def _row_lines(row: ExplainedRow) -> Iterable[str]:
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
    details = "; ".join(escape_controls(part) for part in (sums, cosine, *notes) if part)
    yield click.style(wrap(details, " " * 10), dim=True)


def _signals(by: Signals) -> str:
    return ", ".join(f"{name} {value}" for name, value in by.items())


def _recall_summary(recall: Recalled) -> str:
    brought = [verdict.id for verdict in recall.verdicts if verdict.brought]
    head = f"Recall would bring {', '.join(brought) if brought else 'none of these rows'}"
    lines = [f"  {verdict.id:<7} {_verdict_text(verdict)}" for verdict in recall.verdicts if not verdict.brought]
    more = len(lines) - _VERDICTS
    return "\n".join(
        [
            f"{click.style(head, bold=True)} ({plural(recall.tokens, 'token')} with the stable block)",
            *lines[:_VERDICTS],
            *([f"  and {more} more like these; --json has them all"] if more > 0 else []),
        ]
    )


def _verdict_text(verdict: RowVerdict) -> str:
    return f"{100 * verdict.probability:.0f} % likely to help: {verdict.why}"
