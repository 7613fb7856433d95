"""A cheap guess whether a sentence states a standing rule: a logistic regression on its words and cues, no encoder.

`language.sentences` chooses candidates with it, and `models.embed.classifiers.rule_scores` adds it to what the encoder
says. Words are hashed into `SLOTS` weights; most are 0. `scripts/fit_rules.py` fits them and writes
`data/rule_words.bin`: two little endian floats (the scale of the weights, the constant), a bit for each slot that has a
weight, and the weights as signed bytes in the order of the slots.
"""

from __future__ import annotations

import re
import struct
import zlib
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise

from mcp_memory.language.rule_cues import cues_of

SLOTS = 1 << 18
_WORD_OR_SIGN = re.compile("[\u0e00-\u0e7f\u2e80-\uffef]|[^\\W\u0e00-\u0e7f\u2e80-\uffef]+|[?!:¤]")
_HEAD = struct.Struct("<ff")
_BEGINNING, _SHORT_BEGINNING, _ENDING = 6, 4, 3  # characters
_ENDS = 3  # words


def slots_of(sentence: str) -> list[int]:
    """Return the places of a sentence's words and cues among `SLOTS` weights, each once.

    What counts as a word: beginnings of four and six letters, pairs of them, pairs around a word, three in a row,
    endings, and the first and last words as such.
    """
    words = ["^", *_WORD_OR_SIGN.findall(sentence.lower()), "$"]
    stems, short = [word[:_BEGINNING] for word in words], [f"4{word[:_SHORT_BEGINNING]}" for word in words]
    found = {*stems, *short, *map(" ".join, pairwise(stems)), *map(" ".join, pairwise(short))}
    found.update(map(" _ ".join, zip(stems, stems[2:], strict=False)))
    found.update(map(" ".join, zip(stems, stems[1:], stems[2:], strict=False)))
    found.update(f"-{word[-_ENDING:]}" for word in words if len(word) > _ENDING + 1)
    found.update(f"<{stem}" for stem in stems[1 : _ENDS + 1])
    found.update(f">{stem}" for stem in stems[-_ENDS - 1 : -1])
    found.update(f"cue {at}" for at, has in enumerate(cues_of(sentence)) if has)
    return sorted({_hashed(feature) for feature in found})


@lru_cache(maxsize=256)
def word_score(sentence: str) -> float:
    """Return the log-odds, by its words and cues alone, that a sentence states a standing rule."""
    weights, constant = _model()
    slots = slots_of(sentence)
    return sum(weights.get(slot, 0.0) for slot in slots) / (len(slots) + 1) ** 0.5 + constant


def pack(weights: dict[int, float], constant: float) -> bytes:
    """Return the file that `word_score` reads, of the weights that are not 0 by their slots."""
    scale = max(map(abs, weights.values())) / 127
    used = bytearray(SLOTS // 8)
    for slot in weights:
        used[slot // 8] |= 1 << slot % 8
    values = (round(weights[slot] / scale) for slot in sorted(weights))
    return _HEAD.pack(scale, constant) + bytes(used) + struct.pack(f"<{len(weights)}b", *values)


@cache
def _model() -> tuple[dict[int, float], float]:
    stored = resources.files("mcp_memory.language").joinpath("data", "rule_words.bin").read_bytes()
    scale, constant = _HEAD.unpack_from(stored)
    used = stored[_HEAD.size : _HEAD.size + SLOTS // 8]
    slots = [at * 8 + bit for at, byte in enumerate(used) if byte for bit in range(8) if byte >> bit & 1]
    values = struct.unpack_from(f"<{len(slots)}b", stored, _HEAD.size + len(used))
    return {slot: value * scale for slot, value in zip(slots, values, strict=True)}, constant


@lru_cache(maxsize=16_384)
def _hashed(feature: str) -> int:
    return zlib.crc32(feature.encode("utf-8", "surrogatepass")) % SLOTS
