"""Purge verification: search every file of a home for residual matches of erased texts, in bytes.

A text is looked for in pieces of PIECE bytes, one from every STEP bytes, as UTF-8 and as JSON escapes it. So no run of
PIECE + STEP bytes of it is missed. Pieces that also occur in retained texts prove nothing; they are excluded and named
(`excuse`). Texts shorter than LEAST bytes match by chance and are not searched for. Archives (.zip) are searched too.

A match means something different in each of three kinds of files. The store's own files are made of rows: a match is a
fault and is reported. Logs and quarantined line files lose the lines that match. Any other file is a copy, such as a
backup: it is named, and deleted only on request.
"""

from __future__ import annotations

import json
import os
import zipfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mcp_memory.core.regular_files import read_regular
from mcp_memory.store import files

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LEAST", "PIECE", "STEP", "Proof", "Traces", "forms", "prove"]

PIECE, STEP, LEAST = 24, 12, 8
"""Bytes."""
_WHOLE = 65_536
_PARTS, _PART = 64, 1_024
_READ = 2**22
_BITS = 20
_SPREAD = 0x9E3779B97F4A7C15


def forms(text: bytes) -> set[bytes]:
    """Return the byte forms that a text may have in a file."""
    found = {text}
    plain = text.decode("utf-8", "replace")
    for only_ascii in (True, False):
        found.add(json.dumps(plain, ensure_ascii=only_ascii)[1:-1].encode("utf-8", "backslashreplace"))
    return found


def _sampled(text: bytes) -> Iterator[bytes]:
    """Yield a text; of a long one the start, the end and evenly spaced parts."""
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


def _together(kept: Iterable[tuple[str, bytes]]) -> Iterator[tuple[list[int], list[str], bytes]]:
    """Yield texts in all their forms as blocks: offsets, names and bytes. Few large searches are fast."""
    starts, held, data = list[int](), list[str](), bytearray()
    for name, text in kept:
        for form in forms(text):
            starts.append(len(data))
            held.append(name)
            data += form + b"\0"
        if len(data) >= _READ:
            yield starts, held, bytes(data)
            starts, held, data = [], [], bytearray()
    yield starts, held, bytes(data)


@dataclass(frozen=True, slots=True)
class _PieceIndex:
    """Pieces by their first bytes: `heads` are sorted, `marked` is a quick filter by a few bits of a head.

    `short` has the pieces shorter than PIECE, by their heads.
    """

    heads: NDArray[np.uint64]
    marked: NDArray[np.bool_]
    short: dict[int, list[bytes]]


