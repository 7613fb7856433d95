"""The preview of a result within its budget: header, facts, lines by weight, and key words of the lines between.

Lines and key words are in the order of the text: `33 return gate.close() … lock ferry_gate` is line 33 and words of the
lines below it; `40 … words` begins at line 40. In code a run begins with the name that is defined there. Values and
running text have only key words after a place. The budget is in characters and never exceeded; the preview does not
repeat the summary.

Key words: each once, in the order of the text; words of a clause stay together, like a telegram: `help operate machine
speed, changing approach`. Words that the reader already has (in the call, the talk, the preview so far) are omitted,
except defined names. Cheap words are preferred: short words to long paths, running text (comments and docstrings too)
to code, repeated words to single words. At most `SEEN` words are considered.

The room depends on the use of a result. A verdict (tests, traces, logs, diffs, listings) needs a few lines. Code, hits
and values are needed again name by name, so their room grows with them. Running text needs little room.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mcp_memory.language.words import function_words_of
from mcp_memory.shortterm.synopsis.page import (
    Focus,
    PageLine,
    ResultPage,
    clean,
    clip,
    count_of,
    located_terms,
    one_line,
    terms_in,
)

SEEN = 12_000
ALIKE = 3
"""The most names that differ only in numbers (test_1, test_2, …); values are not limited."""
GAP = len("\n … ")
PARTS = re.compile(r"[A-Z]?[a-z]{1,12}|[A-Z]+|\d{1,3}|[^\w\s]+|_+|[^\W\d_a-zA-Z]")
SIGNS = re.compile(r"[(){}\[\]=<>_\"'`;|\\]")
ID = re.compile(r"(?=.*[A-Z])(?=.*\d)[A-Z0-9]{4,10}|[A-Za-z]+(?:[_-][A-Za-z]+)*[_-]\d{3,12}")
DIGITS = re.compile(r"\d+")
WORDS = re.compile(r"[^\W\d_]{2,}")
KEYWORDS = frozenset(
    "None True False null true false elif else return import from class def function const static void public private"
    " protected while except finally raise throw throws catch assert yield async await lambda pass break continue"
    " self this super begin then endif define include using namespace export default switch case type".lower().split()
)
SPOKEN, COUNTED, PLACED = 1.5, 0.4, 0.5
NAMED = 3.0
"""The worth of a defined name relative to other words, because its run is about it."""
REPEATED = (1.0, 1.25, 1.7)
"""The worth of words that running text has once, twice, or more often; repeated words show the subject."""
UNGUESSED = 2.0
"""The worth of an id, which is higher than its tokens suggest because it cannot be paraphrased."""
PHRASE = 6
SKIPPED = 3
"""The most omitted words of a clause between two words of a phrase."""
COMMA = 0.3
"""Tokens of the separator between phrases; less than 1, because long phrases read better."""
STOPS = re.compile(r"[.,;:!?()\[\]|\n—。，<>{}=]")
GOLDEN = 0.618033988749895
"""The fractional parts of its multiples are evenly spread, so equally good words come from all parts of the text."""


@dataclass(slots=True)
class _GistWord:
    """A key word: the number of its piece (`at`), its place among all words, and its worth per token."""

    at: int
    place: int
    worth: float
    spoken: bool
    joined: bool
    """Whether it continues the clause of the previous word."""


def gist(
    pieces: Sequence[PageLine],
    *,
    seen: Iterable[str],
    breaks: Iterable[int],
    span: int,
    room: int,
    numbers: float = COUNTED,
    listed: bool = True,
    defined: Iterable[str] = (),
) -> list[PageLine]:
    """Return runs of key words, each named after its first piece, in at most `room` characters with a `GAP` for each.

    Words in `seen` are omitted. A run ends before a number in `breaks`, or `span` after its first piece. `numbers` is
    the worth of a number relative to a word: low in code, where many are line numbers, equal in data. With `listed`,
    names and values next to a phrase are separated from it like words of running text. Names in `defined` are
    preferred, even if seen.
    """
    words = _words(pieces, {word.lower() for word in seen} - {name.lower() for name in defined}, numbers)
    for term in words.keys() & set(defined):
        words[term].worth *= NAMED
    ranked = sorted(
        _phrases(words), key=lambda phrase: (-_gain(phrase, words, listed), words[phrase[0]].place * GOLDEN % 1)
    )
    ends = sorted(breaks)
    names = {piece.number: _name(piece) for piece in pieces}
    chosen: list[str] = []
    left = room
    for word in (word for phrase in ranked for word in phrase):
        if len(word) < left:
            chosen.append(word)
            left -= len(word) + 1
    least, most, best = 0, len(chosen), list[PageLine]()
    while least < most:  # the most words that fit with the frames of their runs
        some = (least + most + 1) // 2
        runs = _runs(names, {word: words[word] for word in chosen[:some]}, ends, span, listed)
        if sum(len(run.name) + len(run.text) + GAP for run in runs) <= room:
            least, best = some, runs
        else:
            most = some - 1
    return best


def _name(piece: PageLine) -> str:
    return piece.name or str(piece.number)


def _words(pieces: Sequence[PageLine], seen: set[str], numbers: float) -> dict[str, _GistWord]:
    """Return the candidate words in order, each at its first occurrence."""
    plain = function_words_of([word for piece in pieces[:200] for word in WORDS.findall(piece.text)])
    words_by_key: dict[str, _GistWord] = {}
    counts: Counter[str] = Counter()
    alike: Counter[str] = Counter()
    for piece, terms in zip(pieces, located_terms([piece.text for piece in pieces]), strict=True):
        spoken = _is_spoken(piece.text)
        between = "."
        for term, gap in terms:
            between += gap
            low = term.lower()
            if low in seen or low in plain or low in KEYWORDS:
                between += term
                continue
            counts[low] += 1
            stem = DIGITS.sub("#", low)
            if counts[low] == 1 and numbers < 1.0 and not low.isdigit():
                alike[stem] += 1
            if counts[low] > 1 or alike[stem] > ALIKE:
                between += term
                continue
            joined = spoken and not STOPS.search(between) and len(between.split()) <= SKIPPED
            words_by_key[term] = _GistWord(piece.number, len(words_by_key), _worth(term, numbers), spoken, joined)
            between = ""
            if len(words_by_key) >= SEEN:
                break
    for term, word in words_by_key.items():
        if word.spoken:
            word.worth *= SPOKEN * REPEATED[min(counts[term.lower()], len(REPEATED)) - 1]
    return words_by_key


def _phrases(words: dict[str, _GistWord]) -> list[list[str]]:
    phrases: list[list[str]] = []
    for term, word in words.items():
        if word.joined and phrases and len(phrases[-1]) < PHRASE:
            phrases[-1].append(term)
        else:
            phrases.append([term])
    return phrases


def _gain(phrase: list[str], words: dict[str, _GistWord], listed: bool) -> float:
    """Return the worth of a phrase per token, including its comma."""
    costs = [len(PARTS.findall(term)) for term in phrase]
    comma = COMMA if listed or words[phrase[0]].spoken else 0.0
    return sum(words[term].worth * cost for term, cost in zip(phrase, costs, strict=True)) / (sum(costs) + comma)


def _is_spoken(text: str) -> bool:
    """Return whether a text is running text: at least four words and few signs of code."""
    return len(WORDS.findall(text)) >= 4 and 14 * len(SIGNS.findall(text)) <= len(text.strip())


def _worth(term: str, numbers: float) -> float:
    """Return the worth of a term per token, estimated from its parts."""
    parts = len(PARTS.findall(term))
    if ID.fullmatch(term):
        return UNGUESSED / parts
    kind = numbers if term[0].isdigit() else PLACED if "/" in term else 1.0
    return kind / parts


def _runs(
    names: Mapping[int, str], words: dict[str, _GistWord], ends: list[int], span: int, listed: bool
) -> list[PageLine]:
    """Join words to runs; a run ends at the next of `ends`, or `span` after its first piece."""
    runs: list[PageLine] = []
    last = part = -1  # the place of the last word, and the ends around it
    goes_on = {word.place for word in words.values() if word.joined} & {word.place + 1 for word in words.values()}
    for term, word in sorted(words.items(), key=lambda item: item[1].place):
        before, part = part, bisect_right(ends, word.at)
        if runs and part == before and word.at - runs[-1].number < span:
            between_phrases = word.place not in goes_on and (last in goes_on or word.place + 1 in goes_on)
            is_separate = (listed or word.spoken) and between_phrases
            runs[-1] = PageLine(runs[-1].number, f"{runs[-1].text}{',' * is_separate} {term}", runs[-1].name)
        else:
            runs.append(PageLine(word.at, term, names[word.at]))
        last = word.place
    return runs


Use = Literal["report", "names", "data", "text", "nothing"]


@dataclass(frozen=True, slots=True)
class Room:
    """The size of a preview. `least` and `most` are characters, `share` is the part of the result's characters."""

    least: int
    share: float
    most: int
    lines: float
    """The share of quoted lines; the remaining room is for the gist."""
    runs: int
    """The least number of runs in the gist of a long text."""
    numbers: float
    """The worth of a number relative to a word: low if most numbers are line numbers, 1 in data."""

    def of(self, chars: int) -> int:
        """Return the room for a result of `chars` characters."""
        return min(self.most, self.least + int(self.share * chars))


