"""The evidence of atoms (quotes of turns), and citations: the tool results that turns and atoms name.

A row of `evidence` has a turn and a span of its characters. The quote is checked against the turn before its row is
stored. Citations are found when turns and atoms are stored. Only existing refs and nodes of the same space are cited; a
node stands for the results of its records.

Evidence and citations that involve forgotten rows are left out of answers. Their rows are kept, so that the forgetting
can be undone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Citation, Evidence
from mcp_memory.store.citations import NamedResult, find_results
from mcp_memory.store.sql.transaction import Transaction, marks, number_of

Quote = tuple[int, int, int]
"""A row: the number of the turn, and the start and end of the quote."""

_CERTAIN = 0.99  # the limit for repeated statements; only explicit statements are certain


def of_atoms(tx: Transaction, atoms: Sequence[int]) -> dict[int, list[Evidence]]:
    """Return the evidence of each atom; the evidence that it was stored with comes first.

    If no quote of an atom is left, because the rows are lost or their turns forgotten, its first evidence is returned
    with an empty quote.
    """
    evidence = defaultdict[int, list[Evidence]](list)
    rows = tx.all(  # the spans, and each turn once: many statements may quote one long turn
        "WITH quoted AS (SELECT r.id, e.turn, e.span_start, e.span_end, CASE WHEN"
        " e.turn = r.evidence AND e.span_start = r.span_start AND e.span_end = r.span_end THEN 0 ELSE 1 END AS later"
        " FROM atom r JOIN evidence e ON e.space = r.space AND e.atom = r.id"
        " JOIN turn t ON t.space = e.space AND t.id = e.turn"
        f" WHERE r.space = :space AND r.id IN ({marks(atoms)}) AND t.tombstone IS NULL AND r.purged_at IS NULL)"
        " SELECT id, later, turn, span_start, span_end, NULL FROM quoted UNION ALL"
        " SELECT NULL, NULL, t.id, NULL, NULL, t.content FROM turn t"
        " WHERE t.space = :space AND t.id IN (SELECT turn FROM quoted)",
        *atoms,
    )
    contents = {turn: content for atom, _, turn, _, _, content in rows if atom is None}
    for atom, _, turn, start, end in sorted(row[:5] for row in rows if row[0] is not None):
        evidence[atom].append(Evidence(turn=f"t{turn}", span=(start, end), quote=contents[turn][start:end]))
    for atom in atoms:
        if atom not in evidence and (
            row := tx.one("SELECT evidence, span_start, span_end FROM atom WHERE space = :space AND id = ?", atom)
        ):
            evidence[atom].append(Evidence(turn=f"t{row[0]}", span=(row[1], row[2]), quote=""))
    return evidence


def check_quotes(tx: Transaction, evidence: Sequence[Evidence]) -> list[Quote]:
    """Check that each turn contains its quote, and return the quotes as rows, without duplicates.

    Raises InvalidInput if a turn is unknown or does not contain its quote.
    """
    rows: list[Quote] = []
    for quoted in evidence:
        turn, (start, end) = number_of(quoted.turn, "t"), quoted.span
        content: str | None = tx.get("SELECT content FROM turn WHERE space = :space AND id = ?", turn)
        if content is None or not 0 <= start < end or content[start:end] != quoted.quote:
            raise InvalidInput(
                f"{quoted.turn} does not say {one_line(quoted.quote, 80)!r} at {start} to {end}. "
                "Quote its words exactly; nothing was stored."
            )
        rows.append((turn, start, end))
    return list(dict.fromkeys(rows))


def are_turns_present(tx: Transaction, evidence: Sequence[Evidence]) -> bool:
    """Return whether none of the quoted turns is forgotten."""
    turns = [number_of(quoted.turn, "t") for quoted in evidence]
    sql = f"SELECT 1 FROM turn WHERE space = :space AND id IN ({marks(turns)}) AND tombstone IS NOT NULL"
    return tx.one(sql, *turns) is None


def last_said(tx: Transaction, quotes: Sequence[Quote]) -> int:
    turns = [turn for turn, *_ in quotes]
    return tx.get(f"SELECT max(said_at) FROM turn WHERE space = :space AND id IN ({marks(turns)})", *turns)


def add_quotes(tx: Transaction, atom: int, quotes: Sequence[Quote]) -> bool:
    """Add quotes to the evidence of an atom. Return whether any of them is new."""
    new = [
        tx.one(
            "INSERT INTO evidence (space, atom, turn, span_start, span_end) VALUES (:space, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING RETURNING 1",
            *(atom, *quote),
        )
        for quote in quotes
    ]
    return any(new)


def confirm(tx: Transaction, atom: int, quotes: Sequence[Quote], *, confidence: float) -> None:
    """Add quotes that repeat an atom to its evidence, and raise its confidence if any of them is new."""
    if add_quotes(tx, atom, quotes):
        before: float = tx.get("SELECT confidence FROM atom WHERE space = :space AND id = ?", atom)
        surer = max(before, min(_CERTAIN, 1 - (1 - before) * (1 - confidence)))
        tx.run("UPDATE atom SET confidence = ? WHERE space = :space AND id = ?", surer, atom)
        tx.touch(f"atom:a{atom}")


# --- citations of tool results ----------------------------------------------------------------------


Lines = tuple[int, int] | None


def note_citations(tx: Transaction, source: str, text: str) -> None:
    """Store citations of all existing results that a text names."""
    _insert_citations(tx, source, [ref for name in find_results(text) for ref in _named_refs(tx, name)])


def note_given_citations(tx: Transaction, source: str, names: Sequence[str]) -> None:
    """Store citations that the caller gave for a turn or an atom (`source`).

    Raises NotFound if any of `names` is malformed or names no result.
    """
    rows: list[tuple[str, Lines]] = []
    for cited in names:
        refs = [row for name in find_results(cited) for row in _named_refs(tx, name)]
        if not refs:
            raise NotFound(
                f"There is no result {one_line(cited, 60)!r} to cite. Name a ref, its lines or a node: "
                "r-9f2c1a7b3d4e, r-9f2c1a7b3d4e:120-134, 003-N4. Nothing was stored."
            )
        rows += refs
    _insert_citations(tx, source, rows)


def citations(tx: Transaction, sources: Sequence[str]) -> dict[str, list[Citation]]:
    """Map turns (`t8`) and atoms (`a5`) to the results that they cite.

    An atom also cites the results that its turns cite. Turns and atoms that cite nothing are left out.
    """
    if not sources or not tx.has_any("citation") or not tx.one("SELECT 1 FROM citation WHERE space = :space LIMIT 1"):
        return {}
    by_source = {source: _citations_of(tx, source) for source in dict.fromkeys(sources)}
    return {source: cites for source, cites in by_source.items() if cites}


def _citations_of(tx: Transaction, source: str) -> list[Citation]:
    """Return the citations of a turn or an atom; for an atom, also those of its turns. The result has no duplicates."""
    sources = [source]
    if source.startswith("a"):
        turns = tx.column(
            "SELECT DISTINCT turn FROM evidence WHERE space = :space AND atom = ? ORDER BY turn",
            number_of(source, "a"),
        )
        sources += [f"t{turn}" for turn in turns]
    unique: dict[object, Citation] = {}
    for citation in (citation for name in sources for citation in _citations(tx, "source", name)):
        unique.setdefault((citation.ref, citation.lines), citation)
    return list(unique.values())


def cited_by(tx: Transaction, ref: str) -> list[Citation]:
    """Return the turns and atoms that name a ref, then the atoms based on these turns."""
    direct = _citations(tx, "ref", ref)
    derived: list[Citation] = []
    for citation in direct:
        if citation.source.startswith("t"):
            atoms = tx.column(
                "SELECT DISTINCT e.atom FROM evidence e JOIN atom a ON a.space = e.space AND a.id = e.atom"
                " WHERE e.space = :space AND e.turn = ? AND a.tombstone IS NULL ORDER BY e.atom",
                number_of(citation.source, "t"),
            )
            derived += [Citation(source=f"a{atom}", ref=citation.ref, lines=citation.lines) for atom in atoms]
    return list(dict.fromkeys([*direct, *derived]))


def _citations(tx: Transaction, column: str, value: str) -> list[Citation]:
    rows = tx.all(
        "SELECT c.source, c.ref, c.first_line, c.last_line FROM citation c"
        " JOIN ref r ON r.space = c.space AND r.id = c.ref"
        f" WHERE c.space = :space AND c.{column} = ? AND r.tombstone IS NULL ORDER BY c.source, c.ref, c.first_line",
        value,
    )
    all_citations = [Citation(source=source, ref=ref, lines=(first, last) if first else None)
             for source, ref, first, last in rows]  # fmt: skip
    live = {source: _is_live(tx, source) for source in {citation.source for citation in all_citations}}
    return [citation for citation in all_citations if live[citation.source]]


def _is_live(tx: Transaction, source: str) -> bool:
    table = "turn" if source.startswith("t") else "atom"
    sql = f"SELECT 1 FROM {table} WHERE space = :space AND id = ? AND tombstone IS NULL"
    return tx.one(sql, int(source[1:])) is not None


def _named_refs(tx: Transaction, name: NamedResult) -> list[tuple[str, Lines]]:
    if name.target.startswith("r-"):
        sql = "SELECT id FROM ref WHERE space = :space AND id = ? AND tombstone IS NULL"
    else:
        sql = "SELECT DISTINCT ref FROM record WHERE space = :space AND node = ? ORDER BY ref"
    return [(ref, name.lines) for ref in tx.column(sql, name.target)]


def _insert_citations(tx: Transaction, source: str, rows: Sequence[tuple[str, Lines]]) -> None:
    tx.many(
        "INSERT INTO citation (space, source, ref, first_line, last_line) VALUES (:space, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        [(source, ref, *(lines or (0, 0))) for ref, lines in rows],
    )
