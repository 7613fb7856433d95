"""`compress`: a message list on standard input, the same list made to fit on standard output."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, cast

import click

from mcp_memory.cli.base import place, settings
from mcp_memory.core.errors import InvalidInput

if TYPE_CHECKING:
    from mcp_memory.service.compression.compress import Compressed

__all__ = ["compress"]

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
    """Make a message list fit a model's window; what leaves it is stored first.

    Standard input is a JSON list of messages as OpenAI or Anthropic take them, or a whole request with "messages",
    whose "system" and "tools" then count too. Standard output is the same in the same form. Give it the whole list
    each time, or what came out, grown: what was edited once stays as it is, so the provider's cache keeps it.

    What was done is told on standard error. Exit code 1 if the list cannot be made to fit.

    \b
    mcp-memory compress --window 200000 < messages.json > shorter.json
    mcp-memory compress --window 32000 --level aggressive < request.json
    """
    request, messages = _read()
    overhead += _count({key: request[key] for key in ("system", "tools", "functions") if request.get(key)})
    from mcp_memory.service.memory.opening import compress as compress_now

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
    """Return the request around the messages, empty where there is none, and the messages."""
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
    from mcp_memory.core.tokens import token_counter

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
