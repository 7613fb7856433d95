"""Time expressions in ten languages: as filters (`parse_time`), in questions (`spans_in`), and in turns (`annotate`).

    vocabulary   the classes of words, read from one file a language, and a text as tokens of these classes
    intervals    the interval that a phrase denotes
    phrases      the phrases of a turn, and whether its sentence looks back or ahead
    relative     the days that such a phrase means      annotate  adds those dates to a turn
    ahead        the day that a phrase means in an order or a reminder

Phrases are read by dictionary and pattern, never by guessing; no library for dates is used, because such libraries give
a moment instead of an interval. Not supported are moving feasts, other calendars, seasons of the southern hemisphere,
ranges ("from May to July" is two months), and times of the clock within a question.
"""
