"""The definitions of the tools as `tools/list` gives them, from the file beside this module.

Building them from the signatures in `tools` takes 0.1 s, and importing those 0.2 s more, while a client waits.
`scripts/write_tool_definitions.py` writes the file; a test holds it byte-equal to what the signatures say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import mcp.types as wire

FILE = Path(__file__).with_suffix(".json")


def read_definitions() -> tuple[wire.Tool, ...]:
    return tuple(map(wire.Tool.model_validate, json.loads(FILE.read_bytes())))


def as_file(definitions: Iterable[wire.Tool]) -> bytes:
    """Return the content of the file for these definitions."""
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in definitions]
    return (json.dumps(listed, ensure_ascii=False, indent=1) + "\n").encode()
