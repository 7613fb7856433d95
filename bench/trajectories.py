"""Replays complete agent runs, and counts the savings, costs and losses of a way of shortening them.

A file has one run per line (`.jsonl` or `.jsonl.gz`): `{"instance_id", "messages": [{"role", "content", "tool_calls"?:
[{"id", "name", "arguments"}], "tool_call_id"?}]}`, with complete tool results; other keys are ignored.

A `Policy` returns the messages that would have been sent for each model call of a run; the `Ledger` sums over all
calls, compared with sending everything,

* tokens   of the prompt (cl100k_base), eight more for each message (its role, its ids)
* cost     the same, with a tenth for the longest prefix that the previous prompt had too: changing an old message
           invalidates the cache from there on
* survival of the identifiers that the model uses, that came from a result (or the user) and do not occur in anything
           that the policy leaves whole to the end: the share that were available at every use, because a message with
           it was still whole or it was in the remaining text of the first of these. Text that a policy adds (a canvas)
           counts as remaining. So a result that is shortened at once and one that is shortened later are measured by
           the same names

Messages added by the policy (`added`) count, but save nothing.

The definition of an identifier, counting the first shortened result, and eight tokens per message were calibrated on a
published floor of three sets (head and tail, 400 and 800 characters of results over 1,000, two thirds of it head): its
tokens and cost are reproduced within 0.4 points and its survival within 0.3.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.token_counts import token_counter

MESSAGE_TOKENS = 8
CACHED = 0.1
IDENTIFIER = re.compile(r"[A-Za-z_][\w./-]{3,}|\d{3,}")


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


def _text(value: Any) -> Any:
    """Return content or arguments as the text that is sent; null is the empty text."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Call(_Line):
    """A tool call; `arguments` is JSON text."""

    id: str = ""
    name: str
    arguments: Annotated[str, BeforeValidator(_text)] = ""


class Message(_Line):
    """A message of a run; `added` if a policy added it."""

    role: str
    content: Annotated[str, BeforeValidator(_text)] = ""
    calls: Annotated[tuple[Call, ...], Field(alias="tool_calls"), BeforeValidator(lambda value: value or ())] = ()
    call_id: Annotated[str | None, Field(alias="tool_call_id")] = None
    added: bool = False

    @property
    def text(self) -> str:
        """All text that is sent: the content, then the calls."""
        return self.content + "".join(f"\n{call.name} {call.arguments}" for call in self.calls)


class Trajectory(_Line):
    """A complete run."""

    id: Annotated[str, Field(alias="instance_id")]
    messages: tuple[Message, ...]


def read_runs(path: Path) -> list[Trajectory]:
    """Read a file of runs. Raises InvalidInput, which names the file, the line and the problem."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            return [_run(path, number, line) for number, line in enumerate(file, start=1) if line.strip()]
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from None


def _run(path: Path, number: int, line: str) -> Trajectory:
    try:
        return Trajectory.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidInput(f"{path}, line {number}: {where} {first['msg']}".rstrip()) from None


# --- what is sent -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sent:
    """A message as it is sent. `of`: the places of the messages that it replaces; empty for a canvas or the like."""

    text: str
    of: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of one model call, oldest first; `definitions`: tokens of tools that the policy adds before it."""

    sent: Sequence[Sent]
    definitions: int = 0


class Policy(Protocol):
    """A way of shortening a run while it proceeds."""

    def prompts(self, run: Trajectory) -> Iterator[Prompt]:
        """Yield the prompt of each model call (each message of the assistant), in order.

        A prompt may depend only on the messages before its call.
        """
        ...


@cache
def identifiers(text: str) -> frozenset[str]:
    """Return paths, names and words of four characters or more, and numbers of three digits or more."""
    found = (name.strip("./-") for name in IDENTIFIER.findall(text))
    return frozenset(name for name in found if len(name) >= 3)


@cache
def tokens_of(text: str) -> int:
    return token_counter("cl100k_base").count(text)


# --- the ledger -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loss:
    """The message at `place` uses a name that no longer remains of the message at `source`."""

    place: int
    name: str
    source: int


