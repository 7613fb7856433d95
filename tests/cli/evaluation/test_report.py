"""The measurement as a whole: what it tells, what it refuses, and that it leaves no trace."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcp_memory.cli.evaluation.questions import KINDS, MinedQuestion
from mcp_memory.cli.evaluation.report import (
    LEAST_QUESTIONS,
    AskedQuestion,
    KindReport,
    SystemAnswer,
    kind_report,
    measure,
)
from mcp_memory.core.errors import Refused
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import HashEmbedder
from tests.cli.evaluation.conftest import SESSIONS, TURNS, talk_from, talk_of


@pytest.mark.slow
async def test_every_kind_is_measured_beside_both_floors(memory: Memory) -> None:
    report = await measure(memory, questions=40)
    assert (report.turns, report.turns_read, report.sessions) == (SESSIONS * TURNS, SESSIONS * TURNS, SESSIONS)
    assert (report.stopped, report.examples, report.model) == (False, [], "hash/64")
    assert [kind.kind for kind in report.kinds] == list(KINDS)
    for kind in report.kinds:
        assert kind.refused is None
        assert kind.questions >= LEAST_QUESTIONS
        assert list(kind.systems) == ["ours", "bm25", "dense"]
        assert list(kind.gaps) == ["bm25", "dense"]


async def test_the_words_of_a_turn_find_it(memory: Memory) -> None:
    [words] = (await measure(memory, kinds=["words"], questions=40)).kinds
    assert words.systems["bm25"].hit10.value > 95
    assert words.systems["ours"].hit10.value > 95


async def test_what_is_left_out_is_left_out_for_all(memory: Memory) -> None:
    """The asking turn holds the question word for word: were it counted, a reply could hardly come first."""
    [reply] = (await measure(memory, kinds=["reply"], questions=40, show=40)).kinds
    assert reply.systems["bm25"].hit1.value > 0


@pytest.mark.slow
async def test_the_seed_decides_the_figures_but_for_the_clock(memory: Memory) -> None:
    one, two = [(await measure(memory, kinds=["dim"], questions=40, seed=3)).kinds[0] for _ in range(2)]
    assert one.gaps == two.gaps
    assert [system.mrr10 for system in one.systems.values()] == [system.mrr10 for system in two.systems.values()]


async def test_examples_come_only_where_they_are_asked_for(memory: Memory) -> None:
    shown = (await measure(memory, kinds=["words"], questions=30, show=2)).examples
    assert [(one.kind, list(one.ranks)) for one in shown] == [("words", ["ours", "bm25", "dense"])] * 2


async def test_without_a_model_the_floor_is_bm25(home: Path) -> None:
    async with open_memory(home=home, embedder="none") as memory:
        for number in range(SESSIONS):
            await memory.record_turns(talk_of(number), session=f"s{number}")
        report = await measure(memory, kinds=["words"], questions=30)
    assert (report.model, list(report.kinds[0].systems)) == (None, ["ours", "bm25"])


@pytest.mark.slow
async def test_nothing_is_written(memory: Memory, home: Path) -> None:
    def held() -> Mapping[str, str]:
        return {
            str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(home.rglob("*"))
            if path.is_file() and path.suffix != ".db-shm"
        }

    await memory.conversation_search("waits until all is embedded")
    before, change = held(), await memory.last_change()
    await measure(memory, questions=30, show=3)
    assert (held(), await memory.last_change()) == (before, change)


async def test_a_small_memory_is_refused_with_what_it_needs(home: Path) -> None:
    async with open_memory(home=home, embedder="none") as memory:
        await memory.record_turns(talk_of(0), session="s0")
        with pytest.raises(Refused, match=r"has 20 turns, and figures need 200"):
            await measure(memory)


async def test_small_talk_is_refused(home: Path) -> None:
    turns = [NewTurn(role="user", content=f"Hello number {number}!") for number in range(250)]
    async with open_memory(home=home, embedder="none") as memory:
        await memory.record_turns(turns, session="s")
        with pytest.raises(Refused, match=r"Only 0 questions of a kind can be mined from 250 turns"):
            await measure(memory)


@pytest.mark.slow
async def test_a_kind_with_too_few_questions_has_no_figures(home: Path) -> None:
    async with open_memory(home=home, embedder="none") as memory:
        for number in range(SESSIONS):
            silent = [turn for turn in talk_of(number) if turn.role == "assistant"]
            await memory.record_turns([*silent, *silent[:1]] * 2, session=f"s{number}")
        reply, words = (await measure(memory, kinds=["reply", "words"], questions=30)).kinds
    assert words.refused is None
    assert (reply.refused, reply.systems, reply.gaps) == (
        "0 such questions could be mined; figures need 30.",
        {},
        {},
    )


async def test_time_that_runs_out_before_enough_was_asked_is_refused(memory: Memory) -> None:
    await memory.conversation_search("waits until all is embedded")
    with pytest.raises(Refused, match=r"Time ran out"):
        await measure(memory, seconds=0)


async def test_a_model_of_another_machine_is_not_asked(home: Path) -> None:
    async with open_memory(home=home, embedder="ollama/nomic-embed-text") as memory:
        with pytest.raises(Refused, match=r"ollama/nomic-embed-text is remote"):
            await measure(memory)


async def test_half_an_index_is_not_measured(home: Path) -> None:
    embedder = HashEmbedder()
    embedder.failing = True
    async with open_memory(home=home, embedder=embedder) as memory:
        for number in range(SESSIONS):
            await memory.record_turns(talk_of(number), session=f"s{number}")
        with pytest.raises(Refused, match=r"0 of 240 rows are embedded"):
            await measure(memory)


# --- what may be said -------------------------------------------------------------------------------


def asked(ranks: list[tuple[int | None, int | None]]) -> KindReport:
    target = talk_from([("s", ["x"])]).turns[0]
    question = MinedQuestion(kind="words", text="x", target=target)
    answers = [
        AskedQuestion(
            question=question,
            answers={"ours": SystemAnswer(rank=own, seconds=0.01), "bm25": SystemAnswer(rank=floor, seconds=0.01)},
        )
        for own, floor in ranks
    ]
    return kind_report("words", answers, len(ranks), ("ours", "bm25"))


def test_the_figures_of_ranks() -> None:
    found = asked([(1, 2)] * 20 + [(None, 4)] * 20).systems
    assert (found["ours"].hit1.value, found["ours"].hit10.value, found["ours"].mrr10.value) == (50, 50, 50)
    assert (found["bm25"].hit1.value, found["bm25"].hit10.value, found["bm25"].mrr10.value) == (0, 100, 37.5)


def test_a_clear_difference_is_told() -> None:
    found = asked([(1, 2)] * 40).gaps["bm25"]
    assert (found.differ, found.mrr10.value) == (40, 50)
    assert found.verdict.startswith("Ours is ahead of BM25 only by 50.0 points of MRR [")
    assert asked([(2, 1)] * 40).gaps["bm25"].verdict.startswith("Ours is behind BM25 only by 50.0 points of MRR [")


def test_a_handful_of_questions_that_differ_is_no_difference() -> None:
    found = asked([(1, None)] * 5 + [(1, 1)] * 35).gaps["bm25"]
    assert found.mrr10.ci95[0] > 0
    assert found.verdict.startswith("No difference from BM25 only can be shown with 40 questions: +12.5 MRR [")
