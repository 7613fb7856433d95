"""The verbs of `store.protocol` that are the same on every engine. Most are functions of this package as methods."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from mcp_memory.core.types import CanvasRow, NewTurn, Record
from mcp_memory.store.sql import (
    atom_rows,
    canvas_rows,
    digests,
    entity_rows,
    evidence_rows,
    exporting,
    home_rows,
    importing,
    job_rows,
    page_rows,
    policy_rows,
    purging,
    quarantine_rows,
    queues,
    recall_rows,
    record_rows,
    ref_rows,
    saving_rows,
    sentence_rows,
    stage_outputs,
    tombstone_rows,
    turn_rows,
    word_index,
)
from mcp_memory.store.sql.transaction import Engine, reads, reads_home, writes, writes_home
from mcp_memory.store.values import Appended, Claim, NewChunk, OffloadedResult, Vectors


class SqlVerbs(Engine, Protocol):
    """A store whose rows are in an SQL database.

    An engine adds the four methods of `Engine`, which run a function in a transaction, and the verbs that only it has.
    """

    # turns
    def append_turns(
        self, space: str, /, session: str, new: Sequence[NewTurn], *, now: datetime, vectors: Vectors | None = None
    ) -> Appended:
        incoming = turn_rows.prepare(new)  # before the transaction, so that other writers do not wait
        return self.write(space, turn_rows.append, session, incoming, now=now, vectors=vectors)

    turns = reads(turn_rows.by_ids)
    session_turns = reads(turn_rows.session_turns)
    last_turns = reads(turn_rows.last_turns)
    list_turns = reads(turn_rows.list_turns)
    context_windows = reads(turn_rows.context_windows)
    sessions = reads(turn_rows.sessions)
    count_forgotten = reads(turn_rows.count_forgotten)
    known_client_ids = reads(turn_rows.known_client_ids)
    stored_calls = reads(turn_rows.stored_calls)
    imported_files = reads(turn_rows.imported_files)
    note_imported_file = writes(turn_rows.note_imported_file)
    followed_logs = reads(turn_rows.followed_logs)
    note_followed_log = writes(turn_rows.note_followed_log)

    # knowledge
    add_atom = writes(atom_rows.add)
    atoms = reads(atom_rows.by_ids)
    standing = reads(atom_rows.are_current)
    list_atoms = reads(atom_rows.list_atoms)
    count_atoms = reads(atom_rows.count)
    atoms_based_on = reads(atom_rows.list_based_on)
    facts = reads(atom_rows.facts)
    entities = reads(entity_rows.list_entities)
    entity_names = reads(entity_rows.all_names)
    names = reads(entity_rows.names)
    related_entities = reads(entity_rows.find_related)
    evidence = reads(atom_rows.evidence)
    atoms_since = reads(atom_rows.list_since)
    superseded_by = reads(atom_rows.superseded_by)
    scenes = reads(page_rows.scenes)
    scene_versions = reads(page_rows.scene_versions)
    persona = reads(page_rows.persona)
    persona_versions = reads(page_rows.persona_versions)
    citations = reads(evidence_rows.citations)
    cited_by = reads(evidence_rows.cited_by)

    # jobs
    backlog = reads(job_rows.backlog)
    flush = writes(job_rows.flush)
    stage_states = reads(job_rows.stage_states)
    request_stage = writes(job_rows.request_stage)
    jobs = reads(job_rows.list_jobs)
    job = reads(job_rows.by_id)
    lease_job = writes(job_rows.lease)
    park_job = writes(job_rows.park)
    release_job = writes(job_rows.release)
    stage_logs = reads(job_rows.stage_totals)
    drafts = reads(stage_outputs.drafts)
    unread_turns = reads(sentence_rows.unread_turns)
    commit = writes(stage_outputs.commit)
    next_retry = reads(job_rows.next_retry)
    open_queue = writes_home(queues.open_queue)
    release_space = writes_home(queues.release)
    waiting_spaces = reads_home(queues.count_waiting)

    def claim_space(self, queue: str, *, lease: timedelta, space: str | None = None) -> Claim | None:
        if space is None and not self.read_home(queues.is_due, queue):
            return None  # usually nothing is due, and nothing has to be written
        return self.write_home(queues.claim, queue, lease=lease, space=space)

    pause = writes_home(home_rows.pause)
    resume = writes_home(home_rows.resume)
    paused = reads_home(home_rows.paused)

    # tasks
    put_ref = writes(ref_rows.put)
    ref = reads(ref_rows.by_id)
    read_ref = reads(ref_rows.read_bytes)
    unindexed_ref = reads(word_index.unindexed_ref)
    chunks = reads(word_index.chunks_by_id)

    def put_chunks(self, space: str, /, ref: str, new: Sequence[NewChunk], *, start: int, complete: bool) -> bool:
        terms = word_index.terms_of_chunks(new)  # before the transaction, so that other writers do not wait
        return self.write(space, word_index.put_chunks, ref, new, terms, start=start, complete=complete)

    def commit_step(
        self,
        space: str,
        /,
        *,
        record: Record,
        canvas: CanvasRow,
        expected: int,
        step: str | None = None,
        result: OffloadedResult | None = None,
    ) -> tuple[Record, bool]:
        terms = word_index.terms_of_chunks(result.chunks or ()) if result else ()  # before the transaction
        return self.write(
            space,
            record_rows.commit_step,
            record=record,
            canvas=canvas,
            expected=expected,
            step=step,
            result=result,
            terms=terms,
        )

    note_replaced = writes(record_rows.note_replaced)
    save_canvas = writes(canvas_rows.save)
    redraw_canvas = writes(canvas_rows.redraw)
    canvas_versions = reads(canvas_rows.versions)
    canvas_steps = reads(record_rows.canvas_steps)
    last_step = reads(record_rows.last_step)
    activate = writes(canvas_rows.activate)
    active_canvas = reads(canvas_rows.active_canvas)
    canvas = reads(canvas_rows.canvas)
    canvases = reads(canvas_rows.list_canvases)
    next_canvas_number = reads(canvas_rows.next_number)
    records = reads(record_rows.list_records)
    recorded = reads(record_rows.count)
    canvas_growth = reads(canvas_rows.growth)
    thin_records = reads(record_rows.thin_records)
    summarised_by_program = reads(record_rows.summarised_by_program)
    message_edits = reads(saving_rows.message_edits)
    put_message_edits = writes(saving_rows.put_message_edits)
    add_saving = writes(saving_rows.add_saving)
    savings = reads(saving_rows.savings)
    savings_between = reads(saving_rows.savings_between)
    savings_of_sessions = reads(saving_rows.savings_of_sessions)

    # retention
    matching = reads(tombstone_rows.matching)
    reach = reads(tombstone_rows.reach_of)
    forget = writes(tombstone_rows.forget)
    undo_forget = writes(tombstone_rows.undo)
    tombstones = reads(tombstone_rows.tombstones)
    words_under = reads(tombstone_rows.words_under)
    still_said = reads(tombstone_rows.still_said)
    count_under_tombstones = reads(tombstone_rows.count_restorable)
    purge = writes(purging.purge)
    note_recall = writes(recall_rows.note_recall)
    recalls = reads(recall_rows.list_recalls)
    policies = reads(policy_rows.list_policies)
    put_policy = writes(policy_rows.put_policy)
    due_policies = writes(policy_rows.start_due)
    overdue = reads(policy_rows.overdue)
    count_overdue = reads(policy_rows.count_overdue)
    note_retained = writes(policy_rows.note_retained)
    quarantine = writes(quarantine_rows.quarantine)
    quarantined = reads(quarantine_rows.list_quarantined)
    may_have_attacks = reads(quarantine_rows.may_have_attacks)
    unjudged = reads(quarantine_rows.unjudged)
    judge = writes(quarantine_rows.judge)
    review = writes(quarantine_rows.review)

    # export and import
    home_id = reads_home(exporting.home_id)
    secret = reads_home(digests.secret)
    import_rows = writes(importing.import_rows)
    known_as = reads(importing.known_as)
    forgotten_statements = reads(importing.forgotten_statements)
    note_origins = writes(importing.note_origins)

    # admin
    add_spend = writes_home(home_rows.add_spend)
    spent = reads_home(home_rows.spent)
    spent_between = reads_home(home_rows.spent_between)
    add_token = writes_home(home_rows.add_token)
    token = reads_home(home_rows.token)
    tokens = reads_home(home_rows.tokens)
    revoke_token = writes_home(home_rows.revoke_token)
    note_token_used = writes_home(home_rows.note_token_used)
    take_requests = writes_home(home_rows.take_requests)
    spaces = reads_home(home_rows.spaces)
    counts = reads(home_rows.counts)
    unread = reads(home_rows.count_unread)
    grown = reads(home_rows.grown)
    last_change = reads(home_rows.last_change)
    last_changes = reads_home(home_rows.last_changes)
    changes = reads(home_rows.changes)
