"""Language models: the interface, litellm behind it, and the parser of their replies.

An `LLM` answers a prompt once, without retries, checks and accounting: `metered` does these in one place for every
model. `testing.ScriptedLLM` is the other implementation. Importing litellm takes 2 to 3 seconds and 150 MB, so it
happens late, on the thread that needs it, and not at all without a configured model. No other module imports it.

`parse` reads one JSON value of a schema from a reply. The JSON may be in a fence or in prose, follow the model's
thoughts, have trailing commas or raw control characters in strings, be one item instead of a list or a list instead
of its object, be one object per line, or be wrapped in another object. Of several values the last that fits counts,
since models think first and answer then. Missing parts are never invented, and a truncated value is not repaired.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Protocol, TypeVar, cast, get_origin

from pydantic import BaseModel, RootModel, ValidationError

from mcp_memory.core.errors import InvalidInput, ModelFailed
from mcp_memory.core.secrets.masking import mask

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrompt:
    """Messages, the schema of the reply, and its largest size in tokens."""

    messages: Sequence[ChatMessage]
    shape: type[BaseModel]
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's answer. `cost` is in US dollars; None if the price is unknown."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    cached_tokens: int = 0
    """The part of the prompt that the provider read from its cache, at a lower price."""
    cut: bool = False
    """Whether the end is missing because the model ran out of `max_tokens`."""


class LLM(Protocol):
    """Answers a prompt. Calls block, may come from any thread, and raise ModelFailed. Creating an LLM asks nothing."""

    @property
    def name(self) -> str:
        """The model, as the settings name it."""
        ...

    def ask(self, prompt: ModelPrompt, *, timeout: float) -> Completion:
        """Return the model's answer, waiting at most `timeout` seconds for all of it."""
        ...


class LiteLLM:
    """Asks a model through litellm. `name` is litellm's name for it, such as `ollama/qwen3:8b`.

    The schema is sent as a JSON schema. If an endpoint refuses such a request, this and all later requests are sent
    without the schema, which the prompt describes too.
    """

    def __init__(self, name: str, *, base_url: str | None = None, api_key: str | None = None) -> None:
        self.name = name
        self._base_url = base_url
        self._api_key = api_key
        self._knows_schemas = True

    def ask(self, prompt: ModelPrompt, *, timeout: float) -> Completion:
        try:
            return _run_with_timeout(timeout, lambda: self._ask(prompt, timeout))
        except TimeoutError:
            raise ModelFailed(
                f"The model {self.name} did not answer within {timeout:.3g} s. Check that its server is up.",
                passes=True,
                billed=True,
            ) from None

    def _ask(self, prompt: ModelPrompt, timeout: float) -> Completion:
        try:
            litellm = import_litellm()
        except ImportError as error:
            raise ModelFailed(f"litellm cannot be imported ({error}). Install mcp-memory again.") from None
        try:
            if self._knows_schemas:
                try:
                    return self._complete(litellm, prompt, timeout, response_format=_format_of(prompt.shape))
                except (litellm.BadRequestError, litellm.UnprocessableEntityError) as error:
                    if isinstance(error, litellm.ContextWindowExceededError | litellm.ContentPolicyViolationError):
                        raise
                    # Raises if the schema was not the reason.
                    completion = self._complete(litellm, prompt, timeout)
                    self._knows_schemas = False
                    return completion
            return self._complete(litellm, prompt, timeout)
        except (*litellm.LITELLM_EXCEPTION_TYPES, ValueError) as error:
            raise self._failure(error, timeout) from None

    def _complete(self, litellm: Any, prompt: ModelPrompt, timeout: float, **more: Any) -> Completion:
        response = litellm.completion(
            model=self.name,
            messages=[
                {"role": message.role, "content": _without_surrogates(message.text)} for message in prompt.messages
            ],
            api_base=self._base_url,
            api_key=self._api_key,
            timeout=timeout,
            max_tokens=prompt.max_tokens,
            temperature=0,
            max_retries=0,
            drop_params=True,  # not every model takes the three lines above
            **self._cache_marks(litellm),
            **more,
        )
        return self._to_completion(response)

    def _cache_marks(self, litellm: Any) -> dict[str, Any]:
        """Return the parameter that makes Claude cache the schema and the instructions; empty for other models.

        Most providers cache by default; for Gemini a mark would create a cache that costs by the hour.
        """
        needed = "claude" in self.name.lower() and litellm.utils.supports_prompt_caching(self.name)
        return {"cache_control_injection_points": [{"location": "message", "role": "system"}]} if needed else {}

    def _to_completion(self, response: Any) -> Completion:
        try:
            choice, usage = response.choices[0], response.usage
            text = choice.message.content
            tokens = int(usage.prompt_tokens), int(usage.completion_tokens)
            cached = int(getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None) or 0)
        except (AttributeError, IndexError, TypeError, ValueError):
            raise ModelFailed(
                f"The model {self.name} answered with something that is not a chat completion. "
                "Check that MCP_MEMORY_LLM_BASE_URL is the address of a chat endpoint."
            ) from None
        cost = getattr(response, "_hidden_params", {}).get("response_cost")
        return Completion(
            text=text or "",
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            cached_tokens=cached,
            cost=float(cost) if cost else None,
            cut=choice.finish_reason == "length",
        )

    def _failure(self, error: Exception, timeout: float) -> ModelFailed:
        status = getattr(error, "status_code", None)
        what, next_step = explain_failure(status, error, settings="LLM", timeout=timeout, secret=self._api_key)
        return ModelFailed(
            f"The model {self.name} {what}. {next_step}",
            passes=is_temporary(status),
            wait_s=_retry_after(error),
            billed=status == 408,
        )


