"""Memory: the API for agents (through `server/`), people (through `cli`) and programs.

`open_memory()` is the one place where the parts are joined. The verbs are async and never block the event loop: each
runs in a worker thread, which finishes even when its caller is cancelled, so a write lands whole. They return answers
of `core.types` and raise errors of `core.errors`.
"""

from mcp_memory.service.memory.opening import Memory, open_memory

__all__ = ["Memory", "open_memory"]
