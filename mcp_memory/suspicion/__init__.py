"""Detects prompt injection in text that a model will read. Pure; needs no language model.

    injected_instructions  orders to a model, by the words of twenty-eight languages and by the bundled encoder
    marks                  text that poses as a speaker, a tool call or an answer; closing tags of recalled text
    disguises              decoded and rearranged readings of a text
    lexicon                the words of attacks, one file a language

`flags` returns the signs that matter for a text's source. People may tell their own assistant anything, so of the
user's words only hidden characters and closing tags count. Callers interpret the flags; nothing is refused or
changed here. False statements without unusual wording pass: `longterm.verification.trust` checks the source instead.
"""

from __future__ import annotations

from typing import Literal

from mcp_memory.core.types import Source
from mcp_memory.language.hidden_characters import hides, plain, revealed
from mcp_memory.suspicion.disguises import readings
from mcp_memory.suspicion.injected_instructions import drops, means_order, orders_in, uncited
from mcp_memory.suspicion.marks import TAG, breaks_out, defused, poses_in

__all__ = ["MEANINGS", "TAG", "Flag", "defused", "drops", "flags", "revealed", "sifted", "worded"]

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
    "unsaid": "the user's word for it is missing: its words are a tool's",
    "secret": "a key, password or card number: forget and purge it",
}
"""Each flag in words for people; `longterm` sets `unsaid`, and `secret` is for rows older than masking."""

_LOOKED_AT = 400_000  # characters at either end of a longer text


def flags(text: str, source: Source) -> tuple[Flag, ...]:
    """Return the flags of a text from this source, in the order of `MEANINGS`; most texts have none."""
    if len(text) > 2 * _LOOKED_AT:
        text = f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"
    signs: set[Flag] = worded(text) if source != "user" else set()
    if hides(text):
        signs.add("hidden")
    if breaks_out(text):
        signs.add("fence")
    return tuple(flag for flag in _ORDER if flag in signs)


def worded(text: str) -> set[Flag]:
    """Return the flags of a text's wording, whoever says it, except for orders that it quotes as examples."""
    signs = _worded(text)
    return _worded(rest) if signs and (rest := uncited(text)) != text else signs


def _worded(text: str) -> set[Flag]:
    shown = plain(text)
    signs = _signs(shown)
    if signs and shown != text and not _signs(text):
        signs.add("disguised")
    for reading in readings(shown):
        if read := _signs(reading) - signs:
            signs |= {*read, "disguised"}
    if not signs and means_order(shown):
        signs.add("order")
    return {flag for flag in _ORDER if flag in signs}


def _signs(text: str) -> set[str]:
    return poses_in(text) | orders_in(text)


def sifted(text: str) -> str:
    """Return the text of a canvas with a comment in the place of each line that reads like an attack."""
    shown = (
        "%% a line that reads like an order is left out" if flags(line, "tool") else line for line in text.split("\n")
    )
    return "\n".join(shown)


_ORDER: tuple[Flag, ...] = ("hidden", "fence", "disguised", "drop", "heed", "keep", "role", "call", "leak", "order")
