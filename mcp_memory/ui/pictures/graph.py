"""The neighbourhood of an entity: its name in the middle, those that it shares statements with to both sides.

Names stand below each other, the most shared ones first, so none hides another however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcp_memory.core.text import revealed
from mcp_memory.ui.components import link, part
from mcp_memory.ui.elements import Element, el, svg
from mcp_memory.ui.pictures.lettering import shortened, width
from mcp_memory.ui.words import t

__all__ = ["MOST", "neighbourhood"]

MOST = 60
"""Neighbours that are drawn."""
ROW, NAME, REACH, CENTRE = 24, 170, 90, 150
"""Pixels: the height of a row; the width of a name, of the lines beside it, and of the name in the middle."""


def neighbourhood(centre: str, near: Sequence[tuple[str, int]]) -> Element:
    """Return the picture; a line is the thicker the more statements two entities share. Each name is a link."""
    drawn = sorted(near, key=lambda each: (-each[1], each[0]))[:MOST]
    sides = [drawn[0::2], drawn[1::2]]
    rows = max(1, len(sides[0]))
    width_, height, middle = 2 * (NAME + REACH) + CENTRE, rows * ROW + 16, (rows * ROW + 16) / 2
    most = max((shared for _, shared in drawn), default=1)
    lines = [
        _line(side, 8 + (at + (rows - len(names)) / 2 + 0.5) * ROW, middle, shared, most)
        for side, names in enumerate(sides)
        for at, (_, shared) in enumerate(names)
    ]
    links = [
        _neighbour(name, shared, side, 8 + (at + (rows - len(names)) / 2 + 0.5) * ROW)
        for side, names in enumerate(sides)
        for at, (name, shared) in enumerate(names)
    ]
    picture = svg(width_, height, lines, links, _centre(centre, width_ / 2, middle),
                  label=t("pictures.neighbourhood", name=revealed(centre)), role="group")  # fmt: skip
    return el("div", picture, class_="picture scroll", tabindex="0", role="region",
              aria_label=t("pictures.neighbourhood", name=revealed(centre)))  # fmt: skip


def _centre(name: str, x: float, y: float) -> list[Element]:
    text = shortened(revealed(name), CENTRE - 16, 15)
    return [el("text", el("title", revealed(name)), text, x=f"{x:g}", y=f"{y + 5:g}", text_anchor="middle",
               class_="centre")]  # fmt: skip


def _line(side: int, y: float, middle: float, shared: int, most: int) -> Element:
    inner = NAME + REACH + (CENTRE if side else 0)
    outer = NAME + (2 * REACH + CENTRE if side else 0)
    bend = (inner + outer) / 2
    thick = 1 + 3 * shared / most
    return el("g", el("path", d=f"M{inner:g} {middle:g}C{bend:g} {middle:g} {bend:g} {y:g} {outer:g} {y:g}",
                      stroke_width=f"{thick:.2g}"), class_="edge")  # fmt: skip


def _neighbour(name: str, shared: int, side: int, y: float) -> Element:
    shown = revealed(name)
    number = f" {shared}"
    text = shortened(shown, NAME - 14 - width(number))
    x, anchor = (NAME + 2 * REACH + CENTRE + 8, "start") if side else (NAME - 8, "end")
    words = el("text", text, el("tspan", number, class_="name"), x=f"{x:g}", y=f"{y + 4:g}", text_anchor=anchor)
    return link(f"/entity/{part(name)}", el("title", t("pictures.shared", count=shared, name=shown)), words)
