"""The tables of every engine, in SQL that all engines understand. INTEGER has 64 bits; BLOB is bytes.

The key of most rows of a space is `(space, id)`, and each space has its own numbers. Times are in ms since 1970. A row
with a `tombstone` is forgotten. An engine translates the types, and adds its indexes of words and vectors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

_COLUMN = re.compile(r"(\w+) (INTEGER|REAL|TEXT|BLOB)\b( PRIMARY KEY)?")
_ADDED = re.compile(r"ALTER TABLE (\w+) ADD (\w+) (\w+)")
_DROPPED = re.compile(r"ALTER TABLE (\w+) DROP (\w+)")
_KEY = re.compile(r"PRIMARY KEY \(([\w, ]+)\)")

# Tables of the home. `home` has one row: `uuid` identifies this memory in its exports, `key` is the key of the digests
# of forgotten content. `token` has hashes of the tokens of HTTP clients; `request_rate` how many requests each client
# was `allowed` at a moment. `spend` is the usage ledger of all spaces.
# `change` is the feed that subscribers poll. `due` says when workers of a `queue` look at a space next, and until when
# one of them has claimed it. `number` is the last number given to each kind of row in a space: numbers have no gaps,
# and none is given twice, even after a deletion.
_HOME = """
    CREATE TABLE home (id INTEGER PRIMARY KEY CHECK (id = 1), uuid TEXT NOT NULL, key BLOB NOT NULL);
    CREATE TABLE space (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE number (
        space INTEGER NOT NULL REFERENCES space, kind TEXT NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (space, kind)
    );
    CREATE TABLE queue (name TEXT PRIMARY KEY);
    CREATE TABLE due (
        space INTEGER NOT NULL REFERENCES space, queue TEXT NOT NULL, at INTEGER NOT NULL,
        token TEXT NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (space, queue)
    );
    CREATE INDEX due_at ON due (queue, at);
    CREATE TABLE pause (id INTEGER PRIMARY KEY CHECK (id = 1), reason TEXT NOT NULL, at INTEGER NOT NULL);
    CREATE TABLE spend (
        id INTEGER PRIMARY KEY, at INTEGER NOT NULL, purpose TEXT NOT NULL, model TEXT NOT NULL,
        prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cost REAL, error TEXT
    );
    CREATE INDEX spend_at ON spend (at);
    CREATE TABLE token (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, hash BLOB NOT NULL, spaces TEXT NOT NULL, rights TEXT NOT NULL,
        at INTEGER NOT NULL, until INTEGER, used_at INTEGER, revoked_at INTEGER
    );
    CREATE UNIQUE INDEX token_name ON token (name) WHERE revoked_at IS NULL;
    CREATE TABLE request_rate (key TEXT PRIMARY KEY, allowed REAL NOT NULL, at INTEGER NOT NULL);
    CREATE INDEX request_rate_at ON request_rate (at);
    CREATE TABLE change (
        space INTEGER NOT NULL REFERENCES space, topic TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (space, topic)
    );
    CREATE INDEX change_seq ON change (space, seq);
    CREATE TABLE imported (
        space INTEGER NOT NULL REFERENCES space, sha256 TEXT NOT NULL, path TEXT NOT NULL, modified INTEGER NOT NULL,
        turns INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (space, sha256)
    );
    CREATE TABLE followed (
        space INTEGER NOT NULL REFERENCES space, path TEXT NOT NULL, client TEXT NOT NULL, session TEXT NOT NULL,
        upto INTEGER NOT NULL, head TEXT NOT NULL, tail TEXT NOT NULL, state TEXT NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (space, path)
    );
    CREATE TABLE origin (
        space INTEGER NOT NULL REFERENCES space, origin TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (space, origin)
    );
    CREATE INDEX origin_id ON origin (space, id);
"""

# Turns. A purged turn leaves an empty row, because other rows refer to its position and id. Indexes include `id` where
# a query is to be answered from the index alone.
_EVIDENCE = """
    CREATE TABLE session (
        space INTEGER NOT NULL REFERENCES space, id INTEGER NOT NULL, name TEXT NOT NULL,
        active_canvas INTEGER, activated_at INTEGER, PRIMARY KEY (space, id), UNIQUE (space, name)
    );
    CREATE TABLE tombstone (
        space INTEGER NOT NULL REFERENCES space, id INTEGER NOT NULL, reason TEXT NOT NULL,
        at INTEGER NOT NULL, undone_at INTEGER, purged_at INTEGER, took TEXT, PRIMARY KEY (space, id)
    );
    CREATE TABLE turn (
        space INTEGER NOT NULL REFERENCES space, id INTEGER NOT NULL, session INTEGER NOT NULL,
        position INTEGER NOT NULL, role TEXT NOT NULL, name TEXT, content TEXT NOT NULL, client_id TEXT,
        said_at INTEGER NOT NULL, dated INTEGER NOT NULL, learned_at INTEGER NOT NULL, sha256 BLOB NOT NULL,
        told TEXT, tombstone INTEGER, purged_at INTEGER, PRIMARY KEY (space, id), UNIQUE (space, session, position),
        FOREIGN KEY (space, session) REFERENCES session, FOREIGN KEY (space, tombstone) REFERENCES tombstone
    );
    CREATE UNIQUE INDEX turn_client ON turn (space, session, client_id, sha256) WHERE client_id IS NOT NULL;
    CREATE INDEX turn_known ON turn (space, client_id) WHERE client_id IS NOT NULL;
    CREATE INDEX turn_day ON turn (space, learned_at, id);
    CREATE INDEX turn_forgotten ON turn (space, tombstone, id) WHERE tombstone IS NOT NULL;
"""

# `work` is every question to a model: at most one that is not done for each stage of a space (of a session, for
# `extract`), and the log of those that are. `draft` holds atoms between being extracted and being merged. A stage is
# `wanted` until a job is done that was made after `wanted_after`.
_JOBS = """
    CREATE TABLE work (
        space INTEGER NOT NULL REFERENCES space, id INTEGER NOT NULL, stage TEXT NOT NULL, session INTEGER,
        basis TEXT NOT NULL, state TEXT NOT NULL, holder TEXT NOT NULL,
        until INTEGER NOT NULL, attempts INTEGER NOT NULL, error TEXT, at INTEGER NOT NULL,
        done_at INTEGER, outcome TEXT, PRIMARY KEY (space, id), FOREIGN KEY (space, session) REFERENCES session
    );
    CREATE UNIQUE INDEX work_open ON work (space, stage, coalesce(session, 0)) WHERE state <> 'done';
    CREATE INDEX work_done ON work (space, stage, done_at);
    CREATE TABLE progress (
        space INTEGER NOT NULL REFERENCES space, session INTEGER NOT NULL,
        position INTEGER NOT NULL, batches INTEGER NOT NULL, flush INTEGER NOT NULL, scene TEXT,
        PRIMARY KEY (space, session), FOREIGN KEY (space, session) REFERENCES session
    );
    CREATE TABLE stage_cursor (
        space INTEGER NOT NULL REFERENCES space, stage TEXT NOT NULL, position INTEGER NOT NULL,
        at INTEGER NOT NULL, wanted TEXT, wanted_after INTEGER, PRIMARY KEY (space, stage)
    );
    CREATE TABLE draft (
        space INTEGER NOT NULL REFERENCES space, id INTEGER NOT NULL, work INTEGER NOT NULL, atom TEXT NOT NULL,
        PRIMARY KEY (space, id), FOREIGN KEY (space, work) REFERENCES work
    );
"""

# Atoms with their evidence, facts and entities; scenes and personas, each version. `folded` is the `statement_key` of
# the text. `evidence` is the words that an atom is based on. `entity_name` has every name and alias, its key without
# case and width; `entity` is the row of the main name. `source` is the speaker that an atom relies on; `held` is a turn
# or an atom (`t8`, `a5`) in quarantine.
_KNOWLEDGE = """
    CREATE TABLE atom (
        space INTEGER NOT NULL REFERENCES space, id INTEGER NOT NULL,
        kind TEXT NOT NULL, text TEXT NOT NULL, folded TEXT NOT NULL,
        priority INTEGER NOT NULL, confidence REAL NOT NULL,
        evidence INTEGER NOT NULL, span_start INTEGER NOT NULL, span_end INTEGER NOT NULL,
        valid_from INTEGER NOT NULL, valid_to INTEGER, learned_at INTEGER NOT NULL,
        superseded_by INTEGER, closed_because TEXT, work INTEGER,
        source TEXT NOT NULL, tombstone INTEGER, purged_at INTEGER, PRIMARY KEY (space, id),
        FOREIGN KEY (space, evidence) REFERENCES turn, FOREIGN KEY (space, superseded_by) REFERENCES atom,
        FOREIGN KEY (space, work) REFERENCES work, FOREIGN KEY (space, tombstone) REFERENCES tombstone
    );
    CREATE INDEX atom_open ON atom (space, kind, priority, id) WHERE valid_to IS NULL AND tombstone IS NULL;
    CREATE INDEX atom_same ON atom (space, folded);
    CREATE INDEX atom_forgotten ON atom (space, tombstone, id) WHERE tombstone IS NOT NULL;
    CREATE INDEX atom_evidence ON atom (space, evidence, id);
    CREATE INDEX atom_closed ON atom (space, superseded_by, id) WHERE superseded_by IS NOT NULL;
    CREATE TABLE fact (
        space INTEGER NOT NULL REFERENCES space, atom INTEGER NOT NULL, entity TEXT NOT NULL, entity_key TEXT NOT NULL,
        relation TEXT NOT NULL, value TEXT NOT NULL, single_valued INTEGER NOT NULL,
        valid_from INTEGER NOT NULL, valid_to INTEGER, tombstone INTEGER, PRIMARY KEY (space, atom),
        FOREIGN KEY (space, atom) REFERENCES atom, FOREIGN KEY (space, tombstone) REFERENCES tombstone
    );
    CREATE UNIQUE INDEX fact_open ON fact (space, entity_key, relation)
        WHERE single_valued = 1 AND valid_to IS NULL AND tombstone IS NULL;
    CREATE INDEX fact_entity ON fact (space, entity_key, relation);
    CREATE TABLE evidence (
        space INTEGER NOT NULL REFERENCES space, atom INTEGER NOT NULL, turn INTEGER NOT NULL,
        span_start INTEGER NOT NULL, span_end INTEGER NOT NULL, quote TEXT NOT NULL,
        PRIMARY KEY (space, atom, turn, span_start, span_end),
        FOREIGN KEY (space, atom) REFERENCES atom, FOREIGN KEY (space, turn) REFERENCES turn
    );
    CREATE INDEX evidence_turn ON evidence (space, turn);
    CREATE TABLE entity_name (
        space INTEGER NOT NULL REFERENCES space, id INTEGER NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL,
        entity INTEGER NOT NULL, PRIMARY KEY (space, id), UNIQUE (space, key),
        FOREIGN KEY (space, entity) REFERENCES entity_name DEFERRABLE INITIALLY DEFERRED
    );
    CREATE INDEX entity_aliases ON entity_name (space, entity);
    CREATE TABLE mention (
        space INTEGER NOT NULL REFERENCES space, atom INTEGER NOT NULL, entity INTEGER NOT NULL,
        PRIMARY KEY (space, atom, entity),
        FOREIGN KEY (space, atom) REFERENCES atom, FOREIGN KEY (space, entity) REFERENCES entity_name
    );
    CREATE INDEX mention_entity ON mention (space, entity);
    CREATE TABLE held (
        space INTEGER NOT NULL REFERENCES space, id TEXT NOT NULL, reasons TEXT NOT NULL, at INTEGER NOT NULL,
        verdict TEXT, reviewed_at INTEGER, PRIMARY KEY (space, id)
    );
    CREATE TABLE scene (
        space INTEGER NOT NULL REFERENCES space, slug TEXT NOT NULL, version INTEGER NOT NULL,
        action TEXT NOT NULL, title TEXT NOT NULL, summary TEXT NOT NULL, body TEXT NOT NULL,
        heat INTEGER NOT NULL, atoms TEXT NOT NULL, entities TEXT NOT NULL, reason TEXT NOT NULL,
        created INTEGER NOT NULL, at INTEGER NOT NULL, work INTEGER,
        PRIMARY KEY (space, slug, version), FOREIGN KEY (space, work) REFERENCES work
    );
    CREATE TABLE persona (
        space INTEGER NOT NULL REFERENCES space, version INTEGER NOT NULL, text TEXT NOT NULL, at INTEGER NOT NULL,
        work INTEGER, reason TEXT, PRIMARY KEY (space, version), FOREIGN KEY (space, work) REFERENCES work
    );
"""

# Results, records and canvases. `canvas_version` has all versions of all canvases; `crc` is of the groups and text,
# `delta` their difference from the version before, NULL once purged. `record.step` is the effect of a call on its
# canvas, as JSON. `ref.masked` has the places of masked secrets. `citation` is a turn or an atom (`t8`, `a5`) that
# names a ref. `saving` has one row for each event that saved or cost tokens; `message_edit` replaces messages of a
# compressed list.
_TASKS = """
    CREATE TABLE ref (
        space INTEGER NOT NULL REFERENCES space, id TEXT NOT NULL, path TEXT NOT NULL, tool TEXT NOT NULL,
        arguments TEXT NOT NULL, tool_call_id TEXT, session TEXT NOT NULL, timestamp TEXT NOT NULL,
        bytes INTEGER NOT NULL, sha256 TEXT NOT NULL, content_type TEXT NOT NULL, masked TEXT,
        indexed INTEGER NOT NULL DEFAULT 0, tombstone INTEGER, purged_at INTEGER,
        PRIMARY KEY (space, id), FOREIGN KEY (space, tombstone) REFERENCES tombstone
    );
    CREATE INDEX ref_indexed ON ref (space, indexed) WHERE tombstone IS NULL;
    CREATE INDEX ref_call ON ref (space, tool_call_id) WHERE tool_call_id IS NOT NULL;
    CREATE INDEX ref_forgotten ON ref (space, tombstone) WHERE tombstone IS NOT NULL;
    CREATE TABLE canvas (
        space INTEGER NOT NULL REFERENCES space, number INTEGER NOT NULL, label TEXT NOT NULL,
        session INTEGER NOT NULL, text TEXT NOT NULL, status TEXT NOT NULL,
        folded INTEGER NOT NULL, groups TEXT NOT NULL, updated INTEGER NOT NULL, version INTEGER NOT NULL,
        PRIMARY KEY (space, number), FOREIGN KEY (space, session) REFERENCES session
    );
    CREATE INDEX canvas_session ON canvas (space, session, updated);
    CREATE TABLE canvas_version (
        space INTEGER NOT NULL REFERENCES space, canvas INTEGER NOT NULL, version INTEGER NOT NULL,
        kind TEXT NOT NULL, detail TEXT NOT NULL, label TEXT NOT NULL, session INTEGER NOT NULL,
        status TEXT NOT NULL, folded INTEGER NOT NULL, updated INTEGER NOT NULL, work INTEGER,
        crc INTEGER NOT NULL, delta TEXT, PRIMARY KEY (space, canvas, version),
        FOREIGN KEY (space, session) REFERENCES session, FOREIGN KEY (space, work) REFERENCES work,
        FOREIGN KEY (space, canvas) REFERENCES canvas
    );
    CREATE TABLE record (
        space INTEGER NOT NULL REFERENCES space, id INTEGER NOT NULL, session INTEGER NOT NULL,
        canvas INTEGER NOT NULL, node TEXT NOT NULL, tool_call TEXT NOT NULL, summary TEXT NOT NULL,
        result_ref TEXT NOT NULL, tool_call_id TEXT, timestamp TEXT NOT NULL, score INTEGER NOT NULL,
        tokens_raw INTEGER NOT NULL, tokens_kept INTEGER NOT NULL, ref TEXT NOT NULL, step TEXT, work INTEGER,
        summary_by TEXT, PRIMARY KEY (space, id), FOREIGN KEY (space, session) REFERENCES session,
        FOREIGN KEY (space, canvas) REFERENCES canvas, FOREIGN KEY (space, work) REFERENCES work
    );
    CREATE INDEX record_node ON record (space, canvas, node, id);
    CREATE INDEX record_session ON record (space, session, id);
    CREATE INDEX record_ref ON record (space, ref, id);
    CREATE INDEX record_call ON record (space, tool_call_id) WHERE tool_call_id IS NOT NULL;
    CREATE TABLE citation (
        space INTEGER NOT NULL REFERENCES space, source TEXT NOT NULL, ref TEXT NOT NULL,
        first_line INTEGER NOT NULL, last_line INTEGER NOT NULL, PRIMARY KEY (space, source, ref, first_line)
    );
    CREATE INDEX citation_ref ON citation (space, ref);
    CREATE TABLE saving (
        space INTEGER NOT NULL REFERENCES space, id INTEGER NOT NULL, session TEXT NOT NULL,
        at INTEGER NOT NULL, kind TEXT NOT NULL, saved INTEGER NOT NULL, spent INTEGER NOT NULL,
        cache_broken INTEGER NOT NULL, PRIMARY KEY (space, id)
    );
    CREATE INDEX saving_space ON saving (space, session, at);
    CREATE TABLE message_edit (
        space INTEGER NOT NULL REFERENCES space, id INTEGER NOT NULL, session TEXT NOT NULL,
        before TEXT NOT NULL, after TEXT NOT NULL, shown TEXT NOT NULL, texts TEXT NOT NULL, note TEXT,
        refs TEXT NOT NULL, calls INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (space, id)
    );
    CREATE INDEX message_edit_after ON message_edit (space, after);
    CREATE INDEX message_edit_shown ON message_edit (space, shown);
"""

# `forgotten` has the digests by which forgotten content is recognised when it comes again; `retention` says after how
# many days a space forgets what.
_RETENTION = """
    CREATE TABLE forgotten (
        space INTEGER NOT NULL REFERENCES space, digest BLOB NOT NULL, tombstone INTEGER NOT NULL,
        PRIMARY KEY (space, digest, tombstone), FOREIGN KEY (space, tombstone) REFERENCES tombstone
    );
    CREATE INDEX forgotten_by ON forgotten (space, tombstone);
    CREATE TABLE retention (
        space INTEGER NOT NULL REFERENCES space, what TEXT NOT NULL, days INTEGER NOT NULL, at INTEGER NOT NULL,
        ran_at INTEGER, took INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (space, what)
    );
"""

# `chunk` is a run of lines of a ref, a row of the search whose terms are those of the masked text; `ref.indexed` is the
# version of these terms, 0 before a ref has any. A model's vectors are in
# `turn_vec_<id>` and `atom_vec_<id>`.
_SEARCH = """
    CREATE TABLE chunk (
        space INTEGER NOT NULL REFERENCES space, id INTEGER NOT NULL, ref TEXT NOT NULL,
        first_line INTEGER NOT NULL, last_line INTEGER NOT NULL,
        byte_start INTEGER NOT NULL, byte_end INTEGER NOT NULL, PRIMARY KEY (space, id)
    );
    CREATE INDEX chunk_ref ON chunk (space, ref, byte_end);
    CREATE TABLE vector_index (
        id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL
    );
"""


RECALLS = (
    """
    CREATE TABLE recall (
        space INTEGER NOT NULL REFERENCES space, id INTEGER NOT NULL, at INTEGER NOT NULL, how TEXT NOT NULL,
        session TEXT NOT NULL, ids TEXT NOT NULL, tokens INTEGER NOT NULL, query TEXT, PRIMARY KEY (space, id)
    );
""",
)
"""The last recalls of each space. `ids` is a JSON list; `query` is NULL unless contents are logged."""

BASELINE = (_HOME, _EVIDENCE, _JOBS, _KNOWLEDGE, _TASKS, _RETENTION, _SEARCH)
"""The tables of the first released schema on SQLite; later changes are separate migration steps."""

CACHED_TOKENS = "ALTER TABLE spend ADD cached_tokens INTEGER NOT NULL DEFAULT 0"
"""The tokens of a prompt that the provider read from its cache."""

LABELS = (
    """
    ALTER TABLE atom ADD label TEXT;
    ALTER TABLE atom ADD reader INTEGER;
    CREATE INDEX atom_label ON atom (space, label, id) WHERE label IS NOT NULL AND tombstone IS NULL;
""",
)
"""What a sentence of the user states, and the version of the reader that extracted it without a model."""

PROJECTS = "ALTER TABLE session ADD project TEXT"
"""The project of a session: see `core.projects`."""

QUOTAS = """
    CREATE TABLE quota (
        space INTEGER NOT NULL REFERENCES space, what TEXT NOT NULL, most INTEGER NOT NULL, used INTEGER NOT NULL,
        month INTEGER NOT NULL, PRIMARY KEY (space, what)
    )
"""
"""How much a space may store or use in a `month`, and has used; see `quota_rows`. Each engine adds its triggers."""

LISTED_ATOMS = (
    """
    CREATE INDEX atom_listed ON atom (space, kind, priority, id, valid_to, valid_from, reader) WHERE tombstone IS NULL;
""",
)
"""The index by which atoms of a kind are filtered and listed without their rows. It replaces `atom_open`."""

CONVERSATIONS = (
    """
    ALTER TABLE session ADD client TEXT;
    CREATE INDEX turn_said ON turn (space, session, said_at)
        WHERE role <> 'note' AND (role <> 'system' OR coalesce(name, '') <> 'title') AND tombstone IS NULL;
""",
)
"""The client that recorded a session, unless the session's name tells it, and the index of when its talk was said."""

FEEDBACK = """
    CREATE TABLE feedback (
        space INTEGER NOT NULL REFERENCES space, id INTEGER NOT NULL, target TEXT NOT NULL, verdict TEXT NOT NULL,
        words TEXT NOT NULL, recall INTEGER, at INTEGER NOT NULL, undone_at INTEGER, PRIMARY KEY (space, id)
    )
"""
"""What people said of turns and atoms (`target`: `t8`, `a5`) that were recalled for a question. `words` is a JSON list
of the hashes of the question's words."""

RECALL_QUESTIONS = (
    """
    ALTER TABLE recall ADD client TEXT;
    ALTER TABLE recall ADD words TEXT;
""",
)
"""The program that recalled, and the hashes of the words of its question."""

QUOTES = "ALTER TABLE evidence DROP quote"
"""The words of a quote are those of its turn."""

TABLES = (
    *(*BASELINE, *RECALLS, CACHED_TOKENS, *LABELS, PROJECTS, QUOTAS, *LISTED_ATOMS, *CONVERSATIONS),
    *(FEEDBACK, *RECALL_QUESTIONS, QUOTES),
)


def statements(of: tuple[str, ...] = TABLES) -> Iterator[str]:
    """Yield the statements in an order in which each table follows the tables that it refers to."""
    for tables in of:
        yield from (statement.strip() for statement in tables.split(";") if statement.strip())


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `columns` maps the names of its columns, in order, to their types; `key` is its primary key."""

    name: str
    columns: dict[str, str]
    key: tuple[str, ...]


@cache
def _tables(of: tuple[str, ...] = TABLES) -> dict[str, Table]:
    by_name: dict[str, Table] = {}
    for statement in statements(of):
        if created := re.match(r"CREATE TABLE (\w+)", statement):
            columns = _COLUMN.findall(statement)
            named = _KEY.search(statement)
            key = re.split(", ", named[1]) if named else [name for name, _, primary in columns if primary]
            by_name[created[1]] = Table(created[1], {name: kind for name, kind, _ in columns}, tuple(key))
        elif added := _ADDED.match(statement):
            table, name, kind = added.groups()
            by_name[table].columns[name] = kind
        elif dropped := _DROPPED.match(statement):
            table, name = dropped.groups()
            del by_name[table].columns[name]
    return by_name


def tables() -> list[Table]:
    """Return the tables, in the order of `statements`."""
    return list(_tables().values())


def table(name: str) -> Table:
    return _tables()[name]


def tables_of_spaces(of: tuple[str, ...] = TABLES) -> list[str]:
    """Return the tables whose rows belong to a space."""
    return [table.name for table in _tables(of).values() if "space" in table.columns]
