"""One search of all layers: turns, statements, lines of tool results and files, pages and entities in one list.

All layers are ordered by one scale: the probability that a row is part of the answer (`answerability`). Within a layer
the order of its own search stays, since it knows more; the layers are merged by the probabilities of their next rows.
A page or an entity is as likely to help as its words, or as the likeliest of its statements that were found, and stands
after that statement. Rows that were not judged have the probability 0, and alternate.

Two rules precede the scale: rows that contain an identifier or a quoted phrase of the query come first (`literals`),
and quarantined rows last. Turns that are evidence of a statement before them are left out. A turn whose statement was
replaced stands directly behind the replacement.

A query of a time alone finds the rows of that time. Beside other words a time counts in the ranking of turns: rows of
the time before all others were tried, and found no more of the evidence. People may ask for rows of the time alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from heapq import merge
from typing import Any, Literal

from mcp_memory.core.types import Atom, FoundLayer, FoundPage, Hit, Known, ResultHit, Scene, Turn
from mcp_memory.language.when.intervals import Span
from mcp_memory.language.words import fold
from mcp_memory.longterm.persona import body as persona_body
from mcp_memory.longterm.scenes import readable_scenes
from mcp_memory.longterm.search.answerability import Judgement, judge
from mcp_memory.longterm.search.changed import COMPARED, newer_first, with_changed_lines
from mcp_memory.longterm.search.literals import VERBATIM, share_in
from mcp_memory.longterm.search.marking import excerpt, marks
from mcp_memory.longterm.search.pages import (
    MAX_SHOWN,
    Embed,
    PageState,
    current_first,
    find_changes,
    other_id,
    page_of,
    read_first,
    require_session,
    turn_filters,
)
from mcp_memory.longterm.search.query import ParsedQuery, asked_period, is_time_only, parse_query
from mcp_memory.longterm.search.question_words import content_words
from mcp_memory.longterm.search.rerank import FIRST, Rerank, keep_order
from mcp_memory.longterm.search.results import ABOUT, SHOWN, result_filters, results, results_of_call
from mcp_memory.longterm.search.scenes import MIN_COSINE, resolve_filters, text_of
from mcp_memory.longterm.search.search import Ranked, Search, atom_turns
from mcp_memory.longterm.validity import current_atoms, is_past, time_note
from mcp_memory.store.citations import address, cited_atoms
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, entity_rows, quarantine_rows, turn_rows
from mcp_memory.store.values import Filters
from mcp_memory.suspicion.flags import flags

PERSONA = "persona"
_RESULTS, _PAGES, _ENTITIES = 40, 4, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A row of one layer before it is read for showing."""

    id: str
    layer: FoundLayer
    chance: float
    verbatim: float = 0.0
    ranked: Ranked | None = None
    """Of a turn or statement."""
    content: ResultHit | Scene | str | None = None
    """Of a result, a scene, or another page or entity: its text."""

    @property
    def shown_id(self) -> str:
        """The id in a cursor."""
        return self.id if self.ranked else other_id(f"{self.layer} {self.id}")


def find(
    store: Store,
    search: Search,
    space: str,
    query: str,
    *,
    embed: Embed,
    filters: Filters,
    layers: Collection[FoundLayer],
    neighbours: int,
    limit: int,
    cursor: str | None,
    at: datetime,
    rerank: Rerank = keep_order,
    in_period: bool = False,
) -> FoundPage:
    """Return a page of the rows of `layers` that match, best first. Layers without what `filters` name are left out.

    Without a query, turns are listed, the newest first; if only statements are searched, statements, rules first. With
    `in_period`, a past or present time in the query filters, unless `filters` have a time, and is not searched for.
    Raises NotFound for an unknown session, scene or entity, and InvalidInput for a cursor of another search.
    """
    require_session(store, space, filters)
    filters, taken_as = resolve_filters(store, space, filters)
    times = parse_query(query, at).times
    period = asked_period(times) if times else None
    has_time = bool(filters.since or filters.until or filters.as_of)
    filtered = in_period and period is not None and period[0] <= at and not has_time
    if filtered and period:
        query = _without_times(query, times)
        period = (min(map(_start, times)), max(map(_end, times)))
        filters = replace(filters, since=period[0], until=period[1])
    listing = not query.strip()
    asked = ("find", space, query, filters, sorted(layers))
    page = page_of(cursor, asked, at=at, store=store, space=space, listing=listing)
    finder = _Finder(store, search.cached(), space, query, embed, filters, layers, page, limit, at)
    if listing:
        rows, known, note = finder.listed(), None, None
    else:
        all_rows, note = finder.ordered(rerank)
        known = finder.known(all_rows)
        rows = [row for row in all_rows if row.shown_id not in page.shown]
    shown = rows[:limit]
    return FoundPage(
        hits=finder.hits(shown, neighbours),
        cursor=page.next_cursor([row.shown_id for row in shown]) if len(rows) > limit else None,
        known=known,
        period=period,
        filtered=filtered,
        note=" ".join(filter(None, (taken_as, note))) or None,
    )


