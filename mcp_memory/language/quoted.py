"""Find the words of others in a user's text: quotations, code, mails, what follows "she wrote:" or "translate:".

A mail is recognised by its headers, by a formal salutation, or by a salutation or a colon before a signature; one that
addresses an assistant is the user's. A text to translate, summarise or correct is not the user's, up to the end of its
quotation marks where it has some.

When in doubt the words are the user's: a quotation of four words or fewer is a name or a title, one that they ask to
remember is theirs, and so is a text that is pasted without any sign of it. Text after a mail counts as a part of it,
because nothing marks where a mail ends. Sixteen languages (`data/quoted.txt`); pure text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from mcp_memory.language import pattern_of

FILL = "\u00a4"
"""Replaces each character of others in `own_part`."""

_FEWEST_WORDS = 5  # of a quotation
_SPACE = re.compile(r"\s*")
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_pattern = partial(pattern_of, "mcp_memory.language", "data/quoted.txt")


def own_part(text: str) -> str:
    """Return the text in its length, with `FILL` for each character that is not the author's but for line ends."""
    shown = list(text)
    for start, end in _spans(text):
        for place in range(start, end):
            if shown[place] != "\n":
                shown[place] = FILL
    return "".join(shown)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for found in _pattern("BLOCKS").finditer(text):
        yield found.span()
    for found in _pattern("INLINE").finditer(text):
        if _is_speech(found[0][1:-1]) and not _pattern("TO_KEEP").search(
            text, max(0, found.start() - 80), found.start()
        ):
            yield found.span()
    forwarded = _pattern("TO_THE_END").search(text)
    if forwarded is not None:
        yield forwarded.end() if forwarded[0].rstrip().endswith((":", "：")) else forwarded.start(), len(text)
    mail = _mail(text)
    if mail is not None:
        yield mail, len(text)
    for introduction in _pattern("INTRODUCED").finditer(text):
        start = _SPACE.match(text, introduction.end()).end()  # pyright: ignore[reportOptionalMemberAccess]  # always one
        places = (_pattern(kind).match(text, start) for kind in ("BLOCKS", "INLINE", "SINGLE"))
        ending = next((found.end() for found in places if found), len(text))
        yield start, ending
        if ending == len(text):
            return


def _mail(text: str) -> int | None:
    """Return where a mail without headers begins: at a formal salutation, or at any that a signature follows."""
    signed = max((found.start() for found in _pattern("SIGNATURE").finditer(text)), default=-1)
    for found in _pattern("SALUTATIONS").finditer(text):
        if found["informal"] is None or found.end() <= signed:
            return found.start()
    return None


def _is_speech(words: str) -> bool:
    return len(words.split()) + len(_DENSE.findall(words)) // 2 >= _FEWEST_WORDS
