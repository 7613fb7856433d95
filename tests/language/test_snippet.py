"""Snippets: the part of a long text that speaks of what is asked, in any language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.language.snippet import matches, snippet, words
from mcp_memory.language.words import base_terms, query_terms


def around(text: str, query: str, width: int) -> str:
    return snippet(text, width, matches(text, frozenset(query_terms(query))))[0]


@pytest.mark.parametrize(
    ("filler", "told", "query"),
    [
        ("lorem ipsum ", "the password rota is on Tuesdays ", "When is the password rota?"),
        ("今天天气很好。", "李伟的妈妈下周五要去看牙医。", "牙医"),
        ("Мы гуляли в парке. ", "Ключи лежат под ковриком. ", "ключ под коврик"),
        ("noise noise ", "see FOO_BAR.py, maxConnections=40 ", "foo_bar.py maxConnections"),
        ("blah blah ", "we met at the CAFÉ in Ｐｏｒｔｏ ", "cafe porto"),
    ],
)
def test_the_part_that_matches_is_shown_wherever_it_stands(filler: str, told: str, query: str) -> None:
    for before, after in ((0, 300), (150, 150), (300, 0)):
        text = filler * before + told + filler * after
        assert told.strip(" 。") in around(text, query, 80)


SENTENCES = [
    ("The rent of the flat is 940 euros since May.", "how high is the rent?"),
    ("Die Miete beträgt z.B. im Mai 940 Euro!", "Miete"),
    ("El alquiler del piso sube a 940 euros.", "alquiler"),
    ("Le loyer est de 940 euros depuis mai ?", "loyer"),
    ("Плата за квартиру теперь 940 евро.", "квартира"),
    ("房租从五月起是九百四十元。", "房租"),
    ("家賃は五月から九万円です。", "家賃"),
    ("집세는 오월부터 구십만 원이에요.", "집세"),
    ("किराया मई से 940 यूरो है.", "किराया"),
    ("الإيجار منذ مايو 940 يورو.", "الإيجار"),
]


@pytest.mark.parametrize(("told", "query"), SENTENCES)
@pytest.mark.parametrize("width", [60, 100, 240])
def test_an_excerpt_has_whole_sentences_around_the_match(told: str, query: str, width: int) -> None:
    others = [
        "We walked to the lake. ",
        "今天天气很好。 ",
        "Otto lives downstairs, he says! ",
        "А потом мы пили чай.\n",
    ]
    for before in range(6):
        said = [*(others * 2)[:before], f"{told} ", *others * 4]
        text = "".join(said)
        shown = around(text, query, width).strip("…")
        assert told in shown
        in_front, _, behind = text.partition(shown)
        assert in_front.strip() in {"".join(said[:count]).strip() for count in range(len(said))}
        assert behind.strip() in {"".join(said[count:]).strip() for count in range(len(said) + 1)}


def test_a_sentence_that_is_longer_than_an_excerpt_is_cut_around_the_match() -> None:
    assert "the rent is 940" in around(f"It rains. {'so ' * 60}the rent is 940 {'and ' * 60}.", "rent", 60)


def test_where_most_words_stand_together_wins_over_where_one_stands_often() -> None:
    text = "kettle " * 50 + "x " * 200 + "the blue kettle leaks at night " + "y " * 200
    assert "blue kettle leaks" in around(text, "blue kettle leaking", 60)


def test_without_a_match_the_beginning_is_shown() -> None:
    assert around("one two three four five six", "seven", 12) == "one two…"


@given(st.text(max_size=400), st.text(max_size=40), st.integers(8, 100))
def test_a_snippet_is_a_piece_of_the_text_of_that_width_at_most(text: str, query: str, width: int) -> None:
    shown, hidden = snippet(text, width, matches(text, frozenset(query_terms(query))))
    assert len(text) - hidden <= width
    assert shown.strip("…") in text


@given(st.text(max_size=200), st.text(max_size=40))
def test_a_match_is_a_place_in_the_text_of_a_term_that_is_wanted(text: str, query: str) -> None:
    wanted = frozenset(query_terms(query))
    for match in matches(text, wanted):
        assert 0 <= match.start < match.end <= len(text)
        assert match.term in wanted


@given(st.lists(st.sampled_from(["kettle", "leaks", "牙医", "ключи", "maisons", "foo_bar.py"]), min_size=1))
def test_every_word_of_a_text_is_found_in_it(said: list[str]) -> None:
    found = matches(" ".join(said), frozenset(query_terms(" ".join(set(said)))))
    assert len({match.start for match in found}) >= len(said)


@given(st.text("abcdeghiklmnorstuwy", min_size=1, max_size=14), st.booleans())
def test_a_word_is_found_by_itself_however_it_is_stemmed(word: str, capital: bool) -> None:
    shown = word.capitalize() if capital else word
    assert matches(f"x {shown} x", frozenset(base_terms(word)))


@pytest.mark.parametrize("word", ["dying", "skies", "Idly", "possibility", "hopping"])
def test_irregular_words_are_found(word: str) -> None:
    assert around(f"{'one ' * 40}{word}{' two' * 40}", word, 20).find(word) >= 0


def test_the_words_that_match_are_told_as_they_stand_there() -> None:
    wanted = frozenset(query_terms("leaking kettles, 牙医"))
    assert words("Kettle (leaks), kettle. 看牙医去", wanted) == ["kettle", "leaks", "牙医"]
