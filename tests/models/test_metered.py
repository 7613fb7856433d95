"""Questions to a model: typed replies, repeats, what goes back, and every call on the bill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, ModelFailed, Refused
from mcp_memory.core.types import NewTurn, Spend, Spent
from mcp_memory.models.llm import ChatMessage, Completion, ModelPrompt
from mcp_memory.models.metered import MeteredModel, ModelQuestion
from mcp_memory.service.memory import open_memory
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import home_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.usage_ledger import StoreLedger
from mcp_memory.testing import FixedClock, ScriptedLLM

EVER = datetime.fromtimestamp(0, UTC)
BUSY = ModelFailed("The model is busy.", passes=True)


class Colour(BaseModel):
    colour: str


ASK = ModelQuestion(purpose="test", messages=[ChatMessage(role="user", text="Which colour?")], reply=Colour)
BLUE = Completion(text='{"colour": "blue"}', prompt_tokens=100, completion_tokens=7, cached_tokens=60, cost=0.5)


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    opened = open_store(home)
    yield opened
    opened.close()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def paused() -> list[float]:
    return []


Metered = Callable[..., tuple[MeteredModel, ScriptedLLM]]


@pytest.fixture
def metered(store: Store, clock: FixedClock, paused: list[float]) -> Metered:
    """Make a model that follows a script."""

    def make(*script: Any, **settings: Any) -> tuple[MeteredModel, ScriptedLLM]:
        llm = ScriptedLLM(*script)
        return MeteredModel(llm, StoreLedger(store), Settings(**settings), now=clock, pause=paused.append), llm

    return make


def bill(store: Store) -> tuple[int, int, int, int, float | None]:
    (one,) = store.read_home(home_rows.spent, since=EVER)
    return one.calls, one.failed, one.prompt_tokens, one.completion_tokens, one.cost


def test_a_reply_comes_in_its_shape_and_on_the_bill(metered: Metered, store: Store, clock: FixedClock) -> None:
    model, _ = metered(BLUE)
    assert model.complete(ASK) == Colour(colour="blue")
    call = Spent(
        purpose="test", model="scripted/1", calls=1, failed=0,
        prompt_tokens=100, completion_tokens=7, cached_tokens=60, cost=0.5,
    )  # fmt: skip
    assert store.read_home(home_rows.spent, since=clock()) == [call]


def test_a_failure_that_may_pass_is_tried_again_after_growing_pauses_or_the_one_asked_for(
    metered: Metered, store: Store, paused: list[float]
) -> None:
    model, llm = metered(BUSY, ModelFailed("Slow down.", passes=True, wait_s=7), BLUE)
    assert model.complete(ASK) == Colour(colour="blue")
    assert (paused, len(llm.asked)) == ([1, 7], 3)
    assert bill(store) == (3, 2, 100, 7, 0.5)


def test_a_failure_that_stays_is_raised_after_so_many_repeats(metered: Metered, paused: list[float]) -> None:
    model, llm = metered(*[BUSY] * 9)
    with pytest.raises(ModelFailed, match="is busy"):
        model.complete(ASK)
    assert (paused, len(llm.asked)) == ([1, 2], 3)


@pytest.mark.parametrize(
    "failure",
    [ModelFailed("The key was refused."), ModelFailed("Slow down.", passes=True, wait_s=3600)],
)
def test_what_cannot_pass_in_the_questions_time_is_not_tried_again(
    metered: Metered, paused: list[float], failure: ModelFailed
) -> None:
    model, llm = metered(failure, BLUE)
    with pytest.raises(ModelFailed):
        model.complete(ASK)
    assert (paused, len(llm.asked)) == ([], 1)


def test_a_reply_that_does_not_fit_goes_back_once_with_the_reason(metered: Metered, store: Store) -> None:
    model, llm = metered('{"color": "blue"}', BLUE)
    assert model.complete(ASK) == Colour(colour="blue")
    assert [(one.role, one.text) for one in llm.asked[1].messages] == [
        ("user", "Which colour?"),
        ("assistant", '{"color": "blue"}'),
        (
            "user",
            "That cannot be used. The reply does not have the shape that was asked for (colour: Field required). "
            "Answer the question again, with the JSON alone.",
        ),
    ]
    assert bill(store)[:2] == (2, 1)


def test_a_reply_that_never_fits_is_refused_and_paid_for(metered: Metered, store: Store) -> None:
    cut = Completion(text='{"colour": "bl', prompt_tokens=100, completion_tokens=9, cost=0.25, cut=True)
    model, _ = metered("", cut)
    with pytest.raises(ModelFailed, match=r"gave no usable answer\. The reply broke off after 4,000 tokens"):
        model.complete(ASK)
    calls, failed, _, written, cost = bill(store)
    assert (calls, failed, written >= 9, cost) == (2, 2, True, 0.25)


def test_an_answer_that_never_came_counts_its_prompt_since_it_may_be_billed(metered: Metered, store: Store) -> None:
    model, _ = metered(ModelFailed("No answer.", billed=True), ModelFailed("No key."))
    for _ in range(2):
        with pytest.raises(ModelFailed):
            model.complete(ASK)
    assert 0 < bill(store)[2] < 20


def test_past_the_days_cap_no_process_asks_until_the_next_day(
    metered: Metered, store: Store, clock: FixedClock
) -> None:
    model, llm = metered(BLUE, BLUE, llm_daily_tokens=1_000)
    store.write_home(
        home_rows.add_spend,
        Spend(at=clock(), purpose="other", model="elsewhere", prompt_tokens=900, completion_tokens=95, cost=None),
    )
    with pytest.raises(Refused) as refused:
        model.complete(ASK)
    assert str(refused.value).startswith("The day's 1,000 tokens for the model are used up (995 so far, about ")
    assert llm.asked == []
    clock.moment = clock().replace(hour=0) + timedelta(days=1)
    assert model.complete(ASK) == Colour(colour="blue")


async def test_status_shows_the_model_its_cap_and_what_it_cost(home: Path, clock: FixedClock) -> None:
    def best(prompt: ModelPrompt) -> Completion:
        return Completion(text="[1]", prompt_tokens=300, completion_tokens=4, cost=None)

    async with open_memory(
        home=home, now=clock, embedder="none", llm=ScriptedLLM(best), rerank=True, distil=False
    ) as memory:
        await memory.record_turns(
            [NewTurn(role="user", content=text) for text in ("a kettle", "the kettle")], session="s"
        )
        await memory.conversation_search("kettle")
        status = (await memory.status())["model"]
    call = {
        "purpose": "rerank", "model": "scripted/1", "calls": 1, "failed": 0,
        "prompt_tokens": 300, "completion_tokens": 4, "cached_tokens": 0, "cost": None,
    }  # fmt: skip
    assert status == {
        "name": "scripted/1",
        "rerank": True,
        "tokens_today": 304,
        "daily_tokens": 300_000,
        "tokens_this_hour": 304,
        "hourly_tokens": 100_000,
        "today": [call],
        "ever": [call],
    }


def test_a_reply_that_cannot_be_used_goes_back_once_with_the_reason(metered: Metered) -> None:
    def only_red(colour: Colour) -> str:
        if colour.colour != "red":
            raise InvalidInput("Only red will do.")
        return "used red"

    model, llm = metered(BLUE, '{"colour": "red"}')
    assert model.complete(ASK, use=only_red) == "used red"
    assert "Only red will do." in llm.asked[1].messages[-1].text

    model, llm = metered(BLUE, BLUE, BLUE)
    with pytest.raises(ModelFailed, match=r"Only red will do\."):
        model.complete(ASK, use=only_red)
    assert len(llm.asked) == 2


def test_past_the_hours_cap_no_call_is_made_until_the_next_hour(metered: Metered, clock: FixedClock) -> None:
    model, llm = metered(BLUE, BLUE, llm_hourly_tokens=107)
    model.complete(ASK)
    with pytest.raises(Refused, match=r"The hour's 107 tokens .*13:00 UTC; raise MCP_MEMORY_LLM_HOURLY_TOKENS"):
        model.complete(ASK)
    clock.advance(hours=1)
    model.complete(ASK)
    assert len(llm.asked) == 2


def test_during_a_pause_no_process_on_the_home_asks(metered: Metered, clock: FixedClock, home: Path) -> None:
    model, llm = metered(BLUE)
    elsewhere = open_store(home)
    elsewhere.write_home(home_rows.pause, "the bill is high enough", now=clock())
    with pytest.raises(Refused, match=r"the bill is high enough.*mcp-memory resume"):
        model.complete(ASK)
    assert llm.asked == []
    elsewhere.write_home(home_rows.resume)
    elsewhere.close()
    assert model.complete(ASK) == Colour(colour="blue")


def test_a_purpose_may_have_a_model_of_its_own_and_is_billed_under_its_name(
    store: Store, clock: FixedClock, paused: list[float]
) -> None:
    usual, own = ScriptedLLM(BLUE), ScriptedLLM('{"colour": "green"}', name="own/1")
    model = MeteredModel(usual, StoreLedger(store), Settings(), now=clock, pause=paused.append, others={"persona": own})
    assert model.complete(replace(ASK, purpose="persona")) == Colour(colour="green")
    assert model.complete(ASK) == Colour(colour="blue")
    assert [(one.purpose, one.model) for one in store.read_home(home_rows.spent, since=EVER)] == [
        ("persona", "own/1"),
        ("test", "scripted/1"),
    ]
