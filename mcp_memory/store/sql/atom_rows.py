"""Atoms (layer L1) in SQL, with their evidence, facts, entities and supersession.

Every atom is based on quotes of turns, each a row of `evidence`. The evidence of an explicit statement is a note, which
is a turn with the text of the statement; quotes of later turns with the same words may be added. Quotes of forgotten
turns are never returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, get_args

from mcp_memory.core.errors import InvalidInput, NotFound, Refused
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Evidence, Fact, Kind, Label, NewTurn, Source
from mcp_memory.language.words import fold
from mcp_memory.store.sql import (
    digests,
    entity_rows,
    evidence_rows,
    quarantine_rows,
    replaced_sentences,
    row_codec,
    supersession,
    turn_rows,
    word_index,
)
from mcp_memory.store.sql.filters import where
from mcp_memory.store.sql.supersession import Supersession
from mcp_memory.store.sql.transaction import (
    Transaction,
    Value,
    from_ms,
    marks,
    number_of,
    numbers_of,
    optional_ms,
    to_ms,
)
from mcp_memory.store.values import READ_BY_A_MODEL, STATED_AGAIN, Filters, NewAtom, Vectors, WrittenAtom, quarantines

_HOUR_MS = 3_600_000
_FACT = "f.entity, f.relation, f.value, f.valid_from, f.valid_to, r.source"


# --- writing ----------------------------------------------------------------------------------------


def add(tx: Transaction, atom: NewAtom, *, now: datetime, vectors: Vectors | None = None) -> WrittenAtom:
    """Store a statement with its evidence (a turn of role `note`) and its fact; end the statements it replaces.

    Replaced atoms are not deleted: they get `valid_to` and `superseded_by`. If a current atom has the same kind, fact
    and text (without case and white space), the statement is a duplicate and no new atom is stored; but if it
    supersedes other atoms, a new atom replaces them and the equal atom. Raises NotFound if `supersedes` names an
    unknown atom or `cites` an unknown result, InvalidInput if an atom to supersede has ended already or a turn does not
    contain its quote, and Refused if the statement was forgotten after `now`.
    """
    tx.make_space()
    _must_be_open(tx, atom.supersedes)
    written = put(tx, atom, now=now)
    if vectors is not None and not written.duplicate:
        tx.index.put_vectors("atom", [number_of(written.atom.id, "a")], vectors)
    word_index.make_due(tx, vectors)
    return written


def put(tx: Transaction, atom: NewAtom, *, now: datetime, work: int | None = None) -> WrittenAtom:
    """Store an atom without its vector, and end the atoms that it replaces.

    If the same statement is stored already and the new atom ends no other atom, its evidence is added to the stored
    atom, which is returned as a duplicate. `work` is the number of the job that made the atom, if any. All atoms in
    `supersedes` must be open. Raises the same errors as `add`, except those about `supersedes`.
    """
    if atom.entity:
        atom = replace(atom, entity=entity_rows.main_name(tx, atom.entity))
        if atom.reader is None:
            atom = replace(atom, single_valued=atom.single_valued or supersession.follows_single(tx, atom))
    quotes = evidence_rows.check_quotes(tx, atom.evidence)
    if not quotes and (gone := digests.forgotten_statement(tx, atom.text, said_at=to_ms(now))):
        raise Refused(f"{one_line(atom.text, 60)!r} was forgotten under x{gone} after it was said. Nothing was stored.")
    folded = digests.statement_key(atom.text)
    same = _same_statement(tx, atom, folded)
    is_reliable = atom.reader is None and bool(quotes or atom.source == "user")
    sentence = same if same is not None and same.is_sentence and is_reliable else None
    if sentence is not None:  # this statement replaces it
        same = None
        replaced_sentences.retire(tx, number_of(sentence.id, "a"), by=None)
    if quotes or atom.valid_to is not None:
        said_at = evidence_rows.last_said(tx, quotes) if quotes else to_ms(now)
        superseded = supersession.of_extracted(tx, atom, folded, said_at=said_at, now=now)
    else:
        superseded = supersession.of_explicit(tx, atom)
    if same is not None and not set(superseded.ends) - {number_of(same.id, "a")}:
        evidence_rows.confirm(tx, number_of(same.id, "a"), quotes, confidence=atom.confidence)
        _improve_source(tx, same, atom.source)
        _pass_on_promise(tx, same, atom.label)
        evidence_rows.note_given_citations(tx, same.id, atom.cites)
        return WrittenAtom(atom=by_ids(tx, [same.id])[0], replaced=[], duplicate=True)
    if same is not None and not quotes:  # repeated to end other atoms: end its equal too
        atom = replace(atom, supersedes=tuple(dict.fromkeys((*atom.supersedes, same.id))))
        superseded = supersession.of_explicit(tx, atom)
    number = tx.next("atom")
    quotes = quotes or [_write_note(tx, number, atom, superseded, now=now)]
    _insert(tx, number, atom, folded, quotes[0], superseded, now=now, work=work)
    evidence_rows.add_quotes(tx, number, quotes)
    quarantine_rows.note(tx, {f"a{number}": atom.held}, now=now)
    supersession.end(tx, superseded.ends, by=number, at=atom.valid_from, because=atom.because)
    if sentence is not None:
        because = STATED_AGAIN if work is None else READ_BY_A_MODEL
        replaced_sentences.join(tx, number_of(sentence.id, "a"), number, sentence.label, because=because)
    about = list(atom.entities)
    if atom.entity and atom.relation and atom.value:
        about.append(atom.entity)
        _insert_fact(tx, number, atom, superseded)
    entity_rows.mention(tx, number, about)
    tx.index.put_terms("atom", [(number, word_index.terms_of_atom(atom.text))])
    evidence_rows.note_citations(tx, f"a{number}", atom.text)
    evidence_rows.note_given_citations(tx, f"a{number}", atom.cites)
    ids = [f"a{number}", *(f"a{older}" for older in superseded.ends)]
    tx.touch(*(f"atom:{id}" for id in ids))
    written, *replaced = by_ids(tx, ids)
    return WrittenAtom(atom=written, replaced=replaced, duplicate=False)


def _must_be_open(tx: Transaction, ids: Iterable[str]) -> None:
    for id in ids:
        row = tx.one(
            "SELECT valid_to, superseded_by FROM atom WHERE space = :space AND id = ? AND tombstone IS NULL",
            number_of(id, "a"),
        )
        if row is None:
            raise NotFound(f"There is no atom {id} to supersede. Find it with memory_search; nothing was stored.")
        if row[0] is not None:
            by = f" by a{row[1]}" if row[1] else ""
            raise InvalidInput(f"{id} was replaced already{by}. Supersede that one instead; nothing was stored.")


def _same_statement(tx: Transaction, atom: NewAtom, folded: str) -> Atom | None:
    """Return the stored atom that is the same statement (text, kind and fact), or None.

    An explicit statement is compared with open atoms only. An extracted statement also equals an ended atom that began
    at the same time, so extracting it again does not make it valid again. Extracted statements of a single-valued fact
    must have begun at the same time, because its values may alternate. If either atom is a sentence, its kind and fact
    are guesses, and only the texts are compared; but a sentence never equals a statement if either is quarantined,
    because that would hide the other.
    """
    then, moment = "valid_to IS NULL", []
    if atom.evidence:
        in_time = atom.single_valued and atom.entity is not None
        then = "valid_from = ?" if in_time else "(valid_to IS NULL OR valid_from = ?)"
        moment = [to_ms(atom.valid_from)]
    numbers = tx.column(
        f"SELECT id FROM atom WHERE space = :space AND folded = ? AND tombstone IS NULL AND {then}"
        " ORDER BY valid_to IS NOT NULL, reader IS NOT NULL, id",
        *(folded, *moment),
    )
    for candidate in by_ids(tx, [f"a{number}" for number in numbers]):
        if atom.reader is not None or candidate.is_sentence:
            if candidate.is_sentence == (atom.reader is not None) or not (candidate.held or quarantines(atom.held)):
                return candidate
            continue
        is_same_fact = not atom.entity or (candidate.fact and _content(candidate.fact) == _content(atom))
        if candidate.kind == atom.kind and is_same_fact:
            return candidate
    return None


def _improve_source(tx: Transaction, same: Atom, source: Source) -> None:
    """Set the source of a stored atom to `source`, if that is more trusted."""
    voices = get_args(Source)
    if voices.index(source) < voices.index(same.source):
        tx.run("UPDATE atom SET source = ? WHERE space = :space AND id = ?", source, number_of(same.id, "a"))


def _pass_on_promise(tx: Transaction, same: Atom, label: Label | None) -> None:
    if label == "promise" and same.label != label:
        tx.run("UPDATE atom SET label = ? WHERE space = :space AND id = ?", label, number_of(same.id, "a"))


def _content(fact: Fact | NewAtom) -> tuple[str, str | None, str]:
    return entity_rows.key(fact.entity or ""), fact.relation, fold(fact.value or "")


def _write_note(
    tx: Transaction, number: int, atom: NewAtom, superseded: Supersession, *, now: datetime
) -> evidence_rows.Quote:
    """Store an explicit statement as a note, with its journal line, and return the whole note as a quote.

    The journal line has all columns of the atom, whose number is given, and the atoms that it ends, so that a rebuild
    can restore the atom from this line alone.
    """
    until = superseded.until
    statement = {
        "atom": f"a{number}",
        "kind": atom.kind,
        "priority": atom.priority,
        "confidence": atom.confidence,
        "valid_from": to_ms(atom.valid_from),
        "valid_to": optional_ms(atom.valid_to),
        "entities": list(atom.entities),
        "entity": atom.entity,
        "relation": atom.relation,
        "value": atom.value,
        "single_valued": atom.single_valued,
        "supersedes": list(atom.supersedes),
        "ends": [f"a{older}" for older in superseded.ends],
        **({"because": atom.because} if atom.because else {}),
        **({"until": until, "by": superseded.by and f"a{superseded.by}"} if until is not None else {}),
        **({"cites": list(atom.cites)} if atom.cites else {}),
        **({"source": atom.source} if atom.source != "user" else {}),
        **({"held": list(atom.held)} if atom.held else {}),
        **({"label": atom.label} if atom.label else {}),
    }
    note = NewTurn(role="note", content=atom.text)
    stored = turn_rows.insert(tx, atom.session, [note], now=now, statement=statement)
    turn_rows.write_journal(tx, stored, now=now)
    tx.touch(f"session:{atom.session}")
    return number_of(stored[0].id, "t"), 0, len(atom.text)


def _insert(
    tx: Transaction,
    number: int,
    atom: NewAtom,
    folded: str,
    first: evidence_rows.Quote,
    superseded: Supersession,
    *,
    now: datetime,
    work: int | None,
) -> None:
    turn, start, end = first
    tx.insert(
        "atom",
        **{**row_codec.values_of(atom), "valid_to": superseded.until},
        id=number,
        folded=folded,
        evidence=turn,
        span_start=start,
        span_end=end,
        superseded_by=superseded.by,
        learned_at=to_ms(now),
        work=work,
    )


def _insert_fact(tx: Transaction, number: int, atom: NewAtom, superseded: Supersession) -> None:
    tx.insert(
        "fact",
        atom=number,
        entity=atom.entity,
        entity_key=entity_rows.key(atom.entity or ""),
        relation=atom.relation,
        value=atom.value,
        single_valued=atom.single_valued,
        valid_from=to_ms(atom.valid_from),
        valid_to=superseded.until,
    )


# --- reading ----------------------------------------------------------------------------------------


def by_ids(tx: Transaction, ids: Iterable[str]) -> list[Atom]:
    """Return atoms that exist and are not forgotten, including ended atoms, in the order of `ids`."""

    def read(numbers: Sequence[int]) -> dict[int, Atom]:
        atoms = _select(tx, f"r.id IN ({marks(numbers)})", *numbers)
        return {number_of(atom.id, "a"): atom for atom in atoms}

    return list(tx.once("atom", numbers_of(ids, "a"), read).values())


def are_current(tx: Transaction, ids: Iterable[str]) -> dict[str, bool]:
    """Map each of these atoms to whether it is current, without reading its text.

    Unknown and forgotten atoms are left out.
    """
    sql = "SELECT id, valid_to IS NULL FROM atom WHERE space = :space AND tombstone IS NULL AND id IN ({})"
    return {f"a{number}": bool(is_current) for number, is_current in tx.among(sql, numbers_of(ids, "a"))}


def periods(tx: Transaction, numbers: Iterable[int]) -> dict[int, tuple[int, int | None]]:
    """Map each of these atoms to the start and end of its validity in ms. Unknown and forgotten ones are left out."""
    sql = "SELECT id, valid_from, valid_to FROM atom WHERE space = :space AND tombstone IS NULL AND id IN ({})"
    return {number: (start, end) for number, start, end in tx.among(sql, numbers)}


def list_atoms(
    tx: Transaction, *, filters: Filters, after: str | None = None, limit: int = 100, newest_first: bool = False
) -> list[Atom]:
    """Return atoms that are current (at `filters.as_of`), highest priority first (−1 before all), then oldest.

    With `newest_first`, those that became true last are first. The list begins after the atom `after`, the last of the
    previous page.
    """
    if newest_first:
        numbers = _list_newest(tx, filters, after, limit)
    else:
        (numbers,) = _listed(tx, [(filters, after, limit)])
    # Words and names are looked up only for the selected rows: for all sorted rows it takes five times as long.
    return by_ids(tx, [f"a{number}" for number in numbers])


def _list_newest(tx: Transaction, filters: Filters, after: str | None, limit: int) -> Sequence[int]:
    condition, values = where(tx, "atom", filters)
    if after is not None:
        condition += " AND (r.valid_from, r.id) < (SELECT valid_from, id FROM atom WHERE space = :space AND id = ?)"
        values.append(number_of(after, "a"))
    sql = f"SELECT r.id FROM atom r WHERE {condition} ORDER BY r.valid_from DESC, r.id DESC LIMIT ?"
    return tx.column(sql, *values, limit)


def read_lists(tx: Transaction, lists: Sequence[tuple[Filters, int]]) -> None:
    """Read the first atoms of several lists that a snapshot will need, each given as filters and a limit, at once."""
    if tx.known is not None:
        listed = _listed(tx, [(filters, None, limit) for filters, limit in lists])
        by_ids(tx, [f"a{number}" for numbers in listed for number in numbers])


_List = tuple[Filters, str | None, int]
"""The filters of a list of atoms, the atom after which it begins, and how many it has at most."""


def _listed(tx: Transaction, lists: Sequence[_List]) -> Iterable[tuple[int, ...]]:
    """Return the numbers of the atoms of each list, in the order of `list_atoms`."""

    def read(new_lists: Sequence[_List]) -> dict[_List, tuple[int, ...]]:
        selects, values = zip(*(_select_list(tx, place, one) for place, one in enumerate(new_lists)), strict=True)
        rows = tx.all(" UNION ALL ".join(selects), *(value for some in values for value in some))
        rows.sort(key=lambda row: (-row[1], row[2]))
        return {one: tuple(number for of, _, number in rows if of == place) for place, one in enumerate(new_lists)}

    return tx.once("atom list", lists, read).values()


def _select_list(tx: Transaction, place: int, wanted: _List) -> tuple[str, list[Value]]:
    """Return a query for the atoms of a list: rows of the list's `place`, the ranks of the atoms, and their numbers."""
    filters, after, limit = wanted
    condition, values = where(tx, "atom", filters)
    rank = "CASE WHEN r.priority < 0 THEN 1000 ELSE r.priority END"
    if after is not None:
        condition += (
            f" AND ({rank}, -r.id) < (SELECT CASE WHEN priority < 0 THEN 1000 ELSE priority END, -id"
            " FROM atom WHERE space = :space AND id = ?)"
        )
        values.append(number_of(after, "a"))
    sql = f"SELECT {place}, {rank} AS rank, r.id FROM atom r WHERE {condition} ORDER BY rank DESC, r.id LIMIT ?"
    return f"SELECT * FROM ({sql}) list{place}", [*values, limit]


