"""`mcp-memory ui`: the pages for whoever has this machine, on loopback at a path that cannot be guessed.

Browsers send cookies to all ports of a host: the random path keeps the session's cookie from other programs that
listen on this machine.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskStatus

from mcp_memory.core.config import Settings
from mcp_memory.core.logs import set_up
from mcp_memory.service.http_server import address_of, listen, run_http
from mcp_memory.service.shared_memory import SharedMemory
from mcp_memory.ui.app import Interface, ui_app, warm_up
from mcp_memory.ui.sessions import OneTimeKeys, Reader

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory


HOST = "127.0.0.1"
_BYTES = 16


def serve_ui(settings: Settings, *, port: int, show: Callable[[str], None]) -> None:
    """Serve the pages until a signal ends it; `show` gets the address with its key. Port 0 takes any free one.

    Raises Refused for a port that is taken, and what opening the memory raises.
    """
    set_up(level=settings.log_level, form=settings.log_format, contents=settings.log_contents)
    anyio.run(_serve, settings, port, show)


async def _serve(settings: Settings, port: int, show: Callable[[str], None]) -> None:
    with listen(HOST, port) as listener:
        address, base = address_of(HOST, listener), f"/{secrets.token_urlsafe(_BYTES)}"
        keys = OneTimeKeys(Reader(space=settings.space, is_owner=True))
        quiet = settings.model_copy(update={"distil": False})  # to look at a memory sets no model to work
        memory = SharedMemory(quiet, alongside=_warm, what="ui")
        interface = Interface(memory.get, keys, base=base, host=address.removeprefix("http://"))
        async with memory.hold():
            await memory.get()
            await run_http(
                ui_app(interface),
                listener,
                started=lambda: show(f"{address}{base}/#{keys.new()}"),
                stopping=interface.stop,
            )


async def _warm(memory: Memory, *, task_status: TaskStatus[None]) -> None:
    task_status.started()
    await warm_up(memory)
