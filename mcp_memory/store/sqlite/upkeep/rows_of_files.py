"""Rows made of the files of a home alone: what needs no model comes back as it was.

Turns from the journal, each proven by its hash; what was told, with what it ended, from the notes among them; refs from
their own files; records, canvas edits and tombstones from their line files. Lines that a database lacks count too: it
may have been copied without its latest part. Lines from before they said their number are passed over where a database
knows it, and numbered in order where there is none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import Damaged
from mcp_memory.core.regular_files import read_regular
from mcp_memory.core.types import NewTurn
from mcp_memory.store import files
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.sql import canvases, digests, entities, tombstones
from mcp_memory.store.sqlite.rows import session_for, space_for, to_ms
from mcp_memory.store.sqlite.unreadable import WRONG, is_line_file

__all__ = [
    "DAMAGED",
    "INSERT_TURN",
    "UNNAMED",
    "Refilled",
    "refill",
    "take_canvas",
    "take_record",
    "take_ref",
    "take_told",
    "take_tombstone",
    "turn_row",
]

_SHOWN = 20
UNNAMED = "its front matter says too little."
DAMAGED = "damaged"
"""The reason under which `Refilled.passed` counts what `notes` tell of."""
_BATCH = 2_000
INSERT_TURN = (
    "INSERT INTO turn (id, space, session, position, role, name, content, client_id, said_at, dated, learned_at,"
    " sha256, told) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
"""For the values of `turn_row`."""


@dataclass
class Refilled:
    """`passed`: kinds of lines that could not be used, and how many. `notes`: what is wrong with files, a line each.

    `lengths`: how much of each line file counts, by (number of the space, path). `about`: by atom, whom it mentions.
    """

    passed: Counter[str] = field(default_factory=Counter[str])
    notes: list[str] = field(default_factory=list[str])
    lengths: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    about: dict[int, tuple[int, list[str]]] = field(default_factory=dict[int, tuple[int, list[str]]])
    held: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])
    facts: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    def note(self, text: str) -> None:
        self.passed[DAMAGED] += 1
        if len(self.notes) < _SHOWN:
            self.notes.append(text)


def refill(
    con: apsw.Connection, home: Path, *, known: dict[tuple[int, str], int] | None, within: bool = False
) -> Refilled:
    """Fill an empty database; `known` is how long line files were by the database before, if there is one.

    `within` leaves out what is behind that length: others write meanwhile.
    """
    done = Refilled()
    for folder in sorted((home / "spaces").iterdir() if (home / "spaces").is_dir() else ()):
        if folder.is_dir():
            space = space_for(con, folder.name)
            source = _Source(folder, space, done, known, within)
            _turns(con, source)
            _refs(con, source)
            _canvases(con, source)
            _records(con, source)
            if source.is_alone:
                _pictures(con, source)
    _told(con, done, is_alone=known is None)
    for folder in sorted((home / "spaces").glob("*/")):
        _tombstones(con, _Source(folder, space_for(con, folder.name), done, known, within))
    return done


class _Source:
    """The files of a space, read line by line."""

    def __init__(
        self, folder: Path, space: int, done: Refilled, known: dict[tuple[int, str], int] | None, within: bool
    ) -> None:
        self.folder, self.space, self.done, self.is_alone = folder, space, done, known is None
        self.at = folder.name
        self._known = known or {}
        self._within = within

    def lines(self, path: Path) -> Iterator[dict[str, Any]]:
        """Yield the objects of a line file; a last line that was cut short never counted."""
        name = path.relative_to(self.folder).as_posix()
        least, length = self._known.get((self.space, name), 0), 0
        if not path.is_file():
            if path.exists():
                self.done.note(f"{self.folder.name}: {name} is no file.")
            return
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n") or (self._within and length + len(line) > least):
                    break
                length += len(line)
                self.at = f"{self.folder.name}: line {number} of {name}"
                try:
                    fields: Any = json.loads(line)
                    if not isinstance(fields, dict):
                        raise ValueError
                except (ValueError, RecursionError):
                    self.done.note(f"{self.at} cannot be read.")
                else:
                    yield fields
        self.done.lengths[self.space, name] = length
        if length < least:
            self.done.note(f"{self.folder.name}: {name} is torn: {length} of {least} bytes.")

    @contextmanager
    def named_if_wrong(self) -> Generator[None]:
        """Note a line that does not say what it should, and go on behind it."""
        try:
            yield
        except WRONG:
            self.done.note(f"{self.at} does not say what it should.")


def _ms(text: str | None) -> int | None:
    return None if text is None else to_ms(datetime.fromisoformat(text))


def _as_stored(text: str) -> str:
    return datetime.fromisoformat(text).isoformat()


# --- the journal ------------------------------------------------------------------------------------


def _turns(con: apsw.Connection, source: _Source) -> None:
    rows: list[tuple[Any, ...]] = []
    for path in sorted((source.folder / "conversations").glob("*.jsonl")):
        if not is_line_file(f"conversations/{path.name}"):
            continue
        for fields in source.lines(path):
            try:
                rows.append(turn_row(con, source.space, fields))
                if why := fields.get("held"):
                    source.done.held.append((source.space, fields["turn"], json.dumps(why), rows[-1][-3]))
            except WRONG:
                turn = fields.get("turn")
                what = f"{source.folder.name}: {turn[:20]} in the journal" if isinstance(turn, str) else source.at
                source.done.note(f"{what} is not what its hash says.")
            if len(rows) >= _BATCH:
                _insert_turns(con, source, rows)
                rows.clear()
    _insert_turns(con, source, rows)


def turn_row(con: apsw.Connection, space: int, fields: dict[str, Any]) -> tuple[Any, ...]:
    said, digest = datetime.fromisoformat(fields["said_at"]), bytes.fromhex(fields["sha256"])
    role, name, content, told = fields["role"], fields["name"], fields["content"], fields.get("told")
    hashes = [evidence_hash(NewTurn(role=role, name=name, content=content, said_at=at)) for at in (None, said)]
    if content and digest not in hashes:  # of what was purged, only the hash is left
        raise ValueError
    return (
        int(fields["turn"][1:]),
        space,
        session_for(con, space, fields["session"]),
        fields["position"],
        role,
        name,
        content,
        fields["client_id"],
        to_ms(said),
        digest == hashes[1],
        _ms(fields["learned_at"]),
        digest,
        None if told is None else json.dumps(told),
    )


def _insert_turns(con: apsw.Connection, source: _Source, rows: list[tuple[Any, ...]]) -> None:
    try:
        con.executemany(INSERT_TURN, rows)
    except WRONG:
        for row in rows:
            source.at = f"{source.folder.name}: t{row[0]} in the journal"
            with source.named_if_wrong():
                con.execute(INSERT_TURN, row)


# --- what was told ----------------------------------------------------------------------------------


def _told(con: apsw.Connection, done: Refilled, *, is_alone: bool) -> None:
    """Make the atoms of notes, in the order of their numbers: each ends what its line says that it ended."""
    notes: Any = con.execute(
        "SELECT id, space, content, learned_at, told FROM turn WHERE role = 'note' AND told IS NOT NULL ORDER BY id"
    ).fetchall()
    found: list[tuple[int, Any, dict[str, Any]]] = []
    last = 0
    for row in notes:
        told: dict[str, Any] = json.loads(row[4])
        try:
            if "atom" not in told and not is_alone:
                done.passed["told before its line said what it ended"] += 1
                continue
            last = int(told["atom"][1:]) if "atom" in told else last + 1
        except WRONG:
            done.note(f"What was told in t{row[0]} cannot be read.")
        else:
            found.append((last, row, told))
    for number, row, told in sorted(found, key=lambda one: one[0]):
        try:
            take_told(con, done, number, row, told)
        except WRONG:
            done.note(f"What was told in t{row[0]} cannot be read.")


def take_told(con: apsw.Connection, done: Refilled, number: int, row: Any, told: dict[str, Any]) -> None:
    turn, space, text, learned, _ = row
    by = told.get("by")
    con.execute(
        "INSERT INTO atom (id, space, kind, text, folded, priority, confidence, evidence, span_start, span_end,"
        " valid_from, valid_to, superseded_by, learned_at, source)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            number,
            space,
            told["kind"],
            text,
            digests.folded(text),
            told["priority"],
            told["confidence"],
            turn,
            len(text),
            told["valid_from"],
            told.get("until"),
            None if by is None else int(by[1:]),
            learned,
            told.get("source", "user"),
        ),
    )
    con.execute(
        "INSERT INTO evidence (space, atom, turn, span_start, span_end, quote) VALUES (?, ?, ?, 0, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (space, number, turn, len(text), text),
    )
    _end(con, number, told)
    if why := told.get("held"):
        done.held.append((space, f"a{number}", json.dumps(why), learned))
    about = list(told["entities"])
    if told["entity"] and told["relation"] and told["value"]:
        about.append(told["entity"])
        key = entities.key(told["entity"])
        fact = (told["entity"], key, told["relation"], told["value"], told["single_valued"], told["valid_from"])
        done.facts.append((space, number, *fact))
    done.about[number] = (space, about)


def _end(con: apsw.Connection, number: int, told: dict[str, Any]) -> None:
    con.executemany(
        "UPDATE atom SET valid_to = max(?, valid_from), superseded_by = ?, closed_because = ? WHERE id = ?",
        [
            (told["valid_from"], number, told.get("because") or None, int(older[1:]))
            for older in told.get("ends", told["supersedes"])
        ],
    )


# --- results and tasks ------------------------------------------------------------------------------


def _refs(con: apsw.Connection, source: _Source) -> None:
    for path in sorted((source.folder / "refs").glob("*.md")):
        take_ref(con, source.space, path, source.done)


def take_ref(con: apsw.Connection, space: int, path: Path, done: Refilled) -> None:
    """Insert the row of a result's file, unless there is one."""
    try:
        fields, _ = files.read_ref_file(read_regular(path))
        masked = fields.get("masked")
        row = (
            space,
            fields["ref"],
            f"refs/{path.name}",
            fields["tool"],
            json.dumps(fields["arguments"]),
            fields["tool_call_id"],
            fields["session"],
            _as_stored(fields["timestamp"]),
            fields["bytes"],
            fields["sha256"],
            fields["content_type"],
            json.dumps(masked) if masked else None,
        )
        con.execute(
            "INSERT INTO ref (space, id, path, tool, arguments, tool_call_id, session, timestamp, bytes, sha256,"
            " content_type, masked) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            row,
        )
    except OSError as error:
        done.note(f"{path.parent.parent.name}: refs/{path.name} is damaged: it cannot be read ({error.strerror}).")
    except Damaged as error:
        done.note(f"{path.parent.parent.name}: refs/{path.name} is damaged: {error}.")
    except WRONG:
        done.note(f"{path.parent.parent.name}: refs/{path.name} is damaged: {UNNAMED}")


