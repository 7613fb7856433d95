"""L2: the versions of each scene, and the files of the current ones.

The rows are authoritative: versions are added, never changed, and a deletion adds a version too. Files are a
projection. They are written before the rows are committed, so a kill leaves at worst a file that is newer than its
row, or one without a scene; each commit makes all files of scenes match the rows. Other files are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, assert_never

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.core.types import Scene
from mcp_memory.store import files
from mcp_memory.store.citations import left_of
from mcp_memory.store.sql import jobs
from mcp_memory.store.sql.transaction import Transaction, from_ms, marks, numbers_of, to_ms
from mcp_memory.store.values import Conflict, SceneChanges, SceneEdit

__all__ = ["change", "files_of", "listed", "versions", "write_files"]

_COLUMNS = "slug, title, summary, body, heat, atoms, entities, version, action, reason, created, at"
_NEWEST = (
    f"SELECT {_COLUMNS} FROM scene s WHERE space = :space"
    " AND version = (SELECT max(version) FROM scene WHERE space = s.space AND slug = s.slug)"
)


def change(tx: Transaction, job: int | None, changes: SceneChanges, *, now: datetime) -> None:
    if job is not None:
        jobs.move(tx, "scenes", changes.upto, now=now)
    if changes.wanted is not None:
        jobs.request(tx, "persona", changes.wanted)
    for edit in changes.edits:
        _insert(tx, edit, job=job, now=now)
    if changes.edits:
        tx.touch("persona", *(f"scene:{edit.slug}" for edit in changes.edits))
    write_files(tx)


def write_files(tx: Transaction) -> None:
    """Write or delete the files of all scenes so that they match the rows, without forgotten words."""
    for path, content in files_of(tx):
        if content is None:
            tx.files.remove(path)
        elif tx.files.read(path) != content:
            tx.files.write(path, content)


def _insert(tx: Transaction, edit: SceneEdit, *, job: int | None, now: datetime) -> None:
    newest = _version(tx, safe_name(edit.slug, what="name of a scene"))
    is_current = edit.slug in {scene.slug for scene in listed(tx)}
    if edit.version is not None and (newest is None or newest.version != edit.version):
        raise Conflict(f"{edit.slug} was written anew in the meantime.")
    match edit.action:
        case "create" if is_current:
            raise InvalidInput(f"There is a scene {edit.slug!r} already. Update it, or choose another name.")
        case "update" | "delete" if not is_current:
            raise NotFound(f"There is no scene {one_line(edit.slug, 60)!r} to {edit.action}. Nothing was stored.")
        case "restore" if newest is None:
            raise NotFound(f"There never was a scene {one_line(edit.slug, 60)!r} to restore. Nothing was stored.")
        case "create" | "update" | "delete" | "restore" | "merge":
            pass
        case _:
            assert_never(edit.action)
    goes_on = newest is not None and (is_current or edit.action == "restore")
    tx.insert(
        "scene",
        slug=edit.slug,
        version=newest.version + 1 if newest else 1,
        action=edit.action,
        title=edit.title or (newest.title if newest else edit.slug),
        summary=edit.summary,
        body=edit.body,
        heat=edit.heat,
        atoms=json.dumps(list(edit.atoms)),
        entities=json.dumps(list(edit.entities), ensure_ascii=False),
        reason=edit.reason,
        created=to_ms(newest.created if newest and goes_on else now),
        at=to_ms(now),
        work=job,
    )


def listed(tx: Transaction) -> list[Scene]:
    """Return the scenes that are neither deleted nor completely forgotten, hottest first."""
    rows = tx.all(f"{_NEWEST} AND action <> 'delete' ORDER BY heat DESC, at DESC, slug")
    found = [_scene(row) for row in rows]
    return [scene for scene in found if not scene.atoms or len(_forgotten(tx, scene)) < len(set(scene.atoms))]


def versions(tx: Transaction, slug: str) -> list[Scene]:
    rows = tx.all(f"SELECT {_COLUMNS} FROM scene WHERE space = :space AND slug = ? ORDER BY version DESC", slug)
    return [_scene(row) for row in rows]


def files_of(tx: Transaction) -> Iterator[tuple[str, bytes | None]]:
    """Yield the path of every scene there ever was, with the content of its file; None if it must not exist."""
    current = {scene.slug: left_of(scene, _forgotten(tx, scene)) for scene in listed(tx)}
    for slug in tx.column("SELECT DISTINCT slug FROM scene WHERE space = :space ORDER BY slug"):
        yield f"scenes/{slug}.md", files.scene_file(current[slug]) if slug in current else None


def _forgotten(tx: Transaction, scene: Scene) -> set[str]:
    numbers = numbers_of(scene.atoms, "a")
    sql = f"SELECT id FROM atom WHERE space = :space AND tombstone IS NOT NULL AND id IN ({marks(numbers)})"
    return {f"a{number}" for number in tx.column(sql, *numbers)}


def _version(tx: Transaction, slug: str) -> Scene | None:
    row = tx.one(f"{_NEWEST} AND slug = ?", slug)
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
