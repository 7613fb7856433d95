"""Following a log: all that was said, once, however it is cut, killed, rewritten, forked or read by two at a time."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn, Record, Ref
from mcp_memory.integrations.importers.follow import follow_log
from mcp_memory.integrations.importers.records import AGENTS, Agent, session_name
from mcp_memory.service.memory import Memory, open_memory
from tests.in_memory import in_memory
from tests.integrations.importers.agents import (
    BEGAN,
    IDS,
    LONG,
    TALK,
    WRITERS,
    at,
    claude,
    data,
    followed,
    refs,
    turns,
    written,
)
from tests.integrations.importers.conftest import Killed


async def records(memory: Memory) -> list[Record]:
    return await memory.records()


SAID: dict[Agent, list[tuple[str, str]]] = {
    agent: [
        ("system" if role == "summary" else role, summary.format(words) if role == "summary" else words)
        for role, words in ((step[0], step[1]) for step in TALK if step[0] in ("user", "assistant", "summary"))
    ]
    for agent, summary in (("claude-code", "{}"), ("codex", "{}"), ("gemini", "<state_snapshot>{}</state_snapshot>"))
}
UUIDS = st.uuids(version=4).map(str)


@pytest.mark.parametrize("agent", AGENTS)
def test_turns_and_the_summary_are_stored_and_large_results_are_kept(home: Path, tmp_path: Path, agent: Agent) -> None:
    (done,) = followed(home, written(tmp_path, agent))
    session = session_name(agent, IDS[agent])
    assert turns(home) == {session: SAID[agent]}
    assert refs(home) == [LONG.encode()]
    assert (done.client, done.session, done.stored, done.kept, done.small) == (agent, session, 6, 1, 1)
    assert (done.bad, done.torn, done.duplicates) == (0, False, 0)

    async def kept(memory: Memory) -> tuple[Ref, int]:
        found = (await memory.memory_search("Kestrel berth")).results[0]
        return (await memory.ref(found.ref))[0], len(await memory.canvases())

    ref, canvases = in_memory(home, kept)
    assert (ref.tool, ref.tool_call_id, ref.session, canvases) == ("Bash", "call_1", session, 0)
    assert timedelta(0) <= ref.timestamp - BEGAN <= timedelta(seconds=20)


@pytest.mark.parametrize("agent", AGENTS)
def test_only_the_new_part_of_a_log_is_read(home: Path, tmp_path: Path, agent: Agent) -> None:
    path = written(tmp_path, agent, TALK[:3])
    first, same = followed(home, path, path)
    assert (first.stored, same.turns, same.session, same.offset) == (2, 0, first.session, path.stat().st_size)
    path.write_bytes(data(WRITERS[agent](TALK)))
    (grown,) = followed(home, path)
    assert (grown.stored, grown.duplicates, grown.kept) == (4, 0, 1)
    assert list(turns(home).values()) == [SAID[agent]]
    (again,) = followed(home, path, again=True)
    assert (again.stored, again.duplicates, again.kept) == (0, 6, 0)


@pytest.mark.slow
@given(agent=st.sampled_from(AGENTS), cuts=st.lists(st.floats(0, 1), max_size=6), kill=st.none() | st.integers(0, 5))
@settings(max_examples=12)
def test_a_log_read_in_any_pieces_and_by_whom_is_killed_gives_what_it_gives_at_once(
    tmp_path_factory: pytest.TempPathFactory, agent: Agent, cuts: list[float], kill: int | None
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    whole, home = data(WRITERS[agent](TALK)), folder / "home"
    path = written(folder, agent)
    for cut in [*sorted(cuts), 1.0]:
        path.write_bytes(whole[: round(cut * len(whole))])
        try:
            followed(home, path) if kill is None else _killed(home, path, after=kill)
        except InvalidInput:
            assert cut < 1  # too short to recognise the agent
    followed(home, path)
    assert list(turns(home).values()) == [SAID[agent]]
    assert refs(home) == [LONG.encode()]


def _killed(home: Path, path: Path, *, after: int) -> None:
    """Follow a log with a process that is killed in a call that stores something."""

    async def visit(memory: Memory) -> None:
        lives = iter(range(after))

        def mortal(verb: Any) -> Any:
            async def call(*given: Any, **named: Any) -> Any:
                if next(lives, None) is None:
                    raise Killed
                return await verb(*given, **named)

            return call

        for name in ("record_turns", "keep_tool_result", "note_followed"):
            setattr(memory, name, mortal(getattr(memory, name)))
        try:
            await follow_log(memory, path, live=False)
        except Killed:
            pass

    in_memory(home, visit)


def test_two_processes_that_follow_the_same_log_store_it_once(home: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "claude-code")

    async def visit() -> None:
        async with open_memory(home=home, embedder="none") as first, open_memory(home=home, embedder="none") as second:
            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    for memory in (first, second, first, second):
                        group.start_soon(partial(follow_log, memory, path, live=True, now=lambda: BEGAN))

    anyio.run(visit)
    (stored,) = turns(home).values()
    assert sorted(stored) == sorted(SAID["claude-code"])
    assert len(in_memory(home, records)) == 1


# --- other than appended ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(TALK[:2], id="shrank"),
        pytest.param([("user", "Something else entirely."), *TALK[1:]], id="was replaced"),
        pytest.param([*TALK[:6], ("assistant", "It was another berth."), *TALK[7:], ("user", "Thanks!")], id="edited"),
    ],
)
def test_a_log_that_was_written_anew_is_read_from_its_start(home: Path, tmp_path: Path, steps: Any) -> None:
    path = written(tmp_path, "claude-code")
    followed(home, path)
    path = written(tmp_path, "claude-code", steps, ids="other")
    (done,) = followed(home, path)
    assert (
        done.stored + done.duplicates == done.turns == sum(step[0] != "call" and step[0] != "result" for step in steps)
    )
    assert done.offset == path.stat().st_size


def test_a_fork_adds_only_what_its_parent_does_not_have(home: Path, tmp_path: Path) -> None:
    parent = written(tmp_path, "claude-code")
    fork = parent.with_name("8d1b4c5a-1111-4222-8333-444455556666.jsonl")
    fork.write_bytes(data(claude([*TALK, ("user", "And in the fork?")], id=fork.stem)))
    first, second = followed(home, parent, fork)
    assert (first.stored, second.stored, second.duplicates) == (6, 1, 6)
    assert turns(home)["claude-code-8d1b4c5a"] == [("user", "And in the fork?")]
    assert refs(home) == [LONG.encode()]


def test_lines_that_cannot_be_read_are_counted_and_the_rest_is_stored(home: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "claude-code")
    lines = path.read_bytes().splitlines(keepends=True)
    odd = [b"{torn\n", b"[1]\n", b"\n", b'{"type": "user", "sessionId": "x", "message": 5}\n', b"\xff\xfe\x00\n"]
    bad_time = json.dumps({**json.loads(lines[1]), "uuid": "late", "timestamp": "yesterday"}).encode() + b"\n"
    path.write_bytes(b"".join([lines[0], *odd, bad_time, *lines[1:]]))
    (done,) = followed(home, path)
    assert (done.bad, done.misdated, done.stored, done.kept) == (3, 1, 7, 1)


def test_a_torn_last_line_waits_for_its_end(home: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "claude-code", TALK[:2])
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b'{"type": "assistant"') + 30])
    (torn,) = followed(home, path)
    assert (torn.stored, torn.torn, torn.offset < len(whole)) == (1, True, True)
    path.write_bytes(whole)
    (done,) = followed(home, path)
    assert (done.stored, done.torn) == (1, False)


def test_forgotten_turns_stay_forgotten_when_their_log_is_read_again(home: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "claude-code")
    followed(home, path)

    async def forget(memory: Memory) -> None:
        found = await memory.memory_search("Kestrel berth")
        await memory.forget(ids=["t1", found.results[0].ref], reason="private")

    in_memory(home, forget)
    (done,) = followed(home, path, again=True)
    assert (done.stored, done.kept) == (0, 0)
    assert SAID["claude-code"][0] not in turns(home)["claude-code-3f2a9c1e"]


@pytest.mark.parametrize("what", ["missing", "folder", "no log"])
def test_a_file_that_is_not_a_log_is_refused(home: Path, tmp_path: Path, what: str) -> None:
    path = tmp_path if what == "folder" else tmp_path / "x.jsonl"
    if what == "no log":
        path.write_text('{"role": "user", "content": "Hi", "session": "s"}\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match="is not a log" if what == "no log" else "cannot be read"):
        followed(home, path)


# --- results ----------------------------------------------------------------------------------------


def test_a_live_result_is_added_to_the_canvas_and_an_old_result_is_not(home: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "claude-code")
    (done,) = followed(home, path, live=True, now=BEGAN + timedelta(minutes=5))
    assert done.kept == 1
    (record,) = in_memory(home, records)
    assert (record.tool_call_id, record.session) == ("call_1", "claude-code-3f2a9c1e")
    late = tmp_path / "late"
    followed(late, path, live=True, now=BEGAN + timedelta(days=1))
    assert (in_memory(late, records), refs(late)) == ([], [LONG.encode()])


def test_a_result_that_a_hook_has_kept_is_not_kept_again(home: Path, tmp_path: Path) -> None:
    async def kept(memory: Memory) -> None:
        await memory.offload_tool_result(
            "Bash", f"$ as the hook saw it\n{LONG}", tool_call_id="call_1", session="claude-code-3f2a9c1e"
        )

    in_memory(home, kept)
    (done,) = followed(home, written(tmp_path, "claude-code"), live=True)
    assert (done.kept, len(refs(home))) == (0, 1)


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("mcp__memory__recall", LONG),
        ("mcp__plugin_mcp-memory_memory__expand_node", LONG),
        ("Bash", f"[003-N4 r-9f2c1a7b3d4e; expand_node]\n{LONG}"),
        ("Read", f"     1\t[003-N4 r-9f2c1a7b3d4e; expand_node]\n{LONG}"),
    ],
)
def test_results_of_our_own_tools_are_never_kept(home: Path, tmp_path: Path, tool: str, text: str) -> None:
    steps = [TALK[0], ("call", "c", tool), ("result", "c", text)]
    (done,) = followed(home, written(tmp_path, "claude-code", steps))
    assert (done.kept, done.small, done.stored) == (0, 0, 1)


def test_a_recalled_block_is_removed_from_a_message(home: Path, tmp_path: Path) -> None:
    block = '<mcp-memory-recall part="dynamic">\nThey like tea.\n</mcp-memory-recall>'
    steps = [("user", f"{block}\nWhat do I drink?"), ("user", block), ("assistant", "Tea.")]
    (done,) = followed(home, written(tmp_path, "claude-code", steps))
    assert (done.stored, done.emptied) == (2, 1)
    assert list(turns(home).values()) == [[("user", "What do I drink?"), ("assistant", "Tea.")]]


def test_a_truncated_result_is_kept_whole_from_the_conversations_folder(home: Path, tmp_path: Path) -> None:
    told = "<persisted-output>\nOutput too large (69KB). Full output saved to: {}\n\nPreview:\n" + LONG[:2_000]
    near = "/home/ada/.claude/projects/-work/x/tool-results/b1.txt"
    steps: list[Any] = [TALK[0]]
    for call, name in (("near", near), ("far", "/etc/../tool-results/../../../secret.txt"), ("none", "/x/gone.txt")):
        steps += [("call", call, "Bash"), ("result", call, told.format(name) + call)]
    path = written(tmp_path, "claude-code", steps)
    folder = path.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    (folder / "b1.txt").write_text(LONG * 3, encoding="utf-8")
    (path.parent / "secret.txt").write_text("not of this conversation " * 99, encoding="utf-8")
    (folder / "secret.txt").symlink_to(path.parent / "secret.txt")
    (done,) = followed(home, path)
    assert done.kept == 3
    kept = sorted(refs(home), key=len)
    assert kept[-1] == (LONG * 3).encode()
    assert all(data.startswith(b"<persisted-output>") for data in kept[:2])


def test_a_turn_that_is_too_large_is_left_out_and_reported(home: Path, tmp_path: Path) -> None:
    steps = [TALK[0], ("assistant", "word " * 900_000), ("user", "Go on.")]
    (done,) = followed(home, written(tmp_path, "claude-code", steps))
    assert (done.stored, done.bad) == (2, 1)
    assert done.notes == ["Turns over 4 MiB are left out: 1."]


def test_half_characters_in_ids_and_words_stop_nothing(home: Path, tmp_path: Path) -> None:
    steps = [("user", "half \ud83d"), ("call", "c\ud83d", "Bash"), ("result", "c\ud83d", f"\ud83d{LONG}")]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in claude(steps, ids="\udc00")), encoding="utf-8")
    first, again = followed(home, path, path, again=True)
    assert (first.stored, first.kept, again.stored) == (1, 1, 0)
    assert list(turns(home).values()) == [[("user", "half \ufffd")]]


def test_turns_recorded_by_hand_are_kept_next_to_a_log_of_the_same_session(home: Path, tmp_path: Path) -> None:
    async def record(memory: Memory) -> None:
        await memory.record_turns([NewTurn(role="user", content="By hand")], session="claude-code-3f2a9c1e")

    in_memory(home, record)
    followed(home, written(tmp_path, "claude-code", TALK[:2]))
    assert [words for _, words in turns(home)["claude-code-3f2a9c1e"]] == ["By hand", TALK[0][1], TALK[1][1]]


# --- sessions ---------------------------------------------------------------------------------------


def test_a_session_is_named_by_the_part_of_the_id_that_varies() -> None:
    assert session_name("claude-code", "3F2A9C1E-8d1b-4c5a-9e77-1b2c3d4e5f60 ") == "claude-code-3f2a9c1e"
    assert session_name("codex", "01a20134-1b07-7fa1-a6bb-ae75f2713327") == "codex-f2713327"
    assert session_name("gemini", "my conversation") == session_name("gemini", "my conversation")
    assert len(session_name("gemini", "ü")) == len("gemini-12345678")


@given(ids=st.lists(UUIDS | st.text(), max_size=20, unique_by=lambda id: id.strip().lower()))
def test_a_sessions_name_is_safe_and_of_one_length(ids: list[str]) -> None:
    from mcp_memory.core.text import safe_name

    for id in ids:
        assert len(safe_name(session_name("codex", id), what="session")) == len("codex-12345678")


def test_times_are_those_of_the_log(home: Path, tmp_path: Path) -> None:
    (done,) = followed(home, written(tmp_path, "gemini"))
    assert done.first is not None
    assert done.last is not None
    assert (done.first.isoformat(), done.last.isoformat()) == (
        at(0).replace("Z", "+00:00"),
        at(9).replace("Z", "+00:00"),
    )


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("when", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", 1e18, -1, "soon", [1]])
def test_a_line_with_an_impossible_time_has_that_of_the_line_before(
    home: Path, tmp_path: Path, agent: Agent, when: object
) -> None:
    path = written(tmp_path, agent)
    lines = WRITERS[agent](TALK)
    nth = next(nth for nth, line in enumerate(lines) if "berth 3 is the busiest." in json.dumps(line))
    lines[nth] = {**lines[nth], "timestamp": when}
    path.write_bytes(data(lines))
    (done,) = followed(home, path)
    assert turns(home) == {session_name(agent, IDS[agent]): SAID[agent]}
    assert (done.stored, done.bad, done.misdated, done.torn) == (6, 0, 1, False)
    assert done.offset == path.stat().st_size
    assert done.first is not None
    assert done.last is not None
    assert timedelta(0) <= done.first - BEGAN <= done.last - BEGAN <= timedelta(seconds=30)


def test_a_turn_that_cannot_be_stored_costs_that_turn_alone(home: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "claude-code", [("user", "One"), ("assistant", "\u200b\u2060"), ("user", "Two")])
    (done,) = followed(home, path)
    assert (done.stored, done.offset) == (2, path.stat().st_size)


def test_a_turn_whose_id_another_session_has_for_other_words_is_kept_under_its_own_session(
    tmp_path: Path, home: Path
) -> None:
    first = written(tmp_path / "a", "claude-code", [("user", "Count the ships."), ("assistant", "There are nine.")])
    other = "7b2a9c1e-8d1b-4c5a-9e77-1b2c3d4e5f60"
    second = tmp_path / "b" / f"{other}.jsonl"
    second.parent.mkdir()
    second.write_bytes(data(claude([("user", "Count the ships."), ("assistant", "There are ten now.")], id=other)))
    for _ in range(2):
        followed(home, first, second, again=True)
    assert turns(home) == {
        "claude-code-3f2a9c1e": [("user", "Count the ships."), ("assistant", "There are nine.")],
        "claude-code-7b2a9c1e": [("assistant", "There are ten now.")],
    }
