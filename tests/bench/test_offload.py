"""The offload bench on a run of our own: its figures are shares, ours keeps what it promises, the command prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.cutting import Arrival, HeadTail, reread, talk_before
from bench.offload import main, measure
from bench.trajectories import Loss, Message, Trajectory, read_runs

LOG = "\n".join(
    f"2026-03-01T08:{n // 60:02}:{n % 60:02}Z INFO request_{n} served in {n % 17} ms" for n in range(300)
).replace("request_200 served in 13 ms", "ERROR pump_seven: valve 4711 stuck in bay/engine.py")
RUN = {
    "instance_id": "ferry",
    "messages": [
        {"role": "user", "content": "Why does the ferry sail late? Look at pump_seven."},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "Read", "arguments": '{"path": "harbour.log"}'}]},
        {"role": "tool", "content": LOG, "tool_call_id": "1"},
        {"role": "assistant", "content": "Valve 4711 is stuck; now bay/engine.py.", "tool_calls": [{"id": "2", "name": "Bash", "arguments": '{"command": "grep -n valve bay/engine.py"}'}]},
        {"role": "tool", "content": "12: valve = open_valve(4711)", "tool_call_id": "2"},
        {"role": "assistant", "content": "request_150 came through before; open_valve blocks."},
    ],
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ferry.jsonl"
    path.write_text(json.dumps(RUN) + "\n", encoding="utf-8")
    return path


def test_ours_keeps_the_error_where_head_and_tail_lose_it_and_gives_every_byte_back(file: Path) -> None:
    runs = read_runs(file)
    ours, floor = measure(runs, lambda store: Arrival(store)), measure(runs, lambda _: HeadTail(400))
    assert [loss.name for loss in ours.alone.losses[0]] == ["request_150"]
    assert {"4711", "bay/engine.py", "request_150"} <= {loss.name for loss in floor.alone.losses[0]}
    assert ours.alone.tokens < 0.3 * ours.alone.whole_tokens
    assert ours.recovered is not None
    assert ours.recovered.put_away == ours.recovered.the_same == len(LOG)


def test_what_is_read_again_is_asked_for_before_it_is_used_and_counts(file: Path) -> None:
    run = read_runs(file)[0]
    grown = reread(run, [Loss(5, "request_150", 2), Loss(5, "served", 2)])
    assert [message.role for message in grown.messages[-3:]] == ["assistant", "tool", "assistant"]
    assert "request_150 served" in grown.messages[-2].content
    assert "served" not in grown.messages[-3].calls[0].arguments
    assert [message.added for message in grown.messages] == [False] * 5 + [True, True, False]
    assert measure([run], lambda _: HeadTail(400)).all_in.tokens > measure([run], lambda _: HeadTail(400)).alone.tokens


def test_the_talk_is_the_last_four_turns_and_always_the_users_last() -> None:
    said = [("user", "task"), *[("assistant", f"step {n}") for n in range(6)], ("tool", "result")]
    run = Trajectory(id="r", messages=tuple(Message(role=role, content=text) for role, text in said))  # type: ignore[call-arg]
    assert talk_before(run, 7) == "task\nstep 2\nstep 3\nstep 4\nstep 5"


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["--budget", "600"], ["--curve"]])
def test_the_command_prints_ours_beside_head_and_tail(
    file: Path, tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    main([str(file), "--json", str(out), *arguments])
    printed = capsys.readouterr().out
    if "--curve" in arguments:
        assert "head+tail" in printed
        assert "default" in printed
        return
    assert "ours (arrival)" in printed
    assert "headtail" in printed
    found = json.loads(out.read_text(encoding="utf-8"))
    assert (found["set"], found["trajectories"]) == ("ferry", 1)
    assert {"ours", "headtail"} == set(found["systems"])
    ours = found["systems"]["ours"]
    assert {"tokens_saved", "cost_saved", "survival", "identifiers", "bytes_recovered"} <= set(ours)
    assert all(0 <= ours[key] <= 1 for key in ("tokens_saved", "survival", "bytes_recovered"))
