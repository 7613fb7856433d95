"""The verbs of `store.protocol` that are the same on every engine. Most are functions of this package as methods."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from mcp_memory.core.types import CanvasRow, NewTurn, Record
from mcp_memory.store.sql import atoms as atom_rows
from mcp_memory.store.sql import canvases as canvas_rows
from mcp_memory.store.sql import (
    digests,
    evidence_rows,
    exporting,
    forgetting,
    home,
    importing,
    pages,
    purging,
    queues,
    retention,
    sentences,
    stage_outputs,
    word_index,
)
from mcp_memory.store.sql import entities as entity_rows
from mcp_memory.store.sql import jobs as job_rows
from mcp_memory.store.sql import recalls as recall_rows
from mcp_memory.store.sql import records as record_rows
from mcp_memory.store.sql import refs as ref_rows
from mcp_memory.store.sql import review as quarantine_rows
from mcp_memory.store.sql import savings as saving_rows
from mcp_memory.store.sql import turns as turn_rows
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
    session_turns = reads(turn_rows.of_session)
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
    scenes = reads(pages.scenes)
    scene_versions = reads(pages.scene_versions)
    persona = reads(pages.persona)
    persona_versions = reads(pages.persona_versions)
    citations = reads(evidence_rows.citations)
    cited_by = reads(evidence_rows.cited_by)

    # jobs
    backlog = reads(job_rows.backlog)
    flush = writes(job_rows.flush)
    stage_states = reads(job_rows.stage_states)
    request_stage = writes(job_rows.request)
    jobs = reads(job_rows.list_jobs)
    job = reads(job_rows.by_id)
    lease_job = writes(job_rows.lease)
    park_job = writes(job_rows.park)
    release_job = writes(job_rows.release)
    stage_logs = reads(job_rows.stage_totals)
    drafts = reads(stage_outputs.drafts)
    unread_turns = reads(sentences.unread)
    commit = writes(stage_outputs.commit)
    next_retry = reads(job_rows.next_retry)
    open_queue = writes_home(queues.open_queue)
    release_space = writes_home(queues.release)
    waiting_spaces = reads_home(queues.count_waiting)

    def claim_space(self, queue: str, *, lease: timedelta, space: str | None = None) -> Claim | None:
        if space is None and not self.read_home(queues.is_due, queue):
            return None  # usually nothing is due, and nothing has to be written
        return self.write_home(queues.claim, queue, lease=lease, space=space)

    pause = writes_home(home.pause)
    resume = writes_home(home.resume)
    paused = reads_home(home.paused)

    # tasks
    put_ref = writes(ref_rows.put)
    ref = reads(ref_rows.ref)
    read_ref = reads(ref_rows.read)
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
    canvas_steps = reads(record_rows.steps)
    last_step = reads(record_rows.last_step)
    activate = writes(canvas_rows.activate)
    active_canvas = reads(canvas_rows.active)
    canvas = reads(canvas_rows.canvas)
    canvases = reads(canvas_rows.list_canvases)
    next_canvas_number = reads(canvas_rows.next_number)
    records = reads(record_rows.list_records)
    recorded = reads(record_rows.count)
    canvas_growth = reads(canvas_rows.growth)
    thin_records = reads(record_rows.thin)
    summarised_by_program = reads(record_rows.by_program)
    message_edits = reads(saving_rows.message_edits)
    put_message_edits = writes(saving_rows.put_message_edits)
    add_saving = writes(saving_rows.add_saving)
    savings = reads(saving_rows.savings)
    savings_between = reads(saving_rows.savings_between)
    savings_of_sessions = reads(saving_rows.savings_of_sessions)

    # retention
    matching = reads(forgetting.matching)
    reach = reads(forgetting.reach_of)
    forget = writes(forgetting.forget)
    undo_forget = writes(forgetting.undo)
    tombstones = reads(forgetting.tombstones)
    words_under = reads(forgetting.words_under)
    still_said = reads(forgetting.still_said)
    count_under_tombstones = reads(forgetting.count)
    purge = writes(purging.purge)
    note_recall = writes(recall_rows.note)
    recalls = reads(recall_rows.list_recalls)
    policies = reads(retention.list_policies)
    put_policy = writes(retention.put)
    due_policies = writes(retention.start_due)
    overdue = reads(retention.overdue)
    count_overdue = reads(retention.count_overdue)
    note_retained = writes(retention.note)
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
    add_spend = writes_home(home.add_spend)
    spent = reads_home(home.spent)
    spent_between = reads_home(home.spent_between)
    add_token = writes_home(home.add_token)
    token = reads_home(home.token)
    tokens = reads_home(home.tokens)
    revoke_token = writes_home(home.revoke_token)
    note_token_used = writes_home(home.note_token_used)
    take_requests = writes_home(home.take_requests)
    spaces = reads_home(home.spaces)
    counts = reads(home.counts)
    unread = reads(home.unread)
    grown = reads(home.grown)
    last_change = reads(home.last_change)
    last_changes = reads_home(home.last_changes)
    changes = reads(home.changes)
