"""What is entered as saved is what the client's own log shows: real sessions replayed through the hooks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.core.token_counts import token_counter
from mcp_memory.integrations.hooks.answers import Conversations
from mcp_memory.integrations.hooks.daemon_files import DaemonFiles
from mcp_memory.integrations.hooks.events import HookEvent, parse_event
from mcp_memory.integrations.importers.follow import follow_log
from mcp_memory.integrations.importers.records import Agent
from mcp_memory.integrations.shown_results import MOST_CHARS, shown_of
from mcp_memory.service.memory import Memory, open_memory
from scripts.claude_code import read_story

TRANSCRIPTS = Path(__file__).parents[3] / "fixtures" / "transcripts"
SKERRY, LARGE = "claude-code", "claude-code-large-results"
NIGHTLY = read_story(TRANSCRIPTS / "large_results.json").project["logs/nightly.log"]
STAND_IN = re.compile(r"\[\d{3}-N\d+ (r-[0-9a-f]{12}); expand_node\]")
count = token_counter("o200k_base").count


@dataclass(frozen=True)
class Session:
    """A session as its client recorded it: the inputs of its hooks, with the length of the log then, and the log."""

    events: list[tuple[int, dict[str, Any]]]
    log: list[str]

    @property
    def ended(self) -> datetime:
        return max(
            datetime.fromisoformat(line["timestamp"]) for line in map(json.loads, self.log) if "timestamp" in line
        )

    def calls(self) -> dict[str, dict[str, Any]]:
        return {told["tool_use_id"]: told for _, told in self.events if told["hook_event_name"] == "PostToolUse"}

    def results(self) -> dict[str, str]:
        """Return the text that the model was given for each call."""
        return dict(_results(map(json.loads, self.log)))


def _results(lines: Iterator[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for line in lines:
        content = line.get("message", {}).get("content")
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_result":
                given = block["content"]
                text = given if isinstance(given, str) else "\n".join(part.get("text", "") for part in given)
                yield block["tool_use_id"], text


def recorded(name: str, folder: Path) -> Session:
    """Return a recorded session; a file that the client has put an output into is made anew in `folder`."""
    whole = folder / "whole.txt"
    whole.write_text(NIGHTLY)
    events: list[tuple[int, dict[str, Any]]] = []
    for line in (TRANSCRIPTS / name / "hooks.jsonl").read_text().splitlines():
        event = json.loads(line)
        response = event["input"].get("tool_response")
        if isinstance(response, dict) and "persistedOutputPath" in response:
            response["persistedOutputPath"] = str(whole)
        events.append((event["lines"], event["input"]))
    return Session(events, (TRANSCRIPTS / name / "session.jsonl").read_text().splitlines(keepends=True))


async def replay(memory: Memory, session: Session, log: Path, *, read_at: Sequence[str] = ("stop", "end")) -> None:
    """Run the hooks of tools at their events, and read the log as the hooks do, as far as it was written then."""
    talks = _conversations(memory)
    for lines, told in session.events:
        log.write_text("".join(session.log[:lines]))
        event = parse_event("claude-code", told["hook_event_name"], {**told, "transcript_path": str(log)})
        if event is not None and event.kind == "tool":
            await talks.answer(event)
        if event is not None and event.kind in read_at:
            await _read_log(memory, log, session.ended, "claude-code")


async def _read_log(memory: Memory, log: Path, ended: datetime, client: Agent, *, again: bool = False) -> None:
    def now() -> datetime:
        return ended + timedelta(minutes=1)

    await follow_log(memory, log, live=True, client=client, again=again, now=now)


def _conversations(memory: Memory) -> Conversations:
    async def opened() -> Memory:
        return memory

    return Conversations(opened, DaemonFiles(memory.settings.home, None, "key"))


def shown_instead(session: Session) -> dict[str, tuple[int, int]]:
    """Return, by call, the tokens that the client would have shown and those of the stand-in that its log shows."""
    found: dict[str, tuple[int, int]] = {}
    for call, text in session.results().items():
        told = session.calls().get(call)
        head = STAND_IN.search(text)
        if told is not None and head is not None and not told["tool_name"].startswith("mcp__memory__"):
            found[call] = count(_shown(told["tool_response"])), count(text[head.start() :])
    return found


def _shown(response: Mapping[str, Any]) -> str:
    if "file" in response:
        return response["file"]["content"]
    path = response.get("persistedOutputPath")
    if path is None:
        return response["stdout"]
    return shown_of("claude-code", response["stdout"], file=path, size=response["persistedOutputSize"])


async def entered(memory: Memory) -> dict[str, tuple[int, int]]:
    """Return, by call, the tokens of a result and of what replaced it, where something did."""
    held = await memory.records(limit=1_000)
    return {
        str(one.tool_call_id): (one.tokens_raw, one.tokens_kept) for one in held if one.tokens_kept < one.tokens_raw
    }


async def assert_all_figures_agree(memory: Memory, expected: Mapping[str, tuple[int, int]]) -> None:
    raw, kept = (sum(figures) for figures in zip(*expected.values(), strict=True))
    status, ledger = await memory.status(), await memory.ledger()
    days = await memory.savings_by_day(days=366)
    assert (status["offload"]["tokens_raw"], status["offload"]["tokens_kept"]) == (raw, kept)
    assert status["savings"]["saved_once"] == status["offload"]["tokens_saved"] == raw - kept
    assert ledger["savings"] == status["savings"]
    assert sum(day.saved - day.spent for day in days) == status["savings"]["net_tokens"]
    (offloads,) = [one for one in status["savings"]["kinds"] if one["kind"] == "offload"]
    assert (offloads["times"], offloads["saved"], offloads["spent"]) == (len(expected), raw, kept)


@pytest.mark.parametrize(("name", "count_of"), [(SKERRY, 4), (LARGE, 4)])
async def test_the_savings_of_a_real_session_are_those_that_its_log_shows(
    home: Path, tmp_path: Path, name: str, count_of: int
) -> None:
    session = recorded(name, tmp_path)
    async with open_memory(home=home, embedder="none") as memory:
        await replay(memory, session, tmp_path / "log.jsonl")
        expected = shown_instead(session)
        assert len(expected) == count_of
        assert await entered(memory) == expected
        await assert_all_figures_agree(memory, expected)


async def test_what_was_saved_before_a_compaction_is_not_saved_again_after_it(home: Path, tmp_path: Path) -> None:
    session = recorded(SKERRY, tmp_path)
    async with open_memory(home=home, embedder="none") as memory:
        await replay(memory, session, tmp_path / "log.jsonl", read_at=["end"])
        (offloads,) = await memory.savings()
    first, *_ = shown_instead(session).values()
    # It came a second before the compaction, the two after it in that second, and the last one after the compaction.
    assert offloads.saved_later == first[0]


async def test_a_log_that_is_read_twice_enters_nothing_twice(home: Path, tmp_path: Path) -> None:
    session = recorded(LARGE, tmp_path)
    async with open_memory(home=home, embedder="none") as memory:
        await replay(memory, session, tmp_path / "log.jsonl", read_at=["end"])
        await _read_log(memory, tmp_path / "log.jsonl", session.ended, "claude-code", again=True)
        await assert_all_figures_agree(memory, shown_instead(session))


async def test_nothing_is_saved_before_the_log_shows_it_and_nothing_where_it_shows_the_result(
    home: Path, tmp_path: Path
) -> None:
    session, log = recorded(LARGE, tmp_path), tmp_path / "log.jsonl"
    whole = {call: json.dumps(told["tool_response"])[:9_000] for call, told in session.calls().items()}
    async with open_memory(home=home, embedder="none") as memory:
        await replay(memory, session, log, read_at=[])
        assert len(await memory.records()) == 4
        assert await entered(memory) == {}
        log.write_text("".join(f"{json.dumps(line)}\n" for line in _left_whole(session, whole)))
        await _read_log(memory, log, session.ended, "claude-code")
        assert await entered(memory) == {}
        status = await memory.status()
    assert (status["savings"]["kinds"], status["offload"]["tokens_raw"]) == ([], 0)


def _left_whole(session: Session, whole: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log, of a client that does not know how to replace a result."""
    for line in map(json.loads, session.log):
        content = line.get("message", {}).get("content")
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_result" and block["tool_use_id"] in whole:
                block["content"] = whole[block["tool_use_id"]]
        yield line