def has_sentences(tx: Transaction) -> bool:
    """Return whether the space has atoms that were extracted without a model, found by the index of listed atoms."""
    kinds = get_args(Kind)
    sql = f"SELECT 1 FROM atom WHERE space = :space AND tombstone IS NULL AND kind IN {kinds} AND reader IS NOT NULL"
    return tx.one(f"{sql} LIMIT 1") is not None


def count(tx: Transaction, *, filters: Filters) -> int:
    """Count the atoms that `list_atoms` lists."""
    condition, values = where(tx, "atom", filters)
    return tx.get(f"SELECT count(*) FROM atom r WHERE {condition}", *values)


def count_by_hour(tx: Transaction, *, filters: Filters) -> list[tuple[datetime, int]]:
    """Count the atoms that `list_atoms` lists by the hour in which they became true; hours without atoms are left out.

    Every hour is given by its beginning.
    """
    condition, values = where(tx, "atom", filters)
    hour = f"r.valid_from / {_HOUR_MS}"
    sql = f"SELECT {hour}, count(*) FROM atom r WHERE {condition} GROUP BY {hour} ORDER BY 1"
    return [(from_ms(number * _HOUR_MS), many) for number, many in tx.all(sql, *values)]


def based_on(tx: Transaction, turns: Iterable[str]) -> dict[str, list[Atom]]:
    """Map each of these turns to the atoms that it is evidence for, including ended atoms, oldest first."""
    numbers = {number_of(turn, "t"): turn for turn in turns}
    sql = "SELECT DISTINCT turn, atom FROM evidence WHERE space = :space AND turn IN ({}) ORDER BY atom"
    pairs = tx.among(sql, numbers)
    atoms = {atom.id: atom for atom in by_ids(tx, [f"a{number}" for _, number in pairs])}
    based: dict[str, list[Atom]] = {turn: [] for turn in numbers.values()}
    for turn, number in pairs:
        if atom := atoms.get(f"a{number}"):
            based[numbers[turn]].append(atom)
    return based


