"""`forget`: what a person takes out of the memory, and brings back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import as_json, ask, place
from mcp_memory.errors import NotFound
from mcp_memory.terminal import json_text, one_line

if TYPE_CHECKING:
    from mcp_memory.types import Forgotten

__all__ = ["forget"]


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--query", metavar="WORDS", help="Instead of ids: show what holds all of these words; nothing is changed."
)
@click.option("--undo", metavar="TOMBSTONE", help="Bring back what was forgotten under this id.")
@click.option("--reason", default="", help="A note that is kept with it.")
@as_json
@place
def forget(ids: tuple[str, ...], query: str | None, undo: str | None, reason: str, as_json: bool) -> None:
    """Take turns, statements or tool results out of every search and listing, by their IDs.

    It can be undone: the bytes stay in the files of the space until they are deleted there.

    \b
    mcp-memory forget --query "night boat"
    mcp-memory forget a57 t812 r-9f2c1a7b3d4e --reason "moved away"
    mcp-memory forget --undo x1
    """
    if not (ids or query or undo):
        raise click.UsageError("Say what: ids, which `mcp-memory search` shows, or --query WORDS, or --undo TOMBSTONE.")
    done = ask(lambda memory: memory.forget(ids, query=query, reason=reason, undo=undo))
    if not done.ids:
        raise NotFound("Nothing holds all of these words. Give fewer, or find the ids with `mcp-memory search`.")
    click.echo(
        json_text(done) if as_json else "\n".join([_head(done), *(f"  {one_line(it, 96)}" for it in done.previews)])
    )


def _head(done: Forgotten) -> str:
    if done.undone:
        return f"Brought back {', '.join(done.ids)}."
    if done.tombstone is None:
        return f"Nothing was changed. To forget these: mcp-memory forget {' '.join(done.ids)}"
    return f"Forgot {', '.join(done.ids)}. To bring them back: mcp-memory forget --undo {done.tombstone}"
