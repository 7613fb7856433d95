"""Cuts raw results into runs of lines for the word index, masked and stored in batches.

A run is some 1,200 characters of lines that belong together: it begins after a blank line or where the indentation
decreases, and never with a line that closes a block. That fits code, JSON, tables, logs with tracebacks, and prose;
line numbers in front of lines, as `cat -n` and grep write them, do not count as indentation. An overlong line is cut
between its items. The same bytes always give the same runs, so indexing a large result resumes after a crash.

A ref has at most some 2,000 runs, which are longer in larger refs. Of a ref over 8 MiB only the first and the last 4
MiB are indexed; `grep` searches all of it. Results that are not UTF-8 text have no runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from mcp_memory.core.errors import Damaged, NotFound
from mcp_memory.core.secrets.masking import mask_lines
from mcp_memory.core.text import decode_text, detect_encoding
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import ref_rows, word_index
from mcp_memory.store.values import NewChunk

AT_ONCE = 64 * 2**10
"""Bytes indexed in one transaction, some 20 ms; a larger result is indexed in the background."""

_CHARS = 1_200
_MAX_RUNS = 2_000
_MAX_CHARS = 8 * 2**20

_NUMBERED = re.compile(r"\s*\d+(?:[\t:|→]|-(?=\s))|[^\s:]+[:-]\d+[:-]")
_BLANK = re.compile(r"[\s│|+=*─-]*")
_CLOSING = re.compile(r"[\])}>]|(?:end|fi|done|esac|else|elif|except|finally|catch)\b")
_ITEM_END = re.compile(r"[\]})][,;]|[.!?;]\s|,|\s")


@dataclass(frozen=True, slots=True)
class LineRun:
    """First and last line of a run, counted from 1, and its characters from `start` until before `end`."""

    lines: tuple[int, int]
    start: int
    end: int


def index_next(store: Store, passing: dict[str, set[str]], space: str, going_on: Callable[[], bool]) -> bool:
    """Index a waiting ref of a space; return whether a ref was waiting.

    Refs in `passing`, by space, are skipped, and a damaged ref is added there. `going_on` is called between batches and
    may block; once it returns False, the remaining runs are left for a later call.
    """
    waiting = store.read(space, word_index.unindexed_ref, passing=passing.get(space, ()))
    if waiting is None:
        return False
    ref = waiting.ref
    try:
        index(store, space, ref, store.read(space, ref_rows.read_bytes, ref), start=waiting.start, going_on=going_on)
    except NotFound:
        pass  # forgotten meanwhile; if that is undone, it waits again
    except Damaged:  # `doctor` reports it
        passing.setdefault(space, set()).add(ref)
    return True


def index(
    store: Store,
    space: str,
    ref: str,
    data: bytes,
    *,
    start: int = 0,
    going_on: Callable[[], bool] = lambda: True,
) -> None:
    """Index the runs of a ref from byte `start` on. Stops if another process indexes it or `going_on` returns False."""
    waiting = chunks_of(data, start=start)
    batch = _batch(waiting)
    while True:
        following = _batch(waiting)
        if not store.write(
            space,
            word_index.put_chunks,
            ref,
            batch,
            word_index.terms_of_chunks(batch),
            start=start,
            complete=not following,
        ):
            return
        if not following or not going_on():
            return
        start, batch = batch[-1].span[1], following


def _batch(waiting: Iterator[NewChunk]) -> list[NewChunk]:
    """Return the next runs to store together: all runs of a small result, so that no search sees half of it."""
    batch: list[NewChunk] = []
    for chunk in waiting:
        batch.append(chunk)
        if chunk.span[1] - batch[0].span[0] > AT_ONCE:
            break
    return batch


def chunks_of(data: bytes, *, start: int = 0) -> Iterator[NewChunk]:
    """Yield the runs of a result that begin at byte `start` or later."""
    encoding = detect_encoding(data)
    if encoding is None or encoding[0] != "utf-8":
        return  # binary, or an encoding whose lines a search could not show
    text = data.decode(*encoding)
    shown = (decode_text(data) or "") if encoding[1] == "surrogateescape" else text
    at = done = 0  # the same position, in bytes and in characters
    for run in runs(text):
        begin = at + _bytes(text[done : run.start], encoding[1])
        at, done = begin + _bytes(text[run.start : run.end], encoding[1]), run.end
        if begin >= start:
            yield NewChunk(lines=run.lines, span=(begin, at), text=mask_lines(shown[run.start : run.end]))


def _bytes(text: str, errors: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", errors))


# --- runs of lines ----------------------------------------------------------------------------------


def runs(text: str) -> Iterator[LineRun]:
    """Yield the runs of a text, in order; of a very long text, only those of its first and last 4 Mi characters."""
    size = max(_CHARS, min(len(text), _MAX_CHARS) // _MAX_RUNS)
    if len(text) <= _MAX_CHARS:
        return _runs(text, 0, len(text), 1, size)
    head = text.rfind("\n", 0, _MAX_CHARS // 2) + 1 or _MAX_CHARS // 2
    tail = text.find("\n", len(text) - _MAX_CHARS // 2) + 1 or len(text) - _MAX_CHARS // 2
    return chain(_runs(text, 0, head, 1, size), _runs(text, tail, len(text), text.count("\n", 0, tail) + 1, size))


def _runs(text: str, start: int, end: int, number: int, size: int) -> Iterator[LineRun]:
    """Yield the runs of a part of the text that begins in line `number`."""
    pending: list[_ChunkLine] = []
    for line in _lines(text, start, end, number, size):
        pending.append(line)
        while pending and pending[-1].end - pending[0].start > size * 3 // 2:
            cut = _best_cut(pending, size)
            yield _run(pending[:cut])
            pending = pending[cut:]
    if pending:
        yield _run(pending)


@dataclass(frozen=True, slots=True)
class _ChunkLine:
    """A line, or a piece of a long line. `rank`, 0 to 3, is how well it begins a run; 0: not at all."""

    number: int
    start: int
    end: int
    depth: int | None
    rank: int


def _run(lines: list[_ChunkLine]) -> LineRun:
    return LineRun(lines=(lines[0].number, lines[-1].number), start=lines[0].start, end=lines[-1].end)


def _lines(text: str, start: int, end: int, number: int, size: int) -> Iterator[_ChunkLine]:
    blank = False
    while start < end:
        newline = text.find("\n", start, end)
        stop = end if newline < 0 else newline + 1
        if stop - start > size * 3 // 2:
            for begin, last in _pieces(text, start, stop, size):
                yield _ChunkLine(number, begin, last, 0, 2)
            blank = False
        else:
            depth = _depth(text[start:stop])
            closing = depth is None or _CLOSING.match(text[start:stop].lstrip()) is not None
            yield _ChunkLine(number, start, stop, depth, 0 if closing else 1 + blank + (blank and depth == 0))
            blank = depth is None
        start, number = stop, number + 1


def _depth(line: str) -> int | None:
    """Return the indentation of a line after its line number, if any; None for a blank line or a ruler."""
    if _BLANK.fullmatch(line):
        return None
    if (line_number := _NUMBERED.match(line)) is not None:
        line = line[line_number.end() :]
    inside = line.lstrip()
    return len(line) - len(inside) if inside else None


def _pieces(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of an overlong line's pieces, which end with an item, a sentence or a word."""
    while end - start > size * 3 // 2:
        window = text[start + size // 2 : start + size]
        cuts = {mark[0].strip() or " ": mark.end() for mark in _ITEM_END.finditer(window)}
        best = max(cuts, key=lambda mark: (len(mark), mark != " "), default=None)
        stop = start + size if best is None else start + size // 2 + cuts[best]
        yield start, stop
        start = stop
    yield start, end


def _best_cut(lines: list[_ChunkLine], size: int) -> int:
    """Return how many of the lines the next run takes: 0.5 to 1.5 times `size` characters.

    The best cut is before a line of high rank, preferably with the least indentation, then near `size`.
    """
    least = min((line.depth for line in lines if line.depth is not None), default=0)
    cuts = [
        (line.rank + 2 * (line.rank > 0 and line.depth == least), -abs(line.start - lines[0].start - size), at)
        for at, line in enumerate(lines)
        if size // 2 <= line.start - lines[0].start <= size * 3 // 2
    ]
    return max(cuts)[-1] if cuts else max(1, len(lines) - 1)
