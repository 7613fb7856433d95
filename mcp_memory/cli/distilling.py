"""`distill`, `flush`, `pause`, `resume`, `verify`, `scene`, `persona` and `compress`: extraction and compression.

Commands that ask a model first print an estimate of calls, tokens and dollars, rather too high
(`integrations.importers.report`). At a terminal the user has to agree; programs cannot answer, so without a terminal
the command continues. The caps on tokens apply in both cases.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import click

from mcp_memory.cli.base import (
    as_json,
    ask,
    existing_memory_settings,
    memory_options,
    print_answer,
    progress_bars,
    say,
    settings,
    wants_json,
)
from mcp_memory.cli.terminal import columns, escape_controls, format_minute, wrap
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import plural
from mcp_memory.core.types import NewTurn, Turn

if TYPE_CHECKING:
    from mcp_memory.core.types import PersonaVersion, Scene, Verified
    from mcp_memory.service.compression.compress import Compressed
    from mcp_memory.service.memory import Memory
YES = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command()
@YES
@as_json
@memory_options
def distill(yes: bool) -> None:
    """Have the configured model do all waiting work now.

    It extracts statements from turns, merges them with existing ones, writes scenes and the persona, improves the
    summaries of large results and orders long canvases, without waiting for more turns. A running server does the
    same automatically, a little at a time. The caps on tokens apply; Ctrl-C loses nothing.

    First it estimates calls and tokens, and at a terminal it asks. If standard input is not a terminal it continues
    without a question, so that programs can run it.

    \b
    mcp-memory distill
    mcp-memory distill --yes
    MCP_MEMORY_LLM=ollama/qwen3:8b mcp-memory distill
    """

    cost = distilling_cost()
    confirm_cost("Doing all that waits", cost, yes=yes)
    quiet, done = wants_json(), 0
    with progress_bars() as tell:

        def show_progress(line: str) -> None:
            nonlocal done
            done += 1
            if sys.stderr.isatty():
                tell("asking", done, max(done, cost.questions if cost else 0))
            elif not quiet:
                click.echo(line, err=True)

        steps = ask(lambda memory: memory.consolidate(told=show_progress))
    result = "`mcp-memory status` shows the result." if steps else "Nothing waited."
    print_answer({"questions": steps}, f"{plural(steps, 'question')} asked. {result}")


@click.command()
@click.argument("session")
@memory_options
def flush(session: str) -> None:
    """Request that a SESSION is read to its end now.

    For the end of a session and before a compaction. It asks no model itself: a running server, `mcp-memory
    distill` or the connected agent does.

    \b
    mcp-memory flush 2026-05-07-a1b2
    """

    async def request(memory: Memory) -> int:
        await memory.session_turns(session, limit=1)  # NotFound, with the latest sessions
        return await memory.flush(session)

    waiting = ask(request)
    say(f"{plural(waiting, 'turn')} of {escape_controls(session)} will be read next.")


@click.command()
@click.argument("reason", default="paused by hand")
@memory_options
def pause(reason: str) -> None:
    """Stop all calls to models until `resume`.

    It applies to every process on this home.

    \b
    mcp-memory pause "saving tokens for today"
    """
    ask(lambda memory: memory.pause(reason))
    say("No model is asked until `mcp-memory resume`. Turns are stored and found as before.")


@click.command()
@memory_options
def resume() -> None:
    """Allow calls to models again.

    \b
    mcp-memory resume
    """
    ask(lambda memory: memory.resume())
    say("Models may be asked again.")


@click.command()
@as_json
@memory_options
def verify() -> None:
    """Check each claim against its evidence.

    It checks the persona, scenes, statements and quotes down to the turns and their hashes. It lists claims that are
    no longer supported, statements that their evidence may not support, and lines of the persona and of scenes without
    evidence. Exit code 1 if a claim is not supported.

    \b
    mcp-memory verify
    """
    with progress_bars() as tell:
        report = ask(lambda memory: memory.verify(tell=tell))
    print_answer(report, _verify_lines(report))
    sys.exit(1 if report.problems else 0)


def _verify_lines(report: Verified) -> Iterator[str]:
    yield (
        f"{plural(report.personas, 'persona')}, {plural(report.scenes, 'scene')}, "
        f"{plural(report.atoms, 'statement')}, {plural(report.quotes, 'quote')}, {plural(report.turns, 'turn')}"
    )
    yield from (wrap(f"not supported: {problem}", "  ") for problem in report.problems)
    yield from (wrap(f"without evidence: {line}", "  ") for line in report.uncovered)
    yield from (wrap(f"check: {line}", "  ") for line in report.doubted)
    if not report.problems:
        yield (
            f"{plural(len(report.doubted), 'statement')} to check; the rest holds."
            if report.doubted
            else "All of it holds."
        )


# --- scenes -----------------------------------------------------------------------------------------
@click.group()
def scene() -> None:
    """List the versions of a scene, or restore one.

    \b
    mcp-memory scene history moving-to-porto
    mcp-memory scene restore moving-to-porto 3
    """


@scene.command()
@click.argument("slug")
@as_json
@memory_options
def history(slug: str) -> None:
    """List the versions of a scene, the newest first.

    Each is listed with the reason for which it was written.

    \b
    mcp-memory scene history moving-to-porto
    """
    versions = ask(lambda memory: memory.scene_history(slug))
    print_answer(versions, columns(map(_scene_row, versions)))


def _scene_row(version: Scene) -> tuple[str, ...]:
    return (
        str(version.version),
        format_minute(version.updated),
        version.action,
        f"heat {version.heat}",
        escape_controls(version.reason),
    )


@scene.command()
@click.argument("slug")
@click.argument("version", type=click.IntRange(min=1))
@memory_options
def restore(slug: str, version: int) -> None:
    """Make an old VERSION of a scene the current one.

    Later versions stay in its history.

    \b
    mcp-memory scene restore moving-to-porto 3
    """
    current = ask(lambda memory: memory.restore_scene(slug, version))
    say(f"{current.slug} reads as in version {version} again; that is its version {current.version}.")


# --- the persona ------------------------------------------------------------------------------------
@click.group()
def persona() -> None:
    """List, compare and rewrite versions of the persona.

    \b
    mcp-memory persona history
    mcp-memory persona diff 3 5
    """


@persona.command(name="history")
@as_json
@memory_options
def persona_history() -> None:
    """List the versions of the persona, the newest first.

    \b
    mcp-memory persona history
    """
    versions = ask(lambda memory: memory.persona_history())
    print_answer(versions, columns(map(_persona_row, versions)) if versions else "There is no persona yet.")


def _persona_row(version: PersonaVersion) -> tuple[str, ...]:
    author = "by a model" if version.by_model else "statements"
    return (
        str(version.version),
        format_minute(version.at),
        author,
        plural(len(version.text), "character"),
        escape_controls(version.reason),
    )


@persona.command()
@click.argument("old", type=click.IntRange(min=0), required=False)
@click.argument("new", type=click.IntRange(min=1), required=False)
@memory_options
def diff(old: int | None, new: int | None) -> None:
    """Show what changed from version OLD to version NEW.

    The default is the last two versions.

    \b
    mcp-memory persona diff
    mcp-memory persona diff 3 5
    """
    say(escape_controls(ask(lambda memory: memory.persona_diff(old, new))))


@persona.command()
@click.option("--incremental", is_flag=True, help="From what changed, keeping the rest.")
@YES
@memory_options
def rebuild(incremental: bool, yes: bool) -> None:
    """Request a new page, from all scenes and statements.

    If a model is set it first estimates the tokens, and at a terminal it asks.

    \b
    mcp-memory persona rebuild
    """

    existing_memory_settings()
    confirm_cost("Rewriting the persona", persona_cost(), yes=yes)
    ask(lambda memory: memory.rebuild_persona(scratch=not incremental))
    say("The page will be rewritten by the next model that is asked: `mcp-memory distill` does it now.")


LEVELS = ("none", "mild", "aggressive", "emergency")


def _share_option(name: str, description: str) -> Any:
    return click.option(f"--{name.replace('_', '-')}", name, type=float, metavar="X", help=description)


@click.command()
@click.option("--window", type=int, required=True, metavar="N", help="Tokens that the model can read.")
@click.option("--overhead", type=int, default=0, metavar="N", help="Tokens of the request in addition to the messages.")
@click.option("--session", metavar="NAME", help="Session of the canvas and the turns.  [default: a new one]")
@click.option("--level", type=click.Choice(LEVELS), help="Compress to this level, whatever the size.")
@_share_option("mild", "Share of the window from which old results are removed, if that saves.  [default: 0.5]")
@_share_option("aggressive", "Share from which the oldest messages are removed.  [default: 0.85]")
@_share_option("emergency", "Share from which only the newest message is kept.  [default: 0.95]")
@_share_option("target", "Share that both reduce to.  [default: 0.6]")
@_share_option("cached_price", "Price of a cached token, relative to a new one.  [default: 0.1]")
@click.option("--further-calls", type=int, metavar="N", help="Expected further calls.  [default: as many as before]")
@memory_options
def compress(window: int, overhead: int, session: str | None, level: str | None, **rules: float | None) -> None:
    """Make a message list fit a model's window.

    Removed content is stored first. Standard input is a JSON list of messages as OpenAI or Anthropic take them, or a
    whole request with "messages", whose "system" and "tools" then count too. Standard output is the same in the same
    form. Give it the whole list each time, or the last output with new messages: edits stay as they are, so the
    provider's cache keeps them.

    A summary goes to standard error. Exit code 1 if the list cannot be made to fit.

    \b
    mcp-memory compress --window 200000 < messages.json > shorter.json
    mcp-memory compress --window 32000 --level aggressive < request.json
    """
    request, messages = _read_messages()
    overhead += _count_tokens({key: request[key] for key in ("system", "tools", "functions") if request.get(key)})
    from mcp_memory.service.memory import compress as compress_now

    set_rules: dict[str, Any] = {name: value for name, value in rules.items() if value is not None}
    done = compress_now(
        messages, window=window, overhead=overhead, session=session, level=level, settings=settings(), **set_rules
    )
    answer = {**request, "messages": done.messages} if request else done.messages
    click.echo(json.dumps(answer, ensure_ascii=False))
    click.echo(_compression_summary(done), err=True)
    if not done.fits:
        sys.exit(1)


def _read_messages() -> tuple[dict[str, Any], list[Any]]:
    """Read messages from standard input. Return the request that contains them ({} for a bare list), and the messages.

    Raises InvalidInput if standard input is a terminal, no JSON, or other JSON.
    """
    if sys.stdin.isatty():
        raise InvalidInput("There is nothing on standard input. Run it as: mcp-memory compress … < messages.json")
    data: bytes = sys.stdin.buffer.read()
    try:
        document: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"Standard input is not JSON ({error}). It must be a list of messages.") from None
    match document:
        case list():
            return {}, cast("list[Any]", document)
        case {"messages": list()}:
            return cast("dict[str, Any]", document), cast("list[Any]", document["messages"])
        case _:
            raise InvalidInput('Standard input is not a JSON list of messages, nor a request with a list "messages".')


def _count_tokens(beside: dict[str, Any]) -> int:
    from mcp_memory.core.token_counts import token_counter

    return token_counter(settings().tokenizer).count(json.dumps(beside, ensure_ascii=False)) if beside else 0


def _compression_summary(done: Compressed) -> str:
    parts = [
        f"{done.level}: {done.tokens_before:,} tokens became {done.tokens:,}",
        f"{done.edits:,} edits now" if done.edits else "no edit now, the cache is whole",
        f"{done.cache_broken:,} tokens are read again" if done.cache_broken else "",
        f"session {done.session}",
    ]
    line = ", ".join(part for part in parts if part)
    return line if done.note is None else f"{line}\nError: {done.note}"


if TYPE_CHECKING:
    from mcp_memory.integrations.importers.report import CostEstimate, HistorySize
    from mcp_memory.service.due_stages import WaitingJobs
    from mcp_memory.service.memory import Memory
_PAGE = 1_000  # turns


def distilling_cost() -> CostEstimate | None:
    """Estimate the cost of all waiting jobs; None without a model."""
    from mcp_memory.integrations.importers.report import HistorySize

    async def waiting(memory: Memory) -> tuple[WaitingJobs, list[Turn]]:
        jobs, unread = await memory.waiting_jobs(), list[Turn]()
        for session, start in jobs.unread.items():
            while turns := await memory.session_turns(session, start=start, limit=_PAGE):
                unread += turns
                start = turns[-1].position + 1
        return jobs, unread

    chosen = existing_memory_settings()
    if chosen.llm == "none" or chosen.server is not None:  # a server asks its own model
        return None
    jobs, unread = ask(waiting)
    size = HistorySize(chosen.batch_turns)
    for turn in unread:
        size.add(turn.session, NewTurn(role=turn.role, content=turn.content, said_at=turn.said_at, name=turn.name))
    return _estimate(size, jobs)


def persona_cost() -> CostEstimate | None:
    """Estimate the cost of a new persona; None without a model."""
    from mcp_memory.integrations.importers.report import HistorySize
    from mcp_memory.service.due_stages import WaitingJobs

    return _estimate(HistorySize(settings().batch_turns), WaitingJobs(persona=True))


def _estimate(size: HistorySize, waiting: WaitingJobs) -> CostEstimate | None:
    from mcp_memory.integrations.importers.report import estimate_cost
    from mcp_memory.models.llm import price

    return estimate_cost(size, settings(), price, waiting=waiting)


def cost_line(what: str, cost: CostEstimate) -> str:
    """Return the estimate as a sentence that starts with `what`."""
    dollars = "the price is not known" if cost.price is None else f"about ${cost.price:,.2f}"
    if cost.days is None:
        caps = " The caps on tokens allow no calls."
    else:
        caps = f" With the caps on tokens it takes {plural(cost.days, 'day')}." if cost.days > 1 else ""
    return (
        f"{what} takes about {plural(cost.questions, 'call')} of {cost.model}: {cost.prompt_tokens:,} tokens in and "
        f"{cost.completion_tokens:,} out, {dollars}.{caps}"
    )


def confirm_cost(what: str, cost: CostEstimate | None, *, yes: bool) -> None:
    """Print the cost, if there is any. At a terminal ask, unless `yes`; any answer but yes ends the command."""
    if cost is None or not cost.questions:
        return
    say(cost_line(what, cost), err=True)
    if not yes and sys.stdin.isatty():
        click.confirm("Go on?", abort=True, err=True)
