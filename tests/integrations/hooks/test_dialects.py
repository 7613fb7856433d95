"""What is read from a hook's input, and how each client is answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.integrations.hooks import events
from mcp_memory.integrations.hooks.events import HookEvent
from mcp_memory.integrations.hooks.tool_outputs import ToolResponse
from mcp_memory.longterm.attachments import typed_text

ID = "3f2a9c1e-0d4b-4c3a-9b7e-000000000000"
COMMON = {"session_id": ID, "transcript_path": "/p/log.jsonl", "cwd": "/p"}


def event(kind: Any, name: str, **told: Any) -> HookEvent:
    about: dict[str, Any] = {"client": "claude-code", "conversation": ID, "log": Path("/p/log.jsonl"), "folder": "/p"}
    return HookEvent(kind=kind, name=name, adds_context=kind in ("start", "prompt"), **{**about, **told})


def test_events_of_claude_code_are_read() -> None:
    def read(name: str, **told: Any) -> HookEvent | None:
        return events.parse_event("claude-code", name, {**COMMON, "hook_event_name": name, **told})

    assert read("SessionStart", source="compact") == event("start", "SessionStart", source="compact")
    assert read("UserPromptSubmit", prompt="When?") == event("prompt", "UserPromptSubmit", text="When?")
    assert read("PostCompact", compact_summary="All.") == event("compacted", "PostCompact", text="All.")
    assert read("Stop", last_assistant_message="Done.") == event("stop", "Stop")
    assert read("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t1", tool_response={}) == (
        event(
            "tool",
            "PostToolUse",
            call=ToolResponse(client="claude-code", tool="Bash", arguments={"command": "ls"}, id="t1", response={}),
        )
    )


@pytest.mark.parametrize(
    ("client", "name", "told"),
    [
        ("claude-code", "PreToolUse", COMMON),
        ("another", "Stop", COMMON),
        ("claude-code", "Stop", {"transcript_path": "/p/log.jsonl"}),
        ("claude-code", "Stop", {**COMMON, "session_id": " "}),
        ("claude-code", "Stop", [COMMON]),
        ("claude-code", "PostToolUse", {**COMMON, "agent_id": "a1", "tool_name": "Bash", "tool_response": {}}),
    ],
)
def test_what_is_not_ours_is_nothing(client: str, name: str, told: object) -> None:
    assert events.parse_event(client, name, told) is None


def test_what_a_client_sends_by_itself_is_no_prompt() -> None:
    told = {**COMMON, "prompt": "<task-notification><task-id>a</task-id>done</task-notification>"}
    read = events.parse_event("claude-code", "UserPromptSubmit", told)
    assert read == event("prompt", "UserPromptSubmit", text=told["prompt"])
    assert typed_text(told["prompt"]) == ""


names = st.sampled_from(["SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "PostCompact", "SessionEnd"])
odd = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)


@given(names, st.dictionaries(st.sampled_from([*COMMON, "prompt", "source", "tool_name", "tool_response"]), odd))
def test_fields_of_another_kind_break_nothing(name: str, told: dict[str, Any]) -> None:
    for fields in (told, {**COMMON, **told}):
        read = events.parse_event("claude-code", name, fields)
        assert read is None or {type(value) for value in (read.conversation, read.text, read.source)} == {str}


def test_codex_is_answered_in_a_text_of_its_own() -> None:
    told = events.parse_event("codex", "PostToolUse", {**COMMON, "tool_name": "Bash", "tool_response": "out"})
    assert told is not None
    assert events.output_answer(told, "note") == {"continue": False, "stopReason": "note"}


def test_events_of_gemini_have_names_of_their_own() -> None:
    told = events.parse_event("gemini", "BeforeAgent", {**COMMON, "prompt": "When?"})
    assert told is not None
    assert (told.kind, told.text, told.session) == ("prompt", "When?", "gemini-3f2a9c1e")
    assert events.context_answer(told, "At noon.") == {
        "hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "At noon."}
    }
    assert events.parse_event("gemini", "PreCompress", COMMON) is None


@pytest.mark.parametrize(
    "told",
    [
        {"cursor_version": "2026.09.18-9a7762b"},
        {"transcript_path": "/home/ada/.config/Code/User/workspaceStorage/a1/GitHub.copilot-chat/transcripts/x.jsonl"},
        {"transcript_path": "/home/ada/.copilot/session-state/x/events.jsonl"},
    ],
)
def test_other_clients_that_run_the_hooks_of_claude_code_are_ignored(told: dict[str, Any]) -> None:
    assert events.parse_event("claude-code", "Stop", {**COMMON, **told}) is None
    assert events.parse_event("claude-code", "Stop", COMMON) is not None


def test_vs_code_is_not_copilot_cli_which_runs_its_hooks_too() -> None:
    assert events.parse_event("vscode", "UserPromptSubmit", {"session_id": ID, "prompt": "When?"}) is None


@pytest.mark.parametrize(
    ("version", "added"), [("2.4.7", False), ("2026.05.20-1a2b3c4", False), ("2026.09.18-9a", True)]
)
def test_cursor_adds_a_text_to_a_prompt_since_a_version(version: str, added: bool) -> None:
    told = {"conversation_id": ID, "cursor_version": version, "prompt": "When?", "transcript_path": None}
    read = events.parse_event("cursor", "beforeSubmitPrompt", told)
    assert read is not None
    assert read.adds_context is added
    assert events.context_answer(read, "At noon.") == {"additional_context": "At noon."}


def test_the_log_of_copilot_is_found_by_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COPILOT_HOME", "/copilot")
    read = events.parse_event("copilot", "userPromptSubmitted", {"sessionId": ID, "prompt": "When?"})
    assert read is not None
    assert read.log == Path(f"/copilot/session-state/{ID}/events.jsonl")
    outside = events.parse_event("copilot", "userPromptSubmitted", {"sessionId": "../../x", "prompt": "When?"})
    assert outside is not None
    assert outside.log is None
