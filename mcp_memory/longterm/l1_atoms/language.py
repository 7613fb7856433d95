"""Whether a reply is in the language of the conversation: told by its script, then by its words, and only when sure."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

from mcp_memory.language.words import languages_of

__all__ = ["in_a_strange_language"]

_TELLING_WORDS = 12
_A_TRACE = 0.02  # of the letters; less of a script is names and quotes


def in_a_strange_language(texts: Sequence[str], turns: Sequence[str]) -> bool:
    """Tell whether most of the texts is in a script, or all in a language, that no turn has."""
    script, spoken = _scripts(texts), _scripts(turns)
    if script and spoken[script.most_common(1)[0][0]] < _A_TRACE * spoken.total():
        return True
    words = " ".join(texts).split()
    languages = set(languages_of(words)) if len(words) >= _TELLING_WORDS else set[str]()
    heard = {language for turn in turns for language in languages_of(turn.split())}
    return bool(languages and heard) and languages.isdisjoint(heard)


def _scripts(texts: Sequence[str]) -> Counter[str]:
    """Return how many letters of each script texts have; Chinese and Japanese share theirs."""
    letters = (character for text in texts for character in text if character.isalpha())
    names = (unicodedata.name(letter, "").partition(" ")[0] for letter in letters)
    return Counter("CJK" if name in ("HIRAGANA", "KATAKANA") else name for name in names)
