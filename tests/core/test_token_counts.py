"""Counts are exact without a network, cuts stay within their budget, and the estimate does not fall short."""

from __future__ import annotations

import os
import string
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core import token_counts
from mcp_memory.core.token_counts import (
    ENCODINGS,
    LONGEST_TOKEN,
    NEAR,
    UNBROKEN,
    EncodingName,
    TokenCounter,
    estimate_tokens,
    pieces,
    token_counter,
)

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures" / "tokens").iterdir())
NAMES: list[EncodingName] = ["o200k_base", "cl100k_base"]
COUNTERS = [token_counter(name) for name in NAMES]

assigned = st.characters(exclude_categories=("Cn", "Cs"))
any_text = st.text(max_size=300) | st.text(st.characters(codec=None), max_size=50)
prose = st.text(st.sampled_from("aeT19 .,'\n\t/_-!é字，💡") | assigned, max_size=120)


def read(path: Path) -> str:
    return path.read_bytes().decode()


@pytest.fixture(scope="module")
def reference() -> Any:
    """tiktoken with its own loader, its own pattern and the vocabulary that litellm ships."""
    litellm = find_spec("litellm")
    assert litellm is not None
    assert litellm.origin is not None
    with pytest.MonkeyPatch.context() as patch:
        folder = Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers"
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        import tiktoken

        yield {name: tiktoken.get_encoding(name) for name in NAMES}


def with_no_vocabulary(patch: pytest.MonkeyPatch, folder: Path) -> TokenCounter:
    patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    patch.setattr(token_counts, "find_spec", lambda name: None)
    return TokenCounter("o200k_base")


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_counts_are_those_of_tiktoken(path: Path, reference: Any) -> None:
    text = read(path)
    counted = {name: token_counter(name).count(text) for name in NAMES}
    assert counted == {name: len(reference[name].encode(text, disallowed_special=())) for name in NAMES}


@given(text=prose)
def test_a_text_divided_everywhere_it_may_be_has_the_same_count(reference: Any, text: str) -> None:
    parts = list(pieces(text, size=1))
    assert "".join(parts) == text
    for encoding in reference.values():
        assert sum(len(encoding.encode_ordinary(part)) for part in parts) == len(encoding.encode_ordinary(text))


@pytest.mark.parametrize("counter", COUNTERS, ids=NAMES)
def test_a_large_text_is_as_many_tokens_as_its_parts(counter: TokenCounter) -> None:
    text = "".join(read(path) + "\nend " for path in FIXTURES)
    parts = sum(counter.count(read(path) + "\nend") for path in FIXTURES)
    assert 0 <= counter.count(text * 4) - 4 * parts <= 4 * len(FIXTURES)


