"""The content words of a question, and rows that only repeat it."""

from __future__ import annotations

import re

from mcp_memory.language.words import base_terms, query_terms

COMMON = 0.1
"""The weight of every word in addition to its rarity."""

_ECHO_ROOM = 80  # characters by which the same question may be longer
_ONE_QUESTION = re.compile(r"[^?？؟。！]+[?？؟]\W*")
_SENTENCE = re.compile(r"[.!:;]\s|\n")


def content_words(text: str) -> list[str]:
    """Return the content words of a text, each in one form."""
    terms, forms = list(dict.fromkeys(query_terms(text))), set(base_terms(text))
    return [term for term in terms if term in forms] or terms


def is_echo(row: str, question: str) -> bool:
    """Return whether a row only repeats a question: the same words, or a question without additional words."""
    if len(row) > 2 * len(question) + _ECHO_ROOM:
        return False
    if base_terms(row) == base_terms(question):
        return True
    stripped = row.strip()
    is_question = _ONE_QUESTION.fullmatch(stripped) is not None and not _SENTENCE.search(stripped)
    return is_question and set(content_words(row)) <= set(content_words(question))
