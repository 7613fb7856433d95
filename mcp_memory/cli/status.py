"""The page of `status`: from the answer in JSON to lines for people, the whole never more than a screen.

`status` and `doctor`: how much is kept, what it costs, and whether everything is well.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcp_memory.cli.base import as_json, ask, command_settings, place, settings
from mcp_memory.cli.terminal import columns, json_text, minute, one_line, plural, size, visible, with_nearest, wrapped

if TYPE_CHECKING:
    from mcp_memory.cli.doctor import Check

_FAILURES = 2
_KINDS = {"turns": "turn", "atoms": "statement", "results": "tool result"}


def status_rows(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the page, a name and what there is to say of it each; never more than a screen."""
    counts, tokenizer = answer["counts"], answer["tokenizer"]
    others = [name for name in answer["spaces"] if name != answer["space"]]
    rows = [
        ("home", answer["home"]),
        ("damaged", " ".join(answer["damaged"][:1])),
        ("space", answer["space"] + (f" (also here: {_few(others)})" if others else "")),
        ("version", f"{answer['version']}, schema {answer['schema']}"),
        ("conversation", f"{plural(counts['turns'], 'turn')} in {plural(counts['sessions'], 'session')}"),
        (
            "memories",
            f"{plural(counts['current'], 'statement')} held true, {counts['atoms'] - counts['current']:,} past, "
            f"{plural(counts['facts'], 'fact')}, {plural(counts['scenes'], 'scene')}",
        ),
        ("tasks", _tasks(counts, answer["offload"])),
        ("grew by", _grown(answer["grown"])),
        *_pyramid(answer["pyramid"]),
        ("review", f"{plural(answer['held'], 'row')} held: mcp-memory review" if answer["held"] else "nothing is held"),
        ("forgotten", plural(counts["forgotten"], "time")),
        ("retention", _retention(answer["retention"])),
        ("recovered", _recovered(answer["recovered"])),
        ("set aside", _set_aside(answer["set_aside"])),
        ("on disk", _disk(answer["disk"])),
        ("embedding", _embedding(answer["embedding"])),
        ("model", _model(answer["model"])),
        ("spent", _spent(answer["model"])),
        ("tokens", f"{tokenizer['name']}, {'exact' if tokenizer['exact'] else 'estimated, never too low'}"),
        ("offloading", _saving(answer["offload"])),
        ("savings", _savings(answer["savings"])),
        ("connected", _connected(answer["connected"])),
        ("access", _keys(answer["tokens"])),
        ("settings", _unknown(answer["unknown_variables"])),
        ("hooks", _hooks(answer["hooks"])),
        ("backups", _backups(answer["backups"])),
    ]
    return [(name, command_settings) for name, command_settings in rows if command_settings]


def _unknown(variables: dict[str, str | None]) -> str:
    return f"unknown variables: {with_nearest(variables)}" if variables else ""


def _few(names: Sequence[str], many: int = 5) -> str:
    return ", ".join(names[:many]) + (f" and {len(names) - many} more" if len(names) > many else "")


def _tasks(counts: dict[str, int], offload: dict[str, int]) -> str:
    command_settings = f"{plural(counts['records'], 'tool result')} on {plural(counts['canvases'], 'canvas')}, "
    masked = f", secrets masked in {counts['masked']:,}" if counts["masked"] else ""
    return f"{command_settings}{size(offload['raw_bytes'])} raw{masked}"


def _grown(grown: dict[str, dict[str, int]]) -> str:
    """What came in 24 hours, 7 and 30 days; a span that says the same as the one before it is left out."""
    spans = {"day": "in 24 hours", "week": "in 7 days", "month": "in 30 days"}
    command_settings: dict[str, str] = {}
    for span, one in grown.items():
        rows = ", ".join(plural(many, _KINDS[kind]) for kind, many in one.items() if many)
        if rows:
            command_settings.setdefault(rows, spans[span])
    return "; ".join(f"{rows} {span}" for rows, span in command_settings.items()) or "nothing in 30 days"


def _retention(policies: list[dict[str, Any]]) -> str:
    """What is forgotten by its age; nothing where nothing is."""
    what = {"purge": "what was forgotten is purged"}
    return "; ".join(
        f"{what.get(one['what'], one['what'])} after {plural(one['days'], 'day')}, {one['took']:,} so far"
        for one in policies
    )


