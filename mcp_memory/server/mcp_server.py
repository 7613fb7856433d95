"""The MCP server: one object for every transport and both protocol generations.

The messages of our errors reach the client: in a tool result, as "not found" with the address, or as invalid
parameters. Any other exception is a bug: its traceback goes to the log and not to the client. Tools, resources and
prompts added with the SDK's decorators are served too.

A tool answers twice, in short text for reading and as structured content for programs. Some clients pass only the
structured half to their model (seen in Claude Code 2.1.330 and Codex 0.169), without the text's notes: that quoted
lines are data, what to do next, and how to read on. So these clients get tools without an output schema and
results without structured content.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from hashlib import sha256
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import mcp.types as wire
from anyio.abc import TaskStatus
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import (
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnexpectedResourceError,
    UnexpectedToolError,
)
from mcp.shared.exceptions import MCPError
from pydantic import AnyUrl

from mcp_memory import __version__
from mcp_memory.core import audit
from mcp_memory.core.audit import ids_in, local_user
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, McpMemoryError, NotFound, Refused
from mcp_memory.core.logs import SafeText, event
from mcp_memory.core.malloc import release_free_memory
from mcp_memory.core.requests import OK, Request, current_request, measured
from mcp_memory.core.rights import Right
from mcp_memory.core.server_address import VERB_PREFIX
from mcp_memory.core.text import one_line
from mcp_memory.server.authorization import (
    Grant,
    allowed_tools,
    current_grant,
    grant_of_request,
    right_needed,
    right_needed_by,
    use_grant,
)
from mcp_memory.server.mcp_app import APP, APP_ONLY_TOOLS, EXTENSION, app_tools, note_app_support, read_app
from mcp_memory.server.skills import Skills, read_skill
from mcp_memory.server.updates import Updates
from mcp_memory.service.shared_memory import SharedMemory

DEFINITIONS_FILE = Path(__file__).with_name("tool_definitions.json")
"""The definitions of the tools as `tools/list` gives them, written by `scripts/write_tool_definitions.py`.

Building them from the signatures in `tools` takes 0.1 s, and importing `tools` 0.2 s more, while a client waits. A test
compares the file with the signatures, byte for byte.
"""


def read_definitions() -> tuple[wire.Tool, ...]:
    return tuple(map(wire.Tool.model_validate, json.loads(DEFINITIONS_FILE.read_bytes())))


def definitions_file(definitions: Iterable[wire.Tool]) -> bytes:
    """Return the content of `DEFINITIONS_FILE` for these definitions."""
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in definitions]
    return (json.dumps(listed, ensure_ascii=False, indent=1) + "\n").encode()


if TYPE_CHECKING:
    from mcp_memory.server.tools import Tool
    from mcp_memory.service.memory import Memory
logger = logging.getLogger(__name__)
_LONG_CACHE = CacheHint(ttl_ms=3_600_000, scope="public")  # it changes only with the version of this package
_HANDSHAKE = {"initialize", "server/discover", "ping"}
_AFTER_HANDSHAKE = {"notifications/initialized", "tools/list"}
"""Requests that clients send right after the handshake. They are answered before anything else is loaded."""
_SUBSCRIBING = {"subscriptions/listen", "resources/subscribe"}
_LISTING = {"tools/list", "prompts/list", "resources/list", "resources/templates/list", "skills/list"}
_AUDITED = {
    *("tools/call", "resources/read", "resources/list", "prompts/get", "completion/complete"),
    *_SUBSCRIBING,
}
_METHODS = _HANDSHAKE | _AFTER_HANDSHAKE | _SUBSCRIBING | _LISTING | _AUDITED | {"logging/setLevel"}
_MAX_CLIENT_NAME = 1_000  # characters of a client's name that are read, at each request
INSTRUCTIONS = (resources.files("mcp_memory.server") / "instructions.md").read_text(encoding="utf-8")
"""Instructions for every client that connects: when to use this server, and when not to.

