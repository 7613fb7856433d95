"""Where logs are found, and following them as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_memory.core.errors import McpMemoryError, StoreUnavailable
from mcp_memory.integrations.importers.follow import FollowReport, watch_logs
from mcp_memory.integrations.importers.log_file import AgentLog, find_logs, log_folders
from mcp_memory.integrations.importers.records import AGENTS, Agent
from mcp_memory.service.memory import Memory, open_memory
from tests.in_memory import in_memory
from tests.integrations.importers.agents import TALK, WRITERS, data, turns, written


def test_the_folders_of_logs_follow_the_clients_settings(tmp_path: Path) -> None:
    moved = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "GEMINI_CLI_HOME": "/g"}
    folders = {agent: log_folders(agent, environ={}, home=tmp_path) for agent in AGENTS}
    assert folders == {
        "claude-code": [tmp_path / ".claude/projects"],
        "codex": [tmp_path / ".codex/sessions", tmp_path / ".codex/archived_sessions"],
        "gemini": [tmp_path / ".gemini/tmp"],
    }
    assert [log_folders(agent, environ=moved, home=tmp_path)[0] for agent in AGENTS] == [
        Path("/c/projects"),
        Path("/x/sessions"),
        Path("/g/.gemini/tmp"),
    ]


def test_logs_are_found_by_their_contents_without_those_of_sub_agents(tmp_path: Path) -> None:
    logs = [written(tmp_path, agent) for agent in AGENTS]
    aside = logs[0].with_suffix("") / "subagents" / "agent-1.jsonl"
    aside.parent.mkdir(parents=True)
    aside.write_bytes(logs[0].read_bytes())
    for name, text in (("notes.jsonl", '{"role": "user"}\n'), ("a.json", "[1]"), ("b.txt", "x"), ("empty.jsonl", "")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nothing")
    (tmp_path / "round").symlink_to(tmp_path)
    agents: dict[Path, Agent | None] = {}
    for _ in range(2):
        assert {log.path: log.client for log in find_logs(tmp_path, agents)} == dict(zip(logs, AGENTS, strict=True))
    assert list(find_logs(tmp_path / "nowhere", agents)) == []


def test_a_watched_folder_is_followed_as_its_logs_grow_and_new_ones_come(home: Path, tmp_path: Path) -> None:
    outcomes: list[FollowReport | McpMemoryError] = []
    folder = tmp_path / "logs"
    path = written(folder, "claude-code", TALK[:3])

    def note_outcome(log: AgentLog, outcome: FollowReport | McpMemoryError) -> None:
        outcomes.append(outcome)
        if len(outcomes) == 3:
            group.cancel_scope.cancel()

    def find() -> Iterator[AgentLog]:
        if len(outcomes) == 1:
            path.write_bytes(data(WRITERS["claude-code"](TALK)))
        elif len(outcomes) == 2:
            written(folder, "gemini")
        yield from find_logs(folder, {})

    async def visit() -> None:
        nonlocal group
        async with open_memory(home=home, embedder="none") as memory:
            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    await watch_logs(memory, find, report=note_outcome, every=0.001)

    group: Any = None
    anyio.run(visit)
    assert [outcome.stored for outcome in outcomes if isinstance(outcome, FollowReport)] == [2, 4, 6]
    assert [outcome.kept for outcome in outcomes if isinstance(outcome, FollowReport)] == [0, 1, 1]
    assert {session: len(stored) for session, stored in turns(home).items()} == {
        "claude-code-3f2a9c1e": 6,
        "gemini-595f5ec3": 6,
    }


def test_a_log_that_could_not_be_stored_is_tried_again(home: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "logs", "claude-code")
    outcomes: list[FollowReport | McpMemoryError] = []

    async def visit(memory: Memory) -> None:
        verb = memory.record_turns

        async def locked(*arguments: Any, **named: Any) -> Any:
            if not outcomes:
                raise StoreUnavailable("The disk is full.")
            return await verb(*arguments, **named)

        memory.record_turns = locked

        def note_outcome(_: AgentLog, outcome: FollowReport | McpMemoryError) -> None:
            outcomes.append(outcome)
            if len(outcomes) == 2:
                group.cancel_scope.cancel()

        def find() -> Iterator[AgentLog]:
            yield AgentLog(path=path, client="claude-code")
            yield AgentLog(path=path.with_name("gone.jsonl"), client="codex")

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                await watch_logs(memory, find, report=note_outcome, every=0.001)

    in_memory(home, visit)
    failed, done = outcomes
    assert isinstance(failed, StoreUnavailable)
    assert isinstance(done, FollowReport)
    assert done.stored == 6


@pytest.mark.parametrize("agent", AGENTS)
def test_a_preview_counts_the_turns_that_following_would_store(home: Path, tmp_path: Path, agent: Agent) -> None:
    from mcp_memory.core.config import load_settings
    from mcp_memory.integrations.importers.follow import preview_log

    settings = load_settings({}, home=home)
    path = written(tmp_path, agent)
    seen = preview_log(path, agent, settings, name="log", price=lambda *_: None, position=None)
    assert (seen.state, seen.turns, seen.kept, seen.small, seen.noise, seen.cost) == ("seen", 6, 1, 1, 1, None)
    assert not home.exists()
