"""Offloads large tool outputs: kept whole, and replaced by a note in the model's context.

Parts of files and results of this memory's tools are left alone; the threshold is higher for files. The description of
a client says which texts of a response it lets a hook replace. A response of another shape has no parts and is left
alone: Claude Code, for one, takes a replacement only in the tool's exact shape, else it shows the user an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread

from mcp_memory.core.regular_files import read_regular
from mcp_memory.core.token_counts import is_large
from mcp_memory.integrations.clients.description import ClientHooks, hooks_described
from mcp_memory.integrations.hooks.transcripts import whole_output
from mcp_memory.integrations.importers.log_lines import is_own, is_stand_in
from mcp_memory.integrations.importers.records import list_of, object_of
from mcp_memory.integrations.shown_results import shown_of
from mcp_memory.service.render import render_offloaded

if TYPE_CHECKING:
    from mcp_memory.core.types import Offloaded
    from mcp_memory.service.memory import Memory

KeyPath = tuple[str | int, ...]
"""The keys that lead from a response to a part of it."""

_ELSEWHERE = ("persistedOutputPath", "persistedOutputSize")
"""Fields for the file of a Bash output over 30,000 characters, whose `stdout` is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResponse:
    """A finished tool call; `response` is as the client reports it."""

    client: str
    tool: str
    arguments: object
    id: str | None
    response: object


@dataclass(frozen=True, slots=True)
class OutputPart:
    """A text in a response. The path `keys` leads to a string, or to a list whose items are the lines of the text."""

    keys: KeyPath
    text: str


def parts_of(client: str, tool: str, response: object) -> list[OutputPart]:
    """Return the texts of a response that may be replaced; none if the tool or the shape is unknown."""
    parts = _hooks(client).replaceable(tool)
    if isinstance(parts, str):
        return _READERS[parts](response)
    if not isinstance(response, dict) or cast("dict[str, Any]", response).get("isImage"):
        return []
    paths = [tuple(path.split(".")) for path in parts]
    values = [(keys, _value_at(cast("object", response), keys)) for keys in paths]
    return [OutputPart(keys, text) for keys, value in values if (text := _text_of(value))]


def _hooks(client: str) -> ClientHooks:
    """Return the description of a client's hooks. Raises LookupError for a client without hooks."""
    if hooks := hooks_described(client):
        return hooks
    raise LookupError(f"The client {client!r} has no hooks.")


def full_output_path(tool: str, response: object) -> str | None:
    """Return the path of the file with the full output if `stdout` has only its beginning, else None."""
    path = cast("dict[str, Any]", response).get(_ELSEWHERE[0]) if isinstance(response, dict) else None
    return path if tool == "Bash" and isinstance(path, str) else None


def replace_parts(response: Any, notes: Mapping[KeyPath, str]) -> Any:
    """Return the response with each note in place of its part, and without the path of the full output."""
    if () in notes:
        return notes[()]
    answer: Any = json.loads(json.dumps(response))
    for keys, note in notes.items():
        parent = _value_at(answer, keys[:-1])
        parent[keys[-1]] = [note] if isinstance(parent[keys[-1]], list) else note
    if isinstance(answer, dict):  # otherwise the client shows the model the beginning of that file
        return {key: value for key, value in cast("dict[str, Any]", answer).items() if key not in _ELSEWHERE}
    return answer


def _text_part(response: object) -> list[OutputPart]:
    """Return a response as one part, if it is only text."""
    match response:
        case str():
            return [OutputPart((), response)]
        case {"isError": True}:  # the mark may be the only sign of the error
            return []
        case dict():
            blocks = list_of(cast("dict[str, Any]", response).get("content"))
            texts = [_text_of_block(block) for block in blocks or []]
            return [OutputPart((), _unwrap_result("\n".join(texts)))] if texts and all(texts) else []
        case _:
            return []


def _block_parts(response: object) -> list[OutputPart]:
    """Return each text of an MCP server's answer, which is one string or a list of blocks."""
    match response:
        case str():
            return [OutputPart((), _unwrap_result(response))]
        case list():
            return [
                OutputPart((place, "text"), text)
                for place, block in enumerate(cast("list[Any]", response))
                if (text := _text_of_block(block))
            ]
        case _:
            return []


def _member_parts(response: object) -> list[OutputPart]:
    """Return each text of an object, or a response that is one text."""
    match response:
        case str():
            return [OutputPart((), response)]
        case dict():
            members = cast("dict[str, Any]", response).items()
            return [OutputPart((key,), text) for key, text in members if isinstance(text, str) and text]
        case _:
            return []


def _content_parts(response: object) -> list[OutputPart]:
    """Return each text of an MCP server's answer, which is an object with a list of blocks."""
    answer = object_of(response) or {}
    blocks = [] if answer.get("isError") else list_of(answer.get("content"))
    return [OutputPart(("content", *part.keys), part.text) for part in _block_parts(blocks)]


