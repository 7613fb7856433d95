"""What a client's next session in a project is told of the last one, by the events and logs of the clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from mcp_memory.core.projects import project_of
from mcp_memory.integrations.hooks.answers import Conversations
from mcp_memory.integrations.hooks.daemon_files import DaemonFiles, PendingLog, make_folders, pending_logs
from mcp_memory.integrations.hooks.events import parse_event
from mcp_memory.integrations.hooks.following import LogFollower
from mcp_memory.integrations.importers.follow import follow_log
from mcp_memory.integrations.importers.records import Agent
from mcp_memory.service.memory import Memory
from tests.integrations.importers.agents import claude, codex, data, written

NEW = "77777777-0000-4000-8000-000000000000"


@pytest.fixture
def conversations(memory: Memory) -> Conversations:
    async def opened() -> Memory:
        return memory

    files = DaemonFiles(memory.settings.home, None, "key")
    make_folders(files)
    return Conversations(opened, files)


async def said(conversations: Conversations, event: str, folder: Path, **fields: Any) -> str:
    """Return the text that a hook of Claude Code adds to the context of a new session in a folder."""
    payload = {"session_id": NEW, "transcript_path": "", "cwd": str(folder), "hook_event_name": event, **fields}
    parsed = parse_event("claude-code", event, payload)
    assert parsed is not None
    answer = await conversations.answer(parsed)
    conversations.note_delivered(parsed, answer)
    return answer.shown_text


async def talk(memory: Memory, folder: Path, number: int, *words: str) -> None:
    """Record a session of Claude Code in a folder, as its log says it."""
    lines = claude(
        [("assistant" if place % 2 else "user", text) for place, text in enumerate(words)],
        id=f"{number:08d}-0000-4000-8000-000000000000",
        ids=f"m{number}",
    )
    log = folder / f"{number}.jsonl"
    log.write_bytes(data([{**line, "cwd": str(folder)} for line in lines]))
    await follow_log(memory, log, live=True, client="claude-code")


@pytest.fixture
async def folders(memory: Memory, tmp_path: Path) -> tuple[Path, Path]:
    web, api = tmp_path / "one" / "web", tmp_path / "two" / "web"
    (web / ".git").mkdir(parents=True)
    (web / "src").mkdir()
    api.mkdir(parents=True)
    await talk(memory, web, 1, "Make the menu accessible.", "It is. The colours are left. Shall I choose them?")
    await talk(memory, api, 2, "Add a health check.", "Added.")
    return web, api


async def test_two_projects_of_one_name_have_their_own_last_sessions(
    conversations: Conversations, folders: tuple[Path, Path]
) -> None:
    web, api = folders
    started = await said(conversations, "SessionStart", web / "src", source="startup")
    assert "Last session in this project, 20 November 2026: Make the menu accessible. (t1)" in started
    assert "Left open: “Shall I choose them?” (t2)" in started
    assert "Add a health check." in await said(conversations, "SessionStart", api, source="startup")
    assert "menu" in await said(conversations, "UserPromptSubmit", web, prompt="続けて")


async def test_the_first_prompt_continues_and_does_not_repeat_what_the_start_said(
    conversations: Conversations, folders: tuple[Path, Path]
) -> None:
    web, _ = folders
    await said(conversations, "SessionStart", web, source="startup")
    brought = await said(conversations, "UserPromptSubmit", web, prompt="ok, continue please")
    assert "The colours are left." in brought
    assert "Make the menu accessible." not in brought
    assert await said(conversations, "UserPromptSubmit", web, prompt="ok, continue please") == ""


async def test_a_question_with_such_a_word_is_no_request_to_continue(
    conversations: Conversations, folders: tuple[Path, Path]
) -> None:
    web, _ = folders
    assert "ended so" not in await said(
        conversations, "UserPromptSubmit", web, prompt="how does continue work in Python loops?"
    )


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini"])
async def test_the_project_of_a_session_is_the_folder_that_the_hook_names(
    memory: Memory, conversations: Conversations, tmp_path: Path, client: Agent
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    log = written(tmp_path, client)
    files = DaemonFiles(memory.settings.home, None, "key")
    note = PendingLog(log=str(log), client=client, conversation="c", folder=str(folder))
    await to_thread.run_sync(note.save, files)

    async def opened() -> Memory:
        return memory

    following = LogFollower(opened, files)
    assert await to_thread.run_sync(pending_logs, files) == [note]
    await following.schedule(note, (0.0,))
    following.finish()
    with anyio.fail_after(60):
        await following.run()
    started = await said(conversations, "SessionStart", folder, source="startup")
    assert "Last session in this project, 20 November 2026: Übersetze das: 港には何隻？" in started
    assert "Last session" not in await said(conversations, "SessionStart", tmp_path, source="clear")


async def test_the_log_of_codex_names_the_project(memory: Memory, tmp_path: Path) -> None:
    (meta, *lines) = codex([("user", "Weigh the anchor."), ("assistant", "It is up.")])
    meta["payload"] = {**meta["payload"], "cwd": str(tmp_path)}
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [meta, *lines]), "utf-8")
    read = await follow_log(memory, tmp_path / "log.jsonl", live=False)
    started = (
        await memory.recall_stable(session="new", project=await to_thread.run_sync(project_of, tmp_path))
    ).dynamic
    assert "Last session in this project" in started
    assert "Weigh the anchor." in started
    assert read.session is not None
