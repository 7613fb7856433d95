"""Keeps rows embedded and indexed; makes the vectors of a query.

Turns are indexed by their words, judged, embedded and read in the background, so that storing never waits for that. The
background works in small steps when no client has called for a moment, because a call that has to share the interpreter
with it takes several times as long; under calls without a pause it gets a tenth of the time. A search, and closing,
wait a moment until the latest turns of this process are judged, embedded by the bundled model, and their sentences
read. A search first indexes their words itself, however many there are. Statements are embedded in the call that stores
them, unless the model is remote. Rows without a vector are embedded whenever they are met, so a kill, a failed call or
a change of model needs no other bookkeeping. Until the configured model has embedded everything, the fullest other
index that can still be queried is searched too, so a change of model never empties an answer.

The background threads of all processes with one model share a queue of spaces (`queues.claim_space`). Each claims the
space that has been due longest, indexes the words of its new turns, then judges some turns (`trust.judge_waiting`),
indexes one large tool result, embeds one batch of its rows or reads the sentences of some turns (`longterm.reader`),
and releases it. Rows with terms of an earlier version are indexed again, and searched by the old terms until then.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic

from mcp_memory.core import telemetry
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import EmbeddingFailed, McpMemoryError, StoreUnavailable
from mcp_memory.core.metrics import Sample
from mcp_memory.models.embed.factory import embedder_for
from mcp_memory.models.embed.protocol import Embedder
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import queues
from mcp_memory.store.sql.word_index import index_queue
from mcp_memory.store.values import Vectors

logger = logging.getLogger(__name__)

_BATCH = 256
_EVERY_S = 30.0
_AFTER_FAILURE_S = 60.0
_CLOSING_S = 5.0
_CATCHING_UP_S = 1.0
_BETWEEN_S = 0.05  # pause for writers of other processes
_PAUSE_S = 0.25  # between calls
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 5.0  # the longest wait for a pause before the first step, and between two
_WAIT_A_STEP = 9  # the longest wait for a pause, as a multiple of the time that the last step took
_EMBEDDED_A_STEP = 32  # rows, by a local model: a fifth of a second
_WORDS_A_STEP, _WORDS_AT_ONCE = 50, 1_000  # turns that the background, and a search, index together
_MOST_NEW = 10_000  # turns whose words are not indexed yet: a second of work for a search
_READING_S = 60.0  # turns of a space whose rows cannot be embedded, within its lease
_LEASE = timedelta(minutes=5)  # longer than a batch or a result takes
_AGAIN = timedelta(days=1)
"""How long a space without new rows is not checked again. A server with another model may write some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """Progress of the configured model. `error` is why it last failed, None after a success."""

    model: str | None
    embedded: int
    total: int
    error: str | None
    terms_waiting: int = 0
    """Approximate number of rows that are not indexed by their words yet, or by terms of an earlier version."""
    refs_waiting: int = 0
    """Number of tool results whose lines are not indexed yet, or by terms of an earlier version."""


BackgroundStep = Callable[[str, Callable[[], bool]], bool]
"""Does some work on a space and returns whether there was any; the callback returns whether it may continue."""


def _no_step(space: str, going_on: Callable[[], bool]) -> bool:
    return False


