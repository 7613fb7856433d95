"""The MCP server: one object, for every transport and both protocol generations.

Our errors reach the client word for word: as a tool result that says what to do next, as "not found" with the
address, or as invalid parameters. Anything else is a bug: its traceback goes to the log and not to the client. Tools,
resources and prompts added with the SDK's decorators are served too.

A tool answers twice, in short text for reading and as structured content for programs. Some clients give their model
the structured half alone (seen in Claude Code 2.1.330 and Codex 0.169), without the text's notes that quoted lines
are data, what to do next, and how to get the rest. So these clients get tools without an output schema and results
without structured content.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
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
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, McpMemoryError, NotFound
from mcp_memory.core.logs import SafeText, event
from mcp_memory.core.rights import Right
from mcp_memory.core.text import one_line
from mcp_memory.server.authorization import current, needed, needed_by, of_request, shown, using
from mcp_memory.server.mcp_app import APP, EXTENSION, UNSEEN, offered_to, read_app, tools_of_the_app
from mcp_memory.server.updates import Updates
from mcp_memory.service.shared_memory import SharedMemory

DEFINITIONS_FILE = Path(__file__).with_name("tool_definitions.json")
"""The definitions of the tools as `tools/list` gives them, written by `scripts/write_tool_definitions.py`.

Building them from the signatures in `tools` takes 0.1 s, and importing those 0.2 s more, while a client waits. A test
holds the file byte-equal to the signatures.
"""


def read_definitions() -> tuple[wire.Tool, ...]:
    return tuple(map(wire.Tool.model_validate, json.loads(DEFINITIONS_FILE.read_bytes())))


def as_file(definitions: Iterable[wire.Tool]) -> bytes:
    """Return the content of the file for these definitions."""
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in definitions]
    return (json.dumps(listed, ensure_ascii=False, indent=1) + "\n").encode()


if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory
logger = logging.getLogger(__name__)
_CACHED = CacheHint(ttl_ms=3_600_000, scope="public")  # what only a new version of this package changes
_OPENERS = {"initialize", "server/discover", "ping"}
_NEXT = {"notifications/initialized", "tools/list"}
"""What clients send right after those; it is answered before anything else is loaded."""
_LISTENERS = {"subscriptions/listen", "resources/subscribe"}
_LISTS = {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}
_NAME = 1_000  # characters of a client's name that are looked at, with each of its requests
INSTRUCTIONS = (resources.files("mcp_memory.server") / "instructions.md").read_text(encoding="utf-8")
"""What every client gets when it connects: when to use this server, and when not to.