_READERS: Mapping[str, Callable[[object], list[OutputPart]]] = {
    "text": _text_part,
    "blocks": _block_parts,
    "members": _member_parts,
    "content": _content_parts,
}
"""The readers of responses that descriptions of clients name."""


def _text_of_block(block: object) -> str:
    match block:
        case {"type": "text", "text": str() as text}:
            return text
        case _:
            return ""


def _unwrap_result(text: str) -> str:
    """Unwrap `{"result": "…"}`, in which SDKs put a result that is not an object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    match value:
        case {"result": str() as inner, **rest} if not rest:
            return inner
        case _:
            return text


def _value_at(value: Any, keys: KeyPath) -> Any:
    for key in keys:
        try:
            value = value[key]
        except (LookupError, TypeError):
            return None
    return value


def _text_of(value: object) -> str:
    match value:
        case str():
            return value
        case list():
            items = cast("list[Any]", value)
            return "\n".join(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items)
        case _:
            return ""


_READ_FACTOR = 4
"""Factor of the threshold for a file that was read, since the model is probably about to edit it."""
_MAX_FILE = 128 * 2**20
_FILE = re.compile(r"(?:^|[;&|])\s*(?:cat|nl)\b[^;&|]*$")
_PART = re.compile(r"(?:^|[;&|])\s*(?:sed -n|head|tail)\b[^;&|]*$")


async def offload_output(memory: Memory, session: str, call: ToolResponse, *, log: Path | None = None) -> Any:
    """Offload the large parts of a tool's response. Return the new response; None to leave it unchanged.

    `log` is the client's log of the conversation, which has the full output if the response was cut. The log later
    shows whether the client used the new response: no saving is recorded before.
    """
    await anyio.to_thread.run_sync(_hooks, call.client)  # reads the description once
    over = memory.settings.offload_over * (_READ_FACTOR if _reads_file(call) else 1)
    if not over or _reads_memory(call, memory.settings.home) or _reads_part_of_file(call):
        return None
    notes: dict[KeyPath, str] = {}
    for part in parts_of(call.client, call.tool, call.response):
        if not is_stand_in(part.text) and await anyio.to_thread.run_sync(is_large, part.text, over):
            shown = _shown_text(call, part)
            kept = await _offload_part(memory, session, call, part, shown, log)
            if kept.tokens_kept < kept.tokens_raw and len(note := render_offloaded(kept)) < len(shown):
                notes[part.keys] = note
    return replace_parts(call.response, notes) if notes else None


async def _offload_part(
    memory: Memory, session: str, call: ToolResponse, part: OutputPart, shown: str, log: Path | None
) -> Offloaded:
    data: str | bytes = part.text
    id = call.id
    if _is_cut(call.client, part.text):
        whole = await anyio.to_thread.run_sync(whole_output, log, call.id)
        data, id = (whole, id) if whole else (data, None)  # if not found now, it is kept when the log is read
    if part.keys == ("stdout",) and (file := full_output_path(call.tool, call.response)):
        data = await anyio.to_thread.run_sync(partial(_read_whole, Path(file), part.text))
    return await memory.offload_tool_result(
        call.tool, data, arguments=call.arguments, tool_call_id=id, session=session, shown=shown
    )


def _shown_text(call: ToolResponse, part: OutputPart) -> str:
    """Return the text of a part as the client would have shown it to its model, perhaps shortened."""
    file = full_output_path(call.tool, call.response) if part.keys == ("stdout",) else None
    size = cast("dict[str, Any]", call.response).get(_ELSEWHERE[1]) if file else None
    return shown_of(
        call.client, part.text, file=file, size=size if isinstance(size, int) else None, pages=call.tool == "Read"
    )


def _is_cut(client: str, text: str) -> bool:
    mark = _hooks(client).cut_mark
    return bool(mark) and text.startswith(mark)


def _read_whole(file: Path, begun: str) -> str | bytes:
    """Return the content of the file; `begun`, its beginning, if it cannot be read or is too large."""
    try:
        data = read_regular(file, _MAX_FILE)
    except OSError:
        return begun
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _reads_file(call: ToolResponse) -> bool:
    """Return whether the model reads a file, perhaps to edit it. Without a tool for that, it reads files by a shell."""
    if readers := _hooks(call.client).readers:
        return call.tool in readers
    return _FILE.search(_command(call)) is not None and not _is_cut(call.client, str(call.response))


def _reads_part_of_file(call: ToolResponse) -> bool:
    """Return whether the model reads a part of a file: offloading that would only make it ask again."""
    match call.arguments:
        case {"offset": int()} | {"limit": int()}:
            return call.tool in _hooks(call.client).readers
        case _:
            return _PART.search(_command(call)) is not None


def _command(call: ToolResponse) -> str:
    match call.arguments:
        case {"command": str() as command} if call.tool in _hooks(call.client).shells:
            return command
        case _:
            return ""


def _reads_memory(call: ToolResponse, home: Path) -> bool:
    """Return whether the model reads from this memory: offloading that again would lead in a circle."""
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return is_own(call.tool) or str(home) in arguments or "mcp-memory" in arguments
