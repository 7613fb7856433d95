"""Signs of prompt injection in a text.

`flags` returns the signs that matter for a text's source. People may tell their own assistant anything, so of the
user's words only hidden characters and closing tags count. Callers interpret the flags; nothing is refused or
changed here. False statements without unusual wording pass: `longterm.verification.trust` checks the source instead.

`defused` protects the tag around recalled text: it removes the dashes from everything that reads like the name of the
tag, in any letters, widths or escapes, so nothing can close the block. It also replaces the bracket of marks by which
models separate speakers and tools.

A line is judged by its message too, without what stands in front of it (`messages_of`).

`readings` removes the disguise of a text. Base64, hexadecimal digits, escapes and entities are decoded if the result is
readable text. Spaced letters are joined, digits within words are read as letters, words on separate lines are joined to
a sentence, identifiers of five or more words that are not code are split, and marks within words are removed. Reversed
text and ROT13 are tried where the words of an order would result. Nested disguises are not decoded.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from itertools import islice, pairwise
from typing import Literal
from urllib.parse import unquote

from mcp_memory.core.text import has_hidden_text, remove_hidden, to_plain_letters
from mcp_memory.core.types import Source
from mcp_memory.language import patterns_of
from mcp_memory.suspicion.injected_instructions import mean_orders, orders_in, uncited, without_self_reference
from mcp_memory.suspicion.lexicon import parted
from mcp_memory.suspicion.messages import messages_of

Flag = Literal["hidden", "fence", "disguised", "drop", "heed", "keep", "role", "call", "leak", "order"]

MEANINGS: dict[str, str] = {
    "hidden": "hidden characters",
    "fence": "something like the end of a recalled block",
    "disguised": "words in disguise",
    "drop": "an order to drop other instructions",
    "heed": "orders addressed to a model",
    "keep": "an order to remember something",
    "role": "text that poses as another speaker",
    "call": "text that poses as a tool's call or answer",
    "leak": "an order to send something away",
    "order": "a sentence that means an order to a model",
    "unjudged": "not analysed yet: it is long, and the background does it",
    "unsaid": "the user's word for it is missing: its words are a tool's",
    "secret": "a key, password or card number: forget and purge it",
}
"""Each flag in words for people. `longterm` sets `unjudged` and `unsaid`; `secret` is for rows older than masking."""

_PIECE, _OVERLAP = 20_000, 1_000
"""Characters that the patterns read at once, so that judging is linear in the text, and a single match, which holds
the interpreter's lock, short."""


def flags(text: str, source: Source, *, meaning: bool = True, is_turn: bool = False) -> tuple[Flag, ...]:
    """Return the flags of a text from this source, in the order of `MEANINGS`; most texts have none.

    Without `meaning` the bundled model does not judge its sentences, which takes most of the time. `is_turn`: the text
    is a turn of a conversation. There an assistant says what it is ("As an AI, …"), which is no order to a model.
    """
    return flags_of([(text, source)], meaning=meaning, are_turns=is_turn)[0]


def flags_of(
    texts: Sequence[tuple[str, Source]], *, meaning: bool = True, are_turns: bool = False
) -> list[tuple[Flag, ...]]:
    """Return what `flags` returns of each text; the bundled model judges all of them together, which is faster."""
    others = [at for at, (_, source) in enumerate(texts) if source != "user"]
    turns = [place for place, at in enumerate(others) if are_turns and texts[at][1] == "assistant"]
    wordings = dict(zip(others, _wordings([texts[at][0] for at in others], meaning, turns), strict=True))
    found: list[tuple[Flag, ...]] = []
    for at, (text, _) in enumerate(texts):
        signs = wordings.get(at, set())
        if has_hidden_text(text):
            signs.add("hidden")
        if breaks_out(text):
            signs.add("fence")
        found.append(tuple(flag for flag in _ORDER if flag in signs))
    return found


def worded(text: str) -> set[Flag]:
    """Return the flags of a text's wording, whoever says it, except for orders that it quotes as examples."""
    return _wordings([text], meaning=True)[0]