def _start(span: Span) -> datetime:
    """Return the start of a time as a filter: exact for "last week", a little earlier for "three weeks ago"."""
    return span.start - _vagueness(span)


def _end(span: Span) -> datetime:
    return span.end + _vagueness(span)


def _vagueness(span: Span) -> timedelta:
    return span.slack if span.end - span.start < 2 * span.slack else timedelta()


def _without_times(query: str, times: Sequence[Span]) -> str:
    """Return a query without its times; empty if it has no other words to search by."""
    rest = query
    for span in reversed(times):
        rest = f"{rest[: span.at[0]].rstrip()} {rest[span.at[1] :].lstrip()}"
    return rest.strip() if content_words(rest) and not is_time_only(query, times) else ""


class _Finder:
    """Finds the rows of one query, layer by layer."""

    def __init__(
        self, store: Store, search: Search, space: str, query: str, embed: Embed, filters: Filters,
        layers: Collection[FoundLayer], page: PageState, limit: int, at: datetime,
    ) -> None:  # fmt: skip
        self._store = store
        self._space = space
        self._query = query
        self.question: ParsedQuery = parse_query(query, at)
        self._words = frozenset(content_words(query))
        self._embed = embed
        self._filters = filters
        self._layers = layers
        self._page = page
        self._limit = limit
        self._at = at
        self._held: dict[str, tuple[str, ...]] = {}
        self._search = partial(search, space, query=query, embed=embed, at=at)
        self._depth = len(page.shown) + limit + 1
        self._newer: dict[str, Turn] = {}
        self._corrections: dict[str, Atom] = {}
        if query.strip():
            self._turns = self._find_turns()
            self._atoms = self._find_atoms()
            self._held |= self._quarantined([hit.id for hit in self._atoms])
            self._corrections = self._find_corrections()
            self.judgement: Judgement = judge(store, space, query, self._turns, self._atoms, embed=embed, at=at)
            read_first(store, space, self._turns, self._turns[:limit])
            self._newer = find_changes(
                store, space, partial(self._search, layer="turn"), page, limit, self._turns, self._turn_filters
            )

    def _quarantined(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the reasons of quarantined rows by id."""
        held = self._store.read(self._space, quarantine_rows.list_quarantined, ids)
        return {row.id: tuple(row.reasons) for row in held if row.is_quarantined}

    def known(self, rows: Sequence[_Row]) -> Known:
        """Return whether the memory knows about the query: not "unlikely" if a row has a literal of it."""
        share = max((row.verbatim for row in rows if row.id not in self._held), default=0.0)
        if self.question.literal_only and share == 1.0:
            return "likely"
        return "unsure" if share and self.judgement.known == "unlikely" else self.judgement.known

    # --- the layers ---------------------------------------------------------------------------------

    @property
    def _turn_filters(self) -> Filters | None:
        passing = turn_filters(self._filters)
        if passing is None:
            return None
        filters = self._filters
        return replace(
            passing, session=filters.session, project=filters.project, client=filters.client, role=filters.role
        )

    @property
    def _only_statements(self) -> bool:
        return set(self._layers) == {"statement"} or turn_filters(self._filters) is None

    def _find_turns(self) -> list[Ranked]:
        passing = self._turn_filters
        if passing is None:
            return []
        search = partial(self._search, layer="turn", filters=self._page.then(passing, "turn"))
        depth = max(FIRST, COMPARED, self._depth)
        while True:
            hits = search(limit=depth)
            self._held = self._quarantined([hit.id for hit in hits])
            if len(hits) < depth or len(hits) - len(self._held) >= self._depth:
                return hits
            depth *= 2  # quarantined rows come last, however many are found before others

    def _find_atoms(self) -> list[Ranked]:
        """Return current statements that share a word with the query or are near in meaning.

        Beside turns, sentences that were extracted without a model are left out: their turns are found by the same
        words.
        """
        filters = self._filters
        if filters.session or filters.project or filters.client or filters.role:
            return []
        passing = replace(filters, ended=True, sentences=self._only_statements)
        hits = self._search(layer="atom", filters=self._page.then(passing, "atom"), limit=MAX_SHOWN)
        moment = filters.as_of or self._at
        past = {
            atom.id
            for atom in self._store.read(self._space, atom_rows.by_ids, [hit.id for hit in hits])
            if is_past(atom, moment)
        }
        return [
            hit for hit in hits if hit.id not in past and ("words" in hit.found_by or (hit.cosine or 0.0) >= MIN_COSINE)
        ]

    def _find_corrections(self) -> dict[str, Atom]:
        """Return the found statements that replaced a statement based on an earlier turn, by the id of that turn."""
        found = [hit.id for hit in self._atoms if hit.id not in self._held]
        latest = {atom.id: atom for atom in self._store.read(self._space, atom_rows.by_ids, found)}
        corrections: dict[str, Atom] = {}
        while latest:
            replaced = self._store.read(self._space, atom_rows.superseded_by, list(latest))
            latest = {atom.id: latest[atom.superseded_by] for atom in replaced if atom.superseded_by}
            corrections |= {turn: latest[atom.id] for atom in replaced for turn in atom_turns(atom)}
        return {turn: atom for turn, atom in corrections.items() if turn not in atom_turns(atom)}

    def _turn_rows(self) -> Iterator[_Row]:
        for hit in current_first(self._turns, self._newer) if "turn" in self._layers else ():
            yield self._ranked_row(hit, "turn")

    def _atom_rows(self) -> Iterator[_Row]:
        for hit in self._atoms if "statement" in self._layers else ():
            yield self._ranked_row(hit, "statement")

    def _ranked_row(self, hit: Ranked, layer: Literal["turn", "statement"]) -> _Row:
        chance = self.judgement.rows.get(hit.id, 0.0)
        return _Row(id=hit.id, layer=layer, chance=chance, verbatim=hit.verbatim, ranked=hit)

    def _result_rows(self) -> list[_Row]:
        passing = result_filters(self._filters)
        if passing is None or "result" not in self._layers:
            return []
        alone = set(self._layers) == {"result"} or self._filters.role == "tool"
        most, least = (min(_RESULTS, self._depth), 0.0) if alone else (SHOWN, ABOUT)
        hits = self._results_of_call(passing)
        of_call = {hit.ref for hit in hits}
        found = results(self._store, self._space, self._query, filters=passing, limit=most, least=least)
        hits += [hit for hit in found if hit.ref not in of_call]
        rows = [
            _Row(
                id=address(hit.ref, hit.lines),
                layer="result",
                chance=self.judgement.chance_by_words(hit.share),
                verbatim=hit.found_by.get(VERBATIM) or 0.0,
                content=hit,
            )
            for hit in hits
        ]
        for row, hit in zip(rows, hits, strict=True):
            if held := flags(f"{hit.call}\n{hit.text}", "tool"):
                self._held[row.id] = held
        return rows

    def _results_of_call(self, passing: Filters) -> list[ResultHit]:
        if passing != Filters(session=passing.session):
            return []
        return results_of_call(self._store, self._space, self._query, session=passing.session)

    def _page_rows(self) -> list[_Row]:
        """Return the pages with a line about the query. They mix speakers and times, and describe the present."""
        filters = self._filters
        if "page" not in self._layers or filters != Filters(entity=filters.entity):
            return []
        scenes = readable_scenes(self._store, self._space)
        if filters.entity is not None:
            names = {fold(name) for name in self._names_of(filters.entity)}
            scenes = [scene for scene in scenes if names.intersection(map(fold, scene.entities))]
        pages: list[tuple[str, str, Scene | str]] = [(scene.slug, text_of(scene), scene) for scene in scenes]
        if filters.entity is None:
            text = persona_body(self._store, self._space, at=self._at).removeprefix("# Persona").lstrip()
            pages.append((PERSONA, text, text))
        rows = [
            self._made_of(id, "page", text, cited_atoms(line), content)
            for id, text, content in pages
            for line, share in [self._best_line(text)]
            if share >= ABOUT or share_in(text, self.question.literals)
        ]
        return sorted(rows, key=lambda row: -row.chance)[:_PAGES]

    def _best_line(self, text: str) -> tuple[str, float]:
        """Return the line of a page with the largest share of the query's words, and that share."""
        lines = ((line, self.judgement.share_of_words(line)) for line in text.splitlines())
        return max(lines, key=lambda entry: entry[1], default=("", 0.0))

    def _entity_rows(self) -> list[_Row]:
        """Return the entities that the query names; one is a literal of a query that is its name or words of that."""
        if "entity" not in self._layers or self._filters != Filters():
            return []
        asked = f" {' '.join(fold(self._query).split())} "
        named: dict[str, str] = {}
        for name, main_name in self._store.read(self._space, entity_rows.all_names).items():
            folded = fold(name)
            if (folded in asked and folded and _names(folded, asked)) or (self._words and asked in f" {folded} "):
                named[main_name] = max(named.get(main_name, ""), folded, key=len)
        atoms = self._store.read(self._space, atom_rows.by_ids, [hit.id for hit in self._atoms])
        rows: list[_Row] = []
        for name, folded in named.items():
            about = [atom.id for atom in atoms if name in atom.entities]
            row = self._made_of(name, "entity", name, about, name)
            rows.append(replace(row, verbatim=max(row.verbatim, float(asked in f" {folded} "))))
        return sorted(rows, key=lambda row: (-row.verbatim, -row.chance))[:_ENTITIES]

    def _made_of(self, id: str, layer: FoundLayer, text: str, atoms: Iterable[str], content: Scene | str) -> _Row:
        """Return a row that is as likely to help as its words, or as the likeliest of its statements."""
        by_words = self.judgement.chance_by_words(self._best_line(text)[1])
        chance = max([by_words, *(self.judgement.rows.get(atom, 0.0) for atom in atoms)])
        return _Row(id=id, layer=layer, chance=chance, verbatim=share_in(text, self.question.literals), content=content)

    def _names_of(self, entity: str) -> Sequence[str]:
        return self._store.read(self._space, entity_rows.names, [entity]).get(entity, (entity,))

    # --- one list -----------------------------------------------------------------------------------

    def listed(self) -> list[_Row]:
        """Return the next rows of a listing without a query."""
        last = next(iter(self._page.shown), None)
        if "turn" in self._layers and (passing := self._turn_filters) is not None:
            listed: Sequence[Turn | Atom] = self._store.read(
                self._space,
                turn_rows.list_turns,
                filters=self._page.then(passing, "turn"),
                after=last,
                limit=self._limit + 1,
            )
        elif "statement" in self._layers:
            passing = self._page.then(self._filters, "atom")
            listed = current_atoms(self._store, self._space, passing, self._at, after=last, limit=self._limit + 1)
        else:
            listed = ()
        self._held = self._quarantined([row.id for row in listed])
        return [
            _Row(
                id=row.id,
                layer="turn" if isinstance(row, Turn) else "statement",
                chance=0.0,
                ranked=Ranked(id=row.id, score=0.0, found_by={"listed": 1.0}, cosine=None),
            )
            for row in listed
        ]

    def ordered(self, rerank: Rerank) -> tuple[list[_Row], str | None]:
        """Return all rows, best first, and a note on the reranking."""
        layers = [list(self._atom_rows()), list(self._turn_rows()), self._result_rows()]
        layers += [self._page_rows(), self._entity_rows()]
        keyed = ([(-row.chance, place, row) for place, row in enumerate(rows)] for rows in layers)
        rows = [row for _, _, row in merge(*keyed, key=lambda entry: entry[:2])]
        rows = self._without_evidence(rows)
        by_id = {row.id: row for row in rows if row.ranked}
        ranked = rerank(self._space, self._query, [row.ranked for row in rows if row.ranked], len(self._page.shown))
        reranked = (by_id[hit.id] for hit in ranked.hits)
        rows = [next(reranked) if row.ranked else row for row in rows]
        rows.sort(key=lambda row: (row.id in self._held, -row.verbatim))
        corrected = {turn: by_id[atom.id] for turn, atom in self._corrections.items() if atom.id in by_id}
        return newer_first(rows, corrected), ranked.note

    def _without_evidence(self, rows: Sequence[_Row]) -> list[_Row]:
        """Leave out turns that are evidence of a statement before them, unless they contain a literal."""
        statements = [row.id for row in rows if row.layer == "statement"]
        turns = {atom.id: atom_turns(atom) for atom in self._store.read(self._space, atom_rows.by_ids, statements)}
        stated: set[str] = set()
        kept: list[_Row] = []
        for row in rows:
            stated.update(turns.get(row.id, ()))
            if row.layer != "turn" or row.verbatim or row.id not in stated:
                kept.append(row)
        return kept

    # --- what is shown ------------------------------------------------------------------------------

    def hits(self, rows: Sequence[_Row], neighbours: int) -> list[Hit]:
        """Read the rows of a page; rows that were forgotten a moment ago are left out."""
        store, space = self._store, self._space
        ids = [row.id for row in rows if row.layer == "turn"]
        near = store.read(space, turn_rows.context_windows, ids, around=neighbours) if neighbours else ()
        turns = {turn.id: turn for turn in near or store.read(space, turn_rows.by_ids, ids)}
        corrections = {id: self._corrections[id].evidence for id in ids if id in self._corrections}
        newer = {turn.id: turn for turn in store.read(space, turn_rows.by_ids, corrections.values())}
        self._newer |= {id: newer[by] for id, by in corrections.items() if by in newer}
        atoms = {
            atom.id: atom
            for atom in store.read(space, atom_rows.by_ids, [row.id for row in rows if row.layer == "statement"])
        }
        files = [row.content for row in rows if isinstance(row.content, ResultHit)]
        if any(hit.of_file for hit in files):
            said = [hit.id for hit in (*self._turns[:COMPARED], *self._atoms) if hit.id not in self._newer]
            files = with_changed_lines(store, space, files, said, embed=self._embed)
        lines = {address(hit.ref, hit.lines): hit for hit in files}
        shown: list[Hit] = []
        for row in rows:
            match row.layer:
                case "turn" if row.id in turns:
                    turn = turns[row.id]
                    around = [
                        other
                        for other in near
                        if other.session == turn.session and 0 < abs(other.position - turn.position) <= neighbours
                    ]
                    shown.append(self._turn_hit(row, turn, around))
                case "statement" if row.id in atoms:
                    shown.append(self._atom_hit(row, atoms[row.id]))
                case "result":
                    shown.append(self._result_hit(row, lines[row.id]))
                case "page" | "entity":
                    shown.append(self._page_hit(row))
                case _:
                    pass
        return self._with_evidence(shown)

    def _turn_hit(self, row: _Row, turn: Turn, around: list[Turn]) -> Hit:
        return self._hit(
            row,
            turn.content,
            kind=turn.role,
            said_by=turn.name or turn.role,
            at=turn.said_at,
            session=turn.session,
            evidence=(turn.id,),
            newer=self._newer.get(turn.id),
            neighbours=around,
        )

    def _atom_hit(self, row: _Row, atom: Atom) -> Hit:
        return self._hit(
            row,
            atom.text,
            kind=atom.kind,
            said_by=atom.source,
            at=atom.valid_from,
            evidence=tuple(dict.fromkeys(atom_turns(atom))),
            when=time_note(atom, self._filters.as_of or self._at) or None,
        )

    def _result_hit(self, row: _Row, hit: ResultHit) -> Hit:
        return self._hit(
            row, hit.text, title=hit.call, at=hit.at, session=hit.session, node=hit.node, changed=hit.changed
        )

    def _page_hit(self, row: _Row) -> Hit:
        match row.content:
            case Scene() as scene:
                return self._hit(row, scene.body, title=scene.title, at=scene.updated)
            case str() as text if row.layer == "page":
                return self._hit(row, text, title="Persona")
            case _:
                return self._hit(row, ", ".join(self._names_of(row.id)), title=row.id)

    def _with_evidence(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits, pages with the turns behind the statements that their excerpts cite."""
        cited = {hit.id: cited_atoms(hit.text) for hit in hits if hit.layer == "page"}
        if not any(cited.values()):
            return list(hits)
        ids = [id for several in cited.values() for id in several]
        turns = {atom.id: atom_turns(atom) for atom in self._store.read(self._space, atom_rows.by_ids, ids)}
        return [
            replace(hit, evidence=tuple(dict.fromkeys(turn for id in cited[hit.id] for turn in turns.get(id, ()))))
            if hit.layer == "page"
            else hit
            for hit in hits
        ]

    def _hit(
        self, row: _Row, text: str, *, title: str | None = None, kind: str | None = None, said_by: str | None = None,
        at: datetime | None = None, session: str | None = None, **more: Any,
    ) -> Hit:  # fmt: skip
        shown = excerpt(text, self._words)
        return Hit(
            id=row.id,
            layer=row.layer,
            text=shown,
            marks=marks(shown, self.question.literals, self._words),
            title=title,
            kind=kind,
            said_by=said_by,
            at=at,
            session=session,
            chance=round(row.chance, 4),
            verbatim=row.verbatim > 0,
            close=self._is_close(row),
            held=self._held.get(row.id, ()),
            **more,
        )

    def _is_close(self, row: _Row) -> bool:
        return bool(self._query.strip()) and (row.verbatim > 0 or row.id in self.judgement.close)


def _names(name: str, asked: str) -> bool:
    """Return whether a folded name stands in folded text as whole words; in scripts without spaces, anywhere."""
    start = asked.find(name)
    while start >= 0:
        before, behind = asked[start - 1 : start], asked[start + len(name) : start + len(name) + 1]
        if not name.isascii() or not (before.isalnum() or behind.isalnum()):
            return True
        start = asked.find(name, start + 1)
    return False
