"""The agent that the demo plays: a real client of the real server, whose own words are prepared (`inputs`)."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mcp import Client, StdioServerParameters
from mcp.types import Implementation, RequestParamsMeta, TextResourceContents

from mcp_memory.cli.demo.inputs import DemoStep, DemoTask, Replies
from mcp_memory.server.tools import REPLACED

__all__ = ["DemoAgent", "DemoResult", "connected"]

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
