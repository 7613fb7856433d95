"""`backup`, `restore`, `rebuild`, `compact`, `migrate`, `move`, `export` and `token`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from mcp_memory.cli.base import (
    as_json,
    ask,
    ask_new_home,
    home_option,
    home_with_files,
    memory_options,
    parse_duration,
    print_answer,
    progress_bars,
    settings,
    wants_json,
)
from mcp_memory.cli.terminal import columns, escape_controls, format_day, format_minute, wrap
from mcp_memory.core.errors import NotFound, Refused, StoreUnavailable
from mcp_memory.core.rights import RIGHTS
from mcp_memory.core.text import format_bytes, plural

if TYPE_CHECKING:
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
    help="Space to export; may be given several times.  [default: $MCP_MEMORY_SPACE or default]",
)
@click.option("--all-spaces", is_flag=True, help="Export all spaces of the home.")
@as_json
@home_option
def export(file: Path | None, spaces: tuple[str, ...], all_spaces: bool) -> None:
    """Write a whole space to one zip file.

    It contains turns, statements with their evidence and times, tasks, tool results and pages: Markdown for people,
    JSON lines for programs, and a README that explains them.

    Forgotten rows are left out, but their tombstones are included. The same memory gives the same bytes. Without a FILE
    it is written to this folder, named by date; an existing FILE is never overwritten.

    `mcp-memory import` imports it into another memory or space; repeating that adds nothing twice.

    \b
    mcp-memory export
    mcp-memory export ~/laptop.zip --all-spaces
    mcp-memory export work.zip --space work --space home
    """
    if spaces and all_spaces:
        raise click.UsageError("--all-spaces includes every space: leave --space out.")
    chosen = None if all_spaces else list(dict.fromkeys(spaces)) or [settings().space]
    name = "all" if chosen is None else chosen[0] if len(chosen) == 1 else f"{len(chosen)}-spaces"
    unnamed = Path(f"mcp-memory-{name}-{datetime.now():%Y-%m-%d}.zip")
    target = (unnamed if file is None else file / unnamed if file.is_dir() else file).absolute()
    with progress_bars() as tell:
        done = ask(lambda memory: memory.export(target, spaces=chosen, tell=tell))
    print_answer(done, _export_lines(done))


def _export_lines(done: Exported) -> Iterator[str]:
    yield f"{escape_controls(done.path)}: {format_bytes(done.bytes)}"
    for space, rows in done.rows.items():
        counts = [plural(rows[kind], noun) for kind, noun in _KINDS.items() if rows.get(kind)]
        yield f"  {escape_controls(space)}: {', '.join(counts) or 'nothing'}"
    if done.lacking:
        names = ", ".join(done.lacking[:10])
        yield wrap(
            f"Left out, because their files are missing or damaged: {names}. `mcp-memory doctor` shows more.", "  "
        )


_KINDS = {
    "turns": "turn",
    "atoms": "statement",
    "refs": "tool result",
    "canvases": "task",
    "scenes": "version of a scene",
    "tombstones": "tombstone",
}


@click.command()
@click.option("--to", type=click.Path(path_type=Path), help="Target folder.  [default: backups/ in the home]")
@click.option("--keep", default=7, show_default=True, help="Number of backups of this memory to keep there.")
@click.option("--list", "listing", is_flag=True, help="List the existing backups; make none.")
@click.option("--verify", type=click.Path(path_type=Path), metavar="FILE", help="Only check a backup.")
@as_json
@memory_options
def backup(to: Path | None, keep: int, listing: bool, verify: Path | None) -> None:
    """Back up the memory into one file, while it is in use.

    It contains the database, all turns, results, canvases and scenes at a single point in time, and is read back and
    verified. Settings and logs are not included. Exit code 1 if something is missing.

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
        print_answer(manifest, f"{verify} is intact: {_describe_contents(manifest)}.")
        _exit_with_missing(manifest.lacking)
    if listing:
        backups = upkeep.list_backups(to or upkeep.folder_of(home))
        print_answer([_backup_fields(entry) for entry in backups], _backup_list(backups))
        return
    _require_memory(home)
    with store_for_upkeep(home, "backup") as store, progress_bars() as tell:
        made = upkeep.back_up(store, home, to=to, keep=keep, now=datetime.now().astimezone(), tell=tell)
    assert made.manifest is not None
    print_answer(_backup_fields(made), _backup_lines(made, made.manifest))
    _exit_with_missing(made.manifest.lacking)


def _backup_lines(made: Backup, manifest: BackupManifest) -> Iterator[str]:
    yield f"{escape_controls(str(made.path))} ({format_bytes(made.bytes)})"
    files = plural(len(manifest.members), "file")
    yield f"verified: {files} match their hashes, the database is intact; {_describe_contents(manifest)}"
    for path in made.removed:
        yield f"removed the older {escape_controls(path.name)}"


