"""Serves the server that ships over HTTP, with the conformance fixtures added.

    python serve_with_fixtures.py --port N          (the home comes from MCP_MEMORY_HOME)

It is the same object as `mcp-memory serve --transport http` runs. Only the event store is added: the scenario of
a stream that is cut and resumed needs one.
"""

from __future__ import annotations

import argparse
import warnings

import anyio
from conformance_fixtures import add_fixtures
from event_store import MemoryEventStore
from mcp import MCPDeprecationWarning

from mcp_memory.config import load_settings
from mcp_memory.server.app import build_server


async def serve(port: int) -> None:
    server = build_server(load_settings())
    add_fixtures(server)
    async with server.running():
        await server.run_streamable_http_async(port=port, event_store=MemoryEventStore(), retry_interval=100)


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)  # the suites test what is deprecated, too
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    anyio.run(serve, options.parse_args().port)
