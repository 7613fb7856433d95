"""Times as people write them, in ten languages: for filters (`parse_time`), inside questions (`spans_in`), and in what
was said (`annotate.with_dates`, imported from its own module).

    vocabulary   the classes of words, and the form of a language's file
    words/       the words of English, German, French, Spanish, Portuguese, Italian, Russian, Chinese, Japanese, Korean
    languages    in which of them a text may speak of a time
    lexing       a text as tokens of these classes
    shapes       which rows of classes are phrases that denote a time
    meaning      which interval a phrase denotes, seen from now
    spans        the phrases inside a text      filters    a text that is one moment or one phrase
    annotate     dates behind the phrases of a turn, which may look ahead:
                 phrases (what is found), cues (past or future), meant (what it means: amounts, weekdays, yearless)

Phrases are read by dictionary and pattern, never by guessing; no library for dates is used, because those give a
moment where an interval is meant. It does not know: moving feasts, other calendars, seasons of the southern
hemisphere, ranges ("from May to July" is two months), times of the clock within a question.
"""

from __future__ import annotations

from mcp_memory.language.when.intervals import Span, parse_time, spans_in

__all__ = ["Span", "parse_time", "spans_in"]
