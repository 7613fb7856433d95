"""Finds secrets in texts, bytes and JSON values, and masks them: by format, by the name in front, or by the structure.

    key_formats    keys and tokens whose format their makers publish; card numbers, by issuer and checksum
    assignments    `DB_PASSWORD=…`, `"api_key": "…"`      structures   tables, `.netrc`, Kubernetes …
    prose          statements: "my password is …"         codes        of doors, alarms, phones and cards
    nearby         random tokens near a password's name
    wallets        seed phrases, private keys             values       random and chosen values, words, placeholders

Masking comes before anything is stored, indexed, logged, shown or sent to a model, and cannot be undone. So it has
two levels. A message is also read as prose. A tool result is evidence: there a secret is masked only where a program
would read it as one, and a value that reads like words of code or talk stays. `python -m bench.secrets` counts how
often both err.

A secret is recognised by its context, which the transport may hide: a zero-width space inside a key, a file inside a
JSON string, line numbers of an editor, marks of a diff. So a text is searched in several views, each without these,
and each mapped back to places of the original.

In a JSON value each string is masked by its own text and by the text of the whole value. The structure stays the
same: only characters of strings and names are replaced, and a long number becomes a string where it is masked.
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from itertools import accumulate, islice, takewhile
from operator import itemgetter
from typing import Any, cast
from urllib.parse import unquote

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.private import without_private
from mcp_memory.core.secrets.assignments import COVER, HINTS, assigned_values, name_at
from mcp_memory.core.secrets.codes import code_words, find_codes
from mcp_memory.core.secrets.key_formats import SHOWN, KeyFormat, find_cards, key_formats
from mcp_memory.core.secrets.nearby import login_passwords
from mcp_memory.core.secrets.prose import stated_value, states_password
from mcp_memory.core.secrets.structures import Places, needed_words, structured_values
from mcp_memory.core.secrets.wallets import find_wallet_keys

MASK = "•••"
_CARD = "card number"
_BYTES = "latin-1"
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_UNMARKED = ("utf-16-le", "utf-16-be")
_LONGEST_REPEATED = 50_000
_PART = 4 * 2**20  # characters that are searched at once
_MARGIN = 2**18
_TWO_SMALL = "\u0130"

_BODY = re.compile(r"(?m)^[ \t\"']*[A-Za-z0-9+/]{60,76}={0,2}[\"',]*$")


@dataclass(frozen=True, slots=True)
class Secret:
    """Characters `start` to `end` of a text to mask, and the kind of secret."""

    start: int
    end: int
    kind: str


def find_secrets(text: str, *, prose: bool = True) -> list[Secret]:
    """Return the secrets of a text in order, without overlaps; their readable parts (prefixes, last digits) are not
    included.

    Without `prose`, as for tool results, only formats of keys, assignments and structures count.
    """
    secrets: list[Secret] = []
    places: Places = {}
    read = View(text, lambda place: place)
    for view in text_views(text):
        small = _lower_in_place(view.text)
        places = hint_places(small) if view.cuts is None else shift_places(places, view.cuts)
        secrets += (view.placed(secret) for secret in _find_in_view(view.text, small, places, prose))
        if view.is_part:
            secrets += (view.placed(secret) for secret in _wallet_secrets(view.text))
        elif view.cuts is None:
            read = view
    return _merge_overlaps([*secrets, *(read.placed(secret) for secret in _wallet_secrets(read.text))])


def _wallet_secrets(text: str) -> Iterator[Secret]:
    """Yield keys of wallets, for which nothing around them matters: so only one view of the whole text is searched."""
    return (Secret(start, end, "wallet key") for start, end in find_wallet_keys(text))


def find_in_parts(text: str, *, prose: bool, part: int = _PART, margin: int = _MARGIN) -> list[Secret]:
    """Return what `find` does, with memory that does not grow with the text: some nine times `part`.

    A text longer than `part` characters is searched part by part, each with `margin` characters on both sides, so that
    a secret and the names around it are seen together.
    """
    if len(text) <= part:
        return find_secrets(text, prose=prose)
    secrets: list[Secret] = []
    for start in range(0, len(text), part):
        first = max(0, start - margin)
        first = text.rfind("\n", first, start) + 1 or first  # a line as a whole, where there are lines
        window = find_secrets(text[first : start + part + margin], prose=prose)
        of_part = (secret for secret in window if start <= first + secret.start < start + part)
        secrets += (Secret(first + secret.start, first + secret.end, secret.kind) for secret in of_part)
    return _merge_overlaps(secrets)


def mask(text: str, *, prose: bool = True) -> str:
    """Return the text with each secret as `•••`; its name, and what kind of key it was, stay readable."""
    return mask_spans(text, find_secrets(text, prose=prose))


def mask_typed(text: str) -> str:
    """Return what may be stored of a text that somebody typed: without private passages, with its secrets masked.

    This is for all texts beside messages (`longterm.turns.admit` handles those): reasons, goals, steps, summaries.
    """
    return mask(without_private(text))


def mask_name(name: str) -> str:
    """Return a name, path or id of another program as it may be stored: with the key masked that it holds, if any."""
    return mask(name) if holds_key(name) else name


def require_no_key(name: str, what: str) -> None:
    """Raise InvalidInput if a name that somebody gives to `what` looks as if it held a key."""
    if holds_key(name):
        raise InvalidInput(f"The name of the {what} looks as if a key or password stood in it. Give it another.")


def mask_result(data: bytes) -> tuple[bytes, list[Secret]]:
    """Return a tool result with its secrets masked, and the places of the masks, in bytes.

    It is evidence, so prose about passwords stays. Bytes that are no text in any encoding are returned unchanged.
    """
    secrets = [secret for encoding in _encodings(data) for secret in _secrets_of_encoding(data, *encoding)]
    pieces: list[bytes] = []
    places: list[Secret] = []
    at = length = 0
    for secret, hidden in sorted(secrets, key=lambda each: (each[0].start, -each[0].end)):
        if secret.start < at:
            continue  # found in another reading, too
        pieces += [data[at : secret.start], hidden]
        length += secret.start - at + len(hidden)
        places.append(Secret(length - len(hidden), length, secret.kind))
        at = secret.end
    return (b"".join([*pieces, data[at:]]), places) if places else (data, [])


def _secrets_of_encoding(data: bytes, codec: str, errors: str) -> Iterator[tuple[Secret, bytes]]:
    """Yield the secrets of bytes read in an encoding, each with its mask in that encoding."""
    text = data.decode(codec, errors)
    hidden = MASK.encode(codec if codec != _BYTES else "utf-8")
    at = length = 0
    for secret in find_in_parts(text, prose=False):
        start = length + len(text[at : secret.start].encode(codec, errors))
        length = start + len(text[secret.start : secret.end].encode(codec, errors))
        at = secret.end
        yield Secret(start, length, secret.kind), hidden


def _encodings(data: bytes) -> list[tuple[str, str]]:
    """Return (codec, error handler) pairs that decode the bytes and encode them back unchanged; none for binary data.

    ASCII letters of two bytes each are valid UTF-8 too, and other encodings may start with a UTF-16 mark by chance,
    so there may be several. In other encodings the letters of keys are ASCII, so these are read as Latin-1, and as
    UTF-8 with invalid bytes.
    """
    marked = [codec for mark, codec in _MARKS if data.startswith(mark)]
    able = [(codec, "strict") for codec in marked or (_UNMARKED if b"\0" in data else ())]
    wide = [encoding for encoding in able if _round_trips(data, *encoding)]
    if _round_trips(data, "utf-8", "surrogatepass"):
        return [*wide, ("utf-8", "surrogatepass")]
    controls = sum(data.count(bytes([byte])) for byte in range(32) if byte not in b"\t\n\r\x1b\f")
    return [*wide, ("utf-8", "surrogateescape"), (_BYTES, "strict")] if controls * 100 < len(data) else wide


def _round_trips(data: bytes, codec: str, errors: str) -> bool:
    try:
        return data.decode(codec, errors).encode(codec, errors) == data
    except UnicodeError:
        return False


def holds_secret(text: str, *, prose: bool = True) -> bool:
    """Return whether a text has anything that `mask` would take out."""
    return bool(find_secrets(text, prose=prose))


def states_secret(text: str) -> bool:
    """Return whether a statement to be remembered contains a secret, including a password that is a plain word.

    A false alarm costs little here: the statement is refused with the reason, and can be repeated without the value.
    """
    places = hint_places(_lower_in_place(text))
    names = (name_at(text, place, hint) for hint in filter(places.__contains__, HINTS) for place in places[hint])
    return holds_secret(text) or any(name is not None and states_password(text, name) for name in names)


def holds_key(name: str) -> bool:
    """Return whether a name that programs give (of a session, a call, a message) has a key in it.

    Digits are no card number there: they count something.
    """
    return any(secret.kind != _CARD for secret in find_secrets(name))


def mask_id(id: str) -> str:
    """Return an id that programs give, or its digest where it has a key in it: ids that differ stay so."""
    return f"sha256-{sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()}" if holds_key(id) else id


def mask_lines(text: str) -> str:
    """Return part of a text masked, with the same number of lines.

    A private key may have begun before this part. Its lines look like any encoded data, which has no value for
    reading or search, so all such lines are masked.
    """
    text = _BODY.sub(MASK, text)
    return mask_spans(text, find_secrets(text, prose=False), keep_lines=True)


def _find_in_view(text: str, small: str, places: Places, prose: bool) -> list[Secret]:
    """Return the secrets that stand in a text as it is written; `small` is the text in small letters."""
    covered, formed = text, list[Secret]()
    while more := [*_match_key_formats(covered, places), *_find_cards(covered, prose)]:
        formed = _merge_overlaps([*formed, *more])
        covered = _cover(text, formed)
        if len(text) > _LONGEST_REPEATED:
            break  # again, for a key that stood before a key: rare, and long texts take long
    named = [*_find_named_values(covered, places, prose), *structured_values(covered, small, places)]
    named += find_codes(covered, places, prose=prose)
    if prose:
        named += login_passwords(covered, small)
    secrets = _merge_overlaps([*formed, *(Secret(start, end, "named value") for start, end in named)])
    # A number behind one that is masked is a card's where the two together were none.
    return _merge_overlaps([*secrets, *_find_cards(_cover(text, secrets), prose)]) if named else secrets


@cache
def _hints() -> Any:
    """Return all strings without which a text has no secret, to be searched in one pass."""
    import ahocorasick

    strings = {hint for form in key_formats() for hint in form.hints}.union(HINTS, needed_words(), code_words())
    hints = cast("Any", ahocorasick).Automaton()  # it has no types
    for hint in strings:
        hints.add_word(hint, hint)
    hints.make_automaton()
    return hints


def hint_places(small: str) -> Places:
    """Return where each known string that a text in small letters has stands in it, in order."""
    places: dict[str, list[int]] = {}
    for last, hint in _hints().iter(small):
        places.setdefault(hint, []).append(last + 1 - len(hint))
    return places


def _lower_in_place(text: str) -> str:
    """Return the text in small letters, each where it stood: a Turkish capital has two small ones, and is left."""
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
    return (Secret(start, end - SHOWN, _CARD) for start, end in find_cards(text, prose=prose))


@cache
def _formats_by_hint() -> dict[str, list[tuple[int, KeyFormat, str]]]:
    """Return by each hint its forms, with their rank: the first form that fits names the kind."""
    grouped: dict[str, list[tuple[int, KeyFormat, str]]] = {}
    for rank, form in enumerate(key_formats()):
        for hint in form.hints:
            grouped.setdefault(hint, []).append((rank, form, hint))
    return grouped


def _find_named_values(covered: str, places: Places, prose: bool) -> Iterator[tuple[int, int]]:
    for hint in filter(places.__contains__, HINTS):
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
    """Return a text of the same length with something else in the place of the secrets."""
    return _replace_spans(text, ((secret.start, secret.end, COVER * (secret.end - secret.start)) for secret in secrets))


def _replace_spans(text: str, cuts: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with its cuts (start, end, replacement) made; they are in order and do not overlap."""
    pieces: list[str] = []
    at = 0
    for start, end, shown in cuts:
        pieces += [text[at:start], shown]
        at = end
    return "".join([*pieces, text[at:]])


