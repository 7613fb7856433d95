"""Purge verification: searches the bytes of every file of a home for remains of erased texts.

A text is searched for in pieces of PIECE bytes that start at every STEP bytes, both as UTF-8 and as escaped in JSON. So
every run of PIECE + STEP bytes of the text is found (of long texts only parts are searched for). Pieces that also occur
in retained texts prove nothing, so they are excluded (`excuse`). Texts shorter than LEAST bytes would match by chance
and are not searched for. Archives (.zip) are searched too.

Single words of at least LEAST bytes, and the erased names of sessions, files and tools, are searched for as well,
unless they occur in retained texts. They are reported as file and word, because a word may be part of the name of
something else, such as a space.

The treatment of a match depends on the kind of file. In the store's own files, which are derived from rows, it is a
fault and is reported. In logs and in line files that were set aside, the lines that match are removed. Any other file
is a copy, such as a backup: it is reported, and deleted only on request.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mcp_memory.core.regular_files import open_own, read_own, remove_own
from mcp_memory.store import files

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


PIECE, STEP, LEAST = 24, 12, 8
"""The size of a piece, the distance between the starts of pieces, and the minimum size of a text, in bytes."""
_WORDS, _MOST_WORDS = 2**20, 50_000
"""Limits of the search for single words: bytes of each text, and number of words."""
_WHOLE = 65_536
_PARTS, _PART = 64, 1_024
_READ = 2**22
_BITS = 20
_SPREAD = 0x9E3779B97F4A7C15


def forms(text: bytes) -> set[bytes]:
    """Return the byte forms that a text may have in a file."""
    all_forms = {text}
    plain = text.decode("utf-8", "replace")
    for only_ascii in (True, False):
        all_forms.add(json.dumps(plain, ensure_ascii=only_ascii)[1:-1].encode("utf-8", "backslashreplace"))
    return all_forms


def _sample(text: bytes) -> Iterator[bytes]:
    """Yield a text whole; of a long text only the start, the end and evenly spaced parts."""
    if len(text) <= _WHOLE:
        yield text
        return
    for part in range(_PARTS + 1):
        start = (len(text) - _PART) * part // _PARTS
        yield text[start : start + _PART]


def _pieces(form: bytes) -> Iterator[bytes]:
    if len(form) < LEAST:
        return
    for start in range(0, max(1, len(form) - PIECE + 1), STEP):
        yield form[start : start + PIECE]
    if len(form) > PIECE:
        yield form[-PIECE:]


def _join_blocks(kept: Iterable[tuple[str, bytes]]) -> Iterator[tuple[list[int], list[str], bytes]]:
    """Yield texts in all their forms as blocks (offsets, names and bytes), because few large searches are fast."""
    starts, names, data = list[int](), list[str](), bytearray()
    for name, text in kept:
        for form in forms(text):
            starts.append(len(data))
            names.append(name)
            data += form + b"\0"
        if len(data) >= _READ:
            yield starts, names, bytes(data)
            starts, names, data = [], [], bytearray()
    yield starts, names, bytes(data)


@dataclass(slots=True)
class Matches:
    """The residual matches of a file: the places of pieces, and single words. `bytes` counts the bytes read."""

    places: list[str] = field(default_factory=list[str])
    words: set[str] = field(default_factory=set[str])
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class _PieceIndex:
    """An index of pieces by their heads, which are their first LEAST bytes as a number.

    `heads` are sorted. `marked` is a quick filter by a hash of the head. `short` maps heads to the pieces that are
    shorter than PIECE.
    """

    heads: NDArray[np.uint64]
    marked: NDArray[np.bool_]
    short: dict[int, list[bytes]]


_WORD = re.compile(r"\w(?:[\w.@/-]*\w)?")
_PART_OF_WORD = re.compile(r"[^\W_]+")
_OWN_WORDS = (
    b"turn session position role name content said_at learned_at client_id sha256 told held timestamp node_id tool_call"
    b" summary result_ref tool_call_id offloaded score tokens_raw tokens_kept summary_by record step ref tool arguments"
    b" bytes content_type masked created updated heat entities atoms canvas version label status kind detail folded"
    b" groups tombstone reason how ids undone_at purged_at digests taskGoal createdTime updatedTime flowchart Timestamp"
    b" application/json text/plain text/markdown assistant mcp-memory conversations offload canvases tombstones"
    b" retention identity manifest"
)
"""Field names and constants in the files of every home."""


def own_words() -> tuple[str, bytes]:
    """Return the words in the files of every home, for `Traces.excuse`."""
    return "format", _OWN_WORDS


def _words(texts: Iterable[bytes]) -> Iterator[str]:
    """Yield the words of texts, and the parts of compound words; dates and version numbers are left out."""
    for text in texts:
        for word in set(_WORD.findall(text[:_WORDS].decode("utf-8", "ignore"))):
            parts = _PART_OF_WORD.findall(word)
            for candidate in {word, *parts}:
                if any(map(str.isalpha, candidate)) or candidate.isdecimal():
                    yield candidate


def _spellings(words: Iterable[str]) -> dict[bytes, str]:
    """Map the first PIECE bytes of each word, in each way it may be written, to the word in lower case."""
    by_start = dict[bytes, str]()
    for word in words:
        for spelling in {word, word.lower(), word.capitalize(), word.upper()}:
            for form in forms(spelling.encode("utf-8", "surrogatepass")):
                if len(form) >= LEAST:
                    by_start.setdefault(form[:PIECE], word.lower())
        if len(by_start) > _MOST_WORDS:
            break
    return by_start


class Traces:
    """The pieces of erased texts to search for; pieces that retained texts contain too can be excluded.

    The single words of the texts `words` are searched for as well, and so are `names`, as a whole and word by word.
    """

    def __init__(self, texts: Iterable[bytes], *, words: Iterable[bytes] = (), names: Iterable[str] = ()) -> None:
        self._words = _spellings([*names, *_words(words), *_words(name.encode() for name in names)])
        pieces = {
            piece
            for text in texts
            for part in _sample(text)
            for form in forms(part)
            for piece in _pieces(form)
            if len(set(piece)) > 2  # a run of dashes does not identify a text
        }
        self._words = {piece: word for piece, word in self._words.items() if piece not in pieces}
        self._pieces = pieces | self._words.keys()
        self._wanted = set(self._pieces)
        self._index = _build_index(self._pieces)

    def __len__(self) -> int:
        """The number of pieces to search for, without excluded pieces and single words."""
        return len(self._wanted - self._words.keys())

    def excuse(self, kept: Iterable[tuple[str, bytes]], *, words: bool = True) -> list[str]:
        """Exclude pieces that occur in retained texts, given as (name, text).

        Returns the names of the texts that contain any piece. Single words are excluded only with `words`, which is
        meant for contents, not for names.
        """
        names, excused = dict[str, None](), set[str]()
        for starts, text_names, data in _join_blocks(kept):
            for at, piece in self._hits(data, excused_too=True):
                if piece not in self._words:
                    self._wanted.discard(piece)
                    names[text_names[bisect_right(starts, at) - 1]] = None
                elif words:
                    excused.add(self._words[piece])
        self._excuse_words(excused)
        return list(names)

    def _excuse_words(self, excused: set[str]) -> None:
        """Exclude words in all their spellings."""
        if excused:
            self._wanted -= {piece for piece, word in self._words.items() if word in excused}

    def excuse_file(self, path: Path) -> bool:
        """Exclude pieces that occur in a retained file; return whether there are any."""
        excused, carried = False, b""
        with open_own(path) as file:
            while block := file.read(_READ):
                here = {piece for _, piece in self._hits(carried + block, excused_too=True)}
                self._excuse_words({self._words[piece] for piece in here & self._words.keys()})
                here -= self._words.keys()
                self._wanted -= here
                excused = excused or bool(here)
                carried = block[-PIECE:]
        return excused

    def matches(self, data: bytes) -> bool:
        """Return whether the bytes have a residual match."""
        return next(self._hits(data), None) is not None

    def words_in(self, data: bytes) -> set[str]:
        """Return the single words that the bytes have, in lower case."""
        return {self._words[piece] for _, piece in self._hits(data) if piece in self._words}

    def in_file(self, path: Path) -> Matches:
        """Return the residual matches of a file. Raises OSError if it cannot be read or is not a regular file."""
        matches = Matches()
        with open_own(path) as file:
            if path.suffix != ".zip" or not zipfile.is_zipfile(file):
                file.seek(0)
                self._in_stream(file, matches)
                return matches
            with zipfile.ZipFile(file) as archive:
                for member in archive.infolist():
                    with archive.open(member) as stream:
                        self._in_stream(stream, matches, f"{member.filename} ")
        return matches

    def _in_stream(self, file: IO[bytes], matches: Matches, prefix: str = "") -> None:
        size, carried = 0, b""
        while block := file.read(_READ):
            data = carried + block
            begins = size - len(carried)
            hits = {(at, piece) for at, piece in self._hits(data) if at + len(piece) > len(carried)}
            places = sorted({at for at, piece in hits if piece not in self._words})
            matches.places += [f"{prefix}at byte {begins + at:,}" for at in places]
            matches.words |= {self._words[piece] for _, piece in hits if piece in self._words}
            size += len(block)
            carried = data[-PIECE:]
        matches.bytes += size

    def _hits(self, data: bytes, *, excused_too: bool = False) -> Iterator[tuple[int, bytes]]:
        import numpy as np

        index = self._index
        if index is None or len(data) < LEAST:
            return
        searched, short = self._pieces if excused_too else self._wanted, index.short
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
                if whole in searched:
                    yield start, whole
                for piece in short.get(int(words[at]), ()):
                    if piece in searched and data.startswith(piece, start):
                        yield start, piece


def _build_index(pieces: set[bytes]) -> _PieceIndex | None:
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
"""Folders and files that are not copies and are never deleted."""
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The report of a purge verification.

    `found` has a line for each file of the store with a residual match, `unread` for each file that cannot be read.
    """

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
    words: list[str] = field(default_factory=list[str])
    """Files with single words of the erased texts that occur in no retained text, and the words."""


