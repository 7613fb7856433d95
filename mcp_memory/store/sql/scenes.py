"""L2 in SQLite: the versions of each scene, and the files of those that stand.

Rows are what counts: a version is added, never changed, and deleting adds one too. Files are a projection. They are
written before the rows are committed, so that a kill leaves at worst a file that is ahead, or one of no scene; each
commit brings all files of scenes into line with the rows, whatever happened to them since. Others are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, assert_never

import apsw

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.core.types import Scene
from mcp_memory.store import files
from mcp_memory.store.forgotten import left_of
from mcp_memory.store.protocol import Conflict, Outcome, SceneEdit
from mcp_memory.store.sql import jobs
from mcp_memory.store.sql.rows import from_ms, marks, number_of, numbers_of, space_for, space_id, to_ms, touch

__all__ = ["commit", "files_of", "listed", "problems", "versions", "write_files"]

_COLUMNS = "slug, title, summary, body, heat, atoms, entities, version, action, reason, created, at"
_NEWEST = (
    f"SELECT {_COLUMNS} FROM scene s WHERE space = ?"
    " AND version = (SELECT max(version) FROM scene WHERE space = s.space AND slug = s.slug)"
)


def commit(
    con: apsw.Connection,
    folder: Path,
    space: str,
    work: str | None,
    *,
    edits: Sequence[SceneEdit],
    upto: int,
    wanted: str | None,
    outcome: Outcome,
    now: datetime,
) -> None:
    """See `Store.commit_scenes`."""
    space_no = space_for(con, space)
    if work is not None:
        jobs.finish(con, space_no, work, outcome=outcome, now=now)
        jobs.move(con, space_no, "scenes", upto, now=now)
    if wanted is not None:
        jobs.want(con, space, "persona", wanted)
    for edit in edits:
        _insert(con, space_no, edit, work=work, now=now)
    if edits:
        touch(con, space_no, "persona", *(f"scene:{edit.slug}" for edit in edits))
    write_files(con, folder, space)


def write_files(con: apsw.Connection, folder: Path, space: str) -> None:
    """Bring the files of all scenes into line with the rows: written, without what was forgotten, or gone."""
    for path, due in files_of(con, folder, space_for(con, space)):
        if due is None:
            files.remove(path)
        elif files.content_of(path) != due:
            files.write_whole(path, due)


def _insert(con: apsw.Connection, space: int, edit: SceneEdit, *, work: str | None, now: datetime) -> None:
    held = _held(con, space, safe_name(edit.slug, what="name of a scene"))
    stands = edit.slug in {scene.slug for scene in _standing(con, space)}
    if edit.version is not None and (held is None or held.version != edit.version):
        raise Conflict(f"{edit.slug} was written anew in the meantime.")
    match edit.action:
        case "create" if stands:
            raise InvalidInput(f"There is a scene {edit.slug!r} already. Update it, or choose another name.")
        case "update" | "delete" if not stands:
            raise NotFound(f"There is no scene {one_line(edit.slug, 60)!r} to {edit.action}. Nothing was stored.")
        case "restore" if held is None:
            raise NotFound(f"There never was a scene {one_line(edit.slug, 60)!r} to restore. Nothing was stored.")
        case "create" | "update" | "delete" | "restore" | "merge":
            pass
        case _:
            assert_never(edit.action)
    con.execute(
        "INSERT INTO scene (space, slug, version, action, title, summary, body, heat, atoms, entities, reason,"
        " created, at, work) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            space,
            edit.slug,
            held.version + 1 if held else 1,
            edit.action,
            edit.title or (held.title if held else edit.slug),
            edit.summary,
            edit.body,
            edit.heat,
            json.dumps(list(edit.atoms)),
            json.dumps(list(edit.entities), ensure_ascii=False),
            edit.reason,
            to_ms(held.created if held and (stands or edit.action == "restore") else now),
            to_ms(now),
            None if work is None else number_of(work, "w"),
        ),
    )


def listed(con: apsw.Connection, space: str) -> list[Scene]:
    """See `Store.scenes`."""
    return _standing(con, space_id(con, space))


def versions(con: apsw.Connection, space: str, slug: str) -> list[Scene]:
    """See `Store.scene_versions`."""
    rows = con.execute(
        f"SELECT {_COLUMNS} FROM scene WHERE space = ? AND slug = ? ORDER BY version DESC", (space_id(con, space), slug)
    )
    return [_scene(row) for row in rows]


def problems(con: apsw.Connection, folder: Path, space: int) -> Iterator[str]:
    """Yield what is wrong with the files of a space's scenes."""
    for path, due in files_of(con, folder, space):
        name, content = f"scenes/{path.name}", files.content_of(path)
        if due is None and content is not None:
            yield f"{name} is left of a scene that was deleted; the next writing of scenes removes it."
        elif due is not None and content is None:
            yield f"{name} is missing; the next writing of scenes brings it back."
        elif content != due:
            yield f"{name} is not the scene that was stored; the next writing of scenes writes it anew."
    known = {path for path, _ in files_of(con, folder, space)}
    for path in sorted((folder / "scenes").glob("*.md")):
        if path not in known and files.is_scene_file(files.content_of(path) or b""):
            yield f"scenes/{path.name} is of no scene, as a write that was cut short leaves it; it can be deleted."


def files_of(con: apsw.Connection, folder: Path, space: int) -> Iterator[tuple[Path, bytes | None]]:
    """Yield the file of every scene that ever was, with what it should hold: None, to be gone."""
    standing = {scene.slug: left_of(scene, _forgotten(con, space, scene)) for scene in _standing(con, space)}
    slugs: Any = con.execute("SELECT DISTINCT slug FROM scene WHERE space = ? ORDER BY slug", (space,)).fetchall()
    for (slug,) in slugs:
        yield folder / "scenes" / f"{slug}.md", files.scene_file(standing[slug]) if slug in standing else None


def _standing(con: apsw.Connection, space: int | None) -> list[Scene]:
    """Return the scenes that were not deleted and of which not all was forgotten."""
    rows = con.execute(
        f"{_NEWEST} AND action <> 'delete' AND (atoms = '[]' OR EXISTS ("
        " SELECT 1 FROM json_each(s.atoms) named WHERE NOT EXISTS ("
        "  SELECT 1 FROM atom a WHERE a.id = CAST(substr(named.value, 2) AS INTEGER) AND a.tombstone IS NOT NULL)))"
        " ORDER BY heat DESC, at DESC, slug",
        (space,),
    )
    return [_scene(row) for row in rows]


def _forgotten(con: apsw.Connection, space: int, scene: Scene) -> set[str]:
    numbers = numbers_of(scene.atoms, "a")
    rows = con.execute(
        f"SELECT id FROM atom WHERE space = ? AND tombstone IS NOT NULL AND id IN ({marks(numbers)})", (space, *numbers)
    )
    return {f"a{number}" for (number,) in rows}


def _held(con: apsw.Connection, space: int, slug: str) -> Scene | None:
    row: Any = con.execute(f"{_NEWEST} AND slug = ?", (space, slug)).fetchone()
    return None if row is None else _scene(row)


def _scene(row: Any) -> Scene:
    slug, title, summary, body, heat, atoms, entities, version, action, reason, created, at = row
    return Scene(
        slug=slug,
        title=title,
        summary=summary,
        body=body,
        heat=heat,
        atoms=tuple(json.loads(atoms)),
        entities=tuple(json.loads(entities)),
        version=version,
        action=action,
        reason=reason,
        created=from_ms(created),
        updated=from_ms(at),
    )