def _merge_overlaps(secrets: Iterable[Secret]) -> list[Secret]:
    """Return the secrets in order; those that overlap or touch are one."""
    merged: list[Secret] = []
    for secret in sorted(secrets, key=lambda one: (one.start, -one.end)):
        if merged and secret.start <= merged[-1].end:
            merged[-1] = Secret(merged[-1].start, max(secret.end, merged[-1].end), merged[-1].kind)
        else:
            merged.append(secret)
    return merged


def mask_spans(text: str, secrets: Iterable[Secret], *, keep_lines: bool = False) -> str:
    """Return a text with each of the secrets as `•••`; those that overlap or touch are one."""

    def shown(secret: Secret) -> str:
        return MASK + "\n" * (text.count("\n", secret.start, secret.end) if keep_lines else 0)

    return _replace_spans(text, ((one.start, one.end, shown(one)) for one in _merge_overlaps(secrets)))


@dataclass(frozen=True, slots=True)
class View:
    """A text, and a function from a place in it to the place in the original.

    `cuts` are the spans of the previous view that this one leaves out, if these are beginnings of lines. `is_part`:
    only the surroundings of marks, such as `&amp;`, are in this view.
    """

    text: str
    place: Callable[[int], int]
    cuts: list[tuple[int, int]] | None = None
    is_part: bool = False

    def placed(self, secret: Secret) -> Secret:
        """Return a secret of this view with its place in the original."""
        return Secret(self.place(secret.start), self.place(secret.end - 1) + 1, secret.kind)


