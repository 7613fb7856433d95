"""From the command's options to an exit code: the parts are joined, signals passed on."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from mcp_memory.core.logs import set_up
from mcp_memory.integrations.proxy.client import Client
from mcp_memory.integrations.proxy.edit import Editor
from mcp_memory.integrations.proxy.keeper import Keeper
from mcp_memory.integrations.proxy.process import Process
from mcp_memory.integrations.proxy.relay import Relay

if TYPE_CHECKING:
    from mcp_memory.core.config import Settings
    from mcp_memory.integrations.proxy.url import Address

__all__ = ["Options", "leave", "wrap"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to wrap, a command or an address, and how. Texts of more than `over` tokens are kept."""

    command: Sequence[str]
    url: str | None
    headers: Sequence[str]
    over: int
    session: str | None
    folder: str
    """Where the client works; see `Keeper`."""
    offers_tool: bool


def wrap(options: Options, settings: Callable[[], Settings]) -> int:
    """Stand between the server and our own standard input and output until it has ended; return its exit code.

    `settings` are read at the first large result: where they are wrong, it passes as it is. Raises NotFound,
    Refused and InvalidInput where the options are wrong or the server cannot be started.
    """
    set_up(prefix="mcp-memory wrap: ")
    return anyio.run(_wrap, options, settings)


async def _wrap(options: Options, settings: Callable[[], Settings]) -> int:
    keeper = Keeper(settings, over=options.over, session=options.session, folder=options.folder)
    async with AsyncExitStack() as stack:
        server = await _server(options, stack)
        await stack.enter_async_context(keeper.running())
        tasks = await stack.enter_async_context(anyio.create_task_group())
        tasks.start_soon(_pass_signals_on, server)
        code = await Relay(Client(), server, Editor(keeper, offers_tool=options.offers_tool)).run()
        tasks.cancel_scope.cancel()
        return code
    raise AssertionError("unreachable")


async def _server(options: Options, stack: AsyncExitStack) -> Process | Address:
    if options.url is None:
        return await Process.start(options.command)
    from mcp_memory.integrations.proxy.url import connected, headers_of  # it needs the SDK, which takes half a second

    return await stack.enter_async_context(connected(options.url, headers_of(options.headers)))


async def _pass_signals_on(server: Process | Address) -> None:
    try:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
            async for signum in received:
                server.signal(signum)
    except (NotImplementedError, AttributeError):  # Windows: Ctrl-C raises KeyboardInterrupt
        await anyio.sleep_forever()


def leave(code: int) -> None:
    """End this process at once: a thread may still work on what nobody waits for."""
    sys.stderr.flush()
    os._exit(code)
