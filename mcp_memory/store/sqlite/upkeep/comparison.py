"""The files of a home beside its database: which rows each has, and where they say different things.

Both are read in one form, the lines of files: those that are there, and those that the rows come to. Of lines about the
same row the last counts. Explicit statements are compared as what all notes of a space come to; results by their files.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import apsw

from mcp_memory.core.errors import Damaged
from mcp_memory.core.regular_files import read_own
from mcp_memory.core.types import Source
from mcp_memory.store import files
from mcp_memory.store.sql import canvases, digests, line_files, refs
from mcp_memory.store.sql.forgetting import TOMBSTONES_FILE
from mcp_memory.store.sql.line_rows import (
    KINDS,
    LineImport,
    Row,
    Statement,
    is_idle,
    key_of,
    ref_row,
    row_of,
    statements,
    undone_corrections,
)
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.sqlite.line_files import committed
from mcp_memory.store.sqlite.transaction import SqliteTransaction
from mcp_memory.store.sqlite.unreadable import LINE_FILES, WRONG, is_line_file

Key = tuple[str, str]

_EXAMPLES = 5
_UNSOUND = "does not say what it should."
UNNAMED = "its front matter says too little."
_SHOWN = 20
TURNS, STATEMENTS, RESULTS = "turns", "statements that were told", "results"
CANVASES = "canvases"
_ORDER = (TURNS, STATEMENTS, RESULTS, CANVASES, *(kind for kind in KINDS.values() if kind != TURNS))
_ENDS = ("valid_to", "superseded_by", "closed_because")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """`same` rows say the same in both. `examples` names some that do not, by their keys."""

    what: str
    same: int = 0
    differing: int = 0
    only_in_files: int = 0
    only_in_database: int = 0
    examples: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        return not (self.differing or self.only_in_files or self.only_in_database)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A row as files and database have it, each None if missing there. Equal rows are yielded too."""

    what: str
    id: str
    is_same: bool
    told: Row | Statement | None = None
    held: object = None


@dataclass(kw_only=True)
class LinesOfFile:
    """Reads the line files of a space. `notes` are sentences about damage.

    With `within`, lines behind the length that the database knows are left out: others write meanwhile.
    """

    tx: SqliteTransaction
    within: bool = False
    notes: list[str] = field(default_factory=list[str])
    lengths: dict[str, int] = field(default_factory=dict[str, int])
    """How much of each file that was read is whole lines."""
    unread: int = 0
    """Lines that cannot be read."""

    def paths(self) -> list[str]:
        folder = self.tx.folder
        found = {path.relative_to(folder).as_posix() for what in LINE_FILES for path in folder.glob(what)}
        return sorted({path for path in found if is_line_file(path)} | set(line_files.due(self.tx)))

    def lines(self, path: str, file: Path | None = None) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
        """Yield (position, line, parsed line) of a line file, or of another file with some of its lines.

        A last line without its end was never committed, and is left out.
        """
        place = file or self.tx.folder / path
        stream, known = files.opened(place), committed(self.tx.con, self.tx.space, path) or 0
        if stream is None:
            if files.is_there(place):
                self.note(f"{path} is no file.")
            elif known:
                self.note(f"{path} is torn: 0 of {known} bytes.")
            return
        length = 0
        with stream:
            for number, line in enumerate(stream, start=1):
                if not line.endswith(b"\n") or (self.within and length + len(line) > known):
                    break
                length += len(line)
                try:
                    fields: Any = json.loads(line)
                    if not isinstance(fields, dict):
                        raise ValueError
                except (ValueError, RecursionError):
                    self.unread += 1
                    self.note(f"line {number} of {path} cannot be read.")
                else:
                    yield f"line {number} of {path}", line, fields
        self.lengths[path] = length
        if length < known:
            self.note(f"{path} is torn: {length} of {known} bytes.")

    def note(self, text: str) -> None:
        if len(self.notes) < _SHOWN:
            self.notes.append(f"{self.tx.name}: {text}")


def compare(con: apsw.Connection, home: Path, *, within: bool = False) -> tuple[list[Compared], list[str]]:
    """Compare the files of a home with a database. Returns the counts by kind, and sentences about damaged files."""
    found = {what: Compared(what=what) for what in _ORDER}
    notes: list[str] = []
    for tx in _spaces(con, home):
        source = LinesOfFile(tx=tx, within=within, notes=notes)
        elsewhere: dict[tuple[str, str], Difference] = {}
        for one in differences(source):
            other = elsewhere.pop((one.what, one.id), None)
            if one.is_same or (other is None and one.told is not None and one.held is not None):
                _count(found, one)
            elif other is None:  # it may be in a file of another day
                elsewhere[one.what, one.id] = one
            else:
                _count(found, replace(one, told=one.told or other.told, held=one.held or other.held))
        for one in elsewhere.values():
            _count(found, one)
        if tx.space:
            differing = canvases.differing(tx)
            for number in tx.column("SELECT number FROM canvas WHERE space = :space ORDER BY number"):
                is_same = number not in differing
                _count(found, Difference(what=CANVASES, id=f"canvas {number}", is_same=is_same, held={}))
    return list(found.values()), notes


