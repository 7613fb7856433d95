"""What is done at the events of a conversation, over a real memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.hooks import answers
from mcp_memory.integrations.hooks.answers import Conversations
from mcp_memory.integrations.hooks.daemon_files import DaemonFiles
from mcp_memory.integrations.hooks.events import MAX_CHARS, HookEvent
from mcp_memory.integrations.hooks.tool_outputs import ToolResponse, offload_output
from mcp_memory.integrations.importers.log_lines import summary_id
from mcp_memory.service.memory import Memory, open_memory

SESSION = "claude-code-3f2a9c1e"
ID = "3f2a9c1e-0d4b-4c3a-9b7e-000000000000"
LOG = "\n".join(
    f"2026-11-22 10:{n // 60:02d}:{n % 60:02d} INFO  queue depth {n * 37 % 911} job-{n:04d}" for n in range(400)
)


def bash(stdout: str, command: str = "make log", **more: Any) -> ToolResponse:
    response = {"stdout": stdout, "stderr": "", "interrupted": False, "isImage": False, **more}
    return ToolResponse(
        client="claude-code", tool="Bash", arguments={"command": command}, id="toolu_1", response=response
    )


# --- before the model -------------------------------------------------------------------------------


async def test_with_an_empty_memory_a_conversation_begins_with_one_line(memory: Memory) -> None:
    told = await answers.opening_text(memory, SESSION, source="startup", recorded=True)
    assert "\n" not in told
    assert SESSION in told
    assert await answers.opening_text(memory, SESSION, source="startup", recorded=False) == ""


async def test_a_new_conversation_is_told_what_waits_for_its_agent_to_read_it(memory: Memory, home: Path) -> None:
    await memory.record_turns([NewTurn(role="user", content=f"Berth {n} is free.") for n in range(25)], session="old")
    told = await answers.opening_text(memory, SESSION, source="startup", recorded=True)
    assert "25 turns are not distilled. When the user is done, call distill." in told
    assert "distill" not in await answers.opening_text(memory, SESSION, source="compact", recorded=True)
    async with open_memory(home=home, embedder="none", llm="openai/any", distil=False) as read_by_a_model:
        assert "distill" not in await answers.opening_text(read_by_a_model, SESSION, source="startup", recorded=True)


async def test_a_conversation_begins_with_what_is_known_unless_its_context_has_it(memory: Memory) -> None:
    await memory.remember("The user's ferry sails on Fridays.", typed=True)
    told = await answers.opening_text(memory, SESSION, source="startup", recorded=True)
    assert '<mcp-memory-recall part="stable">' in told
    assert "sails on Fridays" in told
    assert await answers.opening_text(memory, SESSION, source="resume", recorded=True, shown=[told]) == ""


async def test_after_a_compaction_the_task_at_hand_is_shown(memory: Memory) -> None:
    await offload_output(memory, SESSION, bash(LOG))
    before = await answers.opening_text(memory, SESSION, source="resume", recorded=True)
    after = await answers.opening_text(memory, SESSION, source="compact", recorded=True)
    assert "flowchart" not in before
    assert "flowchart" in after
    assert len(after) <= MAX_CHARS


async def test_a_prompt_is_told_what_it_needs_once(memory: Memory) -> None:
    await memory.remember("The harbour master of Torvik is Odd Berge.", typed=True)
    await memory.record_turns([NewTurn(role="user", content="The pump at quay seven leaks oil.")], session="another")
    told = await answers.recall_beyond_context(memory, SESSION, "Who is harbour master of Torvik?", shown=[])
    assert "Odd Berge" in told
    assert await answers.recall_beyond_context(memory, SESSION, "Who is harbour master of Torvik?", shown=[told]) == ""
    other = await answers.recall_beyond_context(memory, SESSION, "Which pump leaks oil?", shown=[told])
    assert "quay seven" in other
    assert "Odd Berge" not in other


async def test_a_prompt_that_nothing_is_known_of_is_told_nothing(memory: Memory) -> None:
    await memory.remember("The harbour master of Torvik is Odd Berge.", typed=True)
    for prompt in ("Write a function that sorts numbers.", "thanks!", "", "?", "\x00\ud800" * 3, "word " * 50_000):
        assert await answers.recall_beyond_context(memory, SESSION, prompt, shown=[]) == ""


async def test_what_only_matches_by_chance_is_not_told(memory: Memory) -> None:
    await memory.offload_tool_result("Bash", LOG + "\n17 times, 23 failures", session="another")
    await memory.record_turns(
        [NewTurn(role="user", content="Where were the tests of 17 and 23?"), NewTurn(role="user", content="Go on.")],
        session="another",
    )
    for prompt in ("What is 17 times 24?", "Why is that?", "Fix it."):
        assert await answers.recall_beyond_context(memory, SESSION, prompt, shown=[]) == ""


async def test_what_was_said_in_this_context_is_not_recalled_until_it_is_compacted(memory: Memory) -> None:
    await memory.record_turns(
        [NewTurn(role="user", content="The spare key of the boathouse hangs behind the clock.", client_id="m1")]
        + [
            NewTurn(role=role, content=f"Step {n} of the build went well.")
            for n in range(8)
            for role in ("user", "assistant")
        ],
        session=SESSION,
    )
    question = "Where hangs the spare key of the boathouse?"
    assert await answers.recall_beyond_context(memory, SESSION, question, shown=[]) == ""
    assert "behind the clock" in await answers.recall_beyond_context(memory, "claude-code-00000000", question, shown=[])
    await answers.record_summary(memory, SESSION, "<summary>The build went well.</summary>")
    assert "behind the clock" in await answers.recall_beyond_context(memory, SESSION, question, shown=[])


async def test_a_summary_is_kept_once(memory: Memory) -> None:
    for text in (
        "<analysis>Hm.</analysis>\n<summary>\nAll is built.\n</summary>",
        "<summary>All is built.</summary>",
        " ",
    ):
        await answers.record_summary(memory, SESSION, text)
    turns = await memory.session_turns(SESSION)
    assert [(turn.role, turn.name, turn.content) for turn in turns] == [("system", "summary", "All is built.")]


async def test_a_summary_that_its_log_told_first_is_kept_once(memory: Memory) -> None:
    words, at = "All is built.", datetime(2026, 11, 22, 10, tzinfo=UTC)
    told = NewTurn(role="system", name="summary", content=words, client_id=summary_id(words), said_at=at)
    await memory.record_turns([told], session=SESSION)
    await answers.record_summary(memory, SESSION, f"<summary>{words}</summary>")
    assert len(await memory.session_turns(SESSION)) == 1


# --- tool outputs -----------------------------------------------------------------------------------


async def test_a_large_output_is_kept_whole_and_something_short_stands_in_its_place(memory: Memory) -> None:
    answer = await offload_output(memory, SESSION, bash(LOG))
    (record,) = await memory.records(session=SESSION)
    _, data = await memory.ref(record.ref)
    assert data.decode() == LOG
    assert record.tool_call_id == "toolu_1"
    assert answer["stdout"].startswith(f"[{record.node_id} {record.ref}; expand_node]")
    assert len(answer["stdout"]) < len(LOG) / 10
    assert {**answer, "stdout": ""} == {"stdout": "", "stderr": "", "interrupted": False, "isImage": False}


async def test_the_whole_of_an_output_that_the_client_cut_is_kept(memory: Memory, tmp_path: Path) -> None:
    whole = tmp_path / "b1.txt"
    whole.write_text(LOG + "\nthe end\n")
    cut = bash(LOG[:20_000], persistedOutputPath=str(whole), persistedOutputSize=len(LOG))
    answer = await offload_output(memory, SESSION, cut)
    (record,) = await memory.records(session=SESSION)
    assert (await memory.ref(record.ref))[1] == whole.read_bytes()
    assert "persistedOutputPath" not in answer
    gone = bash(LOG[:20_000], "cat it", persistedOutputPath=str(tmp_path / "gone"))
    assert (await offload_output(memory, SESSION, gone))["stdout"].startswith("[")


def returned(tool: str, response: Any, *, client: Any = "claude-code", **arguments: Any) -> ToolResponse:
    return ToolResponse(client=client, tool=tool, arguments=arguments, id="t", response=response)


def file_read(content: str) -> dict[str, Any]:
    """Return what the client's tool answers of a file of 400 lines."""
    file = {"filePath": "/p/a.log", "content": content, "numLines": 400, "startLine": 1, "totalLines": 400}
    return {"type": "text", "file": file}