The first 500 characters are about when to search, record and distil, because some clients show no more and load the
tools' descriptions late. All of it is within 2,048 bytes, where older clients cut. Each sentence corrects an action of
an agent that had these words alone.
"""
DEFINITIONS = read_definitions()
_session_of_client: ContextVar[str | None] = ContextVar("session_of_client", default=None)


@contextmanager
def use_session(session: str) -> Generator[None]:
    """Record in this session what calls within the block give no session: each client of a daemon has its own."""
    token = _session_of_client.set(session)
    try:
        yield
    finally:
        _session_of_client.reset(token)


class MemoryServer(MCPServer[None]):
    """An MCPServer over one shared Memory; each request sees the space of its grant.

    Nothing is opened or loaded until a client has been answered.
    """

    def __init__(self, settings: Settings, memory: SharedMemory | None = None) -> None:
        """`memory` is one that runs `run_alongside` itself; by default, the server makes its own."""
        self.updates = Updates(settings.space)
        self._space, self._user = settings.space, local_user()
        self.memory = memory or SharedMemory(settings, alongside=self.run_alongside)
        self._is_loaded = False
        self._was_called = False
        super().__init__(
            "mcp-memory",
            title="Memory",
            version=__version__,
            description="Long-term and short-term memory over one local store",
            instructions=INSTRUCTIONS,
            log_level=settings.log_level.upper(),  # pyright: ignore[reportArgumentType]
            lifespan=_lifespan,
            cache_hints={
                "tools/list": CacheHint(
                    ttl_ms=_LONG_CACHE.ttl_ms, scope="private"
                ),  # it depends on the rights of the client
                "prompts/list": _LONG_CACHE,
                "resources/templates/list": _LONG_CACHE,
                "server/discover": _LONG_CACHE,
            },
            subscriptions=self.updates,
            extensions=[EXTENSION, Skills()],
            middleware=[self._prepare],
        )
        self.updates.attach(self)
        self.completion()(self._complete)

    def hold_open(self) -> AbstractAsyncContextManager[None]:
        """Keep the store open, once it is needed, while the block runs. Transports enter this."""
        return self.memory.hold()

    async def _prepare(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Run a request under its grant, with secrets masked in its errors."""
        grant = grant_of_request(ctx.request)
        async with measured(self._request(ctx.method, grant)) as request:
            with use_grant(grant), note_app_support(ctx):
                try:
                    return await self._run_prepared(ctx, call_next)
                except MCPError as error:  # it repeats parts of the request: a name, a method, an address
                    if request.outcome == OK:
                        request.outcome = "invalid request"
                    message, data = await _mask([error.error.message, error.error.data])
                    raise MCPError(error.error.code, message, data) from error

    def _request(self, method: str, grant: Grant) -> Request:
        return Request(
            verb=method if method in _METHODS else "other",
            who=grant.name or self._user,
            space=grant.space or self._space,
            is_audited=method in _AUDITED,
            is_stream=method in _SUBSCRIBING,
        )

    async def _run_prepared(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Run a request; subscriptions wait until the store is open.

        Other requests, except the handshake, start to open it. Requests other than the handshake, its confirmation and
        `tools/list` first wait for another thread to import the modules of their handlers.
        """
        if ctx.method in _SUBSCRIBING:
            try:
                await self.updates.start_listening(await self._memory())
            except McpMemoryError as error:
                logger.warning("updates begin when the store can be opened: %s", error)
        elif ctx.method not in _HANDSHAKE:
            self.memory.open_soon()
        if ctx.method in _LISTING and (ctx.params or {}).get("cursor") is not None:
            raise MCPError(wire.INVALID_PARAMS, f"Invalid cursor. {ctx.method} has one page; leave the cursor out.")
        if not self._is_loaded and ctx.method not in _HANDSHAKE | _AFTER_HANDSHAKE:
            await anyio.to_thread.run_sync(_import_handlers)
            self._is_loaded = True
        if introduced := ctx.session.client_params:
            self.memory.meet(introduced.client_info.name[:_MAX_CLIENT_NAME])
        return adapt_to_client(ctx, await call_next(ctx))

    async def run_alongside(self, memory: Memory, *, task_status: TaskStatus[None]) -> None:
        """Tell clients of changes in a memory, and load what calls need, until cancelled."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self.updates.watch, memory)
            task_status.started()
            await anyio.to_thread.run_sync(_import_handlers)
            if not self._was_called:  # a call that has begun loads its own modules, and faster alone
                await anyio.to_thread.run_sync(warm_up)
            release_free_memory()

    async def _memory(self) -> Memory:
        """Return the memory, opened if necessary, of the current request's space, beside its personal memory."""
        memory, grant = await self.memory.get(), current_grant()
        if grant.space is None:
            return memory
        chosen = memory.in_space(grant.space)
        return chosen if grant.personal is None else chosen.beside(memory.in_space(grant.personal))

    # --- tools --------------------------------------------------------------------------------------

    async def list_tools(self) -> list[wire.Tool]:
        own = [*DEFINITIONS, *(tool.definition for tool in app_tools())]
        return allowed_tools([*own, *await super().list_tools()], current_grant())

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> wire.CallToolResult | wire.InputRequiredResult:
        from mcp_memory.server.tools import TOOLS

        self._was_called = True
        request = current_request() or Request(name)
        tool = next((tool for tool in (*TOOLS, *app_tools()) if tool.name == name), None) or _verb_tool(name)
        if tool is None:
            added = next((tool for tool in await super().list_tools() if tool.name == name), None)
            if added is not None:
                _check_right(name, right_needed_by(added))
                return await super().call_tool(name, arguments, context)
            request.outcome = NotFound.__name__
            names = ", ".join(tool.name for tool in await self.list_tools())
            raise ToolError(f"There is no tool {one_line(await _mask(name), 60)!r}. Tools: {names}.")
        request.verb = tool.name
        if audit.is_on():
            request.ids = ids_in(arguments, nested=False)
        needed = tool.right or right_needed(read_only=tool.read_only, destructive=tool.destructive)
        _check_right(name.removeprefix(VERB_PREFIX), needed)
        began, failed = time.perf_counter(), None
        try:
            meta = (context and context.request_context.meta) or {}
            memory = self._memory_for_call if name.startswith(VERB_PREFIX) else self._memory_for_client
            result = await tool.call(partial(memory, context), arguments, meta)
            if audit.is_on():
                request.ids = (*request.ids, *ids_in(result.structured_content))
            if tool.right == "operator":
                request.space = arguments.get("space", request.space)
            return result
        except McpMemoryError as error:
            request.fail(error)
            failed, text = type(error).__name__, await _mask(error.public or str(error))
            if name.startswith(VERB_PREFIX):
                from mcp_memory.server.verb_tools import failure

                return failure(error, text)
            raise ToolError(text) from error
        except Exception as error:
            request.fail(error)
            failed = type(error).__name__
            raise UnexpectedToolError(f"Internal error in {name}. Its traceback is in the server's log.") from error
        finally:
            took = round((time.perf_counter() - began) * 1000, 1)
            event(logger, "a tool was called", tool=tool.name, ms=took, error=failed)
            if not tool.read_only:
                self.updates.notice_write()

    async def _memory_for_call(self, context: Context[None, Any] | None) -> Memory:
        """Return the memory, with a separate session for each HTTP client that identifies itself.

        Otherwise clients that name no session would share one canvas. A client with a token has one session a day, on
        whichever server its requests arrive. Clients of protocol 2026-07-28 pass the session that answers name.
        """
        memory, who = await self._memory(), current_grant().who
        if who:
            return memory.of_client(who)
        if session := _session_of_client.get():
            return memory.under(session)
        request = None if context is None else context.request_context.request
        client = request and (request.headers.get("mcp-session-id") or request.query_params.get("session_id"))
        return memory.under(f"{memory.session}-{sha256(client.encode()).hexdigest()[:4]}") if client else memory

    async def _memory_for_client(self, context: Context[None, Any] | None) -> Memory:
        """Return the memory for a call, which notes the client of the sessions that it records.

        A program on another machine calls verbs instead: it records for others.
        """
        memory = await self._memory_for_call(context)
        introduced = context and context.request_context.session.client_params
        return memory.called_by(introduced.client_info.name[:_MAX_CLIENT_NAME]) if introduced else memory

    # --- resources ----------------------------------------------------------------------------------

    async def list_resources(self) -> list[wire.Resource]:
        from mcp_memory.server.resources import FIXED, list_resources

        try:
            own = await list_resources(await self._memory())
        except McpMemoryError:
            own = [*FIXED]  # a home that cannot be opened still has its addresses; reading them gives the error
        return [*own, *([APP] if app_tools() else []), *await super().list_resources()]

    async def list_resource_templates(self) -> list[wire.ResourceTemplate]:
        from mcp_memory.server.resources import TEMPLATES

        return [*TEMPLATES, *await super().list_resource_templates()]

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents] | wire.InputRequiredResult:
        if content := await read_app(str(uri)) or read_skill(str(uri)):
            return [content]
        if not str(uri).startswith("memory://"):
            return await super().read_resource(uri, context)
        from mcp_memory.server.resources import kind_of, read_resource

        kind, id = kind_of(str(uri))
        request = current_request() or Request(kind)
        request.verb, request.ids = f"resource {kind}", ids_in({"id": id})
        try:
            return await read_resource(await self._memory(), str(uri))
        except (NotFound, InvalidInput) as error:
            request.fail(error)
            raise ResourceNotFoundError(await _mask(str(error))) from error
        except McpMemoryError as error:
            request.fail(error)
            raise ResourceError(await _mask(error.public or str(error))) from error
        except Exception as error:
            request.fail(error)
            raise UnexpectedResourceError("Internal error. Its traceback is in the server's log.") from error

    # --- prompts ------------------------------------------------------------------------------------

    async def list_prompts(self) -> list[wire.Prompt]:
        from mcp_memory.server.prompts import PROMPTS

        return [*(prompt.definition for prompt in PROMPTS), *await super().list_prompts()]

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[None, Any] | None = None
    ) -> wire.GetPromptResult | wire.InputRequiredResult:
        from mcp_memory.server.prompts import PROMPTS, get_prompt

        prompt = next((prompt for prompt in PROMPTS if prompt.name == name), None)
        if prompt is None:
            names = [prompt.name for prompt in await self.list_prompts()]
            if name in names:
                return await super().get_prompt(name, arguments, context)
            raise MCPError(
                wire.INVALID_PARAMS, f"There is no prompt {one_line(name, 60)!r}. Prompts: {', '.join(names)}."
            )
        request = current_request() or Request(prompt.name)
        request.verb = f"prompt {prompt.name}"
        try:
            return await get_prompt(await self._memory(), prompt, arguments or {})
        except McpMemoryError as error:
            request.fail(error)
            raise MCPError(wire.INVALID_PARAMS, error.public or str(error)) from error
        except Exception as error:
            request.fail(error)
            logger.exception("prompt %s failed", SafeText(name))
            raise MCPError(wire.INTERNAL_ERROR, f"Internal error in the prompt {name}.") from error

    async def _complete(
        self,
        reference: wire.PromptReference | wire.ResourceTemplateReference,
        argument: wire.CompletionArgument,
        _context: wire.CompletionContext | None,
    ) -> wire.Completion:
        from mcp_memory.server.prompts import complete

        try:
            return await complete(await self._memory(), reference, argument.name, argument.value)
        except McpMemoryError:
            return wire.Completion(values=[])  # no error while somebody is typing


