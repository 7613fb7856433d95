"""The tools, resources and prompts that the official conformance suites call by name.

The suites test a server by calling things that no real server has (`test_simple_text`, ...). This module adds
them to the real server, so that the whole scored set runs against the same object, transport and middleware
that ship. It is used by the peer tests only (`serve_with_fixtures.py`) and is not in the package.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Audio, Context, Image, MCPServer, Message, UserMessage
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    EmptyResult,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    MissingRequiredClientCapabilityErrorData,
    SamplingCapability,
    SamplingMessage,
    SetLevelRequestParams,
    TextContent,
    TextResourceContents,
)
from pydantic import Field

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
WAV = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
BEAT = 0.05  # seconds between two notifications; the suites ask for it, so that they arrive apart

Schema = dict[str, Any]


# Content of every type


def test_simple_text() -> str:
    """Answers with one line of text."""
    return "This is a simple text response for testing."


def test_image_content() -> Image:
    """Answers with an image."""
    return Image(data=PNG, format="png")


def test_audio_content() -> Audio:
    """Answers with a sound."""
    return Audio(data=WAV, format="wav")


def test_embedded_resource() -> EmbeddedResource:
    """Answers with a resource inside the result."""
    return _embedded("test://embedded-resource", "This is an embedded resource content.")


def test_multiple_content_types() -> CallToolResult:
    """Answers with text, an image and a resource."""
    mixed = json.dumps({"test": "data", "value": 123})
    return CallToolResult(
        content=[
            TextContent(text="Multiple content types test:"),
            Image(data=PNG, format="png").to_image_content(),
            _embedded("test://mixed-content-resource", mixed, mime_type="application/json"),
        ]
    )


def test_error_handling() -> str:
    """Always fails."""
    raise ToolError("This tool intentionally returns an error for testing")


def json_schema_2020_12_tool() -> str:
    """Has an input schema with the wider vocabulary of JSON Schema 2020-12."""
    return "ok"


def test_x_mcp_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Has an argument that a client mirrors into a header."""
    return region


# What happens while a tool runs


async def test_tool_with_progress(ctx: Context) -> str:
    """Reports progress three times."""
    for step in (0, 50, 100):
        await ctx.report_progress(step, 100, f"Completed step {step} of 100")
        await anyio.sleep(BEAT)
    return "done"


async def test_tool_with_logging(ctx: Context) -> str:
    """Logs three times."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(line)
        await anyio.sleep(BEAT)
    return "done"


async def test_logging_tool(ctx: Context) -> str:
    """Logs once; a client of 2026-07-28 that did not ask for logs must not see it."""
    await ctx.info("a line of log")
    return "done"


async def test_reconnection(ctx: Context) -> str:
    """Closes its stream before it answers, so that the client has to come back for the answer."""
    await ctx.close_sse_stream()
    await anyio.sleep(2 * BEAT)
    return "answered after the reconnection"


async def test_trigger_tool_change(ctx: Context) -> str:
    """Announces that the list of tools changed."""
    await ctx.notify_tools_changed()
    return "announced"


async def test_trigger_prompt_change(ctx: Context) -> str:
    """Announces that the list of prompts changed."""
    await ctx.notify_prompts_changed()
    return "announced"


# Questions to the client, up to 2025-11-25: the server sends a request


async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the client's model."""
    message = SamplingMessage(role="user", content=TextContent(text=prompt))
    reply = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {reply.content.text if isinstance(reply.content, TextContent) else ''}"


async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the user for a name and an address."""
    return await _elicit(ctx, message, {"username": {"type": "string"}, "email": {"type": "string"}})


async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks the user, with a default for each primitive type."""
    fields: Schema = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await _elicit(ctx, "Please check these details", fields)


async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks the user, with each of the five ways to write a choice."""
    plain = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
    legacy = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]}
    fields: Schema = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", **legacy},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return await _elicit(ctx, "Please choose", fields)


# Questions to the client, since 2026-07-28: the answer is the question, and the client calls again


def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
    """Needs a name."""
    return f"Hello, {ctx.input_responses['user_name']}!" if _answered(ctx, "user_name") else _ask(user_name=NAME)


def test_streaming_elicitation(ctx: Context) -> str | InputRequiredResult:
    """Needs a name; asked for on the response's own stream."""
    return test_input_required_result_elicitation(ctx)


def test_input_required_result_sampling(ctx: Context) -> str | InputRequiredResult:
    """Needs the client's model."""
    return "Answered" if _answered(ctx, "capital_question") else _ask(capital_question=_sampling("Capital of France?"))


def test_input_required_result_list_roots(ctx: Context) -> str | InputRequiredResult:
    """Needs the client's folders."""
    return f"{ctx.input_responses['client_roots']}" if _answered(ctx, "client_roots") else _ask(client_roots=ROOTS)


def test_input_required_result_request_state(ctx: Context) -> str | InputRequiredResult:
    """Needs a yes, and its own state back."""
    if _answered(ctx, "confirm") and ctx.request_state == "asked":
        return "state-ok"
    return _ask("asked", confirm=CONFIRM)


def test_input_required_result_tampered_state(ctx: Context) -> str | InputRequiredResult:
    """Needs its state back as it was; the server refuses one that was changed."""
    return test_input_required_result_request_state(ctx)


