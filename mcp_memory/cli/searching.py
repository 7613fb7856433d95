"""`search`: memories and turns, by words and by meaning; lines of tool results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mcp_memory.cli.base import as_json, ask, place, settings
from mcp_memory.cli.terminal import day, json_text, page, printed, said, wrapped
from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import TurnHit
from mcp_memory.service.excerpts import passages
from mcp_memory.store.naming import address

if TYPE_CHECKING:
    from mcp_memory.core.types import AtomHit, MemoryResults, ResultHit, SceneHit, Turn, TurnResults
    from mcp_memory.service.memory import Memory

__all__ = ["KINDS", "ROLES", "search"]

KINDS = ("persona", "episodic", "instruction")
ROLES = ("user", "assistant", "system", "tool", "note")


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
def search(
    query: tuple[str, ...],
    layer: str | None,
    since: str | None,
    until: str | None,
    session: str | None,
    role: Any,
    neighbours: int,
    kind: Any,
    scene: str | None,
    entity: str | None,
    as_of: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
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
    layer = _layer(
        layer, of_turns=bool(session or role or neighbours), of_memories=bool(kind or scene or entity or as_of)
    )
    if cursor and not layer:
        raise click.UsageError("--cursor continues one list: add --in turns or --in memories.")
    words = " ".join(query)

    async def find(memory: Memory) -> tuple[MemoryResults | None, TurnResults | None, list[str]]:
        known = heard = None
        if layer != "turns":
            known = await memory.memory_search(
                words,
                kind=kind,
                scene=scene,
                entity=entity,
                since=since,
                until=until,
                as_of=as_of,
                limit=limit,
                cursor=cursor,
            )
        if layer != "memories":
            heard = await memory.conversation_search(
                words,
                session=session,
                role=role,
                since=since,
                until=until,
                neighbours=neighbours,
                limit=limit,
                cursor=cursor,
            )
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
    if as_json:
        found = {"memories": memories, "scenes": scenes, "turns": turns, "results": results}
        click.echo(json_text({"query": words, **found, "cursors": cursors, "notes": notes}))
    else:
        _print_found(memories, scenes, turns, results, limit=limit, cursors=cursors)
        for note in notes:
            click.echo(note, err=True)
    if not memories and not scenes and not turns and not results:
        here = settings().space
        others = ", ".join(space for space in spaces if space != here)
        more = f"Other spaces that hold something: {others}." if others else "Try other words, or fewer filters."
        raise NotFound(f"Nothing found in {here}. {more}")


def _layer(chosen: str | None, *, of_turns: bool, of_memories: bool) -> str | None:
    """Return the one layer that the filters leave, or None for both."""
    if (of_turns and (of_memories or chosen == "memories")) or (of_memories and chosen == "turns"):
        raise click.UsageError(
            "--session, --role and --neighbours are about turns; --kind, --scene, --entity and --as-of about memories."
        )
    return chosen or ("turns" if of_turns else "memories" if of_memories else None)


def _print_found(
    memories: list[AtomHit],
    scenes: list[SceneHit],
    turns: list[TurnHit],
    results: list[ResultHit],
    *,
    limit: int,
    cursors: dict[str, str | None],
) -> None:
    blocks: list[str] = []
    listed = {
        "memories": [_memory(hit) for hit in memories],
        "scenes": [page(hit.scene) for hit in scenes],
        "turns": [_passage(run) for run in passages(turns)],
        "tool results": [_result(hit) for hit in results],
    }
    for title, found in listed.items():
        if found:
            blocks.append("\n".join([click.style(title, bold=True), *found]))
    for layer, cursor in cursors.items():
        if cursor:
            blocks.append(f"More {layer}: --in {layer} --limit {limit} --cursor {cursor}")
    if blocks:
        click.echo("\n\n".join(blocks))


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