USES: dict[Use, Room] = {
    "report": Room(130, 0.03, 400, lines=0.6, runs=8, numbers=0.4),
    "names": Room(200, 0.14, 1_500, lines=0.1, runs=12, numbers=0.4),
    "data": Room(240, 0.04, 600, lines=0.4, runs=12, numbers=1.0),
    "text": Room(550, 0.06, 1_500, lines=0.0, runs=3, numbers=0.4),
    "nothing": Room(200, 0.0, 400, lines=0.0, runs=1, numbers=0.0),
}


SUMMARY = 200
FEW_LINES = 200
"""Up to this many lines, the header omits their number."""
WHOLE = 400
"""A result this short is shown completely."""
FACTS_SHARE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class SynopsisDraft:
    """A format's description of a result. `picks` maps raw line numbers to the weights of lines worth quoting."""

    kind: str
    content_type: str = "text/plain"
    summary: str
    score: int
    facts: Sequence[str] = ()
    picks: Mapping[int, float] = field(default_factory=dict[int, float])
    form: str = ""
    """The complete result in a shorter form, shown if it fits."""
    use: Use = "report"
    """The use of such a result: a verdict, names to work with, values, the content of a text, or none."""
    edges: bool = False
    """Whether the first and the last lines are the most informative."""
    pieces: Sequence[PageLine] = ()
    """The source of the gist, if not the lines."""
    names: Mapping[int, str] = field(default_factory=dict[int, str])
    """Line number → the name defined there, which begins a run of key words."""
    parts: bool = False
    """Whether pieces are independent (rows, values of keys), so that a run never combines two."""