@pytest.mark.parametrize("counter", COUNTERS, ids=NAMES)
@pytest.mark.parametrize("run", ["a", " ", "\n", "!", "字", "ab"])
def test_an_unbroken_run_of_any_length_is_counted_in_pieces(counter: TokenCounter, run: str) -> None:
    text = run * (6 * UNBROKEN // len(run))
    whole = counter.count(text[:UNBROKEN])
    assert max(map(len, pieces(text))) <= UNBROKEN
    assert abs(counter.count(text) - 6 * whole) <= 12


@pytest.mark.parametrize("counter", COUNTERS, ids=NAMES)
def test_names_of_special_tokens_and_lone_surrogates_are_text(counter: TokenCounter) -> None:
    assert counter.count("<|endoftext|>") > 1
    assert counter.count("half \ud83d of it") == counter.count("half \ufffd of it")
    assert counter.count("\ud83d\ude00") == counter.count("😀")
    assert counter.count("") == 0


@given(any_text, st.integers(0, 200))
def test_a_text_fits_exactly_when_its_count_is_within_the_budget(text: str, budget: int) -> None:
    assert [counter.fits(text, budget) for counter in COUNTERS] == [
        counter.count(text) <= budget for counter in COUNTERS
    ]


@given(any_text | prose, st.integers(-1, 60))
def test_a_cut_is_a_beginning_of_the_text_within_the_budget(text: str, budget: int) -> None:
    for counter in COUNTERS:
        kept = counter.cut(text, budget)
        assert text.startswith(kept)
        assert counter.count(kept) <= max(budget, 0)
        assert kept == text or not counter.fits(text, budget)


@given(st.text(string.ascii_letters + string.digits, min_size=1, max_size=200), st.integers(0, 60))
def test_where_no_line_or_word_ends_one_more_character_would_be_too_many(text: str, budget: int) -> None:
    for counter in COUNTERS:
        kept = counter.cut(text, budget)
        assert kept == text or counter.count(text[: len(kept) + 1]) > budget


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_cut_gives_up_little_to_end_well(path: Path) -> None:
    text = read(path) * 20
    for counter in COUNTERS:
        budget = counter.count(text) // 2
        kept = counter.cut(text, budget)
        assert counter.count(kept) <= budget
        assert counter.count(text[: len(kept) + NEAR + 1]) >= budget


@pytest.mark.parametrize(
    ("text", "budget", "kept"),
    [
        ("one two three four five", 3, "one two three"),
        ("first line\nsecond line\n", 4, "first line\n"),
        ("Unbelievably long", 2, "Unbel"),
        ("字" * 10, 3, "字" * 3),
        ("anything", 0, ""),
    ],
)
def test_cuts_end_at_a_line_then_a_word_then_a_character(text: str, budget: int, kept: str) -> None:
    assert token_counter("o200k_base").cut(text, budget) == kept


def test_no_token_is_longer_than_the_bound_that_saves_loading(reference: Any) -> None:
    assert {max(map(len, encoding.token_byte_values())) for encoding in reference.values()} == {LONGEST_TOKEN}


def test_what_the_bytes_prove_needs_no_vocabulary_and_a_count_leaves_the_environment_alone() -> None:
    code = """if True:
        import os, sys
        from mcp_memory.core.token_counts import token_counter
        before = dict(os.environ)
        counter = token_counter("o200k_base")
        proved = [counter.fits("x" * 900, 900), counter.cut("short", 5), counter.fits("x" * 200_000, 1000), counter.exact]
        early = [name for name in ("tiktoken", "litellm") if name in sys.modules]
        print(proved, early, counter.count("hello"), "litellm" in sys.modules, dict(os.environ) == before)
    """
    environment = {name: value for name, value in os.environ.items() if name != "TIKTOKEN_CACHE_DIR"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("[True, 'short', False, True] [] 1 False True\n", "")


def test_a_vocabulary_that_the_user_named_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = token_counts.find_vocabulary(ENCODINGS["o200k_base"])
    assert content is not None
    (tmp_path / ENCODINGS["o200k_base"].file).write_bytes(content)
    counter = with_no_vocabulary(monkeypatch, tmp_path)
    assert (counter.exact, counter.name, counter.count("hello there")) == (True, "o200k_base", 2)


def test_a_vocabulary_with_a_wrong_hash_is_neither_used_nor_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / ENCODINGS["o200k_base"].file
    damaged.write_bytes(b"aGVsbG8= 0\n")
    counter = with_no_vocabulary(monkeypatch, tmp_path)
    assert (counter.exact, damaged.exists()) == (False, True)


def test_without_a_vocabulary_counts_are_estimates_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = with_no_vocabulary(monkeypatch, tmp_path)
    text = read(FIXTURES[0])
    assert (counter.exact, counter.name) == (False, "o200k_base, estimated")
    assert counter.count(text) == estimate_tokens(text)
    assert token_counter("o200k_base").count(counter.cut(text * 50, 300)) <= 300


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_the_estimate_is_not_under_the_count_and_not_far_over_it(path: Path) -> None:
    text = read(path)
    o200k, cl100k = (counter.count(text) for counter in COUNTERS)
    assert max(o200k, cl100k) <= estimate_tokens(text) <= min(2.2 * cl100k, 4.5 * o200k)


@given(
    st.text(max_size=300)
    | st.text(st.characters(codec=None), max_size=100)
    | st.text(st.characters(max_codepoint=127), max_size=300)
    | st.text(string.punctuation + string.digits + string.whitespace, max_size=200)
)
def test_random_characters_are_not_underestimated(text: str) -> None:
    most = max(counter.count(text) for counter in COUNTERS)
    assert most <= estimate_tokens(text) <= len(text.encode("utf-8", "surrogatepass"))
