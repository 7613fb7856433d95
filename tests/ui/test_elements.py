"""Elements: what a page may have, and that texts stay texts in both serialisers."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.ui.elements import el, html, svg, text_of, tree


class Texts(HTMLParser):
    """Collects tags and the text between them, as a browser reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags = list[tuple[str, list[tuple[str, str | None]]]]()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(page: str) -> Texts:
    reader = Texts()
    reader.feed(page)
    reader.close()
    return reader


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn")), max_size=80)


@given(TEXT, TEXT)
def test_any_text_is_read_back_as_text_and_as_the_value_of_an_attribute(text: str, title: str) -> None:
    found = parsed(html(el("p", text, el("b", text), title=title)))
    assert [tag for tag, _ in found.tags] == ["p", "b"]
    assert found.tags[0][1] == [("title", title or None)]
    assert found.text == text + text


@given(TEXT)
def test_a_tree_has_the_same_texts_as_the_page(text: str) -> None:
    node = el("p", "said: ", el("mark", text), class_="said")
    assert tree(node) == ["p", {"class": "said"}, ["said: ", ["mark", {}, [text]]]]
    assert text_of(node) == f"said: {text}"


@pytest.mark.parametrize("tag", ["script", "style", "iframe", "img", "object", "base", "meta", "link", "foreignObject"])
def test_a_tag_that_could_load_or_run_something_is_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="no page may have"):
        el(tag)


@pytest.mark.parametrize("name", ["onclick", "onload", "style", "src", "srcdoc", "formaction", "xlink:href", "target"])
def test_an_attribute_that_could_load_or_run_something_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no element may have"):
        el("a", **{name: "x"})


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JAVASCRIPT:x",
        "data:text/html,x",
        "https://a.b",
        "//a.b",
        "/\\a.b",
        "\tjavascript:x",
        " /a",
    ],
)
def test_an_address_of_somewhere_else_is_refused(address: str) -> None:
    for name in ("href", "action"):
        with pytest.raises(ValueError, match="no address of this interface"):
            el("a", **{name: address})


def test_own_addresses_are_under_the_base_of_the_page() -> None:
    node = el("p", el("a", "x", href="/a14?x=1&y=2"), el("a", "y", href="#top"), el("a", "z", href="?page=2"))
    assert html(node, base="/key/me") == (
        '<p><a href="/key/me/a14?x=1&amp;y=2">x</a><a href="#top">y</a><a href="?page=2">z</a></p>'
    )


def test_values_that_are_none_or_false_are_left_out_and_true_stands_alone() -> None:
    assert html(el("details", None, ["a", 1, el("br")], open=True, id=None, hidden=False)) == (
        "<details open>a1<br></details>"
    )


def test_control_characters_become_visible_ones() -> None:
    assert html(el("p", "a\x00\x1b[31m\ud800")) == "<p>a\ufffd\ufffd[31m\ufffd</p>"


def test_a_picture_says_what_it_shows() -> None:
    assert html(svg(4, 2.5, el("rect", width=4, height=2), label="a box")) == (
        '<svg width="4" height="2.5" viewBox="0 0 4 2.5" role="img" aria-label="a box"><title>a box</title>'
        '<rect width="4" height="2"></rect></svg>'
    )