_BROKEN = re.compile(
    "[\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]+"
    r"|\x1b\[[0-9;]{0,12}m|\r(?=\n)|\\\r?\n[ \t]*"
)
"""What a reader, or a shell, leaves out of a text: characters without width, colours, and where a line goes on."""

_WIDE = {
    wide: wide - 0xFEE0 for wide in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B), 0xFF0D)
}
_IS_WIDE = re.compile("[\uff0d\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
"""Letters and digits as wide as a Chinese character, and their dash."""

_ESCAPE = re.compile(r"(?<=[:,\[{ ])\"(?=[^\"\\\n]{0,400}\\n)|\\(?:[nrt\"/]|u[0-9a-fA-F]{4}|\\(?=[nrt\"u\\]))")
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "/": "/", "\\": "\\"}
_REFERENCE = re.compile(r"&(?:quot|apos|amp|lt|gt|equals|colon|num|commat|#\d{2,3}|#x[0-9A-Fa-f]{2});")
_OF_ADDRESS = re.compile(r"%[2-7][0-9A-Fa-f]")
"""How pages and addresses write marks, such as those around a value."""
_AROUND = 400  # characters beside such a mark that are read with it
_DEEPEST_ESCAPES = 2  # of JSON in JSON
_BEFORE_LINE = re.compile(
    r"(?m)^(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[ ]{1,2}"
    r"|[ \t]*\d{1,7}[ ]?(?:→|\t|:[ ]?|\|[ ]?|-[ ]?|[ ]{2})"  # of an editor, or `cat -n`
    r"|(?:[A-Za-z]:)?[\w.~/\\-]{1,200}[:-]\d{1,7}[:-](?:\d{1,5}:)?"  # of grep
    r"|[ \t]*[\w.-]{1,40}[ ]{0,20}\|[ ]{1,2}(?:\d{4}-\d\d-\d\dT[\d:.]+Z[ ])?"  # of containers
    r"|[+>-][ ]?|[#;*|][ ]{1,4}(?=\S)|//[ ]?)"
)
_HUNK, _OF_HUNK = re.compile(r"(?m)^@@ "), re.compile(r"(?m)^[ +-]")
_FEWEST, _SHARE = 2, 0.6  # lines that begin so
_DENSE = 300  # characters for each escape, at most


