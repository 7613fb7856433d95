"""`status` and `doctor`: how much is kept, what it costs, and whether everything is well."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcp_memory.cli.base import as_json, ask, place, settings, told
from mcp_memory.cli.terminal import columns, json_text, visible, wrapped

if TYPE_CHECKING:
    from mcp_memory.cli.examining import Check

__all__ = ["doctor", "status"]

_ALIKE = 8  # checks of one name that are shown, so that the page stays one
COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@as_json
@place
def status(as_json: bool) -> None:
    """Show what is kept, where, and what it saves.

    \b
    mcp-memory status
    mcp-memory --space work status --json
    """
    from mcp_memory.cli.glance import lines

    answer = ask(lambda memory: memory.status())
    answer |= _beside(Path(answer["home"]))
    click.echo(json_text(answer) if as_json else visible(columns(lines(answer))))


def _beside(home: Path) -> dict[str, Any]:
    """Return what the memory itself does not know: its hooks, its backups, and the environment."""
    from mcp_memory.core.config import unknown_variables
    from mcp_memory.integrations.hooks.health import health
    from mcp_memory.service.upkeep.backup import folder_of, listed

    hooks = health(home, now=datetime.now())
    return {
        "unknown_variables": unknown_variables(),
        "hooks": {"used": hooks.used, "residents": hooks.residents, "failures": hooks.failures},
        "backups": [
            {
                "path": str(one.path),
                "bytes": one.bytes,
                "at": one.manifest.at if one.manifest else None,
                "problem": one.problem,
            }
            for one in listed(folder_of(home))
        ],
    }


@click.command()
@click.option("--repair", is_flag=True, help="First mend what can be mended; what is replaced is kept.")
@as_json
@place
def doctor(repair: bool, as_json: bool) -> None:
    """Examine the installation and the memory.

    Each check says what it found and what to do where that is not well. Every file is read, and what
    files and the database both tell is compared, row by row. Exit code 1 when a check fails.

    \b
    mcp-memory doctor
    mcp-memory doctor --repair
    mcp-memory --home /backup/mcp-memory doctor --json
    """
    from mcp_memory.cli.examining import examine

    mended = _mended() if repair else []
    if not as_json:
        for line in mended:
            click.echo(f"{click.style('mended', fg='green')} {visible(line)}")
    checks: list[Check] = []
    for check in examine(**told()):
        checks.append(check)
        alike = sum(1 for one in checks if one.name == check.name)
        if not as_json and alike <= _ALIKE:
            _print(check)
    for name, more in Counter(check.name for check in checks).items():
        if more > _ALIKE and not as_json:
            click.echo(f"{name}: {more - _ALIKE:,} more like these; --json has them all")
    well = not any(check.state == "fail" for check in checks)
    if as_json:
        click.echo(json_text({"ok": well, "checks": checks, **({"mended": mended} if repair else {})}))
    sys.exit(0 if well else 1)


def _mended() -> list[str]:
    from mcp_memory.service.upkeep.repair import repair

    done = repair(settings().home, now=datetime.now().astimezone())
    kept = [f"What was replaced is kept in {done.aside}."] if done.aside else []
    return [*done.mended, *kept] or ["Nothing: there was nothing that can be."]


def _print(check: Check) -> None:
    click.echo(f"{click.style(f'{check.state:<5}', fg=COLOURS[check.state])} {check.name:<10} {visible(check.found)}")
    if check.next_step:
        click.echo(wrapped(check.next_step, " " * 17))
