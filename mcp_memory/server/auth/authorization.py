"""Rights of a client, and its space. Each request has one `Grant`, which `current()` returns.

A request of stdio or of a client in this process is the owner's. One over HTTP without a grant bypassed
authentication, and is refused.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import mcp.types as wire
from mcp.shared.exceptions import MCPError

from mcp_memory.store.values import RIGHTS, Right

GRANT = "mcp_memory.grant"
"""Where the door leaves the grant in the scope of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Rights of a request. `who` distinguishes clients, `space` is None for the configured one."""

    who: str = ""
    space: str | None = None
    right: Right = "admin"
    is_owner: bool = False

    def allows(self, right: Right) -> bool:
        return RIGHTS.index(right) <= RIGHTS.index(self.right)


OWNER = Grant(is_owner=True)

_current: ContextVar[Grant] = ContextVar("mcp_memory_grant", default=OWNER)


def current() -> Grant:
    """Return the grant of the request at work."""
    return _current.get()


@contextmanager
def using(grant: Grant) -> Generator[None]:
    token = _current.set(grant)
    try:
        yield
    finally:
        _current.reset(token)


def of_request(request: Any) -> Grant:
    """Return the grant of what the SDK calls the request of a context: a Starlette one on HTTP, None elsewhere."""
    if request is None:
        return OWNER
    grant = request.scope.get(GRANT)
    if not isinstance(grant, Grant):
        raise MCPError(wire.INVALID_REQUEST, "This request came past the door of the server, which is a fault of ours.")
    return grant


def needed_by(tool: wire.Tool) -> Right:
    """Return the right that a tool needs: to change nothing, to add, or to take away. Unsaid means the worst."""
    said = tool.annotations
    return "admin" if said is None else needed(read_only=said.read_only_hint, destructive=said.destructive_hint)


def needed(*, read_only: bool | None, destructive: bool | None) -> Right:
    if read_only:
        return "read"
    return "write" if destructive is False else "admin"


def shown(tools: list[wire.Tool], grant: Grant) -> list[wire.Tool]:
    return [tool for tool in tools if grant.allows(needed_by(tool))]


# --- what of the status -----------------------------------------------------------------------------

_OF_THE_SPACE = {
    *("version", "space", "counts", "grown", "offload", "savings"),
    *("pyramid", "tokenizer", "held", "retention", "recovered", "set_aside"),
}
_OF_THE_HOME = {"schema", "disk", "embedding", "model"}


def part_of_status(status: dict[str, Any], grant: Grant) -> dict[str, Any]:
    """Return the part of the status a client may see: its space; with the right admin, the home as a whole.

    Names (of other spaces, tokens, clients, of the folder) are for the owner only.
    """
    if grant.is_owner:
        return status
    known = _OF_THE_SPACE | _OF_THE_HOME if grant.allows("admin") else _OF_THE_SPACE
    return {name: value for name, value in status.items() if name in known}
