"""What is due, computed from rows alone, so that a restart changes nothing.

Extraction is due for a session after 5 turns of the user, after some silence, or when it is asked for; in a space that
is new after 1, 2 and 4, so that a new user sees soon what it is good for. (Upstream warms up anew in every session,
which on short sessions doubles the calls.) Merging waits until some drafts have gathered, for one question serves
many. Scenes are written when enough is new, and not too often; the persona when `trigger` says so.

Over all there is at most one question for five turns, after the first few: what is due beyond that waits, and gathers.
What is asked for (`flush`, or `eager`) does not.

Then come tasks, which have a budget of their own, since they make many results and few turns: at most one question for
25 records. Results with a poor line wait until they fill a question; a canvas is looked over when it has grown by as
much, or its task is done. A task that was not touched for some days is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mcp_memory.core.config import Settings
from mcp_memory.core.types import Atom, Stage
from mcp_memory.store.protocol import Backlog, Done, StageState, Store

__all__ = ["DRAFTS", "FIRST", "RECORDS_A_QUESTION", "REST", "SOME", "Due", "due", "gathered"]

# What is worth a question. With 8, 10 and an hour, 130 turns of real talk took 47 questions.
DRAFTS = 12
NEW_ATOMS = 20
TURNS_A_QUESTION, FIRST = 6, 6  # the promise is five; the first few and corrections come on top
LATEST = timedelta(days=1)  # after which even one is
RECORDS_A_QUESTION = 25
REST = timedelta(hours=1)  # after which a task's results wait for no more
SOME = 3  # that are worth a question then, or for who asks for all: one or two are read as fast as they are told


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    stage: Stage
    session: str | None = None


def due(store: Store, space: str, settings: Settings, now: datetime, *, eager: bool = False) -> Iterator[Due]:
    """Yield what is due, what is nearest to its end first. `eager`: all that could be done, waiting for no more."""
    log: dict[Stage, Done] = {done.stage: done for done in store.done(space)}
    yield from _of_talk(store, space, settings, now, log, eager=eager)
    yield from _of_tasks(store, space, settings, now, log, eager=eager)


def _of_talk(
    store: Store, space: str, settings: Settings, now: datetime, log: Mapping[Stage, Done], *, eager: bool
) -> Iterator[Due]:
    from mcp_memory.longterm.l3_persona import write as l3_persona

    states = store.stage_states(space)
    new = _untold(store, space, states.get("scenes"))
    waiting = [one for one in store.backlog(space) if _says_something(one)]
    if not eager and not _affordable(log, waiting):
        yield from (_of(one) for one in waiting if one.flush > one.start)
        return
    if len(new) >= 2 * NEW_ATOMS:  # a long backlog shall not keep what is known of it from being told
        yield Due(stage="scenes")
    enough = _enough(log, settings)
    for one in reversed(waiting) if eager else waiting:  # a whole history is best read as it was lived
        if eager or _ready(one, enough, settings, now):
            yield _of(one)
    if store.drafts(space, limit=1):
        yield Due(stage="merge")
    if _scenes(store, space, settings, states.get("scenes"), new, now, eager=eager):
        yield Due(stage="scenes")
    if l3_persona.trigger(store, space, settings) is not None:
        yield Due(stage="persona")


def _of(backlog: Backlog) -> Due:
    return Due(stage="extract", session=backlog.session)


def _affordable(log: Mapping[Stage, Done], waiting: Sequence[Backlog]) -> bool:
    """Return whether another question keeps to the promise."""
    read = log["extract"].outcome.get("turns", 0) if "extract" in log else 0
    turns = read + sum(one.turns for one in waiting)
    asked = sum(done.asked for stage, done in log.items() if stage not in _TASKS)
    return asked < FIRST + turns / TURNS_A_QUESTION


def gathered(store: Store, space: str, now: datetime) -> bool:
    """Return whether the drafts that wait are worth a question, or have waited long enough, or were asked for."""
    state = store.stage_states(space).get("merge")
    if state is not None and state.wanted:
        return True
    if len(store.drafts(space, limit=DRAFTS)) >= DRAFTS:
        return True
    last = next((done.last for done in store.done(space) if done.stage == "extract"), None)
    return last is None or abs(now - last) >= LATEST


def _silent_for(backlog: Backlog, now: datetime) -> float:
    """Return for how many seconds, either way: a clock that was set back does not make a session wait for it."""
    return abs(now - backlog.last).total_seconds()


def _enough(log: Mapping[Stage, Done], settings: Settings) -> int:
    """Return how many turns of the user are worth a question."""
    asked = log["extract"].works if "extract" in log else 0
    return min(2 ** min(asked, 10), settings.every_turns)


def _ready(backlog: Backlog, enough: int, settings: Settings, now: datetime) -> bool:
    return (
        backlog.flush > backlog.start
        or backlog.asked >= enough
        or backlog.turns >= 2 * settings.batch_turns
        or _silent_for(backlog, now) >= settings.idle_seconds
    )


def _says_something(backlog: Backlog) -> bool:
    """The last word of an assistant, which nobody took up, is read with what follows it."""
    return backlog.asked > 0 or backlog.turns > 2


def _untold(store: Store, space: str, state: StageState | None) -> list[Atom]:
    """Return the first atoms that no round of scenes has seen."""
    return store.atoms_since(space, state.position if state else 0, limit=2 * NEW_ATOMS)


def _scenes(
    store: Store,
    space: str,
    settings: Settings,
    state: StageState | None,
    new: Sequence[Atom],
    now: datetime,
    *,
    eager: bool,
) -> bool:
    from mcp_memory.longterm.l2_scenes.write import is_stale

    if state is not None and state.wanted:
        return True
    if not eager and state is not None and abs(now - state.at).total_seconds() < settings.scenes_interval:
        return False
    if not new:
        return is_stale(store, space)
    return eager or len(new) >= NEW_ATOMS or abs(now - new[0].learned_at) >= LATEST


# --- tasks ------------------------------------------------------------------------------------------

_TASKS: tuple[Stage, ...] = ("canvas", "summaries")


def _of_tasks(
    store: Store, space: str, settings: Settings, now: datetime, log: Mapping[Stage, Done], *, eager: bool
) -> Iterator[Due]:
    from mcp_memory.shortterm.stages import canvas, summaries

    asked = sum(log[stage].asked for stage in _TASKS if stage in log)
    if not eager and asked >= 1 + store.recorded(space) / RECORDS_A_QUESTION:
        return
    if settings.llm_summaries != "none":
        thin = summaries.thin(store, space, now)
        rested = bool(thin) and abs(now - thin[-1].record.timestamp) >= REST
        if len(thin) >= (SOME if eager or rested else summaries.AT_ONCE):
            yield Due(stage="summaries")
    if settings.llm_canvas != "none" and canvas.grown(store, space, now, eager=eager):
        yield Due(stage="canvas")
