"""Tell whether a sentence is negative: it forbids, denies or leaves out, in any of twenty-seven languages.

Two negations that stand apart cancel each other ("never … without"); those that stand together are one ("никогда не",
"ne … jamais"). Verbs that leave out (avoid, stop, skip) count. Verbs that are negated inside a word, as in Turkish and
Czech, are not recognised; of these languages only words are known.
"""

from __future__ import annotations

import re

from mcp_memory.language import pattern_of, words_of
from mcp_memory.language.words import languages_of

_ELSEWHERE = {"nu": {"ro"}, "sin": {"es"}, "mai": {"it", "ro"}, "non": {"it", "fr"}}
"""Words that are negative in these languages and something else in others."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_AFTER_NE = frozenset(["pas", "jamais", "aucun", "aucune", "rien"])
"""Words that are one negation with a French "ne", however far apart: "ne me propose plus jamais"."""
_TOGETHER = 3  # words between negations that are one


_FILE = "mcp_memory.language", "data/negation.txt"


def is_negative(text: str) -> bool:
    """Tell whether a sentence says that something is not so, or is not to be done."""
    negative, apart = words_of(*_FILE, "negative"), words_of(*_FILE, "apart")
    words = [word.replace("’", "'") for word in _WORD.findall(text.lower())]
    count, last = 0, -_TOGETHER - 1
    for at, word in enumerate(words):
        if word == "ne" and not _AFTER_NE.isdisjoint(words[at + 1 :]):
            continue
        if word in negative and (word not in _ELSEWHERE or not _ELSEWHERE[word].isdisjoint(languages_of(words))):
            count += at - last > _TOGETHER or word in apart
            last = at
    return (count + bool(pattern_of(*_FILE, "inside").search(text))) % 2 == 1
