"""The parts of a promise: its trigger, what to say, and the day from which it may be kept.

"Next time I mention Lisbon, tell me that Bruno owes me 40 euros" has the trigger "Next time I mention Lisbon", which is
about "Lisbon". The parts are cut from the sentence by `words/promises.txt`, in either order; nothing is rephrased. A
trigger is a subject, a task, a situation or a date, or combines a date with any of them ("in May, when I talk of the
roof"). If no trigger can be cut, the whole sentence is the trigger. Whether a sentence is a promise is decided by
`sentence_statements`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache, partial

from mcp_memory.language import pattern_of
from mcp_memory.language.when.ahead import DayAhead, days_ahead

_pattern = partial(pattern_of, "mcp_memory.longterm", "words/promises.txt")
_WORD = re.compile(r"[\w'’]+")
_CLAUSE_END = re.compile(r"[:;：；。！？!?]|(?<=\w\w\w\w)\.(?=\s|$)| [–—-] ")
_SIGN = re.compile(r"[,，:;](?=\s|\D)")
_THAT = re.compile(r"\b(?:that|dass|que|che|att|at|dat|że|že)\b")
_COMMA = re.compile(r"[,，、]")
_SPACED_UNTIL = "\u0e00"  # from Thai on, scripts have no spaces between words
_FEWEST = 2  # words, or characters of a dense script, that a clause has at least


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPromise:
    """The parts of a promise, in its own words.

    `about` is the trigger without its date and without framing words ("next time I mention"); empty if the trigger is a
    date alone. `due` is the first day on which it may be kept, None for any day.
    """

    trigger: str
    say: str
    about: str
    due: date | None = None

    @property
    def is_date(self) -> bool:
        """Whether the trigger is a day alone."""
        return self.due is not None and not self.about


@lru_cache(maxsize=1_024)
def parse_promise(text: str, said_at: datetime) -> ParsedPromise:
    """Split a promise into its trigger and what to say; relative dates count from `said_at`."""
    text = " ".join(text.split())
    days = _days(text, said_at)
    start, end, say = _cut(text, days) or _cut_at_date(text, days) or _cut_before_order(text)
    trigger = [day for day in days if day.start < end and day.end > start]
    due = min((day.day for day in trigger or _outside(text, days, say)), default=None)
    return ParsedPromise(trigger=text[start:end], say=say, about=_about(text, start, end, trigger), due=due)


def asks_for_later(text: str, said_at: datetime) -> bool:
    """Return whether a sentence orders something to be said or done, and gives the occasion or day."""
    text = " ".join(text.split())
    if not (_pattern("ASK").search(text) or _pattern("ASK_LAST").search(text)):
        return False
    days = _days(text, said_at)
    return (_cut(text, days) or _cut_at_date(text, days)) is not None


def _days(text: str, said_at: datetime) -> list[DayAhead]:
    """Return the days that a promise names, in order.

    The text before the order is read on its own too ("on Friday" in "on Friday ping me"), and its days come first.
    """
    ask = _pattern("ASK").search(text)
    before = days_ahead(text[: ask.start()], said_at) if ask else ()
    others = (later for later in days_ahead(text, said_at) if not any(later.start < day.end for day in before))
    return [*before, *others]


def _outside(text: str, days: Sequence[DayAhead], say: str) -> list[DayAhead]:
    """Return the days that are not within what to say: "in May", before it or after it."""
    start = text.find(say) if say else -1
    return [day for day in days if start < 0 or day.end <= start or day.start >= start + len(say)]


# --- trigger and what to say ------------------------------------------------------------------------


def _cut(text: str, days: Sequence[DayAhead]) -> tuple[int, int, str] | None:
    """Return the start and end of the trigger, and what to say.

    Returns None if no word begins or ends a trigger, or if the order follows a day.
    """
    asks = list(_pattern("ASK").finditer(text))
    begins = [
        match
        for match in _pattern("WHEN").finditer(text)
        if not _is_of_order(match, asks) and not any(day.start <= match.start() < day.end for day in days)
    ]
    last = _pattern("WHEN_LAST").search(text)
    if last and any(day.start < last.end() <= day.end for day in days):  # "before Friday"
        last = None
    if last and not (begins and begins[0].start() < last.start() and asks):
        return _cut_by_last_word(text, last)
    if not begins:
        return None
    first = begins[0]
    ask = next((match for match in asks if match.start() >= first.end()), None)
    before = next((match for match in asks if match.end() <= first.start()), None)
    if before is None:
        return _trigger_first(text, first, ask)
    if any(day.end <= before.start() for day in days):
        return None
    return _order_first(text, before, begins)


def _is_of_order(when: re.Match[str], asks: list[re.Match[str]]) -> bool:
    """Return whether a word such as "if" belongs to an order: "ask me if"."""
    return any(ask.start() <= when.start() <= ask.end() + 1 and _is_whether(when[0]) for ask in asks)


def _is_whether(word: str) -> bool:
    return word.lower() in ("if", "ob", "si", "se", "als", "om", "jestli", "que")


def _trigger_first(text: str, when: re.Match[str], ask: re.Match[str] | None) -> tuple[int, int, str]:
    limit = ask.start() if ask else len(text)
    ends, commas = (
        [match for match in sign.finditer(text, when.end(), limit) if _says_enough(text[when.end() : match.start()])]
        for sign in (_CLAUSE_END, _COMMA)
    )
    if ask is None:
        cut = min([*ends, *commas], key=lambda stop: stop.start(), default=None)
        if cut is None:
            return when.start(), len(text), text[: when.start()].strip(" ,")
        return when.start(), cut.start(), _say(text[cut.end() :])
    end = ends[0].start() if ends else _without_tail(text, when.start(), limit)
    say = _say(text[ask.end() :])
    between = text[end:limit].strip(" ,:;–—-") if ends else ""
    return when.start(), end, between if between and len(between) > len(say) else say


def _order_first(text: str, ask: re.Match[str], begins: list[re.Match[str]]) -> tuple[int, int, str]:
    """Cut "remind me to call Ana when I mention her" and "remind me, when I mention Ana, that she called"."""
    begins = [match for match in begins if match.start() >= ask.end()]
    first = begins[0]
    middle = text[ask.end() : first.start()]
    if not _says_enough(_say(middle)):
        end = _end_of_middle(text, first)
        return first.start(), end, _say(text[end:])
    when = begins[-1]
    end = next((match.start() for match in _CLAUSE_END.finditer(text, when.end())), len(text))
    commas = (match.start() for match in _COMMA.finditer(text, when.end(), end))
    comma = next((at for at in commas if _says_enough(text[when.end() : at])), end)
    return when.start(), comma, _say(text[ask.end() : when.start()])


def _end_of_middle(text: str, when: re.Match[str]) -> int:
    """Return where a trigger between the order and what to say ends.

    It ends at a sign, else at a word such as "that", else with the text.
    """
    for sign in (_SIGN, _THAT):
        for match in sign.finditer(text, when.end()):
            if _says_enough(text[when.end() : match.start()]):
                return match.start()
    return len(text)


def _cut_by_last_word(text: str, last: re.Match[str]) -> tuple[int, int, str]:
    start = max((match.end() for match in _CLAUSE_END.finditer(text, 0, last.start())), default=0)
    while start < len(text) and text[start] == " ":
        start += 1
    rest = text[last.end() :]
    ask = _pattern("ASK_LAST").search(rest)
    order = None if ask else _pattern("ASK").search(rest)
    say = rest[: ask.start()] if ask else rest[order.end() :] if order else rest
    return start, last.end(), _say(say) or rest.strip(" ,、")


def _cut_at_date(text: str, days: Sequence[DayAhead]) -> tuple[int, int, str] | None:
    """Cut "on Friday tell me that": the part before the order, else the first date, is the trigger.

    None if no date is named.
    """
    ask = _pattern("ASK").search(text) or _pattern("ASK_LAST").search(text)
    parts = [(0, ask.start()), (ask.end(), len(text))] if ask else [(0, len(text))]
    for start, end in parts:
        day = next((day for day in days if start <= day.start and day.end <= end), None)
        if day is None:
            continue
        if ask is None:
            return day.start, day.end, _say(text[day.end :])
        if start > 0:
            return day.start, day.end, _say_around(text[start : day.start], text[day.end : end])
        if not _says_enough(text[ask.end() :]):  # the order is at the end: "On Friday that I call Ana, tell me"
            return day.start, day.end, _say(text[day.end : ask.start()])
        return day.start, max(day.end, _without_tail(text, day.end, ask.start())), _say(text[ask.end() :])
    return None


def _say_around(before: str, after: str) -> str:
    """Return what to say when a date follows the order: "on Friday to call Ana", "to call Ana on Friday"."""
    lead = _pattern("SAY_LEAD").match(before)
    is_said = _says_enough(_say(before)) and (bool(lead and lead[0].strip(" ,")) or not _says_enough(_say(after)))
    return _say(f"{before.rstrip()} {after.lstrip()}" if is_said else after)


def _cut_before_order(text: str) -> tuple[int, int, str]:
    """Cut "the evening before, remind me to": the text before the order is the trigger, else the whole sentence."""
    ask = _pattern("ASK").search(text)
    if ask and _says_enough(text[: ask.start()]) and _says_enough(text[ask.end() :]):
        return 0, _without_tail(text, 0, ask.start()), _say(text[ask.end() :])
    return 0, len(text), text


def _say(text: str) -> str:
    """Return what to say without the conjunction before it, and without a remark after it."""
    lead = _pattern("SAY_LEAD").match(text)
    say = text[lead.end() if lead else 0 :]
    end = next((match.start() for match in _CLAUSE_END.finditer(say) if _says_enough(say[: match.start()])), len(say))
    say = say[:end]
    comma = next((match.start() for match in _COMMA.finditer(say) if _is_remark(say, match.start())), len(say))
    return say[:comma].strip(" ,，、.。!！?？:;")


def _is_remark(say: str, comma: int) -> bool:
    """Return whether a comma has enough words before it for the rest to be a mere remark."""
    return (not say[comma + 1 : comma + 2].isdigit() and len(_WORD.findall(say[:comma])) >= 4) or (
        say[:1] >= _SPACED_UNTIL and comma >= 4
    )


def _without_tail(text: str, start: int, end: int) -> int:
    tail = _pattern("TRIGGER_TAIL").search(text[start:end])
    return start + tail.start() if tail else end


def _says_enough(text: str) -> bool:
    words = _WORD.findall(text)
    dense = any(word[0] >= _SPACED_UNTIL for word in words)
    return (sum(map(len, words)) if dense else len(words)) >= _FEWEST


# --- topics of triggers -----------------------------------------------------------------------------


def _about(text: str, start: int, end: int, days: Sequence[DayAhead]) -> str:
    """Return a trigger, from `start` to `end`, without its days, from its first to its last content word."""
    trigger = text[start:end]
    for day in reversed(days):
        trigger = f"{trigger[: max(0, day.start - start)]} {trigger[max(0, day.end - start) :]}"
    trigger = " ".join(_pattern("DENSE_FRAME").sub(" ", trigger).split())
    telling = [match for match in _WORD.finditer(trigger) if not _pattern("FRAME").fullmatch(match[0])]
    return trigger[telling[0].start() : telling[-1].end()] if telling else ""
