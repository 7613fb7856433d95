"""`space`: spaces of the store, their quotas and retention, for an operator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from mcp_memory.cli.base import as_json, ask_new_home, memory_options, print_answer
from mcp_memory.cli.changing import retention_days
from mcp_memory.cli.status import quota_text
from mcp_memory.cli.terminal import columns, escape_controls
from mcp_memory.core.errors import InvalidInput, Refused
from mcp_memory.core.text import plural

if TYPE_CHECKING:
    from mcp_memory.store.forgetting import Policy
    from mcp_memory.store.sql.quota_rows import Quota, QuotaKind
    from mcp_memory.store.sql.space_rows import SpaceSummary

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmgt]?)b?")
_DOLLAR = 1_000_000


@click.group()
def space() -> None:
    """List, create, limit and delete spaces.

    A space also comes into being when something is stored in it. With the setting `server` these commands work on a
    server, with a token that has the right operator.

    \b
    mcp-memory space list
    mcp-memory space quota work --turns 100000 --bytes 2GB
    """


@space.command("list")
@as_json
@memory_options
def list_() -> None:
    """List the spaces, with their quotas and retention.

    \b
    mcp-memory space list
    """
    summaries = ask_new_home(lambda memory: memory.space_summaries())
    head = ("SPACE", "TURNS STORED", "QUOTA", "RETENTION")
    lines = columns([head, *map(_row, summaries)]) if summaries else "There are no spaces yet."
    print_answer([asdict(summary) for summary in summaries], lines)


def _row(summary: SpaceSummary) -> tuple[str, ...]:
    return (
        escape_controls(summary.name),
        f"{summary.turns:,}",
        ", ".join(_quota_texts(summary.quotas)) or "-",
        ", ".join(_policy_texts(summary.retention)) or "-",
    )


def _quota_texts(quotas: list[Quota]) -> Iterator[str]:
    return (quota_text(**asdict(quota)) for quota in quotas)


def _policy_texts(policies: list[Policy]) -> Iterator[str]:
    return (f"{policy.what} {plural(policy.days, 'day')}" for policy in policies)


@space.command()
@click.argument("space_name", metavar="NAME")
@as_json
@memory_options
def create(space_name: str) -> None:
    """Create an empty space.

    \b
    mcp-memory space create work
    """
    is_new = ask_new_home(lambda memory: memory.create_space(space_name))
    shown = escape_controls(space_name)
    print_answer(
        {"space": space_name, "created": is_new}, f"Created {shown}." if is_new else f"{shown} exists already."
    )


@space.command()
@click.argument("space_name", metavar="NAME")
@click.option("--turns", metavar="NUMBER", help="Most turns that it may hold, forgotten ones included.")
@click.option("--bytes", "size", metavar="SIZE", help="Most text and tool results that it may hold: 500MB, 2GB.")
@click.option("--tokens", metavar="NUMBER", help="Most tokens of model calls in a month.")
@click.option("--cost", metavar="DOLLARS", help="Most cost of model calls in a month, where it is known.")
@click.option("--off", is_flag=True, help="Remove all quotas; a single one is removed by --turns off.")
@as_json
@memory_options
def quota(
    space_name: str, turns: str | None, size: str | None, tokens: str | None, cost: str | None, off: bool
) -> None:
    """Limit a space, or show its limits.

    A call that would exceed the turns or bytes stores nothing and gets an error. Forgotten rows count until they are
    purged. When the tokens or costs of a month (UTC) are used up, no model is asked about the space until the next.

    \b
    mcp-memory space quota work
    mcp-memory space quota work --turns 100000 --bytes 2GB --cost 20
    mcp-memory space quota work --bytes off
    """
    given: dict[QuotaKind, str | None] = {"turns": turns, "bytes": size, "tokens": tokens, "cost": cost}
    most: dict[QuotaKind, int | None] = {what: _amount(what, text) for what, text in given.items() if text is not None}
    if off and most:
        raise InvalidInput("--off removes all quotas: give no others with it.")
    if off:
        most = dict.fromkeys(given)
    if most:
        quotas = ask_new_home(lambda memory: memory.set_quotas(space_name, most))
    else:
        quotas = ask_new_home(lambda memory: memory.space_summary(space_name)).quotas
    lines = [f"{escape_controls(space_name)}: {text}" for text in _quota_texts(quotas)]
    print_answer([asdict(quota) for quota in quotas], lines or f"{escape_controls(space_name)} has no quota.")


def _amount(what: str, text: str) -> int | None:
    """Return a quota as it is stored; None for `off`. Raises InvalidInput for another text."""
    if text.strip().casefold() == "off":
        return None
    found = _SIZE.fullmatch(text.strip().replace(",", "").removeprefix("$").casefold())
    if found is None or (found[2] and what == "cost"):
        example = {"bytes": "2GB", "cost": "20"}.get(what, "100000")
        raise InvalidInput(f"--{what} takes a number such as {example}, or off, not {text!r}.")
    return round(float(found[1]) * (_DOLLAR if what == "cost" else _UNITS[found[2]]))


@space.command()
@click.argument("space_name", metavar="NAME")
@click.option("--turns", metavar="TIME", help="Forget turns that are older: 365d, 1y.")
@click.option("--results", metavar="TIME", help="Forget tool results that are older.")
@click.option("--purge-after", metavar="TIME", help="Erase what this forgot, this long afterwards.")
@click.option("--off", is_flag=True, help="Keep everything.")
@as_json
@memory_options
def retention(space_name: str, turns: str | None, results: str | None, purge_after: str | None, off: bool) -> None:
    """Set how long a space keeps turns and results, or show it.

    Servers apply it once a day. `mcp-memory retention` says more, and can apply it now.

    \b
    mcp-memory space retention work --turns 365d --purge-after 30d
    """
    days = retention_days(turns, results, purge_after, off=off)
    if days:
        policies = ask_new_home(lambda memory: memory.set_space_retention(space_name, days))
    else:
        policies = ask_new_home(lambda memory: memory.space_summary(space_name)).retention
    lines = [f"{escape_controls(space_name)}: {text}" for text in _policy_texts(policies)]
    print_answer([asdict(policy) for policy in policies], lines or f"{escape_controls(space_name)} keeps everything.")


@space.command()
@click.argument("space_name", metavar="NAME")
@click.option("--yes", is_flag=True, help="Delete it. Without this, only say what would be deleted.")
@as_json
@memory_options
def delete(space_name: str, yes: bool) -> None:
    """Delete a space with everything in it, for good.

    Tokens that open no other space are revoked. Export it first if anything may be needed again: `mcp-memory export`.
    Backups and other copies are not touched.

    \b
    mcp-memory space delete work
    mcp-memory space delete work --yes
    """
    if not yes:
        summary = ask_new_home(lambda memory: memory.space_summary(space_name))
        what = f"{escape_controls(space_name)} has stored {plural(summary.turns, 'turn')}"
        raise Refused(f"Nothing was deleted: {what}. To delete it with everything in it, repeat this with --yes.")
    done = ask_new_home(lambda memory: memory.delete_space(space_name))
    revoked = f" Revoked tokens: {escape_controls(', '.join(done.revoked))}." if done.revoked else ""
    print_answer(asdict(done), f"Deleted {escape_controls(done.name)}.{revoked}")