class Indexing:
    """Makes vectors of rows and queries, and runs the background thread, which `open_memory` starts and closes."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        settings: Settings,
        *,
        index_result: BackgroundStep = _no_step,
        judge_turns: BackgroundStep = _no_step,
        read_turns: BackgroundStep = _no_step,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._settings = settings
        self._index_result = index_result
        self._judge_turns = judge_turns
        self._read_turns = read_turns
        self.queue = index_queue(embedder.identity if embedder else "none")
        self._worker = secrets.token_hex(8)
        self._complete = embedder is None
        self._others: list[Embedder] | None = None
        self._error: str | None = None
        self._results_error: str | None = None  # why results are not indexed now
        self._bell = threading.Event()
        self._stop = threading.Event()
        self._progress = threading.Condition()
        self._stored = self._done = 0  # turns of this process
        self._unjudged: dict[str, int] = {}
        """The value of `_stored` after the last turn in each space with turns of this process to judge."""
        self._unindexed: dict[str, int] = {}
        """How many turns this process has stored in each space since it last indexed the words of new turns there."""
        self._served = 0  # calls at this moment
        self._last_call = monotonic()  # when it ended; a new client calls first, before background work
        self._step_began = monotonic()
        self._waiting = 0  # number of calls that wait for vectors
        self._is_behind = False  # more than a batch of rows is waiting
        self._thread = threading.Thread(target=self._run, name="indexing", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Wait a few seconds until the turns that this process has just stored are judged and embedded, and stop.

        A remote model is not awaited.

        Nothing is lost: the remaining rows are identified by their missing vectors.
        """
        self._catch_up(_CLOSING_S)
        self._stop.set()
        self._bell.set()
        with self._progress:
            self._progress.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=_CLOSING_S)

    # --- for the verbs ------------------------------------------------------------------------------

    def of_rows(self, texts: Sequence[str]) -> Vectors | None:
        """Return vectors to store with new rows; None if there is no model or the background thread will make them."""
        embedder = self._embedder
        if embedder is None or not texts:
            return None
        if embedder.local:
            try:
                return Vectors(identity=embedder.identity, data=embedder.embed(texts))
            except EmbeddingFailed as error:  # the text is stored without vectors
                self._error = str(error)
        self._complete = False
        return None

    def stored(self, space: str | None = None, *, turns: int = 0) -> None:
        """Wake the background: there may be rows to embed, among them `turns` turns in this space.

        If very many turns of the space are not indexed by their words yet, index them now.
        """
        with self._progress:
            if turns and space is not None:
                self._complete = self._embedder is None
                self._stored += turns
                self._unjudged[space] = self._stored
                self._unindexed[space] = self._unindexed.get(space, 0) + turns
        self._bell.set()
        if space is not None and self._unindexed.get(space, 0) > _MOST_NEW:
            self._index_words(space)

    @contextmanager
    def serving(self) -> Generator[None]:
        """Let the background give way to a call during the block."""
        with self._progress:
            self._served += 1
        try:
            yield
        finally:
            with self._progress:
                self._served -= 1
                self._last_call = monotonic()
                self._progress.notify_all()

    def _index_words(self, space: str) -> None:
        """Index all new turns of a space by their words.

        If that fails, for example on a full disk, the call goes on, because searches also find turns that are not
        indexed. The background tries again, and reports the error.
        """
        with self._progress:
            self._unindexed.pop(space, None)
        with suppress(McpMemoryError):
            while self._store.index_new_turns(space, limit=_WORDS_AT_ONCE):
                pass

    def _catch_up(self, seconds: float) -> None:
        """Wait, at most `seconds`, until the turns that this process has just stored are judged, embedded and read.

        Waits only for their judgement if there is no model or it is remote, and not at all if a long history of this or
        another process is queued first.
        """
        if not self._thread.is_alive():
            return
        embeds = self._embedder is not None and self._embedder.local
        with self._progress:
            stored = self._stored

            def is_done() -> bool:
                return self._done >= stored or self._is_behind or not (embeds or self._unjudged)

            if stored - self._done <= _BATCH and not is_done():
                self._waiting += 1
                self._progress.notify_all()
                with self._store.outside_snapshot():  # it would not see the judgements and vectors
                    self._progress.wait_for(is_done, seconds)
                self._waiting -= 1

    def _await_pause(self, longest: float) -> None:
        """Wait, at most so many seconds, until no call is served, nor was served a moment ago.

        A call that waits for the background ends the wait.
        """
        latest = monotonic() + longest
        with self._progress:
            while not self._waiting and not self._stop.is_set():
                pause_ends = latest if self._served else self._last_call + _PAUSE_S
                left = min(pause_ends, latest) - monotonic()
                if left <= 0:
                    break
                self._progress.wait(left)
        self._step_began = monotonic()

    def _pause(self) -> bool:
        """Let other processes write; return False if the background has to stop."""
        return not self._stop.wait(_BETWEEN_S)

    def _pause_and_give_way(self) -> bool:
        return self._pause() and self._give_way()

    def _give_way(self) -> bool:
        """Give way to calls after a step, for a limited time; return False if the background has to stop.

        Never between a read and the write that follows from it: a call may delete the space meanwhile.
        """
        self._await_pause(min(_LONGEST_WAIT_S, _WAIT_A_STEP * (monotonic() - self._step_began)))
        return not self._stop.is_set()

    def _note_progress(self, stored: int) -> None:
        with self._progress:
            self._done = stored
            self._progress.notify_all()

    def catch_up(self) -> None:
        """Wait a moment until the turns that this process has just stored are judged and embedded.

        Their words are indexed now, however many they are. Call it before a snapshot.
        """
        for space in [*self._unindexed]:
            self._index_words(space)
        self._catch_up(_CATCHING_UP_S)

    def of_query(self, text: str) -> tuple[list[Vectors], str | None]:
        """Return the query's vectors by all models to search with, and a note if a model failed."""
        if self._embedder is None:
            return [], None
        self._catch_up(_CATCHING_UP_S)
        asked = [self._embedder]
        if not self._complete:
            asked += self._fullest_other(self._embedder.identity)
        vectors: list[Vectors] = []
        note = None
        with nullcontext() if all(embedder.local for embedder in asked) else self._store.outside_snapshot():
            for embedder in asked:
                try:
                    vectors.append(Vectors(identity=embedder.identity, data=embedder.embed_query(text)[None, :]))
                except EmbeddingFailed as error:
                    note = f"Searched by words only where this failed: {error}"
        return vectors, note

    def state(self) -> IndexState:
        model = self._embedder.identity if self._embedder else None
        progress = self._store.index_progress()
        return IndexState(
            model=model,
            embedded=next((index.embedded for index in progress.vectors if index.identity == model), 0),
            total=progress.embeddable,
            error=self._error,
            terms_waiting=progress.stale_terms,
            refs_waiting=progress.unindexed_refs,
        )

    def samples(self) -> list[Sample]:
        """Return what `/metrics` shows of the embedding model."""
        if self._embedder is None:
            return []
        failing = float(self._error is not None)
        return [Sample("mcp_memory_embedding_failing", "Whether the last call to the embedding model failed.", failing)]

    def _fullest_other(self, identity: str) -> list[Embedder]:
        """Return the embedder of the fullest other index, if any, looked up once: counting a large store takes long."""
        if self._others is None:
            identities = [
                index.identity for index in self._store.index_progress().vectors if index.identity != identity
            ]
            others = (embedder_for(other, self._settings) for other in identities)
            self._others = [other for other in others if other is not None][:1]
        return self._others

    # --- in the background --------------------------------------------------------------------------

    def _run(self) -> None:
        is_open = False
        while not self._stop.is_set():
            self._bell.clear()
            self._await_pause(_FIRST_WAIT_S)
            wait = _AFTER_FAILURE_S
            stored = self._stored
            try:
                if not is_open:
                    self._store.write_home(queues.open_queue, self.queue, worker=self._worker)
                    is_open = True
                try:
                    while not self._stop.is_set() and self._index_next():
                        stored = self._stored
                        self._give_way()
                finally:
                    self._maintain()  # also while a model fails
                self._error = self._results_error
                wait = _EVERY_S
            except McpMemoryError as error:  # a model that fails, a full disk, a lock
                is_open = False  # a claim may be left
                if str(error) != self._error and not self._stop.is_set():  # else the store may be closed by now
                    logger.warning("indexing waits: %s", error)
                self._error = str(error)
            except Exception:
                is_open = False
                self._error = "an internal error; see the log"
                logger.exception("indexing failed")
            self._note_progress(stored)
            self._bell.wait(wait)

    def _maintain(self) -> None:
        while not self._stop.is_set() and self._store.maintain_indexes(limit=_BATCH):
            self._pause_and_give_way()

    def _index_next(self) -> bool:
        """Do some work on the space that has been due longest. Return False if none is due."""
        claim = queues.claim_space(self._store, self.queue, lease=_LEASE, worker=self._worker)
        if claim is None:
            self._complete = self._embedder is None or not self._store.read_home(queues.count_waiting, self.queue)
            return False
        again = timedelta(0)
        try:
            with telemetry.worker_span("index", claim_age=claim.age):
                again = self._work_on(claim.space)
        finally:
            self._store.write_home(queues.release, claim, again=again)
        return True

    def _work_on(self, space: str) -> timedelta:
        """Index the words of new turns of a space; then judge some turns, index a result, embed a batch or read some.

        Return the time until the space is due again. If the model fails, raises EmbeddingFailed after reading turns for
        a while.
        """
        stored = self._stored
        while self._store.index_new_turns(space, limit=_WORDS_A_STEP):
            if not self._give_way():
                return timedelta(0)
        with self._progress:
            self._unindexed.pop(space, None)
        if self._judge_turns(space, lambda: not self._stop.is_set()):
            return timedelta(0)
        with self._progress:
            if self._unjudged.get(space, 0) <= stored:
                self._unjudged.pop(space, None)
            self._progress.notify_all()
        try:
            has_more, again = self._index_result(space, self._pause_and_give_way), _AGAIN
            self._results_error = None
            if has_more:
                return timedelta(0)
        except StoreUnavailable as error:  # the bucket of results fails; rows are still embedded
            self._results_error = str(error)
            logger.warning("results are indexed later: %s", error)
            again = timedelta(seconds=_AFTER_FAILURE_S)
        try:
            has_embedded = self._embed(space)
        except EmbeddingFailed:  # the reader needs no vectors, so it does not wait for the model
            until = monotonic() + _READING_S
            while self._read_turns(space, self._pause):
                if monotonic() > until:
                    break
            raise
        return timedelta(0) if has_embedded or self._read_turns(space, self._pause) else again

    def _embed(self, space: str) -> bool:
        """Embed some rows without vectors; return whether there were any."""
        embedder = self._embedder
        rows = self._store.unembedded(space, embedder.identity, limit=_BATCH) if embedder else []
        with self._progress:
            self._is_behind = len(rows) == _BATCH
            self._progress.notify_all()
        if embedder is None or not rows:
            return False
        self._complete = False
        if embedder.local:
            rows = rows[:_EMBEDDED_A_STEP]
        data = embedder.embed([text for _, text in rows])
        if not self._stop.is_set():  # else the store may be closed by now
            self._store.put_vectors([(space, id) for id, _ in rows], Vectors(identity=embedder.identity, data=data))
        return True
