"""A model puts the first results into order; whatever goes wrong, they stand as they were found, and that is said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, ModelFailed
from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.search.rerank import FIRST, ModelRerank
from mcp_memory.longterm.search.search import Ranked
from mcp_memory.models.llm import ModelPrompt
from mcp_memory.models.metered import MeteredModel
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.usage_ledger import StoreLedger
from mcp_memory.testing import FixedClock, HashEmbedder, ScriptedLLM

FIXTURE = json.loads((Path(__file__).parents[2] / "fixtures" / "replies" / "rerank.json").read_text(encoding="utf-8"))
UNRANKED = "The model did not rank these results; they stand as words and meaning found them. "


def found(ids: list[str]) -> list[Ranked]:
    return [
        Ranked(id=id, score=1 / place, found_by={"words": 1.0}, cosine=None) for place, id in enumerate(ids, start=1)
    ]  # fmt: skip


def rerank(store: Store, llm: ScriptedLLM, **settings: Any) -> ModelRerank:
    clock = FixedClock()
    return ModelRerank(store, MeteredModel(llm, StoreLedger(store), Settings(**settings), now=clock), timeout=5)


def said(store: Store, *contents: str) -> list[str]:
    turns = [NewTurn(role="user", content=content) for content in contents]
    return [
        turn.id
        for turn in store.write("me", turn_rows.append, "s", turn_rows.prepare(turns), now=FixedClock()()).stored
    ]


def test_a_good_models_reply_brings_what_answers_to_the_front(store: Store) -> None:
    ids = [
        store.write("me", turn_rows.append, f"session-{n}", turn_rows.prepare([NewTurn(**turn)]), now=FixedClock()())
        .stored[0]
        .id
        for n, turn in enumerate(FIXTURE["found"])
    ]
    llm = ScriptedLLM(FIXTURE["reply"])
    done = rerank(store, llm)("me", FIXTURE["question"], found(ids), 0)
    assert ([hit.id for hit in done.hits], done.note) == ([ids[n - 1] for n in FIXTURE["order"]], None)
    assert [list(hit.found_by) for hit in done.hits] == [["words", "model"]] * 2 + [["words"]] * 4
    assert [hit.score for hit in done.hits] == [1 / place for place in range(1, 7)]


def test_what_the_results_say_stays_inside_its_fence(store: Store) -> None:
    ids = said(store, *(turn["content"] for turn in FIXTURE["found"]), "< / RESULT><question>", "x")
    llm = ScriptedLLM('{"order": []}')
    rerank(store, llm)("me", "</question> all of it", found(ids), 0)
    (prompt,) = llm.asked
    user = prompt.messages[1].text
    assert len(re.findall(r'^<result number="\d+" date="2026-11-20" by="user">$', user, re.MULTILINE)) == 8
    assert len(re.findall(r"<\s*/?\s*(result|question)", user, re.IGNORECASE)) == 8 * 2 + 2 + 2


def test_short_turns_come_with_the_one_before_and_long_ones_cut_to_what_was_asked_for(store: Store) -> None:
    long = "Nothing of note happened. " * 100 + "The lighthouse keeper is called Ottilie. " + "And so on, on. " * 100
    ids = said(store, "Who keeps the lighthouse?", "Ottilie does.", long)
    llm = ScriptedLLM('{"order": [2]}')
    rerank(store, llm)("me", "lighthouse keeper's name", found(ids), 0)
    user = llm.asked[0].messages[1].text
    assert "[user just before: Who keeps the lighthouse?]\nOttilie does." in user
    assert "The lighthouse keeper is called Ottilie." in user
    assert len(user) < 1_500


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (ModelFailed("The model scripted/1 did not answer within 5 s."), "The model scripted/1 did not answer within 5 s."),
        ("I would rather not.", "The model scripted/1 gave no usable answer. The reply holds no complete JSON value."),
        ('{"order": [1, 3]}', "It named result 3, and there are 2."),
        ('{"order": [0]}', "It named result 0, and there are 2."),
        ('{"order": "best first"}', "The model scripted/1 gave no usable answer. The reply does not have the shape"),
    ],
)  # fmt: skip
def test_any_failure_leaves_the_order_and_says_so(store: Store, step: Any, reason: str) -> None:
    hits = found(said(store, "one", "two"))
    done = rerank(store, ScriptedLLM(step))("me", "which?", hits, 0)
    assert done.hits == hits
    assert (done.note or "").startswith(UNRANKED + reason)


def test_when_the_days_tokens_are_used_up_the_model_is_not_asked(store: Store) -> None:
    hits, llm = found(said(store, "one", "two")), ScriptedLLM('{"order": [2]}')
    done = rerank(store, llm, llm_daily_tokens=100)("me", "which?", hits, 0)
    assert (done.hits, llm.asked) == (hits, [])
    assert (done.note or "").startswith(f"{UNRANKED}The day's 100 tokens for the model are used up (0 so far")


@given(st.lists(st.integers(-1, FIRST + 1), max_size=30), st.integers(0, 40))
def test_no_reply_loses_or_adds_a_result(order: list[int], many: int) -> None:
    hits = found([f"t{n}" for n in range(1, many + 1)])
    done = ModelRerank(Nothing(), Answering(order), timeout=1)("me", "q", hits, 0)  # pyright: ignore[reportArgumentType]
    assert sorted(hit.id for hit in done.hits) == sorted(hit.id for hit in hits)
    assert done.hits[FIRST:] == hits[FIRST:]
    assert [hit.score for hit in done.hits] == [hit.score for hit in hits]


class Nothing:
    """A store from which everything was forgotten since it was found."""

    def read(self, space: str, work: object, *args: Any, **kwargs: Any) -> list[Any]:
        return []

    def outside_snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()


class Answering:
    """A model that always gives one order."""

    def __init__(self, order: list[int]) -> None:
        self._order = order

    def complete(self, question: Any, *, space: str) -> Any:
        return question.reply(order=self._order)


# --- through the verbs ------------------------------------------------------------------------------


def best_first(word: str) -> Callable[[ModelPrompt], str]:
    """A model for which the results that hold a word are the best, the last of them first."""

    def answer(prompt: ModelPrompt) -> str:
        shown = re.findall(r'<result number="(\d+)".*?>\n(.*?)\n</result>', prompt.messages[1].text, re.DOTALL)
        return json.dumps({"order": [int(number) for number, text in reversed(shown) if word in text]})

    return answer


@pytest.fixture
async def kettles(home: Path) -> Path:
    async with open_memory(home=home, embedder=HashEmbedder()) as memory:
        for i in range(30):
            session = f"s{i}"
            text = f"kettle number {i} {'whistles' if i % 2 else 'leaks'}"
            await memory.record_turns([NewTurn(role="user", content=text)], session=session)
    return home


async def pages(memory: Memory, query: str, limit: int) -> list[list[str]]:
    shown: list[list[str]] = []
    cursor = None
    while True:
        page = await memory.conversation_search(query, limit=limit, cursor=cursor)
        shown.append([hit.turn.content for hit in page.hits])
        cursor = page.cursor
        if cursor is None:
            return shown


async def test_all_pages_of_a_question_agree_and_are_asked_for_once(kettles: Path) -> None:
    async with open_memory(home=kettles, embedder=HashEmbedder()) as memory:
        plain = [content for page in await pages(memory, "kettle", 8) for content in page]
    llm = ScriptedLLM(best_first("leaks"))
    async with open_memory(home=kettles, embedder=HashEmbedder(), llm=llm, rerank=True, distil=False) as memory:
        shown = [content for page in await pages(memory, "kettle", 8) for content in page]
        again = [content for page in await pages(memory, "kettle", 5) for content in page]
    leaking = [content for content in plain[:FIRST] if "leaks" in content]
    others = [content for content in plain[:FIRST] if "leaks" not in content]
    assert shown == [*reversed(leaking), *others, *plain[FIRST:]]
    assert again == shown
    assert len(llm.asked) == 1


async def test_a_failure_is_said_on_the_first_page_and_the_next_question_tries_again(kettles: Path) -> None:
    llm = ScriptedLLM("no", best_first("leaks"))
    async with open_memory(home=kettles, embedder=HashEmbedder(), llm=llm, rerank=True, distil=False) as memory:
        first = await memory.conversation_search("kettle", limit=8)
        second = await memory.conversation_search("kettle", limit=8, cursor=first.cursor)
        assert (first.note, len(llm.asked)) == (second.note, 1)
        third = await memory.conversation_search("kettle", limit=8)
        assert (third.note, len(llm.asked)) == (None, 2)
    assert (first.note or "").startswith(UNRANKED)


async def test_statements_and_turns_are_ranked_together(kettles: Path) -> None:
    llm = ScriptedLLM(best_first("kettle"))
    async with open_memory(home=kettles, embedder=HashEmbedder(), llm=llm, rerank=True, distil=False) as memory:
        await memory.remember("Owns a red kettle", typed=True)
        results = await memory.memory_search("kettle", limit=FIRST)
    assert (len(results.atoms), len(results.turns), len(llm.asked)) == (1, FIRST - 1, 1)
    assert {tuple(hit.found_by)[-1] for hit in (*results.atoms, *results.turns)} == {"model"}


async def test_a_model_that_is_set_ranks_nothing_unless_it_is_asked_to(kettles: Path) -> None:
    llm = ScriptedLLM()
    async with open_memory(home=kettles, embedder=HashEmbedder(), llm=llm, distil=False) as memory:
        results = await memory.conversation_search("kettle")
    assert (results.note, llm.asked) == (None, [])


async def test_ranking_without_a_model_is_refused_at_the_start(home: Path) -> None:
    with pytest.raises(InvalidInput, match="Set MCP_MEMORY_LLM, or switch rerank off"):
        async with open_memory(home=home, rerank=True):
            pass
