"""Counts the modules that one call of Memory touches, and the calls from one module of the package into another.

`python scripts/switches.py [--by-module]`: a conversation search, an offload and an extraction step, each in process on
a warm memory in a temporary home. `--by-module` also lists the busiest pairs of modules.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anyio

from mcp_memory import NewTurn, open_memory
from mcp_memory.service.memory import Memory
from mcp_memory.testing import ScriptedLLM

PACKAGE = str(Path(__file__).resolve().parent.parent / "mcp_memory") + "/"
GOALS = {"conversation_search": (25, 150), "offload_tool_result": (30, 300), "an extraction step": (40, 600)}
TURNS = [f"My boat number {n} leaves Porto on {n + 1} May, and Anna waits at the pier." for n in range(12)]
OUTPUT = "\n".join(f"2026-05-07 10:{n:02}:00 INFO request {n} took {n * 7} ms" for n in range(60))


class Profile:
    """Modules touched, and calls between them as (caller, callee) pairs."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.switches: Counter[tuple[str, str]] = Counter()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        callee = frame.f_code.co_filename
        if event != "call" or not callee.startswith(PACKAGE) or frame.f_code.co_name == "<module>":
            return
        self.modules.add(callee)
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(PACKAGE):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != callee:
            self.switches[caller.f_code.co_filename.removeprefix(PACKAGE), callee.removeprefix(PACKAGE)] += 1


@contextmanager
def profiled() -> Generator[Profile]:
    profile = Profile()
    sys.setprofile(profile)
    try:
        yield profile
    finally:
        sys.setprofile(None)


def blocking(memory: Memory, verb: str) -> Callable[..., Any]:
    """Return a verb without its thread, so that all of it is in one profile."""
    return getattr(type(memory), verb).__wrapped__


def show(name: str, profile: Profile, *, by_module: bool) -> None:
    modules, switches = GOALS[name]
    print(f"{name}: {len(profile.modules)} modules (goal {modules}), {profile.switches.total()} switches ({switches})")
    for (caller, callee), count in profile.switches.most_common(25) if by_module else ():
        print(f"  {count:5}  {caller} -> {callee}")


async def main(*, by_module: bool) -> None:
    # Its replies fit no schema: parsing and one correction are part of a step.
    model = ScriptedLLM(*['{"scenes": []}'] * 100)
    with tempfile.TemporaryDirectory() as home:
        async with open_memory(home=Path(home) / "home", llm=model, distil=False) as memory:
            await memory.record_turns([NewTurn(role="user", content=text) for text in TURNS], session="s")
            search, offload = blocking(memory, "conversation_search"), blocking(memory, "offload_tool_result")
            for warm in (True, False):
                with profiled() as found:
                    search(memory, "When does my boat leave?")
                with profiled() as kept:
                    offload(memory, "read_log", f"{OUTPUT}\nend {warm}", session="s", task="Read the log")
            parts = memory._parts  # pyright: ignore[reportPrivateUsage]
            assert parts.model is not None
            await memory.record_turns([NewTurn(role="user", content="I moved to Lisbon in May.")], session="t")
            parts.scheduler.step(parts.model)
            await memory.record_turns([NewTurn(role="user", content="I sold the boat to Ben.")], session="u")
            with profiled() as step:
                parts.scheduler.step(parts.model)
            for name, profile in zip(GOALS, (found, kept, step), strict=True):
                show(name, profile, by_module=by_module)


if __name__ == "__main__":
    anyio.run(lambda: main(by_module="--by-module" in sys.argv))
