"""Policies that shorten each tool result when it arrives, and the cost of reading lost parts again.

`Arrival` is the product: `offload` with a real store, default settings, and the text that a client gets. It may use the
messages before the call. `HeadTail` is the floor: the beginning (two thirds) and the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.trajectories import Call, Loss, Message, Prompt, Sent, Trajectory, tokens_of
from mcp_memory.core.token_counts import token_counter
from mcp_memory.service.render import render_offloaded
from mcp_memory.shortterm.expand import expand_text
from mcp_memory.shortterm.offload import OVER_CHARS, OffloadRequest, offload
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import ref_rows

FLOOR_OVER = 1_000
"""Characters above which the floor shortens a result."""
REREAD_TOKENS = 1_000
LONGEST_SEARCH = 900
START = datetime(2026, 1, 1, tzinfo=UTC)


class CutOnArrival:
    """A policy that decides about each tool result once."""

    def prompts(self, run: Trajectory) -> Iterator[Prompt]:
        sent: list[Sent] = []
        for place, message in enumerate(run.messages):
            if message.role == "assistant":
                yield Prompt(tuple(sent))
            cut = message.role == "tool" and not message.added
            sent.append(Sent(self.kept(run, place) if cut else message.text, (place,)))

    def kept(self, run: Trajectory, place: int) -> str:
        """Return the text that replaces the tool result at `place`; the result itself if it is not shortened."""
        raise NotImplementedError


def _is_large(text: str, characters: int, tokens: int) -> bool:
    return len(text) > characters and (not tokens or tokens_of(text) > tokens)


@dataclass
class HeadTail(CutOnArrival):
    """The first two thirds and the last third of `budget` characters, including a marker between them."""

    budget: int
    over: int = 0
    """Tokens that a result must exceed, in addition to its characters."""

    def kept(self, run: Trajectory, place: int) -> str:
        text = run.messages[place].text
        if not _is_large(text, FLOOR_OVER, self.over):
            return text
        marker = f"\n... {len(text) - self.budget} characters cut ...\n"
        room = max(0, self.budget - len(marker))
        head = room * 2 // 3
        return text[:head] + marker + text[len(text) - (room - head) :]


@dataclass
class Recovered:
    """Bytes of the offloaded results, and of those that were read back unchanged."""

    put_away: int = 0
    the_same: int = 0

    @property
    def share(self) -> float | None:
        return self.the_same / self.put_away if self.put_away else None


@dataclass
class Arrival(CutOnArrival):
    """The product; every run is in a separate space. `budget`: characters of a preview, None for the default."""

    store: Store
    budget: int | None = None
    over: int = 0
    recovered: Recovered = field(default_factory=Recovered)

    def kept(self, run: Trajectory, place: int) -> str:
        text = run.messages[place].text
        if not _is_large(text, OVER_CHARS, self.over):
            return text
        call = call_of(run, place)
        answer = offload(
            self.store,
            f"run-{run.id}",
            request=OffloadRequest(
                tool_name=call.name,
                result=text,
                session="bench",
                arguments=arguments_of(call),
                tool_call_id=f"{place}",
                preview_chars=self.budget,
            ),
            counter=token_counter("cl100k_base"),
            now=START + timedelta(seconds=place),
            talk=talk_before(run, place),
        )
        data = text.encode("utf-8", "surrogatepass")
        self.recovered.put_away += len(data)
        self.recovered.the_same += len(data) * (
            self.store.read(f"run-{run.id}", ref_rows.read_bytes, answer.ref) == data
        )
        shown = render_offloaded(answer)
        saves = answer.tokens_kept < answer.tokens_raw and tokens_of(shown) < tokens_of(text)
        return shown if saves else text  # without a saving the answer has no preview


# --- what the product is told -----------------------------------------------------------------------


def call_of(run: Trajectory, place: int) -> Call:
    """Return the call that the tool message at `place` answers."""
    before = [call for message in reversed(run.messages[:place]) for call in message.calls]
    wanted = run.messages[place].call_id
    return next((call for call in before if call.id == wanted), before[0] if before else Call(name="tool"))


def arguments_of(call: Call) -> Any:
    """Return the arguments as a client passes them: an object if they are JSON, else the text."""
    try:
        return json.loads(call.arguments)
    except ValueError:
        return call.arguments


def talk_before(run: Trajectory, place: int) -> str:
    """Return the last messages before the result, as `Memory` uses them: the last four, including one of the user."""
    said = [message for message in run.messages[:place] if message.role in ("user", "assistant") and message.content]
    asked = [message for message in said if message.role == "user"][-1:]
    recent = said[-4:]
    return "\n".join(message.content[:2_000] for message in (*(m for m in asked if m not in recent), *recent))


# --- reading again ----------------------------------------------------------------------------------


def reread(run: Trajectory, losses: list[Loss]) -> Trajectory:
    """Return the run with a call of expand_node wherever the next message needs names that were lost.

    There is one call for each result, a search for the names, answered as the tool would. Names that are plain
    words are ignored: a model without them would choose other words.
    """
    wanted: dict[int, dict[int, list[str]]] = {}
    for loss in losses:
        if not (loss.name.isalpha() and (loss.name.islower() or loss.name.istitle())):
            wanted.setdefault(loss.place, {}).setdefault(loss.source, []).append(loss.name)
    messages: list[Message] = []
    for place, message in enumerate(run.messages):
        searches = {source: _search(names) for source, names in wanted.get(place, {}).items()}
        if searches:
            calls = tuple(
                Call(id=f"again-{place}-{source}", name="expand_node", arguments=_asking(grep))
                for source, grep in searches.items()
            )
            messages.append(Message(role="assistant", calls=calls, added=True))
            messages += [
                Message(role="tool", content=_found(run, source, grep), call_id=f"again-{place}-{source}", added=True)
                for source, grep in searches.items()
            ]
        messages.append(message)
    return Trajectory(id=run.id, messages=tuple(messages))


def _search(names: list[str]) -> str:
    """Return a pattern for as many of the names as one search may have."""
    pattern = re.escape(names[0])
    for name in names[1:]:
        if len(pattern) + len(name) < LONGEST_SEARCH:
            pattern += f"|{re.escape(name)}"
    return pattern


def _asking(grep: str) -> str:
    return json.dumps({"ref": "r-9f2c1a7b3d4e", "grep": grep})


def _found(run: Trajectory, source: int, grep: str) -> str:
    counter = token_counter("cl100k_base")
    raw = run.messages[source].text
    return expand_text(
        raw, ref="r-9f2c1a7b3d4e", counter=counter, view="grep", argument=grep, max_tokens=REREAD_TOKENS
    ).text