def _exit_with_missing(lacking: Sequence[str]) -> NoReturn:
    """Exit, with 1 if rows were lost before the backup was made; list them first, except with `--json`."""
    for row in () if wants_json() else lacking:
        click.echo(f"not included, because the memory had lost it: {escape_controls(row)}")
    sys.exit(1 if lacking else 0)


def _require_memory(home: Path) -> None:
    from mcp_memory.store.files import database_is_gone

    if gone := database_is_gone(home):
        raise StoreUnavailable(gone)
    if not (home / "memory.db").exists():
        raise NotFound(f"There is no memory in {home}. Name another home with --home.")


def _backup_list(backups: Sequence[Backup]) -> Iterator[str]:
    if not backups:
        yield "There are no backups. `mcp-memory backup` makes one."
    for backup in backups:
        head = f"{escape_controls(backup.path.name)}  {format_bytes(backup.bytes):>9}"
        if backup.manifest is None:
            yield f"{head}  {escape_controls(backup.problem or '')}"
        else:
            yield f"{head}  {format_minute(backup.manifest.made_at)}  {_describe_contents(backup.manifest)}"


def _backup_fields(backup: Backup) -> dict[str, Any]:
    fields = asdict(backup)
    if backup.manifest:
        fields["manifest"]["members"] = len(backup.manifest.members)
    return fields


def _describe_contents(manifest: BackupManifest) -> str:
    counts, names = manifest.counts, ("turn", "statement", "result")
    rows = ", ".join(plural(counts[f"{name}s"], name) for name in names if f"{name}s" in counts)
    return f"{rows} in {plural(len(manifest.spaces), 'space')}"


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@as_json
@memory_options
def restore(file: Path) -> None:
    """Restore the memory from a backup FILE.

    The backup is verified first. The present files are kept, in a folder that the answer names; rows forgotten since
    the backup stay forgotten, and can be restored. Exit code 1 if the memory had lost something when the backup was
    made. No other process may use the home meanwhile. --home selects another target, which is created if needed.

    \b
    mcp-memory restore mcp-memory-1a2b3c4d-20260301T090000000Z.zip
    mcp-memory --home /tmp/look restore backups/mcp-memory-1a2b3c4d-….zip
    """
    from mcp_memory.service.upkeep.restore import restore as upkeep

    with progress_bars() as tell:
        done = upkeep(file, home_with_files(), now=datetime.now().astimezone(), tell=tell)
    fields = {"home": done.home, "at": done.manifest.at, "aside": done.aside, "again": done.again}
    print_answer({**fields, "lacking": done.manifest.lacking}, _restore_lines(done))
    _exit_with_missing(done.manifest.lacking)


def _restore_lines(done: Restored) -> Iterator[str]:
    contents = _describe_contents(done.manifest)
    yield f"{escape_controls(str(done.home))} is as it was on {format_minute(done.manifest.made_at)}: {contents}"
    if done.aside:
        yield f"the previous files are kept in {escape_controls(str(done.aside))}"
    for tombstone in done.again:
        under = f"{tombstone.tombstone} in {escape_controls(tombstone.space)}"
        if tombstone.ids:
            ids = plural(tombstone.ids, "id")
            yield f"forgotten since then, and forgotten again: {ids}, {under}; `forget --undo` restores it"
        if tombstone.was_purged:
            purge = f"mcp-memory purge {tombstone.tombstone} --space {escape_controls(tombstone.space)}"
            yield f"purged since then, and on the disk again: {under}. To erase it: {purge}"


@click.command()
@click.option("--check", is_flag=True, help="Only say what would be added; the database stays as it is.")
@as_json
@memory_options
def rebuild(check: bool) -> None:
    """Rebuild a lost or damaged database from its files.

    The files have turns, explicit statements, tool results, canvases and tombstones. What models made comes from the
    old database if it can be read, or from the newest backup. An undamaged database keeps its rows; missing rows
    are added from the files. The old database is kept. Exit code 1 if something is damaged or lost, or, with
    --check, if there is something to add.

    \b
    mcp-memory rebuild --check
    mcp-memory rebuild
    """
    from mcp_memory.service.upkeep.rebuild import rebuild as upkeep

    with progress_bars() as tell:
        done = upkeep(home_with_files(), check=check, now=datetime.now().astimezone(), tell=tell)
    print_answer({**asdict(done), "needed": done.is_needed}, map(escape_controls, _rebuild_lines(done)))
    sys.exit(0 if done.is_well else 1)


