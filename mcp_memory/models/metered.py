"""Questions to the configured language model: typed replies, retries, deadlines, the usage ledger; and stages.

`MeteredModel.complete` is the only way to a language model, so three things are true for every caller. Each call is a
row of the ledger, answered or not, before the answer is used. Past the caps of the hour and the day, and during a
pause, no process of this home calls a model. Attempts are counted here alone: a question is repeated after a temporary
failure, and an unusable reply is sent back with the reason, both within the question's time limit.

The caps are checked before a call, against the usage so far and an estimate of the prompt. So replies, and processes
that ask at the same moment, may exceed them a little. Hours and days are those of UTC.

A stage (`StageDefinition`) is a long-term layer, or a part of a task's canvas. `plan` reads the rows past the stage's
cursor and returns a small basis; it asks no model and writes nothing. `question` turns the basis into a prompt, from
stored rows alone, so that it can be asked again after a restart, or into None if a model has nothing to decide. `apply`
checks the reply and commits rows, cursor and log together. The configured model or the connected agent answers the
question. Parts of a reply that cannot be kept (such as a quote that is not in its turn) are dropped and listed in
`Applied.refused`. A reply that cannot be used at all raises InvalidInput, worded for its author, and nothing is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, ModelFailed, NoUsableReply, Refused
from mcp_memory.core.metrics import Counter
from mcp_memory.core.text import one_line
from mcp_memory.core.token_counts import estimate_tokens
from mcp_memory.core.types import Spend, Spent, Stage
from mcp_memory.models import client_llm
from mcp_memory.models.llm import LLM, ChatMessage, Completion, LiteLLM, ModelPrompt, parse

R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")

_PURPOSES = ("extract", "merge", "scenes", "persona", "summaries", "canvas")
_FIRST_PAUSE_S = 1.0
_LEAST_TIME_S = 0.5

_CALLS = Counter(
    "mcp_memory_model_calls_total", "Calls to language models, by purpose and outcome.", "purpose", "outcome"
)
_TOKENS = Counter("mcp_memory_model_tokens_total", "Tokens of these calls.", "purpose", "kind")
_COST = Counter("mcp_memory_model_cost_dollars_total", "Known cost of these calls, in US dollars.", "purpose")


class UsageLedger(Protocol):
    """The part of the store that records calls to models and the pause."""

    def paused(self) -> tuple[str, datetime] | None: ...
    def spent(self, *, since: datetime, until: datetime | None = None) -> list[Spent]: ...
    def add_spend(self, spend: Spend, space: str | None = None) -> None: ...
    def require_quota(self, space: str, *, now: datetime) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQuestion(Generic[R]):
    """A prompt, the schema of its reply, and its limits.

    `purpose` is the entry in the ledger. `timeout` is for all attempts together, in seconds, by default `llm_timeout`.
    """

    purpose: str
    messages: Sequence[ChatMessage]
    reply: type[R]
    max_tokens: int = 4_000
    timeout: float | None = None
    repeats: int = 2
    """Further attempts after a temporary failure: 429, 5xx, no answer."""
    corrections: int = 1
    """How often an unusable reply is sent back with the reason."""


def today(now: datetime) -> datetime:
    """Return the start of the day that the daily cap counts."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def this_hour(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def make_llm(settings: Settings) -> LLM | None:
    """Return the configured model; None for `none`. Raises InvalidInput for an unknown client."""
    return None if settings.llm == "none" else _model(settings.llm, settings)


def make_llms_by_purpose(settings: Settings) -> dict[str, LLM]:
    """Return the models that are configured for single purposes, by purpose. Raises InvalidInput like `make_llm`."""
    named = {purpose: getattr(settings, f"llm_{purpose}") for purpose in _PURPOSES}
    return {purpose: _model(name, settings) for purpose, name in named.items() if name and name != "none"}


def _model(name: str, settings: Settings) -> LLM:
    if name.startswith(client_llm.PREFIX):
        return client_llm.ClientLLM(name, home=settings.home)
    return LiteLLM(name, base_url=settings.llm_base_url, api_key=settings.llm_api_key)


def _unchanged(reply: Any) -> Any:
    return reply