@dataclass(kw_only=True)
class Taken:
    """The result of `take_all`. `lengths` of line files by (space, path); `notes` are sentences about damage.

    `kept`: rows that had been purged and are still in the database, by (space, tombstone); they are forgotten.
    """

    lengths: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    kept: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    notes: list[str] = field(default_factory=list[str])


def take_all(con: apsw.Connection, home: Path) -> Taken:
    """Have a database say what the files of a home say."""
    taken = Taken()
    for tx in _spaces(con, home):
        source = LinesOfFile(tx=tx, notes=taken.notes)
        if not (tx.space or source.paths() or any(tx.folder.glob("refs/*.md"))):
            continue
        rows = LineImport(tx)
        for one in differences(source):
            try:
                if one.is_same:
                    continue
                if isinstance(one.told, Row):
                    rows.put(one.told)
                elif one.told is not None:
                    rows.put_statement(one.told)
            except WRONG:
                continue  # no row can hold it
        rows.finish()
        for number in canvases.differing(tx):
            canvases.draw(tx, number)
        taken.kept |= {(tx.name, tombstone): count for tombstone, count in rows.kept.items()}
        taken.lengths |= {(tx.name, path): length for path, length in source.lengths.items()}
    return taken


def _spaces(con: apsw.Connection, home: Path) -> Iterator[SqliteTransaction]:
    names = {str(name) for (name,) in con.execute("SELECT name FROM space")}
    folders = {path.name for path in (home / "spaces").glob("*/") if path.is_dir()}
    yield from (SqliteTransaction(con, home, name) for name in sorted(names | folders))


def _count(found: dict[str, Compared], one: Difference) -> None:
    so_far = found[one.what]
    named = so_far.examples
    if one.is_same:
        found[one.what] = replace(so_far, same=so_far.same + 1)
        return
    is_told = one.told is not None or one.what == CANVASES
    kind = "only_in_files" if one.held is None else "differing" if is_told else "only_in_database"
    if getattr(so_far, kind) < _EXAMPLES:
        named = (*named, one.id)
    found[one.what] = replace(so_far, **{kind: getattr(so_far, kind) + 1, "examples": named})


# --- line by line -----------------------------------------------------------------------------------


def differences(source: LinesOfFile) -> Iterator[Difference]:
    """Yield every row of a space, as files and database have it.

    Journals come first, then explicit statements, results, tasks and tombstones: a row comes after those that it names.
    """
    notes: dict[str, dict[str, Any]] = {}
    paths = source.paths()
    for path in (path for path in paths if path.startswith("conversations/")):
        yield from of_file(source, path, notes=notes)
    tombstones = LinesOfFile(tx=source.tx, within=source.within).lines(TOMBSTONES_FILE)
    undone = undone_corrections(fields for *_, fields in tombstones)
    yield from _statements(source.tx, notes.values(), undone=undone)
    yield from results(source)
    rest = [path for path in paths if not path.startswith("conversations/")]
    for path in sorted(rest, key=lambda path: (path.startswith("tombstones"), path.startswith("offload-"))):
        yield from of_file(source, path, notes=notes)


def of_file(
    source: LinesOfFile, path: str, file: Path | None = None, *, notes: dict[str, dict[str, Any]] | None = None
) -> Iterator[Difference]:
    """Yield what the lines of a file are about; the lines of explicit statements go to `notes`, by their turn.

    Lines that follow each other as their rows do, as those of a journal, are not held in memory.
    """
    tx, is_journal = source.tx, path.startswith("conversations/")
    rows = iter(line_files.lines_of(tx, path) if tx.space else ())
    due, same, told = next(rows, None), dict[Key, int](), dict[Key, tuple[dict[str, Any], Row | None]]()
    for at, line, fields in source.lines(path, file):
        try:
            key = key_of(fields)
            row = None if line == due or same.get(key) == hash(line) else row_of(fields)
        except WRONG:
            source.unread += 1
            turn: Any = fields.get("turn") if is_journal else None
            is_turn = isinstance(turn, str)
            source.note(f"{turn[:20]} in the journal is not what its hash says." if is_turn else f"{at} {_UNSOUND}")
            continue
        if notes is not None and fields.get("told"):
            notes[key[1]] = fields
        if row is not None and is_journal and due is None and key not in same:
            yield Difference(what=key[0], id=key[1], is_same=False, told=row)
        else:
            told[key] = fields, row
            if row is None:
                same[key] = hash(line)
                if key[0] != "tombstones":  # of which it is still to be seen whom they took
                    del told[key]
        if line == due:
            due = next(rows, None)
    held = {key_of(fields): fields for fields in map(json.loads, chain([due] if due else [], rows))}
    for key in dict.fromkeys((*same, *held, *told)):
        yield from _difference(tx, key, told.get(key), held.get(key), is_same=key in same)


