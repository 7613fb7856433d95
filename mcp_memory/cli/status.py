"""`status` and `doctor`: contents, costs and health of a memory.

The page of `status` is made from its JSON answer and fits a screen.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcp_memory.cli.base import (
    NothingStored,
    as_json,
    ask,
    ask_memory,
    command_settings,
    home_with_files,
    memory_options,
    print_answer,
    settings,
    wants_json,
)
from mcp_memory.cli.terminal import (
    columns,
    escape_controls,
    format_minute,
    json_text,
    model_name,
    one_line,
    suggest_names,
    wrap,
)
from mcp_memory.core.text import format_bytes, plural

if TYPE_CHECKING:
    from mcp_memory.cli.check import Check

_ALIKE = 8  # checks of the same name that are shown: the output fits on a page
COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@as_json
@memory_options
def status() -> None:
    """Show the contents, their location and the savings.

    If nothing is stored yet, it shows the first steps.

    \b
    mcp-memory status
    mcp-memory --space work status --json
    """
    if (chosen := settings()).server is not None:
        from mcp_memory.cli.server_status import server_rows, server_status

        found = server_status(chosen)
        found |= _environment_status(chosen.home)
        rows = [*server_rows(found), ("hooks", _hooks(found["hooks"]))]
        print_answer(found, escape_controls(columns([(name, value) for name, value in rows if value])))
        sys.exit(1 if found["problem"] else 0)
    try:
        answer, page = ask(lambda memory: memory.status()), None
    except NothingStored as nothing:
        answer, page = _empty_status(), str(nothing)
    answer["pyramid"]["answered_by"] = answer["model"]["name"] if settings().distil else None
    answer |= _environment_status(Path(answer["home"]))
    print_answer(answer, page or escape_controls(columns(status_rows(answer))))


def _empty_status() -> dict[str, Any]:
    """Return the status of a home without a database, computed on a temporary empty store."""
    chosen = settings()
    with tempfile.TemporaryDirectory(prefix="mcp-memory-") as empty:
        answer = ask_memory(chosen.model_copy(update={"home": Path(empty)}), lambda memory: memory.status())
    nothing: dict[str, Any] = {"database": 0, "files": 0, "kinds": {}}
    return answer | {"home": str(chosen.home), "store": str(chosen.home / "memory.db"), "disk": nothing}


def _environment_status(home: Path) -> dict[str, Any]:
    """Return the status of hooks, backups and environment variables."""
    from mcp_memory.core.config import unknown_variables
    from mcp_memory.core.hook_outcomes import outcomes
    from mcp_memory.integrations.hooks.daemon_files import health
    from mcp_memory.service.upkeep.backup import folder_of, list_backups

    hooks, week = health(home, now=datetime.now()), outcomes(home, now=datetime.now())
    return {
        "unknown_variables": unknown_variables(),
        "hooks": {
            "used": hooks.used,
            "residents": hooks.residents,
            "failures": hooks.failures,
            "prompts": week.prompts,
            "by_words": week.by_words,
            "misses": week.sentences(),
        },
        "backups": [
            {
                "path": str(backup.path),
                "bytes": backup.bytes,
                "at": backup.manifest.at if backup.manifest else None,
                "problem": backup.problem,
            }
            for backup in list_backups(folder_of(home))
        ],
    }


@click.command()
@click.option("--repair", is_flag=True, help="First repair; replaced files are kept.")
@as_json
@memory_options
def doctor(repair: bool) -> None:
    """Examine the installation and the memory.

    Each check gives its result and, if something is wrong, the next step. Every file is read, and rows that are
    both in files and in the database are compared. Exit code 1 when a check fails.

    \b
    mcp-memory doctor
    mcp-memory doctor --repair
    mcp-memory --home /backup/mcp-memory doctor --json
    """
    from mcp_memory.cli.doctor import run_checks

    mended = _repair_lines() if repair else []
    checks: list[Check] = []
    if wants_json():
        checks += run_checks(**command_settings())
    else:
        for line in mended:
            click.echo(f"{click.style('mended', fg='green')} {escape_controls(line)}")
        seen = Counter[str]()
        for check in run_checks(**command_settings()):
            checks.append(check)
            seen[check.name] += 1
            if seen[check.name] <= _ALIKE:
                _print_check(check)
        for name, more in seen.items():
            if more > _ALIKE:
                click.echo(f"{name}: {more - _ALIKE:,} more like these; --json has them all")
    well = not any(check.state == "fail" for check in checks)
    if wants_json():
        click.echo(json_text({"ok": well, "checks": checks, **({"mended": mended} if repair else {})}))
    sys.exit(0 if well else 1)


def _repair_lines() -> list[str]:
    from mcp_memory.service.upkeep.repair import repair

    done = repair(home_with_files(), now=datetime.now().astimezone())
    kept = [f"The replaced files are kept in {done.aside}."] if done.aside else []
    return [*done.mended, *kept] or ["Nothing needed repair."]


def _print_check(check: Check) -> None:
    state = click.style(f"{check.state:<5}", fg=COLOURS[check.state])
    click.echo(columns([(state, f"{check.name:<10}", escape_controls(check.found))], gap=1))
    if check.next_step:
        click.echo(wrap(check.next_step, " " * 17))


# --- the page ---------------------------------------------------------------------------------------

_FAILURES = 2
_KINDS = {"turns": "turn", "atoms": "statement", "results": "tool result"}
_SPANS = {"day": "in 24 hours", "week": "in 7 days", "month": "in 30 days"}
_SPENT = {"expand": "expansions", "canvas": "canvases"}


def status_rows(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows of the page, each a name and its value, without empty values."""
    counts, tokenizer, keys = answer["counts"], answer["tokenizer"], answer["tokens"]
    set_aside, unknown = answer["set_aside"], answer["unknown_variables"]
    ended = f", {keys['expired']} past its time" if keys["expired"] else ""
    rows = [
        ("home", answer["home"]),
        ("store", answer["store"] if answer["store"].startswith("postgresql:") else ""),
        ("writes", answer["write_problem"] or ""),
        ("clock", answer["clock"] or ""),
        ("damaged", " ".join(answer["damaged"][:1])),
        ("space", _space(answer["space"], answer["spaces"])),
        ("version", f"{answer['version']}, schema {answer['schema']}"),
        ("conversation", f"{plural(counts['turns'], 'turn')} in {plural(counts['sessions'], 'session')}"),
        (
            "memories",
            f"{plural(counts['current'], 'statement')} valid, {counts['atoms'] - counts['current']:,} past, "
            f"{plural(counts['facts'], 'fact')}, {plural(counts['scenes'], 'scene')}",
        ),
        ("tasks", _tasks(counts, answer["offload"])),
        ("grew by", _growth(answer["grown"])),
        *_pyramid(answer["pyramid"]),
        (
            "review",
            f"{plural(answer['held'], 'row')} quarantined: mcp-memory review"
            if answer["held"]
            else "nothing is quarantined",
        ),
        ("forgotten", plural(counts["forgotten"], "time")),
        ("retention", _retention(answer["retention"])),
        ("quota", _quotas(answer["quotas"])),
        ("set aside", f"{_join_few(set_aside, 3)}: mcp-memory doctor --repair imports them" if set_aside else ""),
        (
            "on disk",
            _join_parts(f"{format_bytes(many)} {kind}" for kind, many in answer["disk"]["kinds"].items()) or "nothing",
        ),
        ("embedding", _embedding(answer["embedding"])),
        ("model", _model(answer["model"])),
        ("spent", _spent(answer["model"])),
        ("tokens", f"{tokenizer['name']}, {'exact' if tokenizer['exact'] else 'estimated, never too low'}"),
        ("offloading", _saving(counts["records"], answer["offload"])),
        ("savings", _savings(answer["savings"])),
        ("connected", _join_few([_process(process) for process in answer["connected"]], 4) or "no client now"),
        ("access", f"{plural(keys['valid'], 'token')} for HTTP{ended}" if keys["valid"] or keys["expired"] else ""),
        ("settings", f"unknown variables: {suggest_names(unknown)}" if unknown else ""),
        ("hooks", _hooks(answer["hooks"])),
        ("backups", _backups(answer["backups"])),
    ]
    return [(name, value) for name, value in rows if value]


