"""Time expressions in ten languages: as filters (`parse_time`), inside questions (`spans_in`), and in turns
(`annotate.with_dates`, imported from its own module).

    vocabulary   the classes of words, read from one file a language, and a text as tokens of these classes
    intervals    the interval that a phrase denotes, seen from now; the phrases in a question; filters
    phrases      the phrases of a turn, and whether its sentence looks back or ahead
    relative     the days that such a phrase means      annotate  adds those dates to a turn

Phrases are read by dictionary and pattern, never by guessing; no library for dates is used, because those give a
moment for an interval. Not supported: moving feasts, other calendars, seasons of the southern hemisphere, ranges ("from
May to July" is two months), times of the clock within a question.
"""

from __future__ import annotations

from mcp_memory.language.when.intervals import Span, parse_time, spans_in

__all__ = ["Span", "parse_time", "spans_in"]
