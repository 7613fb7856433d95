"""The short-term verbs as tests call them: a clock that moves by hand, and an exact small counter of tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from mcp_memory.core.types import CanvasRow, CanvasView, Expansion, NewTurn, Offloaded
from mcp_memory.shortterm.canvas.flowchart import Canvas
from mcp_memory.shortterm.canvas.placement import CanvasStep, place
from mcp_memory.shortterm.canvas.state import Patch, amend, apply_patch
from mcp_memory.shortterm.canvas.view import fold_canvas
from mcp_memory.shortterm.expand_node import expand
from mcp_memory.shortterm.offload import OffloadRequest, offload
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows, turn_rows

START = datetime(2026, 4, 16, 12, tzinfo=UTC)


def taken(canvas: Canvas, step: CanvasStep) -> Canvas:
    """Return the canvas with the step on it."""
    return place(canvas, step).canvas


def patch_canvas(store: Store, space: str, number: int, patch: Patch) -> CanvasRow:
    """Patch a stored canvas, as the canvas stage does."""
    return amend(
        store,
        space,
        store.read(space, canvas_rows.canvas, number),
        lambda held: apply_patch(held, patch),
        kind="patched",
    )


def from_versions(store: Store, space: str, number: int) -> CanvasRow:
    """Return a canvas as its versions tell it."""
    return store.read(space, canvas_rows.canvas, number, version=store.read(space, canvas_rows.canvas, number).version)


def tear(store: Any, number: int, text: str) -> None:
    """Change the text of a canvas from outside."""
    store.write("default", lambda tx: tx.run("UPDATE canvas SET text = ? WHERE number = ?", text, number))  # pyright: ignore


@dataclass(frozen=True)
class FourCharacters:
    """A token is four characters, begun or whole: a prefix never counts more than the text."""

    def count(self, text: str) -> int:
        return -(-len(text) // 4)

    def fits(self, text: str, limit: int) -> bool:
        return self.count(text) <= limit

    def cut(self, text: str, limit: int) -> str:
        return text[: 4 * max(0, limit)]


@dataclass
class Agent:
    """The short-term verbs as an agent in one session calls them; each call is a second later."""

    store: Store
    session: str = "s1"
    space: str = "default"
    counter: Any = field(default_factory=FourCharacters)
    seconds: int = 0

    @property
    def now(self) -> datetime:
        self.seconds += 1
        return START + timedelta(seconds=self.seconds)

    def offload(
        self, result: str | bytes = "line\n" * 500, tool: str = "Read", hint: str = "", **request: Any
    ) -> Offloaded:
        asked = OffloadRequest(tool_name=tool, result=result, session=self.session, **request)
        turns = self.store.read(self.space, turn_rows.last_turns, self.session, limit=4, roles=("user", "assistant"))
        return offload(
            self.store, self.space, request=asked, counter=self.counter, now=self.now, goal_hint=hint, turns=turns
        )

    def hear(self, *messages: str) -> None:
        """The user says these; what begins with `agent:` the agent does."""
        for message in messages:
            role, words = ("assistant", message[6:]) if message.startswith("agent:") else ("user", message)
            self.store.write(
                self.space,
                turn_rows.append,
                self.session,
                turn_rows.prepare([NewTurn(role=role, content=words)]),
                now=self.now,
            )

    def fold(self, **asked: Any) -> CanvasView:
        asked = {"session": self.session, "budget_tokens": 10_000} | asked
        return fold_canvas(self.store, self.space, counter=self.counter, now=self.now, **asked)

    def expand(self, target: str, **asked: Any) -> Expansion:
        return expand(self.store, self.space, target=target, counter=self.counter, **asked)
