"""Updates reach subscribers of both protocol generations, whoever made the change."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp import Client, MCPDeprecationWarning, StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp.server.connection import Connection
from mcp.shared.exceptions import MCPError
from mcp.types import ResourceListChangedNotification, ResourceUpdatedNotification

from mcp_memory.core.config import Settings
from mcp_memory.core.types import NewTurn
from mcp_memory.server import updates as updating
from mcp_memory.server.authorization import Grant, use_grant
from mcp_memory.server.mcp_server import MemoryServer
from mcp_memory.server.updates import Updates, uris_of
from mcp_memory.service.memory import open_memory
from tests.server.answers import WAIT, answer_of

LIST = "the list"

WRITER = """
import asyncio, sys
from mcp_memory.core.config import load_settings
from mcp_memory.service.memory import open_memory

async def main():
    async with open_memory(load_settings({}, home=sys.argv[1], embedder="none")) as memory:
        await memory.remember(sys.argv[2], kind="episodic")

asyncio.run(main())
"""


@asynccontextmanager
async def listening(
    server: MemoryServer | StdioServerParameters, era: Any, uris: list[str]
) -> AsyncIterator[MemoryObjectReceiveStream[str]]:
    """Yield the stream of updated addresses (and of LIST) that a client of that generation is told."""
    send, receive = anyio.create_memory_object_stream[str](100)

    async def on_message(message: Any) -> None:
        match message:
            case ResourceUpdatedNotification():
                await send.send(str(message.params.uri))
            case ResourceListChangedNotification():
                await send.send(LIST)
            case _:
                pass

    async with send, receive, Client(server, mode=era, message_handler=on_message) as client:
        if era == "legacy":
            for uri in uris:
                with pytest.warns(MCPDeprecationWarning):
                    await client.subscribe_resource(uri)
            yield receive
            return
        async with (
            client.listen(resource_subscriptions=uris, resources_list_changed=True) as subscription,
            anyio.create_task_group() as tasks,
        ):

            async def forward() -> None:
                async for event in subscription:
                    await send.send(event.uri if isinstance(event, ResourceUpdated) else LIST)

            tasks.start_soon(forward)
            yield receive
            tasks.cancel_scope.cancel()


async def told(stream: MemoryObjectReceiveStream[str], expected: set[str]) -> list[str]:
    """Wait until all of the expected have come, and return everything that came."""
    came: list[str] = []
    with anyio.fail_after(WAIT):
        while not expected <= set(came):
            came.append(await stream.receive())
    return came


async def test_a_write_through_another_client_reaches_a_subscriber(server: MemoryServer, era: Any) -> None:
    watched = ["memory://persona", "memory://status", f"memory://session/s-{era}"]
    async with listening(server, era, watched) as updates, Client(server) as other:
        said = [{"role": "user", "content": f"I like tea in the {era} era."}]
        answer_of(await other.call_tool("record_turns", {"turns": said, "session": "said"}))
        answer_of(await other.call_tool("remember", {"text": f"Likes tea in the {era} era"}))
        await told(updates, {"memory://persona", "memory://status"})
        turns = [{"role": "user", "content": "hello"}]
        answer_of(await other.call_tool("record_turns", {"turns": turns, "session": f"s-{era}"}))
        await told(updates, {f"memory://session/s-{era}"})


@pytest.mark.slow
async def test_a_change_by_another_process_reaches_a_subscriber(
    server: MemoryServer, settings: Settings, era: Any
) -> None:
    async with listening(server, era, ["memory://status"]) as updates:
        await anyio.run_process([sys.executable, "-c", WRITER, str(settings.home), f"Another process, {era}"])
        await told(updates, {"memory://status"})


async def test_a_new_canvas_changes_the_list_and_a_further_step_only_the_canvas(server: MemoryServer, era: Any) -> None:
    watched = ["memory://canvas/active", "memory://persona"]
    async with listening(server, era, watched) as updates, Client(server) as other:
        call = {"tool_name": "bash", "result": f"output of {era}", "task": f"Task of {era}", "session": era}
        answer_of(await other.call_tool("offload_tool_result", call))
        await told(updates, {"memory://canvas/active", LIST})
        answer_of(await other.call_tool("offload_tool_result", {**call, "result": "more", "step": "next"}))
        await told(updates, {"memory://canvas/active"})
        said = [{"role": "user", "content": f"I watch canvases of {era}."}]
        answer_of(await other.call_tool("record_turns", {"turns": said, "session": "said"}))
        answer_of(await other.call_tool("remember", {"text": f"Watches canvases of {era}"}))
        assert LIST not in await told(updates, {"memory://persona"})


async def test_who_unsubscribes_is_told_no_more(server: MemoryServer) -> None:
    async with listening(server, "legacy", ["memory://status"]) as updates:
        (feed,) = server.updates._feeds.values()
        assert [*feed.connections.values()] == [{"memory://status"}]
    seen: list[Any] = []

    async def on_message(message: Any) -> None:
        seen.append(message)

    async with Client(server, mode="legacy", message_handler=on_message) as client:
        with pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource("memory://status")
        with pytest.warns(MCPDeprecationWarning):
            await client.unsubscribe_resource("memory://status")
        async with listening(server, "auto", ["memory://status"]) as updates:
            memory = await server.memory.get()
            await memory.record_turns([NewTurn(role="user", content="unheard")], session="quiet")
            await told(updates, {"memory://status"})
        await client.list_tools()
        assert [message for message in seen if isinstance(message, ResourceUpdatedNotification)] == []


async def test_a_connection_watches_so_many_addresses_and_no_more(
    server: MemoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updating, "_MAX_WATCHED", 2)

    async def subscribe(uri: str) -> None:
        with pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource(uri)

    async with Client(server, mode="legacy") as client:
        for number in (1, 2, 2):
            await subscribe(f"memory://atom/a{number}")
        with pytest.raises(MCPError, match="You watch 2 resources already"):
            await subscribe("memory://atom/a3")
        with pytest.raises(MCPError, match="longer than that of any resource"):
            await subscribe(f"memory://session/{'x' * 1_000}")
        with pytest.warns(MCPDeprecationWarning):
            await client.unsubscribe_resource("memory://atom/a1")
        await subscribe("memory://atom/a3")


async def test_handshake_clients_are_told_that_they_can_subscribe(server: MemoryServer) -> None:
    async with Client(server, mode="legacy") as client:
        assert client.server_capabilities is not None
        resources = client.server_capabilities.resources
        assert resources is not None
        assert (resources.subscribe, resources.list_changed) == (True, True)


async def test_a_connection_that_ended_is_forgotten(server: MemoryServer) -> None:
    async with Client(server, mode="legacy") as client:
        await client.list_tools()
        (feed,) = server.updates._feeds.values()
        assert len(feed.connections) == 1
    assert not feed.has_listeners


async def test_a_client_that_stopped_reading_holds_up_no_other_space(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updating, "_SEND_SECONDS", WAIT)
    send, heard = anyio.create_memory_object_stream[str](10)
    begun = anyio.Event()

    class Stuck:
        async def send_resource_updated(self, _uri: str) -> None:
            begun.set()
            await anyio.sleep_forever()

    async with open_memory(home=home, embedder="none", space="stuck") as memory:
        updates, stuck = Updates("stuck"), Stuck()
        feeds = updates._feeds  # pyright: ignore[reportPrivateUsage]
        with use_grant(Grant(space="stuck")):
            await updates.start_listening(memory)
        feeds["stuck"].connections[cast("Connection", stuck)] = {"memory://status"}
        with use_grant(Grant(space="other")):
            updates.subscribe(lambda event: send.send_nowait(str(event)))
            await updates.start_listening(memory.in_space("other"))
        async with send, heard, anyio.create_task_group() as tasks:
            await tasks.start(updates.watch, memory)
            await memory.remember("The first space has news.", typed=True)
            updates.notice_write()
            with anyio.fail_after(WAIT / 2):
                await begun.wait()
                await memory.in_space("other").remember("So has the other.", typed=True)
                updates.notice_write()
                while "memory://atom/a1" not in await heard.receive():
                    pass
            tasks.cancel_scope.cancel()


def test_topics_map_to_the_addresses_that_are_published() -> None:
    topics = ["persona", "canvas:003", "session:a b", "atom:a57", "ref:r-1", "something:else"]
    assert [uris_of(topic) for topic in topics] == [
        ["memory://persona"],
        ["memory://canvas/003", "memory://canvas/3", "memory://canvas/active"],
        ["memory://session/a%20b"],
        ["memory://atom/a57"],
        ["memory://ref/r-1"],
        [],
    ]
