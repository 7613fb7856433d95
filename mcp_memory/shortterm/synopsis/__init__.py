"""What stays of a tool result that was put away: a summary of one line and a typed preview, made without a model.

`synopsise` takes any str and never raises; the same input gives the same output. Work is bounded (see `page` and
the bounds that each type states), so 50 MB take little longer than one.
It does not know secrets: whoever stores or shows a synopsis masks them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mcp_memory.shortterm.synopsis.code import describe_code
from mcp_memory.shortterm.synopsis.diff import describe_diff
from mcp_memory.shortterm.synopsis.draft import SUMMARY, Draft, preview
from mcp_memory.shortterm.synopsis.focus import Focus, focus_on
from mcp_memory.shortterm.synopsis.hits import describe_hits
from mcp_memory.shortterm.synopsis.html_page import describe_html
from mcp_memory.shortterm.synopsis.jsons import describe_json
from mcp_memory.shortterm.synopsis.listings import describe_listing
from mcp_memory.shortterm.synopsis.logs import describe_log
from mcp_memory.shortterm.synopsis.markdown import describe_markdown
from mcp_memory.shortterm.synopsis.page import Page, clip, one_line, open_page
from mcp_memory.shortterm.synopsis.rest import describe_blob, describe_fields, describe_rest
from mcp_memory.shortterm.synopsis.tables import describe_table
from mcp_memory.shortterm.synopsis.testruns import describe_tests
from mcp_memory.shortterm.synopsis.traces import describe_trace

__all__ = ["Synopsis", "synopsise"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Synopsis:
    """`score`, 0 to 10: how well the summary can stand in for the result."""

    kind: str
    content_type: str
    summary: str
    """One line of at most 200 characters."""
    preview: str
    """Header, facts, lines with their numbers in the raw text, names; the result itself where it is that short."""
    score: int


def synopsise(text: str, *, tool: str, arguments: object = None, talk: str = "", budget_chars: int = 1200) -> Synopsis:
    """Say what a tool result holds. Words of `arguments` weigh more than those of `talk`, rare over common."""
    page = open_page(text)
    focus = focus_on(page.lines, arguments=arguments, talk=talk)
    draft = next((d for describe in RECOGNISERS if (d := describe(page, focus))), None) or describe_rest(page, focus)
    summary = one_line(draft.summary)
    if page.exit_code and "exit code" not in summary:
        summary = f"exit code {page.exit_code}: {summary}"
    return Synopsis(
        kind=draft.kind,
        content_type=draft.content_type,
        summary=clip(summary or f"{draft.kind} from {one_line(tool)}", SUMMARY),
        preview=preview(draft, page, focus, budget=max(0, budget_chars)),
        score=draft.score,
    )
