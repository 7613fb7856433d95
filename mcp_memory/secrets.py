"""Secrets in a text: recognised by their form or by the name in front of them, and masked.

What is masked stands in summaries, previews, titles, tool calls, in what is indexed and in what recall brings; turns
and raw results keep every byte.
It errs on the side of showing: a value is masked when its form is that of a key, or its name says so.
"""

from __future__ import annotations

import re

__all__ = ["holds_secret", "mask", "mask_lines"]

MASK = "•••"

_KNOWN = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic, Stripe
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bnpm_[A-Za-z0-9]{30,}"
    r"|\bxox[abeoprs]-[\w-]{10,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}|\bhf_[A-Za-z0-9]{20,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # JSON web tokens
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]+(?:-----END [A-Z ]*PRIVATE KEY-----)?)?"
)
_NAMED = re.compile(
    r"""(?ix)
    (\b[\w.-]*(?:passw(?:or)?d|passphrase|secret|api[-_]?key|access[-_]?key|auth[-_]?token|access[-_]?token
       |refresh[-_]?token|private[-_]?token|client[-_]?secret)["']?\s*(?::|=|=>)\s*["']?)
    (?!["']?(?:none|null|true|false|undefined)\b|[{[(<$*•]|\s|[\w.]+[([])([^\s"',;&)}\]]{4,})
    """
)
_BEARER = re.compile(r"(?i)(\b(?:bearer|basic|token)\s+)(?=\S*\d)([A-Za-z0-9._~+/=-]{16,})")  # "basic responsibilities"
_IN_URL = re.compile(r"(://[^/\s:@]*:)([^/\s@]{3,})(?=@)")
_BODY = re.compile(r"(?m)^[ \t\"']*[A-Za-z0-9+/]{60,76}={0,2}[\"',]*$")


def mask(text: str) -> str:
    """Return the text with each secret as `•••`; its name, and what kind of key it was, stay readable."""
    text = _KNOWN.sub(lambda found: found[0][:4] + MASK, text)
    for pattern in (_NAMED, _BEARER, _IN_URL):
        text = pattern.sub(lambda found: found[1] + MASK, text)
    return text


def holds_secret(text: str) -> bool:
    """Tell whether a text has anything that `mask` would take out."""
    return mask(text) != text


def mask_lines(text: str) -> str:
    """Return a piece of a text masked, with as many lines as before.

    A private key may have begun before the piece. Its lines cannot be told from other encoded data, which nobody reads
    or searches for, so all lines of that form are masked.
    """
    text = _BODY.sub(MASK, text)
    text = _KNOWN.sub(lambda found: found[0][:4] + MASK + "\n" * found[0].count("\n"), text)
    return mask(text)
