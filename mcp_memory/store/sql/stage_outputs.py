"""Stores the output of a stage, together with the end of its job and its cursor.

Extracted atoms wait as drafts until they are merged with the stored atoms. A draft is a row that contains a `NewAtom`
as JSON, with times in ms since 1970. A draft that is based on a forgotten turn is hidden until the forgetting is
undone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, assert_never

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line, well_formed
from mcp_memory.core.types import Evidence
from mcp_memory.store.sql import (
    atom_rows,
    canvas_rows,
    digests,
    entity_rows,
    evidence_rows,
    job_rows,
    page_rows,
    record_rows,
    replaced_sentences,
    sentence_rows,
    supersession,
    word_index,
)
from mcp_memory.store.sql.transaction import Transaction, from_ms, marks, number_of, numbers_of, optional_ms, to_ms
from mcp_memory.store.values import (
    CanvasPatch,
    Committed,
    Draft,
    Extraction,
    Merge,
    NewAtom,
    Outcome,
    PersonaPage,
    Readings,
    SceneChanges,
    StageOutput,
    Summaries,
    WrittenAtom,
)


def commit(tx: Transaction, work: str | None, output: StageOutput, *, outcome: Outcome, now: datetime) -> Committed:
    """Store the output of a stage, the end of its job `work`, its log entry and its cursor.

    Scenes, a page of the persona and a canvas have no job if a person edited them, and then move no cursor. Readings
    never have a job. Sentences whose turns a model has read completely are replaced by its statements or withdrawn.

    Raises Conflict, storing nothing, if the job is done or was leased by another process, because the question was
    answered already or is being asked again, or if a scene or a canvas is no longer at the version that the output
    expects. Raises InvalidInput if a draft has no evidence or a lone surrogate, if its quote is not in its turn, or if
    the name of a new scene is taken, and NotFound for a change of an unknown scene.
    """
    tx.make_space()
    job = None if work is None else job_rows.finish(tx, work, outcome=outcome, now=now)
    match output:
        case Extraction():
            _add_drafts(tx, job, output)
            replaced_sentences.end_replaced(tx, waits=bool(drafts(tx, limit=1)))
            sentence_rows.skip_read_turns(tx)
        case Merge():
            written = _merge_drafts(tx, job, output, now=now)
            replaced_sentences.end_replaced(tx, waits=bool(drafts(tx, limit=1)))
            return Committed(atoms=written)
        case Readings():
            for atom in output.atoms:
                _check(atom)
            return Committed(atoms=sentence_rows.put(tx, output, now=now))
        case SceneChanges():
            page_rows.change_scenes(tx, job, output, now=now)
        case PersonaPage():
            return Committed(version=page_rows.put_persona(tx, job, output, now=now))
        case CanvasPatch():
            canvas_rows.patch(tx, job, output.changes)
        case Summaries():
            record_rows.amend(tx, job, output, now=now)
        case _:
            assert_never(output)
    return Committed()


def _add_drafts(tx: Transaction, job: int | None, extracted: Extraction) -> None:
    job_rows.advance_sessions(tx, job, extracted.upto)
    entity_rows.learn(tx, extracted.aliases)
    for draft in extracted.drafts:
        _check(draft)
        if not digests.was_forgotten(tx, draft.text, evidence_rows.check_quotes(tx, draft.evidence)):
            tx.insert("draft", id=tx.next("draft"), work=job, atom=_to_json(draft))


def drafts(tx: Transaction, *, limit: int = 100) -> list[Draft]:
    """Return drafts that wait to be merged, oldest first, without those that are based on forgotten turns."""
    rows = tx.all("SELECT id, work, atom FROM draft WHERE space = :space ORDER BY id")
    waiting = (Draft(id=f"d{number}", atom=_from_json(atom), job=f"w{job}") for number, job, atom in rows)
    current = (draft for draft in waiting if evidence_rows.are_turns_present(tx, draft.atom.evidence))
    return [draft for draft, _ in zip(current, range(limit), strict=False)]


def _merge_drafts(tx: Transaction, job: int | None, done: Merge, *, now: datetime) -> list[WrittenAtom]:
    with_atoms = (merging for merging in done.merged if merging.atom is not None)
    rows = {merging.draft: row for row, merging in enumerate(with_atoms)}
    written: dict[str, WrittenAtom] = {}
    for merging in done.merged:
        draft = _waiting(tx, merging.draft)
        if draft is None or not (merging.atom is None or evidence_rows.are_turns_present(tx, merging.atom.evidence)):
            continue  # forgotten in the meantime; what remains is asked again
        extracted = merging.atom or draft
        repeated = replaced_sentences.open_sentences(tx, merging.onto)
        if digests.was_forgotten(tx, extracted.text, evidence_rows.check_quotes(tx, extracted.evidence)):
            pass
        elif merging.atom is None and not repeated:
            if not _confirm(tx, draft, merging.onto):
                continue
        else:
            _check(extracted)
            atom = replace(extracted, supersedes=supersession.still_open(tx, extracted.supersedes))
            written[merging.draft] = atom_rows.put(tx, atom, now=now, work=job)
            replaced_sentences.copy_words(tx, repeated, number_of(written[merging.draft].atom.id, "a"))
        tx.run("DELETE FROM draft WHERE space = :space AND id = ?", number_of(merging.draft, "d"))
    new = {draft: number_of(made.atom.id, "a") for draft, made in written.items() if not made.duplicate}
    embedded = {draft: number for draft, number in new.items() if draft in rows}
    if done.vectors is not None and embedded:
        tx.index.put_vectors("atom", list(embedded.values()), done.vectors, rows=[rows[draft] for draft in embedded])
    word_index.make_due(tx, done.vectors if len(embedded) == len(new) else None)
    return list(written.values())


def _waiting(tx: Transaction, draft: str) -> NewAtom | None:
    text = tx.get("SELECT atom FROM draft WHERE space = :space AND id = ?", number_of(draft, "d"))
    atom = None if text is None else _from_json(text)
    return atom if atom is not None and evidence_rows.are_turns_present(tx, atom.evidence) else None


def _confirm(tx: Transaction, draft: NewAtom, onto: Sequence[str]) -> bool:
    """Add the evidence of a draft to the atoms that it repeats.

    Returns False if all of these atoms have ended in the meantime. If they were all forgotten, nothing is added, but
    True is returned, so that the statement is not learned again.
    """
    quotes = evidence_rows.check_quotes(tx, draft.evidence)
    numbers = numbers_of(onto, "a")
    rows = tx.all(
        f"SELECT id, valid_to IS NULL FROM atom WHERE space = :space AND id IN ({marks(numbers)})"
        " AND tombstone IS NULL",
        *numbers,
    )
    for number, is_open in rows:
        if is_open:
            evidence_rows.confirm(tx, number, quotes, confidence=draft.confidence)
    return not rows or any(is_open for _, is_open in rows)


def _check(atom: NewAtom) -> None:
    """Raise InvalidInput if an extracted statement has no evidence or is not well-formed text."""
    if not atom.evidence:
        raise InvalidInput(f"{one_line(atom.text, 80)!r} has no evidence: name the turn and quote its words.")
    if not well_formed(_to_json(atom)):
        raise InvalidInput(f"{one_line(atom.text, 80)!r} or its fact has a lone surrogate, which is not text.")


def _to_json(atom: NewAtom) -> str:
    fields = {**asdict(atom), "valid_from": to_ms(atom.valid_from), "valid_to": optional_ms(atom.valid_to)}
    return json.dumps(fields, ensure_ascii=False)


def _from_json(text: str) -> NewAtom:
    fields: dict[str, Any] = json.loads(text)
    words: list[dict[str, Any]] = fields["evidence"]
    fields["evidence"] = tuple(Evidence(turn=w["turn"], span=(*w["span"],), quote=w["quote"]) for w in words)
    fields |= {name: tuple(fields.get(name, ())) for name in ("supersedes", "entities", "cites", "held")}
    fields["valid_from"] = from_ms(fields["valid_from"])
    if fields["valid_to"] is not None:
        fields["valid_to"] = from_ms(fields["valid_to"])
    return NewAtom(**fields)
