"""The layout of recall's dynamic block: which lines fit a budget, in which order, under which headings.

Lines arrive in order of priority. Verbatim turns keep this order, but exchanges stay together: a question precedes its
answer, and a turn its reply, if both are shown. A turn whose value was replaced follows the later turn, so that a
reader never meets the old value first. A turn that a later turn may contradict follows the later turn too, before the
reply to that turn. Short outdated turns share a line below the current turn, oldest last:

    [t99] it's 980 now
      before: [t41 10 April] rent is 940 now ← [t12 3 March] we pay 900 rent

The lines of an overview are sorted by time, oldest first; lines that do not fit are counted.

A date is shown above consecutive turns of the same day, with the year when it changes: `12 March 2026:`, then `10
March:`. A full date on each line, or above each exchange, costs tokens that evidence needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain

from mcp_memory.core.text import day_in_words
from mcp_memory.core.token_counts import TokenCounter
from mcp_memory.longterm.recall.line import BEFORE_THAT, UNSURE, Group, RecallLine
from mcp_memory.longterm.turns import recall_block

FORMER = "  before: "
"""Beginning of a line of replaced values."""

PROMISES = 'The user asked to be told now; do so, then close each: remember("told", supersedes=[its id])'
"""The line above promises."""
HEADINGS: dict[Group, str] = {
    "promise": f"{PROMISES}:",
    "end": "",
    "scene": "",
    "fact": "",
    "overview": "Over time, oldest first:",
    "atom": "",
    "turn": "About this:",
    "output": "",
    "maybe": "Said earlier, may matter here:",
    "rule": "Rules the user stated; follow those that apply:",
    "unsure": "Closest, unsure:",
}
"""The parts of the dynamic block in their order, each with the line above it."""
_VERBATIM: tuple[Group, ...] = ("turn", "maybe", "unsure")
_DATED: tuple[Group, ...] = ("overview", *_VERBATIM)
_LEAST_TOKENS = 30  # no further line is tried with fewer left


def fit(lines: Iterable[RecallLine], counter: TokenCounter, budget: int) -> tuple[str, list[str]]:
    """Return the block of the lines that fit `budget` tokens, and the ids of relevant lines that are left out.

    Lines are read in order of priority, unsure lines only until the budget is nearly used up. Suspicious lines are left
    out. An outdated turn is shown only together with the newer turn.
    """
    taken: list[RecallLine] = []
    shown: set[str | None] = {None}
    left_out: list[RecallLine] = []
    costs: dict[str, int] = {}

    def cost(text: str) -> int:
        if text not in costs:
            costs[text] = counter.count(f"{text}\n")
        return costs[text]

    room = left = budget - counter.count(recall_block("", part="dynamic"))
    for line in _newer_first(lines):
        is_sure = line.group not in UNSURE
        if line.is_suspect:
            left_out += [line] * is_sure
            continue
        if not is_sure and left < _LEAST_TOKENS:
            break
        fits = line.newer in shown and cost(line.former or line.text) <= left
        if fits and (total := sum(map(cost, layout([*taken, line])))) <= room:
            taken.append(line)
            shown.add(line.id)
            left = room - total
        elif is_sure:
            left_out.append(line)
    while taken and not counter.fits(_block(taken, left_out), budget):
        left_out.append(taken.pop())  # lines may count a token more together than apart
    return _block(taken, left_out), list(dict.fromkeys(line.id for line in left_out if line.group != "overview"))


def _newer_first(lines: Iterable[RecallLine]) -> Iterator[RecallLine]:
    """Yield the lines in their order, but each outdated turn after the newer turn.

    Outdated turns whose newer turn is not among the lines come last.
    """
    seen: set[str | None] = {None}
    waiting: dict[str | None, list[RecallLine]] = {}
    for line in lines:
        if line.newer not in seen:
            waiting.setdefault(line.newer, []).append(line)
            continue
        ready = [line]
        for each in ready:
            seen.add(each.id)
            yield each
            ready += waiting.pop(each.id, [])
    yield from chain.from_iterable(waiting.values())


def _block(lines: Sequence[RecallLine], left_out: Sequence[RecallLine]) -> str:
    more = sum(line.group == "overview" for line in left_out)
    return recall_block("\n".join(layout(lines, more=more)), part="dynamic") if lines else ""


def layout(lines: Sequence[RecallLine], *, more: int = 0) -> Iterator[str]:
    """Yield the texts of the lines, part by part, with headings and dates.

    `more` is the number of omitted overview lines.
    """
    verbatim = _by_exchange([line for line in lines if line.group in _VERBATIM])
    former = _former_values(verbatim.values())
    in_line = {line.id for some in former.values() for line in some}
    last: date | None = None
    for group, heading in HEADINGS.items():
        part = [line for line in lines if line.group == group]
        if group in _VERBATIM:
            part = [line for line in verbatim.get(group, []) if line.id not in in_line]
        if group == "overview":
            part.sort(key=_time)
        if part and heading:
            yield heading
        is_first = True
        for line in part:
            day = line.said_at.date() if group in _DATED and line.said_at else None
            if day and (is_first or day != last):
                yield f"{day_in_words(day, after=last)}:"
                last, is_first = day, False
            yield line.text
            if group in _VERBATIM and line.id in former:
                yield f"{FORMER}{BEFORE_THAT.join(older.former for older in former[line.id])}"
        if group == "overview" and part and more:
            yield f"{more} more about this were left out."


def _time(line: RecallLine) -> tuple[float, int]:
    """Return when a line was said, and its position in its session, since turns recorded together have one time."""
    return line.said_at.timestamp() if line.said_at else 0.0, line.position


# --- the order of turns -----------------------------------------------------------------------------


def _by_exchange(lines: Sequence[RecallLine]) -> dict[Group, list[RecallLine]]:
    """Return the turns of each part, best exchange first; an exchange is in the part of its best turn."""
    by_id = {line.id: line for line in lines}
    current = {(line.session, line.position): line for line in lines if line.newer not in by_id}
    outdated: dict[str, list[RecallLine]] = {}
    contradicted: dict[str, list[RecallLine]] = {}
    for line in lines:
        if line.newer in by_id:
            outdated.setdefault(line.newer, []).append(line)
        elif line.beside in by_id:
            contradicted.setdefault(line.beside, []).append(line)
    parts: dict[Group, list[RecallLine]] = {}
    placed: set[str] = set()

    def place(turns: Iterable[RecallLine]) -> Iterator[RecallLine]:
        """Yield the turns that are not placed yet, each followed by those that it may contradict."""
        for turn in turns:
            if turn.id not in placed:
                placed.add(turn.id)
                yield turn
                yield from place(contradicted.get(turn.id, []))

    for line in sorted(lines, key=lambda line: _VERBATIM.index(line.group)):
        if line.id in placed:
            continue
        newest = line  # the turn with the current value, or the latest turn that may contradict it
        while (newer := by_id.get(newest.newer or "") or by_id.get(newest.beside or "")) is not None:
            newest = newer
        exchange = list(place(_exchange(newest, current)))
        for turn in exchange:  # grows meanwhile: an outdated turn may have replaced an older one
            for old in outdated.get(turn.id, []):
                reply = current.get((old.session, old.position + 1))
                exchange += place([old, reply] if reply and reply.source == "assistant" else [old])
        parts.setdefault(line.group, []).extend(exchange)
    return parts


def _former_values(parts: Iterable[Sequence[RecallLine]]) -> dict[str, list[RecallLine]]:
    """Return the outdated turns that share a line, latest first, by the id of the turn above that line.

    A turn whose reply is shown has a separate line: a mere reply "Noted, 900" would read like the current value.
    """
    lines = list(chain.from_iterable(parts))
    replies = {(line.session, line.position) for line in lines if line.source == "assistant"}
    above: dict[str | None, str] = {}
    former: dict[str, list[RecallLine]] = {}
    for line in lines:  # a newer turn comes before the older
        is_alone = bool(line.former) and (line.session, line.position + 1) not in replies
        above[line.id] = above[line.newer] if is_alone and line.newer in above else line.id
        if above[line.id] != line.id:
            former.setdefault(above[line.id], []).append(line)
    return {id: sorted(some, key=_time, reverse=True) for id, some in former.items()}


def _exchange(line: RecallLine, current: Mapping[tuple[str, int], RecallLine]) -> list[RecallLine]:
    """Return a turn with the turn before it that it replies to, or else with the reply after it, if these are shown."""
    before, after = (current.get((line.session, line.position + step)) for step in (-1, 1))
    if before and (line.source == "assistant" or before.text.endswith(("?", "？", "؟"))):
        return [before, line]
    return [line, after] if after and line.source != "assistant" else [line]
