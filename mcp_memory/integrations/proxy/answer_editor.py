"""Edits a server's answers: the added tool, wider output schemas, and large texts replaced by notes.

Clients check structured content against the tool's output schema, and large structured content is replaced by a note.
So the schema that the client sees allows both. In results,

* neighbouring text blocks that differ only in their text are one text (a tool that returns a list sends a block per
  item); the text of an embedded resource is a separate text, unless it is a page to be shown (`ui://`);
* structured content that repeats a text, as is usual, is replaced with that text; otherwise it is a text too, as JSON;
* images, sounds, links, binary resources, error flags, `_meta` and unknown blocks stay.

An answer that cannot be edited passes unchanged.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

import anyio.to_thread

from mcp_memory.integrations.proxy.kept_results import ProxiedCall, ResultKeeper, definition, looks_like_ours, tool_name
from mcp_memory.integrations.proxy.stdio import Message, to_line

NOTE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "offloaded": {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("node", "ref", "text")},
            "required": ["node", "ref", "text"],
        }
    },
    "required": ["offloaded"],
}


def note(node: str, ref: str, text: str) -> dict[str, Any]:
    """Return the structured content that replaces large structured content.

    It contains the text, because some clients show structured content instead of the text blocks.
    """
    return {"offloaded": {"node": node, "ref": ref, "text": text}}


def tools_of(result: Message) -> list[dict[str, Any]]:
    """Return the valid tools of a page of the listing."""
    tools = result.get("tools")
    listed = cast("list[Any]", tools) if isinstance(tools, list) else []
    objects = [cast("dict[str, Any]", tool) for tool in listed if isinstance(tool, dict)]
    return [tool for tool in objects if isinstance(tool.get("name"), str)]


def shows_itself(tool: Mapping[str, Any]) -> bool:
    """Return whether a tool has its own view (an MCP App). The view reads the structured content; models do not."""
    match tool.get("_meta"):
        case {"ui": _} | {"ui/resourceUri": _} | {"openai/outputTemplate": _}:
            return True
        case _:
            return False


def with_tools(result: Message, added: list[dict[str, Any]]) -> Message:
    """Return the page with its output schemas widened, and with the tools `added`."""
    return {**result, "tools": [*map(_with_wider_schema, result["tools"]), *added]}


def _with_wider_schema(tool: Any) -> Any:
    match tool:
        case {"outputSchema": {**schema}} if not shows_itself(cast("dict[str, Any]", tool)):
            return {**tool, "outputSchema": widen_schema(cast("dict[str, Any]", schema))}
        case _:
            return tool


def widen_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that accepts what `schema` accepts, or a note."""
    inner = {key: value for key, value in schema.items() if key != "$schema"}
    if "$id" not in inner:  # with $id, references are relative to it
        inner = _rebase_references(inner)
    outer = {"$schema": schema["$schema"]} if "$schema" in schema else {}
    return {**outer, "type": "object", "anyOf": [inner, NOTE_SCHEMA]}


def _rebase_references(value: Any) -> Any:
    """Make references of the schema to itself point to its new place."""
    match value:
        case dict():
            entries = cast("dict[str, Any]", value)
            return {key: _rebased_reference(key, entry) or _rebase_references(entry) for key, entry in entries.items()}
        case list():
            return [_rebase_references(entry) for entry in cast("list[Any]", value)]
        case _:
            return value


def _rebased_reference(key: str, value: Any) -> str | None:
    if key in ("$ref", "$dynamicRef") and isinstance(value, str) and (value == "#" or value.startswith("#/")):
        return "#/anyOf/0" + value[1:]
    return None


@dataclass(frozen=True, slots=True)
class ResultText:
    """A text of a result: from its blocks `start` to `stop`, from a resource, or from its structured content."""

    kind: Literal["text", "resource", "structured"]
    start: int
    stop: int
    text: str


def is_plain(result: Message) -> bool:
    """Return whether this is the final result of a tool, not a question to the client or a running task."""
    return isinstance(result.get("content"), list) and result.get("resultType", "complete") == "complete"


def texts_in(result: Message, *, with_structured: bool) -> list[ResultText]:
    """Return the texts of a result in order, last the structured content if it is not a repetition."""
    blocks = _blocks(result)
    texts: list[ResultText] = []
    start = 0
    while start < len(blocks):
        stop = start + 1
        match blocks[start]:
            case {"type": "text", "text": str()}:
                while stop < len(blocks) and _same_but_text(blocks[start], blocks[stop]):
                    stop += 1
                texts.append(
                    ResultText("text", start, stop, _join_texts([block["text"] for block in blocks[start:stop]]))
                )
            case {"type": "resource", "resource": {"uri": str() as uri, "text": str() as text}}:
                if not uri.startswith("ui://"):
                    texts.append(ResultText("resource", start, stop, text))
            case _:
                pass
        start = stop
    if with_structured and "structuredContent" in result:
        structured = result["structuredContent"]
        if not any(
            _repeats(structured, [block["text"] for block in blocks[text.start : text.stop]])
            for text in texts
            if text.kind == "text"
        ):
            texts.append(ResultText("structured", len(blocks), len(blocks), structured_text(structured)))
    return texts


def structured_text(structured: object) -> str:
    """Return structured content as JSON with a line for each value, so that parts can be expanded by lines."""
    return json.dumps(structured, ensure_ascii=False, indent=1)