def _wordings(texts: Sequence[str], meaning: bool, turns: Collection[int] = ()) -> list[set[Flag]]:
    """Return the flags of each text; `turns` has the places of the turns in which an assistant speaks to its user."""
    texts = [without_self_reference(text) if at in turns else text for at, text in enumerate(texts)]
    found = _read(texts, meaning)
    bare = {at: rest for at, signs in enumerate(found) if signs and (rest := uncited(texts[at])) != texts[at]}
    for at, signs in zip(bare, _read(list(bare.values()), meaning), strict=True):
        found[at] = signs
    return found


def _read(texts: Sequence[str], meaning: bool) -> list[set[Flag]]:
    found = [_by_words(text) for text in texts]
    asked = [at for at, signs in enumerate(found) if meaning and not signs]
    for at, is_order in zip(
        asked, mean_orders([messages_of(to_plain_letters(texts[at])) for at in asked]), strict=True
    ):
        if is_order:
            found[at].add("order")
    return found


def _by_words(text: str) -> set[Flag]:
    """Return the flags of the words of a text, which is read in pieces that overlap."""
    starts = range(0, max(1, len(text) - _OVERLAP), _PIECE)
    return set[Flag]().union(*(_by_words_of_piece(text[start : start + _PIECE + _OVERLAP]) for start in starts))


def _by_words_of_piece(text: str) -> set[Flag]:
    shown = to_plain_letters(text)
    signs = _signs(shown)
    if (messages := messages_of(shown)) != shown:
        signs |= _signs(messages)
    if signs and shown != text and not _signs(text):
        signs.add("disguised")
    for reading in readings(shown):
        if read := _signs(reading) - signs:
            signs |= {*read, "disguised"}
    return {flag for flag in _ORDER if flag in signs}


def _signs(text: str) -> set[str]:
    return poses_in(text) | orders_in(text)


def without_orders(text: str) -> tuple[str, int]:
    """Return a tool's text without the lines that have flags, and the number of these lines."""
    lines = text.split("\n")
    suspicions = flags_of([(line, "tool") for line in lines])
    kept = [line for line, flags in zip(lines, suspicions, strict=True) if not flags]
    return "\n".join(kept), len(lines) - len(kept)


def sifted(text: str) -> str:
    """Return the text of a canvas with a comment in the place of each line that reads like an attack."""
    shown = (
        "%% a line that reads like an order is left out" if flags(line, "tool") else line for line in text.split("\n")
    )
    return "\n".join(shown)


_ORDER: tuple[Flag, ...] = ("hidden", "fence", "disguised", "drop", "heed", "keep", "role", "call", "leak", "order")


_WORD = re.compile(r"\w+")


def poses_in(text: str) -> set[str]:
    """Return the flags of the patterns of `marks.txt` that a text has; most are ruled out by the words it lacks."""
    folded = text.casefold()
    words = set(_WORD.findall(folded))
    flags: set[str] = set()
    for flag, groups, source in _rows():
        may_be = flag not in flags and all(
            not whole.isdisjoint(words) or any(part in folded for part in parts) for whole, parts in groups
        )
        if may_be and _compiled(source).search(text):
            flags.add(flag)
    return flags


@cache
def _rows() -> list[tuple[str, list[tuple[set[str], list[str]]], str]]:
    """Return for each pattern its flag, its groups of words and of parts of words or signs, and the pattern."""
    rows: list[tuple[str, list[tuple[set[str], list[str]]], str]] = []
    for head, source in patterns_of("mcp_memory.suspicion", "marks.txt"):
        flag, _, needs = head.partition(": ")
        groups = [group.split() for group in needs.split("&")]
        split = [(set(filter(_is_word, group)), [one for one in group if not _is_word(one)]) for group in groups]
        rows.append((flag, split, source))
    return rows


def _is_word(text: str) -> bool:
    return text.isalnum() and text[0] < "\u2e80"


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE | re.MULTILINE)


TAG = "mcp-memory-recall"

