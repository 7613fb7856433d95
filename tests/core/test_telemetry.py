"""Spans reach a collector where one is configured, without contents; where none is, nothing happens."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mcp_memory.core import telemetry
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import ModelFailed
from mcp_memory.core.types import NewTurn
from mcp_memory.models.llm import ChatMessage, Completion, ModelPrompt
from mcp_memory.service.memory import open_memory
from mcp_memory.store.sql import turn_rows
from mcp_memory.testing import HashEmbedder
from tests.postgres.notes import opened
from tests.postgres.proxy import proxied
from tests.postgres_server import PostgresServer

MARK = "quetzalcoatlus"


class Collector:
    """What a collector was sent."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[bytes] = []

    @property
    def spans(self) -> list[Any]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            span for one in requests for of in one.resource_spans for scope in of.scope_spans for span in scope.spans
        ]


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            made.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Takes) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        made.url = f"http://127.0.0.1:{server.server_port}"
        yield made
        server.shutdown()
        serving.join()


@pytest.mark.slow
async def test_requests_and_what_they_do_to_the_store_reach_the_collector_without_contents(
    tmp_path: Path, collector: Collector
) -> None:
    environment = {
        **os.environ, "MCP_MEMORY_HOME": str(tmp_path / "home"), "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_TIMEOUT": "5",
    }  # fmt: skip
    server = StdioServerParameters(command=sys.executable, args=["-m", "mcp_memory", "serve"], env=environment)
    with anyio.fail_after(60):
        async with Client(server) as client:
            await client.call_tool("remember", {"text": f"The user keeps a {MARK}."})
            await client.call_tool("memory_search", {"query": f"the {MARK}"})
            await client.call_tool("remember", {MARK: MARK})
            await client.call_tool(MARK, {})
            for wrong in (client.get_prompt(MARK), client.read_resource(f"memory://{MARK}")):
                with pytest.raises(MCPError):
                    await wrong
    spans = collector.spans
    by_id = {span.span_id: span for span in spans}
    names = [span.name for span in spans]
    assert {"tools/call remember", "tools/call memory_search", "store atom_rows.add", "embed embed_query"} <= set(names)
    added = next(span for span in spans if span.name == "store atom_rows.add")
    assert by_id[added.parent_span_id].name == "tools/call remember"
    assert "tools/call" in names  # of a tool that is none, only that one was called
    assert MARK.encode() not in b"".join(collector.bodies).lower()
    assert any(span.status.code == 2 for span in spans)
    assert all(not span.status.message and not span.events for span in spans)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Telemetry that is on, and what it would send."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(telemetry.without_contents(kept, set())))
    monkeypatch.setattr(telemetry, "_tracer", provider.get_tracer("mcp-memory"))
    return kept


class Model:
    name = "openai/m"

    def __init__(self, *answers: Completion | ModelFailed) -> None:
        self.answers = [*answers]

    def ask(self, prompt: ModelPrompt, *, timeout: float) -> Completion:
        answer = self.answers.pop(0)
        if isinstance(answer, ModelFailed):
            raise answer
        return answer


def test_a_call_to_a_model_is_a_span_with_its_tokens_and_an_error_has_its_type_alone(
    spans: InMemorySpanExporter,
) -> None:
    said = Completion(text=MARK, prompt_tokens=120, completion_tokens=7, cost=None, cut=False)
    model = telemetry.with_spans(Model(said, ModelFailed(f"overloaded by {MARK}")), "model")
    prompt = ModelPrompt(messages=(ChatMessage(role="user", text=MARK),), shape=dict, max_tokens=9)  # pyright: ignore[reportArgumentType]
    assert model.ask(prompt, timeout=1) is said
    with pytest.raises(ModelFailed):
        model.ask(prompt, timeout=1)
    assert model.name == "openai/m"
    first, second = spans.get_finished_spans()
    assert first.name == "model ask"
    assert dict(first.attributes or {}) == {
        "gen_ai.request.model": "openai/m", "gen_ai.usage.input_tokens": 120, "gen_ai.usage.output_tokens": 7,
    }  # fmt: skip
    assert dict(second.attributes or {})["error.type"] == "ModelFailed"
    assert MARK not in first.to_json() + second.to_json()


def test_an_embedding_says_how_many_texts_there_were(spans: InMemorySpanExporter) -> None:
    embedder = telemetry.with_spans(HashEmbedder(), "embed")
    embedder.embed([MARK, "another"])
    assert embedder.local
    [span] = spans.get_finished_spans()
    assert dict(span.attributes or {}) == {"gen_ai.request.model": "hash/64", "mcp_memory.texts": 2}


def test_where_no_collector_is_configured_nothing_is_wrapped_and_nothing_imported() -> None:
    thing = object()
    assert telemetry.with_spans(thing, "store") is thing
    code = (
        "import sys; from mcp_memory.core import telemetry; telemetry.set_up(set()); telemetry.finish();"
        " print([name for name in sys.modules if name.startswith('opentelemetry')], telemetry.is_on())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_without_otel())
    assert run.stdout.strip() == "[] False"


def _without_otel() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_usual_variables_switch_it(environ: dict[str, str], wanted: bool) -> None:
    assert telemetry.is_configured(environ) == wanted


async def test_background_work_has_a_span_with_the_time_that_its_space_was_due(
    tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    settings = Settings(home=tmp_path, embedder="none")
    async with open_memory(settings) as memory:
        await memory.record_turns([NewTurn(role="user", content="Boats are best.")], session="one")
    async with open_memory(settings, embedder=HashEmbedder()):
        with anyio.fail_after(20):
            while not (ages := _claim_ages(spans)):  # noqa: ASYNC110
                await anyio.sleep(0.01)
    assert ages[0] >= 0


def _claim_ages(spans: InMemorySpanExporter) -> list[Any]:
    ended = [span.attributes or {} for span in spans.get_finished_spans() if span.name == "worker index"]
    return [about["mcp_memory.claim_age_ms"] for about in ended]


@pytest.mark.postgres
def test_a_span_of_a_shared_store_has_the_wait_for_a_connection_and_the_retries(
    postgres: PostgresServer, url: str, spans: InMemorySpanExporter
) -> None:
    with proxied(postgres.port) as proxy, opened(proxy.url(url)) as store:
        seen = telemetry.with_spans(store, "store")
        with telemetry._tracer.start_as_current_span("tools/call"):  # pyright: ignore[reportPrivateUsage]
            seen.read("me", turn_rows.sessions)
            proxy.cut_before(b"SELECT")
            seen.read("me", turn_rows.sessions)
    first, second, _ = (dict(span.attributes or {}) for span in spans.get_finished_spans())
    assert [*first] == ["mcp_memory.pool_wait_ms"]
    assert second["mcp_memory.retries"] == 1
