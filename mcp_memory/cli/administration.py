"""`backup`, `restore`, `rebuild`, `compact`, `migrate`, `export` and `token`: the administration of a memory."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from mcp_memory.cli.base import (
    as_json,
    ask,
    home,
    home_with_files,
    place,
    print_answer,
    progress_bars,
    settings,
    span,
    wants_json,
)
from mcp_memory.cli.terminal import columns, day, minute, plural, visible, wrapped
from mcp_memory.core.errors import NotFound, Refused, StoreUnavailable
from mcp_memory.core.rights import RIGHTS
from mcp_memory.core.text import format_bytes

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory
    from mcp_memory.service.portable.writing import Exported
    from mcp_memory.service.upkeep.archive import BackupManifest
    from mcp_memory.service.upkeep.backup import Backup
    from mcp_memory.service.upkeep.rebuild import Rebuilt
    from mcp_memory.service.upkeep.restore import Restored
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
def export(file: Path | None, spaces: tuple[str, ...], all_spaces: bool) -> None:
    """Write a whole space to one zip file.

    It holds turns, statements with their evidence and times, tasks, tool results and pages: Markdown for people, JSON
    lines for programs, and a README that explains it.

    Forgotten rows are left out; their tombstones are in it. The same memory gives the same bytes. Without a FILE it is
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
    with progress_bars() as tell:
        done = ask(lambda memory: memory.export(target, spaces=chosen, tell=tell))
    print_answer(done, _exported(done))


def _exported(done: Exported) -> Iterator[str]:
    yield f"{visible(done.path)}: {format_bytes(done.bytes)}"
    for space, rows in done.rows.items():
        counts = [plural(rows[kind], one) for kind, one in _KINDS.items() if rows.get(kind)]
        yield f"  {visible(space)}: {', '.join(counts) or 'nothing'}"
    if done.lacking:
        names = ", ".join(done.lacking[:10])
        yield wrapped(f"Left out, for their files are gone or damaged: {names}. `mcp-memory doctor` says more.", "  ")