def _space(chosen: str, spaces: Sequence[str]) -> str:
    """Return the name of a space, and the others, those with similar names first."""
    others = [name for name in spaces if name != chosen]
    near = get_close_matches(chosen, others, n=3)
    others.sort(key=lambda name: near.index(name) if name in near else len(near))
    shown = chosen if chosen in spaces or not others else f"{chosen}, which does not exist yet"
    return shown + (f" (also here: {_join_few(others)})" if others else "")


def _join_few(names: Sequence[str], many: int = 5) -> str:
    return ", ".join(names[:many]) + (f" and {len(names) - many} more" if len(names) > many else "")


def _join_parts(parts: Iterable[str], joint: str = ", ") -> str:
    return joint.join(part for part in parts if part)


def _tasks(counts: dict[str, int], offload: dict[str, int]) -> str:
    masked = f", secrets masked in {counts['masked']:,}" if counts["masked"] else ""
    results = f"{plural(counts['records'], 'tool result')} on {plural(counts['canvases'], 'canvas')}"
    return f"{results}, {format_bytes(offload['raw_bytes'])} raw{masked}"


def _growth(grown: dict[str, dict[str, int]]) -> str:
    """Return the new rows of each period; a period with the same rows as the previous period is left out."""
    spans: dict[str, str] = {}
    for span, counts in grown.items():
        if rows := _join_parts(plural(many, _KINDS[kind]) for kind, many in counts.items() if many):
            spans.setdefault(rows, _SPANS[span])
    return "; ".join(f"{rows} {span}" for rows, span in spans.items()) or "nothing in 30 days"


