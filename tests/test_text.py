"""Index terms, names and one-line cleaning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.errors import InvalidInput
from mcp_memory.text import fold, index_terms, one_line, query_terms, safe_name, well_formed


@given(st.text())
def test_terms_hold_no_white_space_and_are_never_empty(text: str) -> None:
    for term in index_terms(text):
        assert term
        assert not any(c.isspace() for c in term)


@given(st.text(), st.text())
def test_a_text_holds_the_terms_of_its_parts(left: str, right: str) -> None:
    assert set(index_terms(f"{left}\n{right}")) == set(index_terms(left)) | set(index_terms(right))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The dogs' kennels", ["the", "dog", "kennel"]),
        ("foo_bar.py", ["foo_bar.py", "foo", "bar", "py"]),
        ("maxConnections", ["maxconnect", "max", "connect"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("PR#4831", ["pr#4831", "pr", "4831"]),
        ("C++ and C#", ["c++", "c", "and", "c#", "c"]),
        ("绿茶好", ["绿", "茶", "好", "绿茶", "茶好"]),
        ("Crème brûlée", ["creme", "brule"]),
        ("don't", ["don't", "don", "t"]),
    ],
)
def test_terms_of(text: str, terms: list[str]) -> None:
    assert index_terms(text) == terms


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


@given(st.text())
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold(fold(text)) == fold(text)


def test_a_lone_surrogate_is_not_well_formed() -> None:
    assert not well_formed("a\ud800")
    assert well_formed("a😀")


@pytest.mark.parametrize(
    ("question", "telling"),
    [
        ("When did Caroline go to the support group?", ["carolin", "go", "support", "group"]),
        ("Wann hat Anna die Schule gewechselt?", ["anna", "schule", "gewechselt"]),
        ("¿Dónde trabaja mi hermana?", ["trabaja", "hermana"]),
        ("Где я купил книги?", ["куп", "книг"]),
        ("the die is cast", ["die", "cast"]),
        ("what is it about", ["what", "is", "it", "about"]),
        ("绿茶", ["绿", "茶", "绿茶"]),
    ],
)
def test_a_question_is_searched_by_the_words_that_tell(question: str, telling: list[str]) -> None:
    assert query_terms(question) == telling
