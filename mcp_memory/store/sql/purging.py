"""Purging in SQLite: what was forgotten is erased from rows, indexes and files. It cannot be undone.

Turns, atoms and results leave a husk: ids and places that others hold, keyed digests by which they are known again,
and no words. What told of them loses the words that did: scenes and personas in every version, the history of
canvases, records, drafts, questions to models, edits of message lists, facts and names that nothing else mentions.

`purge` is a transaction and rewrites the files in it. `shred` then makes the database anew without free pages, its
indexes in one piece and its log empty. `unproven` tells of purges until somebody searched for what is left of them:
one that was killed before that is known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import Damaged, NotFound
from mcp_memory.core.regular_files import read_regular
from mcp_memory.core.text import one_line
from mcp_memory.core.types import FORGOTTEN
from mcp_memory.store import files
from mcp_memory.store.citations import cited
from mcp_memory.store.forgetting import Purge, Purged, Scrubbed
from mcp_memory.store.forgotten import left_of
from mcp_memory.store.protocol import Conflict
from mcp_memory.store.sql import canvases, digests, scenes, tombstones
from mcp_memory.store.sql.rows import from_ms, number_of, space_for, to_ms, touch
from mcp_memory.store.sqlite.linefiles import rewrite_lines
from mcp_memory.store.sqlite.upkeep import compacting, snapshots
from mcp_memory.store.traces import Traces

__all__ = ["excuse", "note_proven", "purge", "shred", "unproven"]

_MARK = "purge "
_AMONG = "(SELECT value FROM json_each(?))"

# What may quote anything, and can be done without: cleared where it has a trace.
_SWEPT = (
    ("message_edit", "id", ("texts", "note"), "DELETE FROM message_edit WHERE id = ?"),
    ("draft", "id", ("atom",), "DELETE FROM draft WHERE id = ?"),
    ("work", "id", ("basis", "error"), "UPDATE work SET basis = '{}', error = NULL WHERE id = ? AND state = 'done'"),
    ("followed", "path", ("state",), "UPDATE followed SET state = '{}' WHERE path = ?"),
    ("progress", "session", ("scene",), "UPDATE progress SET scene = NULL WHERE session = ?"),
    ("atom", "id", ("closed_because",), "UPDATE atom SET closed_because = NULL WHERE id = ?"),
    ("spend", "id", ("error",), "UPDATE spend SET error = 'failed' WHERE id = ?"),
    ("held", "id", ("reasons",), "UPDATE held SET reasons = '[]' WHERE id = ?"),
)


def purge(con: apsw.Connection, folder: Path, space: str, what: Purge, *, now: datetime) -> Purged:
    """See `Store.purge`."""
    space_no = space_for(con, space)
    numbers = [_forgotten(con, space_no, id) for id in what.tombstones]
    if any(canvases.canvas(con, space, one.row.number).version != one.row.version for one in what.canvases):
        raise Conflict  # before any file is written
    among = json.dumps(numbers)
    turns = _column(con, f"SELECT id FROM turn WHERE tombstone IN {_AMONG}", among)
    atoms = _column(con, f"SELECT id FROM atom WHERE tombstone IN {_AMONG}", among)
    refs = _column(con, f"SELECT id FROM ref WHERE space = ? AND tombstone IN {_AMONG}", space_no, among)
    texts = list(dict.fromkeys(text for text in _texts(con, folder, space_no, turns, atoms, refs) if text))
    days = _days(con, turns)
    sessions = _column(con, f"SELECT DISTINCT s.name FROM record r JOIN session s ON s.id = r.session"
                            f" WHERE r.space = ? AND r.ref IN {_AMONG}", space_no, json.dumps(refs))  # fmt: skip
    _erase_atoms(con, space_no, atoms, now)
    _erase_turns(con, turns, now)
    paths = _column(con, f"SELECT path FROM ref WHERE space = ? AND path <> '' AND id IN {_AMONG}",
                    space_no, json.dumps(refs))  # fmt: skip
    _erase_refs(con, space_no, refs, now)
    _unname(con, space_no, [*(f"t{number}" for number in turns), *(f"a{number}" for number in atoms)])
    _erase_from_scenes(con, folder, space_no, {f"a{number}" for number in atoms})
    for version, text in what.personas.items():
        con.execute(
            "UPDATE persona SET text = ?, reason = NULL WHERE space = ? AND version = ?", (text, space_no, version)
        )
    _forget_questions(con, space_no)
    _sweep(con, Traces(texts))
    _redraw(con, folder, space, what.canvases, now)
    con.executemany("UPDATE tombstone SET purged_at = ? WHERE id = ?", [(to_ms(now), number) for number in numbers])
    tombstones.log(con, folder, space_no, numbers)
    for path in [*(f"conversations/{day}.jsonl" for day in days), *(f"offload-{name}.jsonl" for name in sessions)]:
        rewrite_lines(con, folder, space_no, path, snapshots.lines_of(con, space_no, path))
    if what.canvases:
        rewrite_lines(con, folder, space_no, canvases.FILE, canvases.lines(con, space_no))
    scenes.write_files(con, folder, space)
    con.execute(
        "INSERT INTO lease (name, holder, until) SELECT ? || value, 'unfinished', 0 FROM json_each(?) WHERE key = 0"
        " ON CONFLICT DO NOTHING",
        (f"{_MARK}x", among),
    )
    touch(con, space_no, "persona")
    for path in paths:  # last: where anything before cannot be written, what was forgotten can still be brought back
        files.remove(folder / path)
    return Purged(
        tombstones=[f"x{number}" for number in numbers],
        turns=len(turns),
        atoms=len(atoms),
        refs=len(refs),
        texts=texts,
    )


def shred(con: apsw.Connection, *, patience: float) -> bool:
    """Leave nothing of what was erased in the database's free pages, indexes and log; in no transaction.

    False where others were reading all the while, so that the log could not be emptied: then it is to be done again.
    """
    con.execute("PRAGMA secure_delete = ON; PRAGMA temp_store = FILE")
    try:
        for layer in ("turn", "atom", "chunk"):  # all of it anew: what was deleted is left out only then
            con.execute(f"INSERT INTO {layer}_terms ({layer}_terms) VALUES ('optimize')")
        compacting.vacuum(con)
    finally:
        con.execute("PRAGMA temp_store = MEMORY")
    waits: int = con.execute("PRAGMA busy_timeout").get
    con.set_busy_timeout(round(patience * 1_000))
    try:
        if not compacting.checkpoint(con):
            return False
    finally:
        con.set_busy_timeout(waits)
    return True


def unproven(con: apsw.Connection) -> list[str]:
    """See `Store.unproven`. What had no number is of a program that marked one purge at a time."""
    names: Any = con.execute("SELECT name FROM lease WHERE name || ' ' GLOB ? || '*' ORDER BY name", (_MARK,))
    return [name.removeprefix(_MARK.strip()).strip() for (name,) in names]


def note_proven(con: apsw.Connection, purges: Sequence[str]) -> None:
    """See `Store.note_proven`."""
    con.executemany("DELETE FROM lease WHERE name = ?", [(f"{_MARK}{one}".strip(),) for one in purges])


def excuse(con: apsw.Connection, home: Path, traces: Traces) -> list[str]:
    """See `Store.excuse`."""
    said = traces.excuse(_kept(con))
    refs: Any = con.execute(
        "SELECT r.id, s.name, r.path FROM ref r JOIN space s ON s.id = r.space WHERE r.purged_at IS NULL ORDER BY r.id"
    )
    for id, space, path in refs:
        target = home / "spaces" / space / path
        if target.is_file() and traces.excuse_file(target):
            said.append(id)
    return said


def _kept(con: apsw.Connection) -> Iterator[tuple[str, bytes]]:
    """Yield every text that the rows hold, by what it stands in: `t8`, `a5`, or its table."""
    tables: list[str] = [
        str(name)
        for (name,) in con.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
            " AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '%\\_row\\__' ESCAPE '\\' ORDER BY name"
        )
    ]
    for table in tables:
        names = [str(name) for (name,) in con.execute("SELECT name FROM pragma_table_info(?)", (table,))]
        texts = [name for name in names if name not in ("sha256", "hash", "digest", "key", "vector", "directions")]
        key = "id" if "id" in names else "''"
        for id, *values in con.execute(f"SELECT {key}, {', '.join(texts)} FROM {table}"):
            named = f"{table[0]}{id}" if table in ("turn", "atom") else str(id) if table == "ref" else table
            for value in values:
                if isinstance(value, str) and value:
                    yield named, value.encode("utf-8", "surrogatepass")


# --- what is to go ----------------------------------------------------------------------------------


def _forgotten(con: apsw.Connection, space: int, id: str) -> int:
    number = number_of(id, "x")
    row: Any = con.execute(
        "SELECT 1 FROM tombstone WHERE id = ? AND space = ? AND undone_at IS NULL AND purged_at IS NULL",
        (number, space),
    ).fetchone()
    if row is None:
        raise NotFound(
            f"There is nothing to purge under {one_line(id, 20)}: it is no tombstone of this space, was undone, or was "
            "purged already. `mcp-memory purge` lists what can be."
        )
    return number


def _texts(
    con: apsw.Connection,
    folder: Path,
    space: int,
    turns: Sequence[int],
    atoms: Sequence[int],
    refs: Sequence[str],
) -> Iterator[bytes]:
    """Yield the words that are about to be erased."""
    for sql, among in (
        (f"SELECT content, name, NULL FROM turn WHERE id IN {_AMONG}", turns),
        (f"SELECT text, closed_because, NULL FROM atom WHERE id IN {_AMONG}", atoms),
        (f"SELECT value, NULL, NULL FROM fact WHERE atom IN {_AMONG}", atoms),
        (f"SELECT quote, NULL, NULL FROM evidence WHERE atom IN {_AMONG}", atoms),
        (f"SELECT quote, NULL, NULL FROM evidence WHERE turn IN {_AMONG}", turns),
    ):
        for row in con.execute(sql, (json.dumps(among),)):
            yield from (str(text).encode("utf-8", "surrogatepass") for text in row if text is not None)
    told: Any = con.execute(
        f"SELECT summary, tool_call FROM record WHERE space = ? AND ref IN {_AMONG}", (space, json.dumps(refs))
    )
    for row in told:
        yield from (text.encode("utf-8", "surrogatepass") for text in row)
    paths: Any = con.execute(
        f"SELECT path, arguments FROM ref WHERE space = ? AND id IN {_AMONG}", (space, json.dumps(refs))
    ).fetchall()
    for path, arguments in paths:
        yield from _strings(json.loads(arguments))
        try:
            yield files.read_ref_file(read_regular(folder / path))[1]
        except (OSError, Damaged):
            continue  # it is gone or torn already


def _strings(value: Any) -> Iterator[bytes]:
    match value:
        case str():
            yield value.encode("utf-8", "surrogatepass")
        case dict() | list():
            held: list[Any] = list(value.values()) if isinstance(value, dict) else value  # pyright: ignore
            for one in held:
                yield from _strings(one)
        case _:
            pass


def _days(con: apsw.Connection, turns: Sequence[int]) -> list[str]:
    moments = _column(con, f"SELECT learned_at FROM turn WHERE id IN {_AMONG}", json.dumps(turns))
    return sorted({from_ms(moment).astimezone(UTC).date().isoformat() for moment in moments})


# --- erasing ----------------------------------------------------------------------------------------


def _erase_turns(con: apsw.Connection, turns: Sequence[int], now: datetime) -> None:
    key = digests.key_of(con)
    hashes: Any = con.execute(
        f"SELECT id, sha256 FROM turn WHERE purged_at IS NULL AND id IN {_AMONG}", (json.dumps(turns),)
    ).fetchall()
    con.executemany(
        "UPDATE turn SET content = '', name = NULL, told = NULL, sha256 = ?, purged_at = ? WHERE id = ?",
        [(digests.husk_hash(key, bytes(sha256)), to_ms(now), number) for number, sha256 in hashes],
    )
    con.execute(f"UPDATE evidence SET quote = '' WHERE turn IN {_AMONG}", (json.dumps(turns),))
    con.execute(
        f"UPDATE progress SET scene = NULL WHERE session IN (SELECT session FROM turn WHERE id IN {_AMONG})",
        (json.dumps(turns),),
    )
    con.execute(
        "DELETE FROM draft WHERE EXISTS (SELECT 1 FROM json_each(draft.atom, '$.evidence') e"
        f" WHERE CAST(substr(e.value ->> 'turn', 2) AS INTEGER) IN {_AMONG})",
        (json.dumps(turns),),
    )


def _erase_atoms(con: apsw.Connection, space: int, atoms: Sequence[int], now: datetime) -> None:
    among = json.dumps(atoms)
    named = _column(con, f"SELECT DISTINCT entity FROM mention WHERE atom IN {_AMONG}", among)
    con.execute(
        f"UPDATE atom SET text = '', folded = '', closed_because = NULL, purged_at = ? WHERE id IN {_AMONG}",
        (to_ms(now), among),
    )
    con.execute(f"UPDATE atom SET closed_because = NULL WHERE superseded_by IN {_AMONG}", (among,))
    con.execute(f"UPDATE evidence SET quote = '' WHERE atom IN {_AMONG}", (among,))
    con.execute(f"DELETE FROM fact WHERE atom IN {_AMONG}", (among,))
    con.execute(f"DELETE FROM mention WHERE atom IN {_AMONG}", (among,))
    con.execute(
        f"DELETE FROM entity_name WHERE space = ? AND entity IN {_AMONG} AND entity NOT IN"
        " (SELECT entity FROM mention) AND entity NOT IN (SELECT id FROM entity_name WHERE key = 'user')",
        (space, json.dumps(named)),
    )


def _erase_refs(con: apsw.Connection, space: int, refs: Sequence[str], now: datetime) -> None:
    among = json.dumps(refs)
    con.execute(
        f"UPDATE record SET summary = ?, tool_call = ?, result_ref = '', summary_by = NULL"
        f" WHERE space = ? AND ref IN {_AMONG}",
        (FORGOTTEN, FORGOTTEN, space, among),
    )
    con.execute(
        "UPDATE ref SET path = '', arguments = 'null', sha256 = '', masked = NULL, purged_at = ?"
        f" WHERE space = ? AND id IN {_AMONG}",
        (to_ms(now), space, among),
    )
    con.execute(f"DELETE FROM citation WHERE space = ? AND ref IN {_AMONG}", (space, among))
    con.execute(
        "DELETE FROM message_edit WHERE space = ? AND EXISTS (SELECT 1 FROM json_each(message_edit.refs) j"
        f" WHERE j.value IN {_AMONG})",
        (space, among),
    )


def _unname(con: apsw.Connection, space: int, ids: Sequence[str]) -> None:
    for table, column in (("citation", "source"), ("held", "id")):
        con.execute(f"DELETE FROM {table} WHERE space = ? AND {column} IN {_AMONG}", (space, json.dumps(ids)))


def _erase_from_scenes(con: apsw.Connection, folder: Path, space: int, gone: set[str]) -> None:
    """Take what rests on these atoms out of every version. One of which nothing is left names them: it stays gone.

    The name of a scene may tell what it was about: where nothing is left of any version, it goes too.
    """
    rows: Any = con.execute("SELECT slug FROM scene WHERE space = ? GROUP BY slug", (space,)).fetchall()
    name: str = con.execute("SELECT name FROM space WHERE id = ?", (space,)).get
    for (slug,) in rows:
        for told in scenes.versions(con, name, slug):
            if gone.isdisjoint(told.atoms) and gone.isdisjoint(cited(told.body)):
                continue
            left = left_of(told, gone)
            con.execute(
                "UPDATE scene SET title = ?, summary = ?, body = ?, atoms = ?, entities = ?, reason = ''"
                " WHERE space = ? AND slug = ? AND version = ?",
                (
                    left.title if left.body else FORGOTTEN,
                    left.summary if left.body else FORGOTTEN,
                    left.body,
                    json.dumps(left.atoms if left.atoms else told.atoms),
                    json.dumps(left.entities, ensure_ascii=False),
                    space,
                    slug,
                    told.version,
                ),
            )
        if not any(told.body for told in scenes.versions(con, name, slug)):
            files.remove(folder / "scenes" / f"{slug}.md")
            con.execute("DELETE FROM scene WHERE space = ? AND slug = ?", (space, slug))
            con.execute("DELETE FROM change WHERE space = ? AND topic = ?", (space, f"scene:{slug}"))


def _forget_questions(con: apsw.Connection, space: int) -> None:
    """Questions that are open were asked with the words in them: what comes back is of no use, and is asked anew."""
    con.execute("DELETE FROM work WHERE space = ? AND state <> 'done'", (space,))
    con.execute("UPDATE work SET error = NULL WHERE space = ?", (space,))
    con.execute("UPDATE stage_cursor SET wanted = 'purged' WHERE space = ? AND wanted IS NOT NULL", (space,))


def _sweep(con: apsw.Connection, traces: Traces) -> None:
    for table, key, columns, clearing in _SWEPT:
        has_text = f"coalesce({', '.join([*columns, 'NULL'])}) IS NOT NULL"
        rows: list[Any] = con.execute(f"SELECT {key}, {', '.join(columns)} FROM {table} WHERE {has_text}").fetchall()
        held = [id for id, *texts in rows if any(text and traces.of(text.encode()) for text in texts)]
        con.executemany(clearing, [(id,) for id in held])


def _redraw(con: apsw.Connection, folder: Path, space: str, scrubbed: Sequence[Scrubbed], now: datetime) -> None:
    for one in scrubbed:
        con.executemany("UPDATE record SET step = ? WHERE id = ?", [(move, id) for id, move in one.moves.items()])
        con.executemany("UPDATE canvas_edit SET body = ? WHERE id = ?", [(body, id) for id, body in one.edits.items()])
        canvases.save(con, folder, space, one.row, expected=one.row.version, make_active=False, now=now)


def _column(con: apsw.Connection, sql: str, *values: int | str) -> list[Any]:
    return [value for (value,) in con.execute(sql, values)]
