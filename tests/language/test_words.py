"""Index terms: laws that hold of any text, and what becomes of the words of many languages."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.language.words import base_terms, fold, index_terms, languages_of, query_terms, terms_among

# Text as people mix it: scripts, joiners, digits and marks side by side, which plain random text seldom has.
MIXED = st.text(
    st.sampled_from("aÄzI1.5,'’-_/:#@+$ \n\tßçıİкиשל\u05b8کةَ한국の漢カーไทย\u0e48क्ख\u200c\u200d👍🏽🇩🇪\ufe0f٣"),
    max_size=30,
)
ANY = st.one_of(st.text(), MIXED)


@given(ANY)
def test_terms_hold_no_white_space_and_are_never_empty(text: str) -> None:
    for term in (*index_terms(text), *query_terms(text), *base_terms(text)):
        assert term
        assert not any(c.isspace() for c in term)


@given(ANY, ANY)
def test_a_text_holds_the_base_terms_of_its_parts_and_no_others(left: str, right: str) -> None:
    assert set(base_terms(f"{left}\n{right}")) == set(base_terms(left)) | set(base_terms(right))


@given(ANY)
def test_whatever_language_a_text_seems_to_be_in_it_holds_its_base_terms(text: str) -> None:
    assert set(base_terms(text)) <= set(index_terms(text))


@given(st.lists(ANY, min_size=1, max_size=4), st.data())
def test_each_word_of_a_text_finds_it_whatever_was_said_around_it(parts: list[str], data: st.DataObject) -> None:
    asked = data.draw(st.sampled_from(parts))
    assert not query_terms(asked) or set(query_terms(asked)) & set(index_terms("\n".join(parts)))


ENGLISH = st.sampled_from(
    [
        "skies",
        "dying",
        "relational",
        "fluently",
        "Probabilities",
        "iPhone",
        "user_id",
        "don't",
        "café",
        "2024-05-03",
        "絵文字",
    ]
)


@given(st.lists(ANY | ENGLISH, max_size=6).map(" ".join), st.lists(ENGLISH), st.data())
def test_looking_for_some_terms_finds_those_that_the_text_has(
    text: str, others: list[str], data: st.DataObject
) -> None:
    terms = set(index_terms(text))
    sought = data.draw(st.sets(st.sampled_from(sorted(terms)))) if terms else set[str]()
    sought |= set(index_terms(" ".join(others)))
    assert terms_among(text, sought) == terms & sought


@given(ANY)
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold(fold(text)) == fold(text)


def test_every_character_there_is_can_be_said() -> None:
    for start in range(0, sys.maxunicode + 1, 256):
        assert all(index_terms("\n".join(map(chr, range(start, start + 256)))))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The dogs' kennels", ["the", "dog", "kennel"]),
        ("foo_bar.py", ["foobar.py", "foo", "bar", "py"]),
        ("src/app/foo_bar.py", ["src/app/foobar.py", "src", "app", "foobar.py", "foo", "bar", "py"]),
        ("maxConnections", ["maxconnect", "max", "connect"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("PR#4831", ["pr#4831", "pr", "4831"]),
        ("C++ and C#", ["c++", "c", "and", "c#", "c"]),
        ("C++17", ["c++17", "c++", "c", "17"]),
        (".NET $HOME --dry-run", [".net", "net", "$home", "home", "dryrun", "dri", "run"]),
        ("std::vector", ["std::vector", "std", "vector"]),
        ("v2.3.1", ["v2.3.1", "v", "2", "2.3", "2.3.1"]),
        ("1,000 1.000 10 000 3,5", ["1000", "1000", "1.000", "1", "10000", "10", "000", "3", "3.5"]),
        ("2024-05-03", ["20240503", "2024", "05", "03"]),
        ("a3f9c2e81b7d4f", ["a3f9c2e81b7d4f"]),
        ("#MachineLearning @anna_k", ["machinelearn", "machin", "learn", "annak", "anna", "k"]),
        ("don't we'll Anna's O'Brien", ["dont", "well", "anna", "s", "obrien", "o", "brien"]),
        ("so...what", ["so", "what"]),
        ("👍🏽 👩‍💻 🇩🇪 ❤️", ["👍", "👩", "💻", "🇩🇪", "❤"]),
        ("ＲＯＯＭ　４２ ٢٠٢٤", ["room", "42", "2024"]),
        ("绿茶好", ["绿", "茶", "好", "绿茶", "茶好"]),
        ("リンゴ", ["り", "ん", "ご", "りん", "んご"]),
        ("서울에서", ["서울", "울에", "에서"]),
        ("หมา", ["ห", "มา", "หมา"]),
        ("हिन्दी", ["हिन्द"]),
        ("المَكتَبـة", ["المكتبه", "مكتب"]),
        ("הספרים", ["הספרימ", "ספרימ", "ספר"]),
    ],
)
def test_terms_of(text: str, terms: list[str]) -> None:
    assert index_terms(text) == terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("Müller", "Mueller"),
        ("Łódź", "lodz"),
        ("e-mail", "email"),
        ("well–known", "wellknown"),
        ("ﾌﾞﾚｰｷ", "ぶれーき"),
        ("03.05.2024", "2024/5/3"),
        ("1'250.00", "1250"),
        ("كتاب", "كِتاب"),
        ("İSTANBUL'da", "istanbul"),
        ("ΣΟΦΌΣ", "σοφος"),
        ("Ёлки", "елка"),
        ("l’eau", "eau"),
        ("क़लम", "कलम"),
    ],
)
def test_two_spellings_share_a_term(one: str, other: str) -> None:
    assert set(query_terms(one)) & set(index_terms(other))
    assert set(query_terms(other)) & set(index_terms(one))


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("I think that we should go to the lake", ("en",)),
        ("Wir haben die Häuser besichtigt", ("de",)),
        ("Kissat nukkuvat saunan lauteilla", ("fi",)),
        ("Le médecin m'a prescrit des antibiotiques", ("fr",)),
        ("Лікар переніс прийом на понеділок", ("uk",)),
        ("the die is cast", ("en",)),
        ("Sounds good!", ()),
        ("coffee grinder", ()),
        ("", ()),
    ],
)
def test_the_language_of_a_text_is_known_by_its_small_words(text: str, languages: tuple[str, ...]) -> None:
    assert languages_of(text.rstrip("!").split()) == languages


def test_plain_english_takes_no_forms_of_other_languages() -> None:
    text = "We stayed at the Krankenhaus hotel in Berlin and paid for the rooms of the children"
    assert index_terms(text) == base_terms(text)


def test_parts_of_a_german_compound_find_it_and_it_finds_them() -> None:
    said = index_terms("Die Krankenversicherung ist teuer.")
    assert set(query_terms("Welche Versicherung?")) & set(said)
    assert set(query_terms("Wie hoch ist die Krankenversicherung?")) & set(
        index_terms("Eine Versicherung für das Auto")
    )


@pytest.mark.parametrize(
    ("question", "telling"),
    [
        ("When did Caroline go to the support group?", ["carolin", "go", "support", "group"]),
        ("Где я купил книги?", ["куп", "книг"]),
        ("the die is cast", ["die", "cast"]),
        ("what is it about", ["what", "is", "it", "about"]),
        ("绿茶是什么？", ["绿", "茶", "是", "绿茶", "茶是"]),
        ("犬はどこですか", ["犬", "犬は"]),
        ("what's my dog's name", ["s", "dog", "s", "name"]),
    ],
)
def test_a_question_is_searched_by_the_words_that_tell(question: str, telling: list[str]) -> None:
    assert query_terms(question) == telling


def test_a_word_alone_is_asked_for_in_the_forms_of_every_language() -> None:
    assert {"hausern", "haus"} <= set(query_terms("Häusern"))
    assert "cas" in query_terms("casas")
