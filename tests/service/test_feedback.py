"""What a person says of a recalled row changes the order for that question and its like, and for no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path

import anyio.to_thread
import pytest

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.types import MemoryResults, NewTurn
from mcp_memory.longterm.recall.blocks import ids_in
from mcp_memory.longterm.search.feedback import question_hashes
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.portable.reading import open_export
from mcp_memory.service.upkeep.rebuild import rebuild
from mcp_memory.service.upkeep.restore import restore
from mcp_memory.testing import FixedClock, HashEmbedder
from tests.upkeep.conftest import NOW, backed_up

FERRY = "When does the night ferry sail?"
LIKE = "When does the night ferry sail in winter?"
OTHER = "Which kettle leaks?"


@pytest.fixture
async def memory(home: Path) -> AsyncIterator[Memory]:
    async with open_memory(home=home, now=FixedClock(), embedder=HashEmbedder(), llm="none") as opened:
        for text in (
            "The night ferry sails at nine.",
            "The night ferry sails from pier four.",
            "The night ferry is called Aurora.",
            "The old kettle leaks at the spout.",
            "The new kettle leaks at the handle.",
        ):
            await opened.remember(text, typed=True)
        yield opened


async def recalled(memory: Memory, question: str = FERRY) -> int:
    """Recall for a question, and return the number of the recall in the log."""
    await memory.recall(question)
    return (await memory.recalls(limit=1))[0].id


async def order(memory: Memory, question: str) -> list[str]:
    found = await memory.memory_search(question)
    return [hit.atom.id for hit in found.atoms]


async def scores(memory: Memory, question: str) -> dict[str, float]:
    found: MemoryResults = await memory.memory_search(question)
    return {hit.atom.id: hit.score for hit in found.atoms}


async def test_a_wrong_row_comes_last_for_its_question_and_lower_for_questions_like_it(memory: Memory) -> None:
    first, *others = await order(memory, FERRY)
    before = {question: await scores(memory, question) for question in (LIKE, OTHER)}
    await memory.give_feedback(await recalled(memory), first, "wrong")
    assert await order(memory, FERRY) == [*others, first]
    after = {question: await scores(memory, question) for question in (LIKE, OTHER)}
    assert 0 < after[LIKE][first] < before[LIKE][first]
    assert {id: score for id, score in after[LIKE].items() if id != first} == {
        id: score for id, score in before[LIKE].items() if id != first
    }
    assert after[OTHER] == before[OTHER]


async def test_a_helpful_row_comes_first_for_its_question(memory: Memory) -> None:
    *others, last = await order(memory, FERRY)
    kettles = await scores(memory, OTHER)
    await memory.give_feedback(await recalled(memory), last, "helpful")
    assert await order(memory, FERRY) == [last, *others]
    assert await scores(memory, OTHER) == kettles


async def test_recall_leaves_out_what_was_wrong_for_this_very_question(home: Path) -> None:
    async with open_memory(home=home, now=FixedClock(), embedder=HashEmbedder(), read_sentences=False) as memory:
        said = ("The night ferry sails at nine.", "The night ferry sails from pier four.", "The ferry has one bar.")
        await memory.record_turns([NewTurn(role="user", content=text) for text in said], session="s")

        async def brought(question: str) -> set[str]:
            return set(ids_in((await memory.recall(question, session="other")).dynamic))

        assert await brought(FERRY) == {"t1", "t2", "t3"}
        await memory.give_feedback((await memory.recalls(limit=1))[0].id, "t2", "wrong")
        assert await brought(FERRY) == {"t1", "t3"}
        why = {row.id: row.why for row in (await memory.explain_recall(FERRY)).verdicts}
        assert why["t2"] == "was marked as wrong for this question"
        assert await brought("From which pier does the ferry sail?") == {"t1", "t2", "t3"}


async def test_the_explanation_of_a_search_adds_up_to_its_order(memory: Memory) -> None:
    await memory.give_feedback(await recalled(memory), "a1", "wrong")
    explained = await memory.explain(FERRY)
    rows = {row.id: row for row in explained.shown}
    assert rows["a1"].score == 0 == pytest.approx(sum(part.points for part in rows["a1"].parts), abs=1e-3)
    assert [part.signal for part in rows["a1"].parts][-1] == "feedback"
    assert "feedback" not in {part.signal for part in rows["a2"].parts}


async def test_undoing_restores_the_order_to_the_last_digit(memory: Memory) -> None:
    questions = (FERRY, LIKE, OTHER)
    before = [await scores(memory, question) for question in questions]
    recall = await recalled(memory)
    given = [
        await memory.give_feedback(recall, "a1", "wrong"),
        await memory.give_feedback(recall, "a1", "helpful"),
        await memory.give_feedback(recall, "a3", "helpful"),
    ]
    assert [await scores(memory, question) for question in questions] != before
    for feedback in given:
        await memory.undo_feedback(feedback.id)
    assert [await scores(memory, question) for question in questions] == before
    with pytest.raises(NotFound, match="undone already"):
        await memory.undo_feedback(given[0].id)


async def test_the_latest_word_on_a_row_counts_and_undoing_it_lets_the_earlier_count_again(memory: Memory) -> None:
    recall = await recalled(memory)
    await memory.give_feedback(recall, "a2", "wrong")
    low = await scores(memory, FERRY)
    helpful = await memory.give_feedback(recall, "a2", "helpful")
    assert (await order(memory, FERRY))[0] == "a2"
    assert await memory.give_feedback(recall, "a2", "helpful") == helpful
    await memory.undo_feedback(helpful.id)
    assert await scores(memory, FERRY) == low
    assert [given.verdict for given in await memory.feedback_on(target="a2")] == ["wrong"]


async def test_feedback_counts_for_turns_too(home: Path) -> None:
    async with open_memory(home=home, now=FixedClock(), embedder=HashEmbedder(), read_sentences=False) as memory:
        said = ("The harbour closes at ten.", "The harbour closes its bridge on Sunday.")
        await memory.record_turns([NewTurn(role="user", content=text) for text in said], session="s")
        await memory.recall("When does the harbour close?")
        (entry,) = await memory.recalls()
        first = (await memory.conversation_search("When does the harbour close?")).hits[0].turn.id
        await memory.give_feedback(entry.id, first, "wrong")
        assert (await memory.conversation_search("When does the harbour close?")).hits[-1].turn.id == first
        assert (await memory.find("When does the harbour close?")).hits[-1].id == first


async def test_feedback_keeps_no_word_of_the_question(memory: Memory, home: Path) -> None:
    question = "When does the zanzibar ferry sail with mrs quillfeather?"
    recall = await recalled(memory, question)
    await memory.give_feedback(recall, "a1", "wrong")
    (given,) = await memory.feedback_on(recall=recall)
    assert (await memory.recall_entry(recall)).query is None
    assert frozenset(given.words) == question_hashes(question)
    assert (await order(memory, question))[-1] == "a1"
    stored = b"".join(path.read_bytes() for path in home.rglob("memory.db*"))
    assert b"zanzibar" not in stored
    assert b"quillfeather" not in stored


async def test_feedback_needs_a_question_and_a_row_that_the_recall_returned(memory: Memory) -> None:
    await memory.recall()
    asked_nothing = (await memory.recalls(limit=1))[0]
    with pytest.raises(InvalidInput, match="no question"):
        await memory.give_feedback(asked_nothing.id, asked_nothing.ids[0], "wrong")
    recall = await recalled(memory)
    for number, target in ((recall, "a99"), (recall + 1, "a1")):
        with pytest.raises(NotFound):
            await memory.give_feedback(number, target, "wrong")


async def test_forgetting_a_row_takes_its_feedback_and_bringing_it_back_returns_it(memory: Memory) -> None:
    recall = await recalled(memory)
    await memory.give_feedback(recall, "a1", "wrong")
    low = await scores(memory, FERRY)
    forgotten = await memory.forget(["a1"], dry_run=False)
    assert await memory.feedback_on(target="a1") == await memory.feedback_on(recall=recall) == []
    await memory.forget(undo=forgotten.tombstone)
    assert [given.target for given in await memory.feedback_on(recall=recall)] == ["a1"]
    assert (await scores(memory, FERRY))["a1"] == low["a1"] == 0


async def test_a_purge_deletes_the_feedback_on_a_row_and_on_a_question_that_is_erased(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="user", content=FERRY)], session="s")
    recall = await recalled(memory)
    await memory.give_feedback(recall, "a1", "wrong")
    await memory.give_feedback(recall, "a2", "helpful")
    kettles = await recalled(memory, OTHER)
    await memory.give_feedback(kettles, "a4", "helpful")
    await memory.give_feedback(kettles, "a5", "wrong")
    (turn,) = [turn.id for turn in await memory.session_turns("s")]
    gone = [await memory.forget([id], dry_run=False) for id in (turn, "a5")]
    await memory.purge([forgotten.tombstone for forgotten in gone if forgotten.tombstone])
    assert await memory.feedback_on(recall=recall) == []
    assert [given.target for given in await memory.feedback_on(recall=kettles)] == ["a4"]
    assert [entry.words for entry in await memory.recalls()] == [(), ()]


# --- elsewhere --------------------------------------------------------------------------------------


def opened(home: Path) -> AbstractAsyncContextManager[Memory]:
    return open_memory(home=home, now=FixedClock(), embedder=HashEmbedder(), llm="none")


async def ferry_order(home: Path) -> list[str]:
    async with opened(home) as memory:
        return await order(memory, FERRY)


async def test_an_export_brings_feedback_to_another_memory_once_and_later_its_undoing(
    memory: Memory, tmp_path: Path
) -> None:
    recall = await recalled(memory)
    wrong = await memory.give_feedback(recall, "a1", "wrong")
    await memory.export(tmp_path / "one.zip")
    await memory.undo_feedback(wrong.id)
    await memory.export(tmp_path / "two.zip")
    async with opened(tmp_path / "elsewhere") as other:
        for _ in range(2):
            await take_in(other, tmp_path / "one.zip")
        assert (await scores(other, FERRY))["a1"] == 0
        assert len(await other.feedback_on(target="a1")) == 1
        await take_in(other, tmp_path / "two.zip")
        assert (await scores(other, FERRY))["a1"] > 0
        await take_in(other, tmp_path / "one.zip")
        assert await other.feedback_on() == []


async def take_in(memory: Memory, file: Path) -> None:
    with ExitStack() as files:
        parcel = await anyio.to_thread.run_sync(files.enter_context, open_export(file))
        await memory.take_in(parcel, memory.space)


@pytest.mark.files
async def test_feedback_survives_a_backup_and_a_rebuild(home: Path, tmp_path: Path) -> None:
    async with opened(home) as memory:
        for text in ("The night ferry sails at nine.", "The night ferry sails from pier four."):
            await memory.remember(text, typed=True)
        first, last = await order(memory, FERRY)
        await memory.give_feedback(await recalled(memory), first, "wrong")
    made = await anyio.to_thread.run_sync(lambda: backed_up(home))
    await anyio.to_thread.run_sync(lambda: restore(made.path, tmp_path / "restored", now=NOW))
    assert await ferry_order(tmp_path / "restored") == [last, first]
    await anyio.to_thread.run_sync(lambda: rebuild(home, now=NOW))
    assert await ferry_order(home) == [last, first]
