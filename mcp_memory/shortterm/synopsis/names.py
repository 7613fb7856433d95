"""Names worth keeping: paths, identifiers and numbers that an agent may need and the preview would drop.

Rare over common, defined over used, near to what was asked over far. At most `SEEN_NAMES` different names are read.
"""

from __future__ import annotations

import re
from collections import Counter

from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.page import Page

__all__ = ["telling_names"]

SEEN_NAMES = 20_000
NAME = re.compile(
    r"(?:[.~]*/|(?:[\w.@-]+/){2})[\w.@+/-]*\w|[\w.@-]+/[\w.@-]+\.\w{1,6}\b"  # a path, or that of an address
    r"|\w+(?:\.\w+)+"  # dotted
    r"|[^\W\d]\w*_\w+|_\w{3,}"  # with an underscore
    r"|[^\W\d_]+[a-z][A-Z]\w*|[A-Z][a-z]+[A-Z]\w*"  # with a hump
    r"|[A-Z]{2,}\w*\d\w*|\d+(?:[.,:-]\d+)*"  # codes and numbers
)
DEFINED = re.compile(r"\b(?:def|class|function|func|fn|interface|struct|enum|type|const)\s+$")
DIGITS = re.compile(r"\d+")
LONGEST = 120
ALIKE = 2
"""Names that differ in their numbers only, such as test_1, test_2: so many are shown."""
MANY = 40
"""Of more numbers than that only those near to what was asked are names."""


def telling_names(page: Page, focus: Focus, *, shown: str, room: int) -> str:
    """One line `also names: …` of at most `room` characters, or nothing."""
    counts: Counter[str] = Counter()
    weights: dict[str, float] = {}
    for line in page.lines:
        near = focus.of(line.text)
        for found in NAME.finditer(line.text):
            name = found[0].lstrip("-,").rstrip("./-,")
            if not 3 <= len(name) <= LONGEST or name.startswith("__") or len(counts) >= SEEN_NAMES:
                continue
            counts[name] += 1
            defined = 2.0 if DEFINED.search(line.text, max(0, found.start() - 12), found.start()) else 0.0
            weights[name] = max(weights.get(name, 0.0), min(near, 4.0) + defined)
    numbers = sum(1 for name in counts if name[0].isdigit())
    chosen: list[str] = []
    alike: Counter[str] = Counter()
    room -= len("also names: ")
    for name in sorted(weights, key=lambda n: (-_worth(n, weights[n], counts[n]), n)):
        stem = DIGITS.sub("#", name)
        if name in shown or alike[stem] >= ALIKE or (numbers > MANY and name[0].isdigit() and weights[name] == 0):
            continue
        if len(name) + 2 > room or _worth(name, weights[name], counts[name]) < -5:
            break
        alike[stem] += 1 if stem != "#" else 0
        chosen.append(name)
        room -= len(name) + 2
    return f"also names: {', '.join(chosen)}" if chosen else ""


def _worth(name: str, weight: float, count: int) -> float:
    """Per name, not per character: a long path is worth its place when the call was about it."""
    rare = 1.0 / count
    if name[0].isdigit():
        rare = -0.5 if re.search(r"\d{3}", name) else -9.0
    return weight + rare + (0.5 if "/" in name or "_" in name else 0.0) - len(name) / 80
