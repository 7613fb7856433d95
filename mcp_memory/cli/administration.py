"""`backup`, `restore`, `rebuild`, `compact`, `export` and `token`: the administration of a memory."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from mcp_memory.cli.base import as_json, ask, home, place, settings, span
from mcp_memory.cli.terminal import columns, day, json_text, minute, plural, size, visible, wrapped
from mcp_memory.core.errors import NotFound, Refused, StoreUnavailable
from mcp_memory.store.values import RIGHTS

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory
    from mcp_memory.service.portable import Exported
    from mcp_memory.service.upkeep.backup import Backup
    from mcp_memory.service.upkeep.rebuild import Rebuilt
    from mcp_memory.store.values import Token


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


@click.command()
@click.option("--to", type=click.Path(path_type=Path), help="Folder to put it in.  [default: backups/ in the home]")
@click.option("--keep", default=7, show_default=True, help="How many of this memory stay there; older ones go.")
@click.option("--list", "listing", is_flag=True, help="Show the backups that are there; none is made.")
@click.option("--verify", type=click.Path(path_type=Path), metavar="FILE", help="Prove that one is whole, and no more.")
@as_json
@place
def backup(to: Path | None, keep: int, listing: bool, verify: Path | None, as_json: bool) -> None:
    """Back up the memory into one file, while others use it.

    It holds the database, what was said, every result, canvas and scene as they are at one moment, and is read back
    and proven before it counts. Settings and logs are not in it. Exit code 1 where something is missing.

    \b
    mcp-memory backup
    mcp-memory backup --to /media/disk/memory --keep 30
    mcp-memory backup --list
    mcp-memory backup --verify backups/mcp-memory-1a2b3c4d-20260301T090000000Z.zip
    """
    from mcp_memory.service.upkeep import backup as upkeep

    home = settings().home
    if verify is not None:
        manifest = upkeep.verify(verify)
        click.echo(
            json_text(manifest) if as_json else f"{verify} is whole: {_holds(manifest.counts, manifest.spaces)}."
        )
        _exit_lacking(manifest.lacking, as_json=as_json)
    if listing:
        _list(upkeep.listed(to or upkeep.folder_of(home)), as_json=as_json)
        return
    made = _made(home, to, keep)
    assert made.manifest is not None
    lacking = made.manifest.lacking
    if as_json:
        click.echo(json_text(_as_json(made)))
    else:
        click.echo(
            f"{visible(str(made.path))} ({size(made.bytes)})\n"
            f"proven: {plural(len(made.manifest.members), 'file')} match their hashes, the database is whole; "
            f"{_holds(made.manifest.counts, made.manifest.spaces)}"
        )
        for path in made.removed:
            click.echo(f"removed the older {visible(path.name)}")
    _exit_lacking(lacking, as_json=as_json)


def _exit_lacking(lacking: Sequence[str], *, as_json: bool) -> NoReturn:
    """Name rows that were lost before the backup was made, and exit: with 1 if there are any."""
    for one in () if as_json else lacking:
        click.echo(f"not in it, for the memory had lost it: {visible(one)}")
    sys.exit(1 if lacking else 0)


def _made(home: Path, to: Path | None, keep: int) -> Backup:
    from mcp_memory.core import process_registry
    from mcp_memory.service.upkeep import backup as upkeep
    from mcp_memory.service.upkeep.engine import open_store

    _must_be_there(home)
    noted = process_registry.register(home, what="backup")
    try:
        with closing(open_store(home)) as store:
            return upkeep.back_up(store, home, to=to, keep=keep, now=datetime.now().astimezone())
    finally:
        if noted:
            noted.close()


def _must_be_there(home: Path) -> None:
    from mcp_memory.store.files import database_is_gone

    if gone := database_is_gone(home):
        raise StoreUnavailable(gone)
    if not (home / "memory.db").exists():
        raise NotFound(f"There is no memory in {home}. Name another home with --home.")


def _list(found: list[Backup], *, as_json: bool) -> None:
    if as_json:
        click.echo(json_text([_as_json(one) for one in found]))
        return
    if not found:
        click.echo("There are no backups. `mcp-memory backup` makes one.")
    for one in found:
        if one.manifest is None:
            click.echo(f"{visible(one.path.name)}  {size(one.bytes):>9}  {visible(one.problem or '')}")
        else:
            click.echo(
                f"{visible(one.path.name)}  {size(one.bytes):>9}  {minute(one.manifest.made.astimezone())}  "
                f"{_holds(one.manifest.counts, one.manifest.spaces)}"
            )


def _as_json(one: Backup) -> dict[str, Any]:
    manifest = None if one.manifest is None else {**asdict(one.manifest), "members": len(one.manifest.members)}
    return {
        "path": str(one.path),
        "bytes": one.bytes,
        "manifest": manifest,
        "problem": one.problem,
        "removed": [str(path) for path in one.removed],
    }


def _holds(counts: dict[str, int], spaces: tuple[str, ...]) -> str:
    told = [plural(counts[f"{name}s"], name) for name in ("turn", "statement", "result") if f"{name}s" in counts]
    return f"{', '.join(told)} in {plural(len(spaces), 'space')}"


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@as_json
@place
def restore(file: Path, as_json: bool) -> None:
    """Restore the memory from a backup FILE.

    The backup is proven first. What is there now is kept, in a folder that the answer names; what was forgotten here
    since stays forgotten, and can be brought back. Exit code 1 where the memory
    had lost something when the backup was made. Nobody else may hold the home meanwhile. With --home it goes into
    another one, which is made where there is none.

    \b
    mcp-memory restore ~/.mcp-memory/backups/mcp-memory-1a2b3c4d-20260301T090000000Z.zip
    mcp-memory --home /tmp/look restore mcp-memory-1a2b3c4d-20260301T090000000Z.zip
    """
    from mcp_memory.service.upkeep.restore import restore as upkeep

    done = upkeep(file, settings().home, now=datetime.now().astimezone())
    if as_json:
        aside = done.aside and str(done.aside)
        lacking = list(done.manifest.lacking)
        click.echo(
            json_text(
                {
                    "home": str(done.home),
                    "at": done.manifest.at,
                    "aside": aside,
                    "again": done.again,
                    "lacking": lacking,
                }
            )
        )
        _exit_lacking(lacking, as_json=True)
    click.echo(
        f"{visible(str(done.home))} is as it was on {minute(done.manifest.made.astimezone())}: "
        f"{_holds(done.manifest.counts, done.manifest.spaces)}"
    )
    if done.aside:
        click.echo(f"what was there is kept in {visible(str(done.aside))}")
    for one in done.again:
        under = f"{one.tombstone} in {visible(one.space)}"
        if one.ids:
            click.echo(
                f"forgotten since then, and again: {plural(one.ids, 'id')}, {under}; forget --undo brings it back"
            )
        if one.was_purged:
            click.echo(
                f"purged since then, and on the disk again: {under}. To erase it: "
                f"mcp-memory purge {one.tombstone} --space {visible(one.space)}"
            )
    _exit_lacking(done.manifest.lacking, as_json=False)


@click.command()
@click.option("--check", is_flag=True, help="Only compare; the database stays as it is.")
@click.option("--accept", is_flag=True, help="Swap it in also where rows differ: the files' word counts.")
@as_json
@place
def rebuild(check: bool, accept: bool, as_json: bool) -> None:
    """Make the database anew of the files beside it, prove that it says the same, and put it in its place.

    The files tell what was said, told, put away, drawn and forgotten. What a model made of it is taken over from the
    database, or from the newest backup where that is damaged. The old database is kept. Exit code 1 where what both
    tell differs, or something is damaged or lost.

    \b
    mcp-memory rebuild --check
    mcp-memory rebuild
    """
    from mcp_memory.service.upkeep.rebuild import rebuild as upkeep

    done = upkeep(settings().home, check=check, accept=accept, now=datetime.now().astimezone())
    if as_json:
        answer = {**asdict(done), "aside": done.aside and str(done.aside), "equal": done.is_equal}
        click.echo(json_text(answer))
    else:
        click.echo(visible("\n".join(_rebuilt(done, check=check))))
    sys.exit(0 if done.is_well else 1)


def _rebuilt(done: Rebuilt, *, check: bool) -> list[str]:
    lines = [f"the database is damaged: {one}" for one in done.damage[:5]]
    rows = [(one.what, _told(one)) for one in done.compared]
    lines += columns(rows).splitlines()
    lines += [*done.notes, *done.pages, *done.behind]
    if done.carried:
        told = ", ".join(f"{count:,} {table}" for table, count in sorted(done.carried.items()))
        lines.append(f"taken over from {done.source}: {told}")
    lines += [f"lost: {one}" for one in done.lost]
    lines += done.back
    if done.compared and done.is_equal:
        lines.append("equal: all that the files tell is what the database says")
    if done.is_swapped:
        lines.append(
            "the new database is in its place" + (f"; what it replaced is kept in {done.aside}" if done.aside else "")
        )
    elif not check:
        lines.append("Nothing was changed, for rows differ. Look at them, then run it with --accept, or leave it.")
    return lines


def _told(one: Any) -> str:
    parts = [f"{one.same:,} equal"]
    for count, why in (
        (one.differing, "differ"),
        (one.only_in_files, "only in the files"),
        (one.only_in_database, "only in the database"),
    ):
        if count:
            parts.append(f"{count:,} {why}")
    named = f" ({', '.join(one.examples)})" if one.examples else ""
    return ", ".join(parts) + named


@click.command()
@as_json
@place
def compact(as_json: bool) -> None:
    """Give back the space that the database does not use.

    Vectors of embedding models that are set no more are deleted, once the one that is set has embedded everything;
    the word index is brought into one piece, free pages go, the log of writes is emptied. Others may go on.

    \b
    mcp-memory compact
    """
    from mcp_memory.core import process_registry
    from mcp_memory.service.upkeep.compact import compact as upkeep
    from mcp_memory.service.upkeep.engine import open_store

    home = settings().home
    _must_be_there(home)
    try:
        dropped, kept = ask(lambda memory: memory.drop_old_vectors()), None
    except Refused as error:
        dropped, kept = [], str(error)
    noted = process_registry.register(home, what="compact")
    try:
        with closing(open_store(home)) as store:
            done = upkeep(store, home)
    finally:
        if noted:
            noted.close()
    if as_json:
        click.echo(json_text({**asdict(done), "deleted": dropped, "kept": kept}))
        return
    for one in dropped:
        click.echo(f"deleted the vectors of {visible(one)}")
    freed = f"{size(done.before - done.after)} given back" if done.after < done.before else "nothing to give back"
    click.echo(f"{size(done.before)} became {size(done.after)}: {freed}")
    for note in (done.postponed, kept):
        if note:
            click.echo(visible(note))


T = TypeVar("T")


@click.group()
def token() -> None:
    """Make, list and revoke the tokens that clients show over HTTP and SSE.

    A token opens some spaces with one right: read (search and recall), write (record, remember, offload and distill
    too) or admin (forget too). Once there is one, every request needs one.

    \b
    mcp-memory token create --name laptop --space work --rights write
    mcp-memory token list
    """


@token.command()
@click.option("--name", required=True, help="What to know it by: a machine, a program, a person.")
@click.option(
    "--space",
    "spaces",
    multiple=True,
    help="A space that it opens; can be given again. The first is used where a client names none.  "
    "[default: $MCP_MEMORY_SPACE or default]",
)
@click.option("--rights", type=click.Choice(RIGHTS), default="write", show_default=True, help="What it may do there.")
@click.option("--expires", metavar="TIME", help="When it ends: 12h, 90d, 4w, 1y.  [default: when it is revoked]")
@as_json
@home
def create(name: str, spaces: tuple[str, ...], rights: Any, expires: str | None, as_json: bool) -> None:
    """Make a token and print it, once: only its hash is kept.

    Clients send it as `Authorization: Bearer <token>`. One that opens several spaces reaches another than the first
    at /mcp?space=NAME, or with the header Mcp-Memory-Space.

    \b
    mcp-memory token create --name laptop --space work --space home
    mcp-memory token create --name dashboard --rights read --expires 90d
    """
    lasts = None if expires is None else span(expires, "--expires")
    made, text = _ask_new_home(lambda memory: memory.create_token(name, spaces=spaces, right=rights, expires=lasts))
    if as_json:
        click.echo(json_text({**_token_fields(made), "token": text}))
        return
    click.echo(text)
    click.echo(f"{_token_line(made)} It is not shown again.", err=True)


@token.command("list")
@as_json
@home
def list_(as_json: bool) -> None:
    """List the tokens, with what they open and when they were used last (to the hour).

    \b
    mcp-memory token list
    """
    found = _ask_new_home(lambda memory: memory.tokens())
    if as_json:
        click.echo(json_text([_token_fields(one) for one in found]))
    elif not found:
        click.echo("No token has been made: over HTTP and SSE, whoever is on this machine is the owner.")
    else:
        head = ("ID", "NAME", "SPACES", "RIGHTS", "CREATED", "LAST USED", "ENDS")
        click.echo(columns([head, *(_token_row(one) for one in found)]))


@token.command()
@click.argument("which", metavar="NAME|ID")
@as_json
@home
def revoke(which: str, as_json: bool) -> None:
    """Have a token open nothing any more, at once, in running servers too.

    \b
    mcp-memory token revoke laptop
    """
    gone = _ask_new_home(lambda memory: memory.revoke_token(which))
    click.echo(json_text(_token_fields(gone)) if as_json else f"Revoked {visible(gone.name)} ({gone.id}).")


def _ask_new_home(question: Callable[[Memory], Awaitable[T]]) -> T:
    """Ask the memory one thing; a home that is not there is made, for a server may be set up before it is used."""
    import anyio

    from mcp_memory.service.memory import open_memory

    async def visit() -> T:
        async with open_memory(settings(), embedder="none", llm="none", rerank=False, what="token") as memory:
            return await question(memory)

    return anyio.run(visit)


def _token_fields(one: Token) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "spaces": one.spaces,
        "rights": one.right,
        "created": one.at,
        "last_used": one.used_at,
        "expires": one.until,
        "revoked": one.revoked_at,
    }


def _token_row(one: Token) -> tuple[str, ...]:
    used = minute(one.used_at) if one.used_at else "never"
    return (one.id, visible(one.name), visible(", ".join(one.spaces)), one.right, day(one.at), used, _token_end(one))


def _token_end(one: Token) -> str:
    if one.revoked_at is not None:
        return f"revoked {day(one.revoked_at)}"
    if one.until is None:
        return "never"
    return f"{'ended ' if one.until <= datetime.now(UTC) else ''}{day(one.until)}"


def _token_line(one: Token) -> str:
    ends = "until it is revoked" if one.until is None else f"until {minute(one.until)}"
    return f"{visible(one.name)} opens {visible(', '.join(one.spaces))} with the right {one.right}, {ends}."
