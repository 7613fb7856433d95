"""The steps of the schema. A released step is never edited; new steps are appended.

A step and the record that it ran are one transaction, so a killed process leaves no half step. A database with a step
that this program does not know is from a newer version, and is refused unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import apsw

from mcp_memory.core.errors import NewerHome, StoreUnavailable
from mcp_memory.store.sql import keying, schema
from mcp_memory.store.sql.transaction import HomeTransaction
from mcp_memory.store.sqlite import vec0_tables
from mcp_memory.store.sqlite.index import positions

# Queries use the same text: an index serves only the expression that it was created with.
OUTLINE_SIZE = "length(CAST(content AS BLOB))"
OUTLINE_ASKS = "(instr(substr(content, -120), '?') + instr(substr(content, -120), '？') > 0)"


# Tables of long rows keep SQLite's own row number in addition to their key: otherwise a lookup reads past the texts of
# other rows. In tables with an integer key, the key is the row number.
_WITH_ROWID = {
    *("home", "space", "pause", "spend", "vector_index"),
    *("turn", "atom", "persona", "work", "draft", "canvas", "canvas_version", "record", "message_edit"),
}

_OF_TURNS = f"""
    CREATE INDEX turn_outline
        ON turn (space, session, position, id, role, name, said_at, {OUTLINE_SIZE}, {OUTLINE_ASKS});
    CREATE TRIGGER turn_is_evidence BEFORE UPDATE OF space, session, position, role, name, content, said_at,
        dated, learned_at, sha256 ON turn WHEN NEW.purged_at IS NULL OR NEW.content <> ''
        BEGIN SELECT RAISE(ABORT, 'turns are never rewritten'); END;
"""

# Ranges of turns and atoms of a space with the version of `text.index_terms` of their terms.
_TERM_RANGE = """
    CREATE TABLE term_range (
        space INTEGER NOT NULL REFERENCES space, layer TEXT NOT NULL, version INTEGER NOT NULL,
        first INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (space, layer, version, first)
    ) STRICT, WITHOUT ROWID
"""

# The committed length of each line file.
_FILE = """
    CREATE TABLE file (
        space INTEGER NOT NULL REFERENCES space, path TEXT NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (space, path)
    ) STRICT, WITHOUT ROWID
