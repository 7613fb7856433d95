"""The skill over MCP: listed, described and read as the extension says, and as the plugin has it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS, Request, TextResourceContents
from pydantic import BaseModel, ConfigDict

from mcp_memory.server.mcp_server import MemoryServer

URI = "skill://memory/SKILL.md"


class Answer(BaseModel):
    model_config = ConfigDict(extra="allow")


async def ask(client: Client, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request that the SDK does not know."""
    request = Request[dict[str, Any], str](method=method, params=params)
    return (await client.session.send_request(request, Answer)).model_dump()


async def test_a_client_lists_the_skill_checks_it_and_reads_it(server: MemoryServer, era: Any) -> None:
    async with Client(server, mode=era) as client:
        declared = client.server_capabilities.extensions or {}  # the older generation has none
        assert ("io.modelcontextprotocol/skills" in declared) == (era != "legacy")
        listed = await ask(client, "skills/list", {})
        [content] = (await client.read_resource(URI)).contents
        assert isinstance(content, TextResourceContents)
        text = content.text.encode()
        file = {"uri": URI, "digest": f"sha256:{hashlib.sha256(text).hexdigest()}", "size": len(text)}
        skill = {"uri": URI, "frontmatter": yaml.safe_load(content.text.split("---")[1]), "resources": [file]}
        assert listed["skills"] == [skill]
        assert {"ttlMs", "cacheScope"} <= set(listed)
        assert (await ask(client, "skills/get", {"uri": URI}))["skill"] == skill
        assert content.mime_type == "text/markdown"
    plugin = Path(__file__).resolve().parents[2] / "plugin" / "skills" / skill["frontmatter"]["name"] / "SKILL.md"
    assert plugin.read_text(encoding="utf-8") == content.text


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        (
            "skills/get",
            {"uri": "skill://bees/SKILL.md"},
            "There is no skill .* The one here is skill://memory/SKILL.md",
        ),
        ("skills/list", {"cursor": "2"}, "Invalid cursor"),
    ],
)
async def test_what_is_not_there_is_refused(
    server: MemoryServer, era: Any, method: str, params: dict[str, Any], message: str
) -> None:
    async with Client(server, mode=era) as client:
        with pytest.raises(MCPError, match=message) as refused:
            await ask(client, method, params)
    assert refused.value.error.code == INVALID_PARAMS