def prove(home: Path, traces: Traces, *, texts: int, also_in: list[str], delete_copies: bool) -> Proof:
    """Search every file below the home for residual matches.

    Matching lines of logs are removed; matching copies are deleted if `delete_copies` is set, and otherwise reported.
    `texts` and `also_in` are passed on to the report.
    """
    count = size = 0
    found, cleared, copies, deleted, unread, words = (list[str]() for _ in range(6))
    for path in _files_below(home):
        name = path.relative_to(home).as_posix()
        try:
            matches = traces.in_file(path)
        except FileNotFoundError:
            continue  # a temporary marker or lock file
        except OSError as error:
            unread.append(f"{name}: {error.strerror or error}")
            continue
        count, size = count + 1, size + matches.bytes
        places, erased_words = matches.places, matches.words | traces.words_in(name.encode("utf-8", "surrogateescape"))
        if (places or matches.words) and _is_log(home, path):
            _remove_lines(path, traces)
            cleared.append(name)
            continue
        if erased_words and not places:
            words.append(f"{name}: {', '.join(sorted(erased_words)[:_SHOWN])}")
        if not places:
            continue
        if _is_copy(home, path):
            if delete_copies:
                remove_own(path)
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
        words=words,
    )


def _files_below(home: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(home):
        for name in sorted(names):
            path = Path(folder) / name
            if path.is_symlink():
                yield path  # reported as unreadable: its target is not part of the home
            elif path.is_file():
                yield path


def _is_log(home: Path, path: Path) -> bool:
    """Return whether a file is a log or a line file that was set aside: lines that no other file depends on."""
    parts = path.relative_to(home).parts
    set_aside = parts[0] == "spaces" and ".jsonl." in path.name
    return set_aside or parts[0] in _LOGS or (len(parts) == 1 and ".log" in path.name)


def copies_in(home: Path) -> list[Path]:
    """Return the files below the home that are neither its own files nor logs."""
    return [path for path in _files_below(home) if _is_copy(home, path) and not _is_log(home, path)]


def _is_copy(home: Path, path: Path) -> bool:
    parts = path.relative_to(home).parts
    return parts[0] not in _NEEDED and not parts[0].startswith("memory.db")


def _remove_lines(path: Path, traces: Traces) -> None:
    lines = read_own(path).splitlines(keepends=True)
    files.write_whole(path, b"".join(line for line in lines if not traces.matches(line)))
