"""Questions to the configured model: typed replies, repeats, deadlines, and every call on the bill.

`Metered.complete` is the only way to a language model, so that three things hold whoever asks. Each call is a
row of the store, answered or not, before anything is done with the answer. Past the caps of the hour and the day, and
while a pause is on, no call is made, in any process on this home. And attempts are counted here alone: a failure
that may pass is tried again, a reply that does not fit goes back with the reason, both within the question's own time.

The caps are checked before a call, by what the hour and the day have cost so far and an estimate of the prompt; the
reply comes on top, and processes that ask at the same moment do not see each other. Hours and days are those of UTC.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, ModelFailed, Refused
from mcp_memory.core.text import one_line
from mcp_memory.core.tokens import estimate_tokens
from mcp_memory.models.llm import LLM, LiteLLM, Message, Prompt, parse
from mcp_memory.store.protocol import Spend, Store

R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")

_FIRST_PAUSE_S = 1.0
_WORTH_A_TRY_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[R]):
    """What is asked, by whom, and with how much patience.

    `purpose` names who asks on the bill; `reply` is the shape of the answer. `timeout` is for all attempts
    together, in seconds (None: the setting `llm_timeout`).
    """

    purpose: str
    messages: Sequence[Message]
    reply: type[R]
    max_tokens: int = 4_000
    timeout: float | None = None
    repeats: int = 2
    """Further attempts after a failure that may pass: 429, 5xx, no answer."""
    corrections: int = 1
    """How often a reply that does not fit goes back with the reason."""


def today(now: datetime) -> datetime:
    """Return when the day of the caps began."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def this_hour(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def make_llm(settings: Settings) -> LLM | None:
    """Return the model that the settings name; None where they say `none`."""
    return None if settings.llm == "none" else _model(settings.llm, settings)


def make_others(settings: Settings) -> dict[str, LLM]:
    """Return the models that the settings name for some purposes, by purpose."""
    named = {
        "extract": settings.llm_extract,
        "merge": settings.llm_merge,
        "scenes": settings.llm_scenes,
        "persona": settings.llm_persona,
        "summaries": settings.llm_summaries,
        "canvas": settings.llm_canvas,
    }
    return {purpose: _model(name, settings) for purpose, name in named.items() if name and name != "none"}


def _model(name: str, settings: Settings) -> LLM:
    return LiteLLM(name, base_url=settings.llm_base_url, api_key=settings.llm_api_key)


def _itself(reply: Any) -> Any:
    return reply


class Metered:
    """The configured model with its meter. Calls block and may come from any thread.

    `others` are asked in its place for the purposes that they are named for.
    """

    def __init__(
        self,
        llm: LLM,
        store: Store,
        settings: Settings,
        *,
        now: Callable[[], datetime],
        pause: Callable[[float], None] = time.sleep,
        others: Mapping[str, LLM] | None = None,
    ) -> None:
        self.name = llm.name
        self._llm = llm
        self._others = others or {}
        self._store = store
        self._settings = settings
        self._now = now
        self._pause = pause

    def complete(self, question: Question[R], *, use: Callable[[R], T] = _itself) -> T:
        """Return what `use` makes of the model's reply; left out, the reply in the shape asked for.

        A reply that does not have the shape, or of which `use` says InvalidInput, goes back with the reason.
        Raises ModelFailed when none comes in time or fits, Refused when the caps are reached or a pause is on.
        """
        ends = time.monotonic() + (question.timeout or self._settings.llm_timeout)
        messages = list(question.messages)
        repeats, corrections, pause = question.repeats, question.corrections, _FIRST_PAUSE_S
        while True:
            try:
                return self._call(question, messages, ends - time.monotonic(), use)
            except _Unfit as unfit:
                if corrections == 0 or ends - time.monotonic() < _WORTH_A_TRY_S:
                    model = self._asked(question).name
                    raise ModelFailed(f"The model {model} gave no usable answer. {unfit.reason}") from None
                corrections -= 1
                messages += _sent_back(unfit)
            except ModelFailed as failure:
                wait = pause if failure.wait_s is None else failure.wait_s
                if not failure.passes or repeats == 0 or ends - time.monotonic() - wait < _WORTH_A_TRY_S:
                    raise
                repeats, pause = repeats - 1, pause * 2
                self._pause(wait)

    def _asked(self, question: Question[Any]) -> LLM:
        return self._others.get(question.purpose, self._llm)

    def _call(self, question: Question[R], messages: Sequence[Message], seconds: float, use: Callable[[R], T]) -> T:
        estimate = sum(estimate_tokens(message.text) for message in messages)
        self._refuse(estimate)
        prompt = Prompt(messages=tuple(messages), shape=question.reply, max_tokens=question.max_tokens)
        try:
            said = self._asked(question).ask(prompt, timeout=seconds)
        except ModelFailed as failure:
            self._record(question, estimate if failure.billed else 0, error=str(failure))
            raise
        cost = said.prompt_tokens, said.completion_tokens, said.cost
        try:
            if said.cut:
                raise InvalidInput(f"The reply broke off after {question.max_tokens:,} tokens; it has to be shorter.")
            reply = parse(said.text, question.reply)
        except InvalidInput as reason:
            self._record(question, *cost, error=str(reason))
            raise _Unfit(said.text, str(reason)) from None
        self._record(question, *cost)
        try:
            return use(reply)
        except InvalidInput as reason:
            raise _Unfit(said.text, str(reason)) from None

    # the bill

    def _refuse(self, estimate: int) -> None:
        paused = self._store.paused()
        if paused is not None:
            raise Refused(
                f"No model is asked since {paused[1]:%Y-%m-%d %H:%M} ({paused[0]}). `mcp-memory resume` ends the pause."
            )
        day, hour = today(self._now()), this_hour(self._now())
        self._refuse_over("day", self._settings.llm_daily_tokens, day, day + timedelta(days=1), estimate)
        self._refuse_over("hour", self._settings.llm_hourly_tokens, hour, hour + timedelta(hours=1), estimate)

    def _refuse_over(self, span: str, cap: int, since: datetime, until: datetime, estimate: int) -> None:
        used = sum(one.prompt_tokens + one.completion_tokens for one in self._store.spent(since=since, until=until))
        if used + estimate > cap:
            setting = "MCP_MEMORY_LLM_DAILY_TOKENS" if span == "day" else "MCP_MEMORY_LLM_HOURLY_TOKENS"
            raise Refused(
                f"The {span}'s {cap:,} tokens for the model are used up ({used:,} so far, about {estimate:,} wanted). "
                f"Calls go on at {until:%H:%M} UTC; raise {setting} to go on now."
            )

    def _record(
        self,
        question: Question[Any],
        prompt_tokens: int,
        completion_tokens: int = 0,
        cost: float | None = None,
        error: str | None = None,
    ) -> None:
        self._store.add_spend(
            Spend(
                at=self._now(),
                purpose=question.purpose,
                model=self._asked(question).name,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                cost=cost,
                error=None if error is None else one_line(error, 300),
            )
        )


class _Unfit(Exception):
    """A reply without the shape that was asked for."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(reason)
        self.text = text
        self.reason = reason


def _sent_back(unfit: _Unfit) -> list[Message]:
    return [
        Message(role="assistant", text=unfit.text or "(nothing)"),  # providers refuse an empty message
        Message(
            role="user", text=f"That cannot be used. {unfit.reason} Answer the question again, with the JSON alone."
        ),
    ]