def facts(tx: Transaction, *, filters: Filters, relation: str | None = None, limit: int = 100) -> list[Fact]:
    """Return facts that are current (at `filters.as_of`), ordered by entity, relation and start of validity."""
    if not tx.has_any("fact"):
        return []
    condition, values = where(tx, "atom", filters)
    if relation is not None:
        condition += " AND f.relation = ?"
        values.append(relation)
    # Join order: facts first, then atoms by key; with an entity or a scene, its few atoms first.
    leads = "atom r JOIN fact f" if filters.entity or filters.scene else "fact f CROSS JOIN atom r"
    rows = tx.all(
        f"SELECT r.id, {_FACT} FROM {leads} ON f.space = r.space AND f.atom = r.id"
        f" WHERE f.space = :space AND {condition} ORDER BY f.entity_key, f.relation, f.valid_from, f.atom LIMIT ?",
        *(*values, limit),
    )
    return [_fact(*row) for row in rows]


def evidence(tx: Transaction, atom: str) -> list[Evidence]:
    """Return the evidence of an atom, its first evidence first; a note is quoted whole.

    Empty for an unknown or forgotten atom.
    """
    number = number_of(atom, "a")
    is_there = tx.one("SELECT 1 FROM atom WHERE space = :space AND id = ? AND tombstone IS NULL", number)
    return evidence_rows.of_atoms(tx, [number])[number] if is_there else []


