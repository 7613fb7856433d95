"""`remember`, `forget`, `purge`, `retention` and `review`: add, correct, forget, erase and review rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args

import click

from mcp_memory.cli.base import (
    as_json,
    ask,
    ask_memory,
    memory_options,
    parse_duration,
    print_answer,
    settings,
    wants_json,
)
from mcp_memory.cli.terminal import columns, escape_controls, format_minute, one_line, wrap
from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.personal_ids import by_memory
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import format_bytes, plural
from mcp_memory.core.types import StatementKind
from mcp_memory.longterm.verification.trust import REASONS

if TYPE_CHECKING:
    from mcp_memory.core.types import Forgotten, Reviewed
    from mcp_memory.service.memory import Memory
    from mcp_memory.service.verbs.forgetting import OverdueRows, PurgeReport, RetentionRun
    from mcp_memory.store.forgetting import Keeping
    from mcp_memory.store.values import Tombstone
_LONGEST_ID_LIST = 12
_MAX_PREVIEWS = 40


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--query", metavar="WORDS", help="Rows that have all of these words.")
@click.option("--session", metavar="NAME", help="Turns, statements and results of this session.")
@click.option("--since", metavar="WHEN", help='Rows from then on: 2026-05-07, or "last week".')
@click.option("--until", metavar="WHEN", help="Rows until then.")
@click.option("--yes", is_flag=True, help="Do it at once; else anything but bare ids is only previewed.")
@click.option("--also", is_flag=True, help="Also forget the other rows with the same content.")
@click.option("--undo", metavar="TOMBSTONE", help="Restore the rows forgotten under this id.")
@click.option("--reason", default="", help="A note to store with it.")
@as_json
@memory_options
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
        what = "contains all of these words" if filters["query"] else "is there"
        find = "Find ids with `mcp-memory search`, and sessions with `mcp-memory show sessions`."
        raise NotFound(f"Nothing {what}. {find}")
    print_answer(done, _forget_lines(done))
    may_ask = done.tombstone and done.also and not wants_json() and sys.stdin.isatty()
    if may_ask and click.confirm("Forget these rows too?", err=True):
        for others in by_memory(done.also):
            more = ask(lambda memory, others=others: memory.forget(others, reason=reason))
            print_answer(more, _forget_lines(more))


def _forget_lines(done: Forgotten) -> list[str]:
    shown = [f"  {one_line(it, 78)}" for it in done.previews[:_MAX_PREVIEWS]]
    more = done.total - len(shown)
    return [
        _forget_summary(done),
        *shown,
        *([f"  … and {more:,} more"] if more > 0 else []),
        *done.along,
        *_other_rows(done),
    ]


def _other_rows(done: Forgotten) -> Iterator[str]:
    if done.also:
        commands = (f"mcp-memory forget {' '.join(others)}" for others in by_memory(done.also))
        yield f"Other rows with the same content stay. To forget them: {'; '.join(commands)}"
        yield from (f"  {one_line(line, 78)}" for line in done.also_previews)


def _forget_summary(done: Forgotten) -> str:
    named = ", ".join(done.ids) if done.total <= _LONGEST_ID_LIST else f"{done.total:,} of them"
    if done.undone:
        return f"Restored {named}."
    if not done.ids:
        return "Nothing was changed: no turn, statement or result has all of these words."
    if done.tombstone is None:
        how = (
            f"mcp-memory forget {' '.join(done.ids)}"
            if done.total <= _LONGEST_ID_LIST
            else "repeat the command with --yes"
        )
        return f"Nothing was changed. To forget these: {how}"
    return f"Forgot {named}. To restore them: mcp-memory forget --undo {done.tombstone}"


_LISTED_TOMBSTONES = 30


@click.command()
@click.argument("tombstones", nargs=-1, metavar="[TOMBSTONE]...")
@click.option("--all", "everything", is_flag=True, help="Everything that was forgotten.")
@click.option("--older-than", metavar="TIME", help="Rows forgotten longer ago: 12h, 30d, 4w, 1y.")
@click.option("--backups", is_flag=True, help="Delete backups and other copies in the home that still contain it.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
@memory_options
def purge(tombstones: tuple[str, ...], everything: bool, older_than: str | None, backups: bool, yes: bool) -> None:
    """Erase forgotten rows for good, and prove it.

    Without arguments it lists the tombstones that can be purged. Rows, indexes, files and free pages of the database
    are rewritten without the erased text, which stays known as forgotten by a digest that cannot be reversed. Names of
    sessions and imported files with erased words are replaced. Then every file of the memory is searched for the erased
    text. Backups, exports and quarantine folders in the home are also searched for rows that earlier purges erased.
    Copies elsewhere are yours to delete, and a running program may keep the text until it ends. Exit code 1 if any of
    it was found, also in a copy or repeated by an agent.

    \b
    mcp-memory purge
    mcp-memory purge x3 x4
    mcp-memory purge --older-than 30d --backups --yes
    """
    age = None if older_than is None else parse_duration(older_than, "--older-than")
    can_be = ask(lambda memory: memory.purgeable(older_than=age))
    chosen = (
        list(tombstones) if tombstones else [tombstone.id for tombstone in can_be] if everything or older_than else []
    )
    if tombstones and (everything or older_than):
        raise InvalidInput("Name tombstones, or say --all or --older-than: not both.")
    if not (tombstones or everything or older_than):
        print_answer(can_be, _purgeable_lines(can_be))
        if not wants_json() and ask(lambda memory: memory.unproven()):
            click.echo(
                "A purge is not finished: unless one is running, the next or `mcp-memory doctor --repair` finishes it."
            )
        return
    about = [tombstone for tombstone in can_be if tombstone.id in chosen]
    if about and len(about) == len(set(chosen)) and not yes:  # an impossible purge is refused without a question
        what = f"the rows forgotten under {', '.join(chosen)} ({sum(len(tombstone.ids) for tombstone in about):,} ids)"
        copies = ", and every copy of them in the home" if backups else ""
        click.confirm(f"Erase {what} for good{copies}? This cannot be undone.", abort=True, err=True)
    elif backups and not about and not yes:
        click.confirm("Delete every copy in the home with purged rows?", abort=True, err=True)
    done = ask(lambda memory: memory.purge(chosen, delete_copies=backups))
    print_answer(done, _purge_lines(done))
    is_left = bool(done.copies or (done.proof and done.proof.copies))
    sys.exit(0 if (done.is_proven and not is_left) or not done.provable else 1)


def _purgeable_lines(tombstones: list[Tombstone]) -> Iterator[str]:
    if not tombstones:
        yield "There is nothing to purge: no forgotten rows can be restored."
        return
    rows = [
        (tombstone.id, format_minute(tombstone.at), plural(len(tombstone.ids), "id"), tombstone.reason)
        for tombstone in tombstones[-_LISTED_TOMBSTONES:]
    ]
    yield columns(rows)
    if len(tombstones) > _LISTED_TOMBSTONES:
        yield f"and {len(tombstones) - _LISTED_TOMBSTONES:,} older ones"
    yield f"To erase some for good: mcp-memory purge {rows[-1][0]}, or --all, or --older-than 30d."


_DELETE = "Delete it yourself, or every such copy with `mcp-memory purge --all --backups`."


def _purge_lines(done: PurgeReport) -> Iterator[str]:
    if not done.tombstones:
        nothing = "There was nothing to purge." if not done.cut_short else "An earlier, interrupted purge is finished."
        yield nothing if done.shredded or not done.provable else "An earlier purge is not finished."
    else:
        yield (
            f"Erased {plural(done.turns, 'turn')}, {plural(done.atoms, 'statement')} and {plural(done.refs, 'result')} "
            f"({', '.join(done.tombstones)})."
        )
    if done.cut_short:
        yield (
            "An earlier purge was interrupted. Its rows are erased, but the words to search for are no longer known: "
            "search logs, spaces/*/*.jsonl.* and backups/ in the home yourself."
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
        yield "Other programs were reading: the write-ahead log may still contain some of it. Run purge again."
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
            yield "Remove it from your own files. If a file of the memory itself contains it, report a bug."
        if proof.also_in:
            names = ", ".join(proof.also_in[:10]) + (" …" if len(proof.also_in) > 10 else "")
            yield f"Some of its words also occur in other rows: {one_line(names, 200)}."
        yield from (f"Cleared lines of {name}." for name in proof.cleared)
        yield from (f"Deleted {name}." for name in proof.deleted)
        yield from (f"{name} still contains it. {_DELETE}" for name in proof.copies)
        if proof.words:
            yield "Erased words also occur in these files, in names that were not changed:"
            yield from (f"  {one_line(line, 160)}" for line in proof.words)
    yield from (f"Deleted {name}, which contained purged rows." for name in done.deleted)
    already_named = done.proof.copies if done.proof else ()
    yield from (f"{name} contains purged rows. {_DELETE}" for name in done.copies if name not in already_named)
    if done.beside:
        yield f"These processes may keep it in memory until they end: {', '.join(map(str, done.beside))}."


@click.command()
@click.option("--turns", metavar="TIME", help="How long turns are kept, from their arrival: 365d, 1y.")
@click.option("--results", metavar="TIME", help="How long tool results are kept, from when they were taken.")
@click.option("--purge-after", metavar="TIME", help="How long these rows can be restored.  [default: always]")
@click.option("--off", is_flag=True, help="Keep everything from now on.")
@click.option("--run", is_flag=True, help="Forget old rows now; an open server does it once a day.")
@as_json
@memory_options
def retention(turns: str | None, results: str | None, purge_after: str | None, off: bool, run: bool) -> None:
    """Show or set how long rows of this space are kept.

    By default everything is kept. Statements and their evidence (turns and results) always stay; evidence of forgotten
    statements is removed with the next run. Expired rows are forgotten, which can be undone, and purged only with
    --purge-after.

    \b
    mcp-memory retention
    mcp-memory retention --turns 365d --results 90d
    mcp-memory --space work retention --results 30d --purge-after 30d --run
    mcp-memory retention --off
    """
    days = retention_days(turns, results, purge_after, off=off)

    async def work(memory: Memory) -> tuple[list[RetentionRun], list[OverdueRows]]:
        if days:
            await memory.set_retention(days)
        done = await memory.follow_retention(eager=True) if run else []
        return done, await memory.retention()

    done, policies = ask(work)
    print_answer({"done": done, "policies": policies}, [*_run_lines(done), *_policy_lines(policies)])


def retention_days(
    turns: str | None, results: str | None, purge_after: str | None, *, off: bool
) -> dict[Keeping, int | None]:
    """Return the policies that the options of a command set. Raises InvalidInput for wrong options."""
    options: dict[Keeping, str | None] = {"turns": turns, "results": results, "purge": purge_after}
    days: dict[Keeping, int | None] = {what: _days(text, what) for what, text in options.items() if text is not None}
    if off and days:
        raise InvalidInput("--off keeps everything: give no times with it.")
    return dict.fromkeys(options) if off else days


def _days(text: str, what: Keeping) -> int:
    option = "--purge-after" if what == "purge" else f"--{what}"
    days = parse_duration(text, option).days
    if not days:
        raise InvalidInput(f"{option} counts in days: 1d is the shortest.")
    return days


def _run_lines(done: list[RetentionRun]) -> Iterator[str]:
    for run in done:
        verb = "Purged" if run.policy.what == "purge" else "Forgot"
        under = f" ({', '.join(run.tombstones)})" if run.tombstones else ""
        yield f"{verb} {run.took:,} {_POLICY_NOUNS[run.policy.what]}{under}."


def _policy_lines(policies: list[OverdueRows]) -> Iterator[str]:
    if not policies:
        yield "Everything is kept: this space has no retention."
    for overdue in policies:
        policy = overdue.policy
        ran = f"last run {format_minute(policy.ran_at)}" if policy.ran_at else "not run yet"
        ran += f", next {format_minute(overdue.next_run)}"
        staying = f", {overdue.staying:,} more stay as evidence" if overdue.staying else ""
        what = _POLICY_NOUNS[policy.what].capitalize()
        yield (
            f"{what}: {plural(policy.days, 'day')}. {overdue.going:,} due now{staying}. "
            f"{policy.took:,} taken so far, {ran}."
        )


_POLICY_NOUNS: dict[Keeping, str] = {"turns": "turns", "results": "results", "purge": "tombstones of this"}
_LONGEST_REVIEW_TEXT = 600


@click.command()
@click.argument("action", type=click.Choice(["list", "release", "keep", "forget", "scan"]), default="list")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@as_json
@memory_options
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
        rows = ask(lambda memory: memory.waiting())
    elif action == "scan":
        rows = ask(lambda memory: memory.scan())
    else:
        rows = ask(lambda memory: memory.review(ids, "released" if action == "release" else "kept"))
    print_answer(rows, _review_text(action, rows))


def _review_text(action: str, rows: list[Reviewed]) -> str:
    if action in ("release", "keep"):
        what = "may be recalled" if action == "release" else "stays quarantined"
        return "\n".join(f"{row.id} {what}: {one_line(row.text, 60)}" for row in rows)
    if not rows:
        return "Nothing waits for review." if action == "list" else "Nothing more is quarantined."
    head = f"{plural(len(rows), 'row')} quarantined: found by a search, never recalled automatically."
    rest = "mcp-memory review release ID, or keep, or forget."
    return "\n\n".join([head, *map(_review_row, rows), rest])


def _review_row(row: Reviewed) -> str:
    why = ", ".join(REASONS.get(reason, reason) for reason in row.reasons)
    place = f", session {row.session}" if row.session else ""
    head = escape_controls(f"{row.kind} of the {row.source}{place}, {row.at:%Y-%m-%d %H:%M}: {why}")
    text = mask(row.text)
    shown = text if len(text) <= _LONGEST_REVIEW_TEXT else text[:_LONGEST_REVIEW_TEXT] + " …"
    return f"{click.style(row.id, bold=True)}  {head}\n{wrap(shown, '    ')}"


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
@memory_options
def remember(words: tuple[str, ...], supersedes: tuple[str, ...], **options: Any) -> None:
    """Store a statement, or correct one.

    A corrected statement is closed, and stays in the history. `mcp-memory search` shows the ids of statements.

    \b
    mcp-memory remember "I drink tea, not coffee."
    mcp-memory remember "We move on 21 November." --supersedes a33
    mcp-memory remember "Answer in Norwegian." --kind instruction
    """
    statement = " ".join(words)
    answer = ask_memory(
        settings(), lambda memory: memory.remember(statement, supersedes=supersedes, typed=True, **options)
    )
    stored = "It was stored before as" if answer.duplicate else "Stored as"
    lines = [f"{stored} {answer.atom.id}: {answer.atom.text}"]
    lines += [f"No longer valid: {old.id} {old.text}" for old in answer.replaced]
    for old in answer.similar:
        seems, maybe = old.id in answer.contradicting, old.id in answer.unsure
        head = "Seems outdated" if seems else "Perhaps outdated" if maybe else "Similar, and still valid"
        lines.append(f"{head}: {old.id} {old.text}")
    if outdated := [old.id for old in answer.similar if old.id in (*answer.contradicting, *answer.unsure)]:
        lines.append(f"If one is outdated, repeat the command with --supersedes {outdated[0]}.")
    print_answer(answer, "\n".join(wrap(line, "") for line in [*lines, *([answer.note] if answer.note else [])]))
