"""The page of `status`: from the answer in JSON to lines for people, the whole never more than a screen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from mcp_memory.cli.terminal import minute, one_line, plural, size, with_nearest

__all__ = ["lines"]

_FAILURES = 2
_KINDS = {"turns": "turn", "atoms": "statement", "results": "tool result"}


def lines(answer: dict[str, Any]) -> list[tuple[str, str]]:
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
    return [(name, told) for name, told in rows if told]


def _unknown(variables: dict[str, str | None]) -> str:
    return f"unknown variables: {with_nearest(variables)}" if variables else ""


def _few(names: Sequence[str], many: int = 5) -> str:
    return ", ".join(names[:many]) + (f" and {len(names) - many} more" if len(names) > many else "")


def _tasks(counts: dict[str, int], offload: dict[str, int]) -> str:
    told = f"{plural(counts['records'], 'tool result')} on {plural(counts['canvases'], 'canvas')}, "
    masked = f", secrets masked in {counts['masked']:,}" if counts["masked"] else ""
    return f"{told}{size(offload['raw_bytes'])} raw{masked}"


def _grown(grown: dict[str, dict[str, int]]) -> str:
    """What came in 24 hours, 7 and 30 days; a span that says the same as the one before it is left out."""
    spans = {"day": "in 24 hours", "week": "in 7 days", "month": "in 30 days"}
    told: dict[str, str] = {}
    for span, one in grown.items():
        rows = ", ".join(plural(many, _KINDS[kind]) for kind, many in one.items() if many)
        if rows:
            told.setdefault(rows, spans[span])
    return "; ".join(f"{rows} {span}" for rows, span in told.items()) or "nothing in 30 days"


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
    lines, left = sum(one["lines"] for one in found), sum(one["left"] for one in found)
    told = f"{plural(lines, 'line')} that the database had lost came back from the files"
    return f"{told}, the last on {minute(datetime.fromisoformat(found[0]['at']))}" + (
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
    told = ", ".join(f"{tokens:,} tokens on {purpose}" for purpose, tokens in ordered)
    return f"{told}, today" if told else ""


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
    parked = [work for work in pyramid["works"] if work["state"] == "parked"]
    for work in parked[:_FAILURES]:
        what = f"{work['id']} {work['stage']} {work['session'] or ''}".rstrip()
        lines.append(("failed", f"{what}, {work['attempts']} times: {one_line(work['error'] or '', 120)}"))
    if len(parked) > _FAILURES:
        lines.append(("", f"and {len(parked) - _FAILURES} more works"))
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