_DASH = r"(?:[-_\u2010-\u2015\u2212\ufe58\ufe63\uff0d\s]|&#0*45;|&#x0*2d;|&(?:hyphen|dash|shy);|\\u002d|\\x2d|%2d|\\-)"
_NAME = re.compile(rf"mcp{_DASH}{{0,4}}memory{_DASH}{{0,4}}recall", re.IGNORECASE)
_WORDS = "mcp memory recall"
_CLOSING = re.compile(
    rf"(?:<|&lt;|&#0*60;|&#x0*3c;|\\u003c|\\x3c|%3c|[＜﹤‹〈⟨])\s*[/\\／⁄∕]\s*{_NAME.pattern}", re.IGNORECASE
)
_MARK = re.compile(
    r"<(?=\s*\|)|<(?=\s*+/?\s*+(?:antml:|system\b|user\b|assistant\b|human\b|developer\b|tool|function|invoke\b|parameter\b|"
    r"im_|start_of|end_of|instructions?\b|context\b|memor|recall|data\b|untrusted|<\s*/?SYS))|<(?=｜)|\[(?=/?INST\])",
    re.IGNORECASE,
)


def breaks_out(text: str) -> bool:
    """Return whether a text has something that reads like the end of recalled text."""
    if "recall" not in text and text.isascii() and "RECALL" not in text.upper():
        return False
    return _CLOSING.search(to_plain_letters(text)) is not None


def defused(text: str) -> str:
    """Return a text that cannot end the block it stands in, nor pose as another speaker in it; else as it reads."""
    return _MARK.sub(lambda mark: "‹" if mark[0] == "<" else "(", _nameless(remove_hidden(text)))


def _nameless(text: str) -> str:
    text = _NAME.sub(_WORDS, text)
    if text.isascii() or _NAME.search(to_plain_letters(text)) is None:
        return text
    folded, places = _by_place(text)
    kept, reached = list[str](), 0
    for name in _NAME.finditer(folded):
        start, end = places[name.start()], places[name.end() - 1] + 1
        kept += [text[reached:start], _WORDS]
        reached = end
    return "".join([*kept, text[reached:]])


def _by_place(text: str) -> tuple[str, list[int]]:
    """Return a text character for character as it looks, and where in it each comes from."""
    folded, places = list[str](), list[int]()
    for at, character in enumerate(text):
        shown = character if character.isascii() else _latin_like(unicodedata.normalize("NFKC", character))
        folded += shown
        places += [at] * len(shown)
    return "".join(folded), places


def _latin_like(character: str) -> str:
    return to_plain_letters(f"a{character}")[1:]  # in a word with a Latin letter look-alikes are read as such