def reply_schema(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a reply, without titles, defaults and descriptions of objects: the prompt has them."""
    return _bare(shape.model_json_schema())


def _bare(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_bare(part) for part in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast("dict[str, Any]", schema)
    is_object = parts.get("type") == "object"
    left_out = ("title", "default", "description") if is_object else ("title", "default")
    members = ("properties", "$defs")  # their keys are names, such as a field that is called `title`
    return {
        key: {name: _bare(value) for name, value in part.items()} if key in members else _bare(part)
        for key, part in parts.items()
        if key in members or key not in left_out
    }


def _format_of(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the request for a reply of this shape. A strict schema would make optional fields required."""
    return {
        "type": "json_schema",
        "json_schema": {"name": shape.__name__, "schema": reply_schema(shape), "strict": False},
    }


def import_litellm() -> Any:
    """Import litellm so that it reads no `.env`, fetches no price list and prints nothing; return it.

    It sets LITELLM_* variables of this process. litellm's own retries are off, since callers retry: both together
    would make nine attempts.
    """
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # other modes read `.env` of the working directory
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network for prices at each import
    os.environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"  # and for a list of headers at the first call
    own = [logging.getLogger(name) for name in ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router")]
    for logger in own:
        logger.setLevel(logging.WARNING)  # hide its notes on modules and files it cannot find
    library: Any = import_module("litellm")  # its types are partial
    library.suppress_debug_info = True  # it prints to stdout, which belongs to the protocol
    for logger in own:
        logger.handlers.clear()  # they write their messages to stderr, prompts too
        logger.setLevel(logging.NOTSET)
    library.DEFAULT_MAX_RETRIES = 0  # asking for `max_retries=0` in a call falls back to this
    return library


def price(model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
    """Return the price of a call in US dollars; None where litellm knows no price."""
    litellm = import_litellm()
    try:
        read, written = litellm.cost_per_token(
            model=model, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens
        )
    except (litellm.exceptions.ModelNotMappedError, *litellm.LITELLM_EXCEPTION_TYPES, ValueError):
        return None
    return float(read + written)


def is_temporary(status: object) -> bool:
    """Return whether a failure with that HTTP status is temporary."""
    return isinstance(status, int) and (status in (408, 429) or status >= 500)


def explain_failure(
    status: object, error: Exception, *, settings: str, timeout: float, secret: str | None
) -> tuple[str, str]:
    """Return what went wrong, to follow a model's name, and the next step, about variables MCP_MEMORY_`settings`…"""
    match status:
        case 401 | 403:
            return "refused the key", f"Set MCP_MEMORY_{settings}_API_KEY, or the provider's own variable."
        case 404:
            return "is not known there", f"Check MCP_MEMORY_{settings} and MCP_MEMORY_{settings}_BASE_URL."
        case 408:
            return f"did not answer within {timeout:.3g} s", "Check that its server is up."
        case 429:
            return "is asked more often than its provider allows", "It is retried automatically."
        case _:
            return f"failed: {first_line(error, secret)}", f"Check MCP_MEMORY_{settings} and that its server is up."


def first_line(error: Exception, secret: str | None = None) -> str:
    """Return the first line of an error message, with secrets masked and without its full stop."""
    line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return mask(line.replace(secret, "…") if secret else line)[:300].rstrip(".")


def _run_with_timeout(seconds: float, call: Callable[[], T]) -> T:
    """Run a call on its own thread, and return its result. Raises its error, or TimeoutError if it takes longer.

    litellm's own timeout is per read from the network, so a server that answers slowly never exceeds it.
    """
    answer: Future[T] = Future()

    def run() -> None:
        loop = asyncio.new_event_loop()  # litellm makes one on every new thread, and closes none
        asyncio.set_event_loop(loop)
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 raised again in the waiting thread
            answer.set_exception(error)
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    threading.Thread(target=run, name="llm", daemon=True).start()
    return answer.result(timeout=seconds)


def _retry_after(error: Exception) -> float | None:
    headers: Any = getattr(error, "litellm_response_headers", None) or {}
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:  # none, or a date
        return None


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # a lone surrogate is not valid JSON


MAX_CHARACTERS = 1_000_000
_STARTS_TRIED = 12  # unclosed brackets, before the rest of the text is ignored

R = TypeVar("R", bound=BaseModel)

_FENCE = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)
_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPENING = re.compile(r"[\[{]")
_INSIDE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', re.DOTALL)


def parse(text: str, shape: type[R]) -> R:
    """Return the value in a text that fits the schema. Raises InvalidInput, worded for its author, if none fits."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"The reply has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read.")
    values = list(_values(_THOUGHTS.sub("", text)))
    if not values:
        raise InvalidInput("The reply holds no complete JSON value. Answer with the JSON alone, all of it.")
    trouble: ValidationError | None = None
    for reading in _interpretations(values, shape):
        try:
            return shape.model_validate(reading)
        except ValidationError as error:
            trouble = trouble or error
    assert trouble is not None
    raise InvalidInput(_explain(trouble))


def without_fence(text: str) -> str:
    """Return a page without the Markdown fence around all of it."""
    fence = _FENCE.fullmatch(text)
    return fence[1] if fence else text


def _values(text: str) -> Iterator[Any]:
    """Yield the outermost JSON objects and lists in a text."""
    for span in _spans(text):
        for tried in (span, _TRAILING_COMMA.sub(r"\1", span)):
            try:
                yield json.loads(tried, strict=False)
                break
            except (ValueError, RecursionError):
                continue


def _spans(text: str) -> Iterator[str]:
    """Yield the texts between matching brackets. Quotes count only within brackets: prose has apostrophes."""
    start, unclosed = 0, 0
    while unclosed < _STARTS_TRIED and (opening := _OPENING.search(text, start)):
        end = _end_of_value(text, opening.start())
        if end is None:
            start, unclosed = opening.end(), unclosed + 1
        else:
            yield text[opening.start() : end]
            start = end


def _end_of_value(text: str, start: int) -> int | None:
    """Return the end of the value that begins at `start`, None if its brackets do not match."""
    open_: list[str] = []
    for token in _INSIDE.finditer(text, start):
        match token.group():
            case "[" | "{" as bracket:
                open_.append("]" if bracket == "[" else "}")
            case "]" | "}" as bracket:
                if open_.pop() != bracket:
                    return None
                if not open_:
                    return token.end()
            case _:
                pass
    return None


def _interpretations(values: list[Any], shape: type[BaseModel]) -> Iterator[Any]:
    """Yield candidate replies: the values unchanged, last value first, and after them lenient interpretations."""
    latest = values[::-1]
    yield from latest
    everything = [values, *latest] if len(values) > 1 else latest
    for value in everything:
        yield from _lenient_interpretations(value, shape)


def _lenient_interpretations(value: Any, shape: type[BaseModel]) -> Iterator[Any]:
    field = _list_field(shape)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        yield items if field is None else {field: items}
        yield from items[:1] if len(items) == 1 else ()
    else:
        members = cast("dict[str, Any]", value)
        if field is None:
            yield [members]
        else:
            yield {**members, field: [members[field]]} if field in members else {field: [members]}
        yield from members.values() if len(members) == 1 else ()


def _list_field(shape: type[BaseModel]) -> str | None:
    """Return the name of the only required field (or, if none is required, of the only list field) if it is a list."""
    if issubclass(shape, RootModel):
        return None
    needed = [(name, field) for name, field in shape.model_fields.items() if field.is_required()]
    lists = [name for name, field in needed or shape.model_fields.items() if get_origin(field.annotation) is list]
    return lists[0] if len(lists) == 1 and len(needed) <= 1 else None


def _explain(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False)
    lines = (f"{'.'.join(map(str, problem['loc'])) or 'the reply'}: {problem['msg']}" for problem in problems[:5])
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    return f"The reply does not have the shape that was asked for ({'; '.join(lines)}{more})."