def text_views(text: str) -> Iterator[View]:
    """Yield the text as it is written, then as it reads, where that differs."""
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
    """Return cuts, and between those that are far apart all text, which the first view has as it is."""
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
    """Return whether a text is, or carries, a file in a JSON string; code has an escape here and there."""
    escapes = text.count("\\n") + text.count('\\"') + text.count("\\u")
    return escapes > 0 and (text.lstrip()[:1] in ("{", "[", '"') or escapes * _DENSE >= len(text))


def _may_have_breaks(text: str) -> bool:
    return not text.isascii() or "\\\n" in text or "\r\n" in text or "\x1b[" in text


def _strip_line_prefixes(view: View) -> Iterator[View]:
    text = view.text
    lines = text.count("\n") + 1
    if lines < _FEWEST:
        return
    begins = _OF_HUNK if _HUNK.search(text) else _BEFORE_LINE
    prefixes = [prefix.span() for prefix in begins.finditer(text)]
    if prefixes and (begins is _OF_HUNK or len(prefixes) >= max(_FEWEST, _SHARE * lines)):
        yield replace(_compose(view, _apply_cuts(text, [(*prefix, "") for prefix in prefixes])), cuts=prefixes)


def shift_places(places: Places, cuts: Sequence[tuple[int, int]]) -> Places:
    """Return where known strings stand after the cuts. None spans lines, so all of them stood somewhere before."""
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
        mark = escape[0][1:2]  # none: a string of several lines begins, and its first line is a line
        shown = (_SIMPLE.get(mark) or json.loads(f'"{escape[0]}"')) if mark else "\n"
        cuts.append((*escape.span(), shown))
    return _apply_cuts(text, cuts)


def _compose(outer: View, inner: View) -> View:
    return View(inner.text, lambda place: outer.place(inner.place(place)))


def _apply_cuts(text: str, cuts: list[tuple[int, int, str]]) -> View:
    """Return a text with each cut (from, to, at most one character in its place) made."""
    if not cuts:
        return View(text, lambda place: place)
    starts, lost = [0], [0]
    for start, end, shown in cuts:
        lost.append(lost[-1] + end - start - len(shown))
        starts.append(end - lost[-1])
    return View(_replace_spans(text, cuts), lambda place: place + lost[bisect_right(starts, place) - 1])


