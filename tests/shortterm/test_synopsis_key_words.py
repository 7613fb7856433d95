"""Laws of the key words of lines: each telling word once, in its place, nothing that is known, never more than the room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.shortterm.synopsis.key_words import GAP, key_words
from mcp_memory.shortterm.synopsis.page import PageLine, terms_in

CODE = """\
# A ferry that is late tells the harbour master.
def late(ferry, minutes):
    if minutes > LIMIT_MINUTES:
        notify(harbour_master, ferry.name)
    return minutes

# The harbour master closes the gate.
def close(gate):
    gate.lock("ferry_gate")
"""


def pieces_of(text: str) -> list[PageLine]:
    return [PageLine(at, line, str(at)) for at, line in enumerate(text.split("\n"), start=1)]


def test_each_word_is_said_once_behind_the_line_where_it_stands_first() -> None:
    told = key_words(pieces_of(CODE), seen=["ferry"], breaks=[6], span=20, room=400)
    assert [(run.name, run.text) for run in told] == [
        ("1", "late tells harbour master, minutes LIMIT_MINUTES notify harbour_master ferry.name"),
        ("7", "closes gate, close gate.lock ferry_gate"),
    ]


def test_where_room_is_short_what_is_said_in_words_stays_and_long_names_go() -> None:
    told = key_words(pieces_of(CODE), seen=["ferry"], breaks=[], span=20, room=46)
    assert [run.text for run in told] == ["late tells harbour master, closes gate"]


def test_what_a_clause_says_stays_together_and_values_side_by_side_need_no_comma() -> None:
    prose = [
        PageLine(1, "The board of the ferry company meets on Monday, and Anna Lindqvist brings the timetable.", "1")
    ]
    told = key_words(prose, seen=["ferry"], breaks=[], span=1, room=200)
    assert [run.text for run in told] == ["board company meets Monday, Anna Lindqvist brings timetable"]
    row = [PageLine(0, "UM3OG5 gift_card_649 Oslo", "[0]")]
    assert key_words(row, seen=[], breaks=[], span=1, room=90, listed=False)[0].text == "UM3OG5 gift_card_649 Oslo"


def test_of_names_that_differ_in_numbers_a_few_are_said_and_of_values_all() -> None:
    pieces = [PageLine(n, f"test_row_{n}", f"[{n}]") for n in range(9)]
    assert len(key_words(pieces, seen=[], breaks=[], span=1, room=900)) == 3
    assert len(key_words(pieces, seen=[], breaks=[], span=1, room=900, numbers=1.0)) == 9


def test_ids_go_before_addresses_in_values() -> None:
    piece = PageLine(0, "QKRY03 12:30:00 https://a.example/very/long/path/to/nothing", "$")
    assert key_words([piece], seen=[], breaks=[], span=1, room=14, numbers=1.0) == [PageLine(0, "QKRY03", "$")]


@given(
    st.lists(st.text(alphabet="abAB_./19 é码\n", max_size=60), max_size=30),
    st.lists(st.text(alphabet="abAB_.", min_size=4, max_size=6), max_size=5),
    st.integers(0, 300),
    st.integers(1, 12),
)
def test_key_words_fit_their_room_and_say_nothing_twice_or_that_is_known(
    lines: list[str], known: list[str], room: int, span: int
) -> None:
    pieces = [PageLine(at, line, str(at)) for at, line in enumerate(lines)]
    told = key_words(pieces, seen=known, breaks=[], span=span, room=room)
    words = [word.removesuffix(",") for run in told for word in run.text.split(" ")]
    said = [word.lower() for word in words]
    assert sum(len(run.name) + len(run.text) + GAP for run in told) <= room
    assert len(said) == len(set(said))
    assert not {word.lower() for word in known} & set(said)
    assert [run.number for run in told] == sorted({run.number for run in told})
    assert set(words) <= {w for line in lines for w in terms_in(line)}
