"""A small home with something of everything in it, and what has to be found there again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import open_memory
from mcp_memory.store.sql import ref_rows, turn_rows
from mcp_memory.store.sqlite.store import SQLiteStore
from mcp_memory.store.values import NewRef

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SAID = ["I keep bees in Porto.", "How many hives?"]
RESULT = b"\n".join(b"line %d" % number for number in range(200))


async def fill(home: Path) -> None:
    """Turns, a statement, a result on its canvas: through the public API."""
    async with open_memory(home=home, embedder="none") as memory:
        turns = [NewTurn(role="user", content=SAID[0]), NewTurn(role="assistant", content=SAID[1])]
        await memory.record_turns(turns, session="first")
        await memory.remember("The user lives in Porto.", typed=True)
        await memory.offload_tool_result("bash", RESULT, tool_call_id="call-1", task="look around", session="first")


def capture(store: SQLiteStore, text: str, *, session: str = "first", at: datetime = NOON) -> str:
    """Store one turn of the user and return its id."""
    (turn,) = store.write(
        "default", turn_rows.append, session, turn_rows.prepare([NewTurn(role="user", content=text)]), now=at
    ).stored
    return turn.id


def keep(store: SQLiteStore, data: bytes) -> str:
    """Put a result away and return its id."""
    new = NewRef(
        data=data,
        tool="bash",
        arguments={},
        tool_call_id=None,
        session="first",
        timestamp=NOON,
        content_type="text/plain",
    )
    return store.write("default", ref_rows.put, new).id


def said(store: SQLiteStore, *, session: str = "first") -> list[str]:
    return [
        turn.content
        for turn in store.read("default", turn_rows.session_turns, session, limit=100_000)
        if turn.role != "note"
    ]
