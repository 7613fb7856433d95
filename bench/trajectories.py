"""Complete agent runs, and the ledger of what a way of shortening them costs, saves and loses.

A file holds one run a line (`.jsonl` or `.jsonl.gz`): `{"instance_id", "messages": [{"role", "content",
"tool_calls"?: [{"id", "name", "arguments"}], "tool_call_id"?}]}`, tool results whole; other keys are passed over.

A `Policy` says, for each model call of a run, what would have been sent; the `Ledger` sums over all calls

* tokens   of the prompt (cl100k_base), eight more for each message (its role, its ids)
* cost     the same with the longest prefix that the prompt before had too at a tenth: changing an old message
           breaks the cache from there on
* survival of the identifiers that the model uses, that came to it in a result (or from the user) and stand in
           nothing that the policy leaves whole to the end: the share that it still had whenever it used them,
           because a message with it stood whole by then or in what was kept of the first of these. What a policy
           sends beside the messages (a canvas) counts as kept. So a result that is cut at once and one that is cut
           later are measured by the same names

against sending everything. Messages the policy caused (`added`) count, and nothing is saved by them.

What an identifier is, that the first cut result counts and eight tokens a message were calibrated on a published
floor of three sets (head and tail, 400 and 800 characters of results over 1,000, two thirds of it head): its tokens
and cost come out within 0.4 points and its survival within 0.3.
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
    """Content and arguments as the text that is sent; null is none."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Call(_Line):
    """A tool call; `arguments` is JSON text."""

    id: str = ""
    name: str
    arguments: Annotated[str, BeforeValidator(_text)] = ""


class Message(_Line):
    """One message of a run; `added` where it was no part of it, but a policy caused it."""

    role: str
    content: Annotated[str, BeforeValidator(_text)] = ""
    calls: Annotated[tuple[Call, ...], Field(alias="tool_calls"), BeforeValidator(lambda value: value or ())] = ()
    call_id: Annotated[str | None, Field(alias="tool_call_id")] = None
    added: bool = False

    @property
    def text(self) -> str:
        """All of it that is sent: what it says, then its calls."""
        return self.content + "".join(f"\n{call.name} {call.arguments}" for call in self.calls)


class Trajectory(_Line):
    """A run from its first message to its last."""

    id: Annotated[str, Field(alias="instance_id")]
    messages: tuple[Message, ...]


def read_runs(path: Path) -> list[Trajectory]:
    """Read a file of runs. Raises InvalidInput, which names the file, the line and what is wrong with it."""
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
    """A message as it is sent. `of`: the places of the messages it stands for; none for a canvas or the like."""

    text: str
    of: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one model call is sent, oldest first; `definitions`: tokens of tools the policy adds, ahead of all."""

    sent: Sequence[Sent]
    definitions: int = 0


class Policy(Protocol):
    """A way of shortening a run as it goes on."""

    def prompts(self, run: Trajectory) -> Iterator[Prompt]:
        """Yield the prompt of each model call (each message of the assistant), in order.

        A prompt may rest on nothing but the messages before its call.
        """
        ...


@cache
def identifiers(text: str) -> frozenset[str]:
    """Paths, names and words of four characters or more, numbers of three digits or more."""
    found = (name.strip("./-") for name in IDENTIFIER.findall(text))
    return frozenset(name for name in found if len(name) >= 3)


@cache
def tokens_of(text: str) -> int:
    return token_counter("cl100k_base").count(text)


# --- the ledger -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loss:
    """The message at `place` uses a name that nobody kept of the message at `source`."""

    place: int
    name: str
    source: int


@dataclass
class Ledger:
    """Sums over runs; shares are None where there is nothing to divide."""

    tokens: int = 0
    cost: float = 0.0
    whole_tokens: int = 0
    whole_cost: float = 0.0
    used: int = 0
    survived: int = 0
    own: int = 0
    own_lost: int = 0
    """Of the names that the model said first itself and that left with its words: those it said again after."""
    losses: list[list[Loss]] = field(default_factory=list[list[Loss]])
    """For each run, in the order they were added."""

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
        """Live through a run: what each call is sent, and which names it still has for what it says."""
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
        """Count each name once: it survived if it stood at every use."""
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
    """A message of the model uses a name that earlier messages hold; `stood`: its prompt had it."""

    place: int
    name: str
    sources: Sequence[int]
    stood: bool


class _Stands:
    """What of the messages of a run stands in a prompt."""

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
        """Whether one of them stands whole, or what was kept of the first holds the name."""
        if not self.cut.issuperset(sources):
            return True
        return any(name in identifiers(kept) for kept in (*self.kept.get(sources[0], ()), *self.beside))


class _Names:
    """Where each identifier stood, over a run that grows."""

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
    """Tokens and cost of prompt after prompt."""

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
