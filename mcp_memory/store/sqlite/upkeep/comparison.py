"""Whether two databases say the same, table by table, of what the files of a home can tell.

The one that was made of the files is `main`, the other is attached as `old`. Rows are compared whole; where moments
are kept to the microsecond in rows and to the millisecond in files, the millisecond counts. The word index is compared
by its terms, each with how often it stands where, and by the lengths of all rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from mcp_memory.store.protocol import Layer
from mcp_memory.store.sqlite.rows import to_ms

__all__ = ["RESULTS", "Compared", "compare", "compare_words", "of_the_database_alone"]

_EXAMPLES = 5
TURNS, RESULTS = "turns", "results"
_TOLD = (
    "EXISTS (SELECT 1 FROM {db}.turn note WHERE note.id = {r}.evidence AND note.role = 'note')"
    " AND {r}.work IS NULL AND {r}.purged_at IS NULL"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """`same` rows are equal in every column. `examples` names some that are not, by their keys."""

    what: str
    same: int
    differing: int = 0
    only_in_files: int = 0
    only_in_database: int = 0
    examples: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        return not (self.differing or self.only_in_files or self.only_in_database)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """`key` names a row to people, of the row `{r}`; `same` says which two rows are one; `columns` have to be equal."""

    what: str
    table: str
    key: str
    same: tuple[str, ...]
    columns: str
    where: str = "1"


_TABLES = (
    _Table(
        what=TURNS,
        table="turn",
        key="'t' || {r}.id",
        same=("id",),
        columns="space session position role name content client_id said_at learned_at sha256 told tombstone purged_at",
    ),
    _Table(
        what="statements that were told",
        table="atom",
        key="'a' || {r}.id",
        same=("id",),
        columns="space kind text priority confidence evidence span_start span_end valid_from valid_to learned_at"
        " superseded_by closed_because source tombstone",
        where=_TOLD.format(r="{r}", db="{db}"),
    ),
    _Table(
        what="their facts",
        table="fact",
        key="'a' || {r}.atom",
        same=("atom",),
        columns="space entity entity_key relation value single_valued valid_from valid_to tombstone",
        where=f"EXISTS (SELECT 1 FROM {{db}}.atom a WHERE a.id = {{r}}.atom AND {_TOLD.format(r='a', db='{db}')})",
    ),
    _Table(
        what=RESULTS,
        table="ref",
        key="{r}.id || ' of ' || {r}.space",
        same=("space", "id"),
        columns="path tool arguments tool_call_id session ms(timestamp) bytes sha256 content_type masked tombstone",
        where="{r}.purged_at IS NULL",
    ),
    _Table(
        what="records",
        table="record",
        key="'record ' || {r}.id",
        same=("id",),
        columns="space session canvas node tool_call summary result_ref tool_call_id ms(timestamp) score tokens_raw"
        " tokens_kept ref summary_by step",
    ),
    _Table(
        what="canvases",
        table="canvas",
        key="'canvas ' || {r}.number || ' of ' || {r}.space",
        same=("space", "number"),
        columns="label session text status folded groups updated version",
    ),
    _Table(
        what="canvas edits",
        table="canvas_edit",
        key="'edit ' || {r}.id",
        same=("id",),
        columns="space canvas after_record kind body at work undone_at",
    ),
    _Table(
        what="sessions",
        table="session",
        key="{r}.name || ' of ' || {r}.space",
        same=("id",),
        columns="space name active_canvas activated_at",
        where="({r}.activated_at IS NOT NULL OR EXISTS (SELECT 1 FROM {db}.turn t WHERE t.session = {r}.id))",
    ),
    _Table(
        what="digests of what was forgotten",
        table="forgotten",
        key="'x' || {r}.tombstone",
        same=("space", "digest", "tombstone"),
        columns="space",
    ),
    _Table(
        what="tombstones",
        table="tombstone",
        key="'x' || {r}.id",
        same=("id",),
        columns="space reason at undone_at purged_at",
    ),
)


def compare(con: apsw.Connection) -> list[Compared]:
    """Compare all tables that can be."""
    con.create_scalar_function("ms", _ms, 1, deterministic=True)
    return [_compared(con, table) for table in _TABLES]


def of_the_database_alone(con: apsw.Connection) -> dict[str, int]:
    """Count the rows of the old database that no file tells of: there is nothing that they could be compared with."""
    is_told = _TOLD.format(r="r", db="old")
    counts = {
        "statements that models or imports made": f"atom r WHERE r.purged_at IS NULL AND NOT ({is_told})",
        "facts of theirs": f"fact f JOIN old.atom r ON r.id = f.atom WHERE r.purged_at IS NULL AND NOT ({is_told})",
        "older versions of scenes": "scene r WHERE version < (SELECT max(version) FROM old.scene n"
        " WHERE n.space = r.space AND n.slug = r.slug)",
        "versions of the persona": "persona r",
    }
    return {
        what: count for what, rows in counts.items() if (count := con.execute(f"SELECT count(*) FROM old.{rows}").get)
    }


def _ms(*text: Any) -> int:
    return to_ms(datetime.fromisoformat(text[0]))


def _compared(con: apsw.Connection, table: _Table) -> Compared:
    ours, theirs = f"main.{table.table} n", f"old.{table.table} o"
    is_ours, is_theirs = table.where.format(r="n", db="main"), table.where.format(r="o", db="old")
    same = " AND ".join(f"o.{column} = n.{column}" for column in table.same)
    equal = f"({_of('n', table.columns)}) IS ({_of('o', table.columns)})"
    total: int = con.execute(f"SELECT count(*) FROM {ours} WHERE {is_ours}").get
    differing = _keys(
        con,
        f"SELECT {table.key.format(r='n')} FROM {ours} JOIN {theirs} ON {same}"
        f" WHERE {is_ours} AND {is_theirs} AND NOT {equal}",
    )
    new = _keys(
        con,
        f"SELECT {table.key.format(r='n')} FROM {ours} WHERE {is_ours}"
        f" AND NOT EXISTS (SELECT 1 FROM {theirs} WHERE {same} AND {is_theirs})",
    )
    lost = _keys(
        con,
        f"SELECT {table.key.format(r='o')} FROM {theirs} WHERE {is_theirs}"
        f" AND NOT EXISTS (SELECT 1 FROM {ours} WHERE {same} AND {is_ours})",
    )
    return Compared(
        what=table.what,
        same=total - len(differing) - len(new),
        differing=len(differing),
        only_in_files=len(new),
        only_in_database=len(lost),
        examples=(*differing[:_EXAMPLES], *new[:_EXAMPLES], *lost[:_EXAMPLES]),
    )


def _of(row: str, columns: str) -> str:
    return ", ".join(re.sub(r"\w+(?!\()\b", lambda name: f"{row}.{name[0]}", one) for one in columns.split())


def _keys(con: apsw.Connection, sql: str) -> list[str]:
    return [str(key) for (key,) in con.execute(sql)]


def compare_words(con: apsw.Connection, layers: Sequence[Layer] = ("turn", "atom")) -> list[Compared]:
    """Compare what a search for words reads: the same terms, as often and in as many rows, and all rows as long."""
    return [_words(con, layer) for layer in layers]


def _words(con: apsw.Connection, layer: Layer) -> Compared:
    what = f"index terms of {'turns' if layer == 'turn' else 'statements'}"
    for db in ("main", "old"):
        con.execute(f"CREATE VIRTUAL TABLE temp.{db}_words USING fts5vocab({db}, {layer}_terms, 'col')")
    try:
        sizes = "SELECT id, sz FROM {}.{}_terms_docsize"
        select = "SELECT term, col, doc, cnt FROM temp.{}_words"
        ours, theirs = select.format("main"), select.format("old")
        total: int = con.execute(f"SELECT count(*) FROM ({ours})").get
        new: Any = {str(row[0]) for row in con.execute(f"{ours} EXCEPT {theirs}")}
        lost: Any = {str(row[0]) for row in con.execute(f"{theirs} EXCEPT {ours}")}
        rows = f"{sizes.format('main', layer)} EXCEPT {sizes.format('old', layer)}"
        back = f"{sizes.format('old', layer)} EXCEPT {sizes.format('main', layer)}"
        lengths = {row[0] for sql in (rows, back) for row in con.execute(sql)}
    finally:
        for db in ("main", "old"):
            con.execute(f"DROP TABLE temp.{db}_words")
    both = new & lost
    return Compared(
        what=what,
        same=total - len(new),
        differing=len(both) + len(lengths),
        only_in_files=len(new - both),
        only_in_database=len(lost - both),
        examples=tuple(f"{layer[0]}{number}" for number in sorted(lengths)[:_EXAMPLES]),
    )
