"""Scenes and the persona as they come in, version by version, naming the atoms as they are called here."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from mcp_memory.store import carried
from mcp_memory.store.citations import cited, renamed, without
from mcp_memory.store.sql import scenes
from mcp_memory.store.sql.rows import to_ms, touch
from mcp_memory.store.sqlite.moving.arrivals.desk import GONE, Desk

__all__ = ["persona", "scene"]


def scene(desk: Desk, versions: Sequence[carried.Scene]) -> None:
    """Take in the versions of a page. Where there is another of its name, it gets a name of its own.

    A page that was written here since stays; what came from elsewhere follows only where it is newer.
    """
    if desk.is_own or not versions:
        return
    known = {row.version: desk.find(_id(row), row.at, row.origins) for row in versions}
    found = next((name for name in known.values() if name), None)
    slug = _free(desk, versions[0].slug) if found is None else found.removeprefix("s:").rpartition("/")[0]
    desk.names[f"s:{versions[0].slug}"] = slug
    new = [row for row in versions if known[row.version] is None]
    newest, at = _newest(desk, slug)
    own = newest is not None and newest not in known.values()
    if own and any(to_ms(row.at) <= at for row in new):
        desk.left.append(f"Scene {slug} was written anew here; its earlier versions from elsewhere were left out.")
        new = [row for row in new if to_ms(row.at) > at]
    for row in new:
        _insert(desk, row, slug)
    desk.stored += len(new)
    desk.known += len(versions) - len(new)
    if new:
        touch(desk.con, desk.number, "persona", f"scene:{slug}")
        scenes.write_files(desk.con, desk.folder, desk.space)


def _id(row: carried.Scene) -> str:
    return f"s:{row.slug}/{row.version}"


def _free(desk: Desk, slug: str) -> str:
    """Return a name that no page has, or had."""
    name, number = slug, 1
    while desk.con.execute("SELECT 1 FROM scene WHERE space = ? AND slug = ?", (desk.number, name)).get:
        number += 1
        name = f"{slug}-{number}"
    return name


def _newest(desk: Desk, slug: str) -> tuple[str | None, int]:
    """Return the id of the newest version, and when it was written, in ms."""
    row = desk.con.execute(
        "SELECT version, at FROM scene WHERE space = ? AND slug = ? ORDER BY version DESC LIMIT 1", (desk.number, slug)
    ).fetchone()
    return (None, 0) if row is None else (f"s:{slug}/{row[0]}", int(row[1]))


def _insert(desk: Desk, row: carried.Scene, slug: str) -> None:
    version: int = desk.con.execute(
        "INSERT INTO scene (space, slug, version, action, title, summary, body, heat, atoms, entities, reason, created,"
        " at, work) SELECT ?1, ?2, coalesce(max(version), 0) + 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13"
        " FROM scene WHERE space = ?1 AND slug = ?2 RETURNING version",
        (
            desk.number,
            slug,
            row.action,
            row.title,
            row.summary,
            _linked(desk, _text(desk, row.body)),
            row.heat,
            json.dumps([name for atom in row.atoms if (name := desk.name(atom)) != GONE]),
            json.dumps(list(row.entities), ensure_ascii=False),
            row.reason,
            to_ms(row.created),
            to_ms(row.at),
            desk.work("scenes") if row.by_model else None,
        ),
    ).get
    desk.note(_id(row), row.at, row.origins, f"s:{slug}/{version}")


def persona(desk: Desk, versions: Sequence[carried.Persona]) -> None:
    """Take in what models wrote of the user, unless this space has such a page of its own."""
    rows = [row for row in versions if row.by_model]
    if desk.is_own or not rows:
        return
    known = {row.version: desk.find(f"p{row.version}", row.at, row.origins) for row in rows}
    new = [row for row in rows if known[row.version] is None]
    desk.known += len(rows) - len(new)
    held = desk.con.execute(
        "SELECT version, work FROM persona WHERE space = ? ORDER BY version DESC LIMIT 1", (desk.number,)
    ).fetchone()
    if new and held is not None and held[1] is not None and f"p{held[0]}" not in known.values():
        desk.left.append("The persona page stays the one of this space; the next distilling tells what came in too.")
        return
    for row in new:
        version: int = desk.con.execute(
            "INSERT INTO persona (space, version, text, at, reason, work) SELECT ?1, coalesce(max(version), 0) + 1, ?2,"
            " ?3, ?4, ?5 FROM persona WHERE space = ?1 RETURNING version",
            (desk.number, _text(desk, row.text), to_ms(row.at), row.reason, desk.work("persona")),
        ).get
        desk.note(f"p{row.version}", row.at, row.origins, f"p{version}")
    desk.stored += len(new)
    if new:
        touch(desk.con, desk.number, "persona")


def _text(desk: Desk, text: str) -> str:
    """Return a page with the atoms that it names as they are called here, without what rests on none."""
    gone = [atom for atom in cited(text) if desk.name(atom) == GONE]
    left = without(text, gone)
    return renamed(left, {atom: desk.name(atom) for atom in cited(left)})


def _linked(desk: Desk, text: str) -> str:
    """Return a page whose links to other pages go where those are here."""
    moved = {old.removeprefix("s:"): new for old, new in desk.names.items() if old.startswith("s:")}
    changed = {old: new for old, new in moved.items() if old != new}
    if not changed:
        return text
    names = "|".join(map(re.escape, sorted(changed, key=len, reverse=True)))
    return re.sub(rf"\[\[({names})(?=[\]|])", lambda link: f"[[{changed[link[1]]}", text)
