"""`remember`: a statement is stored, or another one corrected, from the command line."""

from __future__ import annotations

from typing import Any, get_args

import click

from mcp_memory.cli.base import as_json, ask_of, place, print_answer, settings
from mcp_memory.cli.terminal import wrapped
from mcp_memory.core.types import StatementKind


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="STATEMENT...")
@click.option("--supersedes", multiple=True, metavar="ID", help="A statement that this one corrects; may be repeated.")
@click.option(
    "--kind", type=click.Choice(get_args(StatementKind)), help="[default: that of the corrected one, else persona]"
)
@click.option("--entity", metavar="NAME", help="The person or thing that it is about.")
@click.option("--valid-from", metavar="DATE", help="The date from which it holds.  [default: now]")
@click.option("--valid-until", metavar="DATE", help="The last day on which it holds; after it the statement is past.")
@as_json
@place
def remember(words: tuple[str, ...], supersedes: tuple[str, ...], **given: Any) -> None:
    """Store a statement, or correct one.

    A statement that is corrected ends, and stays in the history. `mcp-memory search` shows the ids of statements.

    \b
    mcp-memory remember "I drink tea, not coffee."
    mcp-memory remember "We move on 21 November." --supersedes a33
    mcp-memory remember "Answer in Norwegian." --kind instruction
    """
    statement = " ".join(words)
    found = ask_of(settings(), lambda memory: memory.remember(statement, supersedes=supersedes, typed=True, **given))
    stored = "It was stored before as" if found.duplicate else "Stored as"
    lines = [f"{stored} {found.atom.id}: {found.atom.text}"]
    lines += [f"No longer holds: {old.id} {old.text}" for old in found.replaced]
    for old in found.similar:
        seems, maybe = old.id in found.contradicting, old.id in found.unsure
        head = "Seems outdated" if seems else "Perhaps outdated" if maybe else "Similar, and still holds"
        lines.append(f"{head}: {old.id} {old.text}")
    if outdated := [old.id for old in found.similar if old.id in (*found.contradicting, *found.unsure)]:
        lines.append(f"If one is outdated, repeat the command with --supersedes {outdated[0]}.")
    print_answer(found, "\n".join(wrapped(line, "") for line in [*lines, *([found.note] if found.note else [])]))
