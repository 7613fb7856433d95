"""Where the desktop extension starts: what the host filled in, then the server over stdio.

An option that was left empty arrives as an empty text, from some hosts as the hole itself. Both mean that nothing was
said, and `config.toml` in the home or the default is in force.
"""

import os
import sys

HOLE = "${user_config."

for name, value in list(os.environ.items()):
    if name.startswith("MCP_MEMORY_") and (not value or HOLE in value):
        del os.environ[name]

if __name__ == "__main__":
    from mcp_memory.cli.main import main

    sys.argv[1:] = sys.argv[1:] or ["serve"]
    main()
