"""Tries of texts in files that processes share: mapped, some three bytes a text (marisa-trie, which has no types)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, cast


class Trie(Protocol):
    """Texts, each with its place. No text with a lone surrogate is in one, or may be asked for."""

    def __contains__(self, text: str) -> bool: ...
    def __getitem__(self, text: str) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def prefixes(self, text: str) -> list[str]:
        """Return the texts with which a text begins, the shortest first."""
        ...

    def restore_key(self, place: int) -> str: ...


def mapped_trie(path: Path) -> Trie:
    """Return the trie of a file. Raises OSError or RuntimeError if it cannot be read."""
    import marisa_trie

    trie: Trie = cast("Any", marisa_trie).Trie().mmap(str(path))
    return trie


def write_trie(path: Path, texts: Iterable[str]) -> Trie:
    """Write the trie of some texts."""
    import marisa_trie

    trie = cast("Any", marisa_trie).Trie(sorted(texts))
    trie.save(str(path))
    found: Trie = trie
    return found
