"""Recorded or documented events of every client with hooks, replayed over a real memory: `fixtures/hooks/<client>.json`.

`{log}` in a payload is the path of the log, `{large}` a large text; an object `{"json": value}` is the value as JSON in a
text. The replays of plugins are in `test_plugins`. In an answer, `{context}` is a text with what the memory knows, `{note}` the note in place of the large text.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from anyio.to_thread import run_sync as to_thread

from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.clients.description import client_names, hooks_described
from mcp_memory.integrations.hooks.answers import Conversations
from mcp_memory.integrations.hooks.daemon_files import DaemonFiles, make_folders
from mcp_memory.integrations.hooks.events import parse_event
from mcp_memory.service.memory import Memory, open_memory

REPLAYS = Path(__file__).resolve().parents[3] / "fixtures" / "hooks"
PUMP, HULL = "The pump at quay seven leaks oil.", "The hull of the Kestrel gets green paint before the regatta."
CLIENTS = [name for name in client_names() if (hooks := hooks_described(name)) and not hooks.hands_over]
LARGE = "\n".join(f"2026-11-22 10:{n // 60:02d}:{n % 60:02d} INFO depth {n * 37 % 911} job-{n:04d}" for n in range(400))


@pytest.fixture
async def memory(home: Path) -> AsyncIterator[Memory]:
    async with open_memory(home=home, embedder="none") as opened:
        await opened.remember("The harbour master of Torvik is Odd Berge.", typed=True)
        for session, words in (("older", PUMP), ("newer", HULL)):
            await opened.record_turns([NewTurn(role="user", content=words)], session=session)
        yield opened


def filled(value: Any, log: Path) -> Any:
    match value:
        case {"json": inner, **rest} if not rest:
            return json.dumps(filled(inner, log))
        case dict():
            return {key: filled(member, log) for key, member in cast("dict[str, Any]", value).items()}
        case list():
            return [filled(item, log) for item in cast("list[Any]", value)]
        case str():
            return value.replace("{log}", str(log)).replace("{large}", LARGE)
        case _:
            return value


def alike(expected: Any, answer: Any, context: str) -> bool:
    """Return whether an answer is the expected one; `context` is a word of the added text."""
    match expected:
        case "{context}":
            return isinstance(answer, str) and context in answer
        case "{note}":
            return isinstance(answer, str) and "expand_node" in answer
        case dict():
            fields = cast("dict[str, Any]", expected)
            return (
                isinstance(answer, dict)
                and fields.keys() == cast("dict[str, Any]", answer).keys()
                and all(alike(fields[key], answer[key], context) for key in fields)
            )
        case list():
            items = cast("list[Any]", expected)
            return isinstance(answer, list) and all(
                map(alike, items, cast("list[Any]", answer), [context] * len(items))
            )
        case _:
            return expected == answer


def prepare(client: str, folder: Path, files: DaemonFiles) -> tuple[dict[str, Any], Path]:
    """Write the log of a replay into its place below a folder; return the replay and the log."""
    make_folders(files)
    replay = json.loads((REPLAYS / f"{client}.json").read_text(encoding="utf-8"))
    log = folder / replay["log"]
    log.parent.mkdir(parents=True)
    log.write_text("".join(json.dumps(line) + "\n" for line in replay["lines"]), encoding="utf-8")
    return replay, log


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_conversation_is_recalled_answered_and_recorded(
    client: str, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COPILOT_HOME", raising=False)
    files = DaemonFiles(memory.settings.home, None, "key")
    replay, log = await to_thread(prepare, client, tmp_path, files)

    async def opened() -> Memory:
        return memory

    conversations = Conversations(opened, files)
    session = shown = ""
    for step in replay["events"]:
        event = await to_thread(parse_event, client, step["event"], filled(step["payload"], log))
        assert event is not None
        assert event.folder == "/home/ada/quay"
        assert event.log == log or step["payload"].get("transcript_path", "") is None
        answer = await conversations.answer(event)
        expected = filled(step["answer"], log) if "answer" in step else None
        word = "This conversation is recorded" if event.kind == "start" else "quay seven"
        assert alike(expected, answer.json, word), (step["event"], answer.json)
        conversations.note_delivered(event, answer)
        shown += answer.shown_text
        session = event.session
    conversations.following.finish()
    with anyio.fail_after(60):
        await conversations.following.run()
    turns = await memory.session_turns(session, limit=100)
    assert [[turn.role, turn.content] for turn in turns] == replay["turns"]
    assert session.startswith(f"{client}-")
    assert [shown.count(words) for words in ("Odd Berge", PUMP, HULL)] == [1, 1, 1]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_replay_has_every_kind_of_event_that_is_answered(client: str) -> None:
    hooks = hooks_described(client)
    replay = json.loads((REPLAYS / f"{client}.json").read_text(encoding="utf-8"))
    assert hooks is not None
    assert {hooks.events[step["event"]] for step in replay["events"]} >= {*hooks.events.values()} & {
        "start",
        "prompt",
        "tool",
        "stop",
    }
