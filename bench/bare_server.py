"""The floor of the start-up, memory and load figures: a server that is the SDK and one trivial tool.

Without an argument it serves over stdio, with a port over HTTP.
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
