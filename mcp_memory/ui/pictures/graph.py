"""The neighbourhood of an entity: its name in the middle, those that it shares statements with to both sides.

Names stand below each other, the most shared ones first, so none hides another however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcp_memory.core.text import remove_hidden
from mcp_memory.ui.components import link, part
from mcp_memory.ui.elements import Element, el, svg
from mcp_memory.ui.pictures.lettering import shortened, width
from mcp_memory.ui.words import t

MOST = 60
"""Neighbours that are drawn."""
ROW, NAME, REACH, CENTRE = 24, 170, 90, 150
"""Pixels: the height of a row; the width of a name, of the lines beside it, and of the name in the middle, at most."""


def neighbourhood(centre: str, near: Sequence[tuple[str, int]]) -> Element:
    """Return the picture; a line is the thicker the more statements two entities share. Each name is a link."""
    drawn = sorted(near, key=lambda each: (-each[1], each[0]))[:MOST]
    sides = [drawn[0::2], drawn[1::2]]
    rows, most = max(1, len(sides[0])), max((shared for _, shared in drawn), default=1)
    name = shortened(remove_hidden(centre), CENTRE - 24, 15)
    wide = round(width(name, 15)) + 24
    whole, height = 2 * (NAME + REACH) + wide, rows * ROW + 16
    lines: list[Element] = []
    links: list[Element] = []
    for side, names in enumerate(sides):
        for at, (other, shared) in enumerate(names):
            y = 8 + (at + (rows - len(names)) / 2 + 0.5) * ROW
            lines.append(_line(side, y, height / 2, wide, 1 + 3 * shared / most))
            links.append(_neighbour(other, shared, whole - NAME + 8 if side else NAME - 8, y, is_right=side == 1))
    middle = el("text", el("title", remove_hidden(centre)), name, x=f"{whole / 2:g}", y=f"{height / 2 + 5:g}",
                text_anchor="middle", class_="centre")  # fmt: skip
    label = t("pictures.neighbourhood", name=remove_hidden(centre))
    picture = svg(whole, height, lines, links, middle, label=label, role="group")
    return el("div", picture, class_="picture scroll", tabindex="0", role="region", aria_label=label)


def _line(side: int, y: float, middle: float, wide: float, thick: float) -> Element:
    inner = NAME + REACH + (wide if side else 0)
    outer = NAME + (2 * REACH + wide if side else 0)
    bend = (inner + outer) / 2
    return el("g", el("path", d=f"M{inner:g} {middle:g}C{bend:g} {middle:g} {bend:g} {y:g} {outer:g} {y:g}",
                      stroke_width=f"{thick:.2g}"), class_="edge")  # fmt: skip


def _neighbour(name: str, shared: int, x: float, y: float, *, is_right: bool) -> Element:
    shown, number = remove_hidden(name), f" {shared}"
    text = shortened(shown, NAME - 14 - width(number))
    words = el("text", text, el("tspan", number, class_="name"), x=f"{x:g}", y=f"{y + 4:g}",
               text_anchor="start" if is_right else "end")  # fmt: skip
    return link(f"/entity/{part(name)}", el("title", t("pictures.shared", count=shared, name=shown)), words)
