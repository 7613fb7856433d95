"""Write the definitions of the tools, which the server reads instead of building them, from the tools' signatures.

python scripts/write_tool_definitions.py
"""

from __future__ import annotations

from mcp_memory.server.mcp_server import DEFINITIONS_FILE, definitions_file
from mcp_memory.server.tools import TOOLS

if __name__ == "__main__":
    DEFINITIONS_FILE.write_bytes(definitions_file(tool.definition for tool in TOOLS))