def _canvases(con: apsw.Connection, source: _Source) -> None:
    """Insert canvases as yet undrawn, what was done to them, and which is active."""
    for line in source.lines(source.folder / canvases.FILE):
        with source.named_if_wrong():
            take_canvas(con, source.space, line)


def take_canvas(con: apsw.Connection, space: int, line: dict[str, Any]) -> None:
    if "edit" in line:
        work = line["work"]
        con.execute(
            "INSERT OR REPLACE INTO canvas_edit (id, space, canvas, after_record, kind, body, at, work, undone_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(
                    line["edit"],
                    space,
                    line["canvas"],
                    line["after"],
                    line["kind"],
                    line["body"],
                    line["at"],
                ),
                None if work is None else int(work[1:]),
                line["undone_at"],
            ),
        )
    elif "canvas" in line:
        session = session_for(con, space, line["of"])
        con.execute(
            "INSERT OR REPLACE INTO canvas (space, number, label, session, text, status, folded, groups, updated,"
            " version) VALUES (?, ?, ?, ?, '', 'doing', 0, '{}', ?, ?)",
            (space, line["canvas"], line["label"], session, line["updated"], line["version"]),
        )
    elif "session" in line:
        session = session_for(con, space, line["session"])
        con.execute(
            "UPDATE session SET active_canvas = ?, activated_at = ? WHERE id = ?",
            (line["active"], line["activated"], session),
        )


