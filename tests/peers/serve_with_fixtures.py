"""Serves over HTTP the server that ships, with the conformance fixtures added: `--port N`, home from the environment."""

from __future__ import annotations

import sys
import warnings

from conformance_fixtures import add_fixtures
from event_store import MemoryEventStore
from mcp import MCPDeprecationWarning
from mcp.server.mcpserver import MCPServer
from mcp.types import Completion, EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams


def main() -> None:
    warnings.simplefilter("ignore", MCPDeprecationWarning)  # the suites test what is deprecated, too
    mcp = MCPServer("x", version="1", log_level="WARNING")

    @mcp.completion()
    async def c(ref, argument, context):
        return Completion(values=[], total=0, has_more=False)

    async def ok(_ctx, _params):
        return EmptyResult()

    mcp._lowlevel_server.add_request_handler("resources/subscribe", SubscribeRequestParams, ok)
    mcp._lowlevel_server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, ok)
    add_fixtures(mcp)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    mcp.run("streamable-http", port=port, event_store=MemoryEventStore(), retry_interval=100)


if __name__ == "__main__":
    main()
