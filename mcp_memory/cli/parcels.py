"""What `import` does with files that `export` wrote: checked whole, then taken in, space by space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import settings, told
from mcp_memory.cli.terminal import plural, visible, wrapped
from mcp_memory.core.errors import InvalidInput

if TYPE_CHECKING:
    from mcp_memory.service.portable import Brought, Parcel

__all__ = ["lines", "parcels_in", "take_parcel"]


def parcels_in(files: Sequence[Path]) -> list[Path]:
    """Return those of the files that are exported memories, or backups, which `take_parcel` refuses."""
    from mcp_memory.service.portable import is_parcel
    from mcp_memory.service.upkeep.archive import is_backup

    return [file for file in files if file.is_file() and (is_parcel(file) or is_backup(file))]


def take_parcel(file: Path, *, dry_run: bool) -> list[Brought]:
    """Take all spaces of an export into those of their names, or its only one into the space that `--space` names.

    A dry run checks the file and says what is in it. Raises InvalidInput.
    """
    import anyio

    from mcp_memory.service.memory import open_memory
    from mcp_memory.service.portable import opened
    from mcp_memory.service.upkeep.archive import is_backup

    if is_backup(file):
        raise InvalidInput(
            f"{visible(str(file))} is a backup: `mcp-memory restore` makes the memory of it, with --home another one."
        )
    with opened(file, visible(str(file))) as parcel:
        pairs = _places(parcel, told().get("space"))
        if dry_run:
            return [_seen(parcel, space, into) for space, into in pairs]

        async def visit(space: str, into: str) -> Brought:
            # A command that stores must not set a model to work.
            async with open_memory(settings().model_copy(update={"space": into}), distil=False) as memory:
                return await memory.take_in(parcel, space)

        return [anyio.run(partial(visit, space, into)) for space, into in pairs]


def _places(parcel: Parcel, into: str | None) -> list[tuple[str, str]]:
    if into is None:
        return [(space, space) for space in parcel.spaces]
    if len(parcel.spaces) == 1:
        return [(next(iter(parcel.spaces)), into)]
    raise InvalidInput(
        f"{parcel.name} holds {len(parcel.spaces)} spaces ({', '.join(sorted(parcel.spaces)[:8])}), and --space names "
        "one. Leave it out, and each goes to the space of its name; or export the one that you want."
    )


def _seen(parcel: Parcel, space: str, into: str) -> Brought:
    from mcp_memory.service.portable import Brought

    rows = sum(parcel.spaces[space].values())
    note = f"It is whole, and holds {plural(rows, 'row')}. How many of them are new is told when they are stored."
    return Brought(space=space, into=into, notes=[note])


def lines(file: str, done: Sequence[Brought], *, dry_run: bool) -> Iterator[str]:
    """Yield what became of an export, for people."""
    yield click.style(visible(file), bold=True) + f": {plural(len(done), 'space')} of an exported memory"
    for one in done:
        where = visible(one.space) if one.space == one.into else f"{visible(one.space)} into {visible(one.into)}"
        if not dry_run:
            changed = f", {one.changed:,} of them brought up to date" if one.changed else ""
            yield f"  {where}: {plural(one.stored, 'row')} stored, {one.known:,} were here before{changed}"
        else:
            yield f"  {where}"
        if one.kept_out:
            yield f"    {plural(one.kept_out, 'row')} not taken: forgotten here or there, and left so"
        if one.forgotten:
            yield wrapped(
                f"What was forgotten there is forgotten here too: {', '.join(one.forgotten)}. "
                "`mcp-memory forget --undo` brings it back.",
                "    ",
            )
        if one.undone:
            yield f"    Brought back, as it was there: {', '.join(one.undone)}"
        for note in one.notes:
            yield wrapped(note, "    ")
