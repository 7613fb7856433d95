"""The literal parts of a query: quoted phrases and identifiers. Rows that contain one verbatim come before all others.

An identifier is a word with a letter before a digit (`SKV2-20261025`), with three digits (`90457`, `10.5.0`), in mixed
case (`getUserName`) or joined by signs (`user_id`, `src/main.py`, `anna@example.com`, `--dry-run`). Times that the
query names are none, since they filter. Case, accents and width are ignored, as is how words of a phrase are separated.

Words and meaning alone rank such rows too low: an identifier counts as one word among others, and the rows nearest in
meaning fill up the page, however far away they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_memory.language.words import fold, normalised, query_terms

VERBATIM = "verbatim"
"""The first reason of a row that contains literals of the query; its value is their share."""

_MOST = 8  # literals of a query; a text with more is a passage, of which no part is searched for alone
_LONGEST = 200  # characters of a literal
_QUOTED = re.compile(
    r"\"([^\"\n]+)\"|“([^”\n]+)”|„([^“”\n]+)[“”]|«([^»\n]+)»|「([^」\n]+)」|『([^』\n]+)』|`([^`\n]+)`"
)
_RUN = re.compile(r"[^\s\"“”„«»「」『』`]+")
_EDGES = ".,;:!?()[]{}<>'’‘*…。、，！？：；（）"
_POSSESSIVE = re.compile(r"['’]s$")
_IDENTIFIER = re.compile(
    r"(?a:"
    r"[^\d]*[A-Za-z][^\W\d]*[-_./:#]?\d.*"  # a letter before a digit
    r"|.*\d\D*\d\D*\d.*"  # three digits
    r"|.*[a-z][A-Z].*"  # mixed case
    r"|.*\w_\w.*|\S+@\w[\w-]*\.\w+|--\w.*"
    r"|.*\w\w\.[A-Za-z]\w+.*"  # a file or a host
    r"|(?:~|\.{1,2})?/\w.*|.*\w[/\\]\w.*[/\\]\w.*|.*\w::\w.*"  # a path or a name with its namespace
    r")"
)


@dataclass(frozen=True, slots=True)
class Literal:
    """A part of a query that is searched for verbatim."""

    text: str
    terms: frozenset[str]
    """Its index terms; a row that contains it has all of them."""
    pattern: re.Pattern[str] = field(repr=False)
    """Matches it in folded text."""
    spelled: re.Pattern[str] = field(repr=False)
    """Matches it in any text, if it is spelled as in the query."""


def literals_in(query: str, times: Sequence[tuple[int, int]] = ()) -> tuple[list[Literal], bool]:
    """Return the literals of a query in order, and whether the query has no other words.

    `times` are the places of the query's times. A passage with many literals counts as having none.
    """
    found: dict[str, Literal] = {}
    rest: list[str] = []
    for match in _QUOTED.finditer(query):
        phrase = next(filter(None, match.groups())).strip()
        if len(phrase) <= _LONGEST and any(map(str.isalnum, phrase)):
            found.setdefault(fold(phrase), _literal(phrase))
        else:
            rest.append(phrase)
    for match in _RUN.finditer(_QUOTED.sub(lambda quoted: " " * len(quoted[0]), query)):
        word = _POSSESSIVE.sub("", match[0].strip(_EDGES))
        is_time = any(start < match.end() and match.start() < end for start, end in times)
        if word and not is_time and len(word) <= _LONGEST and _IDENTIFIER.fullmatch(word):
            found.setdefault(fold(word), _literal(word))
        elif any(map(str.isalnum, match[0])):
            rest.append(match[0])
    if len(found) > _MOST:
        return [], False
    return list(found.values()), bool(found) and not rest


def share_in(text: str, literals: Sequence[Literal]) -> float:
    """Return the share of the literals that a text contains."""
    if not literals:
        return 0.0
    folded = fold(normalised(text))
    return sum(literal.pattern.search(folded) is not None for literal in literals) / len(literals)


def places_in(text: str, literals: Sequence[Literal]) -> list[tuple[int, int]]:
    """Return the start and end of each literal in a text that is spelled as in the query, except for case."""
    return [match.span() for literal in literals for match in literal.spelled.finditer(text)]


def _literal(text: str) -> Literal:
    return Literal(
        text=text,
        terms=frozenset(query_terms(text)),
        pattern=re.compile(_verbatim(fold(normalised(text)))),
        spelled=re.compile(_verbatim(text), re.IGNORECASE),
    )


def _verbatim(text: str) -> str:
    """Return a pattern for a text as whole words, with any white space between them."""
    before, behind = (r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])")
    body = r"\s+".join(map(re.escape, text.split()))
    is_word = [edge.isascii() and edge.isalnum() for edge in (text[0], text[-1])]
    return (before if is_word[0] else "") + body + (behind if is_word[1] else "")
