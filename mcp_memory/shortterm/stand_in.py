"""What stands in a context where a tool result stood: where it is kept, a sentence, and a preview."""

from __future__ import annotations

__all__ = ["stand_in"]


def stand_in(*, node: str, ref: str, summary: str, preview: str) -> str:
    """Return the text that a model reads in place of a result. All parts are masked already."""
    return f"[{node} {ref}; expand_node opens any part]\n{summary}\n{preview}"
