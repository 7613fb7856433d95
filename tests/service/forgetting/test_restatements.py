"""`forget` names the other rows that say the same, however often they do, and no other facts about the same name."""

from __future__ import annotations

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory

FACT = "Odalys breeds quokkas in Tromsdalen every spring"
OTHERS = (
    "Odalys lives in Tromsdalen",
    "Odalys plays the cello in an orchestra",
    "Quokkas are marsupials",
    "Shall we meet in Tromsdalen next week?",
)


async def say(memory: Memory, text: str, *, session: str, role: str = "user") -> str:
    kept = await memory.record_turns([NewTurn(role=role, content=text)], session=session)  # pyright: ignore[reportArgumentType]
    return kept.stored[0]


async def fill(memory: Memory, rows: int) -> None:
    words = ("lantern", "harbour", "ticket", "oven", "bridge", "violin", "garden", "ledger", "kettle", "orchard")
    turns = [
        NewTurn(role="user", content=f"The {words[n % 10]} of week {n} needs a new {words[n // 10 % 10]} colour")
        for n in range(rows)
    ]
    if turns:
        await memory.record_turns(turns, session="filler")


@pytest.mark.parametrize("rows", [0, 150])
@pytest.mark.parametrize("copies", [2, 3, 4, 5, 9, 30])
async def test_every_copy_is_named_however_many_there_are(memory: Memory, copies: int, rows: int) -> None:
    await fill(memory, rows)
    ids = [await say(memory, FACT, session=f"s{n}") for n in range(copies)]
    assert (await memory.forget(ids[:1])).also == ids[1:]


async def test_copies_beyond_the_list_are_counted(memory: Memory) -> None:
    ids = [await say(memory, FACT, session=f"s{n}") for n in range(60)]
    gone = await memory.forget(ids[:1], dry_run=True)
    assert (len(gone.also), len(gone.also_previews)) == (50, 50)
    assert "9 more rows" in " ".join(gone.along)
    assert (await memory.forget(ids[:1], also=True)).total == 60


@pytest.mark.parametrize("copies", [1, 12])
@pytest.mark.parametrize("rows", [0, 150])
async def test_paraphrases_and_texts_around_it_are_named(memory: Memory, copies: int, rows: int) -> None:
    await fill(memory, rows)
    ids = [await say(memory, FACT, session=f"s{n}") for n in range(copies)]
    log = "\n".join(f"line {n} of a log about the weather and the tide" for n in range(80))
    same = [
        await say(memory, "Got it: you breed quokkas in Tromsdalen.", session="s0", role="assistant"),
        await say(memory, f"{log}\nnotes.txt: {FACT}\n{log}", session="s0", role="tool"),
        await say(memory, f"By the way, {FACT}, and on Sundays we bake bread together with her mother.", session="b"),
    ]
    result = await memory.offload_tool_result("read_file", f"{log}\n{FACT}.\n{log}", session="s0", step="look")
    named = (await memory.forget(ids[:1])).also
    assert {*named} >= {*same, result.ref, *ids[1:]}


@pytest.mark.parametrize("copies", [1, 5])
@pytest.mark.parametrize("rows", [0, 150])
async def test_other_facts_about_the_same_name_are_not_named(memory: Memory, copies: int, rows: int) -> None:
    await fill(memory, rows)
    ids = [await say(memory, FACT, session=f"s{n}") for n in range(copies)]
    for text in OTHERS:
        await say(memory, text, session="o")
    await say(memory, "\n".join(OTHERS), session="o", role="tool")
    assert (await memory.forget(ids[:1])).also == ids[1:]


async def test_a_sentence_of_the_same_form_with_other_words_is_not_named(memory: Memory) -> None:
    first = await say(memory, "Zinnia turn vmdt keeps qqfj lanterns", session="a")
    await say(memory, "Zinnia remember hjkl keeps wert lanterns", session="b")
    assert (await memory.forget([first])).also == []
    tea = await say(memory, "Zinnia likes tea", session="c")
    await say(memory, "Zinnia likes milk", session="d")
    assert (await memory.forget([tea])).also == []
