"""`mcp-memory ui`: serves the pages on this machine, at the address of the last run.

It serves on loopback at a path that cannot be guessed: browsers send cookies to all ports of a host, so the random path
keeps the session's cookie from other programs that listen on this machine. Port, path and sign-ins are kept
(`local_address`). If another program listens at the kept port, browsers may have sent it their cookies, so the path is
replaced and everybody is signed out. If the pages are served already, the command opens these.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

import anyio
from anyio.abc import TaskStatus

from mcp_memory.core import audit
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import Refused
from mcp_memory.core.logs import set_up
from mcp_memory.service.http_server import address_of, listen, run_http
from mcp_memory.service.shared_memory import SharedMemory
from mcp_memory.ui.app import Interface, ui_app, warm_up
from mcp_memory.ui.local_address import AddressFile, only_one
from mcp_memory.ui.sessions import OneTimeKeys, Reader, sign_key

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory
HOST = "127.0.0.1"
_START_SECONDS = 10.0
_STEP_SECONDS = 0.1

Show = Callable[[str, str], None]
"""Gets the address with its key, and a sentence about it."""


def serve_ui(settings: Settings, *, port: int | None, show: Show) -> None:
    """Serve the pages until a signal arrives, or open the pages that are served already.

    Without a `port`, that of the last run is used if it is free, else any; 0 is any free port. Raises Refused for a
    port that cannot be used, and the errors of opening the memory.
    """
    set_up(level=settings.log_level, form=settings.log_format, contents=settings.log_contents)
    audit.set_up(settings.audit_log)
    with only_one(settings) as is_only:
        if not is_only:
            _open_running(settings, port, show)
            return
        file = AddressFile.of(settings)
        with _listen(file, port) as listener:
            file.change(port=listener.getsockname()[1], pid=os.getpid())
            file.save()
            anyio.run(_serve, settings, file, listener, show)


def _open_running(settings: Settings, port: int | None, show: Show) -> None:
    """Sign a key for the pages that another process serves.

    Raises Refused if it does not answer, or serves at a port other than `port`.
    """
    until = time.monotonic() + _START_SECONDS
    while True:
        kept = AddressFile.of(settings).address  # the other process writes it when it listens
        if _is_listening(kept.port):
            break
        if time.monotonic() > until:
            raise Refused("The pages are served by another process, which does not answer. End it, and try again.")
        time.sleep(_STEP_SECONDS)
    by = f"by process {kept.pid}"
    if port not in (None, 0, kept.port):
        raise Refused(f"The pages are served at port {kept.port} {by}. End it to serve them at port {port}.")
    address = f"http://{HOST}:{kept.port}{kept.base}"
    show(_with_key(address, settings, kept.secret), f"The pages are served already, {by}; this opens them.")


def _with_key(address: str, settings: Settings, secret: bytes) -> str:
    return f"{address}/{quote(settings.space, safe='')}/#{sign_key(secret, now=time.time())}"


def _is_listening(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return port != 0
    return False


def _listen(file: AddressFile, port: int | None) -> socket.socket:
    """Return the listener; sign everybody out if another program listens where the pages were served."""
    kept = file.address.port
    if kept and _is_listening(kept):
        file.renew()
    with suppress(Refused):
        if port is None:
            return listen(HOST, kept)
    try:
        return listen(HOST, port or 0)
    except Refused:
        raise Refused(
            f"Port {port} of {HOST} cannot be used, most likely because another program listens there. End that "
            "program, or choose another port: --port, or the setting ui_port. Without one, any free port is used."
        ) from None


async def _serve(settings: Settings, file: AddressFile, listener: socket.socket, show: Show) -> None:
    address = address_of(HOST, listener)
    keys = OneTimeKeys(Reader(space=settings.space, is_owner=True), file)
    quiet = settings.model_copy(update={"distil": False})  # viewing a memory must not start a model
    memory = SharedMemory(quiet, alongside=_warm, what="ui")
    interface = Interface(memory.get, keys, base=file.address.base, host=address.removeprefix("http://"))

    def started() -> None:
        about = "The address signs you in once, within a minute, for a month. Ctrl-C ends the program."
        show(_with_key(f"{address}{file.address.base}", settings, file.address.secret), about)

    async with memory.hold():
        await memory.get()
        await run_http(ui_app(interface), listener, started=started, stopping=interface.stop)


async def _warm(memory: Memory, *, task_status: TaskStatus[None]) -> None:
    task_status.started()
    await warm_up(memory)
