"""Which entity a caller means by a name: other spellings, parts of names, and what the answer says of unknown ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import NotFound
from mcp_memory.longterm.search.entity_names import match_name
from mcp_memory.service.memory import Memory

KNOWN = (
    "user", "Inés", "Lydia Moreau", "Lidija", "New York City", "北京市", "Barro y Bruma", "Anna Berg", "Anna Kahn",
    "data_pipeline", "Müller & Söhne", "Zürich", "Ben", "Москва", "O'Brien", "Acme GmbH", "Marie-Claire Dupont", "...",
)  # fmt: skip
CHIEFS = {name: name for name in KNOWN}


@pytest.mark.parametrize(
    ("asked", "meant", "is_spelling"),
    [
        ("Ines", "Inés", True),
        ("  INÉS ", "Inés", True),
        ("new_york_city", "New York City", True),
        ("Data Pipeline", "data_pipeline", True),
        ("zuerich", "Zürich", True),
        ("Mueller & Soehne", "Müller & Söhne", True),
        ("москва", "Москва", True),
        ("O’Brien", "O'Brien", True),
        ("Marie Claire Dupont", "Marie-Claire Dupont", True),
        ("New York", "New York City", False),
        ("York", "New York City", False),
        ("北京", "北京市", False),
        ("Acme", "Acme GmbH", False),
        ("Moreau", "Lydia Moreau", False),
        ("marie_claire", "Marie-Claire Dupont", False),
        ("Ben Okafor", "Ben", False),
        ("北京市朝阳区", "北京市", False),
    ],
)
def test_another_spelling_or_a_part_of_a_name_means_the_entity_that_alone_has_it(
    asked: str, meant: str, is_spelling: bool
) -> None:
    found = match_name(asked, CHIEFS)
    assert (found.fits, found.is_spelling) == ([meant], is_spelling)


@pytest.mark.parametrize(
    ("asked", "known"),
    [("Michal", "Michael"), ("Joe", "Jo"), ("Su", "Sue"), ("Blue", "Blu"), ("Nol", "Noel"), ("Zuerich", "Zurich")],
)
def test_two_letters_are_an_umlaut_only_where_one_of_the_names_has_it(asked: str, known: str) -> None:
    assert match_name(asked, {known: known}).fits == []
    assert match_name("Soeren", {"Søren": "Søren"}).is_spelling
    assert match_name("Müller", {"Mueller": "Mueller"}).is_spelling
    assert match_name("Mu\u0308ller", {"Mueller": "Mueller"}).is_spelling  # decomposed


def test_a_name_that_several_have_in_part_fits_all_of_them_and_an_alias_the_chief_name() -> None:
    assert match_name("Anna", CHIEFS).fits == ["Anna Berg", "Anna Kahn"]
    assert match_name("inesita", {"Inés": "Inés", "Inesita": "Inés"}).fits == ["Inés"]


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("Lidia", ["Lidija", "Lydia Moreau"]),
        ("bar-y-bruma", ["Barro y Bruma"]),
        ("Müler", ["Müller & Söhne"]),
        ("Userland", []),
        ("北", []),
        ("...", []),
    ],
)
def test_a_name_of_other_letters_is_near_and_never_taken_for_the_entity(asked: str, near: list[str]) -> None:
    found = match_name(asked, CHIEFS)
    assert (found.fits, found.near) == ([], near)


@given(st.lists(st.text(st.characters(categories=("L", "N", "P", "Z")), min_size=1), max_size=8), st.text(max_size=12))
def test_every_known_name_with_a_letter_fits_itself_and_any_text_can_be_asked_for(names: list[str], asked: str) -> None:
    main_names = {one: one for one in (" ".join(name.split()) for name in names) if one}
    assert set(match_name(asked, main_names).fits) <= set(main_names)
    for name in main_names:
        if any(character.isalnum() for character in name):
            assert name in match_name(name, main_names).fits


# --- in a memory ------------------------------------------------------------------------------------


async def _knows(memory: Memory, *names: str) -> None:
    for name in names:
        await memory.remember(f"{name} keeps bees.", entity=name, relation="keeps", value="bees", typed=True)


async def test_the_search_the_facts_and_the_neighbours_take_another_spelling(memory: Memory) -> None:
    await _knows(memory, "Inés", "Bo")
    found = await memory.memory_search(entity="ines")
    assert [hit.atom.text for hit in found.atoms] == ["Inés keeps bees."]
    assert found.note is None
    assert [fact.entity for fact in await memory.facts_about("INES")] == ["Inés"]
    assert [atom.text for atom in (await memory.statements(entity="ines")).atoms] == ["Inés keeps bees."]
    assert [node.name for node in (await memory.entity_map(about="ines")).nodes] == ["Inés"]
    assert [row.text for row in (await memory.explain("bees", entity="ines")).shown] == ["Inés keeps bees."]


async def test_an_answer_about_a_name_of_which_a_part_was_given_says_so(memory: Memory) -> None:
    await _knows(memory, "New York City")
    found = await memory.memory_search(entity="New York")
    assert [hit.atom.text for hit in found.atoms] == ["New York City keeps bees."]
    assert found.note == "No entity is called exactly 'New York': this is about 'New York City'."
    assert (await memory.statements(entity="New York")).note == found.note


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Lidia", r"No entity 'Lidia'\. Near: Lidija, Lydia Moreau\."),
        ("Anna", r"2 entities fit 'Anna': Anna Berg, Anna Kahn\. Name one of them in full\."),
        ("Xqz", r"No entity 'Xqz', nor any with a similar name\."),
    ],
)
async def test_a_search_for_an_unknown_entity_names_those_that_are_near(memory: Memory, name: str, said: str) -> None:
    await _knows(memory, "Lydia Moreau", "Lidija", "Anna Berg", "Anna Kahn")
    with pytest.raises(NotFound, match=said):
        await memory.memory_search("bees", entity=name)


async def test_the_user_may_be_named_by_a_pronoun(memory: Memory) -> None:
    await memory.remember("The user keeps bees.", entity="user", relation="keeps", value="bees", typed=True)
    assert (await memory.memory_search(entity="the user")).atoms
    assert (await memory.memory_search(entity="me")).atoms


async def test_a_forgotten_entity_is_not_named_as_near(memory: Memory) -> None:
    await _knows(memory, "Lidija")
    await memory.forget(["a1"])
    with pytest.raises(NotFound, match="nor any with a similar name"):
        await memory.memory_search(entity="Lidia")
    with pytest.raises(NotFound, match="No entity 'Lidija'"):
        await memory.memory_search(entity="Lidija")
