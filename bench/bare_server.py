"""Serves one trivial tool with the SDK: the floor of the start-up, memory and load figures.

It serves over stdio, or over HTTP if a port is given.
"""

from __future__ import annotations

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("bare")


@server.tool()
def conversation_search(query: str) -> str:
    """Return the query."""
    return query


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
