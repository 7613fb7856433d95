"""Row security: a transaction sees the rows of the space that it has entered with a proof, whatever SQL it runs.

A server has a secret key (`server_key`). It enters a space by `enter_space(name, proof, …)`, where the proof is
HMAC-SHA256(key, scope), and the scope names the space, or all spaces. That function runs as the owner of the tables,
checks the proof, and sets `mcp_memory.space` to the number of the space and a signature over the number, the process of
the connection and the start of the transaction. The policies of the tables read the number by `current_space()`, which
checks the signature. Any user may set `mcp_memory.space`, but only the owner can read the key of the signatures
(`signing_key`), and a signature is of no use in another transaction.

The owner of the tables and a superuser can read all rows. They need no setting, because they can read the keys. A proof
is as good as the key for its space. The catalogs of PostgreSQL show everybody the names and sizes of all tables.

Servers of schema 4 and older set `mcp_memory.space` to the plain number. Until the step is contracted, `enter_space`
does the same and checks no proof, and the policies are those of `schema`. A new database is contracted at once.
"""

from __future__ import annotations

import secrets
from typing import Any

import psycopg
from psycopg import sql

from mcp_memory.core.errors import Refused
from mcp_memory.store.postgres.access import NOT_ENTERED, TOO_OLD_TO_READ, TOO_OLD_TO_WRITE, WRONG_PROOF, pads
from mcp_memory.store.sql import schema

Connection = psycopg.Connection[Any]

# These tables have no policy, so only the owner sees their rows, even if somebody grants them to others.
# A role has one key, or two while its servers change from one to the other. `inner_pad` and `outer_pad` are the two
# blocks of HMAC, with which PostgreSQL computes it by its own function `sha256`.
_KEYS = """
    CREATE TABLE server_key (
        role TEXT NOT NULL, inner_pad BYTEA NOT NULL, outer_pad BYTEA NOT NULL,
        at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (role, at)
    );
    CREATE TABLE signing_key (id INT PRIMARY KEY CHECK (id = 1), secret BYTEA NOT NULL);
    ALTER TABLE server_key ENABLE ROW LEVEL SECURITY;
    ALTER TABLE signing_key ENABLE ROW LEVEL SECURITY;
"""

# Functions of the owner find tables, operators and functions only by this path, in which nobody else can create any.
_PIN_PATH = """
    SELECT set_config('search_path', concat_ws(', ', quote_ident(current_schema()),
        quote_ident(nullif(nspname, current_schema())), 'pg_temp'), true)
    FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'vector'
"""
_OWNER = "LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT"

# The number of a space; 0 for a space that does not exist yet; -1 for all spaces; NULL without a proof. The function is
# called for each table of a query. Its body is parsed when it is created, so it needs no search path, and the secret is
# in no variable, which `debug_print_plan` could show.
_PLAIN_SPACE = """
    CREATE FUNCTION current_space() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER PARALLEL RESTRICTED
        RETURN CASE current_setting('mcp_memory.space', true) WHEN '' THEN NULL WHEN 'every' THEN -1
            ELSE current_setting('mcp_memory.space', true)::bigint END;
"""
_NOT_SIGN = "number := CASE id WHEN -1 THEN 'every' ELSE number END;"
_SIGNATURE = """encode(sha256(secret || int4send(pg_backend_pid()) || timestamptz_send(now())
                || convert_to(number, 'UTF8') || secret), 'hex')"""
