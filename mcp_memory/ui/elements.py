"""Pages as trees of elements, and their two serialisers: HTML for the browser, JSON for the MCP App.

Elements are checked when they are created: they can only have the tags and attributes listed here, and addresses of
this interface. So no page can contain a script, an event attribute, an inline style or raw HTML, whatever the memory
contains. Texts are escaped when they are serialised, and nowhere else.
"""

from __future__ import annotations

import html as escaping
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_HTML = """
    a abbr article aside b blockquote br button caption code dd del details dialog div dl dt em fieldset figcaption
    figure footer form h1 h2 h3 h4 header hr i input ins label legend li main mark meter nav ol optgroup option
    output p pre progress s samp section select small span strong sub summary sup table tbody td textarea tfoot th
    thead time tr u ul var wbr
"""
_SVG = "svg g path rect circle line polyline polygon text tspan title desc defs marker"
_TAGS = frozenset(f"{_HTML} {_SVG}".split())
_VOID = frozenset(("br", "hr", "input", "wbr"))
_OF_HTML = """
    abbr action autocomplete autofocus checked cite class cols colspan datetime dir disabled download enctype for form
    headers hidden high href id inputmode lang list low max maxlength method min minlength multiple name open optimum
    pattern placeholder popover popovertarget readonly rel required role rowspan rows scope selected size span
    spellcheck start step tabindex title translate type value
"""
_OF_SVG = """
    cx cy d dominant-baseline dx dy fill height marker-end markerHeight markerWidth orient points preserveAspectRatio
    r refX refY rx ry stroke stroke-dasharray stroke-width text-anchor transform viewBox width x x1 x2 y y1 y2
"""
_ATTRIBUTES = frozenset(f"{_OF_HTML} {_OF_SVG}".split())
_PREFIXES = ("aria-", "data-")
_ADDRESSES = frozenset(("href", "action", "cite"))
_OWN = re.compile(r"(?:/(?![/\\])|\?|#)[^\x00-\x20\\]*|")
_INPUTS = frozenset(("checkbox", "date", "datetime-local", "hidden", "number", "radio", "range", "search", "text"))
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Element:
    """A tag, its attributes (without a value if it is empty) and its children. Created by `el`."""

    tag: str
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    children: tuple[Element | str, ...] = ()


Node = Element | str
"""An element, or a text."""


def el(tag: str, *children: Any, **attributes: str | int | float | bool | None) -> Element:
    """Return an element. Children are elements, texts, iterables of them, or None.

    In attribute names `class_` and `for_` replace the reserved words, and `_` replaces `-`. Attributes that are None or
    False are left out; True has no value. Raises ValueError for a tag, attribute or address that no page may have.
    """
    if tag not in _TAGS:
        raise ValueError(f"no page may have <{tag}>")
    checked: dict[str, str] = {}
    for key, value in attributes.items():
        name = key.rstrip("_") if key in ("class_", "for_") else key.replace("_", "-")
        if value is None or value is False:
            continue
        if name not in _ATTRIBUTES and not name.startswith(_PREFIXES):
            raise ValueError(f"no element may have the attribute {name}")
        text = "" if value is True else str(value)
        if name in _ADDRESSES and not _OWN.fullmatch(text):
            raise ValueError(f"{text!r} is no address of this interface")
        if name == "type" and tag == "input" and text not in _INPUTS:
            raise ValueError(f"no page may have an input of type {text}")
        checked[name] = text
    return Element(tag, checked, tuple(_flatten(children)))


def svg(width: float, height: float, *children: Any, label: str, **attributes: str | int | float | None) -> Element:
    """Return a picture of this size, scaled to the available width; `label` describes it for screen readers."""
    picture_attributes = {"viewBox": f"0 0 {width:g} {height:g}", "role": "img", "aria_label": label, **attributes}
    return el("svg", el("title", label), *children, width=f"{width:g}", height=f"{height:g}", **picture_attributes)


def _flatten(children: Iterable[Any]) -> Iterable[Node]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, (Element, str)):
            yield child
        elif isinstance(child, (int, float)):
            yield str(child)
        else:
            yield from _flatten(child)


def html(node: Node, *, base: str = "") -> str:
    """Return a node as HTML; addresses that begin with `/` are prefixed with `base`."""
    return "".join(_html(node, base))


def _html(node: Node, base: str) -> Iterable[str]:
    if isinstance(node, str):
        yield escaping.escape(_writable(node), quote=False)
        return
    yield f"<{node.tag}"
    for name, value in node.attributes.items():
        address = base + value if name in _ADDRESSES and value.startswith("/") else value
        yield f' {name}="{escaping.escape(_writable(address))}"' if value else f" {name}"
    yield ">"
    if node.tag not in _VOID:
        for child in node.children:
            yield from _html(child, base)
        yield f"</{node.tag}>"


def tree(node: Node) -> Any:
    """Return a node as JSON values: a text, or `[tag, {attributes}, [children]]`, with addresses unchanged."""
    if isinstance(node, str):
        return _writable(node)
    return [
        node.tag,
        {name: _writable(value) for name, value in node.attributes.items()},
        [tree(child) for child in node.children],
    ]


def text_of(node: Node) -> str:
    """Return the text inside a node."""
    return node if isinstance(node, str) else "".join(map(text_of, node.children))


def _writable(text: str) -> str:
    """Return a text with control characters and lone surrogates replaced by U+FFFD."""
    return _UNWRITABLE.sub("\ufffd", text)
