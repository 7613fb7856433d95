"""Events of conversations as clients describe them, and the forms of the answers; for the daemon and for hooks alone.

A hook's input is parsed into a `HookEvent`; unknown fields are ignored. Every hook that answers without the daemon
waits for these imports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mcp_memory.core.private_passages import without_private
from mcp_memory.integrations.hooks import Kind, kind_of
from mcp_memory.integrations.importers.records import Agent, agent_named, session_name

if TYPE_CHECKING:
    from mcp_memory.integrations.hooks.tool_outputs import ToolResponse

NEEDED_TOKENS = 395
MAX_CHARS = 9_500
"""Claude Code writes longer texts (from 10,000 characters) to a file, and the model sees only the beginning."""
PROMPT_CHARS = 4_000
"""Characters of a prompt that are searched by."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """An event of a conversation. `log` is the client's log of the conversation, which may not exist yet."""

    kind: Kind
    name: str
    """The client's name of the event."""
    client: Agent
    conversation: str
    """The client's id of the conversation."""
    log: Path | None
    source: str = ""
    """How the conversation starts: `startup`, `resume`, `clear`, `compact`, `fork`."""
    text: str = ""
    """The prompt as the client reported it, or the summary of a compaction; without private passages."""
    call: ToolResponse | None = None

    @property
    def session(self) -> str:
        """The session of the conversation in this memory."""
        return session_name(self.client, self.conversation)


_OF_SUBAGENTS = "agent_id"


def parse_input(client: str, name: str, payload: bytes) -> HookEvent | None:
    """Parse the bytes that a client gave a hook, as `parse_event` does. Raises ValueError or RecursionError if bad."""
    value = json.loads(payload)
    if _SURROGATE.search(payload):  # programs that count in UTF-16 split characters; halves cannot be stored
        value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    return parse_event(client, name, value)


def parse_event(client: str, name: str, payload: object) -> HookEvent | None:
    """Parse a hook's input; None for an unknown client or event, without a conversation, and for sub-agents.

    Events of sub-agents are ignored: their contexts are short, their tools few, and they do not talk to the user.
    """
    agent = agent_named(client)
    if not isinstance(payload, dict) or agent is None:
        return None
    fields = cast("dict[str, Any]", payload)
    kind = kind_of(agent, name)
    conversation, log = fields.get("session_id"), fields.get("transcript_path")
    if kind is None or not isinstance(conversation, str) or not conversation.strip() or fields.get(_OF_SUBAGENTS):
        return None
    text = fields.get("prompt") if kind == "prompt" else fields.get("compact_summary") if kind == "compacted" else ""
    return HookEvent(
        kind=kind,
        name=name,
        client=agent,
        conversation=conversation,
        log=Path(log) if isinstance(log, str) and log else None,
        source=str(fields.get("source") or ""),
        text=without_private(text) if isinstance(text, str) else "",
        call=_parse_call(agent, fields) if kind == "tool" else None,
    )


def _parse_call(client: Agent, fields: Mapping[str, Any]) -> ToolResponse | None:
    from mcp_memory.integrations.hooks.tool_outputs import ToolResponse

    tool, id = fields.get("tool_name"), fields.get("tool_use_id")
    if not isinstance(tool, str) or "tool_response" not in fields:
        return None
    return ToolResponse(
        client=client,
        tool=tool,
        arguments=fields.get("tool_input"),
        id=id if isinstance(id, str) else None,
        response=fields["tool_response"],
    )


def context_answer(event: HookEvent, text: str) -> dict[str, Any]:
    """Return the answer that adds a text to the model's context."""
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}


def output_answer(event: HookEvent, response: object) -> dict[str, Any]:
    """Return the answer that replaces a tool's response.

    For Codex it is a text: Codex then stops processing the response, not the turn, and the model reads the reason
    instead.
    """
    if event.client == "codex":
        return {"continue": False, "stopReason": response}
    return {"hookSpecificOutput": {"hookEventName": event.name, "updatedToolOutput": response}}


def recording_notice(session: str) -> str:
    """Return the line that tells a model that its conversation is recorded as `session`."""
    return (
        f"This conversation is recorded in memory by itself, as session {session}. Do not call record_turns for it; "
        "pass that session to recall, offload_tool_result and fold_canvas, not to a search, which would look only here."
    )
