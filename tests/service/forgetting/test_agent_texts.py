"""Steps, summaries, goals and labels by an agent that repeat forgotten words are offered, forgotten and purged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_memory.core.types import Forgotten, NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.shortterm.canvas.state import EdgeLabel, NewGroup, Patch, amend, apply_patch
from mcp_memory.store.sql import canvas_rows
from mcp_memory.store.sqlite.store import open_store
from tests.service.forgetting.conftest import left_in

SAID = "call doctor snorbelqui about the biopsy result on Friday at noon"
GOAL = "Call of doctor snorbelqui: biopsy result, Friday at noon"
SHORT = "doctor snorbelqui biopsy result"
WORD = "snorbelqui"
LOG = "log row\n" * 200

Write = Callable[[Memory, Path], Awaitable[None]]


async def _offload(memory: Memory, **of_call: Any) -> str:
    result = f"{len(await memory.records())} {LOG}"
    arguments: dict[str, Any] = {"step": "Look"} | of_call
    return (await memory.offload_tool_result("bash", result, session="s", **arguments)).ref


def _call(**of_call: Any) -> Write:
    async def write(memory: Memory, _: Path) -> None:
        await _offload(memory, **({"task": "Plan"} | of_call))

    return write


def _patch(*patches: Patch) -> Write:
    async def write(memory: Memory, home: Path) -> None:
        for step in ("Look", "Try", "Check"):
            await _offload(memory, task="Plan", step=step)

        def patch() -> None:
            store = open_store(home)
            for one in patches:
                row = store.read("default", canvas_rows.canvas, 1)
                amend(store, "default", row, lambda state, one=one: apply_patch(state, one), kind="patched")
            store.close()

        await anyio.to_thread.run_sync(patch)

    return write


async def _edge(memory: Memory, _: Path) -> None:
    await _offload(memory, task="Plan")
    await _offload(memory, task="Plan", step="Next", after=[f"001-N1 {SHORT}"])


CALLS: dict[str, Write] = {
    "step": _call(step=SAID),
    "summary": _call(summary=SAID),
    "shortened summary": _call(summary=f"Done: {SHORT}"),
    "argument": _call(arguments={"command": f"echo {SAID}"}),
    "goal": _call(task=GOAL),
    "edge": _edge,
}
GROUPED = ("001-N1", "001-N2")
PATCHES: dict[str, Write] = {
    "patched goal": _patch(Patch(goal=GOAL)),
    "patched title": _patch(Patch(titles={"001-N1": SAID})),
    "patched summary": _patch(Patch(summaries={"001-N1": SAID})),
    "group title": _patch(Patch(groups=(NewGroup(title=SAID, nodes=GROUPED),))),
    "group summary": _patch(Patch(groups=(NewGroup(title="Both", nodes=GROUPED, summary=SAID),))),
    "patched edge": _patch(Patch(edges=(EdgeLabel(source="001-N1", target="001-N2", label=SHORT),))),
    "earlier version": _patch(Patch(goal=GOAL), Patch(goal="Plan")),
}


async def _written(memory: Memory, home: Path, write: Write) -> list[str]:
    """Record what the user said, have an agent repeat it, and return the ids of the turn."""
    stored = (await memory.record_turns([NewTurn(role="user", content=f"Please {SAID}.")], session="talk")).stored
    await write(memory, home)
    await _offload(memory, task="Water the garden", step="Water the roses", summary="the roses are watered now")
    return stored


async def _texts(memory: Memory) -> str:
    """Return every text of the canvases and records."""
    rows = [row for row in await memory.canvases() if "garden" not in row.label]
    return f"{rows} {await memory.records()}"


async def _assert_is_erased(memory: Memory, done: Forgotten) -> None:
    assert WORD not in await _texts(memory)
    await memory.purge([str(done.tombstone)])
    assert WORD not in await _texts(memory)
    assert "the roses are watered now" in str(await memory.records())
    assert (await memory.canvas(2)).label == "water-the-garden"
    assert await memory.problems() == []


@pytest.mark.parametrize("kind", CALLS)
async def test_also_forgets_what_an_agent_repeated(memory: Memory, home: Path, kind: str) -> None:
    ids = await _written(memory, home, CALLS[kind])
    before = await _texts(memory)
    shown = await memory.forget(ids, dry_run=True)
    assert len(shown.also) == 1
    done = await memory.forget(ids, also=True)
    assert done.ids == [*ids, *shown.also]
    assert WORD not in await _texts(memory)
    await memory.forget(undo=done.tombstone)
    restored = await memory.forget(ids, dry_run=True)
    assert (restored.also, WORD in await _texts(memory)) == (shown.also, WORD in before)
    await _assert_is_erased(memory, await memory.forget(ids, also=True))


@pytest.mark.files
@pytest.mark.parametrize("kind", [*CALLS, *PATCHES])
async def test_a_purge_leaves_what_an_agent_repeated_in_no_file(memory: Memory, home: Path, kind: str) -> None:
    ids = await _written(memory, home, (CALLS | PATCHES)[kind])
    await _assert_is_erased(memory, await memory.forget(ids, also=True))
    assert left_in(home, WORD) == []


@pytest.mark.files
@pytest.mark.parametrize("kind", [*CALLS, *PATCHES])
async def test_a_purge_is_not_proven_while_an_agent_repeats_what_was_erased(
    memory: Memory, home: Path, kind: str
) -> None:
    turn = await memory.forget(await _written(memory, home, (CALLS | PATCHES)[kind]))
    report = await memory.purge([str(turn.tombstone)])
    assert (list(report.repeated), report.is_proven) == (turn.also, False)
    rest = await memory.purge([str((await memory.forget(turn.also)).tombstone)])
    assert (rest.repeated, rest.is_proven) == ([], True)
    assert left_in(home, WORD) == []


@pytest.mark.files
@pytest.mark.parametrize("kind", PATCHES)
async def test_undoing_restores_patched_words(memory: Memory, home: Path, kind: str) -> None:
    ids = await _written(memory, home, PATCHES[kind])
    before = await memory.canvas(1)
    done = await memory.forget(ids, also=True)
    await memory.forget(undo=done.tombstone)
    after = await memory.canvas(1)
    assert (after.groups, after.text, after.label) == (before.groups, before.text, before.label)


async def test_a_preview_shows_what_the_agent_wrote(memory: Memory, home: Path) -> None:
    shown = await memory.forget(await _written(memory, home, CALLS["step"]), dry_run=True)
    assert shown.also_previews == [f"{shown.also[0]}: bash: {SAID}"]


async def test_a_query_that_only_an_agent_wrote_is_offered_and_forgotten(memory: Memory) -> None:
    ref = await _offload(memory, task="Plan", step="Ask Snorbelqui")
    shown = await memory.forget(query="snorbelqui")
    assert (shown.ids, shown.also, shown.dry_run) == ([], [ref], True)
    assert (await memory.forget(query="snorbelqui", dry_run=False)).tombstone is None
    assert (await memory.forget(query="snorbelqui", also=True, dry_run=False)).ids == [ref]
    assert WORD not in await _texts(memory)
    assert (await memory.forget(query="snorbelqui")).also == []


async def test_other_calls_of_the_tool_and_short_steps_are_not_offered(memory: Memory, home: Path) -> None:
    ids = await _written(memory, home, _call(step="Call", summary="the doctor was not in"))
    first = await _offload(memory, task="Plan", step="Run the tests")
    await memory.record_turns([NewTurn(role="user", content="Tests?")], session="talk")
    assert (await memory.forget([*ids, "t2", first], dry_run=True)).also == []


async def test_words_that_a_canvas_got_after_it_was_forgotten_can_be_forgotten_too(memory: Memory) -> None:
    await _offload(memory, task="Plan")
    await memory.forget(["001"])
    await _offload(memory, task="001", step="Next", after=[f"001-N1 {SHORT}"])
    stored = (await memory.record_turns([NewTurn(role="user", content=f"Please {SAID}.")], session="talk")).stored
    done = await memory.forget(stored, also=True)
    assert done.ids == [*stored, "001"]
    assert WORD not in await _texts(memory)
