"""The daemon: one process that keeps a memory open, and answers hooks and the MCP clients that use stdio.

    process  its lock, its log, its new start while nobody asks
    daemon   answers hooks and clients
    bridge   `mcp-memory serve` on stdio: passes a client's lines on to the daemon, or to a server of its own

Each home and settings key has one daemon (`integrations.hooks.daemon_files`), so the models, the store and its caches
are in memory once, however many clients run.
"""