def list_since(
    tx: Transaction, after: int, *, limit: int, sentences: bool = True, learned_since: datetime | None = None
) -> list[Atom]:
    """Return atoms with a number above `after`, including ended atoms, oldest first.

    `superseded_by` returns the atoms that these ended. Without `sentences`, atoms that were extracted without a model
    are left out, because the stages that use a model do not work on them. With `learned_since`, atoms that were stored
    earlier are left out.
    """
    conditions = ["id > ?"] + ([] if sentences else ["reader IS NULL"])
    values: list[Value] = [after]
    if learned_since is not None:
        conditions.append("learned_at >= ?")
        values.append(to_ms(learned_since))
    numbers = tx.column(
        f"SELECT id FROM atom WHERE space = :space AND tombstone IS NULL AND {' AND '.join(conditions)}"
        " ORDER BY id LIMIT ?",
        *(*values, limit),
    )
    return by_ids(tx, [f"a{number}" for number in numbers])


def superseded_by(tx: Transaction, by: Sequence[str]) -> list[Atom]:
    """Return the atoms that these atoms superseded.

    Sentences that were replaced by a statement from the same words are left out, because nothing ceased to be true.
    """
    numbers = numbers_of(by, "a")
    return _select(tx, f"r.superseded_by IN ({marks(numbers)}) AND NOT ({supersession.REPLACED_SENTENCE})", *numbers)