The first 500 characters say when to search, record and distil, for some clients show no more and load the tools'
descriptions late; all of it is within 2,048 bytes, where older clients cut. Each sentence corrects something that an
agent did when it had these words alone.
"""
DEFINITIONS = read_definitions()


class MemoryServer(MCPServer[None]):
    """An MCPServer over one shared Memory, of which each request sees the space that its grant names."""

    def __init__(self, settings: Settings) -> None:
        self.updates = Updates(settings.space)
        self.memory = SharedMemory(settings, alongside=self._alongside)
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
                "tools/list": CacheHint(ttl_ms=_CACHED.ttl_ms, scope="private"),  # it is not the same for all
                "prompts/list": _CACHED,
                "resources/templates/list": _CACHED,
                "server/discover": _CACHED,
            },
            subscriptions=self.updates,
            extensions=[EXTENSION],
            middleware=[self._prepare],
        )
        self.updates.attach(self)
        self.completion()(self._complete)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Keep the store open, once it is needed, for as long as the block runs. Transports hold this."""
        return self.memory.held()

    async def _prepare(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Run a request under its grant, with the store opened before it is promised updates.

        Other requests than those that open a connection start to open the store too, and but for the list of tools
        they first have their modules loaded on another thread.
        """
        with using(of_request(ctx.request)), offered_to(ctx):
            try:
                return await self._prepared(ctx, call_next)
            except MCPError as error:  # it repeats what it was asked for: a name, a method, an address
                said = await _masked(error.error.message)
                data = await anyio.to_thread.run_sync(_mask_values, error.error.data)
                raise MCPError(error.error.code, said, data) from error

    async def _prepared(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method in _LISTENERS:
            try:
                await self.updates.begin_to_listen(await self._memory())
            except McpMemoryError as error:
                logger.warning("updates begin when the store can be opened: %s", error)
        elif ctx.method not in _OPENERS:
            self.memory.open_soon()
        if ctx.method in _LISTS and (ctx.params or {}).get("cursor") is not None:
            raise MCPError(wire.INVALID_PARAMS, f"Invalid cursor. {ctx.method} has one page; leave the cursor out.")
        if not self._is_loaded and ctx.method not in _OPENERS | _NEXT:
            await anyio.to_thread.run_sync(_load)
            self._is_loaded = True
        if introduced := ctx.session.client_params:
            self.memory.meet(introduced.client_info.name[:_NAME])
        return for_reader(ctx, await call_next(ctx))

    async def _alongside(self, memory: Memory, *, task_status: TaskStatus[None]) -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(self.updates.watch, memory)
            task_status.started()
            await anyio.to_thread.run_sync(_load)
            if not self._was_called:  # a call at work builds what it needs, sooner without another beside it
                await anyio.to_thread.run_sync(warm_up)

    async def _memory(self) -> Memory:
        """Return the memory, opened where need be, of the space of the request at work."""
        memory, space = await self.memory.get(), current().space
        return memory if space is None else memory.in_space(space)

    # --- tools --------------------------------------------------------------------------------------

    async def list_tools(self) -> list[wire.Tool]:
        own = [*DEFINITIONS, *(tool.definition for tool in tools_of_the_app())]
        return shown([*own, *await super().list_tools()], current())

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> wire.CallToolResult | wire.InputRequiredResult:
        from mcp_memory.server.tools import TOOLS

        self._was_called = True
        tool = next((one for one in (*TOOLS, *tools_of_the_app()) if one.name == name), None)
        if tool is None:
            known = await self.list_tools()
            added = next((one for one in await super().list_tools() if one.name == name), None)
            if added is not None:
                _check(name, needed_by(added))
                return await super().call_tool(name, arguments, context)
            names = ", ".join(one.name for one in known)
            raise ToolError(f"There is no tool {one_line(await _masked(name), 60)!r}. Tools: {names}.")
        _check(name, needed(read_only=tool.read_only, destructive=tool.destructive))
        began, failed = time.perf_counter(), None
        try:
            meta = (context and context.request_context.meta) or {}
            return await tool.call(partial(self._memory_of, context), arguments, meta)
        except McpMemoryError as error:
            failed = type(error).__name__
            raise ToolError(await _masked(str(error))) from error
        except Exception as error:
            failed = type(error).__name__
            raise UnexpectedToolError(f"Internal error in {name}. Its traceback is in the server's log.") from error
        finally:
            took = round((time.perf_counter() - began) * 1000, 1)
            event(logger, "a tool was called", tool=tool.name, ms=took, error=failed)
            if not tool.read_only:
                self.updates.written()

    async def _memory_of(self, context: Context[None, Any] | None) -> Memory:
        """Return the memory, with a separate session for each HTTP client that identifies itself.

        Otherwise clients that name no session would share one canvas. A client with a token has one session a day, on
        whichever server its requests arrive. Clients of 2026-07-28 pass the session that answers name.
        """
        memory, who = await self._memory(), current().who
        if who:
            return memory.of_client(who)
        request = None if context is None else context.request_context.request
        client = request and (request.headers.get("mcp-session-id") or request.query_params.get("session_id"))
        return memory.under(f"{memory.session}-{sha256(client.encode()).hexdigest()[:4]}") if client else memory

    # --- resources ----------------------------------------------------------------------------------

    async def list_resources(self) -> list[wire.Resource]:
        from mcp_memory.server.resources import FIXED, list_resources

        try:
            own = await list_resources(await self._memory())
        except McpMemoryError:
            own = [*FIXED]  # a home that cannot be opened still has its addresses; reading one says what is wrong
        return [*own, *([APP] if tools_of_the_app() else []), *await super().list_resources()]

    async def list_resource_templates(self) -> list[wire.ResourceTemplate]:
        from mcp_memory.server.resources import TEMPLATES

        return [*TEMPLATES, *await super().list_resource_templates()]

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents] | wire.InputRequiredResult:
        if app := await read_app(str(uri)):
            return [app]
        if not str(uri).startswith("memory://"):
            return await super().read_resource(uri, context)
        from mcp_memory.server.resources import read_resource

        try:
            return await read_resource(await self._memory(), str(uri))
        except (NotFound, InvalidInput) as error:
            raise ResourceNotFoundError(await _masked(str(error))) from error
        except McpMemoryError as error:
            raise ResourceError(await _masked(str(error))) from error
        except Exception as error:
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
            known = [known.name for known in await self.list_prompts()]
            if name in known:
                return await super().get_prompt(name, arguments, context)
            raise MCPError(
                wire.INVALID_PARAMS, f"There is no prompt {one_line(name, 60)!r}. Prompts: {', '.join(known)}."
            )
        try:
            return await get_prompt(await self._memory(), prompt, arguments or {})
        except McpMemoryError as error:
            raise MCPError(wire.INVALID_PARAMS, str(error)) from error
        except Exception as error:
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
            return wire.Completion(values=[])  # nobody wants an error while typing


def _load() -> None:
    """Import what `initialize` and `tools/list` do without; the methods that need it import it again, at no cost."""
    for name in ("prompts", "resources", "tools"):
        import_module(f"mcp_memory.server.{name}")


def warm_up() -> None:
    """Build what checks the arguments of calls, and load what the first search needs: the first calls would wait.

    The model of the search is not loaded: it takes 30 MB, which a server that is never asked can do without.
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


async def _masked(text: str) -> str:
    def masked() -> str:
        from mcp_memory.core.secrets.masking import mask

        return mask(text)

    return await anyio.to_thread.run_sync(masked)  # it may read its tables first


def _mask_values(value: Any) -> Any:
    from mcp_memory.core.secrets.masking import mask_values

    return mask_values(value)


def _check(tool: str, right: Right) -> None:
    """Raise ToolError where the request at work may not call a tool that needs this right."""
    grant = current()
    if not grant.allows(right):
        raise ToolError(
            f"{tool} needs the right {right}, and this client has {grant.right}. The owner of the memory can give it "
            f"a token with more: mcp-memory token create --rights {right}."
        )


@asynccontextmanager
async def _lifespan(server: MCPServer[None]) -> AsyncGenerator[None]:
    assert isinstance(server, MemoryServer)
    async with server.running():
        yield None


def build_server(settings: Settings) -> MemoryServer:
    """Return the server. Nothing is opened or loaded until a client has been answered."""
    return MemoryServer(settings)


_SHOW_JSON = ("claude-code", "codex")  # how the names begin by which they introduce themselves


def for_reader(ctx: ServerRequestContext[Any, Any], result: HandlerResult) -> HandlerResult:
    """Return a result, as it goes over the wire, as the client of this request shall have it."""
    introduced = ctx.session.client_params
    if introduced is None or not introduced.client_info.name.lower().startswith(_SHOW_JSON):
        return result
    match result:
        case {"tools": [*tools]}:
            return result | {"tools": [_without(tool, "outputSchema") for tool in tools]}
        case {"content": _, "structuredContent": _} if (ctx.params or {}).get("name") not in UNSEEN:
            return _without(result, "structuredContent")
        case _:
            return result


def _without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: part for key, part in value.items() if key != name}
