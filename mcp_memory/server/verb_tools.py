"""The tools by which hooks, commands, `wrap` and `import` on other machines call verbs (`service.remote.verbs`).

They are not listed: no model is offered them. Their answers are structured content alone, since a program reads them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import mcp.types as wire
from pydantic import TypeAdapter

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.server_address import VERB_PREFIX
from mcp_memory.server.arguments import parse_arguments
from mcp_memory.server.authorization import current_grant, visible_status
from mcp_memory.server.tools import Tool
from mcp_memory.service.jsonrpc import sendable
from mcp_memory.service.remote import verbs

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory


class VerbTool(Tool):
    """A verb as a tool."""

    @property
    def name(self) -> str:
        return f"{VERB_PREFIX}{self.run.__name__}"

    async def call(
        self, memory: Callable[[], Awaitable[Memory]], arguments: dict[str, Any], meta: Mapping[str, Any]
    ) -> wire.CallToolResult:
        parsed = parse_arguments(self.name, self.model, arguments)
        answer = await verbs.run(await memory(), self.run.__name__, parsed)
        if self.run is verbs.status:
            answer = _status_for_client(answer)
        return await anyio.to_thread.run_sync(self._result, answer)

    def _result(self, answer: Any) -> wire.CallToolResult:
        adapter = TypeAdapter[Any](verbs.answer_type(self.run))
        value = sendable(adapter.dump_python(answer, mode="json"))
        return wire.CallToolResult(content=[], structured_content={"result": value})


def _status_for_client(status: dict[str, Any]) -> dict[str, Any]:
    """Return the visible part of a status, with what the client may do and the time of this server."""
    grant = current_grant()
    access = {"right": grant.right, "space": grant.space, "now": datetime.now(UTC).isoformat()}
    return {**visible_status(status, grant), "access": access}


def failure(error: McpMemoryError, text: str) -> wire.CallToolResult:
    """Return an error as the answer to a verb: a program raises it again, by its name."""
    return wire.CallToolResult(
        content=[wire.TextContent(text=text)], structured_content={"error": type(error).__name__}, is_error=True
    )


@cache
def verb_tools() -> Mapping[str, VerbTool]:
    """Return the tools by name."""
    tools = [
        VerbTool(run=run, title=name, right=right, read_only=right == "read", destructive=right == "admin")
        for name, (run, right) in verbs.VERBS.items()
    ]
    return {tool.name: tool for tool in tools}