_SIGNED_SPACE = f"""
    CREATE FUNCTION refuse_forged_space() RETURNS bigint LANGUAGE plpgsql AS $$
        BEGIN RAISE 'this transaction has entered no space with a proof' USING ERRCODE = '{NOT_ENTERED}'; END $$;
    CREATE OR REPLACE FUNCTION current_space() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER PARALLEL RESTRICTED
        RETURN (
            SELECT CASE entered WHEN number || '.' || {_SIGNATURE}
                THEN number::bigint ELSE refuse_forged_space() END
            FROM signing_key, current_setting('mcp_memory.space', true) entered, split_part(entered, '.', 1) number
            WHERE entered <> ''
        );
"""
_SIGN = f"SELECT number || '.' || {_SIGNATURE} INTO number FROM signing_key;"
# `purpose` is `read`, `write`, which locks the row of the space, or `create`, which creates it if needed. Two that
# create the same space wait for each other. The versions are read after the lock, which may take a while.
_ENTER = f"""
    CREATE OR REPLACE FUNCTION enter_space(wanted text, proof bytea, version int, purpose text) RETURNS bigint
        {_OWNER} AS $$
        DECLARE id bigint; reader int; writer int; newest text; number text;
        BEGIN
            IF NOT ({{proven}}) THEN
                RAISE 'wrong key of the user %', session_user USING ERRCODE = '{WRONG_PROOF}';
            END IF;
            IF wanted IS NULL THEN
                id := -1;
            ELSIF purpose = 'read' THEN
                SELECT s.id INTO id FROM space s WHERE name = wanted;
            ELSE
                SELECT s.id INTO id FROM space s WHERE name = wanted FOR NO KEY UPDATE;
                IF id IS NULL THEN
                    PERFORM pg_advisory_xact_lock(hashtextextended('mcp-memory space ' || wanted, 0));
                    SELECT s.id INTO id FROM space s WHERE name = wanted FOR NO KEY UPDATE;
                END IF;
                IF id IS NULL AND purpose = 'create' THEN
                    INSERT INTO space (name) VALUES (wanted) RETURNING space.id INTO id;
                END IF;
            END IF;
            SELECT max(min_reader), max(min_writer), max(name) INTO reader, writer, newest FROM migration;
            IF version < reader THEN
                RAISE '%', newest USING ERRCODE = '{TOO_OLD_TO_READ}';
            ELSIF version < writer AND purpose IS DISTINCT FROM 'read' THEN
                RAISE '%', newest USING ERRCODE = '{TOO_OLD_TO_WRITE}';
            END IF;
            id := coalesce(id, 0);
            number := id;
            {{sign}}
            number := set_config('mcp_memory.space', number, true);
            RETURN id;
        END $$;
"""
_PROVEN = """EXISTS (
                SELECT FROM server_key, convert_to(coalesce('space ' || wanted, 'every'), 'UTF8') scope
                WHERE proof = sha256(outer_pad || sha256(inner_pad || scope))
                    AND (role = session_user OR pg_has_role(session_user, current_user, 'MEMBER'))
            )"""

# The tables of vectors are created by servers, which may create nothing themselves.
_VECTORS = f"""
    CREATE OR REPLACE FUNCTION create_vector_tables(index bigint, dimensions int) RETURNS void {_OWNER} AS $$
        DECLARE name text;
        BEGIN
            IF current_space() IS NULL OR NOT EXISTS (
                SELECT FROM vector_index v WHERE v.id = index AND v.dimensions = create_vector_tables.dimensions
            ) THEN
                RAISE 'there is no vector index % of % dimensions', index, dimensions;
            END IF;
            FOREACH name IN ARRAY ARRAY['turn_vec_' || index, 'atom_vec_' || index] LOOP
                EXECUTE format('CREATE TABLE %I (space BIGINT NOT NULL, id BIGINT NOT NULL,'
                    ' embedding halfvec(%s) NOT NULL, PRIMARY KEY (space, id))', name, dimensions);
                PERFORM keep_to_space(name);
            END LOOP;
        END $$;
    CREATE OR REPLACE FUNCTION drop_vector_tables(index bigint) RETURNS void {_OWNER} AS $$
        BEGIN
            PERFORM require_all_spaces();
            EXECUTE format('DROP TABLE %I, %I CASCADE', 'turn_vec_' || index, 'atom_vec_' || index);
        END $$;
    CREATE OR REPLACE FUNCTION create_vector_table(shared text, of_space bigint) RETURNS void {_OWNER} AS $$
        DECLARE own text := shared || '_of_' || of_space;
        BEGIN
            PERFORM require_all_spaces();
            -- The lock of the parent, which CREATE TABLE takes as well: after another one a catalog that was read
            -- before would still lack the table that a second server has made meanwhile.
            EXECUTE format('LOCK TABLE ONLY %I IN SHARE UPDATE EXCLUSIVE MODE', shared);
            IF to_regclass(own) IS NULL THEN
                EXECUTE format('CREATE TABLE %I (CHECK (space = %s), PRIMARY KEY (space, id)) INHERITS (%I)',
                    own, of_space, shared);
                EXECUTE format('CREATE INDEX ON %I USING hnsw (embedding halfvec_ip_ops)', own);
                PERFORM keep_to_space(own);
            END IF;
        END $$;
    CREATE FUNCTION require_all_spaces() RETURNS void {_OWNER} AS $$
        BEGIN
            IF current_space() IS DISTINCT FROM -1 THEN
                RAISE 'this transaction has not entered all spaces with a proof' USING ERRCODE = '{NOT_ENTERED}';
            END IF;
        END $$;
"""

_OF_SPACE = "(space = (SELECT current_space()) OR (SELECT current_space()) = -1)"
"""The second query is run only for rows that the first one does not admit."""

