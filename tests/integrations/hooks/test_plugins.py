"""What the plugins of clients give to the hooks: recorded events of real clients, replayed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from mcp_memory.integrations.hooks.answers import Conversations
from mcp_memory.integrations.hooks.daemon_files import DaemonFiles
from mcp_memory.integrations.hooks.events import parse_event
from mcp_memory.integrations.importers.history import ImportOptions, import_file, source_of
from mcp_memory.integrations.importers.reader import ImportSource
from mcp_memory.service.memory import Memory

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).parents[3] / "fixtures" / "plugins"
WEIGHTS = "\n".join(f"hive {hive} weighs {20 + hive % 7} kg" for hive in range(1, 901))
NAMED = "My name is Ada and I keep bees on the roof of the library."
ASKED = "What do I keep on the roof of the library?"
SAID = [NAMED, "Noted, Ada.", "List the weights of the hives.", "All 900 hives weigh between 20 and 26 kg.", ASKED]
Events = list[tuple[str, dict[str, Any]]]
Answers = list[tuple[str, dict[str, Any] | None]]


@pytest.fixture(params=["hermes", "openclaw", "opencode"])
def client(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def events(client: str) -> Events:
    text = (FIXTURES / f"{client}.jsonl").read_text(encoding="utf-8").replace("$WEIGHTS", json.dumps(WEIGHTS)[1:-1])
    return [(line["event"], line["payload"]) for line in map(json.loads, text.splitlines())]


async def replay(memory: Memory, client: str, events: Events) -> Answers:
    """Answer the events of a client as the daemon does; return each answer with the kind of its event."""

    async def opened() -> Memory:
        return memory

    talks = Conversations(opened, DaemonFiles(memory.settings.home, None, "key"))
    answers: Answers = []
    for name, payload in events:
        event = await anyio.to_thread.run_sync(parse_event, client, name, payload)
        assert event is not None
        answer = await talks.answer(event)
        talks.note_delivered(event, answer)
        answers.append((event.kind, answer.json))
    return answers


def texts_in(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


async def turns_of(memory: Memory) -> list[str]:
    sessions = [info.session for info in await memory.sessions()]
    turns = [turn for session in sessions for turn in await memory.session_turns(session)]
    return sorted(turn.content.strip('"') for turn in turns)


async def test_a_conversation_is_recorded_once_however_often_it_is_handed_over(
    memory: Memory, client: str, events: Events
) -> None:
    await replay(memory, client, events)
    assert await turns_of(memory) == sorted([*SAID, "Bees."])
    await replay(memory, client, events)
    assert await turns_of(memory) == sorted([*SAID, "Bees."])


async def test_the_model_is_told_what_matters_and_gets_a_note_for_a_large_result(
    memory: Memory, client: str, events: Events
) -> None:
    answers = await replay(memory, client, events)
    starts, prompts, tools = ([json for of, json in answers if of == kind] for kind in ("start", "prompt", "tool"))
    assert "This conversation is recorded in memory by itself" in texts_in(starts[0])
    assert "Last conversation, " in texts_in(starts[-1])
    assert NAMED in texts_in(prompts[-1])
    assert "expand_node]" in texts_in(tools)
    assert "hive 450 weighs" not in texts_in(tools)
    (record,) = await memory.records(limit=10)
    assert record.tokens_kept < record.tokens_raw  # the conversation shows that the model got the note


async def test_an_import_of_the_store_finds_the_conversation_there(
    memory: Memory, client: str, events: Events, tmp_path: Path
) -> None:
    """The plugin hands over what the store has: turns get the same ids by both ways."""
    await replay(memory, client, events)
    sessions = {told["session_id"]: told["conversation"] for _, told in events if "conversation" in told}
    assert len(sessions) == 2
    for source in await anyio.to_thread.run_sync(write_store, client, sessions, tmp_path):
        done = await import_file(
            memory, source, ImportOptions(), now=datetime.now(UTC), progress=lambda name, read, size: None
        )
        assert done.duplicates == done.turns - done.titles > 0
        assert done.kept == 0


def write_store(client: str, sessions: Mapping[str, Any], folder: Path) -> list[ImportSource]:
    """Write conversations as the client stores or exports them."""
    match client:
        case "hermes":
            path = folder / "state.db"
            with sqlite3.connect(path) as database:
                database.execute("CREATE TABLE sessions (id TEXT, started_at REAL, title TEXT, source TEXT)")
                columns = "id INTEGER, session_id TEXT, role TEXT, content TEXT, tool_calls TEXT, tool_call_id TEXT"
                database.execute(f"CREATE TABLE messages ({columns}, tool_name TEXT, timestamp REAL)")
                for session in sessions.values():
                    database.execute(
                        "INSERT INTO sessions VALUES (?, ?, NULL, 'cli')", (session["id"], session["began"])
                    )
                    for row in session["messages"]:
                        calls = json.dumps(row["tool_calls"]) if row.get("tool_calls") else None
                        values = [row.get(key) for key in ("id", "session_id", "role", "content")]
                        values += [calls, row.get("tool_call_id"), row.get("tool_name"), row["timestamp"]]
                        database.execute(f"INSERT INTO messages VALUES ({', '.join('?' * 8)})", values)
            return [source_of(path)]
        case "openclaw":
            files = {f"{id}.jsonl": "\n".join(map(json.dumps, told["lines"])) + "\n" for id, told in sessions.items()}
        case _:
            files = {f"{id}.json": json.dumps(told) for id, told in sessions.items()}
    for name, text in files.items():
        (folder / name).write_text(text)
    return [source_of(folder / name) for name in files]
