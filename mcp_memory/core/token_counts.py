"""Counts tokens: exactly if the vocabulary is on this machine, else by an estimate that is never too low.

* **No network.** The vocabulary is read from a local file with the right hash; tiktoken gets the finished table and
  never looks for files itself. The search covers the folder of TIKTOKEN_CACHE_DIR and litellm's package, which ships
  the files (found without importing it).
* **Loaded late.** o200k_base takes some 50 MB and half a second, cl100k_base 28 MB and a quarter. A token is at least
  one byte and at most 128, so `fits` and `cut` often answer without loading anything.
* **Any text has a count**, quickly: special-token names are plain text, a lone surrogate counts as U+FFFD, and long
  texts are counted in pieces of 4,096 characters, cut only at points that the encoding itself always divides. Only
  unbroken runs of more than 16,384 letters or signs are divided by force, which may change the count by a token or two.

On `fixtures/tokens/` the estimate is never below the count of either encoding: 1.1 to 2.2 times that of
cl100k_base, up to 4.4 times that of o200k_base, which knows Hindi, Arabic and Thai much better. It never exceeds the
number of bytes. Only for invented words that look like English it may be too low, by up to 15 % on a page.
"""

from __future__ import annotations

import os
import re
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

LONGEST_TOKEN = 128  # bytes; both vocabularies have runs of spaces of that length and nothing longer
PIECE = 4096
UNBROKEN = 16_384
OFFLOAD_OVER = 1_500
"""Tokens above which hooks and `wrap` replace a result, unless the user sets another number."""
_USUALLY = 1.5  # ratio of estimate to count; from 1.1 to 2.2
NEAR = 80  # characters that `cut` may give up to end at the end of a line or a word


EncodingName = Literal["o200k_base", "cl100k_base"]


class Encoding(NamedTuple):
    """Definition of an encoding without its table: file name in a tiktoken cache, hash, pattern."""

    file: str
    sha256: str
    pattern: str


