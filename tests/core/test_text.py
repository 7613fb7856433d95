"""Names and one-line cleaning."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import (
    decode_text,
    detect_encoding,
    format_bytes,
    has_hidden_text,
    is_blank,
    name_hidden,
    one_line,
    plural,
    safe_name,
    split_hidden,
    well_formed,
    without_blocks,
)


@pytest.mark.parametrize(
    "name",
    ["", " a", "a ", "../../x", "/abs", "C:\\x", "a/b", "a\\b", "CON", "nul.txt", "com1", ".hidden", "dot.", "a\x00b",
     "a\nb", "x" * 121, "ü" * 61, "\ud800", "..", "a|b", "what?"],
)  # fmt: skip
def test_a_name_that_could_leave_its_folder_is_refused_with_what_is_allowed(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"The session .* Use letters"):
        safe_name(name, what="session")


@pytest.mark.parametrize("name", ["default", "2026-11-20-a1b2", "Käse & Brot", "会话", "user@host+x", "a.b.c", "con-x"])
def test_an_honest_name_is_kept_as_it_is(name: str) -> None:
    assert safe_name(name, what="space") == name


@given(st.text(), st.integers(1, 50))
def test_one_line_is_one_printable_line_within_its_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line.isprintable()


def test_a_lone_surrogate_is_not_well_formed() -> None:
    assert not well_formed("a\ud800")
    assert well_formed("a😀")


def test_what_is_said_beside_blocks_is_kept_and_openings_that_nothing_closes_too() -> None:
    def own(text: str) -> str:
        return without_blocks(text, re.compile(r"<(a|b)>"), lambda found: f"</{found[1]}>", after=r"\s*")

    assert own("one <a>x</b></a> two<b>y</b>") == "one two"
    assert own("<a>one <b>x</b>two</b>") == "<a>one two</b>"
    assert own("<a>" * 200_000 + "<b>x</b>") == "<a>" * 200_000


@pytest.mark.parametrize(
    "text", ["", " \t\n", "\u200b\u200d\ufeff", "\u2060\u00ad\u202e", "\u2800\u3164\ufe0f\U000e0041", "\0"]
)
def test_a_text_that_nobody_can_see_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", [".", "👍\ufe0f", "\u200b字", "\u0301", "\ue000", "👨\u200d👩\u200d👧"])
def test_a_text_of_which_anything_can_be_seen_is_not_blank(text: str) -> None:
    assert not is_blank(text)


@given(st.binary(max_size=60) | st.text().map(lambda text: text.encode("utf-16")) | st.text().map(str.encode))
def test_what_is_read_as_text_is_written_back_the_same(data: bytes) -> None:
    if encoding := detect_encoding(data):
        assert data.decode(*encoding).encode(*encoding) == data
    text = decode_text(data)
    assert (text is None) == (encoding is None)
    assert text is None or well_formed(text) or encoding == ("utf-8", "surrogatepass")


def test_a_few_wrong_bytes_are_shown_as_such_and_many_are_no_text() -> None:
    latin = "Grüße\nTür\nmore words of the log\n".encode("latin-1")
    assert decode_text(latin) == "Gr\ufffd\ufffde\nT\ufffdr\nmore words of the log\n"
    assert decode_text("Привет".encode("koi8-r")) is None
    assert decode_text(b"ab\xff" + bytes(range(9)) * 9) is None


def test_counts_read_well() -> None:
    assert [format_bytes(n) for n in (0, 999, 1000, 199_866, 999_960, 5_000_000_000)] == [
        "0 B", "999 B", "1.0 kB", "199.9 kB", "1.0 MB", "5.0 GB",
    ]  # fmt: skip
    assert [plural(1, "turn"), plural(1_234, "canvas")] == ["1 turn", "1,234 canvases"]
    assert [plural(n, "line of it waits", "lines of it wait") for n in (0, 1)] == [
        "0 lines of it wait",
        "1 line of it waits",
    ]


def test_hidden_characters_are_split_off_and_named() -> None:
    spelled = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    text = f"4\u200b\u200b\u200b\u200b\u200b\u200b0 eu\u200bros{spelled}, e\u202elt\x1b[8m"
    pieces = split_hidden(text)
    assert "".join(piece for piece, _ in pieces) == text
    assert [name_hidden(piece) for piece, is_hidden in pieces if is_hidden] == [
        *("U+200B × 6", "U+200B", "hidden letters: obey", "U+202E"),
        "U+001B U+005B U+0038 U+006D",
    ]


@given(st.text(st.sampled_from("ab \u200b\u200d\u202e\ufe0f\U000e0041\U0001f3f4\U000e0067\U000e007f\u0627\x1b[8m")))
def test_what_is_left_without_the_hidden_pieces_hides_nothing(text: str) -> None:
    pieces = split_hidden(text)
    assert "".join(piece for piece, _ in pieces) == text
    shown = [piece for piece, is_hidden in pieces if not is_hidden]
    assert not any(has_hidden_text(piece) for piece in shown)