def _records(con: apsw.Connection, source: _Source) -> None:
    for path in sorted(source.folder.glob("offload-*.jsonl")):
        for line in source.lines(path):
            if "record" not in line and not source.is_alone:
                source.done.passed["recorded before its line said what it did"] += 1
                continue
            with source.named_if_wrong():
                take_record(con, source.space, line)


def take_record(con: apsw.Connection, space: int, line: dict[str, Any]) -> None:
    con.execute(
        "INSERT OR REPLACE INTO record (id, space, session, canvas, node, tool_call, summary, result_ref,"
        " tool_call_id, timestamp, score, tokens_raw, tokens_kept, ref, summary_by, step)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            line.get("record"),
            space,
            session_for(con, space, line["session"]),
            int(line["node_id"].partition("-")[0]),
            *(line["node_id"], line["tool_call"], line["summary"], line["result_ref"], line["tool_call_id"]),
            *(
                _as_stored(line["timestamp"]),
                line["score"],
                line["tokens_raw"],
                line["tokens_kept"],
                line["ref"],
            ),
            line.get("summary_by"),
            line.get("step"),
        ),
    )


def _pictures(con: apsw.Connection, source: _Source) -> None:
    """Take canvases from before their edits were kept as their files show them."""
    for path in sorted((source.folder / "mmds").glob("*.mmd")):
        number, _, label = path.stem.partition("-")
        if number.isdecimal():
            con.execute(
                "INSERT INTO canvas (space, number, label, session, text, status, folded, groups, updated, version)"
                " SELECT ?1, ?2, ?3, session, ?4, 'doing', 0, '{}', 0, 1 FROM record WHERE space = ?1 AND canvas = ?2"
                " ORDER BY id DESC LIMIT 1 ON CONFLICT DO NOTHING",
                (source.space, int(number), label, (files.content_of(path) or b"").decode(errors="replace")),
            )


