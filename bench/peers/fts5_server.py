"""A minimal memory server, as a floor: one FTS5 table of messages, over stdio, with the standard library alone.

`python fts5_server.py FILE`. Each call of `store` is one transaction, flushed to disk.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from typing import Any

_STRINGS = {"type": "array", "items": {"type": "string"}}
TOOLS = [
    {"name": "store", "inputSchema": {"type": "object", "properties": {"messages": _STRINGS}}},
    {"name": "search", "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}}},
]


def main(path: str) -> None:
    con = sqlite3.connect(path, timeout=30, isolation_level=None)
    con.execute("PRAGMA journal_mode = WAL")
    con.execute("PRAGMA synchronous = FULL")
    con.execute("CREATE VIRTUAL TABLE IF NOT EXISTS said USING fts5(text, tokenize = 'porter unicode61')")
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": _answer(con, asked["method"], asked["params"])}
            print(json.dumps(answer), flush=True)


def _answer(con: sqlite3.Connection, method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            server = {"name": "fts5", "version": sqlite3.sqlite_version}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            return {"tools": TOOLS}
        case _:
            given = params["arguments"]
            text = _store(con, given["messages"]) if params["name"] == "store" else _search(con, given["query"])
            return {"content": [{"type": "text", "text": text}]}


def _store(con: sqlite3.Connection, messages: list[str]) -> str:
    con.execute("BEGIN IMMEDIATE")
    con.executemany("INSERT INTO said (text) VALUES (?)", [(message,) for message in messages])
    con.execute("COMMIT")
    return f"{len(messages)} stored"


def _search(con: sqlite3.Connection, query: str) -> str:
    words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
    found = con.execute("SELECT text FROM said WHERE said MATCH ? ORDER BY rank LIMIT 10", (words or '""',))
    return "\n".join(text for (text,) in found)


if __name__ == "__main__":
    main(sys.argv[1])
