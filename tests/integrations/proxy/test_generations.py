"""Both protocol generations through the proxy, with the SDK at both ends: the client sees what it sees without."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, types
from mcp.client.subscriptions import ResourceUpdated
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError

from tests.integrations.proxy.sdk_server import build

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

WAIT = 30
ROOT = Path(__file__).parents[3]


async def sample(_: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    return types.CreateMessageResult(role="assistant", content=types.TextContent(text="Paris"), model="scripted")


async def fill_in(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada", "username": "ada", "email": "a@example.com"})


async def roots(_: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///work", name="work")])


def proxied(home: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=[
            "-m",
            "mcp_memory",
            "--home",
            str(home),
            "wrap",
            "--",
            sys.executable,
            "-m",
            "tests.integrations.proxy.sdk_server",
        ],
        env={**os.environ, "MCP_MEMORY_EMBEDDER": "none", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    )


class Saw:
    """What a client saw."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.told: set[str] = set()

    def answer(self, what: str, result: Any) -> None:
        self.answers[what] = result.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.told.add(f"log {params.level} {params.data}")

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.told.add(f"progress {progress:g} of {total:g} {message}")


@asynccontextmanager
async def connected(server: MCPServer | StdioServerParameters, era: str, saw: Saw) -> AsyncIterator[Client]:
    client = Client(
        server,
        mode=era,  # type: ignore[arg-type]
        sampling_callback=sample,
        elicitation_callback=fill_in,
        list_roots_callback=roots,
        logging_callback=saw.on_log,
        log_level="debug",
        cache=None,
    )
    with anyio.fail_after(WAIT):
        async with client:
            yield client


async def talk(client: Client, saw: Saw, era: str) -> None:
    saw.answers["version"] = client.protocol_version
    saw.answers["instructions"] = client.instructions
    saw.answers["capabilities"] = client.server_capabilities.model_dump(exclude_none=True)
    for listing in ("tools", "resources", "resource_templates", "prompts"):
        saw.answer(listing, await getattr(client, f"list_{listing}")())
    for uri in ("test://static-text", "test://static-binary", "test://template/7/data"):
        saw.answer(uri, await client.read_resource(uri))
    saw.answer("prompt", await client.get_prompt("test_prompt_with_image"))
    ref = types.PromptReference(name="test_prompt_with_arguments")
    saw.answer("completion", await client.complete(ref, {"name": "arg1", "value": "a"}))
    asking = (
        ["test_sampling", "test_elicitation"]
        if era == "legacy"
        else [f"test_input_required_result_{what}" for what in ("elicitation", "sampling", "list_roots", "multi_round")]
    )
    arguments = {"test_sampling": {"prompt": "Capital?"}, "test_elicitation": {"message": "Who?"}, "rows": {"count": 3}}
    plain = ["test_multiple_content_types", "test_image_content", "test_audio_content", "test_error_handling", "rows"]
    for tool in [*plain, *asking, "test_tool_with_logging"]:
        saw.answer(tool, await client.call_tool(tool, arguments.get(tool, {})))
    saw.answer("progress", await client.call_tool("test_tool_with_progress", {}, progress_callback=saw.on_progress))
    with pytest.raises(MCPError) as refused:
        await client.read_resource("test://nowhere")
    saw.answers["refused"] = refused.value.error.model_dump()
    with anyio.move_on_after(0.2):
        await client.call_tool("sleep", {})
    saw.answer("cancelled", await client.call_tool("has_slept", {}))
    if era != "legacy":
        async with client.listen(resource_subscriptions=["test://watched-resource"]) as updates:
            await client.call_tool("touch", {})
            assert await anext(updates) == ResourceUpdated(uri="test://watched-resource")


@pytest.mark.slow
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_conversation_is_the_same_with_the_proxy_and_without(home: Path, era: str) -> None:
    direct, through = Saw(), Saw()
    async with connected(build(), era, direct) as client:
        await talk(client, direct, era)
    async with connected(proxied(home), era, through) as client:
        await talk(client, through, era)
    assert through.answers["tools"]["tools"].pop()["name"] == "expand_sdk_server"
    for tool, wider in zip(direct.answers["tools"]["tools"], through.answers["tools"]["tools"], strict=True):
        assert tool["name"] == wider["name"]
        assert ("outputSchema" in tool) == ("outputSchema" in wider)
        wider.pop("outputSchema", None)
        tool.pop("outputSchema", None)
    assert through.answers == direct.answers
    assert through.answers["cancelled"]["structuredContent"] == {"result": True}
    assert through.told == direct.told
    assert through.told >= {"progress 50 of 100 Completed step 50 of 100", "log info Tool processing data"}
