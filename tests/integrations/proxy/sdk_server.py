"""A server with all that the SDK can do, in both protocol generations: the conformance fixtures, and what they lack."""

from __future__ import annotations

import warnings

import anyio
from mcp import MCPDeprecationWarning
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import Completion

from tests.peers.conformance_fixtures import add_fixtures


def build() -> MCPServer:
    server = MCPServer("sdk server", version="1", instructions="Ask away.")
    add_fixtures(server)

    @server.tool()
    def rows(count: int) -> list[dict[str, int]]:
        """Rows of a table."""
        return [{"row": n, "square": n * n} for n in range(count)]

    @server.tool()
    async def touch(ctx: Context) -> str:
        """Changes what is watched."""
        await ctx.notify_resource_updated("test://watched-resource")
        return "touched"

    @server.tool()
    async def sleep(ctx: Context) -> str:
        """Sleeps until it is cancelled, and says so."""
        try:
            await anyio.sleep_forever()
        finally:
            slept.append(True)
        raise AssertionError

    slept: list[bool] = []

    @server.tool()
    def has_slept() -> bool:
        """Tells whether a sleep was cancelled."""
        return bool(slept)

    @server.completion()
    async def complete(ref: object, argument: object, context: object) -> Completion:
        return Completion(values=["alpha", "beta"], total=2, has_more=False)

    return server


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    build().run("stdio")
