"""Recognises the format of a tool result and describes it.

`synopsise` takes any str and never raises; the same input gives the same output. Every line is read, once, so that
counts are over the whole text: the time is linear in its length. Callers mask secrets.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from mcp_memory.shortterm.synopsis.code import describe_code, describe_commits, describe_diff
from mcp_memory.shortterm.synopsis.html_text import html_lines
from mcp_memory.shortterm.synopsis.line_patterns import has_levels, statements_of_lines
from mcp_memory.shortterm.synopsis.listings import describe_hits, describe_listing
from mcp_memory.shortterm.synopsis.page import (
    ANSI,
    Focus,
    PageLine,
    ResultPage,
    clip,
    count_of,
    focus_on,
    one_line,
    open_page,
    placed,
    size,
)
from mcp_memory.shortterm.synopsis.parsed import parse
from mcp_memory.shortterm.synopsis.preview import SUMMARY, WITH_KEY_WORDS, SynopsisDraft, preview
from mcp_memory.shortterm.synopsis.prose import LINK, prose_kind, statements_of_prose
from mcp_memory.shortterm.synopsis.stack_traces import describe_trace
from mcp_memory.shortterm.synopsis.statements import in_order, statements_of_facts
from mcp_memory.shortterm.synopsis.table_statements import leaves_of, statements_about
from mcp_memory.shortterm.synopsis.tables import are_prose, parts_of, tables_of, with_addresses
from mcp_memory.shortterm.synopsis.tabular import fields_in, records_in, table_in
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
    has_key_words: bool = False
    """Whether the preview has single words of lines that it does not quote."""


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
        has_key_words=draft.use in WITH_KEY_WORDS,
    )


# --- formats --------------------------------------------------------------------------------------

PROBE = 20_000
BYTES = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd\ud800-\udfff]")
BASE64 = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/_-]{400,}={0,2}\Z")
RUN = 30
"""The least mean number of characters of base64 between white space; words have fewer."""


def describe_blob(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe an empty result, bytes that are not text, or base64."""
    del focus
    if not any(line.text.strip() for line in page.lines):
        summary = "blank result: nothing visible" if page.text else "empty result"
        if page.exit_code is not None:
            summary = f"no output, exit code {page.exit_code}"
        return SynopsisDraft(kind="empty", summary=summary, score=10, use="nothing", statements=())
    probe = page.text[:PROBE] + page.text[-PROBE:]
    if len(BYTES.findall(probe)) > 0.05 * len(probe):
        shown = one_line("".join(re.findall(r"[\x20-\x7e]{4,}", probe)[:12]))
        return SynopsisDraft(
            kind="binary",
            content_type="application/octet-stream",
            summary=f"bytes that are no text, {size(page.chars)}; readable in it: {clip(shown, 80) or 'nothing'}",
            score=2,
            use="nothing",
            statements=statements_of_facts([f"readable: {clip(shown, 400)}"]),
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
        return SynopsisDraft(
            kind="base64", content_type="text/plain", summary=summary, score=3, use="nothing", statements=()
        )
    return None


def describe_structure(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe JSON, XML, YAML, a table, or records of fields."""
    parsed = parse(ANSI.sub("", page.text) if "\x1b" in page.text else page.text)
    if parsed is not None:
        tables = tables_of(parsed.value)
        few = 1 < max(table.rows for table in tables) <= 25 and page.chars < 20_000
        pieces = tuple(parts_of(parsed.value)) if few else ()
        prose = are_prose(pieces)
        title = f"{parsed.kind.upper()}, {count_of(leaves_of(tables), 'value')}"
        return SynopsisDraft(
            kind=parsed.kind,
            content_type=parsed.content_type,
            summary=f"{title} ({parsed.problem})" if parsed.problem else title,
            open=True,
            score=3 if parsed.problem else 5 if page.chars > 4_000 else 6,
            use="hits" if prose else "data" if few else "report",
            pieces=tuple(with_addresses(pieces, focus)) if prose else pieces,
            parts=True,
            statements=list(statements_about(tables, focus)),
        )
    texts = [line.text for line in page.lines]
    table, kind = table_in(texts), "table"
    if table is None:
        table, kind = records_in(texts), "records"
    if table is None and not page.span:
        table, kind = fields_in(texts), "fields"
    if table is None:
        return None
    about = [replace(s, worth=2 * s.worth, place=s.place / 1_000) for s in statements_about([table], focus)]
    title = f"{len(table.columns):,} fields"
    if table.rows > 1:
        title = about.pop(0).text.removeprefix("rows: ")
    return SynopsisDraft(
        kind=kind,
        summary=f"{kind}, {title}" if table.rows > 1 else title,
        open=True,
        score=4,
        statements=[*about, *statements_of_lines(page.lines, focus)],
    )


def describe_page(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe an HTML document by its text."""
    blocks = html_lines(page.text)
    if not blocks:
        return None
    first = page.lines[0].number
    lines = [PageLine(line.number + first - 1, text) for line in blocks for text in (line.text, "")]
    draft = describe_text(replace(page, lines=tuple(lines)), focus)
    return replace(draft, kind="html", content_type="text/html", summary=f"page, {draft.summary}", pieces=lines)


def describe_text(page: ResultPage, focus: Focus) -> SynopsisDraft:
    """Describe any text by its lines, or running text by its sentences."""
    if page.total_lines == 1 and len(page.lines) == 1:
        line = one_line(page.lines[0].text)
        long = f"one line of {size(page.chars)}: " if len(line) > SUMMARY else ""
        return SynopsisDraft(kind="text", summary=f"{long}{line}", score=3 if long else 5, statements=())
    many = count_of(page.total_lines, "line")
    if page.span:
        many += f", {page.span[0]} to {page.span[1]}"
    if not page.span and (document := prose_kind(page.lines)):
        return SynopsisDraft(
            kind=document,
            content_type="text/markdown" if document == "markdown" else "text/plain",
            summary=many,
            open=True,
            score=3,
            use="text",
            statements=list(statements_of_prose(page.lines, focus)),
            pieces=[PageLine(line.number, LINK.sub(r"\g<text>", line.text)) for line in page.lines],
        )
    return SynopsisDraft(
        kind="log" if page.span or has_levels(page.sample) else "text",
        summary=many,
        open=True,
        score=3,
        statements=statements_of_lines(page.lines, focus),
    )


RECOGNISERS: tuple[Callable[[ResultPage, Focus], SynopsisDraft | None], ...] = (
    # Exact forms first, then those recognised by most of their lines; `describe_text` takes the remaining.
    describe_blob,
    describe_diff,
    describe_commits,
    describe_tests,
    describe_trace,
    describe_page,
    describe_structure,
    describe_hits,
    describe_listing,
    describe_code,
)


def recognise(page: ResultPage, focus: Focus) -> SynopsisDraft:
    """Return the draft of the first format that recognises the page."""
    return next((d for describe in RECOGNISERS if (d := describe(page, focus))), None) or describe_text(page, focus)


def summary_of(draft: SynopsisDraft, page: ResultPage) -> str:
    """Return the draft's summary and its best statements as a line of at most `SUMMARY` characters.

    Only the first statement about a document or about search hits may be cut off: the preview would repeat it.
    """
    before = f"exit code {page.exit_code}: " if page.exit_code and "exit code" not in draft.summary else ""
    start = said = clip(one_line(draft.summary), SUMMARY - len(before))
    best = heapq.nlargest(3, draft.statements, key=lambda statement: statement.worth) if draft.open else []
    for text in in_order(best):
        room = SUMMARY - len(before) - len(said) - 2
        if len(text) <= room or (room >= 60 and (said == start or draft.use not in ("text", "hits"))):
            said += f"; {clip(text, room)}"
    return clip(before + said, SUMMARY)
