"""What each client calls its events, what it tells with them, and how it wants to be answered. Pure.

A dialect reads a hook's input into an `Event`, and says in the client's own form what is to be put before the model,
or in the place of a tool's output. Fields that are not known are passed over; an event that is not ours, or lacks what
it cannot do without, is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mcp_memory.integrations.hooks.kinds import Kind, kind_of
from mcp_memory.integrations.importers.agents import Agent, agent_named, session_name
from mcp_memory.integrations.importers.formats.logs import without_tags

__all__ = ["Call", "Event", "context", "output", "read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call that came back. `response` has the form that the client gives it."""

    client: Agent
    tool: str
    arguments: object
    id: str | None
    response: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event of a conversation. `log` is the file that its client writes of it, which may not be there yet."""

    kind: Kind
    name: str
    """What the client calls it."""
    client: Agent
    conversation: str
    """The client's own id of it."""
    log: Path | None
    source: str = ""
    """How a conversation starts: `startup`, `resume`, `clear`, `compact`, `fork`."""
    text: str = ""
    """The prompt, or the summary of a compaction."""
    call: Call | None = None

    @property
    def session(self) -> str:
        """What the conversation is called here."""
        return session_name(self.client, self.conversation)


_OF_SUBAGENTS = "agent_id"


def read(client: str, name: str, given: object) -> Event | None:
    """Return the event that a hook's input tells, or None where there is nothing to do.

    What sub-agents do is theirs: their contexts are short, their tools are few, and their talk is no conversation.
    """
    of = agent_named(client)
    if not isinstance(given, dict) or of is None:
        return None
    told = cast("dict[str, Any]", given)
    kind = kind_of(of, name)
    conversation, log = told.get("session_id"), told.get("transcript_path")
    if kind is None or not isinstance(conversation, str) or not conversation.strip() or told.get(_OF_SUBAGENTS):
        return None
    text = told.get("prompt") if kind == "prompt" else told.get("compact_summary") if kind == "compacted" else ""
    return Event(
        kind=kind,
        name=name,
        client=of,
        conversation=conversation,
        log=Path(log) if isinstance(log, str) and log else None,
        source=str(told.get("source") or ""),
        text=without_tags(text) if isinstance(text, str) else "",
        call=_call(of, told) if kind == "tool" else None,
    )


def _call(client: Agent, told: Mapping[str, Any]) -> Call | None:
    tool, id = told.get("tool_name"), told.get("tool_use_id")
    if not isinstance(tool, str) or "tool_response" not in told:
        return None
    return Call(
        client=client,
        tool=tool,
        arguments=told.get("tool_input"),
        id=id if isinstance(id, str) else None,
        response=told["tool_response"],
    )


def context(event: Event, text: str) -> dict[str, Any]:
    """Return the answer that puts a text before the model."""
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}


def output(event: Event, response: object) -> dict[str, Any]:
    """Return the answer that puts another response in the place of the tool's.

    Codex takes a text: it ends its work on the response, not the turn, and the model reads the reason instead.
    """
    if event.client == "codex":
        return {"continue": False, "stopReason": response}
    return {"hookSpecificOutput": {"hookEventName": event.name, "updatedToolOutput": response}}
