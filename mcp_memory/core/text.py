"""Pure text functions: file names, encodings, times, cleaning, hidden characters. No I/O, no state.

Hidden characters are those that a model reads and a person does not see. Scripts and emoji need some of them, so their
position matters: joiners belong in Persian words and in families of emoji, tags in three flags, a variation
selector after one character, direction marks around a telephone number.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Literal

from mcp_memory.core.errors import InvalidInput


def with_speaker(content: str, name: str | None) -> str:
    """Return the indexed form of a turn: the speaker and the words."""
    return f"{name}: {content}" if name else content


# --- names ------------------------------------------------------------------------------------------

_RESERVED = {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in "123456789¹²³")}
_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')


def safe_name(name: str, *, what: str) -> str:
    """Return `name` if it can be part of a file name on every system, else raise InvalidInput.

    It is never changed silently: different names stay different. `what` is the kind of name, for the error.
    """
    problem = None
    if not name or name != name.strip():
        problem = "is empty or has white space around it"
    elif len(name.encode("utf-8", "surrogatepass")) > 120:
        problem = "is longer than 120 bytes"
    elif _FORBIDDEN.search(name) or not well_formed(name):
        problem = 'has a path separator, a control character or one of < > : " | ? *'
    elif name.startswith(".") or name.endswith("."):
        problem = "begins or ends with a dot"
    elif name.split(".")[0].casefold() in _RESERVED:
        problem = "is a device name on Windows"
    if problem is None:
        return name
    shown = name if len(name) <= 60 else name[:60] + "…"
    raise InvalidInput(
        f"The {what} {shown!r} {problem}. Use letters, digits, spaces and - _ . + @ , at most 120 bytes."
    )


_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks without a shape: fillers, the grapheme joiner, the empty braille pattern."""


def is_blank(text: str) -> bool:
    """Return whether a text has nothing visible: only white space, control and zero-width characters, fillers."""
    return not any(map(_is_visible, text))


def _is_visible(char: str) -> bool:
    if char in _BLANK or unicodedata.category(char) in ("Cc", "Cf", "Zs", "Zl", "Zp"):
        return False
    return not ("\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef")  # variation selectors


_MAX_MARKS = 30
"""Combining marks in a row, as in the stream-safe text of Unicode (UAX #15); real words have at most four."""
_MARK_RUN = re.compile(rf"(?:[^\w\x00-\x7f]|[\uff9e\uff9f]){{{_MAX_MARKS + 1},}}")
r"""Possibly more than `_MAX_MARKS` marks in a row. All are outside `\w`, except the voiced-sound marks of half-width
kana.
"""


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return the text in a normal form of Unicode, without the marks after the thirtieth in a row.

    `unicodedata.normalize` sorts each row of marks by insertion: 16,000 marks take 2 s.
    """
    return text if text.isascii() else unicodedata.normalize(form, _MARK_RUN.sub(_with_few_marks, text))


def _with_few_marks(run: re.Match[str]) -> str:
    kept: list[str] = []
    row = 0
    for char in run[0]:
        row = row + 1 if unicodedata.combining(char) or char in "\uff9e\uff9f" else 0
        if row <= _MAX_MARKS:
            kept.append(char)
    return "".join(kept)


def well_formed(text: str) -> bool:
    """Return whether the text has no lone surrogate, so that it can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_MARKS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_WRONG = re.compile("[\udc80-\udcff]")
_CONTROLS = tuple(chr(code) for code in range(32) if chr(code) not in "\t\n\r\x1b\f")


def detect_encoding(data: bytes) -> tuple[str, str] | None:
    """Return (codec, error handler) that decode the bytes and encode them back unchanged; None for binary data.

    Text in UTF-8 may contain a few invalid bytes. UTF-16 is detected by its mark.
    """
    for mark, codec in _MARKS:
        if data.startswith(mark):
            try:
                return (codec, "strict") if _has_few_controls(data.decode(codec)) else None
            except UnicodeDecodeError:
                return None
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
        wrong = len(_WRONG.findall(text))
        return ("utf-8", "surrogateescape") if wrong * 10 <= len(text) and _has_few_controls(text) else None
    return "utf-8", "surrogatepass"


