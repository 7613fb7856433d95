"""Tries of texts in memory-mapped files that processes share: about three bytes a text. The library is untyped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, cast


class Trie(Protocol):
    """Texts, each with its index. Texts with lone surrogates can neither be stored nor looked up."""

    def __contains__(self, text: str) -> bool: ...
    def __getitem__(self, text: str) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def prefixes(self, text: str) -> list[str]:
        """Return the stored texts that are prefixes of a text, the shortest first."""
        ...

    def restore_key(self, place: int) -> str: ...


def mapped_trie(path: Path) -> Trie:
    """Return the trie of a file. Raises OSError or RuntimeError if it cannot be read."""
    import marisa_trie

    return cast("Trie", cast("Any", marisa_trie).Trie().mmap(str(path)))


def write_trie(path: Path, texts: Iterable[str]) -> Trie:
    """Write the trie of the texts to a file, and return it."""
    import marisa_trie

    trie = cast("Any", marisa_trie).Trie(sorted(texts))
    trie.save(str(path))
    return cast("Trie", trie)
