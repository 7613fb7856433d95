"""Who reads an answer: a program, or a model that its client shows the JSON in place of the text.

A tool answers twice, in short text for reading and in the same content structured for programs. Some clients hand
their model the structured half alone (seen in what Claude Code 2.1.330 and Codex 0.169 send to their models). There the
text would never be read, and it is what says that quoted lines are data, what to do next, and how to get the rest. So
these clients are offered the text alone: tools without an output schema, results without structured content.
"""

from __future__ import annotations

from typing import Any

from mcp.server.context import HandlerResult, ServerRequestContext

__all__ = ["for_reader"]

_SHOW_JSON = ("claude-code", "codex")  # how the names begin by which they introduce themselves


def for_reader(ctx: ServerRequestContext[Any, Any], result: HandlerResult) -> HandlerResult:
    """Return a result, as it goes over the wire, as the client of this request shall have it."""
    introduced = ctx.session.client_params
    if introduced is None or not introduced.client_info.name.lower().startswith(_SHOW_JSON):
        return result
    match result:
        case {"tools": [*tools]}:
            return result | {"tools": [_without(tool, "outputSchema") for tool in tools]}
        case {"content": _, "structuredContent": _}:
            return _without(result, "structuredContent")
        case _:
            return result


def _without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: part for key, part in value.items() if key != name}