def preview(draft: SynopsisDraft, page: ResultPage, focus: Focus, *, summary: str, budget: int | None) -> str:
    """Return the preview that goes with a summary, in at most `budget` characters.

    If `budget` is None, the room depends on the use and the size of the result. A result that fits is returned whole.
    """
    if budget is None:
        budget = WHOLE if page.chars <= WHOLE else USES[draft.use].of(page.chars)
    budget = max(0, budget)
    whole = clean(page.raw) if page.chars <= budget else ""
    if whole and len(whole) <= budget:
        return whole
    parts = [clip(_header(draft, page), budget)]
    room = budget - len(parts[0])
    facts_room = int(room * FACTS_SHARE) if draft.use != "nothing" else room
    for fact in draft.facts:
        if fact in summary:
            continue
        shown = clip(clean(fact), facts_room - 1)
        if len(shown) < min(40, len(fact)):
            break
        parts.append(shown)
        facts_room -= len(shown) + 1
    room = budget - len("\n".join(parts)) - 1
    if draft.form and len(draft.form) <= room:
        parts.append(draft.form)
    elif room > 0 and draft.use != "nothing":
        parts.append(
            _body(draft, draft.pieces or _ends(page.lines), focus, summary="\n".join([summary, *parts]), room=room)
        )
    return clip("\n".join(part for part in parts if part), budget)


def _header(draft: SynopsisDraft, page: ResultPage) -> str:
    """Return facts missing from the summary, such as the number of lines, and whether the middle was not read."""
    parts = [count_of(page.total_lines, "line")] if page.total_lines > FEW_LINES else []
    if not page.whole:
        parts.append("head and tail were read, not the middle")
    if page.first_file_line is not None and page.lines and page.first_file_line != page.lines[0].number:
        parts.append(f"line {page.lines[0].number} is {page.first_file_line} of the file")
    return "; ".join(parts)


GIST_LINES, GIST_CHARS = 3_000, 66
"""The most lines, and characters per character of gist (but at least `GIST_LEAST`), from which words are chosen."""
GIST_LEAST = 40_000
LINE_LEAST, LINE_SHOWN = 70, 160
CANDIDATES = 500
"""The most lines considered: in a long log, a few lines have all the words."""
EDGE = 2
WIDE = re.compile(r"(?<=[\w)%]) {3,}(?=\S)")
"""The alignment of a table's columns; two spaces suffice."""
SHORTEST_RUN = 8


