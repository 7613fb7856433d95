"""What the proxy changes in the answers of one server, and what it has to know of that server to do so.

An answer that cannot be edited is None here, and passes as it came.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, cast

import anyio.to_thread

from mcp_memory.integrations.proxy.keeper import Call, Keeper
from mcp_memory.integrations.proxy.lines import Message, to_line
from mcp_memory.integrations.proxy.listing import note, shows_itself, tools_of, with_tools
from mcp_memory.integrations.proxy.results import Text, full_text, is_plain, replaced, structured_text, texts_in
from mcp_memory.integrations.proxy.tool import definition, looks_like_ours, tool_name

__all__ = ["Editor"]

logger = logging.getLogger(__name__)


class Editor:
    """Edits the answers of one server."""

    def __init__(self, keeper: Keeper, *, offers_tool: bool) -> None:
        self._keeper = keeper
        self._offers_tool = offers_tool
        self._server = ""
        self._own: set[str] = set()
        self._plain: set[str] = set()
        """Tools of the server that are known to have no output schema."""
        self._shown: set[str] = set()
        """Tools whose structured content is for a view, not for a model."""
        self._off = False

    @property
    def tool(self) -> str:
        """The name of the tool that is added."""
        return tool_name(self._server, self._own)

    def means_us(self, name: object, arguments: object) -> bool:
        """Tell whether a call is one of the tool that is added."""
        if not self._offers_tool or not isinstance(name, str) or name in self._own:
            return False
        return name == self.tool or (not self._own and looks_like_ours(name, arguments))

    async def open(self, name: str, arguments: object) -> Message:
        """Answer such a call."""
        text, wrong = await self._keeper.expand(name, arguments)
        return {"content": [{"type": "text", "text": text}], "isError": wrong}

    def learn(self, server: str) -> None:
        """Take note of the name that the server gives itself."""
        self._server = server

    async def edited(self, message: Message, method: str, call: Call | None) -> bytes | None:
        """Return the line to send instead of an answer, or None."""
        if self._off or not isinstance(message.get("result"), dict):
            return None
        result = cast("Message", message["result"])
        if call:
            changed = await self._of_call(result, call) if is_plain(result) else None
        elif method == "tools/list" and isinstance(result.get("tools"), list):
            changed = await anyio.to_thread.run_sync(self._listed, result)
        else:
            return None
        try:
            return await anyio.to_thread.run_sync(to_line, {**message, "result": changed}) if changed else None
        except (ValueError, RecursionError):
            return None  # a number that JSON cannot write: only the bytes that came can say it

    def _listed(self, page: Message) -> Message | None:
        for tool in tools_of(page):
            name = tool["name"]
            self._own.add(name)
            (self._plain.discard if "outputSchema" in tool else self._plain.add)(name)
            (self._shown.add if shows_itself(tool) else self._shown.discard)(name)
        last = self._offers_tool and not page.get("nextCursor")
        try:
            return with_tools(page, [definition(self.tool)] if last else [])
        except RecursionError:
            # Without wider schemas a client would refuse what stands for a large structured result.
            logger.warning("an output schema is nested too deep to be read, so all results pass as they are")
            self._off = True
            return None

    async def _of_call(self, result: Message, call: Call) -> Message | None:
        with_structured = "structuredContent" in result and call.tool not in self._shown
        texts = await anyio.to_thread.run_sync(partial(texts_in, result, with_structured=with_structured))
        notes: dict[Text, str] = {}
        kept = None
        for text in texts:
            if await self._keeper.is_large(text.text) and (
                answer := await self._keeper.keep(call, text.text, self.tool, late=self._offers_tool)
            ):
                kept, notes[text] = answer, answer.note
        if kept is None:
            return None
        edited = replaced(result, notes)
        if with_structured and await self._structured_goes(result["structuredContent"], texts, notes):
            edited["structuredContent"] = note(kept.node, kept.ref, full_text(edited))
            if call.tool in self._plain:
                del edited["structuredContent"]
        return edited

    async def _structured_goes(self, structured: Any, texts: list[Text], notes: dict[Text, str]) -> bool:
        for text in texts:
            if text.kind == "structured":
                return text in notes
        return await self._keeper.is_large(structured_text(structured))  # it says what one of the texts says