@dataclass
class Ledger:
    """Sums over runs; shares are None if there is nothing to divide by."""

    tokens: int = 0
    cost: float = 0.0
    whole_tokens: int = 0
    whole_cost: float = 0.0
    used: int = 0
    survived: int = 0
    own: int = 0
    own_lost: int = 0
    """Names that the model said first, used again after they had been removed with its message."""
    losses: list[list[Loss]] = field(default_factory=list[list[Loss]])
    """For each run, in the order of adding."""

    @property
    def tokens_saved(self) -> float | None:
        return 1 - self.tokens / self.whole_tokens if self.whole_tokens else None

    @property
    def cost_saved(self) -> float | None:
        return 1 - self.cost / self.whole_cost if self.whole_cost else None

    @property
    def survival(self) -> float | None:
        return self.survived / self.used if self.used else None

    def add(self, run: Trajectory, policy: Policy) -> None:
        """Replay a run: the prompt of each call, and the names in it that the next message uses."""
        texts = [message.text for message in run.messages]
        places = [place for place, message in enumerate(run.messages) if message.role == "assistant"]
        names = _Names()
        uses: list[_Use] = []
        cut: set[int] = set()
        ours, whole = _Meter(), _Meter()
        for place, prompt in zip(places, policy.prompts(run), strict=True):
            ours.call([sent.text for sent in prompt.sent], ahead=prompt.definitions)
            if not run.messages[place].added:
                before = [text for text, one in zip(texts[:place], run.messages, strict=False) if not one.added]
                whole.call(before)
                names.read(texts[:place])
                stands = _Stands(prompt, texts)
                cut |= stands.cut
                uses += (
                    _Use(place, name, tuple(sources), stands.has(name, sources))
                    for name, sources in names.among(identifiers(texts[place])).items()
                )
        self.tokens += ours.tokens
        self.cost += ours.cost
        self.whole_tokens += whole.tokens
        self.whole_cost += whole.cost
        self.losses.append(self._survival(run, uses, cut))

    def _survival(self, run: Trajectory, uses: Iterable[_Use], cut: set[int]) -> list[Loss]:
        """Count each name once: it survived if it was available at every use."""
        first: dict[str, Loss | None] = {}
        own: dict[str, bool] = {}
        for use in uses:
            if not cut.issuperset(use.sources):
                continue
            if run.messages[use.sources[0]].role == "assistant":
                own[use.name] = own.get(use.name, True) and use.stood
            elif first.get(use.name) is None:
                first[use.name] = None if use.stood else Loss(use.place, use.name, use.sources[0])
        losses = [loss for loss in first.values() if loss]
        self.used += len(first)
        self.survived += len(first) - len(losses)
        self.own += len(own)
        self.own_lost += sum(1 for stood in own.values() if not stood)
        return losses


@dataclass(frozen=True, slots=True)
class _Use:
    """A message of the model uses a name of earlier messages; `stood`: its prompt had the name."""

    place: int
    name: str
    sources: Sequence[int]
    stood: bool


class _Stands:
    """The parts of a run's messages that are in a prompt."""

    def __init__(self, prompt: Prompt, texts: Sequence[str]) -> None:
        self.kept: dict[int, list[str]] = {}
        self.beside: list[str] = []
        for sent in prompt.sent:
            for at in sent.of:
                self.kept.setdefault(at, []).append(sent.text)
            if not sent.of:
                self.beside.append(sent.text)
        self.cut = {at for at, kept in self.kept.items() if kept != [texts[at]]}

    def has(self, name: str, sources: Sequence[int]) -> bool:
        """Return whether one of the sources is whole, or the rest of the first contains the name."""
        if not self.cut.issuperset(sources):
            return True
        return any(name in identifiers(kept) for kept in (*self.kept.get(sources[0], ()), *self.beside))


class _Names:
    """The messages with each identifier, in a growing run."""

    def __init__(self) -> None:
        self.at: dict[str, list[int]] = {}
        self.count = 0

    def read(self, texts: Sequence[str]) -> None:
        for place in range(self.count, len(texts)):
            for name in identifiers(texts[place]):
                self.at.setdefault(name, []).append(place)
        self.count = len(texts)

    def among(self, names: Iterable[str]) -> dict[str, list[int]]:
        return {name: self.at[name] for name in sorted(names) if name in self.at}


class _Meter:
    """Tokens and cost of consecutive prompts."""

    def __init__(self) -> None:
        self.tokens = 0
        self.cost = 0.0
        self.before: Sequence[str] = ()

    def call(self, texts: Sequence[str], *, ahead: int = 0) -> None:
        cached = ahead if self.before else 0
        counts = [tokens_of(text) + MESSAGE_TOKENS for text in texts]
        for text, old, count in zip(texts, self.before, counts, strict=False):
            if text != old:
                break
            cached += count
        all_of_it = ahead + sum(counts)
        self.tokens += all_of_it
        self.cost += all_of_it - (1 - CACHED) * cached
        self.before = texts
