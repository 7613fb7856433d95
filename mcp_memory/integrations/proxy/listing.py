"""The answer to `tools/list`, edited: a tool more, and output schemas that large results will still satisfy. Pure.

A client checks structured content against the tool's output schema, and a large one is replaced. So the schema
that the client sees allows both: what the server promised, or the note that stands for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mcp_memory.integrations.proxy.lines import Message

__all__ = ["NOTE_SCHEMA", "note", "shows_itself", "tools_of", "widened", "with_tools"]

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
    """Return the structured content that stands for a large one. It has the text, because some clients show
    structured content instead of the text that is beside it."""
    return {"offloaded": {"node": node, "ref": ref, "text": text}}


def tools_of(result: Message) -> list[dict[str, Any]]:
    """Return the tools of a page of the listing that are objects with a name."""
    tools = result.get("tools")
    listed = cast("list[Any]", tools) if isinstance(tools, list) else []
    objects = [cast("dict[str, Any]", tool) for tool in listed if isinstance(tool, dict)]
    return [tool for tool in objects if isinstance(tool.get("name"), str)]


def shows_itself(tool: Mapping[str, Any]) -> bool:
    """Tell whether a view of the tool's own (an MCP App) reads its structured content, which models do not see."""
    match tool.get("_meta"):
        case {"ui": _} | {"ui/resourceUri": _} | {"openai/outputTemplate": _}:
            return True
        case _:
            return False


def with_tools(result: Message, added: list[dict[str, Any]]) -> Message:
    """Return the page with its output schemas widened, and `added` behind its tools."""
    return {**result, "tools": [*map(_with_wider_schema, result["tools"]), *added]}


def _with_wider_schema(tool: Any) -> Any:
    match tool:
        case {"outputSchema": {**schema}} if not shows_itself(cast("dict[str, Any]", tool)):
            return {**tool, "outputSchema": widened(cast("dict[str, Any]", schema))}
        case _:
            return tool


def widened(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that takes what `schema` takes, or a note."""
    inner = {key: value for key, value in schema.items() if key != "$schema"}
    if "$id" not in inner:  # with one, its references are its own affair
        inner = _moved(inner)
    outer = {"$schema": schema["$schema"]} if "$schema" in schema else {}
    return {**outer, "type": "object", "anyOf": [inner, NOTE_SCHEMA]}


def _moved(value: Any) -> Any:
    """Return the schema with its references to itself pointing to where it now stands."""
    match value:
        case dict():
            entries = cast("dict[str, Any]", value)
            return {key: _pointer(key, entry) or _moved(entry) for key, entry in entries.items()}
        case list():
            return [_moved(entry) for entry in cast("list[Any]", value)]
        case _:
            return value


def _pointer(key: str, value: Any) -> str | None:
    if key in ("$ref", "$dynamicRef") and isinstance(value, str) and (value == "#" or value.startswith("#/")):
        return "#/anyOf/0" + value[1:]
    return None
