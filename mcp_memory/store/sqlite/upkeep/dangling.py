"""Rows that point at rows that are gone: what stands in for these, and what has to be left out.

Only rows that cannot do without the other are lost, as a quote without its turn. A job that is gone is made again,
empty and done: it says no more than that a model made what names it. A tombstone whose number was given out is made
again too, so that what was forgotten stays forgotten. Other references are cleared where a row may be without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import apsw

__all__ = ["Lost", "resolve"]

Lost = Counter[str]
"""What was left out, in words, and how many of each."""

_MADE_BY = {
    "atom": ("merge", "t.learned_at"),
    "draft": ("extract", "0"),
    "scene": ("scenes", "t.at"),
    "persona": ("persona", "t.at"),
    "record": ("summaries", "0"),
    "canvas_edit": ("canvas", "0"),
}
"""By table, the stage whose jobs make its rows, and when such a row was made."""
_NAMED = {
    "turn": "'t' || id",
    "atom": "'a' || id",
    "fact": "'the fact of a' || atom",
    "evidence": "'a quote of a' || atom",
    "draft": "'draft ' || id",
    "scene": "'version ' || version || ' of the scene ' || slug",
    "persona": "'version ' || version || ' of the persona'",
    "ref": "id",
    "record": "'record ' || id",
    "canvas": "'canvas ' || number",
    "canvas_edit": "'canvas edit ' || id",
    "tombstone": "'x' || id",
}
"""What rows are called; those of other tables are made of these, or keep the program's own books."""


def resolve(con: apsw.Connection) -> Lost:
    """Have no row of `main` point at nothing, with foreign keys off; return what had to be left out."""
    lost = Lost()
    while found := _violations(con):
        before = con.total_changes()
        for table, parent, key in found:
            lost.update(_resolved(con, table, parent, key))
        if con.total_changes() == before:
            break
    return lost


def _violations(con: apsw.Connection) -> list[tuple[str, str, int]]:
    rows: Any = con.execute("PRAGMA main.foreign_key_check")
    return sorted({(str(table), str(parent), int(key)) for table, _, parent, key in rows})


def _resolved(con: apsw.Connection, table: str, parent: str, key: int) -> Iterator[str]:
    columns: Any = con.execute(
        'SELECT k."from", coalesce(k."to", p.name), c."notnull" OR c.pk FROM pragma_foreign_key_list(?1, \'main\') k'
        " JOIN pragma_table_info(?1, 'main') c ON c.name = k.\"from\""
        " LEFT JOIN pragma_table_info(?2, 'main') p ON p.pk = k.seq + 1 WHERE k.id = ?3",
        (table, parent, key),
    ).fetchall()
    names = [str(name) for name, _, _ in columns]
    same = " AND ".join(f"p.{to} = t.{name}" for name, to, _ in columns)
    gone = " AND ".join(f"t.{name} IS NOT NULL" for name in names)
    gone += f" AND NOT EXISTS (SELECT 1 FROM main.{parent} p WHERE {same})"
    if parent == "work" and table in _MADE_BY:
        stage, at = _MADE_BY[table]
        con.execute(
            "INSERT INTO main.work (id, space, stage, basis, state, holder, until, attempts, at, done_at, outcome)"
            f" SELECT t.work, min(t.space), ?, '{{}}', 'done', '', 0, 0, min({at}), min({at}), '{{}}'"
            f" FROM main.{table} t WHERE t.work > 0 AND {gone} GROUP BY t.work",
            (stage,),
        )
    elif parent == "tombstone":
        con.execute(
            "INSERT INTO main.tombstone (id, space, reason, at) SELECT t.tombstone, min(t.space), '',"
            f" CAST(unixepoch('subsec') * 1000 AS INTEGER) FROM main.{table} t WHERE {gone} AND t.tombstone BETWEEN 1"
            " AND (SELECT seq FROM main.sqlite_sequence WHERE name = 'tombstone') GROUP BY t.tombstone"
        )
    elif table == parent == "entity_name":
        con.execute(f"UPDATE main.entity_name AS t SET entity = id WHERE {gone}")
    if not any(needed for _, _, needed in columns):
        con.execute(f"UPDATE main.{table} AS t SET {', '.join(f'{name} = NULL' for name in names)} WHERE {gone}")
        return
    called = _NAMED.get(table, "NULL")
    rows: Any = con.execute(f"DELETE FROM main.{table} AS t WHERE {gone} RETURNING {called}").fetchall()
    yield from (str(name) for (name,) in rows if name is not None)
