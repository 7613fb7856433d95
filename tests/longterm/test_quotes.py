"""Quotes: whatever a model does to the spelling of words it copied, they are found, and only what is there is found."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.longterm.quotes import locate

TURN = "I said: “We moved to **Porto** last May” – all of us… really.\nMy son's name is yes-Hugo.  yes, soon"
ZH = "我在《何以笙箫默》里，读到：你好！ Porto 很美。"


def found(quote: str, content: str) -> str | None:
    span = locate(quote, content)
    return None if span is None else content[slice(*span)]


@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("We moved to **Porto**", "We moved to **Porto**"),
        ("we moved to Porto last May", "We moved to **Porto** last May"),
        ('"We moved to Porto last May" - all of us... really', "We moved to **Porto** last May” – all of us… really"),
        ("My son’s name is", "My son's name is"),
        ("my sons name is", "My son's name is"),
        ("all of us… really. My son's", "all of us… really.\nMy son's"),
        ("... moved  to Ｐｏｒｔｏ", "moved to **Porto"),
        ("last May.", "last May"),
        ("We moved ... last May", "We moved to **Porto** last May"),
        ("We moved [...] all of us", "We moved to **Porto** last May” – all of us"),
        ("yes", "yes"),
    ],
)
def test_words_are_found_as_models_copy_them(quote: str, words: str) -> None:
    assert found(quote, TURN) == words


@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("我在何以笙箫默里,读到:你好!", "我在《何以笙箫默》里，读到：你好！"),
        ("我 在《何以笙箫默》 里", "我在《何以笙箫默》里"),
        ("你好!Porto很美.", "你好！ Porto 很美。"),
    ],
)
def test_width_and_spaces_do_not_matter_where_scripts_have_none(quote: str, words: str) -> None:
    assert found(quote, ZH) == words


@pytest.mark.parametrize(
    "quote",
    [
        "",
        "  ",
        "…",
        "We moved to Lisbon",
        "last June",
        "May last",
        "We moved to Porto in May",
        "soon ... We moved",
        "'",
    ],
)
def test_what_is_not_there_is_not_found(quote: str) -> None:
    assert found(quote, "We moved to Porto last May, soon.") is None


def test_a_whole_word_comes_before_a_part_of_one() -> None:
    assert locate("yes", "yesterday, yes") == (11, 14)
    assert locate("YES", "yesterday, yes") == (11, 14)
    assert locate("yes", "yesterday") == (0, 3)


def test_no_letter_is_cut_from_its_marks() -> None:
    decomposed = unicodedata.normalize("NFD", "Zoé came")
    assert found("Zoé", decomposed) == decomposed[:4]
    assert found("ZOE", decomposed) is None
    assert found("가", "각") is None


def test_an_omission_does_not_join_what_is_far_apart() -> None:
    assert found("We moved ... to Porto", "We moved. " + "And so on. " * 200 + "Then to Porto") is None


def test_words_are_found_at_both_ends_of_a_very_long_text() -> None:
    text = "Here we BEGAN. " + "filler words " * 40_000 + "there we ENDED."
    assert found("here we began", text) == "Here we BEGAN"
    assert found("There we ended", text) == "there we ENDED"


# --- laws -------------------------------------------------------------------------------------------

LETTERS = "abcXYZ 012éßñжЖ你好ガか각\n\t\"'“”‘’«»「」–—-…,.!*_`()"
TEXTS = st.text(LETTERS, max_size=60)
PIECES = st.tuples(TEXTS, st.integers(0, 60), st.integers(1, 40))
MARKS = "\"'“”‘’«»「」"
DASHES = "-–—"


def letters(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text).casefold() if c.isalnum())


def widened(character: str) -> str:
    return chr(ord(character) + 0xFEE0) if "!" <= character <= "~" else character


def changed(text: str, draw: st.DrawFn) -> str:
    """Return the text with its white space, quotation marks, dashes, width and case changed, and nothing else."""
    out: list[str] = []
    for character in text:
        if character.isspace():
            out.append(draw(st.sampled_from([" ", "  ", "\n", "\u3000", "\u00a0\t"])))
        elif character in MARKS:
            out.append(draw(st.sampled_from(list(MARKS))))
        elif character in DASHES:
            out.append(draw(st.sampled_from(list(DASHES))))
        else:
            other = st.sampled_from([character, widened(character), character.swapcase()])
            out.append(draw(other) if character != "ß" else character)
    return "".join(out)


@given(PIECES)
def test_any_part_of_a_text_is_found_as_it_is(piece: tuple[str, int, int]) -> None:
    content, start, length = piece
    part = content[start : start + length]
    assert found(part, content) == (part if part.strip() else None)


@given(PIECES, st.data())
def test_any_part_is_found_however_it_is_spelled(piece: tuple[str, int, int], data: st.DataObject) -> None:
    content, start, length = piece
    part = content[start : start + length]
    quote = changed(part, lambda strategy: data.draw(strategy))
    if letters(part):
        words = found(quote, content)
        assert words is not None
        assert letters(words) == letters(part)


@given(st.text(max_size=40), st.text(max_size=80))
def test_whatever_is_found_is_in_the_text(quote: str, content: str) -> None:
    span = locate(quote, content)
    assert span is None or 0 <= span[0] < span[1] <= len(content)


@given(TEXTS, TEXTS)
def test_what_is_found_has_the_letters_of_the_quote(quote: str, content: str) -> None:
    words = found(quote, content)
    assert words is None or "…" in quote or letters(words) == letters(quote)
