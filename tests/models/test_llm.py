"""A model over litellm and real loopback HTTP: what is sent, what is read, and what is said when it goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_memory.core.errors import ModelFailed
from mcp_memory.models.llm import ChatMessage, Completion, LiteLLM, ModelPrompt, explain_failure
from tests.endpoint import Endpoint, completion, serving

KEY = "sk-a-secret-of-the-test"

pytestmark = pytest.mark.usefixtures("loop_for_litellm")


class Colour(BaseModel):
    colour: str


PROMPT = ModelPrompt(
    messages=[ChatMessage(role="system", text="Be brief."), ChatMessage(role="user", text="Which colour? \ud800")],
    shape=Colour,
    max_tokens=50,
)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving(saying=f"no, {KEY}, with response_format") as scripted:
        yield scripted


@pytest.fixture
def llm(endpoint: Endpoint) -> LiteLLM:
    return LiteLLM("openai/m", base_url=endpoint.url, api_key=KEY)


def test_the_messages_and_the_schema_go_out_and_the_text_and_its_tokens_come_back(
    llm: LiteLLM, endpoint: Endpoint
) -> None:
    endpoint.script = ['{"colour": "blue"}']
    assert llm.ask(PROMPT, timeout=30) == Completion(
        text='{"colour": "blue"}', prompt_tokens=12, completion_tokens=5, cost=None
    )
    (sent,) = endpoint.asked
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Which colour? ?"},
    ]
    assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("m", 50, 0)
    schema = sent["response_format"]["json_schema"]
    assert (schema["name"], schema["strict"], list(schema["schema"]["properties"])) == ("Colour", False, ["colour"])


# --- the provider's cache ---------------------------------------------------------------------------

CLAUDE = json.dumps(
    {
        "id": "1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "blue"}],
        "usage": {
            "input_tokens": 100, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 700, "output_tokens": 5
        },
    }
).encode()  # fmt: skip
MARK = {"cache_control": {"type": "ephemeral"}}


def test_what_the_provider_read_from_its_cache_comes_back_and_costs_less(endpoint: Endpoint) -> None:
    endpoint.script = [completion("blue", cached=8), completion("blue", cached=0)]
    llm = LiteLLM("openai/gpt-4o-mini", base_url=endpoint.url, api_key=KEY)
    cheaper, dearer = llm.ask(PROMPT, timeout=30), llm.ask(PROMPT, timeout=30)
    assert [(said.prompt_tokens, said.cached_tokens) for said in (cheaper, dearer)] == [(12, 8), (12, 0)]
    assert cheaper.cost is not None
    assert dearer.cost is not None
    assert 0 < cheaper.cost < dearer.cost


def test_claude_is_told_to_cache_the_instructions_and_its_tokens_are_read_alike(endpoint: Endpoint) -> None:
    endpoint.script = [CLAUDE]
    said = LiteLLM("anthropic/claude-sonnet-4-5", base_url=endpoint.url, api_key=KEY).ask(PROMPT, timeout=30)
    (sent,) = endpoint.asked
    assert sent["system"] == [{"type": "text", "text": "Be brief.", **MARK}]
    assert "cache_control" not in json.dumps(sent["messages"])
    assert (said.text, said.prompt_tokens, said.cached_tokens) == ("blue", 1_000, 700)


@pytest.mark.parametrize("name", ["anthropic/claude-3-haiku-20240307", "openai/gpt-4o-mini", "openai/my-claude"])
def test_a_model_that_knows_no_marks_of_a_cache_or_needs_none_gets_none(endpoint: Endpoint, name: str) -> None:
    endpoint.script = [CLAUDE if name.startswith("anthropic") else "blue"]
    LiteLLM(name, base_url=endpoint.url, api_key=KEY).ask(PROMPT, timeout=30)
    assert "cache_control" not in json.dumps(endpoint.asked)


# --- what goes wrong --------------------------------------------------------------------------------


def test_an_endpoint_that_refuses_schemas_is_asked_without_from_then_on(llm: LiteLLM, endpoint: Endpoint) -> None:
    endpoint.script = [(400, {}), "blue", "green"]
    assert [llm.ask(PROMPT, timeout=30).text for _ in range(2)] == ["blue", "green"]
    assert ["response_format" in sent for sent in endpoint.asked] == [True, False, False]


def test_a_request_that_is_wrong_in_another_way_is_said_and_schemas_are_not_given_up(
    llm: LiteLLM, endpoint: Endpoint
) -> None:
    endpoint.script = [(400, {}), (400, {}), "blue"]
    with pytest.raises(ModelFailed, match="The model openai/m failed: "):
        llm.ask(PROMPT, timeout=30)
    llm.ask(PROMPT, timeout=30)
    assert ["response_format" in sent for sent in endpoint.asked] == [True, False, True]


def test_an_answer_that_ran_out_of_tokens_is_marked_and_one_without_text_is_empty(
    llm: LiteLLM, endpoint: Endpoint
) -> None:
    endpoint.script = [completion("blu", why="length"), completion(None)]
    assert [(said.text, said.cut) for said in (llm.ask(PROMPT, timeout=30), llm.ask(PROMPT, timeout=30))] == [
        ("blu", True),
        ("", False),
    ]


@pytest.mark.parametrize(
    ("answer", "says", "passes", "wait_s"),
    [
        ((401, {}), "refused the key. Set MCP_MEMORY_LLM_API_KEY", False, None),
        ((404, {}), "is not known there. Check MCP_MEMORY_LLM and MCP_MEMORY_LLM_BASE_URL.", False, None),
        ((429, {"retry-after": "7"}), "is asked more often than its provider allows", True, 7),
        ((429, {"retry-after": "Fri, 20 Nov 2026 12:00:00 GMT"}), "is asked more often", True, None),
        ((500, {}), "failed: ", True, None),
        ((503, {}), "failed: ", True, None),
        (b"<html>It works!</html>", "", False, None),
        (b'{"object": "chat.completion", "choices": []}', "", False, None),
    ],
)
def test_a_failure_names_the_model_and_the_next_step_and_never_the_key(
    llm: LiteLLM, endpoint: Endpoint, answer: Any, says: str, passes: bool, wait_s: float | None
) -> None:
    endpoint.script = [answer] * 2
    with pytest.raises(ModelFailed) as failed:
        llm.ask(PROMPT, timeout=30)
    assert str(failed.value).startswith(f"The model openai/m {says}")
    assert KEY not in str(failed.value)
    if says:
        assert (failed.value.passes, failed.value.wait_s, len(endpoint.asked)) == (passes, wait_s, 1)


def test_a_server_that_drips_its_answer_is_left_when_the_time_is_up(llm: LiteLLM, endpoint: Endpoint) -> None:
    endpoint.script = ["warm", None]
    llm.ask(PROMPT, timeout=30)  # litellm is imported and connected by now
    with pytest.raises(ModelFailed, match=r"openai/m did not answer within 0\.2 s") as failed:
        llm.ask(PROMPT, timeout=0.2)
    assert (failed.value.passes, failed.value.billed) == (True, True)


def test_an_endpoint_that_is_not_there_is_said() -> None:
    with pytest.raises(ModelFailed, match="The model openai/m failed: ") as failed:
        LiteLLM("openai/m", base_url="http://127.0.0.1:9/v1", api_key=KEY).ask(PROMPT, timeout=30)
    assert failed.value.passes


def test_a_name_that_litellm_does_not_know_is_said() -> None:
    with pytest.raises(ModelFailed, match="The model no-such-model failed: "):
        LiteLLM("no-such-model").ask(PROMPT, timeout=30)


def test_the_key_is_in_no_repr() -> None:
    from mcp_memory.core.config import Settings

    assert KEY not in repr(Settings(llm="openai/m", llm_api_key=KEY))


def test_a_key_in_what_a_library_says_of_a_failure_is_masked() -> None:
    key = "AKIA" + "Q7RZ5MDW3KXN8PLT"
    said, _ = explain_failure(None, RuntimeError(f"no such host for {key}"), settings="MODEL", timeout=1, secret=None)
    assert key not in said
    assert said.startswith("failed: no such host for ")
