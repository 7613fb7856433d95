"""Sessions of Goose before its database, `~/.local/share/goose/sessions/<id>.jsonl`. `messages` reads its exports.

{working_dir, description, message_count, …}               the first line
{id, role, created, content: [{type: text | toolRequest | toolResponse | …}]}
"""

from __future__ import annotations

import re

from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import Format, first_line, has

FORMAT = Format(
    title="a session of Goose",
    location="`~/.local/share/goose/sessions`",
    unit="lines",
    path=r"\.jsonl$",
    matches=first_line(has("working_dir", "message_count")),
    records=Chat(
        client="goose",
        expected="session of Goose",
        id=(),
        path_id=lambda path: id[1] if (id := re.search(r"([^/]+)\.jsonl$", path)) else None,
        title=("description",),
        began=(),
        messages=("",),
        skip=lambda line: "working_dir" in line,
        time=("created",),
    ).records,
)
