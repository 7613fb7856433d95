"""What a space holds, row by row in a fixed order, as `store.carried` has it: the way out of a home.

What was forgotten is left out, and told by its tombstone. Pages that told it are given without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import apsw

from mcp_memory.store import carried
from mcp_memory.store.citations import without
from mcp_memory.store.forgotten import left_of
from mcp_memory.store.sql import canvases, entities, evidence_rows, scenes
from mcp_memory.store.sql.rows import from_ms, space_id, stands

__all__ = ["carry_out", "home_id", "source_of"]

# The numbers are sorted alone, so that the words of a million rows are not held in memory for it.
_IN_ORDER = "(SELECT id FROM {} WHERE space = ? AND tombstone IS NULL AND purged_at IS NULL)"

_OF_TOMBSTONE = re.compile(r".+:(?P<id>x\d{1,18})@(?P<at>\d{1,14})", re.ASCII | re.DOTALL)

Take = Callable[[str, carried.Row], None]


def home_id(con: apsw.Connection) -> str:
    """Return what this memory is called in what is exported from it."""
    return con.execute("SELECT uuid FROM home").get


def source_of(con: apsw.Connection, space: str) -> carried.From:
    return carried.From(home_id(con), space)


def carry_out(con: apsw.Connection, space: str, take: Take) -> None:
    """See `Store.carry_out`: hand over all rows of a space, each kind together."""
    number = space_id(con, space)
    if number is None:
        return
    known = _Origins(con, number)
    for rows in (_refs, _turns, _names, _atoms, _held, _records, _canvases, _scenes, _personas, _citations):
        for row in rows(con, number, known):
            take(space, row)
    for row in (*_sessions(con, number), *_stages(con, number), *_tombstones(con, number, known.of)):
        take(space, row)


class _Origins:
    """What rows that came from elsewhere are known by."""

    def __init__(self, con: apsw.Connection, space: int) -> None:
        self.of = source_of(con, con.execute("SELECT name FROM space WHERE id = ?", (space,)).get)
        self._con, self._space = con, space
        self._any = con.execute("SELECT 1 FROM origin WHERE space = ? LIMIT 1", (space,)).get is not None

    def __call__(self, id: str) -> tuple[str, ...]:
        if not self._any:
            return ()
        rows = self._con.execute(
            "SELECT origin FROM origin WHERE space = ? AND id = ? ORDER BY origin", (self._space, id)
        )
        return tuple(str(origin) for (origin,) in rows)


def _refs(con: apsw.Connection, space: int, known: _Origins) -> Iterator[carried.Ref]:
    rows: Any = con.execute(
        "SELECT id, path, tool, arguments, tool_call_id, session, timestamp, bytes, sha256, content_type, masked"
        " FROM ref WHERE space = ? AND tombstone IS NULL AND purged_at IS NULL ORDER BY timestamp, id",
        (space,),
    )
    for id, path, tool, arguments, call, session, timestamp, size, digest, content_type, masked in rows:
        yield carried.Ref(
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
            origins=known(id),
        )


def _turns(con: apsw.Connection, space: int, known: _Origins) -> Iterator[carried.Turn]:
    rows: Any = con.execute(
        "SELECT t.id, s.name, t.role, t.name, t.content, t.said_at, t.dated, t.learned_at, t.client_id, t.sha256,"
        " t.told FROM turn t JOIN session s ON s.id = t.session"
        f" WHERE t.id IN {_IN_ORDER.format('turn')} ORDER BY t.id",
        (space,),
    )
    for number, session, role, name, content, said, dated, learned, client, digest, told in rows:
        yield carried.Turn(
            id=f"t{number}",
            session=session,
            role=role,
            name=name,
            content=content,
            said_at=from_ms(said),
            dated=bool(dated),
            learned_at=from_ms(learned),
            client_id=client,
            sha256=bytes(digest).hex(),
            told=None if told is None else json.loads(told),
            origins=known(f"t{number}"),
        )


def _names(con: apsw.Connection, space: int, _: _Origins) -> Iterator[carried.Entity]:
    rows: Any = con.execute(
        "SELECT c.name, (SELECT json_group_array(n.name ORDER BY n.id) FROM entity_name n"
        f" WHERE n.entity = c.id AND n.id <> c.id) FROM entity_name c WHERE {entities.KNOWN} ORDER BY c.id",
        (space,),
    )
    for name, aliases in rows:
        yield carried.Entity(name=name, aliases=tuple(json.loads(aliases)))


def _atoms(con: apsw.Connection, space: int, known: _Origins) -> Iterator[carried.Atom]:
    rows: Any = con.execute(
        "SELECT r.id, r.kind, r.text, r.priority, r.confidence, r.source, r.valid_from, r.valid_to, r.learned_at,"
        " (SELECT 'a' || b.id FROM atom b WHERE b.id = r.superseded_by AND b.tombstone IS NULL),"
        " (SELECT json_group_array('a' || o.id ORDER BY o.id) FROM atom o WHERE o.space = r.space"
        "  AND o.superseded_by = r.id AND o.tombstone IS NULL), r.closed_because,"
        f" r.work, {entities.OF_ATOM}, {evidence_rows.OF_ATOM}, f.entity, f.relation, f.value, f.single_valued"
        " FROM atom r LEFT JOIN fact f ON f.atom = r.id"
        f" WHERE r.id IN {_IN_ORDER.format('atom')} ORDER BY r.id",
        (space,),
    )
    for number, kind, text, priority, sure, source, since, until, learned, by, over, why, work, *rest in rows:
        names, words, *fact = rest
        yield carried.Atom(
            id=f"a{number}",
            kind=kind,
            text=text,
            priority=priority,
            confidence=sure,
            source=source,
            valid_from=from_ms(since),
            valid_to=_moment(until),
            learned_at=from_ms(learned),
            superseded_by=by,
            supersedes=tuple(json.loads(over)),
            closed_because=why,
            by_model=work is not None,
            fact=None if fact[0] is None else _fact(*fact),
            entities=tuple(json.loads(names)),
            evidence=tuple(carried.Words(one.turn, *one.span, one.quote) for one in evidence_rows.read(words)),
            origins=known(f"a{number}"),
        )


def _fact(entity: str, relation: str, value: str, single: int) -> carried.Fact:
    return carried.Fact(entity=entity, relation=relation, value=value, single_valued=bool(single))


def _held(con: apsw.Connection, space: int, _: _Origins) -> Iterator[carried.Held]:
    rows: Any = con.execute(
        "SELECT h.id, h.reasons, h.at, h.verdict, h.reviewed_at FROM held h WHERE h.space = ?"
        f" AND {stands('h.id')} ORDER BY h.id",
        (space,),
    )
    for id, reasons, at, verdict, reviewed in rows:
        yield carried.Held(id=id, reasons=reasons, at=from_ms(at), verdict=verdict, reviewed_at=_moment(reviewed))


# --- tasks ------------------------------------------------------------------------------------------


def _records(con: apsw.Connection, space: int, known: _Origins) -> Iterator[carried.Record]:
    rows: Any = con.execute(
        "SELECT r.id, r.canvas, r.node, s.name, r.timestamp, r.tool_call, r.summary, r.result_ref, r.tool_call_id,"
        " r.score, r.tokens_raw, r.tokens_kept, r.ref, r.summary_by, r.step FROM record r"
        " JOIN session s ON s.id = r.session WHERE r.space = ? ORDER BY r.id",
        (space,),
    )
    for number, canvas, node, session, at, call, summary, path, call_id, score, raw, kept, ref, by, step in rows:
        yield carried.Record(
            id=f"k{number}",
            canvas=canvas,
            node_id=node,
            session=session,
            timestamp=datetime.fromisoformat(at),
            tool_call=call,
            summary=summary,
            result_ref=path,
            tool_call_id=call_id,
            score=score,
            tokens_raw=raw,
            tokens_kept=kept,
            ref=ref,
            summary_by=by,
            step=step,
            origins=known(f"k{number}"),
        )


def _canvases(con: apsw.Connection, space: int, known: _Origins) -> Iterator[carried.Canvas]:
    name: str = known.of.space
    for row in sorted(canvases.listed(con, name, session=None, label=None, limit=-1), key=lambda one: one.number):
        edits = tuple(_edit(after, one, known) for after, one in canvases.edits(con, name, row.number))
        first: str | None = con.execute(
            "SELECT timestamp FROM record WHERE space = ? AND canvas = ? ORDER BY id LIMIT 1", (space, row.number)
        ).get
        begun = [one.at for one in edits[:1]] + ([] if first is None else [datetime.fromisoformat(first)])
        yield carried.Canvas(
            number=row.number,
            label=row.label,
            session=row.session,
            begun=min(begun, default=row.updated),
            text=row.text,
            status=row.status,
            folded=row.folded,
            groups=json.loads(canvases.groups_text(row.groups)),
            updated=row.updated,
            edits=edits,
            origins=known(f"c{row.number}"),
        )


def _edit(after: int, edit: Any, known: _Origins) -> carried.Edit:
    return carried.Edit(
        id=f"e{edit.number}",
        after=f"k{after}" if after else None,
        kind=edit.kind,
        body=edit.body,
        at=edit.at,
        undone_at=edit.undone,
        by_model=edit.work is not None,
        origins=known(f"e{edit.number}"),
    )


# --- pages ------------------------------------------------------------------------------------------


def _scenes(con: apsw.Connection, space: int, known: _Origins) -> Iterator[carried.Scene]:
    gone = _gone(con, space)
    rows: Any = con.execute(
        "SELECT slug, version, work IS NOT NULL FROM scene WHERE space = ? ORDER BY slug, version", (space,)
    )
    by_model = {(slug, version): bool(made) for slug, version, made in rows}
    for slug in dict.fromkeys(slug for slug, _ in by_model):
        for held in reversed(scenes.versions(con, known.of.space, slug)):
            left = left_of(held, gone)
            if held.atoms and not left.atoms:
                continue  # it told nothing but what was forgotten
            yield carried.Scene(
                slug=slug,
                version=held.version,
                action=held.action,
                title=left.title,
                summary=left.summary,
                body=left.body,
                heat=held.heat,
                atoms=left.atoms,
                entities=left.entities,
                reason=held.reason if left == held else "",
                created=held.created,
                at=held.updated,
                by_model=by_model[slug, held.version],
                origins=known(f"s:{slug}/{held.version}"),
            )


def _personas(con: apsw.Connection, space: int, known: _Origins) -> Iterator[carried.Persona]:
    """What models wrote, and the page as it stands: the others list what was told, and are made anew of it."""
    gone = _gone(con, space)
    rows: Any = con.execute(
        "SELECT version, text, at, reason, work IS NOT NULL FROM persona p WHERE space = ?1 AND (work IS NOT NULL"
        " OR version = (SELECT max(version) FROM persona WHERE space = ?1)) ORDER BY version",
        (space,),
    )
    for version, text, at, reason, by_model in rows:
        left = without(text, gone)
        yield carried.Persona(
            version=version,
            text=left,
            at=from_ms(at),
            reason=(reason or "") if left == text else "",
            by_model=bool(by_model),
            origins=known(f"p{version}"),
        )


def _gone(con: apsw.Connection, space: int) -> set[str]:
    rows = con.execute("SELECT id FROM atom WHERE space = ? AND tombstone IS NOT NULL", (space,))
    return {f"a{number}" for (number,) in rows}


def _citations(con: apsw.Connection, space: int, _: _Origins) -> Iterator[carried.Citation]:
    rows: Any = con.execute(
        "SELECT c.source, c.ref, c.first_line, c.last_line FROM citation c"
        " JOIN ref r ON r.space = c.space AND r.id = c.ref AND r.tombstone IS NULL WHERE c.space = ?"
        f" AND {stands('c.source')} ORDER BY c.source, c.ref, c.first_line",
        (space,),
    )
    for source, ref, first, last in rows:
        yield carried.Citation(source=source, ref=ref, lines=(first, last) if first else None)


# --- how far it has come, and what is gone ----------------------------------------------------------


def _sessions(con: apsw.Connection, space: int) -> Iterator[carried.Session]:
    """How much of each was read: no further than to the first turn that a draft waits for, as drafts stay behind."""
    rows: Any = con.execute(
        "SELECT s.name, s.active_canvas, p.batches, p.scene, (SELECT 't' || t.id FROM turn t WHERE t.session = s.id"
        "  AND t.tombstone IS NULL AND t.position < min(p.position, coalesce((SELECT min(w.position) FROM draft d,"
        "   json_each(d.atom, '$.evidence') e JOIN turn w ON w.id = CAST(substr(e.value ->> 'turn', 2) AS INTEGER)"
        "   WHERE d.space = s.space AND w.session = s.id), p.position)) ORDER BY t.position DESC LIMIT 1)"
        " FROM session s LEFT JOIN progress p ON p.session = s.id WHERE s.space = ? AND EXISTS ("
        "  SELECT 1 FROM turn t WHERE t.session = s.id AND t.tombstone IS NULL UNION ALL"
        "  SELECT 1 FROM record r WHERE r.session = s.id) ORDER BY s.id",
        (space,),
    )
    for name, canvas, batches, scene, read in rows:
        yield carried.Session(name=name, read=read, batches=batches or 0, scene=scene, canvas=canvas)


def _stages(con: apsw.Connection, space: int) -> Iterator[carried.Progress]:
    rows: Any = con.execute(
        "SELECT stage, (SELECT 'a' || max(a.id) FROM atom a WHERE a.space = c.space AND a.id <= c.position"
        " AND a.tombstone IS NULL) AS upto FROM stage_cursor c WHERE space = ? AND stage IN ('scenes', 'persona')"
        " AND upto IS NOT NULL ORDER BY stage",
        (space,),
    )
    for stage, upto in rows:
        yield carried.Progress(stage=stage, upto=upto)


def _tombstones(con: apsw.Connection, space: int, of: carried.From) -> Iterator[carried.Tombstone]:
    known = _Origins(con, space)
    rows: Any = con.execute(
        "SELECT id, at, reason, undone_at, purged_at FROM tombstone WHERE space = ? ORDER BY id", (space,)
    ).fetchall()
    for number, at, reason, undone, purged in rows:
        gone = () if undone is not None else tuple(_taken(con, space, number, of, known))
        yield carried.Tombstone(
            id=f"x{number}",
            at=from_ms(at),
            reason=reason,
            gone=gone,
            undone_at=_moment(undone),
            purged_at=_moment(purged),
            origins=known(f"x{number}"),
        )
    yield from sorted(_passed_on(con, space, known), key=lambda one: (one.at, one.origins))


def _passed_on(con: apsw.Connection, space: int, known: _Origins) -> Iterator[carried.Tombstone]:
    """Yield tombstones of elsewhere that found nothing here: a third home may hold what they took, or be given it."""
    rows: Any = con.execute(
        "SELECT origin, id FROM origin WHERE space = ? AND id IN (?, ?)", (space, carried.NOTHING, carried.UNDONE)
    ).fetchall()
    for origin, held in rows:
        found = _OF_TOMBSTONE.fullmatch(origin)
        undone = held == carried.UNDONE
        gone = () if undone else known(carried.gone_by(origin))
        if found is not None and (gone or undone):
            at = from_ms(int(found["at"]))
            yield carried.Tombstone(
                id=found["id"],
                at=at,
                reason="",
                gone=gone,
                undone_at=at if undone else None,
                purged_at=None,
                origins=(origin,),
            )


def _taken(con: apsw.Connection, space: int, number: int, of: carried.From, known: _Origins) -> Iterator[str]:
    for prefix, table in (("t", "turn"), ("a", "atom")):
        rows: Any = con.execute(f"SELECT id, learned_at FROM {table} WHERE tombstone = ? ORDER BY id", (number,))
        for id, learned in rows:
            yield carried.origin(of, f"{prefix}{id}", from_ms(learned))
            yield from known(f"{prefix}{id}")
    refs = con.execute("SELECT id FROM ref WHERE space = ? AND tombstone = ? ORDER BY id", (space, number))
    for (id,) in refs:
        yield carried.origin(of, str(id))
        yield from known(str(id))
    for tombstone in known(f"x{number}"):  # of elsewhere: it took more there than was here
        yield from known(carried.gone_by(tombstone))


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)
