"""Operations of a process; each follows from the seed, the seat and its number.

So a restarted process begins with the operation during which it was killed, like a client that got no answer. Every
text is unique in a run: what is found twice was stored twice.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

from bench import reader
from bench.torture.ledger import Ledger

Call = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Calls a tool with arguments and returns its structured answer. Raises Declined with the tool's message."""


class Declined(Exception):
    """A tool refused a call."""


_KINDS = {"capture": 35, "remember": 15, "offload": 30, "fold": 8, "distill": 5, "search": 4}
_TASK = 25  # deeds until the next task
_SHARED = 0.2  # of the deeds are in a session, or a task, of all seats
_THINGS = "cello harbour bakery glacier orchard ferry lantern meadow compass willow anchor kettle".split()  # noqa: SIM905
_LIKE = ["red", "old", "far", "new"]
_DONE = ["saw", "sold", "found", "painted", "moved", "mended"]
_QUESTIONS = 2  # that one deed answers
_ANSWERS = {
    "extract": reader.extract, "merge": reader.merge, "scenes": reader.scenes, "persona": reader.persona,
    "canvas": reader.canvas, "summaries": reader.summaries,
}  # fmt: skip


async def do_next(call: Call, ledger: Ledger, seed: str, seat: str) -> None:
    """Perform the next operation, and record it in the ledger before and after."""
    number = ledger.next()
    rng = random.Random(f"{seed}/{seat}/{number}")
    kind = rng.choices(list(_KINDS), list(_KINDS.values()))[0]
    task = f"Task {number // _TASK} of {seat}"
    nodes = _nodes(ledger, task)
    if number % _TASK == _TASK - 1:
        kind = "complete"
    if (kind == "complete" and not nodes) or (kind == "fold" and len(nodes) < 2):
        kind = "offload"
    await _DEEDS[kind](call, ledger, number, rng, seat, task)


async def _capture(call: Call, ledger: Ledger, number: int, rng: random.Random, seat: str, task: str) -> None:
    session = "shared" if rng.random() < _SHARED else seat
    turns: list[dict[str, Any]] = []
    for place in range(rng.randint(1, 3)):
        said = f"I {rng.choice(_DONE)} the {rng.choice(_THINGS)} {seat}-{number}-{place}."
        turns += [{"role": "user", "content": said}, {"role": "assistant", "content": f"So {seat}-{number}-{place}."}]
    if rng.random() < 0.5:
        turns = [{**turn, "id": f"{seat}-{number}-{place}"} for place, turn in enumerate(turns)]
    ledger.doing(number, "capture", {"session": session, "contents": [turn["content"] for turn in turns]})
    answer = await call("record_turns", {"turns": turns, "session": session})
    ledger.done(number, {"stored": answer["stored"], "duplicates": answer["duplicates"]})


async def _remember(call: Call, ledger: Ledger, number: int, rng: random.Random, seat: str, task: str) -> None:
    text = f"The {rng.choice(_THINGS)} {seat}-{number} is {rng.choice(_LIKE)}."
    fact = {"entity": f"thing of {seat}", "relation": "status", "value": str(number)} if rng.random() < 0.4 else {}
    ledger.doing(number, "remember", {"text": text, **fact})
    answer = await call("remember", {"text": text, "kind": "episodic", **fact})
    ledger.done(number, {"atom": answer["atom"]["id"]})


async def _offload(call: Call, ledger: Ledger, number: int, rng: random.Random, seat: str, task: str) -> None:
    lines = [f"{seat}-{number} line {at}: {rng.choice(_THINGS)} {rng.random()}" for at in range(rng.randint(3, 200))]
    result = "\n".join(lines)
    session = seat
    if rng.random() < _SHARED:
        session, task = "shared", f"Shared task {number // (2 * _TASK)}"
    what = {
        "session": session,
        "task": task,
        "call": f"call-{seat}-{number}",
        "sha256": hashlib.sha256(result.encode()).hexdigest(),
    }
    ledger.doing(number, "offload", what)
    answer = await call(
        "offload_tool_result",
        {
            "tool_name": "bash",
            "arguments": {"command": f"look {rng.choice(_THINGS)}"},
            "result": result,
            "tool_call_id": what["call"],
            "session": session,
            "task": task,
            "step": f"Step {number // 3}",
        },
    )
    ledger.done(number, {"ref": answer["ref"], "node": answer["node"]})


async def _fold(call: Call, ledger: Ledger, number: int, rng: random.Random, seat: str, task: str) -> None:
    nodes = _nodes(ledger, task)[:2]
    canvas = nodes[0].partition("-")[0]
    action = rng.choice(["fold", "unfold", "show"])
    ledger.doing(number, "fold", {"canvas": canvas, "action": action, "nodes": nodes})
    arguments: dict[str, Any] = {"task": canvas, "action": action, "session": seat}
    try:
        await call("fold_canvas", arguments if action != "fold" else {**arguments, "nodes": nodes})
    except Declined:  # they were folded before, as another deed or this one before it was killed did
        action = "none"
    ledger.done(number, {"action": action})


async def _complete(call: Call, ledger: Ledger, number: int, rng: random.Random, seat: str, task: str) -> None:
    canvas = _nodes(ledger, task)[0].partition("-")[0]
    ledger.doing(number, "complete", {"canvas": canvas})
    await call("fold_canvas", {"task": canvas, "action": "complete", "session": seat})
    ledger.done(number, {})


async def _distill(call: Call, ledger: Ledger, number: int, rng: random.Random, seat: str, task: str) -> None:
    ledger.doing(number, "distill", {})
    kept = 0
    asked = await call("distill", {})
    for _ in range(_QUESTIONS):
        if asked.get("next") is None:
            break
        reply = _ANSWERS[asked["next"]["stage"]](asked["next"]["question"])
        asked = await call("distill", {"work_id": asked["next"]["work_id"], "reply": reply})
        kept += len(asked["kept"])
    ledger.done(number, {"kept": kept})


async def _search(call: Call, ledger: Ledger, number: int, rng: random.Random, seat: str, task: str) -> None:
    ledger.doing(number, "search", {})
    tool = rng.choice(["recall", "conversation_search", "memory_search"])
    await call(tool, {"query": f"{rng.choice(_DONE)} {rng.choice(_THINGS)}"})
    ledger.done(number, {})


def _nodes(ledger: Ledger, task: str) -> list[str]:
    """Return the distinct nodes of this seat's task so far."""
    answers = [
        e.answer for e in ledger.entries.values() if e.kind == "offload" and e.doing["task"] == task and e.answer
    ]
    return list(dict.fromkeys(answer["node"] for answer in answers))


_DEEDS = {
    "capture": _capture,
    "remember": _remember,
    "offload": _offload,
    "fold": _fold,
    "complete": _complete,
    "distill": _distill,
    "search": _search,
}
