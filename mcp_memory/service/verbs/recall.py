"""Verbs of recall: the context for a conversation or a question, within a token budget.

`longterm.recall.blocks` assembles it; these verbs fit it to the budget and log it. Hooks show `recall_stable` at the
start of a conversation and `recall_beyond` at each prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.personal_ids import marked_ids
from mcp_memory.core.private_passages import without_private
from mcp_memory.core.secrets.masking import mask, mask_name
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Bundle
from mcp_memory.service.verbs.base import (
    FRAME_TOKENS,
    Verbs,
    check_range,
    in_thread,
    reading,
    require_query,
    store_verb,
)
from mcp_memory.service.verbs.turns import client_name
from mcp_memory.store.sql import atom_rows, feedback_rows, recall_rows, session_rows, turn_rows
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.values import Feedback, FeedbackVerdict, RecallEntry, RecallHow

if TYPE_CHECKING:
    from mcp_memory.longterm.recall.asked import Asked
    from mcp_memory.longterm.recall.blocks import Recalled
    from mcp_memory.longterm.recall.continuity import Continuity
    from mcp_memory.longterm.search.search import SearchContext

MAX_BUDGET = 100_000
_LEFT_OUT_TOKENS = 50  # one omitted id is returned per this many tokens of the budget
_QUERY_CHARS = 300  # characters of a query in the log of recalls
_ROW = re.compile(r"(?:[at]\d{1,18}|r-[0-9a-f]{12,64})(?![\w-])", re.ASCII)


class RecallVerbs(Verbs):
    """Recall context, and log which rows a context got."""

    @in_thread
    def recall(self, query: str = "", *, session: str | None = None, budget_tokens: int = 1200) -> Bundle:
        """Return the context for a question within the budget, and log it: a stable and a dynamic block."""
        bundle = self._store.in_snapshot(self._bundle, query, session, budget_tokens)
        self._note_promises(session, bundle)
        return self._log(bundle, "recall", session, query)

    async def recall_answer(self, query: str = "", *, session: str | None = None, budget_tokens: int = 1200) -> Bundle:
        """Return the context for a question as `recall` does, within the budget as text and as JSON, and log it.

        With a query, a session gets the same stable block only once an hour, because its context still has the earlier
        copy. Raises InvalidInput, which names a sufficient budget, if the budget is too small for any row.
        """

        def has_stable(block: str) -> bool:
            return bool(
                session
                and query.strip()
                and self._parts.contexts.has_stable(self.space, session, block, now=self._parts.now())
            )

        async def bundle_in(budget: int) -> Bundle:
            bundle = await anyio.to_thread.run_sync(
                lambda: self._store.in_snapshot(self._bundle, query, session, budget, has_stable)
            )
            ids, most = bundle.left_out, max(1, budget_tokens // _LEFT_OUT_TOKENS)
            return replace(bundle, left_out=[*ids[:most], "…"] if len(ids) > most else ids)

        first = budget_tokens - FRAME_TOKENS - budget_tokens // 20  # JSON escapes line ends and quotation marks
        bundle = await self._fit_budget(bundle_in, budget_tokens, first=first, also_as_json=True)
        enough = budget_tokens
        while bundle.left_out and not (bundle.stable or bundle.dynamic) and enough < MAX_BUDGET:
            enough = min(enough * 3 // 2, MAX_BUDGET)
            bundle = await bundle_in(enough - FRAME_TOKENS)  # empty if the rows were forgotten meanwhile
        if enough > budget_tokens and (bundle.stable or bundle.dynamic):
            raise InvalidInput(
                f"budget_tokens={budget_tokens} is too small for any result. Ask again with budget_tokens={enough}."
            )
        await anyio.to_thread.run_sync(self._log, bundle, "recall", session, query)
        self._note_stable(session, bundle)
        self._note_promises(session, bundle)
        return bundle

    @in_thread
    def recall_stable(
        self, *, session: str | None = None, project: str | None = None, budget_tokens: int = 700
    ) -> Bundle:
        """Return the context for the start of a conversation, and log it: without a question, but with a line about
        the last session in the `project` (`core.projects`), by default that of the session.
        """
        from mcp_memory.longterm.recall import blocks

        def stable() -> Bundle:
            self._parts.indexing.catch_up()
            return blocks.stable(
                self._parts.scheduler.context(),
                personal=self._personal_context(),
                counter=self._parts.counter,
                budget=budget_tokens,
                continuity=self._continuity(session, project),
            )

        bundle = self._store.in_snapshot(stable)
        self._note_stable(session, bundle)
        self._note_promises(session, bundle)
        return self._log(bundle, "start", session)

    @in_thread
    def recall_beyond(
        self,
        query: str,
        *,
        known: str,
        session: str,
        project: str | None = None,
        budget_tokens: int = 600,
        is_rehearsal: bool = False,
    ) -> Bundle:
        """Return the dynamic block for a question, without anything that the context has already.

        For programs that recall automatically: `known` is everything they recalled into this context before.
        The turns of the session since its last summary are assumed to be in the context too. A query that asks to
        continue gets the end of the last session in the `project`, by default that of the session. With
        `is_rehearsal` the block is not shown to anyone, and not logged.
        """
        from mcp_memory.longterm.recall import blocks

        query = without_private(query)

        def beyond() -> Bundle:
            self._parts.indexing.catch_up()
            return blocks.automatic(
                self._parts.scheduler.context(),
                query,
                personal=self._personal_context(),
                session=session,
                counter=self._parts.counter,
                budget=budget_tokens,
                shown=known,
                continuity=self._continuity(session, project),
            )

        bundle = self._store.in_snapshot(beyond)
        return bundle if is_rehearsal else self._log(bundle, "prompt", session, query)

    def _bundle(
        self, query: str, session: str | None, budget: int, has_stable: Callable[[str], bool] = lambda block: False
    ) -> Bundle:
        from mcp_memory.longterm.recall import blocks

        check_range(budget, "budget_tokens", 1, MAX_BUDGET)
        parts = self._parts
        parts.indexing.catch_up()
        return blocks.bundle(
            parts.scheduler.context(),
            without_private(query),
            session=session,
            counter=parts.counter,
            budget=budget,
            has_stable=has_stable,
            shown_promises=parts.contexts.promises(self.space, session, now=parts.now()) if session else frozenset(),
            continuity=self._continuity(session, None),
            personal=self._personal_context(),
        )

    def _personal_context(self) -> SearchContext | None:
        return None if self.personal is None else self.personal._parts.scheduler.context()

    def _continuity(self, session: str | None, project: str | None) -> Continuity:
        from mcp_memory.longterm.recall.continuity import Continuity
        from mcp_memory.shortterm.canvas.tasks import open_task

        if project is None and session is not None:
            project = self._store.read(self.space, turn_rows.project_of_session, session)
        return Continuity(
            session=session,
            project=project and mask_name(project),
            open_task=lambda name: open_task(self._store, self.space, name),
        )

    def _note_stable(self, session: str | None, bundle: Bundle) -> None:
        if session and bundle.stable:
            self._parts.contexts.note_stable(self.space, session, bundle.stable, now=self._parts.now())

    def _note_promises(self, session: str | None, bundle: Bundle) -> None:
        from mcp_memory.longterm.recall.promises import promises_in

        if session and (promises := promises_in(bundle.dynamic)):
            self._parts.contexts.note_promises(self.space, session, promises, now=self._parts.now())

    def _log(self, bundle: Bundle, how: RecallHow, session: str | None, query: str = "") -> Bundle:
        """Log which rows a context got, with the query only if contents are logged, and return the bundle.

        The query is logged as hashes of its words in any case.

        Rows of the personal memory are logged there, without tokens: those of the block count once.
        """
        from mcp_memory.longterm.recall.blocks import ids_in
        from mcp_memory.longterm.search.feedback import question_hashes

        query = without_private(query)
        if bundle.tokens:
            text = f"{bundle.stable}\n{bundle.dynamic}"
            shows_query = self.settings.log_contents and query.strip()
            entry = RecallEntry(
                at=self._parts.now(),
                how=how,
                session=one_line(mask(session or self.session), 100),
                ids=tuple(dict.fromkeys(row[0] for id in ids_in(text) if (row := _ROW.match(id)))),
                tokens=bundle.tokens,
                client=session_rows.client_in(session or self.session) or (self.client and client_name(self.client)),
                words=tuple(sorted(question_hashes(query))) if query.strip() else (),
                query=one_line(mask(query), _QUERY_CHARS) if shows_query else None,
            )
            self._parts.recall_log.note(self.space, entry)
            if self.personal is not None and (ids := tuple(dict.fromkeys(marked_ids(text)))):
                self._parts.recall_log.note(self.personal.space, replace(entry, ids=ids, tokens=0))
        return bundle

    @reading
    def explain_recall(self, query: str, *, budget_tokens: int = 1200) -> Recalled:
        """Explain which rows a recall would bring for a question, and why. Raises InvalidInput without a query."""
        from mcp_memory.longterm.recall.blocks import explain_recall

        check_range(budget_tokens, "budget_tokens", 100, 100_000)
        parts = self._parts
        query = require_query(query)
        parts.indexing.catch_up()
        return explain_recall(parts.scheduler.context(), query, counter=parts.counter, budget=budget_tokens)

    @in_thread
    def recalls(
        self, *, text: str = "", client: str | None = None, before: int | None = None, limit: int = 50
    ) -> list[RecallEntry]:
        """Return the last recalls of all processes, the newest first. Ids of forgotten rows are left out.

        `text` selects those whose questions had all of its words, `client` those of a program, and `before` those that
        were logged before this one.
        """
        from mcp_memory.longterm.search.feedback import question_hashes

        words = tuple(question_hashes(text)) if text.strip() else ()
        return self._recalls(limit, client=client, words=words, before=before)

    def _recalls(self, limit: int, **which: Any) -> list[RecallEntry]:
        store = self._store
        with store.outside_snapshot():  # it would not see the new entries
            self._parts.recall_log.wait_until_written()
        return self._without_forgotten(store.read(self.space, recall_rows.list_recalls, limit=limit, **which))

    def _without_forgotten(self, entries: Sequence[RecallEntry]) -> list[RecallEntry]:
        store = self._store
        ids = {id for entry in entries for id in entry.ids}
        existing = {
            *(id for id in ids if id[0] == "r"),
            *(turn.id for turn in store.read(self.space, turn_rows.by_ids, [id for id in ids if id[0] == "t"])),
            *(atom.id for atom in store.read(self.space, atom_rows.by_ids, [id for id in ids if id[0] == "a"])),
        }
        return [replace(entry, ids=tuple(id for id in entry.ids if id in existing)) for entry in entries]

    recall_clients = store_verb(recall_rows.clients)

    @in_thread
    def recall_entry(self, id: int) -> RecallEntry:
        """Return a logged recall, with the ids of forgotten rows. Raises NotFound if it is not in the log any more."""
        self._parts.recall_log.wait_until_written()
        entry = self._store.read(self.space, recall_rows.by_number, id)
        if entry is None:
            raise NotFound(f"There is no recall {id} in the log, which keeps the last {recall_rows.KEPT}.")
        return entry

    @reading
    def asked_by(self, entries: Sequence[RecallEntry]) -> list[Asked | None]:
        """Return the question of each of these recalls: from the log if it has it, else from the recorded turns."""
        from mcp_memory.longterm.recall.asked import asked_by

        return [asked_by(self._store, self.space, entry) for entry in entries]

    @in_thread
    def give_feedback(self, recall: int, target: str, verdict: FeedbackVerdict) -> Feedback:
        """Store that a turn or atom which a recall returned was helpful, or wrong, for its question.

        From then on this counts in searches and recalls for similar questions (`longterm.search.feedback`). Raises
        NotFound if there is no such recall or it did not return the row, and InvalidInput if it had no question.
        """
        self._parts.recall_log.wait_until_written()
        return self._store.write(self.space, _add_feedback, recall, target, verdict, now=self._parts.now())

    @in_thread
    def undo_feedback(self, id: int) -> Feedback:
        """Let feedback not count any more. Raises NotFound if there is no such feedback, or it was undone before."""
        return self._store.write(self.space, feedback_rows.undo, id, now=self._parts.now())

    feedback_on = store_verb(feedback_rows.on)


def _add_feedback(tx: Transaction, recall: int, target: str, verdict: FeedbackVerdict, *, now: datetime) -> Feedback:
    entry = recall_rows.by_number(tx, recall)
    if entry is None or target not in entry.ids or target[0] not in "at":
        raise NotFound(f"Recall {recall} is not in the log any more, or did not return {one_line(target, 20)}.")
    if not entry.words:
        raise InvalidInput("This recall had no question, so there are no similar ones.")
    latest = next(iter(feedback_rows.on(tx, target=target, recall=recall)), None)
    if latest is not None and latest.verdict == verdict:
        return latest
    return feedback_rows.add(tx, target, verdict, words=entry.words, recall=recall, now=now)