def _retention(policies: list[dict[str, Any]]) -> str:
    if not policies:
        return ""
    what = {"purge": "forgotten rows are purged"}
    rules: list[str] = []
    for policy in policies:
        kept = policy["kept_as_evidence"]
        after = f"{what.get(policy['what'], policy['what'])} after {plural(policy['days'], 'day')}"
        rules.append(
            f"{after}, {policy['took']:,} so far, {policy['due']:,} due"
            + (f" ({kept:,} kept as evidence)" if kept else "")
        )
    first = min(policy["next_run"] for policy in policies)
    return f"{'; '.join(rules)}; next run {_local_minute(first)}, if a server is open"


def _quotas(quotas: list[dict[str, Any]]) -> str:
    return ", ".join(quota_text(**quota) for quota in quotas)


def quota_text(what: str, most: int, used: int) -> str:
    """Return a quota as text, such as `950 of 1,000 turns`."""
    if what == "cost":
        return f"${used / 1_000_000:,.2f} of ${most / 1_000_000:,.2f} this month"
    if what == "bytes":
        return f"{format_bytes(used)} of {format_bytes(most)}"
    return f"{used:,} of {most:,} {what}{' this month' if what == 'tokens' else ''}"


def _local_minute(moment: str) -> str:
    return format_minute(datetime.fromisoformat(moment))


def _spent(model: dict[str, Any]) -> str:
    """Describe what today's tokens were spent on, largest first."""
    today = Counter[str]()
    for call in model["today"]:
        today[call["purpose"]] += call["prompt_tokens"] + call["completion_tokens"]
    parts = _join_parts(f"{tokens:,} tokens on {purpose}" for purpose, tokens in today.most_common())
    return f"{parts}, today" if parts else ""


def _process(process: dict[str, Any]) -> str:
    clients = f" for {_join_few(process['clients'], 3)}" if process["clients"] else ""
    since = f" since {_local_minute(process['since'])}" if process["since"] else ""
    return f"{process['what']}{clients}{since} (process {process['pid']})"


def _hooks(hooks: dict[str, Any]) -> str:
    if not hooks["used"]:
        return ""
    failed = f", failed {plural(len(hooks['failures']), 'time')} within a week" if hooks["failures"] else ""
    running = "their daemon runs" if hooks["residents"] else "their daemon does not run"
    words = f", {hooks['by_words']:,} of them answered by words alone" if hooks["by_words"] else ""
    week = [f"{plural(hooks['prompts'], 'prompt')} this week{words}"] if hooks["prompts"] else []
    return "; ".join([running + failed, *week, *hooks["misses"]])


def _backups(backups: list[dict[str, Any]]) -> str:
    if not backups:
        return "none; mcp-memory backup makes one"
    newest, bad = backups[0], sum(1 for backup in backups if backup["problem"])
    made = f"the newest of {_local_minute(newest['at'])}" if newest["at"] else "the newest is damaged"
    return f"{len(backups):,}, {made}, {format_bytes(newest['bytes'])}" + (f"; {bad} cannot be read" if bad else "")


