"""`status` and `doctor`: how much is kept, what it costs, and whether everything is well."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from mcp_memory.cli.base import as_json, ask, place, settings, told
from mcp_memory.terminal import columns, json_text, plural, size, visible, wrapped

if TYPE_CHECKING:
    from mcp_memory.cli.examining import Check

__all__ = ["doctor", "status"]

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
    click.echo(json_text(answer) if as_json else visible(columns(_lines(answer))))


def _lines(answer: dict[str, Any]) -> list[tuple[str, str]]:
    counts, embedding, tokenizer = answer["counts"], answer["embedding"], answer["tokenizer"]
    others = [name for name in answer["spaces"] if name != answer["space"]]
    return [
        ("home", answer["home"]),
        ("space", answer["space"] + (f" (also here: {', '.join(others)})" if others else "")),
        ("version", f"{answer['version']}, schema {answer['schema']}"),
        ("conversation", f"{plural(counts['turns'], 'turn')} in {plural(counts['sessions'], 'session')}"),
        (
            "memories",
            f"{plural(counts['current'], 'statement')} held true, {counts['atoms'] - counts['current']:,} past, "
            f"{plural(counts['facts'], 'fact')}, {plural(counts['scenes'], 'scene')}",
        ),
        *_pyramid(answer["pyramid"]),
        ("forgotten", plural(counts["forgotten"], "time")),
        (
            "tasks",
            f"{plural(counts['records'], 'tool result')} on {plural(counts['canvases'], 'canvas')}, "
            f"{size(answer['offload']['raw_bytes'])} raw",
        ),
        ("on disk", f"{size(answer['disk']['database'])} database, {size(answer['disk']['files'])} files"),
        ("embedding", _embedding(embedding)),
        ("model", _model(answer["model"])),
        ("tokens", f"{tokenizer['name']}, {'exact' if tokenizer['exact'] else 'estimated, never too low'}"),
        ("offloading", _saving(answer["offload"])),
        ("savings", _savings(answer["savings"])),
    ]


def _pyramid(pyramid: dict[str, Any]) -> list[tuple[str, str]]:
    from mcp_memory.pipeline.due import SOME

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
    lines = [("reader", reader), ("waits", waits or "nothing")]
    if read:
        lines.insert(1, ("read", kept))
    results, groups = done.get("summaries", {}).get("summarised", 0), done.get("canvas", {}).get("groups", 0)
    if results or groups:
        told = (
            f"{plural(results, 'result')} summed up" if results else "",
            f"{plural(groups, 'group')} of steps made" if groups else "",
        )
        lines.insert(-1, ("bettered", ", ".join(part for part in told if part)))
    lines += [
        ("failed", f"{work['id']} {work['stage']} {work['session'] or ''}, {work['attempts']} times: {work['error']}")
        for work in pyramid["works"]
        if work["state"] == "parked"
    ]
    return lines


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


@click.command()
@click.option("--repair", is_flag=True, help="First mend what can be mended; what is replaced is kept.")
@as_json
@place
def doctor(repair: bool, as_json: bool) -> None:
    """Examine the installation and the memory.

    Each check says what it found and what to do where that is not well. Every file is read and compared
    with its hash. Exit code 1 when a check fails.

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
        if not as_json:
            _print(check)
    well = not any(check.state == "fail" for check in checks)
    if as_json:
        click.echo(json_text({"ok": well, "checks": checks, **({"mended": mended} if repair else {})}))
    sys.exit(0 if well else 1)


def _mended() -> list[str]:
    from mcp_memory.upkeep.repair import repair

    done = repair(settings().home, now=datetime.now().astimezone())
    kept = [f"What was replaced is kept in {done.aside}."] if done.aside else []
    return [*done.mended, *kept] or ["Nothing: there was nothing that can be."]


def _print(check: Check) -> None:
    click.echo(f"{click.style(f'{check.state:<5}', fg=COLOURS[check.state])} {check.name:<10} {visible(check.found)}")
    if check.next_step:
        click.echo(wrapped(check.next_step, " " * 17))
