"""A large tool output is kept whole, and something short takes its place before the model.

What a model reads in order to edit it, asked a part of, or got from this memory stays as it is. Knows by what tools and
commands each client's model does that; the shapes of outputs are `outputs`'.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from mcp_memory.core.regular_files import read_regular
from mcp_memory.core.tokens import token_counter
from mcp_memory.integrations.hooks.dialects import Call
from mcp_memory.integrations.hooks.outputs import Part, parts_of, replaced, whole_file
from mcp_memory.integrations.hooks.recollecting import whole_output
from mcp_memory.integrations.importers.agents import Agent
from mcp_memory.integrations.importers.formats.logs import is_own, is_stand_in
from mcp_memory.service.render import render_offloaded

if TYPE_CHECKING:
    from mcp_memory.core.types import Offloaded
    from mcp_memory.service.memory import Memory

__all__ = ["Replaced", "offloaded"]

_READ_FACTOR = 4
"""A file that was read is about to be edited, so it is kept out only from so many times the threshold on."""
_MAX_FILE = 128 * 2**20
_FILE = re.compile(r"(?:^|[;&|])\s*(?:cat|nl)\b[^;&|]*$")
_PART = re.compile(r"(?:^|[;&|])\s*(?:sed -n|head|tail)\b[^;&|]*$")


@dataclass(frozen=True, slots=True)
class Replaced:
    """A note that stands where the client would have shown a text: once it has the answer, `kept` saves something."""

    kept: Offloaded
    shown: str
    note: str


async def offloaded(
    memory: Memory, session: str, call: Call, *, log: Path | None = None
) -> tuple[Any, Sequence[Replaced]]:
    """Keep what is large of a tool's answer. Return the answer with what stands for it, None to leave it; and that.

    `log` is the client's log of the conversation, which has whole what the answer may have cut.
    """
    over = memory.settings.offload_over * (_READ_FACTOR if _is_reading(call) else 1)
    if not over or _is_ours(call, memory.settings.home) or _is_asked_for(call):
        return None, ()
    done: dict[Any, Replaced] = {}
    for part in parts_of(call.client, call.tool, call.response):
        if await anyio.to_thread.run_sync(partial(_is_large, part.text, over, memory.settings.tokenizer)):
            kept = await _kept(memory, session, call, part, log)
            note = render_offloaded(kept)
            if len(note) < len(part.text):
                done[part.way] = Replaced(kept, part.text, note)
    notes = {way: one.note for way, one in done.items()}
    return (replaced(call.response, notes), tuple(done.values())) if notes else (None, ())


async def _kept(memory: Memory, session: str, call: Call, part: Part, log: Path | None) -> Offloaded:
    data: str | bytes = part.text
    id = call.id
    if _is_cut(call.client, part.text):
        whole = await anyio.to_thread.run_sync(whole_output, log, call.id)
        data, id = (whole, id) if whole else (data, None)  # what is not found now is kept when its log is read
    if part.way == ("stdout",) and (file := whole_file(call.tool, call.response)):
        data = await anyio.to_thread.run_sync(partial(_whole, Path(file), part.text))
    return await memory.offload_tool_result(
        call.tool,
        data,
        arguments=call.arguments,
        tool_call_id=id,
        session=session,
        replaced=False,  # until the client has the answer
    )


def _is_cut(client: Agent, text: str) -> bool:
    return client == "codex" and text.startswith("Warning: truncated output")


def _whole(file: Path, begun: str) -> str | bytes:
    """Return what the file holds; what it begins with where it cannot be read, or is too large to be kept."""
    try:
        data = read_regular(file, _MAX_FILE)
    except OSError:
        return begun
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _is_large(text: str, over: int, tokenizer: Any) -> bool:
    if len(text) * 4 <= over or is_stand_in(text):  # a character has four bytes at most, and a token at least one
        return False
    return not token_counter(tokenizer).fits(text, over)


def _is_reading(call: Call) -> bool:
    """Tell whether a model reads a file, perhaps to edit it. Codex has no other way than its shell."""
    if call.client == "codex":
        return _FILE.search(_command(call)) is not None and not _is_cut(call.client, str(call.response))
    return call.tool == "Read"


def _is_asked_for(call: Call) -> bool:
    """Tell whether a model reads a part of a file: it knows what it wants, and would only ask again."""
    match call.arguments:
        case {"offset": int()} | {"limit": int()}:
            return call.tool == "Read"
        case _:
            return _PART.search(_command(call)) is not None


def _command(call: Call) -> str:
    match call.arguments:
        case {"command": str() as command} if call.tool == "Bash":
            return command
        case _:
            return ""


def _is_ours(call: Call, home: Path) -> bool:
    """Tell whether a model looks at what is kept here: to put that away again would lead it in a circle."""
    told = json.dumps(call.arguments, ensure_ascii=False)
    return is_own(call.tool) or str(home) in told or "mcp-memory" in told
