"""`move`: a memory from its home in files to PostgreSQL, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import as_json, print_answer, progress_bars, settings
from mcp_memory.cli.terminal import columns, plural, visible

if TYPE_CHECKING:
    from mcp_memory.service.upkeep.move import Moved


@click.command()
@click.argument("source")
@click.argument("target")
@click.option("--check", is_flag=True, help="Only prove again that both sides hold the same.")
@as_json
def move(source: str, target: str, check: bool) -> None:
    """Copy a whole memory from files to PostgreSQL or back.

    Ids, times, tool results, vectors, tombstones, tokens and ledgers are the same afterwards. SOURCE is only read and
    TARGET must be empty; no other program may have them open. A move that was interrupted goes on when it is called
    again. At the end rows, results and vectors of both sides are compared by SHA-256, and a hundred questions are
    asked of both.

    \b
    mcp-memory move sqlite:~/.mcp-memory postgresql://memory@db.example.com/m
    mcp-memory move postgresql://memory@db.example.com/m sqlite:/var/lib/memory
    """
    from mcp_memory.service.upkeep.move import move as move_memory

    with progress_bars() as tell:
        done = move_memory(source, target, objects=settings().objects, check=check, tell=tell)
    print_answer(done, _moved(done, check=check))


def _moved(done: Moved, *, check: bool) -> Iterator[str]:
    rows = [(visible(one.space or "-"), visible(one.what), f"{one.rows:,}", one.sha256) for one in done.proven]
    yield columns([("SPACE", "WHAT", "ROWS", "SHA-256, THE SAME ON BOTH SIDES"), *rows])
    yield f"{visible(done.source)} and {visible(done.target)} hold the same."
    yield f"{plural(done.questions, 'question')} found the same on both sides; {done.seconds:,} s."
    if not check:
        use = "set MCP_MEMORY_STORE to its URL"
        if done.target.startswith("sqlite:"):
            use = f"set MCP_MEMORY_HOME={visible(done.target.removeprefix('sqlite:'))} and unset MCP_MEMORY_STORE"
        yield f"{visible(done.source)} is as it was. To use the copy, {use}, or the same in config.toml."