# Names and hashes are tiktoken's (MIT licence), and so are the patterns, as published with the encodings.
ENCODINGS: dict[EncodingName, Encoding] = {
    "o200k_base": Encoding(
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "|".join(
            [
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            ]
        ),
    ),
    "cl100k_base": Encoding(
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
}


@cache
def token_counter(encoding: EncodingName) -> TokenCounter:
    """Return the counter of an encoding, shared by the whole process."""
    return TokenCounter(encoding)


class TokenCounter:
    """Thread-safe token counter, from `token_counter`. It loads its vocabulary at the first count that needs it."""

    def __init__(self, encoding: EncodingName) -> None:
        self._encoding: EncodingName = encoding
        self._loading = threading.Lock()
        self._count_piece: Callable[[str], int] | None = None

    @classmethod
    def estimating(cls) -> TokenCounter:
        """Return a counter that never loads a vocabulary: its counts are estimates, never too low on real text."""
        counter = cls("cl100k_base")
        counter._count_piece = estimate_tokens
        return counter

    @cached_property
    def exact(self) -> bool:
        """Whether the vocabulary is available. If not, counts are estimates, never too low on real text."""
        return find_vocabulary(ENCODINGS[self._encoding]) is not None

    @property
    def name(self) -> str:
        """Name of the encoding for `status`, and whether counts are estimated."""
        return self._encoding if self.exact else f"{self._encoding}, estimated"

    def count(self, text: str) -> int:
        """Return the number of tokens."""
        return sum(map(self._piece, pieces(text)))

    def fits(self, text: str, budget: int) -> bool:
        """Return whether the text is at most `budget` tokens, with as little work as possible."""
        if len(text) > budget * LONGEST_TOKEN:
            return False
        if len(text) <= budget and _utf8_bytes(text) <= budget:
            return True
        used = 0
        for piece in pieces(text):
            used += self._piece(piece)
            if used > budget:
                return False
        return True

    def cut(self, text: str, budget: int) -> str:
        """Return the longest prefix of the text within `budget` tokens; the whole text, unchanged, if it fits.

        It ends at the end of a nearby line or word; otherwise one more character would exceed the budget.
        """
        if self.fits(text, budget):
            return text
        if budget <= 0:
            return ""
        kept = used = 0
        over = ""
        for over in pieces(text):
            count = self._piece(over)
            if used + count > budget:
                break
            used += count
            kept += len(over)
        kept += self._most(over, budget - used)
        while not self.fits(text[:kept], budget):  # only if a piece was divided by force
            kept -= 1
        tidy = _end_of_line_or_word(text, kept)
        return text[:tidy] if self.fits(text[:tidy], budget) else text[:kept]

    def _most(self, piece: str, budget: int) -> int:
        """Return how many characters of a piece fit the budget, which the whole piece exceeds."""
        low, high = 0, len(piece)
        while high - low > 1:
            middle = (low + high) // 2
            if self._piece(piece[:middle]) <= budget:
                low = middle
            else:
                high = middle
        return low

    @property
    def _piece(self) -> Callable[[str], int]:
        if self._count_piece is None:
            with self._loading:
                self._count_piece = self._count_piece or _load(self._encoding)
        return self._count_piece


def find_vocabulary(encoding: Encoding) -> bytes | None:
    """Return the content of the vocabulary file, or None if no local file has the right hash."""
    for folder in _folders():
        try:
            content = (folder / encoding.file).read_bytes()
        except OSError:
            continue
        if sha256(content).hexdigest() == encoding.sha256:
            return content
    return None


def _folders() -> Iterator[Path]:
    if named := os.environ.get("TIKTOKEN_CACHE_DIR"):
        yield Path(named)
    litellm = find_spec("litellm")
    if litellm is not None and litellm.origin is not None:
        yield Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers"


def _load(name: EncodingName) -> Callable[[str], int]:
    encoding = ENCODINGS[name]
    content = find_vocabulary(encoding)
    if content is None:
        return estimate_tokens
    import tiktoken

    pairs = (line.split() for line in content.splitlines() if line)
    ranks = {b64decode(token): int(rank) for token, rank in pairs}
    table = tiktoken.Encoding(name, pat_str=encoding.pattern, mergeable_ranks=ranks, special_tokens={})
    ranks.clear()  # tiktoken has a copy; ours is another 20 MB that only decoding would read
    return lambda text: len(table.encode(text, disallowed_special=()))


def pieces(text: str, *, size: int = PIECE) -> Iterator[str]:
    """Divide a text into pieces of about `size` characters, at points that both encodings always divide.

    A run of `UNBROKEN` characters without such a point is divided anyway.
    """
    start = 0
    while len(text) - start > size:
        end = _last_boundary(text, start, start + size) or _next_boundary(text, start + size, start + UNBROKEN)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _last_boundary(text: str, start: int, end: int) -> int | None:
    """Return the last position in (start, end] that both encodings always divide."""
    return next((place for place in range(end, start, -1) if _divides(text[place - 1], text[place])), None)


def _next_boundary(text: str, start: int, end: int) -> int:
    """Return the first position from `start` that both encodings always divide; at the latest `end`."""
    end = min(end, len(text))
    return next((place for place in range(start, end) if _divides(text[place - 1], text[place])), end)


_SIGNS = frozenset(' \t\n\r\f\v!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~，。、！？：；「」（）')


def _divides(left: str, right: str) -> bool:
    # No alternative of either pattern goes on after a letter or digit with one of these signs (an apostrophe
    # may open `'s`, a combining mark is part of a word: neither is among them), from letters to digits or
    # back, or after a sign with a space. Neither pattern looks back, so what follows is divided alike.
    if not left.isalnum():
        return right == " " and left in _SIGNS and not left.isspace()
    if right.isalnum():
        return left.isascii() and right.isascii() and left.isdigit() != right.isdigit()
    return right in _SIGNS


def _end_of_line_or_word(text: str, end: int) -> int:
    """Return the end of a line, else of a word, within `NEAR` characters before `end`; else `end`."""
    start = end - min(NEAR, end // 2)
    line = text.rfind("\n", start, end)
    if line >= 0:
        return line + 1
    return next((place for place in range(end, start, -1) if text[place].isspace()), end)


def _utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


SPARE = 4

_RUNS = re.compile(
    r"""
      (?P<joint>\x20(?=[A-Za-z!-/:-@\[-`{-~]))     # a space before a word or a sign is part of that token
    | (?P<word>[A-Z]?[a-z]+|[A-Z]+)
    | (?P<digits>[0-9]+)
    | (?P<spaces>\x20+|\t+|(?:\r\n)+|\n+)
    | (?P<sign>[!-/:-@\[-`{-~])
    | (?P<cyrillic>[Ѐ-ӿ]{2,})
    | (?P<arabic>[؀-ۿ]{2,})
    | (?P<thai>[฀-๿]{2,})
    | (?P<devanagari>[ऀ-ॿ]{2,})
    | (?P<hangul>[가-힣]{2,})
    | (?P<kana>[぀-ヿ]{2,})
    | (?P<han>[一-鿿]{2,})
    """,
    re.VERBOSE,
)

_PRICE = {"cyrillic": 0.55, "arabic": 0.85, "thai": 1.2, "devanagari": 1.25, "hangul": 1.35, "kana": 1.2, "han": 1.5}

_LOOKS_LIKE_A_WORD = re.compile(r"(?!.*[^aeiouy]{4})(?!.*[aeiouy]{4}).*[aeiouy]", re.IGNORECASE)


def is_large(text: str, over: int) -> bool:
    """Return whether a text has more than `over` tokens, by an estimate.

    An exact count takes 50 MB and half a second to load, which a server without large results must not cost.
    """
    if len(text) * 4 <= over:  # a character has at most four bytes, a token at least one
        return False
    return estimate_tokens(text[: 8 * over]) > _USUALLY * over  # so much of it is enough to prove that it is large


def estimate_tokens(text: str) -> int:
    """Return an upper estimate of the number of tokens.

    A word is a few tokens, any other run of letters hardly merges, three digits are one token, a run of the same white
    space is one token up to a length, and each script has a price per character.
    """
    size = _utf8_bytes(text)
    tokens = 0.0
    covered = 0
    for run in _RUNS.finditer(text):
        tokens += _utf8_bytes(text[covered : run.start()]) + _tokens_of_run(str(run.lastgroup), run.group())
        covered = run.end()
    tokens += _utf8_bytes(text[covered:])
    return min(size, int(tokens) + SPARE)


def _tokens_of_run(kind: str, run: str) -> float:
    length = len(run)
    match kind:
        case "joint":
            return 0
        case "word" if _LOOKS_LIKE_A_WORD.match(run):
            # Vocabularies contain fewer words in capitals, and long words are compounds or not words at all.
            return 1 + (length - 1) // (2 if run.isupper() or length > 16 else 4)
        case "word":
            return length if length < 4 else 1 + 0.75 * length
        case "digits":
            return 1 + (length - 1) // 3
        case "spaces":
            return 1 + length // 8
        case "sign":
            return 1
        case script:
            return 1 + _PRICE[script] * length
