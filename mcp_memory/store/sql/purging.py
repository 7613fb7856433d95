"""Purging: erases forgotten rows from the database and the files. It cannot be undone.

Of turns, atoms and results, an empty row is kept: its id and position, which other rows refer to, and keyed digests
that recognise the content, but no words. Rows that were derived from them are deleted or rewritten without their words,
such as scenes and personas in every version, the history of canvases, records, drafts, questions to models, edits of
message lists, and facts and names that no remaining row mentions.

A purge is a single transaction, which also rewrites the files. Each engine erases what deleted rows leave behind in its
own files.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from mcp_memory.core.errors import Damaged, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import FORGOTTEN
from mcp_memory.store import files
from mcp_memory.store.citations import cited_atoms, scene_without
from mcp_memory.store.forgetting import Purge, Purged
from mcp_memory.store.purge_search import Traces
from mcp_memory.store.sql import canvas_rows, digests, feedback_rows, page_rows, purged_names, renaming, tombstone_rows
from mcp_memory.store.sql.transaction import Transaction, from_ms, marks, named_rows, number_of, to_ms
from mcp_memory.store.values import PROJECT_FILE

# Columns that may quote any row of any space and are not essential: cleared if they match an erased text.
_SWEPT = (
    ("message_edit", "space, id", "texts, note", "DELETE FROM message_edit WHERE space = ? AND id = ?"),
    ("draft", "space, id", "atom", "DELETE FROM draft WHERE space = ? AND id = ?"),
    (
        "work",
        "space, id",
        "basis, error",
        "UPDATE work SET basis = '{}', error = NULL WHERE space = ? AND id = ? AND state = 'done'",
    ),
    ("followed", "space, path", "state", "UPDATE followed SET state = '{}' WHERE space = ? AND path = ?"),
    ("progress", "space, session", "scene", "UPDATE progress SET scene = NULL WHERE space = ? AND session = ?"),
    ("atom", "space, id", "closed_because", "UPDATE atom SET closed_because = NULL WHERE space = ? AND id = ?"),
    ("held", "space, id", "reasons", "UPDATE held SET reasons = '[]' WHERE space = ? AND id = ?"),
    ("recall", "space, id", "query", "UPDATE recall SET query = NULL WHERE space = ? AND id = ?"),
    ("spend", "0, id", "error", "UPDATE spend SET error = 'failed' WHERE 0 = ? AND id = ?"),
)


def purge(tx: Transaction, what: Purge, *, now: datetime) -> Purged:
    numbers = [_tombstone(tx, id) for id in what.tombstones]
    gone = _Erasure(tx, numbers)
    texts = list(dict.fromkeys(text for text in gone.texts() if text))
    names = gone.names()
    feedback_rows.erase_questions(tx, gone.said())
    days, paths = gone.days(), gone.paths()
    touched = gone.session_numbers()
    at = to_ms(now)
    gone.erase_atoms(at)
    gone.erase_turns(at)
    gone.erase_refs(at)
    _erase_from_scenes(tx, {f"a{number}" for number in gone.atoms})
    for version, text in what.personas.items():
        tx.run("UPDATE persona SET text = ?, reason = NULL WHERE space = :space AND version = ?", text, version)
    _forget_questions(tx)
    tx.run("UPDATE recall SET query = NULL, words = NULL, client = NULL WHERE space = :space")
    says = purged_names.says_erased_words(tx, texts)
    _sweep(tx, Traces(texts), says)
    canvas_rows.change(tx, what.redrawn)
    redrawn = _erase_from_canvases(tx, gone.refs, {*gone.ids(), *gone.tasks})
    names += [label for labels in redrawn.values() for label in labels]
    stale = gone.rename_refs()
    tx.many("UPDATE tombstone SET purged_at = ? WHERE space = :space AND id = ?", [(at, number) for number in numbers])
    erased = purged_names.erase_names(tx, numbers, touched, says)
    stale |= erased.paths | {f"conversations/{day}.jsonl" for day in days} | gone.record_files(touched)
    tx.files.outdate(tombstone_rows.TOMBSTONES_FILE, canvas_rows.FILE, *sorted(stale))
    page_rows.write_scene_files(tx)
    tx.touch("persona")
    for path in paths:
        tx.files.remove(path)
    return Purged(
        tombstones=[f"x{number}" for number in numbers],
        turns=len(gone.turns),
        atoms=len(gone.atoms),
        refs=len(gone.refs),
        texts=texts,
        names=list(dict.fromkeys([*names, *erased.texts])),
    )


def _tombstone(tx: Transaction, id: str) -> int:
    number = number_of(id, "x")
    sql = "SELECT 1 FROM tombstone WHERE space = :space AND id = ? AND undone_at IS NULL AND purged_at IS NULL"
    if tx.one(sql, number) is None:
        raise NotFound(
            f"There is nothing to purge under {one_line(id, 20)}: it is no tombstone of this space, was undone, or was "
            "purged already. `mcp-memory purge` lists what can be."
        )
    return number


class _Erasure:
    """Finds the rows under some tombstones, and erases them."""

    def __init__(self, tx: Transaction, tombstones: Sequence[int]) -> None:
        self._tx = tx
        self._tombstones = tombstones
        under = f"WHERE space = :space AND tombstone IN ({marks(tombstones)}) ORDER BY tombstone, id"
        self.turns: list[int] = tx.column(f"SELECT id FROM turn {under}", *tombstones)
        self.atoms: list[int] = tx.column(f"SELECT id FROM atom {under}", *tombstones)
        self.refs: list[str] = tx.column(f"SELECT id FROM ref {under}", *tombstones)
        ids = (id for tombstone in tombstones for id in tombstone_rows.tombstone_of(tx, tombstone).ids)
        self.tasks = [id for id in ids if id.isdecimal()]

    def ids(self) -> list[str]:
        """Return the ids of the turns and atoms."""
        return [*named_rows(self.turns, "t"), *named_rows(self.atoms, "a")]

    def said(self) -> list[str]:
        """Return the contents of the turns of the user."""
        sql = "SELECT content FROM turn WHERE space = :space AND role = 'user' AND id IN ({})"
        rows = self._tx.among(sql, self.turns)
        return [content for (content,) in rows]

    def texts(self) -> Iterator[bytes]:
        """Yield the texts of the rows, which are to be erased."""
        tx = self._tx
        for sql, members in (
            ("SELECT content, name FROM turn WHERE space = :space AND id IN ({})", self.turns),
            ("SELECT text, closed_because FROM atom WHERE space = :space AND id IN ({})", self.atoms),
            ("SELECT value FROM fact WHERE space = :space AND atom IN ({})", self.atoms),
            ("SELECT summary, tool_call FROM record WHERE space = :space AND ref IN ({})", self.refs),
        ):
            for row in tx.among(sql, members):
                yield from (text.encode("utf-8", "surrogatepass") for text in row if text is not None)
        for (step,) in tx.among(
            "SELECT step FROM record WHERE space = :space AND step IS NOT NULL AND ref IN ({})", self.refs
        ):
            with suppress(ValueError):  # another program wrote it
                yield from _strings(json.loads(step))
        for path, arguments in tx.among(
            "SELECT path, arguments FROM ref WHERE space = :space AND id IN ({})", self.refs
        ):
            yield from _strings(json.loads(arguments))
            try:
                yield files.read_ref_file(tx.files.read(path) or b"")[1]
            except (OSError, Damaged):
                continue  # already gone or torn

    def days(self) -> list[str]:
        """Return the days, as ISO dates, whose journals contain lines of the turns."""
        rows = self._tx.among("SELECT learned_at FROM turn WHERE space = :space AND id IN ({})", self.turns)
        return sorted({from_ms(moment).astimezone(UTC).date().isoformat() for (moment,) in rows})

    def names(self) -> list[str]:
        """Return names of the rows that are not part of their texts.

        These are client ids, speakers, tools, ids of calls, paths and entities; keyed ids are left out.
        """
        tx = self._tx
        rows = [
            *tx.among("SELECT client_id, name FROM turn WHERE space = :space AND id IN ({})", self.turns),
            *tx.among("SELECT tool, tool_call_id FROM ref WHERE space = :space AND id IN ({})", self.refs),
            *tx.among("SELECT path, NULL FROM ref WHERE space = :space AND id IN ({})", self.refs),
            *tx.among("SELECT tool_call_id, NULL FROM record WHERE space = :space AND ref IN ({})", self.refs),
            *tx.among("SELECT entity, NULL FROM fact WHERE space = :space AND atom IN ({})", self.atoms),
        ]
        return list(dict.fromkeys(name for row in rows for name in row if name and not digests.is_keyed(name)))

    def session_numbers(self) -> set[int]:
        """Return the numbers of the sessions that the turns, results and records belong to."""
        tx = self._tx
        rows = [
            *tx.among("SELECT session FROM turn WHERE space = :space AND id IN ({})", self.turns),
            *tx.among("SELECT session FROM record WHERE space = :space AND ref IN ({})", self.refs),
            *tx.among(
                "SELECT s.id FROM ref r JOIN session s ON s.space = r.space AND s.name = r.session"
                " WHERE r.space = :space AND r.id IN ({})",
                self.refs,
            ),
        ]
        return {number for (number,) in rows}

    def record_files(self, sessions: Collection[int]) -> set[str]:
        """Return the files with records of these sessions, by the present names of the sessions."""
        rows = self._tx.among(
            "SELECT DISTINCT s.name FROM record r JOIN session s ON s.space = r.space AND s.id = r.session"
            " WHERE r.space = :space AND r.session IN ({})",
            sessions,
        )
        return {f"offload-{name}.jsonl" for (name,) in rows}

    def paths(self) -> list[str]:
        rows = self._tx.among("SELECT path FROM ref WHERE space = :space AND path <> '' AND id IN ({})", self.refs)
        return [path for (path,) in rows]

    def erase_turns(self, at: int) -> None:
        tx, key = self._tx, digests.key_of(self._tx)
        hashes = tx.among(
            "SELECT id, sha256, client_id FROM turn WHERE space = :space AND purged_at IS NULL AND id IN ({})",
            self.turns,
        )
        tx.many(
            "UPDATE turn SET content = '', name = NULL, told = NULL, sha256 = ?, client_id = ?, purged_at = ?"
            " WHERE space = :space AND id = ?",
            [
                (digests.purged_hash(key, bytes(sha256)), client and digests.purged_id(key, client), at, number)
                for number, sha256, client in hashes
            ],
        )
        tx.run_among(
            "UPDATE progress SET scene = NULL WHERE space = :space AND session IN"
            " (SELECT session FROM turn WHERE space = :space AND id IN ({}))",
            self.turns,
        )
        gone = {f"t{number}" for number in self.turns}
        for number, atom in tx.all("SELECT id, atom FROM draft WHERE space = :space"):
            if not gone.isdisjoint(quote["turn"] for quote in json.loads(atom)["evidence"]):
                tx.run("DELETE FROM draft WHERE space = :space AND id = ?", number)
        self._release([f"t{number}" for number in self.turns])

    def erase_atoms(self, at: int) -> None:
        tx = self._tx
        named = tx.among("SELECT DISTINCT entity FROM mention WHERE space = :space AND atom IN ({})", self.atoms)
        tx.run_among(
            "UPDATE atom SET text = '', folded = '', closed_because = NULL, purged_at = ?"
            " WHERE space = :space AND id IN ({})",
            self.atoms,
            at,
        )
        for sql in (
            "UPDATE atom SET closed_because = NULL WHERE space = :space AND superseded_by IN ({})",
            "DELETE FROM fact WHERE space = :space AND atom IN ({})",
            "DELETE FROM mention WHERE space = :space AND atom IN ({})",
        ):
            tx.run_among(sql, self.atoms)
        tx.run_among(
            "DELETE FROM entity_name WHERE space = :space"
            " AND entity NOT IN (SELECT entity FROM mention WHERE space = :space)"
            " AND entity NOT IN (SELECT id FROM entity_name WHERE space = :space AND key = 'user')"
            " AND entity IN ({})",
            (entity for (entity,) in named),
        )
        self._release([f"a{number}" for number in self.atoms])

    def erase_refs(self, at: int) -> None:
        tx = self._tx
        tx.run_among(
            "UPDATE record SET summary = ?, tool_call = ?, result_ref = '', summary_by = NULL, step = NULL"
            " WHERE space = :space AND ref IN ({})",
            self.refs,
            *(FORGOTTEN, FORGOTTEN),
        )
        tx.run_among(
            "UPDATE ref SET path = '', arguments = 'null', sha256 = '', masked = NULL, purged_at = ?"
            " WHERE space = :space AND id IN ({})",
            self.refs,
            at,
        )
        tx.run_among("DELETE FROM citation WHERE space = :space AND ref IN ({})", self.refs)
        tx.run_among(
            "DELETE FROM followed WHERE space = :space AND client = ? AND head IN ({})", self.refs, PROJECT_FILE
        )
        gone = set(self.refs)
        for number, refs in tx.all("SELECT id, refs FROM message_edit WHERE space = :space"):
            if not gone.isdisjoint(json.loads(refs)):
                tx.run("DELETE FROM message_edit WHERE space = :space AND id = ?", number)

    def rename_refs(self) -> set[str]:
        """Replace the ids of the results, because they are hashes of the content.

        Returns the line files that contain the old ids.
        """
        tx, key = self._tx, digests.key_of(self._tx)
        return {path for id in self.refs for _, path in renaming.rename_purged_ref(tx, key, tx.space, id)}

    def _release(self, ids: Sequence[str]) -> None:
        """Delete the quarantine entries, the citations and the feedback of these turns or atoms."""
        self._tx.run_among("DELETE FROM held WHERE space = :space AND id IN ({})", ids)
        self._tx.run_among("DELETE FROM citation WHERE space = :space AND source IN ({})", ids)
        self._tx.run_among("DELETE FROM feedback WHERE space = :space AND target IN ({})", ids)


def _strings(value: Any) -> Iterator[bytes]:
    match value:
        case str():
            yield value.encode("utf-8", "surrogatepass")
        case dict() | list():
            members: list[Any] = list(value.values()) if isinstance(value, dict) else value  # pyright: ignore
            for member in members:
                yield from _strings(member)
        case _:
            pass


def _erase_from_scenes(tx: Transaction, gone: set[str]) -> None:
    """Erase what every version of every scene says on the basis of these atoms.

    A version without any text left keeps the ids of its atoms. If no version has text left, the scene is deleted,
    because its slug may reveal its subject.
    """
    for slug in tx.column("SELECT DISTINCT slug FROM scene WHERE space = :space"):
        for version in page_rows.scene_versions(tx, slug):
            if gone.isdisjoint(version.atoms) and gone.isdisjoint(cited_atoms(version.body)):
                continue
            left = scene_without(version, gone)
            tx.run(
                "UPDATE scene SET title = ?, summary = ?, body = ?, atoms = ?, entities = ?, reason = ''"
                " WHERE space = :space AND slug = ? AND version = ?",
                left.title if left.body else FORGOTTEN,
                left.summary if left.body else FORGOTTEN,
                left.body,
                json.dumps(left.atoms if left.atoms else version.atoms),
                json.dumps(left.entities, ensure_ascii=False),
                *(slug, version.version),
            )
        if not any(version.body for version in page_rows.scene_versions(tx, slug)):
            tx.files.remove(f"scenes/{slug}.md")
            tx.run("DELETE FROM scene WHERE space = :space AND slug = ?", slug)
            tx.run("DELETE FROM change WHERE space = :space AND topic = ?", f"scene:{slug}")


def _forget_questions(tx: Transaction) -> None:
    """Delete unfinished jobs, the errors of jobs, and the reasons of requests, which may contain erased words.

    The questions are asked again without these words.
    """
    tx.run("DELETE FROM work WHERE space = :space AND state <> 'done'")
    tx.run("UPDATE work SET error = NULL WHERE space = :space")
    tx.run("UPDATE stage_cursor SET wanted = 'purged' WHERE space = :space AND wanted IS NOT NULL")


def _sweep(tx: Transaction, traces: Traces, says: purged_names.Test) -> None:
    """Clear or delete the rows in `_SWEPT` that quote an erased text or, in this space, contain an erased word."""
    for table, key, columns, clearing in _SWEPT:
        rows = tx.all(f"SELECT {key}, {columns} FROM {table}")
        hits = [
            row[:2]
            for row in rows
            if any(text and (traces.matches(text.encode()) or (row[0] == tx.space and says(text))) for text in row[2:])
        ]
        tx.many(clearing, hits)


def _erase_from_canvases(tx: Transaction, refs: Sequence[str], ids: Collection[str]) -> dict[int, list[str]]:
    """Erase the history of the canvases that had words of these results, or of the forgotten rows in `ids`.

    Their current versions do not contain the words any more. Returns the erased labels by the number of the canvas.
    """
    versions = tx.all("SELECT canvas, detail FROM canvas_version WHERE space = :space AND kind = 'forgotten'")
    numbers = {number for number, detail in versions if not set(ids).isdisjoint(json.loads(detail))}
    sql = "SELECT DISTINCT canvas FROM record WHERE space = :space AND ref IN ({})"
    numbers |= {number for (number,) in tx.among(sql, refs)}
    return {number: canvas_rows.erase_history(tx, number) for number in sorted(numbers)}