def _verb_tool(name: str) -> Tool | None:
    """Return the tool that stands for a verb; None for another name."""
    if not name.startswith(VERB_PREFIX):
        return None
    from mcp_memory.server.verb_tools import verb_tools

    return verb_tools().get(name)


def _import_handlers() -> None:
    """Import the modules that `initialize` and `tools/list` do not need."""
    for name in ("prompts", "resources", "tools"):
        import_module(f"mcp_memory.server.{name}")


def warm_up() -> None:
    """Build the argument models, and load what the first search needs, so that the first calls do not wait.

    The embedding model is not loaded: it takes 15 MB, which an unused server saves.
    """
    from datetime import UTC, datetime

    from mcp_memory.language.when.intervals import spans_in
    from mcp_memory.language.words import query_terms
    from mcp_memory.server.tools import TOOLS

    for tool in TOOLS:
        _ = tool.model
    for name in ("numpy", "mcp_memory.longterm.search.pages", "mcp_memory.service.excerpts"):
        import_module(name)
    query_terms("yesterday")
    spans_in("yesterday", datetime.now(UTC))


async def _mask(value: Any) -> Any:
    """Return a text or a JSON value with secrets masked."""

    def run() -> Any:
        from mcp_memory.core.secrets.masking import mask, mask_values

        return mask(value) if isinstance(value, str) else mask_values(value)

    return await anyio.to_thread.run_sync(run)  # the first call reads its tables


