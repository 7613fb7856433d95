"""Decides which stages of a space are due, and when. Computed from rows alone, so a restart changes nothing.

A "question" is one prompt to the model. Extraction is due for a session when it has fallen silent and enough turns of
the space are unread; fewer turns wait a week. It is due at once when the unread turns fill a prompt, or on request.
Each prompt repeats its instructions, so few large prompts cost a fraction of many small ones, and until then the turns
can be searched word for word. (Upstream asks every 5 turns, and after 1, 2 and 4 of each session.) Merging waits for
some drafts, since one prompt serves many. Scenes are written when enough atoms are new, and not too often; the persona
is due by `persona_stage.trigger`. There is at most one question per ten turns, after the first few. Requests (`flush`,
or `eager`) do not wait.

Tasks have a separate budget, since they make many results and few turns: at most one question per 25 records. Results
with a poor summary wait until they fill a prompt; a canvas is reviewed when it has grown by the same number, or its
task is done. A task that was not touched for some days is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mcp_memory.core.config import Settings
from mcp_memory.core.types import Atom, Stage
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, job_rows, record_rows, stage_outputs
from mcp_memory.store.values import Backlog, Done, Draft, StageState

# The least input of a question.
DRAFTS = 24
NEW_ATOMS = 40
TURNS_A_QUESTION, FIRST_QUESTIONS = 11, 4  # the promise is ten turns; the first few and corrections come on top
FIRST_TURNS = 2  # turns before the first extraction, so that a new user sees results early
RECORDS_A_QUESTION = 25
LEAST_RESULTS = 3  # after TASK_REST, or if requested: one or two results are read as fast as their summaries

# The longest wait for more input.
LATEST = timedelta(days=7)  # of turns and drafts; until then, search finds each of them
LATEST_SCENES = timedelta(days=14)  # of atoms that are on no page
FIRST_SCENES, FIRST_ATOMS = (
    timedelta(days=1),
    20,
)  # the same for the first pages: with fewer atoms they are soon rewritten
TASK_REST = timedelta(hours=1)

_COUNT_LIMIT = 10_000
_TASK_STAGES: tuple[Stage, ...] = ("canvas", "summaries")


@dataclass(frozen=True, slots=True, kw_only=True)
class DueStage:
    """A stage that is due, now or at a later moment if nothing is written until then."""

    stage: Stage
    session: str | None = None
    at: datetime = field(compare=False)
    waiting: Sequence[Draft] = field(default=(), compare=False)
    """Of a merge: drafts that are too few for a question yet; only drafts that need no question are merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJobs:
    """The input that a model would read if all stages ran now, as numbers of rows."""

    unread: Mapping[str, int] = field(default_factory=dict[str, int])
    """The position of the first unread turn, by session."""
    drafts: int = 0
    atoms: int = 0
    """Atoms that are in no scene yet."""
    results: int = 0
    canvases: int = 0
    persona: bool = False


def due(store: Store, space: str, settings: Settings, now: datetime, *, eager: bool = False) -> Iterator[DueStage]:
    """Yield the due stages, those nearest to completion first. With `eager`, none waits for time or more input."""
    return (stage for stage in planned(store, space, settings, now, eager=eager) if stage.at <= now)


def planned(store: Store, space: str, settings: Settings, now: datetime, *, eager: bool = False) -> Iterator[DueStage]:
    """Yield the stages that are due now, and those that become due later even if nothing is written."""
    log: dict[Stage, Done] = {done.stage: done for done in store.read(space, job_rows.stage_totals)}
    planner = _Planner(store, space, settings, now, eager, log)
    yield from planner.conversation_stages()
    yield from planner.task_stages()


def unread_sessions(store: Store, space: str) -> list[Backlog]:
    """Return the sessions with turns to read. An assistant's last words are read with the reply to them."""
    return [backlog for backlog in store.read(space, job_rows.backlog) if backlog.asked > 0 or backlog.turns > 2]


def waiting_jobs(store: Store, space: str, settings: Settings, now: datetime) -> WaitingJobs:
    """Return the work that a model would be asked to do if all stages were run now, due or not."""
    from mcp_memory.longterm.persona_stage import trigger
    from mcp_memory.shortterm import canvas_stage, summary_stage

    no_summaries, no_canvas = settings.llm_summaries == "none", settings.llm_canvas == "none"
    thin = [] if no_summaries else summary_stage.due_records(store, space, now, limit=_COUNT_LIMIT)
    grown = [] if no_canvas else canvas_stage.due_canvases(store, space, now, eager=True)
    return WaitingJobs(
        unread={backlog.session: backlog.start for backlog in unread_sessions(store, space)},
        drafts=len(store.read(space, stage_outputs.drafts, limit=_COUNT_LIMIT)),
        atoms=len(_new_atoms(store, space, store.read(space, job_rows.stage_states).get("scenes"), limit=_COUNT_LIMIT)),
        results=len(thin) if len(thin) >= LEAST_RESULTS else 0,
        canvases=len(grown),
        persona=trigger(store, space, settings) is not None,
    )


def _new_atoms(store: Store, space: str, scenes: StageState | None, *, limit: int) -> list[Atom]:
    """Return the atoms that the scenes stage has not read."""
    return store.read(space, atom_rows.list_since, scenes.position if scenes else 0, limit=limit, sentences=False)


