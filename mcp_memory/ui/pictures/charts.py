"""Charts: bars with their numbers as text, and bars by day. Widths are percentages, so text keeps its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from mcp_memory.ui.components import count
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.words import t

LOOKS = ("first", "second", "third")
"""How the series of a chart by day look, in their order; the style sheet also tells them apart without colour."""

HEIGHT = 120
"""Of the place for bars in a chart by day, in pixels."""


def bars(values: Sequence[tuple[str, float]], *, label: str, unit: str = "") -> Element:
    """Return a bar for each value, the largest as wide as there is room, with its number beside it."""
    most = max((abs(value) for _, value in values), default=0.0)
    return _bars([(name, value, f"{_number(value)}{unit and f' {unit}'}") for name, value in values], most, label)


def signals(found_by: Mapping[str, float | None], *, most: float | None = None) -> Element:
    """Return a bar for each signal of a hit, the strongest first; `most` is the value of a whole bar.

    A signal without a value is named all the same: it found the row, and says nothing about how well.
    """
    ordered = sorted(found_by.items(), key=lambda found: -(found[1] or 0.0))
    given = [(name, value or 0.0, "–" if value is None else f"{value:.3f}") for name, value in ordered]
    highest = most or max((value for _, value, _ in given), default=0.0)
    return _bars(given, highest, t("pictures.signals"))


def _bars(given: Sequence[tuple[str, float, str]], most: float, label: str) -> Element:
    def bar(value: float) -> Element:
        width = f"{min(100.0, 100 * abs(value) / most) if most else 0:.4g}%"
        looks = "bar" if value >= 0 else "bar second"
        return el("svg", el("rect", width="100%", height="100%", rx=2, class_="groove"),
                  el("rect", width=width, height="100%", rx=2, class_=looks), width="100%", height=10,
                  aria_hidden="true")  # fmt: skip

    lines = (
        el("li", el("span", name, dir="auto"), bar(value), el("span", text, class_="number"))
        for name, value, text in given
    )
    return el("ul", lines, class_="bars", aria_label=label)


def _number(value: float) -> str:
    return count(value, digits=0 if value == int(value) else 2)


# --- by day -----------------------------------------------------------------------------------------


def days(series: Sequence[tuple[date, Mapping[str, float]]], *, label: str) -> Element:
    """Return a bar for each value of each day, beside each other, under a legend; values below 0 hang down.

    Days are in the given order, the oldest on the left. Each day has a tooltip with its values.
    """
    names = list(dict.fromkeys(name for _, values in series for name in values))
    all_values = [value for _, values in series for value in values.values()]
    top, bottom = max([0.0, *all_values]), min([0.0, *all_values])
    scale = HEIGHT / max(top - bottom, 1e-9)
    zero = 16 + top * scale
    drawn = (_day(at, day, values, names, 100 / len(series), zero, scale) for at, (day, values) in enumerate(series))
    chart = el(
        "svg",
        el("title", label),
        el("line", x1=0, x2="100%", y1=f"{zero:.4g}", y2=f"{zero:.4g}", class_="grid"),
        el("text", _number(top), x=0, y=11) if top else None,
        drawn,
        _ends(series),
        width="100%",
        height=HEIGHT + 38,
        role="img",
        aria_label=_told(series, names, label),
    )
    return el("figure", _legend(names) if len(names) > 1 else None, chart, class_="days")


def _day(at: int, day: date, values: Mapping[str, float], names: Sequence[str], width: float, zero: float, scale: float
         ) -> Element:  # fmt: skip
    said = "; ".join(f"{name}: {_number(values[name])}" for name in names if name in values)
    each = width * 0.8 / len(names) if names else 0.0
    drawn: list[Element] = []
    for place, name in enumerate(names):
        if height := abs(values.get(name, 0.0)) * scale:
            height = max(1.0, height)
            top = zero - height if values[name] > 0 else zero
            left = f"{at * width + width * 0.1 + place * each:.4g}%"
            drawn.append(el("rect", x=left, y=f"{top:.4g}", width=f"{each:.4g}%", height=f"{height:.4g}",
                            class_=f"bar {LOOKS[place % len(LOOKS)]}"))  # fmt: skip
    return el("g", el("title", f"{day:%Y-%m-%d}: {said}"), drawn)


def _ends(series: Sequence[tuple[date, Mapping[str, float]]]) -> list[Element]:
    """The first and the last day, under the bars."""
    if not series:
        return []
    low = HEIGHT + 34
    first = el("text", f"{series[0][0]:%Y-%m-%d}", x=0, y=low)
    if len(series) == 1:
        return [first]
    return [first, el("text", f"{series[-1][0]:%Y-%m-%d}", x="100%", y=low, text_anchor="end")]


def _legend(names: Sequence[str]) -> Element:
    def swatch(place: int) -> Element:
        looks = f"bar {LOOKS[place % len(LOOKS)]}"
        return el("svg", el("rect", x=1, y=1, width=10, height=10, class_=looks), width=12, height=12,
                  aria_hidden="true")  # fmt: skip

    return el("figcaption", (el("span", swatch(place), " ", name) for place, name in enumerate(names)), class_="line")


def _told(series: Sequence[tuple[date, Mapping[str, float]]], names: Sequence[str], label: str) -> str:
    """The chart in words: what each series comes to."""
    sums = (f"{name}: {_number(sum(values.get(name, 0.0) for _, values in series))}" for name in names)
    return f"{label}. {'; '.join(sums)}" if names else label
