"""The memory behind the proxy, and the tool that expands kept results.

The memory is opened at the first large result. If it fails, or keeping a result takes too long, the result passes
unchanged and stderr explains it once. A result that is too large for any client is instead kept in the background,
under a name by which it can be expanded later. Tokens are counted, and everything heavy is loaded, only for a long
text. The tool's definition is short, because every call pays for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import secrets
import unicodedata
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

from mcp_memory.core.errors import InvalidInput, McpMemoryError, Refused, StoreUnavailable
from mcp_memory.core.logs import SafeText
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.core.token_counts import is_large
from mcp_memory.integrations.shown_results import shown_of

if TYPE_CHECKING:
    from mcp_memory.core.config import Settings
    from mcp_memory.core.types import Offloaded
    from mcp_memory.service.memory import Memory
    from mcp_memory.service.shared_memory import SharedMemory

MAX_TOKENS = 2_000
NAME_LIMIT = 40
"""Clients prefix a tool's name with the server's, and models take 64 characters."""

_OUR_ID = re.compile(r"r-[0-9a-f]{4,}|\d{3,}-[NF]\d+")

# `ref` comes first, because a node may contain several results.
_PROPERTIES: dict[str, Any] = {
    "ref": {"type": "string", "description": "Ref or node: r-9f2c1a7b3d4e, 003-N4"},
    "lines": {"type": "string", "description": "120-180"},
    "grep": {"type": "string"},
    "json_path": {"type": "string"},
    "cursor": {"type": "string"},
}


def tool_name(server: str, taken: Collection[str] = ()) -> str:
    """Return `expand_<server>`, numbered if it is `taken`: two servers of a client must not add the same name.

    `taken` are the names of the server's own tools.
    """
    ascii_only = unicodedata.normalize("NFKD", server).encode("ascii", "ignore").decode().lower()
    slug = re.sub("[^a-z0-9]+", "_", ascii_only)[:NAME_LIMIT].strip("_")
    name = f"expand_{slug}" if slug else "expand_result"
    number = 1
    while (numbered := name if number == 1 else f"{name}_{number}") in taken:
        number += 1
    return numbered


def definition(name: str) -> dict[str, Any]:
    """Return the tool's definition for `tools/list`."""
    return {
        "name": name,
        "title": "Expand a kept result",
        "description": "Open a part of a result that was kept and shown as a summary.",
        "inputSchema": {"type": "object", "properties": _PROPERTIES, "required": ["ref"]},
        "annotations": {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
        # Notes name this tool, so clients that hide tools until they are searched for must not hide it.
        "_meta": {"anthropic/alwaysLoad": True},
    }


def looks_like_ours(name: str, arguments: object) -> bool:
    """Return whether a call under an unknown name seems to be of our tool, from a client with an old list of tools."""
    match arguments:
        case {"ref": str() as ref} if name.startswith("expand_"):
            return _OUR_ID.fullmatch(ref) is not None
        case _:
            return False


def parse_arguments(name: str, arguments: object) -> dict[str, Any]:
    """Check a call's arguments and return them for the verb `expand_node`, which calls `ref` its `target`.

    Raises InvalidInput if an argument is unknown, missing or invalid.
    """
    fields = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    if unknown := [key for key in fields if key not in {*_PROPERTIES, "max_tokens"}]:
        raise InvalidInput(f"{name} has no argument {one_line(unknown[0], 40)!r}; it takes: {', '.join(_PROPERTIES)}.")
    taken: dict[str, Any] = {key: value for key, value in fields.items() if value is not None}
    for key, value in taken.items():
        if key != "max_tokens" and not isinstance(value, str):
            raise InvalidInput(f"{key} must be a string.")
    if not taken.get("ref"):
        raise InvalidInput(f"{name} needs 'ref': a ref such as r-9f2c1a7b3d4e or a node such as 003-N4.")
    tokens = taken.pop("max_tokens", MAX_TOKENS)
    if not isinstance(tokens, int | float) or isinstance(tokens, bool) or not 100 <= tokens <= 100_000:
        raise InvalidInput("max_tokens must be a number from 100 to 100,000.")
    return {"target": taken.pop("ref"), **taken, "max_tokens": int(tokens)}


logger = logging.getLogger(__name__)

KEEPING_SECONDS = 30.0
"""Clients wait a minute for a tool. A text that takes longer than this passes unchanged, up to MOST_AS_IT_CAME."""
MOST_AS_IT_CAME = 2**20
"""Characters; more than any client gives its model. A longer text is kept in the background."""
LAST_SECONDS = 60.0
"""How long the proxy waits at its end for texts that are still being kept."""

RETRY_SECONDS = 60.0
_AT_ONCE = 4_096  # characters that are estimated faster than a thread starts
_BEGINNING = 1_000


@dataclass(frozen=True, slots=True)
class ProxiedCall:
    """A tool call: tool, arguments, request id, and client."""

    tool: str
    arguments: object
    id: object
    client: str


@dataclass(frozen=True, slots=True)
class KeptText:
    """A text that is kept, or is being kept: its node and ref, and the note that replaces it."""

    node: str
    ref: str
    note: str


@dataclass(slots=True)
class _LateText:
    """A text whose call was answered before it was stored. Once it is stored, `text` is emptied and `ref` is set."""

    text: str
    ended: asyncio.Task[None]
    ref: str = ""


class ResultKeeper:
    """Keeps large texts in the memory of `settings`, which are read at the first large text.

    A text is large from `over` tokens. `session` names the session of its steps; by default it is derived from client,
    `folder` and day. Raises InvalidInput for an invalid session name.
    """

    def __init__(self, settings: Callable[[], Settings], *, over: int, session: str | None, folder: str) -> None:
        self._settings = settings
        self._over = over
        self._named = None if session is None else safe_name(session, what="session")
        self._folder = hashlib.sha256(folder.encode("utf-8", "surrogateescape")).hexdigest()[:4]
        self._shared: SharedMemory | None = None
        self._preparing = anyio.Lock()
        self._connection = secrets.token_hex(3)
        self._silent_until = 0.0
        self._warned: set[str] = set()
        self._late: dict[str, _LateText] = {}

    @asynccontextmanager
    async def hold_open(self) -> AsyncGenerator[None]:
        """At the end of the block, wait for texts that are still being kept, and close the memory if it was opened."""
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                if late := [pending.ended for pending in self._late.values()]:
                    await asyncio.wait(late, timeout=LAST_SECONDS)
                if self._shared:
                    await self._shared.close()

    async def _memory(self) -> Memory:
        async with self._preparing:
            if self._shared is None:
                self._shared = await anyio.to_thread.run_sync(self._prepare)
        return await self._shared.get()

    def _prepare(self) -> SharedMemory:
        from mcp_memory.service import shared_memory

        # A proxy must not start extraction by a model.
        return shared_memory.SharedMemory(
            self._settings().model_copy(update={"distil": False}), alongside=_no_background_work, what="wrap"
        )

    async def is_large(self, text: str) -> bool:
        """Return whether a text is large; False for a while after a failure."""
        if anyio.current_time() < self._silent_until:
            return False
        if len(text) <= _AT_ONCE:
            return is_large(text, self._over)
        return await anyio.to_thread.run_sync(is_large, text, self._over)

    async def keep(self, call: ProxiedCall, text: str, expand: str, *, late: bool) -> KeptText | None:
        """Keep a text and return its replacement; None to pass it unchanged.

        `expand` is the name of the tool that expands it. If `late`, this proxy provides that tool, so the text
        may be stored after its call was answered.
        """
        # A running thread cannot be cancelled, so a slow write is left to finish.
        keeping = asyncio.create_task(self._keep(call, text, expand))
        await asyncio.wait([keeping], timeout=KEEPING_SECONDS)
        if not keeping.done():
            # Only one such text at a time is held in memory.
            if late and len(text) > MOST_AS_IT_CAME and all(pending.ref for pending in self._late.values()):
                return await self._keep_in_background(text, keeping, expand)
            keeping.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._pause(f"keeping one took over {KEEPING_SECONDS:.0f} s")
            return None
        match keeping.exception():
            case None:
                if kept := keeping.result():
                    await self._note_replaced(call, *kept)
                    return KeptText(kept[0].node, kept[0].ref, kept[1])
            case StoreUnavailable() as error:
                self._pause(await anyio.to_thread.run_sync(mask, str(error)), error.__cause__)
            case McpMemoryError() as error:
                self._warn_once("a large result passes as it is: %s", error)
            case error:
                self._warn_once("a large result passes as it is, by a fault of this program", exc_info=error)
        return None

    async def _keep_in_background(
        self, text: str, keeping: asyncio.Task[tuple[Offloaded, str] | None], expand: str
    ) -> KeptText:
        """Let `keeping` store the text in the background. Return a replacement with a temporary name for the text."""
        name = f"r-{secrets.token_hex(6)}"

        async def to_an_end() -> None:
            await asyncio.wait([keeping])
            if keeping.exception() is None and (kept := keeping.result()):
                late.text, late.ref = "", kept[0].ref
            else:
                self._warn_once("a large result could not be kept, and is given whole when it is asked for")

        late = self._late[name] = _LateText(text, asyncio.create_task(to_an_end()))
        begins = await anyio.to_thread.run_sync(mask, text[:_BEGINNING])
        return KeptText(
            "",
            name,
            (
                f"This result has {len(text):,} characters and is still being kept. In a minute, open parts of it with "
                f'{expand}(ref="{name}"). It begins:\n{begins}'
            ),
        )

    async def _resolve_late(self, name: str) -> tuple[str, str]:
        """Return (ref, "") for the temporary name of a stored text, ("", text) if storing it failed.

        Any other name is returned unchanged. Raises Refused while the text is still being stored.
        """
        late = self._late.get(name)
        if late is None:
            return name, ""
        await asyncio.wait([late.ended], timeout=KEEPING_SECONDS)
        if not late.ended.done():
            raise Refused(f"{name} is still being kept ({len(late.text):,} characters). Ask again in a minute.")
        return late.ref, late.text

    async def _keep(self, call: ProxiedCall, text: str, expand: str) -> tuple[Offloaded, str] | None:
        try:
            memory = await self._memory()
        except Exception as error:
            raise StoreUnavailable(str(error) or type(error).__name__) from error
        kept = await memory.offload_tool_result(
            call.tool,
            text,
            arguments=call.arguments,
            tool_call_id=self._id(call),
            session=self._session(call.client),
            shown=shown_of(call.client, text),
        )
        return await anyio.to_thread.run_sync(self._render_note, text, kept, expand)

    def _id(self, call: ProxiedCall) -> str:
        return f"{self._connection}-{call.id}"

    async def _note_replaced(self, call: ProxiedCall, kept: Offloaded, note: str) -> None:
        try:
            await (await self._memory()).note_replaced(kept.session, self._id(call), note)
        except McpMemoryError as error:
            self._warn_once("what a result saves is not entered: %s", error)

    def _render_note(self, text: str, kept: Offloaded, expand: str) -> tuple[Offloaded, str] | None:
        from mcp_memory.service.render import render_offloaded

        note = render_offloaded(kept, expand=expand)
        return (kept, note) if kept.tokens_kept < kept.tokens_raw and len(note) < len(text) else None

    async def expand(self, name: str, arguments: object) -> tuple[str, bool]:
        """Answer a call of the tool that expands kept texts: the text, and whether it is an error."""
        from mcp_memory.service.render import render

        try:
            request = parse_arguments(name, arguments)
            request["target"], whole = await self._resolve_late(request["target"])
            if whole:
                return whole, False
            memory = await self._memory()
            return render(await memory.expand_node(**request)), False
        except McpMemoryError as error:
            return await anyio.to_thread.run_sync(mask, str(error)), True
        except Exception:  # a bug of ours must not end the proxy
            logger.exception("%s failed", SafeText(name))
            return f"Internal error in {name}. Its traceback is in the log of `mcp-memory wrap`.", True

    def _session(self, client: str) -> str:
        """Return the session shared by all servers that this client wraps in this folder on this day.

        A process cannot know its conversation, nor which other servers its client has started. But clients start them
        all in their working folder. Two conversations a day in a folder share a session; `--session` separates them.
        """
        if self._named is not None:
            return self._named
        slug = re.sub("[^a-z0-9]+", "-", client.lower())[:40].strip("-") or "client"
        return f"{datetime.now():%Y-%m-%d}-{slug}-{self._folder}"

    def _pause(self, why: str, cause: BaseException | None = None) -> None:
        """Stop using the memory for RETRY_SECONDS, and log why."""
        self._silent_until = anyio.current_time() + RETRY_SECONDS
        fault = cause if not isinstance(cause, McpMemoryError) else None
        self._warn_once("large results pass as they are: %s", SafeText(why), exc_info=fault)

    def _warn_once(self, what: str, *about: object, exc_info: BaseException | None = None) -> None:
        """Log each message once."""
        if what not in self._warned:
            self._warned.add(what)
            logger.warning(what, *about, exc_info=exc_info)


async def _no_background_work(memory: Memory, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
    task_status.started()
