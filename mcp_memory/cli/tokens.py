"""`token`: what HTTP clients show to be let in: made, listed, revoked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mcp_memory.cli.base import as_json, home, settings, span
from mcp_memory.cli.terminal import columns, day, json_text, minute, visible
from mcp_memory.store.access import RIGHTS

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory
    from mcp_memory.store.access import Token

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
    made, text = _ask(lambda memory: memory.create_token(name, spaces=spaces, right=rights, expires=lasts))
    if as_json:
        click.echo(json_text({**_fields(made), "token": text}))
        return
    click.echo(text)
    click.echo(f"{_told(made)} It is not shown again.", err=True)


@token.command("list")
@as_json
@home
def list_(as_json: bool) -> None:
    """List the tokens, with what they open and when they were used last (to the hour).

    \b
    mcp-memory token list
    """
    found = _ask(lambda memory: memory.tokens())
    if as_json:
        click.echo(json_text([_fields(one) for one in found]))
    elif not found:
        click.echo("No token has been made: over HTTP and SSE, whoever is on this machine is the owner.")
    else:
        head = ("ID", "NAME", "SPACES", "RIGHTS", "CREATED", "LAST USED", "ENDS")
        click.echo(columns([head, *(_row(one) for one in found)]))


@token.command()
@click.argument("which", metavar="NAME|ID")
@as_json
@home
def revoke(which: str, as_json: bool) -> None:
    """Have a token open nothing any more, at once, in running servers too.

    \b
    mcp-memory token revoke laptop
    """
    gone = _ask(lambda memory: memory.revoke_token(which))
    click.echo(json_text(_fields(gone)) if as_json else f"Revoked {visible(gone.name)} ({gone.id}).")


def _ask(question: Callable[[Memory], Awaitable[T]]) -> T:
    """Ask the memory one thing; a home that is not there is made, for a server may be set up before it is used."""
    import anyio

    from mcp_memory.service.memory import open_memory

    async def visit() -> T:
        async with open_memory(settings(), embedder="none", llm="none", rerank=False, what="token") as memory:
            return await question(memory)

    return anyio.run(visit)


def _fields(one: Token) -> dict[str, Any]:
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


def _row(one: Token) -> tuple[str, ...]:
    used = minute(one.used_at) if one.used_at else "never"
    return (one.id, visible(one.name), visible(", ".join(one.spaces)), one.right, day(one.at), used, _end(one))


def _end(one: Token) -> str:
    if one.revoked_at is not None:
        return f"revoked {day(one.revoked_at)}"
    if one.until is None:
        return "never"
    return f"{'ended ' if one.until <= datetime.now(UTC) else ''}{day(one.until)}"


def _told(one: Token) -> str:
    ends = "until it is revoked" if one.until is None else f"until {minute(one.until)}"
    return f"{visible(one.name)} opens {visible(', '.join(one.spaces))} with the right {one.right}, {ends}."