def _rebuild_lines(done: Rebuilt) -> Iterator[str]:
    yield from (f"the database is damaged: {problem}" for problem in done.damage[:5])
    yield from done.notes
    if done.added:
        yield f"added from the files: {_row_counts(done.added)}"
    if done.without_files and done.source:
        yield f"only in the database, taken from {done.source}: {_row_counts(done.without_files)}"
    yield from (f"lost: {sentence}" for sentence in done.lost)
    yield from done.back
    if not done.is_needed:
        yield "The database has all that the files have. Nothing was changed."
    elif done.is_swapped:
        kept = f"; the old database is kept in {done.aside}" if done.aside else ""
        yield f"the new database is in use{kept}"


def _row_counts(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(rows.items()))


@click.command()
@as_json
@memory_options
def compact() -> None:
    """Free unused disk space of the database.

    Deletes vectors of former embedding models, once the current model has embedded everything; merges the word index,
    frees unused pages and empties the write-ahead log. The memory may be in use meanwhile.

    \b
    mcp-memory compact
    """
    from mcp_memory.service.upkeep.maintenance import compact as upkeep
    from mcp_memory.service.upkeep.maintenance import store_for_upkeep

    home = home_with_files()
    _require_memory(home)
    try:
        dropped, kept = ask(lambda memory: memory.drop_old_vectors()), None
    except Refused as error:
        dropped, kept = [], str(error)
    with store_for_upkeep(home, "compact") as store:
        done = upkeep(store, home)
    freed = f"{format_bytes(done.before - done.after)} freed" if done.after < done.before else "nothing to free"
    lines = [f"deleted the vectors of {model}" for model in dropped]
    lines += [f"{format_bytes(done.before)} became {format_bytes(done.after)}: {freed}"]
    lines += [note for note in (done.postponed, kept) if note]
    print_answer({**asdict(done), "deleted": dropped, "kept": kept}, map(escape_controls, lines))


@click.command()
@click.option("--grant", "role", metavar="ROLE", help="Let this user of PostgreSQL read and write the rows.")
@click.option("--contract", is_flag=True, help="Remove what only older versions use; they are refused from then on.")
@as_json
@memory_options
def migrate(role: str | None, contract: bool) -> None:
    """Upgrade the tables in PostgreSQL, while servers run.

    A home in files is upgraded when it is opened.

    Run it as the owner of the database. Servers of this and of the previous version can use the result; when no older
    server is left, --contract finishes the upgrade. With --grant, servers can connect as a user who owns nothing.

    \b
    mcp-memory migrate --store postgresql://owner@db.example.com/m --grant app
    """
    chosen = settings()
    if chosen.store is None:
        raise Refused("This memory is in files, which are upgraded when they are opened. Give --store.")
    from mcp_memory.store.postgres.database import give_key
    from mcp_memory.store.postgres.database import migrate as upgrade

    done = upgrade(chosen.store, role=role, contract=contract)
    lines = [f"{step}: {_PHASES[phase]}" for step, phase in done] or ["the tables are up to date"]
    key = None
    if role is not None:
        key = give_key(chosen.store, role, chosen.store_key)
        lines.append(f"{escape_controls(role)} may read and write the rows with its key")
    elif not contract:
        lines.append("Servers connect as another user: `mcp-memory migrate --grant USER` lets it use the tables.")
    if key is not None:
        lines += ["Set this for its servers; it is not shown again:", f"MCP_MEMORY_STORE_KEY={key}"]
    answer = {"done": [{"step": step, "phase": phase} for step, phase in done], "granted": role, "key": key}
    print_answer(answer, lines)


_PHASES = {
    "expand": "tables added",
    "backfill": "old rows computed",
    "contract": "older versions are refused now",
    "set": "timeouts and the planner's settings set for the database",
}
T = TypeVar("T")


@click.group()
def token() -> None:
    """Make, list and revoke tokens of HTTP and SSE clients.

    A token opens some spaces with one right: read (search and recall), write (record, remember, offload and distill
    too), admin (forget too), or operator (administer all spaces and tokens too). Once a token exists, every request
    needs one.

    \b
    mcp-memory token create --name laptop --space work --rights write
    mcp-memory token list
    """


@token.command()
@click.option("--name", required=True, help="Name of its user: a machine, a program, a person.")
@click.option(
    "--space",
    "spaces",
    multiple=True,
    help="A space that it opens; may be repeated. The first is the default of its clients.  "
    "[default: $MCP_MEMORY_SPACE or default]",
)
@click.option(
    "--rights", type=click.Choice(RIGHTS), default="write", show_default=True, help="Its right in these spaces."
)
@click.option("--expires", metavar="TIME", help="Lifetime: 12h, 90d, 4w, 1y.  [default: until it is revoked]")
@as_json
@home_option
def create(name: str, spaces: tuple[str, ...], rights: Any, expires: str | None) -> None:
    """Make a token and print it, once.

    Only its hash is stored. Clients send it as `Authorization: Bearer <token>`. To use another space than the first,
    they connect to /mcp?space=NAME or send the header Mcp-Memory-Space.

    \b
    mcp-memory token create --name laptop --space work --space home
    mcp-memory token create --name dashboard --rights read --expires 90d
    """
    lasts = None if expires is None else parse_duration(expires, "--expires")
    made, text = ask_new_home(lambda memory: memory.create_token(name, spaces=spaces, right=rights, expires=lasts))
    print_answer({**_token_fields(made), "token": text}, text)
    if not wants_json():
        click.echo(f"{_token_line(made)} It is not shown again.", err=True)