# --- what was forgotten -----------------------------------------------------------------------------


def _tombstones(con: apsw.Connection, source: _Source) -> None:
    last = {str(line.get("tombstone")): line for line in source.lines(source.folder / tombstones.FILE)}
    for name, line in last.items():
        try:
            take_tombstone(con, source.space, line, is_alone=source.is_alone)
        except WRONG:
            source.done.note(f"{source.folder.name}: {name[:20]} in {tombstones.FILE} cannot be read.")


_OF_A_TOMBSTONE = {"tombstone", "at", "reason", "how", "ids", "undone_at", "purged_at", "digests"}


def take_tombstone(con: apsw.Connection, space: int, line: dict[str, Any], *, is_alone: bool) -> None:
    if line.keys() - _OF_A_TOMBSTONE:
        raise ValueError
    number, purged, ids = int(line["tombstone"][1:]), _ms(line["purged_at"]), [str(id) for id in line["ids"]]
    kept = [(space, bytes.fromhex(digest), number) for digest in line.get("digests", ())]
    con.execute(
        "INSERT INTO tombstone (id, space, reason, at, undone_at, purged_at, took) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            number,
            space,
            line["reason"],
            _ms(line["at"]),
            _ms(line["undone_at"]),
            purged,
            json.dumps({"ids": ids, "how": line["how"]}),
        ),
    )
    if line["undone_at"] is not None:
        return
    for id in ids:
        table, key = {"t": ("turn", id[1:]), "a": ("atom", id[1:])}.get(id[:1], ("ref", id))
        if is_alone and purged is not None and table == "ref":  # by its husk it is known when it comes again
            con.execute(
                "INSERT INTO ref (space, id, path, tool, arguments, session, timestamp, bytes, sha256, content_type)"
                " VALUES (?, ?, '', '', 'null', '', ?, 0, '', '') ON CONFLICT DO NOTHING",
                (space, id, _as_stored(line["at"])),
            )
        con.execute(
            f"UPDATE {table} SET tombstone = ?, purged_at = ? WHERE space = ? AND id = ?", (number, purged, space, key)
        )
    con.executemany("INSERT INTO forgotten (space, digest, tombstone) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", kept)
