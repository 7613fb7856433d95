"""Exports the rows of a space in a fixed order, in the form that `store.row_types` defines.

Forgotten rows are left out; their tombstones name them. Pages are exported without the lines that cite forgotten rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from mcp_memory.core.types import FORGOTTEN, Stage
from mcp_memory.store import deltas
from mcp_memory.store.citations import scene_without, without_atoms
from mcp_memory.store.row_types import (
    NOTHING,
    UNDONE,
    AtomRow,
    CanvasHistory,
    CitationRow,
    EntityRow,
    FactRow,
    FeedbackRow,
    Origin,
    PersonaRow,
    QuoteRow,
    RecordRow,
    RefRow,
    ReviewRow,
    Row,
    SceneRow,
    SessionRow,
    StageRow,
    TombstoneRow,
    TurnRow,
    VersionRow,
    gone_by,
    origin_of,
)
from mcp_memory.store.sql import canvas_rows, entity_rows, evidence_rows, page_rows, row_codec
from mcp_memory.store.sql.quarantine_rows import THERE
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, from_ms, named_rows, number_of

# Only the numbers are sorted, so that the sort does not keep the words of a million rows in memory.
_IN_ORDER = "(SELECT id FROM {} WHERE space = :space AND tombstone IS NULL AND purged_at IS NULL)"
_ELSEWHERE = re.compile(r".+:(?P<id>x\d{1,18})@(?P<at>\d{1,14})", re.ASCII | re.DOTALL)

Take = Callable[[str, Row], None]
Origins = Callable[[str], tuple[str, ...]]


def home_id(tx: HomeTransaction) -> str:
    """Return the id of this memory in its exports."""
    return tx.get("SELECT uuid FROM home")


def origin(tx: Transaction) -> Origin:
    return Origin(home_id(tx), tx.name)


def export(tx: Transaction, take: Take) -> None:
    """Call `take` with the name of a space and each of its rows, kind by kind."""
    if not tx.space:
        return
    origins = _origins(tx)
    of_talk, of_tasks = (_refs, _turns, _entities, _atoms, _reviews, _feedback), (_records, _canvases)
    for rows in (*of_talk, *of_tasks, _scenes, _personas, _citations):
        for row in rows(tx, origins):
            take(tx.name, row)
    for row in (*_sessions(tx), *_stages(tx), *_tombstones(tx, origins)):
        take(tx.name, row)


def _origins(tx: Transaction) -> Origins:
    """Return a function that returns the origins of a row by its id; only imported rows have origins."""
    if tx.one("SELECT 1 FROM origin WHERE space = :space LIMIT 1") is None:
        return lambda id: ()
    sql = "SELECT origin FROM origin WHERE space = :space AND id = ? ORDER BY origin"
    return lambda id: tuple(tx.column(sql, id))


def _refs(tx: Transaction, origins: Origins) -> Iterator[RefRow]:
    order = "r.tombstone IS NULL AND r.purged_at IS NULL ORDER BY r.timestamp, r.id"
    for fields in row_codec.read(tx, RefRow, order):
        yield RefRow(**fields, origins=origins(fields["id"]))


def _turns(tx: Transaction, origins: Origins) -> Iterator[TurnRow]:
    for fields in row_codec.read(tx, TurnRow, f"r.id IN {_IN_ORDER.format('turn')} ORDER BY r.id"):
        yield TurnRow(**fields, origins=origins(fields["id"]))


def _entities(tx: Transaction, origins: Origins) -> Iterator[EntityRow]:
    rows = tx.all(f"SELECT c.id, c.name FROM entity_name c WHERE {entity_rows.KNOWN} ORDER BY c.id")
    for number, name in rows:
        yield EntityRow(name=name, aliases=tuple(entity_rows.aliases_of(tx, [number])[number]))


def _atoms(tx: Transaction, origins: Origins) -> Iterator[AtomRow]:
    gone = _forgotten_atoms(tx)
    for fields in row_codec.read(tx, AtomRow, f"r.id IN {_IN_ORDER.format('atom')} ORDER BY r.id"):
        id, number = fields["id"], number_of(fields["id"], "a")
        older = tx.column(
            "SELECT id FROM atom WHERE space = :space AND superseded_by = ? AND tombstone IS NULL ORDER BY id", number
        )
        if fields["superseded_by"] in gone:
            fields["superseded_by"] = None
        fact = next(row_codec.read(tx, FactRow, "r.atom = ?", number), None)
        quotes = evidence_rows.of_atoms(tx, [number])[number]
        yield AtomRow(
            **fields,
            supersedes=tuple(named_rows(older, "a")),
            fact=None if fact is None else FactRow(**fact),
            entities=entity_rows.names_of_atoms(tx, [number]).get(number, ()),
            evidence=tuple(QuoteRow(quote.turn, *quote.span, quote.quote) for quote in quotes),
            origins=origins(id),
        )


def _reviews(tx: Transaction, origins: Origins) -> Iterator[ReviewRow]:
    yield from row_codec.rows(tx, ReviewRow, f"{THERE.format(id='r.id', space='r.space')} ORDER BY r.id")


def _feedback(tx: Transaction, origins: Origins) -> Iterator[FeedbackRow]:
    yield from row_codec.rows(tx, FeedbackRow, f"{THERE.format(id='r.target', space='r.space')} ORDER BY r.id")


# --- tasks ------------------------------------------------------------------------------------------


def _records(tx: Transaction, origins: Origins) -> Iterator[RecordRow]:
    """Yield all records; records of forgotten results are without their words."""
    gone = {id for id, *_ in tx.each("SELECT id FROM ref WHERE space = :space AND tombstone IS NOT NULL")}
    for fields in row_codec.read(tx, RecordRow, "1 = 1 ORDER BY r.id"):
        row = RecordRow(**fields, origins=origins(fields["id"]))
        if row.ref in gone:
            row = replace(row, tool_call=FORGOTTEN, summary=FORGOTTEN, result_ref="", summary_by=None, step=None)
        yield row


def _canvases(tx: Transaction, origins: Origins) -> Iterator[CanvasHistory]:
    """Yield the canvases with their versions.

    If words of a canvas were forgotten, only its last version has a text.
    """
    for row in sorted(canvas_rows.list_canvases(tx, limit=-1), key=lambda canvas: canvas.number):
        first: str | None = tx.get(
            "SELECT timestamp FROM record WHERE space = :space AND canvas = ? ORDER BY id LIMIT 1", row.number
        )
        groups = canvas_rows.groups_text(row.groups)
        gone = tx.column(
            "SELECT f.tombstone IS NOT NULL FROM record r JOIN ref f ON f.space = r.space AND f.id = r.ref"
            " WHERE r.space = :space AND r.canvas = ?",
            row.number,
        )
        versions = tuple(_versions(tx, row.number))
        if (any(gone) or row.label == FORGOTTEN) and versions:
            whole = deltas.delta(None, canvas_rows.document(groups, row.text))
            bare = [replace(version, delta=None, label=row.label) for version in versions]
            versions = (*bare[:-1], replace(bare[-1], delta=whole))
        yield CanvasHistory(
            number=row.number,
            label=row.label,
            session=row.session,
            begun=row.updated if first is None else datetime.fromisoformat(first),
            text=row.text,
            status=row.status,
            folded=row.folded,
            groups=json.loads(groups),
            updated=row.updated,
            versions=versions,
            origins=origins(f"c{row.number}"),
        )


def _versions(tx: Transaction, number: int) -> Iterator[VersionRow]:
    for fields in row_codec.read(tx, VersionRow, "r.canvas = ? ORDER BY r.version", number):
        if fields["kind"] == "forgotten":
            fields["detail"] = _refs_only(fields["detail"])
        yield VersionRow(**fields)


def _refs_only(detail: str) -> str:
    """Return the detail of a version with only the ids of results, because other ids mean nothing in another home."""
    return json.dumps([id for id in json.loads(detail) if id.startswith("r-")])


# --- pages ------------------------------------------------------------------------------------------


def _scenes(tx: Transaction, origins: Origins) -> Iterator[SceneRow]:
    gone = _forgotten_atoms(tx)
    rows = tx.all("SELECT slug, version, work IS NOT NULL FROM scene WHERE space = :space ORDER BY slug, version")
    by_model = {(slug, version): bool(made) for slug, version, made in rows}
    for slug in dict.fromkeys(slug for slug, _ in by_model):
        for version in reversed(page_rows.scene_versions(tx, slug)):
            left = scene_without(version, gone)
            if version.atoms and not left.atoms:
                continue  # all of its words were forgotten
            yield SceneRow(
                slug=slug,
                version=version.version,
                action=version.action,
                title=left.title,
                summary=left.summary,
                body=left.body,
                heat=version.heat,
                atoms=left.atoms,
                entities=left.entities,
                reason=version.reason if left == version else "",
                created=version.created,
                at=version.updated,
                by_model=by_model[slug, version.version],
                origins=origins(f"s:{slug}/{version.version}"),
            )


def _personas(tx: Transaction, origins: Origins) -> Iterator[PersonaRow]:
    """Yield the pages that models wrote, and the current page; all other versions only list explicit statements."""
    gone = _forgotten_atoms(tx)
    newest = "(SELECT max(version) FROM persona WHERE space = :space)"
    which = f"(r.work IS NOT NULL OR r.version = {newest}) ORDER BY r.version"
    for fields in row_codec.read(tx, PersonaRow, which):
        row = PersonaRow(**fields, origins=origins(f"p{fields['version']}"))
        text = without_atoms(row.text, gone)
        yield row if text == row.text else replace(row, text=text, reason="")


def _forgotten_atoms(tx: Transaction) -> set[str]:
    return {f"a{n}" for n in tx.column("SELECT id FROM atom WHERE space = :space AND tombstone IS NOT NULL")}


def _citations(tx: Transaction, origins: Origins) -> Iterator[CitationRow]:
    for source, ref, first, last in tx.all(
        "SELECT c.source, c.ref, c.first_line, c.last_line FROM citation c"
        " JOIN ref r ON r.space = c.space AND r.id = c.ref AND r.tombstone IS NULL WHERE c.space = :space"
        f" AND {THERE.format(id='c.source', space='c.space')} ORDER BY c.source, c.ref, c.first_line"
    ):
        yield CitationRow(source=source, ref=ref, lines=(first, last) if first else None)


# --- progress of stages, and tombstones -------------------------------------------------------------


def _sessions(tx: Transaction) -> Iterator[SessionRow]:
    """Yield each session that has turns or records, with the last turn that the extraction has read.

    A turn that a waiting draft is based on, and all turns after it, count as unread, because drafts are not exported.
    """
    waiting = {quote["turn"] for atom in tx.column("SELECT atom FROM draft WHERE space = :space")
               for quote in json.loads(atom)["evidence"]}  # fmt: skip
    first_waiting: dict[int, int] = {}
    for session, position in tx.among(
        "SELECT session, position FROM turn WHERE space = :space AND id IN ({})", (int(turn[1:]) for turn in waiting)
    ):
        first_waiting[session] = min(position, first_waiting.get(session, position))
    for number, name, canvas, project, client, position, batches, scene in tx.all(
        "SELECT s.id, s.name, s.active_canvas, s.project, s.client, p.position, p.batches, p.scene FROM session s"
        " LEFT JOIN progress p ON p.space = s.space AND p.session = s.id WHERE s.space = :space AND ("
        "  EXISTS (SELECT 1 FROM turn t WHERE t.space = s.space AND t.session = s.id AND t.tombstone IS NULL) OR"
        "  EXISTS (SELECT 1 FROM record r WHERE r.space = s.space AND r.session = s.id)) ORDER BY s.id"
    ):
        read = None
        if position is not None:
            read = tx.get(
                "SELECT id FROM turn WHERE space = :space AND session = ? AND tombstone IS NULL AND position < ?"
                " ORDER BY position DESC LIMIT 1",
                *(number, min(position, first_waiting.get(number, position))),
            )
        yield SessionRow(
            name=name,
            read=None if read is None else f"t{read}",
            batches=batches or 0,
            scene=scene,
            canvas=canvas,
            project=project,
            client=client,
        )


def _stages(tx: Transaction) -> Iterator[StageRow]:
    stages: tuple[tuple[Stage, str, str], ...] = (
        ("persona", "a", "atom"), ("read", "t", "turn"), ("scenes", "a", "atom"),
    )  # fmt: skip
    for stage, prefix, table in stages:
        upto = tx.get(
            f"SELECT (SELECT max(r.id) FROM {table} r WHERE r.space = c.space AND r.id <= c.position"
            " AND r.tombstone IS NULL) FROM stage_cursor c WHERE c.space = :space AND c.stage = ?",
            stage,
        )
        if upto is not None:
            yield StageRow(stage=stage, upto=f"{prefix}{upto}")


def _tombstones(tx: Transaction, origins: Origins) -> Iterator[TombstoneRow]:
    of = origin(tx)
    for fields in row_codec.read(tx, TombstoneRow, "1 = 1 ORDER BY r.id"):
        id, is_undone = fields["id"], fields["undone_at"] is not None
        gone = () if is_undone else tuple(_tombstone_origins(tx, number_of(id, "x"), of, origins))
        yield TombstoneRow(**fields, gone=gone, origins=origins(id))
    yield from sorted(_imported_tombstones(tx, origins), key=lambda tombstone: (tombstone.at, tombstone.origins))


def _imported_tombstones(tx: Transaction, origins: Origins) -> Iterator[TombstoneRow]:
    """Yield imported tombstones that matched no row here or were undone elsewhere.

    They are exported because another store that imports the export may have the rows that they name.
    """
    for name, here in tx.all("SELECT origin, id FROM origin WHERE space = :space AND id IN (?, ?)", NOTHING, UNDONE):
        match = _ELSEWHERE.fullmatch(name)
        undone = here == UNDONE
        gone = () if undone else origins(gone_by(name))
        if match is not None and (gone or undone):
            at = from_ms(int(match["at"]))
            yield TombstoneRow(
                id=match["id"],
                at=at,
                reason="",
                gone=gone,
                undone_at=at if undone else None,
                purged_at=None,
                origins=(name,),
            )


def _tombstone_origins(tx: Transaction, number: int, of: Origin, origins: Origins) -> Iterator[str]:
    for prefix, table in (("t", "turn"), ("a", "atom")):
        for id, learned in tx.all(
            f"SELECT id, learned_at FROM {table} WHERE space = :space AND tombstone = ? ORDER BY id", number
        ):
            yield origin_of(of, f"{prefix}{id}", from_ms(learned))
            yield from origins(f"{prefix}{id}")
    for id in tx.column("SELECT id FROM ref WHERE space = :space AND tombstone = ? ORDER BY id", number):
        yield origin_of(of, id)
        yield from origins(id)
    for tombstone in origins(f"x{number}"):  # imported: it took more rows there than exist here
        yield from origins(gone_by(tombstone))