"""

# Purges whose words are erased and not yet searched for in the files, by their first tombstone: `work/x3`.
_UNVERIFIED_PURGE = "CREATE TABLE unverified_purge (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID"


def _baseline(con: apsw.Connection) -> None:
    """Create the tables of the first release. One word index per layer serves all spaces (`index.rowids`)."""
    for statement in schema.statements(schema.BASELINE):
        table = re.match(r"CREATE TABLE (\w+)", statement)
        suffix = "" if table is None else " STRICT" if table[1] in _WITH_ROWID else " STRICT, WITHOUT ROWID"
        con.execute(statement + suffix)
    for statements in (_OF_TURNS, _FILE, _TERM_RANGE, _UNVERIFIED_PURGE):
        con.execute(statements)
    con.execute("INSERT INTO home VALUES (1, lower(hex(randomblob(16))), randomblob(32))")
    for layer in ("turn", "atom", "chunk"):  # replaced by `_smaller_rows`
        con.execute(
            f"CREATE VIRTUAL TABLE {layer}_terms USING fts5(terms, content='', contentless_delete=1,"
            " detail=full, tokenize=\"unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co'\")"
        )


def _recalls(con: apsw.Connection) -> None:
    for statement in schema.statements(schema.RECALLS):
        con.execute(statement + " STRICT, WITHOUT ROWID")


def _notes(con: apsw.Connection) -> None:
    """Add an index of the notes, which are few, so that turns are counted without reading the role of each."""
    con.execute("CREATE INDEX turn_note ON turn (space, id, tombstone) WHERE role = 'note'")


def _cached_tokens(con: apsw.Connection) -> None:
    con.execute(schema.CACHED_TOKENS)


def _keyed_identifiers(con: apsw.Connection) -> None:
    """Replace plain hashes of identifiers by keyed hashes, and mark the line files that have to be rewritten."""
    con.execute(
        "CREATE TABLE stale_file (space INTEGER NOT NULL REFERENCES space, path TEXT NOT NULL,"
        " PRIMARY KEY (space, path)) STRICT, WITHOUT ROWID"
    )
    tx = HomeTransaction(con)
    stale = keying.key_identifiers(tx)
    keying.key_file_hashes(tx)
    tx.many("INSERT INTO stale_file (space, path) VALUES (?, ?)", sorted(stale))


def _labels(con: apsw.Connection) -> None:
    for statement in schema.statements(schema.LABELS):
        con.execute(statement)


def _projects(con: apsw.Connection) -> None:
    con.execute(schema.PROJECTS)


# Older versions of SQLite, of other programs that open the file, must be able to parse these.
_QUOTA_TRIGGERS = """
    CREATE TRIGGER turn_counted AFTER INSERT ON turn
        WHEN NEW.purged_at IS NULL AND EXISTS (SELECT 1 FROM quota WHERE space = NEW.space) BEGIN
        UPDATE quota SET used = used
            + CASE what WHEN 'turns' THEN NEW.role <> 'note' ELSE length(CAST(NEW.content AS BLOB)) END
            WHERE space = NEW.space AND what IN ('turns', 'bytes');
        SELECT RAISE(ABORT, 'quota turns') FROM quota
            WHERE space = NEW.space AND what = 'turns' AND used > most AND NEW.role <> 'note';
        SELECT RAISE(ABORT, 'quota bytes') FROM quota WHERE space = NEW.space AND what = 'bytes' AND used > most;
    END;
    CREATE TRIGGER turn_purged AFTER UPDATE OF purged_at ON turn
        WHEN OLD.purged_at IS NULL AND NEW.purged_at IS NOT NULL BEGIN
        UPDATE quota SET used = used
            - CASE what WHEN 'turns' THEN OLD.role <> 'note' ELSE length(CAST(OLD.content AS BLOB)) END
            WHERE space = OLD.space AND what IN ('turns', 'bytes');
    END;
    CREATE TRIGGER ref_counted AFTER INSERT ON ref
        WHEN NEW.purged_at IS NULL AND EXISTS (SELECT 1 FROM quota WHERE space = NEW.space) BEGIN
        UPDATE quota SET used = used + NEW.bytes WHERE space = NEW.space AND what = 'bytes';
        SELECT RAISE(ABORT, 'quota bytes') FROM quota
            WHERE space = NEW.space AND what = 'bytes' AND used > most AND NEW.bytes > 0;
    END;
    CREATE TRIGGER ref_purged AFTER UPDATE OF purged_at ON ref
        WHEN OLD.purged_at IS NULL AND NEW.purged_at IS NOT NULL BEGIN
        UPDATE quota SET used = used - OLD.bytes WHERE space = OLD.space AND what = 'bytes';
    END;
    CREATE TRIGGER ref_deleted AFTER DELETE ON ref WHEN OLD.purged_at IS NULL BEGIN
        UPDATE quota SET used = used - OLD.bytes WHERE space = OLD.space AND what = 'bytes';
    END;