def _pyramid(pyramid: dict[str, Any]) -> Iterator[tuple[str, str]]:
    from mcp_memory.service.due_stages import LEAST_RESULTS

    waiting, done, paused = pyramid["waiting"], pyramid["done"], pyramid["paused"]
    read = done.get("extract", {})
    reader = pyramid["answered_by"] or "no model is set; the connected agent can distill"
    if paused:
        reader = f"paused: {paused['reason']}, since {paused['since'][:16].replace('T', ' ')}"
    yield "reader", reader
    if read:
        yield (
            "read",
            f"{read.get('turns', 0):,} turns read, {read.get('skipped', 0):,} skipped as small talk, "
            + (f"{read['held']:,} quarantined, " if read.get("held") else "")
            + f"{read.get('atoms', 0):,} statements extracted, {read.get('refused', 0):,} refused without evidence",
        )
    queues = {
        f"{plural(waiting['turns'], 'turn')} in {plural(waiting['sessions'], 'session')}": waiting["turns"],
        f"{plural(waiting['drafts'], 'statement')} to merge": waiting["drafts"],
        f"{plural(waiting['atoms_in_no_scene_yet'], 'statement')} for scenes": waiting["atoms_in_no_scene_yet"],
        f"{plural(waiting['poor_summaries'], 'result')} for a better summary": waiting["poor_summaries"]
        >= LEAST_RESULTS,
        f"{plural(waiting['grown_canvases'], 'long canvas')} to order": waiting["grown_canvases"],
    }
    results, groups = done.get("summaries", {}).get("summarised", 0), done.get("canvas", {}).get("groups", 0)
    summed, made = f"{plural(results, 'result')} summed up", f"{plural(groups, 'group')} of steps made"
    if results or groups:
        yield "bettered", _join_parts((summed if results else "", made if groups else ""))
    yield "waits", _join_parts(text for text, waiting_count in queues.items() if waiting_count) or "nothing"
    parked = [work for work in pyramid["works"] if work["state"] == "parked"]
    for work in parked[:_FAILURES]:
        what = f"{work['id']} {work['stage']} {work['session'] or ''}".rstrip()
        yield "failed", f"{what}, {work['attempts']} times: {one_line(work['error'] or '', 120)}"
    if len(parked) > _FAILURES:
        yield "", f"and {len(parked) - _FAILURES} more works"


def _embedding(embedding: dict[str, Any]) -> str:
    if embedding["model"] is None:
        return "none: search by words only"
    line = f"{model_name(embedding['model'])}, {embedding['embedded']:,} of {embedding['total']:,} rows"
    return f"{line}, last error: {embedding['error']}" if embedding["error"] else line


def _model(model: dict[str, Any]) -> str:
    failed = sum(call["failed"] for call in model["today"])
    calls = sum(call["calls"] for call in model["ever"])
    tokens = sum(call["prompt_tokens"] + call["completion_tokens"] for call in model["ever"])
    cached = sum(call["cached_tokens"] for call in model["ever"])
    cost = sum(call["cost"] or 0.0 for call in model["ever"])
    budget = (
        f"{model['tokens_today']:,} of {model['daily_tokens']:,} tokens today, "
        f"{model['tokens_this_hour']:,} of {model['hourly_tokens']:,} this hour"
    )
    return _join_parts(
        (
            model["name"] or "none is set",
            "puts search results into order" if model["rerank"] else "",
            budget if model["name"] else "",
            f"{plural(failed, 'call')} failed today" if failed else "",
            f"{plural(calls, 'call')} and {tokens:,} tokens in all" if calls else "",
            f"of which {cached:,} from the provider's cache" if cached else "",
            f"${cost:.2f}" if cost else "",
        )
    )


def _saving(results: int, offload: dict[str, int]) -> str:
    """Describe the tokens of the results that a client is known to have replaced by notes."""
    raw, kept = offload["tokens_raw"], offload["tokens_kept"]
    if raw:
        return f"{raw:,} tokens became {kept:,}: {(raw - kept) / raw:.1%} saved"
    return "no note seen in a client's log yet; savings count from then on" if results else "nothing yet"


def _savings(savings: dict[str, Any]) -> str:
    if not savings["kinds"]:
        return "nothing yet"
    spent = " and ".join(f"{tokens:,} on {_SPENT[kind]}" for kind, tokens in savings["spent"].items())
    parts = (
        f"{savings['saved_once']:,} tokens once, at least {savings['saved_later']:,} more in later calls",
        f"spent {spent}" if spent else "",
        f"{savings['cache_broken']:,} read again because a cache broke" if savings["cache_broken"] else "",
        f"net {savings['net_tokens']:,} tokens, worth {savings['net_cost']:,} at full price",
    )
    return _join_parts(parts, "; ")
