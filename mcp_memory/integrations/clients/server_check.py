"""Starts the server of a client's entry as the client would, and completes the handshake.

The process gets the entry's command, arguments and variables, and the few variables that clients pass on. Desktop
programs have only the system's short PATH: a command that needs a longer PATH fails here, before it fails in the
client.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from mcp_memory.core.errors import Refused
from mcp_memory.core.text import one_line
from mcp_memory.integrations.clients.programs import command_words

SHORT_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
"""The PATH of programs started from a desktop on macOS, and the least on Linux."""
TIMEOUT_S = 30.0  # seconds; the clients wait between 10 and 60

_REFERENCE = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True)
class Greeting:
    """The server's answer to the handshake, and the seconds from the start of the server to its list of tools."""

    name: str
    version: str
    protocol: str
    tools: list[str]
    seconds: float


def expand_variables(text: str, environ: Mapping[str, str]) -> str:
    """Expand `${NAME}`, `${env:NAME}` and `${NAME:-default}` as clients do; an unknown variable is empty."""
    return _REFERENCE.sub(lambda match: environ.get(match[1]) or match[2] or "", text)


def environment(entry: Mapping[str, Any], *, from_desktop: bool, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to add to those that clients pass on: the entry's, and a short PATH for desktop programs."""
    variables = cast("dict[str, Any]", entry.get("env") or entry.get("environment") or {})
    short = {"PATH": SHORT_PATH} if from_desktop and sys.platform != "win32" else {}
    return {**short, **{name: expand_variables(str(value), environ) for name, value in variables.items()}}


def check(entry: Mapping[str, Any], *, from_desktop: bool = False, folder: Path | None = None) -> Greeting:
    """Start the server of an entry in `folder`, complete the handshake, list its tools, open its memory, and stop it.

    Raises Refused if any of that fails, with the reason and the last line of the server's stderr.
    """
    if not entry.get("command"):
        raise Refused("The entry names no command, so there is nothing to start.")
    command, *arguments = [expand_variables(word, os.environ) for word in command_words(entry)]
    server = StdioServerParameters(
        command=command,
        args=arguments,
        env=environment(entry, from_desktop=from_desktop, environ=os.environ),
        cwd=folder,
    )
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
        try:
            return anyio.run(_greet, server, stderr)
        except Refused:
            raise
        except FileNotFoundError:
            raise Refused(f"There is no program {command!r}. Run `mcp-memory install` for this client again.") from None
        except PermissionError:
            raise Refused(f"The program {command!r} may not be run.") from None
        except TimeoutError:
            raise Refused(f"The server did not answer within {TIMEOUT_S:.0f} s.{_last_stderr_line(stderr)}") from None
        except Exception as error:  # noqa: BLE001 the SDK raises many types for a server that exits or breaks the protocol
            reason = one_line(str(_innermost(error)) or type(error).__name__, 200).rstrip(".")
            raise Refused(f"The server did not complete the handshake: {reason}.{_last_stderr_line(stderr)}") from None


async def _greet(server: StdioServerParameters, stderr: TextIO) -> Greeting:
    trouble = None
    began = time.perf_counter()
    with anyio.fail_after(TIMEOUT_S):
        async with Client(stdio_client(server, errlog=stderr)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            took = time.perf_counter() - began
            about, protocol = client.server_info, str(client.protocol_version)
            try:
                await client.read_resource("memory://status")  # the server opens the memory only now
            except MCPError as error:
                trouble = str(error)
    if trouble:
        raise Refused(f"The server starts, but its memory cannot be used: {trouble}")
    return Greeting(about.name if about else "?", about.version if about else "", protocol, tools, took)


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _last_stderr_line(stderr: TextIO) -> str:
    stderr.seek(0)
    lines = [line.strip() for line in stderr.read()[-4000:].splitlines() if line.strip()]
    return f" It wrote: {one_line(lines[-1], 300)}" if lines else ""
