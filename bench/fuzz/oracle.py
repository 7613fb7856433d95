"""Checks of any answer, log and home, whatever was requested."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import mcp.types as wire
from mcp.shared.exceptions import MCPError

from mcp_memory.service.memory import open_memory

_INSIDE = re.compile(r"Internal error|Traceback|Error executing|pydantic|apsw|sqlite3|NoneType|object has no attribute")
_OF_OURS = re.compile(r'File "[^"]*mcp_memory/([^"]+)", line (\d+), in (\w+)')
_LONGEST_ERROR = 2_000


def of_answer(tool: str, answer: wire.CallToolResult, schema: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the problems of a tool's answer."""
    text = "\n".join(block.text for block in answer.content if isinstance(block, wire.TextContent))
    if answer.is_error:
        yield from _of_sentence(tool, text)
        return
    if not text.strip():
        yield f"{tool} answers nothing"
    if schema is not None:
        try:
            jsonschema.validate(answer.structured_content, schema)
        except jsonschema.ValidationError as error:
            yield f"{tool} answers against its schema: {error.json_path} {error.message[:200]}"


def _of_sentence(who: str, text: str) -> Iterator[str]:
    if found := _INSIDE.search(text):
        yield f"{who} tells of its inside: {found[0]}: {text[:300]}"
    elif not text.strip().endswith((".", "?", ")")):
        yield f"{who} breaks off: {text[-200:]}"
    elif len(text) > _LONGEST_ERROR:
        yield f"{who} says what is wrong in {len(text)} characters"


def of_error(who: str, error: MCPError) -> Iterator[str]:
    """Yield the problems of a protocol error."""
    if error.error.code == wire.INTERNAL_ERROR:
        yield f"{who}: internal error: {error.error.message[:300]}"
    elif found := _INSIDE.search(error.error.message):
        yield f"{who} tells of its inside: {found[0]}: {error.error.message[:300]}"


def log_troubles(text: str) -> Iterator[str]:
    """Yield each traceback in a log, by its innermost line of this package, and each line that reports an error."""
    for part in text.split("Traceback (most recent call last):")[1:]:
        ours = _OF_OURS.findall(part)
        at = f"{ours[-1][0]}:{ours[-1][1]} in {ours[-1][2]}" if ours else "nowhere of ours"
        error = next((line for line in part.splitlines() if line[:1].isalpha()), "")
        if not error.startswith("mcp.server."):  # what the SDK makes of it, once more
            yield f"traceback in the log at {at}: {error[:300]}"
    for line in text.splitlines():
        if (" ERROR " in line or " CRITICAL " in line) and "raised an unexpected exception" not in line:
            yield f"error in the log: {re.sub(r'^[-0-9:, ]+', '', line)[:300]}"


async def home_troubles(home: Path) -> list[str]:
    """Return the problems that `doctor` and `verify` report about a home."""
    async with open_memory(home=home, llm="none") as memory:
        found = [*await memory.problems(), *(await memory.verify()).problems]
        json.dumps(found)
        return [f"doctor: {problem}" for problem in found]
