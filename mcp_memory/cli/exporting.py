"""`export`: the whole memory as one file, for people to read and for another memory to take in."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import as_json, ask, home, settings
from mcp_memory.cli.terminal import json_text, plural, size, visible, wrapped

if TYPE_CHECKING:
    from mcp_memory.service.portable import Exported

__all__ = ["export"]


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=True))
@click.option(
    "--space",
    "spaces",
    multiple=True,
    help="What to export; may be given several times.  [default: $MCP_MEMORY_SPACE or default]",
)
@click.option("--all-spaces", is_flag=True, help="Export everything that the home holds.")
@as_json
@home
def export(file: Path | None, spaces: tuple[str, ...], all_spaces: bool, as_json: bool) -> None:
    """Write all that a space holds to one zip: what was said, what is known with its evidence and its times, tasks,
    results of tools, pages. Markdown for people, JSON lines for programs, a README that explains it.

    What was forgotten is not in it, only that it was. The same memory gives the same bytes. Without a FILE it is
    written to this folder, named by the day; a FILE that is there is never written over.

    `mcp-memory import` takes it into another memory or space, each row once, however often.

    \b
    mcp-memory export
    mcp-memory export ~/laptop.zip --all-spaces
    mcp-memory export work.zip --space work --space home
    """
    if spaces and all_spaces:
        raise click.UsageError("--all-spaces is every space: leave --space out.")
    chosen = None if all_spaces else list(dict.fromkeys(spaces)) or [settings().space]
    name = "all" if chosen is None else chosen[0] if len(chosen) == 1 else f"{len(chosen)}-spaces"
    unnamed = Path(f"mcp-memory-{name}-{datetime.now():%Y-%m-%d}.zip")
    target = (unnamed if file is None else file / unnamed if file.is_dir() else file).absolute()
    done = ask(lambda memory: memory.export(target, spaces=chosen))
    click.echo(json_text(done) if as_json else "\n".join(_lines(done)))


def _lines(done: Exported) -> list[str]:
    lines = [f"{visible(done.path)}: {size(done.bytes)}"]
    for space, rows in done.rows.items():
        told = [plural(rows.get(kind, 0), one) for kind, one in _TOLD.items() if rows.get(kind)]
        lines.append(f"  {visible(space)}: {', '.join(told) or 'nothing'}")
    if done.lacking:
        lines.append(
            wrapped(
                f"Left out, for their files are gone or damaged: {', '.join(done.lacking[:10])}. `mcp-memory doctor` "
                "says more.",
                "  ",
            )
        )
    return lines


_TOLD = {
    "turns": "turn",
    "atoms": "statement",
    "refs": "tool result",
    "canvases": "task",
    "scenes": "version of a scene",
    "tombstones": "tombstone",
}