def _recovered(found: list[dict[str, Any]]) -> str:
    """What the database had lost and the files gave back; nothing where nothing was."""
    if not found:
        return ""
    status_rows, left = sum(one["lines"] for one in found), sum(one["left"] for one in found)
    command_settings = f"{plural(status_rows, 'line')} that the database had lost came back from the files"
    return f"{command_settings}, the last on {minute(datetime.fromisoformat(found[0]['at']))}" + (
        f"; {plural(left, 'line')} could not" if left else ""
    )


def _set_aside(found: list[str]) -> str:
    return f"{_few(found, 3)}: mcp-memory doctor --repair brings them in" if found else ""


def _disk(disk: dict[str, Any]) -> str:
    return ", ".join(f"{size(many)} {kind}" for kind, many in disk["kinds"].items()) or "nothing"


def _spent(model: dict[str, Any]) -> str:
    """What today's tokens went to, the most first."""
    today: dict[str, int] = {}
    for call in model["today"]:
        today[call["purpose"]] = today.get(call["purpose"], 0) + call["prompt_tokens"] + call["completion_tokens"]
    ordered = sorted(today.items(), key=lambda one: -one[1])
    command_settings = ", ".join(f"{tokens:,} tokens on {purpose}" for purpose, tokens in ordered)
    return f"{command_settings}, today" if command_settings else ""


def _connected(there: list[dict[str, Any]]) -> str:
    return _few([_present(one) for one in there], 4) or "nobody"


def _present(one: dict[str, Any]) -> str:
    clients = f" for {_few(one['clients'], 3)}" if one["clients"] else ""
    since = f" since {minute(datetime.fromisoformat(one['since']))}" if one["since"] else ""
    return f"{one['what']}{clients}{since} (process {one['pid']})"


def _keys(keys: dict[str, int]) -> str:
    if not keys["valid"] and not keys["expired"]:
        return ""
    return f"{plural(keys['valid'], 'token')} for HTTP" + (
        f", {keys['expired']} past its time" if keys["expired"] else ""
    )


def _hooks(hooks: dict[str, Any]) -> str:
    if not hooks["used"]:
        return ""
    failed = f", failed {plural(len(hooks['failures']), 'time')} within a week" if hooks["failures"] else ""
    return ("a process that serves them runs" if hooks["residents"] else "no process of theirs runs") + failed


def _backups(backups: list[dict[str, Any]]) -> str:
    if not backups:
        return "none; mcp-memory backup makes one"
    newest, bad = backups[0], sum(1 for one in backups if one["problem"])
    made = f"the newest of {minute(datetime.fromisoformat(newest['at']))}" if newest["at"] else "the newest is damaged"
    return f"{len(backups):,}, {made}, {size(newest['bytes'])}" + (f"; {bad} cannot be read" if bad else "")


def _pyramid(pyramid: dict[str, Any]) -> list[tuple[str, str]]:
    from mcp_memory.service.scheduler import SOME

    waiting, done = pyramid["waiting"], pyramid["done"]
    read = done.get("extract", {})
    kept = ", ".join(
        [
            f"{read.get('turns', 0):,} turns read",
            f"{read.get('skipped', 0):,} skipped as chatter",
            f"{read.get('atoms', 0):,} statements drawn",
            f"{read.get('refused', 0):,} refused for want of evidence",
        ]
    )
    waits = ", ".join(
        part
        for part in (
            f"{plural(waiting['turns'], 'turn')} in {plural(waiting['sessions'], 'session')}"
            if waiting["turns"]
            else "",
            f"{plural(waiting['drafts'], 'statement')} to merge" if waiting["drafts"] else "",
            f"{plural(waiting['atoms_in_no_scene_yet'], 'statement')} for scenes"
            if waiting["atoms_in_no_scene_yet"]
            else "",
            f"{plural(waiting['poor_summaries'], 'result')} for a better summary"
            if waiting["poor_summaries"] >= SOME
            else "",
            f"{plural(waiting['grown_canvases'], 'long canvas')} to put in order" if waiting["grown_canvases"] else "",
        )
        if part
    )
    reader = pyramid["answered_by"] or "nobody by itself; the connected agent can, with distill"
    if pyramid["paused"]:
        reader = f"nobody: {pyramid['paused']['reason']}, since {pyramid['paused']['since'][:16].replace('T', ' ')}"
    status_rows = [("reader", reader), ("waits", waits or "nothing")]
    if read:
        status_rows.insert(1, ("read", kept))
    results, groups = done.get("summaries", {}).get("summarised", 0), done.get("canvas", {}).get("groups", 0)
    if results or groups:
        command_settings = (
            f"{plural(results, 'result')} summed up" if results else "",
            f"{plural(groups, 'group')} of steps made" if groups else "",
        )
        status_rows.insert(-1, ("bettered", ", ".join(part for part in command_settings if part)))
    parked = [work for work in pyramid["works"] if work["state"] == "parked"]
    for work in parked[:_FAILURES]:
        what = f"{work['id']} {work['stage']} {work['session'] or ''}".rstrip()
        status_rows.append(("failed", f"{what}, {work['attempts']} times: {one_line(work['error'] or '', 120)}"))
    if len(parked) > _FAILURES:
        status_rows.append(("", f"and {len(parked) - _FAILURES} more works"))
    return status_rows