@dataclass(frozen=True, slots=True)
class _Planner:
    store: Store
    space: str
    settings: Settings
    now: datetime
    eager: bool
    log: Mapping[Stage, Done]

    def conversation_stages(self) -> Iterator[DueStage]:
        """Yield extraction, merging, scenes and persona."""
        from mcp_memory.longterm.persona_stage import trigger

        store, space, now = self.store, self.space, self.now
        states = store.read(space, job_rows.stage_states)
        new_atoms = _new_atoms(store, space, states.get("scenes"), limit=2 * NEW_ATOMS)
        sessions = unread_sessions(store, space)
        if not self.eager and not self._can_afford_question(sessions):
            for backlog in sessions:
                if backlog.flush > backlog.start:
                    yield DueStage(stage="extract", session=backlog.session, at=now)
            return
        if len(new_atoms) >= 2 * NEW_ATOMS:  # a long backlog must not delay scenes of atoms extracted so far
            yield DueStage(stage="scenes", at=now)
        drafts = store.read(space, stage_outputs.drafts, limit=DRAFTS)
        if drafts:  # before extraction, which shows the model the merged atoms
            yield DueStage(stage="merge", at=now, waiting=drafts)
        is_enough = sum(backlog.asked for backlog in sessions) >= self._least_turns()
        for backlog in reversed(sessions) if self.eager else sessions:  # a whole history is read oldest first
            yield DueStage(stage="extract", session=backlog.session, at=self._extract_at(backlog, is_enough))
        if drafts:
            yield DueStage(stage="merge", at=self._merge_at(drafts, states.get("merge")))
        if (at := self._scenes_at(new_atoms, states.get("scenes"))) is not None:
            yield DueStage(stage="scenes", at=at)
        if trigger(store, space, self.settings) is not None:
            yield DueStage(stage="persona", at=now)

    def _can_afford_question(self, sessions: Sequence[Backlog]) -> bool:
        """Return whether another question stays within the limit of one per ten turns, after the first few."""
        read = self.log["extract"].outcome.get("turns", 0) if "extract" in self.log else 0
        turns = read + sum(backlog.turns for backlog in sessions)
        asked = sum(done.asked for stage, done in self.log.items() if stage not in _TASK_STAGES)
        return asked < FIRST_QUESTIONS + turns / TURNS_A_QUESTION

    def _least_turns(self) -> int:
        """Return how many unread turns of the user justify a question; fewer for the first extraction."""
        every_turns = self.settings.every_turns
        return every_turns if "extract" in self.log else min(FIRST_TURNS, every_turns)

    def _extract_at(self, backlog: Backlog, is_enough: bool) -> datetime:
        """Return when a session is due for extraction.

        `is_enough` is true if the unread turns of the space justify a question.
        """
        if self.eager or backlog.flush > backlog.start or backlog.turns >= self.settings.batch_turns:
            return self.now
        return self._after(backlog.last, timedelta(seconds=self.settings.idle_seconds) if is_enough else LATEST)

    def _merge_at(self, drafts: Sequence[Draft], state: StageState | None) -> datetime:
        """Return when merging is due: now if there are many drafts or it was requested, else after a long wait."""
        extracted = self.log.get("extract")
        is_requested = state is not None and bool(state.wanted)
        if self.eager or is_requested or len(drafts) >= DRAFTS or extracted is None:
            return self.now
        return self._after(extracted.last, LATEST)

    def _scenes_at(self, new_atoms: Sequence[Atom], state: StageState | None) -> datetime | None:
        """Return when to write scenes, or to check whether any is stale; None if there is nothing to do."""
        from mcp_memory.longterm.scenes import is_stale

        now = self.now
        if state is not None and state.wanted:
            return now
        start = now
        if state is not None and not self.eager:
            start = max(now, self._after(state.at, timedelta(seconds=self.settings.scenes_interval)))
        if not new_atoms:
            return start if start > now or is_stale(self.store, self.space) else None
        if self.eager or len(new_atoms) >= NEW_ATOMS:
            return start
        latest = FIRST_SCENES if state is None and len(new_atoms) >= FIRST_ATOMS else LATEST_SCENES
        return max(start, self._after(new_atoms[0].learned_at, latest))

    def task_stages(self) -> Iterator[DueStage]:
        """Yield the stages of tasks: summaries of results, and reviews of canvases."""
        from mcp_memory.shortterm import canvas_stage, summary_stage

        store, space, now = self.store, self.space, self.now
        asked = sum(self.log[stage].asked for stage in _TASK_STAGES if stage in self.log)
        if not self.eager and asked >= 1 + store.read(space, record_rows.count) / RECORDS_A_QUESTION:
            return
        if self.settings.llm_summaries != "none":
            thin = summary_stage.due_records(store, space, now)
            if len(thin) >= LEAST_RESULTS:
                is_full = self.eager or len(thin) >= summary_stage.AT_ONCE
                at = now if is_full else self._after(thin[-1].record.timestamp, TASK_REST)
                yield DueStage(stage="summaries", at=at)
        if self.settings.llm_canvas != "none" and canvas_stage.due_canvases(store, space, now, eager=self.eager):
            yield DueStage(stage="canvas", at=now)

    def _after(self, last: datetime, span: timedelta) -> datetime:
        """Return `last + span`; now if `last` is at least `span` in the future, because a clock was set back."""
        return self.now if last - self.now >= span else last + span
