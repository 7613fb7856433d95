"""What tools answer with: where the text is that a model reads, and the same answer with another text.

Pure. Claude Code takes a replacement only in the tool's own shape, whole; of anything else it uses the original and
complains to the user. So an answer of a shape that is not known here has no parts, and stays as it is. There a tool of
an MCP server answers with one string (its structured content, as JSON) or with a list of blocks. Codex takes one text
in the place of any answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_memory.integrations.importers.agents import Agent
from mcp_memory.integrations.importers.formats.told import list_of

__all__ = ["Part", "parts_of", "replaced", "whole_file"]

Way = tuple[str | int, ...]
"""The keys that lead from an answer to a part of it."""

_WAYS: Mapping[str, Sequence[Way]] = {
    "Bash": [("stdout",), ("stderr",)],
    "Read": [("file", "content")],
    "Grep": [("content",), ("filenames",)],
    "Glob": [("filenames",)],
    "WebFetch": [("result",)],
    "WebSearch": [("results",)],
}
_ELSEWHERE = ("persistedOutputPath", "persistedOutputSize")
"""Where Bash put an output of more than 30,000 characters; its `stdout` is then cut."""


@dataclass(frozen=True, slots=True)
class Part:
    """A text of an answer. `way` leads to it: to a string, or to a list whose items are its lines."""

    way: Way
    text: str


def parts_of(client: Agent, tool: str, response: object) -> list[Part]:
    """Return the texts of an answer that may be replaced; none where the tool, or the shape, is not known."""
    if client == "codex":
        return _as_one(response)
    if tool.startswith("mcp__"):
        return _of_server(response)
    if not isinstance(response, dict) or cast("dict[str, Any]", response).get("isImage"):
        return []
    found = [(way, _at(cast("object", response), way)) for way in _WAYS.get(tool, ())]
    return [Part(way, text) for way, held in found if (text := _text_of(held))]


def whole_file(tool: str, response: object) -> str | None:
    """Return the path of the file that holds the whole of what `stdout` only begins, if there is one."""
    path = cast("dict[str, Any]", response).get(_ELSEWHERE[0]) if isinstance(response, dict) else None
    return path if tool == "Bash" and isinstance(path, str) else None


def replaced(response: Any, notes: Mapping[Way, str]) -> Any:
    """Return the answer with each note in the place of the part that it stands for; all else stays."""
    if () in notes:
        return notes[()]
    answer: Any = json.loads(json.dumps(response))
    for way, note in notes.items():
        parent = _at(answer, way[:-1])
        parent[way[-1]] = [note] if isinstance(parent[way[-1]], list) else note
    if isinstance(answer, dict):  # or the model would be shown the first lines of that file
        return {key: held for key, held in cast("dict[str, Any]", answer).items() if key not in _ELSEWHERE}
    return answer


def _as_one(response: object) -> list[Part]:
    """Return an answer of Codex as one part, if it is nothing but text."""
    match response:
        case str():
            return [Part((), response)]
        case {"isError": True}:  # what went wrong is told by the mark alone, perhaps
            return []
        case dict():
            blocks = list_of(cast("dict[str, Any]", response).get("content"))
            texts = [_text_of_block(block) for block in blocks or []]
            return [Part((), _unwrapped("\n".join(texts)))] if texts and all(texts) else []
        case _:
            return []


def _of_server(response: object) -> list[Part]:
    match response:
        case str():
            return [Part((), _unwrapped(response))]
        case list():
            return [
                Part((place, "text"), text)
                for place, block in enumerate(cast("list[Any]", response))
                if (text := _text_of_block(block))
            ]
        case _:
            return []


def _text_of_block(block: object) -> str:
    match block:
        case {"type": "text", "text": str() as text}:
            return text
        case _:
            return ""


def _unwrapped(text: str) -> str:
    """Return the text that SDKs wrap where a tool's result is no object: `{"result": "…"}`."""
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return text
    match held:
        case {"result": str() as inner, **rest} if not rest:
            return inner
        case _:
            return text


def _at(held: Any, way: Way) -> Any:
    for key in way:
        try:
            held = held[key]
        except (LookupError, TypeError):
            return None
    return held


def _text_of(held: object) -> str:
    match held:
        case str():
            return held
        case list():
            items = cast("list[Any]", held)
            return "\n".join(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items)
        case _:
            return ""
