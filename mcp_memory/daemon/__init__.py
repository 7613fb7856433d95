"""The daemon: a process that keeps a memory open for hooks and for the MCP clients that use stdio.

    process  starts it, locks it, logs, and starts it afresh after a rest
    daemon   its connections: clients, whose MCP server it is, and hooks
    hooks    answers to hooks
    bridge   `mcp-memory serve` on stdio: connects a client with the daemon, or with a server of its own

Each home and settings key has one daemon (`integrations.hooks.daemon_files`), so the models, the store and its caches
are in memory once, however many clients run.
"""