class MeteredModel:
    """The configured model with its ledger. Calls block and may come from any thread.

    `others` maps purposes to the models that answer their questions instead of `llm`.
    """

    def __init__(
        self,
        llm: LLM,
        ledger: UsageLedger,
        settings: Settings,
        *,
        now: Callable[[], datetime],
        pause: Callable[[float], None] = time.sleep,
        others: Mapping[str, LLM] | None = None,
    ) -> None:
        self.name = llm.name
        self._llm, self._others = llm, others or {}
        self._ledger, self._settings = ledger, settings
        self._now, self._pause = now, pause

    def close(self) -> None:
        """Terminate running client processes (`client:*` models); later questions raise Refused."""
        for model in (self._llm, *self._others.values()):
            close: Callable[[], None] | None = getattr(model, "close", None)
            if close:
                close()

    def complete(
        self, question: ModelQuestion[R], *, use: Callable[[R], T] = _unchanged, space: str | None = None
    ) -> T:
        """Ask the model, record the usage, and return `use(reply)`, by default the reply itself.

        `space` is the space whose rows are asked about, whose quotas are charged.
        A reply that does not match the schema, or for which `use` raises InvalidInput, is sent back with the reason.
        Raises ModelFailed if the model fails or does not reply in time, NoUsableReply if no reply is usable, and
        Refused past the caps, past a quota of the space, or in a pause.
        """
        ends = time.monotonic() + (question.timeout or self._settings.llm_timeout)
        model = self._others.get(question.purpose, self._llm)
        messages = list(question.messages)
        repeats, corrections, pause = question.repeats, question.corrections, _FIRST_PAUSE_S
        while True:
            try:
                return self._call(model, question, messages, ends - time.monotonic(), use, space)
            except _UnusableReply as unfit:
                if corrections == 0 or ends - time.monotonic() < _LEAST_TIME_S:
                    raise NoUsableReply(f"The model {model.name} gave no usable answer. {unfit.reason}") from None
                corrections -= 1
                correction = f"That cannot be used. {unfit.reason} Answer the question again, with the JSON alone."
                messages += [
                    ChatMessage(role="assistant", text=unfit.text or "(nothing)"),  # providers refuse an empty message
                    ChatMessage(role="user", text=correction),
                ]
            except ModelFailed as failure:
                wait = pause if failure.wait_s is None else failure.wait_s
                if not failure.passes or repeats == 0 or ends - time.monotonic() - wait < _LEAST_TIME_S:
                    raise
                repeats, pause = repeats - 1, pause * 2
                self._pause(wait)

    def _call(
        self,
        model: LLM,
        question: ModelQuestion[R],
        messages: Sequence[ChatMessage],
        seconds: float,
        use: Callable[[R], T],
        space: str | None,
    ) -> T:
        def record(used: Completion, error: str | None = None) -> None:
            _CALLS.add(1, question.purpose, "failed" if error else "ok")
            _TOKENS.add(used.prompt_tokens, question.purpose, "prompt")
            _TOKENS.add(used.completion_tokens, question.purpose, "completion")
            _COST.add(used.cost or 0.0, question.purpose)
            self._ledger.add_spend(
                Spend(
                    at=self._now(),
                    purpose=question.purpose,
                    model=model.name,
                    prompt_tokens=used.prompt_tokens,
                    completion_tokens=used.completion_tokens,
                    cached_tokens=used.cached_tokens,
                    cost=used.cost,
                    error=None if error is None else one_line(error, 300),
                ),
                space,
            )

        estimate = sum(estimate_tokens(message.text) for message in messages)
        self._check_caps(estimate)
        if space is not None:
            self._ledger.require_quota(space, now=self._now())
        prompt = ModelPrompt(messages=tuple(messages), shape=question.reply, max_tokens=question.max_tokens)
        try:
            completion = model.ask(prompt, timeout=seconds)
        except ModelFailed as failure:
            billed = estimate if failure.billed else 0
            record(Completion(text="", prompt_tokens=billed, completion_tokens=0, cost=None), str(failure))
            raise
        try:
            if completion.cut:
                raise InvalidInput(f"The reply broke off after {question.max_tokens:,} tokens; it has to be shorter.")
            reply = parse(completion.text, question.reply)
        except InvalidInput as reason:
            record(completion, str(reason))
            raise _UnusableReply(completion.text, str(reason)) from None
        record(completion)
        try:
            return use(reply)
        except InvalidInput as reason:
            raise _UnusableReply(completion.text, str(reason)) from None

    def _check_caps(self, estimate: int) -> None:
        """Raise Refused during a pause, or if the estimated prompt would exceed a cap."""
        paused = self._ledger.paused()
        if paused is not None:
            raise Refused(
                f"No model is asked since {paused[1]:%Y-%m-%d %H:%M} ({paused[0]}). `mcp-memory resume` ends the pause."
            )
        day, hour = today(self._now()), this_hour(self._now())
        for span, cap, since, until in (
            ("day", self._settings.llm_daily_tokens, day, day + timedelta(days=1)),
            ("hour", self._settings.llm_hourly_tokens, hour, hour + timedelta(hours=1)),
        ):
            rows = self._ledger.spent(since=since, until=until)
            used = sum(row.prompt_tokens + row.completion_tokens for row in rows)
            if used + estimate > cap:
                setting = "MCP_MEMORY_LLM_DAILY_TOKENS" if span == "day" else "MCP_MEMORY_LLM_HOURLY_TOKENS"
                raise Refused(
                    f"The {span}'s {cap:,} tokens for the model are used up ({used:,} so far, about {estimate:,} "
                    f"wanted). Calls go on at {until:%H:%M} UTC; raise {setting} to go on now."
                )


class _UnusableReply(Exception):
    """A reply that cannot be used, and why."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(reason)
        self.text, self.reason = text, reason


S = TypeVar("S")
C = TypeVar("C", bound="StageContext[Any]")
C_contra = TypeVar("C_contra", bound="StageContext[Any]", contravariant=True)
B = TypeVar("B", bound=BaseModel)
B_co = TypeVar("B_co", bound=BaseModel, covariant=True)


@dataclass(frozen=True, kw_only=True)
class StageContext(Generic[S]):
    """Store, space, time and settings for a stage; `S` is the type of the store."""

    store: S
    space: str
    now: datetime
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What `apply` did with a reply: sentences about the kept and the refused parts, and counts for the log."""

    outcome: dict[str, int]
    kept: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])


class PlanFunction(Protocol[C_contra, B_co]):
    """Returns the basis of a stage, or None if there is nothing to do.

    Only extraction uses `session`. `smaller` is how many times to halve the basis after failed attempts.
    """

    def __call__(self, context: C_contra, /, *, session: str | None, smaller: int) -> B_co | None: ...


@dataclass(frozen=True, kw_only=True)
class StageDefinition(Generic[C, B, R]):
    """One stage: its basis, the schema of its reply, and its three functions."""

    name: Stage
    basis: type[B]
    reply: type[R]
    plan: PlanFunction[C, B]
    question: Callable[[C, B], ModelQuestion[R] | None]
    apply: Callable[[C, Any, B, R | None], Applied]
    """Commits the reply to a leased job; the reply is None if there was no question.

    Raises InvalidInput for an unusable reply, and Conflict if the job is closed or its rows were changed.
    """


AnyStage = StageDefinition[Any, Any, Any]