def _embedding(embedding: dict[str, Any]) -> str:
    if embedding["model"] is None:
        return "none: search goes by words alone"
    line = f"{embedding['model']}, {embedding['embedded']:,} of {embedding['total']:,} rows"
    return f"{line}, last error: {embedding['error']}" if embedding["error"] else line


def _model(model: dict[str, Any]) -> str:
    failed = sum(call["failed"] for call in model["today"])
    calls = sum(call["calls"] for call in model["ever"])
    tokens = sum(call["prompt_tokens"] + call["completion_tokens"] for call in model["ever"])
    cost = sum(call["cost"] or 0.0 for call in model["ever"])
    parts = [
        model["name"] or "none is set",
        "puts search results into order" if model["rerank"] else "",
        f"{model['tokens_today']:,} of {model['daily_tokens']:,} tokens today, "
        f"{model['tokens_this_hour']:,} of {model['hourly_tokens']:,} this hour"
        if model["name"]
        else "",
        f"{plural(failed, 'call')} failed today" if failed else "",
        f"{plural(calls, 'call')} and {tokens:,} tokens in all" if calls else "",
        f"${cost:.2f}" if cost else "",
    ]
    return ", ".join(part for part in parts if part)


def _saving(offload: dict[str, int]) -> str:
    raw, kept = offload["tokens_raw"], offload["tokens_kept"]
    if not raw:
        return "nothing yet"
    return f"{raw:,} tokens became {kept:,}: {(raw - kept) / raw:.1%} saved"


def _savings(savings: dict[str, Any]) -> str:
    if not savings["kinds"]:
        return "nothing yet"
    spent = [f"{tokens:,} on {_SPENT[kind]}" for kind, tokens in savings["spent"].items()]
    parts = [
        f"{savings['saved_once']:,} tokens once, at least {savings['saved_later']:,} more in later calls",
        f"spent {' and '.join(spent)}" if spent else "",
        f"{savings['cache_broken']:,} read anew where a cache broke" if savings["cache_broken"] else "",
        f"net {savings['net_tokens']:,} tokens, worth {savings['net_cost']:,} at full price",
    ]
    return "; ".join(part for part in parts if part)


_SPENT = {"expand": "expansions", "canvas": "canvases"}


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
    answer = ask(lambda memory: memory.status())
    answer |= _beside(Path(answer["home"]))
    click.echo(json_text(answer) if as_json else visible(columns(status_rows(answer))))


def _beside(home: Path) -> dict[str, Any]:
    """Return what the memory itself does not know: its hooks, its backups, and the environment."""
    from mcp_memory.core.config import unknown_variables
    from mcp_memory.integrations.hooks.endpoint import health
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
    from mcp_memory.cli.doctor import examine

    mended = _mended() if repair else []
    if not as_json:
        for line in mended:
            click.echo(f"{click.style('mended', fg='green')} {visible(line)}")
    checks: list[Check] = []
    for check in examine(**command_settings()):
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
