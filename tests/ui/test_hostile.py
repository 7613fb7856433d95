"""Every page of a hostile memory: whatever it holds is text, in HTML and in the tree of the App."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import pytest

from mcp_memory.core.config import Settings
from mcp_memory.core.text import remove_hidden
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import FixedClock
from mcp_memory.ui import elements
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Node, html, text_of, tree
from mcp_memory.ui.frame import document, frame_page
from mcp_memory.ui.pages import ADDRESSES, page_at
from tests.ui.hostile import PAYLOADS, SESSIONS, fill
from tests.ui.shown import forms, text

_OF_A_KIND = 24  # pages; the rest of a kind has the same payloads elsewhere
_SEARCHES = 4  # each takes most of a second, and shows the same rows
_BASE = "/0f1e/default"
_TAGS = elements._TAGS  # pyright: ignore[reportPrivateUsage]
_ATTRIBUTES = elements._ATTRIBUTES  # pyright: ignore[reportPrivateUsage]
_DOCUMENT = {"html", "head", "meta", "title", "link", "script", "body"}
_TARGETS = {"href", "action", "cite"}
_LOWER_TAGS = {tag.lower() for tag in _TAGS}
_LOWER_ATTRIBUTES = {name.lower() for name in _ATTRIBUTES}


def shown(payload: str) -> str:
    """Return a text as a page can show it: no hidden characters, none that cannot be written."""
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", "\ufffd", remove_hidden(payload))


@dataclass
class Parsed(HTMLParser):
    """A page as a browser would take it: tags, attributes, text, and what should not be there at all."""

    tags: set[str] = field(default_factory=set)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    alien: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)

    def handle_comment(self, data: str) -> None:
        self.alien.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def parsed(source: str) -> Parsed:
    reader = Parsed()
    reader.feed(source)
    reader.close()
    return reader


def check_attribute(tag: str, name: str, value: str, base: str) -> None:
    assert name in _LOWER_ATTRIBUTES or name.startswith(("aria-", "data-")), (tag, name)
    if name in _TARGETS:
        is_own = value.startswith((f"{base}/", "#", "?")) or value == ""
        assert is_own, (tag, name, value)
        assert not value.startswith(("//", "/\\")), (tag, name, value)
        assert not re.search(r"[\x00-\x20\\]", value), (tag, name, value)
    if name == "id":
        assert re.fullmatch(r"[a-z][a-z0-9-]*", value), (tag, value)  # no page takes an id from what it shows
    if tag == "form" and name == "method":
        assert value in ("get", "post")


def in_frame(page: Page) -> list[Node]:
    return frame_page(page, space="default", spaces=["default", "<b>"], form_token="t", query="<b>")


def check_html(page: Page) -> None:
    source = "".join(html(node, base=_BASE) for node in page.body)
    read = parsed(source)
    assert read.alien == []
    assert read.tags <= _LOWER_TAGS
    for tag, name, value in read.attributes:
        check_attribute(tag, name, value, _BASE)
    assert "".join(read.pieces) == "".join(texts(tree(node)) for node in page.body)
    whole = parsed(document(page.title, in_frame(page), base=_BASE, static="/0f1e/.static", script="page.js"))
    assert whole.alien == ["doctype html"]
    assert whole.tags <= _LOWER_TAGS | _DOCUMENT
    assert [value for tag, name, value in whole.attributes if name == "src"] == ["/0f1e/.static/page.js"]


def texts(node: Any) -> str:
    return node if isinstance(node, str) else "".join(map(texts, node[2]))


def check_tree(node: Any) -> None:
    """Check a page as the App gets it: known tags and attributes, paths of this interface."""
    if isinstance(node, str):
        return
    tag, attributes, children = node
    assert tag in _TAGS
    for name, value in attributes.items():
        check_attribute(tag, name.lower(), value, "")
    for child in children:
        check_tree(child)


def paths(nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        if not isinstance(node, str):
            href = node.attributes.get("href", "")
            if href.startswith("/") and not href.startswith("/download/"):
                yield href.partition("#")[0]
            yield from paths(node.children)


def pattern_of(address: str) -> str:
    return next(one for one in ADDRESSES if re.fullmatch(one, address.partition("?")[0]))


def seeds(found: dict[str, dict[str, str]]) -> list[str]:
    """Return where to begin: a page of each kind that only a form leads to, and searches for each payload."""
    searches = [f"/search?q={quote(payload)}" for payload in PAYLOADS.values()]
    sessions = [f"/session/{quote(name, safe='')}" for name in SESSIONS]
    entities = [f"/entity/{quote(payload, safe='')}" for payload in PAYLOADS.values()]
    places = [address for addresses in found.values() for address in addresses.values()]
    others = [f"/forget?ids={'+'.join(one[1:] for one in found['statement'].values())}", "/x1", "/001", "/home?check=1"]
    return ["/", *others, *sessions, *entities, *places, *searches]


@dataclass(frozen=True)
class Hostile:
    memory: Memory
    found: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
async def hostile(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Hostile]:
    settings = Settings(home=tmp_path_factory.mktemp("hostile") / "home", log_contents=True)
    async with open_memory(settings, now=FixedClock(), embedder="none", llm="none") as memory:
        yield Hostile(memory, await fill(memory))


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_every_page_of_a_hostile_memory_shows_texts_and_nothing_else(hostile: Hostile) -> None:
    view = View(memory=hostile.memory, form_token="token", is_owner=True)
    waiting, seen, made = seeds(hostile.found), set[str](), Counter[str]()
    while waiting:
        address = waiting.pop(0)
        pattern = pattern_of(address)
        if address in seen or made[pattern] >= (_SEARCHES if pattern == "/search" else _OF_A_KIND):
            continue
        seen.add(address)
        made[pattern] += 1
        page = await page_at(address, view)
        check_html(page)
        for node in page.body:
            check_tree(tree(node))
        waiting += paths(in_frame(page))
    assert set(made) == set(ADDRESSES)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", ["turn", "held", "statement", "result"])
async def test_its_texts_are_shown_as_they_are(hostile: Hostile, place: str) -> None:
    view = View(memory=hostile.memory, form_token="token", is_owner=True)
    for name, address in hostile.found[place].items():
        assert shown(PAYLOADS[name]) in shown(text(await page_at(address, view))), address


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_inside_a_conversation_no_page_can_change_anything(hostile: Hostile) -> None:
    view, first = View(memory=hostile.memory), {pattern_of(address): address for address in seeds(hostile.found)}
    for address in [*first.values(), "/persona", "/tasks", "/review", "/savings", "/live", "/home", "/conversations"]:
        page = await page_at(address, view)
        assert [one.action for one in forms(page) if one.method == "post"] == [], address


def test_a_payload_is_text_to_the_parser_of_these_tests_too() -> None:
    for payload in PAYLOADS.values():
        read = parsed(html(elements.el("p", payload, title=payload, data_x=payload)))
        assert (read.tags, read.alien, "".join(read.pieces)) == ({"p"}, [], text_of(tree_text(payload)))
    assert parsed("<p onclick=x><script>").tags == {"p", "script"}


def tree_text(payload: str) -> str:
    return texts(tree(payload))
