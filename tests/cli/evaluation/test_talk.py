"""What is read from the talk alone: words, topics, forms, turns that repeat one another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.cli.evaluation.questions import clean, read_talk, words_of
from mcp_memory.service.memory import Memory
from tests.cli.evaluation.conftest import SESSIONS, TURNS, talk_from


def test_words_keep_what_joins_them_and_lose_case_and_genitive() -> None:
    assert list(words_of("Ada's night-boat, foo_bar.py: TRF-90457 isn't “Café”...")) == [
        "ada",
        "night-boat",
        "foo_bar.py",
        "trf-90457",
        "isn't",
        "café",
    ]


def test_scripts_without_spaces_give_characters_and_pairs() -> None:
    assert list(words_of("AI看牙医")) == ["ai", "看", "牙", "医", "看牙", "牙医"]


def test_addresses_and_hashes_are_no_words() -> None:
    assert list(words_of(f"see {'a' * 40} there")) == ["see", "there"]


@given(st.text())
def test_any_text_has_words_that_can_be_counted(text: str) -> None:
    told = talk_from([("s", [text, text + " again"])])
    assert set(told.places) == set(words_of(text)) | {"again"} | set(words_of(text + " again"))
    assert all(told.rarity(word) > 0 for word in told.places)


def test_a_topic_is_what_the_talk_around_uses_too_and_any_talk_does_not() -> None:
    filler = [f"I really feel number{n} word{n} today" for n in range(200)]
    about = [*filler[:50], "the beehive fell", "which beehive", "our beehive", *filler[50:]]
    told = talk_from([("s", about)])
    assert told.is_topic("beehive", 50)
    assert not told.is_topic("feel", 10)
    assert not told.is_topic("number7", 7)


def test_the_talk_around_ends_with_the_session() -> None:
    told = talk_from([("a", [f"filler{n}" for n in range(50)] + ["beehive"]), ("b", ["beehive", "filler"])])
    assert not told.is_topic("beehive", 50)
    assert [told.are_beside(50, other) for other in (49, 51, -1, 99)] == [True, False, False, False]


def test_forms_of_a_word_are_those_whose_endings_change_places_often() -> None:
    stems = ["paint", "plant", "record", "travel", "repair", "garden"]
    told = talk_from([("s", [f"{stem}ed {stem}ing" for stem in stems] + ["context content"])])
    assert told.forms["painted"] == ["painting"]
    assert "context" not in told.forms


def test_a_turn_that_says_nearly_the_same_is_a_twin_and_one_that_says_the_same_is_not() -> None:
    first = "The van is booked for Saturday under reference number seven"
    told = talk_from([("s", [first, f"{first} now", "Quite another thing", "Said twice over", "said  TWICE over"])])
    assert [told.has_twin(place) for place in range(5)] == [True, True, False, False, False]


def test_a_pair_of_characters_is_told_with_those_it_hangs_on_to() -> None:
    often = [f"看{other}" for other in "书报戏球病花山海天雪云雨"]
    gone = [f"去{other}" for other in "书报戏球病花山海天雪云雨"]
    told = talk_from([("s", ["今天去博物馆看展览", "博物馆很大", "我喜欢博物馆", *often, *gone])])
    assert told.phrase("博物", 0) == "博物馆"
    assert not told.is_word("馆看")


def test_clean_texts_are_equal_where_only_case_and_space_differ() -> None:
    assert clean(" The  van\nis booked ") == clean("the VAN is booked")


async def test_a_space_is_read_whole_and_in_order(memory: Memory) -> None:
    heard: list[int] = []
    told = await read_talk(memory, seed=0, progress=heard.append)
    assert (len(told.turns), told.turn_count, told.sessions) == (SESSIONS * TURNS, SESSIONS * TURNS, SESSIONS)
    assert heard[-1] == SESSIONS * TURNS
    assert [turn.position for turn in told.turns] == list(range(TURNS)) * SESSIONS


async def test_of_a_large_space_whole_sessions_are_read(memory: Memory) -> None:
    told = await read_talk(memory, seed=0, most=50)
    assert (len(told.turns), told.turn_count) == (3 * TURNS, SESSIONS * TURNS)
    again = await read_talk(memory, seed=0, most=50)
    other = await read_talk(memory, seed=1, most=50)
    assert again.turns == told.turns
    assert other.turns != told.turns


async def test_what_was_told_is_no_talk(memory: Memory) -> None:
    await memory.remember("Ada keeps bees.", session="s0", typed=True)
    assert {turn.role for turn in (await read_talk(memory, seed=0)).turns} == {"user", "assistant"}
