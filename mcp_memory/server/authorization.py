"""Authorization: the rights and the space of a client, and the host names by which the server may be reached.

Each request has one `Grant`, which `current()` returns. A request of stdio or of a client in this process is the
owner's. One over HTTP without a grant bypassed authentication, and is refused.

Checking Host and Origin turns away web pages that rebind DNS.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import mcp.types as wire
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.rights import Right, includes
from mcp_memory.core.text import one_line

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
        return includes(self.right, right)


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
    *("pyramid", "tokenizer", "held", "retention", "set_aside"),
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


_HERE = ("127.0.0.1", "localhost", "[::1]")
_PLAIN = re.compile(r"null|(?:[a-z][a-z0-9+.-]*://)?(?:\[[0-9a-f:.%]*\]|[^\s:/@\[\]]*)(?::\d{1,5})?", re.IGNORECASE)
_EVERYWHERE = ("0.0.0.0", "::")


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_plain(name: str) -> bool:
    """Return whether a Host or an Origin is a name with at most a port, as all are that programs write.

    The SDK takes whatever stands behind the colon of a name for its port.
    """
    return _PLAIN.fullmatch(name) is not None


def is_reachable(host: str, allowed: str | None) -> bool:
    """Return whether others than this machine can reach the server: by its address, or by a name that is a proxy's."""
    return not is_loopback(host) or any(not is_loopback(_bare(name)) for name in _names(allowed))


def security(host: str, allowed: str | None) -> TransportSecuritySettings:
    """Return which Host and Origin headers are taken: those of the address, and of the names in the setting.

    Bound to every address, with no names set, the names a client may use cannot be known; there the token alone
    decides, which a page that rebinds DNS does not have. A name without a port is taken with any port.
    """
    names = _names(allowed)
    if host in _EVERYWHERE and not names:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    bound = f"[{host}]" if ":" in host else host
    own = {*_HERE, bound} if is_loopback(host) or host in _EVERYWHERE else {bound}
    known = own | {name for name in names if _bare(name) == name}
    hosts = sorted(known | {f"{name}:*" for name in known} | set(names))
    return TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[f"{scheme}://{name}" for scheme in ("http", "https") for name in hosts]
    )


def _names(allowed: str | None) -> list[str]:
    names = [name.strip().lower() for name in (allowed or "").split(",")]
    strange = next((name for name in names if any(c in name for c in "/*@ ")), None)
    if strange is not None:
        raise InvalidInput(
            f"Setting 'allowed_hosts' has {one_line(strange, 60)!r}. It takes names as clients write them, without "
            "http:// and path, such as memory.example.org, 192.168.1.7:8765."
        )
    return [name for name in names if name]


def _bare(name: str) -> str:
    """Return a name without its port."""
    head, _, port = name.rpartition(":")
    return head if port.isdigit() and (":" not in head or head.endswith("]")) else name