def _ends(lines: Sequence[PageLine]) -> Sequence[PageLine]:
    """Return the lines of a page, of a huge page only the first and last."""
    return lines if len(lines) <= GIST_LINES else (*lines[: GIST_LINES * 3 // 4], *lines[-GIST_LINES // 4 :])


def _thinned(pieces: Sequence[PageLine], room: int) -> Sequence[PageLine]:
    """Return the pieces from which words are chosen; of very many, an even sample."""
    return pieces[:: 1 + sum(len(piece.text) for piece in pieces) // max(GIST_LEAST, GIST_CHARS * room)]


def _body(draft: SynopsisDraft, pieces: Sequence[PageLine], focus: Focus, *, summary: str, room: int) -> str:
    """Return lines and key words in at most `room` characters, without words of `summary`."""
    share = USES[draft.use]
    lines = _lines(
        pieces,
        _weights(draft, pieces, focus),
        focus,
        summary=summary,
        room=int(room * share.lines),
        insist=draft.use != "text",
    )
    seen = {*focus.asked_terms, *(term.lower() for term in terms_in(" ".join([summary, *lines.values()])))}
    left = room - sum(len(shown) + 1 for shown in lines.values())
    runs = gist(
        _thinned(pieces, left),
        seen=seen,
        breaks=[*lines, *draft.names],
        span=1 if draft.parts else max(SHORTEST_RUN, len(pieces) // share.runs),
        room=left,
        numbers=share.numbers,
        listed=draft.use == "text",
        defined=draft.names.values(),
    )
    return _interleave(lines, runs, mark="" if draft.use in ("data", "text") else "… ")


def _weights(draft: SynopsisDraft, pieces: Sequence[PageLine], focus: Focus) -> dict[int, float]:
    """Return the weights, by number, of pieces that are picked or match the call; of equal texts only the first."""
    weights: dict[int, float] = {}
    seen: set[str] = set()
    asked_for = [0.0] * len(pieces) if draft.use == "text" else focus.weigh([piece.text for piece in pieces])
    for piece, asked in zip(pieces, asked_for, strict=True):
        weight = draft.picks.get(piece.number, 0.0) + asked
        if weight > 0 and piece.text.strip() and piece.text not in seen:
            weights[piece.number] = weight
            seen.add(piece.text)
    if draft.parts:  # a row is shown complete if the call asks for it
        best = max(weights.values(), default=0.0)
        near = {number: weight for number, weight in weights.items() if weight > 0.5 * best}
        weights = near if len(near) <= 2 < len(pieces) else {}
    if draft.edges:
        filled = [piece.number for piece in pieces if piece.text.strip()]
        for place in range(min(EDGE, len(filled))):
            for weight, number in ((100 - place, filled[place]), (99 - place, filled[-1 - place])):
                weights[number] = weights.get(number, 0) + weight
    return weights


def _lines(
    pieces: Sequence[PageLine], weights: Mapping[int, float], focus: Focus, *, summary: str, room: int, insist: bool
) -> dict[int, str]:
    """Choose pieces that fit and have new words, heaviest first; return their shown texts by number.

    With `insist`, the heaviest piece is chosen even if all its words are known, to show where they are.
    """
    by_number = {piece.number: piece for piece in pieces if piece.number in weights}
    width = min(LINE_SHOWN, max(LINE_LEAST, room // 2))
    seen = {*focus.asked_terms, *(term.lower() for term in terms_in(summary))}
    chosen: dict[int, str] = {}
    heaviest = sorted(by_number, key=lambda number: (-weights[number], number))[:CANDIDATES]
    for rank, number in enumerate(heaviest):
        if rank and room < 12:
            break
        text = by_number[number].text.strip()
        shown = f"{_name(by_number[number])} {_narrow(text, focus, width)}"
        if len(shown) + 1 > room or text in summary:
            continue
        fresh = {term.lower() for term in terms_in(text)} - seen
        if fresh or (insist and rank == 0):
            chosen[number] = shown
            seen |= fresh
            room -= len(shown) + 1
    return chosen


def _interleave(lines: Mapping[int, str], runs: Sequence[PageLine], *, mark: str) -> str:
    joined: list[str] = []
    after_line = False
    shown = [(number, 0, line, "") for number, line in lines.items()]
    for _, _, name, words in sorted([*shown, *((run.number, 1, run.name, run.text) for run in runs)]):
        if words and after_line:
            joined[-1] += f" … {words}"
        else:
            joined.append(f"{name} {mark}{words}" if words else name)
        after_line = not words
    return "\n".join(joined)


def _narrow(text: str, focus: Focus, width: int) -> str:
    """Cut a line to `width` characters around the first word that matches the call."""
    text = WIDE.sub("  ", text.replace("\t", "  "))
    if len(text) <= width:
        return text
    match = focus.pattern.search(text) if focus.pattern else None
    if match is None or match.end() < width:
        return clip(text, width)
    start = max(0, match.start() - width // 3)
    start = max(start, text.find(" ", start, match.start()))  # between words
    return clip("…" + one_line(text[start:]), width)
