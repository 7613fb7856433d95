"""Pages of one question that hold together, whatever is written, forgotten or embedded between them.

A place in an order means little a minute later: new rows move the statistics of BM25, forgotten ones let others up,
a model ranks anew. So a cursor says what was shown instead: the ids (a byte or two each), which rows there were when
the question was first asked, and when that was. A later page ranks the rows of then and leaves out what was shown.
So nothing is shown twice and nothing that was there is passed over, and no process has to remember anything.

A listing has an order that never changes; its cursor holds the last id alone, and it has no end but the last row.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from mcp_memory.core.errors import InvalidInput
from mcp_memory.store.protocol import Layer, Store

__all__ = ["MAX_SHOWN", "Page", "after", "asked_at", "page_of"]

MAX_SHOWN = 600  # as deep as a question is paged; a cursor is 1,600 characters then
_LAYERS: tuple[Layer, ...] = ("turn", "atom")
_QUESTION, _CHECK = 4, 3  # bytes
_MOST = 2**63 - 1  # no row has a higher number


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Where a question stands before one of its pages."""

    question: bytes
    at: datetime
    """When it was first asked: `yesterday` is the same day on every page."""
    newest: tuple[int, int]
    """The newest turn and atom there were then."""
    shown: frozenset[str] = frozenset()
    listing: bool = False

    @property
    def first(self) -> bool:
        return not self.shown

    def upto(self, layer: Layer) -> int | None:
        """Return the last row that belongs to the question; on its first page all do."""
        return None if self.first else self.newest[_LAYERS.index(layer)]

    def cursor(self) -> str:
        """Return the page as a cursor: opaque, short, and checked for being copied right."""
        numbers = [int(self.listing), max(0, int(self.at.timestamp())), *self.newest]
        for layer in _LAYERS:
            ids = sorted(int(id[1:]) for id in self.shown if id[0] == layer[0])
            numbers += [len(ids), *(after - before for before, after in zip([0, *ids], ids, strict=False))]
        body = self.question + b"".join(map(_packed, numbers))
        return base64.urlsafe_b64encode(_check(body) + body).decode().rstrip("=")


def asked_at(cursor: str | None, now: datetime) -> datetime:
    """Return when the question of a cursor was first asked; without one, now (in whole seconds)."""
    return _parse(cursor).at if cursor is not None else now.replace(microsecond=0)


def page_of(
    cursor: str | None, asked: object, *, at: datetime, store: Store, space: str, listing: bool = False
) -> Page:
    """Return the page that a cursor points to, or the first. InvalidInput for a cursor of another question."""
    question = hashlib.sha256(repr(asked).encode("utf-8", "surrogatepass")).digest()[:_QUESTION]
    if cursor is None:
        newest = store.newest(space, "turn"), store.newest(space, "atom")
        return Page(question=question, at=at, newest=newest, listing=listing)
    page = _parse(cursor)
    if page.question != question:
        raise InvalidInput(
            "That cursor belongs to another question. Repeat the same query and filters with it, or leave it out."
        )
    return page


def after(start: str, ids: Iterable[str]) -> str | None:
    """Return the cursor for what comes after these rows of the page that starts at `start`; None past the depth."""
    page, shown = _parse(start), list(ids)
    if page.listing:
        return replace(page, shown=frozenset(shown[-1:]) or page.shown).cursor()
    all_shown = page.shown.union(shown)
    return replace(page, shown=all_shown).cursor() if len(all_shown) < MAX_SHOWN else None


def _parse(cursor: str) -> Page:
    try:
        data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        body = data[_CHECK:]
        numbers = _unpacked(body[_QUESTION:])
        listing, at, turn, atom = (next(numbers) for _ in range(4))
        page = Page(
            question=body[:_QUESTION],
            at=datetime.fromtimestamp(at, UTC),
            newest=(turn, atom),
            shown=frozenset(id for layer in _LAYERS for id in _ids(layer, numbers)),
            listing=bool(listing),
        )
        # The check is right, it was copied to the last character, and no forger made up its rows.
        if page.cursor() == cursor and max(turn, atom) <= _MOST:
            return page
    except (ValueError, binascii.Error, RuntimeError, OverflowError, OSError):
        pass
    raise InvalidInput("That cursor is not one of ours. Leave it out to start from the first result.")


def _ids(layer: Layer, numbers: Iterator[int]) -> Iterator[str]:
    number = 0
    for _ in range(min(next(numbers), MAX_SHOWN)):
        number += next(numbers)
        yield f"{layer[0]}{number}"


def _check(body: bytes) -> bytes:
    return hashlib.sha256(b"page" + body).digest()[:_CHECK]


def _packed(number: int) -> bytes:
    """Return a number in as few bytes as it needs, seven bits in each."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _unpacked(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield number
            number = shift = 0
