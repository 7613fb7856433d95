"""The evidence of a memory: `verify` checks it, `why` shows it.

`verify` walks from the persona over scenes and atoms to the turns and their hashes. `why` shows the words that an atom
is based on, whether its turn still contains them, and the rows based on the atom. It also lists the tool results that
a turn or an atom cites; if it cites none, it suggests similar lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mcp_memory.core.errors import Damaged, NotFound
from mcp_memory.core.progress import ReportProgress, ignore_progress, step_counter
from mcp_memory.core.secrets.masking import mask_lines
from mcp_memory.core.text import one_line
from mcp_memory.core.types import (
    Atom,
    Citation,
    CitedResult,
    Citing,
    Evidence,
    Mention,
    Quoted,
    ResultHit,
    Scene,
    Turn,
    Verified,
    Why,
)
from mcp_memory.language.words import query_terms
from mcp_memory.longterm import persona as l3_page
from mcp_memory.longterm import scenes as l2_page
from mcp_memory.longterm.search.results import results
from mcp_memory.longterm.search.search import atom_turns
from mcp_memory.longterm.verification.trust import REASONS
from mcp_memory.store.citations import NamedResult, address, cited_atoms, find_results, links, uncited_lines
from mcp_memory.store.evidence import is_intact
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, evidence_rows, home_rows, page_rows, record_rows, ref_rows, turn_rows
from mcp_memory.store.values import Filters

_AT_ONCE = 500
_LINE = 160


def verify(store: Store, space: str, tell: ReportProgress = ignore_progress) -> Verified:
    """Check all rows from the persona down to the turns; return how many there are, and the problems found."""
    stored = store.read(space, page_rows.persona)
    written = (
        stored if stored is not None and stored.by_model else None
    )  # without a model the page is listed at each reading
    scenes = store.read(space, page_rows.scenes)
    problems: list[str] = []
    bare: list[str] = []
    if written is not None:
        problems += _page_problems(
            store, space, "The page about the user", written.text, l3_page.ended_since(store, space, written)
        )
        problems += [
            f"The page about the user names the page [[{one_line(name, 60)}]], which is gone."
            for name in links(written.text)
            if not isinstance(l2_page.resolve(store, space, name), Scene)
        ]
        bare += [f"about the user: {one_line(line, _LINE)}" for line in l3_page.unfounded(written.text)]
    for scene in scenes:
        problems += _page_problems(
            store, space, f"The page {scene.slug}", scene.body, l2_page.ended_since(store, space, scene)
        )
        bare += [f"{scene.slug}: {one_line(line, _LINE)}" for line in uncited_lines(scene.body)]
    doubted: list[str] = []
    atoms = quotes = 0
    walked: set[str] = set()
    """Ids of the checked turns, so that each is hashed once."""
    step = step_counter("checking statements", store.read(space, home_rows.counts).atoms, tell)
    for batch in _batches(store, space):
        evidence = {atom.id: store.read(space, atom_rows.evidence, atom.id) for atom in batch}
        turns = {
            turn.id: turn
            for turn in store.read(space, turn_rows.by_ids, {row.turn for rows in evidence.values() for row in rows})
        }
        for atom in batch:
            if not evidence[atom.id]:
                problems.append(f"{atom.id} rests on no words at all.")
            problems += [text for row in evidence[atom.id] if (text := _quote_problem(atom, row, turns.get(row.turn)))]
            if atom.doubts and atom.valid_to is None:
                why = ", ".join(REASONS.get(doubt, doubt) for doubt in atom.doubts)
                doubted.append(f"{atom.id} {one_line(atom.text, _LINE)!r}: {why}; compare it with {atom.evidence}.")
        problems += [
            f"{turn.id} does not match its hash: its words were changed outside this program."
            for turn in turns.values()
            if turn.id not in walked and not is_intact(turn)
        ]
        walked |= turns.keys()
        atoms += len(batch)
        step(len(batch))
        quotes += sum(map(len, evidence.values()))
    return Verified(
        personas=int(written is not None),
        scenes=len(scenes),
        atoms=atoms,
        quotes=quotes,
        turns=len(walked),
        problems=problems,
        uncovered=bare,
        doubted=doubted,
    )


def _page_problems(
    store: Store, space: str, what: str, text: str, ended: Sequence[tuple[Atom, Atom | None]]
) -> Iterator[str]:
    ids = cited_atoms(text)
    stored_ids = {atom.id for atom in store.read(space, atom_rows.by_ids, ids)}
    for id in ids:
        if id not in stored_ids:
            yield f"{what} rests on {id}, which was forgotten or never was."
    for old, newer in ended:
        instead = f"{newer.id} holds instead" if newer else "nothing holds instead"
        yield f"{what} tells {old.id} as it was: since then it ended, and {instead}."


def _batches(store: Store, space: str) -> Iterator[list[Atom]]:
    """Yield all atoms, including closed atoms, in batches."""
    after = 0
    while atoms := store.read(space, atom_rows.list_since, after, limit=_AT_ONCE):
        yield atoms
        after = int(atoms[-1].id[1:])


def _quote_problem(atom: Atom, evidence: Evidence, turn: Turn | None) -> str | None:
    if turn is None:
        return f"{atom.id} rests on {evidence.turn}, which was forgotten."
    if not _is_quoted_in(evidence, turn):
        return f"{atom.id} quotes words of {evidence.turn} that do not stand there."
    return None


def _is_quoted_in(evidence: Evidence, turn: Turn) -> bool:
    """Return whether the turn has the quoted words at the position that the evidence gives."""
    start, end = evidence.span
    return turn.content[start:end] == evidence.quote and end - start == len(evidence.quote)


_LIKELY = 3
_FEWEST = 3  # distinct words; two shorter lines of the same words may differ in meaning
_READ = 1_000  # characters of a turn
_LINES, _CHARS = 12, 900
_TEXT = 300


def why(store: Store, space: str, id: str) -> Why:
    """Return the evidence of a turn (`t8`) or atom (`a5`) and what is based on it; for a ref or node, only the latter.

    Raises NotFound for an unknown id.
    """
    id = id.strip()
    for name in find_results(id):
        return _of_results(store, space, id, name)
    statement = _find_statement(store, space, id)
    if statement is None:
        raise NotFound(
            f"There is no {one_line(id, 40)!r} in this space. Name an atom (a5), a turn (t8), a ref or a node "
            "(r-9f2c1a7b3d4e, 003-N4)."
        )
    atom, text, turns = statement
    outputs = cites(store, space, id)
    likely = [] if outputs else _likely(store, space, text, turns)
    shown = Why(id=id, text=one_line(text, _TEXT), cites=outputs, likely=likely, cited_by=[])
    if atom is None:
        return replace(shown, turn=turns[0], atoms=store.read(space, atom_rows.based_on, [id])[id])
    return replace(
        shown,
        atom=atom,
        quotes=_quotes(store, space, id),
        replaced_by=_successors(store, space, atom),
        replaces=store.read(space, atom_rows.superseded_by, [id]),
        mentions=lines_citing(store, space, id),
    )


def _quotes(store: Store, space: str, id: str) -> list[Quoted]:
    evidence = store.read(space, atom_rows.evidence, id)
    turns = {turn.id: turn for turn in store.read(space, turn_rows.by_ids, {row.turn for row in evidence})}
    return [
        Quoted(
            turn_id=row.turn,
            quote=row.quote,
            turn=turn,
            stands=turn is not None and _is_quoted_in(row, turn) and is_intact(turn),
        )
        for row in evidence
        for turn in [turns.get(row.turn)]
    ]


def _successors(store: Store, space: str, atom: Atom) -> list[Atom]:
    """Return the statements that replaced an atom, one after the other."""
    successors: list[Atom] = []
    while (
        atom.superseded_by
        and (after := store.read(space, atom_rows.by_ids, [atom.superseded_by]))
        and after[0] not in successors
    ):
        atom = after[0]
        successors.append(atom)
    return successors


def lines_citing(store: Store, space: str, id: str) -> list[Mention]:
    """Return the lines of the persona, then of the scenes, that name an atom as their evidence."""
    pages = [(None, "Persona", l3_page.body(store, space))]
    pages += [(scene.slug, scene.title, scene.body) for scene in l2_page.stored_scenes(store, space)]
    return [
        Mention(slug=slug, title=title, line=line.strip())
        for slug, title, text in pages
        for line in text.splitlines()
        if id in cited_atoms(line)
    ]


def cites(store: Store, space: str, id: str) -> list[CitedResult]:
    """Return the tool results that a turn or an atom cites, with the cited lines; lost results are left out."""
    citations = store.read(space, evidence_rows.citations, [id]).get(id, [])
    return [result for citation in citations for result in _result(store, space, citation)]


# --- from turns to results --------------------------------------------------------------------------


def _find_statement(store: Store, space: str, id: str) -> tuple[Atom | None, str, list[Turn]] | None:
    """Return an atom, its text and its turns; for the id of a turn, None, its text and the turn; None if unknown."""
    if id.startswith("a") and (atoms := store.read(space, atom_rows.by_ids, [id])):
        return atoms[0], atoms[0].text, store.read(space, turn_rows.by_ids, atom_turns(atoms[0]))
    if id.startswith("t") and (turns := store.read(space, turn_rows.by_ids, [id])):
        return None, turns[0].content, turns
    return None


def _likely(store: Store, space: str, text: str, turns: Sequence[Turn]) -> list[ResultHit]:
    """Return similar lines of results that were stored in the session of the first of the turns, before that turn.

    Empty for a text of few words, or without turns.
    """
    if not turns:
        return []
    first = min(turns, key=lambda turn: turn.learned_at)
    text = text[:_READ]
    if len(set(query_terms(text))) < _FEWEST:
        return []
    filters = Filters(session=first.session, as_of=first.learned_at)
    return results(store, space, text, filters=filters, limit=_LIKELY)


def _result(store: Store, space: str, citation: Citation) -> Iterator[CitedResult]:
    try:
        ref = store.read(space, ref_rows.by_id, citation.ref)
        text = store.read(space, ref_rows.read_bytes, ref.id).decode("utf-8", "replace")
    except (NotFound, Damaged):  # forgotten or lost; `doctor` reports lost results
        return
    records = store.read(space, record_rows.list_records, ref=ref.id)
    yield CitedResult(
        at=address(ref.id, citation.lines),
        by=citation.source,
        call=records[-1].tool_call if records else ref.tool,
        node=records[-1].node_id if records else None,
        taken=ref.timestamp,
        content=_lines(text, citation.lines),
    )


def _lines(text: str, lines: tuple[int, int] | None) -> str:
    first, last = lines or (1, _LINES)
    at = 0
    for _ in range(first - 1):
        at = text.find("\n", at) + 1
        if at == 0:
            return ""
    shown = mask_lines("\n".join(text[at : at + 100 * _CHARS].split("\n")[: min(last - first + 1, _LINES)]))
    return shown if len(shown) <= _CHARS else f"{shown[:_CHARS]}…"


# --- from a result up -------------------------------------------------------------------------------


def _of_results(store: Store, space: str, id: str, name: NamedResult) -> Why:
    if name.target.startswith("r-"):
        refs, call = [name.target], call_of(store, space, name.target)
    else:
        records = store.read(space, record_rows.list_records, node=name.target)
        if not records:
            raise NotFound(f"There is no node {name.target} in this space, or no result belongs to it.")
        refs, call = list(dict.fromkeys(record.ref for record in records)), records[-1].tool_call
    citations = (
        citation
        for ref in refs
        for citation in store.read(space, evidence_rows.cited_by, ref)
        if _overlaps(citation, name.lines)
    )
    citing = (_citing(store, space, citation) for citation in citations)
    return Why(
        id=id, text=call, cites=[], likely=[], cited_by=list(dict.fromkeys(citation for citation in citing if citation))
    )


def call_of(store: Store, space: str, ref: str) -> str:
    """Return the tool call that produced a result. Raises NotFound for an unknown result."""
    stored = store.read(space, ref_rows.by_id, ref)
    records = store.read(space, record_rows.list_records, ref=ref)
    return records[-1].tool_call if records else stored.tool


def _overlaps(citation: Citation, lines: tuple[int, int] | None) -> bool:
    """Return whether a citation overlaps these lines; None and a citation without lines mean the whole result."""
    if lines is None or citation.lines is None:
        return True
    return citation.lines[0] <= lines[1] and lines[0] <= citation.lines[1]


def _citing(store: Store, space: str, citation: Citation) -> Citing | None:
    statement = _find_statement(store, space, citation.source)
    if statement is None:
        return None
    return Citing(id=citation.source, at=address(citation.ref, citation.lines), text=one_line(statement[1], _TEXT))