@pytest.mark.parametrize(
    "call",
    [
        bash("a short answer"),
        bash("[003-N4 r-0123456789ab; expand_node]\n" + LOG),
        bash(LOG, "mcp-memory show ref 003-N4"),
        bash(LOG, "sed -n '1,400p' make.log"),
        bash(LOG, "cd build && make log | tail -n 400"),
        returned("mcp__memory__expand_node", LOG),
        returned("mcp__notes__expand_node", LOG),
        returned("mcp__plugin_mcp-memory_memory__recall", LOG),
        returned("mcp__shop__list", {"content": [{"type": "text", "text": LOG}], "isError": True}, client="codex"),
        returned("Edit", {"originalFile": LOG}),
        returned("Read", file_read(LOG[:9_000]), file_path="/p/a.log"),
        returned("Read", file_read(LOG), file_path="/p/a.log", offset=1),
    ],
)
async def test_some_outputs_are_left_alone(memory: Memory, call: ToolResponse) -> None:
    assert await offload_output(memory, SESSION, call) is None
    assert await memory.records() == []


async def test_what_lies_in_the_home_is_left_alone(memory: Memory, home: Path) -> None:
    assert await offload_output(memory, SESSION, bash(LOG, f"cat {home}/spaces/default/refs/x.md")) is None