def _check_right(tool: str, right: Right) -> None:
    """Raise ToolError if the current request lacks the right that a tool needs."""
    grant = current_grant()
    if not grant.allows(right):
        if request := current_request():
            request.outcome = Refused.__name__
        raise ToolError(
            f"{tool} needs the right {right}, and this client has {grant.right}. The owner of the memory can give it "
            f"a token with more: mcp-memory token create --rights {right}."
        )


@asynccontextmanager
async def _lifespan(server: MCPServer[None]) -> AsyncGenerator[None]:
    assert isinstance(server, MemoryServer)
    async with server.hold_open():
        yield None


_STRUCTURED_ONLY_CLIENTS = ("claude-code", "codex")  # prefixes of client names


def adapt_to_client(ctx: ServerRequestContext[Any, Any], result: HandlerResult) -> HandlerResult:
    """Return a result, as sent over the wire, in the form for its client.

    Clients whose models would see nothing but structured content get none, and no output schemas.
    """
    introduced = ctx.session.client_params
    if introduced is None or not introduced.client_info.name.lower().startswith(_STRUCTURED_ONLY_CLIENTS):
        return result
    match result:
        case {"tools": [*tools]}:
            return result | {"tools": [_without(tool, "outputSchema") for tool in tools]}
        case {"content": _, "structuredContent": _} if (ctx.params or {}).get("name") not in APP_ONLY_TOOLS:
            return _without(result, "structuredContent")
        case _:
            return result


def _without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: part for key, part in value.items() if key != name}
