"""The floor of the start-up and memory figures: a server that is the SDK and one trivial tool."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("bare")


@server.tool()
def conversation_search(query: str) -> str:
    """Return the query."""
    return query


if __name__ == "__main__":
    server.run("stdio")
