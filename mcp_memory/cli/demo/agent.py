"""The clients that the demo plays: an agent of the real server, whose own words are prepared (`inputs`), and the hooks
of Claude Code.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import Implementation, RequestParamsMeta, TextResourceContents

from mcp_memory.cli.demo.inputs import DemoStep, DemoTask, Replies
from mcp_memory.server.tools import REPLACED

_PAGE = "memory://persona"
_PAGE_S = 60.0
_HOOK_RUNS = 3

_SAYS = {"offload_tool_result": cast("RequestParamsMeta", {REPLACED: True})}
"""What the program says beside a call: it puts the answer in the place of the result, so that counts as saved."""

_NEXT = re.compile(r"More: (\S+)")
"""Names the next page, behind the contents of one."""


@asynccontextmanager
async def connected(home: Path, name: str) -> AsyncGenerator[DemoAgent]:
    """Start a server on the home as a client of this name does, and yield the agent that uses it."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "mcp_memory", "--home", str(home), "serve"])
    async with Client(server, client_info=Implementation(name=name, version="1")) as client:
        yield DemoAgent(client)


@asynccontextmanager
async def hooked(home: Path) -> AsyncGenerator[HookedClient]:
    """Yield a Claude Code with hooks on the home; its conversations end with it, and with them the hook daemon."""
    client = HookedClient(home)
    try:
        yield client
    finally:
        with anyio.CancelScope(shield=True):
            await client.end()


class HookedClient:
    """Runs the hooks of conversations as Claude Code does."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._conversations: list[str] = []

    async def start(self, conversation: str) -> str:
        """Start a conversation, and return what the hook puts before the model; empty if nothing."""
        self._conversations.append(conversation)
        return await self._answer("SessionStart", conversation, source="startup")

    async def prompt(self, conversation: str, text: str) -> str:
        """Return what the hook adds to a prompt; empty if nothing."""
        return await self._answer("UserPromptSubmit", conversation, prompt=text)

    async def end(self) -> None:
        """End all conversations."""
        for conversation in self._conversations:
            await self._run("SessionEnd", conversation, reason="other")

    async def _answer(self, event: str, conversation: str, **given: str) -> str:
        """Return the answer of a hook. It may have given up while its daemon started: then it is run again."""
        for _ in range(_HOOK_RUNS):
            if printed := await self._run(event, conversation, **given):
                return json.loads(printed)["hookSpecificOutput"]["additionalContext"]
        return ""

    async def _run(self, event: str, conversation: str, **given: str) -> bytes:
        command = [sys.executable, "-m", "mcp_memory", "--home", str(self._home), "hook", event]
        told = json.dumps({"session_id": conversation, "hook_event_name": event, **given})
        return (await anyio.run_process(command, input=told.encode())).stdout


@dataclass(frozen=True, slots=True)
class DemoResult:
    """An offloaded result: what went in, and what the server answered."""

    step: DemoStep
    answer: dict[str, Any]


class DemoAgent:
    """Calls tools and reads resources."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._replies = Replies()

    @property
    def protocol(self) -> str:
        """The version of the protocol that was agreed on."""
        return self._client.protocol_version

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the structured answer of a tool."""
        given = {name: value for name, value in arguments.items() if value is not None}
        result = await self._client.call_tool(tool, given, meta=_SAYS.get(tool))
        if result.is_error or result.structured_content is None:
            raise RuntimeError(f"{tool} failed: {result.content}")
        return result.structured_content

    async def record(self, session: str, turns: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """Record turns, and wait until the server announces the page about the user that it writes from them."""
        async with self._client.listen(resource_subscriptions=[_PAGE]) as updates:
            answer = await self.call("record_turns", session=session, turns=turns)
            with anyio.fail_after(_PAGE_S):
                await anext(aiter(updates))
        return answer

    async def read(self, uri: str) -> bytes:
        """Return the bytes of a resource, which comes in pages."""
        whole, address = b"", uri
        while address:
            page, *rest = (await self._client.read_resource(address)).contents
            whole += page.text.encode() if isinstance(page, TextResourceContents) else base64.b64decode(page.blob)
            address = next((found[1] for item in rest if (found := _NEXT.match(getattr(item, "text", "")))), "")
        return whole

    async def distil(self) -> AsyncIterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Answer the questions of `distill`; yield each with what the server made of the answer.

        Ends with the first question to which no answer was written, or whose answer is not taken.
        """
        asked = await self.call("distill")
        while (question := asked.get("next")) is not None:
            reply = self._replies.to(question["stage"], question["question"])
            if reply is None:
                return
            asked = await self.call("distill", work_id=question["work_id"], reply=reply)
            yield question, asked
            if asked.get("next") is not None and asked["next"]["work_id"] == question["work_id"]:
                return

    async def offload(self, task: DemoTask) -> AsyncIterator[DemoResult]:
        """Hand each result of a task to `offload_tool_result`, with its place on the canvas."""
        nodes: dict[str, str] = {}
        for step in task.steps:
            answer = await self.call(
                "offload_tool_result",
                tool_name=step.tool,
                result=step.result,
                arguments=step.arguments,
                session=task.session,
                task=task.goal,
                step=step.step,
                after=[nodes[key] for key in step.after] or None,
                status=step.status,
                summary=step.summary,
            )
            nodes[step.key] = answer["node"]
            yield DemoResult(step, answer)