"""


def _quotas(con: apsw.Connection) -> None:
    con.execute(schema.QUOTAS + " STRICT, WITHOUT ROWID")
    con.execute(_QUOTA_TRIGGERS)


def _listed_atoms(con: apsw.Connection) -> None:
    for statement in schema.statements(schema.LISTED_ATOMS):
        con.execute(statement)
    con.execute("DROP INDEX IF EXISTS atom_open")


def _conversations(con: apsw.Connection) -> None:
    for statement in schema.statements(schema.CONVERSATIONS):
        con.execute(statement)


def _feedback(con: apsw.Connection) -> None:
    con.execute(schema.FEEDBACK + " STRICT, WITHOUT ROWID")
    for statement in schema.statements(schema.RECALL_QUESTIONS):
        con.execute(statement)


def _smaller_rows(con: apsw.Connection) -> None:
    """Drop what can be derived: quotes, folded texts of statements, and positions in the word indexes."""
    con.execute(schema.QUOTES)
    keying.shorten_statement_keys(HomeTransaction(con))
    positions.begin(con)


def _atoms_by_reader(con: apsw.Connection) -> None:
    """Put the reader before the priority, so that lists without sentences skip the many that are sentences."""
    con.execute("DROP INDEX IF EXISTS atom_listed")
    con.execute(
        "CREATE INDEX atom_listed ON atom (space, kind, reader, priority, id, valid_to, valid_from)"
        " WHERE tombstone IS NULL"
    )


SCHEMA: list[tuple[str, Callable[[apsw.Connection], None]]] = [
    ("0001-baseline", _baseline),
    ("0002-recalls", _recalls),
    ("0003-notes", _notes),
    ("0004-cached-tokens", _cached_tokens),
    ("0005-keyed-identifiers", _keyed_identifiers),
    ("0006-labels", _labels),
    ("0007-vector-blocks", vec0_tables.to_blocks),
    ("0008-projects", _projects),
    ("0009-quotas", _quotas),
    ("0010-listed-atoms", _listed_atoms),
    ("0011-titles", _conversations),
    ("0012-feedback", _feedback),
    ("0013-smaller-rows", _smaller_rows),
    ("0014-listed-statements", _atoms_by_reader),
]


def migrate(con: apsw.Connection) -> None:
    """Upgrade a database to this program's schema.

    Raises NewerHome if its schema is newer, and StoreUnavailable if it is older than the first release, or its tables
    do not match its list of steps.
    """
    if _applied_steps(con) == {name for name, _ in SCHEMA}:
        return  # the usual start: no write, so no waiting for a lock
    while True:
        con.execute("BEGIN IMMEDIATE")
        try:
            con.execute("CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, at TEXT NOT NULL) STRICT")
            done = _applied_steps(con)
            _refuse_newer(con, done)
            step = next((step for step in SCHEMA if step[0] not in done), None)
            if step is not None:
                _take(con, step[1])
                con.execute("INSERT INTO migration VALUES (?, strftime('%Y-%m-%dT%H:%M:%fZ'))", (step[0],))
            con.execute("COMMIT")
        except BaseException:
            if con.in_transaction:  # a full disk has ended it already
                con.execute("ROLLBACK")
            raise
        if step is None:
            return


def _take(con: apsw.Connection, step: Callable[[apsw.Connection], None]) -> None:
    try:
        step(con)
    except apsw.SQLError as error:  # the tables of the step exist: the list of steps was changed
        raise StoreUnavailable(
            f"{con.filename} is not what its list of migrations says ({error}). `mcp-memory doctor --repair` rebuilds "
            "it, and keeps this file."
        ) from None


def must_be_current(con: apsw.Connection) -> None:
    """Raise StoreUnavailable if a read-only database has an older schema, NewerHome if it has a newer schema."""
    done = _applied_steps(con)
    _refuse_newer(con, done)
    if done != {name for name, _ in SCHEMA}:
        raise StoreUnavailable(
            f"{con.filename} is of an older mcp-memory, and a read-only home cannot be upgraded. "
            "Copy the home to a folder that you can write to, and name that with MCP_MEMORY_HOME."
        )


def is_unfinished(con: apsw.Connection) -> bool:
    """Return whether a move into the database was begun and not finished; see `sql.moving`."""
    return con.table_exists("main", "move")


def _applied_steps(con: apsw.Connection) -> set[str]:
    if not con.table_exists("main", "migration"):
        return set()
    return {str(name) for (name,) in con.execute("SELECT name FROM migration")}


def _refuse_newer(con: apsw.Connection, done: set[str]) -> None:
    our_steps = {name for name, _ in SCHEMA}
    unknown = sorted(done - our_steps)
    if unknown and not our_steps <= done:
        raise StoreUnavailable(
            f"{con.filename} was written by an mcp-memory from before the first release. Nothing was changed. Export "
            "it with that version and import it here; or `mcp-memory doctor --repair` rebuilds what its files tell."
        )
    if unknown:
        raise NewerHome(
            f"{con.filename} was written by a newer mcp-memory (schema {unknown[-1]}). Nothing was changed. "
            "Upgrade this program in the way that you installed it."
        )