_MOST_RUNS = 200  # runs of a kind that are decoded
_LONGEST_RUN = 20_000  # characters of such a run
_BASE64 = re.compile(r"(?<![\w+/-])(?:[A-Za-z0-9+/]{4}){6,}(?:[A-Za-z0-9+/]{2,3}={0,2})?(?![\w+/])")
_BASE64_URL = re.compile(r"(?<![\w+/-])(?=[A-Za-z0-9]*[-_])[\w-]{24,}={0,2}(?![\w+/])", re.ASCII)
_HEX = re.compile(r"(?<!\w)(?:0x)?(?:[0-9a-fA-F]{2}){12,}(?!\w)")
_HEX_PAIRS = re.compile(r"(?<!\w)(?:(?:0x|\\x)?[0-9a-fA-F]{2}[\s:,]{1,2}){11,}(?:0x)?[0-9a-fA-F]{2}(?!\w)")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|&#x([0-9a-fA-F]{2,5});|&#(\d{2,6});")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_COMBINING = "[\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]"
_LETTER = rf"(?:[^\W_]{_COMBINING}*+|{_COMBINING}++)"
_NO_LETTER_BEFORE = rf"(?<![^\W_])(?<!{_COMBINING})"
_SPACED = re.compile(
    rf"(?<!\S)(?:\S{_COMBINING}*+[ \t]{{1,3}}){{9,}}\S{_COMBINING}*+(?!\S)"
    rf"|{_NO_LETTER_BEFORE}(?:{_LETTER}[.\-_*·|]){{9,}}{_LETTER}(?![^\W_])"
)
_PARTED = re.compile(
    rf"{_NO_LETTER_BEFORE}{_LETTER}(?P<by>[.\-_*·|]){_LETTER}(?:(?P=by)(?:{_LETTER}|[@.:/]))*(?![^\W_])"
)
_GAP = re.compile(r"[ \t]{2,}| / |[.\-_*·|]{2,}")
_SPACE, _SEPARATOR = re.compile(r"[ \t]"), re.compile(r"[.\-_*·|]")
_ITEM = r"[ \t]*(?:(?:\d{1,3}[.)]|[-*•>#]|//)[ \t]+)?"  # the start of a line of a list or a quotation
_CHARACTERS = re.compile(rf"^(?:{_ITEM}\S{_COMBINING}*[ \t]*\n\s*?){{9,}}{_ITEM}\S{_COMBINING}*[ \t]*$", re.MULTILINE)
_COLUMN = re.compile(
    rf"^(?:{_ITEM}(?:\S[^\n]{{0,15}}|\S{{1,40}})\n){{3,}}{_ITEM}(?:\S[^\n]{{0,15}}|\S{{1,40}})$", re.MULTILINE
)
_WORDS_APART = re.compile(
    rf"^(?:{_ITEM}[^\s<>|]{{1,24}}[ \t]*\n\s*?){{5,}}{_ITEM}[^\s<>|]{{1,24}}[ \t]*$", re.MULTILINE
)
_AT_LINE = re.compile(rf"^{_ITEM}", re.MULTILINE)
_NAMED = r"(?:[^\s_(){}=/:]|:(?!:))"
_NAME_BEGINS = r"(?<![\w./:$@(-])(?<!def )(?<!class )[^\W\d]"
_NAME_ENDS = r"(?![\w(/:=]|\.\w|\s*=)"
_UNDERSCORED = re.compile(rf"{_NAME_BEGINS}{_NAMED}*+(?:_++{_NAMED}++)*+(?P<ends>{_NAME_ENDS})?")
"""Any run of words and underscores, so that each place is read once; `ends` is None where it is part of code."""
_CAPITALISED = re.compile(rf"{_NAME_BEGINS}\w{{15,200}}+{_NAME_ENDS}")
_FEWEST = 5  # words of a name that is read as a sentence
_MARKUP = (
    r"(?:</?(?:b|i|u|s|em|a|strong|span|font|wbr|small|sub|sup|mark|tt|code)\b[^<>\n]{0,80}>|<!--[^<>]{0,80}-->"
    r"|\*|~~|`|&(?:shy|zwn?j|ZeroWidthSpace|#173|#820[34]|#x200[bc]|#xad);)++"
)
_WITHIN = re.compile(rf"(?:[^\W\d_]|{_COMBINING}){_MARKUP}[^\W\d_]", re.IGNORECASE)
_ANY_MARKUP = re.compile(_MARKUP, re.IGNORECASE)
_LEET = re.compile(r"(?<![\w@$])(?=[\w@$!]{0,19}[A-Za-z])(?=[\w@$!]{0,19}[013457@$!])[\w@$!]{3,20}(?![\w@$])")
_DIGITS = {one: str.maketrans("013457@$!", f"o{one}easta" + "s" + "i") for one in "il"}
_READABLE = 0.7  # of a decoded run are letters and spaces
_LONG = 20_000  # characters; in longer texts whole readings are tried only where common words of orders stand
_KEYS = (
    "instructions", "password", "ignore", "previous", "system", "assistant", "remember", "forget", "secret", "user",
)  # fmt: skip
_TURNED = tuple(key[::-1] for key in _KEYS)
_MOVED = tuple(codecs.encode(key, "rot13") for key in _KEYS)


