"""`distill`, `flush`, `pause`, `resume`, `verify`, `scene`, `persona` and `compress`: extraction and compression."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import click

from mcp_memory.cli.base import (
    as_json,
    ask,
    place,
    print_answer,
    progress_bars,
    say,
    settings,
    settings_of_a_memory,
    wants_json,
)
from mcp_memory.cli.terminal import columns, minute, plural, visible, wrapped
from mcp_memory.core.errors import InvalidInput

if TYPE_CHECKING:
    from mcp_memory.core.types import PersonaVersion, Scene, Verified
    from mcp_memory.service.compression.compress import Compressed
    from mcp_memory.service.memory import Memory


YES = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command()
@YES
@as_json
@place
def distill(yes: bool) -> None:
    """Have the configured model do all waiting work now.

    It extracts statements from turns, merges them with existing ones, writes scenes and the persona, improves the
    summaries of large results and puts long canvases in order, without waiting for more turns. A running server
    does the same automatically, a little at a time. The caps on tokens hold; Ctrl-C loses nothing.

    First it says about how many calls and tokens that takes, and at a terminal it asks. Where standard input is no
    terminal it goes on without a question, so that programs can run it.

    \b
    mcp-memory distill
    mcp-memory distill --yes
    MCP_MEMORY_LLM=ollama/qwen3:8b mcp-memory distill
    """
    from mcp_memory.cli.pricing import agree, distilling_cost

    cost = distilling_cost()
    agree("Doing all that waits", cost, yes=yes)
    quiet, done = wants_json(), 0
    with progress_bars() as tell:

        def told(line: str) -> None:
            nonlocal done
            done += 1
            if sys.stderr.isatty():
                tell("asking", done, max(done, cost.questions if cost else 0))
            elif not quiet:
                click.echo(line, err=True)

        steps = ask(lambda memory: memory.consolidate(told=told))
    result = "`mcp-memory status` shows the result." if steps else "Nothing waited."
    print_answer({"questions": steps}, f"{plural(steps, 'question')} asked. {result}")


@click.command()
@click.argument("session")
@place
def flush(session: str) -> None:
    """Request that a SESSION is read to its end now.

    For the end of a session and before a compaction. It asks no model itself: a running server, `mcp-memory
    distill` or the connected agent takes it from there.

    \b
    mcp-memory flush 2026-05-07-a1b2
    """

    async def request(memory: Memory) -> int:
        await memory.session_turns(session, limit=1)  # NotFound, with the latest sessions
        return await memory.flush(session)

    waiting = ask(request)
    say(f"{plural(waiting, 'turn')} of {visible(session)} will be read next.")


@click.command()
@click.argument("reason", default="paused by hand")
@place
def pause(reason: str) -> None:
    """Stop all calls to models until `resume`.

    It holds for every process on this home.

    \b
    mcp-memory pause "saving tokens for today"
    """
    ask(lambda memory: memory.pause(reason))
    say("No model is asked until `mcp-memory resume`. Turns are stored and found as before.")


@click.command()
@place
def resume() -> None:
    """Allow calls to models again.

    \b
    mcp-memory resume
    """
    ask(lambda memory: memory.resume())
    say("Models may be asked again.")


@click.command()
@as_json
@place
def verify() -> None:
    """Check each claim down to the words that it is based on.

    It walks from the persona over scenes, statements and quotes to the turns and their hashes. It lists claims that no
    longer hold, statements whose words may say otherwise, and lines of the persona and of scenes that name no
    evidence. Exit code 1 if something does not hold.

    \b
    mcp-memory verify
    """
    with progress_bars() as tell:
        found = ask(lambda memory: memory.verify(tell=tell))
    print_answer(found, _verified(found))
    sys.exit(1 if found.problems else 0)


def _verified(found: Verified) -> Iterator[str]:
    yield (
        f"{plural(found.personas, 'persona')}, {plural(found.scenes, 'scene')}, "
        f"{plural(found.atoms, 'statement')}, {plural(found.quotes, 'quote')}, {plural(found.turns, 'turn')}"
    )
    yield from (wrapped(f"does not hold: {problem}", "  ") for problem in found.problems)
    yield from (wrapped(f"names no evidence: {line}", "  ") for line in found.uncovered)
    yield from (wrapped(f"check: {line}", "  ") for line in found.doubted)
    if not found.problems:
        yield (
            f"{plural(len(found.doubted), 'statement')} to check; the rest holds."
            if found.doubted
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
@place
def history(slug: str) -> None:
    """List the versions of a scene, the newest first.

    Each is listed with the reason for which it was written.

    \b
    mcp-memory scene history moving-to-porto
    """
    versions = ask(lambda memory: memory.scene_history(slug))
    print_answer(versions, columns(map(_scene_row, versions)))


def _scene_row(one: Scene) -> tuple[str, ...]:
    return str(one.version), minute(one.updated), one.action, f"heat {one.heat}", visible(one.reason)


@scene.command()
@click.argument("slug")
@click.argument("version", type=click.IntRange(min=1))
@place
def restore(slug: str, version: int) -> None:
    """Make an old VERSION of a scene the current one.

    Later versions stay in its history.

    \b
    mcp-memory scene restore moving-to-porto 3
    """
    stands = ask(lambda memory: memory.restore_scene(slug, version))
    say(f"{stands.slug} reads as in version {version} again; that is its version {stands.version}.")


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
@place
def persona_history() -> None:
    """List the versions of the persona, the newest first.

    \b
    mcp-memory persona history
    """
    versions = ask(lambda memory: memory.persona_history())
    print_answer(versions, columns(map(_persona_row, versions)) if versions else "There is no persona yet.")


def _persona_row(one: PersonaVersion) -> tuple[str, ...]:
    author = "by a model" if one.by_model else "as told"
    return str(one.version), minute(one.at), author, plural(len(one.text), "character"), visible(one.reason)


@persona.command()
@click.argument("old", type=click.IntRange(min=0), required=False)
@click.argument("new", type=click.IntRange(min=1), required=False)
@place
def diff(old: int | None, new: int | None) -> None:
    """Show what changed from version OLD to version NEW.

    Left out, they are the last two.

    \b
    mcp-memory persona diff
    mcp-memory persona diff 3 5
    """
    say(visible(ask(lambda memory: memory.persona_diff(old, new))))


@persona.command()
@click.option("--incremental", is_flag=True, help="From what changed, keeping the rest.")
@YES
@place
def rebuild(incremental: bool, yes: bool) -> None:
    """Request a new page, from all scenes and statements.

    Where a model is set it says about how many tokens that takes, and at a terminal it asks.

    \b
    mcp-memory persona rebuild
    """
    from mcp_memory.cli.pricing import agree, persona_cost

    settings_of_a_memory()
    agree("Rewriting the persona", persona_cost(), yes=yes)
    ask(lambda memory: memory.rebuild_persona(scratch=not incremental))
    say("The page will be rewritten by the next model that is asked: `mcp-memory distill` does it now.")


LEVELS = ("none", "mild", "aggressive", "emergency")


def _rule(name: str, told: str) -> Any:
    return click.option(f"--{name.replace('_', '-')}", name, type=float, metavar="X", help=told)


@click.command()
@click.option("--window", type=int, required=True, metavar="N", help="Tokens that the model can read.")
@click.option("--overhead", type=int, default=0, metavar="N", help="Tokens that go to the model beside the messages.")
@click.option("--session", metavar="NAME", help="Whose canvas and turns these are.  [default: one of its own]")
@click.option("--level", type=click.Choice(LEVELS), help="Compress so far, whatever the size.")
@_rule("mild", "Share of the window from which old results go, where that pays.  [default: 0.5]")
@_rule("aggressive", "Share from which the oldest messages go.  [default: 0.85]")
@_rule("emergency", "Share from which only the newest message is safe.  [default: 0.95]")
@_rule("target", "Share that the two come down to.  [default: 0.6]")
@_rule("cached_price", "Price of a token the provider has read before, of a new one 1.  [default: 0.1]")
@click.option("--further-calls", type=int, metavar="N", help="Calls still to come.  [default: as many as there were]")
@place
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
    request, messages = _read()
    overhead += _count({key: request[key] for key in ("system", "tools", "functions") if request.get(key)})
    from mcp_memory.service.memory import compress as compress_now

    told: dict[str, Any] = {name: value for name, value in rules.items() if value is not None}
    done = compress_now(
        messages, window=window, overhead=overhead, session=session, level=level, settings=settings(), **told
    )
    answer = {**request, "messages": done.messages} if request else done.messages
    click.echo(json.dumps(answer, ensure_ascii=False))
    click.echo(_told(done), err=True)
    if not done.fits:
        sys.exit(1)


def _read() -> tuple[dict[str, Any], list[Any]]:
    """Return the request around the messages, empty without one, and the messages."""
    if sys.stdin.isatty():
        raise InvalidInput("There is nothing on standard input. Run it as: mcp-memory compress … < messages.json")
    data: bytes = sys.stdin.buffer.read()
    try:
        given: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"Standard input is not JSON ({error}). It has to be a list of messages.") from None
    match given:
        case list():
            return {}, cast("list[Any]", given)
        case {"messages": list()}:
            return cast("dict[str, Any]", given), cast("list[Any]", given["messages"])
        case _:
            raise InvalidInput('Standard input is no JSON list of messages, and no request with a list "messages".')


def _count(beside: dict[str, Any]) -> int:
    from mcp_memory.core.token_counts import token_counter

    return token_counter(settings().tokenizer).count(json.dumps(beside, ensure_ascii=False)) if beside else 0


def _told(done: Compressed) -> str:
    parts = [
        f"{done.level}: {done.tokens_before:,} tokens became {done.tokens:,}",
        f"{done.edits:,} edits now" if done.edits else "no edit now, the cache is whole",
        f"{done.cache_broken:,} tokens are read anew" if done.cache_broken else "",
        f"session {done.session}",
    ]
    line = ", ".join(part for part in parts if part)
    return line if done.note is None else f"{line}\nError: {done.note}"
