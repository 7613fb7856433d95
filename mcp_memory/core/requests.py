"""Requests at the edges: tools, resources, pages, administration, commands. Each is measured and audited here."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial

from mcp_memory.core import audit
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.metrics import Gauge, Histogram

OK = "ok"
INTERNAL = "internal error"

_SECONDS = Histogram(
    "mcp_memory_request_seconds", "Requests and their duration in seconds, by verb and outcome.", "verb", "outcome"
)
_OPEN = Gauge("mcp_memory_requests_in_progress", "Requests that are being answered now, streams included.")


@dataclass
class Request:
    """A request that is being answered. Whoever answers it sets `outcome` and `ids`.

    `verb` is a name of this program, from a small set. `outcome` is `ok` or the name of an error.
    """

    verb: str
    who: str = ""
    space: str | None = None
    outcome: str = OK
    ids: tuple[str, ...] = ()
    is_stream: bool = False
    """Whether its duration says nothing about the server, because the client ends it."""
    is_audited: bool = True

    def fail(self, error: BaseException) -> None:
        self.outcome = outcome_of(error)


_current: ContextVar[Request | None] = ContextVar("mcp_memory_request", default=None)


def current_request() -> Request | None:
    """Return the request that the current task answers."""
    return _current.get()


def outcome_of(error: BaseException) -> str:
    """Return the name of an error of ours; other errors are internal, unless the caller has gone."""
    match error:
        case McpMemoryError():
            return type(error).__name__
        case Exception():
            return INTERNAL
        case _:
            return "cancelled"


@asynccontextmanager
async def measured(request: Request) -> AsyncGenerator[Request]:
    """Answer a request in the block; then count it, and write its line of the audit log, before the client has it."""
    token, began = _current.set(request), time.perf_counter()
    try:
        with _OPEN.one_more():
            yield request
    except BaseException as error:
        if request.outcome == OK:
            request.fail(error)
        raise
    finally:
        _current.reset(token)
        if not request.is_stream:
            _SECONDS.observe(time.perf_counter() - began, request.verb, request.outcome)
        if request.is_audited:
            await write_audit(request)


async def write_audit(request: Request) -> None:
    """Write the line of a request, if the audit log is on."""
    if audit.is_on():
        import anyio  # the command line takes a while to load it
        import anyio.to_thread

        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(
                partial(
                    audit.write,
                    who=request.who,
                    verb=request.verb,
                    outcome=request.outcome,
                    space=request.space,
                    ids=request.ids,
                )
            )