async def test_a_command_that_reads_a_part_and_one_that_fails_save_nothing(home: Path, tmp_path: Path) -> None:
    session = recorded(LARGE, tmp_path)
    async with open_memory(home=home, embedder="none") as memory:
        await replay(memory, session, tmp_path / "log.jsonl", read_at=["end"])
        left = [one.tool_call for one in await memory.records() if one.tokens_kept == one.tokens_raw]
    for command in ("head -n 150", "tail -n 490", "exit 3"):
        assert [command in call for call in left].count(True) == 1
    assert len(left) == 3


def test_what_the_client_would_have_shown_of_a_long_output_is_what_its_log_shows_of_one(tmp_path: Path) -> None:
    session = recorded(LARGE, tmp_path)
    (call,) = [
        told["tool_response"] for told in session.calls().values() if "tail" in told["tool_input"].get("command", "")
    ]
    logged = session.results()["toolu_000700"]
    found = re.search(r"saved to: (\S+)", logged)
    assert found is not None
    assert logged == shown_of("claude-code", call["stdout"], file=found[1], size=call["persistedOutputSize"])


def test_each_client_shows_at_most_so_much() -> None:
    text = "a line of a log\n" * 10_000
    assert shown_of("claude-code", text[:49_000]) == text[:49_000]
    assert shown_of("claude-code", text, pages=True) == text
    assert len(shown_of("claude-code", text)) < 2_200
    for client in ("codex", "codex-mcp-client", "gemini-cli-mcp-client", "a stranger", ""):
        assert shown_of(client, text) == text[:MOST_CHARS]


