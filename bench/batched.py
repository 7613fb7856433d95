"""Simulates the product's compression of old results: `compression` over a real store, call after call.

The context window has no effect here, only the cost: every call is `mild`. With `first`, a policy that shortens results
when they arrive, the messages that it returns are compressed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any

from bench.cutting import START, CutOnArrival, Recovered
from bench.trajectories import Message, Prompt, Sent, Trajectory
from mcp_memory.core.token_counts import token_counter
from mcp_memory.service.compression.compress import compress_list
from mcp_memory.service.compression.plan import CompressionRules
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import ref_rows

WINDOW = 200_000
"""Tokens; no run reaches it."""


@dataclass
class Batched:
    """The product's batched compression; every run is in a separate space."""

    store: Store
    first: CutOnArrival | None = None
    recovered: Recovered = field(default_factory=Recovered)
    rules: CompressionRules = field(default_factory=lambda: CompressionRules(window=WINDOW, mild=0))

    def prompts(self, run: Trajectory) -> Iterator[Prompt]:
        given: list[dict[str, Any]] = []
        last = Prompt(())
        for place, message in enumerate(run.messages):
            if message.role == "assistant":
                last = self._prompt(run, given, place)
                yield last
            cut = self.first is not None and message.role == "tool" and not message.added
            text = self.first.kept(run, place) if self.first and cut else message.content
            given.append(_as_openai(message, text))
        self._recover(run, last)

    def _recover(self, run: Trajectory, last: Prompt) -> None:
        """Read back every result that was not complete in the last prompt, by the hash in its ref."""
        for sent in last.sent:
            for place in sent.of:
                message = run.messages[place]
                if message.role == "tool" and not message.added and sent.text != message.text:
                    data = message.content.encode("utf-8", "surrogatepass")
                    held = self.store.read(f"run-{run.id}", ref_rows.read_bytes, f"r-{sha256(data).hexdigest()[:12]}")
                    self.recovered.put_away += len(data)
                    self.recovered.the_same += len(data) * (held == data)

    def _prompt(self, run: Trajectory, given: list[dict[str, Any]], place: int) -> Prompt:
        done = compress_list(
            self.store,
            f"run-{run.id}",
            given,
            rules=self.rules,
            counter=token_counter("cl100k_base"),
            now=lambda: START + timedelta(seconds=place),
            session="bench",
            level="mild",
        )
        sent = [Sent(_text(message), places) for message, places in zip(done.messages, done.places, strict=True)]
        return Prompt(tuple(sent))


def _as_openai(message: Message, text: str) -> dict[str, Any]:
    given: dict[str, Any] = {"role": _ROLES.get(message.role, message.role), "content": text}
    if message.calls:
        given["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.call_id is not None:
        given["tool_call_id"] = message.call_id
    return given


_ROLES = {"exit": "user"}
"""Replaces the role that one harness gives to the last message of a run."""


def _text(message: dict[str, Any]) -> str:
    """Return the text of a message in the form of `Message.text`."""
    calls = (call["function"] for call in message.get("tool_calls", ()))
    return message["content"] + "".join(f"\n{call['name']} {call['arguments']}" for call in calls)
