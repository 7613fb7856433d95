"""Short hashes of single words, for questions whose words are not kept.

They show which words two questions have in common, without telling a word to anybody who does not guess it.
"""

from __future__ import annotations

from hashlib import blake2b


def word_hash(word: str) -> str:
    """Return eight hex digits, the same for this word everywhere."""
    return blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
