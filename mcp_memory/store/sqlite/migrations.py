"""The schema, as the list of steps that made it. A released step is never edited; a new one is added below.

Each step runs in one transaction with the record that it ran, so a kill in between leaves the step undone.
A database with a step that this program does not know is from a newer version: it is refused, untouched.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import apsw

from mcp_memory.core.errors import NewerHome, StoreUnavailable

__all__ = ["OUTLINE_ASKS", "OUTLINE_SIZE", "SCHEMA", "migrate", "must_be_current"]


def _first(con: apsw.Connection) -> None:
    """Spaces, turns, atoms, facts, refs, records, canvases, persona, tombstones, search and the change feed.

    Moments are milliseconds since 1970 in UTC. A row with a `tombstone` is forgotten: out of everything but
    the evidence. Term tables are contentless: they hold `text.index_terms`, and only a space keeps terms apart.
    """
    con.execute(
        """
        CREATE TABLE space (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
        CREATE TABLE session (
            id INTEGER PRIMARY KEY, space INTEGER NOT NULL REFERENCES space, name TEXT NOT NULL,
            active_canvas INTEGER, activated_at INTEGER, UNIQUE (space, name)
        ) STRICT;
        CREATE TABLE tombstone (
            id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL REFERENCES space,
            reason TEXT NOT NULL, at INTEGER NOT NULL, undone_at INTEGER
        ) STRICT;

        CREATE TABLE turn (
            id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL REFERENCES space,
            session INTEGER NOT NULL REFERENCES session, position INTEGER NOT NULL,
            role TEXT NOT NULL, name TEXT, content TEXT NOT NULL, client_id TEXT,
            said_at INTEGER NOT NULL, dated INTEGER NOT NULL, learned_at INTEGER NOT NULL, sha256 BLOB NOT NULL,
            told TEXT, tombstone INTEGER REFERENCES tombstone, UNIQUE (session, position)
        ) STRICT;
        CREATE UNIQUE INDEX turn_client ON turn (session, client_id, sha256) WHERE client_id IS NOT NULL;
        CREATE INDEX turn_day ON turn (space, learned_at);
        CREATE INDEX turn_forgotten ON turn (tombstone) WHERE tombstone IS NOT NULL;
        CREATE TRIGGER turn_is_evidence BEFORE UPDATE OF space, session, position, role, name, content, said_at,
            dated, learned_at, sha256 ON turn BEGIN SELECT RAISE(ABORT, 'turns are never rewritten'); END;

        CREATE TABLE atom (
            id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL REFERENCES space,
            kind TEXT NOT NULL, text TEXT NOT NULL, folded TEXT NOT NULL,
            priority INTEGER NOT NULL, confidence REAL NOT NULL,
            evidence INTEGER NOT NULL REFERENCES turn, span_start INTEGER NOT NULL, span_end INTEGER NOT NULL,
            valid_from INTEGER NOT NULL, valid_to INTEGER, learned_at INTEGER NOT NULL,
            superseded_by INTEGER REFERENCES atom, tombstone INTEGER REFERENCES tombstone
        ) STRICT;
        CREATE INDEX atom_open ON atom (space, kind, priority) WHERE valid_to IS NULL AND tombstone IS NULL;
        CREATE INDEX atom_same ON atom (space, folded);
        CREATE INDEX atom_forgotten ON atom (tombstone) WHERE tombstone IS NOT NULL;

        CREATE TABLE fact (
            id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL REFERENCES space,
            atom INTEGER NOT NULL REFERENCES atom, entity TEXT NOT NULL, entity_key TEXT NOT NULL,
            relation TEXT NOT NULL, value TEXT NOT NULL, single_valued INTEGER NOT NULL,
            valid_from INTEGER NOT NULL, valid_to INTEGER, tombstone INTEGER REFERENCES tombstone
        ) STRICT;
        CREATE UNIQUE INDEX fact_open ON fact (space, entity_key, relation)
            WHERE single_valued AND valid_to IS NULL AND tombstone IS NULL;
        CREATE INDEX fact_entity ON fact (space, entity_key, relation);
        CREATE INDEX fact_atom ON fact (atom);

        CREATE TABLE ref (
            space INTEGER NOT NULL REFERENCES space, id TEXT NOT NULL, path TEXT NOT NULL, tool TEXT NOT NULL,
            arguments TEXT NOT NULL, tool_call_id TEXT, session TEXT NOT NULL, timestamp TEXT NOT NULL,
            bytes INTEGER NOT NULL, sha256 TEXT NOT NULL, content_type TEXT NOT NULL,
            tombstone INTEGER REFERENCES tombstone, PRIMARY KEY (space, id)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE canvas (
            space INTEGER NOT NULL REFERENCES space, number INTEGER NOT NULL, label TEXT NOT NULL,
            session INTEGER NOT NULL REFERENCES session, text TEXT NOT NULL, status TEXT NOT NULL,
            folded INTEGER NOT NULL, groups TEXT NOT NULL, updated INTEGER NOT NULL, version INTEGER NOT NULL,
            PRIMARY KEY (space, number)
        ) STRICT;
        CREATE INDEX canvas_session ON canvas (session, updated);
        CREATE TABLE record (
            id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL REFERENCES space,
            session INTEGER NOT NULL REFERENCES session, canvas INTEGER NOT NULL, node TEXT NOT NULL,
            tool_call TEXT NOT NULL, summary TEXT NOT NULL, result_ref TEXT NOT NULL, tool_call_id TEXT,
            timestamp TEXT NOT NULL, score INTEGER NOT NULL, tokens_raw INTEGER NOT NULL,
            tokens_kept INTEGER NOT NULL, ref TEXT NOT NULL,
            FOREIGN KEY (space, canvas) REFERENCES canvas
        ) STRICT;
        CREATE INDEX record_node ON record (space, canvas, node);
        CREATE INDEX record_session ON record (session);
        CREATE INDEX record_ref ON record (space, ref);

        CREATE TABLE persona (
            space INTEGER NOT NULL REFERENCES space, version INTEGER NOT NULL, text TEXT NOT NULL,
            at INTEGER NOT NULL, PRIMARY KEY (space, version)
        ) STRICT;

        CREATE TABLE file (
            space INTEGER NOT NULL REFERENCES space, path TEXT NOT NULL, bytes INTEGER NOT NULL,
            PRIMARY KEY (space, path)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE change (
            space INTEGER NOT NULL REFERENCES space, topic TEXT NOT NULL, seq INTEGER NOT NULL,
            PRIMARY KEY (space, topic)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX change_seq ON change (seq);
        CREATE TABLE vector_index (
            id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL
        ) STRICT;
        """
    )
    for layer in ("turn", "atom"):
        # The terms are final: the tokenizer may only split at white space.
        con.execute(
            f"""
            CREATE VIRTUAL TABLE {layer}_terms USING fts5(
                space, terms, content='', contentless_delete=1, detail=full,
                tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co'"
            );
            """
        )


def _spend(con: apsw.Connection) -> None:
    """Calls to a language model and what each cost. Of the home, not of a space: there is one bill."""
    con.execute(
        """
        CREATE TABLE spend (
            id INTEGER PRIMARY KEY, at INTEGER NOT NULL, purpose TEXT NOT NULL, model TEXT NOT NULL,
            prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cost REAL, error TEXT
        ) STRICT;
        CREATE INDEX spend_at ON spend (at);
        """
    )


# Frozen with the step below, and read back by the same words: an index serves only the expression it was made of.
OUTLINE_SIZE = "length(CAST(content AS BLOB))"
OUTLINE_ASKS = "(instr(substr(content, -120), '?') + instr(substr(content, -120), '？') > 0)"


def _outline(con: apsw.Connection) -> None:
    """All that `store.outline` needs of turns, in one index."""
    con.execute(
        f"CREATE INDEX turn_outline ON turn (session, position, role, name, said_at, {OUTLINE_SIZE}, {OUTLINE_ASKS})"
    )


def _term_range(con: apsw.Connection) -> None:
    """Which rows have the terms of which version of `text.index_terms`; rows in no range have the first."""
    con.execute(
        """
        CREATE TABLE term_range (
            layer TEXT NOT NULL, version INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
            PRIMARY KEY (layer, version, first)
        ) STRICT, WITHOUT ROWID;
        """
    )


def _pyramid(con: apsw.Connection) -> None:
    """What the stages make, what they were made from, and where each stands.

    `work` is every question that was or is to be asked: at most one that is not done for each stage of a space (of a
    session, for `extract`), and for good the log of those that are. `draft` holds atoms between being extracted and
    being merged. `evidence` holds the words that an atom rests on, each with its turn; of what was told explicitly
    that is first its note. `entity_name` has every name and alias, its key without case and width; `entity` points at
    the row of the chief name of whom it names, its own where it is that. `scene` and `persona` keep each
    version; the newest stands. A stage is `wanted` until a work is done that was made after `wanted_after`.
    """
    con.execute(
        """
        CREATE TABLE work (
            id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL REFERENCES space, stage TEXT NOT NULL,
            session INTEGER REFERENCES session, basis TEXT NOT NULL, state TEXT NOT NULL, holder TEXT NOT NULL,
            until INTEGER NOT NULL, attempts INTEGER NOT NULL, error TEXT, at INTEGER NOT NULL,
            done_at INTEGER, outcome TEXT
        ) STRICT;
        CREATE UNIQUE INDEX work_open ON work (space, stage, coalesce(session, 0)) WHERE state <> 'done';
        CREATE INDEX work_done ON work (space, stage, done_at);
        CREATE TABLE progress (
            session INTEGER PRIMARY KEY REFERENCES session, position INTEGER NOT NULL, batches INTEGER NOT NULL,
            flush INTEGER NOT NULL, scene TEXT
        ) STRICT;
        CREATE TABLE stage_cursor (
            space INTEGER NOT NULL REFERENCES space, stage TEXT NOT NULL, position INTEGER NOT NULL,
            at INTEGER NOT NULL, wanted TEXT, wanted_after INTEGER, PRIMARY KEY (space, stage)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE lease (
            name TEXT PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE pause (
            id INTEGER PRIMARY KEY CHECK (id = 1), reason TEXT NOT NULL, at INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE draft (
            id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL REFERENCES space,
            work INTEGER NOT NULL REFERENCES work, atom TEXT NOT NULL
        ) STRICT;
        CREATE INDEX draft_space ON draft (space);
        CREATE TABLE evidence (
            atom INTEGER NOT NULL REFERENCES atom, turn INTEGER NOT NULL REFERENCES turn,
            span_start INTEGER NOT NULL, span_end INTEGER NOT NULL, quote TEXT NOT NULL,
            PRIMARY KEY (atom, turn, span_start, span_end)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX evidence_turn ON evidence (turn);
        ALTER TABLE atom ADD COLUMN work INTEGER REFERENCES work;
        ALTER TABLE atom ADD COLUMN closed_because TEXT;
        CREATE INDEX atom_evidence ON atom (evidence);
        CREATE INDEX atom_closed ON atom (space, superseded_by) WHERE superseded_by IS NOT NULL;

        CREATE TABLE entity_name (
            id INTEGER PRIMARY KEY, space INTEGER NOT NULL REFERENCES space, key TEXT NOT NULL, name TEXT NOT NULL,
            entity INTEGER NOT NULL REFERENCES entity_name DEFERRABLE INITIALLY DEFERRED, UNIQUE (space, key)
        ) STRICT;
        CREATE INDEX entity_aliases ON entity_name (entity);
        CREATE TABLE mention (
            atom INTEGER NOT NULL REFERENCES atom, entity INTEGER NOT NULL REFERENCES entity_name,
            PRIMARY KEY (atom, entity)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX mention_entity ON mention (entity);

        CREATE TABLE scene (
            space INTEGER NOT NULL REFERENCES space, slug TEXT NOT NULL, version INTEGER NOT NULL,
            action TEXT NOT NULL, title TEXT NOT NULL, summary TEXT NOT NULL, body TEXT NOT NULL,
            heat INTEGER NOT NULL, atoms TEXT NOT NULL, entities TEXT NOT NULL, reason TEXT NOT NULL,
            created INTEGER NOT NULL, at INTEGER NOT NULL, work INTEGER REFERENCES work,
            PRIMARY KEY (space, slug, version)
        ) STRICT, WITHOUT ROWID;
        ALTER TABLE persona ADD COLUMN work INTEGER REFERENCES work;
        ALTER TABLE persona ADD COLUMN reason TEXT;

        CREATE TABLE imported (
            space INTEGER NOT NULL REFERENCES space, sha256 TEXT NOT NULL, path TEXT NOT NULL,
            modified INTEGER NOT NULL, turns INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (space, sha256)
        ) STRICT, WITHOUT ROWID;
        """
    )
    con.execute("INSERT INTO evidence SELECT id, evidence, span_start, span_end, text FROM atom")
    # What was told goes with its note from now on; until now a note could be forgotten alone.
    con.execute(
        """
        UPDATE atom SET tombstone = t.tombstone FROM turn t
            WHERE t.id = atom.evidence AND t.tombstone IS NOT NULL AND atom.tombstone IS NULL;
        UPDATE fact SET tombstone = a.tombstone FROM atom a
            WHERE a.id = fact.atom AND a.tombstone IS NOT NULL AND fact.tombstone IS NULL;
        DELETE FROM atom_terms WHERE rowid IN (SELECT id FROM atom WHERE tombstone IS NOT NULL);
        """
    )
    _name_entities(con)


def _name_entities(con: apsw.Connection) -> None:
    """Make entities of the names that facts have used so far."""
    used: Any = con.execute("SELECT space, entity_key, min(entity) FROM fact GROUP BY space, entity_key").fetchall()
    for space, old_key, name in used:
        key = " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).split())
        con.execute(
            "INSERT INTO entity_name (space, key, name, entity) VALUES (?, ?, ?, 0) ON CONFLICT DO NOTHING",
            (space, key, "user" if key == "user" else name),
        )
        con.execute("UPDATE entity_name SET entity = id WHERE space = ? AND key = ?", (space, key))
        con.execute(
            "INSERT OR IGNORE INTO mention (atom, entity) SELECT f.atom, n.id FROM fact f JOIN entity_name n"
            " ON n.space = f.space AND n.key = ?1 WHERE f.space = ?2 AND f.entity_key = ?3",
            (key, space, old_key),
        )
        # Two open values of what had two spellings of one name stay under both: which one holds is not known here.
        con.execute(
            "UPDATE OR IGNORE fact SET entity_key = ?, entity = n.name FROM entity_name n"
            " WHERE n.space = fact.space AND n.key = ?1 AND fact.space = ?2 AND fact.entity_key = ?3",
            (key, space, old_key),
        )


def _context(con: apsw.Connection) -> None:
    """What the context economy keeps: how canvases came about, the index of results, citations and savings.

    `record.step` is what a record did to its canvas, as JSON; with the `canvas_edit` rows, which stand among a
    canvas's records by `after_record`, it is enough to draw the canvas anew. What is there from before is kept as
    it was drawn. `chunk` is a run of lines of a ref: a row of the search whose terms are those of the masked text;
    `ref.indexed` is the version of these terms, 0 before a ref has any.
    `citation` is a turn or an atom (`t8`, `a5`) that names a ref. `saving` is one row for each thing that saved or
    cost tokens of somebody's context. `message_edit` is what stands in a message list that was compressed in place of a
    message (`texts` by part) or of several (`note`), between the places `before` and `after` of its conversation.
    """
    con.execute(
        """
        ALTER TABLE record ADD COLUMN step TEXT;
        ALTER TABLE record ADD COLUMN work INTEGER REFERENCES work;
        ALTER TABLE record ADD COLUMN summary_by TEXT;
        CREATE TABLE canvas_edit (
            id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL REFERENCES space, canvas INTEGER NOT NULL,
            after_record INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, at TEXT NOT NULL,
            work INTEGER REFERENCES work, undone_at TEXT
        ) STRICT;
        CREATE INDEX canvas_edit_canvas ON canvas_edit (space, canvas);
        INSERT INTO canvas_edit (space, canvas, after_record, kind, body, at)
            SELECT space, number, coalesce((SELECT max(id) FROM record r WHERE r.space = c.space
                AND r.canvas = c.number), 0), 'drawn', json_object('text', text, 'groups', json(groups),
                'folded', folded), strftime('%Y-%m-%dT%H:%M:%fZ', updated / 1000.0, 'unixepoch')
            FROM canvas c ORDER BY space, number;

        ALTER TABLE ref ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX ref_indexed ON ref (indexed) WHERE tombstone IS NULL;
        CREATE TABLE chunk (
            id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL REFERENCES space, ref TEXT NOT NULL,
            first_line INTEGER NOT NULL, last_line INTEGER NOT NULL,
            byte_start INTEGER NOT NULL, byte_end INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX chunk_ref ON chunk (space, ref, byte_end);
        CREATE VIRTUAL TABLE chunk_terms USING fts5(
            space, terms, content='', contentless_delete=1, detail=full,
            tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co'"
        );
        CREATE TABLE citation (
            space INTEGER NOT NULL REFERENCES space, source TEXT NOT NULL, ref TEXT NOT NULL,
            first_line INTEGER NOT NULL, last_line INTEGER NOT NULL, PRIMARY KEY (space, source, ref, first_line)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX citation_ref ON citation (space, ref);

        CREATE TABLE saving (
            id INTEGER PRIMARY KEY, space INTEGER NOT NULL REFERENCES space, session TEXT NOT NULL,
            at INTEGER NOT NULL, kind TEXT NOT NULL, saved INTEGER NOT NULL, spent INTEGER NOT NULL,
            cache_broken INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX saving_space ON saving (space, session, at);
        INSERT INTO saving (space, session, at, kind, saved, spent, cache_broken)
            SELECT r.space, s.name, CAST(1000 * coalesce(unixepoch(r.timestamp, 'subsec'), 0) AS INTEGER), 'offload',
                   r.tokens_raw, r.tokens_kept, 0
            FROM record r JOIN session s ON s.id = r.session ORDER BY r.id;

        CREATE TABLE message_edit (
            id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL REFERENCES space, session TEXT NOT NULL,
            before TEXT NOT NULL, after TEXT NOT NULL, shown TEXT NOT NULL, texts TEXT NOT NULL, note TEXT,
            refs TEXT NOT NULL, calls INTEGER NOT NULL, at INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX message_edit_after ON message_edit (space, after);
        CREATE INDEX message_edit_shown ON message_edit (space, shown);
        """
    )


def _clients(con: apsw.Connection) -> None:
    """How far logs of clients were read, and what tells quickly that a message or a tool call is here already."""
    con.execute(
        """
        CREATE TABLE followed (
            space INTEGER NOT NULL REFERENCES space, path TEXT NOT NULL, client TEXT NOT NULL, session TEXT NOT NULL,
            offset INTEGER NOT NULL, head TEXT NOT NULL, tail TEXT NOT NULL, state TEXT NOT NULL, at INTEGER NOT NULL,
            PRIMARY KEY (space, path)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX turn_known ON turn (space, client_id) WHERE client_id IS NOT NULL;
        CREATE INDEX record_call ON record (space, tool_call_id) WHERE tool_call_id IS NOT NULL;
        CREATE INDEX ref_call ON ref (space, tool_call_id) WHERE tool_call_id IS NOT NULL;
        """
    )


def _trust(con: apsw.Connection) -> None:
    """Who a memory is of, whose word it is, who may ask for it, and what is never to come back.

    `home` has one row: `uuid` names this memory in what is exported from it, `key` keys the digests of what was
    forgotten, so that nobody can find out by trial what it was. `origin` says what a row was elsewhere, for imports
    that come twice. `atom.source` is whose word it is, of several voices the most trusted: user, assistant, tool, web;
    `held` is an atom or a turn (`a5`, `t8`) that automatic recall leaves out until a person has looked at it. `token`
    is a key that HTTP clients show; only its hash is here. `ref.masked` are the places of its stored text where a
    secret stood, as JSON.

    What is purged leaves its row behind, empty, for positions and ids that others hold; `forgotten` has the digest by
    which it is known again. `retention` says after how many days a space forgets what.
    """
    con.execute(
        """
        CREATE TABLE home (id INTEGER PRIMARY KEY CHECK (id = 1), uuid TEXT NOT NULL, key BLOB NOT NULL) STRICT;
        INSERT INTO home VALUES (1, lower(hex(randomblob(16))), randomblob(32));
        CREATE TABLE origin (
            space INTEGER NOT NULL REFERENCES space, origin TEXT NOT NULL, id TEXT NOT NULL,
            PRIMARY KEY (space, origin)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX origin_id ON origin (space, id);

        ALTER TABLE atom ADD COLUMN source TEXT NOT NULL DEFAULT 'user';
        ALTER TABLE atom ADD COLUMN purged_at INTEGER;
        ALTER TABLE turn ADD COLUMN purged_at INTEGER;
        ALTER TABLE ref ADD COLUMN purged_at INTEGER;
        ALTER TABLE ref ADD COLUMN masked TEXT;
        DROP TRIGGER turn_is_evidence;
        CREATE TRIGGER turn_is_evidence BEFORE UPDATE OF space, session, position, role, name, content, said_at,
            dated, learned_at, sha256 ON turn WHEN NEW.purged_at IS NULL OR NEW.content <> ''
            BEGIN SELECT RAISE(ABORT, 'turns are never rewritten'); END;
        CREATE TABLE held (
            space INTEGER NOT NULL REFERENCES space, id TEXT NOT NULL, reasons TEXT NOT NULL, at INTEGER NOT NULL,
            verdict TEXT, reviewed_at INTEGER, PRIMARY KEY (space, id)
        ) STRICT, WITHOUT ROWID;
        UPDATE atom SET source = coalesce((
            SELECT CASE min(CASE t.role WHEN 'user' THEN 0 WHEN 'note' THEN 0 WHEN 'tool' THEN 2 ELSE 1 END)
                WHEN 0 THEN 'user' WHEN 1 THEN 'assistant' ELSE 'tool' END
            FROM evidence e JOIN turn t ON t.id = e.turn WHERE e.atom = atom.id), 'user');

        CREATE TABLE token (
            id TEXT PRIMARY KEY, name TEXT NOT NULL, hash BLOB NOT NULL, spaces TEXT NOT NULL, rights TEXT NOT NULL,
            at INTEGER NOT NULL, until INTEGER, used_at INTEGER, revoked_at INTEGER
        ) STRICT, WITHOUT ROWID;

        ALTER TABLE tombstone ADD COLUMN purged_at INTEGER;
        ALTER TABLE tombstone ADD COLUMN took TEXT;
        CREATE TABLE forgotten (
            space INTEGER NOT NULL REFERENCES space, digest BLOB NOT NULL,
            tombstone INTEGER NOT NULL REFERENCES tombstone, PRIMARY KEY (space, digest, tombstone)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX forgotten_by ON forgotten (tombstone);
        CREATE INDEX ref_forgotten ON ref (tombstone) WHERE tombstone IS NOT NULL;
        CREATE TABLE retention (
            space INTEGER NOT NULL REFERENCES space, what TEXT NOT NULL, days INTEGER NOT NULL, at INTEGER NOT NULL,
            ran_at INTEGER, took INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (space, what)
        ) STRICT, WITHOUT ROWID;
        """
    )


SCHEMA: list[tuple[str, Callable[[apsw.Connection], None]]] = [
    ("0001-first", _first),
    ("0002-spend", _spend),
    ("0003-outline", _outline),
    ("0004-term-range", _term_range),
    ("0005-pyramid", _pyramid),
    ("0006-context", _context),
    ("0007-clients", _clients),
    ("0008-trust", _trust),
]


def migrate(con: apsw.Connection) -> None:
    """Bring a database to this program's schema. Raises StoreUnavailable when it is from a newer one."""
    if _applied(con) == {name for name, _ in SCHEMA}:
        return  # the usual start: nothing to write, so nobody to wait for
    while True:
        con.execute("BEGIN IMMEDIATE")
        try:
            con.execute("CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, at TEXT NOT NULL) STRICT")
            done = _applied(con)
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
    except apsw.SQLError as error:  # what the step makes is there: the list of steps was changed
        raise StoreUnavailable(
            f"{con.filename} is not what its list of migrations says ({error}). `mcp-memory doctor --repair` makes it "
            "anew, and keeps this one."
        ) from None


def must_be_current(con: apsw.Connection) -> None:
    """Raise StoreUnavailable where a database that cannot be written to is of another schema than this program's."""
    done = _applied(con)
    _refuse_newer(con, done)
    if done != {name for name, _ in SCHEMA}:
        raise StoreUnavailable(
            f"{con.filename} is of an older mcp-memory, and cannot be brought up to date where it can only be read. "
            "Copy the home to a folder that you can write to, and name that with MCP_MEMORY_HOME."
        )


def _applied(con: apsw.Connection) -> set[str]:
    if not con.table_exists("main", "migration"):
        return set()
    return {str(name) for (name,) in con.execute("SELECT name FROM migration")}


def _refuse_newer(con: apsw.Connection, done: set[str]) -> None:
    known = {name for name, _ in SCHEMA}
    unknown = sorted(done - known)
    if unknown and known <= done:
        raise NewerHome(
            f"{con.filename} was written by a newer mcp-memory (schema {unknown[-1]}). Nothing was changed. "
            "Upgrade this one in the way that you installed it."
        )
