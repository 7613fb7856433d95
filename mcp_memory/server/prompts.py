"""Prompts that a person picks from a menu, and completion of the arguments of prompts and resource templates.

Each prompt fetches its topic from memory and gives the next steps. The docstrings of `recall`, `continue_task` and
`wrap_up` are their descriptions for clients.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio.to_thread
import mcp.types as wire

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Record, Turn
from mcp_memory.service.render import DATA_NOTE, minute, quarantine_mark, quote, quote_name, render
from mcp_memory.suspicion.flags import flags

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory


_RECENT_RECORDS, _RECENT_TURNS = 8, 12


async def recall(memory: Memory, topic: str = "") -> str:
    """Bring what is remembered about a topic, and who you are, into this conversation."""
    bundle = await memory.recall(topic, budget_tokens=3000)
    about = f" about {one_line(topic, 200)!r}" if topic else ""
    if not (bundle.stable or bundle.dynamic):
        return (
            f"Your memory holds nothing{about} yet. Say so in a sentence and go on without it; what I tell you that "
            "will still matter next month, keep with remember."
        )
    return (
        f"Here is what your memory holds{about}. Use it where it helps, say so when it contradicts what I tell "
        "you now, and look further with memory_search and conversation_search before you guess.\n\n"
        f"{render(bundle)}"
    )


async def continue_task(memory: Memory, task: str = "") -> str:
    """Go on with a task where it was left: its canvas, its last results, and what stands open."""
    if not task and await memory.active_canvas() is None and not await memory.canvases(limit=1):
        return (
            "No task is noted in your memory yet. Ask me what to go on with, and look with conversation_search whether "
            "we spoke of it; note its steps from now on with offload_tool_result."
        )
    view = await memory.fold_canvas(task=task or None)
    records = await memory.records(node=view.canvas.partition("-")[0], limit=10_000)
    lines = "\n".join(map(_record_line, records[-_RECENT_RECORDS:])) or "> none yet"
    others = await memory.task_history(but=[int(view.canvas.partition("-")[0])])
    other_tasks = (
        f"Other tasks, worked on last first; fold_canvas action=switch takes one up.\n{quote(others)}\n\n"
        if others
        else ""
    )
    goal = one_line(view.task_goal, 200)
    is_suspect = await anyio.to_thread.run_sync(flags, goal, "tool")
    task_named = f"of canvas {view.canvas.partition('-')[0]}" if is_suspect else repr(goal)
    return (
        f"Go on with the task {task_named} where it was left.\n\n"
        f"{render(view)}\n\nThe last results, newest at the end. {DATA_NOTE}\n{lines}\n\n"
        f"{other_tasks}"
        "First say in two sentences what is done and what stands open. Get details back with expand_node rather "
        "than running a tool again, and do not retry what is marked blocked. Then take the next step, and note each "
        "step that is finished with offload_tool_result and the same task."
    )


async def wrap_up(memory: Memory, session: str = "") -> str:
    """Close a working session: keep what will matter, and leave the task so that it can be picked up."""
    turns = await _last_turns(memory, session)
    canvas = await memory.active_canvas()
    parts = ["Before we stop, bring the memory up to date."]
    if turns:
        why = await memory.why_held([turn.id for turn in turns])
        lines = "\n".join(_turn_line(turn, why.get(turn.id, ())) for turn in turns)
        parts.append(f"The last turns stored, of session {quote_name(turns[0].session)}. {DATA_NOTE}\n{lines}")
    else:
        parts.append("No turn of this conversation is stored yet.")
    if canvas is not None:
        parts.append(f"The active canvas. {render(await memory.fold_canvas(task=f'{canvas.number:03}'))}")
    steps = [
        "record_turns: store what was said since the last stored turn, without small talk; leave this step out if your "
        "context says that the conversation is recorded by itself."
    ]
    if memory.settings.llm == "none":
        steps.append(
            "distill, if there were more than some twenty turns: call it without arguments, answer the question it "
            "gives as it says, pass the reply, and go on until there is none; at most five questions now."
        )
    steps += [
        "remember: each lasting fact, preference, decision or rule that came up and is not kept by now, one statement "
        "a call; name in supersedes what it makes outdated.",
        "The task, if there was one: fold_canvas with action=complete when it is done; else offload_tool_result with "
        "the next step, status=paused, and what stands open as its result, for the prompt continue_task to find.",
    ]
    parts.append("\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1)))
    return "\n\n".join([*parts, "Then tell me in three lines what was kept."])


async def _last_turns(memory: Memory, session: str) -> list[Turn]:
    """Return the newest turns of a session, by default of the most recent session. Raises NotFound for a wrong name."""
    stored = await memory.sessions(prefix=session)
    info = next((info for info in stored if info.session == (session or info.session)), None)
    if info is None:
        return await memory.session_turns(session) if session else []  # raises NotFound, with names of sessions
    turns = await memory.session_turns(info.session, start=max(0, info.turns - _RECENT_TURNS), limit=1_000)
    return turns[-_RECENT_TURNS:]


def _record_line(record: Record) -> str:
    return quote(
        f"{record.node_id} · {minute(record.timestamp)} · {one_line(record.tool_call, 150)} → {record.summary}"
    )


def _turn_line(turn: Turn, why: Sequence[str]) -> str:
    return quote(
        f"{turn.id} · {turn.role} · {minute(turn.said_at)}{quarantine_mark(why)}: {one_line(turn.content, 240)}"
    )


# --- the table --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MenuPrompt:
    """A prompt: a function over Memory that takes one optional argument."""

    run: Callable[[Memory, str], Awaitable[str]]
    title: str
    argument: str
    meaning: str

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def definition(self) -> wire.Prompt:
        return wire.Prompt(
            name=self.name,
            title=self.title,
            description=self.run.__doc__,
            arguments=[wire.PromptArgument(name=self.argument, description=self.meaning, required=False)],
        )


PROMPTS = (
    MenuPrompt(
        run=recall,
        title="Recall",
        argument="topic",
        meaning="What to recall; left out, who you are and your standing rules",
    ),
    MenuPrompt(
        run=continue_task,
        title="Continue a task",
        argument="task",
        meaning="Number or label of a canvas; left out, the active one",
    ),
    MenuPrompt(run=wrap_up, title="Wrap up", argument="session", meaning="Session; left out, the one written to last"),
)


async def get_prompt(memory: Memory, prompt: MenuPrompt, arguments: dict[str, str]) -> wire.GetPromptResult:
    """Run the prompt, and return its single message. Raises InvalidInput for an unknown argument."""
    unknown = [name for name in arguments if name != prompt.argument]
    if unknown:
        raise InvalidInput(f"{prompt.name} has no argument {one_line(unknown[0], 40)!r}; it takes: {prompt.argument}.")
    text = await prompt.run(memory, arguments.get(prompt.argument, "").strip())
    return wire.GetPromptResult(
        description=prompt.run.__doc__,
        messages=[wire.PromptMessage(role="user", content=wire.TextContent(text=text))],
    )


# --- completion ---

_MAX_VALUES = 100  # the protocol's limit
_MAX_CANDIDATES = 1000

Reference = wire.PromptReference | wire.ResourceTemplateReference


async def complete(memory: Memory, reference: Reference, name: str, typed: str) -> wire.Completion:
    """Return completions of an argument: values that begin with the typed text first, then values that contain it."""
    from mcp_memory.language.words import fold  # late: it brings the patterns of all scripts

    folded = fold(typed)
    candidates = dict.fromkeys(await _candidates(memory, reference, name, typed))
    values = [value for value in candidates if folded in fold(value)]
    values.sort(key=lambda value: not fold(value).startswith(folded))
    return wire.Completion(values=values[:_MAX_VALUES], total=len(values), has_more=len(values) > _MAX_VALUES)


async def _candidates(memory: Memory, reference: Reference, name: str, typed: str) -> Iterable[str]:
    place = reference.name if isinstance(reference, wire.PromptReference) else reference.uri
    match place, name:
        case "recall", "topic":
            return await memory.entities(prefix=typed, limit=_MAX_CANDIDATES)
        case "continue_task", "task":
            return [f"{canvas.number:03}-{canvas.label}" for canvas in await memory.canvases(limit=_MAX_CANDIDATES)]
        case "memory://canvas/{number}", "number":
            return [f"{canvas.number:03}" for canvas in await memory.canvases(limit=_MAX_CANDIDATES)]
        case (("wrap_up" | "memory://session/{session}"), "session"):
            return [info.session for info in await memory.sessions(limit=_MAX_CANDIDATES)]
        case "memory://scene/{slug}", "slug":
            return [scene.slug for scene in await memory.scenes()]
        case "memory://atom/{id}", "id":
            return [atom.id for atom in await memory.atoms(limit=_MAX_CANDIDATES)]
        case "memory://ref/{id}", "id":
            return [record.ref for record in reversed(await memory.records(limit=_MAX_CANDIDATES))]
        case _:
            return []