_KINDS = {
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
def backup(to: Path | None, keep: int, listing: bool, verify: Path | None) -> None:
    """Back up the memory into one file, while others use it.

    It holds the database, all turns, results, canvases and scenes as they are at one moment, and is read back
    and proven before it counts. Settings and logs are not in it. Exit code 1 where something is missing.

    \b
    mcp-memory backup
    mcp-memory backup --to /media/disk/memory --keep 30
    mcp-memory backup --list
    mcp-memory backup --verify backups/mcp-memory-1a2b3c4d-20260301T090000000Z.zip
    """
    from mcp_memory.service.upkeep import backup as upkeep
    from mcp_memory.service.upkeep.maintenance import store_for_upkeep

    home = home_with_files()
    if verify is not None:
        with progress_bars() as tell:
            manifest = upkeep.verify(verify, tell=tell)
        print_answer(manifest, f"{verify} is whole: {_contents(manifest)}.")
        _exit_lacking(manifest.lacking)
    if listing:
        found = upkeep.listed(to or upkeep.folder_of(home))
        print_answer([_fields(one) for one in found], _listing(found))
        return
    _must_be_there(home)
    with store_for_upkeep(home, "backup") as store, progress_bars() as tell:
        made = upkeep.back_up(store, home, to=to, keep=keep, now=datetime.now().astimezone(), tell=tell)
    assert made.manifest is not None
    print_answer(_fields(made), _backed_up(made, made.manifest))
    _exit_lacking(made.manifest.lacking)


def _backed_up(made: Backup, manifest: BackupManifest) -> Iterator[str]:
    yield f"{visible(str(made.path))} ({format_bytes(made.bytes)})"
    files = plural(len(manifest.members), "file")
    yield f"proven: {files} match their hashes, the database is whole; {_contents(manifest)}"
    for path in made.removed:
        yield f"removed the older {visible(path.name)}"


def _exit_lacking(lacking: Sequence[str]) -> NoReturn:
    """Name rows that were lost before the backup was made, and exit: with 1 if there are any."""
    for one in () if wants_json() else lacking:
        click.echo(f"not in it, for the memory had lost it: {visible(one)}")
    sys.exit(1 if lacking else 0)


def _must_be_there(home: Path) -> None:
    from mcp_memory.store.files import database_is_gone

    if gone := database_is_gone(home):
        raise StoreUnavailable(gone)
    if not (home / "memory.db").exists():
        raise NotFound(f"There is no memory in {home}. Name another home with --home.")


def _listing(found: Sequence[Backup]) -> Iterator[str]:
    if not found:
        yield "There are no backups. `mcp-memory backup` makes one."
    for one in found:
        head = f"{visible(one.path.name)}  {format_bytes(one.bytes):>9}"
        if one.manifest is None:
            yield f"{head}  {visible(one.problem or '')}"
        else:
            yield f"{head}  {minute(one.manifest.made)}  {_contents(one.manifest)}"


def _fields(one: Backup) -> dict[str, Any]:
    fields = asdict(one)
    if one.manifest:
        fields["manifest"]["members"] = len(one.manifest.members)
    return fields


def _contents(manifest: BackupManifest) -> str:
    counts, names = manifest.counts, ("turn", "statement", "result")
    held = ", ".join(plural(counts[f"{name}s"], name) for name in names if f"{name}s" in counts)
    return f"{held} in {plural(len(manifest.spaces), 'space')}"


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@as_json
@place
def restore(file: Path) -> None:
    """Restore the memory from a backup FILE.

    The backup is proven first. The present files are kept, in a folder that the answer names; rows forgotten since the
    backup stay forgotten, and can be restored. Exit code 1 if the memory had lost something when the backup was made.
    No other process may hold the home meanwhile. With --home it goes into another one, which is created if needed.

    \b
    mcp-memory restore mcp-memory-1a2b3c4d-20260301T090000000Z.zip
    mcp-memory --home /tmp/look restore backups/mcp-memory-1a2b3c4d-….zip
    """
    from mcp_memory.service.upkeep.restore import restore as upkeep

    with progress_bars() as tell:
        done = upkeep(file, home_with_files(), now=datetime.now().astimezone(), tell=tell)
    fields = {"home": done.home, "at": done.manifest.at, "aside": done.aside, "again": done.again}
    print_answer({**fields, "lacking": done.manifest.lacking}, _restored(done))
    _exit_lacking(done.manifest.lacking)


def _restored(done: Restored) -> Iterator[str]:
    yield f"{visible(str(done.home))} is as it was on {minute(done.manifest.made)}: {_contents(done.manifest)}"
    if done.aside:
        yield f"what was there is kept in {visible(str(done.aside))}"
    for one in done.again:
        under = f"{one.tombstone} in {visible(one.space)}"
        if one.ids:
            yield f"forgotten since then, and again: {plural(one.ids, 'id')}, {under}; forget --undo brings it back"
        if one.was_purged:
            purge = f"mcp-memory purge {one.tombstone} --space {visible(one.space)}"
            yield f"purged since then, and on the disk again: {under}. To erase it: {purge}"


@click.command()
@click.option("--check", is_flag=True, help="Only compare; the database stays as it is.")
@click.option("--accept", is_flag=True, help="Swap it in also where rows differ: the files' word counts.")
@as_json
@place
def rebuild(check: bool, accept: bool) -> None:
    """Rebuild the database from its files.

    It is compared with the files row by row, and swapped in when both agree.

    The files hold turns, explicit statements, tool results, canvases and tombstones. The work of models is copied from
    the database, or from the newest backup if the database is damaged. The old database is kept. Exit code 1 if files
    and database differ, or something is damaged or lost.

    \b
    mcp-memory rebuild --check
    mcp-memory rebuild
    """
    from mcp_memory.service.upkeep.rebuild import rebuild as upkeep

    with progress_bars() as tell:
        done = upkeep(home_with_files(), check=check, accept=accept, now=datetime.now().astimezone(), tell=tell)
    print_answer({**asdict(done), "equal": done.is_equal}, map(visible, _rebuilt(done, check=check)))
    sys.exit(0 if done.is_well else 1)


def _rebuilt(done: Rebuilt, *, check: bool) -> Iterator[str]:
    yield from (f"the database is damaged: {one}" for one in done.damage[:5])
    if done.compared:
        yield columns((one.what, _compared(one)) for one in done.compared)
    yield from (*done.notes, *done.pages, *done.behind)
    if done.carried:
        tables = ", ".join(f"{count:,} {table}" for table, count in sorted(done.carried.items()))
        yield f"taken over from {done.source}: {tables}"
    yield from (f"lost: {one}" for one in done.lost)
    yield from done.back
    if done.compared and done.is_equal:
        yield "equal: all that the files tell is what the database says"
    if done.is_swapped:
        kept = f"; what it replaced is kept in {done.aside}" if done.aside else ""
        yield f"the new database is in its place{kept}"
    elif not check:
        yield "Nothing was changed, for rows differ. Look at them, then run it with --accept, or leave it."


def _compared(one: Any) -> str:
    counts = {
        "differ": one.differing,
        "only in the files": one.only_in_files,
        "only in the database": one.only_in_database,
    }
    parts = [f"{one.same:,} equal", *(f"{count:,} {why}" for why, count in counts.items() if count)]
    examples = f" ({', '.join(one.examples)})" if one.examples else ""
    return ", ".join(parts) + examples


@click.command()
@as_json
@place
def compact() -> None:
    """Free the disk space that the database does not use.

    Vectors of embedding models that are set no more are deleted, once the one that is set has embedded everything;
    the word index is brought into one piece, free pages go, the log of writes is emptied. Others may go on.

    \b
    mcp-memory compact
    """
    from mcp_memory.service.upkeep.maintenance import compact as upkeep
    from mcp_memory.service.upkeep.maintenance import store_for_upkeep

    home = home_with_files()
    _must_be_there(home)
    try:
        dropped, kept = ask(lambda memory: memory.drop_old_vectors()), None
    except Refused as error:
        dropped, kept = [], str(error)
    with store_for_upkeep(home, "compact") as store:
        done = upkeep(store, home)
    freed = (
        f"{format_bytes(done.before - done.after)} given back" if done.after < done.before else "nothing to give back"
    )
    lines = [f"deleted the vectors of {one}" for one in dropped]
    lines += [f"{format_bytes(done.before)} became {format_bytes(done.after)}: {freed}"]
    lines += [note for note in (done.postponed, kept) if note]
    print_answer({**asdict(done), "deleted": dropped, "kept": kept}, map(visible, lines))


@click.command()
@click.option("--grant", "role", metavar="ROLE", help="Let this user of PostgreSQL read and write the rows.")
@click.option("--contract", is_flag=True, help="Take away what older versions use; they are refused from then on.")
@as_json
@place
def migrate(role: str | None, contract: bool) -> None:
    """Upgrade the tables in PostgreSQL, while servers go on.

    A home in files needs no such command.

    Run it as the user who owns the database. Servers of this version and of the one before work on the result; when no
    older one is left, --contract finishes the upgrade. With --grant, servers connect as a user who owns nothing.

    \b
    mcp-memory migrate --store postgresql://owner@db.example.com/m --grant app
    """
    chosen = settings()
    if chosen.store is None:
        raise Refused("This memory is in files, which are brought up to date when they are opened. Give --store.")
    from mcp_memory.store.postgres.database import migrate as upgrade

    done = upgrade(chosen.store, role=role, contract=contract)
    lines = [f"{step}: {_PHASES[phase]}" for step, phase in done] or ["the tables are up to date"]
    lines += [f"{visible(role)} may read and write the rows"] if role is not None else []
    print_answer({"done": [{"step": step, "phase": phase} for step, phase in done], "granted": role}, lines)


_PHASES = {"expand": "tables added", "backfill": "old rows computed", "contract": "older versions are refused now"}

T = TypeVar("T")


@click.group()
def token() -> None:
    """Make, list and revoke tokens of HTTP and SSE clients.

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
@click.option("--rights", type=click.Choice(RIGHTS), default="write", show_default=True, help="Its right there.")
@click.option("--expires", metavar="TIME", help="When it ends: 12h, 90d, 4w, 1y.  [default: when it is revoked]")
@as_json
@home
def create(name: str, spaces: tuple[str, ...], rights: Any, expires: str | None) -> None:
    """Make a token and print it, once.

    Only its hash is stored.
    Clients send it as `Authorization: Bearer <token>`. One that opens several spaces reaches another than the first
    at /mcp?space=NAME, or with the header Mcp-Memory-Space.

    \b
    mcp-memory token create --name laptop --space work --space home
    mcp-memory token create --name dashboard --rights read --expires 90d
    """
    lasts = None if expires is None else span(expires, "--expires")
    made, text = _ask_new_home(lambda memory: memory.create_token(name, spaces=spaces, right=rights, expires=lasts))
    print_answer({**_token_fields(made), "token": text}, text)
    if not wants_json():
        click.echo(f"{_token_line(made)} It is not shown again.", err=True)


@token.command("list")
@as_json
@home
def list_() -> None:
    """List the tokens with their spaces and rights.

    It also shows when each was used last, to the hour.

    \b
    mcp-memory token list
    """
    found = _ask_new_home(lambda memory: memory.tokens())
    head = ("ID", "NAME", "SPACES", "RIGHTS", "CREATED", "LAST USED", "ENDS")
    none = "No token has been made: over HTTP and SSE, whoever is on this machine is the owner."
    print_answer(list(map(_token_fields, found)), columns([head, *map(_token_row, found)]) if found else none)


@token.command()
@click.argument("which", metavar="NAME|ID")
@as_json
@home
def revoke(which: str) -> None:
    """Revoke a token, at once, in running servers too.

    \b
    mcp-memory token revoke laptop
    """
    gone = _ask_new_home(lambda memory: memory.revoke_token(which))
    print_answer(_token_fields(gone), f"Revoked {visible(gone.name)} ({gone.id}).")


def _ask_new_home(question: Callable[[Memory], Awaitable[T]]) -> T:
    """Ask the memory one thing; a home that is not there is made, for a server may be set up before it is used."""
    import anyio

    from mcp_memory.service.memory import open_memory

    chosen = settings()

    async def visit() -> T:
        async with open_memory(chosen, embedder="none", llm="none", rerank=False, what="token") as memory:
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
