"""Which older statements `remember` offers to replace, which it asks about, and which it leaves alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from anyio import to_thread

from bench.hints import FITTED, HELD_OUT, read_pairs
from mcp_memory.core.types import Remembered
from mcp_memory.longterm import contradiction
from mcp_memory.longterm.contradiction import PairFeatures, pair_features, pair_model
from mcp_memory.models.embed.bundled import shared_encoder
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.render import render


@pytest.fixture
async def memory(home: Path) -> AsyncIterator[Memory]:
    async with open_memory(home=home, llm="none") as opened:
        yield opened


async def _remembered(memory: Memory, older: str, newer: str) -> Remembered:
    await memory.remember(older, typed=True)
    return await memory.remember(newer, typed=True)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The dentist of the user is Dr Alder.", "The dentist of the user is now Dr Birch."),
        ("La usuaria no come pescado.", "La usuaria ahora come pescado."),
        ("El alquiler es de 700 euros al mes.", "El alquiler ha subido a 760 euros al mes."),
    ],
)
async def test_a_statement_that_is_surely_replaced_is_offered(memory: Memory, older: str, newer: str) -> None:
    done = await _remembered(memory, older, newer)
    assert (done.contradicting, done.unsure) == (["a1"], [])
    assert "Seems to replace; if so, call again with supersedes=[a1]:" in (await to_thread.run_sync(render, done))


async def test_without_the_files_of_the_encoder_statements_are_compared_by_their_words(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "missing"

    def unreadable(_: str) -> None:
        shared_encoder(missing)

    monkeypatch.setattr(contradiction, "encoder_vector", unreadable)
    async with open_memory(home=home, llm="none", embedder="none") as memory:
        done = await _remembered(memory, "The user pays 700 euros of rent.", "The user pays 760 euros of rent.")
    assert (done.atom.id, done.contradicting, done.unsure) == ("a2", [], ["a1"])


async def test_a_statement_that_may_be_replaced_is_asked_about_and_not_offered(memory: Memory) -> None:
    done = await _remembered(memory, "The user rides a red bicycle to work.", "The user rides a bicycle made of steel.")
    assert (done.contradicting, done.unsure) == ([], ["a1"])
    shown = await to_thread.run_sync(render, done)
    assert "Does it replace a1? Only if so, call again with that id in supersedes:" in shown
    assert "supersedes=[" not in shown


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The user is vegetarian.", "The user's name is Lena."),
        ("The user lives in Bristol.", "The user now plays chess on Fridays."),
        ("O usuário tem dois filhos.", "O usuário não bebe mais café."),
        ("用户有一只狗。", "用户不再吃糖了。"),
    ],
)
async def test_a_statement_about_another_matter_is_not_mentioned(memory: Memory, older: str, newer: str) -> None:
    done = await _remembered(memory, older, newer)
    assert done.similar == []
    assert "Nothing similar was known." in (await to_thread.run_sync(render, done))


def test_the_model_has_a_weight_for_each_feature_and_is_surer_than_it_is_unsure() -> None:
    model = pair_model()
    assert len(model.weights) == len(PairFeatures._fields) + 1
    assert 0 < model.unsure < model.sure < 1


def test_a_statement_without_words_can_be_compared() -> None:
    (features,) = pair_features("…", ["!"])
    assert 0 <= pair_model().probability(features) <= 1


def test_the_pairs_are_200_in_six_languages_half_of_them_replaced() -> None:
    pairs = [pair for name in (*FITTED[:3], *HELD_OUT) for pair in read_pairs(name)]
    assert len(set(pairs)) == 200
    assert sum(pair.replaces for pair in pairs) == 100
