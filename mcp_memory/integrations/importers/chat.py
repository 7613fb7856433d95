"""Reads conversations by a description of their fields. No I/O, no state.

A `Chat` names the fields of a conversation (id, title, time, messages) and of a message (role, text, time, id,
parent). `Chat.records` yields the records of every conversation in a value: its title, turns and tool results.

Messages that name their parents form a tree. The path from the root to the current message is imported, or to the
newest leaf if the conversation does not name the current message; messages on other branches are counted.

A content is a string, a part, or a list of parts. `PARTS` lists the types of parts that programs use: words, thoughts,
calls of tools, their results. A part without words is counted. A result is yielded with the tool and the arguments of
its call, which may be in an earlier message. Skipped messages and parts are counted by category in `SkippedParts`.

Exports are made by programs, so users cannot repair them: missing, odd or new fields of a message are ignored, and only
an object that is not a conversation is a problem.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from mcp_memory.core.text import one_line
from mcp_memory.core.types import TITLE, Role
from mcp_memory.integrations.importers.branches import messages_before, walk_path
from mcp_memory.integrations.importers.format import AnyRecord
from mcp_memory.integrations.importers.parts import (
    ARGUMENTS,
    BRANCHES,
    CALL,
    CALL_ID,
    CALLS,
    ENDED,
    HIDDEN,
    INJECTED,
    OUTPUT,
    RESULT,
    RESULTS,
    TOOL,
    content_parts,
    describe_attachments,
    inner_fields,
    output_text,
    parse_or_keep,
    part_kind,
    part_text,
)
from mcp_memory.integrations.importers.records import (
    ROLES,
    ImportedResult,
    ImportedTurn,
    ImportProblem,
    InvalidRecord,
    SkippedParts,
    SourceValue,
    find,
    find_first,
    id_of,
    kind_of,
    list_of,
    name_of,
    object_of,
    parse_time,
    place_inside,
    replace_surrogates,
    session_name,
    storable_text,
)

_UNTITLED = {"", "new chat", "untitled", "new conversation"}

Message = Mapping[str, Any]
Keys = Sequence[str]
"""Dotted paths of fields; the first that is there and not empty counts."""


class Talk:
    """A conversation while it is read, with the fields that its records share. `value` is the conversation's JSON."""

    def __init__(self, chat: Chat, value: Any, source: SourceValue, skipped: SkippedParts, id: str | None) -> None:
        self.chat, self.value, self.skipped, self.id = chat, value, skipped, id
        self.session = id if id is None or not chat.client else session_name(chat.client, id)
        self.calls: dict[str, tuple[str, Any]] = {}
        """Tool and arguments of calls, by id."""
        self.path: list[Message] = []
        """The imported messages, in order."""
        self.notes: dict[str, Any] = {}
        """State that hooks of the format keep between messages."""
        self.turn_base = ImportedTurn(
            where=source.where,
            role="system",
            content="",
            session=self.session,
            conversation=source.number,
            began=self.time(_fields_of(value), chat.began),
        )

    def time(self, fields: Any, keys: Keys) -> datetime | None:
        return read_time(fields, keys, self.skipped)

    def title(self, name: str | None) -> Iterator[ImportedTurn]:
        """Yield the title, unless generic, as a turn of role `system`: searches find it, but models do not read it."""
        text = replace_surrogates(name, self.skipped) or ""
        if text.casefold() not in _UNTITLED:
            id, began = f"title-{self.id}" if self.id else None, self.turn_base.began
            yield replace(self.turn_base, content=one_line(text, 300), name=TITLE, said_at=began, id=id)

    def turn(
        self, message: Message, where: str, role: Role, text: str, *, id: str | None, name: str | None = None
    ) -> ImportedTurn | ImportProblem:
        """Return a message as a turn, or the reason why it cannot be imported."""
        try:
            content = storable_text(text, self.skipped)
        except InvalidRecord as invalid:
            return ImportProblem(where=where, what=str(invalid))
        said_at = self.time(message, self.chat.time)
        return replace(self.turn_base, where=where, role=role, content=content, name=name, said_at=said_at, id=id)

    def result(
        self,
        message: Message,
        where: str,
        text: str,
        *,
        call: str | None,
        tool: str = "",
        arguments: Any = None,
        said_at: datetime | None = None,
    ) -> Iterator[ImportedResult]:
        """Yield a tool result; one without text is counted."""
        known_tool, known_arguments = self.calls.get((call or "").removesuffix("-result"), ("", None))
        if not text.strip():
            self.skipped.left_out[RESULTS] += 1
            return
        yield ImportedResult(
            where=where,
            tool=tool or known_tool,
            arguments=arguments if arguments is not None else known_arguments,
            call=call,
            text=replace_surrogates(text, self.skipped) or "",
            said_at=said_at or self.time(message, self.chat.time),
            session=self.session,
            conversation=0 if self.session else self.turn_base.conversation,
        )


