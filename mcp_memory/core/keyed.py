"""Keyed hashes for identifiers that are computed from text which is not stored as it is.

A plain hash of an unmasked or erased text confirms a guess of it. A keyed one does not, to anybody without the secret.
The home derives a secret for each purpose (`Store.secret`); it is never stored elsewhere, exported or logged.
"""

from __future__ import annotations

import hmac

__all__ = ["keyed_hash"]


def keyed_hash(secret: bytes, *parts: str, digits: int = 32) -> str:
    """Return HMAC-SHA-256 over the length-prefixed parts, as the first `digits` hex digits."""
    encoded = (part.encode("utf-8", "surrogatepass") for part in parts)
    data = b"".join(b"%d:" % len(part) + part for part in encoded)
    return hmac.digest(secret, data, "sha256").hex()[:digits]