async def test_the_threshold_is_a_setting_and_zero_leaves_all(home: Path) -> None:
    async with open_memory(home=home, embedder="none", offload_over=0) as memory:
        assert await offload_output(memory, SESSION, bash(LOG)) is None
    async with open_memory(home=home, embedder="none", offload_over=100_000) as memory:
        assert await offload_output(memory, SESSION, bash(LOG)) is None
    async with open_memory(home=home, embedder="none", offload_over=100) as memory:
        assert await offload_output(memory, SESSION, bash(LOG[:3_000])) is not None


async def test_codex_reads_files_with_its_shell_and_is_told_in_words_what_was_kept(memory: Memory) -> None:
    def shell(command: str, text: str) -> ToolResponse:
        return ToolResponse(client="codex", tool="Bash", arguments={"command": command}, id="call_1", response=text)

    assert await offload_output(memory, SESSION, shell("cat planner.py", LOG[:9_000])) is None
    note = await offload_output(memory, SESSION, shell("make log", LOG[:9_000]))
    assert note.startswith("[001-N1 r-")
    cut = "Warning: truncated output (original token count: 90000)\n\n" + LOG
    assert await offload_output(memory, SESSION, shell("make", cut))
    assert [record.tool_call_id for record in await memory.records(session=SESSION)] == ["call_1", None]


async def test_what_codex_has_cut_is_taken_whole_from_its_log(memory: Memory, tmp_path: Path) -> None:
    def ended(id: str, output: str) -> str:
        item = {"type": "CommandExecution", "id": id, "aggregated_output": output}
        return json.dumps({"type": "event_msg", "payload": {"type": "item_completed", "item": item}}) + "\n"

    log = tmp_path / "rollout.jsonl"
    log.write_text(ended("call_1", "another") + ended("call_2", LOG) + ended("call_22", "a third") + '{"torn')
    cut = f"Warning: truncated output (original token count: 9000)\n\n{LOG[:5_000]}…8000 chars truncated…{LOG[-500:]}"
    call = ToolResponse(client="codex", tool="Bash", arguments={"command": "cat queue.log"}, id="call_2", response=cut)
    note = await offload_output(memory, SESSION, call, log=log)
    assert "400 lines, 2026-11-22 10:00:00 to 2026-11-22 10:06:39" in note
    assert "truncated" not in note
    [record] = await memory.records(session=SESSION)
    assert record.tool_call_id == "call_2"
    assert "job-0200" in (await memory.expand_node(record.ref, lines="201")).text


# --- a conversation ---------------------------------------------------------------------------------


def event(kind: Any, log: Path | None, text: str = "", source: str = "") -> HookEvent:
    return HookEvent(kind=kind, name=kind, client="claude-code", conversation=ID, log=log, text=text, source=source)


async def test_what_was_told_is_told_again_only_after_a_compaction(memory: Memory, tmp_path: Path) -> None:
    await memory.remember("The harbour master of Torvik is Odd Berge.", typed=True)
    talks = of(memory)
    log = tmp_path / "none.jsonl"
    asked = event("prompt", log, "Who is harbour master of Torvik?")
    started = await talks.answer(event("start", log, source="startup"))
    talks.note_delivered(asked, started)
    assert "Odd Berge" in started.shown_text
    assert (await talks.answer(asked)).json is None
    await talks.answer(event("compacting", log))
    again = await talks.answer(event("start", log, source="compact"))
    assert again.shown_text == started.shown_text


async def test_a_resident_that_is_new_to_a_conversation_reads_what_was_told_in_its_log(
    memory: Memory, tmp_path: Path
) -> None:
    await memory.remember("The harbour master of Torvik is Odd Berge.", typed=True)
    told = (await of(memory).answer(event("start", None, source="startup"))).shown_text
    noted = {"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [told]}}
    compacted = {"type": "system", "subtype": "compact_boundary"}
    log = tmp_path / "log.jsonl"
    asked = event("prompt", log, "Who is harbour master of Torvik?")
    log.write_text(json.dumps(noted) + "\nno JSON mcp-memory-recall\n")
    assert (await of(memory).answer(asked)).shown_text == ""
    log.write_text(json.dumps(noted) + "\n" + json.dumps(compacted) + "\n")
    assert "Odd Berge" in (await of(memory).answer(asked)).shown_text


def of(memory: Memory) -> Conversations:
    async def opened() -> Memory:
        return memory

    return Conversations(opened, DaemonFiles(memory.settings.home, None, "key"))