def list_replaced(
    tx: Transaction, *, since: datetime, after: str | None = None, limit: int = 100
) -> list[tuple[Atom, Atom]]:
    """Return atoms with the atoms that superseded them, stored at `since` or later; the newest change first.

    The list begins after the superseded atom `after`, the last of the previous page. Sentences that were replaced by a
    statement from the same words are left out.
    """
    condition, values = "", list[Value]()
    if after is not None:
        condition = (
            " AND (r.superseded_by, r.id) < (SELECT superseded_by, id FROM atom WHERE space = :space AND id = ?)"
        )
        values.append(number_of(after, "a"))
    pairs = tx.all(
        "SELECT r.id, r.superseded_by FROM atom r JOIN atom n ON n.space = r.space AND n.id = r.superseded_by"
        " WHERE r.space = :space AND r.superseded_by IS NOT NULL AND r.tombstone IS NULL AND n.tombstone IS NULL"
        f" AND n.learned_at >= ? AND NOT ({supersession.REPLACED_SENTENCE}){condition}"
        " ORDER BY r.superseded_by DESC, r.id DESC LIMIT ?",
        *(to_ms(since), *values, limit),
    )
    atoms = {atom.id: atom for atom in by_ids(tx, {f"a{number}" for pair in pairs for number in pair})}
    return [(atoms[f"a{old}"], atoms[f"a{new}"]) for old, new in pairs]


