"""The stand-in of an offloaded tool result: a summary of one line and a typed preview, made without a model.

`synopsise` takes any str and never raises; the same input gives the same output. Work is bounded (see `page` and the
bounds in each format's module), so 50 MB take little longer than one. Callers mask secrets.

    page       the bounded view of a result (lines, numbers, wrapping removed), and the focus of its call
    formats    tries one format after the other; each is described in a `SynopsisDraft`
    preview    the draft as text within its budget: facts, lines, and key words of the rest
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Synopsis", "synopsise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Synopsis:
    """`score`, 0 to 10: how well the summary can stand in for the result."""

    kind: str
    content_type: str
    summary: str
    """One line of at most 200 characters."""
    preview: str
    """Facts, lines with their numbers in the raw text, words of those between; a short result itself."""
    score: int


def synopsise(
    text: str, *, tool: str, arguments: object = None, talk: str = "", budget_chars: int | None = None
) -> Synopsis:
    """Describe a tool result, its preview in at most `budget_chars` characters; None: as many as it needs.

    Words of `arguments` weigh more than those of `talk` (the messages before the call), rare ones over common.
    """
    from mcp_memory.shortterm.synopsis.formats import recognise, summary_of
    from mcp_memory.shortterm.synopsis.page import focus_on, open_page, placed
    from mcp_memory.shortterm.synopsis.preview import preview

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