def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequiredResult:
    """Needs three things at once."""
    asked = {"user_name": NAME, "greeting": _sampling("Generate a greeting"), "client_roots": ROOTS}
    return "All three arrived" if _answered(ctx, *asked) else _ask("asked", **asked)


def test_input_required_result_multi_round(ctx: Context) -> str | InputRequiredResult:
    """Needs two things, one after the other."""
    if ctx.request_state == "second" and _answered(ctx, "step2"):
        return "Both arrived"
    if ctx.request_state == "first" and _answered(ctx, "step1"):
        return _ask("second", step2=_form("Step 2: What is your favorite color?", "color"))
    return _ask("first", step1=_form("Step 1: What is your name?", "name"))


def test_input_required_result_capabilities(ctx: Context) -> str | InputRequiredResult:
    """Asks for whatever the client can give."""
    can = ctx.client_capabilities or ClientCapabilities()
    asked: dict[str, InputRequest] = {}
    if can.elicitation is not None:
        asked["user_name"] = NAME
    if can.sampling is not None:
        asked["greeting"] = _sampling("Generate a greeting")
    return _ask(**asked) if asked else "The client can give nothing"


def test_missing_capability(ctx: Context) -> str:
    """Needs a client that can sample, and refuses any other."""
    if ctx.client_capabilities is not None and ctx.client_capabilities.sampling is not None:
        return "The client can sample"
    required = ClientCapabilities(sampling=SamplingCapability())
    data = MissingRequiredClientCapabilityErrorData(required_capabilities=required)
    raise MCPError(
        code=MISSING_REQUIRED_CLIENT_CAPABILITY,
        message="This tool needs a client that can sample",
        data=data.model_dump(by_alias=True, mode="json", exclude_none=True),
    )


# Resources and prompts


def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


def static_binary() -> bytes:
    """An image that never changes."""
    return PNG


def template_data(id: str) -> str:
    """A resource with a variable in its address."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def watched() -> str:
    """A resource to subscribe to."""
    return "watched"


def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803 (the suite names it)
    """A prompt with a resource inside."""
    resource = _embedded(resourceUri, "Embedded resource content for testing.")
    return [UserMessage(resource), UserMessage("Please process the embedded resource above.")]


def test_prompt_with_image() -> list[Message]:
    """A prompt with an image inside."""
    image = Image(data=PNG, format="png").to_image_content()
    return [UserMessage(image), UserMessage("Please analyze the image above.")]


def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
    """A prompt that needs something from the user first."""
    question = _form("What context should the prompt use?", "context")
    return "With that context" if _answered(ctx, "user_context") else _ask(user_context=question)


# How the pieces above are made


def _embedded(uri: str, text: str, *, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


async def _elicit(ctx: Context, message: str, fields: Schema) -> str:
    schema: Schema = {"type": "object", "properties": fields, "required": list(fields)}
    reply = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return f"Elicitation completed: action={reply.action}, content={json.dumps(reply.content)}"


def _form(message: str, name: str, kind: str = "string") -> ElicitRequest:
    schema: Schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sampling(text: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


def _ask(state: str | None = None, /, **requests: InputRequest) -> InputRequiredResult:
    return InputRequiredResult(input_requests=requests, request_state=state)


def _answered(ctx: Context, *keys: str) -> bool:
    return all(key in (ctx.input_responses or {}) for key in keys)


NAME = _form("What is your name?", "name")
CONFIRM = _form("Please confirm", "ok", "boolean")
ROOTS = ListRootsRequest()

JSON_SCHEMA_2020_12: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

TOOLS: list[Callable[..., Any]] = [
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    json_schema_2020_12_tool,
    test_x_mcp_header,
    test_tool_with_progress,
    test_tool_with_logging,
    test_logging_tool,
    test_reconnection,
    test_trigger_tool_change,
    test_trigger_prompt_change,
    test_sampling,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_input_required_result_elicitation,
    test_streaming_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
    test_missing_capability,
]
PROMPTS: list[Callable[..., Any]] = [
    test_simple_prompt,
    test_prompt_with_arguments,
    test_prompt_with_embedded_resource,
    test_prompt_with_image,
    test_input_required_result_prompt,
]


def add_fixtures(mcp: MCPServer) -> None:
    """Add everything above to `mcp`, and an answer to the deprecated `logging/setLevel`."""
    for tool in TOOLS:
        mcp.add_tool(tool)
    for prompt in PROMPTS:
        mcp.prompt()(prompt)
    mcp.resource("test://static-text", mime_type="text/plain")(static_text)
    mcp.resource("test://static-binary", mime_type="image/png")(static_binary)
    mcp.resource("test://template/{id}/data", mime_type="application/json")(template_data)
    mcp.resource("test://watched-resource", mime_type="text/plain")(watched)

    # The SDK derives a schema from the signature and has no way to give one; nor has it a public way to
    # answer `logging/setLevel`, which the oldest requirement set still asks for.
    odd_one = mcp._tool_manager.get_tool(json_schema_2020_12_tool.__name__)
    assert odd_one is not None
    odd_one.parameters = JSON_SCHEMA_2020_12
    mcp._lowlevel_server.add_request_handler("logging/setLevel", SetLevelRequestParams, _accept_level)


async def _accept_level(_ctx: Any, _params: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()
