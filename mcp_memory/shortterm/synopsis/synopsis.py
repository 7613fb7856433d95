"""Recognises the format of a tool result and describes it.

`synopsise` takes any str and never raises; the same input gives the same output. Work is bounded (see `page` and the
bounds in each format's module), so 50 MB take little longer than one. Callers mask secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mcp_memory.shortterm.synopsis.code import describe_code, describe_commits, describe_diff
from mcp_memory.shortterm.synopsis.json_values import describe_json
from mcp_memory.shortterm.synopsis.listings import RARE, describe_hits, describe_listing, describe_table
from mcp_memory.shortterm.synopsis.logs import describe_log, describe_trace, template
from mcp_memory.shortterm.synopsis.markup import describe_html, describe_markdown
from mcp_memory.shortterm.synopsis.page import (
    Focus,
    PageLine,
    ResultPage,
    clip,
    clip_start,
    focus_on,
    one_line,
    open_page,
    placed,
    size,
)
from mcp_memory.shortterm.synopsis.preview import SUMMARY, SynopsisDraft, preview
from mcp_memory.shortterm.synopsis.test_runs import describe_tests


@dataclass(frozen=True, slots=True, kw_only=True)
class Synopsis:
    """The description of a result. `score`, 0 to 10, is how well the summary can replace the result."""

    kind: str
    content_type: str
    summary: str
    """One line of at most 200 characters."""
    preview: str
    """Facts, lines with their raw line numbers, and key words of the lines between; or a short result itself."""
    score: int


def synopsise(
    text: str, *, tool: str, arguments: object = None, talk: str = "", budget_chars: int | None = None
) -> Synopsis:
    """Describe a tool result.

    The preview has at most `budget_chars` characters; if None, its length depends on the kind and size of the result.
    Words of `arguments` weigh more than words of `talk` (the messages before the call), and rare words more than common
    words.
    """
    page = open_page(text)
    focus = focus_on(page.lines, arguments=arguments, talk=f"{tool} {talk}")
    page = placed(page, focus.call)
    draft = recognise(page, focus)
    summary = summary_of(draft, page)
    return Synopsis(
        kind=draft.kind,
        content_type=draft.content_type,
        summary=summary,
        preview=preview(draft, page, focus, summary=summary, budget=budget_chars),
        score=draft.score,
    )


# --- formats --------------------------------------------------------------------------------------

PROBE = 20_000
BYTES = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd\ud800-\udfff]")
BASE64 = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/_-]{400,}={0,2}\Z")
RUN = 30
"""The least mean number of characters of base64 between white space; words have fewer."""
FIELD = re.compile(r"\s*(?:[-*] )?(?P<key>[A-Za-z_][\w .()/-]{0,48}?)\s*(?::|=|\s=>|\.{3,})\s+?(?P<value>\S.*)")
TROUBLE = re.compile(
    r"\b(?:error|errors|failed|failure|fatal|cannot|could not|denied|not found|no such|invalid|exception|warning)\b",
    re.I,
)
SOME_LINES = 20
NUMBER = re.compile(r"\d{2,}|\d+[.,]\d")


def describe_blob(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe an empty result, bytes that are not text, or base64."""
    del focus
    if not page.text.strip():
        summary = "empty result" if not page.text else "blank result: only white space"
        if page.exit_code is not None:
            summary = f"no output, exit code {page.exit_code}"
        return SynopsisDraft(kind="empty", summary=summary, score=10, use="nothing")
    probe = page.text[:PROBE] + page.text[-PROBE:]
    if len(BYTES.findall(probe)) > 0.05 * len(probe):
        shown = one_line("".join(re.findall(r"[\x20-\x7e]{4,}", probe)[:12]))
        return SynopsisDraft(
            kind="binary",
            content_type="application/octet-stream",
            summary=f"bytes that are no text, {size(page.chars)}; readable in it: {clip(shown, 80) or 'nothing'}",
            score=2,
            facts=(f"readable: {clip(shown, 400)}",),
            use="nothing",
        )
    runs = page.text[:8_000].split()
    flat = "".join(runs)
    if (
        len(flat) >= RUN * len(runs)
        and BASE64.match(flat)
        and re.search(r"\d", flat)
        and re.search(r"[A-Z]", flat)
        and re.search(r"[a-z]", flat)
    ):
        summary = f"base64 data, {size(page.chars)}, beginning {flat[:40]}"
        return SynopsisDraft(kind="base64", content_type="text/plain", summary=summary, score=3, use="nothing")
    return None


