"""The order in which a result is tried as one type after the other, and the synopsis that comes out.

Apart from `synopsis` itself because its many patterns take some 40 ms to compile: they load at the first result.
"""

from __future__ import annotations

from collections.abc import Callable

from mcp_memory.shortterm.synopsis.code import describe_code
from mcp_memory.shortterm.synopsis.diff import describe_diff
from mcp_memory.shortterm.synopsis.draft import SUMMARY, Draft
from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.hits import describe_hits
from mcp_memory.shortterm.synopsis.html_page import describe_html
from mcp_memory.shortterm.synopsis.jsons import describe_json
from mcp_memory.shortterm.synopsis.listings import describe_listing
from mcp_memory.shortterm.synopsis.logs import describe_log
from mcp_memory.shortterm.synopsis.markdown import describe_markdown
from mcp_memory.shortterm.synopsis.page import Page, clip, one_line
from mcp_memory.shortterm.synopsis.rest import describe_blob, describe_fields, describe_rest
from mcp_memory.shortterm.synopsis.tables import describe_table
from mcp_memory.shortterm.synopsis.testruns import describe_tests
from mcp_memory.shortterm.synopsis.traces import describe_trace

__all__ = ["recognise", "summary_of"]

RECOGNISERS: tuple[Callable[[Page, Focus], Draft | None], ...] = (
    # Exact forms first, then those told by most of their lines; `describe_rest` takes what is left.
    describe_blob,
    describe_json,
    describe_html,
    describe_diff,
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


COUNTED = frozenset({"log", "matches", "diagnostics", "listing", "table", "diff", "fields"})
"""Kinds whose numbers are of the lines that were read, not of the whole result."""


def recognise(page: Page, focus: Focus) -> Draft:
    """What the first recogniser that knows this page has to say."""
    return next((d for describe in RECOGNISERS if (d := describe(page, focus))), None) or describe_rest(page, focus)


def summary_of(draft: Draft, page: Page) -> str:
    """The draft's summary as one line of at most `SUMMARY` characters."""
    before = f"exit code {page.exit_code}: " if page.exit_code and "exit code" not in draft.summary else ""
    after = " (head and tail only)" if not page.whole and draft.kind in COUNTED else ""
    return before + clip(one_line(draft.summary), SUMMARY - len(before) - len(after)) + after
