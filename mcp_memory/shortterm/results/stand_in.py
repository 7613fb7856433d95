"""What stands in a context where a tool result stood: where all of it is, a sentence, and a preview.

It is read again with every later prompt, so its frame is one short line: node, ref, and the tool that opens them.
"""

from __future__ import annotations

__all__ = ["stand_in"]


def stand_in(*, node: str, ref: str, summary: str, preview: str, expand: str = "expand_node") -> str:
    """Return the text that a model reads in place of a result. All parts are masked already."""
    return f"[{node} {ref}; {expand}]\n{summary}\n{preview}"