def _difference(
    tx: Transaction,
    key: Key,
    told: tuple[dict[str, Any], Row | None] | None,
    held: dict[str, Any] | None,
    *,
    is_same: bool,
) -> Iterator[Difference]:
    if told is None:
        yield Difference(what=key[0], id=key[1], is_same=is_same, held=held)
        return
    fields, row = told
    if not is_idle(fields, held is not None):  # of a session without an active canvas the rows say nothing
        is_same = (row is None or fields == held) and (key[0] != "tombstones" or _is_marked(tx, fields))
        yield Difference(
            what=key[0], id=key[1], is_same=is_same, told=row or row_of(fields), held=held if row else fields
        )


def _is_marked(tx: Transaction, fields: Mapping[str, Any]) -> bool:
    """Whether the rows that a tombstone took, and no others, are forgotten under it."""
    number = int(fields["tombstone"][1:])
    marked = tx.column(
        "SELECT 't' || id FROM turn WHERE space = :space AND tombstone = ? UNION ALL"
        " SELECT 'a' || id FROM atom WHERE space = :space AND tombstone = ? UNION ALL"
        " SELECT id FROM ref WHERE space = :space AND tombstone = ?",
        *(number, number, number),
    )
    named = set[str](fields["ids"] if fields["undone_at"] is None else ())
    key = digests.key_of(tx)
    return {id if id in named or id[0] != "r" else digests.purged_ref(key, id) for id in marked} == named


def results(source: LinesOfFile) -> Iterator[Difference]:
    """Yield the results of a space, as their files and as their rows have them."""
    tx = source.tx
    held = set(tx.column("SELECT id FROM ref WHERE space = :space AND purged_at IS NULL"))
    for path in sorted((tx.folder / "refs").glob("*.md")):
        name = f"refs/{path.name}"
        try:
            content = read_own(path)
            fields, data = files.read_ref_file(content)
            row = ref_row(fields, name)
        except OSError as error:
            source.note(f"{name} is damaged: it cannot be read ({error.strerror}).")
        except Damaged as error:
            source.note(f"{name} is damaged: {error}.")
        except WRONG:
            source.note(f"{name} is damaged: {UNNAMED}")
        else:
            id = str(row.key["id"])
            known = refs.find(tx, id)
            same = known is not None and known.path == name and files.ref_file(known, data) == content
            yield Difference(what=RESULTS, id=id, is_same=same, told=row, held=known)
            held.discard(id)
    yield from (Difference(what=RESULTS, id=id, is_same=False, held=id) for id in sorted(held))


# --- explicit statements -------------------------------------------------------------------------------

_TOLD = (
    "FROM atom a JOIN turn n ON n.space = a.space AND n.id = a.evidence AND n.role = 'note'"
    " LEFT JOIN fact f ON f.space = a.space AND f.atom = a.id WHERE a.space = :space AND a.work IS NULL"
)
_FACT = ("entity", "relation", "value", "single_valued")
_ATOM = (
    *("kind", "text", "priority", "confidence", "evidence", "span_start", "span_end", "valid_from"),
    *("valid_to", "superseded_by", "closed_because", "learned_at", "source", "label"),
)


def _statements(
    tx: Transaction, notes: Iterable[Mapping[str, Any]], *, undone: Collection[str]
) -> Iterator[Difference]:
    all_told = statements(notes, undone=undone)
    left = dict(all_told)
    columns = ", ".join((*(f"a.{name}" for name in _ATOM), *(f"f.{name}" for name in _FACT)))
    confirmed = "EXISTS (SELECT 1 FROM evidence e WHERE e.space = a.space AND e.atom = a.id AND e.turn <> a.evidence)"
    for number, purged, more, *values in tx.all(
        f"SELECT a.id, a.purged_at, {confirmed}, {columns} {_TOLD} ORDER BY a.id"
    ):
        one, values = left.pop(number, None), dict(zip((*_ATOM, *_FACT), values, strict=True))
        if purged is not None:
            continue
        fact = {name: values.pop(name) for name in _FACT}
        held = Statement(number=number, values=values, fact=None if fact["entity"] is None else fact)
        due = None if one is None else _brought_up_to_date(one, held, all_told, confirmed=bool(more))
        is_same = due is not None and (due.values, due.fact) == (held.values, held.fact)
        yield Difference(what=STATEMENTS, id=f"a{number}", is_same=is_same, told=due, held=held)
    for number, one in left.items():
        yield Difference(what=STATEMENTS, id=f"a{number}", is_same=False, told=one)


def _brought_up_to_date(
    one: Statement, held: Statement, told: Mapping[int, Statement], *, confirmed: bool
) -> Statement:
    """Return a statement with later changes that are in no file: those by a model or an import."""
    values, now = dict(one.values), held.values
    if now["valid_to"] is not None and (now["superseded_by"] is None or now["superseded_by"] not in told):
        values |= {name: now[name] for name in _ENDS}
    voices = get_args(Source)
    if now["source"] in voices and voices.index(now["source"]) < voices.index(values["source"]):
        values["source"] = now["source"]
    if values["label"] is None and now["label"] == "promise":  # by a sentence with the same words
        values["label"] = now["label"]
        values["closed_because"] = now["closed_because"]
    if confirmed and now["confidence"] > values["confidence"]:  # pyright: ignore[reportOperatorIssue, reportOptionalOperand]
        values["confidence"] = now["confidence"]
    return replace(one, values=values)
