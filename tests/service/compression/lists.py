"""Lists of messages for the tests: conversations in the neutral shape, written out as OpenAI or Anthropic have them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

Messages = list[dict[str, Any]]


@dataclass(frozen=True)
class Step:
    """What the model says, the calls it makes at once, what came out of each, and what the user says then."""

    says: str = ""
    calls: tuple[tuple[dict[str, Any], str], ...] = ()
    user: str | None = None


@dataclass(frozen=True)
class Talk:
    system: str | None
    asks: str
    steps: tuple[Step, ...] = field(default=())


def openai(talk: Talk) -> Messages:
    messages: Messages = [] if talk.system is None else [{"role": "system", "content": talk.system}]
    messages.append({"role": "user", "content": talk.asks})
    for n, step in enumerate(talk.steps):
        message: dict[str, Any] = {"role": "assistant", "content": step.says or None}
        if step.calls:
            message["tool_calls"] = [
                {"id": f"c{n}-{k}", "type": "function", "function": {"name": "read", "arguments": json.dumps(given)}}
                for k, (given, _) in enumerate(step.calls)
            ]
        elif not step.says:
            message["content"] = "…"
        messages.append(message)
        for k, (_, result) in enumerate(step.calls):
            messages.append({"role": "tool", "tool_call_id": f"c{n}-{k}", "content": result})
        if step.user is not None:
            messages.append({"role": "user", "content": step.user})
    return messages


def anthropic(talk: Talk) -> Messages:
    messages: Messages = [{"role": "user", "content": talk.asks}]
    for n, step in enumerate(talk.steps):
        blocks: list[dict[str, Any]] = [{"type": "text", "text": step.says or "…"}]
        blocks += [
            {"type": "tool_use", "id": f"c{n}-{k}", "name": "read", "input": given}
            for k, (given, _) in enumerate(step.calls)
        ]
        messages.append({"role": "assistant", "content": blocks})
        results: list[dict[str, Any]] = [
            {"type": "tool_result", "tool_use_id": f"c{n}-{k}", "content": [{"type": "text", "text": result}]}
            for k, (_, result) in enumerate(step.calls)
        ]
        if step.user is not None:
            results.append({"type": "text", "text": step.user})
        if results:
            messages.append({"role": "user", "content": results})
    return messages


def long_talk(steps: int, *, lines: int = 60, written: int = 0) -> Talk:
    """An agent that reads one file after another, each result of so many lines."""
    return Talk(
        system="You mend code.",
        asks="Mend the login of the shop, please.",
        steps=tuple(
            Step(
                says=f"I look at part_{n}.",
                calls=(
                    (
                        {"path": f"src/part_{n}.py", "text": "x = 1\n" * written},
                        "".join(f"part_{n} line {k}: value_{n}_{k}\n" for k in range(lines)),
                    ),
                ),
            )
            for n in range(steps)
        ),
    )


texts = st.one_of(
    st.text(max_size=40),
    st.integers(1, 400).map(lambda n: "".join(f"row_{k} of {n}\n" for k in range(n))),
)
arguments = st.fixed_dictionaries({"path": st.text(max_size=20)}, optional={"text": texts, "deep": st.lists(texts)})
steps = st.builds(
    Step,
    says=texts,
    calls=st.lists(st.tuples(arguments, texts), max_size=3).map(tuple),
    user=st.none() | texts.filter(str.strip),
)
talks = st.builds(
    Talk, system=st.none() | texts, asks=texts.filter(str.strip), steps=st.lists(steps, max_size=8).map(tuple)
)
forms = st.sampled_from([openai, anthropic])
