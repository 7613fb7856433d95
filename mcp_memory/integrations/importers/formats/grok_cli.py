"""Sessions of Grok's command line, `~/.grok/sessions/<folder>/<session>/chat_history.jsonl`.

    line   {type: system | user | assistant | reasoning | tool_result, content, tool_calls, tool_call_id}

The user's words are in `<user_query>`. Lines have no times; `summary.json` in the same folder has the title and time of
the session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, first_line, has
from mcp_memory.integrations.importers.parts import INJECTED, RESULT, THOUGHTS, WORDS, call_parts, output_text
from mcp_memory.integrations.importers.records import find, list_of
from mcp_memory.integrations.importers.session_files import beside, chat_records, json_at, load_lines

_QUERY = re.compile(r"<user_query>\n?(.*?)\n?</user_query>\s*", re.DOTALL)


def _session(path: Path, lines: list[Any]) -> dict[str, Any]:
    about = json_at(path.with_name("summary.json"))
    return {
        "id": find(about, "info.id") or path.parent.name,
        "title": find(about, "generated_title"),
        "began": find(about, "created_at"),
        "messages": lines,
    }


def _parts(line: Message) -> Iterator[Any]:
    content = line.get("content")
    if line.get("type") == "tool_result":
        yield {"type": RESULT, "tool_call_id": line.get("tool_call_id"), "output": content}
        return
    for part in list_of(content) or [content]:
        text = output_text(part) if isinstance(part, str) or find(part, "type") == "text" else None
        if text is None or line.get("type") != "user":
            yield part
            continue
        queries, rest = _QUERY.findall(text), _QUERY.sub("", text).strip()
        yield from ({"type": WORDS, "text": query} for query in queries)
        if rest:
            yield {"type": INJECTED} if queries or rest.startswith("<") else {"type": WORDS, "text": rest}
    yield from call_parts(line.get("tool_calls"))


FORMAT = Format(
    title="a session of Grok's command line",
    location="`~/.grok/sessions`",
    unit="lines",
    path=r"(?:^|/)chat_history\.jsonl$",
    matches=first_line(lambda line: find(line, "type") in ("system", "user") and has("content")(line)),
    load=load_lines(_session),
    parts=beside("summary.json"),
    records=chat_records(
        Chat(
            client="grok-cli",
            expected="session of Grok's command line",
            began=("began",),
            role=("type",),
            split=_parts,
            left_out=lambda line: THOUGHTS if line.get("type") == "reasoning" else None,
        )
    ),
)
