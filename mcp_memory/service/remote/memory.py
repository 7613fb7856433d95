"""The memory of a server, as `open_memory` yields it where the setting `server` is set.

Its verbs are those of `Memory` that `verbs` lists; any other raises Refused. Secrets and private passages are removed
before anything leaves this machine, and by the server again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from mcp_memory.core.errors import InvalidInput, Refused
from mcp_memory.core.private_passages import without_private
from mcp_memory.core.secrets.masking import mask, mask_id, mask_name, mask_result, mask_values, states_secret
from mcp_memory.core.types import NewTurn
from mcp_memory.service.remote.connection import TIMEOUT_S, ServerConnection
from mcp_memory.service.remote.local_records import LocalRecords
from mcp_memory.service.remote.verbs import VERBS, answer_type, bound, encode_result
from mcp_memory.store.values import FollowedLog, Imported

if TYPE_CHECKING:
    from mcp_memory.core.config import Settings
    from mcp_memory.core.server_address import ServerAccess
    from mcp_memory.service.memory import Memory


@asynccontextmanager
async def open_remote(settings: Settings, access: ServerAccess) -> AsyncGenerator[Memory]:
    """Yield the memory of a server. Nothing is sent before the first verb."""
    memory = RemoteMemory(settings, access)
    try:
        yield cast("Memory", memory)
    finally:
        memory.connection.close()


class RemoteMemory:
    """The verbs of `Memory` on a server. Safe to call from many tasks at once."""

    personal = None
    """The server uses the personal memory beside this one, see `ServerAccess.personal_space`."""
    has_files = False

    def __init__(self, settings: Settings, access: ServerAccess) -> None:
        self.settings = settings
        self.space = settings.space
        self.connection = ServerConnection(access)
        self._records = LocalRecords(access.records_folder, home=settings.home)

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        """Return a verb. One that a server does not offer raises Refused when it is called."""
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self._call if name in VERBS else self._refuse, name)

    def _refuse(self, verb: str, *_args: Any, **_kwargs: Any) -> Any:
        raise Refused(
            f"This runs on the server, {self.connection.access.address.url}, and not from another machine ({verb}). "
            "Run it there, or ask who runs the server."
        )

    async def _call(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        arguments = {name: self._outgoing(name, value) for name, value in bound(verb, args, kwargs).items()}
        ask = partial(self._ask, verb, arguments)
        return await anyio.to_thread.run_sync(ask, abandon_on_cancel=True)

    def _ask(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        cleaned = {name: clean() for name, clean in arguments.items()}
        answer = self.connection.call(verb, cleaned, timeout=TIMEOUT_S)
        return TypeAdapter[Any](answer_type(VERBS[verb][0])).validate_python(answer)

    def _outgoing(self, name: str, value: Any) -> Callable[[], Any]:
        """Return a function that makes an argument a JSON value without secrets. It may take a while."""
        match name:
            case "turns":
                return lambda: to_jsonable_python([_without_secrets(turn) for turn in value])
            case "result" | "shown" if value is not None:
                return lambda: encode_result(value if self.settings.keep_secrets else _mask_result(value))
            case "arguments":
                return lambda: to_jsonable_python(mask_values(value), fallback=str)
            case "query":
                return lambda: mask(without_private(value)) if value else value
            case "text" if value is not None:
                return lambda: _require_no_secret(value)
            case "project":
                return lambda: mask_name(value) if value else value
            case "tool_call_id":
                return lambda: mask_id(value) if value else value
            case _:
                return lambda: to_jsonable_python(value)

    # --- what this machine notes itself -------------------------------------------------------------

    async def followed_logs(self, *, path: str | None = None) -> list[FollowedLog]:
        return await anyio.to_thread.run_sync(self._records.followed_logs, path)

    async def note_followed(self, log: FollowedLog) -> None:
        await anyio.to_thread.run_sync(self._records.note_followed, log)

    async def imported(self) -> list[Imported]:
        return await anyio.to_thread.run_sync(self._records.imported)

    async def note_import(self, file: Imported) -> None:
        await anyio.to_thread.run_sync(self._records.note_import, file)

    async def secret(self, purpose: str) -> bytes:
        return await anyio.to_thread.run_sync(self._records.secret, purpose)

    async def spaces_with_policies(self) -> Sequence[str]:
        """Return no space: the server applies the retention of its spaces."""
        return ()

    def now(self) -> datetime:
        """Return the time of this machine."""
        return datetime.now(UTC)

    def add_client(self, client: str) -> None:
        """Do nothing: the server knows its clients by their tokens."""


def _without_secrets(turn: NewTurn) -> NewTurn:
    content = mask(without_private(turn.content))
    return turn if content == turn.content else replace(turn, content=content)


def _mask_result(value: str | bytes) -> str | bytes:
    if isinstance(value, bytes):
        return mask_result(value)[0]
    return mask_result(value.encode("utf-8", "surrogatepass"))[0].decode("utf-8", "surrogatepass")


def _require_no_secret(text: str) -> str:
    """Return a statement. Raises InvalidInput if it states a secret."""
    text = without_private(text)
    if states_secret(text):
        raise InvalidInput(
            "This looks like a key or password, and what is remembered is shown in later conversations. Nothing was "
            "sent or stored. Leave the value out; where it is kept may be remembered."
        )
    return text
