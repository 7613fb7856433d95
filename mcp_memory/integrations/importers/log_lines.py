"""A line of a coding agent's log: the parts that the records of all agents have in common. No I/O.

A log is read in chunks, so a line may answer a line of an earlier chunk: `LogState` is kept between chunks.

`split_message` separates the words that the user typed from the text that the client attached. Claude Code, Codex and
Gemini CLI run a hook with each prompt. A prompt that a hook reported is found in the message of the log; the rest of
the message is attached. Without a matching prompt, the message itself is read (`longterm.attachments`), even if other
prompts of the conversation were reported: hooks miss prompts (typed before the daemon ran or while the agent worked,
too long, or rewritten as a slash command), and a user's words that count as attached never become memories. A prompt is
read the same way, because clients that run inside an editor add to it before the hook sees it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mcp_memory.core.private_passages import without_private, without_private_parts
from mcp_memory.core.secrets.masking import mask, mask_name, mask_values
from mcp_memory.core.text import is_blank, one_line, well_formed
from mcp_memory.core.types import TITLE, Role
from mcp_memory.integrations.importers.records import (
    MAX_ID_CHARS,
    ImportedResult,
    ImportedTurn,
    ImportProblem,
    SkippedParts,
    list_of,
    object_of,
    parse_time,
    replace_surrogates,
)
from mcp_memory.longterm.attachments import ATTACHED, Message, parts_of_message
from mcp_memory.longterm.turns import SUMMARY, attached_id, is_client_command

OWN_TOOLS = frozenset(
    {"memory_search", "conversation_search", "read_persona", "offload_tool_result", "expand_node", "fold_canvas"}
    | {"recall", "remember", "record_turns", "forget", "distill"}
)
"""The tools of our server, whose results are in the memory already."""
_COMMON = frozenset({"memory_search", "recall", "remember", "forget", "distill"})

_TIME = ("timestamp",)
_TEXT = ("text",)
_MAX_CALLS = 50
_MAX_CHARS = 4_000

LogRecord = ImportedTurn | ImportedResult | ImportProblem


@dataclass(kw_only=True)
class LogState:
    """The state that is kept between lines: the conversation, and the calls without a result."""

    conversation: str | None = None
    """The client's id of the conversation."""
    is_subagent: bool = False
    """Whether the log is a sub-agent's, of which nothing is imported."""
    calls: dict[str, tuple[str, Any]] = field(default_factory=dict[str, tuple[str, Any]])
    """Tool and arguments, by id."""
    turn: str = ""
    count: int = 0
    """Messages since `turn` began, for formats whose messages have no ids."""
    folder: str = ""
    """The folder in which the client ran, by the first line that names one. Not kept between readings."""
    prompts: Sequence[str] = ()
    """Prompts that the client's hook reported as typed. Not kept between readings."""

    def note_folder(self, folder: object) -> None:
        if isinstance(folder, str):
            self.folder = self.folder or folder

    def note_call(self, id: object, tool: object, arguments: Any) -> None:
        if isinstance(id, str) and isinstance(tool, str):
            self.calls[id] = tool, arguments

    def take_call(self, id: object) -> tuple[str, Any]:
        return self.calls.pop(id, ("", None)) if isinstance(id, str) else ("", None)

    def dump(self) -> str:
        """Return the state as JSON of bounded size, without long arguments and secrets."""
        calls = {
            id: (mask(tool), mask_values(arguments) if len(json.dumps(arguments)) <= _MAX_CHARS else None)
            for id, (tool, arguments) in list(self.calls.items())[-_MAX_CALLS:]
        }
        conversation = self.conversation and mask_name(self.conversation)
        return json.dumps([conversation, self.is_subagent, mask_name(self.turn), self.count, calls])

    @staticmethod
    def load(text: str) -> LogState:
        conversation, is_subagent, turn, count, calls = json.loads(text)
        pending = {id: (tool, arguments) for id, (tool, arguments) in calls.items()}
        return LogState(conversation=conversation, is_subagent=is_subagent, turn=turn, count=count, calls=pending)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log, or a message in it, with the context from which its records are made."""

    fields: Mapping[str, Any]
    where: str
    state: LogState
    skipped: SkippedParts

    def turn(self, role: Role, text: str, *, id: str | None, name: str | None = None) -> Iterator[ImportedTurn]:
        """Yield the turn, unless it has no text."""
        text = text if role == "tool" else without_private(text)
        if not is_blank(text):
            yield ImportedTurn(
                where=self.where,
                role=role,
                content=text,
                name=name,
                said_at=parse_time(self.fields, _TIME, self.skipped),
                id=id,
                session=self.state.conversation,
            )

    def message(self, parts: Iterable[str], *, id: str | None) -> Iterator[ImportedTurn]:
        """Yield a user's message: the typed words, then the text that the client attached to them.

        A built-in command of the client yields nothing.
        """
        message = split_message(without_private_parts(parts), self.state.prompts)
        if any(_steers_client(notice) for notice in message.notices):
            return
        yield from self.turn("user", message.typed, id=id)
        id = None if id is None else log_id(attached_id(id))
        yield from self.turn("tool", join_parts(message.attached), id=id, name=ATTACHED)

    def summary(self, text: str) -> Iterator[ImportedTurn]:
        """Yield the summary of a compaction; the text must have no private passages."""
        yield from self.turn(SUMMARY[0], text, name=SUMMARY[1], id=summary_id(text))

    def title(self, name: object) -> Iterator[ImportedTurn]:
        """Yield the title that the user gave to the conversation."""
        if isinstance(name, str):
            yield from self.turn(
                "system", one_line(replace_surrogates(name, self.skipped) or "", 300), id=None, name=TITLE
            )

    def result(
        self,
        call: Any,
        tool: str,
        arguments: Any,
        text: str,
        whole: re.Match[str] | None = None,
        *,
        said_at: datetime | None = None,
    ) -> Iterator[ImportedResult]:
        """Yield a tool result, unless it has no text. Group 1 of `whole` is the path of a file with the full result."""
        if text.strip():
            yield ImportedResult(
                where=self.where,
                tool=tool,
                arguments=arguments,
                call=log_id(call),
                text=text,
                said_at=said_at or parse_time(self.fields, _TIME, self.skipped),
                whole=whole and re.split(r"[/\\]", whole[1].strip())[-1],
            )

    def texts(self, content: Any, types: tuple[str, ...] = _TEXT) -> Iterator[str]:
        """Yield the texts of a content: a string, or the `text` of its parts whose type is in `types`.

        Images are counted as skipped.
        """
        if isinstance(content, str):
            yield replace_surrogates(content, self.skipped) or ""
            return
        for part in list_of(content) or []:
            block = object_of(part)
            text = part if isinstance(part, str) else block.get("text") if block else None
            if isinstance(text, str) and (block is None or block.get("type", "text") in types):
                yield replace_surrogates(text, self.skipped) or ""
            elif block is not None and "image" in str(block.get("type", "")):
                self.skipped.parts += 1


def log_id(value: Any) -> str | None:
    """Return the id if it can be stored, else None."""
    return value if isinstance(value, str) and 0 < len(value) <= MAX_ID_CHARS and well_formed(value) else None


def join_parts(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part.strip())


_COMMAND_NAME = re.compile(r"<command-name>\s*([^<\s]*)")
"""The name of a command. Without `/`, the agent ran the command itself."""


def _steers_client(notice: str) -> bool:
    """Return whether the message is a built-in command of the client, not a command that the user defined."""
    named = _COMMAND_NAME.match(notice)
    return named is not None and (not named[1].startswith("/") or is_client_command(named[1]))


_STAND_IN = re.compile(r"\[\d{3,}-N\d+ r-[0-9a-f]{12,64}\b")


def is_own(tool: str) -> bool:
    """Return whether a tool is of our server, with any prefix that a client adds, as in `mcp__memory__recall`.

    A server may be installed under any name, so names that other servers may use count only after `memory`.
    """
    return any(
        tool == own or (tool.endswith((f"_{own}", f":{own}", f"-{own}")) and (own not in _COMMON or "memory" in tool))
        for own in OWN_TOOLS
    )


def is_stand_in(text: str) -> bool:
    """Return whether a result is our note for an offloaded result, as hooks and `wrap` write it."""
    return _STAND_IN.search(text, 0, 600) is not None


def summary_id(text: str) -> str:
    """Return the client id of a conversation's summary, by which it is recognised wherever it occurs."""
    return f"summary-{hashlib.sha256(' '.join(text.split()).encode()).hexdigest()[:24]}"


