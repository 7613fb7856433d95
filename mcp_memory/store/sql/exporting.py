"""Exports the rows of a space in a fixed order, in the form that `store.export_model` defines.

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
from mcp_memory.store import export_model as model
from mcp_memory.store.citations import scene_without, without_atoms
from mcp_memory.store.sql import canvas_rows, entity_rows, evidence_rows, page_rows
from mcp_memory.store.sql.quarantine_rows import THERE
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, from_ms

# Only the numbers are sorted, so that the sort does not keep the words of a million rows in memory.
_IN_ORDER = "(SELECT id FROM {} WHERE space = :space AND tombstone IS NULL AND purged_at IS NULL)"
_ELSEWHERE = re.compile(r".+:(?P<id>x\d{1,18})@(?P<at>\d{1,14})", re.ASCII | re.DOTALL)

Take = Callable[[str, model.ExportedRow], None]
Origins = Callable[[str], tuple[str, ...]]


def home_id(tx: HomeTransaction) -> str:
    """Return the id of this memory in its exports."""
    return tx.get("SELECT uuid FROM home")


def origin(tx: Transaction) -> model.Origin:
    return model.Origin(home_id(tx), tx.name)


def export(tx: Transaction, take: Take) -> None:
    """Call `take` with each row of a space, kind by kind."""
    if not tx.space:
        return
    origins = _origins(tx)
    for rows in (_refs, _turns, _entities, _atoms, _reviews, _records, _canvases, _scenes, _personas, _citations):
        for row in rows(tx, origins):
            take(tx.name, row)
    for row in (*_sessions(tx), *_stages(tx), *_tombstones(tx, origins)):
        take(tx.name, row)


def _origins(tx: Transaction) -> Origins:
    """Return a function that returns the origins of a row by its id; only imported rows have any."""
    if tx.one("SELECT 1 FROM origin WHERE space = :space LIMIT 1") is None:
        return lambda id: ()
    sql = "SELECT origin FROM origin WHERE space = :space AND id = ? ORDER BY origin"
    return lambda id: tuple(tx.column(sql, id))


def _refs(tx: Transaction, origins: Origins) -> Iterator[model.ExportedRef]:
    for id, path, tool, arguments, call, session, timestamp, size, digest, content_type, masked in tx.each(
        "SELECT id, path, tool, arguments, tool_call_id, session, timestamp, bytes, sha256, content_type, masked"
        " FROM ref WHERE space = :space AND tombstone IS NULL AND purged_at IS NULL ORDER BY timestamp, id"
    ):
        yield model.ExportedRef(
            id=id,
            file=path,
            tool=tool,
            arguments=json.loads(arguments),
            tool_call_id=call,
            session=session,
            timestamp=datetime.fromisoformat(timestamp),
            size=size,
            sha256=digest,
            content_type=content_type,
            masked=tuple((start, end, kind) for start, end, kind in json.loads(masked or "[]")),
            origins=origins(id),
        )


def _turns(tx: Transaction, origins: Origins) -> Iterator[model.ExportedTurn]:
    for number, session, role, name, content, said_at, dated, learned, client, digest, statement in tx.each(
        "SELECT t.id, s.name, t.role, t.name, t.content, t.said_at, t.dated, t.learned_at, t.client_id, t.sha256,"
        " t.told FROM turn t JOIN session s ON s.space = t.space AND s.id = t.session"
        f" WHERE t.space = :space AND t.id IN {_IN_ORDER.format('turn')} ORDER BY t.id"
    ):
        yield model.ExportedTurn(
            id=f"t{number}",
            session=session,
            role=role,
            name=name,
            content=content,
            said_at=from_ms(said_at),
            dated=bool(dated),
            learned_at=from_ms(learned),
            client_id=client,
            sha256=bytes(digest).hex(),
            told=None if statement is None else json.loads(statement),
            origins=origins(f"t{number}"),
        )


def _entities(tx: Transaction, origins: Origins) -> Iterator[model.ExportedEntity]:
    rows = tx.all(f"SELECT c.id, c.name FROM entity_name c WHERE {entity_rows.KNOWN} ORDER BY c.id")
    for number, name in rows:
        yield model.ExportedEntity(name=name, aliases=tuple(entity_rows.aliases_of(tx, [number])[number]))


def _atoms(tx: Transaction, origins: Origins) -> Iterator[model.ExportedAtom]:
    for number, kind, text, priority, sure, source, since, until, learned, by, why, work, *more in tx.each(
        "SELECT r.id, r.kind, r.text, r.priority, r.confidence, r.source, r.valid_from, r.valid_to, r.learned_at,"
        " b.id, r.closed_because, r.work, r.label, r.reader, f.entity, f.relation, f.value, f.single_valued"
        " FROM atom r LEFT JOIN fact f ON f.space = r.space AND f.atom = r.id"
        " LEFT JOIN atom b ON b.space = r.space AND b.id = r.superseded_by AND b.tombstone IS NULL"
        f" WHERE r.space = :space AND r.id IN {_IN_ORDER.format('atom')} ORDER BY r.id"
    ):
        label, reader, *fact = more
        older = tx.column(
            "SELECT id FROM atom WHERE space = :space AND superseded_by = ? AND tombstone IS NULL ORDER BY id", number
        )
        quotes = evidence_rows.of_atoms(tx, [number])[number]
        yield model.ExportedAtom(
            id=f"a{number}",
            kind=kind,
            text=text,
            priority=priority,
            confidence=sure,
            source=source,
            valid_from=from_ms(since),
            valid_to=_moment(until),
            learned_at=from_ms(learned),
            superseded_by=None if by is None else f"a{by}",
            supersedes=tuple(f"a{id}" for id in older),
            closed_because=why,
            by_model=work is not None,
            fact=None if fact[0] is None else _fact(*fact),
            entities=entity_rows.names_of_atoms(tx, [number]).get(number, ()),
            evidence=tuple(model.ExportedQuote(quote.turn, *quote.span, quote.quote) for quote in quotes),
            label=label,
            reader=reader,
            origins=origins(f"a{number}"),
        )


def _fact(entity: str, relation: str, value: str, single: int) -> model.ExportedFact:
    return model.ExportedFact(entity=entity, relation=relation, value=value, single_valued=bool(single))


def _reviews(tx: Transaction, origins: Origins) -> Iterator[model.ExportedReview]:
    for id, reasons, at, verdict, reviewed in tx.all(
        "SELECT h.id, h.reasons, h.at, h.verdict, h.reviewed_at FROM held h WHERE h.space = :space"
        f" AND {THERE.format(id='h.id', space='h.space')} ORDER BY h.id"
    ):
        yield model.ExportedReview(
            id=id, reasons=reasons, at=from_ms(at), verdict=verdict, reviewed_at=_moment(reviewed)
        )


# --- tasks ------------------------------------------------------------------------------------------


def _records(tx: Transaction, origins: Origins) -> Iterator[model.ExportedRecord]:
    """Yield all records. Those of forgotten results have no words."""
    gone = {id for id, *_ in tx.each("SELECT id FROM ref WHERE space = :space AND tombstone IS NOT NULL")}
    for number, canvas, node, session, at, call, summary, path, call_id, score, raw, kept, ref, by, step in tx.each(
        "SELECT r.id, r.canvas, r.node, s.name, r.timestamp, r.tool_call, r.summary, r.result_ref, r.tool_call_id,"
        " r.score, r.tokens_raw, r.tokens_kept, r.ref, r.summary_by, r.step FROM record r"
        " JOIN session s ON s.space = r.space AND s.id = r.session WHERE r.space = :space ORDER BY r.id"
    ):
        is_gone = ref in gone
        yield model.ExportedRecord(
            id=f"k{number}",
            canvas=canvas,
            node_id=node,
            session=session,
            timestamp=datetime.fromisoformat(at),
            tool_call=FORGOTTEN if is_gone else call,
            summary=FORGOTTEN if is_gone else summary,
            result_ref="" if is_gone else path,
            tool_call_id=call_id,
            score=score,
            tokens_raw=raw,
            tokens_kept=kept,
            ref=ref,
            summary_by=None if is_gone else by,
            step=None if is_gone else step,
            origins=origins(f"k{number}"),
        )


def _canvases(tx: Transaction, origins: Origins) -> Iterator[model.ExportedCanvas]:
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
        yield model.ExportedCanvas(
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


def _versions(tx: Transaction, number: int) -> Iterator[model.ExportedVersion]:
    for version, kind, detail, label, session, status, folded, updated, work, delta in tx.each(
        "SELECT v.version, v.kind, v.detail, v.label, s.name, v.status, v.folded, v.updated, v.work, v.delta"
        " FROM canvas_version v JOIN session s ON s.space = v.space AND s.id = v.session"
        " WHERE v.space = :space AND v.canvas = ? ORDER BY v.version",
        number,
    ):
        yield model.ExportedVersion(
            version=version,
            kind=kind,
            detail=_refs_only(detail) if kind == "forgotten" else detail,
            label=label,
            session=session,
            status=status,
            folded=bool(folded),
            updated=from_ms(updated),
            by_model=work is not None,
            delta=delta,
        )


def _refs_only(detail: str) -> str:
    """Return the detail of a version with only the ids of results: other ids mean nothing in another home."""
    return json.dumps([id for id in json.loads(detail) if id.startswith("r-")])


# --- pages ------------------------------------------------------------------------------------------


def _scenes(tx: Transaction, origins: Origins) -> Iterator[model.ExportedScene]:
    gone = _forgotten_atoms(tx)
    rows = tx.all("SELECT slug, version, work IS NOT NULL FROM scene WHERE space = :space ORDER BY slug, version")
    by_model = {(slug, version): bool(made) for slug, version, made in rows}
    for slug in dict.fromkeys(slug for slug, _ in by_model):
        for version in reversed(page_rows.scene_versions(tx, slug)):
            left = scene_without(version, gone)
            if version.atoms and not left.atoms:
                continue  # all of its words were forgotten
            yield model.ExportedScene(
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


def _personas(tx: Transaction, origins: Origins) -> Iterator[model.ExportedPersona]:
    """Yield the pages that models wrote, and the current page; all other versions only list explicit statements."""
    gone = _forgotten_atoms(tx)
    for version, text, at, reason, by_model in tx.all(
        "SELECT version, text, at, reason, work IS NOT NULL FROM persona p WHERE space = :space AND (work IS NOT NULL"
        " OR version = (SELECT max(version) FROM persona WHERE space = :space)) ORDER BY version"
    ):
        left = without_atoms(text, gone)
        yield model.ExportedPersona(
            version=version,
            text=left,
            at=from_ms(at),
            reason=(reason or "") if left == text else "",
            by_model=bool(by_model),
            origins=origins(f"p{version}"),
        )


def _forgotten_atoms(tx: Transaction) -> set[str]:
    return {f"a{n}" for n in tx.column("SELECT id FROM atom WHERE space = :space AND tombstone IS NOT NULL")}


def _citations(tx: Transaction, origins: Origins) -> Iterator[model.ExportedCitation]:
    for source, ref, first, last in tx.all(
        "SELECT c.source, c.ref, c.first_line, c.last_line FROM citation c"
        " JOIN ref r ON r.space = c.space AND r.id = c.ref AND r.tombstone IS NULL WHERE c.space = :space"
        f" AND {THERE.format(id='c.source', space='c.space')} ORDER BY c.source, c.ref, c.first_line"
    ):
        yield model.ExportedCitation(source=source, ref=ref, lines=(first, last) if first else None)


# --- progress of stages, and tombstones -------------------------------------------------------------


def _sessions(tx: Transaction) -> Iterator[model.ExportedSession]:
    """Yield each session with the last turn that was read.

    A turn that a waiting draft is based on, and all turns after it, count as unread, because drafts are not exported.
    """
    waiting = {quote["turn"] for atom in tx.column("SELECT atom FROM draft WHERE space = :space")
               for quote in json.loads(atom)["evidence"]}  # fmt: skip
    first_waiting: dict[int, int] = {}
    for session, position in tx.among(
        "SELECT session, position FROM turn WHERE space = :space AND id IN ({})", (int(turn[1:]) for turn in waiting)
    ):
        first_waiting[session] = min(position, first_waiting.get(session, position))
    for number, name, canvas, position, batches, scene in tx.all(
        "SELECT s.id, s.name, s.active_canvas, p.position, p.batches, p.scene FROM session s"
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
        yield model.ExportedSession(
            name=name, read=None if read is None else f"t{read}", batches=batches or 0, scene=scene, canvas=canvas
        )


def _stages(tx: Transaction) -> Iterator[model.ExportedProgress]:
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
            yield model.ExportedProgress(stage=stage, upto=f"{prefix}{upto}")


def _tombstones(tx: Transaction, origins: Origins) -> Iterator[model.ExportedTombstone]:
    of = origin(tx)
    for number, at, reason, undone, purged in tx.all(
        "SELECT id, at, reason, undone_at, purged_at FROM tombstone WHERE space = :space ORDER BY id"
    ):
        yield model.ExportedTombstone(
            id=f"x{number}",
            at=from_ms(at),
            reason=reason,
            gone=() if undone is not None else tuple(_tombstone_origins(tx, number, of, origins)),
            undone_at=_moment(undone),
            purged_at=_moment(purged),
            origins=origins(f"x{number}"),
        )
    yield from sorted(_imported_tombstones(tx, origins), key=lambda tombstone: (tombstone.at, tombstone.origins))


def _imported_tombstones(tx: Transaction, origins: Origins) -> Iterator[model.ExportedTombstone]:
    """Yield imported tombstones that matched no row here or were undone elsewhere.

    A further store that imports the export may have the rows that they name.
    """
    for name, here in tx.all(
        "SELECT origin, id FROM origin WHERE space = :space AND id IN (?, ?)", model.NOTHING, model.UNDONE
    ):
        match = _ELSEWHERE.fullmatch(name)
        undone = here == model.UNDONE
        gone = () if undone else origins(model.gone_by(name))
        if match is not None and (gone or undone):
            at = from_ms(int(match["at"]))
            yield model.ExportedTombstone(
                id=match["id"],
                at=at,
                reason="",
                gone=gone,
                undone_at=at if undone else None,
                purged_at=None,
                origins=(name,),
            )


def _tombstone_origins(tx: Transaction, number: int, of: model.Origin, origins: Origins) -> Iterator[str]:
    for prefix, table in (("t", "turn"), ("a", "atom")):
        for id, learned in tx.all(
            f"SELECT id, learned_at FROM {table} WHERE space = :space AND tombstone = ? ORDER BY id", number
        ):
            yield model.origin_of(of, f"{prefix}{id}", from_ms(learned))
            yield from origins(f"{prefix}{id}")
    for id in tx.column("SELECT id FROM ref WHERE space = :space AND tombstone = ? ORDER BY id", number):
        yield model.origin_of(of, id)
        yield from origins(id)
    for tombstone in origins(f"x{number}"):  # imported: it took more rows there than exist here
        yield from origins(model.gone_by(tombstone))


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)
