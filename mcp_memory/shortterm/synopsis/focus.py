"""What the call was looking for: words of its arguments and of the talk before it, and how rare they are here.

Words of the arguments count three times those of the talk, and a word that stands on many lines of the result
counts less: it tells nothing apart. Matching ignores case and works inside longer names.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import log2
from typing import Any, cast

from mcp_memory.shortterm.synopsis.gist import terms_in
from mcp_memory.shortterm.synopsis.page import Line

__all__ = ["Focus", "focus_on", "words_of_call"]

WORD = re.compile(r"[^\W\d]\w{2,60}|\d{3,}")
PATH = re.compile(r"(?:[\w.~*-]{0,80}/)+[\w.~*-]{0,120}")
KEPT_WORDS = 60
CALL_CHARS = 4_000
TALK_CHARS = 6_000

COMMON = frozenset(
    "the and for with that this from are was were has have had not but you your our its into out all any can will"
    " would should could let now then than them they there here what which when where who how why see use using used"
    " also just like need want make made get got one two new old first last next more most some such only other"
    " look looking check find found file files code line lines show run running test tests add let's i'll we'll"
    " grep head tail cat sed awk find echo python python3 bash xargs sort uniq node npm pip git type name path include"
    " null true false none dev tmp usr bin testbed home work src command query description pattern import print def"
    " class return self args kwargs str int EOF".lower().split()
)


@dataclass(frozen=True, slots=True)
class Focus:
    """Weights of words on one page; `call` is the arguments as plain text."""

    call: str
    weights: dict[str, float]
    pattern: re.Pattern[str] | None
    known: frozenset[str] = frozenset()
    """Words of the call and the talk, in lower case: the reader has them already."""

    def of(self, text: str) -> float:
        """How much a piece of text has to do with what was asked; 0 for nothing."""
        if self.pattern is None:
            return 0.0
        return sum(self.weights.get(word, 0.0) for word in {m.lower() for m in self.pattern.findall(text)})

    def best(self, texts: Iterable[str], limit: int) -> list[str]:
        """The texts nearest to what was asked, in their own order; the first ones where nothing tells them apart."""
        items = list(texts)
        ranked = sorted(range(len(items)), key=lambda i: (-self.of(items[i]), i))[:limit]
        return [items[i] for i in sorted(ranked)]


def focus_on(lines: Iterable[Line], *, arguments: object, talk: str) -> Focus:
    """Weigh the words of the call and of the end of the talk against the lines that they are to be found in."""
    call = words_of_call(arguments)
    wanted: dict[str, float] = {}
    where = " ".join(PATH.findall(call))  # where it looked says less than what it looked for
    for text, weight in ((where, 0.5), (talk[-TALK_CHARS:], 1.0), (PATH.sub(" ", call), 3.0)):
        for word in WORD.findall(text):
            if (low := word.lower()) not in COMMON:
                wanted[low] = max(weight, wanted.pop(low, 0.0))  # re-inserted: the latest words come last
    kept = dict(sorted(wanted.items(), key=lambda item: item[1])[-KEPT_WORDS:])
    known = frozenset(term.lower() for term in terms_in(f"{call} {talk}"))
    if not kept:
        return Focus(call, {}, None, known)
    pattern = re.compile("|".join(re.escape(w) for w in sorted(kept, key=len, reverse=True)), re.I)
    counts = Counter(m.lower() for line in lines for m in pattern.findall(line.text))
    return Focus(call, {w: weight / log2(2 + counts[w]) for w, weight in kept.items()}, pattern, known)


def words_of_call(arguments: object) -> str:
    """All strings and numbers in the arguments, at any depth, as one text of bounded length."""
    if isinstance(arguments, str):
        try:
            arguments = cast("object", json.loads(arguments[: 4 * CALL_CHARS]))
        except (ValueError, RecursionError):
            pass
    found: list[str] = []
    waiting: list[Any] = [arguments]
    room = CALL_CHARS
    while waiting and room > 0:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(reversed(list(cast("dict[Any, Any]", value).values())))
        elif isinstance(value, (list, tuple)):
            waiting.extend(reversed(cast("list[Any]", value)))
        elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
            found.append(value[:room] if isinstance(value, str) else str(value)[:40])
            room -= len(found[-1]) + 1
    return " ".join(found)