def _nothing_special(_talk: Talk, _message: Message, _where: str) -> Iterator[AnyRecord] | None:
    return None


def _as_it_is(text: str, _role: Role) -> str:
    return text


def _none(_: Message) -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """The fields of conversations and their messages.

    `client` is the prefix of session names; without it, sessions are named after the ids. `expected` describes a
    conversation in messages about other values. `conversations` yields the conversations of a value (by default the
    value). If no field has the id of a conversation, `path_id` returns it from the file's path. A conversation may also
    be a list, as of JSON lines: its id, title and time are then in its first objects.
    """

    client: str
    expected: str
    conversations: Callable[[Any], Iterable[Any]] = field(default=lambda value: (value,))
    id: Keys = ("id",)
    path_id: Callable[[str], str | None] = field(default=lambda _: None)
    title: Keys = ("title",)
    title_of: Callable[[Any], str | None] | None = None
    """Returns the title of a conversation, if it is not in a field."""
    began: Keys = ("created_at", "createdAt", "create_time", "timestamp")
    # messages of a conversation
    instructions: Keys = ()
    """Instructions for the model; they are counted, not imported."""
    messages: Keys = ("messages",)
    """The list of messages, or an object with messages under their ids; "" if the conversation is a list."""
    leaf: Keys = ()
    """The id of the current message, in a tree."""
    is_last_current: bool = False
    """Whether the last message is the current one, in a tree without `leaf`."""
    skip: Callable[[Message], bool] = field(default=lambda _: False)
    """Returns whether an entry of `messages` does not belong to the conversation; such entries are not counted."""
    # a message
    message: str = ""
    """The message within an entry of `messages`."""
    key: Keys = ("id", "uuid")
    parent: Keys = ()
    """The id of the message before; no `parent` means that messages follow each other."""
    roots: Sequence[str | None] = ()
    """Ids that mean: no message before; with None, also no id."""
    role: Keys = ("role",)
    roles: Mapping[str, Role] = field(default_factory=lambda: ROLES)
    name: Keys = ()
    time: Keys = ("timestamp", "created_at", "createdAt", "create_time", "ts", "time")
    content: Keys = ("content", "parts", "text")
    joined: str = "\n"
    """The separator of the texts of a message."""
    parts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Kinds of parts that `PARTS` lacks."""
    attachments: Keys = ()
    """Lists of attached files, all of which are read."""
    attachment_name: Keys = ("name", "file_name", "filename", "title")
    attachment_text: Keys = ()
    # hooks, for everything that field names cannot describe
    document: Callable[[Talk, Message], str] | None = None
    """Returns the document that a call with these arguments writes; it is imported like a result of the tool."""
    speaker: Callable[[Message], Role | None] | None = None
    """Returns the role of a message, if it is not in a field."""
    split: Callable[[Message], Iterable[Any]] | None = None
    """Yields the parts of a message, if its content is a text that mixes words with other parts."""
    left_out: Callable[[Message], str | None] = _none
    """Returns the category of a message that is only counted; None for a message that is imported."""
    client_tags: Sequence[str] = ()
    """Tags around texts that the client adds to messages of the user; these texts are removed and counted."""
    clean: Callable[[str, Role], str] = _as_it_is
    """Returns the words of a text as the program shows them; empty if there are none."""
    special: Callable[[Talk, Message, str], Iterator[AnyRecord] | None] = _nothing_special
    """Yields the records of a message of a special kind; None for an ordinary message."""

    def records(self, source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
        """Yield the records of the conversations in a value, and problems. Other parts are counted in `skipped`."""
        for nth, value in enumerate(self.conversations(source.value)):
            conversation = replace(source, value=value, number=source.number + nth)
            entries = self._entries(value)
            if entries is None:
                actual = (
                    kind_of(value) if object_of(value) is None else f"an object without {self._describe_messages()}"
                )
                what = f"is {actual}, and has to be a {self.expected}."
                yield ImportProblem(where=source.where, what=what)
            else:
                yield from self._conversation(conversation, entries, skipped)

    def _describe_messages(self) -> str:
        return self.messages[0] if self.messages[0] != "mapping" else "a mapping"

    def _entries(self, value: Any) -> tuple[str, dict[str | int, Message]] | None:
        """Return the path of the messages and the messages by id or index; None if it is not a conversation."""
        for path in self.messages:
            listed = find(value, path)
            if (thing := object_of(listed)) is not None:
                return path, {id: node for id, entry in thing.items() if (node := object_of(entry)) is not None}
            if (items := list_of(listed)) is not None:
                return path, {index: object_of(item) or {} for index, item in enumerate(items)}
        return None

    def _conversation(
        self, source: SourceValue, entries: tuple[str, dict[str | int, Message]], skipped: SkippedParts
    ) -> Iterator[AnyRecord]:
        fields = _fields_of(source.value)
        id = _id(fields, self.id) or self.path_id(source.path)
        talk = Talk(self, source.value, source, skipped, id)
        at_path, nodes = entries
        messages = {
            key: message
            for key, node in nodes.items()
            if (message := object_of(find(node, self.message))) is not None and not self.skip(message)
        }
        path = [key for key in self._path(fields, nodes, messages) if key in messages]
        if talk.turn_base.began is None:  # the title is dated like the first message
            times = (read_time(messages[key], self.time, SkippedParts()) for key in path)
            talk.turn_base = replace(talk.turn_base, began=next(filter(None, times), None))
        title = None if self.title_of is None else self.title_of(source.value)
        yield from talk.title(title or name_of({"title": find_first(fields, self.title)}, "title"))
        if find_first(fields, self.instructions) is not None:
            skipped.left_out[HIDDEN] += 1
        for key in messages.keys() - set(path):
            if self._category(messages[key]) is None and self.words(messages[key], SkippedParts()):
                skipped.left_out[BRANCHES] += 1
        talk.path = [messages[key] for key in path]
        for key in path:
            inner = f"{at_path}[{key}]" if isinstance(key, int) else f"{at_path}.{key}" if at_path else str(key)
            yield from self._message(talk, messages[key], place_inside(source.where, inner), key)

    def _message(self, talk: Talk, message: Message, where: str, key: str | int) -> Iterator[AnyRecord]:
        special = self.special(talk, message, where)
        if special is not None:
            yield from special
            return
        id = _id(message, self.key) or (id_of({"id": key}, "id") if isinstance(key, str) else None)
        category = self._category(message)
        role = self._role(message)
        if category is None and role == "tool":
            call = _id(message, CALL_ID) or id
            name = name_of({"name": find_first(message, (*self.name, *TOOL))}, "name")
            content = self._content(message)
            if any(part_kind(part, self.parts) == RESULT for part in content_parts(content)):
                yield from self._tool_parts(talk, message, where)
            else:
                yield from talk.result(message, where, output_text(content), call=call, tool=name or "")
        elif category is not None:
            talk.skipped.left_out[category] += 1
        elif role is not None:
            yield from self._tool_parts(talk, message, where)
            name = replace_surrogates(name_of({"name": find_first(message, self.name)}, "name"), talk.skipped)
            yield talk.turn(message, where, role, self.words(message, talk.skipped), id=id, name=name)

    def _category(self, message: Message) -> str | None:
        category = self.left_out(message)
        return category or (HIDDEN if self._role(message) is None else None)

    def _role(self, message: Message) -> Role | None:
        if self.speaker is not None:
            return self.speaker(message)
        role = find_first(message, self.role)
        if isinstance(role, bool):
            role = "user" if role else "assistant"  # as in `isCreatedByUser`
        return self.roles.get(role.strip().lower()) if isinstance(role, str) else None

    def _path(
        self, fields: Any, nodes: Mapping[str | int, Message], messages: Mapping[str | int, Message]
    ) -> list[str | int]:
        """Return the keys of the messages from the first to the current one, or to the newest leaf without that."""
        if not self.parent:
            return list(nodes)
        ids = {key: self._node_id(nodes, messages, key) for key in nodes}
        places = {id: key for key, id in reversed(ids.items()) if id is not None}
        leaf = find_first(fields, self.leaf)
        last = places.get(leaf) if isinstance(leaf, str) else None
        if self.is_last_current and last is None:
            last = list(nodes)[-1] if nodes else None
        before = messages_before(nodes, places, self.parent, self.roots)
        quiet = SkippedParts()
        return walk_path(before, last, lambda key: read_time(messages.get(key), self.time, quiet))

    def _node_id(
        self, nodes: Mapping[str | int, Message], messages: Mapping[str | int, Message], key: str | int
    ) -> str | None:
        return key if isinstance(key, str) else _id(messages.get(key, {}), self.key) or _id(nodes[key], self.key)

    # the contents of a message

    def words(self, message: Message, skipped: SkippedParts) -> str:
        """Return the words of a message and the names and texts of its attachments; counts its other parts."""
        role = self._role(message) or "user"
        content = self._content(message)
        texts = [self.clean(text, role) for part in content_parts(content) if (text := self._part_words(part, skipped))]
        if self.client_tags and role == "user":
            texts = [self._without_tags(text, skipped) for text in texts]
        files = [
            object_of(file) or {"name": file} for key in self.attachments for file in content_parts(find(message, key))
        ]
        named = (
            (
                name_of({"name": find_first(file, self.attachment_name)}, "name"),
                text if isinstance(text := find_first(file, self.attachment_text), str) and text.strip() else None,
            )
            for file in files
        )
        words = self.joined.join(text for text in texts if text)
        return "\n".join(text for text in (words, describe_attachments(named, skipped)) if text)

    def _without_tags(self, text: str, skipped: SkippedParts) -> str:
        names = "|".join(map(re.escape, self.client_tags))
        text, count = re.subn(rf"<({names})\b[^>]*>.*?</\1>\s*", "", text, flags=re.DOTALL)
        skipped.left_out[INJECTED] += count
        return text.strip() if count else text

    def _content(self, message: Message) -> Any:
        if self.split is not None:
            return list(self.split(message))
        values = (find(message, path) for path in self.content)
        return next((value for value in values if value and not isinstance(value, int | float)), None)

    def _part_words(self, part: Any, skipped: SkippedParts) -> str:
        fields = object_of(part)
        if fields is None:
            return part if isinstance(part, str) else ""
        match part_kind(fields, self.parts):
            case "words":
                text = part_text(fields)
                skipped.parts += text is None
                return text or ""
            case "result":
                return ""
            case "call":
                skipped.left_out[CALLS] += 1
            case "image":
                skipped.parts += 1
            case category:
                skipped.left_out[category] += 1
        return ""

    def _tool_parts(self, talk: Talk, message: Message, where: str) -> Iterator[AnyRecord]:
        """Record the calls of tools in a message, and yield the results."""
        for call in content_parts(message.get("tool_calls")):
            self._record_call(talk, object_of(call) or {})
        for nth, part in enumerate(content_parts(self._content(message))):
            kind = part_kind(part, self.parts)
            if kind not in (CALL, RESULT):
                continue
            fields = inner_fields(object_of(part) or {})
            call = _id(fields, CALL_ID) or f"{_id(message, self.key)}-{nth}"
            tool = name_of({"name": find_first(fields, TOOL)}, "name") or ""
            more: dict[str, Any] = {"tool": tool, "said_at": talk.time(fields, ENDED)}
            if kind == CALL:
                self._record_call(talk, fields)
                arguments = object_of(find_first(fields, ARGUMENTS)) or {}
                if self.document is not None and (document := self.document(talk, arguments)):
                    rest = {key: value for key, value in arguments.items() if str(value) not in document}
                    yield from talk.result(message, where, document, call=call, arguments=rest, **more)
            output = find_first(fields, OUTPUT)
            if kind == RESULT or output is not None:
                call = call if self.document is None else f"{call}-result"
                yield from talk.result(message, where, output_text(output), call=call, **more)

    def _record_call(self, talk: Talk, fields: Message) -> None:
        id, tool = _id(fields, CALL_ID), name_of({"name": find_first(fields, TOOL)}, "name")
        if id and tool:
            arguments = find_first(fields, ARGUMENTS)
            talk.calls[id] = tool, parse_or_keep(arguments)


# --- fields -----------------------------------------------------------------------------------------

_HEADER_LINES = 20


def _fields_of(value: Any) -> Any:
    """Return the fields of a conversation; of a list, those of its first objects, the earliest first."""
    lines = list_of(value)
    if lines is None:
        return value
    return dict(ChainMap(*(fields for line in lines[:_HEADER_LINES] if (fields := object_of(line)) is not None)))


def _id(thing: Any, keys: Keys) -> str | None:
    for key in keys:
        value = find(thing, key)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if (id := id_of({"id": value}, "id")) is not None:
            return id
    return None


def read_time(fields: Any, keys: Keys, skipped: SkippedParts) -> datetime | None:
    """Return the first readable time under dotted keys."""
    return parse_time({key: find(fields, key) for key in keys}, tuple(keys), skipped)
