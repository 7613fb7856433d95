"""Authorization: the rights and the space of a request, and the host names by which the server may be reached.

Each request has a `Grant`, which `current_grant()` returns. Requests over stdio and from clients in this process are
the owner's. A request over HTTP without a grant bypassed authentication, and is refused.

Checking Host and Origin rejects web pages that rebind DNS.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator
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
"""Key of the grant in the scope of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Rights of a request. `who` distinguishes clients; a `space` of None is the configured space.

    `name` is the client's name in the audit log; empty for the user of this machine. `personal` is the space of the
    personal memory to use beside it.
    """

    who: str = ""
    name: str = ""
    space: str | None = None
    personal: str | None = None
    right: Right = "admin"
    is_owner: bool = False

    def allows(self, right: Right) -> bool:
        return includes(self.right, right)


OWNER = Grant(right="operator", is_owner=True)

_current: ContextVar[Grant] = ContextVar("mcp_memory_grant", default=OWNER)


def current_grant() -> Grant:
    """Return the grant of the current request."""
    return _current.get()


@contextmanager
def use_grant(grant: Grant) -> Generator[None]:
    token = _current.set(grant)
    try:
        yield
    finally:
        _current.reset(token)


def grant_of_request(request: Any) -> Grant:
    """Return the grant of a request over HTTP, or the owner's if `request` is None, as on other transports.

    Raises MCPError for a request without a grant, which bypassed authentication.
    """
    if request is None:
        return OWNER
    grant = request.scope.get(GRANT)
    if not isinstance(grant, Grant):
        raise MCPError(wire.INVALID_REQUEST, "This request bypassed authentication. This is a bug in mcp-memory.")
    return grant


def right_needed_by(tool: wire.Tool) -> Right:
    """Return the right that a tool needs: to read, to add, or to delete. Without annotations it is the highest."""
    hints = tool.annotations
    if hints is None:
        return "admin"
    return right_needed(read_only=hints.read_only_hint, destructive=hints.destructive_hint)


def right_needed(*, read_only: bool | None, destructive: bool | None) -> Right:
    if read_only:
        return "read"
    return "write" if destructive is False else "admin"


def allowed_tools(tools: list[wire.Tool], grant: Grant) -> list[wire.Tool]:
    return [tool for tool in tools if grant.allows(right_needed_by(tool))]


# --- the visible status -----------------------------------------------------------------------------

_OF_THE_SPACE = {
    *("version", "schema", "space", "counts", "grown", "offload", "savings"),
    *("pyramid", "tokenizer", "held", "retention", "quotas", "set_aside", "write_problem"),
}


def visible_status(status: dict[str, Any], grant: Grant) -> dict[str, Any]:
    """Return the part of the status a client may see: its space and, with the right admin, the models and their costs.

    Names and sizes of the home, which other spaces are part of, are for the owner only. Who may administer a space may
    pause the models, which all spaces share.
    """
    if grant.is_owner:
        return status
    visible = _OF_THE_SPACE | {"model"} if grant.allows("admin") else _OF_THE_SPACE
    return {name: value for name, value in status.items() if name in visible}


_LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_PLAIN_HOST = re.compile(
    r"null|(?:[a-z][a-z0-9+.-]*://)?(?:\[[0-9a-f:.%]*\]|[^\s:/@\[\]]*)(?::\d{1,5})?", re.IGNORECASE
)
_EVERYWHERE = ("0.0.0.0", "::")


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_plain_host(name: str) -> bool:
    """Return whether a Host or Origin header is a host name with an optional port.

    The SDK accepts anything behind the colon as a port.
    """
    return _PLAIN_HOST.fullmatch(name) is not None


def is_reachable(host: str, allowed: str | None) -> bool:
    """Return whether other machines can reach the server: by its address, or through a proxy with an allowed name.

    Raises InvalidInput for an invalid name in `allowed`.
    """
    return not is_loopback(host) or any(not is_loopback(_without_port(name)) for name in _parse_hosts(allowed))


def is_allowed(name: str, allowed: Collection[str]) -> bool:
    """Return whether a plain Host or Origin header is among the allowed ones; `:*` stands for any port."""
    return name in allowed or f"{name.rpartition(':')[0]}:*" in allowed


def transport_security(host: str, allowed: str | None) -> TransportSecuritySettings:
    """Return the accepted Host and Origin headers: those of the address, and of the names in the setting.

    If the server is bound to all addresses and the setting is empty, its names cannot be known; then the token alone
    protects it, which a page that rebinds DNS does not have. A name without a port is accepted with any port.
    Raises InvalidInput for an invalid name.
    """
    names = _parse_hosts(allowed)
    if host in _EVERYWHERE and not names:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    bound = f"[{host}]" if ":" in host else host
    own = {*_LOCAL_HOSTS, bound} if is_loopback(host) or host in _EVERYWHERE else {bound}
    names_without_port = own | {name for name in names if _without_port(name) == name}
    hosts = sorted(names_without_port | {f"{name}:*" for name in names_without_port} | set(names))
    return TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[f"{scheme}://{name}" for scheme in ("http", "https") for name in hosts]
    )


def _parse_hosts(allowed: str | None) -> list[str]:
    names = [name.strip().lower() for name in (allowed or "").split(",")]
    strange = next((name for name in names if any(c in name for c in "/*@ ")), None)
    if strange is not None:
        raise InvalidInput(
            f"Setting 'allowed_hosts' has {one_line(strange, 60)!r}. It takes names as clients write them, without "
            "http:// and path, such as memory.example.org, 192.168.1.7:8765."
        )
    return [name for name in names if name]


def _without_port(name: str) -> str:
    head, _, port = name.rpartition(":")
    return head if port.isdigit() and (":" not in head or head.endswith("]")) else name
