"""`forget`, `purge`, `retention` and `review`: rows taken out, erased, expired, or quarantined."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import as_json, ask, place, print_answer, span, wants_json
from mcp_memory.cli.terminal import columns, minute, one_line, plural, visible, wrapped
from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import format_bytes
from mcp_memory.longterm.verification.trust import REASONS

if TYPE_CHECKING:
    from mcp_memory.core.types import Forgotten, Reviewed
    from mcp_memory.service.memory import Memory
    from mcp_memory.service.verbs.retention import OverdueRows, PurgeReport, RetentionRun
    from mcp_memory.store.forgetting import Keeping
    from mcp_memory.store.values import Tombstone

_TYPED = 12
_LISTED = 40


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--query", metavar="WORDS", help="Rows that have all of these words.")
@click.option("--session", metavar="NAME", help="Turns, statements and results of this session.")
@click.option("--since", metavar="WHEN", help='Rows from then on: 2026-05-07, or "last week".')
@click.option("--until", metavar="WHEN", help="Rows until then.")
@click.option("--yes", is_flag=True, help="Do it at once; else all but bare ids is only shown.")
@click.option("--also", is_flag=True, help="Also forget the other rows with the same content.")
@click.option("--undo", metavar="TOMBSTONE", help="Restore the rows forgotten under this id.")
@click.option("--reason", default="", help="A note that is kept with it.")
@as_json
@place
def forget(ids: tuple[str, ...], yes: bool, also: bool, reason: str, **filters: str | None) -> None:
    """Take rows out of every search and listing.

    Rows are turns, statements and tool results: those with the IDs, or those that match all of words, session and
    time. It can be undone until `mcp-memory purge` erases them. They are not learned or imported again. Other rows with
    the same content are listed; --also forgets them as well.

    \b
    mcp-memory forget --query "night boat"
    mcp-memory forget a57 t812 r-9f2c1a7b3d4e --reason "moved away"
    mcp-memory forget --session 2026-11-20-3f2a --until yesterday --yes
    mcp-memory forget --undo x1
    """
    if not (ids or any(filters.values())):
        raise click.UsageError(
            "Say what: ids, which `mcp-memory search` shows, or --query, --session, --since, --until, or --undo."
        )
    done = ask(lambda memory: memory.forget(ids, **filters, reason=reason, dry_run=False if yes else None, also=also))
    if not (done.ids or done.also):
        what = "holds all of these words" if filters["query"] else "is there"
        find = "Find ids with `mcp-memory search`, and sessions with `mcp-memory show sessions`."
        raise NotFound(f"Nothing {what}. {find}")
    print_answer(done, _lines(done))
    may_ask = done.tombstone and done.also and not wants_json() and sys.stdin.isatty()
    if may_ask and click.confirm("Forget these rows too?", err=True):
        more = ask(lambda memory: memory.forget(done.also, reason=reason))
        print_answer(more, _lines(more))


def _lines(done: Forgotten) -> list[str]:
    shown = [f"  {one_line(it, 78)}" for it in done.previews[:_LISTED]]
    more = done.total - len(shown)
    return [_head(done), *shown, *([f"  … and {more:,} more"] if more > 0 else []), *done.along, *_also(done)]


def _also(done: Forgotten) -> Iterator[str]:
    if done.also:
        yield f"Other rows with the same content stay. To forget them: mcp-memory forget {' '.join(done.also)}"
        yield from (f"  {one_line(line, 78)}" for line in done.also_previews)


def _head(done: Forgotten) -> str:
    named = ", ".join(done.ids) if done.total <= _TYPED else f"{done.total:,} of them"
    if done.undone:
        return f"Brought back {named}."
    if not done.ids:
        return "Nothing was changed: no turn, statement or result has all of these words."
    if done.tombstone is None:
        how = f"mcp-memory forget {' '.join(done.ids)}" if done.total <= _TYPED else "say it again with --yes"
        return f"Nothing was changed. To forget these: {how}"
    return f"Forgot {named}. To bring them back: mcp-memory forget --undo {done.tombstone}"


_LISTED_TOMBSTONES = 30


@click.command()
@click.argument("tombstones", nargs=-1, metavar="[TOMBSTONE]...")
@click.option("--all", "everything", is_flag=True, help="All that was forgotten.")
@click.option("--older-than", metavar="TIME", help="Rows forgotten longer ago: 12h, 30d, 4w, 1y.")
@click.option("--backups", is_flag=True, help="Delete backups and other copies in the home that have it still.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
@place
def purge(tombstones: tuple[str, ...], everything: bool, older_than: str | None, backups: bool, yes: bool) -> None:
    """Erase forgotten rows for good, and prove it.

    Every file of the memory is searched for what was erased. Without arguments it lists the tombstones that can be
    purged. Rows, indexes, files and free pages of the database
    are rewritten without the erased text; it stays known as forgotten, by a digest that cannot be read back. Copies
    elsewhere are yours to delete, and a running program may hold the text until it ends. Names of sessions and imported
    files with erased words are replaced. Backups, exports and quarantine folders in the home are also searched for rows
    that earlier purges erased. Exit code 1 if any of it was found, also in a copy or repeated by an agent.

    \b
    mcp-memory purge
    mcp-memory purge x3 x4
    mcp-memory purge --older-than 30d --backups --yes
    """
    age = None if older_than is None else span(older_than, "--older-than")
    can_be = ask(lambda memory: memory.purgeable(older_than=age))
    chosen = list(tombstones) if tombstones else [one.id for one in can_be] if everything or older_than else []
    if tombstones and (everything or older_than):
        raise InvalidInput("Name tombstones, or say --all or --older-than: not both.")
    if not (tombstones or everything or older_than):
        print_answer(can_be, _purgeable(can_be))
        if not wants_json() and ask(lambda memory: memory.unproven()):
            click.echo(
                "A purge is not finished: where none runs, the next one or `mcp-memory doctor --repair` ends it."
            )
        return
    about = [one for one in can_be if one.id in chosen]
    if about and len(about) == len(set(chosen)) and not yes:  # one that cannot be purged is refused without a question
        what = f"what was forgotten under {', '.join(chosen)} ({sum(len(one.ids) for one in about):,} ids)"
        copies = ", and every copy in the home that has it" if backups else ""
        click.confirm(f"Erase {what} for good{copies}? Nobody can bring it back.", abort=True, err=True)
    elif backups and not about and not yes:
        click.confirm("Delete every copy in the home with purged rows?", abort=True, err=True)
    done = ask(lambda memory: memory.purge(chosen, delete_copies=backups))
    print_answer(done, _erased(done))
    is_left = bool(done.copies or (done.proof and done.proof.copies))
    sys.exit(0 if (done.is_proven and not is_left) or not done.provable else 1)


def _purgeable(tombstones: list[Tombstone]) -> Iterator[str]:
    if not tombstones:
        yield "There is nothing to purge: nothing is forgotten that could be brought back."
        return
    rows = [
        (one.id, minute(one.at), plural(len(one.ids), "id"), one.reason) for one in tombstones[-_LISTED_TOMBSTONES:]
    ]
    yield columns(rows)
    if len(tombstones) > _LISTED_TOMBSTONES:
        yield f"and {len(tombstones) - _LISTED_TOMBSTONES:,} older ones"
    yield f"To erase some for good: mcp-memory purge {rows[-1][0]}, or --all, or --older-than 30d."


_DELETE = "Delete it yourself, or every such copy with `mcp-memory purge --all --backups`."


def _erased(done: PurgeReport) -> Iterator[str]:
    if not done.tombstones:
        nothing = "There was nothing to purge." if not done.cut_short else "An earlier purge, cut short, is finished."
        yield nothing if done.shredded or not done.provable else "An earlier purge is not finished."
    else:
        yield (
            f"Erased {plural(done.turns, 'turn')}, {plural(done.atoms, 'statement')} and {plural(done.refs, 'result')} "
            f"({', '.join(done.tombstones)})."
        )
    if done.cut_short:
        yield (
            "A purge before this one was cut short. The memory is rid of what it erased, and the words to look for are "
            "gone: look through logs, spaces/*/*.jsonl.* and backups/ in the home yourself."
        )
    if not done.provable:
        yield (
            "PostgreSQL keeps deleted bytes for a while: in pages until VACUUM FULL, in its log, on standbys, and in "
            "backups until they are deleted. Nothing here can search those."
        )
        if done.bucket:
            yield (
                f"If {done.bucket} has versioning, it keeps deleted results as older versions until a lifecycle rule "
                "deletes them."
            )
    elif not done.shredded:
        yield "Others were reading all the while: the log of writes may have some of it. Run purge again."
    if done.repeated:
        names = " ".join(done.repeated[:_LISTED_TOMBSTONES])
        yield f"Steps, summaries, goals or labels by an agent still repeat erased words: {names}."
        yield "To erase those too, run `mcp-memory forget` with these ids, then purge again."
    if proof := done.proof:
        searched = f"{plural(proof.files, 'file')}, {format_bytes(proof.bytes)}"
        pieces = plural(proof.pieces, "piece")
        yield f"Searched {searched} for {pieces} of it: {len(proof.found) or 'none'} found."
        yield from (f"  found: {one_line(line, 160)}" for line in proof.found)
        yield from (f"  could not be read: {one_line(line, 160)}" for line in proof.unread)
        if proof.found:
            yield "Take it out of files of yours. That a file of the memory itself has it is a fault: report it."
        if proof.also_in:
            names = ", ".join(proof.also_in[:10]) + (" …" if len(proof.also_in) > 10 else "")
            yield f"Some of its words stand in what was kept too: {one_line(names, 200)}."
        yield from (f"Cleared lines of {name}." for name in proof.cleared)
        yield from (f"Deleted {name}." for name in proof.deleted)
        yield from (f"{name} still has it. {_DELETE}" for name in proof.copies)
        if proof.words:
            yield "Erased words also occur in these files, in names that were not changed:"
            yield from (f"  {one_line(line, 160)}" for line in proof.words)
    yield from (f"Deleted {name}, which had purged rows." for name in done.deleted)
    known = done.proof.copies if done.proof else ()
    yield from (f"{name} has purged rows. {_DELETE}" for name in done.copies if name not in known)
    if done.beside:
        yield f"What these have in memory goes when they end: {', '.join(map(str, done.beside))}."


@click.command()
@click.option("--turns", metavar="TIME", help="How long turns are kept, from their arrival: 365d, 1y.")
@click.option("--results", metavar="TIME", help="How long tool results are kept, from when they were taken.")
@click.option("--purge-after", metavar="TIME", help="How long these rows can be restored; else for ever.")
@click.option("--off", is_flag=True, help="Keep everything from now on.")
@click.option("--run", is_flag=True, help="Forget old rows now; an open server does it once a day.")
@as_json
@place
def retention(turns: str | None, results: str | None, purge_after: str | None, off: bool, run: bool) -> None:
    """Show or set how long rows of this space are kept.

    Nothing is set at first: everything is kept.
    Statements stay, and so does the evidence of each, turns and results: forget the statement, and they go with the
    next run. Rows past their time are forgotten, which can be undone, and purged only with --purge-after.

    \b
    mcp-memory retention
    mcp-memory retention --turns 365d --results 90d
    mcp-memory --space work retention --results 30d --purge-after 30d --run
    mcp-memory retention --off
    """
    given: dict[Keeping, str | None] = {"turns": turns, "results": results, "purge": purge_after}
    days: dict[Keeping, int | None] = {what: _days(text, what) for what, text in given.items() if text is not None}
    if off and days:
        raise InvalidInput("--off keeps everything, so no time fits beside it.")
    if off:
        days = dict.fromkeys(given)

    async def work(memory: Memory) -> tuple[list[RetentionRun], list[OverdueRows]]:
        if days:
            await memory.set_retention(days)
        done = await memory.follow_retention(eager=True) if run else []
        return done, await memory.retention()

    done, policies = ask(work)
    print_answer({"done": done, "policies": policies}, [*_followed(done), *_policies(policies)])


def _days(text: str, what: Keeping) -> int:
    option = "--purge-after" if what == "purge" else f"--{what}"
    days = span(text, option).days
    if not days:
        raise InvalidInput(f"{option} counts in days: 1d is the shortest.")
    return days


def _followed(done: list[RetentionRun]) -> Iterator[str]:
    for one in done:
        verb = "Purged" if one.policy.what == "purge" else "Forgot"
        under = f" ({', '.join(one.tombstones)})" if one.tombstones else ""
        yield f"{verb} {one.took:,} {_WHAT[one.policy.what]}{under}."


def _policies(policies: list[OverdueRows]) -> Iterator[str]:
    if not policies:
        yield "Everything is kept: nothing is set for this space."
    for one in policies:
        policy = one.policy
        ran = f"last run {minute(policy.ran_at)}" if policy.ran_at else "not run yet"
        staying = f", {one.staying:,} more stay: statements rest on them" if one.staying else ""
        yield (
            f"{_WHAT[policy.what].capitalize()}: {plural(policy.days, 'day')}. {one.going:,} due now{staying}. "
            f"{policy.took:,} taken so far, {ran}."
        )


_WHAT: dict[Keeping, str] = {"turns": "turns", "results": "results", "purge": "tombstones of this"}


_CHARS = 600


@click.command()
@click.argument("action", type=click.Choice(["list", "release", "keep", "forget", "scan"]), default="list")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@as_json
@place
def review(action: str, ids: tuple[str, ...]) -> None:
    """Review rows that are quarantined.

    Searches find them, but they are never recalled automatically. list (the default) shows the waiting rows, and why.
    release lets a row be recalled, keep leaves it quarantined and off the list, forget takes it out of the memory.
    scan also judges rows that earlier versions stored, and finds the keys and passwords in them.

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
        print_answer(done, f"Forgot {', '.join(done.ids)}.")
        return
    if action == "list":
        found = ask(lambda memory: memory.waiting())
    elif action == "scan":
        found = ask(lambda memory: memory.scan())
    else:
        found = ask(lambda memory: memory.review(ids, "released" if action == "release" else "kept"))
    print_answer(found, _reviewed(action, found))


def _reviewed(action: str, found: list[Reviewed]) -> str:
    if action in ("release", "keep"):
        what = "may be recalled" if action == "release" else "stays out of what is recalled"
        return "\n".join(f"{one.id} {what}: {one_line(one.text, 60)}" for one in found)
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
