"""What reading a history would cost, before anybody is asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.core.config import Settings, load_settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.importers.history import ImportOptions, preview_file, source_of
from mcp_memory.integrations.importers.report import FileReport, HistorySize, estimate_cost
from mcp_memory.models.llm import price
from mcp_memory.store.values import Imported
from tests.integrations.importers.conftest import jsonl, turn

File = Callable[..., Path]
AT = datetime(2026, 5, 7, tzinfo=UTC)


def settings(**options: Any) -> Settings:
    return load_settings({}, home="unused", **{"llm": "test/model", **options})


def size_of(turns: int, *, sessions: int = 1, words: int = 20, batch_turns: int = 10) -> HistorySize:
    size = HistorySize(batch_turns)
    for number in range(turns):
        content = f"The boat to island {number} leaves at nine. " + "Bring the blue bag. " * (words // 4)
        size.add(f"s{number % sessions}", NewTurn(role="user", content=content, said_at=AT))
    return size


def a_thousandth(model: str, prompt_tokens: int, completion_tokens: int) -> float:
    return (prompt_tokens + 5 * completion_tokens) / 1000


def preview(path: Path, *, files: list[Imported] | None = None, **options: Any) -> FileReport:
    return preview_file(
        source_of(path),
        ImportOptions(),
        settings(**options),
        price=a_thousandth,
        files=files or [],
        progress=lambda *_: None,
    )


def test_it_grows_with_turns_and_with_their_length() -> None:
    def tokens(**size: int) -> int:
        estimate = estimate_cost(size_of(**size), settings(), a_thousandth)  # type: ignore[arg-type]
        assert estimate is not None
        return estimate.prompt_tokens

    base = tokens(turns=200)
    assert tokens(turns=400) > 1.8 * base
    assert tokens(turns=200, words=200) > base + 150 * 200


def test_turns_are_asked_about_batch_by_batch_and_long_ones_in_smaller_batches() -> None:
    assert size_of(100).questions == 10
    assert size_of(100, sessions=4).questions == 10
    assert size_of(100, sessions=4, batch_turns=25).questions == 4
    assert size_of(100, words=5_000).questions == 100 // 4  # 24,000 characters, 6,000 a turn


def test_turns_that_are_shown_before_the_next_batch_are_counted_again() -> None:
    size = size_of(100)
    assert size.tokens(0) < size.tokens(2) < size.tokens(5)
    assert size_of(10, sessions=10).tokens(5) == size_of(10, sessions=10).tokens(0)


def test_the_tokens_of_a_long_history_are_estimated_from_a_share_of_it() -> None:
    short, long = size_of(1_000), size_of(8_000)
    assert abs(long.tokens(5) / (8 * short.tokens(5)) - 1) < 0.05


def test_it_is_priced_stage_by_stage_and_says_how_long_the_caps_make_it_take() -> None:
    models: list[str] = []

    def priced(model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
        models.append(model)
        return 0.25

    estimate = estimate_cost(size_of(100), settings(llm_scenes="test/better", llm_daily_tokens=10_000), priced)
    assert estimate is not None
    assert (models, estimate.price) == (["test/model", "test/model", "test/better", "test/model"], 1.0)
    total = estimate.prompt_tokens + estimate.completion_tokens
    assert estimate.days == -(-total // 10_000)
    by_hour = estimate_cost(size_of(100), settings(llm_hourly_tokens=100), priced)
    assert by_hour is not None
    assert by_hour.days == -(-total // 2_400)


def test_missing_fields_are_not_invented() -> None:
    estimate = estimate_cost(size_of(10), settings(llm_daily_tokens=0), lambda *_: None)
    assert estimate is not None
    assert (estimate.price, estimate.days) == (None, None)
    assert estimate_cost(size_of(10), settings(llm="none"), a_thousandth) is None


def test_noise_and_tool_results_are_not_counted_in_the_cost() -> None:
    size = HistorySize(10)
    for role, content in (("user", "Hello!"), ("user", "I moved to Porto."), ("tool", "exit 0"), ("system", "Be kind")):
        size.add("s", NewTurn(role=role, content=content, said_at=AT))  # type: ignore[arg-type]
    assert (size.noise, size.signal) == (3, 1)


def test_a_dry_run_says_what_would_be_stored(file: File) -> None:
    path = file(
        jsonl([turn("I moved to Porto.", said_at=AT.isoformat()), turn("Hello!", session="b", said_at=AT.isoformat())])
    )
    report = preview(path, llm="none")
    assert report == FileReport(file=str(path), state="seen", turns=2, sessions=2, first=AT, last=AT, noise=1)


def test_a_dry_run_refuses_what_an_import_would_and_knows_what_it_knows(file: File) -> None:
    assert preview(file(b'{"role": "user"}\n{"role": "user", "content": "a"}\n')).state == "refused"
    with pytest.raises(InvalidInput, match="looks like text without JSON"):
        preview(file(b"nonsense\n"))
    path = file(jsonl([turn("a")]))
    imported = Imported(path=str(path), sha256="", modified=1_700_000_000_000, turns=1, at=AT)
    assert preview(path, files=[imported]).state == "known"
    assert preview(path, files=[Imported(path="", sha256="", modified=0, turns=1, at=AT)]).state == "seen"


@pytest.mark.slow
def test_litellm_knows_the_price_of_common_models_and_of_no_other() -> None:
    dollars = price("gpt-4o-mini", 1_000_000, 100_000)
    assert dollars is not None
    assert 0.01 < dollars < 10
    assert price("nobody/knows-this", 1000, 10) is None
    assert price("openrouter/nobody/knows-this", 1000, 10) is None
