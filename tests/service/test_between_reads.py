"""A verb that waits for a model ends its snapshot, and others write meanwhile: no verb may fail because of that."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from unittest.mock import patch

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.types import NewTurn, Role
from mcp_memory.longterm.statements import explicit_atom
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.render import render
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, tombstone_rows, turn_rows
from mcp_memory.testing import FixedClock

WRITES = ("a session", "a turn", "a statement", "forget a turn", "forget a statement")
ROLES: tuple[Role, Role] = ("user", "assistant")
SPACE = "default"
NOW = FixedClock()


class Writes:
    """Carries out a plan of writes, one per step. Reads made by a write do not start the next step."""

    def __init__(self, store: Store, plan: list[str], *, atoms: list[str]) -> None:
        self.store, self.plan, self.numbers = store, iter(plan), count()
        self.turns: list[str] = []
        self.atoms = atoms  # to be forgotten
        self._lock = threading.RLock()
        self._is_writing = False

    def step(self) -> None:
        with self._lock:
            if self._is_writing:
                return
            self._is_writing = True
            try:
                self._write(next(self.plan, ""), next(self.numbers))
            finally:
                self._is_writing = False

    def _write(self, kind: str, number: int) -> None:
        match kind:
            case "a session" | "a turn":
                session = f"other {number}" if kind == "a session" else "first"
                new = [NewTurn(role=ROLES[number % 2], content=f"The kettle of boat {number} is red, isn't it?")]
                self.turns += [
                    turn.id
                    for turn in self.store.write(
                        SPACE, turn_rows.append, session, turn_rows.prepare(new), now=NOW()
                    ).stored
                ]
            case "a statement":
                new = explicit_atom(
                    f"Boat {number} has a red kettle.",
                    kind="episodic",
                    session="other",
                    entity=None,
                    relation=None,
                    value=None,
                    supersedes=(),
                    valid_from=NOW(),
                )
                self.atoms.append(self.store.write(SPACE, atom_rows.add, new, now=NOW()).atom.id)
            case "forget a turn" if self.turns:
                self.store.write(SPACE, tombstone_rows.forget, [self.turns.pop()], reason="no longer true", now=NOW())
            case "forget a statement" if self.atoms:
                self.store.write(SPACE, tombstone_rows.forget, [self.atoms.pop(0)], reason="no longer true", now=NOW())
            case _:
                pass


@contextmanager
def before_each_read(store: Any, writes: Writes) -> Generator[None]:
    """Let all verbs end their snapshot before each read, and others write before the next begins."""
    kind = cast("Any", type(store._db))
    read = kind.read

    def interrupted(self: Any, *args: Any, **kwargs: Any) -> Any:
        with store.outside_snapshot():
            writes.step()
        return read(self, *args, **kwargs)

    with patch.object(kind, "read", interrupted):
        yield


async def answers(memory: Memory, question: str) -> list[str]:
    return [
        render(await memory.conversation_excerpts(question, neighbours=1)),
        render(await memory.memory_excerpts(question)),
        render(await memory.recall_answer(question)),
    ]


@given(plan=st.lists(st.sampled_from(WRITES), min_size=1, max_size=60), embedder=st.sampled_from(["none", "bundled"]))
@example(plan=["a session"] * 60, embedder="none")  # more sessions with a word than the earlier total
@example(plan=["", "forget a statement"], embedder="none")  # forgotten right after its text was read
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_reading_bears_what_is_written_between_two_of_its_reads(plan: list[str], embedder: str) -> None:
    async def run(home: Path) -> None:
        async with open_memory(Settings(home=home, embedder=embedder), now=NOW) as memory:
            said = ["What colour is the kettle?", "The kettle is red.", "And the boat?"]
            turns = [NewTurn(role=ROLES[place % 2], content=text) for place, text in enumerate(said)]
            await memory.record_turns(turns, session="first")
            red = (await memory.remember("The kettle of the boat is red.", typed=True)).atom.id
            store = memory._parts.store  # pyright: ignore[reportPrivateUsage]
            with before_each_read(store, Writes(store, plan, atoms=[red])):
                with suppress(NotFound):
                    assert (await memory.why(red)).atom is not None
                found = await answers(memory, "the kettle of the boat")
            assert all("kettle" in answer.lower() for answer in found)

    with TemporaryDirectory() as folder:
        anyio.run(run, Path(folder, "home"))


@pytest.mark.parametrize("reads_before", range(20, 44, 3))
async def test_a_recall_in_too_few_tokens_names_the_callers_budget_whatever_is_forgotten_meanwhile(
    reads_before: int, home: Path
) -> None:
    async with open_memory(Settings(home=home, embedder="none"), now=NOW) as memory:
        long = (await memory.remember("The kettle of the boat is red. " + "It whistles. " * 120)).atom.id
        plan = [""] * reads_before + ["forget a statement"]
        with before_each_read(memory._parts.store, Writes(memory._parts.store, plan, atoms=[long])):
            refused: list[str] = []
            try:
                await memory.recall_answer("What colour is the kettle?", budget_tokens=60)
            except InvalidInput as error:
                refused.append(str(error))
            assert all("60" in text for text in refused)
