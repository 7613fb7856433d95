"""`why`: which output made us believe this, and who rests on an output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import as_json, ask, place
from mcp_memory.store.naming import address
from mcp_memory.terminal import json_text, printed, visible, wrapped

if TYPE_CHECKING:
    from mcp_memory.types import CitedResult, ResultHit, Why

__all__ = ["why"]


@click.command()
@click.argument("id")
@as_json
@place
def why(id: str, as_json: bool) -> None:
    """Show which tool results a memory or a turn rests on; of a result, who rests on it.

    Where nobody named one, lines that say the same and were there before are shown as a guess.

    \b
    mcp-memory why a57
    mcp-memory why t812 --json
    mcp-memory why r-9f2c1a7b3d4e:120-134
    mcp-memory why 003-N4
    """
    found = ask(lambda memory: memory.why(id))
    click.echo(json_text(found) if as_json else _told(found))


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
