"""`forget`: what a person takes out of the memory, and brings back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import as_json, ask, place
from mcp_memory.cli.terminal import json_text, one_line
from mcp_memory.core.errors import NotFound

if TYPE_CHECKING:
    from mcp_memory.core.types import Forgotten

__all__ = ["forget"]

_TYPED = 12
_LISTED = 40


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--query", metavar="WORDS", help="What holds all of these words.")
@click.option("--session", metavar="NAME", help="What was said, told and run in this session.")
@click.option("--since", metavar="WHEN", help='What was said or run since then: 2026-05-07, or "last week".')
@click.option("--until", metavar="WHEN", help="Or until then.")
@click.option("--yes", is_flag=True, help="Do it at once; else all but bare ids is only shown.")
@click.option("--undo", metavar="TOMBSTONE", help="Bring back what was forgotten under this id.")
@click.option("--reason", default="", help="A note that is kept with it.")
@as_json
@place
def forget(
    ids: tuple[str, ...],
    query: str | None,
    session: str | None,
    since: str | None,
    until: str | None,
    yes: bool,
    undo: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Take turns, statements or tool results out of every search and listing: by their IDs, or by what all of words,
    session and time name.

    It can be undone until `mcp-memory purge` erases it. It is not learned again, from imports neither.

    \b
    mcp-memory forget --query "night boat"
    mcp-memory forget a57 t812 r-9f2c1a7b3d4e --reason "moved away"
    mcp-memory forget --session 2026-11-20-3f2a --until yesterday --yes
    mcp-memory forget --undo x1
    """
    if not (ids or query or session or since or until or undo):
        raise click.UsageError(
            "Say what: ids, which `mcp-memory search` shows, or --query, --session, --since, --until, or --undo."
        )
    done = ask(
        lambda memory: memory.forget(
            ids,
            query=query,
            session=session,
            since=since,
            until=until,
            undo=undo,
            reason=reason,
            dry_run=False if yes else None,
        )
    )
    if not done.ids:
        what = "holds all of these words" if query else "is there"
        raise NotFound(
            f"Nothing {what}. Find ids with `mcp-memory search`, and sessions with `mcp-memory show sessions`."
        )
    click.echo(json_text(done) if as_json else "\n".join(_lines(done)))


def _lines(done: Forgotten) -> list[str]:
    shown = [f"  {one_line(it, 96)}" for it in done.previews[:_LISTED]]
    more = done.total - len(shown)
    return [_head(done), *shown, *([f"  … and {more:,} more"] if more > 0 else []), *done.along]


def _head(done: Forgotten) -> str:
    named = ", ".join(done.ids) if done.total <= _TYPED else f"{done.total:,} of them"
    if done.undone:
        return f"Brought back {named}."
    if done.tombstone is None:
        how = f"mcp-memory forget {' '.join(done.ids)}" if done.total <= _TYPED else "say it again with --yes"
        return f"Nothing was changed. To forget these: {how}"
    return f"Forgot {named}. To bring them back: mcp-memory forget --undo {done.tombstone}"