def decode_text(data: bytes) -> str | None:
    """Decode bytes for display, with U+FFFD for each invalid byte; None for binary data."""
    encoding = detect_encoding(data)
    if encoding is None:
        return None
    text = data.decode(*encoding).removeprefix("\ufeff" if encoding[0] != "utf-8" else "")
    return _WRONG.sub("\ufffd", text) if encoding[1] == "surrogateescape" else text


def _has_few_controls(text: str) -> bool:
    return sum(map(text.count, _CONTROLS)) * 100 < len(text)


def without_blocks(
    text: str, opening: re.Pattern[str], closing: Callable[[re.Match[str]], str], *, after: str = ""
) -> str:
    """Return the text without its blocks, each from an `opening` to its `closing`.

    `after`, a pattern, is removed if it follows a block. Unclosed blocks stay. Takes linear time, unlike a pattern
    with `.*?` on a text of many openings.
    """
    kept: list[str] = []
    reached = 0
    unclosed = set[str]()
    for start_mark in opening.finditer(text):
        close = closing(start_mark)
        if start_mark.start() < reached or close in unclosed:
            continue
        end = text.find(close, start_mark.end())
        if end < 0:
            unclosed.add(close)
            continue
        kept.append(text[reached : start_mark.start()])
        follows = re.compile(after).match(text, end + len(close))
        reached = follows.end() if follows else end + len(close)
    return "".join([*kept, text[reached:]])


def one_line(text: str, limit: int) -> str:
    """Return the text on one line without control characters, cut to `limit` characters with an ellipsis."""
    begun = text[: limit * 4 + 400]
    if not begun.isprintable():
        begun = "".join(c if c.isprintable() else " " for c in begun)
    clean = " ".join(begun.split())
    return clean if len(clean) <= limit else clean[: limit - 1].rstrip() + "…"


_BULLET = re.compile(r"\s*(?:[-*+•‣▪◦–]\s+(?:\[[ xX]?\]\s+)?)+(?=\S)")


def without_bullet(text: str) -> str:
    """Return a text without a list marker at its start, such as `- ` or `* [ ] `. Numbers stay; they may be dates."""
    bullet = _BULLET.match(text)
    return text[bullet.end() :] if bullet else text


# --- times ------------------------------------------------------------------------------------------


def iso(moment: datetime) -> str:
    """Return ISO-8601 with milliseconds and offset: `2026-04-16T22:19:53.895+08:00`."""
    return moment.isoformat(timespec="milliseconds")


MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def day_in_words(day: date, *, after: date | None = None) -> str:
    """Format a day as `12 March 2026`, or as `12 March` if it follows a day of the same year."""
    year = "" if after and after.year == day.year else f" {day.year:04}"
    return f"{day.day} {MONTHS[day.month - 1]}{year}"


def with_zone(moment: datetime) -> datetime:
    """Return a moment with a time zone, by default that of this machine.

    Raises ValueError for a time outside the range of UTC, such as `9999-12-31T23:59:59-14:00`.
    """
    try:
        moment = moment if moment.tzinfo else moment.astimezone()
        moment.astimezone(UTC)
    except (OverflowError, OSError):
        raise ValueError("it is out of range") from None
    return moment


# --- hidden characters -------------------------------------------------------------------------------

_TAGS = "\U000e0000-\U000e007f"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_WIDTHLESS = "\u200b-\u200d\u2060-\u2064\ufeff\u180e\u034f\u115f\u1160\u3164\uffa0"
_LATIN = "A-Za-z\u00c0-\u024f"

