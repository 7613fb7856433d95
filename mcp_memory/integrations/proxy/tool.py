"""The tool that a wrapped server gains: it opens what was kept. Its definition is short, for every call pays for it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Any, cast

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line

__all__ = ["MAX_TOKENS", "checked", "definition", "looks_like_ours", "tool_name"]

MAX_TOKENS = 2_000
NAME_LIMIT = 40
"""Clients prefix a tool's name with the server's, and models take 64 characters."""

_OUR_ID = re.compile(r"r-[0-9a-f]{4,}|\d{3,}-[NF]\d+")

# A node may hold several results, so what is asked for first is the ref.
_PROPERTIES: dict[str, Any] = {
    "ref": {"type": "string", "description": "Ref or node: r-9f2c1a7b3d4e, 003-N4"},
    "lines": {"type": "string", "description": "120-180"},
    "grep": {"type": "string"},
    "json_path": {"type": "string"},
    "cursor": {"type": "string"},
}


def tool_name(server: str, taken: Collection[str] = ()) -> str:
    """Return `expand_<server>`: two wrapped servers of one client must not both bring the same name.

    `taken` are the names of the server's own tools.
    """
    ascii_only = unicodedata.normalize("NFKD", server).encode("ascii", "ignore").decode().lower()
    slug = re.sub("[^a-z0-9]+", "_", ascii_only)[:NAME_LIMIT].strip("_")
    name = f"expand_{slug}" if slug else "expand_result"
    number = 1
    while (numbered := name if number == 1 else f"{name}_{number}") in taken:
        number += 1
    return numbered


def definition(name: str) -> dict[str, Any]:
    """Return the tool as `tools/list` shows it."""
    return {
        "name": name,
        "title": "Expand a kept result",
        "description": "Open a part of a result that was kept and shown as a summary.",
        "inputSchema": {"type": "object", "properties": _PROPERTIES, "required": ["ref"]},
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
        # Results name this tool; a client that hides tools until they are searched for would hide the way back.
        "_meta": {"anthropic/alwaysLoad": True},
    }


def looks_like_ours(name: str, arguments: object) -> bool:
    """Tell whether a call is meant for this tool, where the client has its name from a listing of long ago."""
    match arguments:
        case {"ref": str() as ref} if name.startswith("expand_"):
            return _OUR_ID.fullmatch(ref) is not None
        case _:
            return False


def checked(name: str, arguments: object) -> dict[str, Any]:
    """Return the arguments as the verb `expand_node` takes them. Raises InvalidInput."""
    given = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    if unknown := [key for key in given if key not in {*_PROPERTIES, "max_tokens"}]:
        raise InvalidInput(f"{name} has no argument {one_line(unknown[0], 40)!r}; it takes: {', '.join(_PROPERTIES)}.")
    taken: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    for key, value in taken.items():
        if key != "max_tokens" and not isinstance(value, str):
            raise InvalidInput(f"{key} must be a string.")
    if not taken.get("ref"):
        raise InvalidInput(f"{name} needs 'ref': a ref such as r-9f2c1a7b3d4e or a node such as 003-N4.")
    tokens = taken.pop("max_tokens", MAX_TOKENS)
    if not isinstance(tokens, int | float) or isinstance(tokens, bool) or not 100 <= tokens <= 100_000:
        raise InvalidInput("max_tokens must be a number from 100 to 100,000.")
    return {"target": taken.pop("ref"), **taken, "max_tokens": int(tokens)}
