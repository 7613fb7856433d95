"""Keyed hashes, for identifiers computed from text that is not stored unchanged.

A plain hash of an unmasked or erased text lets anybody confirm a guess of it; a keyed hash does not. The home derives a
secret for each purpose (`digests.secret` in the store), which is never stored elsewhere, exported or logged.
"""

from __future__ import annotations

import hmac
import re
from itertools import pairwise

_HEX = re.compile(r"(?<![0-9A-Za-z])(?=[0-9]*[A-Fa-f]|[0-9]{24})[0-9A-Fa-f]{16,}(?![0-9A-Za-z])")
"""A run of hexadecimal digits. Shorter runs, UUIDs, and decimal numbers of up to 23 digits are not digests."""
_BASE64 = re.compile(
    r"(?:^|[:-])([\w+/-]{22}(?:==)?|[\w+/-]{27}=?|[\w+/-]{43}=?|[\w+/-]{64}|[\w+/-]{86}(?:==)?)$", re.ASCII
)
"""MD5, SHA-1, SHA-256, SHA-384 and SHA-512 digests in Base64, standard or URL-safe."""
_KEYED = re.compile(r"(?P<kind>[a-z0-9-]*):hmac-[0-9a-f]{32}")


def keyed_hash(secret: bytes, *parts: str, digits: int = 32) -> str:
    """Return HMAC-SHA-256 over the length-prefixed parts, as the first `digits` hex digits."""
    encoded = (part.encode("utf-8", "surrogatepass") for part in parts)
    data = b"".join(b"%d:" % len(part) + part for part in encoded)
    return hmac.digest(secret, data, "sha256").hex()[:digits]


def derived_id(client_id: str) -> str | None:
    """Return the prefix (`import`, `log`, `mem0` …, or empty) of an id that may be a hash of the text, else None.

    Random ids of the same form cannot be distinguished, so they are keyed too, which does no harm.
    """
    if keyed := _KEYED.fullmatch(client_id):
        return keyed["kind"]
    digest = _HEX.search(client_id) or _digest_in_base64(client_id)
    if digest is None:
        return None
    kind = client_id[: digest.start()].rstrip("-:_")
    return kind if re.fullmatch(r"[a-z0-9][a-z0-9-]*", kind) else ""


def _digest_in_base64(id: str) -> re.Match[str] | None:
    """Match a digest in Base64, in which capitals, small letters and digits alternate often."""
    match = _BASE64.search(id)
    if match is None:
        return None
    kinds = ["A" if char.isupper() else "a" if char.islower() else "0" for char in match[1]]
    changes = sum(char != following for char, following in pairwise(kinds))
    return match if {"A", "a"} <= {*kinds} and 3 * changes > len(kinds) else None


def is_keyed(client_id: str) -> bool:
    """Return whether a client id is a keyed digest, of any home."""
    return _KEYED.fullmatch(client_id) is not None


def keyed_id(key: bytes, client_id: str) -> str:
    """Return the stored form of a turn's or a call's id: a keyed digest if it may be a hash, else itself."""
    kind = derived_id(client_id)
    return (
        client_id if kind is None or is_keyed(client_id) else keyed_form(kind, keyed_hash(key, "client id", client_id))
    )


def keyed_form(kind: str, digest: str) -> str:
    """Return an id with a keyed hash, in a form that no other program produces."""
    return f"{kind}:hmac-{digest}"
