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
from mcp_memory.integrations.clients.description import ClientHooks, Kind, fill, hooks_described
from mcp_memory.integrations.importers.records import session_name

if TYPE_CHECKING:
    from mcp_memory.integrations.hooks.tool_outputs import ToolResponse

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
    client: str
    conversation: str
    """The client's id of the conversation."""
    log: Path | None
    folder: str = ""
    """The folder in which the client runs, empty if unknown."""
    source: str = ""
    """How the conversation starts: `startup`, `resume`, `clear`, `compact`, `fork`."""
    text: str = ""
    """The prompt as the client reported it, or the summary of a compaction; without private passages."""
    call: ToolResponse | None = None
    transcript: Any = None
    """The conversation in the form of the client's store, from a plugin of a client whose log cannot be followed."""
    adds_context: bool = True
    """Whether the client adds a text to the model's context at this event."""

    @property
    def session(self) -> str:
        """The session of the conversation in this memory."""
        return session_name(self.client, self.conversation)


def parse_input(client: str, name: str, payload: bytes) -> HookEvent | None:
    """Parse the bytes that a client gave a hook, as `parse_event` does. Raises ValueError or RecursionError if bad."""
    value = json.loads(payload)
    if _SURROGATE.search(payload):  # programs that count in UTF-16 split characters; halves cannot be stored
        value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    return parse_event(client, name, value)


def parse_event(client: str, name: str, payload: object) -> HookEvent | None:
    """Parse a hook's input; None for an unknown client or event, without a conversation, and for sub-agents.

    Events of sub-agents are ignored: their contexts are short, their tools few, and they do not talk to the user.
    Ignored too are those of another client that runs the hooks of this one.
    """
    hooks = hooks_described(client)
    if not isinstance(payload, dict) or hooks is None or name not in hooks.events:
        return None
    values, fields = cast("dict[str, Any]", payload), hooks.fields
    kind = hooks.events[name]
    conversation, log = hooks.conversation(values)
    if not conversation or values.get(fields.subagent) or not hooks.is_own(values):
        return None
    text = values.get(fields.prompt) if kind == "prompt" else values.get(fields.summary) if kind == "compacted" else ""
    return HookEvent(
        kind=kind,
        name=name,
        client=client,
        conversation=conversation,
        log=log,
        folder=hooks.folder(values),
        source=str(values.get(fields.source) or ""),
        text=without_private(text) if isinstance(text, str) else "",
        call=_parse_call(client, hooks, values) if kind == "tool" else None,
        transcript=values.get(fields.conversation),
        adds_context=hooks.adds_context(kind, values),
    )


def _parse_call(client: str, hooks: ClientHooks, values: Mapping[str, Any]) -> ToolResponse | None:
    from mcp_memory.integrations.hooks.tool_outputs import ToolResponse

    fields = hooks.fields
    tool, id = values.get(fields.tool), values.get(fields.call)
    if not isinstance(tool, str) or fields.response not in values:
        return None
    response = values[fields.response]
    return ToolResponse(
        client=client,
        tool=tool,
        arguments=values.get(fields.arguments),
        id=id if isinstance(id, str) else None,
        response=_parse_json(response) if hooks.json_response else response,
    )


def _parse_json(response: object) -> object:
    try:
        return json.loads(response) if isinstance(response, str) else response
    except (ValueError, RecursionError):
        return response


def context_answer(event: HookEvent, text: str) -> dict[str, Any] | None:
    """Return the answer that adds a text to the model's context; None if the client adds none at this event."""
    hooks = hooks_described(event.client)
    template = hooks and hooks.context.get(event.kind)
    return fill(template, {"event": event.name, "text": text}) if template else None


def output_answer(event: HookEvent, response: object) -> dict[str, Any] | None:
    """Return the answer that replaces a tool's response; None if the client replaces none."""
    hooks = hooks_described(event.client)
    template = hooks and hooks.replaced
    return fill(template, {"event": event.name, "response": response}) if template else None


def recording_notice(session: str) -> str:
    """Return the line that tells a model that its conversation is recorded as `session`."""
    return (
        f"This conversation is recorded in memory by itself, as session {session}. Do not call record_turns for it; "
        "pass that session to recall, offload_tool_result and fold_canvas, not to a search, which would look only here."
    )
