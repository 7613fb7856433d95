"""Finds secrets in texts: by format, by the name in front of them, or by the structure around them.

A secret is recognised by its context, which the transport may hide: a zero-width space inside a key, a file inside a
JSON string, line numbers of an editor, marks of a diff. So a text is searched in several views without these, each
mapped back to positions of the original.
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from operator import itemgetter, sub
from urllib.parse import unquote

from mcp_memory.core.secrets.assignments import COVER, HINTS, assigned_values, name_at
from mcp_memory.core.secrets.codes import code_words, find_codes
from mcp_memory.core.secrets.key_formats import SHOWN, KeyFormat, find_cards, key_formats
from mcp_memory.core.secrets.nearby import LOGIN_WORDS, login_passwords
from mcp_memory.core.secrets.places import Places
from mcp_memory.core.secrets.prose import stated_value
from mcp_memory.core.secrets.structures import needed_words, structured_values
from mcp_memory.core.secrets.wallets import find_wallet_keys
from mcp_memory.core.substrings import FindPlaces, place_finder

CARD = "card number"
_NAME_HINTS = frozenset(HINTS)
_LONGEST_REPEATED = 50_000
_PART = 4 * 2**20  # characters that are searched at once
_MARGIN = 2**18
_TWO_SMALL = "\u0130"


@dataclass(frozen=True, slots=True)
class Secret:
    """A span of a text to mask, and the kind of secret."""

    start: int
    end: int
    kind: str


def find_secrets(text: str, *, prose: bool = True) -> list[Secret]:
    """Return the secrets of a text in order, without overlaps and without their readable parts (prefixes, last digits).

    Without `prose`, as for tool results, only formats of keys, assignments and structures count.
    """
    secrets: list[Secret] = []
    places: Places = {}
    read = View(text, lambda place: place)
    for view in text_views(text):
        small = lower_in_place(view.text)
        places = hint_places(small) if view.cuts is None else shift_places(places, view.cuts)
        secrets += (view.placed(secret) for secret in _find_in_view(view.text, small, places, prose))
        if view.is_part:
            secrets += (view.placed(secret) for secret in _wallet_secrets(view.text))
        elif view.cuts is None:
            read = view
    return merge_overlaps([*secrets, *(read.placed(secret) for secret in _wallet_secrets(read.text))])


def _wallet_secrets(text: str) -> Iterator[Secret]:
    """Return keys of wallets. Their context does not matter, so only one view of the whole text is searched."""
    return (Secret(start, end, "wallet key") for start, end in find_wallet_keys(text))


def find_in_parts(text: str, *, prose: bool, part: int = _PART, margin: int = _MARGIN) -> list[Secret]:
    """Return the same as `find_secrets`, with memory bounded to some nine times `part`.

    A text longer than `part` characters is searched in parts, each with `margin` characters on both sides, so that
    a secret and the names around it are seen together.
    """
    if len(text) <= part:
        return find_secrets(text, prose=prose)
    secrets: list[Secret] = []
    for start in range(0, len(text), part):
        first = max(0, start - margin)
        first = text.rfind("\n", first, start) + 1 or first  # whole lines, if any
        window = find_secrets(text[first : start + part + margin], prose=prose)
        of_part = (secret for secret in window if start <= first + secret.start < start + part)
        secrets += (Secret(first + secret.start, first + secret.end, secret.kind) for secret in of_part)
    return merge_overlaps(secrets)


def _find_in_view(text: str, small: str, places: Places, prose: bool) -> list[Secret]:
    """Return the secrets of a text as written; `small` is the text in lower case."""
    covered, formed = text, list[Secret]()
    while more := [*_match_key_formats(covered, places), *_find_cards(covered, prose)]:
        formed = merge_overlaps([*formed, *more])
        covered = _cover(text, formed)
        if len(text) > _LONGEST_REPEATED:
            break  # repeated for a key before another key: rare, and slow for long texts
    named = [*_find_named_values(covered, places, prose), *structured_values(covered, small, places)]
    named += find_codes(covered, places, prose=prose)
    if prose:
        named += login_passwords(covered, places)
    secrets = merge_overlaps([*formed, *(Secret(start, end, "named value") for start, end in named)])
    # A number next to a masked number may be a card, though both together were not.
    return merge_overlaps([*secrets, *_find_cards(_cover(text, secrets), prose)]) if named else secrets


@cache
def _find_hints(*, in_ascii: bool) -> FindPlaces:
    """Return a function that finds all hints. A text without a hint has no secrets except card numbers and wallet keys.

    It compares each character with the first letters of all hints. For ASCII texts it has a third fewer of them.
    """
    hints = {hint for form in key_formats() for hint in form.hints}.union(
        HINTS, needed_words(), code_words(), LOGIN_WORDS
    )
    return place_finder(hint for hint in hints if hint.isascii() or not in_ascii)


def hint_places(small: str) -> Places:
    """Return the positions of each hint in a lower-case text, in order."""
    return _find_hints(in_ascii=small.isascii())(small)


def lower_in_place(text: str) -> str:
    """Return the text in lower case with unchanged positions: İ, whose lower case is two characters, is kept."""
    return _TWO_SMALL.join(part.lower() for part in text.split(_TWO_SMALL))


def _match_key_formats(text: str, places: Places) -> Iterator[Secret]:
    forms = _formats_by_hint()
    for _, form, hint in sorted(
        (row for hint_in_text in places for row in forms.get(hint_in_text, ())), key=itemgetter(0)
    ):
        after = 0
        for place in places[hint]:
            if place >= after and (span := form.match(text, place, hint)) is not None:
                yield Secret(*span, form.kind)
                after = span[1] - len(hint) + 1  # a run of a million hints is one key


def _find_cards(text: str, prose: bool) -> Iterator[Secret]:
    return (Secret(start, end - SHOWN, CARD) for start, end in find_cards(text, prose=prose))


@cache
def _formats_by_hint() -> dict[str, list[tuple[int, KeyFormat, str]]]:
    """Return the formats of each hint with their rank: the first format that matches names the kind."""
    grouped: dict[str, list[tuple[int, KeyFormat, str]]] = {}
    for rank, form in enumerate(key_formats()):
        for hint in form.hints:
            grouped.setdefault(hint, []).append((rank, form, hint))
    return grouped


def _find_named_values(covered: str, places: Places, prose: bool) -> Iterator[tuple[int, int]]:
    for hint in _NAME_HINTS.intersection(places):
        first = last = 0
        for place in places[hint]:
            name = None if first <= place < last else name_at(covered, place, hint)
            if name is not None:
                spans = assigned_values(covered, name, prose=prose)
                if not spans and (span := stated_value(covered, name, prose=prose)):
                    spans = [span]
                yield from spans
                if spans:
                    first, last = min(spans)[0], max(end for _, end in spans)


def _cover(text: str, secrets: Iterable[Secret]) -> str:
    """Return a text of the same length with the secrets covered."""
    return replace_spans(text, ((secret.start, secret.end, COVER * (secret.end - secret.start)) for secret in secrets))


def replace_spans(text: str, cuts: Iterable[tuple[int, int, str]]) -> str:
    """Replace spans (start, end, replacement) of a text; they are in order and do not overlap."""
    pieces: list[str] = []
    at = 0
    for start, end, shown in cuts:
        pieces += [text[at:start], shown]
        at = end
    return "".join([*pieces, text[at:]])


def merge_overlaps(secrets: Iterable[Secret]) -> list[Secret]:
    """Return the secrets in order; secrets that overlap or touch are merged."""
    merged: list[Secret] = []
    for secret in sorted(secrets, key=lambda span: (span.start, -span.end)):
        if merged and secret.start <= merged[-1].end:
            merged[-1] = Secret(merged[-1].start, max(secret.end, merged[-1].end), merged[-1].kind)
        else:
            merged.append(secret)
    return merged


@dataclass(frozen=True, slots=True)
class View:
    """A form of the original text in which secrets are searched. `place` maps its positions to those of the original.

    `cuts` are the prefixes of lines of the previous view that this view omits; None if it was made in another way. If
    `is_part`, the view has only the surroundings of references such as `&amp;`.
    """

    text: str
    place: Callable[[int], int]
    cuts: list[tuple[int, int]] | None = None
    is_part: bool = False

    def placed(self, secret: Secret) -> Secret:
        """Return a secret of this view with its position in the original."""
        return Secret(self.place(secret.start), self.place(secret.end - 1) + 1, secret.kind)


_BROKEN = re.compile(  # all first characters first: `re` is quick to find one of a set
    "[\x1b\r\\\\\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
    r"(?:(?<=\x1b)\[[0-9;]{0,12}m|(?<=\r)(?=\n)|(?<=\\)\r?\n[ \t]*|(?<![\x1b\r\\]))"
)
"""Invisible to a reader or a shell: zero-width characters, colours, line continuations."""
_WIDE = {
    wide: wide - 0xFEE0 for wide in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B), 0xFF0D)
}
_IS_WIDE = re.compile("[\uff0d\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
"""Full-width letters, digits and dash."""
_ESCAPE = re.compile(
    r"[\"\\](?:(?<=[:,\[{ ]\")(?=[^\"\\\n]{0,400}\\n)|(?<=\\)(?:[nrt\"/]|u[0-9a-fA-F]{4}|\\(?=[nrt\"u\\])))"
)
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "/": "/", "\\": "\\"}
_REFERENCE = re.compile(r"&(?:quot|apos|amp|lt|gt|equals|colon|num|commat|#\d{2,3}|#x[0-9A-Fa-f]{2});")
_OF_ADDRESS = re.compile(r"%[2-7][0-9A-Fa-f]")
"""Escapes of marks in HTML and URLs."""
_AROUND = 400  # characters around such an escape that are read with it
_DEEPEST_ESCAPES = 2  # levels of JSON inside a JSON string
_BEFORE_LINE = re.compile(
    r"(\n(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[ ]{1,2}"
    r"|[ \t]*+\d{1,7}+[ ]?(?:→|\t|:[ ]?|\|[ ]?|-[ ]?|[ ]{2})"  # of an editor, or `cat -n`
    r"|(?:[A-Za-z]:)?[\w.~/\\-]{1,200}[:-]\d{1,7}[:-](?:\d{1,5}:)?"  # of grep
    r"|[ \t]*+[\w.-]{1,40}+[ ]{0,20}+\|[ ]{1,2}(?:\d{4}-\d\d-\d\dT[\d:.]+Z[ ])?"  # of containers
    r"|[+>-][ ]?|[#;*|][ ]{1,4}(?=\S)|//[ ]?))"
)
_OF_HUNK = re.compile(r"(\n[ +-])")
_FEWEST, _SHARE = 2, 0.6  # lines that begin so
_DENSE = 300  # characters for each escape, at most


def text_views(text: str) -> Iterator[View]:
    """Yield the text as written, then as read by programs and people, if that differs."""
    read = View(text, lambda place: place)
    yield read
    if _may_have_breaks(text):
        read = _apply_cuts(text, [(*match.span(), "") for match in _BROKEN.finditer(text)])
        if not read.text.isascii() and _IS_WIDE.search(read.text):
            read = View(read.text.translate(_WIDE), read.place)
        if read.text != text:
            yield read
    for _ in range(_DEEPEST_ESCAPES):
        if not _is_escaped(read.text):
            break
        read = _compose(read, _unescape_json(read.text))
        yield read
    yield from _strip_line_prefixes(read)
    for sign, written, shown in (("&", _REFERENCE, html.unescape), ("%", _OF_ADDRESS, unquote)):
        cuts = [(*match.span(), shown(match[0])) for match in written.finditer(read.text)] if sign in read.text else []
        if cuts:
            yield replace(_compose(read, _apply_cuts(read.text, _with_gaps(cuts, len(read.text)))), is_part=True)


def _with_gaps(cuts: list[tuple[int, int, str]], length: int) -> list[tuple[int, int, str]]:
    """Return the cuts, and further cuts that leave out the text far from any of them.

    That text was already searched in an earlier view.
    """
    more: list[tuple[int, int, str]] = []
    last = -_AROUND
    for start, end, shown in [*cuts, (length + _AROUND, length, "")]:
        if start - last > 2 * _AROUND + 1:
            more.append((last + _AROUND, start - _AROUND, "\n"))
        if start < length:
            more.append((start, end, shown))
        last = end
    return more


def _is_escaped(text: str) -> bool:
    """Return whether a text is, or contains, a file in a JSON string; code has only a few escapes."""
    least = 1 if text.lstrip()[:1] in ("{", "[", '"') else max(1, len(text) / _DENSE)
    return text.count("\\") >= least and sum(map(text.count, ("\\n", '\\"', "\\u"))) >= least


def _may_have_breaks(text: str) -> bool:
    return not text.isascii() or any(mark[0] in text and mark in text for mark in ("\\\n", "\r\n", "\x1b["))


def _strip_line_prefixes(view: View) -> Iterator[View]:
    text = view.text
    lines = text.count("\n") + 1
    if lines < _FEWEST:
        return
    lined = "\n" + text  # so that each line has a break before it, which `re` is quick to find
    begins = _OF_HUNK if "\n@@ " in lined else _BEFORE_LINE
    pieces = begins.split(lined)  # between them, the prefixes
    ends = [*accumulate(map(len, pieces))]
    prefixes = [(start, end - 1) for start, end in zip(ends[::2], ends[1::2], strict=False)]
    if prefixes and (begins is _OF_HUNK or len(prefixes) >= max(_FEWEST, _SHARE * lines)):
        place = _map_back((end for _, end in prefixes), (end - start for start, end in prefixes))
        yield replace(_compose(view, View("\n".join(pieces[::2])[1:], place)), cuts=prefixes)


def shift_places(places: Places, cuts: Sequence[tuple[int, int]]) -> Places:
    """Return the positions of hints in a text after the cuts. Cuts create no hints, since no hint spans lines."""
    ends = [end for _, end in cuts]
    lost = [0, *accumulate(end - start for start, end in cuts)]
    moved_places: dict[str, list[int]] = {}
    for hint, stood in places.items():
        for place in stood:
            before = bisect_right(ends, place)
            if before == len(cuts) or cuts[before][0] >= place + len(hint):
                moved_places.setdefault(hint, []).append(place - lost[before])
    return moved_places


def _unescape_json(text: str) -> View:
    cuts: list[tuple[int, int, str]] = []
    for escape in _ESCAPE.finditer(text):
        mark = escape[0][1:2]  # empty at the beginning of a multi-line string, whose first line is a line
        shown = (_SIMPLE.get(mark) or json.loads(f'"{escape[0]}"')) if mark else "\n"
        cuts.append((*escape.span(), shown))
    return _apply_cuts(text, cuts)


def _compose(outer: View, inner: View) -> View:
    return View(inner.text, lambda place: outer.place(inner.place(place)))


def _apply_cuts(text: str, cuts: list[tuple[int, int, str]]) -> View:
    """Return a view of a text with each cut (from, to, at most one replacement character) applied."""
    lost = (end - start - len(shown) for start, end, shown in cuts)
    return View(replace_spans(text, cuts), _map_back((end for _, end, _ in cuts), lost))


def _map_back(ends: Iterable[int], lengths: Iterable[int]) -> Callable[[int], int]:
    """Return a function that maps positions behind cuts of these ends and lengths to those before the cuts."""
    lost = [0, *accumulate(lengths)]
    starts = [0, *map(sub, ends, lost[1:])]
    return lambda place: place + lost[bisect_right(starts, place) - 1]
