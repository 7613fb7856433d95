"""HTTP responses of the interface: security headers, static files, forms, and event streams of changes.

The headers let a page use only its own scripts and styles, and forbid framing, cross-origin reading, and caching.
`Referrer-Policy` is `same-origin` and not `no-referrer`: with the latter, browsers send `Origin: null` with forms
(measured in Chromium 156), and the origin of a form could not be checked. Pages have no links to other origins.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from mcp_memory.core.errors import McpMemoryError

MOST_FORM = 2**20
_BODY_SECONDS = 60.0
_MAX_FIELDS = 1_000
_NO_FORM = "That is no form."
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), clipboard-read=()",
}
_SANDBOX = {"Content-Security-Policy": "sandbox; default-src 'none'"}
_STATIC = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "build.js": "text/javascript; charset=utf-8",
    "map.js": "text/javascript; charset=utf-8",
    "enter.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@dataclass
class Rejected(Exception):
    """A request that is refused before anything is done for it."""

    status: int
    text: str


def add_security_headers(response: Response) -> Response:
    """Add the headers of every response, without replacing existing headers."""
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response


# --- where a request comes from ---------------------------------------------------------------------
def is_host(request: Request, host: str) -> bool:
    """Return whether a request names this host and no other."""
    return request.headers.getlist("host") == [host]


def check_origin(request: Request, host: str | None) -> None:
    """Raise Rejected unless a request comes from our pages. It is called for requests that change something.

    `host` is our host. If it is None, the Host header was checked before, and the origin must match it;
    `Sec-Fetch-Site` may then be missing, because browsers send it only over HTTPS and to this machine.
    """
    origins, site = request.headers.getlist("origin"), request.headers.get("sec-fetch-site")
    if host is not None:
        is_own = origins == [f"http://{host}"] and site == "same-origin"
    else:
        named = request.headers.get("host", "")
        is_own = origins in ([f"http://{named}"], [f"https://{named}"]) and site in (None, "same-origin")
    if not is_own:
        raise Rejected(403, "This request came from another page, and was not carried out.")


async def read_form(request: Request) -> Mapping[str, str]:
    """Read the body of a form and return its fields, with repeated fields joined by spaces.

    Raises Rejected for another content type, and for a body that is too large, too slow or malformed.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Rejected(415, _NO_FORM)
    body = bytearray()
    with anyio.move_on_after(_BODY_SECONDS) as time:
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_FORM:
                raise Rejected(413, "That is too much for one form.")
    if time.cancelled_caught:
        raise Rejected(408, _NO_FORM)
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="replace", max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise Rejected(400, _NO_FORM) from None
    form: dict[str, str] = {}
    for name, value in pairs:
        form[name] = f"{form[name]} {value}" if name in form else value
    return form


# --- files ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    kind: str
    tag: str


@cache
def _files() -> dict[str, _File]:
    folder = resources.files("mcp_memory.ui") / "static"
    read = {name: (folder / name).read_bytes() for name in _STATIC}
    return {name: _File(data, _STATIC[name], f'"{sha256(data).hexdigest()[:32]}"') for name, data in read.items()}


async def static_file(request: Request, name: str) -> Response | None:
    """Return a file of the interface, without its content if the browser has it; None for an unknown name."""
    if name not in _STATIC:
        return None
    file = (await anyio.to_thread.run_sync(_files))[name]
    headers = {"ETag": file.tag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.data, headers=headers, media_type=file.kind)


def download(path: Path, name: str) -> Response:
    """Return a zip file of the home that the browser saves."""
    return FileResponse(path, filename=name, media_type="application/zip", headers=_SANDBOX)


def attachment(data: bytes, name: str) -> Response:
    """Return bytes that the browser saves and never shows. `name` consists of letters, digits, dots and `-`."""
    return Response(
        data,
        headers={"Content-Disposition": f'attachment; filename="{name}"', **_SANDBOX},
        media_type="text/plain; charset=utf-8",
    )


if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory
_POLL_SECONDS = 0.5
_QUIET_SECONDS = 15.0
_LOADING_SECONDS = 10.0
"""How long before its stream a page may have been made."""
_MAX_TOPICS = 200
_MAX_STREAMS = 32


class Streams:
    """Server-sent events that notify open pages of changes, by any process; at most 32 streams per session.

    The store is asked twice a second for the number of the last change, which blocks no writer. A stream ends with its
    session, and when the server stops.
    """

    def __init__(self) -> None:
        self._open = Counter[str]()
        self._stopping = anyio.Event()
        self._announced_at = -inf

    def stop(self) -> None:
        """End all streams, soon."""
        self._stopping.set()

    def announce(self) -> None:
        """Have all pages refreshed soon, for a change that is not in the store. May be called in any thread."""
        self._announced_at = time.monotonic()

    def may_open(self, session: str) -> bool:
        return self._open[session] < _MAX_STREAMS

    async def of(self, session: str, memory: Memory, goes_on: Callable[[], Awaitable[bool]]) -> AsyncGenerator[bytes]:
        """Count a stream as open, and yield its events while `goes_on` returns True, until `stop` is called."""
        self._open[session] += 1
        try:
            after, quiet = await memory.last_change(), 0.0
            seen_at = time.monotonic() - _LOADING_SECONDS
            yield b"retry: 2000\n\n"
            while not self._stopping.is_set() and await goes_on():
                topics, after = await _changed_topics(memory, after)
                if topics is not None or self._announced_at > seen_at:
                    seen_at = time.monotonic()
                    yield b"data: " + json.dumps({"topics": topics or []}).encode() + b"\n\n"
                    quiet = 0.0
                elif quiet >= _QUIET_SECONDS:
                    yield b": still here\n\n"  # fails if the reader has left
                    quiet = 0.0
                with anyio.move_on_after(_POLL_SECONDS):
                    await self._stopping.wait()
                quiet += _POLL_SECONDS
        finally:
            self._open[session] -= 1
            if not self._open[session]:
                del self._open[session]


async def _changed_topics(memory: Memory, after: int) -> tuple[list[str] | None, int]:
    """Return the topics changed since `after` (None if none, or if the store fails), and the last change seen."""
    try:
        now = await memory.last_change()
        if now == after:
            return None, after
        changes = await memory.changes(after)
    except McpMemoryError:  # a lock, a full disk: the next check may succeed
        return None, after
    return list(dict.fromkeys(change.topic for change in changes))[:_MAX_TOPICS], now