def describe_fields(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe lines of `key: value`, as in configurations, headers and status reports."""
    if page.share(FIELD) < 0.5:
        return None
    fields = [(line, m["key"].strip(), m["value"].strip()) for line in page.lines if (m := FIELD.match(line.text))]
    filled = sum(1 for line in page.lines if line.text.strip())
    keys = list(dict.fromkeys(key for _, key, _ in fields))
    if len(fields) < 4 or len(fields) < 0.6 * filled or len(keys) < 0.4 * len(fields):
        return None
    best = focus.best(fields, 6, lambda field: f"{field[1]} {field[2]}")
    shown = ", ".join(f"{key} {clip(value, 40)}" for _, key, value in best)
    return SynopsisDraft(
        kind="fields",
        summary=f"{len(fields):,} fields: {shown}",
        score=4,
        facts=(clip(f"keys: {', '.join(keys)}", 400),),
        picks={line.number: 1.0 / (1 + at / 20) for at, (line, _, _) in enumerate(fields)},
    )


def describe_rest(page: ResultPage, focus: Focus) -> SynopsisDraft:
    """Describe any text by its first and last line, and lines with errors, rare forms, or words of the call."""
    if not page.sample:
        return SynopsisDraft(
            kind="text", summary=f"{page.total_lines:,} lines, all blank where they were read", score=2
        )
    if page.total_lines == 1 and page.chars > 400:
        return _one_long_line(page, focus)
    rare = _rare_lines(page.lines)
    troubles = [line for line in page.lines if TROUBLE.search(line.text)]
    first, last = page.sample[0], page.sample[-1]
    [best] = focus.best(page.lines, 1, lambda line: line.text)
    parts = [f"{page.total_lines:,} lines"] if page.total_lines > 1 else []
    if troubles:
        parts.append(f"line {troubles[-1].number}: {clip(troubles[-1].text.strip(), 90)}")
    elif focus.of(best.text) > 0:
        parts.append(f"line {best.number}: {clip(best.text.strip(), 90)}")
    else:
        opening = next((line for line in page.sample[:8] if len(line.text.strip()) >= 40), first)
        parts.append(clip(opening.text.strip(), 110))
    if rare:
        parts = [parts[0], f"unlike the rest, line {rare[0].number}: {clip(rare[0].text.strip(), 120)}"]
    elif last.number not in (first.number, best.number) and len(troubles) == 0:
        parts.append(f"ends: {clip(last.text.strip(), 60)}")
    picks = {line.number: 0.4 for line in page.lines if NUMBER.search(line.text)}
    picks |= {line.number: 2.0 for line in troubles[:20] + troubles[-20:]}
    picks |= {line.number: RARE for line in rare[:20]}
    return SynopsisDraft(
        kind="text", summary="; ".join(parts), score=3 if page.chars > 2_000 else 5, picks=picks, edges=True
    )


def _rare_lines(lines: Sequence[PageLine]) -> list[PageLine]:
    """Return the few lines with rare templates, if nearly all lines share a few templates."""
    forms: dict[str, list[PageLine]] = {}
    for line in lines:
        if line.text.strip():
            forms.setdefault(template(line.text), []).append(line)
    usual = sum(len(alike) for alike in forms.values() if len(alike) > 0.1 * len(lines))
    if len(lines) < SOME_LINES or usual < 0.9 * len(lines):
        return []
    return [alike[0] for alike in forms.values() if len(alike) <= 0.02 * len(lines)]


def _one_long_line(page: ResultPage, focus: Focus) -> SynopsisDraft:
    """Show windows around the words of the call, between the beginning and the end."""
    text = page.text[:200_000]
    facts = [f"begins: {clip(one_line(text[:400]), 300)}"]
    last = -1_000
    for match in focus.pattern.finditer(text) if focus.pattern else ():
        if match.start() - last > 400 and match.start() > 300 and len(facts) < 4:
            last = match.start()
            facts.append(f"at character {last:,}: {clip(one_line(text[max(0, last - 80) : last + 160]), 220)}")
    facts.append(f"ends: {clip_start(one_line(page.text[-400:]), 240)}")
    return SynopsisDraft(
        kind="text",
        summary=f"one line of {size(page.chars)}: {clip(one_line(text[:300]), 140)}",
        score=2,
        facts=tuple(facts),
    )


RECOGNISERS: tuple[Callable[[ResultPage, Focus], SynopsisDraft | None], ...] = (
    # Exact forms first, then those recognised by most of their lines; `describe_rest` takes the remaining.
    describe_blob,
    describe_json,
    describe_html,
    describe_diff,
    describe_commits,
    describe_tests,
    describe_log,
    describe_trace,
    describe_hits,
    describe_listing,
    describe_code,
    describe_markdown,
    describe_table,
    describe_fields,
)


COUNTED = frozenset({"log", "matches", "diagnostics", "listing", "table", "diff", "commits", "fields"})
"""Kinds whose numbers refer to the lines that were read, not to the whole result."""


def recognise(page: ResultPage, focus: Focus) -> SynopsisDraft:
    """Return the draft of the first format that recognises the page."""
    return next((d for describe in RECOGNISERS if (d := describe(page, focus))), None) or describe_rest(page, focus)


def summary_of(draft: SynopsisDraft, page: ResultPage) -> str:
    """Return the draft's summary as a line of at most `SUMMARY` characters."""
    before = f"exit code {page.exit_code}: " if page.exit_code and "exit code" not in draft.summary else ""
    after = " (head and tail only)" if not page.whole and draft.kind in COUNTED else ""
    return before + clip(one_line(draft.summary), SUMMARY - len(before) - len(after)) + after
