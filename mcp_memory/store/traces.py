"""Traces of what was erased, looked for in bytes: the proof of a purge.

A text leaves a trace where any piece of it stands: PIECE bytes, one from every STEP on, as UTF-8 and as JSON escapes
it. So no run of PIECE + STEP bytes of it can be left anywhere unseen. Pieces that what was kept says too prove
nothing, and are named apart (`excuse`). What is shorter than LEAST bytes cannot be told from chance.

Pure but for reading files; archives (.zip) are looked into.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LEAST", "PIECE", "STEP", "Traces", "forms"]

PIECE, STEP, LEAST = 24, 12, 8
"""Bytes."""
_WHOLE = 65_536
_PARTS, _PART = 64, 1_024
_READ = 2**22
_BITS = 20
_SPREAD = 0x9E3779B97F4A7C15


def forms(text: bytes) -> set[bytes]:
    """Return the bytes that a text may stand as in a file."""
    found = {text}
    plain = text.decode("utf-8", "replace")
    for only_ascii in (True, False):
        found.add(json.dumps(plain, ensure_ascii=only_ascii)[1:-1].encode("utf-8", "backslashreplace"))
    return found


def _sampled(text: bytes) -> Iterator[bytes]:
    """Yield a text; of a long one its beginning, its end, and parts from all over it."""
    if len(text) <= _WHOLE:
        yield text
        return
    gap = (len(text) - _PART) // _PARTS
    for start in range(0, len(text) - _PART + 1, gap):
        yield text[start : start + _PART]


def _pieces(form: bytes) -> Iterator[bytes]:
    if len(form) < LEAST:
        return
    for start in range(0, max(1, len(form) - PIECE + 1), STEP):
        yield form[start : start + PIECE]
    if len(form) > PIECE:
        yield form[-PIECE:]


@dataclass(frozen=True, slots=True)
class _Index:
    """Pieces by their first bytes: `heads` sorted, `marked` tells by a few bits of one whether it may be among them."""

    heads: NDArray[np.uint64]
    marked: NDArray[np.bool_]
    by_head: dict[int, list[bytes]]


class Traces:
    """The pieces of some texts, and which of them what was kept has too."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        found = {
            piece
            for text in texts
            for part in _sampled(text)
            for form in forms(part)
            for piece in _pieces(form)
            if len(set(piece)) > 2  # a row of dashes is nobody's
        }
        self._pieces = found
        self._excused = set[bytes]()
        self._index = _indexed(found)

    def __len__(self) -> int:
        """How many pieces are looked for, those aside that what was kept has too."""
        return len(self._pieces) - len(self._excused)

    def excuse(self, kept: Iterable[tuple[str, bytes]]) -> list[str]:
        """Leave out pieces that stand in what was kept, given by name; return the names of what has any."""
        names = dict[str, None]()
        for name, text in kept:
            for form in forms(text):
                for _, piece in self._hits(form, excused_too=True):
                    self._excused.add(piece)
                    names[name] = None
        return list(names)

    def excuse_file(self, path: Path) -> bool:
        """Leave out pieces that stand in a file that was kept; tell whether any does."""
        before, carried = len(self._excused), b""
        with path.open("rb") as file:
            while block := file.read(_READ):
                self._excused |= {piece for _, piece in self._hits(carried + block, excused_too=True)}
                carried = block[-PIECE:]
        return len(self._excused) > before

    def of(self, data: bytes) -> bool:
        """Tell whether bytes have a trace."""
        return next(self._hits(data), None) is not None

    def in_file(self, path: Path) -> tuple[list[str], int]:
        """Return where a file has traces, and how many bytes were read of it. Raises OSError where it cannot be."""
        if path.suffix == ".zip" and zipfile.is_zipfile(path):
            found, size = list[str](), 0
            with zipfile.ZipFile(path) as archive:
                for member in archive.infolist():
                    with archive.open(member) as file:
                        places, read = self._in_stream(file)
                    size += read
                    found += [f"{member.filename} {place}" for place in places]
            return found, size
        with path.open("rb") as file:
            return self._in_stream(file)

    def _in_stream(self, file: IO[bytes]) -> tuple[list[str], int]:
        places, size, carried = list[str](), 0, b""
        while block := file.read(_READ):
            data = carried + block
            begins = size - len(carried)
            found = sorted({at for at, piece in self._hits(data) if at + len(piece) > len(carried)})
            places += [f"at byte {begins + at:,}" for at in found]
            size += len(block)
            carried = data[-PIECE:]
        return places, size

    def _hits(self, data: bytes, *, excused_too: bool = False) -> Iterator[tuple[int, bytes]]:
        import numpy as np

        index = self._index
        if index is None or len(data) < LEAST:
            return
        for shift in range(LEAST):
            count = (len(data) - shift) // LEAST
            if count <= 0:
                break
            words = np.frombuffer(data, "<u8", count=count, offset=shift)
            likely = np.flatnonzero(index.marked[_slot(words)])
            places = np.searchsorted(index.heads, words[likely])
            places[places == len(index.heads)] = 0
            for at in likely[index.heads[places] == words[likely]].tolist():
                start = at * LEAST + shift
                for piece in index.by_head[int(words[at])]:
                    if (excused_too or piece not in self._excused) and data.startswith(piece, start):
                        yield start, piece


def _indexed(pieces: set[bytes]) -> _Index | None:
    import numpy as np

    by_head = dict[int, list[bytes]]()
    for piece in pieces:
        by_head.setdefault(int.from_bytes(piece[:LEAST], "little"), []).append(piece)
    if not by_head:
        return None
    heads = np.array(sorted(by_head), np.uint64)
    marked = np.zeros(2**_BITS, np.bool_)
    marked[_slot(heads)] = True
    return _Index(heads, marked, by_head)


def _slot(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    import numpy as np

    return (words * np.uint64(_SPREAD)) >> np.uint64(64 - _BITS)