def readings(text: str) -> Iterator[str]:
    """Yield the readings of a text, one after the other."""
    yield from _decoded(text)
    if _SPACED.search(text):
        yield _SPACED.sub(_together, text)
    if _many(_PARTED, text, at_least=4):
        yield _PARTED.sub(lambda word: word[0].replace(word["by"], ""), text)
    if _WITHIN.search(text):
        yield _ANY_MARKUP.sub("", text)
    if (split := _CAPITALISED.sub(_as_sentence, _UNDERSCORED.sub(_as_sentence, text))) != text:
        yield split
    for lines, joined in ((_CHARACTERS, _characters), (_COLUMN, _line), (_WORDS_APART, _line)):
        if lines.search(text):
            yield lines.sub(joined, text)
    if _many(_LEET, text, at_least=3):
        for letters in _DIGITS.values():
            yield _LEET.sub(lambda word, letters=letters: word[0].translate(letters), text)
    lower = text.lower() if len(text) > _LONG else ""
    if not lower or any(key in lower for key in _TURNED):
        yield "\n".join(line[::-1] for line in text.split("\n"))
    if not lower or any(key in lower for key in _MOVED):
        yield codecs.encode(text, "rot13")


def _together(run: re.Match[str]) -> str:
    between = _SPACE if _SPACE.search(run[0]) else _SEPARATOR
    words = [between.sub("", word) for word in _GAP.split(run[0])]
    return " ".join(words) if len(words) > 2 else parted("".join(words))


def _as_sentence(name: re.Match[str]) -> str:
    """Return the words of a name with spaces between them; a name of few words, or of code, as it is."""
    if name.re is _UNDERSCORED and (name["ends"] is None or "_" not in name[0]):
        return name[0]
    words = _words_of(name[0])
    return " ".join(words) if len(words) >= _FEWEST else name[0]


def _words_of(name: str) -> list[str]:
    """Return the words that underscores or capitals join to one name."""
    if "_" in name:
        return [word for word in name.split("_") if word]
    starts = [at for at, letter in enumerate(name) if letter.isupper()]
    return [name[start:end] for start, end in pairwise([0, *(at for at in starts if at), len(name)])]


def _line(lines: re.Match[str]) -> str:
    """Return short lines as one, without what each begins with."""
    return " ".join(_AT_LINE.sub("", lines[0]).split())


def _characters(lines: re.Match[str]) -> str:
    words = ["".join(word.split()) for word in re.split(r"\n[ \t]*\n", _AT_LINE.sub("", lines[0]))]
    return " ".join(words) if len(words) > 2 else parted("".join(words))


def _decoded(text: str) -> Iterator[str]:
    kinds: list[tuple[re.Pattern[str], Callable[[str], str]]] = [
        (_BASE64, lambda run: _of_bytes(base64.b64decode, run + "=" * (-len(run) % 4))),
        (_BASE64_URL, lambda run: _of_bytes(base64.urlsafe_b64decode, run + "=" * (-len(run) % 4))),
        (_HEX, lambda run: _of_bytes(bytes.fromhex, run.removeprefix("0x"))),
        (_HEX_PAIRS, lambda run: _of_bytes(bytes.fromhex, re.sub(r"0x|\\x|[\s:,]", "", run))),
    ]
    for pattern, decode in kinds:
        for run in islice(pattern.finditer(text), _MOST_RUNS):
            if len(run[0]) <= _LONGEST_RUN and (read := decode(run[0])):
                yield read
    if ("\\" in text or "&#" in text) and _ESCAPE.search(text):
        yield _ESCAPE.sub(lambda code: chr(int(code[4]) if code[4] else int(code[1] or code[2] or code[3], 16)), text)
    if "%" in text and _PERCENT.search(text):
        yield _PERCENT.sub(lambda run: unquote(run[0]), text)


def _many(pattern: re.Pattern[str], text: str, *, at_least: int) -> bool:
    return sum(1 for _ in islice(pattern.finditer(text), at_least)) == at_least


def _of_bytes(decode: Callable[[str], bytes], run: str) -> str:
    try:
        text = decode(run).decode("utf-8")
    except (ValueError, binascii.Error):
        return ""
    letters = sum(1 for character in text if unicodedata.category(character)[0] in "LMZ")
    return text if letters >= _READABLE * len(text) else ""
