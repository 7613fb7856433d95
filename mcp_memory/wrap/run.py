"""From the command's options to an exit code: the parts are joined, signals passed on."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import anyio

from mcp_memory.config import Settings
from mcp_memory.errors import McpMemoryError
from mcp_memory.wrap.client import Client
from mcp_memory.wrap.edit import Editor
from mcp_memory.wrap.keeper import Keeper
from mcp_memory.wrap.process import Process
from mcp_memory.wrap.relay import Relay

__all__ = ["DEFAULT_OVER", "wrap_command"]

DEFAULT_OVER = 500

logger = logging.getLogger(__name__)


def wrap_command(
    command: Sequence[str],
    settings: Callable[[], Settings],
    *,
    over: int = DEFAULT_OVER,
    session: str | None = None,
    offers_tool: bool = True,
) -> int:
    """Run `command` and stand between it and our own standard input and output; return its exit code.

    `settings` are read once the command runs. Raises NotFound and Refused where it cannot be started.
    """
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="mcp-memory wrap: %(message)s")
    return anyio.run(_wrap, command, settings, {"over": over, "session": session}, offers_tool)


async def _wrap(
    command: Sequence[str], settings: Callable[[], Settings], options: dict[str, Any], offers_tool: bool
) -> int:
    server = await Process.start(command)
    async with AsyncExitStack() as stack:
        editor = None
        try:
            keeper = Keeper(settings(), **options)
        except McpMemoryError as error:
            logger.warning("large results pass as they are: %s", error)
        else:
            await stack.enter_async_context(keeper.running())
            editor = Editor(keeper, offers_tool=offers_tool)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        tasks.start_soon(_pass_signals_on, server)
        code = await Relay(Client(), server, editor).run()
        tasks.cancel_scope.cancel()
        return code
    raise AssertionError("unreachable")


async def _pass_signals_on(server: Process) -> None:
    try:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
            async for signum in received:
                server.signal(signum)
    except (NotImplementedError, AttributeError):  # Windows: Ctrl-C raises KeyboardInterrupt
        await anyio.sleep_forever()


def leave(code: int) -> None:
    """End this process at once. A thread may still read standard input, and nothing can wake it."""
    sys.stderr.flush()
    os._exit(code)