def replace_texts(result: Message, notes: Mapping[ResultText, str]) -> Message:
    """Return the result with each text replaced by its note, if it has one; `structuredContent` stays."""
    blocks: list[Any] = list(_blocks(result))
    for text in sorted(notes, key=lambda text: text.start, reverse=True):
        note = notes[text]
        match text.kind:
            case "text":
                blocks[text.start : text.stop] = [{**blocks[text.start], "text": note}]
            case "resource":
                block = blocks[text.start]
                resource = {**block["resource"], "mimeType": "text/plain", "text": note}
                blocks[text.start] = {**block, "resource": resource}
            case "structured":
                blocks.append({"type": "text", "text": note})
    return {**result, "content": blocks}


def full_text(result: Message) -> str:
    """Return all texts of a result as one."""
    return "\n\n".join(text.text for text in texts_in(result, with_structured=False))


def _blocks(result: Message) -> list[Any]:
    return cast("list[Any]", result["content"])


def _join_texts(texts: list[str]) -> str:
    """Join texts; as a JSON list if each is an object or a list, so that a JSON path leads to any of them."""
    if len(texts) > 1 and all(isinstance(_parse_or_text(text), dict | list) for text in texts):
        return "[\n" + ",\n".join(texts) + "\n]"
    return "\n".join(texts)


def _same_but_text(first: Any, other: Any) -> bool:
    match other:
        case {"type": "text", "text": str()}:
            return {**other, "text": ""} == {**first, "text": ""}
        case _:
            return False


def _repeats(structured: object, texts: list[str]) -> bool:
    """Return whether the texts repeat the structured content.

    SDKs wrap a value that is not an object in an object with one key, so the value of a single key is compared too.
    """
    candidates = [structured]
    if isinstance(structured, dict) and len(cast("dict[str, Any]", structured)) == 1:
        candidates += cast("dict[str, Any]", structured).values()
    whole = _parse_or_text("\n".join(texts)) if len(texts) == 1 else [_parse_or_text(text) for text in texts]
    return any(candidate in (whole, texts[0], texts) for candidate in candidates)


def _parse_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


logger = logging.getLogger(__name__)


class Editor:
    """Edits the answers of a server."""

    def __init__(self, keeper: ResultKeeper, *, offers_tool: bool) -> None:
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
        """The name of the added tool."""
        return tool_name(self._server, self._own)

    def is_expand_call(self, name: object, arguments: object) -> bool:
        """Return whether a call is of the added tool."""
        if not self._offers_tool or not isinstance(name, str) or name in self._own:
            return False
        return name == self.tool or (not self._own and looks_like_ours(name, arguments))

    async def open(self, name: str, arguments: object) -> Message:
        """Return the result for a call of the added tool."""
        text, wrong = await self._keeper.expand(name, arguments)
        return {"content": [{"type": "text", "text": text}], "isError": wrong}

    def set_server_name(self, server: str) -> None:
        """Set the name that the server gives itself."""
        self._server = server

    async def edit(self, message: Message, method: str, call: ProxiedCall | None) -> bytes | None:
        """Keep the large texts of an answer; return the line to send instead, None to pass it unchanged.

        The tools of a listing are remembered.
        """
        if self._off or not isinstance(message.get("result"), dict):
            return None
        result = cast("Message", message["result"])
        if call:
            changed = await self._edit_result(result, call) if is_plain(result) else None
        elif method == "tools/list" and isinstance(result.get("tools"), list):
            changed = await anyio.to_thread.run_sync(self._edit_listing, result)
        else:
            return None
        try:
            return await anyio.to_thread.run_sync(to_line, {**message, "result": changed}) if changed else None
        except (ValueError, RecursionError):
            return None  # JSON cannot write such a number; the original bytes pass

    def _edit_listing(self, page: Message) -> Message | None:
        for tool in tools_of(page):
            name = tool["name"]
            self._own.add(name)
            (self._plain.discard if "outputSchema" in tool else self._plain.add)(name)
            (self._shown.add if shows_itself(tool) else self._shown.discard)(name)
        last = self._offers_tool and not page.get("nextCursor")
        try:
            return with_tools(page, [definition(self.tool)] if last else [])
        except RecursionError:
            # Without wider schemas a client would refuse the note for a large structured result.
            logger.warning("an output schema is nested too deep to be read, so all results pass as they are")
            self._off = True
            return None

    async def _edit_result(self, result: Message, call: ProxiedCall) -> Message | None:
        with_structured = "structuredContent" in result and call.tool not in self._shown
        texts = await anyio.to_thread.run_sync(partial(texts_in, result, with_structured=with_structured))
        notes: dict[ResultText, str] = {}
        kept = None
        for text in texts:
            if await self._keeper.is_large(text.text) and (
                answer := await self._keeper.keep(call, text.text, self.tool, late=self._offers_tool)
            ):
                kept, notes[text] = answer, answer.note
        if kept is None:
            return None
        edited = replace_texts(result, notes)
        if with_structured and await self._replaces_structured(result["structuredContent"], texts, notes):
            edited["structuredContent"] = note(kept.node, kept.ref, full_text(edited))
            if call.tool in self._plain:
                del edited["structuredContent"]
        return edited

    async def _replaces_structured(
        self, structured: Any, texts: list[ResultText], notes: dict[ResultText, str]
    ) -> bool:
        for text in texts:
            if text.kind == "structured":
                return text in notes
        return await self._keeper.is_large(structured_text(structured))  # it repeats one of the texts
