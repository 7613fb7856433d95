"""Keys of wallets: seed phrases by the words of BIP-39, private keys in base58 (WIF) by their checksum.

Key pairs of Solana are recognised by their form, a list of 64 numbers that look random.

A seed phrase is a row of twelve or more words of the lists, mostly different, few of which are common in sentences. No
checksum is required, because a phrase with one wrong word still protects money. In 65 MB of conversations and tool
results, no other text looks like that. The words may be numbered, quoted or on separate lines.

The searches for phrases and for WIF look at samples of the text as bytes, so they take only a few milliseconds per
megabyte. Japanese, Korean and Chinese phrases are found only by a preceding name.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib import resources
from itertools import pairwise

from mcp_memory.core.secrets.values import word_list

_FEWEST_WORDS, _MAX_WORDS = 12, 33
_DIFFERENT = 0.85  # least share of distinct words in a phrase
_JOINING = 4  # at most one word in four may be a function word
_SAMPLE = 30  # bytes: a phrase has one without any other word in it, as it is twice as long
_REACH = 300  # bytes before and behind a sample that are compared word by word
_LONGEST_PHRASE = 800  # characters
_OTHER = ord("~")  # stands for accents and for letters outside Latin-1

_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f])*")
_NOT_IN_JOINT = re.compile(r"[\s\d]+")

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_WIF = re.compile(rf"[59KLc][{_BASE58}]{{50,51}}")
_WIF_VERSIONS = (0x80, 0xEF)  # main and test network
_KEY_PAIR = re.compile(r"\[\s{0,9}(?P<value>\d{1,3}(?:,\s{0,9}\d{1,3}){63})\s{0,9}\]")
_DIFFERENT_BYTES = 46  # distinct bytes among 64; random bytes have 57 on average
_SHORTEST_WIF = b"a" * 51


def find_wallet_keys(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of seed phrases, of private keys in WIF and of key pairs of Solana."""
    if len(text) < len(_SHORTEST_WIF):
        return
    data = text.encode("latin-1", "replace")
    yield from _private_keys(text, data.translate(_RUNS))
    yield from _seed_phrases(text, data.translate(_LETTERS))
    yield from _key_pairs(text)


def _strip_accents(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))


def _letter(code: int) -> int:
    bare = _strip_accents(chr(code))
    return ord(bare) if bare.isascii() and bare.isalpha() else (_OTHER if code == ord("?") else ord(" "))


_LETTERS = bytes(map(_letter, range(256)))
"""Small letters without accents; a space for all else."""
_RUNS = bytes(ord("a") if code < 128 and chr(code).isalnum() else ord(" ") for code in range(256))


@cache
def _seed_words() -> frozenset[bytes]:
    """Return the words of all lists."""
    text = (resources.files("mcp_memory.core.secrets") / "mnemonics.txt").read_text(encoding="ascii")
    lines = (line.partition(": ")[2] for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word.encode() for line in lines for word in line.split())


@cache
def _sentence_words() -> frozenset[str]:
    return frozenset(word_list("sentence words"))


def _seed_phrases(text: str, letters: bytes) -> Iterator[tuple[int, int]]:
    known_words = _seed_words()
    samples = [
        at
        for at in range(0, len(letters), _SAMPLE)
        if len(words := letters[at : at + _SAMPLE].split(None, 2)) == 3 and words[1] in known_words
    ]
    end = 0
    for at in samples:
        if (
            at >= end
            and known_words.issuperset(letters[at : at + _SAMPLE].split()[1:-1])
            and _is_among_words(letters, at)
        ):
            words, end = _words_around(text, at)
            for phrase in _phrases(text, words):
                yield phrase[0].start(), phrase[-1].end()


def _is_among_words(letters: bytes, at: int) -> bool:
    """Return whether twelve words in a row around a sampled position are, or with other letters may be, seed words."""
    known_words = _seed_words()
    most = _FEWEST_WORDS + 1  # and what is left of the text
    behind = letters[at : at + _REACH].split(None, most)[1:most]
    before = letters[max(0, at - _REACH) : at + _SAMPLE].rsplit(None, most)[-most:-1]
    count = 0
    for words in (behind, reversed(before)):
        for word in words:
            if word not in known_words and _OTHER not in word:
                break
            count += 1
    return count >= _FEWEST_WORDS


def _words_around(text: str, at: int) -> tuple[list[re.Match[str]], int]:
    """Return the row of seed words around a position, and its end. A row longer than two phrases is returned empty."""
    start, end = max(0, at - _LONGEST_PHRASE), min(len(text), at + _LONGEST_PHRASE)
    row: list[re.Match[str]] = []
    for word in _WORD.finditer(text, start, end):
        if _strip_accents(word[0]).encode("ascii", "replace") in _seed_words():
            row.append(word)
        elif word.start() > at + _SAMPLE:
            break
        else:
            row.clear()
    last = row[-1].end() if row else at
    return (row if len(row) <= 2 * _MAX_WORDS else []), last


def _phrases(text: str, words: list[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    """Yield the phrases among words: the longest rows with the same marks between them."""
    joints = [_NOT_IN_JOINT.sub("", text[left.end() : right.start()]) for left, right in pairwise(words)]
    usual = Counter(joints).most_common(1)[0][0] if joints else ""
    begin = 0
    for number, joint in enumerate([*joints, None], 1):
        if joint != usual:
            row = words[begin:number]
            yield from (phrase for phrase in (row, *_split_lines(text, row)) if _is_phrase(phrase))
            begin = number


def _split_lines(text: str, row: list[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    """Yield the words of each line: lines around a phrase may consist of seed words, too."""
    begin = 0
    for number, (left, right) in enumerate(pairwise(row), 1):
        if "\n" in text[left.end() : right.start()]:
            yield row[begin:number]
            begin = number
    yield row[begin:]


def _is_phrase(row: list[re.Match[str]]) -> bool:
    words = [word[0].lower() for word in row]
    return (
        _FEWEST_WORDS <= len(words) <= _MAX_WORDS
        and len(set(words)) >= _DIFFERENT * len(words)
        and words != sorted(words)  # part of a list
        and sum(word in _sentence_words() for word in words) * _JOINING <= len(words)
    )


def _private_keys(text: str, runs: bytes) -> Iterator[tuple[int, int]]:
    at = runs.find(_SHORTEST_WIF)
    while at >= 0:
        end = runs.find(b" ", at)
        end = end if end >= 0 else len(runs)
        if end - at <= len(_SHORTEST_WIF) + 1 and _is_wif(text[at:end]):
            yield at, end
        at = runs.find(_SHORTEST_WIF, end)


def _key_pairs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of lists of 64 bytes that look random, the format of Solana key pairs."""
    for match in _KEY_PAIR.finditer(text):
        numbers = [int(number) for number in match["value"].split(",")]
        if max(numbers) < 256 and len(set(numbers)) >= _DIFFERENT_BYTES and numbers != sorted(numbers):
            yield match.span("value")


def _is_wif(text: str) -> bool:
    if not _WIF.fullmatch(text):
        return False
    number = 0
    for character in text:
        number = number * 58 + _BASE58.index(character)
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return data[0] in _WIF_VERSIONS and sha256(sha256(data[:-4]).digest()).digest()[:4] == data[-4:]
