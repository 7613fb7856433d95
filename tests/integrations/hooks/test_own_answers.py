"""What a hook answers itself, by words alone: in the form of the daemon, and nothing that a reader must not see."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import NewTurn, Role
from mcp_memory.integrations.hooks import NEEDED_TOKENS, answers
from mcp_memory.integrations.hooks.daemon_files import DaemonFiles, daemon_files, make_folders
from mcp_memory.integrations.hooks.events import context_answer, parse_event
from mcp_memory.integrations.hooks.own_answers import own_answer
from mcp_memory.service.memory import Memory
from mcp_memory.store.sql import quarantine_rows

ID = "3f2a9c1e-0d4b-4c3a-9b7e-000000000000"
MASTER = "The harbour master of Torvik is Odd Berge."
QUESTION = "Who is harbour master of Torvik?"


@pytest.fixture
def files(home: Path) -> DaemonFiles:
    found = daemon_files(home, None)
    assert found is not None
    make_folders(found)
    return found


def payload(prompt: str = "", **told: str) -> bytes:
    return json.dumps({"session_id": ID, "prompt": prompt, **told}).encode()


async def own(files: DaemonFiles, event: str, given: bytes) -> bytes:
    return await anyio.to_thread.run_sync(own_answer, files, "claude-code", event, given)


async def asked(files: DaemonFiles, prompt: str, **told: str) -> str:
    answer = await own(files, "UserPromptSubmit", payload(prompt, **told))
    return json.loads(answer)["hookSpecificOutput"]["additionalContext"] if answer else ""


def said(text: str, role: Role = "user", name: str | None = None) -> NewTurn:
    return NewTurn(role=role, content=text, name=name, said_at=datetime(2026, 11, 22, 10, tzinfo=UTC))


# --- the form ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["remembered", "said"])
async def test_its_answer_is_that_of_the_daemon(memory: Memory, files: DaemonFiles, how: str) -> None:
    if how == "remembered":
        await memory.remember(MASTER, typed=True)
    else:
        await memory.record_turns([said(f"{MASTER} He answers the telephone tomorrow.")], session="another")
    event = parse_event("claude-code", "UserPromptSubmit", {"session_id": ID, "prompt": QUESTION})
    assert event is not None
    text = await answers.recall_beyond_context(memory, event.session, QUESTION, shown=[])
    assert "Odd Berge" in text
    assert json.loads(await own(files, "UserPromptSubmit", payload(QUESTION))) == context_answer(event, text)


async def test_a_start_says_that_it_is_recorded_and_what_always_applies(memory: Memory, files: DaemonFiles) -> None:
    await memory.record_turns([said("Always answer in one sentence, please.")], session="another")
    await memory.remember("Never deploy on a Friday.", typed=True, kind="instruction")
    start = await own(files, "SessionStart", payload(source="startup", transcript_path="/no/log.jsonl"))
    text: str = json.loads(start)["hookSpecificOutput"]["additionalContext"]
    assert "is recorded in memory by itself, as session claude-code-3f2a9c1e" in text
    assert "Always:\n- Never deploy on a Friday. (a" in text
    assert await own(files, "SessionStart", payload(agent_id="7")) == b""


async def test_it_keeps_to_the_budget(memory: Memory, files: DaemonFiles) -> None:
    await memory.record_turns([said(f"{MASTER} Note {n}: {'the quay is long. ' * 20}") for n in range(40)], session="a")
    await memory.waiting()  # turns are judged
    text = await asked(files, QUESTION)
    assert "Odd Berge" in text
    counter = token_counter(memory.settings.tokenizer)
    assert await anyio.to_thread.run_sync(counter.count, text) <= NEEDED_TOKENS


async def test_it_brings_the_personal_memory_beside_that_of_a_project(
    memory: Memory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_MEMORY_PERSONAL_SPACE", "default")
    files = await anyio.to_thread.run_sync(daemon_files, home, "web")
    assert files is not None
    await anyio.to_thread.run_sync(make_folders, files)
    long = "the quay is long. " * 20
    for space, name in (("web", "Odd Berge"), ("default", "Eva Lund"), ("third", "Kai Dahl")):
        turns = [said(f"The harbour master of Torvik is {name}. Note {n}: {long}") for n in range(20)]
        await memory.in_space(space).record_turns(turns, session="a")
        await memory.in_space(space).remember(f"Always greet {name}.", typed=True, kind="instruction")
    await memory.waiting()
    text = await asked(files, QUESTION)
    of_project, of_personal = text.split('<mcp-memory-recall part="dynamic" memory="personal">')
    assert "\n[t" in of_project
    assert "\n[personal:t" in of_personal
    assert ("Odd Berge" in of_project, "Eva Lund" in of_personal, "Kai Dahl" in text) == (True, True, False)
    counter = token_counter(memory.settings.tokenizer)
    assert await anyio.to_thread.run_sync(counter.count, text) <= NEEDED_TOKENS
    start = json.loads(await own(files, "SessionStart", payload(source="startup")))
    rules = start["hookSpecificOutput"]["additionalContext"]
    assert "- Always greet Odd Berge. (a1)" in rules
    assert "- Always greet Eva Lund. (personal:a1)" in rules
    assert "Kai Dahl" not in rules


# --- what it may not show ---------------------------------------------------------------------------


async def in_another_space(memory: Memory) -> None:
    await memory.in_space("work").remember(MASTER, typed=True)


async def in_this_conversation(memory: Memory) -> None:
    await memory.record_turns([said(MASTER)], session="claude-code-3f2a9c1e")


async def by_the_assistant(memory: Memory) -> None:
    await memory.record_turns([said(MASTER, "assistant")], session="another")


async def by_a_tool(memory: Memory) -> None:
    await memory.record_turns([said(MASTER, "tool", "Bash")], session="another")


async def in_private(memory: Memory) -> None:
    await memory.record_turns([said(f"<private>{MASTER}</private> Who is harbour master, I wonder.")], session="a")


async def in_quarantine(memory: Memory) -> None:
    await memory.record_turns([said(MASTER)], session="another")
    await memory.remember(MASTER, typed=True)
    store = memory._parts.store  # pyright: ignore[reportPrivateUsage]
    rows = {f"{kind}{number}": ["order"] for kind in "ta" for number in range(1, 6)}
    now = datetime.now(UTC)
    await anyio.to_thread.run_sync(lambda: store.write("default", quarantine_rows.quarantine, rows, now=now))


async def and_forgotten(memory: Memory) -> None:
    remembered = await memory.remember(MASTER, typed=True)
    await memory.forget([remembered.atom.id])


async def and_replaced(memory: Memory) -> None:
    remembered = await memory.remember(MASTER, typed=True)
    await memory.remember("Torvik has no such office any more.", typed=True, supersedes=[remembered.atom.id])


async def as_the_same_question(memory: Memory) -> None:
    await memory.record_turns([said(QUESTION)], session="another")


@pytest.mark.parametrize(
    "stored",
    [
        in_another_space,
        in_this_conversation,
        by_the_assistant,
        by_a_tool,
        in_private,
        in_quarantine,
        and_forgotten,
        and_replaced,
        as_the_same_question,
    ],
)
async def test_it_does_not_show(
    memory: Memory, files: DaemonFiles, stored: Callable[[Memory], Awaitable[None]]
) -> None:
    await memory.record_turns([said(f"The boat to {place} is late.") for place in ("Hallan", "Brisa")], session="old")
    await stored(memory)
    assert "Odd Berge" not in await asked(files, QUESTION)


async def test_it_shows_the_space_of_the_settings(memory: Memory, files: DaemonFiles, home: Path) -> None:
    await in_another_space(memory)
    await anyio.Path(home / "config.toml").write_text('space = "work"\n')
    assert "Odd Berge" in await asked(files, QUESTION)


async def test_it_repeats_nothing_that_the_log_shows(memory: Memory, files: DaemonFiles, tmp_path: Path) -> None:
    await memory.remember(MASTER, typed=True)
    text = await asked(files, QUESTION)
    log = tmp_path / "log.jsonl"
    attachment = {"type": "hook_additional_context", "content": [text]}
    await anyio.Path(log).write_text(json.dumps({"type": "attachment", "attachment": attachment}) + "\n")
    assert await asked(files, QUESTION, transcript_path=str(log)) == ""


@pytest.mark.parametrize("prompt", ["", "thanks!", "What is the capital of Peru?", "\ud83d?"])
async def test_it_says_nothing_to_prompts_that_need_no_memory(memory: Memory, files: DaemonFiles, prompt: str) -> None:
    await memory.remember(MASTER, typed=True)
    assert await asked(files, prompt) == ""


# --- the store --------------------------------------------------------------------------------------


def contents(home: Path) -> dict[Path, bytes]:
    files = (path for path in home.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    return {path: path.read_bytes() for path in files}


async def test_it_writes_nothing(memory: Memory, files: DaemonFiles, home: Path) -> None:
    await memory.remember(MASTER, typed=True)
    before = await anyio.to_thread.run_sync(contents, home)
    assert "Odd Berge" in await asked(files, QUESTION)
    assert await anyio.to_thread.run_sync(contents, home) == before


async def test_without_a_database_nothing_is_known_and_a_broken_one_is_an_error(files: DaemonFiles, home: Path) -> None:
    assert await asked(files, QUESTION) == ""
    await anyio.Path(home / "memory.db").write_bytes(b"no database" * 1000)
    with pytest.raises(StoreUnavailable):
        await asked(files, QUESTION)


async def test_it_loads_neither_numpy_nor_an_event_loop(memory: Memory, files: DaemonFiles, home: Path) -> None:
    await memory.remember(MASTER, typed=True)
    code = (
        "import sys; from pathlib import Path\n"
        "from mcp_memory.integrations.hooks.daemon_files import daemon_files\n"
        "from mcp_memory.integrations.hooks.own_answers import own_answer\n"
        "print(own_answer(daemon_files(Path(sys.argv[1]), None), 'claude-code', 'UserPromptSubmit', sys.stdin.buffer.read()))\n"
        "print([name for name in ('numpy', 'pydantic', 'asyncio', 'anyio', 'tokenizers', 'tiktoken') if name in sys.modules])"
    )
    run = await anyio.run_process([sys.executable, "-c", code, str(home)], input=payload(QUESTION))
    answer, loaded = run.stdout.decode().splitlines()
    assert "Odd Berge" in answer
    assert loaded == "[]"
