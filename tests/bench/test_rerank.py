"""What a model's rerank is worth, on an invented set and with a model that follows a script."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bench.rerank import Asked, Compared, best, figures, report, table
from bench.sets import Question

EVIDENCE = frozenset({"a", "b"})


def compared(before: list[str], after: list[str], *, note: str | None = None) -> Compared:
    question = Question.model_validate(
        {
            "id": "q", "type": "kind", "question": "?", "asked_at": datetime(2026, 11, 20, tzinfo=UTC), "haystack": (),
            "evidence_turns": EVIDENCE, "evidence_sessions": frozenset(),
        }
    )  # fmt: skip
    return Compared(question=question, before=before, after=after, note=note, seconds=1.5)


@pytest.mark.parametrize(
    ("ranked", "expected"),
    [
        (["a", "b"], (100, 100, 100)),
        (["x", "a", "x", "x", "x", "x", "b"], (50, 100, 50)),
        (["x"] * 10 + ["a"], (0, 0, 100 / 11)),
        ([], (0, 0, 0)),
    ],
)
def test_the_figures_of_a_ranking(ranked: list[str], expected: tuple[float, float, float]) -> None:
    assert figures(EVIDENCE, ranked) == pytest.approx(expected)


def test_the_best_order_has_the_evidence_in_front() -> None:
    assert best(EVIDENCE, ["x", "b", "y", "a"]) == ["b", "a", "x", "y"]


def test_a_report_shows_before_after_and_what_it_cost() -> None:
    call = {"calls": 2, "prompt_tokens": 900, "completion_tokens": 20}
    low = ["x", "x", "a", "x", "x", "b"]
    asked = Asked(compared=[compared(low, ["a", "b"]), compared(low, low, note="no")], calls=[call])
    found = report("invented", asked)
    assert (found["questions"], found["failed"]) == (2, 1)
    assert {name: one["mean"] for name, one in found["gain"].items()} == {
        "turn R@5": 25.0, "turn R@10": 0.0, "MRR": 33.3,
    }  # fmt: skip
    assert found["ceiling"]["MRR"] == {"mean": 100.0, "ci95": [100.0, 100.0]}
    assert table(found)[0] == "invented: 2 questions, 1 not ranked by the model"
    assert table(found)[-1] == "2 calls, 900 + 20 tokens"
