"""The example that a person pastes into Claude Desktop starts the server, with the real client of the SDK."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from anyio import fail_after
from mcp import Client, StdioServerParameters

EXAMPLE = Path(__file__).resolve().parent.parent / "claude_desktop_config.example.json"


async def test_the_examples_command_starts_a_server_that_greets(tmp_path: Path) -> None:
    [(name, entry)] = json.loads(EXAMPLE.read_text(encoding="utf-8"))["mcpServers"].items()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    server = StdioServerParameters(
        command=entry["command"],
        args=entry["args"],
        env={**entry["env"], "PATH": path, "HOME": str(tmp_path), "MCP_MEMORY_HOME": str(tmp_path / "home")},
    )
    with fail_after(60):
        async with Client(server) as client:
            assert (name, client.server_info.name) == ("memory", "mcp-memory")
            assert "conversation_search" in {tool.name for tool in (await client.list_tools()).tools}
