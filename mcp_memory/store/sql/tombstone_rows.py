"""Forgetting: a tombstone excludes rows from every search and listing, and undoing it restores them.

`matching` selects rows by words, session and time. `reach_of` adds the rows that are forgotten together with them, such
as the note of an explicit statement, an extracted statement when the last of its evidence turns is forgotten, and a
sentence when the last turn with some of its words is forgotten. Both the dry run and `forget` call `reach_of`, so the
preview always matches the result.

`digests` recognises forgotten rows when they are given again. Rows and files are kept: evidence is not rewritten before
it is purged. Index entries are deleted, and restored by the undo (vectors, and the chunks of results, by the next
background indexing).

Each forgetting, undo and purge appends a line to `tombstones.jsonl`, which contains none of the forgotten words. If
several lines have the same `tombstone`, the last counts.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import FORGOTTEN
from mcp_memory.language.words import fold
from mcp_memory.store.forgetting import How, Reach, Which
from mcp_memory.store.row_types import TombstoneRow
from mcp_memory.store.sql import canvas_rows, digests, page_rows, row_codec, supersession, word_index
from mcp_memory.store.sql.line_forms import line_of
from mcp_memory.store.sql.transaction import Transaction, Value, from_ms, named_rows, number_of, to_ms
from mcp_memory.store.values import CanvasChange, Layer, Tombstone

_TABLES = ("turn", "atom", "fact", "ref")


def forget(
    tx: Transaction,
    ids: Sequence[str],
    *,
    reason: str,
    now: datetime,
    how: How = "ids",
    redrawn: Sequence[CanvasChange] = (),
) -> Tombstone:
    """Exclude turns, atoms and refs from every search, listing and read; the evidence stays on disk.

    `reach_of` returns all rows that are forgotten: an atom is forgotten with its facts and its note, or with the last
    turn that it is based on. Forgotten statements are not learned again. `redrawn` are the next versions of canvases,
    without the words of forgotten refs. Raises NotFound for unknown or forgotten ids, InvalidInput if there are no ids
    or any is malformed, and Conflict if a canvas has another version now; then nothing is changed.

    With `how="correction"` the atoms that these explicit statements ended become current again. Raises InvalidInput if
    any of the statements was replaced itself or ended nothing, or if a single-valued fact has another value now.
    """
    tx.make_space()
    reach = reach_of(tx, ids)
    if how == "correction":  # the sentences that it states again become current again too
        reach = replace(reach, atoms=[id for id in reach.atoms if id in ids], along=())
    number = tx.next("tombstone")
    took = json.dumps({"ids": [*reach.ids, *reach.notes], "how": how})
    tx.insert("tombstone", id=number, reason=reason, at=to_ms(now), took=took)
    if how == "correction":
        _refuse_replaced(tx, [number_of(id, "a") for id in reach.atoms], only_by_others=True)
    _mark(tx, reach, number)
    if how == "correction":
        _reopen(tx, number)
    digests.add(tx, number)
    canvas_rows.change(tx, redrawn)
    tx.touch(*_topics(tx, number))
    log_tombstones(tx, [number])
    page_rows.write_scene_files(tx)
    return tombstone_of(tx, number)


def undo(tx: Transaction, tombstone: str, *, now: datetime, redrawn: Sequence[CanvasChange] = ()) -> Tombstone:
    """Restore exactly the rows that were forgotten under a tombstone.

    A restored correction ends the same atoms again. Raises NotFound if the tombstone is unknown, undone or purged,
    InvalidInput if an atom that it would end has ended since, if a single-valued fact has another value now or if all
    evidence of an atom was forgotten since, and Conflict if a canvas in `redrawn` has another version now.
    """
    number = number_of(tombstone, "x")
    row = tx.one("SELECT undone_at, purged_at FROM tombstone WHERE space = :space AND id = ?", number)
    if row is None or row[0] is not None:
        raise NotFound(f"There is nothing to restore under {one_line(tombstone, 20)}, or it was restored already.")
    if row[1] is not None or _is_purged(tx, number):
        raise NotFound(f"The rows forgotten under x{number} were purged and cannot be restored.")
    _refuse_lost_evidence(tx, number)
    gone, topics = tombstone_of(tx, number), _topics(tx, number)
    _reindex(tx, "turn", number)
    _reindex(tx, "atom", number)
    word_index.make_due(tx)
    if gone.how == "correction":
        _refuse_replaced(tx, supersession.named_under(tx, number))
        supersession.end_again(tx, number)
    open_again = "SELECT id FROM atom WHERE space = :space AND tombstone = ? AND valid_to IS NULL"
    _refuse_second_value(tx, tx.column(open_again, number))
    for table in _TABLES:
        tx.run(f"UPDATE {table} SET tombstone = NULL WHERE space = :space AND tombstone = ?", number)
    tx.run("DELETE FROM forgotten WHERE space = :space AND tombstone = ?", number)
    tx.run("UPDATE tombstone SET undone_at = ? WHERE space = :space AND id = ?", to_ms(now), number)
    canvas_rows.change(tx, redrawn)
    tx.touch(*topics)
    log_tombstones(tx, [number])
    page_rows.write_scene_files(tx)
    return replace(gone, undone=True)


def _mark(tx: Transaction, reach: Reach, tombstone: int) -> None:
    layers: tuple[tuple[Layer, Sequence[str]], ...] = (("turn", [*reach.turns, *reach.notes]), ("atom", reach.atoms))
    for layer, ids in layers:
        numbers = [int(id[1:]) for id in ids]
        tx.many(
            f"UPDATE {layer} SET tombstone = ? WHERE space = :space AND id = ?",
            [(tombstone, number) for number in numbers],
        )
        tx.index.remove(layer, numbers)
    tx.run(
        "UPDATE fact SET tombstone = ? WHERE space = :space AND tombstone IS NULL AND atom IN"
        " (SELECT id FROM atom WHERE space = :space AND tombstone = ?)",
        *(tombstone, tombstone),
    )
    for ref in reach.refs:
        tx.run("UPDATE ref SET tombstone = ? WHERE space = :space AND id = ?", tombstone, ref)
        word_index.forget_chunks(tx, ref)


def _reindex(tx: Transaction, layer: Layer, tombstone: int) -> None:
    only = "AND role <> 'note'" if layer == "turn" else ""
    rows = tx.all(
        f"SELECT id, {word_index.INDEXED_COLUMNS[layer]} FROM {layer} WHERE space = :space AND tombstone = ? {only}"
        " ORDER BY id",
        tombstone,
    )
    for number, *row in rows:
        tx.index.put_terms(layer, [(number, word_index.terms_of_row(layer, *row))])


def _is_purged(tx: Transaction, tombstone: int) -> bool:
    return any(
        tx.one(
            f"SELECT 1 FROM {table} WHERE space = :space AND tombstone = ? AND purged_at IS NOT NULL LIMIT 1", tombstone
        )
        for table in ("turn", "atom", "ref")
    )


def _refuse_replaced(tx: Transaction, atoms: Sequence[int], *, only_by_others: bool = False) -> None:
    """Raise InvalidInput if any of these atoms has ended; with `only_by_others`, if another atom replaced it.

    A correction that was replaced itself cannot be undone. An undone correction cannot be restored if an atom that it
    would end again has ended since.
    """
    sql = "SELECT id, superseded_by FROM atom WHERE space = :space AND valid_to IS NOT NULL AND id IN ({})"
    for number, by in tx.among(sql, atoms):
        if only_by_others and by is None:
            continue
        newer = f" by a{by}: undo that correction first" if by else ""
        raise InvalidInput(f"a{number} was replaced since{newer}. Nothing was changed.")


def _reopen(tx: Transaction, tombstone: int) -> None:
    """Reopen the statements that the corrections under a tombstone replaced.

    Raises InvalidInput if there are none, or if a single-valued fact would have two current values.
    """
    replaced = supersession.replaced_under(tx, tombstone)
    if not replaced:
        raise InvalidInput("It replaced no statement, so there is no correction to undo. Forget it instead.")
    _refuse_second_value(tx, replaced)
    supersession.reopen(tx, replaced)


def _refuse_second_value(tx: Transaction, atoms: Sequence[int]) -> None:
    """Raise InvalidInput if a single-valued fact would have two current values after these atoms are reopened."""
    clashes = tx.among(
        "SELECT now.atom, now.entity, now.relation, now.value FROM fact old JOIN fact now ON now.space = old.space"
        " AND now.entity_key = old.entity_key AND now.relation = old.relation AND now.atom <> old.atom"
        " WHERE old.space = :space AND old.single_valued = 1"
        " AND now.single_valued = 1 AND now.valid_to IS NULL AND now.tombstone IS NULL AND old.atom IN ({})",
        atoms,
    )
    for clash in clashes:
        raise InvalidInput(
            f"Since then a{clash[0]} says that {clash[1]} {clash[2]} {clash[3]}, and only one such fact can hold. "
            f"Forget a{clash[0]} first, or leave it as it is. Nothing was restored."
        )


def _refuse_lost_evidence(tx: Transaction, tombstone: int) -> None:
    rows = tx.all(
        "SELECT a.id, max(CASE WHEN t.tombstone <> ? THEN t.tombstone END),"
        " count(CASE WHEN t.tombstone IS NULL OR t.tombstone = ? THEN 1 END)"
        " FROM atom a JOIN evidence e ON e.space = a.space AND e.atom = a.id"
        " JOIN turn t ON t.space = e.space AND t.id = e.turn WHERE a.space = :space AND a.tombstone = ? GROUP BY a.id",
        *(tombstone, tombstone, tombstone),
    )
    partly = _with_words_of(tx, [atom for atom, other, _ in rows if other is not None], (), undone=tombstone)
    for atom, other, left in rows:
        if not left or atom in partly:
            raise InvalidInput(
                f"What a{atom} is based on was forgotten since, under x{other}. Restore that first. "
                "Nothing was restored."
            )


def _topics(tx: Transaction, tombstone: int) -> list[str]:
    return tx.column(
        "SELECT DISTINCT 'session:' || s.name FROM turn t JOIN session s ON s.space = t.space AND s.id = t.session"
        " WHERE t.space = :space AND t.tombstone = ?"
        " UNION ALL SELECT 'atom:a' || id FROM atom WHERE space = :space AND tombstone = ?"
        " UNION ALL SELECT 'ref:' || id FROM ref WHERE space = :space AND tombstone = ?",
        *(tombstone, tombstone, tombstone),
    )


# --- the rows to forget -----------------------------------------------------------------------------


_SESSION = "(SELECT id FROM session WHERE space = :space AND name = ?)"


def matching(tx: Transaction, which: Which) -> list[str]:
    """Return the ids of all turns, atoms and refs that match all of `which`.

    Terms are looked for in the words of a turn or atom, and in a run of lines of a ref. With a session or a time, only
    explicit statements match as atoms, because extracted atoms are forgotten with the turns they are based on.
    """
    return [
        *named_rows(_matching_rows(tx, "turn", which), "t"),
        *named_rows(_matching_rows(tx, "atom", which), "a"),
        *_matching_results(tx, which),
    ]


def _matching_rows(tx: Transaction, layer: Layer, which: Which) -> Iterator[int]:
    """Yield the numbers of matching rows, ascending. Session and time of an atom are those of its note."""
    conditions, values = ["r.space = :space", "r.tombstone IS NULL"], list[Value]()
    source, joined = "r", ""
    if layer == "turn":
        conditions.append("r.role <> 'note'")
    elif which.session is not None or which.since or which.until:
        source, joined = "n", "JOIN turn n ON n.space = r.space AND n.id = r.evidence AND n.role = 'note'"
    if which.session is not None:
        conditions.append(f"{source}.session = {_SESSION}")
        values.append(which.session)
    for moment, condition in ((which.since, ">="), (which.until, "<")):
        if moment is not None:
            conditions.append(f"{source}.said_at {condition} ?")
            values.append(to_ms(moment))
    sql = f"SELECT r.id FROM {layer} r {joined} WHERE {' AND '.join(conditions)}"
    if which.terms:
        with_terms = tx.index.with_all_terms(layer, which.terms)
        yield from sorted(number for (number,) in tx.among(f"{sql} AND r.id IN ({{}})", with_terms, *values))
    else:
        yield from tx.column(f"{sql} ORDER BY r.id", *values)


def _matching_results(tx: Transaction, which: Which) -> list[str]:
    """Return the ids of matching results.

    All the words must occur in one chunk, because a result is forgotten as a whole.
    """
    conditions, values = ["f.space = :space", "f.tombstone IS NULL"], list[Value]()
    if which.session is not None:
        conditions.append(
            "(f.session = ? OR f.id IN (SELECT o.ref FROM record o WHERE o.space = f.space AND"
            f" o.session = {_SESSION}))"
        )
        values += [which.session, which.session]
    for moment, condition in ((which.since, ">="), (which.until, "<")):
        if moment is not None:
            conditions.append(f"CAST(round(unixepoch(f.timestamp, 'subsec') * 1000) AS BIGINT) {condition} ?")
            values.append(to_ms(moment))
    sql = f"SELECT f.id FROM ref f WHERE {' AND '.join(conditions)} ORDER BY f.timestamp, f.id"
    ids: list[str] = tx.column(sql, *values)
    if not which.terms:
        return ids
    with_terms = tx.among(
        "SELECT DISTINCT ref FROM chunk WHERE space = :space AND id IN ({})",
        tx.index.with_all_terms("chunk", which.terms),
    )
    refs = {ref for (ref,) in with_terms}
    return [ref for ref in ids if ref in refs]


# --- the rows that are forgotten with them ----------------------------------------------------------


def reach_of(tx: Transaction, ids: Sequence[str]) -> Reach:
    """Return all rows that `forget` would forget.

    Raises NotFound for unknown or forgotten ids, and InvalidInput if there are no ids or any is malformed.
    """
    named = list(dict.fromkeys(id.strip() for id in ids))
    if not named:
        raise InvalidInput("There is nothing to forget: name ids such as t12, a5 or r-9f2c1a7b3d4e.")
    missing = [id for id in named if not _is_there(tx, id)]
    if missing:
        shown = ", ".join(one_line(id, 40) for id in missing[:10])
        raise NotFound(f"Not in this space, or forgotten already: {shown}. Nothing was forgotten; call again without.")
    named_turns = {int(id[1:]) for id in named if id[0] == "t"}
    named_atoms = {int(id[1:]) for id in named if id[0] == "a"}
    refs = [id for id in named if id[0] == "r"]
    tasks = tuple(id for id in named if _is_task(id))
    turns, atoms = set(named_turns), set(named_atoms)
    while True:
        notes, groundless = _notes(tx, atoms), _atoms_based_only_on(tx, turns) | _replaced_sentences(tx, atoms)
        if notes <= turns and groundless <= atoms:
            break
        turns |= notes
        atoms |= groundless
    notes = _select_numbers(tx, "SELECT id FROM turn WHERE space = :space AND role = 'note' AND id IN ({})", turns)
    return Reach(
        turns=named_rows(sorted(turns - notes), "t"),
        atoms=named_rows(sorted(atoms), "a"),
        refs=refs,
        notes=named_rows(sorted(notes), "t"),
        along=named_rows(sorted(atoms - named_atoms), "a"),
        facts=len(tx.among("SELECT atom FROM fact WHERE space = :space AND tombstone IS NULL AND atom IN ({})", atoms)),
        records=len(tx.among("SELECT id FROM record WHERE space = :space AND ref IN ({})", refs)),
        scenes=_scenes(tx, set(named_rows(atoms, "a"))),
        said_in=named_rows(sorted(_evidence_turns(tx, atoms) - turns), "t"),
        tasks=tasks,
    )


def _is_there(tx: Transaction, id: str) -> bool:
    if id.startswith("r-"):
        return tx.one("SELECT 1 FROM ref WHERE space = :space AND id = ? AND tombstone IS NULL", id) is not None
    if _is_task(id):
        # A canvas with a version newer than the forgetting may have new words.
        sql = (
            "SELECT 1 FROM canvas c LEFT JOIN canvas_version v ON v.space = c.space AND v.canvas = c.number"
            " AND v.version = c.version WHERE c.space = :space AND c.number = ? AND (c.label <> ? OR v.kind <> ?)"
        )
        return tx.one(sql, int(id), FORGOTTEN, "forgotten") is not None
    if id[:1] not in ("t", "a") or not id[1:].isdecimal() or not id.isascii():
        raise InvalidInput(
            f"{one_line(id, 40)!r} is not an id. Ids look like t12, a5, r-9f2c1a7b3d4e, or 003 of a task."
        )
    table = "turn" if id[0] == "t" else "atom"
    sql = f"SELECT 1 FROM {table} WHERE space = :space AND id = ? AND tombstone IS NULL"
    return tx.one(sql, int(id[1:19])) is not None


def _is_task(id: str) -> bool:
    return 3 <= len(id) <= 9 and id.isascii() and id.isdecimal()


def _notes(tx: Transaction, atoms: Collection[int]) -> set[int]:
    """Return the notes of these atoms that are evidence of no other atom."""
    notes = _select_numbers(
        tx,
        "SELECT DISTINCT t.id FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
        " WHERE e.space = :space AND t.role = 'note' AND t.tombstone IS NULL AND e.atom IN ({})",
        atoms,
    )
    also = tx.among(
        "SELECT e.turn, e.atom FROM evidence e JOIN atom a ON a.space = e.space AND a.id = e.atom"
        " WHERE e.space = :space AND a.tombstone IS NULL AND e.turn IN ({})",
        notes,
    )
    return notes - {turn for turn, atom in also if atom not in atoms}


def _atoms_based_only_on(tx: Transaction, turns: Collection[int]) -> set[int]:
    """Return the atoms that have no evidence outside these turns.

    Of a sentence, only the turns of the user count as evidence. A sentence is also returned if some of its words, such
    as those of a question that the user answered, occur in no other turn.
    """
    atoms = _select_numbers(
        tx,
        "SELECT DISTINCT a.id FROM evidence e JOIN atom a ON a.space = e.space AND a.id = e.atom"
        " WHERE e.space = :space AND a.tombstone IS NULL AND e.turn IN ({})",
        turns,
    )
    also = tx.among(
        "SELECT e.atom, e.turn FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
        " JOIN atom a ON a.space = e.space AND a.id = e.atom WHERE e.space = :space AND t.tombstone IS NULL"
        " AND (a.reader IS NULL OR t.role IN ('user', 'note')) AND e.atom IN ({})",
        atoms,
    )
    grounded = {atom for atom, turn in also if turn not in turns}
    return (atoms - grounded) | _with_words_of(tx, grounded, turns)


def _with_words_of(
    tx: Transaction, atoms: Collection[int], turns: Collection[int], *, undone: int | None = None
) -> set[int]:
    """Return those sentences that have a word which their evidence has only in these turns and in forgotten turns.

    Turns under the tombstone `undone` count as not forgotten.
    """
    texts, gone, left = dict[int, str](), defaultdict[int, str](str), defaultdict[int, str](str)
    for atom, text, turn, start, end, content, tombstone in tx.among(
        "SELECT a.id, a.text, e.turn, e.span_start, e.span_end, t.content, t.tombstone FROM atom a"
        " JOIN evidence e ON e.space = a.space AND e.atom = a.id"
        " JOIN turn t ON t.space = e.space AND t.id = e.turn"
        " WHERE a.space = :space AND a.reader IS NOT NULL AND a.id IN ({})",
        atoms,
    ):
        texts[atom] = text
        is_gone = turn in turns or tombstone not in (None, undone)
        (gone if is_gone else left)[atom] += f"{fold(content[start:end])}\n"
    return {
        atom
        for atom, text in texts.items()
        if any(word in gone[atom] and word not in left[atom] for word in re.findall(r"\w+", fold(text)))
    }


def _replaced_sentences(tx: Transaction, atoms: Collection[int]) -> set[int]:
    """Return the sentences that these statements have replaced (`replaced_sentences`)."""
    sql = f"SELECT r.id FROM atom r WHERE r.space = :space AND r.tombstone IS NULL AND {supersession.REPLACED_SENTENCE}"
    return _select_numbers(tx, f"{sql} AND r.superseded_by IN ({{}})", atoms)


def _evidence_turns(tx: Transaction, atoms: Collection[int]) -> set[int]:
    """Return the turns that are evidence of these atoms, except notes and forgotten turns."""
    return _select_numbers(
        tx,
        "SELECT DISTINCT e.turn FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
        " WHERE e.space = :space AND t.tombstone IS NULL AND t.role <> 'note' AND e.atom IN ({})",
        atoms,
    )


def _scenes(tx: Transaction, atoms: set[str]) -> list[str]:
    rows = tx.all(
        "SELECT s.slug, s.atoms FROM scene s WHERE s.space = :space AND s.action <> 'delete'"
        " AND s.version = (SELECT max(version) FROM scene WHERE space = s.space AND slug = s.slug) ORDER BY s.slug"
    )
    return [slug for slug, named in rows if not atoms.isdisjoint(json.loads(named))]


def _select_numbers(tx: Transaction, sql: str, of: Collection[int]) -> set[int]:
    return {number for (number,) in tx.among(sql, sorted(of))}


# --- tombstones and their file ----------------------------------------------------------------------


TOMBSTONES_FILE = "tombstones.jsonl"

_COLUMNS = "reason, at, undone_at, purged_at, took"


def tombstone_of(tx: Transaction, number: int) -> Tombstone:
    """Return a tombstone with the ids of its rows. Notes are not listed, because they belong to their atoms."""
    reason, at, undone, purged, took = tx.all(
        f"SELECT {_COLUMNS} FROM tombstone WHERE space = :space AND id = ?", number
    )[0]
    return Tombstone(
        id=f"x{number}",
        ids=[*_ids_taken(tx, number, notes=False), *(_tasks_taken(took) if undone is None else ())],
        reason=reason,
        at=from_ms(at),
        how=_parse_took(took)["how"],
        undone=undone is not None,
        purged=purged is not None,
        undone_at=None if undone is None else from_ms(undone),
        took=tuple(_parse_took(took)["ids"]),
    )


def tombstones(tx: Transaction) -> list[Tombstone]:
    """Return all tombstones, oldest first, even if their forgetting was undone."""
    return [tombstone_of(tx, number) for number in _tombstone_numbers(tx)]


def tombstone_over(tx: Transaction, id: str) -> Tombstone | None:
    """Return the tombstone under which a turn, atom or ref was forgotten; None if it is there, or unknown."""
    table = "ref" if id.startswith("r-") else {"t": "turn", "a": "atom"}.get(id[:1])
    if table is None:
        return None
    key = id if table == "ref" else number_of(id, id[0])
    number: int | None = tx.get(f"SELECT tombstone FROM {table} WHERE space = :space AND id = ?", key)
    return None if number is None else tombstone_of(tx, number)


def count_restorable(tx: Transaction) -> int:
    """Return how many forgotten atoms, turns and refs can be restored.

    Notes are not counted, because they belong to their atoms; nor are corrections that were undone.
    """
    gone = (
        "WHERE space = :space AND tombstone IS NOT NULL AND purged_at IS NULL AND tombstone NOT IN"
        " (SELECT id FROM tombstone WHERE space = :space AND took LIKE ?)"
    )
    tables = (f"turn {gone} AND role <> 'note'", f"atom {gone}", f"ref {gone}")
    return sum(tx.get(f"SELECT count(*) FROM {table}", '%"correction"%') for table in tables)


def words_under(tx: Transaction, tombstone: str, *, limit: int) -> list[tuple[str, str]]:
    """Return ids and words of the rows that undoing a tombstone would restore: atoms, turns, then refs.

    The words of a ref are its call and summary. Empty for a tombstone that was undone or purged.
    """
    gone = "WHERE r.space = :space AND r.tombstone = ? AND r.purged_at IS NULL"
    summary = (
        "(SELECT c.tool_call || ': ' || c.summary FROM record c WHERE c.space = r.space AND c.ref = r.id"
        " ORDER BY c.id LIMIT 1)"
    )
    words: list[tuple[str, str]] = []
    for columns in (
        f"'a' || r.id, r.text FROM atom r {gone}",
        f"'t' || r.id, r.content FROM turn r {gone} AND r.role <> 'note'",
        f"r.id, coalesce({summary}, r.tool) FROM ref r {gone}",
    ):
        sql = f"SELECT {columns} ORDER BY r.id LIMIT ?"
        words += [(id, text) for id, text in tx.all(sql, number_of(tombstone, "x"), limit - len(words))]
    return words


def still_said(tx: Transaction, tombstone: str) -> list[str]:
    """Return the ids of turns that are not forgotten although they are evidence of atoms under a tombstone."""
    atoms = tx.column("SELECT id FROM atom WHERE space = :space AND tombstone = ?", number_of(tombstone, "x"))
    return named_rows(sorted(_evidence_turns(tx, atoms)), "t")


def log_tombstones(tx: Transaction, tombstones: Sequence[int]) -> None:
    """Append a line with the current state of each of these tombstones to `tombstones.jsonl`."""
    tx.files.append(TOMBSTONES_FILE, [_tombstone_line(tx, number) for number in tombstones])


def tombstone_lines(tx: Transaction) -> Iterator[bytes]:
    """Yield the lines of `tombstones.jsonl`, one for each tombstone."""
    for number in _tombstone_numbers(tx):
        yield _tombstone_line(tx, number)


def _tombstone_numbers(tx: Transaction) -> list[int]:
    return tx.column("SELECT id FROM tombstone WHERE space = :space ORDER BY id")


def _tombstone_line(tx: Transaction, number: int) -> bytes:
    (fields,) = row_codec.read(tx, TombstoneRow, "r.id = ?", number)
    took = _parse_took(tx.get("SELECT took FROM tombstone WHERE space = :space AND id = ?", number))
    digests = tx.column("SELECT digest FROM forgotten WHERE space = :space AND tombstone = ? ORDER BY digest", number)
    return line_of(
        TombstoneRow(
            **fields,
            gone=(),
            how=took["how"],
            ids=tuple(took["ids"] or _ids_taken(tx, number, notes=True)),
            digests=tuple(bytes(digest).hex() for digest in digests),
        )
    )


def _parse_took(took: str | None) -> dict[str, Any]:
    """Return the ids in the column `took` of a tombstone (`ids`), and how they were selected (`how`)."""
    return {"ids": [], "how": "ids", **(json.loads(took) if took else {})}


def _tasks_taken(took: str | None) -> list[str]:
    return [id for id in _parse_took(took)["ids"] if _is_task(id)]


def _ids_taken(tx: Transaction, number: int, *, notes: bool) -> list[str]:
    only = "" if notes else "AND role <> 'note'"
    return tx.column(
        f"SELECT 't' || id FROM turn WHERE space = :space AND tombstone = ? {only} UNION ALL"
        " SELECT 'a' || id FROM atom WHERE space = :space AND tombstone = ? UNION ALL"
        " SELECT id FROM ref WHERE space = :space AND tombstone = ?",
        *(number, number, number),
    )
