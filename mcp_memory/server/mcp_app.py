"""The MCP App: two tools and a resource for clients that declare the extension `io.modelcontextprotocol/ui`.

Other clients do not see them: their lists are unchanged, byte for byte, and a call or read is answered like that of an
unknown name. (The SDK's `Apps` would list its tools to everybody.)

`show_memory` is for the model, `memory_view` for the App alone. Both only read, because hosts have shown the tools of
an app to the model: no tool here may ever approve, change or erase anything, or create tokens.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import anyio.to_thread
import mcp.types as wire
from mcp.server.apps import APP_MIME_TYPE, Apps, Visibility, client_supports_apps
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.helper_types import ReadResourceContents
from pydantic import BaseModel, Field

from mcp_memory.core.rights import Right
from mcp_memory.core.text import one_line
from mcp_memory.server.arguments import argument_model, input_schema, parse_arguments
from mcp_memory.server.authorization import current_grant
from mcp_memory.service.jsonrpc import sendable

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory
    from mcp_memory.ui.mcp_app import AppView
URI = "ui://mcp-memory/app.html"
PATH = "mcp-memory/path"
"""Key in the `_meta` of `show_memory` answers: the path for the App. Some clients remove the structured content."""
EXTENSION = Apps()
"""Announces the extension. It has no tools, because they are not for all clients."""
APP = wire.Resource(
    uri=URI,
    name="app",
    title="Memory",
    description="The memory as pages inside a conversation",
    mime_type=APP_MIME_TYPE,
    _meta={"ui": {"prefersBorder": False}},
)
_client_shows_apps: ContextVar[bool] = ContextVar("mcp_memory_app_offered", default=False)


@contextmanager
def note_app_support(ctx: ServerRequestContext[Any, Any]) -> Generator[None]:
    """Remember for the current request whether its client shows Apps."""
    token = _client_shows_apps.set(client_supports_apps(ctx))
    try:
        yield
    finally:
        _client_shows_apps.reset(token)


# --- tools ------------------------------------------------------------------------------------------
def show_memory(
    what: Annotated[
        str, Field(description="a14, t3, r-…, 003, persona, tasks, review, savings, or words to search")
    ] = "",
) -> None:
    """Show the user the memory as a page in this conversation, when they want to see or check it. You see nothing of
    it."""


def memory_view(path: str, zone: str = "") -> None:
    """For the App alone: a page of the memory."""


async def _show(memory: Memory, what: str) -> wire.CallToolResult:
    from mcp_memory.ui.mcp_app import path_of

    path = path_of(what)
    if not path.startswith("/search"):  # raises NotFound for an unknown page; a search always has a page
        await _page(memory, path)
    text = f"The user sees {one_line(path, 60)} of the memory, with its evidence. To read it yourself, use recall."
    return _answer(text, {"path": path}, _meta={PATH: path})


async def _view(memory: Memory, path: str, zone: str = "") -> wire.CallToolResult:
    from mcp_memory.ui.mcp_app import path_of

    page = await _page(memory, path_of(path), zone)
    return _answer("Shown in the App.", {"title": page.title, "tree": page.tree, "path": page.path})


async def _page(memory: Memory, path: str, zone: str = "") -> AppView:
    from mcp_memory.ui.mcp_app import app_view

    grant = current_grant()
    return await app_view(memory, path, right=grant.right, is_owner=grant.is_owner, zone=zone)


def _answer(text: str, content: dict[str, Any], **more: Any) -> wire.CallToolResult:
    return wire.CallToolResult(
        content=[wire.TextContent(text=sendable(text))], structured_content=sendable(content), **more
    )


@dataclass(frozen=True, kw_only=True)
class AppTool:
    """A tool of the App. `declared` gives its schema and description; `answer` runs it."""

    declared: Callable[..., None]
    answer: Callable[..., Awaitable[wire.CallToolResult]]
    title: str
    visibility: tuple[Visibility, ...]
    read_only: bool = True
    destructive: bool = False
    right: Right | None = None

    @property
    def name(self) -> str:
        return self.declared.__name__

    @cached_property
    def model(self) -> type[BaseModel]:
        return argument_model(self.declared)

    @cached_property
    def definition(self) -> wire.Tool:
        return wire.Tool(
            name=self.name,
            title=self.title,
            description=" ".join((self.declared.__doc__ or "").split()),
            input_schema=input_schema(self.model),
            annotations=wire.ToolAnnotations(
                read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
            ),
            _meta={"ui": {"resourceUri": URI, "visibility": list(self.visibility)}},
        )

    async def call(
        self, memory: Callable[[], Awaitable[Memory]], arguments: dict[str, Any], _meta: Mapping[str, Any]
    ) -> wire.CallToolResult:
        parsed = parse_arguments(self.name, self.model, arguments)
        return await self.answer(await memory(), **parsed)


APP_TOOLS = (
    AppTool(declared=show_memory, answer=_show, title="Show the memory", visibility=("model", "app")),
    AppTool(declared=memory_view, answer=_view, title="A page for the App", visibility=("app",)),
)
APP_ONLY_TOOLS = frozenset(tool.name for tool in APP_TOOLS if "model" not in tool.visibility)
"""The tools whose answers no model reads."""


def app_tools() -> tuple[AppTool, ...]:
    """Return the additional tools of the App; none if the client of this request does not show Apps."""
    return APP_TOOLS if _client_shows_apps.get() else ()


async def read_app(uri: str) -> ReadResourceContents | None:
    """Return the App's HTML file; None for another address, or if the client does not show Apps."""
    if uri != URI or not _client_shows_apps.get():
        return None
    from mcp_memory.ui.mcp_app import app_file

    return ReadResourceContents(await anyio.to_thread.run_sync(app_file), mime_type=APP_MIME_TYPE, meta=APP.meta)