_DEEPEST = 100
_CHARACTER = re.compile(r"\\u[0-9a-f]{4}|\\.|.", re.DOTALL)
"""A character as the text of JSON has it."""


def mask_values(value: Any) -> Any:
    """Return a JSON value with every string, name and long number masked. A member's name counts as context of its
    value.

    In a list an option counts as context of the next string, as in `["--password", "…"]`. Values nested deeper than
    any call needs are dropped.
    """
    strings = _Strings()
    strings.add_value(value, "", _DEEPEST)
    return _replace_strings(value, strings.masked(), _DEEPEST)


def _replace_strings(value: Any, masked: Iterator[str], depth: int) -> Any:
    """Return a value with its strings, names and long numbers replaced by masked ones, in the order of its text."""
    match value:
        case str():
            return next(masked)
        case int() if 10**5 < value < 10**19:
            shown = next(masked)
            return value if shown == str(value) else shown
        case list() | tuple() | dict() if depth == 0:
            return "…"
        case list() | tuple():
            return [_replace_strings(item, masked, depth - 1) for item in cast("Iterable[Any]", value)]
        case dict():
            members = cast("dict[Any, Any]", value).items()
            names = ((next(masked) if isinstance(name, str) else name, item) for name, item in members)
            return {name: _replace_strings(item, masked, depth - 1) for name, item in names}
        case _:
            return value


class _Strings:
    """The strings of a value in the order of its text, which is put together with them."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._found: list[tuple[int, str, str, list[Secret]]] = []

    def add_value(self, value: Any, head: str, depth: int) -> None:
        """Add the text of a value; `head` is its context: the name of the member, or the option before it."""
        match value:
            case str():
                self._add(value, head, find_secrets(value))
            case int() if 10**5 < value < 10**19:
                self._add(str(value), head, [])  # alone, digits count something
            case list() | tuple() | dict() if depth == 0:
                pass
            case list() | tuple():
                before = ""
                self._pieces.append("[")
                for number, item in enumerate(cast("Iterable[Any]", value)):
                    self._pieces.append(", " if number else "")
                    self.add_value(item, f'"{before[-80:]}", "' if before.startswith("-") else head, depth - 1)
                    before = item if isinstance(item, str) else ""
                self._pieces.append("]")
            case dict():
                self._pieces.append("{")
                for number, (name, item) in enumerate(cast("dict[Any, Any]", value).items()):
                    self._pieces.append(", " if number else "")
                    if isinstance(name, str):
                        self._add(name, "", find_secrets(name) if holds_key(name) else [])
                    self._pieces.append(": ")
                    self.add_value(item, f'"{str(name)[-80:]}": "', depth - 1)
                self._pieces.append("}")
            case _:
                self._pieces.append(str(value) if isinstance(value, float | int) else "null")

    def _add(self, text: str, head: str, own: list[Secret]) -> None:
        """Add a string with its context and its own secrets."""
        self._found.append((len(self._pieces) + 1, text, head, own))
        self._pieces += ['"', _escape_json(text), '"']

    def masked(self) -> Iterator[str]:
        """Yield every string masked by its own secrets, its context, and the secrets of the whole text."""
        whole = find_secrets("".join(self._pieces), prose=False)
        ends = [secret.end for secret in whole]
        starts = [0, *accumulate(map(len, self._pieces))]
        for piece, text, head, own in self._found:
            start, end = starts[piece], starts[piece + 1]
            around = takewhile(lambda one, end=end: one.start < end, islice(whole, bisect_right(ends, start), None))
            named = find_secrets(f'{head}{_escape_json(text)}"') if _has_hint(head) else []
            yield mask_spans(
                text, [*own, *_map_to_string(text, around, start), *_map_to_string(text, named, len(head))]
            )


def _has_hint(head: str) -> bool:
    small = head.lower()
    return any(hint in small for hint in HINTS)


def _escape_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _map_to_string(text: str, secrets: Iterable[Secret], start: int) -> Iterator[Secret]:
    """Map secrets of a text that holds a string, escaped, from `start` on, to places in the string: its beginning or
    its end.

    Secrets in the middle are found in the string itself, where its lines are lines and not escapes.
    """
    escaped = _escape_json(text)
    secrets = [secret for secret in secrets if secret.start <= start or secret.end >= start + len(escaped)]
    places = [secret.start() for secret in _CHARACTER.finditer(escaped)] if secrets else []
    for secret in secrets:
        first = max(0, bisect_right(places, secret.start - start) - 1)
        last = bisect_left(places, secret.end - start)
        if first < last:
            yield Secret(first, last, secret.kind)
