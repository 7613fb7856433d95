"""Requests to a server over HTTP: an MCP tool call each, with the token of this machine.

Standard library only: a hook that has to ask the server itself has a second for everything.

A request that fails raises ServerAway if a later one may succeed (no connection, a time limit, an error of the server),
and ServerRefused if there is no token, the server does not accept it (the token, its rights, an older version), or
something has to be changed first (a certificate, a proxy, the names of the server).
After a time limit the server is left alone for half a minute: each request fails at once, so that nobody waits again
and again.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit

from mcp_memory import __version__
from mcp_memory.core import errors
from mcp_memory.core.errors import InvalidInput, ServerAway, ServerRefused, StoreUnavailable
from mcp_memory.core.server_address import VERB_PREFIX, ServerAccess, ServerAddress

TIMEOUT_S = 30.0
"""Seconds that a request may take."""
MAX_BODY = 64 * 2**20
"""Bytes of a request that a server accepts."""

_CONNECTING_S = 5.0
_REST_S = 30.0
_IDLE_S = 60.0
"""Seconds for which an unused connection is kept: less than a server keeps it."""
_LEAST_S = 0.01
_TOO_MANY, _MISDIRECTED = 429, 421
_GATEWAY = (502, 503, 504)
"""With these a proxy says that it reaches no server, and a server says why in JSON."""
_CERTIFICATES = "SSL_CERT_FILE cannot be used"
_MAX_ANSWER = 256 * 2**20
_META = "io.modelcontextprotocol/"
_PROTOCOL = "2026-07-28"
_ENVELOPE = {
    f"{_META}protocolVersion": _PROTOCOL,
    f"{_META}clientInfo": {"name": "mcp-memory", "version": __version__},
    f"{_META}clientCapabilities": {},
}
_STALE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError)
_ERRORS = {kind.__name__: kind for kind in (errors.InvalidInput, errors.NotFound, errors.Refused, errors.Damaged)}
"""The errors that mean the same on both sides; any other is a failure of the server."""


class ServerConnection:
    """The connections to a server, kept open between requests. Safe to call from several threads."""

    def __init__(self, access: ServerAccess) -> None:
        self.access = access
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        self._lock = threading.Lock()
        self._rests_until = 0.0

    def call(self, verb: str, arguments: Mapping[str, Any], *, timeout: float = TIMEOUT_S) -> Any:
        """Call a verb with JSON arguments and return its JSON answer. Blocks for at most about `timeout` seconds.

        Raises the server's own errors, and ServerAway and ServerRefused as the module says.
        """
        if time.monotonic() < self._rests_until:
            text = f"{self._name} did not answer a moment ago; it is asked again in half a minute."
            raise ServerAway(text, "the server did not answer a moment ago")
        name = f"{VERB_PREFIX}{verb}"
        params = {"name": name, "arguments": arguments, "_meta": _ENVELOPE}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        body = json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")
        if len(body) > MAX_BODY:
            raise InvalidInput(f"This is larger than {MAX_BODY // 2**20} MB, the most that a server accepts at once.")
        try:
            status, kind, answer = self._exchange(body, name, timeout)
        except TimeoutError:
            self._rests_until = time.monotonic() + _REST_S
            raise ServerAway(f"{self._name} did not answer in time.", "the server did not answer in time") from None
        except ssl.SSLCertVerificationError as error:
            text = (
                f"The certificate of the server {self.access.address.url} is not trusted: "
                f"{error.verify_message.rstrip('.')}. If an authority of your own signed it, set SSL_CERT_FILE to a "
                "file with the certificate of that authority."
            )
            raise ServerRefused(text, "the server's certificate is not trusted") from None
        except (OSError, http.client.HTTPException) as error:
            text = f"{self._name} cannot be reached{self._through}: {_reason(error)}."
            raise ServerAway(text, "the server cannot be reached") from None
        return self._result(verb, status, kind, answer)

    def close(self) -> None:
        """Close the unused connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    @property
    def _name(self) -> str:
        return f"The server {self.access.address.url}"

    @property
    def _through(self) -> str:
        proxy = _proxy_for(self.access.address)
        return f" through the proxy {proxy[0]}:{proxy[1]} of HTTPS_PROXY" if proxy else ""

    # --- requests -----------------------------------------------------------------------------------

    def _exchange(self, body: bytes, name: str, timeout: float) -> tuple[int, str, bytes]:
        """Send a request, and return the status, the content type and the body of its answer.

        A server may close an unused connection at any time; then the request is sent once more, on a new one. What it
        stores is recognised if the first one was processed. A request over the token's rate waits as the server says.
        """
        headers = {
            **self.access.headers(),
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": _PROTOCOL,
            "Mcp-Method": "tools/call",
            "Mcp-Name": name,
            "User-Agent": f"mcp-memory/{__version__}",
        }
        deadline = time.monotonic() + timeout
        while True:
            response, answer = self._send_anew(body, headers, deadline)
            wait = response.headers.get("Retry-After", "")
            if response.status != _TOO_MANY or not wait.isdigit() or time.monotonic() + int(wait) > deadline:
                return response.status, response.headers.get_content_type(), answer
            time.sleep(int(wait))

    def _send_anew(
        self, body: bytes, headers: Mapping[str, str], deadline: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Send a request on an unused connection or, if that was closed meanwhile or there is none, on a new one."""
        connection = self._take_idle()
        if connection is not None:
            with suppress(*_STALE):
                return self._send(connection, body, headers, deadline)
        left = deadline - time.monotonic()
        return self._send(self._connect(max(_LEAST_S, min(left, _CONNECTING_S))), body, headers, deadline)

    def _send(
        self, connection: http.client.HTTPConnection, body: bytes, headers: Mapping[str, str], deadline: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        wire = cast("socket.socket", connection.sock)
        try:
            wire.settimeout(max(_LEAST_S, deadline - time.monotonic()))
            connection.request("POST", self.access.target, body, dict(headers))
            response = connection.getresponse()
            answer = bytearray()
            while chunk := response.read(2**16):
                answer += chunk
                if len(answer) > _MAX_ANSWER:
                    text = f"{self._name} answered with more than {_MAX_ANSWER // 2**20} MB."
                    raise ServerAway(text, "the server's answer is too long")
                if not response.isclosed():
                    wire.settimeout(max(_LEAST_S, deadline - time.monotonic()))
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append((connection, time.time()))
        return response, bytes(answer)

    def _take_idle(self) -> http.client.HTTPConnection | None:
        with self._lock:
            while self._idle:
                connection, since = self._idle.pop()
                if 0 <= time.time() - since < _IDLE_S:  # this clock runs on while a laptop sleeps
                    return connection
                connection.close()
        return None

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        address = self.access.address
        if address.scheme == "http":
            connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout)
        elif proxy := _proxy_for(address):
            connection = http.client.HTTPSConnection(*proxy, timeout=timeout, context=_tls_context())
            connection.set_tunnel(address.host, address.port)
        else:
            connection = http.client.HTTPSConnection(
                address.host, address.port, timeout=timeout, context=_tls_context()
            )
        connection.connect()
        cast("socket.socket", connection.sock).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    # --- answers ------------------------------------------------------------------------------------

    def _result(self, verb: str, status: int, kind: str, answer: bytes) -> Any:
        """Return the value of an answer. Raises the error that it contains, or that it is."""
        message = _message(kind, answer)
        text = str(_object(message.get("error")).get("message") or "")
        if status in (401, 403):
            text = f"{self._name} does not accept the token (HTTP {status}). {text}".rstrip()
            raise ServerRefused(text, "the server does not accept the token")
        if status == _MISDIRECTED:
            raise ServerRefused(
                f"{self._name} rejects its address (HTTP {status}). {text}".rstrip(), "the server rejects its address"
            )
        if "result" not in message and text:
            raise ServerAway(f"{self._name} answers with an error: {text}", f"the server failed (HTTP {status})")
        if status in _GATEWAY:
            text = f"The proxy at {self.access.address.url} reaches no server now (HTTP {status}). Try again later."
            raise ServerAway(text, f"no server behind the proxy (HTTP {status})")
        if "result" not in message:
            hint = "" if status >= 500 else " Is it the address of mcp-memory, with its path?"
            text = f"{self._name} gave no answer of a memory: HTTP {status}, {kind}.{hint}"
            raise ServerAway(
                text, f"the server failed (HTTP {status})" if status >= 400 else "the answer is of no memory"
            )
        result = _object(message["result"])
        structured = _object(result.get("structuredContent"))
        if not result.get("isError"):
            return structured.get("result")
        text = "".join(str(_object(block).get("text", "")) for block in result.get("content", ()))
        if "error" in structured:
            raise _ERRORS.get(structured["error"], StoreUnavailable)(text)
        if text.startswith("There is no tool"):
            text = f"{self._name} does not know {verb!r}: update it to {__version__} or later."
            raise ServerRefused(text, "the server is of an older version")
        raise ServerRefused(f"{self._name} refuses: {text}", "the token lacks the right")


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _message(kind: str, answer: bytes) -> dict[str, Any]:
    """Return the JSON-RPC message of an answer, also of one that came as an event; empty for anything else."""
    if kind == "text/event-stream":
        lines = [line[5:] for line in answer.splitlines() if line.startswith(b"data:")]
        answer = lines[-1] if lines else b""
    try:
        return _object(json.loads(answer))
    except (ValueError, RecursionError):
        return {}


def _reason(error: OSError | http.client.HTTPException) -> str:
    """Return why a connection failed, for people."""
    if isinstance(error, ssl.SSLError):
        if error.reason == "WRONG_VERSION_NUMBER":
            return "it does not speak TLS; is it an address with http://?"
        return (error.reason or str(error)).replace("_", " ").lower()
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return reason.rstrip(".") or type(error).__name__


def _tls_context() -> ssl.SSLContext | None:
    """Return the TLS context, None for the default one.

    Raises ServerRefused if SSL_CERT_FILE cannot be used, which OpenSSL ignores.
    """
    file = os.environ.get("SSL_CERT_FILE")
    if not file:
        return None
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_verify_locations(file)
    except ssl.SSLError:
        raise ServerRefused(
            f"SSL_CERT_FILE names {file}, which has no certificates in PEM form.", _CERTIFICATES
        ) from None
    except OSError as error:
        raise ServerRefused(
            f"SSL_CERT_FILE names {file}, which cannot be read: {error.strerror}.", _CERTIFICATES
        ) from None
    return context


def _proxy_for(address: ServerAddress) -> tuple[str, int] | None:
    """Return the host and port of the proxy that the environment names for HTTPS; None without one.

    Raises ServerRefused for another proxy than one over HTTP.
    """
    proxy = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY")
    without = (os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or "").split(",")
    names = [name.strip().lstrip(".") for name in without if name.strip()]
    host = address.host
    if address.scheme == "http" or not proxy or "*" in names:
        return None
    if any(host == name or host.endswith(f".{name}") for name in names):
        return None
    try:
        parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
        if parts.scheme in ("", "http") and parts.hostname:
            return parts.hostname, parts.port or 80
    except ValueError:  # a port that is no number
        pass
    text = (
        "HTTPS_PROXY does not name a proxy over HTTP, such as http://proxy.example.com:3128; https:// and socks5:// "
        f"are not supported. Name such a proxy, or put {host} into NO_PROXY."
    )
    raise ServerRefused(text, "the proxy of HTTPS_PROXY is not supported")
