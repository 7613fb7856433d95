"""The invented conversation is the same on every run, and mixed as its docstring says."""

from __future__ import annotations

from itertools import chain

from bench.corpus import BATCH, KINDS, batches, log, queries, session_of


def test_the_same_seed_makes_the_same_conversation() -> None:
    assert list(batches(120, seed=5)) == list(batches(120, seed=5))
    assert list(batches(120, seed=5)) != list(batches(120, seed=6))


def test_a_short_conversation_is_the_beginning_of_a_longer_one() -> None:
    short, longer = (list(chain(*batches(count))) for count in (70, 200))
    assert (len(short), len(longer)) == (70, 200)
    assert longer[:70] == short


def test_four_batches_make_a_session() -> None:
    assert [session_of(number)[-1] for number in range(9)] == ["0"] * 4 + ["1"] * 4 + ["2"]


def test_turns_have_ten_to_three_hundred_words_and_several_scripts() -> None:
    turns = list(chain(*batches(20 * BATCH)))
    lengths = [len(turn.content.split()) for turn in turns if turn.content.isascii()]
    assert (min(lengths) >= 10, max(lengths) <= 300, max(lengths) > 200) == (True, True, True)
    foreign = [turn for turn in turns if not turn.content.isascii()]
    assert 0.01 < len(foreign) / len(turns) < 0.1
    said = [turn.said_at for turn in turns if turn.said_at]
    assert said == sorted(said)
    assert len(said) == len(turns)


def test_queries_are_the_same_on_every_run_and_of_all_kinds() -> None:
    asked = queries(12, turns=100)
    assert asked == queries(12, turns=100)
    assert [query.kind for query in asked] == [*KINDS] * 3
    assert all(query.text.strip() for query in asked)


def test_a_rare_query_asks_for_words_that_were_said() -> None:
    said = " ".join(turn.content for turn in chain(*batches(100)))
    rare = [query.text for query in queries(40, turns=100) if query.kind == "rare"]
    assert all(word in said for text in rare for word in text.split())


def test_a_log_has_exactly_the_size_asked_for() -> None:
    text = log(50_000, seed=3)
    assert (len(text.encode()), text) == (50_000, log(50_000, seed=3))
    assert "Traceback (most recent call last):" in text
