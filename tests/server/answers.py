"""Taking apart what the server answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcp.types import CallToolResult, TextContent

WAIT = 30  # seconds: more than anything here takes on a busy machine, less than a hang

HANDSHAKE: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
INITIALIZE: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
HEADERS = {"Accept": "application/json, text/event-stream"}


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def error_of(result: CallToolResult) -> str:
    assert result.is_error, text_of(result)
    return text_of(result)


def answer_of(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def files_under(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
