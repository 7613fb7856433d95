"""Transcripts of Cursor's agent, `~/.cursor/projects/<folder>/agent-transcripts/<id>/<id>.jsonl`.

    line   {role, message: {content: [part, …]}}

The user's words are in `<user_query>`, among tags of the client; newer versions add a `<timestamp>`. Transcripts in a
folder `subagents` are of sub-agents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, any_line, has
from mcp_memory.integrations.importers.parts import IMAGE, INJECTED, WORDS
from mcp_memory.integrations.importers.records import find, items_of, list_of, object_of, objects_in
from mcp_memory.integrations.importers.session_files import chat_records

_QUERY = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
_TIME = re.compile(
    r"<timestamp>\w+, (\w{3})\w* (\d+), (\d{4}), (\d+:\d\d [AP]M) \(UTC([+-]\d+)?(?::(\d\d))?\)</timestamp>"
)
_TAGS = re.compile(r"\[Image\]\n|<image_files>.*?</image_files>|<timestamp>.*?</timestamp>", re.DOTALL)
_HIDDEN = "[REDACTED]"


def _parts(message: Message) -> Iterator[Any]:
    for part in map(object_of, items_of(message.get("message"), "content")):
        text = None if part is None else part.get("text")
        if not isinstance(text, str):
            yield part
        elif message.get("role") != "user":
            yield {"type": WORDS, "text": text.replace(_HIDDEN, "").strip()}
        else:
            yield from ({"type": IMAGE} for _ in range(text.count("[Image]\n")))
            yield from ({"type": WORDS, "text": query} for query in _QUERY.findall(text))
            if rest := _QUERY.sub("", _TAGS.sub("", text)).strip():
                yield {"type": INJECTED} if rest.startswith("<") else {"type": WORDS, "text": rest}


def _dated(lines: Any) -> Iterator[Any]:
    """Yield the lines as a conversation, with the times that are in the texts."""
    yield [{**line, "ts": _said_at(line)} for line in objects_in(list_of(lines) or [])]


def _said_at(line: Message) -> str | None:
    texts = (str((object_of(part) or {}).get("text")) for part in items_of(line.get("message"), "content"))
    time = next(filter(None, map(_TIME.search, texts)), None)
    if time is None:
        return None
    month, day, year, clock, hours, minutes = time.groups()
    zone = f"{int(hours or 0):+03d}{minutes or '00'}"
    try:
        return datetime.strptime(f"{month} {day} {year} {clock} {zone}", "%b %d %Y %I:%M %p %z").isoformat()
    except ValueError:
        return None


_CHAT = Chat(
    client="cursor",
    expected="transcript of Cursor",
    conversations=_dated,
    id=(),
    path_id=lambda path: re.sub(r"\.(?:jsonl|txt)$", "", path.rpartition("/")[2]) or None,
    messages=("",),
    skip=lambda line: "role" not in line,
    key=(),
    time=("ts",),
    split=_parts,
    joined="\n\n",
)

transcript_records = chat_records(_CHAT, sub_agent=lambda source: "/subagents/" in source.path)

FORMAT = Format(
    title="a transcript of Cursor's agent",
    location="`~/.cursor/projects`",
    unit="lines",
    path=r"/agent-transcripts/.*\.jsonl$",
    matches=any_line(lambda line: has("role", "message.content")(line) and find(line, "uuid") is None),
    records=transcript_records,
)