async def test_of_codex_too_the_log_tells_what_replaced_a_result(home: Path, tmp_path: Path) -> None:
    (path,) = [one for one in (TRANSCRIPTS / "codex").iterdir() if "function_call_output" in one.read_text()]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    items = [line["payload"] for line in lines]
    (ran,) = [one["item"] for one in items if one.get("item", {}).get("type") == "CommandExecution"]
    (output,) = [one["output"] for one in items if one.get("type") == "function_call_output"]
    asked = {
        "session_id": items[0]["id"],
        "transcript_path": str(path),
        "tool_name": "Bash",
        "tool_input": {"command": "sh show.sh"},
        "tool_use_id": ran["id"],
        "tool_response": ran["aggregated_output"],
    }
    event = parse_event("codex", "PostToolUse", asked)
    assert event is not None
    async with open_memory(home=home, embedder="none", offload_over=300) as memory:
        await _conversations(memory).answer(event)
        log = tmp_path / path.name
        log.write_text(path.read_text())
        await _read_log(memory, log, datetime.fromisoformat(lines[-1]["timestamp"]), "codex")
        expected = {ran["id"]: (count(ran["aggregated_output"]), count(output))}
        assert await entered(memory) == expected
        await assert_all_figures_agree(memory, expected)


async def test_without_a_log_nothing_tells_of_a_replacement(home: Path, tmp_path: Path) -> None:
    session = recorded(LARGE, tmp_path)
    told = next(told for _, told in session.events if told["hook_event_name"] == "PostToolUse")
    event: HookEvent | None = parse_event("claude-code", "PostToolUse", told)
    assert event is not None
    async with open_memory(home=home, embedder="none") as memory:
        assert (await _conversations(memory).answer(replace(event, log=None))).json is not None
        assert (await memory.status())["savings"]["kinds"] == []
