"""By which names the server may be reached, which is what turns away pages that rebind DNS, and who can reach it."""

from __future__ import annotations

import re
from ipaddress import ip_address

from mcp.server.transport_security import TransportSecuritySettings

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line

_HERE = ("127.0.0.1", "localhost", "[::1]")
_PLAIN = re.compile(r"null|(?:[a-z][a-z0-9+.-]*://)?(?:\[[0-9a-f:.%]*\]|[^\s:/@\[\]]*)(?::\d{1,5})?", re.IGNORECASE)
_EVERYWHERE = ("0.0.0.0", "::")


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_plain(name: str) -> bool:
    """Tell whether a Host or an Origin is a name with at most a port, as all are that programs write.

    The SDK takes whatever stands behind the colon of a name for its port.
    """
    return _PLAIN.fullmatch(name) is not None


def is_reachable(host: str, allowed: str | None) -> bool:
    """Tell whether others than this machine can reach the server: by its address, or by a name that is a proxy's."""
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
