"""Every answer with a budget fits it, with fences, headings and what it says was left out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.render import Answer, as_json, render

LARGE = [*range(180, 500, 40), 800, 1200, 3000]
TICKS = "`" * 60
LOG = "\n".join(f'2026-11-{1 + n % 28:02d} berth {n % 7} {TICKS} "Kestrel" {n * 37} tonnes' for n in range(200))

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


@pytest.fixture(scope="module")
async def memory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Memory]:
    home: Path = tmp_path_factory.mktemp("budgets") / "home"
    async with open_memory(home=home, embedder="none") as memory:
        for n in range(40):
            said = f'The ship Kestrel {n} lies at berth {n % 7} and "carries" {n * 37} tonnes.\nLine two, {n}.'
            await memory.record_turns([NewTurn(role="user", content=said)], session=f"s{n % 5}")
        for n in range(16):
            kind = "instruction" if n % 2 else "persona"
            await memory.remember(
                f"Always check berth {n} of the ship Kestrel before noon, rule {n}", kind=kind, typed=True
            )
        for n in range(12):
            await memory.offload_tool_result(
                "Bash", f"{LOG}{n}", task="load ships", step=f"step {n}, with a long title"
            )
        yield memory


ASKED: dict[str, Callable[[Memory, int], Awaitable[Answer]]] = {
    "recall": lambda memory, budget: memory.recall_answer("Where does Kestrel lie?", budget_tokens=budget),
    "recall of all": lambda memory, budget: memory.recall_answer(budget_tokens=budget),
    "conversation_search": lambda memory, budget: memory.conversation_excerpts(
        "Kestrel", neighbours=1, budget_tokens=budget
    ),
    "memory_search": lambda memory, budget: memory.memory_excerpts("Kestrel", budget_tokens=budget),
    "expand a canvas": lambda memory, budget: memory.expand_answer(node="001", max_tokens=budget),
    "expand a node": lambda memory, budget: memory.expand_answer(node="001-N3", max_tokens=budget),
    "expand lines": lambda memory, budget: memory.expand_answer(node="001-N3", lines="3-90", max_tokens=budget),
    "expand by a search": lambda memory, budget: memory.expand_answer(node="001-N3", grep="berth 3", max_tokens=budget),
    "fold_canvas": lambda memory, budget: memory.canvas_answer(budget_tokens=budget),
}
ALSO_AS_JSON = {"recall", "recall of all", "conversation_search", "memory_search"}


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("asked", ASKED)
async def test_no_answer_is_over_its_budget_and_one_that_is_too_small_is_told_of_a_larger_one(
    memory: Memory, asked: str, step: int
) -> None:
    count = token_counter(memory.settings.tokenizer).count
    answered = 0
    for budget in [*range(100, 180, step), *LARGE]:
        try:
            answer: Any = await ASKED[asked](memory, budget)
        except InvalidInput as refused:
            assert "budget_tokens" in str(refused) or "Ask" in str(refused)  # noqa: PT017 most are answered
            continue
        answered += 1
        assert count(render(answer)) <= budget, budget
        if asked in ALSO_AS_JSON:
            assert count(as_json(answer)) <= budget, budget
    assert answered > 5


async def test_recall_that_has_no_room_says_how_much_is_enough(memory: Memory) -> None:
    long = "The keeper of Skerryvore's lighthouse noted " + " ".join(f"{n * 7919:x}#{n}" for n in range(60))
    async with open_memory(memory.settings.model_copy(update={"space": "lighthouse"})) as other:
        await other.remember(long[:400], kind="persona", typed=True)
        with pytest.raises(InvalidInput, match=r"budget_tokens=100 is too small .* budget_tokens=\d+\.") as refused:
            await other.recall_answer("What did the lighthouse keeper note?", budget_tokens=100)
        enough = int(str(refused.value).rpartition("=")[2].rstrip("."))
        assert (await other.recall_answer("What did the lighthouse keeper note?", budget_tokens=enough)).tokens
