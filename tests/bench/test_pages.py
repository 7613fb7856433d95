"""What `bench.pages` counts as found, replaced and unwanted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.pages import Gold, found, gives, macro_f1, read_gold, states


@pytest.mark.parametrize("stem", ["dev", "held"])
def test_lists_are_read_by_the_ends_of_their_names(tmp_path: Path, stem: str) -> None:
    for name in (stem, f"{stem}_not", f"{stem}_sentences"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"memory": "ana", "of": name}) + "\n", encoding="utf-8")
    assert read_gold([tmp_path]) == {
        "ana": Gold(
            items=[{"memory": "ana", "of": stem}],
            unwanted=[{"memory": "ana", "of": f"{stem}_not"}],
            labels=[{"memory": "ana", "of": f"{stem}_sentences"}],
        )
    }


def test_an_item_is_stated_within_three_consecutive_lines() -> None:
    lines = ["- Noa is here", "- on Thursdays", "- my sister", "- takes photos"]
    assert states(lines, ["noa", "sister"])
    assert not states(lines, ["noa", "photos"])
    assert states(["noa, my sister"], ["noa", "sister"])


def test_an_old_value_is_given_only_by_a_line_without_the_new_one() -> None:
    assert gives(["- costs 24"], [r"\b24\b"], [r"\b28\b"])
    assert not gives(["- costs 28; until May: costs 24"], [r"\b24\b"], [r"\b28\b"])


def test_items_are_counted_by_weight() -> None:
    gold = Gold(items=[{"must": ["noa"], "weight": 3}, {"must": ["bob"], "weight": 3}, {"must": ["noa"], "weight": 1}])
    assert found(["- Noa"], gold) == {3: (1, 2), 2: (0, 0), 1: (1, 1)}


def test_macro_f1_leaves_none_out_of_the_mean() -> None:
    assert macro_f1([("rule", "rule"), ("plan", "plan"), ("none", "none")]) == 1.0
    assert macro_f1([("rule", "rule"), ("none", "rule"), ("plan", "none")]) == pytest.approx((2 / 3 + 0) / 2)
    assert macro_f1([]) == 0.0
