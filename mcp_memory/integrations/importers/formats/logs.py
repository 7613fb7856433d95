"""What the formats of agents' logs share: what is known so far, what nobody said, and what is ours. No I/O.

A log is read piece by piece, so a line may answer one that was read last week: `SoFar` is what its reader carries from
one piece to the next.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_memory.core.text import is_blank, well_formed, without_blocks
from mcp_memory.core.types import Role
from mcp_memory.integrations.importers.formats.told import LONGEST_ID, Passed, Told, list_of, mended, moment, object_of
from mcp_memory.longterm.l0_turns import SUMMARY

__all__ = [
    "OWN_TOOLS",
    "TIME",
    "SoFar",
    "id_of",
    "is_own",
    "is_stand_in",
    "said",
    "summary",
    "summary_id",
    "texts",
    "turn",
    "without_tags",
]

TIME = ("timestamp",)
"""Where all of them tell when a line was written."""

OWN_TOOLS = frozenset(
    {"memory_search", "conversation_search", "read_persona", "offload_tool_result", "expand_node", "fold_canvas"}
    | {"recall", "remember", "record_turns", "forget", "distill"}
)
"""The tools of our server: what they answer is memory already."""
_COMMON = frozenset({"memory_search", "recall", "remember", "forget", "distill"})

_MOST_CALLS = 50
_MOST_CHARS = 4_000


@dataclass(kw_only=True)
class SoFar:
    """What has to be known of the lines before: whose they are, and which calls wait for their results."""

    conversation: str | None = None
    """The client's id of it."""
    aside: bool = False
    """It is the talk of a sub-agent, of which nothing is taken."""
    calls: dict[str, tuple[str, Any]] = field(default_factory=dict[str, tuple[str, Any]])
    """By id: tool and arguments."""
    turn: str = ""
    count: int = 0
    """For formats whose messages have no ids: messages told since that turn began."""

    def called(self, id: object, tool: object, arguments: Any) -> None:
        if isinstance(id, str) and isinstance(tool, str):
            self.calls[id] = tool, arguments

    def answered(self, id: object) -> tuple[str, Any]:
        return self.calls.pop(id, ("", None)) if isinstance(id, str) else ("", None)

    def dumped(self) -> str:
        """Return it as JSON of bounded size; long arguments are only looked at for what a result is of."""
        calls = {
            id: (tool, arguments if len(json.dumps(arguments)) <= _MOST_CHARS else None)
            for id, (tool, arguments) in list(self.calls.items())[-_MOST_CALLS:]
        }
        return json.dumps([self.conversation, self.aside, self.turn, self.count, calls])

    @staticmethod
    def loaded(text: str) -> SoFar:
        conversation, aside, turn, count, calls = json.loads(text)
        known = {id: (tool, arguments) for id, (tool, arguments) in calls.items()}
        return SoFar(conversation=conversation, aside=aside, turn=turn, count=count, calls=known)


def id_of(value: Any) -> str | None:
    """Return an id that can be stored; None where there is none."""
    return value if isinstance(value, str) and 0 < len(value) <= LONGEST_ID and well_formed(value) else None


def turn(
    line: Mapping[str, Any],
    where: str,
    so_far: SoFar,
    role: Role,
    text: str,
    passed: Passed,
    *,
    id: str | None,
    name: str | None = None,
) -> Iterator[Told]:
    """Yield the turn that a line tells; none where it has no text."""
    if not is_blank(text):
        yield Told(
            where=where,
            role=role,
            content=text,
            name=name,
            said_at=moment(line, TIME, passed),
            id=id,
            session=so_far.conversation,
        )


def summary(line: Mapping[str, Any], where: str, so_far: SoFar, text: str, passed: Passed) -> Iterator[Told]:
    """Yield what a compaction left of a conversation, as the turn that it is."""
    role, name = SUMMARY
    yield from turn(line, where, so_far, role, text, passed, name=name, id=summary_id(text))


# --- texts ------------------------------------------------------------------------------------------


def texts(content: Any, passed: Passed, *, of: frozenset[str]) -> Iterator[str]:
    """Yield the texts of a content: a string, or the `text` of those of its parts whose type is one `of` these."""
    if isinstance(content, str):
        yield mended(content, passed) or ""
        return
    for part in list_of(content) or []:
        block = object_of(part)
        text = part if isinstance(part, str) else block.get("text") if block else None
        if isinstance(text, str) and (block is None or block.get("type", "text") in of):
            yield mended(text, passed) or ""
        elif block is not None and "image" in str(block.get("type", "")):
            passed.parts += 1


_WRAPPERS = (
    "system-reminder|local-command-[a-z]+|command-(?:name|message|args)|bash-(?:input|stdout|stderr)|user-memory-input"
    "|task-notification|ide_[a-z_]+|[a-z-]+-hook|hook_context|session_context|environment_context|user_instructions"
    "|turn_aborted|subagent_notification|user_shell_command|user_action|permissions instructions|skills?_instructions"
    "|skill|recommended_plugins|collaboration_mode|agent_message_board_notification|total_tokens"
    "|channel(?= source=)|teammate-message|cross-session-message|mcp-resource|pasted-text"
)
_NEVER_CLOSED = re.compile(r"^<system-reminder>\s*\n.*\Z", re.MULTILINE | re.DOTALL)
_WRAPPED = re.compile(rf"<({_WRAPPERS})\b[^<>]*>")


def without_tags(text: str) -> str:
    """Return what a person said, without what the client put beside it in tags of its own."""
    if "<" not in text:
        return text.strip()
    left = without_blocks(text, _WRAPPED, lambda found: f"</{found[1]}>", after=r"\s*")
    return _NEVER_CLOSED.sub("", left).strip()


def said(parts: Iterator[str]) -> str:
    return "\n\n".join(part for part in parts if part.strip())


# --- what is ours -----------------------------------------------------------------------------------

_STAND_IN = re.compile(r"\[\d{3,}-N\d+ r-[0-9a-f]{12,64}\b")


def is_own(tool: str) -> bool:
    """Tell whether a tool is of our server, by whatever prefix a client gives it: `mcp__memory__recall`.

    A server may be installed under any name, so the names that others may have too count only with `memory` in front.
    """
    return any(
        tool == own or (tool.endswith((f"_{own}", f":{own}")) and (own not in _COMMON or "memory" in tool))
        for own in OWN_TOOLS
    )


def is_stand_in(text: str) -> bool:
    """Tell whether it is what we put in place of a result, as hooks and `wrap` do."""
    return _STAND_IN.search(text, 0, 600) is not None


def summary_id(text: str) -> str:
    """Return the client id of a conversation's summary, by which it is known wherever it is told."""
    return f"summary-{hashlib.sha256(' '.join(text.split()).encode()).hexdigest()[:24]}"
