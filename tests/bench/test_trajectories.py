"""The ledger of agent runs: what is counted, what counts as lost, and that a bad file is named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.trajectories import Ledger, Loss, Message, Prompt, Sent, Trajectory, identifiers, read_runs, tokens_of
from mcp_memory.core.errors import InvalidInput


def run_of(*messages: tuple[str, str]) -> Trajectory:
    return Trajectory(id="r1", messages=tuple(Message(role=role, content=content) for role, content in messages))  # type: ignore[call-arg]


@dataclass
class Replaced:
    """Sends everything, but for what it is given to put in the place of some messages."""

    by: dict[int, str]
    beside: str = ""
    definitions: int = 0

    def prompts(self, run: Trajectory) -> Iterator[Prompt]:
        for place, message in enumerate(run.messages):
            if message.role == "assistant":
                sent = [Sent(self.by.get(at, one.text), (at,)) for at, one in enumerate(run.messages[:place])]
                yield Prompt([*sent, *([Sent(self.beside)] if self.beside else [])], self.definitions)


TALK = run_of(
    ("user", "Why does the ferry sail late?"),
    ("assistant", "I look into the log."),
    ("tool", "harbour.log: engine_room reports valve 4711 stuck\npump_seven is fine"),
    ("assistant", "Valve 4711 in engine_room is stuck."),
    ("assistant", "As I said: engine_room. And pump_seven is fine, says captain_ahab."),
)


def test_identifiers_are_paths_words_of_four_letters_and_numbers_of_three_digits() -> None:
    assert identifiers("see src/app.py, the _id 12 and 404.") == {"src/app.py", "404"}
    assert identifiers("") == frozenset()


def test_sending_everything_saves_and_loses_nothing() -> None:
    ledger = Ledger()
    ledger.add(TALK, Replaced({}))
    assert (ledger.tokens_saved, ledger.cost_saved, ledger.survival) == (0.0, 0.0, None)
    assert ledger.losses == [[]]


def test_a_name_is_lost_once_where_it_is_first_used_and_nothing_that_was_sent_has_it() -> None:
    ledger = Ledger()
    ledger.add(TALK, Replaced({2: "a log; engine_room has a stuck valve"}))
    assert (ledger.used, ledger.survived) == (5, 2)  # engine_room, stuck; 4711, fine, pump_seven; not "valve"/"Valve"
    assert ledger.losses == [[Loss(3, "4711", 2), Loss(4, "fine", 2), Loss(4, "pump_seven", 2)]]


def test_what_is_sent_beside_the_messages_counts_as_kept_and_costs() -> None:
    bare, beside = Ledger(), Ledger()
    bare.add(TALK, Replaced({2: "a log"}))
    beside.add(TALK, Replaced({2: "a log"}, beside="canvas: engine_room stuck, 4711, fine, pump_seven"))
    assert bare.survival == 0.0
    assert beside.survival == 1.0
    assert beside.tokens > bare.tokens


def test_tokens_sum_over_calls_and_a_shared_beginning_costs_a_tenth() -> None:
    run = run_of(("user", "alpha"), ("assistant", "beta"), ("assistant", "gamma"))
    alpha, beta = tokens_of("alpha") + 8, tokens_of("beta") + 8
    ledger = Ledger()
    ledger.add(run, Replaced({}, definitions=100))
    assert ledger.whole_tokens == alpha + (alpha + beta)
    assert ledger.tokens == ledger.whole_tokens + 200
    assert ledger.whole_cost == pytest.approx(alpha + 0.1 * alpha + beta)
    assert ledger.cost == pytest.approx(100 + alpha + 0.1 * (100 + alpha) + beta)


def test_a_change_of_an_old_message_breaks_the_cache_from_there_on() -> None:
    @dataclass
    class Late:
        def prompts(self, run: Trajectory) -> Iterator[Prompt]:
            yield Prompt([Sent("one", (0,)), Sent("two", (1,))])
            yield Prompt([Sent("one", (0,)), Sent("2", (1,)), Sent("three", (2,))])

    run = run_of(("user", "one"), ("user", "two"), ("assistant", "three"), ("assistant", "four"))
    ledger = Ledger()
    ledger.add(run, Late())
    assert ledger.tokens == 5 * 9
    assert ledger.cost == pytest.approx(2 * 9 + 0.1 * 9 + 2 * 9)


def test_a_run_file_may_be_plain_or_packed_and_a_bad_line_is_named(tmp_path: Path) -> None:
    line = json.dumps(
        {
            "instance_id": "a",
            "extra": 1,
            "messages": [
                {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "name": "Read", "arguments": {"p": 1}}]},
                {"role": "tool", "content": "text", "tool_call_id": "c1", "usage": {}},
            ],
        }
    )  # fmt: skip
    plain, packed = tmp_path / "runs.jsonl", tmp_path / "runs.jsonl.gz"
    plain.write_text(line + "\n\n", encoding="utf-8")
    with gzip.open(packed, "wt", encoding="utf-8") as file:
        file.write(line + "\n")
    assert read_runs(plain) == read_runs(packed)
    assert read_runs(plain)[0].messages[0].text == '\nRead {"p": 1}'
    plain.write_text(line + '\n{"instance_id": 7}\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match="line 2: instance_id"):
        read_runs(plain)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_runs(tmp_path / "nowhere.jsonl")
