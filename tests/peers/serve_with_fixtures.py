"""Runs what `mcp-memory serve --transport http --port 0` runs, with the conformance fixtures added to the server.

With `stdio` as its argument it is the server that a client starts.

The event store is added as well: the scenario of a stream that is cut and resumed needs one.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial

from conformance_fixtures import add_fixtures
from event_store import MemoryEventStore
from mcp import MCPDeprecationWarning

from mcp_memory.core.config import Settings, load_settings
from mcp_memory.server import transports
from mcp_memory.server.mcp_server import MemoryServer


def build_with_fixtures(settings: Settings) -> MemoryServer:
    server = MemoryServer(settings)
    add_fixtures(server)
    server.streamable_http_app = partial(  # type: ignore[method-assign]
        server.streamable_http_app, event_store=MemoryEventStore(), retry_interval=100
    )
    return server


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)  # the suites test what is deprecated, too
    transports.MemoryServer = build_with_fixtures  # type: ignore[assignment,misc]
    transports.serve(load_settings(), *sys.argv[1:2] or ["http"], port=0, needs_token=False)
