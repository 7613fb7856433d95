"""The pages that stages write, and their versions: scenes (layer L2) and the page about the user, the persona (L3).

The rows are authoritative. Every change, also a deletion, adds a version; only a purge changes versions. The files of
scenes are copies: every change marks them as outdated, and they are rewritten from the rows after the commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import assert_never

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.core.types import PersonaVersion, Scene
from mcp_memory.store import files
from mcp_memory.store.citations import scene_without
from mcp_memory.store.sql import job_rows, row_codec
from mcp_memory.store.sql.transaction import Transaction, Value, numbers_of, to_ms
from mcp_memory.store.values import Conflict, PersonaPage, SceneChanges, SceneEdit

_NEWEST = "r.version = (SELECT max(version) FROM scene WHERE space = r.space AND slug = r.slug)"


def change_scenes(tx: Transaction, job: int | None, changes: SceneChanges, *, now: datetime) -> None:
    if job is not None:
        job_rows.advance_stage(tx, "scenes", changes.upto, now=now)
    if changes.wanted is not None:
        job_rows.request_stage(tx, "persona", changes.wanted)
    for edit in changes.edits:
        _insert_scene(tx, edit, job=job, now=now)
    if changes.edits:
        tx.touch("persona", *(f"scene:{edit.slug}" for edit in changes.edits))
    write_scene_files(tx)


def write_scene_files(tx: Transaction) -> None:
    """Mark the files of all scenes as outdated. After the commit they are rewritten without forgotten words."""
    tx.files.outdate(*map(scene_path, _slugs(tx)))


def _insert_scene(tx: Transaction, edit: SceneEdit, *, job: int | None, now: datetime) -> None:
    newest = _newest_version(tx, safe_name(edit.slug, what="name of a scene"))
    is_current = edit.slug in {scene.slug for scene in scenes(tx)}
    if edit.version is not None and (newest is None or newest.version != edit.version):
        raise Conflict(f"{edit.slug} was rewritten in the meantime.")
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
    scene = Scene(
        slug=edit.slug,
        version=newest.version + 1 if newest else 1,
        action=edit.action,
        title=edit.title or (newest.title if newest else edit.slug),
        summary=edit.summary,
        body=edit.body,
        heat=edit.heat,
        atoms=tuple(edit.atoms),
        entities=tuple(edit.entities),
        reason=edit.reason,
        created=newest.created if newest and goes_on else now,
        updated=now,
    )
    tx.insert("scene", **row_codec.columns_of(tx, scene), work=job)


def scenes(tx: Transaction) -> list[Scene]:
    """Return current scenes, which are neither deleted nor completely forgotten, hottest first."""
    if not tx.has_any("scene"):
        return []
    return list(tx.once("scenes", ["current"], lambda _: {"current": _scenes(tx, "1 = 1")})["current"])


def _scenes(tx: Transaction, which: str, *values: Value) -> list[Scene]:
    which = f"{_NEWEST} AND r.action <> 'delete' AND {which} ORDER BY r.heat DESC, r.at DESC, r.slug"
    all_scenes = list(row_codec.rows(tx, Scene, which, *values))
    gone = _forgotten_atoms(tx, all_scenes)
    return [scene for scene in all_scenes if not scene.atoms or not gone.issuperset(scene.atoms)]


def scene_versions(tx: Transaction, slug: str) -> list[Scene]:
    """Return all versions of a scene, the newest first; empty for an unknown slug."""
    return list(row_codec.rows(tx, Scene, "r.slug = ? ORDER BY r.version DESC", slug))


def scene_path(slug: str) -> str:
    return f"scenes/{slug}.md"


def scene_files(tx: Transaction) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of the file of every current scene, without forgotten words."""
    current = scenes(tx)
    gone = _forgotten_atoms(tx, current)
    for scene in sorted(current, key=lambda scene: scene.slug):
        yield scene_path(scene.slug), files.scene_file(scene_without(scene, gone))


def scene_file(tx: Transaction, slug: str) -> bytes | None:
    """Return the content of the file of a scene, without forgotten words; None if no current scene has this slug."""
    current = _scenes(tx, "r.slug = ?", slug)
    return files.scene_file(scene_without(current[0], _forgotten_atoms(tx, current))) if current else None


def _slugs(tx: Transaction) -> list[str]:
    """Return the slugs of all scenes that ever existed."""
    return tx.column("SELECT DISTINCT slug FROM scene WHERE space = :space ORDER BY slug")


def _forgotten_atoms(tx: Transaction, scenes: Sequence[Scene]) -> set[str]:
    """Return the ids of those atoms of scenes that are forgotten."""
    numbers = sorted({number for scene in scenes for number in numbers_of(scene.atoms, "a")})
    sql = "SELECT id FROM atom WHERE space = :space AND tombstone IS NOT NULL AND id IN ({})"
    return {f"a{number}" for (number,) in tx.among(sql, numbers)}


def _newest_version(tx: Transaction, slug: str) -> Scene | None:
    return next(row_codec.rows(tx, Scene, f"{_NEWEST} AND r.slug = ?", slug), None)


# --- the persona ------------------------------------------------------------------------------------


PERSONA_FILE = "persona.md"


def persona(tx: Transaction) -> PersonaVersion | None:
    """Return the current page, or None if there is no page yet."""
    return tx.once("persona", ["newest"], lambda _: dict(zip(["newest"], _personas(tx, "LIMIT 1"), strict=False))).get(
        "newest"
    )


def persona_versions(tx: Transaction) -> list[PersonaVersion]:
    """Return all versions of the page, the newest first."""
    return _personas(tx)


def _personas(tx: Transaction, limit: str = "") -> list[PersonaVersion]:
    if not tx.has_any("persona"):
        return []
    return list(row_codec.rows(tx, PersonaVersion, f"1 = 1 ORDER BY r.version DESC {limit}"))


def put_persona(tx: Transaction, job: int | None, page: PersonaPage, *, now: datetime) -> int:
    """Store a page as the next version and return its number. With a job, also move the cursor of the stage.

    Without a job, the page is not stored over a page that a model wrote, nor with the text of the newest version; the
    number of that version is returned.
    """
    if job is not None:
        job_rows.advance_stage(tx, "persona", page.upto, now=now)
    elif (newest := persona(tx)) is not None and (newest.by_model or newest.text == page.text):
        return newest.version
    version: int = tx.get("SELECT coalesce(max(version), 0) + 1 FROM persona WHERE space = :space")
    tx.insert(
        "persona",
        version=version,
        text=page.text,
        at=to_ms(now),
        reason=page.reason,
        work=job,
    )
    tx.touch("persona")
    return version


def is_persona_written(tx: Transaction, page: str) -> bool:
    """Return whether the file of the persona page has this content."""
    try:
        return tx.files.read(PERSONA_FILE) == page.encode("utf-8", "backslashreplace")
    except OSError:  # not readable: writing it raises the error
        return False


def write_persona_file(tx: Transaction, page: str) -> None:
    tx.files.write(PERSONA_FILE, page.encode("utf-8", "backslashreplace"))
