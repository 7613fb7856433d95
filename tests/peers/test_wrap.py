"""Real servers through `mcp-memory wrap`: the client sees what it sees without, but for what is large.

`server-everything` is the reference server for all that the protocol knows: a conversation that uses each part
of it is held twice, and what the client saw is compared. `server-filesystem` is a server that people use: a tree
of large files is read through the proxy, and every byte comes back.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, types
from mcp.shared.exceptions import MCPError

from mcp_memory.service.memory import open_memory
from scripts.install_peers import EVERYTHING, FILESYSTEM, INSPECTOR, Peer, node_environment
from tests.peers.processes import run_peer

pytestmark = [
    pytest.mark.peers,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),  # the old generation is tested, too
]

WAIT = 30
LISTED_BY_TIME = {"toggle-simulated-logging", "toggle-subscriber-updates"}


def parameters(peer: Peer, home: Path | None, *arguments: str) -> StdioServerParameters:
    """How to start the peer: as it is, or behind the proxy with its memory in `home`."""
    command = [*peer.command, *arguments]
    if home is not None:
        command = [str(Path(sys.executable).with_name("mcp-memory")), "--home", str(home), "wrap", "--", *command]
    env = {"PATH": node_environment()["PATH"], "MCP_MEMORY_EMBEDDER": "none"}
    return StdioServerParameters(command=command[0], args=command[1:], env=env)


class Saw:
    """What a client saw, in the words of the wire."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.told: list[str] = []
        self.heard = anyio.Event()

    def answer(self, what: str, result: Any) -> Any:
        self.answers[what] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return result

    async def on_message(self, message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self.told.append(f"updated {message.params.uri}")
            self.heard.set()

    async def on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.told.append(f"log {params.level}")
        self.heard.set()

    async def wait(self) -> None:
        with anyio.fail_after(WAIT):
            await self.heard.wait()
        self.heard = anyio.Event()


async def sample(_: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    return types.CreateMessageResult(role="assistant", content=types.TextContent(text="Paris"), model="scripted")


async def fill_in(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada", "check": True})


async def roots(_: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///tmp/work", name="work")])


@asynccontextmanager
async def connected(server: StdioServerParameters, saw: Saw) -> AsyncIterator[Client]:
    async with Client(
        server,
        mode="legacy",
        sampling_callback=sample,
        elicitation_callback=fill_in,
        list_roots_callback=roots,
        logging_callback=saw.on_log,
        message_handler=saw.on_message,
    ) as client:
        yield client


async def talk(client: Client, saw: Saw) -> None:
    """Use everything that server-everything has."""
    saw.answers["server"] = client.server_info.model_dump() if client.server_info else None
    saw.answers["capabilities"] = client.server_capabilities.model_dump(exclude_none=True)
    saw.answers["instructions"] = client.instructions
    await client.send_ping()
    tools = saw.answer("tools", await client.list_tools()).tools
    saw.answer("resources", await client.list_resources())
    saw.answer("templates", await client.list_resource_templates())
    saw.answer("prompts", await client.list_prompts())
    for uri in ("demo://resource/static/document/features.md", "demo://resource/dynamic/text/1"):
        contents = (await client.read_resource(uri)).contents
        saw.answers[uri] = [content.uri for content in contents], len(contents[0].model_dump_json()) > 60
    saw.answer("prompt", await client.get_prompt("args-prompt", {"city": "Porto"}))
    ref = types.PromptReference(name="completable-prompt")
    saw.answer("completion", await client.complete(ref, {"name": "department", "value": "E"}))

    calls: dict[str, dict[str, Any]] = {
        "echo": {"message": "héllo \u2028 🛶"},
        "get-annotated-message": {"messageType": "error", "includeImage": True},
        "get-resource-links": {"count": 3},
        "get-structured-content": {"location": "Chicago"},
        "get-sum": {"a": 2, "b": 0.1},
        "get-tiny-image": {},
        "get-roots-list": {},
        "trigger-sampling-request": {"prompt": "Capital of France?", "maxTokens": 20},
        "trigger-elicitation-request": {},
        "no-such-tool": {},
    }
    for name, arguments in calls.items():
        saw.answer(name, await client.call_tool(name, arguments))
    assert {"trigger-sampling-request", "trigger-elicitation-request", "get-roots-list"} <= {t.name for t in tools}

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        saw.told.append(f"progress {progress:g} of {total:g} {message}")

    long = {"duration": 0.4, "steps": 4}
    result = await client.call_tool("trigger-long-running-operation", long, progress_callback=on_progress)
    saw.answer("long", result)
    with anyio.move_on_after(0.3) as cancelled:
        await client.call_tool("trigger-long-running-operation", {"duration": 20, "steps": 2})
    assert cancelled.cancelled_caught
    with pytest.raises(MCPError) as refused:
        await client.read_resource("demo://no-such-thing")
    saw.answers["refused"] = refused.value.error.model_dump()

    await client.subscribe_resource("demo://resource/dynamic/text/7")
    await client.call_tool("toggle-subscriber-updates", {})
    await saw.wait()
    await client.call_tool("toggle-subscriber-updates", {})
    await client.unsubscribe_resource("demo://resource/dynamic/text/7")
    await client.set_logging_level("debug")
    await client.call_tool("toggle-simulated-logging", {})
    await saw.wait()
    saw.told[-1] = saw.told[-1].split()[0]  # its level is drawn by lot


async def test_everything_that_the_protocol_knows_passes(home: Path) -> None:
    direct, through = Saw(), Saw()
    for saw, server in (direct, parameters(EVERYTHING, None)), (through, parameters(EVERYTHING, home)):
        with anyio.fail_after(60):
            async with connected(server, saw) as client:
                await talk(client, saw)
    added = through.answers["tools"]["tools"].pop()
    assert added["name"] == "expand_mcp_servers_everything"
    for tool, wider in zip(direct.answers["tools"]["tools"], through.answers["tools"]["tools"], strict=True):
        if "outputSchema" in tool:
            assert (
                wider["outputSchema"]["anyOf"][0] | {"$schema": tool["outputSchema"]["$schema"]} == tool["outputSchema"]
            )
            wider["outputSchema"] = tool["outputSchema"]
    assert through.answers == direct.answers
    assert set(through.told) == set(direct.told)
    assert len([told for told in through.told if told.startswith("progress")]) == 4
    assert not (home / "memory.db").exists()


async def test_large_files_are_kept_and_every_byte_comes_back(home: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "src").mkdir(parents=True)
    log = "".join(
        f"2026-11-03T10:{n // 60:02}:{n % 60:02} GET /item/{n} {200 if n % 97 else 500}\r\n" for n in range(3000)
    )
    (tree / "access.log").write_text(log, newline="")
    (tree / "small.txt").write_text("only this\n")
    for n in range(300):
        (tree / "src" / f"module_{n:03}.py").write_text(f"value = {n}\n")

    with anyio.fail_after(WAIT):
        async with connected(parameters(FILESYSTEM, home, str(tree)), Saw()) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names[-1] == "expand_secure_filesystem_server"
            small = await client.call_tool("read_text_file", {"path": str(tree / "small.txt")})
            assert (small.content[0].text, small.structured_content) == ("only this\n", {"content": "only this\n"})
            big = await client.call_tool("read_text_file", {"path": str(tree / "access.log")})
            listed = await client.call_tool("list_directory", {"path": str(tree / "src")})
            for result in big, listed:
                assert "expand_secure_filesystem_server" in result.content[0].text
                assert result.structured_content["offloaded"]["text"] == result.content[0].text
                assert len(result.content[0].text) < 6_000
            ref = big.structured_content["offloaded"]["ref"]
            lines = await client.call_tool(names[-1], {"ref": ref, "lines": "98-98"})
            assert "GET /item/97 500" in lines.content[0].text
            found = await client.call_tool(names[-1], {"ref": ref, "grep": "item/2910 "})
            assert "GET /item/2910 500" in found.content[0].text
    async with open_memory(home=home, embedder="none") as memory:
        _, kept = await memory.ref(ref)
        assert kept == log.encode()
        records = await memory.records()
        assert {record.tool_call.partition(" ")[0] for record in records} == {"read_text_file", "list_directory"}


def test_the_inspector_finds_nothing_in_the_listing_that_some_client_cannot_read(home: Path, tmp_path: Path) -> None:
    server = parameters(EVERYTHING, home)
    asked = ["--cli", "--method", "tools/list", "--strict", "--format", "json"]
    run = run_peer(INSPECTOR, *asked, "--", server.command, *server.args, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "expand_mcp_servers_everything" in run.stdout
