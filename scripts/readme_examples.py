"""Plays the examples of the README's tools on the real tools, and compares what it says or writes it anew.

An example is a block between tildes whose first line is a call, `tool {arguments}`, and whose rest is the answer as an
agent reads it. They are one story: each is played on what those before it left, in a fresh memory whose clock goes on a
minute with each call, so that every answer comes out the same. `<fixtures/…>` in an argument stands for the text of
that file. An answer that ends with a line `…` is shown as far as that line.

    python scripts/readme_examples.py            compare; ends with 1 and a diff where they differ
    python scripts/readme_examples.py --write    write the answers into the README
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from mcp_memory import open_memory
from mcp_memory.server.tools import TOOLS
from mcp_memory.testing import FixedClock

__all__ = ["main", "played"]

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"

BLOCK = re.compile(r"(?<=^~~~text\n)([a-z_]+) (\{[^\n]*\})\n(.*?)(?=^~~~$)", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"<(fixtures/[\w./-]+)>")


async def played(text: str) -> str:
    """Return the text with the answers that its examples really get."""
    tools = {tool.name: tool for tool in TOOLS}
    clock = FixedClock(datetime(2026, 5, 7, 9, 0, tzinfo=UTC))
    with tempfile.TemporaryDirectory() as home:
        async with open_memory(home=home, now=clock) as memory:
            told = memory.under("2026-05-07-porto")

            async def opened() -> Any:
                return told

            parts: list[str] = []
            end = 0
            for block in BLOCK.finditer(text):
                name, given = block[1], _filled(json.loads(block[2]))
                clock.advance(minutes=1)
                answer = await tools[name].call(opened, given)
                (content,) = answer.content
                said = str(getattr(content, "text", "")).replace(home, "~/.mcp-memory").strip()
                parts += [text[end : block.start(3)], _as_far(block[3].splitlines(), said.splitlines())]
                end = block.end(3)
    return "".join([*parts, text[end:]])


def _as_far(shown: list[str], said: list[str]) -> str:
    """Return what was said, cut where the README cuts it."""
    if shown[-1:] == ["…"] and len(said) >= len(shown):
        said = [*said[: len(shown) - 1], "…"]
    return "".join(f"{line}\n" for line in said)


def _filled(value: Any) -> Any:
    """Return the arguments with files in place of their names."""
    match value:
        case str():
            return FILE.sub(lambda found: (ROOT / found[1]).read_text(encoding="utf-8"), value)
        case dict():
            return {key: _filled(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [_filled(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def main() -> int:
    os.environ["TZ"] = "UTC"
    if hasattr(time, "tzset"):
        time.tzset()
    said = README.read_text(encoding="utf-8")
    real = anyio.run(played, said)
    if "--write" in sys.argv[1:]:
        README.write_text(real, encoding="utf-8")
        return 0
    told, is_so = said.splitlines(keepends=True), real.splitlines(keepends=True)
    sys.stdout.writelines(difflib.unified_diff(told, is_so, "README.md", "as it is", n=1))
    return int(said != real)


if __name__ == "__main__":
    sys.exit(main())