_POLICIES = f"""
    CREATE OR REPLACE FUNCTION keep_to_space(name text) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
            EXECUTE format('DROP POLICY IF EXISTS of_space ON %I', name);
            EXECUTE format('CREATE POLICY of_space ON %I USING {_OF_SPACE}', name);
        END $$;
    CREATE FUNCTION keep_to_all_spaces(name text) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
            EXECUTE format('DROP POLICY IF EXISTS of_all ON %I', name);
            EXECUTE format('CREATE POLICY of_all ON %I USING ((SELECT current_space()) = -1)', name);
        END $$;
"""
_SHARED = """
    CREATE POLICY own ON space FOR SELECT USING (id = (SELECT current_space()));
    CREATE POLICY shared ON home FOR SELECT USING ((SELECT current_space()) IS NOT NULL);
    CREATE POLICY shared ON queue FOR SELECT USING ((SELECT current_space()) IS NOT NULL);
    CREATE POLICY shared ON vector_index FOR SELECT USING ((SELECT current_space()) IS NOT NULL);
    CREATE POLICY new ON vector_index FOR INSERT WITH CHECK ((SELECT current_space()) IS NOT NULL);
"""
"""What a transaction on one space needs of tables without a space."""

# The tables of hashed terms have an index that PostgreSQL does not use below a policy, because errors of `@>` might
# reveal rows. These functions use it for the space that was entered. The space stands outside of the innermost query,
# where it would make the planner take another index.
_TERMS = f"""
    CREATE FUNCTION {{layer}}_rows_with(wanted bigint[]) RETURNS SETOF bigint LANGUAGE sql STABLE SECURITY DEFINER
        BEGIN ATOMIC
            SELECT id FROM (SELECT id, space FROM {{layer}}_terms WHERE keys @> wanted OFFSET 0) found
            WHERE {_OF_SPACE};
        END;
"""
_LAYERS = ("turn", "atom", "chunk")


_WITHOUT_KEY = """
    SELECT usename FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'mcp-memory schema %'
        AND NOT pg_has_role(usename, current_user, 'MEMBER') AND usename NOT IN (SELECT role FROM server_key)
"""


def expand(con: Connection) -> None:
    """Add the keys and the functions, of which older servers notice nothing."""
    con.execute(_PIN_PATH)
    for statements in (_KEYS, _PLAIN_SPACE, _ENTER.format(proven="true", sign=_NOT_SIGN), _VECTORS, _POLICIES):
        con.execute(statements.encode())
    for layer in _LAYERS:
        con.execute(_TERMS.format(layer=layer).encode())
    con.execute("INSERT INTO signing_key VALUES (1, %s)", (secrets.token_bytes(32),))
    con.execute("INSERT INTO server_key VALUES (current_user, %s, %s)", pads(secrets.token_hex(32)))


def contract(con: Connection) -> None:
    """Refuse transactions without a proof from now on. Raises Refused if a connected server can have no key."""
    if without := con.execute(_WITHOUT_KEY).fetchone():
        raise Refused(
            f"The user {without[0]}, whose servers are connected, has no key yet. Nothing was removed. Run `mcp-memory"
            f" migrate --grant {without[0]}`, and give its servers the key as MCP_MEMORY_STORE_KEY."
        )
    con.execute(_PIN_PATH)
    for statements in (_SIGNED_SPACE, _ENTER.format(proven=_PROVEN, sign=_SIGN), _SHARED):
        con.execute(statements.encode())
    con.execute(
        "SELECT keep_to_space(tablename) FROM pg_policies"
        " WHERE policyname = 'of_space' AND schemaname = current_schema()"
    )
    for table in (*(table.name for table in schema.tables() if "space" not in table.columns), "object_folder"):
        con.execute("SELECT keep_to_all_spaces(%s)", (table,))
    for layer in _LAYERS:  # not forced, so that the functions of the owner can use the index
        con.execute(
            f"ALTER TABLE {layer}_terms ENABLE ROW LEVEL SECURITY;"
            f" CREATE POLICY of_space ON {layer}_terms USING {_OF_SPACE}".encode()
        )
    (name,) = con.execute("SELECT current_schema()").fetchone() or ("public",)
    con.execute(sql.SQL("REVOKE CREATE ON SCHEMA {} FROM PUBLIC").format(sql.Identifier(name)))


def give_key(con: Connection, role: str, key: str | None) -> str | None:
    """Let a role enter spaces with a key, or with a new one if it has none; return a new key.

    The key that the role had before is valid until the next change.
    """
    newest = con.execute(
        "SELECT inner_pad, outer_pad FROM server_key WHERE role = %s ORDER BY at DESC", (role,)
    ).fetchone()
    made = secrets.token_hex(32) if key is None and newest is None else None
    if (chosen := key or made) and pads(chosen) != newest:
        con.execute("INSERT INTO server_key VALUES (%s, %s, %s)", (role, *pads(chosen)))
        con.execute(
            "DELETE FROM server_key WHERE role = %(role)s AND at <"
            " (SELECT at FROM server_key WHERE role = %(role)s ORDER BY at DESC OFFSET 1 LIMIT 1)",
            {"role": role},
        )
    return made
