"""Questions to the configured model: typed replies, repeats, deadlines, and every call on the bill.

`Metered.complete` is the only way to a language model, so that three things hold whoever asks. Each call is a
row of the store, answered or not, before anything is done with the answer. Past the day's cap no call is made, in
any process on this home. And attempts are counted here alone: a failure that may pass is tried again, a reply
that does not fit goes back with the reason, both within the question's own time.

The cap is checked before a call, by what the day has cost so far and an estimate of the prompt; the reply comes on
top, and processes that ask at the same moment do not see each other. A day is one of UTC.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from mcp_memory.config import Settings
from mcp_memory.errors import InvalidInput, ModelFailed, Refused
from mcp_memory.estimate import estimate_tokens
from mcp_memory.llm import LLM, LiteLLM, Message, Prompt
from mcp_memory.replies import parse
from mcp_memory.store.protocol import Spend, Store
from mcp_memory.text import one_line

__all__ = ["Metered", "Question", "make_llm", "today"]

R = TypeVar("R", bound=BaseModel)

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


def make_llm(settings: Settings) -> LLM | None:
    """Return the model that the settings name; None where they say `none`."""
    if settings.llm == "none":
        return None
    return LiteLLM(settings.llm, base_url=settings.llm_base_url, api_key=settings.llm_api_key)


class Metered:
    """The configured model with its meter. Calls block and may come from any thread."""

    def __init__(
        self,
        llm: LLM,
        store: Store,
        settings: Settings,
        *,
        now: Callable[[], datetime],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = llm.name
        self._llm = llm
        self._store = store
        self._settings = settings
        self._now = now
        self._pause = pause

    def complete(self, question: Question[R]) -> R:
        """Return the model's reply in the shape asked for.

        Raises ModelFailed when it does not come in time or does not fit, Refused when the day's tokens are used up.
        """
        ends = time.monotonic() + (question.timeout or self._settings.llm_timeout)
        messages = list(question.messages)
        repeats, corrections, pause = question.repeats, question.corrections, _FIRST_PAUSE_S
        while True:
            try:
                return self._call(question, messages, ends - time.monotonic())
            except _Unfit as unfit:
                if corrections == 0 or ends - time.monotonic() < _WORTH_A_TRY_S:
                    raise ModelFailed(f"The model {self.name} gave no usable answer. {unfit.reason}") from None
                corrections -= 1
                messages += _sent_back(unfit)
            except ModelFailed as failure:
                wait = pause if failure.wait_s is None else failure.wait_s
                if not failure.passes or repeats == 0 or ends - time.monotonic() - wait < _WORTH_A_TRY_S:
                    raise
                repeats, pause = repeats - 1, pause * 2
                self._pause(wait)

    def _call(self, question: Question[R], messages: Sequence[Message], seconds: float) -> R:
        estimate = sum(estimate_tokens(message.text) for message in messages)
        self._refuse_over_cap(estimate)
        prompt = Prompt(messages=tuple(messages), shape=question.reply, max_tokens=question.max_tokens)
        try:
            said = self._llm.ask(prompt, timeout=seconds)
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
        return reply

    # the bill

    def _refuse_over_cap(self, estimate: int) -> None:
        cap = self._settings.llm_daily_tokens
        used = sum(one.prompt_tokens + one.completion_tokens for one in self._store.spent(since=today(self._now())))
        if used + estimate > cap:
            raise Refused(
                f"The day's {cap:,} tokens for the model are used up ({used:,} so far, about {estimate:,} wanted). "
                "Calls go on at 00:00 UTC; raise MCP_MEMORY_LLM_DAILY_TOKENS to go on now."
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
                model=self.name,
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
