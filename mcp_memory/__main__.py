"""`python -m mcp_memory` is the command `mcp-memory`."""

from mcp_memory.cli.main import main

if __name__ == "__main__":
    main()
