"""Threads of Jan, `threads/<id>/messages.jsonl` beside `thread.json`; also OpenAI's threads in the same form.

{id, object: "thread.message", thread_id, role, content: [{type: "text", text: {value}}], created_at}
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.reader import read_json, whole_lines
from mcp_memory.integrations.importers.records import ImportProblem, SourceValue, find, items_of, object_of
from mcp_memory.integrations.importers.streams import readable_file


def _load(path: Path) -> Iterator[SourceValue | ImportProblem]:
    """Yield a thread: what `thread.json` says of it, and its messages."""
    try:
        about = object_of(read_json(path.with_name("thread.json"))) or {}
    except InvalidInput:
        about = dict[str, Any]()
    for lines in whole_lines(readable_file(path)):
        if isinstance(lines, ImportProblem):
            yield lines
            continue
        instructions = [text for one in items_of(about, "assistants") if (text := find(one, "instructions"))]
        thread = {"id": path.parent.name, "instructions": instructions, "messages": lines.value}
        yield SourceValue({**about, **thread}, path.name, path=path.as_posix())


FORMAT = Format(
    title="a thread of Jan",
    found="the folder `threads` of Jan",
    unit="path",
    path=r"(?:^|/)threads/[^/]+/messages\.jsonl$",
    load=_load,
    parts=lambda path: [path.with_name("thread.json")],
    records=Chat(
        client="jan",
        expected="thread of Jan",
        began=("created", "created_at"),
        instructions=("instructions",),
        time=("created_at",),
    ).records,
)