# --- a user's message ----------------------------------------------------------------------------


def split_message(parts: Iterable[str], prompts: Sequence[str] = ()) -> Message:
    """Return the parts of a user's message; `prompts` are those that the user typed in the conversation."""
    texts = [part for part in parts if part.strip()]
    text = "\n\n".join(texts)
    stripped = (prompt.strip() for prompt in prompts)
    reported = max((prompt for prompt in stripped if prompt and _find_prompt(prompt, text) >= 0), key=len, default=None)
    if reported is None:
        return _merge_messages([parts_of_message(*texts)])
    place = _find_prompt(reported, text)
    before, after = (_as_attached(parts_of_message(rest)) for rest in (text[:place], text[place + len(reported) :]))
    return _merge_messages([before, parts_of_message(reported), after])


def _find_prompt(prompt: str, text: str) -> int:
    """Return the position of the prompt in the text, alone on its lines; -1 if there is none."""
    place = text.find(prompt)
    while place >= 0:
        line = text.rfind("\n", 0, place) + 1
        end = text.find("\n", place + len(prompt))
        if not text[line:place].strip() and not text[place + len(prompt) : end if end >= 0 else len(text)].strip():
            return place
        place = text.find(prompt, place + len(prompt))
    return -1


def _as_attached(message: Message) -> Message:
    typed = message.typed.strip()
    return Message("", (*message.attached, typed) if typed else message.attached, message.notices)


def _merge_messages(messages: Iterable[Message]) -> Message:
    messages = list(messages)
    return Message(
        "\n\n".join(message.typed.strip() for message in messages if message.typed.strip()),
        tuple(passage for message in messages for passage in message.attached),
        tuple(notice for message in messages for notice in message.notices),
    )
