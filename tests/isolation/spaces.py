"""Two homes that differ in one thing: in one of them, somebody else keeps a space of his own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio.to_thread

from mcp_memory.core.config import Settings, load_settings
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.sql import sentence_rows, stage_outputs
from mcp_memory.store.values import SceneChanges, SceneEdit

MINE, THEIRS = "mine", "theirs"
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

# Each stands in one kind of thing alone, so that what leaks is named. None is a word of any message of ours.
SECRETS = ["velvetotter", "quartzheron", "umberlynx", "cobaltfinch", "russetnewt", "ambergecko"]
SECRETS += ["tealmarten", "slateibis", "indigostoat", "copperwren", "ivoryshrew", "jadebadger"]
OWN = ["lantern", "harbour", "ladder", "tunnel", "basket", "carpet"]
OWN += ["mirror", "pencil", "saddle", "anchor", "kettle", "button"]


@dataclass(frozen=True, repr=False)
class Homes:
    """`tokens` open MINE by right; `stranger` opens THEIRS in `shared`, and `alone` has nothing of it."""

    shared: Settings
    alone: Settings
    tokens: dict[str, str]
    stranger: str
    secrets: tuple[str, ...] = tuple(SECRETS)
    own: tuple[str, ...] = tuple(OWN)
    own_ids: list[str] = field(default_factory=list[str])
    foreign_ids: list[str] = field(default_factory=list[str])

    def __repr__(self) -> str:
        return "homes"


async def make_homes(folder: Path, copy: Callable[[Path, Path], object] = shutil.copytree) -> Homes:
    """Make both homes in a folder; `copy` copies the memory of one to another."""
    shared, alone = (
        load_settings({}, home=folder / name, embedder="none", space="owners", rate_limit=0)
        for name in ("shared", "alone")
    )
    async with open_memory(shared, now=_clock()) as memory:
        tokens = {
            right: (await memory.create_token(right, spaces=[MINE], right=right))[1]
            for right in ("read", "write", "admin")
        }
        stranger = (await memory.create_token("stranger", spaces=[THEIRS], right="admin"))[1]
        own_ids = await _fill(memory.in_space(MINE), OWN)
        await _until_read(memory.in_space(MINE))
    await anyio.to_thread.run_sync(copy, shared.home, alone.home)
    async with open_memory(shared, now=_clock()) as memory:
        foreign_ids = await _fill(memory.in_space(THEIRS), SECRETS)
        await _until_read(memory.in_space(THEIRS))
    # The background would read what the tests record at another moment in each home, and number it otherwise.
    shared, alone = (home.model_copy(update={"read_sentences": False}) for home in (shared, alone))
    return Homes(shared, alone, tokens, stranger, own_ids=own_ids, foreign_ids=foreign_ids)


async def _until_read(memory: Memory) -> None:
    """Wait until the background has made statements of all turns, so that a copy of the memory has nothing left to do."""
    unread = partial(memory._parts.store.read, memory.space, sentence_rows.unread_turns, limit=1)
    with anyio.fail_after(60):
        while True:
            if not await anyio.to_thread.run_sync(unread):
                return
            await anyio.sleep(0.05)


def _clock() -> Callable[[], datetime]:
    ticks = iter(range(10_000))
    return lambda: NOON + timedelta(seconds=next(ticks))


async def _fill(memory: Memory, words: list[str]) -> list[str]:
    """Put one of everything into a space, and return an id, name or cursor of each kind that it has."""
    turn, atom, entity, value, session, task, step, result, tool, slug, body, reason = words
    said = [NewTurn(role="user", content=f"The {turn} leaves at nine, says the plan of number {n}.") for n in range(30)]
    said.append(NewTurn(role="user", content=f"I am a teacher and live in {turn} with my two cats."))
    recorded = await memory.record_turns(said, session=f"talk {session}")
    told = [
        await memory.remember(f"Likes the {atom} best of all.", session=session, typed=True),
        await memory.remember(
            f"Maya works at {value}.", entity=f"Maya {entity}", relation="works at", value=value, typed=True
        ),
        await memory.remember(f"Never mention the {atom} rule.", kind="instruction", session=session, typed=True),
    ]
    gone = await memory.remember(f"Forgotten {reason}.", session=session, typed=True)
    forgotten = await memory.forget([gone.atom.id], reason=reason)
    log = "\n".join(f"row {n} of {result}" for n in range(200))
    kept = await memory.offload_tool_result(
        f"run_{tool}", log, task=f"Mend the {task}", step=f"Look at {step}", session=session, summary=f"{step} is torn"
    )
    scene = SceneEdit(
        action="create",
        slug=f"scene-{slug}",
        reason="new",
        title=f"About {slug}",
        summary=f"All of {slug}",
        body=f"The {body} ({told[0].atom.id}).",
        atoms=(told[0].atom.id,),
    )
    parts = memory._parts
    written = partial(
        parts.store.write,
        memory.space,
        stage_outputs.commit,
        None,
        SceneChanges(edits=[scene], upto=0),
        outcome={},
        now=parts.now(),
    )
    await anyio.to_thread.run_sync(written)
    asked = await memory.distill()
    page = await memory.conversation_search(turn, limit=2)
    found = [
        recorded.stored[0],
        told[0].atom.id,
        gone.atom.id,
        forgotten.tombstone,
        kept.ref,
        kept.node,
        kept.canvas,
        f"talk {session}",
        scene.slug,
        page.cursor,
        asked.next and asked.next.work_id,
        f"Maya {entity}",
    ]
    return [one for one in found if one]