def _select(tx: Transaction, which: str, *values: Value) -> list[Atom]:
    rows = tx.all(
        f"SELECT r.id, {_FACT}, {row_codec.columns(Atom)} FROM atom r LEFT JOIN fact f ON f.space = r.space"
        f" AND f.atom = r.id WHERE r.space = :space AND {which} AND r.tombstone IS NULL ORDER BY r.id",
        *values,
    )
    if not rows:
        return []
    numbers = [row[0] for row in rows]
    quotes, names = evidence_rows.of_atoms(tx, numbers), entity_rows.names_of_atoms(tx, numbers)
    return [_atom(row, quotes[row[0]], names.get(row[0], ())) for row in rows]


def _atom(row: Sequence[Any], quotes: Sequence[Evidence], names: tuple[str, ...]) -> Atom:
    number, entity, relation, value, since, until, source, *columns = row
    first, *also = quotes
    return Atom(
        **row_codec.fields_of(Atom, columns),
        evidence=first.turn,
        span=first.span,
        fact=None if entity is None else _fact(number, entity, relation, value, since, until, source),
        entities=names,
        also=tuple(also),
    )


def _fact(atom: Any, entity: Any, relation: Any, value: Any, since: Any, until: Any, source: Any) -> Fact:
    return Fact(
        atom=f"a{atom}",
        entity=entity,
        relation=relation,
        value=value,
        valid_from=from_ms(since),
        valid_to=None if until is None else from_ms(until),
        source=source,
    )
