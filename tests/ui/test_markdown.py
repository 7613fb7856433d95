"""Markdown of scenes and the persona: every word is kept, nothing is more than text, ids lead to their pages."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.text import remove_hidden
from mcp_memory.ui.elements import Element, Node, el, html, text_of, tree
from mcp_memory.ui.markdown import inline, markdown

PIECES = st.sampled_from(
    ["# ", "## ", "- ", "1. ", "> ", "    ", "```", "``", "`", "**", "*", "__", "_", "|", "|---|", "\n", "\n\n", "---",
     "[[", "]]", "(a1", ", a2)", "t4", "r-0123456789ab", ":1-2", "\\", "<b>", "](", "http://", "word", "Wörter", "牙医"]
)  # fmt: skip
TEXT = st.lists(PIECES | st.text(max_size=6), max_size=40).map("".join)
ALLOWED = {
    "a", "blockquote", "code", "div", "em", "figcaption", "figure", "h2", "h3", "h4", "hr", "li", "ol", "p", "pre", "small", "span",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
WORD = re.compile(r"[^\W_]+")


def within(node: Node) -> Iterator[Element]:
    if isinstance(node, Element):
        yield node
        for child in node.children:
            yield from within(child)


def hrefs(node: Node) -> list[str]:
    return [one.attributes["href"] for one in within(node) if one.tag == "a"]


def of(text: str) -> list[Node]:
    return list(markdown(text).children)


@given(TEXT)
def test_every_word_of_any_text_is_on_the_page(text: str) -> None:
    page = markdown(text)
    attributes = ("value", "href")  # numbers of lists, and ids, which are addresses only
    letters = text_of(page) + "".join(one.attributes.get(name, "") for one in within(page) for name in attributes)

    for word in WORD.findall(remove_hidden(text)):
        assert word in letters or word == "r"


@given(TEXT)
def test_any_text_becomes_elements_of_a_page_whose_links_stay_inside(text: str) -> None:
    page = markdown(text)
    assert html(page)
    assert tree(page)
    assert {one.tag for one in within(page)} <= ALLOWED
    inside = re.compile(r"/(?:scene|entity)/[^/?#]+|/[atx]\d+|/r-[0-9a-f]{12}(?:\?lines=[\d-]+)?|/\d+-[NF]\d+")
    assert all(inside.fullmatch(href) for href in hrefs(page))


def test_headings_begin_at_the_second_level_and_end_at_the_fourth() -> None:
    assert [one.tag for one in within(markdown("# One\n## Two\n###### Six"))][1:] == ["h2", "h3", "h4"]
    assert [one.tag for one in within(markdown("# One\n## Two", top=1))][1:] == ["h2", "h2"]


def test_a_first_heading_that_is_the_title_of_the_page_is_left_out() -> None:
    assert of("# The knee\n\nIt hurts.") != [el("p", "It hurts.", dir="auto")]
    assert markdown("# The knee\n\nIt hurts.", title="The knee").children == (el("p", "It hurts.", dir="auto"),)
    assert "Other" in text_of(markdown("# Other\n\nIt hurts.", title="The knee"))


def test_marks_inside_a_line_become_bold_italic_and_code() -> None:
    assert inline("a **b *c* d** _e_ `f*g*`") == [
        "a ",
        el("strong", "b ", el("em", "c"), " d"),
        " ",
        el("em", "e"),
        " ",
        el("code", "f*g*"),
    ]


@pytest.mark.parametrize("text", ["2 * 3 * 4", "snake_case_name", "a ** b", "**open", "*", "_x", r"\*no\*"])
def test_marks_that_close_nothing_are_text(text: str) -> None:
    assert "".join(map(text_of, inline(text))) == text.replace("\\*", "*")
    assert all(isinstance(node, str) for node in inline(text))


def test_ids_lead_to_their_pages() -> None:
    text = "Said so (a12, a57) in t4, see r-9f2c1a7b3d4e:120-134 and 003-N4; x2 is gone."
    assert hrefs(markdown(text)) == ["/a12", "/a57", "/t4", "/r-9f2c1a7b3d4e?lines=120-134", "/003-N4", "/x2"]


@pytest.mark.parametrize("text", ["A4 and a4 paper", "t2.micro", "at4", "r-9f2c", "2026-11-03", "x-ray", "/tmp/t4"])
def test_what_only_looks_like_an_id_is_text(text: str) -> None:
    assert hrefs(markdown(text)) == []


def test_names_lead_to_the_scene_of_that_name_else_to_what_is_known_of_it() -> None:
    page = markdown(
        "[[The Knee]], [[Li Wei]], [[the-knee|her knee]]", scenes={"the knee": "the-knee", "the-knee": "the-knee"}
    )
    assert hrefs(page) == ["/scene/the-knee", "/entity/Li%20Wei", "/scene/the-knee"]
    assert text_of(page) == "The Knee, Li Wei, her knee (the-knee)"


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "![x](https://e.org/a)",
        "jav&#x09;ascript:alert(1)", "<!-- hidden -->", "https://example.org/a_b_c?d=*e*", "<iframe srcdoc='x'>",
        "[x]: javascript:alert(1)", "{{7*7}} ${x}",
    ],
)  # fmt: skip
def test_tags_addresses_and_scripts_are_shown_as_text(text: str) -> None:
    page = markdown(text)
    assert text_of(page) == text
    assert hrefs(page) == []


def test_lists_hold_lists_and_keep_their_numbers() -> None:
    page = markdown("- one\n  - two\n- three\n\n3. third\n7) seventh")
    assert page.children == (
        el(
            "ul",
            el("li", "one", el("ul", el("li", "two", dir="auto")), dir="auto"),
            el("li", "three", dir="auto"),
        ),
        el("ol", el("li", "third", value="3", dir="auto"), el("li", "seventh", value="7", dir="auto")),
    )


def test_code_keeps_its_lines_and_what_its_fence_says() -> None:
    page = markdown("```python now\na = **1**\n\n# no heading\n```\nafter")
    assert text_of(page) == "python nowa = **1**\n\n# no headingafter"
    assert [one.tag for one in within(page)] == ["div", "figure", "figcaption", "pre", "code", "p"]


def test_tables_quotes_and_rules_are_elements() -> None:
    page = markdown("| a | b |\n|---|:-:|\n| 1 | `2` |\n\n> said **so**\n\n---\nend")
    tags = [one.tag for one in within(page)]
    assert tags.count("th") == 2
    assert tags.count("td") == 2
    assert tags.count("code") == 1
    assert tags[-4:] == ["p", "strong", "hr", "p"]
    assert "blockquote" in tags


@pytest.mark.parametrize(
    "text",
    [
        "> " * 20_000, "- " * 20_000, "*_" * 20_000, "`" * 40_000, "`` a" * 10_000, "[[" * 20_000, "(a1 " * 10_000,
        "|\n" * 20_000, "| -\n" * 10_000, "\n".join(" " * (n % 500) + "- x" for n in range(5_000)), " " * 40_000 + "-|-",
        "**a *b " * 8_000, "(" * 40_000, "a://" * 10_000,
    ],
)  # fmt: skip
def test_no_text_takes_long(text: str) -> None:
    begun = time.process_time()
    html(markdown(text))
    assert time.process_time() - begun < 3


def test_the_words_before_an_ended_statement_are_struck_out_and_no_others() -> None:
    ended = {"a1": "a3", "a2": None}
    (line,) = markdown("- Likes tea (a9). **Lives** in Bergen (a1), swims (a2, a9), runs (a2).", ended=ended).children
    struck = [text_of(one) for one in within(line) if one.tag == "del"]
    assert struck == ["Lives in Bergen", "runs"]
    assert "Bergen no longer true, what is true now, swims [2], runs no longer true." in text_of(line)
    assert hrefs(line) == ["/a9", "/a1", "/a3", "/a2", "/a9", "/a2"]


def test_what_replaced_a_statement_is_named_once_in_a_line() -> None:
    (line,) = markdown("- Lives in Porto (a3); until May: lives in Lisbon (a1)", ended={"a1": "a3"}).children
    assert text_of(line) == "Lives in Porto; until May: lives in Lisbon"
    assert text_of(markdown("She swims. (a1). She runs (a2).")) == "She swims. She runs."


def test_words_with_a_link_of_their_own_are_followed_by_links_to_their_statements() -> None:
    assert hrefs(markdown("[[Maya]] swims (a1, a2)")) == ["/entity/Maya", "/a1", "/a2"]
    assert text_of(markdown("[[Maya]] swims (a1, a2)")) == "Maya swims [1] [2]"


def test_dates_that_the_memory_added_are_faint() -> None:
    assert inline("I leave tomorrow [17 March 2026].") == ["I leave tomorrow", " ", el("small", "[17 March 2026]"), "."]