_FLAG = re.compile("(\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{1,6}\U000e007f)")
_SMUGGLED = re.compile(
    f"[{_TAGS}]+|[{_SELECTORS}]{{2,}}|(?<![\u2e80-\U0003ffff])[\U000e0100-\U000e01ef]|[\ufff9-\ufffb]|[{_WIDTHLESS}]{{6,}}"
)
_TURNED = re.compile(rf"[\u202d\u202e][^\u202c\n]{{0,80}}?[{_LATIN}]{{3}}")  # letters in reversed order
_IN_WORDS = re.compile(rf"(?<=[{_LATIN}])[{_WIDTHLESS}]+(?=[{_LATIN}])")
_FEW = 3  # zero-width characters inside words; text pasted from a web page has fewer
_CONCEALED = re.compile(r"\x1b\[(?:\d+;)*8m|\x08{4,}")
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_HIDDEN = re.compile("|".join(f"(?:{each.pattern})" for each in (_SMUGGLED, _DIRECTIONS, _IN_WORDS, _CONCEALED)))
_UNSEEN = re.compile(f"[{_TAGS}{_SELECTORS}{_WIDTHLESS}\u00ad\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# Letters of other alphabets that look like Latin letters, and those letters.
_ALIKE = str.maketrans(
    "абвгекмнорстухіјѕԁһԛԝьѵӏαβγεηικνορτυχωϲϳɡɩ",
    "aбbreкmhopctyxijsdhqwьvlaβyεniкvoptuxwcjgi",
)
_WORD = re.compile(r"\w+")
_OTHER_ALPHABET = re.compile("[\u0370-\u052f]")
_BASIC = re.compile("[A-Za-z]")


def has_hidden_text(text: str) -> bool:
    """Return whether a text contains something that its reader cannot see."""
    if text.isascii():
        return ("\x1b" in text or "\x08" in text) and _CONCEALED.search(text) is not None
    seen = _FLAG.sub("", text) if "\U0001f3f4" in text else text
    if _SMUGGLED.search(seen) or _TURNED.search(seen) or _CONCEALED.search(seen):
        return True
    return sum(1 for _ in _IN_WORDS.finditer(seen)) >= _FEW


def format_bytes(count: int) -> str:
    """Format a number of bytes for people: `199.9 kB`."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} TB"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 turn`, `2,000 turns`, `3 canvases`; `many` is for any other plural."""
    many = many or (f"{one}es" if one.endswith("s") else f"{one}s")
    return f"{count:,} {one if count == 1 else many}"


def remove_hidden(text: str) -> str:
    """Return a text without invisible characters, except those that its script needs."""
    if text.isascii():
        return text
    parts = _FLAG.split(text)  # every second part is a flag
    return "".join(part if place % 2 else _remove_invisible(part) for place, part in enumerate(parts))


def _remove_invisible(text: str) -> str:
    return _IN_WORDS.sub("", _DIRECTIONS.sub("", _SMUGGLED.sub("", text)))


def split_hidden(text: str) -> list[tuple[str, bool]]:
    """Return the pieces of a text in order, each with whether `remove_hidden` removes it, or a terminal conceals it."""
    pieces: list[tuple[str, bool]] = []
    place = 0
    flags = {start for flag in _FLAG.finditer(text) for start in range(*flag.span())}
    for run in _HIDDEN.finditer(text):
        if run.start() not in flags:
            pieces += [(text[place : run.start()], False), (run[0], True)]
            place = run.end()
    return [(piece, is_hidden) for piece, is_hidden in (*pieces, (text[place:], False)) if piece]


def name_hidden(run: str) -> str:
    """Name hidden characters: `U+200B`, `U+200B × 7`, several names, or the letters that tag characters spell."""
    spelled = "".join(chr(ord(char) - 0xE0000) for char in run if 0xE0020 <= ord(char) < 0xE007F)
    if spelled:
        return f"hidden letters: {spelled}"
    counts = Counter(f"U+{ord(char):04X}" for char in run)
    return " ".join(name if many == 1 else f"{name} × {many}" for name, many in counts.items())


def to_plain_letters(text: str) -> str:
    """Return a text as it looks: normal width, nothing invisible, Latin letters for look-alikes of other alphabets."""
    if text.isascii():
        return text
    shown = _UNSEEN.sub("", normalize("NFKC", text))
    return _WORD.sub(_latinize_mixed_word, shown) if _OTHER_ALPHABET.search(shown) else shown


def _latinize_mixed_word(word: re.Match[str]) -> str:
    return _to_latin(word[0]) if _OTHER_ALPHABET.search(word[0]) and _BASIC.search(word[0]) else word[0]


@lru_cache(maxsize=4096)
def _to_latin(word: str) -> str:
    return word.lower().translate(_ALIKE)