class Traces:
    """The pieces of erased texts to search for; those that retained texts also have can be excluded."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        found = {
            piece
            for text in texts
            for part in _sampled(text)
            for form in forms(part)
            for piece in _pieces(form)
            if len(set(piece)) > 2  # a row of dashes identifies no text
        }
        self._pieces = found
        self._wanted = set(found)
        self._index = _indexed(found)

    def __len__(self) -> int:
        """The number of pieces to search for, without the excluded ones."""
        return len(self._wanted)

    def excuse(self, kept: Iterable[tuple[str, bytes]]) -> list[str]:
        """Exclude pieces that occur in retained texts, given by name; return the names of the texts with any."""
        names = dict[str, None]()
        for starts, held, data in _together(kept):
            for at, piece in self._hits(data, excused_too=True):
                self._wanted.discard(piece)
                names[held[bisect_right(starts, at) - 1]] = None
        return list(names)

    def excuse_file(self, path: Path) -> bool:
        """Exclude pieces that occur in a retained file; tell whether there are any."""
        excused, carried = False, b""
        with path.open("rb") as file:
            while block := file.read(_READ):
                here = {piece for _, piece in self._hits(carried + block, excused_too=True)}
                self._wanted -= here
                excused = excused or bool(here)
                carried = block[-PIECE:]
        return excused

    def of(self, data: bytes) -> bool:
        """Tell whether the bytes have a residual match."""
        return next(self._hits(data), None) is not None

    def in_file(self, path: Path) -> tuple[list[str], int]:
        """Return the residual matches of a file, and the number of bytes read. Raises OSError if it cannot be read."""
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
        wanted, short = self._pieces if excused_too else self._wanted, index.short
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
                whole = data[start : start + PIECE]
                if whole in wanted:
                    yield start, whole
                for piece in short.get(int(words[at]), ()):
                    if piece in wanted and data.startswith(piece, start):
                        yield start, piece


def _indexed(pieces: set[bytes]) -> _PieceIndex | None:
    import numpy as np

    if not pieces:
        return None
    short = dict[int, list[bytes]]()
    for piece in pieces:
        if len(piece) < PIECE:
            short.setdefault(int.from_bytes(piece[:LEAST], "little"), []).append(piece)
    heads = np.array(sorted({int.from_bytes(piece[:LEAST], "little") for piece in pieces}), np.uint64)
    marked = np.zeros(2**_BITS, np.bool_)
    marked[_slot(heads)] = True
    return _PieceIndex(heads, marked, short)


def _slot(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    import numpy as np

    return (words * np.uint64(_SPREAD)) >> np.uint64(64 - _BITS)


_LOGS = ("hooks", "logs")
_NEEDED = ("spaces", "run", "unsettled", "config.toml", "identity.json")
"""Files that are no copies and are never deleted."""
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The report of a purge verification: `found` has a line for each file of the store with a residual match."""

    files: int
    bytes: int
    texts: int
    pieces: int
    found: list[str]
    cleared: list[str]
    """Logs from which lines were removed."""
    copies: list[str]
    """Other files with residual matches, such as backups."""
    deleted: list[str]
    """Copies that were deleted."""
    also_in: list[str]
    """Retained rows with some of the same words, such as `t9`; their pieces were excluded."""
    unread: list[str]


def prove(home: Path, traces: Traces, *, texts: int, also_in: list[str], delete_copies: bool) -> Proof:
    """Search every file below the home, and handle those with a residual match."""
    count = size = 0
    found, cleared, copies, deleted, unread = (list[str]() for _ in range(5))
    for path in _below(home):
        name = path.relative_to(home).as_posix()
        try:
            places, read = traces.in_file(path)
        except FileNotFoundError:
            continue  # a mark or a lock that came and went
        except OSError as error:
            unread.append(f"{name}: {error.strerror or error}")
            continue
        count, size = count + 1, size + read
        if not places:
            continue
        if _is_log(home, path):
            _clear(path, traces)
            cleared.append(name)
        elif _is_copy(home, path):
            if delete_copies:
                path.unlink(missing_ok=True)
                deleted.append(name)
            else:
                copies.append(name)
        else:
            more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
            found.append(f"{name} {', '.join(places[:_SHOWN])}{more}")
    return Proof(
        files=count,
        bytes=size,
        texts=texts,
        pieces=len(traces),
        found=found,
        cleared=cleared,
        copies=copies,
        deleted=deleted,
        also_in=also_in,
        unread=unread,
    )


def _below(home: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(home):
        for name in sorted(names):
            path = Path(folder) / name
            if path.is_file():
                yield path


def _is_log(home: Path, path: Path) -> bool:
    """Tell whether a file is a log: lines that no other file depends on."""
    parts = path.relative_to(home).parts
    set_aside = parts[0] == "spaces" and ".jsonl." in path.name
    return set_aside or parts[0] in _LOGS or (len(parts) == 1 and ".log" in path.name)


def _is_copy(home: Path, path: Path) -> bool:
    parts = path.relative_to(home).parts
    return parts[0] not in _NEEDED and not parts[0].startswith("memory.db")


def _clear(path: Path, traces: Traces) -> None:
    lines = read_regular(path).splitlines(keepends=True)
    files.write_whole(path, b"".join(line for line in lines if not traces.of(line)))