@token.command("list")
@as_json
@home_option
def list_() -> None:
    """List the tokens with their spaces and rights.

    Shows also the hour of the last use.

    \b
    mcp-memory token list
    """
    tokens = ask_new_home(lambda memory: memory.tokens())
    head = ("ID", "NAME", "SPACES", "RIGHTS", "CREATED", "LAST USED", "ENDS")
    none = "No tokens. Over HTTP and SSE, every user of this machine has full access."
    print_answer(list(map(_token_fields, tokens)), columns([head, *map(_token_row, tokens)]) if tokens else none)


@token.command()
@click.argument("which", metavar="NAME|ID")
@as_json
@home_option
def revoke(which: str) -> None:
    """Revoke a token, at once, in running servers too.

    \b
    mcp-memory token revoke laptop
    """
    gone = ask_new_home(lambda memory: memory.revoke_token(which))
    print_answer(_token_fields(gone), f"Revoked {escape_controls(gone.name)} ({gone.id}).")


def _token_fields(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "spaces": token.spaces,
        "rights": token.right,
        "created": token.at,
        "last_used": token.used_at,
        "expires": token.until,
        "revoked": token.revoked_at,
    }


def _token_row(token: Token) -> tuple[str, ...]:
    used = format_minute(token.used_at) if token.used_at else "never"
    return (
        token.id,
        escape_controls(token.name),
        escape_controls(", ".join(token.spaces)),
        token.right,
        format_day(token.at),
        used,
        _token_end(token),
    )


def _token_end(token: Token) -> str:
    if token.revoked_at is not None:
        return f"revoked {format_day(token.revoked_at)}"
    if token.until is None:
        return "never"
    return f"{'ended ' if token.until <= datetime.now(UTC) else ''}{format_day(token.until)}"


def _token_line(token: Token) -> str:
    ends = "until it is revoked" if token.until is None else f"until {format_minute(token.until)}"
    return escape_controls(f"{token.name} opens {', '.join(token.spaces)} with the right {token.right}, {ends}.")


if TYPE_CHECKING:
    from mcp_memory.service.upkeep.move import Moved


@click.command()
@click.argument("source")
@click.argument("target")
@click.option("--check", is_flag=True, help="Only compare both sides again.")
@as_json
def move(source: str, target: str, check: bool) -> None:
    """Copy a whole memory from files to PostgreSQL or back.

    Ids, times, tool results, vectors, tombstones, tokens and ledgers are the same afterwards. SOURCE is only read and
    TARGET must be empty; no other program may have them open. An interrupted move continues when it is called again.
    At the end rows, results and vectors of both sides are compared by SHA-256, and so are the answers to a hundred
    questions.

    \b
    mcp-memory move sqlite:~/.mcp-memory postgresql://owner@db.example.com/m
    mcp-memory move postgresql://owner@db.example.com/m sqlite:/var/lib/memory
    """
    from mcp_memory.service.upkeep.move import move as move_memory

    with progress_bars() as tell:
        done = move_memory(source, target, objects=settings().objects, check=check, tell=tell)
    print_answer(done, _move_lines(done, check=check))


def _move_lines(done: Moved, *, check: bool) -> Iterator[str]:
    rows = [
        (escape_controls(table.space or "-"), escape_controls(table.what), f"{table.rows:,}", table.sha256)
        for table in done.proven
    ]
    yield columns([("SPACE", "WHAT", "ROWS", "SHA-256, THE SAME ON BOTH SIDES"), *rows])
    yield f"{escape_controls(done.source)} and {escape_controls(done.target)} have the same contents."
    yield f"{plural(done.questions, 'question')} found the same on both sides; {done.seconds:,} s."
    if not check:
        use = "let the servers' user in with `mcp-memory migrate --grant USER`, set MCP_MEMORY_STORE to that user's URL"
        if done.target.startswith("sqlite:"):
            use = (
                f"set MCP_MEMORY_HOME={escape_controls(done.target.removeprefix('sqlite:'))} and unset MCP_MEMORY_STORE"
            )
        yield f"{escape_controls(done.source)} is as it was. To use the copy, {use}, or the same in config.toml."
