"""`review`: what reads like an attack, or is not the user's word, until a person has looked at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import as_json, ask, place
from mcp_memory.cli.terminal import json_text, one_line, plural, visible, wrapped
from mcp_memory.core.secrets import mask
from mcp_memory.longterm.trust import REASONS

if TYPE_CHECKING:
    from mcp_memory.core.types import Reviewed

__all__ = ["review"]

_CHARS = 600


@click.command()
@click.argument("action", type=click.Choice(["list", "release", "keep", "forget", "scan"]), default="list")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@as_json
@place
def review(action: str, ids: tuple[str, ...], as_json: bool) -> None:
    """Look at what is held: found by a search, never recalled by itself.

    list (the default) shows what waits, and why. release lets it be recalled, keep leaves it as it is and off the list,
    forget takes it out of the memory. scan judges all that was stored by earlier versions too, and finds the keys and
    passwords that those kept.

    \b
    mcp-memory review
    mcp-memory review release a5 t12
    mcp-memory review forget a5
    """
    if action in ("list", "scan") and ids:
        raise click.UsageError(f"`review {action}` takes no ids; release, keep and forget do.")
    if action not in ("list", "scan") and not ids:
        raise click.UsageError(f"Say what to {action}: ids such as a5 or t12, which `mcp-memory review` lists.")
    if action == "forget":
        done = ask(lambda memory: memory.forget(ids, reason="reviewed"))
        click.echo(json_text(done) if as_json else f"Forgot {', '.join(done.ids)}.")
        return
    if action == "list":
        found = ask(lambda memory: memory.waiting())
    elif action == "scan":
        found = ask(lambda memory: memory.scan())
    else:
        found = ask(lambda memory: memory.review(ids, "released" if action == "release" else "kept"))
    click.echo(json_text(found) if as_json else _told(action, found))


def _told(action: str, found: list[Reviewed]) -> str:
    if action in ("release", "keep"):
        what = "may be recalled" if action == "release" else "stays out of what is recalled"
        return "\n".join(f"{one.id} {what}: {one_line(one.text, 80)}" for one in found)
    if not found:
        return "Nothing waits for review." if action == "list" else "Nothing more is held."
    head = f"{plural(len(found), 'thing')} held: found by a search, never recalled by itself."
    rest = "mcp-memory review release ID, or keep, or forget."
    return "\n\n".join([head, *map(_one, found), rest])


def _one(one: Reviewed) -> str:
    why = ", ".join(REASONS.get(reason, reason) for reason in one.reasons)
    place = f", session {one.session}" if one.session else ""
    head = visible(f"{one.kind} of the {one.source}{place}, {one.at:%Y-%m-%d %H:%M}: {why}")
    text = mask(one.text)
    shown = text if len(text) <= _CHARS else text[:_CHARS] + " …"
    return f"{click.style(one.id, bold=True)}  {head}\n{wrapped(shown, '    ')}"
