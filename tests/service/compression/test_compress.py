"""What compression does, level by level, in both forms; batches that pay; lists that cannot be made to fit."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce
from typing import Any

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.token_counts import token_counter
from mcp_memory.service.compression.plan import CompressionRules, make_rules
from mcp_memory.service.compression.storing import cut_middle, shorten_arguments
from mcp_memory.store.sql import record_rows, tombstone_rows, turn_rows
from tests.service.compression.conftest import Program
from tests.service.compression.lists import Step, anthropic, long_talk, openai

COUNTER = token_counter("cl100k_base")
DEEP: Any = reduce(lambda inner, _: [inner], range(10_000), 0)


# --- the rules --------------------------------------------------------------------------------------


def test_a_batch_is_worth_it_from_the_call_on_where_it_saves_as_many_times_its_cost() -> None:
    rules = CompressionRules(window=10_000, cached_price=0.1, worth=1, further_calls=9)
    assert rules.gain(removed=900, behind=1_000, calls=0) == pytest.approx(0)
    assert rules.gain(removed=901, behind=1_000, calls=0) > 0
    assert replace(rules, worth=2).gain(removed=1_800, behind=1_000, calls=0) == pytest.approx(0)


def test_without_a_cache_every_edit_pays_at_once(program: Program) -> None:
    done = program.compress(openai(long_talk(4)), 8_000, mild=0, cached_price=1)
    assert (done.level, done.edits) == ("mild", 2)


def test_with_a_cache_the_first_edits_wait_until_they_pay_and_then_come_together(program: Program) -> None:
    messages = openai(long_talk(40))
    ends = range(4, len(messages) + 1, 2)
    edits = [program.compress(messages[:end], 200_000, mild=0, keep_calls=8).edits for end in ends]
    assert not any(edits[:10])
    assert 20 < sum(edits) <= 32
    assert len([count for count in edits if count]) <= 8


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"mild": 0.9}, "grow in"),
        ({"worth": 0}, "worth is 0"),
        ({"target": 0.9}, "target"),
        ({"price": 1}, "There is no rule 'price'"),
        ({"mild": "half"}, "has to be a number"),
    ],
)
def test_rules_that_cannot_be_are_refused_by_name(given: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidInput, match=wrong):
        make_rules(10_000, given)


# --- the levels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [openai, anthropic])
def test_mild_puts_records_in_place_of_old_results_and_leaves_the_newest_calls(program: Program, form: Any) -> None:
    messages = form(long_talk(8))
    done = program.compress(messages, 10_000, cached_price=1, level="mild")
    texts = [json.dumps(message) for message in done.messages]
    assert sum("expand_node" in text for text in texts) == done.edits == 6
    assert done.messages[-4:] == messages[-4:]
    assert len(done.messages) == len(messages)


def test_long_arguments_keep_their_keys_and_are_stored_whole(program: Program) -> None:
    messages = anthropic(long_talk(4, written=200))
    done = program.compress(messages, 10_000, cached_price=1, level="mild")
    shorter = done.messages[1]["content"][1]["input"]
    assert shorter["path"] == "src/part_0.py"
    assert "more characters in r-" in shorter["text"]
    assert json.dumps(messages[1]["content"][1]["input"], separators=(",", ":")) in program.stored()


def test_what_the_newest_calls_speak_of_is_not_the_first_to_go(program: Program) -> None:
    talk = long_talk(8)
    last = replace(talk.steps[-1], says="So value_2_17 and value_2_18 are wrong.")
    done = program.compress(openai(replace(talk, steps=(*talk.steps[:-1], last))), 10_000, cached_price=1, level="mild")
    whole = [place for place, message in enumerate(done.messages) if "line 30" in str(message["content"])]
    assert whole == [7, 15, 17]  # the third result, and those of the two newest calls


def test_aggressive_has_a_note_with_the_canvas_and_the_users_words_in_place_of_the_oldest_messages(
    program: Program,
) -> None:
    talk = long_talk(30)
    said = {3: "Mind the umlauts.", 20: "And the tests."}
    steps = [replace(step, user=said.get(n)) for n, step in enumerate(talk.steps)]
    messages = openai(replace(talk, steps=tuple(steps)))
    done = program.compress(messages, 20_000, level="aggressive", result_tokens=400, target=0.4)
    assert done.messages[:2] == messages[:2]
    note = done.messages[2]["content"]
    assert note.startswith('<mcp-memory-recall part="earlier">')
    assert "Mind the umlauts." in note
    assert "flowchart TD" in note
    assert done.messages[-4:] == messages[-4:]
    assert done.tokens <= 0.4 * 20_000
    turns = program.store.read(program.space, turn_rows.last_turns, done.session, limit=50, roles=("user",))
    assert [turn.content for turn in turns] == ["Mind the umlauts."]


def test_emergency_comes_down_to_the_target_whatever_it_takes(program: Program) -> None:
    huge = "".join(f"row {n}\n" for n in range(5_000))
    messages = openai(replace(long_talk(3), steps=(Step(calls=(({"path": "a"}, huge), ({"path": "b"}, "small"))),)))
    done = program.compress(messages, 4_000)
    assert (done.level, done.fits) == ("emergency", True)
    assert done.tokens <= 0.6 * 4_000
    assert done.messages[-1] == messages[-1]
    assert huge in program.stored()


def test_a_list_that_cannot_be_made_to_fit_says_what_is_in_the_way(program: Program) -> None:
    messages = [{"role": "system", "content": "rule " * 900}, {"role": "user", "content": "Go."}]
    done = program.compress(messages, 500, overhead=50)
    assert (done.fits, done.messages) == (False, messages)
    assert done.note is not None
    assert "system, 90" in done.note
    assert "50 are taken by `overhead`" in done.note
    assert "The largest is message 1 (" in done.note


def test_an_empty_list_stays_empty(program: Program) -> None:
    assert program.compress([], 1_000).messages == []


def test_results_and_arguments_nested_too_deep_to_be_read_are_put_away_as_text(program: Program) -> None:
    deep = "[" * 10_000 + "]" * 10_000
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": deep}}
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": deep},
        {"role": "user", "content": "And?"},
    ]
    assert program.compress(messages, 1_000).fits
    assert deep in program.stored()


def test_between_many_system_messages_the_largest_runs_go_where_there_is_no_room_for_a_note_on_each(
    program: Program,
) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for run in range(8):
        messages += [{"role": "assistant", "content": f"I see {run}-{n}. " * 40} for n in range(3)]
        messages.append({"role": "system", "content": f"Rule {run}."})
    messages.append({"role": "user", "content": "And?"})
    done = program.compress(messages, 2_000)
    assert done.fits
    assert [m for m in done.messages if m["role"] == "system"] == [m for m in messages if m["role"] == "system"]


def test_a_second_cut_tells_again_what_the_first_told(program: Program) -> None:
    talk = long_talk(60)
    steps = [replace(step, user=f"Wish {n}." if n in (2, 40) else None) for n, step in enumerate(talk.steps)]
    messages = openai(replace(talk, steps=tuple(steps)))
    options: dict[str, Any] = {"level": "aggressive", "result_tokens": 400, "target": 0.4}
    first = program.compress(messages[:60], 20_000, **options)
    second = program.compress([*first.messages, *messages[60:]], 20_000, **options)
    notes = [m["content"] for m in second.messages if 'part="earlier"' in str(m["content"])]
    assert "Wish 2." in notes[0]
    assert program.compress(messages, 20_000, **options).messages == second.messages


# --- what is given ----------------------------------------------------------------------------------


def test_images_and_blocks_that_are_unknown_stay_as_they_are_and_marks_may_move(program: Program) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    messages = anthropic(long_talk(5))
    messages[2]["content"][0]["content"].append(image)
    messages[1]["content"].insert(0, {"type": "thinking", "thinking": "…", "signature": "s"})
    messages[2]["content"][0]["cache_control"] = {"type": "ephemeral"}
    done = program.compress(messages, 10_000, cached_price=1, level="mild")
    result = done.messages[2]["content"][0]
    assert result["content"][1] == image
    assert result["cache_control"] == {"type": "ephemeral"}
    assert done.messages[1] == messages[1]
    del messages[2]["content"][0]["cache_control"]
    assert program.compress(messages, 10_000, cached_price=1, level="mild").edits == 0


def test_a_result_that_was_offloaded_on_arrival_is_not_offloaded_again(program: Program) -> None:
    first = program.compress(openai(long_talk(4)), 10_000, cached_price=1, level="mild", result_tokens=400)
    files = len(list((program.store.folder(program.space) / "refs").glob("*.md")))
    other = [{**message, "content": message["content"] + " "} if message["role"] == "user" else message for message in first.messages]  # fmt: skip
    done = program.compress(other, 10_000, cached_price=1, level="mild", keep_calls=1)
    assert done.edits == 3
    assert len(list((program.store.folder(program.space) / "refs").glob("*.md"))) == files + 1  # that of the third call


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ("hello", "not a list"),
        ([{"role": "user", "content": "a"}, {"content": "b"}], "Message 2 is not a chat message"),
        ([{"role": "user", "content": 7}], "content of message 1 is int"),
        (["x"], "Message 1 is not a chat message"),
        ([{"role": "assistant", "content": "a", "tool_calls": 5}], "tool_calls of message 1 are int"),
        ([{"role": "user", "content": [{"type": "x", "y": DEEP}]}], "nested too deep"),
    ],
)
def test_what_is_no_list_of_messages_is_refused_with_its_place(program: Program, given: Any, wrong: str) -> None:
    with pytest.raises(InvalidInput, match=wrong):
        program.compress(given, 1_000)


def test_what_was_forgotten_is_put_in_place_of_nothing(program: Program) -> None:
    messages = openai(long_talk(4))
    done = program.compress(messages, 10_000, cached_price=1, level="mild")
    [ref] = {record.ref for record in program.store.read(program.space, record_rows.list_records, limit=1)}
    program.store.write(program.space, tombstone_rows.forget, [ref], reason="private", now=program.now())
    after = program.compress(messages, 10_000, level="none").messages
    assert [a == b for a, b in zip(after, messages, strict=True)].count(False) == done.edits - 1


# --- the texts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [60, 200, 1_000])
def test_no_text_in_place_of_another_is_over_its_limit(limit: int) -> None:
    text = "".join(f"Zeile {n} 你好\n" for n in range(3_000))
    assert COUNTER.fits(cut_middle(text, ref="r-9f2c1a7b3d4e", limit=limit, counter=COUNTER), limit)
    given = json.dumps({"a": text, "b": [text, {"c": text}], "n": 4})
    shorter = shorten_arguments(given, ref="r-9f2c1a7b3d4e", limit=limit, counter=COUNTER)
    assert COUNTER.fits(shorter, limit)
    assert isinstance(json.loads(shorter), dict)


def test_no_private_passage_of_a_removed_message_is_stored(program: Program) -> None:
    private = ["open <private>", "quinceone " * 400, "</private> end"]
    message = {"role": "user", "content": [{"type": "text", "text": text} for text in private]}
    first, *later = anthropic(long_talk(12))
    assert program.compress([first, {"role": "assistant", "content": "…"}, message, *later], 3_000).edits
    folder = program.store.folder(program.space)
    assert not [path for path in folder.rglob("*") if path.is_file() and b"quince" in path.read_bytes()]
    assert "[private]" in program.stored()
