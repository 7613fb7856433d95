"""The searches for turns and for memories, in pages of whole rows.

A cursor contains the ids shown so far, the time when the question was first asked, and the numbers of the newest rows
at that time. A later page ranks the rows that existed then, without rows already shown. So nothing is shown twice or
skipped, whatever is written or forgotten in between.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate, islice
from typing import NamedTuple
from zlib import crc32

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import AtomHit, Fact, MemoryResults, ResultHit, Turn, TurnHit, TurnResults
from mcp_memory.language.words import fold, index_terms, query_terms
from mcp_memory.longterm.search.answerability import judge, reach_of
from mcp_memory.longterm.search.changed import COMPARED, changed_turns, newer_first, with_changed_lines
from mcp_memory.longterm.search.rerank import FIRST, Rerank, keep_order
from mcp_memory.longterm.search.results import SHOWN, result_filters, results
from mcp_memory.longterm.search.scenes import MIN_COSINE, resolve_filters, scenes_for
from mcp_memory.longterm.search.search import Ranked, Search, atom_turns
from mcp_memory.longterm.validity import current_atoms, current_facts, is_past, time_note
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, entity_rows, evidence_rows, quarantine_rows, turn_rows
from mcp_memory.store.values import Filters, Layer, Vectors

_FACTS = 20
_AT_A_TIME = 5

Embed = Callable[[str], Sequence[Vectors]]


def search_turns(
    store: Store,
    search: Search,
    space: str,
    query: str,
    *,
    embed: Embed,
    filters: Filters,
    neighbours: int,
    limit: int,
    cursor: str | None,
    at: datetime,
    rerank: Rerank = keep_order,
) -> TurnResults:
    """Return a page of turns that match, best first, each with its neighbours; the first page has tool results too.

    Raises NotFound for an unknown session, and InvalidInput for a cursor of another search.

    Without a query the turns that pass the filters are listed, the newest first, without neighbours.

    A hit that is already shown as a neighbour of a better hit does not count towards `limit`; a page has less than
    twice `limit` hits. `at` is the time when the question was first asked (`asked_at`).
    """
    require_session(store, space, filters)
    listing = not query.strip()
    page = page_of(cursor, ("turns", space, query, filters), at=at, store=store, space=space, listing=listing)
    if listing:
        return _list_turns(store, space, filters, page, limit)
    hit_limit = max(FIRST, COMPARED, len(page.shown) + 2 * limit)
    hits_found = search(space, "turn", query, embed=embed, filters=page.then(filters, "turn"), limit=hit_limit, at=at)
    ranked = rerank(space, query, hits_found, len(page.shown))
    shown = [hit for hit in ranked.hits if hit.id not in page.shown][: 2 * limit]
    read_first(store, space, hits_found, shown, around=neighbours)
    asking = partial(search, space, "turn", query, embed=embed, at=at)
    newer = find_changes(store, space, asking, page, limit, hits_found, filters)
    fresh = [hit for hit in current_first(ranked.hits, newer) if hit.id not in page.shown]
    judgement = judge(store, space, query, hits_found, embed=embed, at=at)
    some = fresh[: 2 * limit - 1 if neighbours else limit]
    hits = _turn_hits(store, space, some, neighbours, judgement.close, newer)
    many = _count_filling(hits, limit)

    def said() -> list[Ranked]:
        stated = search(space, "atom", query, embed=embed, filters=Filters(), limit=COMPARED, at=at)
        return [*hits_found[:COMPARED], *stated]

    return TurnResults(
        hits=hits[:many],
        cursor=page.after(fresh, many),
        start=page.cursor(),
        note=ranked.note,
        results=_results(store, space, query, filters, page, limit, embed=embed, said=said, newer=newer),
        known=judgement.known,
    )


def require_session(store: Store, space: str, filters: Filters) -> None:
    """Raise NotFound if the session in the filters does not exist."""
    if filters.session is not None and not store.read(space, turn_rows.session_turns, filters.session, limit=1):
        name = one_line(filters.session, 60)
        raise NotFound(f"There is no session {name!r} in this space. Leave it out to search all of them.")


def _list_turns(store: Store, space: str, filters: Filters, page: PageState, limit: int) -> TurnResults:
    last = next(iter(page.shown), None)
    listed = store.read(space, turn_rows.list_turns, filters=page.then(filters, "turn"), after=last, limit=limit + 1)
    fresh = [_listed_row(turn.id) for turn in listed]
    return TurnResults(
        hits=_turn_hits(store, space, fresh[:limit], 0, (), {}), cursor=page.after(fresh, limit), start=page.cursor()
    )


def _listed_row(id: str) -> Ranked:
    return Ranked(id=id, score=0.0, found_by={"listed": 1.0}, cosine=None)


def search_memories(
    store: Store,
    search: Search,
    space: str,
    query: str,
    *,
    embed: Embed,
    filters: Filters,
    limit: int,
    cursor: str | None,
    at: datetime,
    rerank: Rerank = keep_order,
) -> MemoryResults:
    """Return a page of atoms and verbatim turns, each best first; facts, scenes and tool results on the first page.

    Without a query the atoms that pass the filters are listed, standing instructions first. Raises NotFound for an
    unknown scene or entity, and InvalidInput for a cursor of another search.
    """
    filters, taken_as = resolve_filters(store, space, filters)
    listing = not query.strip()
    page = page_of(cursor, ("memories", space, query, filters), at=at, store=store, space=space, listing=listing)
    note, atoms, judgement, newer = None, list[Ranked](), None, dict[str, Turn]()
    lines: list[ResultHit] = []
    if listing:
        last = next(iter(page.shown), None)
        listed = current_atoms(store, space, page.then(filters, "atom"), at, after=last, limit=limit + 1)
        fresh = [_listed_row(atom.id) for atom in listed]
    else:
        many = max(FIRST, len(page.shown) + limit + 1)
        rows = rows_for(store, search, space, query, embed=embed, filters=filters, limit=many, at=at, page=page)
        atoms, said = rows.atoms, [*rows.atoms, *rows.turns[:COMPARED]]
        if turn_filters(filters) is not None:
            judgement = judge(store, space, query, rows.turns, rows.atoms, embed=embed, at=at)
        ranked = rerank(space, query, rows.ordered, len(page.shown))
        asking = partial(search, space, "turn", query, embed=embed, at=at)
        read_first(store, space, rows.turns, rows.turns[:limit])
        newer = find_changes(store, space, asking, page, limit, rows.turns, turn_filters(filters))
        fresh = [hit for hit in current_first(ranked.hits, newer) if hit.id not in page.shown]
        note = ranked.note
        lines = _results(store, space, query, filters, page, limit, embed=embed, said=lambda: said, newer=newer)
    return MemoryResults(
        atoms=_atom_hits(store, space, [hit for hit in fresh[:limit] if hit.id[0] == "a"], filters.as_of or at),
        facts=_facts(store, space, query, filters, at) if page.first else [],
        scenes=scenes_for(store, space, query, filters=filters, atoms=atoms, at=at) if page.first else [],
        turns=_turn_hits(
            store,
            space,
            [hit for hit in fresh[:limit] if hit.id[0] == "t"],
            0,
            judgement.close if judgement else (),
            newer,
        ),
        cursor=page.after(fresh, limit),
        start=page.cursor(),
        note=" ".join(filter(None, (taken_as, note))) or None,
        results=lines,
        known=judgement.known if judgement else None,
    )


# --- the results ------------------------------------------------------------------------------------


class MemoryRows(NamedTuple):
    """The rows of a memory search, each list best first; `ordered` has the atoms and turns in the order of pages."""

    atoms: list[Ranked]
    turns: list[Ranked]
    ordered: list[Ranked]


def rows_for(
    store: Store,
    search: Search,
    space: str,
    query: str,
    *,
    embed: Embed,
    filters: Filters,
    limit: int,
    at: datetime,
    page: PageState | None = None,
) -> MemoryRows:
    """Return the atoms that share a word with the query or are near in meaning, and turns.

    In `ordered`, rows with literals of the query come first; then atoms and turns alternate in fives, without turns
    that are evidence of an atom before them: on real conversations, atoms before all turns hide a tenth of the
    evidence, while alternating rows bring a little more of it than turns alone (`bench.pyramid`).
    """

    def ranked(layer: Layer, passing: Filters, limit: int) -> list[Ranked]:
        page_filters = page.then(passing, layer) if page else passing
        return search(space, layer, query, embed=embed, filters=page_filters, limit=limit, at=at)

    # A statement may end in the future, when a later value begins: it is current until then.
    hits = ranked("atom", replace(filters, ended=True), MAX_SHOWN)
    found_atoms = store.read(space, atom_rows.by_ids, [hit.id for hit in hits])
    past = {atom.id for atom in found_atoms if is_past(atom, filters.as_of or at)}
    hits = [hit for hit in hits if hit.id not in past]
    atoms = [hit for hit in hits if "words" in hit.found_by or (hit.cosine or 0.0) >= MIN_COSINE][:limit]
    passing = turn_filters(filters)
    turns = ranked("turn", passing, max(limit, COMPARED)) if passing else []
    whole_turns = iter(turns)
    evidence = {atom.id: atom_turns(atom) for atom in store.read(space, atom_rows.by_ids, [hit.id for hit in atoms])}
    literal_turns = {hit.id for hit in turns if hit.verbatim}  # a statement based on it may leave the literal out
    order: list[Ranked] = []
    evidence_ids: set[str] = set()
    for start in range(0, len(atoms), _AT_A_TIME):
        some = atoms[start : start + _AT_A_TIME]
        evidence_ids.update(turn for atom in some for turn in evidence.get(atom.id, ()) if turn not in literal_turns)
        order += [*some, *islice((hit for hit in whole_turns if hit.id not in evidence_ids), _AT_A_TIME)]
    order += [hit for hit in whole_turns if hit.id not in evidence_ids]
    return MemoryRows(atoms=atoms, turns=turns, ordered=sorted(order, key=lambda hit: -hit.verbatim))


def turn_filters(filters: Filters) -> Filters | None:
    """Return the filters of a memory search adapted to turns; None if no turn can pass."""
    if filters.kind or filters.entity or filters.scene:
        return None
    until = filters.until if filters.as_of is None else min(filters.as_of, filters.until or filters.as_of)
    return Filters(since=filters.since, until=until)


def _results(
    store: Store, space: str, query: str, filters: Filters, page: PageState, limit: int, *,
    embed: Embed, said: Callable[[], Sequence[Ranked]], newer: Mapping[str, Turn],
) -> list[ResultHit]:  # fmt: skip
    """Return matching lines of tool results, on the first page only.

    At most five that are about the query, or all matches up to `limit` if the filters ask for tool turns only. Lines of
    files are marked if one of the turns and statements that `said` returns contradicts them, unless a turn in `newer`
    replaced it.
    """
    passing = result_filters(filters) if page.first else None
    if passing is None:
        return []
    if filters.role == "tool":
        hits = results(store, space, query, filters=passing, limit=limit, least=0.0)
    else:
        hits = results(store, space, query, filters=passing, limit=min(limit, SHOWN))
    if not any(hit.of_file for hit in hits):
        return hits
    ids = [row.id for row in said() if row.id not in newer]
    return with_changed_lines(store, space, hits, ids, embed=embed)


def _facts(store: Store, space: str, query: str, filters: Filters, at: datetime) -> list[Fact]:
    """Return the facts of the entity or scene in the filters; without such filters, the facts that the query names.

    A query names a fact by its entity, or by its relation if it is a fact of the user.
    """
    words = set(query_terms(query))
    filtered = filters.entity is not None or filters.scene is not None
    if not filtered and not words:
        return []
    facts = store.read(space, atom_rows.facts, filters=replace(filters, unheld=True, ended=True), limit=500)
    facts = current_facts(store, space, facts, filters.as_of or at)
    if not filtered:
        names_of_entities = store.read(space, entity_rows.names, {fact.entity for fact in facts})
        names = {fold(entity): " ".join(names) for entity, names in names_of_entities.items()}
        facts = [fact for fact in facts if not words.isdisjoint(index_terms(_asked_by(fact, names)))]
    return facts[:_FACTS]


def _asked_by(fact: Fact, names: Mapping[str, str]) -> str:
    entity = fold(fact.entity)
    return fact.relation.replace("_", " ") if entity == "user" else names.get(entity, fact.entity)


def read_first(
    store: Store, space: str, hits: Sequence[Ranked], shown: Sequence[Ranked] = (), *, around: int = 0
) -> None:
    """Read the turns that judge a question and that are compared with each other, in one query.

    `shown` are those that are shown with the turns `around` them.
    """
    reach = reach_of(hits[:COMPARED])
    store.read(space, turn_rows.read_ahead, reach | {hit.id: max(around, reach.get(hit.id, 0)) for hit in shown})


def find_changes(
    store: Store, space: str, search: Callable[..., list[Ranked]], page: PageState, limit: int, hits: Sequence[Ranked],
    filters: Filters | None,
) -> dict[str, Turn]:  # fmt: skip
    """Return the turns that replaced the value of a hit, by the id of the hit.

    The best hits and the hits of the page are compared with each other; with filters, the best turns of an unfiltered
    search are compared too, since a value may have been replaced in another session.
    """
    some = [*hits[:COMPARED], *islice((hit for hit in hits if hit.id not in page.shown), 2 * limit)]
    if some and filters != Filters():
        some += search(filters=page.then(Filters(), "turn"), limit=COMPARED)
    return changed_turns(store, space, list(dict.fromkeys(hit.id for hit in some)))


def current_first(hits: Sequence[Ranked], newer: Mapping[str, Turn]) -> list[Ranked]:
    """Return the hits, each turn that replaced a value moved before the turn with the old value."""
    by_id = {hit.id: hit for hit in hits}
    return newer_first(hits, {old: by_id[turn.id] for old, turn in newer.items() if turn.id in by_id})


def _turn_hits(
    store: Store, space: str, hits: Sequence[Ranked], neighbours: int, close: Collection[str],
    newer: Mapping[str, Turn],
) -> list[TurnHit]:  # fmt: skip
    ids = [hit.id for hit in hits]
    near = (
        store.read(space, turn_rows.context_windows, ids, around=neighbours)
        if neighbours
        else store.read(space, turn_rows.by_ids, ids)
    )
    turns = {turn.id: turn for turn in near}
    reasons = {
        row.id: row.reasons for row in store.read(space, quarantine_rows.list_quarantined, turns) if row.is_quarantined
    }

    by_place = {(turn.session, turn.position): turn for turn in near}

    def around(turn: Turn) -> list[Turn]:
        places = range(turn.position - neighbours, turn.position + neighbours + 1)
        others = (by_place.get((turn.session, place)) for place in places if place != turn.position)
        return [other for other in others if other is not None]

    return [
        TurnHit(
            turn=turns[hit.id],
            score=round(hit.score, 5),
            found_by=dict(hit.found_by),
            neighbours=shown,
            held=reasons,
            close=hit.id in close,
            newer={id: newer[id] for id in (hit.id, *(turn.id for turn in shown)) if id in newer},
        )
        for hit in hits
        if hit.id in turns
        for shown in [around(turns[hit.id]) if neighbours else []]
    ]


def _count_filling(hits: Sequence[TurnHit], limit: int) -> int:
    """Return how many hits, best first, fill a page of `limit`; hits already shown as neighbours do not count."""
    shown: set[str] = set()
    taken = 0
    for many, hit in enumerate(hits):
        if hit.turn.id not in shown:
            if taken == limit:
                return many
            taken += 1
        shown.update(turn.id for turn in (hit.turn, *hit.neighbours))
    return len(hits)


def _atom_hits(store: Store, space: str, hits: Sequence[Ranked], at: datetime) -> list[AtomHit]:
    atoms = {atom.id: atom for atom in store.read(space, atom_rows.by_ids, [hit.id for hit in hits])}
    cites = store.read(space, evidence_rows.citations, list(atoms))
    return [
        AtomHit(
            atom=atoms[hit.id],
            score=round(hit.score, 5),
            found_by=dict(hit.found_by),
            cites=tuple(cites.get(hit.id, ())),
            when=time_note(atoms[hit.id], at) or None,
        )
        for hit in hits
        if hit.id in atoms
    ]


# --- pages ------------------------------------------------------------------------------------------

MAX_SHOWN = 600  # as deep as a question is paged; a cursor is 1,600 characters then
_LAYERS: tuple[Layer, ...] = ("turn", "atom")
_OTHER = "x"
_LETTERS = ("t", "a", _OTHER)  # of ids in a cursor
_QUESTION, _CHECK = 4, 3  # bytes
_MAX_ROW = 2**63 - 1  # no row has a higher number


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """The state of a paged search before a page is read."""

    question: bytes
    at: datetime
    """When the question was first asked: "yesterday" is the same day on every page."""
    newest: tuple[int, int]
    """The numbers of the newest turn and atom at that time."""
    shown: frozenset[str] = frozenset()
    listing: bool = False

    @property
    def first(self) -> bool:
        return not self.shown

    def then(self, filters: Filters, layer: Layer) -> Filters:
        """Return the filters, on later pages limited to the rows that existed when the question was first asked."""
        return filters if self.first else replace(filters, upto=self.newest[_LAYERS.index(layer)])

    def after(self, hits: Sequence[Ranked], limit: int) -> str | None:
        """Return the cursor of the page after the first `limit` hits; None if there are no more hits."""
        return self.next_cursor([hit.id for hit in hits[:limit]]) if len(hits) > limit else None

    def next_cursor(self, shown: Iterable[str]) -> str | None:
        """Return the cursor of the page after this page, which shows these rows; see `after`."""
        ids = list(shown)
        if self.listing:
            return replace(self, shown=frozenset(ids[-1:]) or self.shown).cursor()
        all_shown = self.shown.union(ids)
        return replace(self, shown=all_shown).cursor() if len(all_shown) < MAX_SHOWN else None

    def cursor(self) -> str:
        """Return the state as a cursor: an opaque, short text with a checksum that reveals copying errors."""
        numbers = [int(self.listing), max(0, int(self.at.timestamp())), *self.newest]
        for letter in _LETTERS:
            ids = sorted(int(id[1:]) for id in self.shown if id[0] == letter)
            if ids or letter != _OTHER:
                numbers += [len(ids), *(after - before for before, after in zip([0, *ids], ids, strict=False))]
        body = self.question + b"".join(map(_pack, numbers))
        return base64.urlsafe_b64encode(_check(body) + body).decode().rstrip("=")


def other_id(name: str) -> str:
    """Return a short id for a row that is neither a turn nor an atom, for a cursor."""
    return f"{_OTHER}{crc32(name.encode('utf-8', 'surrogatepass'))}"


def asked_at(cursor: str | None, now: datetime) -> datetime:
    """Return when the question of a cursor was first asked; without a cursor, now (in whole seconds).

    Raises InvalidInput for a damaged cursor.
    """
    return _parse(cursor).at if cursor is not None else now.replace(microsecond=0)


def page_of(
    cursor: str | None, asked: object, *, at: datetime, store: Store, space: str, listing: bool = False
) -> PageState:
    """Return the page that a cursor points to; without a cursor, the first page.

    Raises InvalidInput for a cursor that is damaged or belongs to another question.
    """
    question = hashlib.sha256(repr(asked).encode("utf-8", "surrogatepass")).digest()[:_QUESTION]
    if cursor is None:
        newest = store.totals(space, "turn").newest, store.totals(space, "atom").newest
        return PageState(question=question, at=at, newest=newest, listing=listing)
    page = _parse(cursor)
    if page.question != question:
        raise InvalidInput(
            "That cursor belongs to another question. Repeat the same query and filters with it, or leave it out."
        )
    return page


def after(start: str, ids: Iterable[str]) -> str | None:
    """Return the cursor for the page after the page that began at cursor `start` and showed the rows `ids`.

    None if `MAX_SHOWN` rows of a search were shown; listings have no such limit. Raises InvalidInput if `start` is
    damaged.
    """
    return _parse(start).next_cursor(ids)


def _parse(cursor: str) -> PageState:
    try:
        data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        body = data[_CHECK:]
        numbers = _unpack(body[_QUESTION:])
        listing, at, turn, atom = (next(numbers) for _ in range(4))
        page = PageState(
            question=body[:_QUESTION],
            at=datetime.fromtimestamp(at, UTC),
            newest=(turn, atom),
            shown=frozenset(
                f"{letter}{number}"
                for letter in _LETTERS
                for number in accumulate(islice(numbers, min(next(numbers, 0), MAX_SHOWN)))
            ),
            listing=bool(listing),
        )
        # The check is right, it was copied to the last character, and no forger made up its rows.
        if page.cursor() == cursor and max(turn, atom) <= _MAX_ROW:
            return page
    except (ValueError, binascii.Error, RuntimeError, OverflowError, OSError):
        pass
    raise InvalidInput("That cursor is not one of ours. Leave it out to start from the first result.")


def _check(body: bytes) -> bytes:
    return hashlib.sha256(b"page" + body).digest()[:_CHECK]


def _pack(number: int) -> bytes:
    """Return a number in as few bytes as it needs, seven bits in each."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _unpack(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield number
            number = shift = 0
