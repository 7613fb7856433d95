"""Memory: the verbs, for agents (through `server/`), people (through `cli`) and programs.

`open_memory()` is the one place where the parts are joined. The verbs are async and never block the event
loop; each is one call of the store or a few, and what it returns are the answers of `types`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mcp_memory.config import Settings
from mcp_memory.types import (
    Bundle,
    CanvasView,
    Detail,
    Expansion,
    Forgotten,
    Kind,
    MemoryResults,
    NewTurn,
    Offloaded,
    Persona,
    Recorded,
    Remembered,
    Role,
    StepStatus,
    TurnResults,
)

__all__ = ["Memory", "open_memory"]


class Memory:
    """The verbs over one space of one store. Made by `open_memory`."""

    async def record_turns(self, turns: Sequence[NewTurn], *, session: str | None = None) -> Recorded:
        """Store messages verbatim and index them; nothing is stored twice, recalled text never."""
        ...

    async def remember(
        self, text: str, *, kind: Kind = "persona", entity: str | None = None, relation: str | None = None,
        value: str | None = None, supersedes: Sequence[str] = (), valid_from: str | None = None,
        session: str | None = None,
    ) -> Remembered:
        ...

    async def conversation_search(
        self, query: str, *, session: str | None = None, role: Role | None = None, since: str | None = None,
        until: str | None = None, neighbours: int = 0, limit: int = 10, cursor: str | None = None,
    ) -> TurnResults:
        ...

    async def memory_search(
        self, query: str = "", *, kind: Kind | None = None, scene: str | None = None, entity: str | None = None,
        since: str | None = None, until: str | None = None, as_of: str | None = None, limit: int = 10,
        cursor: str | None = None,
    ) -> MemoryResults:
        ...

    async def recall(self, query: str = "", *, session: str | None = None, budget_tokens: int = 1200) -> Bundle:
        ...

    async def read_persona(self, section: str | None = None) -> Persona:
        ...

    async def offload_tool_result(
        self, tool_name: str, result: str, *, arguments: Any = None, tool_call_id: str | None = None,
        session: str | None = None, task: str | None = None, step: str | None = None,
        after: Sequence[str] = (), status: StepStatus | None = None, summary: str | None = None,
    ) -> Offloaded:
        ...

    async def expand_node(
        self, target: str, *, view: str | None = None, lines: str | None = None, grep: str | None = None,
        json_path: str | None = None, max_tokens: int = 2000, cursor: str | None = None,
    ) -> Expansion:
        ...

    async def fold_canvas(
        self, *, task: str | None = None, nodes: Sequence[str] = (), action: str = "show",
        budget_tokens: int | None = None, session: str | None = None,
    ) -> CanvasView:
        ...

    async def forget(
        self, ids: Sequence[str] = (), *, query: str | None = None, reason: str = "", dry_run: bool | None = None,
        undo: str | None = None,
    ) -> Forgotten:
        ...

    async def status(self) -> dict[str, Any]:
        ...


@asynccontextmanager
async def open_memory(settings: Settings | None = None, **overrides: Any) -> AsyncIterator[Memory]:
    """Open a store and yield its verbs; background work ends before this returns."""
    raise NotImplementedError
    yield
