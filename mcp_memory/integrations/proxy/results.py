"""The answer to `tools/call`, edited: which of its texts can be kept elsewhere, and what stands in their place. Pure.

* Neighbouring text blocks that differ in their text alone are one text (a tool that returns a list sends a block
  an item). The text of an embedded resource is another, unless it is a page to be shown (`ui://`).
* Structured content that says what a text says, which is the rule, goes with that text. Any other is a text of
  its own, as JSON.
* Images, sounds, links, binary resources, errors' flags, `_meta` and whatever is not known stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_memory.integrations.proxy.lines import Message

__all__ = ["Text", "full_text", "is_plain", "replaced", "structured_text", "texts_in"]


@dataclass(frozen=True, slots=True)
class Text:
    """A text of a result: of the blocks `start` to `stop`, or of a resource, or its structured content."""

    kind: Literal["text", "resource", "structured"]
    start: int
    stop: int
    text: str


def is_plain(result: Message) -> bool:
    """Tell whether this is a tool's result, and not a question to the client or a task that goes on."""
    return isinstance(result.get("content"), list) and result.get("resultType", "complete") == "complete"


def texts_in(result: Message, *, with_structured: bool) -> list[Text]:
    """Return the texts of a result in order; the structured content last, where it says something else."""
    blocks = _blocks(result)
    found: list[Text] = []
    start = 0
    while start < len(blocks):
        stop = start + 1
        match blocks[start]:
            case {"type": "text", "text": str()}:
                while stop < len(blocks) and _alike(blocks[start], blocks[stop]):
                    stop += 1
                found.append(Text("text", start, stop, _joined([block["text"] for block in blocks[start:stop]])))
            case {"type": "resource", "resource": {"uri": str() as uri, "text": str() as text}}:
                if not uri.startswith("ui://"):
                    found.append(Text("resource", start, stop, text))
            case _:
                pass
        start = stop
    if with_structured and "structuredContent" in result:
        structured = result["structuredContent"]
        if not any(
            _says(structured, [block["text"] for block in blocks[text.start : text.stop]])
            for text in found
            if text.kind == "text"
        ):
            found.append(Text("structured", len(blocks), len(blocks), structured_text(structured)))
    return found


def structured_text(structured: object) -> str:
    """Return structured content as text: a line for each value, so that lines can be asked for."""
    return json.dumps(structured, ensure_ascii=False, indent=1)


def replaced(result: Message, notes: Mapping[Text, str]) -> Message:
    """Return the result with a note in the place of each text that has one; `structuredContent` stays."""
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


def _joined(texts: list[str]) -> str:
    """Return texts as one: as JSON, where each is an object or a list, so that a path leads to any of them."""
    if len(texts) > 1 and all(isinstance(_loaded(text), dict | list) for text in texts):
        return "[\n" + ",\n".join(texts) + "\n]"
    return "\n".join(texts)


def _alike(first: Any, other: Any) -> bool:
    match other:
        case {"type": "text", "text": str()}:
            return {**other, "text": ""} == {**first, "text": ""}
        case _:
            return False


def _says(structured: object, texts: list[str]) -> bool:
    """Tell whether the texts say what the structured content does; SDKs wrap what is no object: `{"result": …}`."""
    candidates = [structured]
    if isinstance(structured, dict) and len(cast("dict[str, Any]", structured)) == 1:
        candidates += cast("dict[str, Any]", structured).values()
    whole = _loaded("\n".join(texts)) if len(texts) == 1 else [_loaded(text) for text in texts]
    return any(candidate in (whole, texts[0], texts) for candidate in candidates)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
