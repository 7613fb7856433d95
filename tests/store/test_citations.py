"""Citations: what a page names as its evidence, and what is left of it when some of that is forgotten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.store.citations import (
    cited_atoms,
    links,
    uncited_lines,
    uncited_tails,
    unwrap,
    without_atoms,
    without_citations,
    without_links,
    without_uncited,
)

PAGE = """\
## What holds now
- Maya lives in Berlin with [[Otto]] (a12, a57).
- She works at the harbour (a3); her shift starts at six [a4].

## Her illness
- She has asthma (a9). It is worse in spring.

### Doctors
- Dr Weiss treats her (a9, a10).
"""


def test_ids_are_read_in_order_and_once() -> None:
    assert cited_atoms(PAGE) == ["a12", "a57", "a3", "a4", "a9", "a10"]


@pytest.mark.parametrize(
    "text",
    ["x (a1, a2).", "x (a1;a2)", "x [a1, a2]", "x（a1、a2）。", "x ( a1 a2 )", "x (a1)(a2)", "x (a1, [[berlin]], a2)"],
)
def test_ids_are_read_however_models_write_them(text: str) -> None:
    assert cited_atoms(text) == ["a1", "a2"]


@pytest.mark.parametrize(
    "text", ["an A4 page a4", "(see a12)", "[[a12]]", "[a12](https://example.org)", "(a12b)", "([[a12]])", "(t12)"]
)
def test_what_only_looks_like_an_id_is_none(text: str) -> None:
    assert cited_atoms(text) == []


def test_links_are_read_by_the_name_that_they_mean() -> None:
    assert links("[[Otto]] and [[berlin-move|the move]], [[ Otto ]]; [[]] [[ ]] (a1, [[work]])") == [
        "Otto",
        "berlin-move",
        "work",
    ]


def test_lines_that_name_nothing_are_told_apart_from_headings_and_rules() -> None:
    page = "# Maya\n\n**Now**\n\nShe is here (a1).\n- Nobody said this\n---\nNor [[this]].\n\n## Then\n"
    assert uncited_lines(page) == ["- Nobody said this", "Nor [[this]]."]


def test_what_names_nothing_can_be_left_out_with_the_headings_over_it() -> None:
    assert without_uncited("# Maya\n\nShe is here (a1).\n\n## Then\n\n- Nobody said this\n\n## Now\n- x (a2)") == (
        "# Maya\n\nShe is here (a1).\n\n## Now\n- x (a2)"
    )


@pytest.mark.parametrize(
    ("line", "tail"),
    [
        ("- She works (a1). Nobody said this.", "Nobody said this."),
        ("- She works. (a1) Nobody said this.", "Nobody said this."),
        ("她工作（a1）。没有人说过。", "没有人说过。"),
        ("- She moved (a1) with Otto.", ""),
        ('- She said "I moved (a1)."', ""),
        ("- She works (a1), and so on", ""),
    ],
)
def test_a_sentence_after_the_last_citation_rests_on_nothing(line: str, tail: str) -> None:
    assert uncited_tails(f"## H\n{line}") == ([tail] if tail else [])
    assert without_uncited(line) == line.removesuffix(tail).rstrip()


def test_links_can_be_made_plain_words() -> None:
    assert without_links("[[Otto]], [[berlin|there]] and [[ x ]]", ["berlin", "x"]) == "[[Otto]], there and x"


def test_a_bullet_goes_with_the_last_atom_that_it_rests_on() -> None:
    assert without_atoms(PAGE, ["a12"]) == PAGE.replace("(a12, a57)", "(a57)")
    assert without_atoms(PAGE, ["a12", "a57"]) == PAGE.replace("- Maya lives in Berlin with [[Otto]] (a12, a57).\n", "")


def test_of_a_line_only_what_rests_on_the_atom_goes() -> None:
    assert without_atoms("- She works (a3); she starts at six (a4).", ["a3"]) == "- she starts at six (a4)."
    assert without_atoms("- She works (a3); she starts at six (a4).", ["a4"]) == "- She works (a3)"
    assert without_atoms("她住在柏林（a1）。她喜欢茶（a2）。", ["a1"]) == "她喜欢茶（a2）。".replace("（a2）", "(a2)")


def test_a_line_stays_while_one_of_its_atoms_does() -> None:
    assert without_atoms("- She works (a3)(a4).", ["a3"]) == "- She works (a4)."
    assert without_atoms("- She works [a3] [a4].", ["a4"]) == "- She works (a3)."


def test_what_follows_the_last_citation_goes_with_it() -> None:
    assert without_atoms("She is well (a1). She has asthma (a9). It is worse in spring.", ["a9"]) == "She is well (a1)."


def test_headings_that_nothing_is_left_under_go_too() -> None:
    assert without_atoms(PAGE, ["a9", "a10"]) == PAGE[: PAGE.index("\n## Her illness")]
    assert without_atoms("## Illness\n### Doctors\n- Weiss (a1)\n### Drugs\n- Salbutamol (a2)", ["a1"]) == (
        "## Illness\n### Drugs\n- Salbutamol (a2)"
    )


def test_a_heading_that_cites_goes_with_its_atom() -> None:
    assert without_atoms("## Asthma (a9)\n- Other (a1)", ["a9"]) == "- Other (a1)"


def test_a_link_alone_does_not_keep_a_sentence() -> None:
    assert without_atoms("- She moved ([[berlin]], a1).\n- b (a2)", ["a1"]) == "- b (a2)"


def test_a_text_reads_well_without_its_citations() -> None:
    assert (
        without_citations("She moved (a1), to [[berlin-move|Berlin]] with [[Otto]] [a2].")
        == "She moved, to Berlin with Otto."
    )


def test_lines_that_were_broken_are_joined() -> None:
    wrapped = "## Now\nMaya has been\nill since May (a1).\nShe rests (a2).\n\n- one\n  more (a3)\n- two (a4)\n她住在\n柏林（a5）"
    assert unwrap(wrapped) == (
        "## Now\nMaya has been ill since May (a1).\nShe rests (a2).\n\n- one more (a3)\n- two (a4)\n她住在柏林（a5）"
    )


LINES = st.lists(
    st.text("ab (a1)[a2], .;#-*\n（a3）", max_size=30)
    | st.sampled_from(["## H", "- x (a1).", "y (a1, a2); z (a3)", "", "**b**", "1. q [a3]", "tail (a2) more"]),
    max_size=8,
).map("\n".join)


@given(LINES, st.sets(st.sampled_from(["a1", "a2", "a3"])))
def test_what_was_taken_out_is_cited_no_more_and_all_else_is(text: str, gone: set[str]) -> None:
    assert set(cited_atoms(without_atoms(text, gone))) == set(cited_atoms(text)) - gone


@given(LINES)
def test_taking_out_nothing_changes_nothing(text: str) -> None:
    assert without_atoms(text, ["a9"]) == text


@given(st.text("a1(), [\n-#*", max_size=60))
def test_joining_lines_keeps_what_they_cite(text: str) -> None:
    assert cited_atoms(unwrap(text)) == cited_atoms(text)


@given(st.text("a1()[]|, x", max_size=40))
def test_plain_words_cite_and_link_nothing_however_their_citations_were_nested(text: str) -> None:
    assert (cited_atoms(without_citations(text)), links(without_citations(text))) == ([], [])


def test_a_citation_around_another_one_is_left_out_too() -> None:
    assert without_citations("Lives in Oslo ((a1)a2) ([[x|a3]]).") == "Lives in Oslo."
